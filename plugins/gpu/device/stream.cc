#include "plugins/gpu/device/stream.h"

#include <utility>

namespace weir::gpu {

Fault Fault::Of(Outcome outcome, std::string_view what) {
  if (outcome.ok()) return {};
  return {outcome.code(), outcome.native(), outcome.flags(),
          std::string(what) + ": " + outcome.name() + " (" + std::to_string(outcome.native()) + ")"};
}

int32_t Fault::Tell(const sdk::Error& error) const {
  if (code == WEIR_OK) return WEIR_OK;
  if (error.record() != nullptr) {
    error.record()->flags = flags;
    error.record()->vendor_code = vendor_code;
  }
  return error.Fail(code, text);
}

Fault FaultCell::Get() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void FaultCell::Set(Fault fault) {
  const std::lock_guard lock(mutex_);
  if (fault_) return;
  fault_ = std::move(fault);
  fault_.flags |= WEIR_ERROR_STREAM_POISONED;
}

Event::~Event() { driver::DeleteEvent(event_); }

Event::Record Event::Latest() {
  const std::lock_guard lock(mutex_);
  return record_;
}

Fault Event::Judge(const Record& record, Outcome result) {
  if (record.before) return record.before;
  if (result.ok()) return {};
  record.stream->Set(Fault::Of(result, "work enqueued earlier failed, reported late"));
  return record.stream->Get();
}

int32_t Event::Query() {
  const Record record = Latest();
  if (record.stream == nullptr) return WEIR_EVENT_FAILED;
  bool reached = false;
  const Outcome result = driver::Query(event_, reached);
  if (!reached) return WEIR_EVENT_PENDING;
  return Judge(record, result) ? WEIR_EVENT_FAILED : WEIR_EVENT_DONE;
}

int32_t Event::Sync(const sdk::Error& error) {
  const Record record = Latest();
  if (record.stream == nullptr) {
    return error.Fail(WEIR_FAILED_PRECONDITION, "sync of an event that was never recorded");
  }
  return Judge(record, driver::Sync(event_)).Tell(error);
}

int32_t Event::OnComplete(void (*fn)(void*, int32_t), void* arg, const sdk::Error& error) {
  struct Call {
    void (*fn)(void*, int32_t);
    void* arg;
    Record record;
  };
  auto call = std::make_unique<Call>(Call{fn, arg, Latest()});
  if (call->record.stream == nullptr) {
    return error.Fail(WEIR_FAILED_PRECONDITION, "on_complete of an event that was never recorded");
  }
  const auto reached = [](void* of, Outcome result) {
    const std::unique_ptr<Call> call(static_cast<Call*>(of));
    const int32_t code = Judge(call->record, result).code;
    call->fn(call->arg, code);
  };
  const int32_t code = driver::Notify(event_, reached, call.get()).Tell(error, "on_complete");
  if (code == WEIR_OK) (void)call.release();
  return code;
}

Stream::Stream(int card, NativeStream native)
    : card_(card), native_(native), fault_(std::make_shared<FaultCell>()) {}

Stream::~Stream() { driver::DeleteStream(card_, native_); }

int32_t Stream::Finish(std::string_view what, const sdk::Error& error, Outcome outcome) {
  if (outcome.ok()) return WEIR_OK;
  const Fault fault = Fault::Of(outcome, what);
  if ((fault.flags & (WEIR_ERROR_DEVICE_LOST | WEIR_ERROR_STREAM_POISONED)) != 0) fault_->Set(fault);
  return fault.Tell(error);
}

int32_t Stream::Record(Event& event, const sdk::Error& error) {
  {
    const std::lock_guard lock(event.mutex_);
    event.record_ = {fault_, fault_->Get()};
  }
  // A failed stream records too: the event is then reached, and reports the fault.
  const Outcome outcome = driver::Record(event.native(), native_);
  if (!outcome.ok()) fault_->Set(Fault::Of(outcome, "record"));
  const std::lock_guard lock(event.mutex_);
  event.record_.before = fault_->Get();
  return outcome.ok() || event.record_.before ? WEIR_OK : outcome.Tell(error, "record");
}

int32_t Stream::Wait(Event& event, const sdk::Error& error) {
  const Event::Record record = event.Latest();
  if (record.stream == nullptr) {
    fault_->Set({WEIR_FAILED_PRECONDITION, 0, 0, "the stream waits for an event that was never recorded"});
    return fault_->Get().Tell(error);
  }
  if (record.before && record.stream != fault_) {
    // The loss of another card poisons this stream, but is no loss of this card.
    Fault fault = record.before;
    fault.flags &= ~uint32_t{WEIR_ERROR_DEVICE_LOST};
    fault.text = "a stream that this one waits for has failed: " + fault.text;
    fault_->Set(std::move(fault));
  }
  return Do("wait", error, [&] { return driver::Wait(native_, event.native()); });
}

void Stream::Poison(int32_t code, std::string_view text) { fault_->Set({code, 0, 0, std::string(text)}); }

}  // namespace weir::gpu
