// Memory that large tensors of other processes arrive in. It is kept from one step to the next: new memory is cleared
// page by page on its first touch, which takes as long as half of the copy into it.
#ifndef WEIR_CORE_CLUSTER_RECEIVED_MEMORY_H_
#define WEIR_CORE_CLUSTER_RECEIVED_MEMORY_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/status.h"
#include "core/runtime/timer.h"
#include "core/tensor/buffer.h"

namespace weir::cluster {

/// Host memory. Blocks that are given back serve later requests of nearly their size, and are freed once they have been
/// idle for a while. Buffers keep the object alive. Thread-safe.
class ReceivedMemory final : public Allocator, public std::enable_shared_from_this<ReceivedMemory> {
 public:
  struct Options {
    uint64_t from_bytes = uint64_t{4} << 20;  // smaller blocks are not kept: the heap does so itself
    uint64_t most_kept_bytes = 0;
    std::chrono::milliseconds idle{10000};
  };
  static std::shared_ptr<ReceivedMemory> Make(Options options);
  /// Keeps an eighth of HostMemoryLimit at most; nothing under the address sanitizer, which sees every block then.
  static ReceivedMemory& OfProcess();
  ~ReceivedMemory() override;

  Result<std::shared_ptr<Buffer>> Allocate(uint64_t bytes) override;
  /// Bytes of the blocks that are idle now.
  uint64_t kept_bytes() const;

 private:
  class Lent;
  struct Kept {
    std::shared_ptr<Buffer> block;
    runtime::Timer::Clock::time_point since;
  };
  explicit ReceivedMemory(Options options) : options_(options) {}
  std::shared_ptr<Buffer> TakeKept(uint64_t bytes);
  void Return(std::shared_ptr<Buffer> block);
  void FreeIdle();
  /// Takes the `count` oldest blocks out. With the mutex held; the caller frees them without it.
  std::vector<Kept> TakeOldest(size_t count);
  std::unique_ptr<runtime::Timer> WakeAt(runtime::Timer::Clock::time_point when);

  const Options options_;
  mutable std::mutex mutex_;  // protects all below
  std::vector<Kept> kept_;    // in the order of their return
  uint64_t kept_bytes_ = 0;
  bool waits_ = false;  // `timer_` will free blocks
  bool over_ = false;
  std::unique_ptr<runtime::Timer> timer_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_RECEIVED_MEMORY_H_
