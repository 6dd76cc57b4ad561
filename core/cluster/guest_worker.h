// A process whose devices a session uses as its own.
#ifndef WEIR_CORE_CLUSTER_GUEST_WORKER_H_
#define WEIR_CORE_CLUSTER_GUEST_WORKER_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/worker.h"

namespace weir::cluster {

/// A worker under the name that the session's device names have for it. Its session has state of its own, which ends
/// with the connection: later steps fail with Unavailable, which says so. For one session.
class GuestWorker final : public Worker {
 public:
  /// `far`: the worker, under any name. `address`: for messages.
  GuestWorker(TaskName name, std::string address, std::shared_ptr<Worker> far)
      : name_(std::move(name)), address_(std::move(address)), far_(std::move(far)) {}

  const TaskName& task() const override { return name_; }
  bool pulls() const override { return false; }
  const runtime::WaitHelp* help() const override { return far_->help(); }

  Result<WorkerStatus> GetStatus(Clock::time_point deadline) override;
  Result<std::vector<kernel::KernelDescription>> GetKernels(Clock::time_point deadline) override {
    return far_->GetKernels(deadline);
  }
  Status CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) override;
  Status DeleteSession(uint64_t session) override;
  Result<PartHandle> RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) override;
  Status DeregisterPart(uint64_t session, uint64_t part) override { return far_->DeregisterPart(session, part); }
  void RunStep(StepRequest request, StepDone done) override;
  void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) override;
  void SendTensor(const TransferRequest& request, runtime::Message message, SendDone done) override {
    far_->SendTensor(request, std::move(message), std::move(done));
  }
  Status CancelStep(uint64_t session, uint64_t step, const Status& why) override {
    return far_->CancelStep(session, step, why);
  }
  Status CleanupStep(uint64_t session, uint64_t step) override { return far_->CleanupStep(session, step); }
  Status ResetContainers(const std::vector<std::string>& containers) override {
    return far_->ResetContainers(containers);
  }

  /// Gives the devices of a worker the job and task of `name`. InvalidArgument for two devices of one name.
  static Status Rename(const TaskName& name, std::vector<device::DeviceDescription>& devices);

 private:
  /// The end of the session, as it happened or as it is found out. Unavailable, or ok.
  Status Lost() const;
  void Lose(const Status& why);
  /// Unavailable, or an error of the connection, ends the session: the error says what is lost, during which work, and
  /// how to go on. Other errors stay.
  Status Judge(const Status& status, const std::string& what);
  std::shared_ptr<GuestWorker> Self() { return std::static_pointer_cast<GuestWorker>(shared_from_this()); }

  const TaskName name_;
  const std::string address_;
  const std::shared_ptr<Worker> far_;
  mutable std::mutex mutex_;  // protects all below
  bool ends_ = false;
  Status lost_;
  std::shared_ptr<const void> held_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_GUEST_WORKER_H_
