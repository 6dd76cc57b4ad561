// Random numbers of several parameters that broadcast, the same as TensorFlow's for a seed: binomial ones, and normal
// ones between two bounds.
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/seeds.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Error;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// The type that TensorFlow computes in: half rounds after each operation.
template <class T>
struct RoundedType {
  using Type = T;
};
template <>
struct RoundedType<sdk::half> {
  using Type = Eigen::half;
};
template <class T>
using Rounding = typename RoundedType<T>::Type;

/// Parameters of kCount tensors, operands 2 and on, that broadcast to the end of the output's shape. One combination of
/// them is a batch, whose samples have the distance `batches` in the output.
template <size_t kCount>
struct BatchPlan {
  int64_t batches = 1, samples = 1;
  std::array<std::vector<int64_t>, kCount> places;  // of each batch in each parameter

  int32_t Plan(const Prep& prep, std::string_view names) {
    if (const int32_t code = CheckSeed(prep, 1); code != WEIR_OK) return code;
    std::vector<int64_t> inner, dims;
    if (const int32_t code = Broadcast(prep, names, &inner); code != WEIR_OK) return code;
    if (prep.shape(0).rank != 1) {
      return prep.error().InvalidArgument("Input shape should be a vector, got shape: ", prep.shape(0));
    }
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    const bool ends = inner.size() <= dims.size() && std::equal(inner.rbegin(), inner.rend(), dims.rbegin());
    if (!ends) return prep.error().InvalidArgument("Shape passed in must end with broadcasted shape.");
    if (const int32_t code = ExpectOutput(prep, 0, dims); code != WEIR_OK) return code;
    if (sdk::SizeOf(prep.output(0).shape) == 0) {
      batches = samples = 0;
      return WEIR_OK;
    }
    for (size_t i = 0; i < dims.size(); ++i) (i < dims.size() - inner.size() ? samples : batches) *= dims[i];
    for (size_t p = 0; p < kCount; ++p) places[p] = PlacesOf(prep.shape(static_cast<uint32_t>(p + 2)), inner);
    return WEIR_OK;
  }

 private:
  static int32_t Broadcast(const Prep& prep, std::string_view names, std::vector<int64_t>* inner) {
    for (uint32_t p = 0; p < kCount; ++p) {
      const weir_shape& shape = prep.shape(p + 2);
      if (shape.rank > inner->size()) inner->insert(inner->begin(), shape.rank - inner->size(), 1);
    }
    for (uint32_t p = 0; p < kCount; ++p) {
      const weir_shape& shape = prep.shape(p + 2);
      for (uint32_t d = 0; d < shape.rank; ++d) {
        int64_t& extent = (*inner)[inner->size() - shape.rank + d];
        if (shape.dims[d] == 1 || shape.dims[d] == extent) continue;
        if (extent != 1) return Incompatible(prep, names);
        extent = shape.dims[d];
      }
    }
    return WEIR_OK;
  }

  static int32_t Incompatible(const Prep& prep, std::string_view names) {
    if constexpr (kCount == 2) {
      return prep.error().InvalidArgument(names, " must have compatible batch dimensions: ", prep.shape(2), " vs. ",
                                          prep.shape(3));
    } else {
      return prep.error().InvalidArgument(names, " must have compatible batch dimensions: ", prep.shape(2), " vs. ",
                                          prep.shape(3), " vs. ", prep.shape(4), " vs. ", prep.shape(5));
    }
  }

  std::vector<int64_t> PlacesOf(const weir_shape& shape, const std::vector<int64_t>& inner) const {
    std::vector<int64_t> steps = StepsOf(DimsOf(shape));
    for (uint32_t d = 0; d < shape.rank; ++d) {
      if (shape.dims[d] == 1) steps[d] = 0;
    }
    std::vector<int64_t> at(static_cast<size_t>(batches), 0);
    for (int64_t b = 0; b < batches; ++b) {
      int64_t rest = b;
      for (size_t d = inner.size(), k = shape.rank; k-- > 0;) {
        --d;
        at[static_cast<size_t>(b)] += rest % inner[d] * steps[k];
        rest /= inner[d];
      }
    }
    return at;
  }
};

/// Uniform numbers of double, the second of a block first.
class UniformPairs {
 public:
  UniformPairs(const Philox& generator, uint64_t first) : generator_(generator), next_(first) {}
  double Next() {
    if (left_ == 0) {
      uint32_t words[Philox::kWords];
      generator_.Blocks<1>(next_++, words);
      Uniform(words, numbers_);
      left_ = 2;
    }
    return numbers_[--left_];
  }

 private:
  Philox generator_;
  uint64_t next_;
  double numbers_[2] = {};
  int left_ = 0;
};

/// The number of geometric variables whose sum stays within `count`.
double ByInversion(double count, double p, UniformPairs uniforms) {
  double sum = 0, number = 0;
  for (;;) {
    sum += std::ceil(std::log(uniforms.Next()) / std::log1p(-p));
    if (sum > count) return number;
    ++number;
  }
}

/// log k! - (log(sqrt(2 pi)) + (k + 1/2) log(k + 1) - (k + 1)).
double StirlingRest(double k) {
  static constexpr double kSmall[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                      0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                      0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kSmall[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/// W. Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS.
double ByRejection(double count, double p, UniformPairs uniforms) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
  const double tight = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  for (;;) {
    const double u = uniforms.Next() - 0.5;
    double v = uniforms.Next();
    const double distance = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / distance + b) * u + c);
    if (distance >= 0.07 && v <= tight) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (distance * distance) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + StirlingRest(mode) +
                         StirlingRest(count - mode) - StirlingRest(k) - StirlingRest(count - k);
    if (v <= bound) return k;
  }
}

/// Integers are 0 for what is no number, as in TensorFlow, and the smallest for numbers that they cannot hold, as
/// x86-64 converts.
template <class U>
U FromDouble(double x) {
  if constexpr (std::is_same_v<U, int32_t> || std::is_same_v<U, int64_t>) {
    if (x != x) return 0;
    constexpr double kEnd = std::is_same_v<U, int32_t> ? 2147483648.0 : 9223372036854775808.0;
    return x > -kEnd - 1 && x < kEnd ? static_cast<U>(x) : std::numeric_limits<U>::min();
  } else {
    return static_cast<U>(static_cast<sdk::Compute<U>>(x));
  }
}

struct StatelessBinomial : BatchPlan<2> {
  int32_t Prepare(const Prep& prep) { return Plan(prep, "counts and probs"); }

  template <class T, class U>
  void Run(HostIntegers, SeedWords seed, View<const T> counts, View<const T> probabilities, View<U> output) const {
    using C = Rounding<T>;
    const Philox generator = FromSeed(seed);
    for (int64_t b = 0; b < batches; ++b) {
      const C count = std::bit_cast<C>(counts[places[0][static_cast<size_t>(b)]]);
      const C p = std::bit_cast<C>(probabilities[places[1][static_cast<size_t>(b)]]);
      const auto whole = static_cast<double>(count);
      // Counts of what is rarer; the rest of `count` is the other.
      const bool rare = p <= C(0.5);
      const C portion = rare ? p : C(1) - p;
      const bool often = count * portion >= C(10);
      for (int64_t i = 0; i < samples; ++i) {
        const auto number = static_cast<uint64_t>(b * samples + i);
        double drawn;
        if (whole <= 0 || p <= C(0)) {
          drawn = 0;
        } else if (p >= C(1)) {
          drawn = whole;
        } else if (p != p || whole != whole) {
          drawn = std::numeric_limits<double>::quiet_NaN();
        } else {
          const auto wide = static_cast<double>(portion);
          drawn = often ? ByRejection(whole, wide, {generator, number * 256})
                        : ByInversion(whole, wide, {generator, number * 42});
          if (!rare) drawn = whole - drawn;
        }
        output[i * batches + b] = FromDouble<U>(drawn);
      }
    }
  }
};

/// A normal number between two bounds, in units of the deviation from the mean. C. P. Robert, "Simulation of truncated
/// normal variables" (1995).
template <class T>
class Truncated {
 public:
  using C = Rounding<T>;
  static constexpr int kMostTries = 1000;
  static constexpr int kBlock = kPerBlock<T>;

  Truncated(C low, C high) : low_(low), high_(high) {
    using Eigen::numext::exp, Eigen::numext::sqrt;
    const C root = sqrt(low * low + C(4)), reach(1.3);
    const C cutoff = C(2) * exp(C(0.5) + (low * (low - root)) / C(4)) / (low + root);
    if ((low < -reach && high >= C(0)) || (high > reach && low <= C(0))) {
      proposal_ = kNormal;
    } else {
      proposal_ = high - low < cutoff ? kUniform : kExponential;
    }
    alpha_ = (low + sqrt(low * low + C(4))) / C(2);
  }

  /// `n` numbers from the blocks that begin with *next, each given to `take`; the error's text, or null.
  template <class Take>
  const char* Draw(const Philox& generator, uint64_t* next, int64_t n, Take&& take) const {
    int tries = 0;
    for (int64_t done = 0; done < n;) {
      C numbers[kBlock];
      bool fits[kBlock];
      const int found = Propose(generator, next, numbers, fits);
      for (int i = 0; i < found && done < n; ++i) {
        if (fits[i]) {
          take(done++, numbers[i]);
          tries = 0;
        } else if (++tries > kMostTries - (proposal_ == kNormal ? 0 : 1)) {
          return kFailures[proposal_];
        }
      }
    }
    return nullptr;
  }

 private:
  enum Proposal { kNormal, kUniform, kExponential };
  static constexpr const char* kFailures[] = {
      "TruncatedNormal randn rejection sampler failed to accept a sample.",
      "TruncatedNormal uniform rejection sampler failed to  accept a sample.",
      "TruncatedNormal exponential distribution rejection sampler failed to accept a sample."};

  template <class Distribution>
  static void Block(const Philox& generator, uint64_t* next, Distribution&& distribution, C* to) {
    uint32_t words[Philox::kWords];
    T drawn[kBlock];
    generator.Blocks<1>((*next)++, words);
    distribution(words, drawn);
    for (int i = 0; i < kBlock; ++i) to[i] = std::bit_cast<C>(drawn[i]);
  }
  static void UniformBlock(const Philox& generator, uint64_t* next, C* to) {
    Block(
        generator, next, [](const uint32_t* words, T* drawn) { Uniform(words, drawn); }, to);
  }

  int Propose(const Philox& generator, uint64_t* next, C* numbers, bool* fits) const {
    using Eigen::numext::exp, Eigen::numext::log;
    C drawn[kBlock], chance[kBlock];
    if (proposal_ == kNormal) {
      Block(
          generator, next, [](const uint32_t* words, T* to) { Normal(words, to); }, numbers);
      for (int i = 0; i < kBlock; ++i) fits[i] = numbers[i] >= low_ && numbers[i] <= high_;
      return kBlock;
    }
    UniformBlock(generator, next, drawn);
    if (proposal_ == kUniform) {
      const C peak = low_ < C(0) ? C(0) : low_ * low_, width = high_ - low_;
      UniformBlock(generator, next, chance);
      for (int i = 0; i < kBlock; ++i) {
        numbers[i] = drawn[i] * width + low_;
        fits[i] = chance[i] <= exp((peak - numbers[i] * numbers[i]) / C(2));
      }
      return kBlock;
    }
    for (int i = 0; i < kBlock / 2; ++i) {
      const C z = -log(drawn[2 * i]) / alpha_ + low_;
      const C x = low_ < alpha_ ? alpha_ - z : low_ - alpha_;
      numbers[i] = z;
      fits[i] = drawn[2 * i + 1] <= exp(-x * x / C(2)) && z < high_;
    }
    return kBlock / 2;
  }

  C low_, high_, alpha_;
  Proposal proposal_ = kNormal;
};

/// TensorFlow divides many numbers between its threads, each with blocks of its own; these are the numbers of one
/// thread.
struct StatelessTruncated : BatchPlan<4> {
  int32_t Prepare(const Prep& prep) { return Plan(prep, "means, stddevs, minvals, maxvals"); }

  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, SeedWords seed, View<const T> means, View<const T> deviations,
              View<const T> lows, View<const T> highs, View<T> output) const {
    using C = Rounding<T>;
    using Eigen::numext::isfinite, Eigen::numext::isinf;
    const Philox generator = FromSeed(seed);
    uint64_t next = 0;
    for (int64_t b = 0; b < batches; ++b) {
      const auto parameter = [&](size_t p, View<const T> of) {
        return std::bit_cast<C>(of[places[p][static_cast<size_t>(b)]]);
      };
      const C mean = parameter(0, means);
      C deviation = parameter(1, deviations), low = parameter(2, lows), high = parameter(3, highs);
      if (!(deviation > C(0) && low < high && (isfinite(low) || isfinite(high)))) {
        return env.error().InvalidArgument("Invalid parameters");
      }
      if ((isinf(low) && low < C(0)) || high < mean) {  // mirrored, so that a bound on one side is the lower one
        std::swap(low, high);
        deviation = -deviation;
      }
      const Truncated<T> distribution((low - mean) / deviation, (high - mean) / deviation);
      const char* const failure = distribution.Draw(generator, &next, samples, [&](int64_t i, C drawn) {
        output[i * batches + b] = std::bit_cast<T>(static_cast<C>(drawn * deviation + mean));
      });
      // The parameters' fault, though TensorFlow's code is Internal.
      if (failure != nullptr) return env.error().InvalidArgument(failure);
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddParameterDraws(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr sdk::Types<float, double> kReals;
#else
  constexpr sdk::Types<sdk::half, float, double> kReals;
#endif
  k.Add<StatelessBinomial>("StatelessRandomBinomial", sdk::Attr("T", kReals), sdk::Attr("dtype", kReals + kIndex))
      .Class(WEIR_CLASS_RNG, 100);
  k.Add<StatelessTruncated>("StatelessParameterizedTruncatedNormal", sdk::Attr("dtype", kReals))
      .Class(WEIR_CLASS_RNG, 60);
}

}  // namespace weir::kernels_eigen
