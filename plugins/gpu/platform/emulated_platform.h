// The emulation of platform.h: work runs on the thread of its queue, blocks and threads one after the other.
#ifndef WEIR_PLUGINS_GPU_PLATFORM_EMULATED_PLATFORM_H_
#define WEIR_PLUGINS_GPU_PLATFORM_EMULATED_PLATFORM_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <type_traits>

#include "plugins/gpu/platform/emulated_queue.h"
#include "plugins/gpu/platform/platform.h"

#define WEIR_GPU_FN
#define WEIR_GPU_BOTH

namespace weir::gpu {

using NativeStream = weir_emulated_queue*;

inline int32_t Outcome::code() const {
  switch (native_) {
    case WEIR_EMULATED_OK:
      return WEIR_OK;
    case WEIR_EMULATED_NO_MEMORY:
      return WEIR_RESOURCE_EXHAUSTED;
    case WEIR_EMULATED_INVALID:
      return WEIR_INVALID_ARGUMENT;
    case WEIR_EMULATED_LOST:
    case WEIR_EMULATED_NO_DEVICE:
      return WEIR_UNAVAILABLE;
    default:
      return WEIR_INTERNAL;
  }
}
inline uint32_t Outcome::flags() const {
  if (native_ == WEIR_EMULATED_ELSEWHERE) return WEIR_ERROR_STREAM_POISONED;
  if (native_ == WEIR_EMULATED_LOST) return WEIR_ERROR_DEVICE_LOST | WEIR_ERROR_STREAM_POISONED;
  return native_ == WEIR_EMULATED_NO_MEMORY ? uint32_t{WEIR_ERROR_OOM_MAY_GROW} : 0;
}
inline const char* Outcome::name() const {
  constexpr const char* kNames[] = {"success",        "out of device memory", "invalid value",
                                    "device is lost", "no such device",       "not ready",
                                    "work of another card failed"};
  return native_ >= 0 && native_ < 7 ? kNames[native_] : "unknown error";
}

/// Device memory as an argument of a kernel.
template <class T>
class Ptr {
 public:
  Ptr() = default;
  Ptr(T* device) : device_(device) {}  // NOLINT: kernels' arguments are written as lists of addresses
  template <class U>
  requires std::is_convertible_v<U*, T*>
  Ptr(Ptr<U> other) : device_(other.device()) {}  // NOLINT

  T& operator[](int64_t i) const { return get()[i]; }
  T& operator*() const { return *get(); }
  Ptr operator+(int64_t n) const { return Ptr(device_ + n); }
  /// The address that code on the device uses.
  T* get() const { return reinterpret_cast<T*>(reinterpret_cast<uint64_t>(device_) + WEIR_EMULATED_DISTANCE); }
  /// The address as the host knows it; never readable.
  T* device() const { return device_; }
  explicit operator bool() const { return device_ != nullptr; }

 private:
  T* device_ = nullptr;
};

/// One block of threads.
class Block {
 public:
  Block(int64_t index, int64_t blocks, int threads, char* shared)
      : index_(index), blocks_(blocks), threads_(threads), shared_(shared) {}
  int64_t index() const { return index_; }
  int64_t blocks() const { return blocks_; }
  int threads() const { return threads_; }
  template <class T>
  T* Shared(uint32_t offset) const {
    return reinterpret_cast<T*>(shared_ + offset);
  }
  // Every second phase runs the threads from the last to the first.
  template <class Phase>
  void ForEachThread(const Phase& phase) {
    backwards_ = !backwards_;
    if (backwards_) {
      for (int t = threads_ - 1; t >= 0; --t) phase(t);
    } else {
      for (int t = 0; t < threads_; ++t) phase(t);
    }
  }

 private:
  const int64_t index_;
  const int64_t blocks_;
  const int threads_;
  char* const shared_;
  bool backwards_ = false;
};

namespace internal {

template <class Work>
Outcome Enqueue(NativeStream stream, Work work) {
  auto owned = std::make_unique<Work>(std::move(work));
  const int32_t code = stream->enqueue(
      stream, [](void* arg) { (*static_cast<Work*>(arg))(); }, [](void* arg) { delete static_cast<Work*>(arg); },
      owned.get());
  if (code == WEIR_EMULATED_OK) (void)owned.release();
  return Outcome(code);
}

}  // namespace internal

template <class Functor>
Outcome Launch(NativeStream stream, int64_t n, const Functor& functor) {
  static_assert(std::is_trivially_copyable_v<Functor> && sizeof(Functor) <= kMostArgumentBytes);
  if (n <= 0) return {};
  return internal::Enqueue(stream, [functor, n] {
    for (int64_t i = 0; i < n; ++i) functor(i);
  });
}

template <class Functor>
Outcome LaunchBlocks(NativeStream stream, int64_t blocks, int threads, uint32_t shared_bytes, const Functor& functor) {
  static_assert(std::is_trivially_copyable_v<Functor> && sizeof(Functor) <= kMostArgumentBytes);
  if (blocks <= 0) return {};
  if (threads < 1 || threads > kMostThreads || shared_bytes > kMostSharedBytes) return Outcome(WEIR_EMULATED_INVALID);
  return internal::Enqueue(stream, [functor, blocks, threads, shared_bytes] {
    struct alignas(16) Unit {
      char bytes[16];
    };
    const auto shared = std::make_unique<Unit[]>(shared_bytes / sizeof(Unit) + 1);
    for (int64_t i = 0; i < blocks; ++i) {
      std::memset(shared.get(), 0xA5, shared_bytes);
      Block block(i, blocks, threads, shared[0].bytes);
      functor(block);
    }
  });
}

inline Outcome Fill(NativeStream stream, void* to, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return {};
  return internal::Enqueue(stream, [to = Ptr<char>(static_cast<char*>(to)), value, bytes] {
    std::memset(to.get(), value, bytes);
  });
}
inline Outcome Copy(NativeStream stream, void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return {};
  return internal::Enqueue(
      stream, [to = Ptr<char>(static_cast<char*>(to)), from = Ptr<const char>(static_cast<const char*>(from)), bytes] {
        std::memmove(to.get(), from.get(), bytes);
      });
}
/// Copies to host memory behind the work of the stream, and waits for it.
inline Outcome ReadBack(NativeStream stream, void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return {};
  struct Arrival {
    Ptr<const char> from;
    uint64_t bytes;
    std::promise<std::string> read;  // broken if the work is dropped without having run
  };
  Arrival arrival{Ptr<const char>(static_cast<const char*>(from)), bytes, {}};
  std::future<std::string> read = arrival.read.get_future();
  const Outcome enqueued = internal::Enqueue(stream, [own = std::make_shared<Arrival>(std::move(arrival))] {
    own->read.set_value(std::string(own->from.get(), own->bytes));
  });
  if (!enqueued.ok()) return enqueued;
  try {
    const std::string bytes_read = read.get();
    std::memcpy(to, bytes_read.data(), bytes_read.size());
  } catch (const std::future_error&) {
    return Outcome(WEIR_EMULATED_LOST);
  }
  return {};
}

// The work of a launch runs on one thread, and two launches that touch the same memory are ordered by their streams.
/// *to += value; returns the value before. Integers of 4 or 8 bytes, float, double.
template <class T>
T AtomicAdd(T* to, T value) {
  const T before = *to;
  *to = before + value;
  return before;
}
template <class T>
T AtomicMax(T* to, T value) {
  const T before = *to;
  if (before < value) *to = value;
  return before;
}
template <class T>
T AtomicMin(T* to, T value) {
  const T before = *to;
  if (value < before) *to = value;
  return before;
}
/// Replaces *to by op(*to), for types of 1, 2, 4 or 8 bytes; `op` may be called several times.
template <class T, class Op>
void AtomicUpdate(T* to, const Op& op) {
  *to = op(*to);
}

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_PLATFORM_EMULATED_PLATFORM_H_
