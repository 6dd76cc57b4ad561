// Classes drawn with given probabilities: Multinomial, StatelessMultinomial.
#include <algorithm>
#include <limits>

#include "plugins/functors/categorical_plan.h"
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
struct Categorical : functors::CategoricalPlan {
  int32_t PlanDraws(Prep& prep) {
    if (const int32_t code = Plan(prep); code != WEIR_OK) return code;
    prep.Scratch(static_cast<uint64_t>(rows == 0 ? 0 : classes) * sizeof(double));
    return WEIR_OK;
  }

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
  template <class T>
  double Accumulate(const T* logits, double* sums) const {
    double least = std::is_same_v<T, sdk::half> ? -65504.0 : static_cast<double>(std::numeric_limits<float>::lowest());
    if constexpr (sizeof(T) == 8) least = std::numeric_limits<double>::lowest();
    const auto at = [logits](int64_t i) { return static_cast<double>(static_cast<sdk::Compute<T>>(logits[i])); };
    return functors::AccumulateClasses(classes, least, at, sums);
  }
};

struct Multinomial : Categorical {
  NodeStream stream;

  int32_t Prepare(Prep& prep) {
    const int32_t code = stream.Open(prep);
    return code != WEIR_OK ? code : PlanDraws(prep);
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
    return code != WEIR_OK ? code : PlanDraws(prep);
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
