// The streams and events of one run, and transfers of tensors between memories.
#ifndef WEIR_CORE_EXECUTE_STREAMS_H_
#define WEIR_CORE_EXECUTE_STREAMS_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/profiler.h"
#include "core/device/stream.h"
#include "core/plan/plan.h"
#include "core/runtime/cancellation.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// Between Begin and End the work for a device with streams goes to the streams that the plan names. Each runs in the
/// order of the tape; the plan's events order them among each other, and the host behind copies to it. Host memory that
/// may be rewritten is copied before it is sent. No cost for plans without such devices.
/// Single-threaded, except for waits of the host.
class RunStreams {
 public:
  explicit RunStreams(const plan::ExecutionPlan& plan);

  bool any() const { return any_; }
  /// Acquires streams. Unavailable if a device of the plan was lost. Waits end at most `grace` after the step was
  /// cancelled; a device that has not finished its work by then counts as lost.
  Status Begin(weir_error* error, runtime::Cancellation* step, std::chrono::milliseconds grace, bool profile = false);
  /// Waits for all streams and returns them. The result is `status` if it is an error, else the first failure of a
  /// stream.
  Status End(Status status);
  /// The calling thread works on this instruction of the tape from here on: what it enqueues is marked so.
  void Works(uint32_t instruction) const;
  /// The same for work of several instructions at once: an error of it is reported without one.
  void WorksOnSeveral() const;
  /// True for a stream whose device does not record when its work ran.
  bool Untimed(plan::StreamId stream) const;
  /// Waits for the stream's work. `empty_ns` gets what that takes, at the least, if there is none.
  Status Finish(plan::StreamId stream, int64_t* empty_ns);
  /// Records what `enqueue` enqueues on a stream, and runs it. Null, and nothing has run, if the device cannot record
  /// it; an error is one of `enqueue` or of the launch.
  Result<std::shared_ptr<const device::Captured>> Record(plan::StreamId stream,
                                                         const std::function<Status()>& enqueue);
  Status Launch(plan::StreamId stream, const device::Captured& captured);
  /// For an error of work that a stream did earlier: the instruction that had enqueued it. kNone if `status` is no such
  /// error, or the device does not say.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t CauseOf(const Status& status) const;
  /// CauseOf the error that End returned.
  uint32_t cause() const { return cause_; }
  /// The device's times of what the run enqueued, by End; marks are numbers of instructions plus one.
  const std::vector<device::DeviceActivity>& activities() const { return activities_; }
  /// True if some streams were not returned because their work may never finish; its memory must be kept forever.
  bool abandoned() const { return abandoned_; }
  /// Waits until the event is reached, or the step was cancelled and its grace has passed.
  Status Await(const device::Event& event);

  /// The stream that computes in a memory, or on a device; null outside a run, for host memory, and for a synchronous
  /// device.
  device::Stream* Of(plan::SpaceId space) const { return At(computes_[space]); }
  device::Stream* Of(const device::Device* device) const;
  /// The environment passed to kernels on a stream.
  const weir_env* env(plan::StreamId stream) const {
    (void)At(stream);
    return &lanes_[stream.position()].env;
  }
  /// Records the result of a kernel call on a stream.
  void Launched(plan::StreamId stream, const Status& status, uint32_t error_flags);

  /// The plan's events: records one on a stream, has a stream or (none) the host wait for one. An event that this run
  /// has not recorded is reached.
  Status Record(plan::EventId event, plan::StreamId stream);
  Status Wait(plan::EventId event, plan::StreamId stream);

  /// A tensor that the host can read. Waits for all work in its memory; for what computes there.
  Result<Tensor> ToHost(plan::SpaceId space, const Tensor& tensor);
  Result<Tensor> ToHost(device::Device& device, const Tensor& tensor);
  /// As above without waiting, on `stream`: the host may read the tensor behind an event that is recorded later, at the
  /// latest at End.
  Result<Tensor> Download(plan::StreamId stream, const Tensor& tensor);
  /// The same, and the event.
  Result<Tensor> Download(plan::StreamId stream, const Tensor& tensor, device::Event* arrived);
  /// A tensor in the memory of `space`, copied on `stream` if that memory has streams. `stable`: the host does not
  /// write `host` again in this run.
  Result<Tensor> ToDevice(plan::StreamId stream, plan::SpaceId space, const Tensor& host, bool stable);
  /// A copy in the memory of `space`, which holds the tensor.
  Result<Tensor> Duplicate(plan::SpaceId space, const Tensor& tensor);
  /// Copies between any two memories; the ranges must not overlap. `stable` as above, if `from` is on the host. A copy
  /// to the host has arrived at the return.
  Status Copy(plan::SpaceId to_space, const Tensor& to, plan::SpaceId from_space, const Tensor& from, bool stable);
  /// The same on a stream of the plan; a copy to the host arrives as by Download.
  Status Copy(plan::StreamId stream, plan::SpaceId to_space, const Tensor& to, plan::SpaceId from_space,
              const Tensor& from, bool stable);
  /// Keeps a tensor alive until the work on it is done, on whichever stream of its memory.
  void Keep(plan::SpaceId space, const Tensor& tensor);

  /// Orders this run with other runs that use a variable in the memory of `space`; the caller holds its lock. The
  /// access is on `stream` if that is one of the memory's, else on the one that computes there.
  Status BeforeAccess(plan::StreamId stream, plan::SpaceId space, runtime::Variable& variable, bool writes);
  Status AfterAccess(plan::StreamId stream, plan::SpaceId space, runtime::Variable& variable, bool writes);
  /// Registers reads on any stream of the memory.
  Status AfterReads(plan::SpaceId space, runtime::Variable& variable);

 private:
  struct Lane {
    std::unique_ptr<device::Stream> stream;
    weir_env env{};
    std::atomic<bool> hung = false;  // a wait for it exceeded the limit
    int64_t empty_ns = -1;           // of a wait for no work; -1 = not measured
  };

  device::Device& DeviceOf(plan::SpaceId space) const { return *plan_.devices[plan::OwnerOf(space)]; }
  Allocator& AllocatorOf(plan::SpaceId space) const;
  /// The stream for work of the calling thread's instruction.
  device::Stream* At(plan::StreamId stream) const;
  device::Stream* AccessOf(plan::StreamId stream, plan::SpaceId space) const;
  template <class F>
  void ForStreamsOf(plan::SpaceId space, const F& visit) const;
  Result<Tensor> Down(device::Stream& stream, const Tensor& tensor);
  Status Up(device::Stream& stream, const Tensor& to, const Tensor& from, bool stable);
  /// The result of a wait for the lane's stream.
  Status AwaitLane(Lane& lane, const device::Event& event);

  const plan::ExecutionPlan& plan_;
  bool any_ = false;
  std::vector<const device::Device*> devices_;             // devices that run kernels, without duplicates
  IndexedVector<plan::SpaceId, plan::StreamId> computes_;  // by memory: the stream that computes there, or none
  std::vector<Lane> lanes_;                                // by stream of the plan
  std::vector<device::Event> events_;                      // by event of the plan
  runtime::Cancellation* step_ = nullptr;                  // cancels this run; may be null
  std::chrono::milliseconds grace_{0};
  bool abandoned_ = false;
  uint32_t run_ = 0;  // number of the run, in its marks
  uint32_t cause_ = kNone;
  std::vector<device::Profiler*> profilers_;
  std::vector<device::DeviceActivity> activities_;
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_STREAMS_H_
