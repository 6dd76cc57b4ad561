// Blocks of places that become batches or channels, and back; patches of images as channels: checks and extents.
#ifndef WEIR_PLUGINS_FUNCTORS_BLOCK_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_BLOCK_PLANS_H_

#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"
#include "sdk/cpp/windows.h"

namespace weir::functors {

/// One axis whose blocks of `block` places are split over batches. Place t of the batch with offset o is place
/// t * block + o - before of the whole array.
struct BlockedAxis {
  int64_t whole = 0, parts = 0;  // extents of the whole array and of one batch
  int64_t block = 1, before = 0;

  /// The places of the batch with this offset that the whole array has.
  sdk::Places Inside(int64_t offset) const {
    const int64_t shift = before - offset;  // t * block >= shift
    const int64_t first = shift > 0 ? (shift - 1) / block + 1 : 0;
    const int64_t end = shift + whole > 0 ? (shift + whole - 1) / block + 1 : 0;
    return {std::min(first, parts), std::min(end, parts)};
  }
};

/// An array [batch, places…, rest] and its form [offsets × batch, places / block…, rest].
struct BlockMap {
  std::vector<BlockedAxis> axes;
  int64_t batch = 0, rest = 1;
  bool empty = false;  // nothing to copy

  /// `split`: the operand is the whole array, else the split one. `blocks` and `sides`: the other operands.
  int32_t Plan(const sdk::Prep& prep, bool split, const std::vector<int64_t>& blocks,
               const std::vector<int64_t>& sides) {
    const sdk::Error& error = prep.error();
    const char* const name = split ? "Paddings" : "Crops";
    const size_t count = blocks.size();
    const weir_shape& in = prep.shape(0);
    if (in.rank < count + 1) {
      return error.InvalidArgument("input rank should be >= ", count + 1, " instead of ", in.rank);
    }
    if (sides.size() != 2 * count) {
      return error.InvalidArgument(split ? "paddings" : "crops", " should have shape [", count, ", 2] instead of ",
                                   prep.shape(prep.inputs() - 1));
    }
    std::vector<int64_t> out = DimsOf(in);
    int64_t offsets = 1;
    for (size_t i = 0; i < count; ++i) {
      BlockedAxis axis{0, 0, blocks[i], sides[2 * i]};
      const int64_t after = sides[2 * i + 1], extent = in.dims[i + 1];
      if (axis.block < 1) {
        return error.InvalidArgument("All values in block_shape must be positive, got value, ", axis.block,
                                     " at index ", i, ".");
      }
      if (axis.before < 0 || after < 0) return error.InvalidArgument(name, " must be non-negative");
      int64_t covered = 0;  // by blocks
      bool fits = !__builtin_mul_overflow(offsets, axis.block, &offsets);
      if (split) {
        axis.whole = extent;
        fits = fits && !__builtin_add_overflow(extent, axis.before, &covered) &&
               !__builtin_add_overflow(covered, after, &covered);
        if (fits && covered % axis.block != 0) {
          return error.InvalidArgument("padded_shape[", i, "]=", covered, " is not divisible by block_shape[", i,
                                       "]=", axis.block);
        }
        axis.parts = covered / axis.block;
      } else {
        axis.parts = extent;
        fits = fits && !__builtin_mul_overflow(extent, axis.block, &covered) &&
               !__builtin_sub_overflow(covered - axis.before, after, &axis.whole);
        if (fits && axis.whole < 0) {
          return error.InvalidArgument("cropped_shape[", i, "]=", axis.whole, " must be non-negative");
        }
      }
      if (!fits)
        return error.InvalidArgument("blocks of ", axis.block, " and ", name, " of ", axis.before, " and ", after,
                                     " are too large for an extent of ", extent);
      out[i + 1] = split ? axis.parts : axis.whole;
      axes.push_back(axis);
    }
    batch = split ? in.dims[0] : in.dims[0] / offsets;
    if (!split && in.dims[0] % offsets != 0) {
      return error.InvalidArgument("Input batch dimension (", in.dims[0],
                                   ") is not divisible by product of block sizes (", offsets, ")");
    }
    if (__builtin_mul_overflow(batch, split ? offsets : 1, &out[0])) {
      return error.InvalidArgument("a batch of ", batch, " times ", offsets, " is too large");
    }
    empty = HasNoElements(in) || HasNoElements(ShapeOf(out));
    if (!empty) rest = SizeOf(in, static_cast<uint32_t>(count) + 1, in.rank);
    return ExpectOutput(prep, 0, out);
  }
};

enum class Move { kSplit, kJoin };

template <Move kMove>
struct BlocksNdPlan {
  BlockMap map;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> blocks, sides;
    if (prep.shape(1).rank != 1) {
      return prep.error().InvalidArgument("block_shape rank should be 1 instead of ", prep.shape(1).rank);
    }
    if (const int32_t code = Steering(prep, 1, &blocks); code != WEIR_OK) return code;
    if (const int32_t code = Steering(prep, 2, &sides); code != WEIR_OK) return code;
    return map.Plan(prep, kMove == Move::kSplit, blocks, sides);
  }
};

template <Move kMove>
struct SquareBlocksPlan {
  BlockMap map;

  int32_t Prepare(sdk::Prep& prep) {
    std::vector<int64_t> sides;
    if (const int32_t code = Steering(prep, 1, &sides); code != WEIR_OK) return code;
    if (prep.shape(0).rank != 4) {
      return prep.error().InvalidArgument("Input rank should be: 4 instead of: ", prep.shape(0).rank);
    }
    const int64_t block = prep.node().Int("block_size");
    if (block < 2) return prep.error().InvalidArgument("Block size should be > 1: ", block);
    return map.Plan(prep, kMove == Move::kSplit, {block, block}, sides);
  }
};

/// SpaceToDepth, or DepthToSpace: one copy between [batch, rows, block, columns, block, channels] and
/// [batch, rows, columns, block, block, channels].
template <bool kToDepth, class Copy>
struct DepthBlocksPlan {
  Copy copy;

  int32_t Prepare(sdk::Prep& prep) {
    sdk::Windows format;
    if (const int32_t code = format.ReadFormat(prep, 2); code != WEIR_OK) return code;
    const sdk::Error& error = prep.error();
    const weir_shape& in = prep.shape(0);
    if (in.rank != 4) return error.InvalidArgument("Input rank should be 4 instead of ", in.rank);
    const int64_t block = prep.node().Int("block_size");
    if (block < 2) return error.InvalidArgument("Block size should be > 1, but was: ", block);
    const uint32_t row = format.axis(0), column = format.axis(1), channel = format.channel_axis();
    int64_t area = 0;
    if (__builtin_mul_overflow(block, block, &area))
      return error.InvalidArgument("block_size ", block, " is too large");
    if (kToDepth && (in.dims[row] % block != 0 || in.dims[column] % block != 0)) {
      return error.InvalidArgument("Image width ", in.dims[column], " and height ", in.dims[row],
                                   " should be divisible by block_size: ", block);
    }
    if (!kToDepth && in.dims[channel] % area != 0) {
      return error.InvalidArgument("Input depth dimension ", in.dims[channel], " should be divisible by: ", area);
    }
    const std::vector<int64_t> from = DimsOf(in);
    if (HasNoElements(in)) return WEIR_OK;
    std::vector<int64_t> to = from;
    for (const uint32_t axis : {row, column}) to[axis] = kToDepth ? from[axis] / block : from[axis] * block;
    to[channel] = kToDepth ? from[channel] * area : from[channel] / area;
    if (const int32_t code = ExpectOutput(prep, 0, to); code != WEIR_OK) return code;
    const std::vector<int64_t>&image = kToDepth ? from : to, &deep = kToDepth ? to : from;
    const std::vector<int64_t> steps = StepsOf(image), deep_steps = StepsOf(deep);
    const int64_t channels = image[channel], c = deep_steps[channel];
    // Axes: batch, row of blocks, row inside, column of blocks, column inside, channel; channels first keep them there.
    std::vector<int64_t> dims = {image[0], deep[row], block, deep[column], block, channels};
    std::vector<int64_t> in_image = {steps[0],      steps[row] * block, steps[row], steps[column] * block,
                                     steps[column], steps[channel]};
    std::vector<int64_t> in_deep = {deep_steps[0],      deep_steps[row], c * channels * block,
                                    deep_steps[column], c * channels,    c};
    copy.Plan(dims, kToDepth ? in_image : in_deep, kToDepth ? in_deep : in_image, sdk::SizeOf(prep.input(0).dtype));
    return WEIR_OK;
  }
};

/// Windows as channels. Texts and codes are TensorFlow's.
template <uint32_t kSpatial>
struct PatchesPlan {
  sdk::Windows windows;
  int64_t places = 0;  // of all images; 0: nothing to do

  int32_t Prepare(sdk::Prep& prep) {
    const sdk::Error& error = prep.error();
    const weir_shape& in = prep.shape(0);
    constexpr uint32_t kRank = kSpatial + 2;
    if (in.rank != kRank) return error.InvalidArgument("input must be ", kRank, "-dimensional", in);
    for (const char* name : {"ksizes", "strides", "rates"}) {
      const std::span<const int64_t> values = prep.node().Ints(name);
      if (values.empty()) continue;  // volumes have no rates
      if (values.size() != kRank) {
        return error.InvalidArgument("the ", name, " attribute must contain ", kRank,
                                     " values, but got: ", values.size());
      }
      if (values[0] != 1 || values[kRank - 1] != 1) {
        return error.InvalidArgument("Only support ", name, " across space.");
      }
      for (const int64_t value : values) {
        if (value <= 0) return error.Fail(WEIR_OUT_OF_RANGE, name, " is out of range.");
      }
    }
    windows.spatial = kSpatial;
    const std::span<const int64_t> sizes = prep.node().Ints("ksizes");
    const std::string_view rates = kSpatial == 2 ? "rates" : "";
    if (const int32_t code = windows.Plan(prep, in, sizes.subspan(1, kSpatial), {.dilations = rates});
        code != WEIR_OK) {
      return code;
    }
    int64_t channels = in.dims[kRank - 1];
    for (uint32_t i = 0; i < kSpatial; ++i) {
      if (__builtin_mul_overflow(channels, sizes[i + 1], &channels)) {
        return error.InvalidArgument("patches of ", in, " have too many elements");
      }
    }
    if (!windows.IsOutput(prep.output(0).shape, channels)) {
      return error.Fail(WEIR_INTERNAL, "the output has shape ", prep.output(0).shape, ", which patches of ", in,
                        " have not");
    }
    if (!HasNoElements(prep.output(0).shape)) places = windows.batch * windows.OutputPlaces();
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BLOCK_PLANS_H_
