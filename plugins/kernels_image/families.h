// Families of kernels_image, called by the plugin's entry.
#ifndef WEIR_PLUGINS_KERNELS_IMAGE_FAMILIES_H_
#define WEIR_PLUGINS_KERNELS_IMAGE_FAMILIES_H_

#include "sdk/cpp/kernel.h"

namespace weir::kernels_image {

void AddDecoders(sdk::KernelTable& k);
void AddEncoders(sdk::KernelTable& k);
void AddImageSummary(sdk::KernelTable& k);

}  // namespace weir::kernels_image

#endif  // WEIR_PLUGINS_KERNELS_IMAGE_FAMILIES_H_
