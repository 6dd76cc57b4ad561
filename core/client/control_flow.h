// Conds, loops, and groups of operations, as the Switch/Merge graphs of TensorFlow 1.x.
#ifndef WEIR_CORE_CLIENT_CONTROL_FLOW_H_
#define WEIR_CORE_CLIENT_CONTROL_FLOW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/control_flow_context.h"
#include "core/client/ops.h"

namespace weir {

// Functions that make the inside of a branch or loop. They are called once, while the graph is built, and may use any
// value of the graph; what they make runs only when the branch is taken, or in each iteration. Operations that were
// made before run whichever branch is taken. Values inside of branches and loops can be neither fetched nor used
// outside; InvalidArgument "Cannot use 'a' as input to 'b' because 'a' is in a while loop."

using BranchFn = std::function<Output()>;
using BranchListFn = std::function<List<Output>()>;
using BranchOperationFn = std::function<Operation()>;

/// The value of true_fn when `pred` (a bool scalar) holds, else that of false_fn; both of one type. Nodes are named
/// `cond/Switch`, `cond/switch_t`, `cond/pred_id`, `cond/Merge`, …
Output Cond(const Operand& pred, const BranchFn& true_fn, const BranchFn& false_fn, std::string_view name = "cond",
            Where where = Where::current());
/// The same with several values; both functions return equally many. After an error, as with Case and WhileLoop, values
/// that do not exist.
List<Output> Cond(const Operand& pred, const BranchListFn& true_fn, const BranchListFn& false_fn,
                  std::string_view name = "cond", Where where = Where::current());
/// The same with operations; the value (`pred`, once the operation has run) stands for the one that ran.
Output Cond(const Operand& pred, const BranchOperationFn& true_fn, const BranchOperationFn& false_fn,
            std::string_view name = "cond", Where where = Where::current());

struct CaseOptions {
  /// More than one condition that holds is an error of the run:
  /// `exclusive=True: more than 1 conditions (…) evaluated as True`.
  bool exclusive = false;
  std::string_view name = "case";
};
/// The value that belongs to the first condition that holds, else that of default_fn. Without a default_fn none that
/// holds is an error of the run: `None of conditions evaluated as True`.
Output Case(const std::vector<std::pair<Output, BranchFn>>& branches, const BranchFn& default_fn = nullptr,
            const CaseOptions& options = {}, Where where = Where::current());
/// The same with several values.
List<Output> Case(const std::vector<std::pair<Output, BranchListFn>>& branches,
                  const BranchListFn& default_fn = nullptr, const CaseOptions& options = {},
                  Where where = Where::current());

struct WhileOptions {
  /// Shapes that the loop variables have in every iteration; empty = those that they enter with.
  std::vector<PartialShape> shape_invariants = {};
  int64_t parallel_iterations = 10;  // at most so many run at a time
  bool back_prop = true;             // false: no gradient goes through the loop
  bool swap_memory = false;
  std::optional<Operand> maximum_iterations = {};  // an integer scalar
  std::string_view name = "while";
};

using LoopVars = List<Output>;
using LoopCondFn = std::function<Output(const LoopVars&)>;
using LoopBodyFn = std::function<LoopVars(const LoopVars&)>;

/// Runs `body`, from the loop variables to their next values, while `cond` (a bool scalar) holds. Returns the last
/// values: `while/Exit`, `while/Exit_1`, … The frame is named `while/while_context`.
LoopVars WhileLoop(const LoopCondFn& cond, const LoopBodyFn& body, const std::vector<Operand>& vars,
                   const WhileOptions& options = {}, Where where = Where::current());
/// The same with one loop variable.
Output WhileLoop(const std::function<Output(Output)>& cond, const std::function<Output(Output)>& body,
                 const Operand& var, const WhileOptions& options = {}, Where where = Where::current());

/// `value` after `dependencies` have run: an Identity beside it.
Output WithDependencies(const std::vector<Groupable>& dependencies, const Output& value,
                        std::string_view name = "control_dependency", Where where = Where::current());

/// The values once all of them, and `control_inputs`, are there; values that do not exist stay so.
List<Output> Tuple(const std::vector<Output>& values, const std::vector<Groupable>& control_inputs = {},
                   std::string_view name = "tuple", Where where = Where::current());

struct AssertOptions {
  int64_t summarize = 3;  // elements of each tensor that the error shows
  std::string_view name = "Assert";
};
/// Fails the run with `assertion failed: [data] …` unless `condition` (a bool scalar) holds. `data` is looked at only
/// then: the check is a cond, `Assert/AssertGuard`.
Operation Assert(const Operand& condition, const std::vector<Operand>& data, const AssertOptions& options = {},
                 Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTROL_FLOW_H_
