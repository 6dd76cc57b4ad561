// The entry of kernels_onednn.
#include "sdk/cpp/plugin.h"

#include "plugins/kernels_onednn/families.h"
#include "plugins/kernels_onednn/library.h"
#include "sdk/cpp/isa.h"

namespace {

/// LoadOneDnn has the limit.
int32_t KeepIsa(weir::sdk::Isa, weir_error*) { return WEIR_OK; }

}  // namespace

WEIR_PLUGIN("kernels_onednn", "0.1.0", "weir", "cpu",
            weir::sdk::Kernels<weir::kernels_onednn::AddConvolution, weir::kernels_onednn::AddMatMul,
                               weir::kernels_onednn::AddSoftmax>,
            weir::sdk::IsaOption<KeepIsa>, weir::kernels_onednn::NeedsOneDnn)
