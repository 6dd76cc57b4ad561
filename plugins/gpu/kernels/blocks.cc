// Elements in other places: blocks as batches or channels, patches, rolled axes, reversed sequences, the same bits.
#include "plugins/functors/block_plans.h"

#include "plugins/functors/arithmetic.h"
#include "plugins/functors/bitcast_plan.h"
#include "plugins/functors/reverse_sequence_plan.h"
#include "plugins/functors/roll_plans.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/moves.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::Move;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

constexpr uint32_t kMostMovedAxes = 16;

int32_t ExpectFewAxes(const Prep& prep, size_t axes) {
  if (axes <= kMostMovedAxes) return WEIR_OK;
  return prep.error().Unimplemented("arrays with more than ", kMostMovedAxes, " axes");
}

/// functors::BlockMap on the device. The split array is [offsets, batch, parts…, rest].
struct DeviceBlocks {
  uint32_t count = 0;
  int64_t batch = 0, rest = 1;
  functors::BlockedAxis axes[kMostMovedAxes] = {};

  explicit DeviceBlocks(const functors::BlockMap& map)
      : count(static_cast<uint32_t>(map.axes.size())), batch(map.batch), rest(map.rest) {
    for (uint32_t d = 0; d < count; ++d) axes[d] = map.axes[d];
  }
  /// The element of the whole array at element i of the split one; -1 if there is none.
  WEIR_GPU_FN int64_t InWhole(int64_t i) const {
    const int64_t inner = i % rest;
    int64_t outer = i / rest, step = rest, at = inner;
    int64_t parts[kMostMovedAxes];
    for (uint32_t d = count; d-- > 0; outer /= axes[d].parts) parts[d] = outer % axes[d].parts;
    const int64_t n = outer % batch;
    outer /= batch;
    for (uint32_t d = count; d-- > 0; outer /= axes[d].block) {
      const int64_t place = parts[d] * axes[d].block + outer % axes[d].block - axes[d].before;
      if (place < 0 || place >= axes[d].whole) return -1;
      at += place * step;
      step *= axes[d].whole;
    }
    return at + n * step;
  }
  /// The element of the split array at element i of the whole one.
  WEIR_GPU_FN int64_t InSplit(int64_t i) const {
    int64_t outer = i / rest, step = rest, at = i % rest, offset = 0, offsets = 1;
    for (uint32_t d = count; d-- > 0; outer /= axes[d].whole) {
      const int64_t place = outer % axes[d].whole + axes[d].before;
      at += place / axes[d].block * step;
      step *= axes[d].parts;
      offset += place % axes[d].block * offsets;
      offsets *= axes[d].block;
    }
    return at + (offset * batch + outer) * step;
  }
};

template <class E, bool kSplit>
struct BatchBlockWork {
  Ptr<const E> from;
  Ptr<E> to;
  DeviceBlocks blocks;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t at = kSplit ? blocks.InWhole(i) : blocks.InSplit(i);
    E none{};
    to[i] = at >= 0 ? from[at] : none;
  }
};

template <class Plan, bool kSplit>
struct BlockMoves : Plan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan::Prepare(prep);
    return code != WEIR_OK ? code : ExpectFewAxes(prep, this->map.axes.size());
  }
  int32_t Transfer(const Env& env, const AnyInput& x, const AnyOutput& y) const {
    if (functors::HasNoElements(y.shape())) return WEIR_OK;
    if (this->map.empty) return Fill(env, y.data(), 0, static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
    return functors::ForBytes(sdk::SizeOf(x.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(env, y.size(),
                    BatchBlockWork<E, kSplit>{static_cast<const E*>(x.data()), static_cast<E*>(y.data()),
                                         DeviceBlocks(this->map)});
    });
  }
};
template <Move kMove>
struct BlocksNd : BlockMoves<functors::BlocksNdPlan<kMove>, kMove == Move::kSplit> {
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, AnyOutput y) const {
    return this->Transfer(env, x, y);
  }
};
template <Move kMove>
struct SquareBlocks : BlockMoves<functors::SquareBlocksPlan<kMove>, kMove == Move::kSplit> {
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput y) const { return this->Transfer(env, x, y); }
};
template <bool kToDepth>
struct DepthBlocks : functors::DepthBlocksPlan<kToDepth, DeviceCopy> {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const { return this->copy.Run(env, x.data(), y.data()); }
};

struct PatchAxis {
  int64_t input = 1, window = 1, output = 1, stride = 1, dilation = 1, before = 0;
};

/// Element i of [image, places…, taps…, channel].
template <class E>
struct PatchWork {
  Ptr<const E> from;
  Ptr<E> to;
  PatchAxis axes[3];
  int64_t channels;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t rest = i / channels, taps[3], at = 0, step = channels;
    for (int d = 3; d-- > 0; rest /= axes[d].window) taps[d] = rest % axes[d].window;
    bool inside = true;
    for (int d = 3; d-- > 0; rest /= axes[d].output) {
      const PatchAxis& axis = axes[d];
      const int64_t place = rest % axis.output * axis.stride - axis.before + taps[d] * axis.dilation;
      inside = inside && place >= 0 && place < axis.input;
      at += place * step;
      step *= axis.input;
    }
    E none{};
    to[i] = inside ? from[rest * step + at + i % channels] : none;
  }
};
template <uint32_t kSpatial>
struct ExtractPatches : functors::PatchesPlan<kSpatial> {
  int32_t Run(Env& env, AnyInput images, AnyOutput y) const {
    if (this->places == 0) return WEIR_OK;
    return functors::ForBytes(sdk::SizeOf(images.dtype()), [&](auto element) {
      using E = decltype(element);
      PatchWork<E> work{static_cast<const E*>(images.data()), static_cast<E*>(y.data()), {}, this->windows.channels};
      for (uint32_t d = 0; d < kSpatial; ++d) {
        const sdk::WindowAxis& a = this->windows.axes[d];
        work.axes[d + 3 - kSpatial] = {a.input, a.window, a.output, a.stride, a.dilation, a.before};
      }
      return Launch(env, y.size(), work);
    });
  }
};

template <class E>
struct RollWork {
  struct Axis {
    int64_t extent, shift;
  };
  Ptr<const E> from;
  Ptr<E> to;
  uint32_t rank;
  Divider divider;
  Axis axes[kMostMovedAxes];
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t rest = i, at = 0, step = 1;
    for (uint32_t d = rank; d-- > 0;) {
      const int64_t place = divider.Split(rest, axes[d].extent) - axes[d].shift;
      at += (place < 0 ? place + axes[d].extent : place) * step;
      step *= axes[d].extent;
    }
    to[i] = from[at];
  }
};
struct Roll : functors::RollPlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = RollPlan::Prepare(prep);
    return code != WEIR_OK ? code : ExpectFewAxes(prep, dims.size());
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers, HostIntegers, AnyOutput y) const {
    if (empty) return WEIR_OK;
    return functors::ForBytes(sdk::SizeOf(x.dtype()), [&](auto element) {
      using E = decltype(element);
      RollWork<E> work{static_cast<const E*>(x.data()), static_cast<E*>(y.data()), static_cast<uint32_t>(dims.size()),
                       Divider::For(y.size()), {}};
      for (size_t d = 0; d < dims.size(); ++d) work.axes[d] = {dims[d], shifts[d]};
      return Launch(env, y.size(), work);
    });
  }
};

/// Lengths that a sequence cannot have count as 0 or as its number of steps.
template <class E>
struct ReverseSequenceWork {
  Ptr<const E> from;
  Ptr<E> to;
  Indices lengths;
  int64_t first, between, second, inner;
  bool batch_first;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t b = i / inner % second, a = i / (inner * second * between) % first;
    const int64_t steps = batch_first ? second : first, step = batch_first ? b : a;
    int64_t length = lengths[batch_first ? a : b];
    if (length > steps) length = steps;
    const int64_t mirrored = step < length ? length - 1 - step : step;
    const int64_t shift = (mirrored - step) * (batch_first ? inner : inner * second * between);
    to[i] = from[i + shift];
  }
};
struct ReverseSequence : functors::ReverseSequencePlan {
  int32_t Run(Env& env, AnyInput x, AnyInput lengths, AnyOutput y) const {
    if (outer == 0) return WEIR_OK;
    const uint32_t bytes = sdk::SizeOf(x.dtype());
    return functors::ForBytes(bytes, [&](auto element) {
      using E = decltype(element);
      return Launch(env, y.size(),
                    ReverseSequenceWork<E>{static_cast<const E*>(x.data()), static_cast<E*>(y.data()),
                                           Indices(lengths), first, between, second,
                                           static_cast<int64_t>(inner_bytes / bytes), batch_first});
    });
  }
};

/// A vector of three elements.
template <class S>
struct CrossWork {
  Ptr<const char> a, b;
  Ptr<char> y;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t p = 3 * i + (k + 1) % 3, q = 3 * i + (k + 2) % 3;
      const auto x = storage.Load(a.get(), p), z = storage.Load(a.get(), q);
      storage.Store(y.get(), 3 * i + k,
                    functors::Difference(functors::Product(x, storage.Load(b.get(), q)),
                                         functors::Product(z, storage.Load(b.get(), p))));
    }
  }
};
struct Cross : functors::CrossPlan {
  int32_t Run(Env& env, AnyInput a, AnyInput b, AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers>(y.dtype(), [&](auto storage) {
      code = Launch(env, y.size() / 3, CrossWork<decltype(storage)>{From(a), From(b), To(y), storage});
    });
    return code;
  }
};

struct Bitcast : functors::BitcastPlan {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    return bytes == 0 || x.data() == y.data() ? int32_t{WEIR_OK} : Copy(env, y.data(), x.data(), bytes);
  }
};
struct DeepCopy {
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    if (functors::HasNoElements(y.shape())) return WEIR_OK;
    return Copy(env, y.data(), x.data(), static_cast<uint64_t>(y.size()) * sdk::SizeOf(y.dtype()));
  }
};

}  // namespace

void AddBlocks(sdk::KernelTable& k) {
  using functors::kPlainSet;
  const auto add = [](sdk::Kernel& kernel) { kernel.Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_GATHER); };
  add(k.Add<BlocksNd<Move::kSplit>>("SpaceToBatchND"));
  add(k.Add<BlocksNd<Move::kJoin>>("BatchToSpaceND"));
  add(k.Add<SquareBlocks<Move::kSplit>>("SpaceToBatch"));
  add(k.Add<SquareBlocks<Move::kJoin>>("BatchToSpace"));
  add(k.Add<DepthBlocks<true>>("SpaceToDepth"));
  add(k.Add<DepthBlocks<false>>("DepthToSpace"));
  add(k.Add<ExtractPatches<2>>("ExtractImagePatches"));
  add(k.Add<ExtractPatches<3>>("ExtractVolumePatches"));
  add(k.Add<Roll>("Roll"));
  add(k.Add<ReverseSequence>("ReverseSequence"));
  k.Add<Cross>("Cross").Restrict("T", kRealBits).Class(WEIR_CLASS_ELEMENTWISE, 9);
  constexpr uint64_t kBits = kPlainSet & ~WEIR_DTYPE_BIT(WEIR_BOOL);
  k.Add<Bitcast>("Bitcast").Restrict("T", kBits).Restrict("type", kBits).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<DeepCopy>("DeepCopy").Restrict("T", kPlainSet).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::gpu
