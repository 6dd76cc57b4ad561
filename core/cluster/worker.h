// What a master asks of the tasks of a cluster.
#ifndef WEIR_CORE_CLUSTER_WORKER_H_
#define WEIR_CORE_CLUSTER_WORKER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/cluster/cluster_spec.h"
#include "core/device/stand_in.h"
#include "core/kernel/stand_in.h"
#include "core/runtime/completion.h"
#include "core/runtime/rendezvous.h"
#include "core/runtime/wait_help.h"
#include "core/tensor/tensor.h"
#include "core/trace/span.h"

namespace weir::cluster {

struct StepLink;

using Clock = std::chrono::steady_clock;

/// A random number that is never 0: incarnations, sessions, steps. Its top bit is clear, so that it fits signed fields.
uint64_t RandomId();

struct WorkerStatus {
  TaskName task;
  uint64_t incarnation = 0;
  std::vector<device::DeviceDescription> devices;
  bool draining = false;  // runs no new steps
  int64_t clock_us = 0;   // of the task when it answered, since 1970
};

/// A session of a master, and how its parts are planned.
struct WorkerSessionSpec {
  uint64_t handle = 0;  // chosen by the master, random
  uint64_t incarnation = 0;  // of the worker that the master means
  bool isolate_state = false;
  bool allow_soft_placement = true;
  bool constant_folding = true;
  bool common_subexpressions = true;
  bool fusion = true;
  bool deterministic = false;
  int inter_op = 0, intra_op = 0;  // as SessionOptions
  /// The name by which a master outside the worker's cluster knows the worker, in device names and keys; an empty job =
  /// the worker's own. The worker cannot reach the tasks of such a master, which sends their values (SendTensor).
  TaskName known_as = {};
};

/// A registered part: its id, and the positions of its feeds and fetches among those of the step.
struct PartHandle {
  uint64_t id = 0;
  std::vector<int> feeds, fetches;
};

/// Part of a step. Requests of one session are numbered upwards; a number runs at most once.
struct StepRequest {
  uint64_t session = 0, part = 0, step = 0, request = 0;
  std::vector<Tensor> feeds;    // of the part, in order
  bool alone = false;           // the step has no other part, and ends with it
  bool on_this_thread = false;  // a worker of this process may run it before RunStep returns
  bool trace = false;           // the times of its ops are kept for TakeTrace; not together with `alone`
  /// Set by a master that would end the step by CleanupStep: the task forgets it by itself, and tells that here before
  /// `done`, if the part has ended well and left no value for another. Not together with `trace`. May be null.
  std::shared_ptr<std::atomic<bool>> forgotten = nullptr;
  /// Of a part in another task than the master's, where the master's has a part too: the way between the two. A worker
  /// whose transport can sets `send` before RunStep returns. May be null.
  std::shared_ptr<StepLink> link = nullptr;
  std::vector<std::shared_ptr<const StepLink>> links = {};  // of a part in this process: its ways to other tasks
  Clock::time_point deadline = Clock::time_point::max();
};
using StepDone = runtime::OneShot<std::vector<Tensor>>;

/// A value that crosses between tasks.
struct TransferRequest {
  uint64_t session = 0, step = 0;
  std::string key;
};
using SendDone = std::function<void(const Status&)>;

/// A task of a cluster, in this process or behind a transport. Errors: Aborted for a session, part or step of another
/// incarnation, or a request that ran before; Unavailable if the task cannot be reached; FailedPrecondition while it
/// drains. Thread-safe. Calls with a deadline return by it.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  virtual ~Worker() = default;
  virtual const TaskName& task() const = 0;
  /// The devices of this process for a worker in it; null for others.
  virtual const device::DeviceSet* own_devices() const { return nullptr; }
  /// False if the task cannot reach the tasks that send to it: they call SendTensor.
  virtual bool pulls() const { return true; }
  /// For a thread that waits for this worker; null: nothing helps. Valid as long as the worker.
  virtual const runtime::WaitHelp* help() const { return nullptr; }
  /// True if a part has taken so little time that another thread is not worth it: `StepRequest::on_this_thread`.
  virtual bool IsShort(uint64_t /*session*/, uint64_t /*part*/) const { return false; }

  virtual Result<WorkerStatus> GetStatus(Clock::time_point deadline) = 0;
  /// The kernels for its devices, for a master whose own plugins may lack them.
  virtual Result<std::vector<kernel::KernelDescription>> GetKernels(Clock::time_point deadline);
  virtual Status CreateSession(const WorkerSessionSpec& spec, Clock::time_point deadline) = 0;
  /// Cancels its steps and drops its parts; without isolation, variables stay.
  virtual Status DeleteSession(uint64_t session) = 0;
  /// Binds a session of a task in another process to this one: it ends there when the result goes, or the connection
  /// ends. `ended` is then called once, on any thread.
  virtual std::shared_ptr<const void> HoldSession(uint64_t, std::function<void(const Status&)>) { return nullptr; }
  /// `graph`: a serialized GraphDef of a part (graph::Part).
  virtual Result<PartHandle> RegisterPart(uint64_t session, const std::string& graph, Clock::time_point deadline) = 0;
  virtual Status DeregisterPart(uint64_t session, uint64_t part) = 0;

  /// Runs a part. `done` gets its fetches, in order, on any thread.
  virtual void RunStep(StepRequest request, StepDone done) = 0;
  /// The times of the ops of a part that has ended, also with an error, on the task's clock; none if nothing ran.
  /// Before CleanupStep. Unimplemented for a task that records none.
  virtual Result<trace::StepTrace> TakeTrace(uint64_t session, uint64_t step, Clock::time_point deadline);
  /// Gets a value that a step sends in this task, also before the step has begun here.
  virtual void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) = 0;
  /// Gives the task a value that a step receives there, also before the step has begun. `done` is called once, on any
  /// thread.
  virtual void SendTensor(const TransferRequest& request, runtime::Message message, SendDone done);
  /// A value of another task that a step receives in this task of this process, also before the step has begun. Aborted
  /// for one that has ended.
  virtual Status TakeValue(const TransferRequest& request, runtime::Message message);
  /// Ends a step with `why`, also if it begins later.
  virtual Status CancelStep(uint64_t session, uint64_t step, const Status& why) = 0;
  /// Forgets a step that has ended in all tasks.
  virtual Status CleanupStep(uint64_t session, uint64_t step) = 0;
  /// The time from sending a body of these bytes until all of it has come back.
  virtual Result<std::chrono::nanoseconds> Measure(uint64_t bytes, Clock::time_point deadline);
  /// Drops the variables and other resources of containers; an empty list means the default container.
  virtual Status ResetContainers(const std::vector<std::string>& containers) = 0;
};

/// The tasks of a cluster by name. Thread-safe.
class Workers {
 public:
  void Add(std::shared_ptr<Worker> worker);
  /// NotFound lists the tasks that exist.
  Result<std::shared_ptr<Worker>> Find(const TaskName& task) const;
  /// Sorted by name.
  std::vector<std::shared_ptr<Worker>> all() const;

 private:
  mutable std::mutex mutex_;  // protects workers_
  std::map<TaskName, std::shared_ptr<Worker>> workers_;
};

/// "From /job:ps/replica:0/task:1:\n" before the text, as TensorFlow's, once.
Status FromTask(const Status& status, const TaskName& task);
/// Marks the error of a step that another task's error ended: "[_Derived_]" before the text, as TensorFlow's.
Status Derived(const Status& status);
bool IsDerived(const Status& status);

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_WORKER_H_
