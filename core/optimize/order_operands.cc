// Sorts the operands of commutative ops whose shapes may not fit each other.
#include <algorithm>
#include <string>
#include <utility>

#include "core/ops/algebra.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::StepGraph;
using graph::StepNode;

/// Add does not say that it is commutative, since it also joins strings.
bool Commutes(const StepNode& node) {
  const op::OpDef& op = node.source->op();
  return op.commutative || (ops::AlgebraOf(op) == ops::Algebra::kSum && node.types[0] != DType::kString);
}

/// The shapes of the operands are known, and inference had no objection.
bool Fits(const StepGraph& step, const StepNode& node) {
  const auto known = [&](const Endpoint& input) { return step.ShapeOf(input).fully_defined(); };
  return node.shapes[0].fully_defined() && std::ranges::all_of(node.inputs, known);
}

/// "name" or "name:1", by which TensorFlow sorts.
std::string NameOf(const StepGraph& step, const Endpoint& value) {
  std::string name(step.node(value.node).name());
  if (value.index > 0) name += ":" + std::to_string(value.index);
  return name;
}

}  // namespace

Status OrderOperands(const PassContext&, StepGraph& step) {
  for (StepNode& node : step.nodes) {
    if (node.kind != StepNode::Kind::kOp || node.inputs.size() != 2 || node.types.size() != 1 || !Commutes(node)) {
      continue;
    }
    if (Fits(step, node)) continue;
    if (NameOf(step, node.inputs[1]) < NameOf(step, node.inputs[0])) std::swap(node.inputs[0], node.inputs[1]);
  }
  return Status();
}

}  // namespace weir::optimize
