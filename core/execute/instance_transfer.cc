// What parts of a step send each other.
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/execute/dataflow_internal.h"
#include "core/execute/instance_internal.h"
#include "core/runtime/rendezvous.h"
#include "core/tensor/buffer.h"

namespace weir::execute {

using plan::Storage;
using plan::Value;

Result<runtime::Rendezvous*> PlanRunner::Instance::Meet(const Worker& worker, const Instruction& instruction,
                                                        uint32_t first, std::string* key) const {
  const plan::Transfer& transfer = plan_.transfers[instruction.detail];
  if (worker.step.rendezvous == nullptr) {
    return FailedPrecondition(
        "the step is one part of several and was run alone: it meets the others by '{}', and RunOptions::rendezvous "
        "does not say where",
        transfer.key);
  }
  std::vector<runtime::Iteration> loops;
  for (size_t i = 0; i < transfer.frames.size(); ++i) {
    const weir_reg& number = registers_[instruction.first_slot + first + i];
    loops.push_back({transfer.frames[i], *reinterpret_cast<const int64_t*>(number.data)});
  }
  *key = transfer.key + runtime::IterationKey(loops);
  return worker.step.rendezvous;
}

Occurrence PlanRunner::Instance::When(const Instruction& instruction, uint32_t first) const {
  const size_t loops = plan_.transfers[instruction.detail].frames.size();
  if (loops == 0) return {};
  const auto number = [&](size_t loop) {
    return *reinterpret_cast<const int64_t*>(registers_[instruction.first_slot + first + loop].data);
  };
  if (loops == 1) return {0, number(0)};
  std::vector<int64_t> numbers;
  for (size_t loop = 0; loop < loops; ++loop) numbers.push_back(number(loop));
  return OccurrenceOf(numbers);
}

Status PlanRunner::Instance::Send(Worker& worker, const Instruction& instruction) {
  const uint32_t link = worker.links == nullptr ? Links::kNone : worker.links[instruction.detail];
  if (link == Links::kNone) return SendOut(worker, instruction);
  if (Loan* const loan = worker.flow->LoanOf(link)) {
    loan->dead = guards_[plan_.transfers[instruction.detail].guard] == 0;
    loan->memory = registers_[instruction.first_slot];
    worker.flow->Sent(worker, link);
    return Status();
  }
  if (runtime::Message* const outgoing = worker.flow->Outgoing(link)) {
    WEIR_TRY(Put(instruction, outgoing));
    worker.flow->Sent(worker, link);
    return Status();
  }
  runtime::Message message;
  WEIR_TRY(Put(instruction, &message));
  worker.flow->Sent(worker, link, When(instruction, 1), std::move(message));
  return Status();
}

Status PlanRunner::Instance::Put(const Instruction& instruction, runtime::Message* message) {
  const plan::Transfer& transfer = plan_.transfers[instruction.detail];
  message->dead = guards_[transfer.guard] == 0;
  if (message->dead) return Status();
  const Value& value = ValueOf(instruction, 0);
  const Storage& storage = StorageOf(value);
  if (transfer.frames.empty() && storage.home == Storage::Home::kFresh) {  // the usual case
    const Tensor& own = tensors_[value.storage];
    if (own.shape() == value.shape) {
      message->value = own;
      return Status();
    }
  }
  if (IsSnapshot(value)) {
    WEIR_ASSIGN(message->value, TensorOf(value));
    return Status();
  }
  // What a loop fills again in its next iteration is copied.
  const bool again = !transfer.frames.empty() && StorageOf(Chosen(value)).home == Storage::Home::kFresh;
  return again ? FetchCopy(instruction, plan::kHostSpace, &message->value) : Fetch(instruction, &message->value);
}

bool PlanRunner::Instance::IsSnapshot(const Value& value) const {
  const Value& chosen = Chosen(value);
  const Storage& storage = StorageOf(chosen);
  if (storage.home != Storage::Home::kOwned || !storage.variable.valid()) return false;
  const Tensor& own = tensors_[chosen.storage];
  return own.buffer() && own.on_host() && !own.buffer()->lent();
}

Status PlanRunner::Instance::SendOut(const Worker& worker, const Instruction& instruction) {
  std::string key;
  WEIR_ASSIGN(runtime::Rendezvous* const rendezvous, Meet(worker, instruction, 1, &key));
  runtime::Message message;
  WEIR_TRY(Put(instruction, &message));
  return rendezvous->Send(key, std::move(message));
}

Status PlanRunner::Instance::Receive(const Instruction& instruction, const std::string& key,
                                     runtime::Message& message) {
  guards_[plan_.transfers[instruction.detail].guard] = message.dead ? 0 : 1;
  if (message.dead) return Status();
  const Value& value = ValueOf(instruction, instruction.inputs);
  Tensor& came = message.value;
  if (came.dtype() != value.dtype || (value.shape_known && !(came.shape() == value.shape))) {
    return InvalidArgument("'{}' brought a {} of shape {}, wanted a {}{}", key, Name(came.dtype()),
                           came.shape().ToString(), Name(value.dtype),
                           value.shape_known ? " of shape " + value.shape.ToString() : std::string());
  }
  const bool aligned = !HasFixedSize(came.dtype()) || reinterpret_cast<uintptr_t>(came.raw()) % kBufferAlignment == 0;
  if (!aligned) {
    WEIR_ASSIGN(came, came.Clone());
  }
  Hold(value.storage, std::move(came));
  return Status();
}

void PlanRunner::Instance::Borrow(const Instruction& instruction, const Loan& loan) {
  guards_[plan_.transfers[instruction.detail].guard] = loan.dead ? 0 : 1;
  if (!loan.dead) Point(ValueOf(instruction, instruction.inputs).storage, loan.memory);
}

void PlanRunner::Instance::Count(const Instruction& instruction) {
  ++*reinterpret_cast<int64_t*>(registers_[instruction.first_slot].data);
}

}  // namespace weir::execute
