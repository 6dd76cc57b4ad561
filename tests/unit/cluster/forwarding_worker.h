// A task that passes on all that is asked of it. Tests override what they watch or hold.
#ifndef WEIR_TESTS_UNIT_CLUSTER_FORWARDING_WORKER_H_
#define WEIR_TESTS_UNIT_CLUSTER_FORWARDING_WORKER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/worker.h"

namespace weir::cluster {

class ForwardingWorker : public Worker {
 public:
  explicit ForwardingWorker(std::shared_ptr<Worker> task) : task_(std::move(task)) {}

  const TaskName& task() const override { return task_->task(); }
  const device::DeviceSet* own_devices() const override { return task_->own_devices(); }
  const runtime::WaitHelp* help() const override { return task_->help(); }
  Result<WorkerStatus> GetStatus(Clock::time_point deadline) override { return task_->GetStatus(deadline); }
  Status CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) override {
    return task_->CreateSession(spec, deadline);
  }
  Status DeleteSession(uint64_t session) override { return task_->DeleteSession(session); }
  Result<PartHandle> RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) override {
    return task_->RegisterPart(session, graph, deadline);
  }
  Status DeregisterPart(uint64_t session, uint64_t part) override { return task_->DeregisterPart(session, part); }
  void RunStep(StepRequest request, StepDone done) override { task_->RunStep(std::move(request), std::move(done)); }
  void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) override {
    task_->RecvTensor(request, std::move(received));
  }
  void SendTensor(const TransferRequest& request, runtime::Message message, SendDone done) override {
    task_->SendTensor(request, std::move(message), std::move(done));
  }
  Status CancelStep(uint64_t session, uint64_t step, const Status& why) override {
    return task_->CancelStep(session, step, why);
  }
  Status CleanupStep(uint64_t session, uint64_t step) override { return task_->CleanupStep(session, step); }
  Status ResetContainers(const std::vector<std::string>& containers) override {
    return task_->ResetContainers(containers);
  }

 private:
  const std::shared_ptr<Worker> task_;
};

}  // namespace weir::cluster

#endif  // WEIR_TESTS_UNIT_CLUSTER_FORWARDING_WORKER_H_
