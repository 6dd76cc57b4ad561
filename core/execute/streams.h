// The streams of one run: one per device that works asynchronously, and how tensors move between their memories.
#ifndef WEIR_CORE_EXECUTE_STREAMS_H_
#define WEIR_CORE_EXECUTE_STREAMS_H_

#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"

namespace weir::execute {

/// Between Begin and End every piece of work for a device with streams goes onto the run's stream of that device, so
/// that tape order is the order on the device. What the host reads it waits for; what the host wrote and may write
/// again is copied aside before it is sent. Of a plan without such devices nothing here costs anything.
/// One thread at a time.
class RunStreams {
 public:
  explicit RunStreams(const plan::ExecutionPlan& plan);

  bool any() const { return any_; }
  /// Takes streams. Unavailable when a device of the plan was lost.
  Status Begin(weir_error* error);
  /// Waits for all of them and gives them back. `status`, or else the first failure of a stream.
  Status End(Status status);

  /// Null outside of a run, for host memory and for a synchronous device.
  device::Stream* Of(int space) const {
    return lanes_.empty() || space == plan::kHostSpace ? nullptr : lanes_[static_cast<size_t>(space)].stream.get();
  }
  device::Stream* Of(const device::Device* device) const;
  /// What kernels of a device with streams are called with.
  const weir_env* env(int space) const { return &lanes_[static_cast<size_t>(space)].env; }
  /// What became of a kernel's call on the stream of `space`.
  void Launched(int space, const Status& status, uint32_t error_flags);

  /// A tensor that the host may read. Waits where the device's work made it.
  Result<Tensor> ToHost(int space, const Tensor& tensor);
  Result<Tensor> ToHost(device::Device& device, const Tensor& tensor);
  /// The same without waiting: the host may read it once `arrived` was reached, which is at End at the latest.
  Result<Tensor> ToHost(int space, const Tensor& tensor, device::Event* arrived);
  /// A tensor in the device's memory. `stable`: the host does not write `host` again in this run.
  Result<Tensor> ToDevice(int space, const Tensor& host, bool stable);
  /// A second copy in the memory of `space`, where the tensor is.
  Result<Tensor> Duplicate(int space, const Tensor& tensor);
  /// Between any two memories; ranges do not overlap. `stable` as above, where `from` is on the host.
  Status Copy(int to_space, const Tensor& to, int from_space, const Tensor& from, bool stable);
  /// Lets go of a tensor when the work on it is done.
  void Keep(int space, const Tensor& tensor);

  /// Order with other runs that use the variable, whose lock the caller has.
  Status BeforeAccess(int space, kernel::Variable& variable, bool writes);
  Status AfterAccess(int space, kernel::Variable& variable, bool writes);

 private:
  struct Lane {
    std::unique_ptr<device::Stream> stream;
    weir_env env{};
  };

  device::Device& DeviceOf(int space) const;
  Allocator& AllocatorOf(int space) const;
  Result<Tensor> Down(device::Stream& stream, const Tensor& tensor);
  Status Up(device::Stream& stream, const Tensor& to, const Tensor& from, bool stable);

  const plan::ExecutionPlan& plan_;
  bool any_ = false;
  std::vector<const device::Device*> devices_;  // that run kernels, once each
  std::vector<bool> used_;                      // by space: a device with streams that the plan uses
  std::vector<Lane> lanes_;                     // by space; empty without such devices
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_STREAMS_H_
