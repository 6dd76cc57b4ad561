// Stacks that a plan keeps itself: elements of one known shape lie one behind the other in memory of the run.
#include <limits>

#include "core/base/errors.h"
#include "core/graph/stacks.h"
#include "core/plan/emitters_internal.h"

namespace weir::plan {

using graph::NodeId;
using op::StackRole;

StackEmitter::StackEmitter(EmitContext& context) : c_(context), tape_(context.tape) {
  for (const graph::PrivateStack& stack : graph::FindPrivateStacks(c_.step)) {
    if (stack.pushes.empty()) continue;
    const graph::StepNode& first = c_.node(stack.pushes[0]);
    const PartialShape& shape = c_.step.ShapeOf(first.inputs[1]);
    const Result<Shape> known = shape.ToShape();
    if (!known.ok() || !HasFixedSize(first.types[0])) continue;
    const Result<uint64_t> bytes = PayloadBytes(first.types[0], *known);
    if (!bytes.ok() || *bytes > std::numeric_limits<uint32_t>::max()) continue;
    bool alike = true;
    for (const NodeId push : stack.pushes) alike = alike && c_.step.ShapeOf(c_.node(push).inputs[1]) == shape;
    for (const NodeId pop : stack.pops) alike = alike && c_.node(pop).shapes[0] == shape;
    if (!alike) continue;
    const auto number = static_cast<uint32_t>(tape_.plan().stacks.size());
    tape_.plan().stacks.push_back({*bytes, stack.most});
    numbers_.emplace(stack.make, number);
    for (const NodeId push : stack.pushes) numbers_.emplace(push, number);
    for (const NodeId pop : stack.pops) numbers_.emplace(pop, number);
  }
}

Status StackEmitter::Emit(NodeId id) {
  const graph::StepNode& node = c_.node(id);
  const uint32_t stack = numbers_.at(id);
  switch (node.source->op().traits.stack) {
    case StackRole::kNone:
      return c_.Fail(id, Internal("op {} is none of a stack", node.source->op().name));
    case StackRole::kMake:
      c_.values[{id, 0}] = tape_.AddConstant(Tensor::Scalar(ResourceHandle()));  // the handle, which nothing reads
      tape_.Emit(Opcode::kStack, {}, {}).detail = stack;
      return Status();
    case StackRole::kPush: {
      WEIR_ASSIGN(const ValueId element, c_.Input(id, 1));
      WEIR_ASSIGN(ValueId here, c_.Located(element, kHostSpace));
      const PartialShape& shape = c_.step.ShapeOf(node.inputs[1]);
      if (!(tape_.ShapeOf(here) == shape)) {  // the move checks it
        const ValueId checked = tape_.NewValue(tape_.ValueAt(here).dtype, shape, kHostSpace, Placing::kPlanned);
        tape_.Emit(Opcode::kMove, {here}, {checked});
        here = checked;
      }
      c_.values[{id, 0}] = element;
      tape_.Emit(Opcode::kPush, {here}, {}).detail = stack;
      return Status();
    }
    case StackRole::kPop: {
      const ValueId element = tape_.NewValue(node.types[0], node.shapes[0], kHostSpace, Placing::kPlanned);
      c_.values[{id, 0}] = element;
      tape_.Emit(Opcode::kPop, {}, {element}).detail = stack;
      return Status();
    }
  }
  return Status();
}

}  // namespace weir::plan
