// The entry of kernels_onednn.
#include "sdk/cpp/plugin.h"

#include "plugins/kernels_onednn/families.h"

WEIR_PLUGIN("kernels_onednn", "0.1.0", "weir", "cpu",
            weir::sdk::Kernels<weir::kernels_onednn::AddMatMul, weir::kernels_onednn::AddSoftmax>)
