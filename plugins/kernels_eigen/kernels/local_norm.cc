// Local response normalisation, and batch normalisation with given statistics.
#include <algorithm>
#include <cmath>

#include "plugins/functors/given_statistics.h"
#include "plugins/functors/lrn_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using functors::GivenStatistics;
using sdk::Compute;
using sdk::Env;
using sdk::Prep;
using sdk::Scratch;
using sdk::View;

/// Rows of channels; each channel is scaled by its neighbours within the radius.
template <class Plan>
struct Lrn : Plan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan::Prepare(prep);
    if (code == WEIR_OK && this->rows > 0) {
      prep.Scratch(static_cast<uint64_t>(this->depth) * 2 * sizeof(float));
      prep.Tiles(static_cast<uint64_t>(std::min(this->rows, prep.size(0) / sdk::internal::kGrain)));
    }
    return code;
  }

  /// norms[c] = bias + alpha * the sum of squares around c.
  template <class T>
  void Norms(const T* x, float* norms) const {
    for (int64_t c = 0; c < this->depth; ++c) {
      float sum = 0;
      const int64_t end = std::min(this->depth, c + this->radius + 1);
      for (int64_t i = std::max<int64_t>(0, c - this->radius); i < end; ++i) {
        const auto value = static_cast<float>(x[i]);
        sum += value * value;
      }
      norms[c] = this->bias + this->alpha * sum;
    }
  }
};

struct LrnForward : Lrn<functors::LrnForwardPlan> {
  template <class T>
  void Run(Env& env, View<const T> x, View<T> y, Scratch<float> norms) const {
    const auto [begin, end] = env.Range(rows);
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x.data() + row * depth;
      T* to = y.data() + row * depth;
      Norms(from, norms.data());
      for (int64_t c = 0; c < depth; ++c) {
        to[c] = static_cast<T>(static_cast<float>(from[c]) * Power(norms.data()[c]));
      }
    }
  }
};

struct LrnGrad : Lrn<functors::LrnGradPlan> {
  template <class T>
  void Run(Env& env, View<const T> dy, View<const T> x, View<const T> y, View<T> dx, Scratch<float> scratch) const {
    const auto [begin, end] = env.Range(rows);
    float *norms = scratch.data(), *sums = norms + depth;
    for (int64_t at = begin * depth; at < end * depth; at += depth) {
      const T *slopes = dy.data() + at, *values = x.data() + at, *results = y.data() + at;
      Norms(values, norms);
      std::fill_n(sums, depth, 0.0f);
      for (int64_t c = 0; c < depth; ++c) {
        const auto slope = static_cast<float>(slopes[c]);
        const float shared = -2 * alpha * beta * static_cast<float>(results[c]) / norms[c] * slope;
        const int64_t last = std::min(depth, c + radius + 1);
        for (int64_t i = std::max<int64_t>(0, c - radius); i < last; ++i) {
          sums[i] += shared * static_cast<float>(values[i]);
        }
        sums[c] += Power(norms[c]) * slope;
      }
      for (int64_t c = 0; c < depth; ++c) dx[at + c] = static_cast<T>(sums[c]);
    }
  }
};

struct GlobalNormalisation : GivenStatistics {
  int32_t Prepare(Prep& prep) {
    prep.MayAlias(0, 0);
    return Plan(prep, {"mean", "var", "beta", "gamma"});
  }
  template <class T>
  void Run(View<const T> t, View<const T> m, View<const T> v, View<const T> beta, View<const T> gamma,
           View<T> y) const {
    using C = Compute<T>;
    for (int64_t row = 0; row < rows; ++row) {
      const T* from = t.data() + row * channels;
      T* to = y.data() + row * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const C inverse = C(1) / std::sqrt(static_cast<C>(v[c]) + static_cast<C>(epsilon));
        const C factor = scales ? inverse * static_cast<C>(gamma[c]) : inverse;
        to[c] = static_cast<T>((static_cast<C>(from[c]) - static_cast<C>(m[c])) * factor + static_cast<C>(beta[c]));
      }
    }
  }
};

struct GlobalNormalisationGrad : GivenStatistics {
  int32_t Prepare(Prep& prep) { return PlanGradient(prep); }
  template <class T>
  void Run(View<const T> t, View<const T> m, View<const T> v, View<const T> gamma, View<const T> dy, View<T> dx,
           View<T> dm, View<T> dv, View<T> db, View<T> dg) const {
    using C = Compute<T>;
    for (int64_t c = 0; c < channels; ++c) {
      const double variance = static_cast<double>(static_cast<C>(v[c])) + epsilon, inverse = 1 / std::sqrt(variance);
      const double factor = scales ? inverse * static_cast<double>(static_cast<C>(gamma[c])) : inverse;
      double sum = 0, product = 0;
      for (int64_t i = c; i < rows * channels; i += channels) {
        const auto slope = static_cast<double>(static_cast<C>(dy[i]));
        sum += slope;
        product += slope * static_cast<double>(static_cast<C>(t[i]) - static_cast<C>(m[c]));
        dx[i] = static_cast<T>(static_cast<C>(slope * factor));
      }
      dm[c] = static_cast<T>(static_cast<C>(-sum * factor));
      dv[c] = static_cast<T>(static_cast<C>(-0.5 * product * factor / variance));
      db[c] = static_cast<T>(static_cast<C>(sum));
      dg[c] = static_cast<T>(static_cast<C>(scales ? product * inverse : 0));
    }
  }
};

}  // namespace

void AddLocalNorm(sdk::KernelTable& k) {
  constexpr auto kStatisticTypes = sdk::Types<sdk::half, float, double>();
  k.Add<LrnForward>("LRN", k16Bit + sdk::Types<float>()).Class(WEIR_CLASS_REDUCE, 30);
  k.Add<LrnGrad>("LRNGrad", k16Bit + sdk::Types<float>()).Class(WEIR_CLASS_REDUCE, 60);
  k.Add<GlobalNormalisation>("BatchNormWithGlobalNormalization", kStatisticTypes).Class(WEIR_CLASS_ELEMENTWISE, 6);
  k.Add<GlobalNormalisationGrad>("BatchNormWithGlobalNormalizationGrad", kStatisticTypes).Class(WEIR_CLASS_REDUCE, 8);
}

}  // namespace weir::kernels_eigen
