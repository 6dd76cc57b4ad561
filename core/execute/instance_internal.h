// Registers, arenas and tensors of one run of a plan at a time.
#ifndef WEIR_CORE_EXECUTE_INSTANCE_INTERNAL_H_
#define WEIR_CORE_EXECUTE_INSTANCE_INTERNAL_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/execute/plan_runner.h"
#include "core/execute/streams.h"
#include "core/kernel/host.h"

namespace weir::execute {

/// One run at a time, in which tasks may run on several threads. Made once, run many times.
class PlanRunner::Instance {
 public:
  static Result<std::unique_ptr<Instance>> Make(const plan::ExecutionPlan& plan);

  /// Runs the tape. Tensors made on the way are dropped at the end, also after an error.
  Status Run(PlanRunner& runner, std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step);

 private:
  using Instruction = plan::Instruction;

  /// What one thread needs to run instructions of a step.
  struct Worker {
    Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    PlanRunner* runner = nullptr;
    std::vector<Tensor>* fetches = nullptr;
    StepArgs step;
    kernel::ErrorRecord error;
    weir_env env{};
  };
  friend class Dataflow;

  explicit Instance(const plan::ExecutionPlan& plan) : plan_(plan), streams_(plan) {}
  Status LayOut();
  /// "\n  2560 bytes  y (Square) float [2,3]" for each of the 20 results that take most by `bytes_of`; 0 leaves one
  /// out.
  std::string LargestValues(const std::function<uint64_t(size_t storage)>& bytes_of) const;
  /// What a run would need of one memory, and what it had when it ended.
  std::string WantedMemory(int space) const;
  std::string HeldMemory() const;
  Status Begin(std::span<const Tensor> feeds);
  /// Waits for what is fetched from streams: `status`, or else the first failure, at the fetch that it was met at.
  Status Arrived(Status status);
  /// After all has run, as in TensorFlow: what is fetched from a branch that was not taken keeps no op from running.
  Status CheckFetches() const;
  /// Instructions [begin, end).
  Status Tape(Worker& worker, uint32_t begin, uint32_t end);
  enum class Progress { kNext, kRunning };
  /// A deadline's error of the tape with the node that was running at `at`, or was next, and those that waited.
  Status Late(const Status& status, const Instruction& at, Progress progress) const;
  /// From `*position` up to `until`, or to where the step has to be asked after sooner; says where that was.
  Status Stretch(Worker& worker, const Instruction** position, const Instruction* until);
  /// A line for each input of an instruction that is about to run; empty for those that compute nothing.
  std::string InputNumbers(const Instruction& instruction);
  /// InvalidArgument when the instruction, which has just run, gave a NaN or an infinity.
  Status CheckNumbers(const Instruction& instruction, const std::string& inputs);
  Result<Tensor> HostValue(const Instruction& instruction, uint32_t operand);
  Status Special(Worker& worker, const Instruction& instruction);
  Status LockedKernel(Worker& worker, const Instruction& instruction);
  /// Errors of calls on streams go into the record of `worker_`, on whatever thread they are made.
  Status StreamKernel(const Instruction& instruction);
  Status Call(Worker& worker, const Instruction& instruction);
  Status ReadVariable(const Instruction& instruction);
  Status Make(const Instruction& instruction);
  Status Assign(const Instruction& instruction);
  /// The variable takes over the memory of a value that lies in memory which was made; false where others hold it.
  bool TakeOver(const plan::Value& from, const Tensor& given, Tensor& value);
  Status QueryVariable(const Instruction& instruction);
  Status Copy(const Instruction& instruction);
  Status Move(const Instruction& instruction);
  void MoveBytes(const Instruction& instruction);
  /// A kernel that runs in tiles, on as many threads as the step allows for one op.
  Status Tiles(const Worker& worker, const Instruction& instruction);
  void Swap(const Instruction& instruction);
  void Merge(const Instruction& instruction);
  Status Select(const Instruction& instruction);
  /// The place of `to` refers to what `from` refers to now.
  void Refer(const plan::Storage& to, const plan::Storage& from);
  void SetGuard(const Instruction& instruction);
  /// Of a loop that is cut: whether what leads into it said that it does not run at all, and whether it runs once more.
  bool Skipped(const plan::Task& loop) const;
  bool Repeats(const plan::Task& loop) const;
  Status Fetch(const Instruction& instruction, Tensor* to);
  /// Of a variable, or its handle.
  Status FetchVariable(const Instruction& instruction, const plan::Storage& storage, Tensor* to);
  /// A host tensor that shares nothing.
  Status FetchCopy(const Instruction& instruction, int space, Tensor* to);
  /// The tensor of a value that nobody writes as long as somebody else shares it; null for any other.
  const Tensor* Shareable(const plan::Value& value) const;
  Status KernelError(const Worker& worker, const Instruction& instruction, int32_t code) const;
  Status At(const Instruction& instruction, const Status& status) const;

  const plan::Value& ValueOf(const Instruction& instruction, uint32_t operand) const;
  const plan::Storage& StorageOf(const plan::Value& value) const;
  /// The value behind what a Merge chose; any other value is itself.
  const plan::Value& Chosen(const plan::Value& value) const;
  /// The value as a tensor over its memory, which lives until the run ends.
  Result<Tensor> TensorOf(const plan::Value& value) const;
  /// Makes `tensor` the content of an owned, fed or fresh storage and points its slots there.
  void Hold(int storage, Tensor tensor);
  /// Points the slots of a storage at the memory of `from`, which is none of them.
  void Point(int storage, const weir_reg& from);
  /// Lets go of what a storage holds. A snapshot goes under its variable's lock, so that whoever then finds the memory
  /// unshared also sees that its readers are done.
  void Drop(int storage);
  Status HoldOutput(const plan::Value& value, Tensor tensor);
  /// The step may write to the tensor's memory while the tensor lives: an arena, or what a loop gives back.
  bool MayBeWritten(const Tensor& tensor) const;
  /// What a place refers to; any other variable is itself.
  const plan::VariableUse& VariableAt(int variable) const;
  const plan::VariableUse& VariableAt(const plan::Storage& storage) const { return VariableAt(storage.variable); }
  /// TensorFlow's texts, which for resources are those of all ops but the one that reads them.
  Status CheckInitialized(const plan::VariableUse& use) const;
  /// Around an instruction that works on variables, whose locks the caller has: those it writes get memory that nobody
  /// else holds, and streams wait for each other.
  Status BeforeAccess(const Instruction& instruction);
  Status AfterAccess(const Instruction& instruction);
  bool Writes(const Instruction& instruction, const plan::VariableUse& use) const;
  /// Gives the variable memory that nobody else holds. The caller has its exclusive lock.
  Status Unshare(const plan::VariableUse& use, int space);
  device::Device* DeviceOf(int space) const;
  Allocator& AllocatorOf(int space) const;
  /// Of values that the caller keeps: they count where the user has limited the memory.
  Allocator& FreshAllocator() const;

  const plan::ExecutionPlan& plan_;
  std::vector<weir_reg> registers_;              // by slot
  std::vector<std::shared_ptr<Buffer>> arenas_;  // by space + 1
  std::vector<std::shared_ptr<Buffer>> made_;    // by MadeMemory: from kMake until a variable has it
  std::vector<uint64_t> offsets_;                // by storage: in its arena, after the exchanges so far
  std::vector<Tensor> tensors_;                  // by storage: what feeds, calls and fetches hold during a run
  std::span<const Tensor> feeds_;                // of this run, borrowed; copies of misaligned ones are in tensors_
  std::vector<int> transient_;                   // storages to empty at the end of a run
  std::vector<int> chosen_;                      // by storage: the value that a Merge chose; empty without Merge
  std::vector<int> refers_;                      // by variable: itself; of places what they refer to now
  std::vector<uint8_t> guards_;
  bool guarded_fetches_ = false;                                        // a fetch may lie on a branch that is not taken
  std::vector<std::pair<device::Event, const Instruction*>> arriving_;  // fetches under way, in their streams' order
  RunStreams streams_;
  std::unique_ptr<Worker> worker_;  // of the caller's thread
};

/// A run of a T2 plan.
class Dataflow {
 public:
  Dataflow(PlanRunner::Instance& instance, PlanRunner& runner, std::vector<Tensor>* fetches, const StepArgs& step);
  Status Run();

 private:
  using Instance = PlanRunner::Instance;
  void Work();
  void RunTask(uint32_t task, Instance::Worker& worker);
  void Finished(uint32_t task, const Status& status);
  // All below under the lock.
  void Launch();
  /// Makes the tasks ready that waited for this one; the last one of an iteration begins the next or ends the loop.
  void Complete(uint32_t task);
  void BeginIteration(uint32_t loop);
  void MakeReady(uint32_t task);
  /// "\nrunning: 'a'; waiting: 'b'" at this moment, under the lock.
  std::string Waiting() const;

  Instance& instance_;
  PlanRunner& runner_;
  std::vector<Tensor>* fetches_;
  StepArgs step_;
  kernel::RunControl control_;
  std::atomic<bool> failed_{false};
  std::atomic<uint32_t> events_{0};  // counts what happens, so that the caller may spin for it
  std::mutex mutex_;                 // protects all below
  std::condition_variable changed_;
  std::vector<int> pending_;     // by task: how many it waits for
  std::vector<uint32_t> inner_;  // by loop that is cut: tasks of this iteration that have not ended
  std::vector<uint32_t> ready_;  // a heap, the earliest task first
  std::vector<uint32_t> ready_to_block_;
  size_t left_ = 0;           // tasks of the step itself that have not ended
  int helpers_ = 0;           // jobs on the compute pool
  int active_ = 0;            // tasks running anywhere
  int running_ = 0;           // those of them on the caller's thread and the compute pool
  std::set<uint32_t> tasks_;  // running anywhere
  Status error_;
};

/// Takes an instruction's variable locks in order, gives them back in reverse.
class VariableLocks {
 public:
  /// `refers`: by variable of the plan, the one to lock for it.
  VariableLocks(const plan::ExecutionPlan& plan, std::span<const int> refers, const plan::Instruction& instruction);
  ~VariableLocks();
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

 private:
  const plan::ExecutionPlan& plan_;
  std::span<const plan::Lock> locks_;
  std::vector<plan::Lock> own_;  // where places are among them
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_INSTANCE_INTERNAL_H_
