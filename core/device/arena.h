// Pooled memory of one device: best-fit chunks with coalescing, cut from slabs that the plugin allocates.
#ifndef WEIR_CORE_DEVICE_ARENA_H_
#define WEIR_CORE_DEVICE_ARENA_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/status.h"
#include "core/device/memory_use.h"
#include "core/tensor/buffer.h"
#include "sdk/abi/types.h"

namespace weir::device {

/// Source of an arena's slabs. Called without any arena lock, possibly from several threads at once; a call may use the
/// arena itself.
class SlabSource {
 public:
  virtual ~SlabSource() = default;
  virtual Result<weir_buf> AllocateSlab(uint64_t bytes) = 0;
  virtual void FreeSlab(const weir_buf& slab) = 0;
  /// Largest slab that may be had now, by the source's account; 0 = unknown. Asked before a slab takes all there is.
  virtual uint64_t LargestSlab() { return 0; }
};

/// Growth and limit of an arena.
struct ArenaOptions {
  std::string device;             // for error texts
  uint64_t limit_bytes = 0;       // total of all slabs; 0 = no limit
  std::string limit_source = {};  // origin of the limit, for error texts; empty if there is none
  uint64_t initial_bytes = 0;     // first slab when growing; 0 = 1 MiB
  bool grow = true;               // double the slab size; else the first slab takes the limit, or all that is available
  bool pooled = true;             // false: one slab per buffer
  uint64_t alignment = 64;        // of each buffer: a power of two, at least 64
  uint64_t largest_bytes = 0;     // of a slab; 0 = no limit but limit_bytes
};

/// Allocates buffers as aligned chunks. Returns slabs to the plugin only in Trim, and empty slabs if a
/// request would fail otherwise. Buffers keep the arena alive. Thread-safe: one short lock per allocation and per
/// release. A thread waits for another thread's plugin call only if it finds no room.
class Arena : public Allocator, public std::enable_shared_from_this<Arena> {
 public:
  static std::shared_ptr<Arena> Make(std::shared_ptr<SlabSource> source, ArenaOptions options);
  ~Arena() override;

  /// ResourceExhausted names the device, the request, the bytes in use and the limit; a request above the whole limit
  /// has its own text.
  Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override;

  /// O(free pieces).
  MemoryUse use() const;
  /// Returns empty slabs to the plugin; the result is the number of bytes freed.
  uint64_t Trim();

  static constexpr uint64_t kGranule = 64;

 private:
  // A range of a slab. Linked to its neighbours by address; free chunks are also linked by size class.
  struct Chunk {
    uint64_t offset = 0;  // from the slab's first aligned byte
    uint64_t size = 0;
    uint32_t slab = 0;
    bool free = false;
    Chunk* left = nullptr;
    Chunk* right = nullptr;
    Chunk* before = nullptr;  // in its bin
    Chunk* after = nullptr;
  };
  struct Slab {
    weir_buf memory{};
    uint64_t skew = 0;  // bytes skipped to align the chunks
    uint64_t size = 0;  // usable bytes; 0 = unused slot
  };
  class ArenaBuffer;

  Arena(std::shared_ptr<SlabSource> source, ArenaOptions options);
  void Release(Chunk* chunk);

  MemoryUse UseNow() const;
  /// Bytes that the limits still allow for a slab.
  uint64_t Room() const;
  uint64_t RoundUp(uint64_t bytes) const;
  uint64_t RoundDown(uint64_t bytes) const { return bytes & ~(options_.alignment - 1); }
  Result<Slab> MakeSlab(uint64_t size);

  // All functions below run under mutex_. Those with a Lock parameter release it around plugin calls.
  using Lock = std::unique_lock<std::mutex>;
  Chunk* FindChunk(uint64_t size);
  Status AddSlab(uint64_t size, Lock& lock);
  Status AddSlabOf(uint64_t size, Lock& lock);
  uint64_t AskLargest(Lock& lock);
  uint64_t FreeEmptySlabs(Lock& lock);
  /// Removes the slab of a wholly free chunk from the arena; FreeSlabs returns it to the plugin.
  Slab Detach(Chunk* whole);
  uint64_t FreeSlabs(std::span<const Slab> slabs, Lock& lock);
  void Leave(Lock& lock);
  void Return(Lock& lock);
  bool OthersCall() const;
  void PutFree(Chunk* chunk);
  void TakeFree(Chunk* chunk);
  void Split(Chunk* chunk, uint64_t size);
  Chunk* Join(Chunk* left, Chunk* right);
  Chunk* NewChunk();
  weir_buf MemoryOf(const Chunk& chunk) const;
  Status Exhausted(uint64_t bytes, std::string_view why) const;

  static constexpr int kBins = 512;
  static int BinOf(uint64_t size);

  const std::shared_ptr<SlabSource> source_;
  const ArenaOptions options_;
  mutable std::mutex mutex_;  // protects everything below
  MemoryUse use_;             // except the free_* and largest_free fields
  uint64_t next_slab_ = 0;
  std::vector<std::thread::id> calling_;  // threads inside a plugin call
  std::condition_variable returned_;      // one of them has returned
  std::vector<Slab> slabs_;
  std::array<Chunk*, kBins> bins_{};
  std::array<uint64_t, kBins / 64> occupied_{};  // bit per bin that is not empty
  std::deque<Chunk> chunks_;
  std::vector<Chunk*> spare_;
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_ARENA_H_
