// Blocks of places that become batches or channels, and back; patches of images as channels.
#include <algorithm>
#include <vector>

#include "plugins/functors/block_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/images.h"
#include "plugins/kernels_eigen/kernels/patches.h"
#include "plugins/kernels_eigen/kernels/strided_copy.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using functors::BlockMap;
using functors::Move;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;

/// Runs of places of functors::BlockMap.
class BlockRuns {
 public:
  explicit BlockRuns(const BlockMap& map) : map_(map), axes_(map.axes) {}

  /// Calls copy(element in the whole array, its step, element in the split one, count) for all runs of places along the
  /// last axis that both arrays have, in units of `rest` elements.
  template <class Copy>
  void ForEach(Copy&& copy) const {
    std::vector<int64_t> offset(axes_.size(), 0), place(axes_.size(), 0);
    int64_t parts = 1;
    for (const functors::BlockedAxis& axis : axes_) parts *= axis.parts;
    int64_t split = 0;
    do {
      for (int64_t n = 0; n < map_.batch; ++n, split += parts) CopyBatch(offset, place, n, split, copy);
    } while (Next(offset, axes_.size(), [&](size_t i) { return sdk::Places{0, axes_[i].block}; }));
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
    if (axes_.empty()) return copy(n, 1, split, 1);
    const auto inside = [&](size_t i) { return axes_[i].Inside(offset[i]); };
    for (size_t i = 0; i < axes_.size(); ++i) {
      place[i] = inside(i).first;
      if (inside(i).empty()) return;
    }
    const size_t last = axes_.size() - 1;
    const sdk::Places run = inside(last);
    do {
      int64_t from = n, to = 0;
      for (size_t i = 0; i < axes_.size(); ++i) {
        from = from * axes_[i].whole + place[i] * axes_[i].block + offset[i] - axes_[i].before;
        to = to * axes_[i].parts + place[i];
      }
      copy(from, axes_[last].block, split + to, run.end - run.first);
    } while (Next(place, last, inside));
  }

  const BlockMap& map_;
  const std::vector<functors::BlockedAxis>& axes_;
};

/// Copies between the whole array and the split one; the result is zeros where the operand has no element.
void Transfer(const BlockMap& map, Move move, const AnyInput& input, const AnyOutput& output) {
  ForBytes(sdk::SizeOf(input.dtype()), [&](auto element) {
    using E = decltype(element);
    const auto* from = static_cast<const E*>(input.data());
    auto* to = static_cast<E*>(output.data());
    if (move == Move::kSplit) ZeroFill(sdk::View<E>(to, output.shape()));
    if (map.empty) return;
    BlockRuns(map).ForEach([&](int64_t whole, int64_t step, int64_t split, int64_t count) {
      const int64_t rest = map.rest;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t a = (whole + i * step) * rest, b = (split + i) * rest;
        std::copy_n(from + (move == Move::kSplit ? a : b), rest, to + (move == Move::kSplit ? b : a));
      }
    });
  });
}

template <Move kMove>
struct BlocksNd : functors::BlocksNdPlan<kMove> {
  void Run(AnyInput input, HostIntegers, HostIntegers, AnyOutput output) const {
    Transfer(this->map, kMove, input, output);
  }
};
template <Move kMove>
struct SquareBlocks : functors::SquareBlocksPlan<kMove> {
  void Run(AnyInput input, HostIntegers, AnyOutput output) const { Transfer(this->map, kMove, input, output); }
};

template <bool kToDepth>
struct DepthBlocks : functors::DepthBlocksPlan<kToDepth, StridedCopy> {
  void Run(AnyInput input, AnyOutput output) const { this->copy.Run(input.data(), output.data()); }
};

/// Windows as channels.
template <uint32_t kSpatial>
struct ExtractPatches : functors::PatchesPlan<kSpatial> {
  void Run(AnyInput images, AnyOutput output) const {
    if (this->places == 0) return;
    const Patches patches = Patches::Of(this->windows);
    ForBytes(sdk::SizeOf(images.dtype()), [&](auto element) {
      using E = decltype(element);
      CopyPatches(patches, static_cast<const E*>(images.data()), 0, this->places, {0, patches.channels},
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
