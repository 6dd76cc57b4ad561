// platform.h for CUDA and HIP, whose runtimes differ in the prefix of their names. Launches need the vendor's compiler;
// a host compiler sees the types and the calls of the runtime only.
#ifndef WEIR_PLUGINS_GPU_PLATFORM_VENDOR_PLATFORM_H_
#define WEIR_PLUGINS_GPU_PLATFORM_VENDOR_PLATFORM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "plugins/gpu/platform/platform.h"

#if defined(WEIR_GPU_CUDA)
#include <cuda_runtime_api.h>
#define WEIR_GPU_API(name) cuda##name
#else
#define WEIR_GPU_API(name) hip##name
#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#else
#include <hip/hip_runtime_api.h>
#endif
#endif

#if defined(__CUDACC__) || defined(__HIPCC__)
#define WEIR_GPU_FN __device__
#define WEIR_GPU_BOTH __host__ __device__
#else
#define WEIR_GPU_FN
#define WEIR_GPU_BOTH
#endif

namespace weir::gpu {

using NativeStream = WEIR_GPU_API(Stream_t);

inline int32_t Outcome::code() const {
  switch (static_cast<WEIR_GPU_API(Error_t)>(native_)) {
    case WEIR_GPU_API(Success):
      return WEIR_OK;
#if defined(WEIR_GPU_CUDA)
    case cudaErrorMemoryAllocation:
    case cudaErrorLaunchOutOfResources:
      return WEIR_RESOURCE_EXHAUSTED;
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
#else
    case hipErrorOutOfMemory:
    case hipErrorLaunchOutOfResources:
      return WEIR_RESOURCE_EXHAUSTED;
    case hipErrorInsufficientDriver:
    case hipErrorECCNotCorrectable:
#endif
    case WEIR_GPU_API(ErrorNoDevice):
      return WEIR_UNAVAILABLE;
    case WEIR_GPU_API(ErrorInvalidValue):
      return WEIR_INVALID_ARGUMENT;
    case WEIR_GPU_API(ErrorNotSupported):
      return WEIR_UNIMPLEMENTED;
    default:
      return flags() != 0 ? WEIR_UNAVAILABLE : WEIR_INTERNAL;
  }
}
// After these errors the context is unusable until the process ends.
inline uint32_t Outcome::flags() const {
  constexpr uint32_t kLost = WEIR_ERROR_DEVICE_LOST | WEIR_ERROR_STREAM_POISONED;
  switch (static_cast<WEIR_GPU_API(Error_t)>(native_)) {
#if defined(WEIR_GPU_CUDA)
    case cudaErrorMemoryAllocation:
      return WEIR_ERROR_OOM_MAY_GROW;
    case cudaErrorMisalignedAddress:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorDevicesUnavailable:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorUnknown:
#else
    case hipErrorOutOfMemory:
      return WEIR_ERROR_OOM_MAY_GROW;
    case hipErrorLaunchTimeOut:
    case hipErrorECCNotCorrectable:
    case hipErrorUnknown:
#endif
    case WEIR_GPU_API(ErrorIllegalAddress):
    case WEIR_GPU_API(ErrorLaunchFailure):
    case WEIR_GPU_API(ErrorAssert):
      return kLost;
    default:
      return 0;
  }
}
inline const char* Outcome::name() const {
  return WEIR_GPU_API(GetErrorString)(static_cast<WEIR_GPU_API(Error_t)>(native_));
}

/// Makes the stream's card the current one of the calling thread.
inline Outcome Use(NativeStream stream) {
  int device = 0;
#if defined(WEIR_GPU_CUDA)
  if (const auto code = cudaStreamGetDevice(stream, &device); code != cudaSuccess) return Outcome(code);
#else
  device = hipGetStreamDeviceId(stream);
  if (device < 0) return Outcome(hipErrorInvalidHandle);
#endif
  return Outcome(WEIR_GPU_API(SetDevice)(device));
}

/// Device memory as an argument of a kernel.
template <class T>
class Ptr {
 public:
  Ptr() = default;
  WEIR_GPU_BOTH Ptr(T* device) : device_(device) {}  // NOLINT: kernels' arguments are written as lists of addresses
  template <class U>
  requires std::is_convertible_v<U*, T*>
  WEIR_GPU_BOTH Ptr(Ptr<U> other) : device_(other.device()) {}  // NOLINT

  WEIR_GPU_FN T& operator[](int64_t i) const { return device_[i]; }
  WEIR_GPU_FN T& operator*() const { return *device_; }
  WEIR_GPU_BOTH Ptr operator+(int64_t n) const { return Ptr(device_ + n); }
  /// The address that code on the device uses.
  WEIR_GPU_FN T* get() const { return device_; }
  /// The address as the host knows it.
  WEIR_GPU_BOTH T* device() const { return device_; }
  WEIR_GPU_BOTH explicit operator bool() const { return device_ != nullptr; }

 private:
  T* device_ = nullptr;
};

inline Outcome Fill(NativeStream stream, void* to, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return {};
  if (const Outcome used = Use(stream); !used.ok()) return used;
  return Outcome(WEIR_GPU_API(MemsetAsync)(to, value, bytes, stream));
}
inline Outcome Copy(NativeStream stream, void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return {};
  if (const Outcome used = Use(stream); !used.ok()) return used;
  return Outcome(WEIR_GPU_API(MemcpyAsync)(to, from, bytes, WEIR_GPU_API(MemcpyDeviceToDevice), stream));
}
/// Copies to host memory behind the work of the stream, and waits for it.
inline Outcome ReadBack(NativeStream stream, void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return {};
  if (const Outcome used = Use(stream); !used.ok()) return used;
  const Outcome copied(WEIR_GPU_API(MemcpyAsync)(to, from, bytes, WEIR_GPU_API(MemcpyDeviceToHost), stream));
  return copied.ok() ? Outcome(WEIR_GPU_API(StreamSynchronize)(stream)) : copied;
}

#if defined(__CUDACC__) || defined(__HIPCC__)

/// One block of threads.
class Block {
 public:
  WEIR_GPU_FN Block(int64_t index, int64_t blocks) : index_(index), blocks_(blocks) {}
  WEIR_GPU_FN int64_t index() const { return index_; }
  WEIR_GPU_FN int64_t blocks() const { return blocks_; }
  WEIR_GPU_FN int threads() const { return static_cast<int>(blockDim.x); }
  template <class T>
  WEIR_GPU_FN T* Shared(uint32_t offset) const {
    extern __shared__ __align__(16) unsigned char weir_gpu_shared[];
    return reinterpret_cast<T*>(weir_gpu_shared + offset);
  }
  template <class Phase>
  WEIR_GPU_FN void ForEachThread(const Phase& phase) {
    phase(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

 private:
  const int64_t index_;
  const int64_t blocks_;
};

namespace internal {

inline constexpr int kElementThreads = 256;

template <class Functor>
__global__ void __launch_bounds__(kElementThreads) Elements(const Functor functor, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) functor(i);
}
template <class Functor>
__global__ void __launch_bounds__(kMostThreads) Blocks(const Functor functor, int64_t blocks) {
  for (int64_t i = blockIdx.x; i < blocks; i += gridDim.x) {
    Block block(i, blocks);
    functor(block);
  }
}

}  // namespace internal

template <class Functor>
Outcome Launch(NativeStream stream, int64_t n, const Functor& functor) {
  static_assert(std::is_trivially_copyable_v<Functor> && sizeof(Functor) <= kMostArgumentBytes);
  if (n <= 0) return {};
  if (const Outcome used = Use(stream); !used.ok()) return used;
  constexpr int64_t kThreads = internal::kElementThreads;
  const auto grid = static_cast<unsigned>(std::min<int64_t>((n - 1) / kThreads + 1, int64_t{1} << 20));
  internal::Elements<<<grid, internal::kElementThreads, 0, stream>>>(functor, n);
  return Outcome(WEIR_GPU_API(GetLastError)());
}

template <class Functor>
Outcome LaunchBlocks(NativeStream stream, int64_t blocks, int threads, uint32_t shared_bytes, const Functor& functor) {
  static_assert(std::is_trivially_copyable_v<Functor> && sizeof(Functor) <= kMostArgumentBytes);
  if (blocks <= 0) return {};
  if (threads < 1 || threads > kMostThreads || shared_bytes > kMostSharedBytes) {
    return Outcome(WEIR_GPU_API(ErrorInvalidValue));
  }
  if (const Outcome used = Use(stream); !used.ok()) return used;
  const auto grid = static_cast<unsigned>(std::min<int64_t>(blocks, INT32_MAX));
  internal::Blocks<<<grid, threads, shared_bytes, stream>>>(functor, blocks);
  return Outcome(WEIR_GPU_API(GetLastError)());
}

/// Replaces *to by op(*to), for types of 1, 2, 4 or 8 bytes; `op` may be called several times.
template <class T, class Op>
WEIR_GPU_FN void AtomicUpdate(T* to, const Op& op) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  const auto address = reinterpret_cast<uintptr_t>(to);
  const unsigned skew = static_cast<unsigned>(address % sizeof(Word));
  Word* const word = reinterpret_cast<Word*>(address - skew);
  Word before = *const_cast<volatile Word*>(word);
  while (true) {
    Word after = before;
    T value;
    memcpy(&value, reinterpret_cast<const char*>(&before) + skew, sizeof(T));
    value = op(value);
    memcpy(reinterpret_cast<char*>(&after) + skew, &value, sizeof(T));
    const Word found = atomicCAS(word, before, after);
    if (found == before) return;
    before = found;
  }
}
/// *to += value; returns the value before. Integers of 4 or 8 bytes, float, double.
template <class T>
WEIR_GPU_FN T AtomicAdd(T* to, T value) {
  if constexpr (std::is_integral_v<T>) {
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    static_assert(sizeof(Word) == sizeof(T));
    return static_cast<T>(atomicAdd(reinterpret_cast<Word*>(to), static_cast<Word>(value)));
  } else {
    return atomicAdd(to, value);
  }
}
template <class T>
WEIR_GPU_FN T AtomicMax(T* to, T value) {
  T last = value;
  AtomicUpdate(to, [&](T before) {
    last = before;
    return before < value ? value : before;
  });
  return last;
}
template <class T>
WEIR_GPU_FN T AtomicMin(T* to, T value) {
  T last = value;
  AtomicUpdate(to, [&](T before) {
    last = before;
    return value < before ? value : before;
  });
  return last;
}

#endif  // a vendor's compiler

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_PLATFORM_VENDOR_PLATFORM_H_
