// Batch normalisation with its gradients, and layer normalisation: a block of threads for each channel or row.
#include <cmath>
#include <limits>

#include "plugins/functors/batch_norm_plans.h"
#include "plugins/functors/given_statistics.h"
#include "plugins/functors/layer_norm_plan.h"
#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::ChannelPlan;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::View;

constexpr int kNormThreads = 256;

/// The sum of term(i) over i < n, in shared[0].
template <class Block, class Term>
WEIR_GPU_FN void SumInBlock(Block& block, double* shared, int64_t n, const Term& term) {
  block.ForEachThread([&](int t) {
    double total = 0;
    for (int64_t i = t; i < n; i += block.threads()) total += term(i);
    shared[t] = total;
  });
  for (int half = block.threads() / 2; half > 0; half /= 2) {
    block.ForEachThread([&](int t) {
      if (t < half) shared[t] += shared[t + half];
    });
  }
}

/// Images as [outer, channels, inner].
struct ChannelShape {
  int64_t outer, channels, inner;
  Divider divider;
  explicit ChannelShape(const ChannelPlan& plan)
      : outer(plan.outer),
        channels(plan.channels),
        inner(plan.inner),
        divider(Divider::For(plan.outer * plan.channels * plan.inner)) {}
  /// Element i of a channel.
  WEIR_HD int64_t At(int64_t channel, int64_t i) const {
    if (inner == 1) return i * channels + channel;
    const int64_t place = divider.Split(i, inner);
    return (i * channels + channel) * inner + place;
  }
  WEIR_HD int64_t ChannelOf(int64_t i) const {
    if (inner > 1) divider.Split(i, inner);
    return divider.Split(i, channels);
  }
};

/// Mean and variance of each channel, and what the op gives of them.
template <class S>
struct MomentsWork {
  Ptr<const char> x;
  Ptr<const float> given_mean, given_variance;
  Ptr<float> mean, variance, used_mean, used_variance;
  ChannelShape shape;
  float average;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    double* const shared = block.template Shared<double>(0);
    double* const centre = shared + kNormThreads;
    const int64_t channel = block.index(), n = shape.outer * shape.inner;
    const char* const from = x.get();
    SumInBlock(block, shared, n,
               [&](int64_t i) { return static_cast<double>(storage.Load(from, shape.At(channel, i))); });
    block.ForEachThread([&](int t) {
      if (t == 0) *centre = shared[0] / static_cast<double>(n);
    });
    SumInBlock(block, shared, n, [&](int64_t i) {
      const double distance = static_cast<double>(storage.Load(from, shape.At(channel, i))) - *centre;
      return distance * distance;
    });
    block.ForEachThread([&](int t) {
      if (t == 0) Give(channel, *centre, shared[0], static_cast<double>(n));
    });
  }
  WEIR_GPU_FN void Give(int64_t c, double centre, double squares, double n) const {
    const double unbiased = squares / (n > 2 ? n - 1 : 1.0);
    used_mean[c] = static_cast<float>(centre);
    used_variance[c] = static_cast<float>(squares / n);
    float m = static_cast<float>(centre), v = static_cast<float>(unbiased);
    if (average != 1) {
      m = (1 - average) * given_mean[c] + average * m;
      v = (1 - average) * given_variance[c] + average * v;
    }
    mean[c] = m;
    variance[c] = v;
  }
};

/// In inference: all of them are the given ones. Of an empty batch: NaN, and zeros for the gradient.
struct GivenMoments {
  Ptr<const float> given_mean, given_variance;
  Ptr<float> mean, variance, used_mean, used_variance;
  bool empty;
  WEIR_GPU_FN void operator()(int64_t c) const {
    const float none = std::numeric_limits<float>::quiet_NaN();
    mean[c] = empty ? none : given_mean[c];
    variance[c] = empty ? none : given_variance[c];
    used_mean[c] = empty ? 0 : given_mean[c];
    used_variance[c] = empty ? 0 : given_variance[c];
  }
};

template <class S>
struct NormaliseWork {
  Ptr<const char> x;
  Ptr<char> y;
  Ptr<const float> scale, offset, mean, variance;
  ChannelShape shape;
  float epsilon;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t c = shape.ChannelOf(i);
    const float factor = scale[c] / std::sqrt(variance[c] + epsilon);
    storage.Store(y.get(), i, (storage.Load(x.get(), i) - mean[c]) * factor + offset[c]);
  }
};

/// half, bfloat16 and float.
template <class Body>
void WithImages(uint32_t dtype, Body&& body) {
  if (dtype == WEIR_FLOAT32) return body(Exact<float>());
  if constexpr (!kShort) body(Float16{dtype == WEIR_BFLOAT16});
}

struct BatchNorm : functors::BatchNormPlan<ChannelPlan> {
  int32_t Prepare(sdk::Prep& prep) { return Plan(prep); }
  int32_t Run(Env& env, AnyInput x, View<const float> scale, View<const float> offset, View<const float> given_mean,
              View<const float> given_variance, AnyOutput y, View<float> mean, View<float> variance,
              View<float> used_mean, View<float> used_variance) const {
    const ChannelShape shape(layout);
    int32_t code = WEIR_OK;
    WithImages(x.dtype(), [&](auto storage) {
      using S = decltype(storage);
      if (training && !layout.empty) {
        code =
            LaunchBlocks(env, layout.channels, kNormThreads, (kNormThreads + 1) * sizeof(double),
                         MomentsWork<S>{From(x), given_mean.data(), given_variance.data(), mean.data(), variance.data(),
                                        used_mean.data(), used_variance.data(), shape, average, storage});
      } else {
        code = Launch(env, layout.channels,
                      GivenMoments{given_mean.data(), given_variance.data(), mean.data(), variance.data(),
                                   used_mean.data(), used_variance.data(), layout.empty});
      }
      if (code != WEIR_OK || layout.empty) return;
      code = Launch(env, y.size(),
                    NormaliseWork<S>{From(x), To(y), scale.data(), offset.data(), used_mean.data(),
                                     used_variance.data(), shape, epsilon, storage});
    });
    return code;
  }
};
struct BatchNormV3 : BatchNorm {
  int32_t Run(Env& env, AnyInput x, View<const float> scale, View<const float> offset, View<const float> given_mean,
              View<const float> given_variance, AnyOutput y, View<float> mean, View<float> variance,
              View<float> used_mean, View<float> used_variance, View<float>) const {
    return BatchNorm::Run(env, x, scale, offset, given_mean, given_variance, y, mean, variance, used_mean,
                          used_variance);
  }
};

/// The sums of a channel over dy and over dy (x - mean), as the gradients of offset and scale.
template <class S>
struct GradientSums {
  Ptr<const char> dy, x;
  Ptr<const float> mean, variance;
  Ptr<float> dscale, doffset;
  ChannelShape shape;
  float epsilon;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    double* const shared = block.template Shared<double>(0);
    double* const sum = shared + kNormThreads;
    const int64_t c = block.index(), n = shape.outer * shape.inner;
    const double centre = mean[c];
    SumInBlock(block, shared, n,
               [&](int64_t i) { return static_cast<double>(storage.Load(dy.get(), shape.At(c, i))); });
    block.ForEachThread([&](int t) {
      if (t == 0) *sum = shared[0];
    });
    SumInBlock(block, shared, n, [&](int64_t i) {
      const int64_t at = shape.At(c, i);
      return static_cast<double>(storage.Load(dy.get(), at)) *
             (static_cast<double>(storage.Load(x.get(), at)) - centre);
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      const double inverse = 1 / std::sqrt(static_cast<double>(variance[c]) + epsilon);
      dscale[c] = static_cast<float>(inverse * shared[0]);
      doffset[c] = static_cast<float>(*sum);
    });
  }
};

template <class S>
struct NormGradWork {
  Ptr<const char> dy, x;
  Ptr<char> dx;
  Ptr<const float> scale, mean, variance, dscale, doffset;
  ChannelShape shape;
  float epsilon;
  bool training;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t c = shape.ChannelOf(i);
    const double inverse = 1 / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    const float factor = static_cast<float>(scale[c] * inverse), slope = storage.Load(dy.get(), i);
    if (!training) return storage.Store(dx.get(), i, factor * slope);
    const auto n = static_cast<double>(shape.outer * shape.inner);
    const float constant = static_cast<float>(doffset[c] / n);
    const float per_distance = static_cast<float>(inverse * dscale[c] / n);
    const float distance = storage.Load(x.get(), i) - mean[c];
    storage.Store(dx.get(), i, factor * (slope - constant - distance * per_distance));
  }
};

struct BatchNormGrad : functors::BatchNormGradPlan<ChannelPlan> {
  int32_t Prepare(sdk::Prep& prep) { return Plan(prep); }
  int32_t Run(Env& env, AnyInput dy, AnyInput x, View<const float> scale, View<const float> mean,
              View<const float> variance, AnyOutput dx, View<float> dscale, View<float> doffset, View<float>,
              View<float>) const {
    const ChannelShape shape(layout);
    int32_t code = WEIR_OK;
    WithImages(x.dtype(), [&](auto storage) {
      using S = decltype(storage);
      code = LaunchBlocks(env, layout.channels, kNormThreads, (kNormThreads + 1) * sizeof(double),
                          GradientSums<S>{From(dy), From(x), mean.data(), variance.data(), dscale.data(),
                                          doffset.data(), shape, epsilon, storage});
      if (code != WEIR_OK || layout.empty) return;
      code = Launch(env, dx.size(),
                    NormGradWork<S>{From(dy), From(x), To(dx), scale.data(), mean.data(), variance.data(),
                                    dscale.data(), doffset.data(), shape, epsilon, training, storage});
    });
    return code;
  }
};
struct BatchNormGradV3 : BatchNormGrad {
  int32_t Run(Env& env, AnyInput dy, AnyInput x, View<const float> scale, View<const float> mean,
              View<const float> variance, View<const float>, AnyOutput dx, View<float> dscale, View<float> doffset,
              View<float> fourth, View<float> fifth) const {
    return BatchNormGrad::Run(env, dy, x, scale, mean, variance, dx, dscale, doffset, fourth, fifth);
  }
};

template <class S>
struct LayerNormWork {
  Ptr<const char> x, gamma, beta;
  Ptr<char> y;
  int64_t columns;
  double epsilon;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    using C = typename S::C;
    double* const shared = block.template Shared<double>(0);
    C* const centre = block.template Shared<C>(kNormThreads * sizeof(double));
    const int64_t first = block.index() * columns;
    const auto n = static_cast<double>(columns);
    SumInBlock(block, shared, columns,
               [&](int64_t i) { return static_cast<double>(storage.Load(x.get(), first + i)); });
    block.ForEachThread([&](int t) {
      if (t == 0) *centre = static_cast<C>(shared[0] / n);
    });
    SumInBlock(block, shared, columns, [&](int64_t i) {
      const double distance = static_cast<double>(storage.Load(x.get(), first + i) - *centre);
      return distance * distance;
    });
    block.ForEachThread([&](int t) {
      const C factor = C(1) / std::sqrt(static_cast<C>(shared[0] / n) + static_cast<C>(epsilon));
      for (int64_t i = t; i < columns; i += block.threads()) {
        const C distance = storage.Load(x.get(), first + i) - *centre;
        storage.Store(y.get(), first + i,
                      distance * factor * storage.Load(gamma.get(), i) + storage.Load(beta.get(), i));
      }
    });
  }
};

struct LayerNormOfRows : functors::LayerNormPlan {
  int32_t Run(Env& env, AnyInput x, AnyInput gamma, AnyInput beta, AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kWide>(x.dtype(), [&](auto storage) {
      code = LaunchBlocks(
          env, rows, columns >= kNormThreads ? kNormThreads : 64, kNormThreads * sizeof(double) + 16,
          LayerNormWork<decltype(storage)>{From(x), From(gamma), From(beta), To(y), columns, epsilon, storage});
    });
    return code;
  }
};

/// Batch normalisation of old graphs, whose statistics are given, with the channels last.
template <class S>
struct GivenNormWork {
  using C = typename S::C;
  Ptr<const char> x, mean, variance, beta, gamma;
  Ptr<char> y;
  int64_t channels;
  C epsilon;
  bool scales;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t c = i % channels;
    const C inverse = C(1) / std::sqrt(storage.Load(variance.get(), c) + epsilon);
    const C factor = scales ? inverse * storage.Load(gamma.get(), c) : inverse;
    storage.Store(y.get(), i,
                  (storage.Load(x.get(), i) - storage.Load(mean.get(), c)) * factor + storage.Load(beta.get(), c));
  }
};
struct GivenNorm : functors::GivenStatistics {
  int32_t Prepare(sdk::Prep& prep) {
    prep.MayAlias(0, 0);
    return Plan(prep, {"mean", "var", "beta", "gamma"});
  }
  int32_t Run(Env& env, AnyInput x, AnyInput mean, AnyInput variance, AnyInput beta, AnyInput gamma,
              AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(x.dtype(), [&](auto storage) {
      using S = decltype(storage);
      code = Launch(env, rows * channels,
                    GivenNormWork<S>{From(x), From(mean), From(variance), From(beta), From(gamma), To(y), channels,
                                     static_cast<typename S::C>(epsilon), scales, storage});
    });
    return code;
  }
};

/// A block of threads for each channel.
template <class S>
struct GivenNormGradWork {
  using C = typename S::C;
  Ptr<const char> x, mean, variance, gamma, dy;
  Ptr<char> dx, dmean, dvariance, dbeta, dgamma;
  int64_t rows, channels;
  double epsilon;
  bool scales;
  S storage;
  WEIR_GPU_FN double At(const Ptr<const char>& from, int64_t i) const {
    return static_cast<double>(storage.Load(from.get(), i));
  }
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    double* const shared = block.template Shared<double>(0);
    double* const sum = shared + kNormThreads;
    const int64_t c = block.index();
    const double spread = At(variance, c) + epsilon, inverse = 1 / std::sqrt(spread);
    const double factor = scales ? inverse * At(gamma, c) : inverse;
    SumInBlock(block, shared, rows, [&](int64_t row) { return At(dy, row * channels + c); });
    block.ForEachThread([&](int t) {
      if (t == 0) *sum = shared[0];
    });
    const C centre = storage.Load(mean.get(), c);
    SumInBlock(block, shared, rows, [&](int64_t row) {
      const int64_t i = row * channels + c;
      return At(dy, i) * static_cast<double>(storage.Load(x.get(), i) - centre);
    });
    block.ForEachThread([&](int t) {
      for (int64_t row = t; row < rows; row += block.threads()) {
        const int64_t i = row * channels + c;
        storage.Store(dx.get(), i, static_cast<C>(At(dy, i) * factor));
      }
      if (t != 0) return;
      storage.Store(dmean.get(), c, static_cast<C>(-*sum * factor));
      storage.Store(dvariance.get(), c, static_cast<C>(-0.5 * shared[0] * factor / spread));
      storage.Store(dbeta.get(), c, static_cast<C>(*sum));
      storage.Store(dgamma.get(), c, static_cast<C>(scales ? shared[0] * inverse : 0));
    });
  }
};
struct GivenNormGrad : functors::GivenStatistics {
  int32_t Prepare(sdk::Prep& prep) { return PlanGradient(prep); }
  int32_t Run(Env& env, AnyInput x, AnyInput mean, AnyInput variance, AnyInput gamma, AnyInput dy, AnyOutput dx,
              AnyOutput dmean, AnyOutput dvariance, AnyOutput dbeta, AnyOutput dgamma) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(x.dtype(), [&](auto storage) {
      code = LaunchBlocks(env, channels, kNormThreads, (kNormThreads + 1) * sizeof(double),
                          GivenNormGradWork<decltype(storage)>{From(x), From(mean), From(variance), From(gamma),
                                                               From(dy), To(dx), To(dmean), To(dvariance), To(dbeta),
                                                               To(dgamma), rows, channels, epsilon, scales, storage});
    });
    return code;
  }
};

}  // namespace

void AddNormalisation(sdk::KernelTable& k) {
  constexpr uint64_t kImages = k16BitBits | DTypes({WEIR_FLOAT32});
  const auto add = [](sdk::Kernel& kernel, uint64_t dtypes, double flops) -> sdk::Kernel& {
    return kernel.Restrict("T", dtypes).Class(WEIR_CLASS_REDUCE, flops);
  };
  add(k.Add<BatchNorm>("FusedBatchNorm"), DTypes({WEIR_FLOAT32}), 7);
  add(k.Add<BatchNorm>("FusedBatchNormV2"), kImages, 7).Restrict("U", {WEIR_FLOAT32});
  add(k.Add<BatchNormV3>("FusedBatchNormV3"), kImages, 7).Restrict("U", {WEIR_FLOAT32});
  add(k.Add<BatchNormGrad>("FusedBatchNormGrad"), DTypes({WEIR_FLOAT32}), 9);
  add(k.Add<BatchNormGrad>("FusedBatchNormGradV2"), kImages, 9).Restrict("U", {WEIR_FLOAT32});
  add(k.Add<BatchNormGradV3>("FusedBatchNormGradV3"), kImages, 9).Restrict("U", {WEIR_FLOAT32});
  add(k.Add<LayerNormOfRows>("_LayerNorm"), kFloatBits, 8);
  constexpr uint64_t kGiven = kImages & ~DTypes({WEIR_BFLOAT16});
  add(k.Add<GivenNorm>("BatchNormWithGlobalNormalization"), kGiven, 6);
  add(k.Add<GivenNormGrad>("BatchNormWithGlobalNormalizationGrad"), kGiven, 8);
}

}  // namespace weir::gpu
