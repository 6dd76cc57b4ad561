// For builders of ops: the graph that an op goes to, the op itself, and values in place of what was not made.
#ifndef WEIR_CORE_CLIENT_OPS_BUILD_OP_H_
#define WEIR_CORE_CLIENT_OPS_BUILD_OP_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/client/ops/operand.h"

namespace weir {

/// Everything that a new operation is made of.
struct OperationSpec {
  std::string_view op = {};
  std::vector<Output> inputs = {};  // flattened
  /// Attributes that do not follow from the inputs: type attributes and list lengths are deduced.
  op::AttrList attrs = {};
  std::string_view name = {};  // empty = the op's name
  Where where = Where::current();
  std::vector<Operation> control_inputs = {};
};

/// The graph that an op of these operands goes to: that of the first value among them, or the default graph.
Graph& GraphOf(const Operand& operand);
Graph& GraphOf(const std::vector<Operand>& operands);

/// Calls a builder for an op: literals take the type of the first argument that shares their type attribute and is a
/// value, and become constants below the op's name scope, as TensorFlow does ("add/y"); resource variables are read
/// there ("Relu/ReadVariableOp").
Operation BuildOp(std::string_view op, const std::vector<Operand>& inputs, op::AttrList attrs = {},
                  std::string_view name = {}, Where where = Where::current());

/// `count` values that an error kept from being made; none where the count cannot be meant.
List<Output> AbsentValues(Graph& graph, int64_t count);
/// The outputs of an operation; of one that does not exist, `count` values that do not either.
List<Output> OutputsOr(const Operation& operation, int64_t count);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_BUILD_OP_H_
