// Matrix products by the vendor's library where there is one: cuBLASLt on CUDA, opened with dlopen and not linked. This
// path has never run on a card.
#ifndef WEIR_PLUGINS_GPU_KERNELS_LIBRARY_PRODUCTS_H_
#define WEIR_PLUGINS_GPU_KERNELS_LIBRARY_PRODUCTS_H_

#include <cstdint>
#include <memory>

#include "sdk/cpp/prepare.h"

namespace weir::gpu {

/// True if this build can use a library of products.
#if defined(WEIR_GPU_CUDA)
inline constexpr bool kHasProductLibrary = true;
#else
inline constexpr bool kHasProductLibrary = false;
#endif

/// `count` products c = op(a) op(b) of dense row-major matrices of one type: op(a) is [m, k], op(b) is [k, n].
struct LibraryProduct {
  uint32_t dtype = 0;
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t count = 1;
  int64_t a_step = 0, b_step = 0;  // elements to the next matrix; 0: one for all products
  uint64_t alignment = 64;         // of the addresses, in bytes
};

/// A product that the library has chosen an algorithm for. Calls may run at once, each with memory of its own.
class LibraryPlan {
 public:
  virtual ~LibraryPlan() = default;
  /// Bytes of device memory that a call needs.
  virtual uint64_t workspace_bytes() const = 0;
  /// Enqueues it on the stream of the call. All pointers are of the device.
  virtual int32_t Enqueue(const sdk::Env& env, const void* a, const void* b, void* c, void* workspace) const = 0;
};

/// Null if the library is absent, has no such product, or refuses it: the kernel then computes its own tiled product.
/// `device` is of this platform and open. A missing library is logged once.
std::shared_ptr<const LibraryPlan> PlanInLibrary(const LibraryProduct& product, weir_device* device);

/// Lets products of floats use TF32, which keeps 10 bits of the mantissa. Called before the first plan.
void AllowTf32(bool allowed);

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_LIBRARY_PRODUCTS_H_
