// Values of a thread that live through the phases of its block.
#ifndef WEIR_PLUGINS_GPU_KERNELS_PER_THREAD_H_
#define WEIR_PLUGINS_GPU_KERNELS_PER_THREAD_H_

#include "plugins/gpu/platform/platform.h"

#if defined(WEIR_GPU_EMULATED)
#include <vector>
#endif

namespace weir::gpu {

/// Made outside of phases, with zeros. On a device the value is a local variable, in registers.
template <class T>
class PerThread {
 public:
#if defined(WEIR_GPU_EMULATED)
  explicit PerThread(int threads) : values_(static_cast<size_t>(threads)) {}
  T& operator[](int thread) { return values_[static_cast<size_t>(thread)]; }

 private:
  std::vector<T> values_;
#else
  WEIR_GPU_FN explicit PerThread(int) {}
  WEIR_GPU_FN T& operator[](int) { return value_; }

 private:
  T value_{};
#endif
};

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_KERNELS_PER_THREAD_H_
