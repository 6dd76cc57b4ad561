// Stacks of tensors: loops save values for their gradients.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::Scalar;
using op::StackRole;
using op::Unknown;

OpBuilder StackOp(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kState).Stateful().NoGradient(kUpdate);
}

}  // namespace

void DeclareStack(OpRegistry& ops) {
  StackOp(ops, "StackV2")
      .Stack(StackRole::kMake)
      .In("max_size: int32")
      .Out("handle: resource")
      .Attr("elem_type: type")
      .Attr("stack_name: string = ''")
      .Shape(Scalar())
      .Doc("A handle of a new stack of at most max_size tensors (negative: any number), which ends with the step.");
  StackOp(ops, "StackPushV2")
      .Stack(StackRole::kPush)
      .In("handle: resource")
      .In("elem: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("swap_memory: bool = false")
      .Shape(SameAs(1))
      .Doc("Puts `elem` on the stack and hands it on.");
  StackOp(ops, "StackPopV2")
      .Stack(StackRole::kPop)
      .In("handle: resource")
      .Out("elem: elem_type")
      .Attr("elem_type: type")
      .Shape(Unknown())
      .Doc("Takes the tensor that was put on the stack last.");
  StackOp(ops, "StackCloseV2")
      .In("handle: resource")
      .Shape(op::NoOutputs())
      .Doc("Drops what the stack holds; nothing can be put on it any more.");
}

}  // namespace weir::ops
