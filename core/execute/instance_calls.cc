// Calls of nodes that are not bound ahead of time: at once, or in two parts where they may complete later.
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/execute/instance_internal.h"
#include "core/tensor/deferred.h"

namespace weir::execute {

using plan::Storage;
using plan::Value;

Result<std::vector<Tensor>> PlanRunner::Instance::InputsOf(const Instruction& instruction) {
  for (const plan::Lock& lock : plan_.LocksOf(instruction)) {
    if (lock.exclusive) WEIR_TRY(CheckInitialized(VariableAt(lock.variable)));
  }
  std::vector<Tensor> inputs;
  inputs.reserve(instruction.inputs);
  const kernel::BuiltinKernel* const builtin = plan_.calls[instruction.detail].builtin;
  const bool kept = builtin != nullptr && builtin->inputs == kernel::InputUse::kKept;
  WEIR_TRY(BeforeAccess(instruction));
  for (uint32_t i = 0; i < instruction.inputs; ++i) {
    WEIR_ASSIGN(Tensor input, TensorOf(ValueOf(instruction, i)));
    if (kept && (MayBeWritten(input) || (input.buffer() && input.buffer()->lent()))) {
      WEIR_ASSIGN(input, streams_.Duplicate(StorageOf(Chosen(ValueOf(instruction, i))).space, input));
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Status PlanRunner::Instance::Call(Worker& worker, const Instruction& instruction) {
  const VariableLocks locks(*this, instruction);
  WEIR_ASSIGN(std::vector<Tensor> inputs, InputsOf(instruction));
  ReleaseBehind(instruction);
  Result<std::vector<Tensor>> outputs = worker.program->calls[instruction.detail].Run(std::move(inputs), worker.step);
  WEIR_TRY(outputs.status());
  WEIR_TRY(AfterAccess(instruction));
  return FinishCall(instruction, std::move(outputs));
}

void PlanRunner::Instance::ReleaseBehind(const Instruction& call) {
  if (streams_.any()) return;  // work that is under way there may still read them
  const Instruction* const end = plan_.instructions.data() + plan_.instructions.size();
  for (const Instruction* at = &call + 1; at != end && at->opcode == plan::Opcode::kRelease; ++at) {
    // The lock of a variable that a value is a snapshot of may be held by the call.
    if (const plan::StorageId storage(at->detail); !plan_.storages[storage].variable.valid()) Drop(storage);
  }
}

void PlanRunner::Instance::StartCall(Worker& worker, const Instruction& instruction, kernel::Later& later) {
  auto started = [&]() -> Result<std::optional<std::vector<Tensor>>> {
    std::vector<Tensor> inputs;
    {
      // The call holds its inputs from here on, so a write to a variable goes to new memory.
      const VariableLocks locks(*this, instruction);
      WEIR_ASSIGN(inputs, InputsOf(instruction));
      WEIR_TRY(AfterAccess(instruction));
    }
    return worker.program->calls[instruction.detail].Start(std::move(inputs), worker.step, later);
  }();
  // One that completes later may have done so, and `later` may be gone.
  if (!started.ok()) later.done(started.status());
  if (started.ok() && *started) later.done(std::move(**started));
}

Status PlanRunner::Instance::FinishCall(const Instruction& instruction, Result<std::vector<Tensor>> outputs) {
  WEIR_TRY(outputs.status());
  if (outputs->size() != instruction.outputs) {
    return Internal("a call made {} outputs, wanted {}", outputs->size(), instruction.outputs);
  }
  for (uint32_t i = 0; i < instruction.outputs; ++i) {
    const Value& value = ValueOf(instruction, instruction.inputs + i);
    if (StorageOf(value).home == Storage::Home::kVariable) continue;  // updated in place
    Tensor& output = (*outputs)[i];
    if (DeferredIn(output) != nullptr && !StorageOf(value).only_assigned) {
      Result<Tensor> read = ReadNow(output, AllocatorOf(StorageOf(value).space));
      if (!read.ok()) return At(instruction, read.status());
      output = std::move(*read);
    }
    WEIR_TRY(HoldOutput(value, std::move(output)));
  }
  return Status();
}

}  // namespace weir::execute
