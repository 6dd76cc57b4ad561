// The entry of kernels_openblas.
#include "sdk/cpp/plugin.h"

#include "plugins/kernels_openblas/families.h"
#include "sdk/cpp/isa.h"

namespace weir::kernels_openblas {

/// LoadOpenBlas applies the limit.
int32_t NoteIsa(sdk::Isa, weir_error*) { return WEIR_OK; }

}  // namespace weir::kernels_openblas

WEIR_PLUGIN("kernels_openblas", "0.1.0", "weir", "cpu", weir::sdk::Kernels<weir::kernels_openblas::AddMatMul>,
            weir::sdk::IsaOption<weir::kernels_openblas::NoteIsa>)
