// The entry of kernels_onednn.
#include "sdk/cpp/plugin.h"

#include <oneapi/dnnl/dnnl.h>

#include "plugins/kernels_onednn/families.h"
#include "sdk/cpp/isa.h"

namespace {

/// oneDNN selects the instruction set on its first use, for the whole process.
int32_t LimitIsa(weir::sdk::Isa highest, weir_error* error) {
  const dnnl_cpu_isa_t isa = highest == weir::sdk::Isa::kV4   ? dnnl_cpu_isa_avx512_core
                             : highest == weir::sdk::Isa::kV3 ? dnnl_cpu_isa_avx2
                                                              : dnnl_cpu_isa_sse41;
  const dnnl_status_t limited = dnnl_set_max_cpu_isa(isa);
  if (limited == dnnl_success) return WEIR_OK;
  return weir::sdk::Error(error).Fail(WEIR_FAILED_PRECONDITION,
                                      "oneDNN cannot be limited to an instruction set: it was used before");
}

}  // namespace

WEIR_PLUGIN("kernels_onednn", "0.1.0", "weir", "cpu",
            weir::sdk::Kernels<weir::kernels_onednn::AddConvolution, weir::kernels_onednn::AddMatMul,
                               weir::kernels_onednn::AddSoftmax>,
            weir::sdk::IsaOption<LimitIsa>)
