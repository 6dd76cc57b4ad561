// Streams and events of a card, as sdk/cpp/stream_device.h wants them.
#ifndef WEIR_PLUGINS_GPU_DEVICE_STREAM_H_
#define WEIR_PLUGINS_GPU_DEVICE_STREAM_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "plugins/gpu/platform/driver.h"

namespace weir::gpu {

/// Why a stream accepts no more work; code 0 = it does.
struct Fault {
  int32_t code = WEIR_OK;
  int64_t vendor_code = 0;
  uint32_t flags = 0;  // WEIR_ERROR_*
  std::string text;

  static Fault Of(Outcome outcome, std::string_view what);
  explicit operator bool() const { return code != WEIR_OK; }
  /// Writes the fault into the caller's record; returns the code.
  int32_t Tell(const sdk::Error& error) const;
};

/// The fault of a stream, shared with events recorded on it. The first one stays. Thread-safe.
class FaultCell {
 public:
  Fault Get() const;
  void Set(Fault fault);

 private:
  mutable std::mutex mutex_;  // protects fault_
  Fault fault_;
};

/// Binary: refers to the latest record only. Thread-safe.
class Event {
 public:
  explicit Event(driver::EventObject* event) : event_(event) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  int32_t Query();
  int32_t Sync(const sdk::Error& error);
  int32_t OnComplete(void (*fn)(void*, int32_t), void* arg, const sdk::Error& error);

  driver::EventObject* native() const { return event_; }

 private:
  friend class Stream;
  struct Record {
    std::shared_ptr<FaultCell> stream;  // null if the event was never recorded
    Fault before;                       // of the stream at the time of the record
  };
  Record Latest();
  /// The fault of the work before the record, given the driver's result.
  static Fault Judge(const Record& record, Outcome result);

  driver::EventObject* const event_;
  std::mutex mutex_;  // protects record_
  Record record_;
};

/// A queue of a card. Used by one thread at a time.
class Stream {
 public:
  Stream(int card, NativeStream native);
  /// Waits for the stream's work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int32_t Record(Event& event, const sdk::Error& error);
  /// Poisons the stream if the event was never recorded, or its work failed.
  int32_t Wait(Event& event, const sdk::Error& error);
  void Poison(int32_t code, std::string_view text);

  /// Calls `enqueue`, unless the stream failed before; a failure with a lost device becomes the stream's.
  template <class Enqueue>
  int32_t Do(std::string_view what, const sdk::Error& error, Enqueue&& enqueue) {
    if (const Fault fault = fault_->Get()) return fault.Tell(error);
    return Finish(what, error, enqueue());
  }

  NativeStream native() const { return native_; }
  int card() const { return card_; }

 private:
  int32_t Finish(std::string_view what, const sdk::Error& error, Outcome outcome);

  const int card_;
  const NativeStream native_;
  const std::shared_ptr<FaultCell> fault_;
};

}  // namespace weir::gpu

#endif  // WEIR_PLUGINS_GPU_DEVICE_STREAM_H_
