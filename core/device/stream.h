// Streams of a device and their ordering: events, asynchronous copies, stream-ordered memory, device loss.
#ifndef WEIR_CORE_DEVICE_STREAM_H_
#define WEIR_CORE_DEVICE_STREAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/health.h"
#include "core/tensor/buffer.h"
#include "sdk/abi/copy.h"
#include "sdk/abi/memory.h"
#include "sdk/abi/native.h"
#include "sdk/abi/profiler.h"
#include "sdk/abi/stream.h"

namespace weir::device {

class Profiler;
class Stream;
class Streams;

/// A plugin's tables for asynchronous devices; null if it has none.
struct StreamApis {
  const weir_stream_api* stream = nullptr;
  const weir_memory_api* memory = nullptr;
  const weir_copy_api* copy = nullptr;
  const weir_native_api* native = nullptr;
  const weir_profiler_api* profiler = nullptr;

  /// True if stream/1 has all functions except poison and capture.
  bool Complete() const;
};

/// A point in a stream: everything enqueued before Record. Copies share the point; the last one returns the plugin's
/// event to the pool. A default Event is already reached.
class Event {
 public:
  Event() = default;
  /// Does not block. Also true if the stream failed earlier.
  bool reached() const;
  /// True if the event was recorded on `stream`.
  bool of(const Stream& stream) const;
  /// Blocks until the event is reached. Returns the error if the stream failed before it.
  Status Sync() const;
  /// Calls `done` once, on any thread (possibly this one, before returning), with the stream's status. `done` may only
  /// start host work.
  Status Then(std::function<void(const Status&)> done) const;

 private:
  friend class Stream;
  friend class Streams;
  struct State;
  std::shared_ptr<State> state_;
};

/// Waits for an event. Returns the stream's error before the event, or the reason why the wait was given up.
using EventWait = std::function<Status(const Event&)>;

/// Work that a stream recorded. It refers to the memory and the kernels' state that it was enqueued with, which its
/// users keep. Dropped only when no launch of it is on its way.
class Captured {
 public:
  Captured(std::shared_ptr<Streams> owner, weir_capture* capture) : owner_(std::move(owner)), capture_(capture) {}
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

 private:
  friend class Stream;
  const std::shared_ptr<Streams> owner_;  // keeps the device open
  weir_capture* const capture_;
};

/// A queue of a device, used by one thread at a time. Calls enqueue work and return; the work runs in order. Memory
/// used by enqueued work must live until the work is done: see Keep.
///
/// After a failure no later work on the stream runs, and every call reports the first failure.
class Stream {
 public:
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// For weir_env.
  weir_stream* handle() const { return handle_; }
  uint64_t native() const { return native_; }
  Streams& owner() const { return *owner_; }

  /// Names the work enqueued from here on, for `failed_mark` and the profiler; no-op if the plugin lacks marks.
  void Mark(uint64_t mark) {
    if (mark_ != nullptr) mark_(handle_, mark);
  }
  /// The mark of the work that made the stream fail; 0 if unknown.
  uint64_t failed_mark() const;
  /// Reports that a kernel enqueued work through its own function, or failed with an error.
  void Launched() { ++tick_; }
  void Refused(const Status& status, uint32_t error_flags);
  /// Records the point after all work enqueued so far; returns the previous event if nothing was enqueued since.
  Result<Event> Record();
  /// Orders later work after the event. Free if earlier waits imply it. For an event of another plugin's device the
  /// calling thread blocks.
  Status Wait(const Event& event);

  /// True if the device records work.
  bool Records() const;
  /// From here on work is recorded, not run, until EndCapture. Only kernels enqueue work in between.
  Status BeginCapture();
  Result<std::shared_ptr<const Captured>> EndCapture();
  /// Runs what a stream of the same device recorded.
  Status Launch(const Captured& captured);

  /// Copies within the device, or between it and host memory (weir_buf with `host` set).
  Status Copy(const weir_buf& to, const weir_buf& from, uint64_t bytes);
  Status Fill(const weir_buf& to, uint8_t value, uint64_t bytes);
  /// Copies from memory written by `source`, a stream of another device; later work of both streams is ordered after
  /// the copy. Direct if the plugin supports it, else in chunks through host memory, which blocks the calling thread.
  Status CopyFrom(Stream& source, const weir_buf& to, const weir_buf& from, uint64_t bytes);

  /// Memory for work on this stream only. It is valid from this point of the stream to the point where the last owner
  /// drops it; the stream must be usable then. Devices without ordered allocation use `otherwise`.
  Result<std::shared_ptr<Buffer>> Temporary(uint64_t bytes, Allocator& otherwise);
  /// Keeps `owner` alive until the work enqueued so far is known to be done (at a Sync or a later Keep). Blocks if too
  /// many bytes are kept.
  void Keep(std::shared_ptr<const void> owner, uint64_t bytes);

  /// Sets how calls of this stream block; empty: Event::Sync, without a time limit.
  void WaitBy(EventWait wait) { wait_ = std::move(wait); }
  /// Blocks until all work is done and releases kept owners. Returns the first failure of the stream.
  Status Sync();
  /// Makes work that has not started fail with `status`.
  void Poison(const Status& status);
  bool failed() const { return !failure_.ok(); }

 private:
  friend class Streams;
  friend class Event;
  struct Kept {
    std::shared_ptr<const void> owner;
    uint64_t bytes = 0;
    uint64_t tick = 0;
  };
  using Known = std::map<uint64_t, uint64_t>;  // other streams' ticks that are ordered before this one's next

  Stream(std::shared_ptr<Streams> owner, weir_stream* handle, uint64_t native, uint64_t number, uint64_t tick);
  template <class Call>
  Status Enqueue(const char* what, Call&& call);
  Result<std::shared_ptr<Buffer>> Ordered(uint64_t bytes);
  Status CopyStaged(Stream& source, const weir_buf& to, const weir_buf& from, uint64_t bytes);
  void LetGo(uint64_t tick);
  Status Await(const Event& event) const { return wait_ ? wait_(event) : event.Sync(); }

  const std::shared_ptr<Streams> owner_;
  weir_stream* handle_;  // null if returned to the pool
  const uint64_t native_;
  const uint64_t number_;  // unique in the process
  uint64_t tick_;          // pieces of work enqueued so far
  Known known_;
  Event last_;  // at last_tick_
  uint64_t last_tick_ = 0;
  std::vector<Kept> kept_;
  uint64_t kept_bytes_ = 0;
  Status failure_;
  EventWait wait_;
  void (*const mark_)(weir_stream* stream, uint64_t mark);  // of stream/1; null if it lacks one
};

/// Pools all streams and events of an open device. Thread-safe.
class Streams : public std::enable_shared_from_this<Streams> {
 public:
  /// `device` stays open as long as `health`, its health object, is held.
  static std::shared_ptr<Streams> Make(std::shared_ptr<Health> health, const weir_device_api* api,
                                       const StreamApis& apis, weir_device* device, bool ordered_alloc);
  ~Streams();

  const std::string& name() const { return health_->name(); }
  /// Returns an empty stream. Unavailable once the device is lost.
  Result<std::unique_ptr<Stream>> Acquire();
  /// Returns a stream to the pool; it must be empty or failed.
  void Release(std::unique_ptr<Stream> stream);
  /// Takes a stream whose work may never finish; the stream and its work are not touched again.
  void Abandon(std::unique_ptr<Stream> stream);

  /// Ok, or Unavailable with the reason of the device's loss.
  Status health() const { return health_->Get(); }
  /// Marks the device as lost.
  void Lose(const Status& why) { (void)health_->Judge(why, WEIR_ERROR_DEVICE_LOST); }
  /// Host memory that the device accesses fast (pinned) if it supports this, else any host memory. Pinned blocks of up
  /// to kMostPinnedKept bytes in all are kept for later calls. The buffer may be larger than asked for.
  Result<std::shared_ptr<Buffer>> Staging(uint64_t bytes);
  static constexpr uint64_t kMostPinnedKept = uint64_t{64} << 20;
  /// Records the device's own times of work; null if its plugin cannot.
  Profiler* profiler() const { return profiler_.get(); }
  /// True if events of one can order work of the other.
  bool SamePlugin(const Streams& other) const { return apis_.stream == other.apis_.stream; }

 private:
  friend class Captured;
  friend class Stream;
  friend class Event;
  Streams(std::shared_ptr<Health> health, const weir_device_api* api, const StreamApis& apis, weir_device* device,
          bool ordered_alloc);
  Result<weir_event*> TakeEvent();
  void GiveEvent(weir_event* event);
  void GivePinned(const weir_buf& block);

  const std::shared_ptr<Health> health_;
  const weir_device_api* const api_;
  const StreamApis apis_;
  weir_device* const device_;
  const bool ordered_alloc_;
  const std::shared_ptr<Profiler> profiler_;
  std::mutex mutex_;  // protects everything below
  struct Idle {
    weir_stream* handle = nullptr;
    uint64_t native = 0;
    uint64_t number = 0;
    uint64_t tick = 0;
  };
  std::vector<Idle> idle_streams_;
  std::vector<weir_event*> idle_events_;
  std::map<uint64_t, std::vector<weir_buf>> idle_pinned_;  // by size
  uint64_t idle_pinned_bytes_ = 0;
};

/// Orders streams that share memory across runs, such as a variable's. Thread-safe. The caller must make the calls in a
/// valid order of the accesses.
class SharedMemoryUse {
 public:
  /// Orders later reads of `stream` after all writes.
  Status BeforeRead(Stream& stream);
  /// Registers the work enqueued on `stream` as possible readers.
  Status AfterRead(Stream& stream);
  Status BeforeWrite(Stream& stream);
  Status AfterWrite(Stream& stream);
  /// Blocks until all writes are done, so that the host can read.
  Status SyncWrites();

 private:
  std::mutex mutex_;  // protects both
  Event written_;
  std::vector<Event> reads_;  // after the last write
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_STREAM_H_
