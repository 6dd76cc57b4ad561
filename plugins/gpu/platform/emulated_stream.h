// Queues and events of the emulated driver. A queue has a thread; work enters from the host and runs later, in order.
#ifndef WEIR_PLUGINS_GPU_PLATFORM_EMULATED_STREAM_H_
#define WEIR_PLUGINS_GPU_PLATFORM_EMULATED_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/gpu/platform/driver.h"
#include "plugins/gpu/platform/emulated_card.h"

namespace weir::gpu::emulated {

/// A point of a queue that is reached once. Thread-safe.
class Mark {
 public:
  using Callback = std::pair<void (*)(void*, Outcome), void*>;
  void Reach(int32_t code);
  /// Blocks; the result is that of the work before the mark.
  int32_t Await();
  bool Reached(int32_t& code);
  /// Called at once if the mark is reached.
  void Then(Callback callback);

 private:
  std::mutex mutex_;  // protects everything below
  std::condition_variable changed_;
  bool reached_ = false;
  int32_t code_ = WEIR_EMULATED_OK;
  std::vector<Callback> callbacks_;
};

/// Work as the caller handed it over; dropped with the last owner.
class Work {
 public:
  Work(void (*run)(void*), void (*drop)(void*), void* arg) : run_(run), drop_(drop), arg_(arg) {}
  ~Work() { drop_(arg_); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  void Run() const { run_(arg_); }

 private:
  void (*const run_)(void*);
  void (*const drop_)(void*);
  void* const arg_;
};

class Stream;

/// Work recorded instead of run, in the order in which the host enqueued it, of all streams that joined.
struct Recording {
  std::vector<std::shared_ptr<const Work>> work;
  std::vector<Stream*> streams;
};

class Stream {
 public:
  explicit Stream(Card& card);
  /// Waits for the stream's work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  static Stream& Of(NativeStream native) { return *reinterpret_cast<Stream*>(native); }
  NativeStream native() { return &queue_; }
  Card& card() const { return card_; }

  /// WEIR_EMULATED_*; takes over the work.
  int32_t Enqueue(std::shared_ptr<const Work> work);
  template <class Body>
  int32_t Run(Body body) {
    auto owned = std::make_unique<Body>(std::move(body));
    auto work = std::make_shared<const Work>([](void* arg) { (*static_cast<Body*>(arg))(); },
                                             [](void* arg) { delete static_cast<Body*>(arg); }, owned.get());
    (void)owned.release();
    return Enqueue(std::move(work));
  }
  int32_t Record(driver::EventObject& event);
  int32_t Wait(driver::EventObject& event);
  int32_t BeginCapture();
  std::shared_ptr<Recording> EndCapture();
  int32_t Replay(std::shared_ptr<const Recording> recording);

 private:
  struct Operation {
    std::shared_ptr<const Work> work;
    std::shared_ptr<const Recording> recording;
    std::shared_ptr<Mark> mark;
    bool waits = false;
  };
  void Push(Operation operation);
  void Loop();
  void Do(const Operation& operation);

  weir_emulated_queue queue_;  // first: a queue's address is its stream's
  Card& card_;
  std::shared_ptr<Recording> recording_;  // set by the host between the begin and the end of a capture
  std::mutex mutex_;                      // protects everything below
  std::condition_variable changed_;
  std::deque<Operation> operations_;
  bool closing_ = false;
  int32_t failure_ = WEIR_EMULATED_OK;  // of the stream's thread only
  std::thread thread_;
};

}  // namespace weir::gpu::emulated

namespace weir::gpu::driver {

/// Binary: refers to the latest record. Thread-safe.
struct EventObject {
  std::shared_ptr<emulated::Mark> Latest() {
    const std::lock_guard lock(mutex);
    return mark;
  }
  std::mutex mutex;  // protects everything below
  std::shared_ptr<emulated::Mark> mark;
  std::shared_ptr<emulated::Recording> recording;  // of a record inside a capture
};

struct CaptureObject {
  std::shared_ptr<const emulated::Recording> recording;
};

}  // namespace weir::gpu::driver

#endif  // WEIR_PLUGINS_GPU_PLATFORM_EMULATED_STREAM_H_
