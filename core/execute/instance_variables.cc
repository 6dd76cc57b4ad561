// Instructions that touch variables.
#include <cstring>
#include <utility>

#include "core/execute/instance_internal.h"

namespace weir::execute {

using plan::Opcode;
using plan::Storage;
using plan::Value;

VariableLocks::VariableLocks(const plan::ExecutionPlan& plan, std::span<const int> refers,
                             const plan::Instruction& instruction)
    : plan_(plan),
      locks_(std::span(plan.locks).subspan(instruction.locks_begin, instruction.locks_end - instruction.locks_begin)) {
  if (!locks_.empty() && !plan.variables[static_cast<size_t>(locks_[0].variable)].variable) {
    own_.assign(locks_.begin(), locks_.end());
    for (plan::Lock& lock : own_) lock.variable = refers[static_cast<size_t>(lock.variable)];
    plan::SortLocks(plan.variables, own_);
    locks_ = own_;
  }
  for (const plan::Lock& lock : locks_) {
    std::shared_mutex& mutex = plan.variables[static_cast<size_t>(lock.variable)].variable->mutex;
    if (lock.exclusive) {
      mutex.lock();
    } else {
      mutex.lock_shared();
    }
  }
}

VariableLocks::~VariableLocks() {
  for (size_t l = locks_.size(); l-- > 0;) {
    std::shared_mutex& mutex = plan_.variables[static_cast<size_t>(locks_[l].variable)].variable->mutex;
    if (locks_[l].exclusive) {
      mutex.unlock();
    } else {
      mutex.unlock_shared();
    }
  }
}

Status PlanRunner::Instance::CheckInitialized(const plan::VariableUse& use) const {
  if (use.variable->value.valid()) return Status();
  if (!use.is_resource) return FailedPrecondition("Attempting to use uninitialized value {}", use.node->name());
  return NotFound("Resource {}/{}/N10tensorflow3VarE does not exist.", use.key.container, use.key.name);
}

Status PlanRunner::Instance::Unshare(const plan::VariableUse& use, int space) {
  Tensor& value = use.variable->value;
  if (!value.buffer() || value.buffer().use_count() == 1) return Status();
  if (value.on_host()) {
    WEIR_ASSIGN(value, streams_.Duplicate(space, value));
    return Status();
  }
  // Readers may have let go of the memory while their work on it is still to come: it is given back after that work.
  WEIR_TRY(streams_.BeforeAccess(space, *use.variable, true));
  const Tensor shared = value;
  WEIR_ASSIGN(value, streams_.Duplicate(space, shared));
  streams_.Keep(space, shared);
  return streams_.AfterAccess(space, *use.variable, true);
}

Status PlanRunner::Instance::LockedKernel(Worker& worker, const Instruction& instruction) {
  const VariableLocks locks(plan_, refers_, instruction);
  std::unique_lock<std::mutex> running;
  if (instruction.serialized)
    running = std::unique_lock<std::mutex>(*worker.runner->kernel_mutexes_[instruction.detail]);
  for (uint32_t l = instruction.locks_begin; l < instruction.locks_end; ++l) {
    const plan::VariableUse& use = VariableAt(plan_.locks[l].variable);
    if (Status ready = CheckInitialized(use); !ready.ok()) return At(instruction, ready);
  }
  WEIR_TRY(BeforeAccess(instruction));
  const uint32_t operands = static_cast<uint32_t>(instruction.inputs) + instruction.outputs;
  for (uint32_t i = 0; i < operands && instruction.locks_begin != instruction.locks_end; ++i) {
    const Value& value = ValueOf(instruction, i);
    const Storage& storage = StorageOf(value);
    if (storage.home != Storage::Home::kVariable) continue;
    const plan::VariableUse& use = VariableAt(storage);
    if (!(use.variable->value.shape() == value.shape)) {
      return At(instruction, FailedPrecondition("variable '{}' has shape {} but its op declares {}", use.node->name(),
                                                use.variable->value.shape().ToString(), value.shape.ToString()));
    }
    weir_reg& reg = registers_[instruction.first_slot + i];
    const weir_reg current = RegisterOf(use.variable->value, reg.shape);
    reg.data = current.data;
    reg.handle = current.handle;
  }
  if (streams_.Of(instruction.space) != nullptr) {
    WEIR_TRY(StreamKernel(instruction));
    return At(instruction, AfterAccess(instruction));
  }
  if (plan_.kernels[instruction.detail]->tiles() > 1) return Tiles(worker, instruction);
  const int32_t code = instruction.fn(instruction.state, registers_.data() + instruction.first_slot, &worker.env);
  return code == 0 ? Status() : KernelError(worker, instruction, code);
}

Status PlanRunner::Instance::ReadVariable(const Instruction& instruction) {
  const VariableLocks locks(plan_, refers_, instruction);
  const plan::VariableUse& use = VariableAt(StorageOf(ValueOf(instruction, 0)));
  if (const Status found = CheckInitialized(use); !found.ok()) {
    if (!use.is_resource) return found;
    return FailedPrecondition(
        "Could not find variable {}. This could mean that the variable has been deleted. In TF1, it can also mean the "
        "variable is uninitialized. Debug info: container={}, status error message={}",
        use.key.name, use.key.container, found.message());
  }
  const Value& to = ValueOf(instruction, 1);
  const Tensor& value = use.variable->value;
  if (to.shape_known && !(value.shape() == to.shape)) {
    return FailedPrecondition("variable '{}' has shape {} but its op declares {}", use.node->name(),
                              value.shape().ToString(), to.shape.ToString());
  }
  WEIR_TRY(BeforeAccess(instruction));
  Refer(StorageOf(to), StorageOf(ValueOf(instruction, 0)));
  Hold(to.storage, value);
  return Status();
}

Status PlanRunner::Instance::Make(const Instruction& instruction) {
  const plan::MadeMemory& wanted = plan_.made[instruction.detail];
  WEIR_ASSIGN(std::shared_ptr<Buffer> memory, AllocatorOf(wanted.space).Allocate(wanted.bytes));
  weir_reg from{};
  from.handle = memory->memory().handle;
  from.data = memory->host() != nullptr ? reinterpret_cast<uint64_t>(memory->host()) : memory->memory().offset;
  for (const int storage : wanted.storages) Point(storage, from);
  made_[instruction.detail] = std::move(memory);
  return Status();
}

bool PlanRunner::Instance::TakeOver(const Value& from, const Tensor& given, Tensor& value) {
  const Storage& storage = StorageOf(from);
  std::shared_ptr<Buffer>& made = made_[static_cast<size_t>(storage.made)];
  const bool ours = made.use_count() == 2;  // and `given`
  if (ours) {
    streams_.Keep(storage.space, value);
    value = given;
  } else {
    streams_.Keep(storage.space, given);
  }
  made.reset();
  return ours;
}

Status PlanRunner::Instance::Assign(const Instruction& instruction) {
  const VariableLocks locks(plan_, refers_, instruction);
  const Storage& storage = StorageOf(ValueOf(instruction, 0));
  const plan::VariableUse& use = VariableAt(storage);
  WEIR_ASSIGN(const Tensor given, TensorOf(ValueOf(instruction, 1)));
  Tensor& value = use.variable->value;
  if (given.dtype() != use.variable->dtype) {
    return InvalidArgument("Trying to assign variable with wrong dtype. Expected {} got {}", Name(use.variable->dtype),
                           Name(given.dtype()));
  }
  if (instruction.validate_shape && value.valid() && !(value.shape() == given.shape())) {
    return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
                           value.shape().ToString(), given.shape().ToString());
  }
  if (instruction.validate_shape && !value.valid() && !use.declared.CompatibleWith(given.shape())) {
    return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
                           use.declared.ToString(), given.shape().ToString());
  }
  if (use.is_resource && !use.declared.CompatibleWith(given.shape())) {
    return InvalidArgument("Trying to assign to variable with tensor with wrong shape. Expected {} got {}",
                           use.declared.ToString(), given.shape().ToString());
  }
  if (instruction.takes) {
    WEIR_TRY(streams_.BeforeAccess(storage.space, *use.variable, true));
    if (TakeOver(ValueOf(instruction, 1), given, value)) {
      return streams_.AfterAccess(storage.space, *use.variable, true);
    }
  }
  const bool in_place = value.buffer() && value.buffer().use_count() == 1 && value.shape() == given.shape() &&
                        HasFixedSize(value.dtype());
  if (!given.on_host()) {
    WEIR_TRY(streams_.BeforeAccess(storage.space, *use.variable, true));
    if (in_place) {
      WEIR_TRY(streams_.Copy(storage.space, value, storage.space, given, true));
    } else {
      streams_.Keep(storage.space, value);
      WEIR_ASSIGN(value, streams_.Duplicate(storage.space, given));
    }
    return streams_.AfterAccess(storage.space, *use.variable, true);
  }
  if (in_place && value.bytes() > 0) {
    std::memmove(value.mutable_raw(), given.raw(), given.bytes());
    return Status();
  }
  WEIR_ASSIGN(value, streams_.Duplicate(storage.space, given));
  return Status();
}

Status PlanRunner::Instance::QueryVariable(const Instruction& instruction) {
  const VariableLocks locks(plan_, refers_, instruction);
  const plan::VariableUse& use = VariableAt(StorageOf(ValueOf(instruction, 0)));
  const Value& to = ValueOf(instruction, 1);
  if (instruction.opcode == Opcode::kIsInitialized) {
    return HoldOutput(to, Tensor::Scalar<bool>(use.variable->value.valid()));
  }
  WEIR_TRY(CheckInitialized(use));
  const auto dims = use.variable->value.shape().dims();
  if (to.dtype == DType::kInt64) return HoldOutput(to, Tensor::Vector<int64_t>({dims.begin(), dims.end()}));
  return HoldOutput(to, Tensor::Vector<int32_t>({dims.begin(), dims.end()}));
}

Status PlanRunner::Instance::Select(const Instruction& instruction) {
  WEIR_ASSIGN(const Tensor index, TensorOf(ValueOf(instruction, 0)));
  if (index.shape().rank() != 0) {
    return InvalidArgument("Index must be a scalar, but it has shape {}", index.shape().ToString());
  }
  const int32_t chosen = index.as<int32_t>()[0];
  const int references = instruction.inputs - 1;
  if (chosen < 0 || chosen >= references) {
    return InvalidArgument("Index must be in the range [0, {}) but got {}", references, chosen);
  }
  const VariableLocks locks(plan_, refers_, instruction);
  const auto reference = [&](int i) -> const Storage& {
    return StorageOf(ValueOf(instruction, static_cast<uint32_t>(i) + 1));
  };
  for (int i = 0; i < references; ++i) WEIR_TRY(CheckInitialized(VariableAt(reference(i))));
  Refer(reference(references), reference(chosen));
  return Status();
}

}  // namespace weir::execute
