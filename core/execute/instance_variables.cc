// Instructions that touch variables.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "core/base/errors.h"
#include "core/execute/instance_internal.h"
#include "core/tensor/buffer.h"
#include "core/tensor/deferred.h"
#include "core/tensor/resource.h"
#include "core/tensor/sole_holder.h"

namespace weir::execute {

using plan::Opcode;
using plan::Storage;
using plan::Value;

namespace {

void Lock(runtime::Variable& variable, bool exclusive) {
  if (exclusive) {
    variable.mutex.lock();
  } else {
    variable.mutex.lock_shared();
  }
}

void Unlock(runtime::Variable& variable, bool exclusive) {
  if (exclusive) {
    variable.mutex.unlock();
  } else {
    variable.mutex.unlock_shared();
  }
}

}  // namespace

VariableLocks::VariableLocks(const PlanRunner::Instance& instance, const plan::Instruction& instruction)
    : plan_(instance.plan_), locks_(plan_.LocksOf(instruction)) {
  if (!locks_.empty() && !plan_.variables[locks_[0].variable].variable) {
    for (const plan::Lock& lock : locks_) {
      own_.emplace_back(instance.VariableAt(lock.variable).variable.get(), lock.exclusive);
    }
    locks_ = {};
    // Each variable once, for writing where one of its locks is exclusive.
    std::sort(own_.begin(), own_.end(), std::greater<>());
    own_.erase(std::unique(own_.begin(), own_.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
               own_.end());
    std::reverse(own_.begin(), own_.end());  // in the order of addresses, as SortLocks has them
  }
  for (const auto& [variable, exclusive] : own_) Lock(*variable, exclusive);
  for (const plan::Lock& lock : locks_) {
    Lock(*plan_.variables[lock.variable].variable, lock.exclusive);
  }
}

VariableLocks::~VariableLocks() {
  for (size_t l = own_.size(); l-- > 0;) Unlock(*own_[l].first, own_[l].second);
  for (size_t l = locks_.size(); l-- > 0;) {
    Unlock(*plan_.variables[locks_[l].variable].variable, locks_[l].exclusive);
  }
}

Status PlanRunner::Instance::CheckInitialized(const plan::VariableUse& use) const {
  if (use.variable->value.valid()) return Status();
  if (!use.is_resource) return FailedPrecondition("Attempting to use uninitialized value {}", use.node->name());
  return NotFound("Resource {}/{}/N10tensorflow3VarE does not exist.", use.key.container, use.key.name);
}

Status PlanRunner::Instance::Unshare(const plan::VariableUse& use, plan::SpaceId space) {
  Tensor& value = use.variable->value;
  if (!value.buffer() || SoleHolder(value)) return Status();
  if (value.on_host()) {
    WEIR_ASSIGN(value, streams_.Duplicate(space, value));
    return Status();
  }
  // Readers may have let go of the memory while their work on it is still to come: it is given back after that work.
  WEIR_TRY(streams_.BeforeAccess({}, space, *use.variable, true));
  const Tensor shared = value;
  WEIR_ASSIGN(value, streams_.Duplicate(space, shared));
  streams_.Keep(space, shared);
  return streams_.AfterAccess({}, space, *use.variable, true);
}

Status PlanRunner::Instance::LockedKernel(Worker& worker, const Instruction& instruction) {
  const VariableLocks locks(*this, instruction);
  std::unique_lock<std::mutex> running;
  if (instruction.serialized)
    running = std::unique_lock<std::mutex>(*worker.program->kernel_mutexes[instruction.detail]);
  for (const plan::Lock& lock : plan_.LocksOf(instruction)) {
    const plan::VariableUse& use = VariableAt(lock.variable);
    if (Status ready = CheckInitialized(use); !ready.ok()) return At(instruction, ready);
  }
  WEIR_TRY(BeforeAccess(instruction));
  const uint32_t operands = instruction.inputs + instruction.outputs;
  for (uint32_t i = 0; i < operands && instruction.locks.valid(); ++i) {
    const Value& value = ValueOf(instruction, i);
    const Storage& storage = StorageOf(value);
    if (storage.home != Storage::Home::kVariable) continue;
    const plan::VariableUse& use = VariableAt(storage);
    if (!(use.variable->value.shape() == value.shape)) {
      return At(instruction, FailedPrecondition("variable '{}' has shape {} but its op declares {}", use.node->name(),
                                                use.variable->value.shape().ToString(), value.shape.ToString()));
    }
    weir_reg& reg = registers_[instruction.first_slot + i];
    const weir_reg current = kernel::RegisterOf(use.variable->value, reg.shape);
    reg.data = current.data;
    reg.handle = current.handle;
  }
  if (instruction.stream.valid()) {
    WEIR_TRY(StreamKernel(instruction));
    return At(instruction, AfterAccess(instruction));
  }
  if (plan_.kernels[instruction.detail]->tiles() > 1) return Tiles(worker, instruction);
  const int32_t code = instruction.fn(instruction.state, registers_.data() + instruction.first_slot, &worker.env);
  return code == 0 ? Status() : KernelError(worker, instruction, code);
}

Status PlanRunner::Instance::ReadVariable(const Instruction& instruction) {
  const VariableLocks locks(*this, instruction);
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
  Hold(to.storage, Tensor(value));
  return Status();
}

Status PlanRunner::Instance::Make(const Instruction& instruction) {
  const plan::MadeMemory& wanted = plan_.made[plan::MadeId(instruction.detail)];
  WEIR_ASSIGN(std::shared_ptr<Buffer> memory, AllocatorOf(wanted.space).Allocate(wanted.bytes));
  weir_reg from{};
  from.handle = memory->memory().handle;
  from.data = memory->host() != nullptr ? reinterpret_cast<uint64_t>(memory->host()) : memory->memory().offset;
  for (const plan::StorageId storage : wanted.storages) Point(storage, from);
  made_[plan::MadeId(instruction.detail)] = std::move(memory);
  return Status();
}

bool PlanRunner::Instance::TakeOver(const Value& from, const Tensor& given, Tensor& value) {
  const Storage& storage = StorageOf(from);
  std::shared_ptr<Buffer>& made = made_[storage.made];
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
  const VariableLocks locks(*this, instruction);
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
    WEIR_TRY(streams_.BeforeAccess({}, storage.space, *use.variable, true));
    if (TakeOver(ValueOf(instruction, 1), given, value)) {
      WEIR_TRY(streams_.AfterAccess({}, storage.space, *use.variable, true));
      return streams_.AfterReads(storage.space, *use.variable);  // copies of the value may be under way
    }
  }
  const bool in_place = SoleHolder(value) && value.shape() == given.shape() && HasFixedSize(value.dtype());
  if (DeferredIn(given) != nullptr) return AssignDeferred(use, given, in_place);
  if (!given.on_host()) {
    WEIR_TRY(streams_.BeforeAccess({}, storage.space, *use.variable, true));
    if (in_place) {
      WEIR_TRY(streams_.Copy(storage.space, value, storage.space, given, true));
    } else {
      streams_.Keep(storage.space, value);
      WEIR_ASSIGN(value, streams_.Duplicate(storage.space, given));
    }
    return streams_.AfterAccess({}, storage.space, *use.variable, true);
  }
  if (in_place && value.bytes() > 0) {
    std::memmove(value.mutable_raw(), given.raw(), given.bytes());
    return Status();
  }
  WEIR_ASSIGN(value, streams_.Duplicate(storage.space, given));
  return Status();
}

Status PlanRunner::Instance::AssignDeferred(const plan::VariableUse& use, const Tensor& given, bool in_place) {
  // Up to here the heap serves the next read with the memory that this one returns, so that no page is new. Above it
  // memory would be mapped and cleared for each; such contents are read twice instead.
  constexpr uint64_t kMostReplaced = uint64_t{4} << 20;
  Tensor& value = use.variable->value;
  if (!in_place || given.bytes() <= kMostReplaced) {
    WEIR_ASSIGN(value, ReadNow(given, AllocatorOf(plan::kHostSpace)));
    return Status();
  }
  const DeferredBuffer& contents = *DeferredIn(given);
  WEIR_TRY(contents.Check());
  const Status read = contents.ReadInto({value.mutable_raw(), value.bytes()});
  if (read.ok()) return Status();
  value = Tensor();
  return read.Append(fmt::format("; variable '{}' was partly overwritten and has no value now", use.node->name()));
}

Status PlanRunner::Instance::QueryVariable(const Instruction& instruction) {
  const VariableLocks locks(*this, instruction);
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
  const VariableLocks locks(*this, instruction);
  const auto reference = [&](int i) -> const Storage& {
    return StorageOf(ValueOf(instruction, static_cast<uint32_t>(i) + 1));
  };
  for (int i = 0; i < references; ++i) WEIR_TRY(CheckInitialized(VariableAt(reference(i))));
  Refer(reference(references), reference(chosen));
  return Status();
}

Status PlanRunner::Instance::MakeHandle(const Instruction& instruction) {
  const plan::VariableUse& use = VariableAt(StorageOf(ValueOf(instruction, 0)));
  return HoldOutput(ValueOf(instruction, 1), Tensor::Scalar(runtime::HandleOf(use.key, use.variable)));
}

Status PlanRunner::Instance::Resolve(const Instruction& instruction) {
  const Value& to = ValueOf(instruction, 1);
  const Storage& place = StorageOf(to);
  const plan::VariableUse& asking = plan_.variables[place.variable];
  WEIR_ASSIGN(const Tensor given, TensorOf(ValueOf(instruction, 0)));
  if (given.elements() != 1) {
    return InvalidArgument("a resource handle must be a scalar, got shape {}", given.shape().ToString());
  }
  const ResourceHandle& handle = given.as<ResourceHandle>()[0];
  plan::VariableUse use;
  use.node = asking.node;
  use.is_resource = true;
  use.key = {handle.device, handle.container, handle.name};
  if (plan_.resources == nullptr) return FailedPrecondition("variables need a session");
  const Result<std::shared_ptr<Resource>> found = plan_.resources->Find(handle);
  const std::shared_ptr<Resource>& there = found.ok() ? *found : handle.resource;
  use.variable = std::dynamic_pointer_cast<runtime::Variable>(there);
  if (there && !use.variable) return runtime::WrongType(handle, *there, runtime::Variable::kTypeName);
  if (!handle.device.empty() && handle.device != asking.key.device) {
    return InvalidArgument("Trying to access resource {} located in device {} from device {}", handle.name,
                           handle.device, asking.key.device);
  }
  if (!found.ok() && instruction.detail == 1 && !there && handle.type_name == runtime::Variable::kTypeName) {
    WEIR_ASSIGN(use.variable, plan_.resources->GetOrCreate(use.key, to.dtype));
  } else if (!found.ok()) {
    use.variable = std::make_shared<runtime::Variable>();  // which stays without value
  }
  const DType held = use.variable->dtype;
  if (held != DType::kInvalid && to.dtype != DType::kInvalid && held != to.dtype) {
    return InvalidArgument("Trying to read variable with wrong dtype. Expected {} got {}", Name(held), Name(to.dtype));
  }
  if (found_.empty()) return Internal("a plan without places resolves a handle");
  found_[place.variable] = std::move(use);
  refers_[place.variable] = kFound;
  return Status();
}

/// A temporary variable without value. AlreadyExists if another node has made one of the name in this step. A node that
/// runs again, in a loop, replaces its own.
Status PlanRunner::Instance::MakeTemporary(const Instruction& instruction) {
  const Value& to = ValueOf(instruction, 0);
  const plan::VariableId place = StorageOf(to).variable;
  plan::VariableUse use = plan_.variables[place];
  if (const std::shared_ptr<runtime::Variable> there = step_resources_.Find(use.key)) {
    if (there != found_[place].variable) {
      return AlreadyExists("Resource {}/{}/N10tensorflow19TemporaryVariableOp6TmpVarE", use.key.container,
                           use.key.name);
    }
    WEIR_TRY(step_resources_.Destroy(runtime::HandleOf(use.key, there)));
  }
  WEIR_ASSIGN(use.variable, step_resources_.GetOrCreate(use.key, to.dtype));
  found_[place] = std::move(use);
  refers_[place] = kFound;
  return Status();
}

}  // namespace weir::execute
