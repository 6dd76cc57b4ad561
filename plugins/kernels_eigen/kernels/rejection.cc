// Random numbers by rejection, each from blocks of its own: RandomGamma, RandomPoisson, RandomPoissonV2, and those
// that follow from a seed.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/node_stream.h"
#include "plugins/kernels_eigen/kernels/seeds.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/sequence_families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// A parameter that rejects this often has no such distribution.
constexpr int kMostTries = 10000;

/// Uniform and normal numbers, two from each block; the second of a pair is used first.
class Pairs {
 public:
  Pairs(const Philox& generator, uint64_t first) : generator_(generator), next_(first) {}
  double NextUniform() {
    if (uniforms_ == 0) {
      Block();
      Uniform(words_, uniform_);
      uniforms_ = 2;
    }
    return uniform_[--uniforms_];
  }
  double NextNormal() {
    if (normals_ == 0) {
      Block();
      Normal(words_, normal_);
      normals_ = 2;
    }
    return normal_[--normals_];
  }

 private:
  void Block() { generator_.Blocks<1>(next_++, words_); }

  Philox generator_;
  uint64_t next_;
  uint32_t words_[Philox::kWords] = {};
  double uniform_[2] = {}, normal_[2] = {};
  int uniforms_ = 0, normals_ = 0;
};

/// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables" (2000).
class Gamma {
 public:
  Gamma(double alpha, double) : alpha_(alpha), small_(alpha < 1) {
    d_ = alpha + (small_ ? 2.0 / 3 : -1.0 / 3);
    c_ = 1.0 / 3 / std::sqrt(d_);
  }
  bool Draw(Pairs& pairs, double* sample) const {
    if (alpha_ == 1.0) {
      *sample = -std::log1p(-pairs.NextUniform());
      return true;
    }
    for (int i = 0; i < kMostTries; ++i) {
      const double x = pairs.NextNormal();
      double v = 1 + c_ * x;
      if (v <= 0) continue;
      v = v * v * v;
      const double u = pairs.NextUniform();
      if (!(u < 1 - 0.0331 * (x * x) * (x * x)) && !(std::log(u) < 0.5 * x * x + d_ * (1 - v + std::log(v)))) continue;
      *sample = d_ * v;
      if (small_) *sample *= std::pow(pairs.NextUniform(), 1 / alpha_);
      return true;
    }
    return false;
  }

 private:
  double alpha_;
  bool small_;
  double d_ = 0, c_ = 0;
};

/// Knuth's product of uniform numbers for small rates; for others W. Hörmann, "The transformed rejection method for
/// generating Poisson random variables" (1993).
class Poisson {
 public:
  Poisson(double rate, double largest) : rate_(rate), largest_(largest) {
    log_rate_ = std::log(rate);
    b_ = 0.931 + 2.53 * std::sqrt(rate);
    a_ = -0.059 + 0.02483 * b_;
    inverse_alpha_ = 1.1239 + 1.1328 / (b_ - 3.4);
  }
  bool Draw(Pairs& pairs, double* sample) const { return rate_ < 10 ? Knuth(pairs, sample) : Hormann(pairs, sample); }

 private:
  bool Knuth(Pairs& pairs, double* sample) const {
    const double bound = std::exp(-rate_);
    double product = 1;
    *sample = 0;
    for (int i = 0; i < kMostTries; ++i, *sample += 1) {
      product *= pairs.NextUniform();
      if (product <= bound && *sample <= largest_) return true;
    }
    return false;
  }
  bool Hormann(Pairs& pairs, double* sample) const {
    for (int i = 0; i < kMostTries; ++i) {
      const double u = pairs.NextUniform() - 0.5;
      const double v = pairs.NextUniform();
      const double shifted = 0.5 - std::fabs(u);
      const double k = std::floor((2 * a_ / shifted + b_) * u + rate_ + 0.43);
      if (k > largest_) continue;
      *sample = k;
      if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b_ - 2)) return true;
      if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
      const double s = std::log(v * inverse_alpha_ / (a_ / (shifted * shifted) + b_));
      int sign = 0;
      const double t = -rate_ + k * log_rate_ - lgamma_r(k + 1, &sign);
      if (s <= t) return true;
    }
    return false;
  }

  double rate_, largest_;
  double log_rate_ = 0, b_ = 0, a_ = 0, inverse_alpha_ = 0;
};

/// The largest number of type T.
template <class T>
double Largest() {
  if constexpr (std::is_same_v<T, sdk::half>) {
    return 65504;
  } else {
    return static_cast<double>(std::numeric_limits<T>::max());
  }
}

/// For each parameter `samples` numbers, each from the blocks of its own behind block `first`.
template <class Distribution, class R, class T>
int32_t FillFrom(sdk::Env& env, const Philox& generator, uint64_t first, int64_t samples, View<const R> parameters,
                 View<T> output, double largest) {
  const int64_t count = output.size() == 0 ? 0 : parameters.size();
  for (int64_t p = 0; p < count; ++p) {
    const auto parameter = static_cast<double>(static_cast<sdk::Compute<R>>(parameters[p]));
    const Distribution distribution(parameter, largest);
    for (int64_t i = 0; i < samples; ++i) {
      Pairs pairs(generator, first + static_cast<uint64_t>(p * samples + i) * 256);
      double sample = 0;
      if (!distribution.Draw(pairs, &sample)) {
        return env.error().InvalidArgument("no number of the distribution with the parameter ", parameter,
                                           " fits the type of the output");
      }
      output[i * count + p] = static_cast<T>(static_cast<sdk::Compute<T>>(sample));
    }
  }
  return WEIR_OK;
}

/// Numbers of shape `shape` + `parameters`; those of one parameter are drawn one after the other.
template <class Distribution>
struct PerParameter {
  NodeStream stream;
  int64_t samples = 1;  // per parameter

  int32_t Prepare(Prep& prep) {
    std::vector<int64_t> dims;
    if (prep.shape(0).rank != 1) {
      return prep.error().InvalidArgument("shape must be a vector of {int32,int64}, got shape ", prep.shape(0));
    }
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    const weir_shape& parameters = prep.shape(1);
    std::vector<int64_t> out = dims;
    out.insert(out.end(), parameters.dims, parameters.dims + parameters.rank);
    if (const int32_t code = stream.Open(prep); code != WEIR_OK) return code;
    if (const int32_t code = ExpectOutput(prep, 0, out); code != WEIR_OK) return code;
    if (sdk::SizeOf(prep.output(0).shape) == 0) return WEIR_OK;
    for (const int64_t dim : dims) samples *= dim;
    return WEIR_OK;
  }

  template <class R, class T>
  int32_t Fill(sdk::Env& env, View<const R> parameters, View<T> output, double largest) const {
    if (output.size() == 0) return WEIR_OK;
    const uint64_t first = stream.ReserveFor(output.size());
    return FillFrom<Distribution>(env, stream.generator(), first, samples, parameters, output, largest);
  }
};

/// The shape of the output, input 0, ends with that of the parameters. Draws from a seed, or from key and counter.
template <class Distribution, uint32_t kParameters>
struct Stateless {
  int64_t samples = 1;  // per parameter

  int32_t Prepare(Prep& prep) {
    const int32_t code = kParameters == 2 ? CheckSeed(prep, 1) : CheckKey(prep);
    if (code != WEIR_OK) return code;
    std::vector<int64_t> dims;
    if (const int32_t failed = Steering(prep, 0, &dims); failed != WEIR_OK) return failed;
    const weir_shape& parameters = prep.shape(kParameters);
    const size_t rank = parameters.rank;
    if (rank > dims.size() ||
        !std::equal(parameters.dims, parameters.dims + rank, dims.end() - static_cast<int64_t>(rank))) {
      return prep.error().InvalidArgument("Shape passed in must end with broadcasted shape.");
    }
    if (sdk::SizeOf(prep.output(0).shape) != 0) {
      for (size_t i = 0; i < dims.size() - rank; ++i) samples *= dims[i];
    }
    return ExpectOutput(prep, 0, dims);
  }
};

struct StatelessGamma : Stateless<Gamma, 2> {
  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, SeedWords seed, View<const T> alpha, View<T> output) const {
    return FillFrom<Gamma>(env, FromSeed(seed), 0, samples, alpha, output, 0);
  }
};
struct KeyedGamma : Stateless<Gamma, 4> {
  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, View<const uint64_t> key, View<const uint64_t> counter,
              sdk::Host<const int32_t> algorithm, View<const T> alpha, View<T> output) const {
    if (algorithm[0] != 1 && algorithm[0] != 3) {
      return env.error().InvalidArgument("Unsupported algorithm id: ", algorithm[0]);
    }
    return FillFrom<Gamma>(env, {key[0], counter[1], counter[0]}, 0, samples, alpha, output, 0);
  }
};
struct StatelessPoisson : Stateless<Poisson, 2> {
  template <class R, class T>
  int32_t Run(sdk::Env& env, HostIntegers, SeedWords seed, View<const R> rate, View<T> output) const {
    return FillFrom<Poisson>(env, FromSeed(seed), 0, samples, rate, output, Largest<T>());
  }
};

struct RandomGamma : PerParameter<Gamma> {
  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, View<const T> alpha, View<T> output) {
    return Fill(env, alpha, output, 0);
  }
};
struct RandomPoisson : PerParameter<Poisson> {
  template <class T>
  int32_t Run(sdk::Env& env, HostIntegers, View<const T> rate, View<T> output) {
    return Fill(env, rate, output, Largest<T>());
  }
};
struct RandomPoissonV2 : PerParameter<Poisson> {
  template <class R, class T>
  int32_t Run(sdk::Env& env, HostIntegers, View<const R> rate, View<T> output) {
    return Fill(env, rate, output, Largest<T>());
  }
};

#if defined(WEIR_KERNEL_DTYPES_SHORT)
constexpr sdk::Types<float, double> kGammaTypes;
#else
constexpr sdk::Types<sdk::half, float, double> kGammaTypes;
#endif

}  // namespace

void AddRejection(sdk::KernelTable& k) {
  k.Add<RandomGamma>("RandomGamma", kGammaTypes).Class(WEIR_CLASS_RNG, 60);
  k.Add<StatelessGamma>("StatelessRandomGammaV2", sdk::Attr("dtype", kGammaTypes)).Class(WEIR_CLASS_RNG, 60);
  k.Add<KeyedGamma>("StatelessRandomGammaV3", sdk::Attr("dtype", kGammaTypes)).Class(WEIR_CLASS_RNG, 60);
  k.Add<StatelessPoisson>("StatelessRandomPoisson", sdk::Attr("Rtype", kGammaTypes + kIndex),
                          sdk::Attr("dtype", kGammaTypes + kIndex))
      .Class(WEIR_CLASS_RNG, 60);
  k.Add<RandomPoisson>("RandomPoisson", sdk::Attr("dtype", kGammaTypes)).Class(WEIR_CLASS_RNG, 60);
  k.Add<RandomPoissonV2>("RandomPoissonV2", sdk::Attr("R", kGammaTypes + kIndex),
                         sdk::Attr("dtype", kGammaTypes + kIndex))
      .Class(WEIR_CLASS_RNG, 60);
}

}  // namespace weir::kernels_eigen
