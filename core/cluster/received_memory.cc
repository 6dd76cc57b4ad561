#include "core/cluster/received_memory.h"

#include <iterator>
#include <utility>

#include "core/tensor/host_memory.h"

namespace weir::cluster {
namespace {

using TimerClock = runtime::Timer::Clock;

/// The first `bytes` of a block.
weir_buf FrontOf(const Buffer& block, uint64_t bytes) {
  weir_buf memory = block.memory();
  memory.bytes = bytes;
  return memory;
}

}  // namespace

/// Gives its block back.
class ReceivedMemory::Lent final : public Buffer {
 public:
  Lent(std::shared_ptr<Buffer> block, uint64_t bytes, std::shared_ptr<ReceivedMemory> owner)
      : Buffer(FrontOf(*block, bytes)), block_(std::move(block)), owner_(std::move(owner)) {}
  ~Lent() override { owner_->Return(std::move(block_)); }

 private:
  std::shared_ptr<Buffer> block_;
  const std::shared_ptr<ReceivedMemory> owner_;
};

std::shared_ptr<ReceivedMemory> ReceivedMemory::Make(Options options) {
  return std::shared_ptr<ReceivedMemory>(new ReceivedMemory(options));
}

ReceivedMemory& ReceivedMemory::OfProcess() {
  // Never destroyed: tensors may outlive main.
  constexpr bool kKeepsNone = WEIR_SANITIZER_KIND == 1;
  static auto* const memory =
      new std::shared_ptr<ReceivedMemory>(Make({.most_kept_bytes = kKeepsNone ? 0 : HostMemoryLimit() / 8}));
  return **memory;
}

ReceivedMemory::~ReceivedMemory() {
  std::unique_ptr<runtime::Timer> last;  // ends without the lock, which its function takes
  const std::lock_guard lock(mutex_);
  over_ = true;
  last = std::move(timer_);
}

Result<std::shared_ptr<Buffer>> ReceivedMemory::Allocate(uint64_t bytes) {
  if (bytes < options_.from_bytes || bytes > options_.most_kept_bytes) return HostAllocator().Allocate(bytes);
  std::shared_ptr<Buffer> block = TakeKept(bytes);
  if (!block) {
    WEIR_ASSIGN(block, HostAllocator().Allocate(bytes));
  }
  return std::shared_ptr<Buffer>(std::make_shared<Lent>(std::move(block), bytes, shared_from_this()));
}

std::shared_ptr<Buffer> ReceivedMemory::TakeKept(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (size_t k = kept_.size(); k-- > 0;) {  // the last one is likeliest to lie in a cache
    const uint64_t has = kept_[k].block->bytes();
    if (has < bytes || has - bytes > bytes / 8) continue;
    std::shared_ptr<Buffer> block = std::move(kept_[k].block);
    kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(k));
    kept_bytes_ -= has;
    return block;
  }
  return nullptr;
}

void ReceivedMemory::Return(std::shared_ptr<Buffer> block) {
  std::vector<Kept> dropped;  // freed without the lock
  std::unique_ptr<runtime::Timer> ended;
  const std::lock_guard lock(mutex_);
  const TimerClock::time_point now = TimerClock::now();
  kept_bytes_ += block->bytes();
  kept_.push_back({std::move(block), now});
  size_t most = 0;  // the oldest make room
  for (uint64_t left = kept_bytes_; left > options_.most_kept_bytes; ++most) left -= kept_[most].block->bytes();
  dropped = TakeOldest(most);
  if (!waits_ && !kept_.empty()) ended = WakeAt(now + options_.idle);
}

/// Returns the timer before, which ends without the lock.
std::unique_ptr<runtime::Timer> ReceivedMemory::WakeAt(TimerClock::time_point when) {
  waits_ = true;
  return std::exchange(timer_, std::make_unique<runtime::Timer>(when, [this] { FreeIdle(); }));
}

void ReceivedMemory::FreeIdle() {
  std::vector<Kept> dropped;  // freed without the lock
  std::unique_ptr<runtime::Timer> ended;
  const std::lock_guard lock(mutex_);
  waits_ = false;
  if (over_) return;
  size_t idle = 0;
  const TimerClock::time_point until = TimerClock::now() - options_.idle;
  while (idle < kept_.size() && kept_[idle].since <= until) ++idle;
  dropped = TakeOldest(idle);
  if (!kept_.empty()) ended = WakeAt(kept_.front().since + options_.idle);
}

std::vector<ReceivedMemory::Kept> ReceivedMemory::TakeOldest(size_t count) {
  const auto end = kept_.begin() + static_cast<ptrdiff_t>(count);
  std::vector<Kept> taken(std::make_move_iterator(kept_.begin()), std::make_move_iterator(end));
  kept_.erase(kept_.begin(), end);
  for (const Kept& one : taken) kept_bytes_ -= one.block->bytes();
  return taken;
}

uint64_t ReceivedMemory::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

}  // namespace weir::cluster
