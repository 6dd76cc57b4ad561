// Memory, queue and events of the example: blocks behind opaque handles, and one thread that runs work in order.
#ifndef WEIR_SDK_EXAMPLES_HANDLE_DEVICE_QUEUE_H_
#define WEIR_SDK_EXAMPLES_HANDLE_DEVICE_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sdk/abi/profiler.h"
#include "sdk/abi/stream.h"
#include "sdk/cpp/status.h"
#include "handle_platform.h"

namespace handle_device {

/// A block of memory; only work on a queue sees its address.
struct Block {
  explicit Block(uint64_t size) : bytes(size), data(size / sizeof(uint64_t) + 1) {}
  char* base() { return reinterpret_cast<char*>(data.data()); }
  const uint64_t bytes;
  std::vector<uint64_t> data;
};

/// What a piece of work uses of a block; null for an empty operand.
struct Range {
  std::shared_ptr<Block> block;
  uint64_t offset = 0;
  void* address() const { return block == nullptr ? nullptr : block->base() + offset; }
};

/// The memory of one device. Thread-safe.
class Memory {
 public:
  Memory(uint64_t capacity, uint64_t largest, uint64_t alignment)
      : capacity_(capacity), largest_(largest), alignment_(alignment) {}

  /// The handle of a new block; 0 with a text in `error` if memory is exhausted, or the block too large.
  uint64_t Allocate(uint64_t bytes, const weir::sdk::Error& error);
  /// Work that was submitted before may still use the block.
  void Free(uint64_t handle);
  /// The ranges of the operands, in order, with null for those that are empty or name no block.
  std::vector<Range> Find(std::span<const weir_handle_operand> operands) const;
  uint64_t capacity() const { return capacity_; }
  uint64_t largest() const { return largest_; }
  /// Kernels use blocks at multiples of it only; copies and fills at any offset.
  uint64_t alignment() const { return alignment_; }
  uint64_t used() const;

 private:
  const uint64_t capacity_;
  const uint64_t largest_;
  const uint64_t alignment_;
  mutable std::mutex mutex_;  // protects all below
  uint64_t used_ = 0;
  uint64_t next_ = 1;
  std::map<uint64_t, std::shared_ptr<Block>> blocks_;
};

/// When work ran: two timestamps of a piece, of the device's own clock. Thread-safe.
class Timeline {
 public:
  void Start(uint32_t kinds) { kinds_ = kinds; }
  bool Wants(uint32_t kind) const { return (kinds_.load(std::memory_order_relaxed) & kind) != 0; }
  void Add(const weir_activity& activity);
  /// Takes what was added since the last call; the number of records that found no room is returned in `lost`.
  std::vector<weir_activity> Take(uint64_t* lost);
  /// Nanoseconds since some moment before the first use. A clock apart from the host's, as devices have.
  static uint64_t Now();

 private:
  static constexpr size_t kRoom = size_t{1} << 16;
  std::atomic<uint32_t> kinds_{0};  // recorded ones
  std::mutex mutex_;                // protects all below
  std::vector<weir_activity> activities_;
  uint64_t lost_ = 0;
};

/// The failure of a piece of work; code 0 = none.
struct Failure {
  int32_t code = WEIR_OK;
  std::string text;
  uint64_t mark = 0;  // of the work
  int32_t Tell(const weir::sdk::Error& error) const {
    if (code == WEIR_OK) return WEIR_OK;
    if (error.record() != nullptr) error.record()->flags |= WEIR_ERROR_STREAM_POISONED;
    return error.Fail(code, text);
  }
};

/// A point in a queue, reached when all work before it has run or was dropped. Thread-safe.
class Point {
 public:
  using Callback = std::pair<void (*)(void* arg, int32_t code), void*>;

  void Reach(const Failure& failure);
  int32_t Query();  // WEIR_EVENT_*
  Failure Await();
  /// Calls back at once if the point has been reached.
  void Then(Callback callback);

 private:
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  bool reached_ = false;
  Failure failure_;
  std::vector<Callback> callbacks_;
};

/// The latest record of an event. Thread-safe.
class Event {
 public:
  int32_t Query();
  int32_t Sync(const weir::sdk::Error& error);
  int32_t OnComplete(void (*fn)(void*, int32_t), void* arg, const weir::sdk::Error& error);

 private:
  friend class Queue;
  std::shared_ptr<Point> latest();
  std::mutex mutex_;  // protects point_
  std::shared_ptr<Point> point_;
};

/// A stream: one thread that runs work in the order of its submission. Used by one thread at a time.
class Queue {
 public:
  Queue(Memory& memory, Timeline& timeline);
  /// Waits for the work.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  int32_t Record(Event& event, const weir::sdk::Error& error);
  int32_t Wait(Event& event, const weir::sdk::Error& error);
  void Poison(int32_t code, std::string_view text);
  /// Work that is submitted from here on belongs to `mark`.
  void Mark(uint64_t mark) { mark_ = mark; }
  /// The mark of the work that failed; 0 if none did. Any thread.
  uint64_t FailedMark();

  /// Runs `run(addresses, record)` with the address of each operand, which must be a range of this device's memory.
  int32_t Submit(std::string_view name, uint32_t kind, std::span<const weir_handle_operand> operands,
                 std::function<int32_t(void* const*, weir_error*)> run, const weir::sdk::Error& error);
  int32_t Finish(const weir::sdk::Error& error);
  /// The object that kernels get as the native stream.
  const weir_handle_queue& native() const { return native_; }

 private:
  struct Work {
    std::string name;
    uint32_t kind = 0;  // WEIR_ACTIVITY_*
    uint64_t mark = 0;
    std::vector<Range> operands;  // kept until the work has run
    std::function<int32_t(void* const*, weir_error*)> run;
    std::shared_ptr<Point> reach;
    std::shared_ptr<Point> wait;
  };

  void Push(Work&& work);
  std::shared_ptr<Point> PushPoint();
  void Loop();
  void Do(Work& work);
  Failure failure();
  void Fail(Failure failure);

  Memory& memory_;
  Timeline& timeline_;
  const weir_handle_queue native_;
  uint64_t mark_ = 0;  // used by the thread that submits
  std::vector<void*> addresses_;  // of the work that runs; used by the queue's thread
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::deque<Work> work_;
  Failure failure_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace handle_device

#endif  // WEIR_SDK_EXAMPLES_HANDLE_DEVICE_QUEUE_H_
