// Depthwise convolutions and their gradients: direct loops, vectorised over the channels.
#include <algorithm>
#include <type_traits>

#include "plugins/functors/biased_convolution.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/images.h"
#include "plugins/kernels_eigen/kernels/patches.h"
#include "sdk/cpp/convolutions.h"
#include "sdk/cpp/kernel.h"
#include "sdk/cpp/products.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Convolution;
using sdk::View;
using Direction = Convolution::Direction;

constexpr double kDepthwiseTileFlops = 1e6;
constexpr int64_t kEndElements = 4096;  // results that get their bias and activation at once, in the first cache

/// Where a tap of a place reads: elements of the image, and of the filter.
struct Tap {
  int64_t x, w;
};

/// The taps of one place that read the image, at most as many as the window has.
template <class Visit>
void ForTaps(const Patches& patches, const Place& place, int64_t filter_row, Visit&& visit) {
  ForTapRows(
      patches, place,
      [&](int64_t taps, int64_t run, int64_t offset, int64_t step) {
        for (int64_t i = 0; i < run; ++i) visit(Tap{offset + i * step, (taps + i) * filter_row});
      },
      [](int64_t, int64_t) {});
}

/// y[j] += sum over taps of x[j] w[j] for kLanes channels, which stay in registers.
template <int kLanes, class C>
void SumLanes(const Patches& patches, const Place& place, const C* x, const C* w, C* y) {
  C sums[kLanes] = {};
  ForTaps(patches, place, patches.channels, [&](const Tap& tap) {
    const C *a = x + tap.x, *b = w + tap.w;
    for (int j = 0; j < kLanes; ++j) sums[j] += a[j] * b[j];
  });
  std::copy_n(sums, kLanes, y);
}

/// One output place; `multiplier` outputs per channel.
template <class C>
void SumPlace(const Patches& patches, int64_t multiplier, const Place& place, const C* x, const C* w, C* y) {
  const int64_t channels = patches.channels;
  int64_t c = 0;
  if (multiplier == 1) {
    constexpr int kWide = 256 / sizeof(C), kHalf = kWide / 2, kNarrow = 32 / sizeof(C);
    for (; c + kWide <= channels; c += kWide) SumLanes<kWide>(patches, place, x + c, w + c, y + c);
    for (; c + kHalf <= channels; c += kHalf) SumLanes<kHalf>(patches, place, x + c, w + c, y + c);
    for (; c + kNarrow <= channels; c += kNarrow) SumLanes<kNarrow>(patches, place, x + c, w + c, y + c);
  }
  if (c == channels) return;
  std::fill_n(y + c * multiplier, (channels - c) * multiplier, C());
  ForTaps(patches, place, channels * multiplier, [&](const Tap& tap) {
    for (int64_t i = c; i < channels; ++i) {
      const C factor = x[tap.x + i];
      const C* from = w + tap.w + i * multiplier;
      C* to = y + i * multiplier;
      for (int64_t j = 0; j < multiplier; ++j) to[j] += factor * from[j];
    }
  });
}

/// dx += dy w at the taps of one place.
template <class C>
void AddByInput(const Patches& patches, int64_t multiplier, const Place& place, const C* dy, const C* w, C* dx) {
  const int64_t channels = patches.channels;
  ForTaps(patches, place, channels * multiplier, [&](const Tap& tap) {
    C* to = dx + tap.x;
    const C* from = w + tap.w;
    if (multiplier == 1) {
      for (int64_t i = 0; i < channels; ++i) to[i] += dy[i] * from[i];
      return;
    }
    for (int64_t i = 0; i < channels; ++i) {
      C sum = 0;
      for (int64_t j = 0; j < multiplier; ++j) sum += dy[i * multiplier + j] * from[i * multiplier + j];
      to[i] += sum;
    }
  });
}

/// dw += x dy at the taps of one place.
template <class C>
void AddByFilter(const Patches& patches, int64_t multiplier, const Place& place, const C* x, const C* dy, C* dw) {
  const int64_t channels = patches.channels;
  ForTaps(patches, place, channels * multiplier, [&](const Tap& tap) {
    const C* from = x + tap.x;
    C* to = dw + tap.w;
    if (multiplier == 1) {
      for (int64_t i = 0; i < channels; ++i) to[i] += from[i] * dy[i];
      return;
    }
    for (int64_t i = 0; i < channels; ++i) {
      for (int64_t j = 0; j < multiplier; ++j) to[i * multiplier + j] += from[i] * dy[i * multiplier + j];
    }
  });
}

/// What the three kernels share. Images are handled one by one.
template <Direction kDirection>
struct Depthwise {
  Convolution conv;
  Patches patches;
  int64_t multiplier = 1;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = conv.Plan(prep, kDirection, 2, true); code != WEIR_OK) return code;
    if (conv.empty) return WEIR_OK;
    patches = Patches::Of(conv.windows);
    multiplier = conv.out / conv.in;
    const uint32_t dtype = prep.input(kDirection == Direction::kByInput ? 1 : 0).dtype;
    const uint32_t bytes = dtype == WEIR_FLOAT64 ? 8 : 4;
    const int64_t elements = 3 * 64 + XImage().Size() + YImage().Size() + FilterSize();
    prep.Scratch(static_cast<uint64_t>(elements) * bytes);
    if (kDirection != Direction::kByFilter) {
      prep.Tiles(
          static_cast<uint64_t>(std::min(conv.Flops() / kDepthwiseTileFlops, static_cast<double>(conv.windows.batch))));
    }
    return WEIR_OK;
  }

  /// Time of the loops, in ns: they are bound by loads, about two per product.
  static sdk::Cost Estimate(const sdk::Prep& prep, const weir_profile* profile) {
    Convolution conv;
    sdk::Cost cost;
    if (conv.Plan(prep, kDirection, 2, true) != WEIR_OK || conv.empty) return cost;
    const uint32_t dtype = prep.input(1).dtype;
    cost.flops = conv.Flops();
    cost.bytes = static_cast<double>(prep.size(0) + prep.size(1)) * sdk::SizeOf(dtype);
    const double efficiency = conv.out != conv.in ? 0.04 : conv.in < 32 ? 0.07 : 0.2;
    cost.whole_ns = 500 + cost.flops / (efficiency * sdk::PeakFlops(profile, dtype));
    return cost;
  }

 protected:
  ImageLayout XImage() const { return {conv.windows.InputPlaces(), conv.in, conv.windows.channels_first}; }
  ImageLayout YImage() const { return {conv.windows.OutputPlaces(), conv.out, conv.windows.channels_first}; }
  int64_t FilterSize() const { return conv.windows.Taps() * conv.out; }

  /// Memory for operands that are not stored as matrices; null for those that are.
  template <class T>
  struct Memory {
    using C = sdk::Compute<T>;
    C *x = nullptr, *y = nullptr, *filter = nullptr;
    Memory(const Depthwise& d, char* scratch) {
      Workspace<C> space(reinterpret_cast<C*>(scratch));
      if (!IsPlain<T>(d.conv.windows.channels_first)) {
        x = space.Take(d.XImage().Size());
        y = space.Take(d.YImage().Size());
      }
      if (!std::is_same_v<T, C>) filter = space.Take(d.FilterSize());
    }
  };
  /// `stored`, or its copy as a matrix in `memory`.
  template <class T>
  static const sdk::Compute<T>* Matrix(const ImageLayout& image, const T* stored, sdk::Compute<T>* memory) {
    if constexpr (std::is_same_v<T, sdk::Compute<T>>) {
      if (memory == nullptr) return stored;
    }
    LoadImage(image, stored, memory);
    return memory;
  }
  /// Where the result is computed: the result itself, or `memory`.
  template <class T>
  static sdk::Compute<T>* Target(T* result, sdk::Compute<T>* memory) {
    if constexpr (std::is_same_v<T, sdk::Compute<T>>) {
      if (memory == nullptr) return result;
    }
    return memory;
  }
  /// The filter has one layout.
  ImageLayout FilterImage() const { return {conv.windows.Taps(), conv.out, false}; }

  /// Calls body(place, element offset of its outputs) for all places of an image.
  template <class Body>
  void ForPlaces(Body&& body) const {
    const int64_t count = patches.Places();
    Place place(patches, 0);
    for (int64_t i = 0; i < count; ++i, place.Next(patches)) body(place, i * conv.out);
  }
};

struct DepthwiseForward : Depthwise<Direction::kForward> {
  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T> filter, View<T> y, sdk::Scratch<char> scratch) const {
    Convolve<T>(env, x, filter, y, scratch.data(), [](auto*, int64_t) {});
  }

  /// Calls end(sums, count) for each run of `count` places whose sums are there.
  template <class T, class End>
  void Convolve(sdk::Env& env, View<const T> x, View<const T> filter, View<T> y, char* scratch, End&& end) const {
    if (conv.empty) return ZeroFill(y);
    const Memory<T> memory(*this, scratch);
    const int64_t run = std::max<int64_t>(1, kEndElements / conv.out);
    const auto* w = Matrix(FilterImage(), filter.data(), memory.filter);
    const auto range = env.Range(conv.windows.batch);
    for (int64_t i = range.first; i < range.second; ++i) {
      const auto* from = Matrix(XImage(), x.data() + i * XImage().Size(), memory.x);
      auto* to = Target(y.data() + i * YImage().Size(), memory.y);
      Place place(patches, 0);
      for (int64_t first = 0, places = patches.Places(); first < places; first += run) {
        const int64_t count = std::min(run, places - first);
        for (int64_t at = first; at < first + count; ++at, place.Next(patches)) {
          SumPlace(patches, multiplier, place, from, w, to + at * conv.out);
        }
        end(to + first * conv.out, count);
      }
      if (memory.y != nullptr) StoreImage(YImage(), memory.y, y.data() + i * YImage().Size());
    }
  }
};

/// activation(x * filter + bias).
struct BiasedDepthwise : DepthwiseForward {
  functors::Finish finish;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = DepthwiseForward::Prepare(prep); code != WEIR_OK) return code;
    return functors::PrepareFinish(prep, conv, false, &finish);
  }
  template <class T>
  void Run(sdk::Env& env, View<const T> x, View<const T> filter, View<const T> bias, View<T> y,
           sdk::Scratch<char> scratch) const {
    Convolve<T>(env, x, filter, y, scratch.data(), [&](T* sums, int64_t count) {
      functors::FinishRows(finish, sums, bias.data(), nullptr, count, conv.out);
    });
  }
};

struct DepthwiseByInput : Depthwise<Direction::kByInput> {
  template <class T>
  void Run(sdk::Env& env, sdk::HostIntegers, View<const T> filter, View<const T> dy, View<T> dx,
           sdk::Scratch<char> scratch) const {
    if (conv.empty) return ZeroFill(dx);
    const Memory<T> memory(*this, scratch.data());
    const auto* w = Matrix(FilterImage(), filter.data(), memory.filter);
    const auto range = env.Range(conv.windows.batch);
    for (int64_t i = range.first; i < range.second; ++i) {
      const auto* from = Matrix(YImage(), dy.data() + i * YImage().Size(), memory.y);
      auto* to = Target(dx.data() + i * XImage().Size(), memory.x);
      std::fill_n(to, XImage().Size(), sdk::Compute<T>());
      ForPlaces([&](const Place& place, int64_t at) { AddByInput(patches, multiplier, place, from + at, w, to); });
      if (memory.x != nullptr) StoreImage(XImage(), memory.x, dx.data() + i * XImage().Size());
    }
  }
};

struct DepthwiseByFilter : Depthwise<Direction::kByFilter> {
  template <class T>
  void Run(View<const T> x, sdk::HostIntegers, View<const T> dy, View<T> dw, sdk::Scratch<char> scratch) const {
    if (conv.empty) return ZeroFill(dw);
    const Memory<T> memory(*this, scratch.data());
    auto* sums = Target(dw.data(), memory.filter);
    std::fill_n(sums, FilterSize(), sdk::Compute<T>());
    for (int64_t i = 0; i < conv.windows.batch; ++i) {
      const auto* from = Matrix(XImage(), x.data() + i * XImage().Size(), memory.x);
      const auto* by = Matrix(YImage(), dy.data() + i * YImage().Size(), memory.y);
      ForPlaces([&](const Place& place, int64_t at) { AddByFilter(patches, multiplier, place, from, by + at, sums); });
    }
    if (memory.filter != nullptr) StoreImage(FilterImage(), memory.filter, dw.data());
  }
};

}  // namespace

void AddDepthwise(sdk::KernelTable& k) {
  k.Add<DepthwiseForward>("DepthwiseConv2dNative", kFloating).Class(WEIR_CLASS_CONV);
  k.Add<BiasedDepthwise>("_BiasedDepthwiseConv2D", kFloat).Class(WEIR_CLASS_CONV);
  k.Add<DepthwiseByInput>("DepthwiseConv2dNativeBackpropInput", kFloating).Class(WEIR_CLASS_CONV);
  k.Add<DepthwiseByFilter>("DepthwiseConv2dNativeBackpropFilter", kFloating).Class(WEIR_CLASS_CONV);
}

}  // namespace weir::kernels_eigen
