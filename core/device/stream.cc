#include "core/device/stream.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/errors.h"
#include "core/device/error_record.h"
#include "core/device/profiler.h"

namespace weir::device {
namespace {

constexpr uint64_t kStagedChunk = uint64_t{4} << 20;
constexpr uint64_t kMostKept = uint64_t{64} << 20;
constexpr uint64_t kLeastPinned = uint64_t{4} << 10;

uint64_t NextNumber() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1);
}

weir_buf Part(const weir_buf& whole, uint64_t begin, uint64_t bytes) {
  weir_buf part = whole;
  part.offset += begin;
  part.bytes = bytes;
  if (part.host != nullptr) part.host = static_cast<std::byte*>(part.host) + begin;
  return part;
}

// Memory that a deleter function releases.
class ReturnedBuffer final : public Buffer {
 public:
  ReturnedBuffer(const weir_buf& memory, std::function<void(const weir_buf&)> give_back)
      : Buffer(memory), give_back_(std::move(give_back)) {}
  ~ReturnedBuffer() override { give_back_(memory()); }

 private:
  std::function<void(const weir_buf&)> give_back_;
};

}  // namespace

struct Event::State {
  State(std::shared_ptr<Streams> from, weir_event* made) : owner(std::move(from)), event(made) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { owner->GiveEvent(event); }

  const std::shared_ptr<Streams> owner;
  weir_event* const event;
  uint64_t stream = 0;
  uint64_t tick = 0;
  Stream::Known known;  // everything the stream has waited for
};

bool Event::reached() const {
  return state_ == nullptr || state_->owner->apis_.stream->query(state_->event) != WEIR_EVENT_PENDING;
}

bool Event::of(const Stream& stream) const { return state_ != nullptr && state_->stream == stream.number_; }

Status Event::Sync() const {
  if (state_ == nullptr) return {};
  Streams& owner = *state_->owner;
  uint32_t flags = 0;
  Status status = CallPlugin("sync of stream/1", [&](weir_error* error) {
    const int32_t code = owner.apis_.stream->sync(state_->event, error);
    flags = error->flags;
    return code;
  });
  if (status.ok()) return status;
  return owner.health_->Judge(status.Prepend(owner.name() + ": "), flags);
}

Status Event::Then(std::function<void(const Status&)> done) const {
  if (state_ == nullptr) {
    done({});
    return {};
  }
  struct Pending {
    Event event;  // keeps the event from being recorded again before it is reached
    std::function<void(const Status&)> done;
  };
  auto pending = std::make_unique<Pending>(Pending{*this, std::move(done)});
  const auto call = [](void* arg, int32_t code) {
    std::unique_ptr<Pending> reached(static_cast<Pending*>(arg));
    const std::string& name = reached->event.state_->owner->name();
    const Status status =
        code == WEIR_OK ? Status() : Status(static_cast<Code>(code), name + ": work on its stream failed");
    const std::function<void(const Status&)> then = std::move(reached->done);
    // `then` may drop the last reference to the device, which must not happen on this plugin thread.
    reached.reset();
    then(status);
  };
  WEIR_TRY(CallPlugin("on_complete of stream/1", [&](weir_error* error) {
    return state_->owner->apis_.stream->on_complete(state_->event, call, pending.get(), error);
  }));
  (void)pending.release();
  return {};
}

Stream::Stream(std::shared_ptr<Streams> owner, weir_stream* handle, uint64_t native, uint64_t number, uint64_t tick)
    : owner_(std::move(owner)),
      handle_(handle),
      native_(native),
      number_(number),
      tick_(tick),
      mark_(WEIR_HAS(owner_->apis_.stream, mark) ? owner_->apis_.stream->mark : nullptr) {}

Stream::~Stream() {
  if (handle_ != nullptr) owner_->apis_.stream->stream_destroy(owner_->device_, handle_);
}

template <class Call>
Status Stream::Enqueue(const char* what, Call&& call) {
  if (!failure_.ok()) return failure_;
  uint32_t flags = 0;
  Status status = CallPlugin(what, [&](weir_error* error) {
    const int32_t code = call(error);
    flags = error->flags;
    return code;
  });
  ++tick_;
  if (status.ok()) return status;
  status = status.Prepend(owner_->name() + ": ");
  Refused(status, flags);
  return status;
}

void Stream::Refused(const Status& status, uint32_t error_flags) {
  // The caller gets the call's own error; the loss is reported to all users by health().
  (void)owner_->health_->Judge(status, error_flags);
  if ((error_flags & (WEIR_ERROR_STREAM_POISONED | WEIR_ERROR_DEVICE_LOST)) != 0 && failure_.ok()) failure_ = status;
}

uint64_t Stream::failed_mark() const {
  const weir_stream_api* api = owner_->apis_.stream;
  return mark_ != nullptr && WEIR_HAS(api, failed_mark) ? api->failed_mark(handle_) : 0;
}

Result<Event> Stream::Record() {
  if (last_.state_ != nullptr && last_tick_ == tick_) return last_;
  WEIR_ASSIGN(weir_event * made, owner_->TakeEvent());
  Event event;
  event.state_ = std::make_shared<Event::State>(owner_, made);
  WEIR_TRY(CallPlugin("record of stream/1",
                      [&](weir_error* error) { return owner_->apis_.stream->record(handle_, made, error); }));
  event.state_->stream = number_;
  event.state_->tick = tick_;
  event.state_->known = known_;
  last_ = event;
  last_tick_ = tick_;
  return event;
}

Status Stream::Wait(const Event& event) {
  if (event.state_ == nullptr || event.state_->stream == number_) return {};
  const Event::State& other = *event.state_;
  uint64_t& known = known_[other.stream];
  if (known >= other.tick && known != 0) return {};
  if (owner_->SamePlugin(*other.owner)) {
    WEIR_TRY(Enqueue("wait of stream/1",
                     [&](weir_error* error) { return owner_->apis_.stream->wait(handle_, other.event, error); }));
  } else {
    WEIR_TRY(Await(event));
  }
  known = std::max(known, other.tick);
  for (const auto& [stream, tick] : other.known) {
    if (stream == number_) continue;
    uint64_t& implied = known_[stream];
    implied = std::max(implied, tick);
  }
  return {};
}

Captured::~Captured() { owner_->apis_.stream->capture_free(capture_); }

bool Stream::Records() const {
  const weir_stream_api* const api = owner_->apis_.stream;
  return WEIR_HAS(api, capture_begin) && WEIR_HAS(api, capture_end) && WEIR_HAS(api, capture_launch) &&
         WEIR_HAS(api, capture_free);
}

Status Stream::BeginCapture() {
  return Enqueue("capture_begin of stream/1",
                 [&](weir_error* error) { return owner_->apis_.stream->capture_begin(handle_, error); });
}

Result<std::shared_ptr<const Captured>> Stream::EndCapture() {
  weir_capture* capture = nullptr;
  WEIR_TRY(Enqueue("capture_end of stream/1",
                   [&](weir_error* error) { return owner_->apis_.stream->capture_end(handle_, &capture, error); }));
  if (capture == nullptr) return Internal("{}: capture_end of stream/1 gave no capture", owner_->name());
  return std::make_shared<const Captured>(owner_, capture);
}

Status Stream::Launch(const Captured& captured) {
  return Enqueue("capture_launch of stream/1", [&](weir_error* error) {
    return owner_->apis_.stream->capture_launch(captured.capture_, handle_, error);
  });
}

Status Stream::Copy(const weir_buf& to, const weir_buf& from, uint64_t bytes) {
  if (bytes == 0) return {};
  if (!WEIR_HAS(owner_->api_, copy)) return Unimplemented("{}: its plugin cannot copy memory", owner_->name());
  return Enqueue("copy of device/1", [&](weir_error* error) {
    return owner_->api_->copy(owner_->device_, handle_, &to, &from, bytes, error);
  });
}

Status Stream::Fill(const weir_buf& to, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return {};
  if (!WEIR_HAS(owner_->api_, memset)) return Unimplemented("{}: its plugin cannot fill memory", owner_->name());
  return Enqueue("memset of device/1", [&](weir_error* error) {
    return owner_->api_->memset(owner_->device_, handle_, &to, value, bytes, error);
  });
}

Status Stream::CopyFrom(Stream& source, const weir_buf& to, const weir_buf& from, uint64_t bytes) {
  if (bytes == 0) return {};
  const weir_copy_api* api = owner_->apis_.copy;
  const bool direct = owner_->SamePlugin(*source.owner_) && WEIR_HAS(api, can_copy) && WEIR_HAS(api, copy_peer) &&
                      api->can_copy(source.owner_->device_, owner_->device_) == WEIR_COPY_DIRECT;
  if (!direct) return CopyStaged(source, to, from, bytes);
  WEIR_ASSIGN(const Event ready, source.Record());
  WEIR_TRY(Wait(ready));
  WEIR_TRY(Enqueue("copy_peer of copy/1", [&](weir_error* error) {
    return api->copy_peer(owner_->device_, &to, source.owner_->device_, &from, bytes, handle_, nullptr, error);
  }));
  WEIR_ASSIGN(const Event done, Record());
  return source.Wait(done);
}

Status Stream::CopyStaged(Stream& source, const weir_buf& to, const weir_buf& from, uint64_t bytes) {
  WEIR_ASSIGN(const std::shared_ptr<Buffer> staging, owner_->Staging(bytes));
  std::vector<Event> arrived;
  for (uint64_t at = 0; at < bytes; at += kStagedChunk) {
    const uint64_t size = std::min(kStagedChunk, bytes - at);
    source.Keep(staging, 0);
    WEIR_TRY(source.Copy(Part(staging->memory(), at, size), Part(from, at, size), size));
    WEIR_ASSIGN(Event event, source.Record());
    arrived.push_back(std::move(event));
  }
  Keep(staging, bytes);
  for (uint64_t at = 0, chunk = 0; at < bytes; at += kStagedChunk, ++chunk) {
    const uint64_t size = std::min(kStagedChunk, bytes - at);
    WEIR_TRY(Await(arrived[chunk]));
    WEIR_TRY(Copy(Part(to, at, size), Part(staging->memory(), at, size), size));
  }
  return {};
}

Result<std::shared_ptr<Buffer>> Stream::Ordered(uint64_t bytes) {
  weir_buf memory{};
  memory.struct_size = sizeof(memory);
  WEIR_TRY(Enqueue("alloc_async of memory/1", [&](weir_error* error) {
    return owner_->apis_.memory->alloc_async(owner_->device_, handle_, bytes, &memory, error);
  }));
  return std::shared_ptr<Buffer>(std::make_shared<ReturnedBuffer>(memory, [this](const weir_buf& freed) {
    // An error here is a stream failure, which the stream's next call reports.
    (void)CallPlugin("free_async of memory/1", [&](weir_error* error) {
      return owner_->apis_.memory->free_async(owner_->device_, handle_, &freed, error);
    });
  }));
}

Result<std::shared_ptr<Buffer>> Stream::Temporary(uint64_t bytes, Allocator& otherwise) {
  const weir_memory_api* api = owner_->apis_.memory;
  if (bytes != 0 && owner_->ordered_alloc_ && WEIR_HAS(api, alloc_async) && WEIR_HAS(api, free_async)) {
    return Ordered(bytes);
  }
  WEIR_ASSIGN(std::shared_ptr<Buffer> buffer, otherwise.Allocate(bytes));
  const weir_buf memory = buffer->memory();
  return std::shared_ptr<Buffer>(std::make_shared<ReturnedBuffer>(
      memory, [this, held = std::move(buffer)](const weir_buf& freed) { Keep(held, freed.bytes); }));
}

void Stream::Keep(std::shared_ptr<const void> owner, uint64_t bytes) {
  kept_.push_back({std::move(owner), bytes, tick_});
  kept_bytes_ += bytes;
  if (kept_bytes_ <= kMostKept) return;
  const Result<Event> event = Record();
  if (event.ok() && Await(*event).ok()) LetGo(tick_);
}

void Stream::LetGo(uint64_t tick) {
  std::erase_if(kept_, [&](const Kept& kept) {
    if (kept.tick > tick) return false;
    kept_bytes_ -= kept.bytes;
    return true;
  });
}

Status Stream::Sync() {
  const Result<Event> event = Record();
  if (!event.ok()) return failure_.ok() ? event.status() : failure_;
  const Status status = Await(*event);
  if (!status.ok() && failure_.ok()) failure_ = status;
  LetGo(tick_);
  return failure_;
}

void Stream::Poison(const Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  const weir_stream_api* api = owner_->apis_.stream;
  if (WEIR_HAS(api, poison)) {
    api->poison(handle_, static_cast<int32_t>(status.code()), {status.message().data(), status.message().size()});
  }
}

std::shared_ptr<Streams> Streams::Make(std::shared_ptr<Health> health, const weir_device_api* api,
                                       const StreamApis& apis, weir_device* device, bool ordered_alloc) {
  return std::shared_ptr<Streams>(new Streams(std::move(health), api, apis, device, ordered_alloc));
}

Streams::Streams(std::shared_ptr<Health> health, const weir_device_api* api, const StreamApis& apis,
                 weir_device* device, bool ordered_alloc)
    : health_(std::move(health)),
      api_(api),
      apis_(apis),
      device_(device),
      ordered_alloc_(ordered_alloc),
      profiler_(Profiler::Make(apis, device)) {}

Streams::~Streams() {
  for (const auto& [size, blocks] : idle_pinned_) {
    for (const weir_buf& block : blocks) apis_.memory->pinned_free(device_, &block);
  }

  for (const Idle& idle : idle_streams_) apis_.stream->stream_destroy(device_, idle.handle);
  for (weir_event* event : idle_events_) apis_.stream->event_destroy(device_, event);
}

Result<std::unique_ptr<Stream>> Streams::Acquire() {
  WEIR_TRY(health_->Get());
  {
    const std::lock_guard lock(mutex_);
    if (!idle_streams_.empty()) {
      const Idle idle = idle_streams_.back();
      idle_streams_.pop_back();
      return std::unique_ptr<Stream>(new Stream(shared_from_this(), idle.handle, idle.native, idle.number, idle.tick));
    }
  }
  weir_stream* handle = nullptr;
  uint32_t flags = 0;
  Status made = CallPlugin("stream_create of stream/1", [&](weir_error* error) {
    const int32_t code = apis_.stream->stream_create(device_, 0, &handle, error);
    flags = error->flags;
    return code;
  });
  if (made.ok() && handle == nullptr) made = Internal("stream_create of stream/1 gave no stream");
  if (!made.ok()) return health_->Judge(made.Prepend(name() + ": "), flags);
  uint64_t native = 0;
  if (WEIR_HAS(apis_.native, native)) {
    (void)CallPlugin("native of native/1", [&](weir_error* error) {
      return apis_.native->native(device_, WEIR_NATIVE_STREAM, handle, &native, error);
    });
  }
  return std::unique_ptr<Stream>(new Stream(shared_from_this(), handle, native, NextNumber(), 0));
}

void Streams::Release(std::unique_ptr<Stream> stream) {
  if (stream->failed()) return;
  const std::lock_guard lock(mutex_);
  idle_streams_.push_back({std::exchange(stream->handle_, nullptr), stream->native_, stream->number_, stream->tick_});
}

void Streams::Abandon(std::unique_ptr<Stream> stream) {
  static std::mutex* const mutex = new std::mutex;  // protects abandoned; both are never destroyed
  static auto* const abandoned = new std::vector<std::unique_ptr<Stream>>;
  const std::lock_guard lock(*mutex);
  abandoned->push_back(std::move(stream));  // keeps its device, which can no longer be closed in order
}

Result<std::shared_ptr<Buffer>> Streams::Staging(uint64_t bytes) {
  if (!WEIR_HAS(apis_.memory, pinned_alloc) || !WEIR_HAS(apis_.memory, pinned_free) || bytes > kMostBytes) {
    return HostAllocator().Allocate(bytes);
  }
  // Powers of two, so that blocks serve steps of other shapes too.
  const uint64_t size = std::bit_ceil(std::max(bytes, kLeastPinned));
  weir_buf memory{};
  {
    const std::lock_guard lock(mutex_);
    if (const auto idle = idle_pinned_.find(size); idle != idle_pinned_.end() && !idle->second.empty()) {
      memory = idle->second.back();
      idle->second.pop_back();
      idle_pinned_bytes_ -= size;
    }
  }
  if (memory.host == nullptr) {
    memory.struct_size = sizeof(memory);
    const Status pinned = CallPlugin("pinned_alloc of memory/1", [&](weir_error* error) {
      return apis_.memory->pinned_alloc(device_, size, &memory, error);
    });
    if (!pinned.ok() || memory.host == nullptr) return HostAllocator().Allocate(bytes);
    memory.bytes = size;
  }
  return std::shared_ptr<Buffer>(std::make_shared<ReturnedBuffer>(
      memory, [self = shared_from_this()](const weir_buf& block) { self->GivePinned(block); }));
}

void Streams::GivePinned(const weir_buf& block) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_pinned_bytes_ + block.bytes <= kMostPinnedKept) {
      idle_pinned_[block.bytes].push_back(block);
      idle_pinned_bytes_ += block.bytes;
      return;
    }
  }
  apis_.memory->pinned_free(device_, &block);
}

Result<weir_event*> Streams::TakeEvent() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_events_.empty()) {
      weir_event* const event = idle_events_.back();
      idle_events_.pop_back();
      return event;
    }
  }
  weir_event* event = nullptr;
  WEIR_TRY(CallPlugin("event_create of stream/1",
                      [&](weir_error* error) { return apis_.stream->event_create(device_, &event, error); }));
  if (event == nullptr) return Internal("{}: event_create of stream/1 gave no event", name());
  return event;
}

void Streams::GiveEvent(weir_event* event) {
  const std::lock_guard lock(mutex_);
  idle_events_.push_back(event);
}

bool StreamApis::Complete() const {
  return WEIR_HAS(stream, stream_create) && WEIR_HAS(stream, stream_destroy) && WEIR_HAS(stream, event_create) &&
         WEIR_HAS(stream, event_destroy) && WEIR_HAS(stream, record) && WEIR_HAS(stream, wait) &&
         WEIR_HAS(stream, query) && WEIR_HAS(stream, sync) && WEIR_HAS(stream, on_complete);
}

Status SharedMemoryUse::BeforeRead(Stream& stream) {
  const std::lock_guard lock(mutex_);
  return stream.Wait(written_);
}

Status SharedMemoryUse::AfterRead(Stream& stream) {
  WEIR_ASSIGN(Event event, stream.Record());
  const std::lock_guard lock(mutex_);
  std::erase_if(reads_, [](const Event& read) { return read.reached(); });
  reads_.push_back(std::move(event));
  return {};
}

Status SharedMemoryUse::BeforeWrite(Stream& stream) {
  const std::lock_guard lock(mutex_);
  WEIR_TRY(stream.Wait(written_));
  for (const Event& read : reads_) WEIR_TRY(stream.Wait(read));
  return {};
}

Status SharedMemoryUse::AfterWrite(Stream& stream) {
  WEIR_ASSIGN(Event event, stream.Record());
  const std::lock_guard lock(mutex_);
  written_ = std::move(event);
  reads_.clear();
  return {};
}

Status SharedMemoryUse::SyncWrites() {
  const std::lock_guard lock(mutex_);
  return written_.Sync();
}

}  // namespace weir::device
