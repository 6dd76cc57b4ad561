// Classes drawn with given probabilities: Multinomial, StatelessMultinomial.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/kernels/draws.h"
#include "plugins/kernels_eigen/kernels/node_stream.h"
#include "plugins/kernels_eigen/kernels/seeds.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// Draws from rows of logits by the cumulative sums of their exponentials.
struct Categorical {
  int64_t rows = 0, classes = 0, samples = 0;

  int32_t Plan(Prep& prep) {
    const weir_shape &logits = prep.shape(0), &count = prep.shape(1);
    if (logits.rank != 2) return prep.error().InvalidArgument("logits should be a matrix, got shape ", logits);
    if (count.rank != 0) return prep.error().InvalidArgument("num_samples should be a scalar, got shape ", count);
    if (const int32_t code = Steering(prep, 1, "num_samples", &samples); code != WEIR_OK) return code;
    if (samples < 0) return prep.error().InvalidArgument("num_samples should be nonnegative, got ", samples);
    for (const uint32_t i : {0u, 1u}) {
      if (logits.dims[i] <= std::numeric_limits<int32_t>::max()) continue;
      return prep.error().InvalidArgument("logits.shape = ", logits, " too large for int");
    }
    rows = logits.dims[0];
    classes = logits.dims[1];
    if (classes <= 0) return prep.error().InvalidArgument("num_classes should be positive, got ", classes);
    prep.Scratch(static_cast<uint64_t>(rows == 0 ? 0 : classes) * sizeof(double));
    return ExpectOutput(prep, 0, {rows, samples});
  }

  /// Twice the samples of a row, rounded up to whole blocks, for each row.
  int64_t Reserved() const { return rows * ((samples + 3) / 4 * 4) * 2; }

  template <class T, class I>
  void Draw(Words words, const T* logits, double* sums, I* out) const {
    for (int64_t row = 0; row < rows && samples > 0; ++row, logits += classes, out += samples) {
      const double total = Accumulate(logits, sums);
      for (int64_t i = 0; i < samples; ++i) {
        const double place = words.NextDouble() * total;
        out[i] = static_cast<I>(std::upper_bound(sums, sums + classes, place) - sums);
      }
    }
  }

 private:
  /// Logits that are not finite have probability 0.
  template <class T>
  double Accumulate(const T* logits, double* sums) const {
    const auto at = [logits](int64_t i) { return static_cast<double>(static_cast<sdk::Compute<T>>(logits[i])); };
    double largest =
        std::is_same_v<T, sdk::half> ? -65504.0 : static_cast<double>(std::numeric_limits<float>::lowest());
    if constexpr (sizeof(T) == 8) largest = std::numeric_limits<double>::lowest();
    for (int64_t i = 0; i < classes; ++i) {
      if (std::isfinite(at(i))) largest = std::max(largest, at(i));
    }
    double total = 0;
    for (int64_t i = 0; i < classes; ++i) {
      if (std::isfinite(at(i))) total += std::exp(at(i) - largest);
      sums[i] = total;
    }
    return total;
  }
};

struct Multinomial : Categorical {
  NodeStream stream;

  int32_t Prepare(Prep& prep) {
    const int32_t code = stream.Open(prep);
    return code != WEIR_OK ? code : Plan(prep);
  }
  template <class T, class I>
  void Run(View<const T> logits, HostIntegers, View<I> out, sdk::Scratch<double> sums) {
    if (out.size() == 0) return;
    Draw(Words(stream.generator(), stream.ReserveFor(Reserved())), logits.data(), sums.data(), out.data());
  }
};

struct SeededMultinomial : Categorical {
  int32_t Prepare(Prep& prep) {
    const int32_t code = CheckSeed(prep, 2);
    return code != WEIR_OK ? code : Plan(prep);
  }
  template <class T, class I>
  void Run(View<const T> logits, HostIntegers, SeedWords seed, View<I> out, sdk::Scratch<double> sums) const {
    Draw(Words(FromSeed(seed), 0), logits.data(), sums.data(), out.data());
  }
};

}  // namespace

void AddCategorical(sdk::KernelTable& k) {
  constexpr auto kOut = sdk::Attr("output_dtype", kIndex);
  k.Add<Multinomial>("Multinomial", kFloating, kOut).Class(WEIR_CLASS_RNG, 20);
  k.Add<SeededMultinomial>("StatelessMultinomial", kFloating, kOut).Class(WEIR_CLASS_RNG, 20);
}

}  // namespace weir::kernels_eigen
