// Conds, loops, and groups of operations, as the Switch/Merge graphs of TensorFlow 1.x.
#ifndef WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_H_
#define WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/ops/ops.h"

namespace weir {

// Functions that build a branch or the body of a loop are called once, while the graph is built. Only operations that
// they make are conditional. Values inside can be neither fetched nor used outside: InvalidArgument "Cannot use 'a' as
// input to 'b' because 'a' is in a while loop."
using BranchFn = std::function<Output()>;
using BranchListFn = std::function<List<Output>()>;
using BranchOperationFn = std::function<Operation()>;

/// The value of true_fn if `pred` (a bool scalar) is true, else of false_fn; both of one type. Nodes: `cond/Switch`,
/// `cond/switch_t`, `cond/pred_id`, `cond/Merge`, …
Output Cond(const Operand& pred, const BranchFn& true_fn, const BranchFn& false_fn, std::string_view name = "cond",
            Where where = Where::current());
/// With several values, the same number from both functions.
List<Output> Cond(const Operand& pred, const BranchListFn& true_fn, const BranchListFn& false_fn,
                  std::string_view name = "cond", Where where = Where::current());
/// With operations; the result is `pred` after the operation has run.
Output Cond(const Operand& pred, const BranchOperationFn& true_fn, const BranchOperationFn& false_fn,
            std::string_view name = "cond", Where where = Where::current());

struct CaseOptions {
  /// Several true conditions fail the run: `exclusive=True: more than 1 conditions (…) evaluated as True`.
  bool exclusive = false;
  std::string_view name = "case";
};
/// The value of the first true condition, else of default_fn. Without default_fn the run fails if none is true: `None
/// of conditions evaluated as True`.
Output Case(const std::vector<std::pair<Output, BranchFn>>& branches, const BranchFn& default_fn = nullptr,
            const CaseOptions& options = {}, Where where = Where::current());
List<Output> Case(const std::vector<std::pair<Output, BranchListFn>>& branches,
                  const BranchListFn& default_fn = nullptr, const CaseOptions& options = {},
                  Where where = Where::current());

struct WhileOptions {
  /// Shapes of the loop variables in every iteration; empty = their initial shapes.
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

/// Runs `body` (loop variables -> next values) while `cond` (a bool scalar) is true. Returns the last values:
/// `while/Exit`, `while/Exit_1`, … The frame is named `while/while_context`.
LoopVars WhileLoop(const LoopCondFn& cond, const LoopBodyFn& body, const std::vector<Operand>& vars,
                   const WhileOptions& options = {}, Where where = Where::current());
/// The same with one loop variable.
Output WhileLoop(const std::function<Output(Output)>& cond, const std::function<Output(Output)>& body,
                 const Operand& var, const WhileOptions& options = {}, Where where = Where::current());

/// `value` after `dependencies` have run: an Identity beside it.
Output WithDependencies(const std::vector<Groupable>& dependencies, const Output& value,
                        std::string_view name = "control_dependency", Where where = Where::current());

/// The values after all of them and `control_inputs` are computed; values that do not exist stay so.
List<Output> Tuple(const std::vector<Output>& values, const std::vector<Groupable>& control_inputs = {},
                   std::string_view name = "tuple", Where where = Where::current());

struct AssertOptions {
  int64_t summarize = 3;  // elements of each tensor that the error shows
  std::string_view name = "Assert";
};
/// Fails the run with `assertion failed: [data] …` unless `condition` (a bool scalar) is true. `data` is read only then
/// (a cond, `Assert/AssertGuard`).
Operation Assert(const Operand& condition, const std::vector<Operand>& data, const AssertOptions& options = {},
                 Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTROL_FLOW_CONTROL_FLOW_H_
