// One interface for kernels over CUDA, HIP and an emulation on the host. A kernel is written once and built three
// times, by nvcc, hipcc and g++; the build defines WEIR_GPU_CUDA, WEIR_GPU_ROCM or WEIR_GPU_EMULATED.
//
// Elementwise work is a functor, called once for each i in [0, n). Its members are the arguments of the kernel:
//
// ```cpp
// template <class T>
// struct AddFunctor {
//   gpu::Ptr<const T> x, y;
//   gpu::Ptr<T> z;
//   WEIR_GPU_FN void operator()(int64_t i) const { z[i] = x[i] + y[i]; }
// };
// struct Add {
//   template <class T>
//   int32_t Run(sdk::Env& env, sdk::View<const T> x, sdk::View<const T> y, sdk::View<T> z) const {
//     return gpu::Launch(env, z.size(), AddFunctor<T>{x.data(), y.data(), z.data()});
//   }
// };
// ```
//
// Work of cooperating threads is a functor that is called for each block. It runs in phases: ForEachThread calls its
// argument for each thread of the block, and all threads finish a phase before the next one begins. Data that passes
// from one phase to the next lies in the block's shared memory:
//
// ```cpp
// struct RowSum {                                            // one block a row
//   gpu::Ptr<const float> x;
//   gpu::Ptr<float> y;
//   int64_t width;
//   template <class Block>
//   WEIR_GPU_FN void operator()(Block& block) const {
//     float* const sums = block.template Shared<float>(0);   // offset in bytes
//     block.ForEachThread([&](int t) {
//       float sum = 0;
//       for (int64_t i = t; i < width; i += block.threads()) sum += x[block.index() * width + i];
//       sums[t] = sum;
//     });
//     for (int half = block.threads() / 2; half > 0; half /= 2) {
//       block.ForEachThread([&](int t) { if (t < half) sums[t] += sums[t + half]; });
//     }
//     block.ForEachThread([&](int t) { if (t == 0) y[block.index()] = sums[0]; });
//   }
// };
// return gpu::LaunchBlocks(env, rows, 256, 256 * sizeof(float), RowSum{x.data(), y.data(), width});
// ```
//
// Rules:
//   - Functors are trivially copyable, at most kMostArgumentBytes. Pointers to device memory are members of type Ptr,
//     also inside nested structs and arrays. Ptr is dereferenced on the device only.
//   - All threads of a block reach the same ForEachThread calls: loops and branches around them depend on the members,
//     on block.index(), or on values in shared memory that no thread changes in the phases before and after the test.
//   - Within a phase, threads run in any order. Without atomics, a thread does not read what another one writes.
//   - Local variables outside ForEachThread are equal for all threads. Assignments to them inside a phase are lost or
//     mixed up; per-thread values that outlive a phase lie in shared memory.
//   - Shared memory holds garbage at first. `threads` is at most kMostThreads, shared memory at most kMostSharedBytes.
//   - Launches with n = 0 or blocks = 0 enqueue nothing.
//   - Functions that kernels call are WEIR_GPU_FN (code of the device), WEIR_GPU_BOTH (of both sides), or constexpr.
//     Float functions are those of the std namespace as declared in <cmath>. half, bfloat16 and boolean have no
//     arithmetic and no conversions of their own here: Wide and Narrow convert them (numbers.h).
//   - Atomics: AtomicAdd, AtomicMax, AtomicMin, AtomicUpdate, on an address from Ptr::get or from shared memory.
//   - Errors cannot be raised on the device; a kernel that must report one writes a word that the host reads.
//
// In the emulation, device addresses are reserved and never readable: only a Ptr finds the memory behind them. A
// dereference by other code, a kernel outside its buffers, or memory that was freed ends the process with a fault.
#ifndef WEIR_PLUGINS_GPU_PLATFORM_PLATFORM_H_
#define WEIR_PLUGINS_GPU_PLATFORM_PLATFORM_H_

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sdk/cpp/context.h"
#include "sdk/cpp/prepare.h"
#include "sdk/cpp/status.h"

// WEIR_GPU_NAME: the name of the device plugin. WEIR_GPU_PLATFORM: the platform of its devices, in records and notes.
#if defined(WEIR_GPU_CUDA)
#define WEIR_GPU_NAME "cuda"
#define WEIR_GPU_PLATFORM "cuda/13"
#elif defined(WEIR_GPU_ROCM)
#define WEIR_GPU_NAME "rocm"
#define WEIR_GPU_PLATFORM "rocm/5"
#elif defined(WEIR_GPU_EMULATED)
#define WEIR_GPU_NAME "gpu_emulated"
#define WEIR_GPU_PLATFORM "gpu_emulated/1"
#else
#error "one of WEIR_GPU_CUDA, WEIR_GPU_ROCM and WEIR_GPU_EMULATED must be defined"
#endif

namespace weir::gpu {

inline constexpr uint64_t kMostArgumentBytes = 3840;
inline constexpr int kMostThreads = 1024;
inline constexpr uint32_t kMostSharedBytes = 48 * 1024;

/// The result of a call of the vendor's runtime: 0, or its error code.
class [[nodiscard]] Outcome {
 public:
  constexpr Outcome() = default;
  constexpr explicit Outcome(int native) : native_(native) {}
  constexpr bool ok() const { return native_ == 0; }
  constexpr int native() const { return native_; }
  /// The WEIR_* code, and WEIR_ERROR_* bits.
  int32_t code() const;
  uint32_t flags() const;
  /// The vendor's name of the error.
  const char* name() const;
  /// WEIR_OK, or the code after filling the record: "<what>: <name>".
  int32_t Tell(const sdk::Error& error, std::string_view what) const {
    if (ok()) return WEIR_OK;
    if (error.record() != nullptr) {
      error.record()->vendor_code = native_;
      error.record()->flags = flags();
    }
    return error.Fail(code(), what, ": ", std::string_view(name()), " (", native_, ")");
  }

 private:
  int native_ = 0;
};

}  // namespace weir::gpu

#if defined(WEIR_GPU_EMULATED)
#include "plugins/gpu/platform/emulated_platform.h"
#else
#include "plugins/gpu/platform/vendor_platform.h"
#endif
#include "plugins/gpu/platform/numbers.h"

namespace weir::gpu {

/// The stream of a call of a prepared kernel.
inline NativeStream StreamOf(const sdk::Env& env) { return reinterpret_cast<NativeStream>(env.native_stream()); }

/// Launches on the stream of the call; the result is a WEIR_* code.
template <class Functor>
int32_t Launch(const sdk::Env& env, int64_t n, const Functor& functor) {
  return Launch(StreamOf(env), n, functor).Tell(env.error(), "launch");
}
template <class Functor>
int32_t LaunchBlocks(const sdk::Env& env, int64_t blocks, int threads, uint32_t shared_bytes, const Functor& functor) {
  return LaunchBlocks(StreamOf(env), blocks, threads, shared_bytes, functor).Tell(env.error(), "launch");
}
/// Sets `bytes` bytes of device memory.
inline int32_t Fill(const sdk::Env& env, void* to, uint8_t value, uint64_t bytes) {
  return Fill(StreamOf(env), to, value, bytes).Tell(env.error(), "fill");
}
/// Copies within the device; the ranges do not overlap.
inline int32_t Copy(const sdk::Env& env, void* to, const void* from, uint64_t bytes) {
  return Copy(StreamOf(env), to, from, bytes).Tell(env.error(), "copy");
}

/// The stream, and a device address, of a call of a dynamic kernel with WEIR_KERNEL_STREAM.
inline NativeStream StreamOf(const sdk::Context& ctx) { return reinterpret_cast<NativeStream>(ctx.native_stream()); }
template <class T>
T* AddressOf(const sdk::Buffer<T>& buffer) {
  return reinterpret_cast<T*>(buffer.handle() + buffer.offset());
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_PLATFORM_PLATFORM_H_
