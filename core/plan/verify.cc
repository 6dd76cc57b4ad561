// Verifies the tables of a plan against each other.
#include <fmt/format.h>

#include <cstdint>

#include "core/base/errors.h"
#include "core/plan/draft_internal.h"
#include "core/plan/lifetimes_internal.h"

namespace weir::plan {
namespace {

class Verifier {
 public:
  explicit Verifier(const ExecutionPlan& plan) : plan_(plan) {}

  Status Run() const {
    for (const ValueId value : plan_.values.indices()) {
      if (!plan_.storages.Has(plan_.values[value].storage)) return Internal("value %{} has no storage", value.number());
    }
    for (const StorageId storage : plan_.storages.indices()) WEIR_TRY(CheckStorage(storage));
    for (const Jump& jump : plan_.jumps) {
      if (jump.target > plan_.instructions.size()) return Internal("a jump to {} leaves the tape", jump.target);
      WEIR_TRY(CheckGuard(jump.guard, "a jump"));
    }
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      if (const Status sound = CheckInstruction(i); !sound.ok()) {
        return sound.Prepend(fmt::format("instruction {}: ", i));
      }
    }
    for (const GuardId guard : plan_.fetch_guards) WEIR_TRY(CheckGuard(guard, "a fetch"));
    for (const TaskId task : plan_.tasks.indices()) {
      if (const Status sound = CheckTask(task); !sound.ok()) {
        return sound.Prepend(fmt::format("task {}: ", task.number()));
      }
    }
    return Status();
  }

 private:
  static Status Check(bool holds, const char* what) { return holds ? Status() : Internal("{}", what); }

  Status CheckGuard(GuardId guard, const char* of) const {
    if (guard.valid() && guard.position() < plan_.guard_count) return Status();
    return Internal("{} has guard {} of {}", of, guard.number(), plan_.guard_count);
  }

  Status CheckStorage(StorageId id) const {
    const Storage& storage = plan_.storages[id];
    bool sound = storage.space == kHostSpace || plan_.devices.Has(OwnerOf(storage.space));
    if (storage.home == Storage::Home::kVariable) sound = sound && plan_.variables.Has(storage.variable);
    if (storage.home == Storage::Home::kFeed) sound = sound && plan_.feed_storages.Has(storage.feed);
    if (storage.home == Storage::Home::kMade) sound = sound && plan_.made.Has(storage.made);
    for (const StorageId source : storage.sources) sound = sound && plan_.storages.Has(source);
    return sound ? Status() : Internal("storage {} refers to no entry of its table", id.number());
  }

  /// The size of the table that `detail` indexes; SIZE_MAX for opcodes without one.
  size_t TableOf(Opcode opcode) const {
    switch (opcode) {
      case Opcode::kKernel:
      case Opcode::kStreamKernel:
      case Opcode::kTiledKernel:
      case Opcode::kLockedKernel:
        return plan_.kernels.size();
      case Opcode::kCall:
        return plan_.calls.size();
      case Opcode::kMake:
        return plan_.made.size();
      case Opcode::kFetch:
        return plan_.fetch_count;
      case Opcode::kRelease:
        return plan_.storages.size();
      case Opcode::kMerge:
        return plan_.merges.size();
      case Opcode::kGuard:
        return plan_.guard_steps.size();
      case Opcode::kSkip:
      case Opcode::kRepeat:
        return plan_.jumps.size();
      case Opcode::kSend:
      case Opcode::kRecv:
        return plan_.transfers.size();
      case Opcode::kStack:
      case Opcode::kPush:
      case Opcode::kPop:
        return plan_.stacks.size();
      case Opcode::kRecord:
      case Opcode::kWait:
        return plan_.event_count;
      default:
        return SIZE_MAX;
    }
  }

  Status CheckInstruction(size_t i) const {
    const Instruction& instruction = plan_.instructions[i];
    const size_t table = TableOf(instruction.opcode);
    WEIR_TRY(Check(instruction.detail < table, "its detail is beyond its table"));
    WEIR_TRY(Check(plan_.nodes.Has(instruction.node), "it belongs to no node"));
    const size_t operands = size_t{instruction.inputs} + instruction.outputs;
    WEIR_TRY(Check(instruction.first_slot + operands <= plan_.slots.size(), "its operands are beyond the slots"));
    for (size_t s = instruction.first_slot; s < instruction.first_slot + operands; ++s) {
      WEIR_TRY(Check(plan_.values.Has(plan_.slots[s].value), "an operand is no value"));
    }
    WEIR_TRY(
        Check(!instruction.locks.valid() || plan_.lock_lists.Has(instruction.locks), "its locks are beyond the table"));
    for (const Lock& lock : plan_.LocksOf(instruction)) {
      WEIR_TRY(Check(plan_.variables.Has(lock.variable), "it locks no variable"));
    }
    WEIR_TRY(CheckPlace(instruction));
    return CheckGuards(instruction);
  }

  Status CheckPlace(const Instruction& instruction) const {
    const DeviceId device = instruction.device;
    WEIR_TRY(Check(!device.valid() || plan_.devices.Has(device), "it runs on no device"));
    const DeviceId owner = OwnerOf(instruction.memory);
    WEIR_TRY(Check(instruction.memory == kHostSpace || plan_.devices.Has(owner), "it works in no memory"));
    const bool on_stream = instruction.opcode == Opcode::kStreamKernel || instruction.opcode == Opcode::kRecord;
    const bool planned = !plan_.streams.empty();  // plan_streams has run
    if (!instruction.stream.valid()) return Check(!on_stream || !planned, "it is on no stream");
    return Check(plan_.streams.Has(instruction.stream), "its stream is beyond the table");
  }

  Status CheckGuards(const Instruction& instruction) const {
    if (instruction.opcode == Opcode::kGuard) {
      const GuardStep& step = plan_.guard_steps[instruction.detail];
      for (const GuardId guard : {step.to, step.otherwise, step.a, step.b}) WEIR_TRY(CheckGuard(guard, "it"));
      return Check(step.to != kAlways, "it sets the guard that is always set");
    }
    if (instruction.opcode == Opcode::kMerge) {
      for (const GuardId guard : plan_.merges[instruction.detail]) WEIR_TRY(CheckGuard(guard, "an input"));
    }
    if (instruction.opcode == Opcode::kSend || instruction.opcode == Opcode::kRecv) {
      return CheckGuard(plan_.transfers[instruction.detail].guard, "the transfer");
    }
    return Status();
  }

  Status CheckTask(TaskId id) const {
    const Task& task = plan_.tasks[id];
    WEIR_TRY(Check(task.begin < task.end && task.end <= plan_.instructions.size(), "it has no instructions"));
    const size_t first = task.first_successor, count = task.successor_count;
    WEIR_TRY(Check(first + count <= plan_.successors.size(), "its successors are beyond the table"));
    for (size_t s = first; s < first + count; ++s) {
      const TaskId next = plan_.successors[s];
      WEIR_TRY(Check(next > id && plan_.tasks.Has(next), "an edge does not lead along the tape"));
      WEIR_TRY(Check(plan_.tasks[next].loop == task.loop, "an edge leads to another body"));
    }
    return Check(task.loop < id, "it follows no loop");
  }

  const ExecutionPlan& plan_;
};

}  // namespace

Status Verify(const ExecutionPlan& plan) { return Verifier(plan).Run(); }

}  // namespace weir::plan
