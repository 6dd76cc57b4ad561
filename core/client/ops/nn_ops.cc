#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {

Output BiasAdd(const Operand& value, const Operand& bias, std::string_view name, Where where) {
  return BuildOp("BiasAdd", {value, bias}, {}, name, where).output(0);
}

Output SoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits, std::string_view name, Where where) {
  return BuildOp("SoftmaxCrossEntropyWithLogits", {logits, labels}, {}, name, where).output(0);
}

Output SparseSoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits, std::string_view name,
                                           Where where) {
  Graph& graph = logits.graph() != nullptr ? *logits.graph() : Graph::Default();
  const NameScope scope(name, graph);
  const Operand rows = labels.ReadNow(), scores = logits.ReadNow();
  if (!rows.is_literal()) ShapeOf(rows, DType::kInt32, "Shape", where);  // TensorFlow's graphs have it too
  return BuildOp("SparseSoftmaxCrossEntropyWithLogits", {scores, rows}, {}, {}, where).output(0);
}

}  // namespace weir
