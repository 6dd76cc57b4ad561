#include "stream.h"

#include <algorithm>

namespace async_device {
namespace {

using weir::sdk::Error;

thread_local int callbacks_running = 0;

// An error record for work that runs after its caller has returned.
class OwnRecord {
 public:
  OwnRecord() {
    record_.struct_size = sizeof record_;
    record_.message = text_;
    record_.capacity = sizeof text_;
  }
  weir_error* get() { return &record_; }
  Fault ToFault(int32_t code, const std::string& who) const {
    return {code, record_.flags, who + ": " + std::string(text_, record_.length)};
  }

 private:
  char text_[512];
  weir_error record_{};
};

int32_t RefuseInCallback(std::string_view what, const Error& error) {
  const std::string text = std::string(what) + " blocks, and was called inside an on_complete callback";
  Journal::Get().Misuse(text);
  return error.Fail(WEIR_FAILED_PRECONDITION, text);
}

int32_t Unrecorded(std::string_view what, const Error& error) {
  return error.Fail(WEIR_FAILED_PRECONDITION, what, " of an event that was never recorded");
}

}  // namespace

bool InCallback() { return callbacks_running != 0; }

void Mark::Call(Callback callback, int32_t code) {
  Order::Get().HostKnows(clock_);
  ++callbacks_running;
  callback.first(callback.second, code);
  --callbacks_running;
}

void Mark::Reach(const Fault& fault) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    fault_ = fault;
    callbacks.swap(callbacks_);
    reached_cv_.notify_all();
  }
  for (const Callback& callback : callbacks) Call(callback, fault.code);
}

Fault Mark::Await() {
  std::unique_lock lock(mutex_);
  reached_cv_.wait(lock, [&] { return reached_; });
  return fault_;
}

int32_t Mark::Query() {
  const std::lock_guard lock(mutex_);
  if (!reached_) return WEIR_EVENT_PENDING;
  return fault_ ? WEIR_EVENT_FAILED : WEIR_EVENT_DONE;
}

void Mark::Then(Callback callback) {
  int32_t code = WEIR_OK;
  {
    const std::lock_guard lock(mutex_);
    if (!reached_) {
      callbacks_.push_back(callback);
      return;
    }
    code = fault_.code;
  }
  Call(callback, code);
}

std::shared_ptr<Mark> Event::latest() {
  const std::lock_guard lock(mutex_);
  return mark_;
}

void Event::Record(std::shared_ptr<Mark> mark) {
  const std::lock_guard lock(mutex_);
  mark_ = std::move(mark);
}

int32_t Event::Query() {
  const std::shared_ptr<Mark> mark = latest();
  if (mark == nullptr) return WEIR_EVENT_FAILED;
  const int32_t state = mark->Query();
  if (state != WEIR_EVENT_PENDING) Order::Get().HostKnows(mark->clock());
  return state;
}

int32_t Event::Sync(const Error& error) {
  if (InCallback()) return RefuseInCallback("sync", error);
  const std::shared_ptr<Mark> mark = latest();
  if (mark == nullptr) return Unrecorded("sync", error);
  const Fault fault = mark->Await();
  Order::Get().HostKnows(mark->clock());
  return fault.Tell(error);
}

int32_t Event::OnComplete(void (*fn)(void*, int32_t), void* arg, const Error& error) {
  const std::shared_ptr<Mark> mark = latest();
  if (mark == nullptr) return Unrecorded("on_complete", error);
  mark->Then({fn, arg});
  return WEIR_OK;
}

// Detects two threads that use one stream at the same time.
class Stream::OneUser {
 public:
  explicit OneUser(Stream& stream) : stream_(stream), first_(!stream.in_use_.exchange(true)) {
    if (!first_) Journal::Get().Misuse("stream " + std::to_string(stream.number()) + " is used by two threads at once");
  }
  ~OneUser() {
    if (first_) stream_.in_use_ = false;
  }
  OneUser(const OneUser&) = delete;
  OneUser& operator=(const OneUser&) = delete;

 private:
  Stream& stream_;
  const bool first_;
};

Stream::Stream(Hardware& hardware)
    : hardware_(hardware),
      number_(Order::Get().AddStream()),
      queue_{sizeof(weir_async_queue), 0, reinterpret_cast<weir_stream*>(this),
             [](weir_stream* stream, const weir_async_launch* launch, weir_error* record) noexcept -> int32_t {
               return weir::sdk::Guard(
                   record, [&] { return reinterpret_cast<Stream*>(stream)->Launch(*launch, Error(record)); });
             },
             [](weir_stream* stream, weir_error* record) noexcept -> int32_t {
               return weir::sdk::Guard(record,
                                       [&] { return reinterpret_cast<Stream*>(stream)->Finish(Error(record)); });
             }},
      thread_([this] { Work(); }) {}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
  Order::Get().RemoveStream(number_);
}

Fault Stream::fault() {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void Stream::Fail(Fault fault) {
  const std::lock_guard lock(mutex_);
  if (fault_) return;  // the first wins
  fault_ = std::move(fault);
  fault_.flags |= WEIR_ERROR_STREAM_POISONED;
}

void Stream::Poison(int32_t code, std::string_view text) { Fail({code, 0, std::string(text)}); }

void Stream::Push(Operation operation) {
  const std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
  changed_.notify_all();
}

std::shared_ptr<Mark> Stream::PushMark() {
  auto mark = std::make_shared<Mark>(Order::Get().Now(number_));
  Push({{}, 0, nullptr, mark, false});
  return mark;
}

int32_t Stream::Record(Event& event, const Error&) {
  const OneUser user(*this);
  event.Record(PushMark());
  return WEIR_OK;
}

int32_t Stream::Wait(Event& event, const Error& error) {
  const OneUser user(*this);
  std::shared_ptr<Mark> mark = event.latest();
  if (mark == nullptr) {
    const std::string text = "stream " + std::to_string(number_) + " waits for an event that was never recorded";
    Journal::Get().Misuse(text);
    Fail({WEIR_FAILED_PRECONDITION, 0, text});
    return fault().Tell(error);
  }
  Journal::Get().Wait();
  Order::Get().Wait(number_, mark->clock());
  Push({{}, 0, nullptr, std::move(mark), true});
  return WEIR_OK;
}

int32_t Stream::Enqueue(std::string_view name, std::span<const Access> accesses, uint64_t copied,
                        std::function<int32_t(weir_error*)> run, const Error& error) {
  const OneUser user(*this);
  if (const Fault earlier = fault()) return earlier.Tell(error);
  if (const std::string race = Order::Get().Enqueue(number_, name, accesses); !race.empty()) {
    Journal::Get().Race(race);
    Fail({WEIR_INTERNAL, 0, race});
    return fault().Tell(error);
  }
  Push({std::string(name), copied, std::move(run), nullptr, false});
  return WEIR_OK;
}

int32_t Stream::Launch(const weir_async_launch& launch, const Error& error) {
  const std::shared_ptr<void> arg(launch.arg, launch.drop);
  std::vector<Operand> operands;
  std::vector<Access> accesses;
  for (const weir_async_range& range : std::span(launch.ranges, launch.range_count)) {
    std::shared_ptr<Block> block = hardware_.Find(range.handle);
    if (block == nullptr) {
      const std::string text =
          "'" + std::string(weir::sdk::ToView(launch.name)) + "' uses memory that is not this device's, or was freed";
      Journal::Get().Race(text);
      Fail({WEIR_INTERNAL, 0, text});
      return fault().Tell(error);
    }
    if (range.offset > block->bytes() || range.bytes > block->bytes() - range.offset) {
      return error.InvalidArgument("'", launch.name, "' uses bytes ", range.offset, " to ", range.offset + range.bytes,
                                   " of a block of ", block->bytes());
    }
    for (const uint32_t kind : {WEIR_ASYNC_READ, WEIR_ASYNC_WRITE}) {
      if ((range.access & kind) == 0) continue;
      accesses.push_back({block->number(), range.offset, range.offset + range.bytes, kind == WEIR_ASYNC_WRITE});
    }
    char* const address = block->base() + range.offset;
    operands.push_back({std::move(block), address});
  }
  auto run = [arg, operands = std::move(operands), call = launch.run](weir_error* record) {
    std::vector<void*> addresses;
    for (const Operand& operand : operands) addresses.push_back(operand.address);
    return call(arg.get(), addresses.data(), record);
  };
  return Enqueue(weir::sdk::ToView(launch.name), accesses, 0, std::move(run), error);
}

int32_t Stream::Finish(const Error& error) {
  if (InCallback()) return RefuseInCallback("finish", error);
  const OneUser user(*this);
  const std::shared_ptr<Mark> mark = PushMark();
  const Fault fault = mark->Await();
  Order::Get().HostKnows(mark->clock());
  return fault.Tell(error);
}

void Stream::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !operations_.empty(); });
    if (operations_.empty()) return;
    Operation operation = std::move(operations_.front());
    operations_.pop_front();
    lock.unlock();
    Do(operation);
    operation = {};  // releases memory while the stream is not locked
    lock.lock();
  }
}

void Stream::Do(Operation& operation) {
  if (operation.waits) {
    if (Fault other = operation.mark->Await()) Fail(std::move(other));
    return;
  }
  if (operation.mark != nullptr) return operation.mark->Reach(fault());
  if (fault()) return;
  if (Fault failed = hardware_.Begin(operation.copied)) return Fail(std::move(failed));
  OwnRecord record;
  const int32_t code = weir::sdk::Guard(record.get(), [&] { return operation.run(record.get()); });
  if (code != WEIR_OK) Fail(record.ToFault(code, operation.name));
}

}  // namespace async_device
