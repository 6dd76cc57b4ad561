// Numbers rounded to a grid: fake quantisation, quantisation and back, and their gradients.
#include "plugins/functors/fake_quant.h"
#include "plugins/functors/round_trip.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::FakeGrid;
using functors::GridInts;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

constexpr int kGridThreads = 128;

/// The range of each channel: numbers, or in device memory.
struct ChannelRanges {
  GridInts ints;
  Ptr<const float> lows, highs;  // null: low and high
  float low = 0, high = 0;
  int64_t channels = 1;
  WEIR_GPU_FN FakeGrid Of(int64_t channel) const {
    return lows ? FakeGrid(ints, lows[channel], highs[channel]) : FakeGrid(ints, low, high);
  }
};

struct FakeRoundWork {
  Ptr<const float> x;
  Ptr<float> y;
  ChannelRanges ranges;
  WEIR_GPU_FN void operator()(int64_t i) const { y[i] = ranges.Of(i % ranges.channels).Round(x[i]); }
};
struct FakeSlopeWork {
  Ptr<const float> dy, x;
  Ptr<float> dx;
  ChannelRanges ranges;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const FakeGrid grid = ranges.Of(i % ranges.channels);
    dx[i] = grid.Holds(x[i]) || (ranges.lows && grid.nothing) ? dy[i] : 0;
  }
};
/// A block for a channel: the sums of the slopes below and above its range.
struct FakeEndsWork {
  struct Sums {
    double below, above;
  };
  Ptr<const float> dy, x;
  Ptr<float> below, above;
  ChannelRanges ranges;
  int64_t rows;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    Sums* const sums = block.template Shared<Sums>(0);
    const int64_t channel = block.index();
    block.ForEachThread([&](int t) {
      const FakeGrid grid = ranges.Of(channel);
      Sums own{0, 0};
      for (int64_t row = t; row < rows && !grid.nothing; row += block.threads()) {
        const int64_t i = row * ranges.channels + channel;
        own.below += x[i] < grid.least ? static_cast<double>(dy[i]) : 0;
        own.above += x[i] > grid.most ? static_cast<double>(dy[i]) : 0;
      }
      sums[t] = own;
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t >= half) return;
        sums[t].below += sums[t + half].below;
        sums[t].above += sums[t + half].above;
      });
    }
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      below[channel] = static_cast<float>(sums[0].below);
      above[channel] = static_cast<float>(sums[0].above);
    });
  }
};

struct FakeQuantArgs : functors::FakeQuantArgsPlan {
  int32_t Run(Env& env, View<const float> x, View<float> y) const {
    return Launch(env, x.size(), FakeRoundWork{x.data(), y.data(), {ints, nullptr, nullptr, low, high}});
  }
};
struct FakeQuantArgsGrad : functors::FakeQuantArgsGradPlan {
  int32_t Run(Env& env, View<const float> dy, View<const float> x, View<float> dx) const {
    return Launch(env, x.size(),
                  FakeSlopeWork{dy.data(), x.data(), dx.data(), {ints, nullptr, nullptr, low, high}});
  }
};
template <bool kPerChannel>
struct FakeQuantVars : functors::FakeQuantVarsPlan<kPerChannel> {
  int32_t Run(Env& env, View<const float> x, View<const float> low, View<const float> high, View<float> y) const {
    if (this->rows == 0) return WEIR_OK;
    return Launch(env, x.size(),
                  FakeRoundWork{x.data(), y.data(), {this->ints, low.data(), high.data(), 0, 0, this->channels}});
  }
};
template <bool kPerChannel>
struct FakeQuantVarsGrad : functors::FakeQuantVarsGradPlan<kPerChannel> {
  int32_t Run(Env& env, View<const float> dy, View<const float> x, View<const float> low, View<const float> high,
              View<float> dx, View<float> dlow, View<float> dhigh) const {
    const int64_t rows = this->rows;
    const ChannelRanges ranges{this->ints, low.data(), high.data(), 0, 0, this->channels};
    // The sums first: dx may lie where dy does.
    const FakeEndsWork ends{dy.data(), x.data(), dlow.data(), dhigh.data(), ranges, rows};
    const int32_t code =
        LaunchBlocks(env, this->channels, kGridThreads, kGridThreads * sizeof(FakeEndsWork::Sums), ends);
    if (code != WEIR_OK || rows == 0) return code;
    return Launch(env, x.size(), FakeSlopeWork{dy.data(), x.data(), dx.data(), ranges});
  }
};

/// The least and the largest element of a slice; a block for each.
template <class T>
struct SliceRangeWork {
  Ptr<const T> x;
  Ptr<T> ranges;  // [slices, 2]
  int64_t outer, slices, inner;
  struct Ends {
    T low, high;
  };
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    Ends* const ends = block.template Shared<Ends>(0);
    const int64_t slice = block.index();
    block.ForEachThread([&](int t) {
      // As on the CPU, a first element that is not a number stays.
      const T first = x[slice * inner];
      Ends own{first, first};
      for (int64_t k = t; k < outer * inner; k += block.threads()) {
        const T value = x[(k / inner * slices + slice) * inner + k % inner];
        if (value < own.low) own.low = value;
        if (value > own.high) own.high = value;
      }
      ends[t] = own;
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t >= half) return;
        if (ends[t + half].low < ends[t].low) ends[t].low = ends[t + half].low;
        if (ends[t + half].high > ends[t].high) ends[t].high = ends[t + half].high;
      });
    }
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      ranges[2 * slice] = ends[0].low;
      ranges[2 * slice + 1] = ends[0].high;
    });
  }
};
template <class T>
struct RoundTripWork {
  Ptr<const T> x, lows, highs;  // ranges null: low and high
  Ptr<T> y;
  int64_t step;  // between the ranges of slices
  T low, high;
  int64_t bits;
  functors::RoundTripPlan plan;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t slice = i / plan.inner % plan.slices;
    const auto grid = lows ? plan.GridOf(lows[slice * step], highs[slice * step], bits) : plan.GridOf(low, high, bits);
    y[i] = plan.Rounded(grid, x[i]);
  }
};

/// `Plan` is one of functors/round_trip.h; the range of an op without a given one is that of the elements.
template <class Plan>
struct RoundTrips : Plan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan::Prepare(prep);
    if (code == WEIR_OK && !this->given && this->outer > 0) {
      prep.Scratch(static_cast<uint64_t>(this->slices) * 2 * sdk::SizeOf(prep.input(0).dtype));
    }
    return code;
  }
  template <class T>
  int32_t Round(const Env& env, const View<const T>& x, const View<T>& y, int64_t bits, const T* lows, const T* highs,
                T low, T high, char* scratch) const {
    if (const int32_t code = this->CheckBits(env.error(), bits); code != WEIR_OK) return code;
    if (this->outer == 0) return WEIR_OK;
    RoundTripWork<T> work{x.data(), lows, highs, y.data(), 1, low, high, bits, *this};
    if (!this->given) {
      T* const ranges = reinterpret_cast<T*>(scratch);
      const SliceRangeWork<T> find{x.data(), ranges, this->outer, this->slices, this->inner};
      const uint32_t shared = kGridThreads * sizeof(typename SliceRangeWork<T>::Ends);
      const int32_t code = LaunchBlocks(env, this->slices, kGridThreads, shared, find);
      if (code != WEIR_OK) return code;
      work.lows = Ptr<const T>(ranges);
      work.highs = Ptr<const T>(ranges + 1);
      work.step = 2;
    }
    return Launch(env, x.size(), work);
  }
};

/// QuantizeAndDequantize: the range is in attributes.
struct RoundTripByAttrs : RoundTrips<functors::RoundTripByAttrsPlan> {
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<T> y, sdk::Scratch<char> scratch) const {
    if (given && low > high) {
      return env.error().InvalidArgument("Invalid range: input_min ", low, " > input_max ", high);
    }
    return Round<T>(env, x, y, bits, nullptr, nullptr, static_cast<T>(low), static_cast<T>(high), scratch.data());
  }
};
struct RoundTripByInputs : RoundTrips<functors::RoundTripByInputsPlan> {
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<const T> low, View<const T> high, View<T> y,
              sdk::Scratch<char> scratch) const {
    return Round<T>(env, x, y, bits, low.data(), high.data(), T(0), T(0), scratch.data());
  }
};
struct RoundTripOfBits : RoundTrips<functors::RoundTripOfBitsPlan> {
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<const T> low, View<const T> high, HostIntegers number, View<T> y,
              sdk::Scratch<char> scratch) const {
    return Round<T>(env, x, y, number[0], low.data(), high.data(), T(0), T(0), scratch.data());
  }
};

template <class T>
struct RoundTripSlopeWork {
  Ptr<const T> dy, x, lows, highs;
  Ptr<T> dx;
  int64_t slices, inner;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t slice = i / inner % slices;
    dx[i] = x[i] >= lows[slice] && x[i] <= highs[slice] ? dy[i] : T(0);
  }
};
struct RoundTripGrad : functors::RoundTripGradPlan {
  template <class T>
  int32_t Run(Env& env, View<const T> dy, View<const T> x, View<const T> low, View<const T> high, View<T> dx,
              View<T> dlow, View<T> dhigh) const {
    const uint64_t bytes = static_cast<uint64_t>(slices) * sizeof(T);
    if (outer > 0) {
      const RoundTripSlopeWork<T> work{dy.data(), x.data(), low.data(), high.data(), dx.data(), slices, inner};
      if (const int32_t code = Launch(env, dx.size(), work); code != WEIR_OK) return code;
    }
    if (const int32_t code = Fill(env, dlow.data(), 0, bytes); code != WEIR_OK) return code;
    return Fill(env, dhigh.data(), 0, bytes);
  }
};

}  // namespace

void AddQuantised(sdk::KernelTable& k) {
  const auto add = [](sdk::Kernel& kernel) { kernel.Class(WEIR_CLASS_ELEMENTWISE, 6); };
  add(k.Add<FakeQuantArgs>("FakeQuantWithMinMaxArgs"));
  add(k.Add<FakeQuantArgsGrad>("FakeQuantWithMinMaxArgsGradient"));
  add(k.Add<FakeQuantVars<false>>("FakeQuantWithMinMaxVars"));
  add(k.Add<FakeQuantVarsGrad<false>>("FakeQuantWithMinMaxVarsGradient"));
  add(k.Add<FakeQuantVars<true>>("FakeQuantWithMinMaxVarsPerChannel"));
  add(k.Add<FakeQuantVarsGrad<true>>("FakeQuantWithMinMaxVarsPerChannelGradient"));
  constexpr sdk::Types<float, double> kReals;
  add(k.Add<RoundTripByAttrs>("QuantizeAndDequantize", kReals));
  add(k.Add<RoundTripByInputs>("QuantizeAndDequantizeV2", kReals));
  add(k.Add<RoundTripOfBits>("QuantizeAndDequantizeV3", kReals));
  add(k.Add<RoundTripByInputs>("QuantizeAndDequantizeV4", kReals));
  add(k.Add<RoundTripGrad>("QuantizeAndDequantizeV4Grad", kReals));
}

}  // namespace weir::gpu
