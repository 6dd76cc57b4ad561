// The entry of kernels_openblas.
#include "sdk/cpp/plugin.h"

#include "plugins/kernels_openblas/families.h"
#include "sdk/cpp/isa.h"

WEIR_PLUGIN("kernels_openblas", "0.1.0", "weir", "cpu", weir::sdk::Kernels<weir::kernels_openblas::AddMatMul>,
            weir::sdk::IsaOption<weir::kernels_openblas::LimitIsa>)
