// Device memory of a call of a dynamic kernel.
#ifndef WEIR_PLUGINS_GPU_KERNELS_TEMPORARY_H_
#define WEIR_PLUGINS_GPU_KERNELS_TEMPORARY_H_

#include <algorithm>
#include <cstdint>

#include "plugins/gpu/kernels/sorting.h"
#include "sdk/cpp/context.h"

namespace weir::gpu {

/// Device memory for n elements that lives until the call's work is done.
template <class T>
int32_t Take(const sdk::Context& ctx, int64_t n, T** memory) {
  weir_buf buf{};
  const uint64_t bytes = std::max<uint64_t>(static_cast<uint64_t>(n) * sizeof(T), 64);
  const int32_t code = ctx.Temp(bytes, WEIR_SPACE_DEVICE, &buf);
  *memory = reinterpret_cast<T*>(buf.handle + buf.offset);
  return code;
}
/// The same for a sort of n pairs.
template <class T>
int32_t TakeSorted(const sdk::Context& ctx, int64_t n, T** memory) {
  return Take(ctx, n <= 0 ? 1 : SortedLength(n), memory);
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_TEMPORARY_H_
