// One function per family of kernels, called by the plugin's entry.
#ifndef WEIR_PLUGINS_KERNELS_OPENBLAS_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_OPENBLAS_FAMILIES_H_

#include "sdk/cpp/isa.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_openblas {

void AddMatMul(sdk::KernelTable& k);
/// Makes OpenBLAS select its kernels again, up to `highest`. Must not be called while one of them runs.
int32_t LimitIsa(sdk::Isa highest, weir_error* error);

}  // namespace weir::kernels_openblas

#endif  // WEIR_PLUGINS_KERNELS_OPENBLAS_FAMILIES_H_
