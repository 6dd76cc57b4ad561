#include "core/device/arena.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "core/base/errors.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>

#define WEIR_POISON(data, bytes) ASAN_POISON_MEMORY_REGION(data, bytes)
#define WEIR_UNPOISON(data, bytes) ASAN_UNPOISON_MEMORY_REGION(data, bytes)
#else
#define WEIR_POISON(data, bytes) static_cast<void>(0)
#define WEIR_UNPOISON(data, bytes) static_cast<void>(0)
#endif

namespace weir::device {
namespace {

constexpr uint64_t kFirstSlab = uint64_t{1} << 20;
constexpr uint64_t kLargestStep = uint64_t{1} << 30;  // slabs stop doubling at this size
constexpr uint64_t kLargestRequest = uint64_t{1} << 62;

}  // namespace

// Returns its chunk to the arena, or its slab if the arena is not pooled. Keeps the arena alive.
class Arena::ArenaBuffer final : public Buffer {
 public:
  ArenaBuffer(const weir_buf& memory, std::shared_ptr<Arena> arena, Chunk* chunk)
      : Buffer(memory), arena_(std::move(arena)), chunk_(chunk) {}
  ~ArenaBuffer() override { arena_->Release(chunk_); }

 private:
  std::shared_ptr<Arena> arena_;
  Chunk* chunk_;
};

std::shared_ptr<Arena> Arena::Make(std::shared_ptr<SlabSource> source, ArenaOptions options) {
  return std::shared_ptr<Arena>(new Arena(std::move(source), std::move(options)));
}

Arena::Arena(std::shared_ptr<SlabSource> source, ArenaOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  next_slab_ = options_.initial_bytes != 0 ? options_.initial_bytes : kFirstSlab;
}

uint64_t Arena::RoundUp(uint64_t bytes) const {
  return (std::max<uint64_t>(bytes, 1) + options_.alignment - 1) & ~(options_.alignment - 1);
}

Arena::~Arena() {
  for (const Slab& slab : slabs_) {
    if (slab.size == 0) continue;
    if (slab.memory.host != nullptr) WEIR_UNPOISON(slab.memory.host, slab.memory.bytes);
    source_->FreeSlab(slab.memory);
  }
}

Result<std::shared_ptr<Buffer>> Arena::Allocate(uint64_t bytes) {
  Chunk* chunk = nullptr;
  weir_buf memory;
  {
    Lock lock(mutex_);
    if (bytes > kLargestRequest) return Exhausted(bytes, "no memory is that large");
    const uint64_t size = RoundUp(bytes);
    if (options_.largest_bytes != 0 && bytes > options_.largest_bytes) return Exhausted(bytes, "");
    if (options_.pooled) chunk = FindChunk(size);
    if (chunk == nullptr) {
      if (Status added = AddSlab(size, lock); !added.ok()) return Exhausted(bytes, added.message());
      chunk = FindChunk(size);
    }
    TakeFree(chunk);
    if (options_.pooled) Split(chunk, size);
    use_.in_use += chunk->size;
    use_.peak = std::max(use_.peak, use_.in_use);
    memory = MemoryOf(*chunk);
    if (memory.host != nullptr) WEIR_UNPOISON(memory.host, memory.bytes);
  }
  return std::shared_ptr<Buffer>(std::make_shared<ArenaBuffer>(memory, shared_from_this(), chunk));
}

void Arena::Release(Chunk* chunk) {
  Lock lock(mutex_);
  use_.in_use -= chunk->size;
  if (!options_.pooled) {
    const Slab slab = Detach(chunk);
    FreeSlabs({&slab, 1}, lock);
    return;
  }
  if (const weir_buf memory = MemoryOf(*chunk); memory.host != nullptr) WEIR_POISON(memory.host, memory.bytes);
  if (chunk->left != nullptr && chunk->left->free) {
    TakeFree(chunk->left);
    chunk = Join(chunk->left, chunk);
  }
  if (chunk->right != nullptr && chunk->right->free) {
    TakeFree(chunk->right);
    chunk = Join(chunk, chunk->right);
  }
  PutFree(chunk);
}

MemoryUse Arena::use() const {
  const std::lock_guard lock(mutex_);
  return UseNow();
}

MemoryUse Arena::UseNow() const {
  MemoryUse use = use_;
  for (const Chunk* first : bins_) {
    for (const Chunk* chunk = first; chunk != nullptr; chunk = chunk->after) {
      ++use.free_pieces;
      use.free_bytes += chunk->size;
      use.largest_free = std::max(use.largest_free, chunk->size);
    }
  }
  return use;
}

uint64_t Arena::Trim() {
  Lock lock(mutex_);
  return FreeEmptySlabs(lock);
}

// Exact size classes up to 4 KiB, then eight per power of two: sizes in a bin differ by less than an eighth.
int Arena::BinOf(uint64_t size) {
  const uint64_t granules = size / kGranule;
  if (granules <= 64) return static_cast<int>(granules) - 1;
  const int log = std::bit_width(granules) - 1;
  const auto step = static_cast<int>((granules >> (log - 3)) & 7);
  return std::min(64 + (log - 6) * 8 + step, kBins - 1);
}

// The smallest free chunk of at least `size`: from its own bin, else from the next non-empty one.
Arena::Chunk* Arena::FindChunk(uint64_t size) {
  const int own = BinOf(size);
  int bin = own;
  while (true) {
    size_t word = static_cast<size_t>(bin) / 64;
    uint64_t bits = occupied_[word] & (~uint64_t{0} << (bin % 64));
    while (bits == 0) {
      if (++word == occupied_.size()) return nullptr;
      bits = occupied_[word];
    }
    bin = static_cast<int>(word) * 64 + std::countr_zero(bits);
    Chunk* best = nullptr;
    for (Chunk* chunk = bins_[static_cast<size_t>(bin)]; chunk != nullptr; chunk = chunk->after) {
      if (chunk->size >= size && (best == nullptr || chunk->size < best->size)) best = chunk;
      if (best != nullptr && best->size == size) break;
    }
    if (best != nullptr) return best;
    if (++bin == kBins) return nullptr;
  }
}

// Adds a slab with room for `size`, as large as growth and limit allow. Does nothing if a free chunk appears while
// waiting.
Status Arena::AddSlab(uint64_t size, Lock& lock) {
  const auto served = [&] { return options_.pooled && FindChunk(size) != nullptr; };
  if (size > Room()) FreeEmptySlabs(lock);
  while (size > Room() && !served() && OthersCall()) returned_.wait(lock);
  if (served()) return {};
  const uint64_t room = Room();
  if (size > room) return ResourceExhausted("the limit leaves no room for another slab");
  if (!options_.pooled) return AddSlabOf(size, lock);

  uint64_t wanted = std::max(size, next_slab_);
  if (!options_.grow && options_.limit_bytes != 0) {
    wanted = room;
    if (const uint64_t largest = AskLargest(lock); largest != 0) wanted = std::min(wanted, largest);
  }
  wanted = RoundDown(std::min(wanted, Room()));
  wanted = std::max(wanted, size);
  Status status = AddSlabOf(wanted, lock);
  // The device may have less memory than its limit says: use the largest size that it grants.
  while (!status.ok() && wanted > size) {
    wanted = std::max(size, RoundDown(wanted / 2));
    status = AddSlabOf(wanted, lock);
  }
  if (!status.ok()) {
    FreeEmptySlabs(lock);
    status = AddSlabOf(size, lock);
  }
  if (status.ok()) next_slab_ = std::min(std::max(next_slab_, wanted) * 2, std::max(kLargestStep, next_slab_));
  return status;
}

uint64_t Arena::Room() const {
  constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  const uint64_t limit = options_.limit_bytes != 0 ? options_.limit_bytes : kNoLimit;
  const uint64_t largest = options_.largest_bytes != 0 ? options_.largest_bytes : kNoLimit;
  return std::min(limit - std::min(use_.reserved, limit), largest);
}

uint64_t Arena::AskLargest(Lock& lock) {
  Leave(lock);
  const uint64_t largest = source_->LargestSlab();
  Return(lock);
  return largest;
}

// On success the new slab's chunk is free, and the lock has been held since it became free.
Status Arena::AddSlabOf(uint64_t size, Lock& lock) {
  if (size > Room()) return ResourceExhausted("another thread took the room that was left");
  use_.reserved += size;  // before the plugin call: concurrent threads must not exceed the limit together
  Leave(lock);
  const Result<Slab> made = MakeSlab(size);
  Return(lock);
  if (!made.ok()) {
    use_.reserved -= size;
    return made.status();
  }
  const auto empty = std::find_if(slabs_.begin(), slabs_.end(), [](const Slab& s) { return s.size == 0; });
  const auto index = static_cast<uint32_t>(empty - slabs_.begin());
  if (empty == slabs_.end()) {
    slabs_.push_back(*made);
  } else {
    *empty = *made;
  }
  Chunk* chunk = NewChunk();
  chunk->size = size;
  chunk->slab = index;
  PutFree(chunk);
  return {};
}

Result<Arena::Slab> Arena::MakeSlab(uint64_t size) {
  WEIR_ASSIGN(weir_buf memory, source_->AllocateSlab(size));
  Slab slab{.memory = memory, .skew = 0, .size = size};
  if (memory.host != nullptr) {
    const uint64_t unit = options_.alignment;
    const auto skew = [unit](const weir_buf& of) {
      return (unit - reinterpret_cast<uintptr_t>(of.host) % unit) % unit;
    };
    slab.skew = skew(memory);
    // Plugins must align as they declare. For one that does not, request one more unit.
    if (slab.skew != 0 && memory.bytes < size + slab.skew) {
      source_->FreeSlab(memory);
      WEIR_ASSIGN(slab.memory, source_->AllocateSlab(size + unit));
      slab.skew = skew(slab.memory);
    }
    if (options_.pooled) WEIR_POISON(slab.memory.host, slab.memory.bytes);
  }
  return slab;
}

uint64_t Arena::FreeEmptySlabs(Lock& lock) {
  std::vector<Slab> detached;
  for (Chunk* first : bins_) {
    for (Chunk* chunk = first; chunk != nullptr;) {
      Chunk* next = chunk->after;
      if (chunk->left == nullptr && chunk->right == nullptr) {
        TakeFree(chunk);
        detached.push_back(Detach(chunk));
      }
      chunk = next;
    }
  }
  return detached.empty() ? 0 : FreeSlabs(detached, lock);
}

Arena::Slab Arena::Detach(Chunk* whole) {
  const Slab slab = std::exchange(slabs_[whole->slab], Slab());
  spare_.push_back(whole);
  return slab;
}

uint64_t Arena::FreeSlabs(std::span<const Slab> slabs, Lock& lock) {
  Leave(lock);
  uint64_t freed = 0;
  for (const Slab& slab : slabs) {
    if (slab.memory.host != nullptr) WEIR_UNPOISON(slab.memory.host, slab.memory.bytes);
    source_->FreeSlab(slab.memory);
    freed += slab.size;
  }
  Return(lock);
  use_.reserved -= freed;
  return freed;
}

// Marks a thread as inside a plugin call, so that threads that find no room know whether waiting may help.
void Arena::Leave(Lock& lock) {
  calling_.push_back(std::this_thread::get_id());
  lock.unlock();
}

void Arena::Return(Lock& lock) {
  lock.lock();
  calling_.erase(std::find(calling_.begin(), calling_.end(), std::this_thread::get_id()));
  returned_.notify_all();  // waiters run after the caller has used the result, since it holds the lock
}

bool Arena::OthersCall() const {
  return std::any_of(calling_.begin(), calling_.end(),
                     [](std::thread::id id) { return id != std::this_thread::get_id(); });
}

void Arena::PutFree(Chunk* chunk) {
  const auto bin = static_cast<size_t>(BinOf(chunk->size));
  chunk->free = true;
  chunk->before = nullptr;
  chunk->after = bins_[bin];
  if (chunk->after != nullptr) chunk->after->before = chunk;
  bins_[bin] = chunk;
  occupied_[bin / 64] |= uint64_t{1} << (bin % 64);
}

void Arena::TakeFree(Chunk* chunk) {
  const auto bin = static_cast<size_t>(BinOf(chunk->size));
  if (chunk->before != nullptr) chunk->before->after = chunk->after;
  if (chunk->after != nullptr) chunk->after->before = chunk->before;
  if (bins_[bin] == chunk) bins_[bin] = chunk->after;
  if (bins_[bin] == nullptr) occupied_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
  chunk->before = chunk->after = nullptr;
  chunk->free = false;
}

// Splits the bytes of `chunk` beyond `size` into a free chunk.
void Arena::Split(Chunk* chunk, uint64_t size) {
  if (chunk->size == size) return;
  Chunk* rest = NewChunk();
  rest->slab = chunk->slab;
  rest->offset = chunk->offset + size;
  rest->size = chunk->size - size;
  rest->left = chunk;
  rest->right = chunk->right;
  if (rest->right != nullptr) rest->right->left = rest;
  chunk->right = rest;
  chunk->size = size;
  PutFree(rest);
}

Arena::Chunk* Arena::Join(Chunk* left, Chunk* right) {
  left->size += right->size;
  left->right = right->right;
  if (left->right != nullptr) left->right->left = left;
  spare_.push_back(right);
  return left;
}

Arena::Chunk* Arena::NewChunk() {
  if (spare_.empty()) return &chunks_.emplace_back();
  Chunk* chunk = spare_.back();
  spare_.pop_back();
  *chunk = Chunk();
  return chunk;
}

weir_buf Arena::MemoryOf(const Chunk& chunk) const {
  const Slab& slab = slabs_[chunk.slab];
  weir_buf memory = slab.memory;
  memory.struct_size = sizeof(memory);
  memory.offset += slab.skew + chunk.offset;
  memory.bytes = chunk.size;
  if (memory.host != nullptr) memory.host = static_cast<std::byte*>(memory.host) + slab.skew + chunk.offset;
  return memory;
}

Status Arena::Exhausted(uint64_t bytes, std::string_view why) const {
  const std::string limit = options_.limit_bytes != 0 ? fmt::format("{}", options_.limit_bytes) : "the device's memory";
  const std::string source = options_.limit_source.empty() ? "" : fmt::format(", set by {}", options_.limit_source);
  if (options_.limit_bytes != 0 && bytes > options_.limit_bytes) {
    return ResourceExhausted("OOM when allocating {} bytes on {}: more than its whole limit of {} bytes{}", bytes,
                             options_.device, limit, source.empty() ? ", all that it has" : source);
  }
  if (options_.largest_bytes != 0 && bytes > options_.largest_bytes) {
    return ResourceExhausted(
        "OOM when allocating {} bytes on {}: more than {} bytes, its largest single allocation", bytes, options_.device,
        options_.largest_bytes);
  }
  const MemoryUse use = UseNow();
  return ResourceExhausted(
      "OOM when allocating {} bytes on {}: {} bytes are in use of a limit of {}{}, {} are reserved, {} of them free in "
      "{} pieces of at most {}, fragmentation {:.0f} % ({})",
      bytes, options_.device, use.in_use, limit, source, use.reserved, use.free_bytes, use.free_pieces,
      use.largest_free, 100 * use.fragmentation(), why);
}

}  // namespace weir::device
