// One function per family of kernels, called by the plugin's entry.
#ifndef WEIR_PLUGINS_KERNELS_OPENBLAS_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_OPENBLAS_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_openblas {

void AddMatMul(sdk::KernelTable& k);

}  // namespace weir::kernels_openblas

#endif  // WEIR_PLUGINS_KERNELS_OPENBLAS_FAMILIES_H_
