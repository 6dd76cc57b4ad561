// Accumulators of gradients: sums of many steps that one step takes, once there are enough of them.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::NoOutputs;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;

constexpr std::string_view kAccumulated = "what an accumulator holds is state, not a function of the inputs";
constexpr const char* kSummed =
    "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
    "quint16, uint16, complex128, half, uint32, uint64}";

/// Ops on references are not declared stateful in TensorFlow: the reference says what they are.
OpBuilder AccumulatorOp(OpRegistry& ops, std::string_view name, std::string_view handle) {
  OpBuilder made = ops.Declare(name).Is(Category::kState).NoGradient(kAccumulated);
  return handle == kByHandle ? made.Stateful() : made;
}

/// `shape`: of the output, which is a handle, or as a reference a container and a name.
OpBuilder Made(OpRegistry& ops, std::string_view name, std::string_view handle, PartialShape shape) {
  return AccumulatorOp(ops, name, handle)
      .Stateful()
      .Out(handle)
      .Attr(kSummed)
      .Attr("shape: shape")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
      .Shape([shape](ShapeContext& c) {
        c.set_output(0, shape);
        return Status();
      });
}

Status Count(ShapeContext& c) {
  c.set_output(0, PartialShape(Shape()));
  return Status();
}

Status AppliedShape(ShapeContext& c) { return c.WithRank(1, 0).status(); }
Status TakenShape(ShapeContext& c) { return c.WithRank(1, 0).status(); }

Status SparseTakenShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  c.set_output(0, PartialShape::OfRank(1));
  c.set_output(2, PartialShape::OfRank(1));
  return Status();
}

/// The ops on an accumulator behind a reference, or with the prefix "Resource" behind a handle.
void DeclareDense(OpRegistry& ops, const std::string& prefix, std::string_view handle) {
  AccumulatorOp(ops, prefix + "AccumulatorApplyGradient", handle)
      .In(handle)
      .In("local_step: int64")
      .In("gradient: dtype")
      .Attr(kSummed)
      .Shape(AppliedShape)
      .Doc("Adds a gradient, unless the local step is behind the accumulator's.");
  AccumulatorOp(ops, prefix + "AccumulatorTakeGradient", handle)
      .In(handle)
      .In("num_required: int32")
      .Out("average: dtype")
      .Attr(kSummed)
      .Shape(TakenShape)
      .Doc("Takes what has been added, once that are num_required gradients, and counts the accumulator's step.");
  AccumulatorOp(ops, prefix + "AccumulatorNumAccumulated", handle)
      .In(handle)
      .Out("num_accumulated: int32")
      .Shape(Count)
      .Doc("How many gradients have been added since the last were taken.");
  AccumulatorOp(ops, prefix + "AccumulatorSetGlobalStep", handle)
      .In(handle)
      .In("new_global_step: int64")
      .Shape(AppliedShape)
      .Doc("Sets the accumulator's step; gradients of earlier local steps are dropped.");
}

}  // namespace

void DeclareAccumulator(OpRegistry& ops) {
  const PartialShape names = PartialShape::Of({2});
  Made(ops, "ConditionalAccumulator", kByReference, names)
      .Doc("A reference to an accumulator of gradients of one shape, which gives their mean or sum.");
  Made(ops, "ResourceConditionalAccumulator", kByHandle, PartialShape(Shape()))
      .Doc("A handle of an accumulator of gradients of one shape, which gives their mean or sum.");
  Made(ops, "SparseConditionalAccumulator", kByReference, names)
      .Doc("A reference to an accumulator of rows of gradients; the mean of a row is that of the gradients with it.");
  DeclareDense(ops, "", kByReference);
  DeclareDense(ops, "Resource", kByHandle);
  AccumulatorOp(ops, "SparseAccumulatorApplyGradient", kByReference)
      .In(kByReference)
      .In("local_step: int64")
      .In("gradient_indices: int64")
      .In("gradient_values: dtype")
      .In("gradient_shape: int64")
      .Attr(kSummed)
      .Attr("has_known_shape: bool")
      .Shape(AppliedShape)
      .Doc("Adds rows of a gradient, in the order of their indices, unless the local step is behind.");
  AccumulatorOp(ops, "SparseAccumulatorTakeGradient", kByReference)
      .In(kByReference)
      .In("num_required: int32")
      .Out("indices: int64")
      .Out("values: dtype")
      .Out("shape: int64")
      .Attr(kSummed)
      .Shape(SparseTakenShape)
      .Doc("Takes the rows that have been added, once those are of num_required gradients.");
}

}  // namespace weir::ops
