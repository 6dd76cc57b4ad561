#include "core/execute/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "core/kernel/host.h"
#include "core/runtime/blocking_pool.h"
#include "core/tensor/buffer.h"

namespace weir::execute {

namespace {

/// The mark of the calling thread's instruction.
thread_local uint64_t working_mark = 0;

uint32_t NextRun() {
  static std::atomic<uint32_t> runs{0};
  uint32_t run = 0;
  while (run == 0) run = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  return run;
}

weir_buf MemoryOf(const Tensor& tensor) { return kernel::ViewOf(tensor).buf; }

/// State of a wait for an event, which may be reached after the waiting thread has given up.
struct Arrival {
  std::mutex mutex;  // protects all below
  std::condition_variable changed;
  bool arrived = false;
  bool cancelled = false;

  void Note(bool& what) {
    const std::lock_guard lock(mutex);
    what = true;
    changed.notify_all();
  }
};

/// Records when the event is reached; needs no thread if the plugin supports callbacks.
Status Watch(const device::Event& event, const std::shared_ptr<Arrival>& arrival) {
  if (event.Then([arrival](const Status&) { arrival->Note(arrival->arrived); }).ok()) return {};
  struct Job {
    device::Event event;
    std::shared_ptr<Arrival> arrival;
  };
  auto job = std::make_unique<Job>(Job{event, arrival});
  WEIR_TRY(runtime::RunBlocking(
      [](void* arg) {
        const std::unique_ptr<Job> own(static_cast<Job*>(arg));
        (void)own->event.Sync();  // the waiting thread checks again
        own->arrival->Note(own->arrival->arrived);
      },
      job.get()));
  (void)job.release();
  return {};
}

/// False if the step was cancelled and `grace` has passed since.
bool AwaitWithin(const device::Event& event, runtime::Cancellation& step, std::chrono::milliseconds grace) {
  const auto arrival = std::make_shared<Arrival>();
  if (!Watch(event, arrival).ok()) return true;  // no thread available: this one blocks
  runtime::CancelCallback cancel;
  const bool running = cancel.Register(step, [arrival] { arrival->Note(arrival->cancelled); });
  std::unique_lock lock(arrival->mutex);
  if (running) arrival->changed.wait(lock, [&] { return arrival->arrived || arrival->cancelled; });
  return arrival->changed.wait_for(lock, grace, [&] { return arrival->arrived; });
}

}  // namespace

RunStreams::RunStreams(const plan::ExecutionPlan& plan)
    : plan_(plan),
      any_(!plan.streams.empty()),
      computes_(plan.devices.size() + 1),
      lanes_(plan.streams.size()),
      events_(plan.event_count) {
  for (const plan::StreamId stream : plan.streams.indices()) {
    const plan::PlannedStream& of = plan.streams[stream];
    if (of.use == plan::PlannedStream::Use::kCompute) computes_[plan::OwnSpace(of.device)] = stream;
  }
  std::set<const device::Device*> devices;
  for (const plan::Instruction& instruction : plan.instructions) {
    if (instruction.fn != nullptr) devices.insert(&plan.DeviceOf(instruction));
  }
  for (const plan::CallSpec& call : plan.calls) devices.insert(call.device);
  devices.erase(nullptr);
  devices_.assign(devices.begin(), devices.end());
}

Allocator& RunStreams::AllocatorOf(plan::SpaceId space) const {
  if (space != plan::kHostSpace) return DeviceOf(space).allocator();
  return plan_.host_device == nullptr ? HostAllocator() : plan_.host_device->allocator();
}

void RunStreams::Works(uint32_t instruction) const { working_mark = device::MarkOf(run_, instruction + 1); }

void RunStreams::WorksOnSeveral() const { working_mark = device::MarkOf(run_, 0); }

bool RunStreams::Untimed(plan::StreamId stream) const {
  return stream.valid() && lanes_[stream.position()].stream->owner().profiler() == nullptr;
}

Status RunStreams::Finish(plan::StreamId id, int64_t* empty_ns) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTries = 8;
  Lane& lane = lanes_[id.position()];
  WEIR_TRY(lane.stream->Sync());
  for (int i = 0; i < kTries && (i > 0 || lane.empty_ns < 0); ++i) {
    lane.stream->Launched();  // else there would be no event to wait for
    const Clock::time_point begin = Clock::now();
    WEIR_TRY(lane.stream->Sync());
    const int64_t ns = std::chrono::nanoseconds(Clock::now() - begin).count();
    if (i == 0 || ns < lane.empty_ns) lane.empty_ns = ns;
  }
  *empty_ns = lane.empty_ns;
  return {};
}

Result<std::shared_ptr<const device::Captured>> RunStreams::Record(plan::StreamId id,
                                                                   const std::function<Status()>& enqueue) {
  using Recorded = std::shared_ptr<const device::Captured>;
  device::Stream& stream = *At(id);
  if (!stream.Records() || !stream.BeginCapture().ok()) return Recorded();
  const Status enqueued = enqueue();
  Result<Recorded> recorded = stream.EndCapture();
  WEIR_TRY(enqueued);
  if (!recorded.ok()) return stream.failed() ? Result<Recorded>(recorded.status()) : Recorded();
  WEIR_TRY(stream.Launch(**recorded));
  return recorded;
}

Status RunStreams::Launch(plan::StreamId stream, const device::Captured& captured) {
  return At(stream)->Launch(captured);
}

device::Stream* RunStreams::At(plan::StreamId stream) const {
  device::Stream* const at = stream.valid() ? lanes_[stream.position()].stream.get() : nullptr;
  if (at != nullptr) at->Mark(working_mark);
  return at;
}

uint32_t RunStreams::CauseOf(const Status& status) const {
  for (const Lane& lane : lanes_) {
    if (lane.stream == nullptr || lane.hung) continue;
    const std::string& device = lane.stream->owner().name();
    if (!lane.stream->failed() && !status.message().starts_with(device)) continue;
    const uint64_t mark = lane.stream->failed_mark();
    if (mark != 0 && device::RunOf(mark) == run_) return device::RestOf(mark) - 1;
  }
  return kNone;
}

Status RunStreams::Begin(weir_error* error, runtime::Cancellation* step, std::chrono::milliseconds grace,
                         bool profile) {
  step_ = step;
  grace_ = grace;
  for (const device::Device* device : devices_) WEIR_TRY(device->health());
  if (!any_) return {};
  events_.assign(events_.size(), device::Event());
  run_ = NextRun();
  working_mark = device::MarkOf(run_, 0);
  activities_.clear();
  profilers_.clear();
  for (const plan::StreamId stream : plan_.streams.indices()) {
    WEIR_ASSIGN(device::Streams* const streams, plan_.devices[plan_.streams[stream].device]->streams());
    Lane& lane = lanes_[stream.position()];
    WEIR_ASSIGN(lane.stream, streams->Acquire());
    device::Profiler* const profiler = profile ? streams->profiler() : nullptr;
    if (profiler != nullptr && std::ranges::find(profilers_, profiler) == profilers_.end() &&
        profiler->Begin(run_).ok()) {
      profilers_.push_back(profiler);
    }
    lane.hung = false;
    lane.stream->WaitBy([this, &lane](const device::Event& event) { return AwaitLane(lane, event); });
    lane.env = {};
    lane.env.struct_size = sizeof(lane.env);
    lane.env.tile_end = 1;
    lane.env.stream = lane.stream->handle();
    lane.env.native_stream = lane.stream->native();
    lane.env.error = error;
  }
  return {};
}

Status RunStreams::End(Status status) {
  for (Lane& lane : lanes_) {
    if (lane.stream == nullptr) continue;
    Status synced = lane.stream->Sync();
    if (status.ok()) status = std::move(synced);
  }
  for (device::Profiler* const profiler : profilers_) {
    for (device::DeviceActivity& one : profiler->End(run_)) activities_.push_back(one);
  }
  profilers_.clear();
  cause_ = status.ok() ? kNone : CauseOf(status);
  for (Lane& lane : lanes_) {
    if (lane.stream == nullptr) continue;
    device::Streams& owner = lane.stream->owner();
    if (lane.hung) {
      abandoned_ = true;
      owner.Abandon(std::move(lane.stream));
    } else {
      owner.Release(std::move(lane.stream));
    }
  }
  return status;
}

Status RunStreams::AwaitLane(Lane& lane, const device::Event& event) {
  if (step_ == nullptr || event.reached()) return event.Sync();
  device::Streams& owner = lane.stream->owner();
  // Once the device is lost, no other of its streams is given time.
  const std::chrono::milliseconds grace = owner.health().ok() ? grace_ : std::chrono::milliseconds(0);
  if (!lane.hung && AwaitWithin(event, *step_, grace)) return event.Sync();
  const Status late = step_->status().Append(
      fmt::format("\n{} did not do its work within {} ms after that and counts as lost", owner.name(), grace_.count()));
  if (!lane.hung.exchange(true)) owner.Lose(late);
  return late;
}

Status RunStreams::Await(const device::Event& event) {
  for (Lane& lane : lanes_) {
    if (lane.stream != nullptr && event.of(*lane.stream)) return AwaitLane(lane, event);
  }
  return event.Sync();
}

device::Stream* RunStreams::Of(const device::Device* device) const {
  for (const plan::StreamId stream : plan_.streams.indices()) {
    const plan::PlannedStream& of = plan_.streams[stream];
    const bool computes = of.use == plan::PlannedStream::Use::kCompute;
    if (computes && plan_.devices[of.device] == device) return At(stream);
  }
  return nullptr;
}

device::Stream* RunStreams::AccessOf(plan::StreamId stream, plan::SpaceId space) const {
  const bool there = stream.valid() && plan::OwnSpace(plan_.streams[stream].device) == space;
  return there ? At(stream) : Of(space);
}

template <class F>
void RunStreams::ForStreamsOf(plan::SpaceId space, const F& visit) const {
  if (space == plan::kHostSpace) return;
  for (const plan::StreamId stream : plan_.streams.indices()) {
    if (plan_.streams[stream].device == plan::OwnerOf(space) && At(stream) != nullptr) visit(*At(stream));
  }
}

void RunStreams::Launched(plan::StreamId id, const Status& status, uint32_t error_flags) {
  device::Stream* const stream = At(id);
  stream->Launched();
  if (!status.ok()) stream->Refused(status, error_flags);
}

Status RunStreams::Record(plan::EventId event, plan::StreamId stream) {
  WEIR_ASSIGN(events_[event.position()], At(stream)->Record());
  return {};
}

Status RunStreams::Wait(plan::EventId event, plan::StreamId stream) {
  const device::Event& recorded = events_[event.position()];
  return stream.valid() ? At(stream)->Wait(recorded) : Await(recorded);
}

Result<Tensor> RunStreams::ToHost(plan::SpaceId space, const Tensor& tensor) {
  if (space == plan::kHostSpace || tensor.on_host()) return tensor;
  Status ordered;
  ForStreamsOf(space, [&](device::Stream& other) {
    const Result<device::Event> event = other.Record();
    if (ordered.ok()) ordered = event.ok() ? Of(space)->Wait(*event) : event.status();
  });
  WEIR_TRY(ordered);
  return ToHost(DeviceOf(space), tensor);
}

Result<Tensor> RunStreams::ToHost(device::Device& device, const Tensor& tensor) {
  device::Stream* const stream = Of(&device);
  if (stream == nullptr || tensor.on_host()) return device.ToHost(tensor);
  WEIR_ASSIGN(Tensor host, Down(*stream, tensor));
  WEIR_TRY(stream->Sync());
  return host;
}

Result<Tensor> RunStreams::Download(plan::StreamId stream, const Tensor& tensor) {
  return tensor.on_host() ? Result<Tensor>(tensor) : Down(*At(stream), tensor);
}

Result<Tensor> RunStreams::Download(plan::StreamId stream, const Tensor& tensor, device::Event* arrived) {
  WEIR_ASSIGN(Tensor host, Download(stream, tensor));
  WEIR_ASSIGN(*arrived, At(stream)->Record());
  return host;
}

Result<Tensor> RunStreams::Down(device::Stream& stream, const Tensor& tensor) {
  WEIR_ASSIGN(Tensor host, Tensor::Make(tensor.dtype(), tensor.shape()));
  stream.Keep(host.buffer(), 0);
  WEIR_TRY(stream.Copy(MemoryOf(host), MemoryOf(tensor), tensor.bytes()));
  return host;
}

Result<Tensor> RunStreams::ToDevice(plan::StreamId id, plan::SpaceId space, const Tensor& host, bool stable) {
  device::Stream* const stream = AccessOf(id, space);
  if (stream == nullptr) return DeviceOf(space).FromHost(host);
  WEIR_ASSIGN(Tensor there, Tensor::Make(host.dtype(), host.shape(), AllocatorOf(space)));
  if (there.elements() != 0) WEIR_TRY(Up(*stream, there, host, stable));
  return there;
}

Result<Tensor> RunStreams::Duplicate(plan::SpaceId space, const Tensor& tensor) {
  const bool host = tensor.on_host();
  if (host && (space != plan::kHostSpace || !HasFixedSize(tensor.dtype()))) return tensor.Clone();
  WEIR_ASSIGN(Tensor copy, Tensor::Make(tensor.dtype(), tensor.shape(), AllocatorOf(space)));
  if (host) {
    if (tensor.bytes() != 0) std::memcpy(copy.mutable_raw(), tensor.raw(), tensor.bytes());
    return copy;
  }
  WEIR_TRY(Copy(space, copy, space, tensor, true));
  Keep(space, tensor);
  return copy;
}

Status RunStreams::Up(device::Stream& stream, const Tensor& to, const Tensor& from, bool stable) {
  if (stable) {
    stream.Keep(from.buffer(), 0);
    return stream.Copy(MemoryOf(to), MemoryOf(from), from.bytes());
  }
  WEIR_ASSIGN(std::shared_ptr<Buffer> staging, stream.owner().Staging(from.bytes()));
  std::memcpy(staging->host(), from.raw(), from.bytes());
  const weir_buf memory = staging->memory();
  stream.Keep(std::move(staging), from.bytes());
  return stream.Copy(MemoryOf(to), memory, from.bytes());
}

Status RunStreams::Copy(plan::StreamId stream, plan::SpaceId to_space, const Tensor& to, plan::SpaceId from_space,
                        const Tensor& from, bool stable) {
  if (from.bytes() == 0) return {};
  if (stream.valid() && from.on_host()) return Up(*At(stream), to, from, stable);
  if (stream.valid() && to.on_host()) return At(stream)->Copy(MemoryOf(to), MemoryOf(from), from.bytes());
  return Copy(to_space, to, from_space, from, stable);
}

Status RunStreams::Copy(plan::SpaceId to_space, const Tensor& to, plan::SpaceId from_space, const Tensor& from,
                        bool stable) {
  if (from.bytes() == 0) return {};
  device::Stream* const target = Of(to_space);
  device::Stream* const source = Of(from_space);
  if (target != nullptr && source != nullptr) {
    if (target == source) return target->Copy(MemoryOf(to), MemoryOf(from), from.bytes());
    return target->CopyFrom(*source, MemoryOf(to), MemoryOf(from), from.bytes());
  }
  if (target != nullptr && from.on_host()) return Up(*target, to, from, stable);
  if (source != nullptr && to.on_host()) {
    WEIR_TRY(source->Copy(MemoryOf(to), MemoryOf(from), from.bytes()));
    return source->Sync();
  }
  if (target == nullptr && source == nullptr && (to_space == from_space || to.on_host() || from.on_host())) {
    device::Device* device = to_space != plan::kHostSpace ? &DeviceOf(to_space) : nullptr;
    if (device == nullptr && from_space != plan::kHostSpace) device = &DeviceOf(from_space);
    if (device != nullptr) return device->Copy(MemoryOf(to), MemoryOf(from), from.bytes());
    std::memmove(static_cast<std::byte*>(MemoryOf(to).host), from.raw(), from.bytes());
    return {};
  }
  WEIR_ASSIGN(const Tensor staged, ToHost(from_space, from));
  return Copy(to_space, to, plan::kHostSpace, staged, true);
}

void RunStreams::Keep(plan::SpaceId space, const Tensor& tensor) {
  if (tensor.buffer() == nullptr) return;
  ForStreamsOf(space, [&](device::Stream& stream) { stream.Keep(tensor.buffer(), tensor.bytes()); });
}

Status RunStreams::BeforeAccess(plan::StreamId id, plan::SpaceId space, runtime::Variable& variable, bool writes) {
  device::Stream* const stream = AccessOf(id, space);
  if (stream == nullptr) return {};
  return writes ? variable.use.BeforeWrite(*stream) : variable.use.BeforeRead(*stream);
}

Status RunStreams::AfterAccess(plan::StreamId id, plan::SpaceId space, runtime::Variable& variable, bool writes) {
  device::Stream* const stream = AccessOf(id, space);
  if (stream == nullptr) return {};
  return writes ? variable.use.AfterWrite(*stream) : variable.use.AfterRead(*stream);
}

Status RunStreams::AfterReads(plan::SpaceId space, runtime::Variable& variable) {
  Status status;
  ForStreamsOf(space, [&](device::Stream& stream) {
    if (status.ok()) status = variable.use.AfterRead(stream);
  });
  return status;
}

}  // namespace weir::execute
