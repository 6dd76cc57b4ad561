// Fake quantisation: floats rounded to a fixed-point grid, and its gradients.
#include <algorithm>
#include <cmath>

#include "plugins/functors/fake_quant.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using functors::FakeGrid;
using sdk::View;

/// A grid's loops over n numbers, `stride` apart.
struct GridLoops : FakeGrid {
  using FakeGrid::FakeGrid;

  void RoundAll(const float* x, float* y, int64_t n, int64_t stride) const {
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

struct FakeQuantArgs : functors::FakeQuantArgsPlan {
  void Run(View<const float> x, View<float> y) const {
    GridLoops(ints, low, high).RoundAll(x.data(), y.data(), x.size(), 1);
  }
};

struct FakeQuantArgsGrad : functors::FakeQuantArgsGradPlan {
  void Run(View<const float> dy, View<const float> x, View<float> dx) const {
    const GridLoops grid(ints, low, high);
    for (int64_t i = 0, n = x.size(); i < n; ++i) dx[i] = grid.Holds(x[i]) ? dy[i] : 0;
  }
};

template <bool kPerChannel>
struct FakeQuantVars : functors::FakeQuantVarsPlan<kPerChannel> {
  void Run(View<const float> x, View<const float> low, View<const float> high, View<float> y) const {
    if (this->rows == 0) return;
    const int64_t channels = this->channels;
    for (int64_t c = 0; c < channels; ++c) {
      GridLoops(this->ints, low[c], high[c]).RoundAll(x.data() + c, y.data() + c, this->rows, channels);
    }
  }
};

template <bool kPerChannel>
struct FakeQuantVarsGrad : functors::FakeQuantVarsGradPlan<kPerChannel> {
  void Run(View<const float> dy, View<const float> x, View<const float> low, View<const float> high, View<float> dx,
           View<float> dlow, View<float> dhigh) const {
    const int64_t channels = this->channels;
    for (int64_t c = 0; c < channels; ++c) {
      GridLoops(this->ints, low[c], high[c])
          .Spread(dy.data() + c, x.data() + c, dx.data() + c, this->rows, channels, &dlow[c], &dhigh[c]);
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
