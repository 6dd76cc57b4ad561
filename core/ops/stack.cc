// Stacks of tensors: loops save values for their gradients.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::SameAs;
using op::Scalar;
using op::ShapeContext;
using op::StackRole;
using op::Unknown;

constexpr const char* kPushDoc = "Puts `elem` on the stack and hands it on.";
constexpr const char* kPopDoc = "Takes the tensor that was put on the stack last.";
constexpr const char* kCloseDoc = "Drops what the stack holds; nothing can be put on it any more.";

OpBuilder StackOp(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kState).NoGradient(kUpdate);
}

void DeclareStacksOfHandles(OpRegistry& ops) {
  StackOp(ops, "StackV2")
      .Stateful()
      .Stack(StackRole::kMake)
      .In("max_size: int32")
      .Out(kByHandle)
      .Attr("elem_type: type")
      .Attr("stack_name: string = ''")
      .Shape(Scalar())
      .Doc("A handle of a new stack of at most max_size tensors (negative: any number), which ends with the step.");
  StackOp(ops, "StackPushV2")
      .Stateful()
      .Stack(StackRole::kPush)
      .In(kByHandle)
      .In("elem: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("swap_memory: bool = false")
      .Shape(SameAs(1))
      .Doc(kPushDoc);
  StackOp(ops, "StackPopV2")
      .Stateful()
      .Stack(StackRole::kPop)
      .In(kByHandle)
      .Out("elem: elem_type")
      .Attr("elem_type: type")
      .Shape(Unknown())
      .Doc(kPopDoc);
  StackOp(ops, "StackCloseV2").Stateful().In(kByHandle).Shape(op::NoOutputs()).Doc(kCloseDoc);
}

/// TensorFlow declares only the op stateful that makes a stack.
void DeclareStacksOfReferences(OpRegistry& ops) {
  StackOp(ops, "Stack")
      .Stateful()
      .Out(kByReference)
      .Attr("elem_type: type")
      .Attr("stack_name: string = ''")
      .Shape([](ShapeContext& c) {
        c.set_output(0, VectorOf(2));
        return Status();
      })
      .Doc("A reference to a new stack of any number of tensors, which ends with the step.");
  StackOp(ops, "StackPush")
      .In(kByReference)
      .In("elem: T")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("swap_memory: bool = false")
      .Shape(SameAs(1))
      .Doc(kPushDoc);
  StackOp(ops, "StackPop")
      .In(kByReference)
      .Out("elem: elem_type")
      .Attr("elem_type: type")
      .Shape(Unknown())
      .Doc(kPopDoc);
  StackOp(ops, "StackClose").In(kByReference).Shape(op::NoOutputs()).Doc(kCloseDoc);
}

}  // namespace

void DeclareStack(OpRegistry& ops) {
  DeclareStacksOfHandles(ops);
  DeclareStacksOfReferences(ops);
}

}  // namespace weir::ops
