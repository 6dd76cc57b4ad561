// Families of quantised numbers, and of ragged and sparse features.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_QUANTIZED_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_QUANTIZED_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

[[gnu::cold]] void AddQuantize(sdk::KernelTable& k);
[[gnu::cold]] void AddQuantizedMath(sdk::KernelTable& k);
[[gnu::cold]] void AddRoundTrip(sdk::KernelTable& k);

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_QUANTIZED_FAMILIES_H_
