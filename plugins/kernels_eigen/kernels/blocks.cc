// Blocks of places that become batches or channels, and back; patches of images as channels.
#include <algorithm>
#include <string_view>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/images.h"
#include "plugins/kernels_eigen/kernels/patches.h"
#include "plugins/kernels_eigen/kernels/strided_copy.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;
using sdk::Prep;

bool HasZero(const std::vector<int64_t>& dims) { return std::find(dims.begin(), dims.end(), 0) != dims.end(); }

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
  int32_t Plan(const Prep& prep, bool split, const std::vector<int64_t>& blocks, const std::vector<int64_t>& sides) {
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
    empty = HasZero(DimsOf(in)) || HasZero(out);
    if (!empty) rest = SizeOf(in, static_cast<uint32_t>(count) + 1, in.rank);
    return ExpectOutput(prep, 0, out);
  }

  /// Calls copy(element in the whole array, its step, element in the split one, count) for all runs of places along the
  /// last axis that both arrays have, in units of `rest` elements.
  template <class Copy>
  void ForRuns(Copy&& copy) const {
    std::vector<int64_t> offset(axes.size(), 0), place(axes.size(), 0);
    int64_t parts = 1;
    for (const BlockedAxis& axis : axes) parts *= axis.parts;
    int64_t split = 0;
    do {
      for (int64_t n = 0; n < batch; ++n, split += parts) CopyBatch(offset, place, n, split, copy);
    } while (Next(offset, axes.size(), [&](size_t i) { return sdk::Places{0, axes[i].block}; }));
  }

 private:
  /// Advances `at` over the first `count` axes; false after the last position, at the first one again.
  template <class Range>
  static bool Next(std::vector<int64_t>& at, size_t count, Range&& range) {
    for (size_t i = count; i-- > 0;) {
      const sdk::Places places = range(i);
      if (++at[i] < places.end) return true;
      at[i] = places.first;
    }
    return false;
  }

  template <class Copy>
  void CopyBatch(const std::vector<int64_t>& offset, std::vector<int64_t>& place, int64_t n, int64_t split,
                 Copy&& copy) const {
    if (axes.empty()) return copy(n, 1, split, 1);
    const auto inside = [&](size_t i) { return axes[i].Inside(offset[i]); };
    for (size_t i = 0; i < axes.size(); ++i) {
      place[i] = inside(i).first;
      if (inside(i).empty()) return;
    }
    const size_t last = axes.size() - 1;
    const sdk::Places run = inside(last);
    do {
      int64_t from = n, to = 0;
      for (size_t i = 0; i < axes.size(); ++i) {
        from = from * axes[i].whole + place[i] * axes[i].block + offset[i] - axes[i].before;
        to = to * axes[i].parts + place[i];
      }
      copy(from, axes[last].block, split + to, run.end - run.first);
    } while (Next(place, last, inside));
  }
};

enum class Move { kSplit, kJoin };

/// Copies between the whole array and the split one; the result is zeros where the operand has no element.
template <Move kMove>
struct BlockKernel {
  BlockMap map;

  int32_t PlanWith(Prep& prep, const std::vector<int64_t>& blocks, const std::vector<int64_t>& sides) {
    return map.Plan(prep, kMove == Move::kSplit, blocks, sides);
  }

  void Transfer(const AnyInput& input, const AnyOutput& output) const {
    ForBytes(sdk::SizeOf(input.dtype()), [&](auto element) {
      using E = decltype(element);
      const auto* from = static_cast<const E*>(input.data());
      auto* to = static_cast<E*>(output.data());
      if (kMove == Move::kSplit) ZeroFill(sdk::View<E>(to, output.shape()));
      if (map.empty) return;
      map.ForRuns([&](int64_t whole, int64_t step, int64_t split, int64_t count) {
        const int64_t rest = map.rest;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t a = (whole + i * step) * rest, b = (split + i) * rest;
          std::copy_n(from + (kMove == Move::kSplit ? a : b), rest, to + (kMove == Move::kSplit ? b : a));
        }
      });
    });
  }
};

template <Move kMove>
struct BlocksNd : BlockKernel<kMove> {
  int32_t Prepare(Prep& prep) {
    std::vector<int64_t> blocks, sides;
    if (prep.shape(1).rank != 1) {
      return prep.error().InvalidArgument("block_shape rank should be 1 instead of ", prep.shape(1).rank);
    }
    if (const int32_t code = Steering(prep, 1, &blocks); code != WEIR_OK) return code;
    if (const int32_t code = Steering(prep, 2, &sides); code != WEIR_OK) return code;
    return this->PlanWith(prep, blocks, sides);
  }
  void Run(AnyInput input, HostIntegers, HostIntegers, AnyOutput output) const { this->Transfer(input, output); }
};

template <Move kMove>
struct SquareBlocks : BlockKernel<kMove> {
  int32_t Prepare(Prep& prep) {
    std::vector<int64_t> sides;
    if (const int32_t code = Steering(prep, 1, &sides); code != WEIR_OK) return code;
    if (prep.shape(0).rank != 4) {
      return prep.error().InvalidArgument("Input rank should be: 4 instead of: ", prep.shape(0).rank);
    }
    const int64_t block = prep.node().Int("block_size");
    if (block < 2) return prep.error().InvalidArgument("Block size should be > 1: ", block);
    return this->PlanWith(prep, {block, block}, sides);
  }
  void Run(AnyInput input, HostIntegers, AnyOutput output) const { this->Transfer(input, output); }
};

/// SpaceToDepth, or DepthToSpace: one copy between [batch, rows, block, columns, block, channels] and
/// [batch, rows, columns, block, block, channels].
template <bool kToDepth>
struct DepthBlocks {
  StridedCopy copy;

  int32_t Prepare(Prep& prep) {
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
    if (HasZero(from)) return WEIR_OK;
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
  void Run(AnyInput input, AnyOutput output) const { copy.Run(input.data(), output.data()); }
};

/// Windows as channels. Texts and codes are TensorFlow's.
template <uint32_t kSpatial>
struct ExtractPatches {
  Patches patches;
  int64_t places = 0;

  int32_t Prepare(Prep& prep) {
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
    sdk::Windows windows;
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
    if (HasZero(DimsOf(prep.output(0).shape))) return WEIR_OK;
    patches = Patches::Of(windows);
    places = windows.batch * patches.Places();
    return WEIR_OK;
  }

  void Run(AnyInput images, AnyOutput output) const {
    if (places == 0) return;
    ForBytes(sdk::SizeOf(images.dtype()), [&](auto element) {
      using E = decltype(element);
      CopyPatches(patches, static_cast<const E*>(images.data()), 0, places, {0, patches.channels},
                  static_cast<E*>(output.data()));
    });
  }
};

}  // namespace

void AddBlocks(sdk::KernelTable& k) {
  const uint64_t moved = kPlainSet | kCommonQuantizedSet;
  k.Add<BlocksNd<Move::kSplit>>("SpaceToBatchND").Restrict("T", moved).Class(WEIR_CLASS_GATHER);
  k.Add<BlocksNd<Move::kJoin>>("BatchToSpaceND").Restrict("T", moved).Class(WEIR_CLASS_GATHER);
  k.Add<SquareBlocks<Move::kSplit>>("SpaceToBatch").Restrict("T", moved).Class(WEIR_CLASS_GATHER);
  k.Add<SquareBlocks<Move::kJoin>>("BatchToSpace").Restrict("T", moved).Class(WEIR_CLASS_GATHER);
  k.Add<DepthBlocks<true>>("SpaceToDepth").Restrict("T", moved).Class(WEIR_CLASS_GATHER);
  k.Add<DepthBlocks<false>>("DepthToSpace").Restrict("T", moved).Class(WEIR_CLASS_GATHER);
  k.Add<ExtractPatches<2>>("ExtractImagePatches").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<ExtractPatches<3>>("ExtractVolumePatches").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
