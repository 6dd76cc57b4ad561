#include "plugins/kernels_onednn/packed.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "plugins/functors/shared_by_content.h"
#include "plugins/kernels_onednn/library.h"
#include "plugins/kernels_onednn/primitive.h"

namespace weir::kernels_onednn {

int32_t Pack(const dnnl_memory_desc_t& from, const void* constant, int64_t elements, const dnnl_memory_desc_t& to,
             const sdk::Error& error, PackedArray* packed) {
  static auto* const known = new functors::SharedByContent<float>;
  std::string form;
  functors::AppendBytes(from, &form);
  functors::AppendBytes(to, &form);
  int32_t code = WEIR_OK;
  *packed = known->Of(std::move(form), static_cast<const float*>(constant), elements, [&]() -> PackedArray {
    const size_t bytes = (OneDnn().dnnl_memory_desc_get_size(&to) + 63) / 64 * 64;
    std::shared_ptr<float> made(static_cast<float*>(std::aligned_alloc(64, bytes)), [](float* p) { std::free(p); });
    code = made == nullptr ? error.ResourceExhausted("no memory for ", bytes, " bytes")
                           : Reorder(from, constant, to, made.get(), error);
    return code == WEIR_OK ? made : nullptr;
  });
  return code;
}

}  // namespace weir::kernels_onednn
