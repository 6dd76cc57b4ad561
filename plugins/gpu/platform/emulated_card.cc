#include "plugins/gpu/platform/emulated_card.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>

namespace weir::gpu::emulated {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* At(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

Memory::~Memory() {
  if (base_ != 0) (void)munmap(At(base_), 2 * WEIR_EMULATED_DISTANCE);
}

bool Memory::Reserve() {
  const std::lock_guard lock(mutex_);
  if (base_ != 0) return true;
  void* const found = mmap(nullptr, 2 * WEIR_EMULATED_DISTANCE, PROT_NONE, kReserved, -1, 0);
  if (found == MAP_FAILED) return false;
  base_ = reinterpret_cast<uint64_t>(found);
  return true;
}

void Memory::SetCapacity(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = std::min<uint64_t>(bytes, WEIR_EMULATED_DISTANCE / 2);
}

uint64_t Memory::Allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (base_ == 0 || bytes == 0 || bytes > capacity_) return 0;
  const uint64_t size = (bytes + kPage - 1) / kPage * kPage;
  if (size > capacity_ - std::min(used_, capacity_)) return 0;
  // Addresses are twice as many as memory, so that guard pages and holes seldom exhaust them.
  uint64_t address = base_ + kPage;
  for (const auto& [begin, length] : blocks_) {
    if (begin - address >= size + kPage) break;
    address = begin + length + kPage;
  }
  if (address + size + kPage > base_ + WEIR_EMULATED_DISTANCE) return 0;
  if (mprotect(At(address + WEIR_EMULATED_DISTANCE), size, PROT_READ | PROT_WRITE) != 0) return 0;
  blocks_.emplace(address, size);
  used_ += size;
  return address;
}

void Memory::Free(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  // A fresh mapping drops the pages and takes away all access.
  (void)mmap(At(address + WEIR_EMULATED_DISTANCE), found->second, PROT_NONE, kReserved | MAP_FIXED, -1, 0);
  used_ -= found->second;
  blocks_.erase(found);
}

void Memory::Info(uint64_t& free_bytes, uint64_t& total_bytes, uint64_t& largest_bytes) const {
  const std::lock_guard lock(mutex_);
  total_bytes = capacity_;
  free_bytes = largest_bytes = (capacity_ - std::min(used_, capacity_)) / kPage * kPage;
}

bool Memory::Contains(uint64_t address) const {
  const std::lock_guard lock(mutex_);
  return base_ != 0 && address >= base_ && address < base_ + WEIR_EMULATED_DISTANCE;
}

Card& Card::Of(int ordinal) {
  // Never destroyed: queues that hang keep their cards.
  static std::array<Card*, kMostCards>* const cards = [] {
    auto made = std::make_unique<std::array<Card*, kMostCards>>();
    for (int i = 0; i < kMostCards; ++i) (*made)[static_cast<size_t>(i)] = new Card(i);
    return made.release();
  }();
  return *(*cards)[static_cast<size_t>(std::clamp(ordinal, 0, kMostCards - 1))];
}

int32_t Card::Open(const sdk::Options& options) {
  const int64_t fault_card = options.Int("fault_device", -1);
  const bool faulty = fault_card < 0 || fault_card == ordinal_;
  if (faulty && options.Bool("vanish", false)) return WEIR_EMULATED_NO_DEVICE;
  if (!memory_.Reserve()) return WEIR_EMULATED_NO_MEMORY;
  const std::lock_guard lock(mutex_);
  if (opened_++ != 0) return WEIR_EMULATED_OK;
  memory_.SetCapacity(static_cast<uint64_t>(options.Int("memory_mb", 1024)) << 20);
  lost_ = false;
  closing_ = false;
  begun_ = allocations_ = 0;
  latency_us_ = options.Int("latency_us", 0);
  lose_at_ = faulty ? options.Int("lose_at", -1) : -1;
  hang_at_ = faulty ? options.Int("hang_at", -1) : -1;
  fail_alloc_at_ = faulty ? options.Int("fail_alloc_at", -1) : -1;
  return WEIR_EMULATED_OK;
}

void Card::Close() {
  const std::lock_guard lock(mutex_);
  if (opened_ > 0) --opened_;
  if (opened_ != 0) return;
  closing_ = true;  // releases work that hangs
  changed_.notify_all();
}

bool Card::MayAllocate() {
  const std::lock_guard lock(mutex_);
  const int64_t number = allocations_++;
  return fail_alloc_at_ < 0 || number < fail_alloc_at_;
}

int32_t Card::Begin() {
  int64_t number = 0, latency = 0;
  {
    std::unique_lock lock(mutex_);
    number = begun_++;
    latency = latency_us_;
    if (hang_at_ >= 0 && number >= hang_at_) {
      changed_.wait(lock, [&] { return closing_; });
      lost_ = true;
    }
    if (lose_at_ >= 0 && number >= lose_at_) lost_ = true;
  }
  if (latency > 0) std::this_thread::sleep_for(std::chrono::microseconds(latency));
  return lost_ ? WEIR_EMULATED_LOST : WEIR_EMULATED_OK;
}

}  // namespace weir::gpu::emulated
