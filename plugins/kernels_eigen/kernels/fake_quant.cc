// Fake quantisation: floats rounded to a fixed-point grid, and its gradients.
#include <algorithm>
#include <cmath>

#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Prep;
using sdk::View;

/// The attributes num_bits and narrow_range: the integers of the grid.
struct GridInts {
  float least = 0, most = 255;

  int32_t Read(const Prep& prep) {
    const int64_t bits = prep.node().Int("num_bits", 8);
    if (bits < 2 || bits > 16) {
      return prep.error().InvalidArgument("num_bits must be between 2 and 16, inclusive");
    }
    least = prep.node().Bool("narrow_range", false) ? 1 : 0;
    most = static_cast<float>((1 << bits) - 1);
    return WEIR_OK;
  }
};

/// Numbers at equal distances, one of which is 0.
struct Grid {
  float least = 0, most = 0, step = 0;
  bool nothing = false;  // the range is [0, 0]

  /// The grid nearest to [low, high].
  Grid(const GridInts& ints, float low, float high) {
    nothing = low == 0 && high == 0;
    step = (high - low) / (ints.most - ints.least);
    const float zero = ints.least - low / step;
    const float place = zero < ints.least ? ints.least : zero > ints.most ? ints.most : std::round(zero);
    least = (ints.least - place) * step;
    most = (ints.most - place) * step;
  }
  bool Holds(float x) const { return x >= least && x <= most; }

  void Round(const float* x, float* y, int64_t n, int64_t stride) const {
    if (nothing) {
      for (int64_t i = 0; i < n; ++i) y[i * stride] = 0;
      return;
    }
    const float inverse = 1 / step, zero = std::floor(-least * inverse + 0.5f);
    for (int64_t i = 0; i < n; ++i) {
      const float limited = std::max(std::min(x[i * stride], most), least);
      y[i * stride] = std::floor((limited - least) * inverse - zero + 0.5f) * step;
    }
  }
  /// dx, and the sums of dy below and above the range.
  void Spread(const float* dy, const float* x, float* dx, int64_t n, int64_t stride, float* below, float* above) const {
    double low = 0, high = 0;
    for (int64_t i = 0; i < n; ++i) {
      const float value = x[i * stride], slope = dy[i * stride];
      dx[i * stride] = nothing || Holds(value) ? slope : 0;
      low += !nothing && value < least ? slope : 0;
      high += !nothing && value > most ? slope : 0;
    }
    *below = static_cast<float>(low);
    *above = static_cast<float>(high);
  }
};

/// Inputs 0 and 1 of one shape.
int32_t ExpectSame(const Prep& prep) {
  if (sdk::SameShape(prep.shape(0), prep.shape(1))) return WEIR_OK;
  return prep.error().InvalidArgument("gradient and input must be the same size, but have shapes ", prep.shape(0),
                                      " and ", prep.shape(1));
}

struct RangeAttrs {
  GridInts ints;
  float low = 0, high = 0;

  int32_t Read(const Prep& prep) {
    low = static_cast<float>(prep.node().Float("min", -6));
    high = static_cast<float>(prep.node().Float("max", 6));
    if (!(low < high)) {
      return prep.error().InvalidArgument("min has to be smaller than max, was: ", low, " >= ", high);
    }
    return ints.Read(prep);
  }
};

struct FakeQuantArgs : RangeAttrs {
  int32_t Prepare(Prep& prep) {
    prep.MayAlias(0, 0);
    return Read(prep);
  }
  void Run(View<const float> x, View<float> y) const { Grid(ints, low, high).Round(x.data(), y.data(), x.size(), 1); }
};

struct FakeQuantArgsGrad : RangeAttrs {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Read(prep); code != WEIR_OK) return code;
    prep.MayAlias(0, 0);
    prep.MayAlias(1, 0);
    return ExpectSame(prep);
  }
  void Run(View<const float> dy, View<const float> x, View<float> dx) const {
    const Grid grid(ints, low, high);
    for (int64_t i = 0, n = x.size(); i < n; ++i) dx[i] = grid.Holds(x[i]) ? dy[i] : 0;
  }
};

/// The range is inputs `at` and `at` + 1: scalars, or vectors with an element per channel.
struct RangeInputs {
  GridInts ints;
  int64_t channels = 1, rows = 0;

  int32_t Plan(Prep& prep, uint32_t at, bool per_channel) {
    const sdk::Error& error = prep.error();
    if (const int32_t code = ints.Read(prep); code != WEIR_OK) return code;
    const weir_shape& shape = prep.shape(at - 1);
    if (per_channel && shape.rank < 1) return error.InvalidArgument("inputs must be at least rank 1, got ", shape);
    if (per_channel) channels = shape.dims[shape.rank - 1];
    for (uint32_t i = 0; i < 2; ++i) {
      const weir_shape& range = prep.shape(at + i);
      const char* name = i == 0 ? "min" : "max";
      const uint32_t rank = per_channel ? 1 : 0;
      if (range.rank != rank) {
        return error.InvalidArgument("`", name, "` must be rank ", rank, " but is rank ", range.rank);
      }
      if (per_channel && range.dims[0] != channels) {
        return error.InvalidArgument(name, " has incorrect size, expected ", channels, " was ", range.dims[0]);
      }
    }
    const int64_t size = prep.size(at - 1);
    rows = size == 0 ? 0 : size / channels;
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

template <bool kPerChannel>
struct FakeQuantVars : RangeInputs {
  int32_t Prepare(Prep& prep) { return Plan(prep, 1, kPerChannel); }
  void Run(View<const float> x, View<const float> low, View<const float> high, View<float> y) const {
    if (rows == 0) return;
    for (int64_t c = 0; c < channels; ++c) {
      Grid(ints, low[c], high[c]).Round(x.data() + c, y.data() + c, rows, channels);
    }
  }
};

template <bool kPerChannel>
struct FakeQuantVarsGrad : RangeInputs {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = ExpectSame(prep); code != WEIR_OK) return code;
    return Plan(prep, 2, kPerChannel);
  }
  void Run(View<const float> dy, View<const float> x, View<const float> low, View<const float> high, View<float> dx,
           View<float> dlow, View<float> dhigh) const {
    for (int64_t c = 0; c < channels; ++c) {
      Grid(ints, low[c], high[c])
          .Spread(dy.data() + c, x.data() + c, dx.data() + c, rows, channels, &dlow[c], &dhigh[c]);
    }
  }
};

}  // namespace

void AddFakeQuant(sdk::KernelTable& k) {
  const auto add = [&](sdk::Kernel& kernel) { kernel.Class(WEIR_CLASS_ELEMENTWISE, 6); };
  add(k.Add<FakeQuantArgs>("FakeQuantWithMinMaxArgs"));
  add(k.Add<FakeQuantArgsGrad>("FakeQuantWithMinMaxArgsGradient"));
  add(k.Add<FakeQuantVars<false>>("FakeQuantWithMinMaxVars"));
  add(k.Add<FakeQuantVarsGrad<false>>("FakeQuantWithMinMaxVarsGradient"));
  add(k.Add<FakeQuantVars<true>>("FakeQuantWithMinMaxVarsPerChannel"));
  add(k.Add<FakeQuantVarsGrad<true>>("FakeQuantWithMinMaxVarsPerChannelGradient"));
}

}  // namespace weir::kernels_eigen
