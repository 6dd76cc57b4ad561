// Blocks of places that become batches or channels, and back.
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"
#include "core/ops/windows.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::MergeDim;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

enum class Direction { kIntoBatch, kOutOfBatch };

/// Extent of an axis after blocks of `block` places became batches, or were put together again. `sides`: paddings or
/// crops.
Result<int64_t> BlockedExtent(Direction direction, int64_t extent, int64_t block, const int64_t* sides) {
  if (direction == Direction::kIntoBatch) {
    if (sides == nullptr) return int64_t{-1};
    if (sides[0] < 0 || sides[1] < 0) return InvalidArgument("paddings cannot be negative");
    WEIR_ASSIGN(extent, AddDims(extent, sides[0]));
    WEIR_ASSIGN(extent, AddDims(extent, sides[1]));
    return DivideDims(extent, block);
  }
  if (sides == nullptr) return int64_t{-1};
  if (sides[0] < 0 || sides[1] < 0) return InvalidArgument("crops cannot be negative");
  WEIR_ASSIGN(extent, MultiplyDims(extent, block));
  WEIR_ASSIGN(extent, SubtractDims(extent, sides[0]));
  return SubtractDims(extent, sides[1]);
}

/// The output's shape; `blocks` and `sides` (two per block) are nullopt if not known.
Result<PartialShape> BlockedShape(Direction direction, PartialShape shape, int count,
                                  const std::optional<std::vector<int64_t>>& blocks,
                                  const std::optional<std::vector<int64_t>>& sides) {
  int64_t batch = shape.dim(0);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    int64_t block = -1;
    if (blocks) {
      block = (*blocks)[at];
      if (block < 1) return InvalidArgument("block_shape must be positive");
    }
    if (direction == Direction::kIntoBatch) {
      WEIR_ASSIGN(batch, MultiplyDims(batch, block));
    } else {
      WEIR_ASSIGN(batch, DivideDims(batch, block));
    }
    WEIR_ASSIGN(const int64_t extent,
                BlockedExtent(direction, shape.dim(i + 1), block, sides ? sides->data() + 2 * at : nullptr));
    shape.set_dim(i + 1, extent);
  }
  if (!blocks) batch = -1;
  shape.set_dim(0, batch);
  return PartialShape::Make(shape.dims());
}

/// Input 1 holds the extents of blocks for the axes after the first, input 2 the paddings or crops.
op::ShapeFn BlocksShape(Direction direction) {
  return [direction](ShapeContext& c) {
    if (c.input(1).has_rank() && c.input(1).rank() != 1) return InvalidArgument("block_shape must have rank 1.");
    const std::optional<std::vector<int64_t>> blocks = c.ints(1);
    int64_t count = c.input(1).has_rank() ? c.input(1).dim(0) : -1;
    if (blocks) count = static_cast<int64_t>(blocks->size());
    WEIR_ASSIGN(PartialShape operand, c.WithRank(2, 2));
    WEIR_ASSIGN(operand, operand.Merge(PartialShape::Of({count, 2})));
    if (count < 0) count = operand.dim(0);
    if (count < 0) return Status();
    if (count >= kMaxRank) return InvalidArgument("{} blocks are more than a shape has axes", count);
    WEIR_ASSIGN(PartialShape input, c.WithRankAtLeast(0, static_cast<int>(count) + 1));
    if (!input.has_rank()) return Status();
    WEIR_ASSIGN(PartialShape shape,
                BlockedShape(direction, std::move(input), static_cast<int>(count), blocks, c.ints(2)));
    c.set_output(0, std::move(shape));
    return Status();
  };
}

/// The form with one attribute for the blocks of both axes of images.
op::ShapeFn SquareBlocksShape(Direction direction) {
  return [direction](ShapeContext& c) {
    WEIR_ASSIGN(PartialShape input, c.WithRank(0, 4));
    WEIR_ASSIGN(const int64_t block, c.attrs().Int("block_size"));
    WEIR_ASSIGN(const PartialShape operand, c.WithRank(1, 2));
    WEIR_TRY(operand.Merge(PartialShape{2, 2}).status());
    const std::vector<int64_t> blocks = {block, block};
    WEIR_ASSIGN(PartialShape shape, BlockedShape(direction, std::move(input), 2, blocks, c.ints(1)));
    c.set_output(0, std::move(shape));
    return Status();
  };
}

/// Blocks of places as channels.
Status SpaceToDepthShape(ShapeContext& c) {
  WEIR_ASSIGN(const ImageAxes axes, ImageAxesOf(c.attrs(), 2));
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, 4));
  WEIR_ASSIGN(const int64_t block, c.attrs().Int("block_size"));
  WEIR_ASSIGN(const int64_t height, DivideDims(input.dim(axes.at(0)), block));
  WEIR_ASSIGN(const int64_t width, DivideDims(input.dim(axes.at(1)), block));
  WEIR_ASSIGN(const int64_t area, MultiplyDims(block, block));
  WEIR_ASSIGN(const int64_t channels, MultiplyDims(input.dim(axes.channels()), area));
  c.set_output(0, axes.Shape(input.dim(0), {height, width}, channels));
  return Status();
}

Status DepthToSpaceShape(ShapeContext& c) {
  WEIR_ASSIGN(const ImageAxes axes, ImageAxesOf(c.attrs(), 2));
  WEIR_ASSIGN(const PartialShape input, c.WithRank(0, 4));
  WEIR_ASSIGN(const int64_t block, c.attrs().Int("block_size"));
  WEIR_ASSIGN(const int64_t height, MultiplyDims(input.dim(axes.at(0)), block));
  WEIR_ASSIGN(const int64_t width, MultiplyDims(input.dim(axes.at(1)), block));
  WEIR_ASSIGN(const int64_t area, MultiplyDims(block, block));
  WEIR_ASSIGN(const int64_t channels, DivideDims(input.dim(axes.channels()), area));
  c.set_output(0, axes.Shape(input.dim(0), {height, width}, channels));
  return Status();
}

/// The inverse op with the same attributes and operands undoes the rearrangement; no gradient by the other inputs.
op::GradFn ByInverse(const char* inverse) {
  return [inverse](GradContext& g) -> Result<std::vector<Grad>> {
    op::AttrList attrs;
    for (const char* name : {"block_size", "data_format"}) {
      if (const op::AttrValue* value = g.attrs().Find(name)) attrs.emplace_back(name, *value);
    }
    std::vector<op::Value> operands = {g.Dy(0)};
    for (int i = 1; i < g.num_inputs(); ++i) operands.push_back(g.X(i));
    std::vector<Grad> grads(operands.size());
    grads[0] = g.ApplyList(inverse, operands, std::move(attrs));
    return grads;
  };
}

OpBuilder Rearranging(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kArray).In("input: T").Out("output: T").Attr(kAnyT).MovesElements();
}

void DeclareBatches(OpRegistry& ops) {
  Rearranging(ops, "SpaceToBatchND")
      .In("block_shape: Tblock_shape")
      .In("paddings: Tpaddings")
      .Attr("Tblock_shape: {int32, int64} = DT_INT32")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Shape(BlocksShape(Direction::kIntoBatch))
      .Grad(ByInverse("BatchToSpaceND"))
      .Doc("Pads the axes after the first with zeros and moves the places inside of blocks into the batch.");
  Rearranging(ops, "BatchToSpaceND")
      .In("block_shape: Tblock_shape")
      .In("crops: Tcrops")
      .Attr("Tblock_shape: {int32, int64} = DT_INT32")
      .Attr("Tcrops: {int32, int64} = DT_INT32")
      .Shape(BlocksShape(Direction::kOutOfBatch))
      .Grad(ByInverse("SpaceToBatchND"))
      .Doc("Undoes SpaceToBatchND: blocks are put together from the batch, then the axes are cropped.");
  Rearranging(ops, "SpaceToBatch")
      .In("paddings: Tpaddings")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Attr("block_size: int >= 2")
      .Shape(SquareBlocksShape(Direction::kIntoBatch))
      .Grad(ByInverse("BatchToSpace"))
      .Doc("SpaceToBatchND of images with square blocks.");
  Rearranging(ops, "BatchToSpace")
      .In("crops: Tidx")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Attr("block_size: int >= 2")
      .Shape(SquareBlocksShape(Direction::kOutOfBatch))
      .Grad(ByInverse("SpaceToBatch"))
      .Doc("BatchToSpaceND of images with square blocks.");
}

void DeclareDepths(OpRegistry& ops) {
  const char* kFormat = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'";
  Rearranging(ops, "SpaceToDepth")
      .Attr("block_size: int >= 2")
      .Attr(kFormat)
      .Shape(SpaceToDepthShape)
      .Grad(ByInverse("DepthToSpace"))
      .Doc("Moves the places of each square block into the channels, row by row.");
  Rearranging(ops, "DepthToSpace")
      .Attr("block_size: int >= 2")
      .Attr(kFormat)
      .Shape(DepthToSpaceShape)
      .Grad(ByInverse("SpaceToDepth"))
      .Doc("Moves parts of the channels into square blocks of places, row by row.");
}

}  // namespace

void DeclareBlocks(OpRegistry& ops) {
  DeclareBatches(ops);
  DeclareDepths(ops);
}

}  // namespace weir::ops
