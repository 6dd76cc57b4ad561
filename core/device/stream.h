// Streams of a device and what orders them: events, asynchronous copies, memory in stream order, loss of the device.
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
#include "sdk/abi/stream.h"

namespace weir::device {

class Stream;
class Streams;

/// A plugin's tables for its asynchronous devices; null where it has none.
struct StreamApis {
  const weir_stream_api* stream = nullptr;
  const weir_memory_api* memory = nullptr;
  const weir_copy_api* copy = nullptr;
  const weir_native_api* native = nullptr;

  /// Everything of stream/1 but poison and capture is there.
  bool Complete() const;
};

/// What a stream had been given when it was asked. Copies mean the same point; the last one gives the plugin's event
/// back to its pool. A default Event is a point that is reached.
class Event {
 public:
  Event() = default;
  /// Without blocking; true also when the stream failed before it.
  bool reached() const;
  /// Blocks. What made the stream fail before this point, if anything did.
  Status Sync() const;
  /// Calls `done` once, on any thread (perhaps this one, before returning): it may only start work of the host. What it
  /// is given says whether the stream had failed.
  Status Then(std::function<void(const Status&)> done) const;

 private:
  friend class Stream;
  friend class Streams;
  struct State;
  std::shared_ptr<State> state_;
};

/// One queue of a device. Used by one thread at a time; what is enqueued runs in order, after the call returned. Memory
/// that enqueued work touches must live until the work is done: see Keep.
///
/// Once work has failed nothing later on the stream runs, and every call reports the first failure.
class Stream {
 public:
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// For weir_env.
  weir_stream* handle() const { return handle_; }
  uint64_t native() const { return native_; }
  Streams& owner() const { return *owner_; }

  /// Tells that a kernel was enqueued through its own function, or with which error it refused.
  void Launched() { ++tick_; }
  void Refused(const Status& status, uint32_t error_flags);
  /// The point behind everything enqueued so far; the same event as before when nothing came since.
  Result<Event> Record();
  /// Later work comes after the event. Costs nothing when earlier waits imply it. For an event of another plugin's
  /// device the calling thread waits.
  Status Wait(const Event& event);

  /// Within the device, or between it and host memory (weir_buf with `host` set).
  Status Copy(const weir_buf& to, const weir_buf& from, uint64_t bytes);
  Status Fill(const weir_buf& to, uint8_t value, uint64_t bytes);
  /// From memory that `source`, a stream of another device, has been writing; both streams go on after the copy. Direct
  /// where the plugin can, else through host memory in chunks, for which the calling thread waits.
  Status CopyFrom(Stream& source, const weir_buf& to, const weir_buf& from, uint64_t bytes);

  /// Memory for work on this stream only: it exists from here to the point where the last owner lets go, which must
  /// happen while the stream may be used. `otherwise` serves devices that cannot order their own allocations.
  Result<std::shared_ptr<Buffer>> Temporary(uint64_t bytes, Allocator& otherwise);
  /// Keeps `owner` until what is enqueued now is known to be done (at a Sync, or a later Keep). When a lot is kept the
  /// call waits.
  void Keep(std::shared_ptr<const void> owner, uint64_t bytes);

  /// Blocks until all work is done; lets go of what is kept. The first failure of the stream.
  Status Sync();
  /// Work that has not begun fails with this.
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

  const std::shared_ptr<Streams> owner_;
  weir_stream* handle_;  // null when the pool has it back
  const uint64_t native_;
  const uint64_t number_;  // unique in the process
  uint64_t tick_;          // pieces of work enqueued so far
  Known known_;
  Event last_;  // at last_tick_
  uint64_t last_tick_ = 0;
  std::vector<Kept> kept_;
  uint64_t kept_bytes_ = 0;
  Status failure_;
};

/// All streams and events of an open device, pooled. Thread-safe.
class Streams : public std::enable_shared_from_this<Streams> {
 public:
  /// `device` is open and stays so while `health`, which is the device's, is held.
  static std::shared_ptr<Streams> Make(std::shared_ptr<Health> health, const weir_device_api* api,
                                       const StreamApis& apis, weir_device* device, bool ordered_alloc);
  ~Streams();

  const std::string& name() const { return health_->name(); }
  /// A stream with nothing on it. Unavailable once the device is lost.
  Result<std::unique_ptr<Stream>> Acquire();
  /// Takes a stream back, which is empty or has failed.
  void Release(std::unique_ptr<Stream> stream);
  /// Takes back a stream whose work may never end; neither is touched again.
  void Abandon(std::unique_ptr<Stream> stream);

  /// Ok, or Unavailable with the text of the device's loss.
  Status health() const { return health_->Get(); }
  /// Host memory that the device reaches fast, where it has such, else any.
  Result<std::shared_ptr<Buffer>> Staging(uint64_t bytes);
  /// Whether events of the two order each other.
  bool SamePlugin(const Streams& other) const { return apis_.stream == other.apis_.stream; }

 private:
  friend class Stream;
  friend class Event;
  Streams(std::shared_ptr<Health> health, const weir_device_api* api, const StreamApis& apis, weir_device* device,
          bool ordered_alloc);
  Result<weir_event*> TakeEvent();
  void GiveEvent(weir_event* event);

  const std::shared_ptr<Health> health_;
  const weir_device_api* const api_;
  const StreamApis apis_;
  weir_device* const device_;
  const bool ordered_alloc_;
  std::mutex mutex_;  // protects everything below
  struct Idle {
    weir_stream* handle = nullptr;
    uint64_t native = 0;
    uint64_t number = 0;
    uint64_t tick = 0;
  };
  std::vector<Idle> idle_streams_;
  std::vector<weir_event*> idle_events_;
};

/// Orders streams that share memory for longer than one run of a step, as that of a variable. Thread-safe; the caller
/// sees to it that the order of the calls is one in which the accesses may happen.
class SharedMemoryUse {
 public:
  /// `stream` may read after this.
  Status BeforeRead(Stream& stream);
  /// What is on the stream now may be reading.
  Status AfterRead(Stream& stream);
  Status BeforeWrite(Stream& stream);
  Status AfterWrite(Stream& stream);
  /// Blocks until nobody writes, so that the host can read.
  Status SyncWrites();

 private:
  std::mutex mutex_;  // protects both
  Event written_;
  std::vector<Event> reads_;  // since then
};

}  // namespace weir::device

#endif  // WEIR_CORE_DEVICE_STREAM_H_
