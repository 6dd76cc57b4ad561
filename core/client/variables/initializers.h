// Initializers by the variance of what units compute, under TensorFlow's names.
#ifndef WEIR_CORE_CLIENT_VARIABLES_INITIALIZERS_H_
#define WEIR_CORE_CLIENT_VARIABLES_INITIALIZERS_H_

#include <cstdint>

#include "core/client/variables/variable_scope.h"

namespace weir {

enum class Fan { kIn, kOut, kAverage };
enum class Spread { kUniform, kNormal, kTruncatedNormal };
struct VarianceScalingOptions {
  double scale = 1;
  Fan mode = Fan::kIn;
  Spread distribution = Spread::kTruncatedNormal;
  int64_t seed = -1;
};
/// Variance scale / n, where n is the number of inputs of a unit, of outputs, or their mean. The last two extents of a
/// shape are inputs and outputs, times the product of those before them; of a part, the whole's count.
Initializer VarianceScalingInitializer(const VarianceScalingOptions& options = {});
/// The same variance, normal and cut off at two standard deviations.
Initializer GlorotNormalInitializer(int64_t seed = -1);
/// Variance 2 / fan_in. Source: He, Zhang, Ren and Sun 2015.
Initializer HeNormalInitializer(int64_t seed = -1);
Initializer HeUniformInitializer(int64_t seed = -1);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_INITIALIZERS_H_
