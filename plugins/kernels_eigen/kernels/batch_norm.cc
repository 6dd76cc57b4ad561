// Fused batch normalisation and its gradient, in training and inference.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/functors/batch_norm_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Prep;
using sdk::Scratch;
using sdk::View;

constexpr int64_t kChannelGrain = 16;         // channels of a tile, at least: one cache line of floats
constexpr int64_t kBlockElements = 4 * 1024;  // summed in float before they are added in double
constexpr int kLaneCount = 16;

struct ChannelLayout : functors::ChannelPlan {
  /// Splits calls by channels.
  void Tile(Prep& prep) const {
    const int64_t grains = channels / (inner == 1 ? kChannelGrain : 1);
    if (!empty) prep.Tiles(static_cast<uint64_t>(std::min(grains, prep.size(0) / sdk::internal::kGrain)));
  }
  /// The channels of this call.
  std::pair<int64_t, int64_t> Range(Env& env) const {
    if (inner != 1) return env.Range(channels);
    const auto [begin, end] = env.Range((channels + kChannelGrain - 1) / kChannelGrain);
    return {begin * kChannelGrain, std::min(end * kChannelGrain, channels)};
  }
};

/// The sum of f(i) over [0, n) in float, with independent partial sums.
template <class F>
float LaneSum(int64_t n, F f) {
  float lanes[kLaneCount] = {};
  int64_t i = 0;
  for (; i + kLaneCount <= n; i += kLaneCount) {
    for (int k = 0; k < kLaneCount; ++k) lanes[k] += f(i + k);
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (; i < n; ++i) sum += f(i);
  return sum;
}

/// Mean and summed squared distance from it, over parts that are merged (Chan and others, 1983).
struct Moments {
  double mean = 0, squares = 0;

  void Merge(double count, double added, double part_mean, double part_squares) {
    const double distance = part_mean - mean, share = added / (count + added);
    mean += distance * share;
    squares += part_squares + distance * distance * count * share;
  }
};

/// Per channel: what normalisation subtracts, multiplies by and adds, and working memory.
struct ChannelSpace {
  Moments* moments;
  float *shift, *factor, *sums, *products;

  static constexpr uint64_t kBytes = sizeof(Moments) + 4 * sizeof(float);
  ChannelSpace(char* memory, int64_t channels)
      : moments(reinterpret_cast<Moments*>(memory)),
        shift(reinterpret_cast<float*>(moments + channels)),
        factor(shift + channels),
        sums(factor + channels),
        products(sums + channels) {}
};

/// The moments of channels [begin, end).
template <class T>
void FindMoments(const ChannelLayout& layout, int64_t begin, int64_t end, const T* x, const ChannelSpace& space) {
  Moments* moments = space.moments;
  std::fill(moments + begin, moments + end, Moments());
  if (layout.inner != 1) {
    for (int64_t c = begin; c < end; ++c) {
      double count = 0;
      for (int64_t i = 0; i < layout.outer; ++i) {
        const T* line = x + (i * layout.channels + c) * layout.inner;
        for (int64_t at = 0; at < layout.inner; at += kBlockElements) {
          const int64_t n = std::min(kBlockElements, layout.inner - at);
          const T* from = line + at;
          const auto added = static_cast<double>(n);
          const float mean = LaneSum(n, [=](int64_t k) { return static_cast<float>(from[k]); }) / static_cast<float>(n);
          const float squares = LaneSum(n, [=](int64_t k) {
            const float distance = static_cast<float>(from[k]) - mean;
            return distance * distance;
          });
          moments[c].Merge(count, added, mean, squares);
          count += added;
        }
      }
    }
    return;
  }
  const int64_t rows = std::max<int64_t>(16, kBlockElements / (end - begin));
  float *means = space.sums, *squares = space.products;
  for (int64_t first = 0; first < layout.outer; first += rows) {
    const int64_t n = std::min(rows, layout.outer - first);
    std::fill(means + begin, means + end, 0.0f);
    std::fill(squares + begin, squares + end, 0.0f);
    const T* block = x + first * layout.channels;
    for (int64_t i = 0; i < n; ++i) {
      const T* row = block + i * layout.channels;
      WEIR_INDEPENDENT
      for (int64_t c = begin; c < end; ++c) means[c] += static_cast<float>(row[c]);
    }
    for (int64_t c = begin; c < end; ++c) means[c] /= static_cast<float>(n);
    for (int64_t i = 0; i < n; ++i) {
      const T* row = block + i * layout.channels;
      WEIR_INDEPENDENT
      for (int64_t c = begin; c < end; ++c) {
        const float distance = static_cast<float>(row[c]) - means[c];
        squares[c] += distance * distance;
      }
    }
    for (int64_t c = begin; c < end; ++c) {
      moments[c].Merge(static_cast<double>(first), static_cast<double>(n), means[c], squares[c]);
    }
  }
}

/// y = f(channel, x…) for all elements of channels [begin, end), where `f` reads element i of its operands.
template <class T, class F>
void ForElements(const ChannelLayout& layout, int64_t begin, int64_t end, T* y, F f) {
  for (int64_t i = 0; i < layout.outer; ++i) {
    if (layout.inner == 1) {
      const int64_t row = i * layout.channels;
      WEIR_INDEPENDENT
      for (int64_t c = begin; c < end; ++c) y[row + c] = static_cast<T>(f(c, row + c));
      continue;
    }
    for (int64_t c = begin; c < end; ++c) {
      const int64_t line = (i * layout.channels + c) * layout.inner;
      WEIR_INDEPENDENT
      for (int64_t k = line; k < line + layout.inner; ++k) y[k] = static_cast<T>(f(c, k));
    }
  }
}

struct FusedBatchNorm : functors::BatchNormPlan<ChannelLayout> {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    layout.Tile(prep);
    if (!layout.empty) prep.Scratch(static_cast<uint64_t>(layout.channels) * ChannelSpace::kBytes);
    return WEIR_OK;
  }

  struct Statistics {
    float *mean, *variance;            // outputs
    float *used_mean, *used_variance;  // the reserve spaces
    const float *given_mean, *given_variance;
  };

  template <class T>
  void Normalise(Env& env, const T* x, const float* scale, const float* offset, const Statistics& s, T* y,
                 char* memory) const {
    const auto [begin, end] = layout.Range(env);
    if (begin >= end) return;
    const ChannelSpace space(memory, layout.channels);
    if (layout.empty) {  // as in TensorFlow
      constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
      std::fill(s.mean + begin, s.mean + end, kNan);
      std::fill(s.variance + begin, s.variance + end, kNan);
      std::fill(s.used_mean + begin, s.used_mean + end, 0.0f);
      std::fill(s.used_variance + begin, s.used_variance + end, 0.0f);
      return;
    }
    if (training) FindMoments(layout, begin, end, x, space);
    for (int64_t c = begin; c < end; ++c) {
      if (training) {
        SetStatistics(space.moments[c], s, c);
      } else {
        s.used_mean[c] = s.mean[c] = s.given_mean[c];
        s.used_variance[c] = s.variance[c] = s.given_variance[c];
      }
      space.shift[c] = s.used_mean[c];
      space.factor[c] = scale[c] / std::sqrt(s.used_variance[c] + epsilon);
    }
    const float *shift = space.shift, *factor = space.factor;
    ForElements(layout, begin, end, y,
                [=](int64_t c, int64_t i) { return (static_cast<float>(x[i]) - shift[c]) * factor[c] + offset[c]; });
  }

  void SetStatistics(const Moments& moments, const Statistics& s, int64_t c) const {
    const auto count = static_cast<double>(layout.Count());
    const double unbiased = moments.squares / std::max(count - 1, 1.0);
    s.used_mean[c] = static_cast<float>(moments.mean);
    s.used_variance[c] = static_cast<float>(moments.squares / count);
    s.mean[c] = static_cast<float>(moments.mean);
    s.variance[c] = static_cast<float>(unbiased);
    if (average == 1) return;
    s.mean[c] = (1 - average) * s.given_mean[c] + average * s.mean[c];
    s.variance[c] = (1 - average) * s.given_variance[c] + average * s.variance[c];
  }

  template <class T>
  void Run(Env& env, View<const T> x, View<const float> scale, View<const float> offset, View<const float> given_mean,
           View<const float> given_variance, View<T> y, View<float> mean, View<float> variance, View<float> used_mean,
           View<float> used_variance, Scratch<char> memory) const {
    const Statistics s{mean.data(),          variance.data(),   used_mean.data(),
                       used_variance.data(), given_mean.data(), given_variance.data()};
    Normalise(env, x.data(), scale.data(), offset.data(), s, y.data(), memory.data());
  }
};

/// With a third reserve space, which is empty.
struct FusedBatchNormV3 : FusedBatchNorm {
  template <class T>
  void Run(Env& env, View<const T> x, View<const float> scale, View<const float> offset, View<const float> given_mean,
           View<const float> given_variance, View<T> y, View<float> mean, View<float> variance, View<float> used_mean,
           View<float> used_variance, View<float>, Scratch<char> memory) const {
    FusedBatchNorm::Run<T>(env, x, scale, offset, given_mean, given_variance, y, mean, variance, used_mean,
                           used_variance, memory);
  }
};

/// Sums over a channel of dy, and of dy · (x − mean), into Moments::mean and Moments::squares.
template <class T>
void SumGradients(const ChannelLayout& layout, int64_t begin, int64_t end, const T* dy, const T* x, const float* mean,
                  const ChannelSpace& space) {
  Moments* totals = space.moments;
  std::fill(totals + begin, totals + end, Moments());
  if (layout.inner != 1) {
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t i = 0; i < layout.outer; ++i) {
        const int64_t line = (i * layout.channels + c) * layout.inner;
        for (int64_t at = 0; at < layout.inner; at += kBlockElements) {
          const int64_t n = std::min(kBlockElements, layout.inner - at);
          const T *slopes = dy + line + at, *values = x + line + at;
          totals[c].mean += LaneSum(n, [=](int64_t k) { return static_cast<float>(slopes[k]); });
          totals[c].squares += LaneSum(
              n, [=](int64_t k) { return static_cast<float>(slopes[k]) * (static_cast<float>(values[k]) - mean[c]); });
        }
      }
    }
    return;
  }
  const int64_t rows = std::max<int64_t>(16, kBlockElements / (end - begin));
  float *sums = space.sums, *products = space.products;
  for (int64_t first = 0; first < layout.outer; first += rows) {
    std::fill(sums + begin, sums + end, 0.0f);
    std::fill(products + begin, products + end, 0.0f);
    for (int64_t i = first; i < std::min(layout.outer, first + rows); ++i) {
      const T *slopes = dy + i * layout.channels, *values = x + i * layout.channels;
      WEIR_INDEPENDENT
      for (int64_t c = begin; c < end; ++c) {
        const auto slope = static_cast<float>(slopes[c]);
        sums[c] += slope;
        products[c] += slope * (static_cast<float>(values[c]) - mean[c]);
      }
    }
    for (int64_t c = begin; c < end; ++c) {
      totals[c].mean += sums[c];
      totals[c].squares += products[c];
    }
  }
}

struct FusedBatchNormGrad : functors::BatchNormGradPlan<ChannelLayout> {
  int32_t Prepare(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    layout.Tile(prep);
    if (!layout.empty) prep.Scratch(static_cast<uint64_t>(layout.channels) * ChannelSpace::kBytes);
    return WEIR_OK;
  }

  template <class T>
  void Run(Env& env, View<const T> dy, View<const T> x, View<const float> scale, View<const float> mean,
           View<const float> variance, View<T> dx, View<float> dscale, View<float> doffset, View<float>, View<float>,
           Scratch<char> memory) const {
    const auto [begin, end] = layout.Range(env);
    if (begin >= end) return;
    const ChannelSpace space(memory.data(), layout.channels);
    SumGradients(layout, begin, end, dy.data(), x.data(), mean.data(), space);
    const double count = layout.empty ? 1 : static_cast<double>(layout.Count());
    float *factor = space.factor, *constant = space.sums, *slope = space.products;
    for (int64_t c = begin; c < end; ++c) {
      const double inverse = 1 / std::sqrt(static_cast<double>(variance[c]) + epsilon);
      const Moments& total = space.moments[c];
      factor[c] = static_cast<float>(scale[c] * inverse);
      constant[c] = static_cast<float>(training ? total.mean / count : 0);
      slope[c] = static_cast<float>(training ? inverse * inverse * total.squares / count : 0);
      dscale[c] = static_cast<float>(inverse * total.squares);
      doffset[c] = static_cast<float>(total.mean);
    }
    const T *slopes = dy.data(), *values = x.data();
    const float* centre = mean.data();
    if (training) {
      ForElements(layout, begin, end, dx.data(), [=](int64_t c, int64_t i) {
        const float rest = static_cast<float>(slopes[i]) - constant[c];
        return factor[c] * (rest - (static_cast<float>(values[i]) - centre[c]) * slope[c]);
      });
    } else {
      ForElements(layout, begin, end, dx.data(),
                  [=](int64_t c, int64_t i) { return factor[c] * static_cast<float>(slopes[i]); });
    }
  }
};

struct FusedBatchNormGradV3 : FusedBatchNormGrad {
  template <class T>
  void Run(Env& env, View<const T> dy, View<const T> x, View<const float> scale, View<const float> mean,
           View<const float> variance, View<const float>, View<T> dx, View<float> dscale, View<float> doffset,
           View<float> fourth, View<float> fifth, Scratch<char> memory) const {
    FusedBatchNormGrad::Run<T>(env, dy, x, scale, mean, variance, dx, dscale, doffset, fourth, fifth, memory);
  }
};

}  // namespace

void AddBatchNorm(sdk::KernelTable& k) {
  constexpr auto kImageTypes = k16Bit + sdk::Types<float>();
  const auto add = [](sdk::Kernel& kernel, double flops) -> sdk::Kernel& {
    return kernel.Class(WEIR_CLASS_REDUCE, flops);
  };
  add(k.Add<FusedBatchNorm>("FusedBatchNorm", sdk::Types<float>()), 7);
  add(k.Add<FusedBatchNorm>("FusedBatchNormV2", kImageTypes), 7).Restrict("U", {WEIR_FLOAT32});
  add(k.Add<FusedBatchNormV3>("FusedBatchNormV3", kImageTypes), 7).Restrict("U", {WEIR_FLOAT32});
  add(k.Add<FusedBatchNormGrad>("FusedBatchNormGrad", sdk::Types<float>()), 9);
  add(k.Add<FusedBatchNormGrad>("FusedBatchNormGradV2", kImageTypes), 9).Restrict("U", {WEIR_FLOAT32});
  add(k.Add<FusedBatchNormGradV3>("FusedBatchNormGradV3", kImageTypes), 9).Restrict("U", {WEIR_FLOAT32});
}

}  // namespace weir::kernels_eigen
