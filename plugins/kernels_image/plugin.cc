// The entry of kernels_image.
#include "sdk/cpp/plugin.h"

#include "plugins/kernels_image/families.h"

WEIR_PLUGIN("kernels_image", "0.1.0", "weir", "cpu",
            weir::sdk::Kernels<weir::kernels_image::AddDecoders, weir::kernels_image::AddEncoders,
                               weir::kernels_image::AddImageSummary>)
