// A task of a cluster, and the master of a server, behind a transport.
#ifndef WEIR_CORE_CLUSTER_REMOTE_WORKER_H_
#define WEIR_CORE_CLUSTER_REMOTE_WORKER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/cluster/session_hold.h"
#include "core/cluster/transport.h"
#include "core/cluster/wire_channel.h"
#include "core/cluster/worker.h"

namespace weir::cluster {

/// Calls a task in another process; without a name, whichever task is at the address. GetStatus waits for it until its
/// deadline; other calls fail with Unavailable if it cannot be reached now. Errors of the connection name the peer and
/// what waited. CancelStep and CleanupStep do not wait for their replies. A session that ended while the task could not
/// be reached is deleted there after the next one has begun. Sessions of masters are held (SessionHold) until they end.
class RemoteWorker final : public Worker {
 public:
  /// `limit`: for calls without a deadline that need no work of the task.
  RemoteWorker(TaskName task, std::shared_ptr<WireChannel> channel, std::chrono::milliseconds limit)
      : task_(std::move(task)), channel_(std::move(channel)), limit_(limit) {}

  const TaskName& task() const override { return task_; }
  const runtime::WaitHelp* help() const override { return channel_->help(); }
  Result<WorkerStatus> GetStatus(Clock::time_point deadline) override;
  Result<std::vector<kernel::KernelDescription>> GetKernels(Clock::time_point deadline) override;
  Status CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) override;
  Status DeleteSession(uint64_t session) override;
  std::shared_ptr<const void> HoldSession(uint64_t session, std::function<void(const Status&)> ended) override;
  Result<PartHandle> RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) override;
  Status DeregisterPart(uint64_t session, uint64_t part) override;
  void RunStep(StepRequest request, StepDone done) override;
  Result<trace::StepTrace> TakeTrace(uint64_t session, uint64_t step, Clock::time_point deadline) override;
  void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) override;
  void SendTensor(const TransferRequest& request, runtime::Message message, SendDone done) override;
  Status CancelStep(uint64_t session, uint64_t step, const Status& why) override;
  Status CleanupStep(uint64_t session, uint64_t step) override;
  Result<std::chrono::nanoseconds> Measure(uint64_t bytes, Clock::time_point deadline) override;
  Status ResetContainers(const std::vector<std::string>& containers) override;

  /// Other transports by which the task can be reached; waits for it as GetStatus.
  Result<std::vector<Alternate>> GetTransports(Clock::time_point deadline);

 private:
  /// Waits for the reply.
  Result<WireReply> Ask(const WireRequest& request, const Bodies& bodies, uint32_t flags, Clock::time_point deadline);
  /// Does not wait for it.
  Status Tell(const WireRequest& request);
  /// Deletes the sessions of `left_`.
  void TellLeft();

  /// " in /job:ps/replica:0/task:0"; empty without a name.
  std::string InTask() const { return task_.job.empty() ? std::string() : " in " + task_.ToString(); }

  const TaskName task_;
  const std::shared_ptr<WireChannel> channel_;
  const std::chrono::milliseconds limit_;
  std::mutex mutex_;         // protects all below
  std::set<uint64_t> left_;  // sessions that the task may still have
  std::map<uint64_t, std::unique_ptr<SessionHold>> holds_;
};

/// Calls the master of a server. CreateSession waits for the server, five minutes at most.
class RemoteMaster final : public MasterService {
 public:
  explicit RemoteMaster(std::shared_ptr<WireChannel> channel) : channel_(std::move(channel)) {}
  void Call(MasterCall call, MasterDone done) override;
  const runtime::WaitHelp* help() const override { return channel_->help(); }

 private:
  const std::shared_ptr<WireChannel> channel_;
};

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_REMOTE_WORKER_H_
