// Convolutions in two and three dimensions, with groups and depthwise, and their gradients: products by tiles whose
// operands are read through the windows, or direct sums where a group has few channels.
#include "sdk/cpp/convolutions.h"

#include "plugins/functors/operands.h"
#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/tiled.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using Direction = sdk::Convolution::Direction;

constexpr int64_t kTiledChannels = 8;  // of a group, on both sides, from which tiles are used
constexpr int kSumThreads = 128;

/// Extents and steps of the three arrays. Images of two dimensions have one plane.
struct ConvShape {
  bool channels_first = false;
  int64_t batch = 0, in = 0, out = 0, groups = 1, group_in = 0, group_out = 0;
  int64_t in_places = 1, out_places = 1, taps = 1;
  sdk::WindowAxis axes[3];
  Divider divider;

  explicit ConvShape(const sdk::Convolution& conv)
      : channels_first(conv.windows.channels_first),
        batch(conv.windows.batch),
        in(conv.in),
        out(conv.out),
        groups(conv.groups),
        group_in(conv.group_in()),
        group_out(conv.group_out()),
        in_places(conv.windows.InputPlaces()),
        out_places(conv.windows.OutputPlaces()),
        taps(conv.windows.Taps()) {
    const uint32_t lead = 3 - conv.windows.spatial;
    for (uint32_t i = 0; i < 3; ++i) {
      if (i < lead) {
        axes[i] = {1, 1, 1};
      } else {
        axes[i] = conv.windows.axes[i - lead];
      }
    }
    const int64_t largest =
        std::max({batch * in_places * in, batch * out_places * out, taps * group_in * out, taps * group_out});
    divider = Divider::For(largest);
  }

  struct Place {
    int64_t image, at[3];
  };
  WEIR_HD Place OutPlace(int64_t i) const {
    Place p;
    for (int d = 2; d >= 0; --d) p.at[d] = divider.Split(i, axes[d].output);
    p.image = i;
    return p;
  }
  WEIR_HD Place InPlace(int64_t i) const {
    Place p;
    for (int d = 2; d >= 0; --d) p.at[d] = divider.Split(i, axes[d].input);
    p.image = i;
    return p;
  }
  WEIR_HD Place TapPlace(int64_t i) const {
    Place p;
    for (int d = 2; d >= 0; --d) p.at[d] = divider.Split(i, axes[d].window);
    p.image = 0;
    return p;
  }
  /// Elements of x and y.
  WEIR_HD int64_t X(const Place& p, int64_t channel) const {
    const int64_t place = (p.at[0] * axes[1].input + p.at[1]) * axes[2].input + p.at[2];
    return channels_first ? (p.image * in + channel) * in_places + place : (p.image * in_places + place) * in + channel;
  }
  WEIR_HD int64_t Y(const Place& p, int64_t channel) const {
    const int64_t place = (p.at[0] * axes[1].output + p.at[1]) * axes[2].output + p.at[2];
    return channels_first ? (p.image * out + channel) * out_places + place
                          : (p.image * out_places + place) * out + channel;
  }
  /// The input place that a tap of an output place reads; false if it is padding.
  WEIR_HD bool Read(const Place& o, const Place& tap, Place* p) const {
    p->image = o.image;
    for (int d = 0; d < 3; ++d) {
      p->at[d] = o.at[d] * axes[d].stride - axes[d].before + tap.at[d] * axes[d].dilation;
      if (p->at[d] < 0 || p->at[d] >= axes[d].input) return false;
    }
    return true;
  }
  /// The output place in which a tap reads the input place; false if there is none.
  WEIR_HD bool ReadBy(const Place& p, const Place& tap, Place* o) const {
    o->image = p.image;
    for (int d = 0; d < 3; ++d) {
      const int64_t start = p.at[d] + axes[d].before - tap.at[d] * axes[d].dilation;
      if (start < 0 || start % axes[d].stride != 0) return false;
      o->at[d] = start / axes[d].stride;
      if (o->at[d] >= axes[d].output) return false;
    }
    return true;
  }
};

/// Windows of x as a matrix [images * places, taps * channels of a group]; kBack: the places of y whose windows read a
/// place of x, [images * places of x, taps * outputs of a group]. Or the transpose.
template <class S, bool kBack, bool kTransposed>
struct TapMatrix {
  using C = typename S::C;
  static constexpr bool kRowsContiguous = kTransposed;
  Ptr<const char> data;
  ConvShape shape;
  S storage;
  WEIR_GPU_FN C operator()(int64_t group, int64_t row, int64_t column) const {
    const int64_t i = kTransposed ? column : row, channels = kBack ? shape.group_out : shape.group_in;
    int64_t tap = kTransposed ? row : column;
    const int64_t channel = group * channels + shape.divider.Split(tap, channels);
    ConvShape::Place place;
    if constexpr (kBack) {
      if (!shape.ReadBy(shape.InPlace(i), shape.TapPlace(tap), &place)) return C();
      return storage.Load(data.get(), shape.Y(place, channel));
    } else {
      if (!shape.Read(shape.OutPlace(i), shape.TapPlace(tap), &place)) return C();
      return storage.Load(data.get(), shape.X(place, channel));
    }
  }
};

/// The filter as a matrix [taps * channels of a group, outputs of a group].
template <class S>
struct FilterMatrix {
  using C = typename S::C;
  static constexpr bool kColumnsContiguous = true;
  Ptr<const char> w;
  ConvShape shape;
  S storage;
  WEIR_GPU_FN C operator()(int64_t group, int64_t q, int64_t j) const {
    return storage.Load(w.get(), q * shape.out + group * shape.group_out + j);
  }
};

/// y as a matrix [images * places, outputs of a group].
template <class S>
struct OutputMatrix {
  using C = typename S::C;
  static constexpr bool kColumnsContiguous = true;
  Ptr<const char> y;
  ConvShape shape;
  S storage;
  WEIR_GPU_FN C operator()(int64_t group, int64_t i, int64_t j) const {
    return storage.Load(y.get(), shape.Y(shape.OutPlace(i), group * shape.group_out + j));
  }
};

/// The filter as a matrix [taps * outputs of a group, channels of a group].
template <class S>
struct TurnedFilter {
  using C = typename S::C;
  static constexpr bool kColumnsContiguous = false;
  Ptr<const char> w;
  ConvShape shape;
  S storage;
  WEIR_GPU_FN C operator()(int64_t group, int64_t q, int64_t j) const {
    int64_t tap = q;
    const int64_t channel = shape.divider.Split(tap, shape.group_out);
    return storage.Load(w.get(), (tap * shape.group_in + j) * shape.out + group * shape.group_out + channel);
  }
};

/// Where results go: elements of y, x or w.
template <Direction kDirection, class S>
struct ConvResult {
  Ptr<char> to;
  ConvShape shape;
  S storage;
  WEIR_GPU_FN void operator()(int64_t group, int64_t i, int64_t j, typename S::C x) const {
    if constexpr (kDirection == Direction::kForward) {
      storage.Store(to.get(), shape.Y(shape.OutPlace(i), group * shape.group_out + j), x);
    } else if constexpr (kDirection == Direction::kByInput) {
      storage.Store(to.get(), shape.X(shape.InPlace(i), group * shape.group_in + j), x);
    } else {
      storage.Store(to.get(), i * shape.out + group * shape.group_out + j, x);
    }
  }
};

/// One element of the result, summed directly.
template <class Left, class Right, class Result>
struct DirectSum {
  using C = typename Left::C;
  int64_t rows, columns, depth;
  Left left;
  Right right;
  Result result;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t column = i % columns, rest = i / columns, row = rest % rows, group = rest / rows;
    C sum{};
    for (int64_t q = 0; q < depth; ++q) sum = MultiplyAdd(left(group, row, q), right(group, q, column), sum);
    result(group, row, column, sum);
  }
};

/// The same by a block of threads.
template <class Left, class Right, class Result>
struct BlockSum : DirectSum<Left, Right, Result> {
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    using C = typename Left::C;
    C* const sums = block.template Shared<C>(0);
    const int64_t column = block.index() % this->columns, rest = block.index() / this->columns;
    const int64_t row = rest % this->rows, group = rest / this->rows;
    block.ForEachThread([&](int t) {
      C sum{};
      for (int64_t q = t; q < this->depth; q += block.threads()) {
        sum = MultiplyAdd(this->left(group, row, q), this->right(group, q, column), sum);
      }
      sums[t] = sum;
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t < half) sums[t] = functors::Sum(sums[t], sums[t + half]);
      });
    }
    block.ForEachThread([&](int t) {
      if (t == 0) this->result(group, row, column, sums[0]);
    });
  }
};

/// [rows, depth] times [depth, columns] for each group, by the algorithm that suits the extents.
template <class Left, class Right, class Result>
int32_t Multiply(const Env& env, int64_t groups, int64_t rows, int64_t columns, int64_t depth, const Left& left,
                 const Right& right, const Result& result) {
  using C = typename Left::C;
  if (rows >= kTiledChannels && columns >= kTiledChannels) {
    return TiledProduct<C, Left, Right, Result>(rows, columns, depth, left, right, result).Enqueue(env, groups);
  }
  const DirectSum<Left, Right, Result> sum{rows, columns, depth, left, right, result};
  const int64_t elements = groups * rows * columns;
  if (depth < 64 * kSumThreads) return Launch(env, elements, sum);
  return LaunchBlocks(env, elements, kSumThreads, kSumThreads * sizeof(C), BlockSum<Left, Right, Result>{sum});
}

template <Direction kDirection, uint32_t kSpatial, bool kDepthwise, unsigned kKinds>
struct Convolve {
  sdk::Convolution conv;

  int32_t Prepare(sdk::Prep& prep) { return conv.Plan(prep, kDirection, kSpatial, kDepthwise); }

  /// `a` and `b`: x and w, dy and w, or x and dy.
  int32_t Do(Env& env, const AnyInput& a, const AnyInput& b, const AnyOutput& to) const {
    if (conv.empty) {
      if (functors::HasNoElements(to.shape())) return WEIR_OK;
      return Fill(env, to.data(), 0, static_cast<uint64_t>(to.size()) * sdk::SizeOf(to.dtype()));
    }
    const ConvShape s(conv);
    int32_t code = WEIR_OK;
    WithStorage<kKinds>(to.dtype(), [&](auto storage) {
      using S = decltype(storage);
      const ConvResult<kDirection, S> result{To(to), s, storage};
      if constexpr (kDirection == Direction::kForward) {
        code = Multiply(env, s.groups, s.batch * s.out_places, s.group_out, s.taps * s.group_in,
                        TapMatrix<S, false, false>{From(a), s, storage}, FilterMatrix<S>{From(b), s, storage}, result);
      } else if constexpr (kDirection == Direction::kByInput) {
        code = Multiply(env, s.groups, s.batch * s.in_places, s.group_in, s.taps * s.group_out,
                        TapMatrix<S, true, false>{From(a), s, storage}, TurnedFilter<S>{From(b), s, storage}, result);
      } else {
        code = Multiply(env, s.groups, s.taps * s.group_in, s.group_out, s.batch * s.out_places,
                        TapMatrix<S, false, true>{From(a), s, storage}, OutputMatrix<S>{From(b), s, storage}, result);
      }
    });
    return code;
  }

  static sdk::Cost Estimate(const sdk::Prep& prep) {
    sdk::Convolution conv;
    sdk::Cost cost;
    if (conv.Plan(prep, kDirection, kSpatial, kDepthwise) != WEIR_OK || conv.empty) return cost;
    cost.flops = conv.Flops();
    cost.bytes = static_cast<double>(prep.size(0) + prep.size(1) + sdk::SizeOf(prep.output(0).shape)) *
                 sdk::SizeOf(prep.output(0).dtype);
    return cost;
  }
};

template <uint32_t kSpatial, bool kDepthwise, unsigned kKinds>
struct ConvForward : Convolve<Direction::kForward, kSpatial, kDepthwise, kKinds> {
  int32_t Run(Env& env, AnyInput x, AnyInput w, AnyOutput y) const { return this->Do(env, x, w, y); }
};
template <uint32_t kSpatial, bool kDepthwise, unsigned kKinds>
struct ConvByInput : Convolve<Direction::kByInput, kSpatial, kDepthwise, kKinds> {
  int32_t Run(Env& env, sdk::HostIntegers, AnyInput w, AnyInput dy, AnyOutput dx) const {
    return this->Do(env, dy, w, dx);
  }
};
template <uint32_t kSpatial, bool kDepthwise, unsigned kKinds>
struct ConvByFilter : Convolve<Direction::kByFilter, kSpatial, kDepthwise, kKinds> {
  int32_t Run(Env& env, AnyInput x, sdk::HostIntegers, AnyInput dy, AnyOutput dw) const {
    return this->Do(env, x, dy, dw);
  }
};

/// The forms of old graphs, with an array of the shape in place of the shape.
struct OldConv3DByInput : Convolve<Direction::kByInput, 3, false, kFloats> {
  int32_t Run(Env& env, AnyInput, AnyInput w, AnyInput dy, AnyOutput dx) const { return Do(env, dy, w, dx); }
};
struct OldConv3DByFilter : Convolve<Direction::kByFilter, 3, false, kFloats> {
  int32_t Run(Env& env, AnyInput x, AnyInput, AnyInput dy, AnyOutput dw) const { return Do(env, x, dy, dw); }
};

}  // namespace

void AddConvolutions(sdk::KernelTable& k) {
  const auto add = [](sdk::Kernel& kernel, uint64_t dtypes) { kernel.Restrict("T", dtypes).Class(WEIR_CLASS_CONV); };
  add(k.Add<ConvForward<2, false, kFloats | kIntegers>>("Conv2D"), kFloatingBits | DTypes({WEIR_INT32}));
  add(k.Add<ConvByInput<2, false, kFloats | kIntegers>>("Conv2DBackpropInput"), kFloatingBits | DTypes({WEIR_INT32}));
  add(k.Add<ConvByFilter<2, false, kFloats>>("Conv2DBackpropFilter"), kFloatingBits);
  add(k.Add<ConvForward<3, false, kFloats>>("Conv3D"), kFloatingBits);
  add(k.Add<ConvByInput<3, false, kFloats>>("Conv3DBackpropInputV2"), kFloatingBits);
  add(k.Add<ConvByFilter<3, false, kFloats>>("Conv3DBackpropFilterV2"), kFloatingBits);
  add(k.Add<OldConv3DByInput>("Conv3DBackpropInput"), kFloatingBits & ~DTypes({WEIR_BFLOAT16}));
  add(k.Add<OldConv3DByFilter>("Conv3DBackpropFilter"), kFloatingBits & ~DTypes({WEIR_BFLOAT16}));
  add(k.Add<ConvForward<2, true, kFloats>>("DepthwiseConv2dNative"), kFloatingBits);
  add(k.Add<ConvByInput<2, true, kFloats>>("DepthwiseConv2dNativeBackpropInput"), kFloatingBits);
  add(k.Add<ConvByFilter<2, true, kFloats>>("DepthwiseConv2dNativeBackpropFilter"), kFloatingBits);
}

}  // namespace weir::gpu
