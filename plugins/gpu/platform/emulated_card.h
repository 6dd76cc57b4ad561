// An emulated card: its memory, and the faults that its options inject.
#ifndef WEIR_PLUGINS_GPU_PLATFORM_EMULATED_CARD_H_
#define WEIR_PLUGINS_GPU_PLATFORM_EMULATED_CARD_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

#include "plugins/gpu/platform/emulated_queue.h"
#include "sdk/cpp/options.h"

namespace weir::gpu::emulated {

/// Addresses of one card, and the memory behind them at the distance of emulated_queue.h. Blocks have a page without
/// access after their end; freed blocks lose access. Thread-safe.
class Memory {
 public:
  ~Memory();
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Reserves the addresses once; false if the process has no room for them.
  bool Reserve();
  void SetCapacity(uint64_t bytes);
  /// 0 if memory is exhausted.
  uint64_t Allocate(uint64_t bytes);
  void Free(uint64_t address);
  /// The largest block that Allocate could return now.
  void Info(uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const;
  bool Contains(uint64_t address) const;

 private:
  mutable std::mutex mutex_;  // protects everything below
  uint64_t base_ = 0;
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  std::map<uint64_t, uint64_t> blocks_;  // address to size of its pages, without the guard page
};

/// One card; lives as long as the process. Thread-safe.
class Card {
 public:
  static constexpr int kMostCards = 8;
  /// The card of an ordinal below kMostCards.
  static Card& Of(int ordinal);

  int ordinal() const { return ordinal_; }
  Memory& memory() { return memory_; }
  /// Calls nest. WEIR_EMULATED_*; the first call after the last Close ends the loss of the card.
  int32_t Open(const sdk::Options& options);
  void Close();
  bool lost() const { return lost_.load(); }

  /// Called before each allocation; false if it is to fail.
  bool MayAllocate();
  /// Called on a queue's thread before each piece of work: waits for the configured time, hangs, or loses the card.
  /// WEIR_EMULATED_*.
  int32_t Begin();

 private:
  const int ordinal_;
  explicit Card(int ordinal) : ordinal_(ordinal) {}
  Memory memory_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  int opened_ = 0;
  int64_t begun_ = 0;
  int64_t allocations_ = 0;
  int64_t latency_us_ = 0;
  int64_t lose_at_ = -1;
  int64_t hang_at_ = -1;
  int64_t fail_alloc_at_ = -1;
  bool closing_ = false;
};

}  // namespace weir::gpu::emulated

#endif  // WEIR_PLUGINS_GPU_PLATFORM_EMULATED_CARD_H_
