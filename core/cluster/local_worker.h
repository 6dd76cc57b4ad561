// A task of a cluster in this process.
#ifndef WEIR_CORE_CLUSTER_LOCAL_WORKER_H_
#define WEIR_CORE_CLUSTER_LOCAL_WORKER_H_

#include <atomic>
#include <condition_variable>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/step_recorder.h"
#include "core/cluster/worker.h"
#include "core/runtime/resource.h"
#include "core/session/memory_report.h"
#include "core/session/runtime.h"

namespace weir::cluster {

/// Runs parts on the devices of a runtime whose names are those of the task (plugin::LoadOptions::job). Its variables
/// outlive the sessions, which share them.
class LocalWorker final : public Worker {
 public:
  struct Options {
    TaskName task;
    std::shared_ptr<session::Runtime> runtime;
    std::weak_ptr<const Workers> peers;  // the tasks that it receives from; they hold it
    /// Set: parts run as steps of a session with these options, which names its resources, instead of those of the
    /// master's session.
    std::shared_ptr<const session::SessionOptions> session = nullptr;
  };
  /// InvalidArgument if the runtime has a device of another task.
  static Result<std::shared_ptr<LocalWorker>> Make(Options options);
  ~LocalWorker() override;

  const TaskName& task() const override { return options_.task; }
  const device::DeviceSet* own_devices() const override { return &options_.runtime->plugins->devices(); }
  uint64_t incarnation() const { return incarnation_; }

  Result<WorkerStatus> GetStatus(Clock::time_point deadline) override;
  Result<std::vector<kernel::KernelDescription>> GetKernels(Clock::time_point deadline) override;
  Status CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) override;
  Status DeleteSession(uint64_t session) override;
  Result<PartHandle> RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) override;
  Status DeregisterPart(uint64_t session, uint64_t part) override;
  bool IsShort(uint64_t session, uint64_t part) const override;
  void RunStep(StepRequest request, StepDone done) override;
  Result<trace::StepTrace> TakeTrace(uint64_t session, uint64_t step, Clock::time_point deadline) override;
  void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) override;
  /// Only in sessions of masters that know the task by another name (WorkerSessionSpec::known_as).
  void SendTensor(const TransferRequest& request, runtime::Message message, SendDone done) override;
  Status TakeValue(const TransferRequest& request, runtime::Message message) override;
  Status CancelStep(uint64_t session, uint64_t step, const Status& why) override;
  Status CleanupStep(uint64_t session, uint64_t step) override;
  Status ResetContainers(const std::vector<std::string>& containers) override;

  /// Refuses new steps, and waits for those under way. DeadlineExceeded with their number if they take longer.
  Status Drain(Clock::time_point deadline);
  /// Cancels everything and drops all sessions; later calls fail.
  void Close();

  struct Counts {
    size_t sessions = 0, parts = 0, steps = 0, running = 0;
  };
  /// For the status page and tests: all but sessions and parts are 0 between steps.
  Counts counts() const;
  /// What the variables of the task and of its sessions, and the parts of all sessions, hold now.
  session::MemoryReport ReportMemory() const;
  /// Gets a trace of every part that begins while it records.
  StepRecorder& recorder() { return recorder_; }

 private:
  struct Part;
  struct OwnSession;
  struct Step;
  struct Call;

  explicit LocalWorker(Options options);
  /// Aborted if the session is unknown.
  Result<std::shared_ptr<OwnSession>> FindSession(uint64_t session) const;
  Result<std::shared_ptr<Part>> MakePart(OwnSession& session, const std::string& graph) const;
  /// The task as the master of a session calls it.
  const TaskName& NameIn(const WorkerSessionSpec& spec) const;
  /// The step, created on first use. Aborted if it has ended or its session is unknown.
  Result<std::shared_ptr<Step>> FindStep(uint64_t session, uint64_t step);
  Result<std::unique_ptr<Call>> Admit(StepRequest& request);
  static bool Forgets(const Call& call, const Status& status);
  void RunCall(std::unique_ptr<Call> call);
  /// What the parts but this one keep for their runs, for an error of memory.
  std::string OtherHolders(const Part& but) const;

  const Options options_;
  const uint64_t incarnation_;
  StepRecorder recorder_;
  const std::shared_ptr<runtime::ResourceScope> resources_ = std::make_shared<runtime::ResourceScope>();
  mutable std::mutex mutex_;  // protects all below
  std::condition_variable idle_;
  bool draining_ = false, closed_ = false;
  size_t running_ = 0;
  std::map<uint64_t, std::shared_ptr<OwnSession>> sessions_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_LOCAL_WORKER_H_
