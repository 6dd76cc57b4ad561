// Counts of NaN and infinity and the value range of a tensor, for numeric checks and their messages.
#ifndef WEIR_CORE_TENSOR_NUMERICS_H_
#define WEIR_CORE_TENSOR_NUMERICS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace weir {

/// Statistics of real floating-point elements. `min`, `max` and `mean` cover the finite ones; 0 if there are none.
struct Numbers {
  int64_t elements = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0;
  /// "Inf", "NaN", "Inf and NaN", or empty when all are finite.
  std::string_view fault() const;
};

/// `tensor` must be on the host. All counts are 0 for types that are not real floating-point.
Numbers NumbersOf(const Tensor& tensor);

/// "float [2,3]: min 0, max 3, mean 1.5, 1 NaN, 2 Inf".
std::string Describe(const Tensor& tensor, const Numbers& numbers);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_NUMERICS_H_
