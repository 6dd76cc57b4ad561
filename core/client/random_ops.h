// Builders of random values. A run draws new ones; with a seed (of the op, or Graph::random_seed) each session draws
// TensorFlow's sequence.
#ifndef WEIR_CORE_CLIENT_RANDOM_OPS_H_
#define WEIR_CORE_CLIENT_RANDOM_OPS_H_

#include <cstdint>
#include <string_view>

#include "core/client/unary_op.h"

namespace weir {

/// What random builders take beside their parameters.
struct RandomOptions {
  DType dtype = DType::kFloat;  // half, bfloat16, float or double
  int64_t seed = -1;            // -1 = none of its own
  std::string_view name = {};
};

/// Evenly from [minval, maxval). shape: int32 or int64 [rank].
Output RandomUniform(const Operand& shape, double minval = 0, double maxval = 1, const RandomOptions& options = {},
                     Where where = Where::current());
Output RandomNormal(const Operand& shape, double mean = 0, double stddev = 1, const RandomOptions& options = {},
                    Where where = Where::current());
/// Normal values; those more than two standard deviations from the mean are drawn again.
Output TruncatedNormal(const Operand& shape, double mean = 0, double stddev = 1, const RandomOptions& options = {},
                       Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_RANDOM_OPS_H_
