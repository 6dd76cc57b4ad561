#include "core/tensor/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <utility>

#include "sdk/abi/device.h"

#include "core/base/errors.h"
#include "core/tensor/host_memory.h"

namespace weir {
namespace {

weir_buf HostMemory(void* data, uint64_t bytes) {
  weir_buf memory = {};
  memory.struct_size = sizeof(memory);
  memory.space = WEIR_SPACE_HOST;
  memory.handle = reinterpret_cast<uintptr_t>(data);
  memory.bytes = bytes;
  memory.host = data;
  return memory;
}

class HostBuffer final : public Buffer {
 public:
  HostBuffer(void* data, uint64_t bytes) : Buffer(HostMemory(data, bytes)) {}
  ~HostBuffer() override { std::free(host()); }
};

/// Memory inside the object itself: one allocation for small tensors, which each run makes and drops.
class SmallBuffer final : public Buffer {
 public:
  static constexpr uint64_t kBytes = 256;
  explicit SmallBuffer(uint64_t bytes) : Buffer(HostMemory(Aligned(data_), bytes)) {}

 private:
  static void* Aligned(std::byte* data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    return data + ((address + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment - address);
  }
  std::byte data_[kBytes + kBufferAlignment];
};

/// A per-thread free list of blocks of one size. Disabled under sanitizers, so that they see every block.
template <size_t kBytes>
class KeptBlocks {
 public:
  static void* Take() {
    Kept& kept = kept_;
    if (kept.first == nullptr) return ::operator new(kBytes);
    --kept.count;
    return std::exchange(kept.first, kept.first->next);
  }
  static void Give(void* block) {
    Kept& kept = kept_;
    if (kept.count >= kMost || !Opened()) return ::operator delete(block);
    ++kept.count;
    kept.first = new (block) Link{kept.first};
  }

 private:
  static constexpr int kMost = WEIR_SANITIZER_KIND == 0 ? 64 : 0;
  struct Link {
    Link* next;
  };
  struct Kept {
    Link* first = nullptr;
    int count = 0;
    bool ended = false;
  };
  /// Frees the blocks when the thread ends. Blocks returned later are freed at once.
  struct AtExit {
    ~AtExit() {
      kept_.ended = true;
      for (; kept_.first != nullptr; --kept_.count) {
        ::operator delete(std::exchange(kept_.first, kept_.first->next));
      }
    }
    bool open = true;
  };
  static bool Opened() {
    if (kept_.count > 0) return true;
    if (kept_.ended) return false;
    static thread_local AtExit at_exit;
    return at_exit.open;
  }
  static constinit inline thread_local Kept kept_;
};

template <class T>
struct BlockAllocator {
  using value_type = T;
  BlockAllocator() = default;
  template <class U>
  BlockAllocator(const BlockAllocator<U>&) {}                                     // NOLINT(google-explicit-constructor)
  T* allocate(size_t) { return static_cast<T*>(KeptBlocks<sizeof(T)>::Take()); }  // shared_ptr allocates one
  void deallocate(T* block, size_t) { KeptBlocks<sizeof(T)>::Give(block); }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) { return true; }
};

class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(void* data, uint64_t bytes, std::shared_ptr<const void> owner)
      : Buffer(HostMemory(data, bytes), true), owner_(std::move(owner)) {}

 private:
  std::shared_ptr<const void> owner_;
};

/// A chunk of memory that is mapped repeatedly until it covers the requested bytes.
class RepeatedBuffer final : public Buffer {
 public:
  static constexpr uint64_t kStretch = uint64_t{2} << 20;

  RepeatedBuffer(void* data, uint64_t bytes) : Buffer(HostMemory(data, bytes)) {}
  ~RepeatedBuffer() override { munmap(host(), Mapped(bytes())); }

  static uint64_t Mapped(uint64_t bytes) { return (bytes + kStretch - 1) / kStretch * kStretch; }

  /// Fills the chunk behind `file` with copies of the element.
  static bool Fill(int file, std::span<const std::byte> element) {
    if (ftruncate(file, kStretch) != 0) return false;
    void* const stretch = mmap(nullptr, kStretch, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (stretch == MAP_FAILED) return false;
    for (uint64_t at = 0; at < kStretch; at += element.size()) {
      std::memcpy(static_cast<std::byte*>(stretch) + at, element.data(), element.size());
    }
    munmap(stretch, kStretch);
    return true;
  }
  /// Maps the chunk over all of `bytes`; null if the system refuses.
  static void* Map(int file, uint64_t bytes) {
    constexpr int kPrivate = MAP_PRIVATE | MAP_NORESERVE;
    void* const data = mmap(nullptr, Mapped(bytes), PROT_NONE, kPrivate | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    for (uint64_t at = 0; at < bytes; at += kStretch) {
      void* const part = static_cast<std::byte*>(data) + at;
      if (mmap(part, kStretch, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED, file, 0) != MAP_FAILED) continue;
      munmap(data, Mapped(bytes));
      return nullptr;
    }
    return data;
  }
};

uint64_t FirstNumber(const char* path) {
  uint64_t number = 0;
  std::ifstream file(path);
  return file >> number ? number : std::numeric_limits<uint64_t>::max();
}

class HeapAllocator final : public Allocator {
 public:
  Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override {
    if (bytes <= SmallBuffer::kBytes) {
      return std::shared_ptr<Buffer>(std::allocate_shared<SmallBuffer>(BlockAllocator<SmallBuffer>(), bytes));
    }
    if (!FitsHostMemory(bytes)) return OutOfMemory(bytes);
    const uint64_t padded = std::max<uint64_t>((bytes + kBufferAlignment - 1) / kBufferAlignment, 1) * kBufferAlignment;
    void* const data = bytes < kLargeFrom ? std::aligned_alloc(kBufferAlignment, padded) : Large(padded);
    if (data == nullptr) return OutOfMemory(bytes);
    return std::shared_ptr<Buffer>(std::make_shared<HostBuffer>(data, bytes));
  }

 private:
  static constexpr uint64_t kLargePage = uint64_t{2} << 20, kLargeFrom = 2 * kLargePage;

  /// Most of the time of a large block goes into the first touch of its pages: few large ones are several times faster.
  static void* Large(uint64_t bytes) {
    static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    void* data = nullptr;
    if (posix_memalign(&data, kLargePage, bytes) != 0) return nullptr;
    // Advice only: the system may ignore it.
    static_cast<void>(madvise(data, bytes / page * page, MADV_HUGEPAGE));
    return data;
  }
  static Status OutOfMemory(uint64_t bytes) {
    return ResourceExhausted("out of host memory: {} bytes were asked for", bytes);
  }
};

}  // namespace

uint64_t HostMemoryLimit() {
  static const uint64_t limit = [] {
    const auto physical = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return std::min({physical, FirstNumber("/sys/fs/cgroup/memory.max"),
                     FirstNumber("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
  }();
  return limit;
}

bool FitsHostMemory(uint64_t bytes) {
  constexpr uint64_t kAlwaysTried = uint64_t{64} << 20;
  return bytes <= kAlwaysTried || bytes <= HostMemoryLimit();
}

Allocator& HostAllocator() {
  static HeapAllocator allocator;
  return allocator;
}

std::shared_ptr<Buffer> WrapHostMemory(void* data, uint64_t bytes, std::shared_ptr<const void> owner) {
  return std::make_shared<WrappedBuffer>(data, bytes, std::move(owner));
}

std::shared_ptr<Buffer> RepeatedHostMemory(std::span<const std::byte> element, uint64_t bytes) {
  const int file = memfd_create("weir-constant", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* const data = RepeatedBuffer::Fill(file, element) ? RepeatedBuffer::Map(file, bytes) : nullptr;
  close(file);
  return data == nullptr ? nullptr : std::make_shared<RepeatedBuffer>(data, bytes);
}

bool OutOfMemory(const Status& status) {
  return status.code() == Code::kResourceExhausted && status.message().find("OOM when allocating") != std::string::npos;
}

}  // namespace weir
