// One function per family of kernels, called by the plugin's entry.
#ifndef WEIR_PLUGINS_KERNELS_ONEDNN_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_ONEDNN_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_onednn {

void AddConvolution(sdk::KernelTable& k);
void AddMatMul(sdk::KernelTable& k);
void AddSoftmax(sdk::KernelTable& k);

}  // namespace weir::kernels_onednn

#endif  // WEIR_PLUGINS_KERNELS_ONEDNN_FAMILIES_H_
