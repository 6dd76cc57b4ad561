// Registers, arenas and tensors of one run of a plan at a time.
#ifndef WEIR_CORE_EXECUTE_INSTANCE_INTERNAL_H_
#define WEIR_CORE_EXECUTE_INSTANCE_INTERNAL_H_

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/execute/captures_internal.h"
#include "core/execute/links.h"
#include "core/execute/plan_runner.h"
#include "core/execute/run_stack_internal.h"
#include "core/execute/streams.h"
#include "core/kernel/host.h"
#include "core/kernel/launch.h"
#include "core/tensor/buffer.h"

namespace weir::execute {

class Dataflow;
struct AbandonedRun;

/// One run at a time, in which tasks may run on several threads. Made once, run many times.
class PlanRunner::Instance {
 public:
  static Result<std::unique_ptr<Instance>> Make(const plan::ExecutionPlan& plan);
  ~Instance();

  /// Runs the plan. Tensors made on the way are dropped at the end, also after an error.
  Status Run(PlanRunner::Program& program, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
             const StepArgs& step);
  /// Something of the last run goes on. The instance runs no more: it is given to AbandonedRun::Keep.
  bool abandoned() const { return abandoned_; }

 private:
  using Instruction = plan::Instruction;

  /// What one thread needs to run instructions of a step.
  struct Worker {
    Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    PlanRunner::Program* program = nullptr;
    std::vector<Tensor>* fetches = nullptr;
    StepArgs step;
    Dataflow* flow = nullptr;         // where linked transfers meet
    const uint32_t* links = nullptr;  // by transfer: its link; null for a plan that runs alone
    kernel::ErrorRecord error;
    weir_env env{};
  };
  friend class Dataflow;
  friend class PartsRunner;
  friend struct AbandonedRun;
  friend class VariableLocks;

  explicit Instance(const plan::ExecutionPlan& plan);
  Status LayOut();
  // The two ends of a run. Open may fail; Close must follow in any case. `unfinished`: ops of the run go on.
  Status Open(std::span<const Tensor> feeds, std::vector<Tensor>* fetches, const StepArgs& step);
  Status Close(Status status, std::span<const Tensor> feeds, std::vector<Tensor>* fetches, bool unfinished);
  /// "\n  2560 bytes  y (Square) float [2,3]" for each of the 20 results that take most by `bytes_of`; 0 leaves one
  /// out.
  std::string LargestValues(const std::function<uint64_t(plan::StorageId)>& bytes_of) const;
  /// What a run would need of one memory, and what it had when it ended.
  std::string WantedMemory(plan::SpaceId space) const;
  std::string HeldMemory() const;
  Status Begin(std::span<const Tensor> feeds);
  /// Ends the streams' part of a run and says whose work failed if that is known only now.
  Status EndStreams(Status status);
  /// An error of a stream, at the instruction that had enqueued the work.
  Status Blame(const Status& status, uint32_t cause, std::string_view met) const;
  /// Waits for what is fetched from streams: `status`, or else the first failure, at the fetch that it was met at.
  Status Arrived(Status status);
  /// After all has run, as in TensorFlow: what is fetched from a branch that was not taken keeps no op from running.
  Status CheckFetches() const;
  /// Instructions [begin, end).
  Status Tape(Worker& worker, uint32_t begin, uint32_t end);
  enum class Progress { kNext, kRunning };
  /// A deadline's error of the tape with the node that was running at `at`, or was next, and those that waited.
  Status Late(const Worker& worker, const Status& status, const Instruction& at, Progress progress) const;
  /// From `*position` up to `until`, or to where the step has to be asked after sooner; says where that was.
  Status Stretch(Worker& worker, const Instruction** position, const Instruction* until);
  /// Runs one instruction by itself on its stream, and traces how long its work took.
  Status Apart(Worker& worker, const Instruction** position);
  /// A line for each input of an instruction that is about to run; empty for those that compute nothing.
  std::string InputNumbers(const Instruction& instruction);
  /// InvalidArgument when the instruction, which has just run, gave a NaN or an infinity.
  Status CheckNumbers(const Instruction& instruction, const std::string& inputs);
  Result<Tensor> HostValue(const Instruction& instruction, uint32_t operand);
  Status Special(Worker& worker, const Instruction& instruction);
  Status LockedKernel(Worker& worker, const Instruction& instruction);
  /// Errors of calls on streams go into the record of `worker_`, on whatever thread they are made.
  Status StreamKernel(const Instruction& instruction);
  /// The stretch that may be recorded and begins here; null if none does, or each kernel is to be seen.
  Captures::Stretch* RecordedAt(const Worker& worker, const Instruction& instruction) {
    if (instruction.opcode != plan::Opcode::kStreamKernel || worker.flow != nullptr || trace_ != nullptr ||
        worker.step.check_numerics) {
      return nullptr;
    }
    return captures_.At(static_cast<uint32_t>(&instruction - plan_.instructions.data()));
  }
  /// Runs the kernels of a stretch in the way that is best now.
  Status RunStretch(Captures::Stretch& stretch);
  Status StreamKernels(uint32_t begin, uint32_t end);
  Status Call(Worker& worker, const Instruction& instruction);
  /// The same in two parts, for a call that may complete later: `later.done` is run in any case.
  void StartCall(Worker& worker, const Instruction& instruction, kernel::Later& later);
  Status FinishCall(const Instruction& instruction, Result<std::vector<Tensor>> outputs);
  Result<std::vector<Tensor>> InputsOf(const Instruction& instruction);
  /// Lets go of the values that nobody uses behind a call, so that its kernel may work in place.
  void ReleaseBehind(const Instruction& call);
  Status ReadVariable(const Instruction& instruction);
  Status Make(const Instruction& instruction);
  Status Assign(const Instruction& instruction);
  /// Of contents that are read into memory which becomes the variable's, or, where they are large and `in_place` allows
  /// it, into the memory that it has. The variable stays as it was if they are damaged; if large ones change between
  /// check and reading, it loses its value.
  Status AssignDeferred(const plan::VariableUse& use, const Tensor& given, bool in_place);
  /// The variable takes over the memory of a value that lies in memory which was made; false where others hold it.
  bool TakeOver(const plan::Value& from, const Tensor& given, Tensor& value);
  Status QueryVariable(const Instruction& instruction);
  Status Copy(const Instruction& instruction);
  Status Move(const Instruction& instruction);
  void MoveBytes(const Instruction& instruction);
  /// A kernel that runs in tiles, on as many threads as the step allows for one op.
  Status Tiles(const Worker& worker, const Instruction& instruction);
  void Swap(const Instruction& instruction);
  // Between parts of a step (instance_transfer.cc).
  Status Send(Worker& worker, const Instruction& instruction);
  /// Of a kSend: the value, or that it is dead.
  Status Put(const Instruction& instruction, runtime::Message* message);
  /// True if the receiver may share the memory. It is a variable's then, and a writer of the variable copies it first
  /// while others hold it (Unshare).
  bool IsSnapshot(const plan::Value& value) const;
  /// Of a kSend whose transfer is not linked.
  Status SendOut(const Worker& worker, const Instruction& instruction);
  /// Of a kRecv: what came under `key`; takes the value.
  Status Receive(const Instruction& instruction, const std::string& key, runtime::Message& message);
  /// Of a kRecv whose link lends.
  void Borrow(const Instruction& instruction, const Loan& loan);
  /// The step's rendezvous and the key under which an instruction meets its other end; `first`: the operand that is the
  /// number of the outermost loop's iteration.
  Result<runtime::Rendezvous*> Meet(const Worker& worker, const Instruction& instruction, uint32_t first,
                                    std::string* key) const;
  /// The same for linked transfers.
  Occurrence When(const Instruction& instruction, uint32_t first) const;
  void Count(const Instruction& instruction);
  void Merge(const Instruction& instruction);
  Status Push(const Instruction& instruction);
  Status Pop(const Instruction& instruction);
  Status Select(const Instruction& instruction);
  /// The place of `to` refers to what `from` refers to now.
  void Refer(const plan::Storage& to, const plan::Storage& from);
  /// A handle to the variable of a place.
  Status MakeHandle(const Instruction& instruction);
  /// Makes a place refer to what a handle refers to.
  Status Resolve(const Instruction& instruction);
  Status MakeTemporary(const Instruction& instruction);
  void SetGuard(const Instruction& instruction);
  /// Of a loop that is cut: whether what leads into it said that it does not run at all, and whether it runs once more.
  bool Skipped(const plan::Task& loop) const;
  bool Repeats(const plan::Task& loop) const;
  Status Fetch(const Instruction& instruction, Tensor* to);
  /// Of a variable, or its handle.
  Status FetchVariable(const Instruction& instruction, const plan::Storage& storage, Tensor* to);
  /// A host tensor that shares nothing.
  Status FetchCopy(const Instruction& instruction, plan::SpaceId space, Tensor* to);
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
  void Hold(plan::StorageId storage, Tensor&& tensor);
  /// Points the slots of a storage at the memory of `from`, which is none of them.
  void Point(plan::StorageId storage, const weir_reg& from);
  /// Lets go of what a storage holds. A snapshot goes under its variable's lock, so that whoever then finds the memory
  /// unshared also sees that its readers are done.
  void Drop(plan::StorageId storage);
  Status HoldOutput(const plan::Value& value, Tensor tensor);
  /// The step may write to the tensor's memory while the tensor lives: an arena, or what a loop gives back.
  bool MayBeWritten(const Tensor& tensor) const;
  static constexpr plan::VariableId kFound{};
  /// What a place refers to; any other variable is itself.
  const plan::VariableUse& VariableAt(plan::VariableId variable) const;
  const plan::VariableUse& VariableAt(const plan::Storage& storage) const { return VariableAt(storage.variable); }
  /// TensorFlow's texts, which for resources are those of all ops but the one that reads them.
  Status CheckInitialized(const plan::VariableUse& use) const;
  /// Around an instruction that works on variables, whose locks the caller has: those it writes get memory that nobody
  /// else holds, and streams wait for each other.
  Status BeforeAccess(const Instruction& instruction);
  Status AfterAccess(const Instruction& instruction);
  bool Writes(const Instruction& instruction, const plan::VariableUse& use) const;
  /// Gives the variable memory that nobody else holds. The caller has its exclusive lock.
  Status Unshare(const plan::VariableUse& use, plan::SpaceId space);
  device::Device* DeviceOf(plan::SpaceId space) const;
  Allocator& AllocatorOf(plan::SpaceId space) const;
  /// Of values that the caller keeps: they count where the user has limited the memory.
  Allocator& FreshAllocator() const;

  const plan::ExecutionPlan& plan_;
  std::vector<weir_reg> registers_;  // by slot
  IndexedVector<plan::SpaceId, std::shared_ptr<Buffer>> arenas_;
  IndexedVector<plan::MadeId, std::shared_ptr<Buffer>> made_;  // from kMake until a variable has it
  IndexedVector<plan::StorageId, uint64_t> offsets_;           // in its arena, after the exchanges so far
  IndexedVector<plan::StorageId, Tensor> tensors_;             // what feeds, calls and fetches hold during a run
  std::span<const Tensor> feeds_;           // of this run, borrowed; copies of misaligned ones are in tensors_
  std::vector<plan::StorageId> transient_;  // storages to empty at the end of a run
  IndexedVector<plan::StorageId, plan::ValueId> chosen_;  // that a Merge chose; empty without Merge
  /// The variable itself; of places what they refer to now, or kFound.
  IndexedVector<plan::VariableId, plan::VariableId> refers_;
  /// What a place refers to that no variable of the plan is.
  IndexedVector<plan::VariableId, plan::VariableUse> found_;
  runtime::ResourceScope step_resources_;  // what ends with the run
  IndexedVector<plan::GuardId, uint8_t> guards_;
  std::vector<RunStack> stacks_;
  bool lean_ =
      false;  // no streams, tasks, calls, guarded fetches, places or memory that is made: little to do at the end
  bool guarded_fetches_ = false;                                        // a fetch may lie on a branch that is not taken
  std::vector<std::pair<device::Event, const Instruction*>> arriving_;  // fetches under way, in their streams' order
  RunStreams streams_;
  Captures captures_;
  std::unique_ptr<Worker> worker_;      // of the caller's thread
  std::unique_ptr<Dataflow> dataflow_;  // of a T2 plan
  bool abandoned_ = false;
  TapeTrace* trace_ = nullptr;     // of the run; null if it is not traced
  std::vector<Tensor> in_flight_;  // of an abandoned run: feeds and fetches, which its copies may still read and write
};

/// Takes an instruction's variable locks in order, gives them back in reverse.
class VariableLocks {
 public:
  VariableLocks(const PlanRunner::Instance& instance, const plan::Instruction& instruction);
  ~VariableLocks();
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

 private:
  const plan::ExecutionPlan& plan_;
  std::span<const plan::Lock> locks_;
  std::vector<std::pair<runtime::Variable*, bool>> own_;  // where places are among them: what they refer to, exclusive
};

}  // namespace weir::execute

#endif  // WEIR_CORE_EXECUTE_INSTANCE_INTERNAL_H_
