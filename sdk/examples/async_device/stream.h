// Streams and events of the example: one thread per stream, which takes operations from a queue.
#ifndef WEIR_SDK_EXAMPLES_ASYNC_DEVICE_STREAM_H_
#define WEIR_SDK_EXAMPLES_ASYNC_DEVICE_STREAM_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sdk/abi/stream.h"
#include "sdk/cpp/status.h"
#include "async_platform.h"
#include "hardware.h"
#include "order.h"

namespace async_device {

/// A point in a stream, reached when all work before it has completed or failed. Thread-safe.
class Mark {
 public:
  using Callback = std::pair<void (*)(void* arg, int32_t code), void*>;

  explicit Mark(Clock clock) : clock_(std::move(clock)) {}

  const Clock& clock() const { return clock_; }
  void Reach(const Fault& fault);
  /// Blocks until the mark is reached; returns the stream's failure before the mark.
  Fault Await();
  /// WEIR_EVENT_*.
  int32_t Query();
  /// Calls back at once if the mark has already been reached.
  void Then(Callback callback);

 private:
  void Call(Callback callback, int32_t code);

  const Clock clock_;  // operations before the mark
  std::mutex mutex_;   // protects everything below
  std::condition_variable reached_cv_;
  bool reached_ = false;
  Fault fault_;
  std::vector<Callback> callbacks_;
};

/// True on a thread that is inside an on_complete callback, where nothing may block.
bool InCallback();

/// Binary: refers to the latest record only. Thread-safe.
class Event {
 public:
  int32_t Query();
  int32_t Sync(const weir::sdk::Error& error);
  int32_t OnComplete(void (*fn)(void*, int32_t), void* arg, const weir::sdk::Error& error);

  void Record(std::shared_ptr<Mark> mark);
  /// Null if it was never recorded.
  std::shared_ptr<Mark> latest();

 private:
  std::mutex mutex_;  // protects mark_
  std::shared_ptr<Mark> mark_;
};

/// A range of device memory used by an operation, with the block kept alive.
struct Operand {
  std::shared_ptr<Block> block;
  char* address = nullptr;
};

class Stream {
 public:
  explicit Stream(Hardware& hardware);
  /// Waits for the stream's work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int32_t Record(Event& event, const weir::sdk::Error& error);
  int32_t Wait(Event& event, const weir::sdk::Error& error);
  void Poison(int32_t code, std::string_view text);

  /// Enqueues an operation on `accesses`, after checking their order. `run` returns a code and may fill the record; it
  /// owns the data it needs.
  int32_t Enqueue(std::string_view name, std::span<const Access> accesses, uint64_t copied,
                  std::function<int32_t(weir_error*)> run, const weir::sdk::Error& error);
  int32_t Launch(const weir_async_launch& launch, const weir::sdk::Error& error);
  int32_t Finish(const weir::sdk::Error& error);

  Hardware& hardware() const { return hardware_; }
  uint32_t number() const { return number_; }
  const weir_async_queue& queue() const { return queue_; }

 private:
  struct Operation {
    std::string name;
    uint64_t copied = 0;
    std::function<int32_t(weir_error*)> run;  // empty: reach or wait for the mark
    std::shared_ptr<Mark> mark;
    bool waits = false;
  };
  class OneUser;

  void Push(Operation operation);
  std::shared_ptr<Mark> PushMark();
  void Work();
  void Do(Operation& operation);
  Fault fault();
  void Fail(Fault fault);

  Hardware& hardware_;
  const uint32_t number_;
  const weir_async_queue queue_;
  std::atomic<bool> in_use_{false};
  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  std::deque<Operation> operations_;
  Fault fault_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace async_device

#endif  // WEIR_SDK_EXAMPLES_ASYNC_DEVICE_STREAM_H_
