// What draws of classes demand of their operands.
#ifndef WEIR_PLUGINS_FUNCTORS_CATEGORICAL_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_CATEGORICAL_PLAN_H_

#include <cmath>
#include <limits>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

/// Draws from rows of logits: input 0 is [rows, classes], input 1 the number of samples of a row.
struct CategoricalPlan {
  int64_t rows = 0, classes = 0, samples = 0;

  int32_t Plan(const sdk::Prep& prep) {
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
    return ExpectOutput(prep, 0, {rows, samples});
  }

  /// Blocks of the generator that a call takes: twice the samples of a row, rounded up to whole blocks, for each row.
  int64_t Reserved() const { return rows * ((samples + 3) / 4 * 4) * 2; }
};

/// Writes the cumulative sums of e^logit of `classes` logits, scaled by the largest, and returns the last. Logits that
/// are not finite have probability 0. `least` is the least number of their type, `at(i)` is logit i as a double.
template <class At, class Sums>
WEIR_HD double AccumulateClasses(int64_t classes, double least, const At& at, const Sums& sums) {
  double largest = least;
  for (int64_t i = 0; i < classes; ++i) {
    if (std::isfinite(at(i)) && at(i) > largest) largest = at(i);
  }
  double total = 0;
  for (int64_t i = 0; i < classes; ++i) {
    if (std::isfinite(at(i))) total += std::exp(at(i) - largest);
    sums[i] = total;
  }
  return total;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_CATEGORICAL_PLAN_H_
