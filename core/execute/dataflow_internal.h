// Tier T2: tasks run as soon as what they need is there, on the caller's thread and the compute pool. An op that waits
// for something other than the CPU holds none of these threads.
#ifndef WEIR_CORE_EXECUTE_DATAFLOW_INTERNAL_H_
#define WEIR_CORE_EXECUTE_DATAFLOW_INTERNAL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/execute/instance_internal.h"
#include "core/execute/links.h"
#include "core/runtime/cancellation.h"
#include "core/runtime/rendezvous.h"

namespace weir::execute {

/// The ready tasks of one worker. It takes the first one on the tape, so that what is near there is near in time;
/// others take one from the far end. Thread-safe.
class ReadyQueue {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Room for `tasks` at a time.
  void Reserve(size_t tasks);
  void Clear();
  void Push(uint32_t task);
  /// kNone when there is none.
  uint32_t PopFirst();
  uint32_t TakeLast();
  /// What PopFirst would give: a hint where others take tasks meanwhile.
  uint32_t first() const { return first_.load(std::memory_order_relaxed); }
  /// Sees whatever was pushed before.
  bool Empty();

 private:
  class Lock;
  std::atomic_flag busy_;  // protects tasks_, for a few instructions at a time
  std::atomic<uint32_t> first_{kNone};
  std::vector<uint32_t> tasks_;  // a heap, the first one on top
};

/// One part of a step, for one run.
struct FlowArgs {
  PlanRunner::Program* program = nullptr;
  std::vector<Tensor>* fetches = nullptr;
  TapeTrace* trace = nullptr;                   // null = no trace
  runtime::ResourceScope* resources = nullptr;  // those that end with the run
};

/// The runs of a T2 plan, or of the plans of all parts of a step, one at a time.
///
/// The caller's thread and the helpers that it hires from the compute pool are workers. Each follows a chain of tasks
/// by itself, puts further tasks that become ready into its own queue, and takes from other queues when that is empty,
/// whatever part they belong to. What the counters of tasks say is all the order there is. Work that is elsewhere (an
/// op that completes later, a task on the blocking pool) comes back by mail, which any worker takes.
///
/// A value that one part sends to another is a predecessor of the task that receives it. In a loop, whose tasks run
/// once per iteration, a receiving task looks for its message when it runs and is suspended until that is sent.
///
/// Tasks that all run once and never wait have a serial order, which is made once. A run without helpers follows it and
/// counts no predecessors.
class Dataflow {
 public:
  explicit Dataflow(PlanRunner::Instance& instance);
  /// `links` are those of the instances' plans.
  Dataflow(const std::vector<PlanRunner::Instance*>& instances, const Links& links);
  ~Dataflow();
  Dataflow(const Dataflow&) = delete;
  Dataflow& operator=(const Dataflow&) = delete;

  /// `args`: by instance.
  Status Run(std::span<const FlowArgs> args, const StepArgs& step);
  /// Ops of the last run have not completed.
  bool abandoned() const { return abandoned_; }
  /// The instance whose error the last run gave.
  size_t failed() const { return failed_part_; }
  /// Keeps an abandoned run until they have.
  static void Keep(Dataflow& flow, std::unique_ptr<AbandonedRun> run);
  // Of a linked kSend, on the thread that runs it as `sender`.
  /// Where its loan goes; null if it sends a message.
  Loan* LoanOf(uint32_t link) {
    Meeting& meeting = meetings_[link];
    return meeting.lends && !step_.check_numerics ? &meeting.loan : nullptr;
  }
  /// Where its message goes; null in loops.
  runtime::Message* Outgoing(uint32_t link) {
    return meetings_[link].receiver == kNone ? nullptr : &meetings_[link].message;
  }
  /// It is there.
  void Sent(PlanRunner::Instance::Worker& sender, uint32_t link);
  /// In loops.
  void Sent(PlanRunner::Instance::Worker& sender, uint32_t link, const Occurrence& when, runtime::Message message);

 private:
  using Instance = PlanRunner::Instance;
  static constexpr uint32_t kNone = ReadyQueue::kNone;
  enum class Phase : uint8_t { kWaiting, kRunning, kPending, kAwaiting, kDone };
  struct Worker;
  /// A thread in a part.
  struct Seat : Instance::Worker {
    Dataflow::Worker* owner = nullptr;  // null for a thread of the blocking pool
  };
  struct alignas(64) Worker {
    ReadyQueue ready;
    std::unique_ptr<Seat[]> seats;  // by part
    size_t ended = 0;               // tasks of the step that left_ still counts
    uint32_t sent = kNone;          // a task that became ready by a message and is in no queue yet
  };
  struct Part {
    Instance* instance;
    const plan::ExecutionPlan* plan;
    uint32_t first_task = 0;
    const uint32_t* links = nullptr;  // by transfer
  };
  /// Where the two ends of a link meet.
  struct Meeting {
    uint32_t receiver = kNone;  // the task that has the message as a predecessor; kNone in loops
    bool lends = false;
    Loan loan;  // for `receiver`, as the next
    runtime::Message message;
    // In loops.
    std::atomic_flag busy;  // protects all below, for a few instructions at a time
    std::vector<std::pair<Occurrence, runtime::Message>> sent;
    uint32_t suspended = kNone;  // the task that waits for `awaited`
    Occurrence awaited;
  };
  class MeetingLock;
  struct Away;
  struct Job;

  /// Appends the tasks of a part. A plan without tasks becomes a chain of them, cut behind what it sends.
  void Join(const Part& part);
  void JoinTape(const Part& part);
  void FindReceivers(const Links& links);
  void FindRoots();
  void FindStraights();
  /// Of the tasks of the step; leaves serial_order_ empty if there is none.
  void FindSerialOrder();

  void Reset(std::span<const FlowArgs> args, const StepArgs& step);
  /// Helpers that the run may have besides the caller.
  int MostHelpers() const;
  Status End();
  /// Until all that is elsewhere is back, or the grace of a step that was ended has passed.
  void AwaitAll(std::unique_lock<std::mutex>& lock);
  /// What to say of the ops that have not completed; their devices are lost.
  std::string Abandon();
  static void Delete(std::unique_ptr<AbandonedRun> run);

  /// In serial_order_, until one fails or the step ends.
  void RunSerially(Worker& worker);
  /// Runs tasks until there is none to be had.
  void Work(Worker& worker);
  /// Runs a task and what becomes ready by it, earlier tasks of its queue first.
  void Follow(uint32_t task, Worker& worker);
  uint32_t Take(Worker& worker);
  uint32_t TakeMail(Worker& worker);
  uint32_t Steal(const Worker& worker);
  /// Of a task that does not suspend: false if it failed, or the step was ended.
  bool RunWhole(uint32_t task, Worker& worker);
  /// Each of these gives the task to run next on this thread, or kNone.
  uint32_t RunTask(uint32_t task, Worker& worker);
  /// Of a task that suspends: from instruction `at` on.
  uint32_t Continue(uint32_t task, uint32_t at, Worker& worker);
  /// Of a call that may complete later, or a kRecv.
  void Start(uint32_t task, uint32_t at, Worker& worker);
  /// Of a kRecv; its answer owns `away`.
  void StartReceive(Away& away, const plan::Instruction& instruction, Seat& seat);
  uint32_t Return(std::unique_ptr<Away> away, Worker& worker);
  uint32_t Ended(uint32_t task, Worker& worker);
  uint32_t Complete(uint32_t task, Worker& worker);
  uint32_t BeginIteration(uint32_t loop, Worker& worker);
  /// `next` is queued where `task` takes its place.
  uint32_t MakeReady(uint32_t task, uint32_t next, Worker& worker);
  /// A task that `sender` made ready by a message.
  void Wake(uint32_t task, Seat& sender);
  /// `next`, or the task that became ready by a message meanwhile; queues the other.
  uint32_t WithSent(uint32_t next, Worker& worker);
  /// Of a linked kRecv. True if its message was there and is received; otherwise the task waits for it, or has failed.
  bool Receive(uint32_t task, uint32_t at, uint32_t link, Seat& seat);
  /// Gives a task to a thread for blocking.
  void Block(uint32_t task);
  /// From any thread; the flow may be gone when it returns.
  void Post(std::unique_ptr<Away> away);
  /// Keeps the first error and ends the other ops.
  void Fail(const Status& status, size_t part);

  Status Execute(const Part& part, uint32_t begin, uint32_t end, Seat& seat);
  static uint32_t EndOf(const plan::Task& task) { return task.inner > 0 ? task.body : task.end; }
  size_t PartOf(uint32_t task) const { return part_of_.empty() ? 0 : part_of_[task]; }
  const plan::Instruction& InstructionAt(uint32_t task, uint32_t at) const {
    return parts_[PartOf(task)].plan->instructions[at];
  }
  /// The step has its result.
  bool over() const {
    return left_.load(std::memory_order_acquire) == 0 || failed_.load(std::memory_order_acquire) || end_->cancelled();
  }
  /// A hint, and without one.
  bool HasWork();
  bool AnyReady();
  /// Spins for a while: whether there is something to do.
  bool Spin();
  /// True if all that the step has elsewhere are values that other parts send.
  bool AwaitsMessages();
  /// Of the caller, which has nothing to do: whether there is something now. False if it is not worth spinning for.
  bool Await();
  void Sleep();
  /// Has somebody look at a queue.
  void Invite();
  /// Under the lock.
  void Hire();
  void Help(Worker& worker);
  /// "\nrunning: 'a' on CPU:0\nwaiting: 'b' on CPU:0" at this moment.
  std::string Waiting() const;
  std::string List(const char* what, const std::vector<uint32_t>& tasks) const;
  /// "\nnot received: 'key'" for linked transfers that tasks wait for.
  std::string NotReceived() const;
  std::vector<uint32_t> In(Phase phase) const;

  std::vector<Part> parts_;
  // The tasks of all parts, numbered through: the plan's own if there is one part, else those below.
  std::span<const plan::Task> tasks_;
  std::span<const plan::TaskId> successors_;
  std::vector<plan::Task> joined_;
  std::vector<plan::TaskId> joined_successors_;
  std::vector<uint32_t> part_of_;         // by task; empty for one part
  std::unique_ptr<uint32_t[]> straight_;  // by task that suspends: from here on it does not, nor jumps back
  std::unique_ptr<uint32_t[]> received_;  // by task: the link of the kRecv that it begins with; may be null
  std::unique_ptr<Meeting[]> meetings_;   // by link
  size_t links_ = 0;
  std::vector<uint32_t> roots_;                   // tasks of the step that wait for none
  std::vector<std::vector<uint32_t>> bodies_;     // by loop that is cut: the tasks of an iteration
  std::vector<uint32_t> serial_order_;            // of all tasks; empty if one waits or is in a loop that is cut
  bool serial_order_known_ = false;               // it was looked for
  size_t outer_ = 0;                              // tasks of the step itself
  std::vector<std::unique_ptr<Worker>> workers_;  // the caller first

  // Of the run.
  StepArgs step_;
  bool plain_ = true;                         // nobody asks about single instructions
  bool serial_ = false;                       // by serial_order_; pending_, inner_ and resume_ are not used
  std::optional<runtime::Cancellation> end_;  // of the step, or by an op that failed
  runtime::CancelCallback wake_;
  std::unique_ptr<std::atomic<int32_t>[]> pending_;  // by task: how many it waits for
  std::unique_ptr<std::atomic<uint32_t>[]> inner_;   // by loop that is cut: tasks of this iteration that have not ended
  std::unique_ptr<std::atomic<Phase>[]> phase_;      // by task
  std::unique_ptr<std::atomic<uint32_t>[]> resume_;  // by task: the kRecv where it goes on, or kNone; null for one part
  std::atomic<size_t> left_{0};                      // tasks of the step itself that have not ended
  std::atomic<bool> failed_{false};
  std::atomic<bool> sleeping_{false};  // the caller
  std::atomic<bool> spinning_{false};  // the caller, who looks at the mail before it sleeps
  std::atomic<bool> mailed_{false};
  std::atomic<int> helpers_{0};  // hired and not gone; changed under the lock
  std::atomic<int> most_{0};     // of them; changed under the lock
  bool abandoned_ = false;

  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Away>> mail_;
  std::vector<Job*> hired_;
  std::vector<Worker*> free_;  // workers_ that no helper has
  size_t elsewhere_ = 0;       // ops that complete later
  size_t receives_ = 0;        // of these
  size_t blocking_ = 0;        // tasks on the blocking pool
  Status error_;
  size_t failed_part_ = 0;
  std::unique_ptr<AbandonedRun> kept_;
};

/// "'a' on CPU:0" for a node of the plan; without a device if the node was made for it.
std::string WithDevice(const plan::ExecutionPlan& plan, std::string_view name);

/// Work of the step that none of its workers does: an op that completes later, or a task on the blocking pool.
struct Dataflow::Away {
  Dataflow* flow = nullptr;
  uint32_t task = 0;
  uint32_t at = 0;  // the instruction that was started
  bool blocking = false;
  Status status;  // of a blocking task; why nothing was received
  std::chrono::steady_clock::time_point start;
  std::string inputs;  // what they were like, when numbers are checked
  kernel::Later later;
  Result<std::vector<Tensor>> result = std::vector<Tensor>();
  // Of a kRecv.
  std::string key;
  runtime::Message message;
  runtime::CancelCallback cancelled;
};

/// A run that returned before all of its work had ended, with what that work may still use.
struct AbandonedRun {
  std::shared_ptr<const void> owner;
  std::vector<std::shared_ptr<PlanRunner::Program>> programs;
  std::vector<std::unique_ptr<PlanRunner::Instance>> instances;
  std::unique_ptr<Dataflow> flow;  // of several instances

  /// Until the last op of the run has completed; for ever where a device may never end.
  static void Keep(std::unique_ptr<AbandonedRun> run);
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_DATAFLOW_INTERNAL_H_
