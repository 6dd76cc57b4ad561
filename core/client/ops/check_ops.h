// Checks of values: while the graph is built where they are known, else as the step runs.
#ifndef WEIR_CORE_CLIENT_OPS_CHECK_OPS_H_
#define WEIR_CORE_CLIENT_OPS_CHECK_OPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/ops/operand.h"

namespace weir {

struct CheckOptions {
  std::vector<Operand> data = {};  // what the error shows; empty = a text, x and y
  int64_t summarize = 3;           // elements of each of them
  std::string message = {};        // before the text
  std::string_view name = {};
};

// An operation to wait for; values that are known and do not hold are an InvalidArgument of the graph. Else the run
// fails: `assertion failed: [Condition x == y did not hold element-wise:] [x (x:0) = ] [1 3] [y (y:0) = ] [1 2]`. Nodes
// are named `assert_equal_1/Equal`, `assert_equal_1/All`, `assert_equal_1/Assert/…`, as TensorFlow 1.x names them.

Operation AssertEqual(const Operand& x, const Operand& y, const CheckOptions& options = {},
                      Where where = Where::current());
Operation AssertNoneEqual(const Operand& x, const Operand& y, const CheckOptions& options = {},
                          Where where = Where::current());
Operation AssertLess(const Operand& x, const Operand& y, const CheckOptions& options = {},
                     Where where = Where::current());
Operation AssertLessEqual(const Operand& x, const Operand& y, const CheckOptions& options = {},
                          Where where = Where::current());
Operation AssertGreater(const Operand& x, const Operand& y, const CheckOptions& options = {},
                        Where where = Where::current());
Operation AssertGreaterEqual(const Operand& x, const Operand& y, const CheckOptions& options = {},
                             Where where = Where::current());
Operation AssertPositive(const Operand& x, const CheckOptions& options = {}, Where where = Where::current());
Operation AssertNegative(const Operand& x, const CheckOptions& options = {}, Where where = Where::current());
Operation AssertNonPositive(const Operand& x, const CheckOptions& options = {}, Where where = Where::current());
Operation AssertNonNegative(const Operand& x, const CheckOptions& options = {}, Where where = Where::current());

/// The rank of `x`. InvalidArgument `Tensor c:0 must have rank 1.  Received rank 0, shape ()`.
Operation AssertRank(const Operand& x, int rank, const CheckOptions& options = {}, Where where = Where::current());
Operation AssertRankAtLeast(const Operand& x, int rank, const CheckOptions& options = {},
                            Where where = Where::current());
/// InvalidArgument `x:0 must be of type <dtype: 'int32'>; got <dtype: 'float32'>`.
Operation AssertType(const Operand& x, DType dtype, const CheckOptions& options = {}, Where where = Where::current());

/// A CheckNumerics for every real output in the graph, one after the other; the message is the value's name. Running
/// the result fails with `Log:0 : Tensor had Inf values`. InvalidArgument for a graph with conds or loops.
Operation AddCheckNumericsOps(Graph& graph = Graph::Default(), Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_CHECK_OPS_H_
