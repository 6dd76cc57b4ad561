// Sums of counts before each place, for results whose extents depend on the data.
#ifndef WEIR_PLUGINS_GPU_KERNELS_PREFIX_SUMS_H_
#define WEIR_PLUGINS_GPU_KERNELS_PREFIX_SUMS_H_

#include <cstdint>

#include "plugins/gpu/platform/platform.h"

namespace weir::gpu {

/// Replaces each of the n counts by the sum of those before it, and stores the sum of all at counts[n].
int32_t SumBefore(NativeStream stream, int64_t n, int64_t* counts, const sdk::Error& error);

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_PREFIX_SUMS_H_
