// The streams of one run, one per asynchronous device, and transfers of tensors between memories.
#ifndef WEIR_CORE_EXECUTE_STREAMS_H_
#define WEIR_CORE_EXECUTE_STREAMS_H_

#include <chrono>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/plan/plan.h"
#include "core/runtime/cancellation.h"
#include "core/tensor/buffer.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// Between Begin and End all work for a device with streams goes to the run's stream of that device, so tape order is
/// device order. Host reads wait for it. Host memory that may be rewritten is copied before it is sent. No cost for
/// plans without such devices.
/// Single-threaded.
class RunStreams {
 public:
  explicit RunStreams(const plan::ExecutionPlan& plan);

  bool any() const { return any_; }
  /// Acquires streams. Unavailable if a device of the plan was lost. Waits end at most `grace` after the step was
  /// cancelled; a device that has not finished its work by then counts as lost.
  Status Begin(weir_error* error, runtime::Cancellation* step, std::chrono::milliseconds grace);
  /// Waits for all streams and returns them. The result is `status` if it is an error, else the first failure of a
  /// stream.
  Status End(Status status);
  /// True if some streams were not returned because their work may never finish; its memory must be kept forever.
  bool abandoned() const { return abandoned_; }
  /// Waits until the event is reached, or the step was cancelled and its grace has passed.
  Status Await(const device::Event& event);

  /// Null outside a run, for host memory, and for a synchronous device.
  device::Stream* Of(int space) const {
    return lanes_.empty() || space == plan::kHostSpace ? nullptr : lanes_[static_cast<size_t>(space)].stream.get();
  }
  device::Stream* Of(const device::Device* device) const;
  /// The environment passed to kernels on a device with streams.
  const weir_env* env(int space) const { return &lanes_[static_cast<size_t>(space)].env; }
  /// Records the result of a kernel call on the stream of `space`.
  void Launched(int space, const Status& status, uint32_t error_flags);

  /// A tensor that the host can read. Waits for the device work that produces it.
  Result<Tensor> ToHost(int space, const Tensor& tensor);
  Result<Tensor> ToHost(device::Device& device, const Tensor& tensor);
  /// As above without waiting: the host may read the tensor once `arrived` is reached, at the latest at End.
  Result<Tensor> ToHost(int space, const Tensor& tensor, device::Event* arrived);
  /// A tensor in device memory. `stable`: the host does not write `host` again in this run.
  Result<Tensor> ToDevice(int space, const Tensor& host, bool stable);
  /// A copy in the memory of `space`, which holds the tensor.
  Result<Tensor> Duplicate(int space, const Tensor& tensor);
  /// Copies between any two memories; the ranges must not overlap. `stable` as above, if `from` is on the host.
  Status Copy(int to_space, const Tensor& to, int from_space, const Tensor& from, bool stable);
  /// Keeps a tensor alive until the work on it is done.
  void Keep(int space, const Tensor& tensor);

  /// Orders this run with other runs that use the variable; the caller holds its lock.
  Status BeforeAccess(int space, runtime::Variable& variable, bool writes);
  Status AfterAccess(int space, runtime::Variable& variable, bool writes);

 private:
  struct Lane {
    std::unique_ptr<device::Stream> stream;
    weir_env env{};
    bool hung = false;  // a wait for it exceeded the limit
  };

  device::Device& DeviceOf(int space) const;
  Allocator& AllocatorOf(int space) const;
  Result<Tensor> Down(device::Stream& stream, const Tensor& tensor);
  Status Up(device::Stream& stream, const Tensor& to, const Tensor& from, bool stable);
  /// The result of a wait for the lane's stream.
  Status AwaitLane(Lane& lane, const device::Event& event);

  const plan::ExecutionPlan& plan_;
  bool any_ = false;
  std::vector<const device::Device*> devices_;  // devices that run kernels, without duplicates
  std::vector<bool> used_;                      // by space: the plan uses a device with streams
  std::vector<Lane> lanes_;                     // by space; empty without such devices
  runtime::Cancellation* step_ = nullptr;       // cancels this run; may be null
  std::chrono::milliseconds grace_{0};
  bool abandoned_ = false;
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_STREAMS_H_
