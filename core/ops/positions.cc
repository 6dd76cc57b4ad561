// Positions in arrays: coordinates of flat indices, and axes of one layout of images in another.
#include "core/base/errors.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

Status UnravelShape(ShapeContext& c) {
  const PartialShape& dims = c.input(1);
  if (dims.has_rank() && dims.rank() != 1) {
    return InvalidArgument("The indices can only be 1-D, got \"{}\"", dims.ToString());
  }
  const PartialShape& indices = c.input(0);
  if (!indices.has_rank()) return Status();
  if (indices.rank() > 1) {
    return InvalidArgument("The indices can only be scalar or vector, got \"{}\"", indices.ToString());
  }
  WEIR_ASSIGN(PartialShape shape, Join(VectorOf(dims.has_rank() ? dims.dim(0) : -1), indices));
  c.set_output(0, std::move(shape));
  return Status();
}

OpBuilder Layout(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .In("x: T")
      .Out("y: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Attr("src_format: string = 'NHWC'")
      .Attr("dst_format: string = 'NCHW'")
      .Shape(op::SameAs(0))
      .NoGradient(kDiscrete);
}

}  // namespace

void DeclarePositions(OpRegistry& ops) {
  ops.Declare("UnravelIndex")
      .Is(Category::kArray)
      .In("indices: Tidx")
      .In("dims: Tidx")
      .Out("output: Tidx")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(UnravelShape)
      .NoGradient(kDiscrete)
      .Doc("Row i has the coordinates along axis i of the elements `indices` of a row-major array of shape `dims`.");
  Layout(ops, "DataFormatDimMap")
      .Doc("For each axis of an array in src_format, negative ones counted from the end, the axis in dst_format.");
  Layout(ops, "DataFormatVecPermute")
      .Doc(
          "The elements, or rows of pairs, for the axes of src_format in the order of dst_format; of two elements "
          "those of the spatial axes.");
}

}  // namespace weir::ops
