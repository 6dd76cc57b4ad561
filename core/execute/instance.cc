// The tape interpreter and what its less common instructions do.
#include <cstring>
#include <shared_mutex>
#include <utility>

#include "core/execute/instance_internal.h"

namespace weir::execute {

using plan::Opcode;
using plan::Storage;
using plan::Value;

PlanRunner::Instance::Worker::Worker() {
  env.struct_size = sizeof(env);
  env.tile_end = 1;
  env.error = error.get();
}

Result<std::unique_ptr<PlanRunner::Instance>> PlanRunner::Instance::Make(const plan::ExecutionPlan& plan) {
  std::unique_ptr<Instance> instance(new Instance(plan));
  WEIR_TRY(instance->LayOut());
  return instance;
}

device::Device* PlanRunner::Instance::DeviceOf(int space) const {
  return space == plan::kHostSpace ? plan_.host_device : plan_.devices[static_cast<size_t>(space)];
}

Allocator& PlanRunner::Instance::AllocatorOf(int space) const {
  device::Device* device = DeviceOf(space);
  return device == nullptr ? HostAllocator() : device->allocator();
}

Status PlanRunner::Instance::LayOut() {
  arenas_.resize(plan_.arena_bytes.size());
  for (size_t s = 0; s < arenas_.size(); ++s) {
    if (plan_.arena_bytes[s] == 0) continue;
    WEIR_ASSIGN(arenas_[s], AllocatorOf(static_cast<int>(s) - 1).Allocate(plan_.arena_bytes[s]));
  }
  tensors_.resize(plan_.storages.size());
  guards_.assign(plan_.guard_count, 0);
  guards_[0] = 1;
  if (!plan_.merges.empty()) chosen_.assign(plan_.storages.size(), -1);
  registers_.resize(plan_.slots.size());
  for (size_t s = 0; s < plan_.slots.size(); ++s) {
    registers_[s].shape = &plan_.slot_shapes[s];
    registers_[s].dtype = static_cast<uint32_t>(plan_.values[static_cast<size_t>(plan_.slots[s].value)].dtype);
  }
  for (size_t s = 0; s < plan_.storages.size(); ++s) {
    const Storage& storage = plan_.storages[s];
    weir_reg from{};
    if (storage.home == Storage::Home::kConstant) {
      from = RegisterOf(storage.constant, nullptr);
    } else if (storage.home == Storage::Home::kArena && arenas_[static_cast<size_t>(storage.space + 1)]) {
      const weir_buf& memory = arenas_[static_cast<size_t>(storage.space + 1)]->memory();
      from.handle = memory.handle;
      from.data = (memory.host ? reinterpret_cast<uint64_t>(memory.host) : memory.offset) + storage.offset;
    }
    if (storage.home == Storage::Home::kFeed || storage.home == Storage::Home::kFresh ||
        storage.home == Storage::Home::kOwned) {
      transient_.push_back(static_cast<int>(s));
    }
    for (const uint32_t slot : plan_.storage_slots[s]) {
      registers_[slot].data = from.data;
      registers_[slot].handle = from.handle;
    }
  }
  worker_ = std::make_unique<Worker>();
  return Status();
}

Status PlanRunner::Instance::Run(PlanRunner& runner, std::span<const Tensor> feeds, std::vector<Tensor>* fetches,
                                 const StepArgs& step) {
  fetches->resize(plan_.fetch_count);
  Status status = Begin(feeds);
  if (status.ok() && plan_.tier == plan::Tier::kT2) {
    status = Dataflow(*this, runner, fetches, step).Run();
  } else if (status.ok()) {
    worker_->runner = &runner;
    worker_->fetches = fetches;
    worker_->step = step;
    status = Tape(*worker_, 0, static_cast<uint32_t>(plan_.instructions.size()));
  }
  for (const int storage : transient_) Drop(storage);
  if (!status.ok()) fetches->clear();
  return status;
}

Status PlanRunner::Instance::Begin(std::span<const Tensor> feeds) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const int storage = plan_.feed_storages[i];
    if (storage < 0) continue;  // nothing in the step needs it
    const bool aligned =
        SizeOf(feeds[i].dtype()) == 0 || reinterpret_cast<uintptr_t>(feeds[i].raw()) % kBufferAlignment == 0;
    if (aligned) {
      Hold(storage, feeds[i]);
      continue;
    }
    WEIR_ASSIGN(Tensor copy, feeds[i].Clone());
    Hold(storage, std::move(copy));
  }
  for (const int storage : plan_.fresh_storages) {
    const Storage& fresh = plan_.storages[static_cast<size_t>(storage)];
    WEIR_ASSIGN(Tensor tensor, Tensor::Make(fresh.dtype, fresh.shape));
    Hold(storage, std::move(tensor));
  }
  return Status();
}

Status PlanRunner::Instance::Tape(Worker& worker, uint32_t begin, uint32_t end) {
  const weir_reg* const registers = registers_.data();
  const weir_env* const env = &worker.env;
  const Instruction* const tape = plan_.instructions.data();
  const Instruction* const stop = tape + end;
  const kernel::RunControl* const control = worker.step.control;
  // A step that somebody may end is asked after at every instruction, others now and then: for the session's end.
  const bool watched =
      control != nullptr && (control->cancelled != nullptr || control->failed != nullptr || control->has_deadline());
  const ptrdiff_t stretch = watched ? 1 : 64;
  for (const Instruction* at = tape + begin; at < stop;) {
    if (control != nullptr && control->stopped()) [[unlikely]]
      return control->Check();
    for (const Instruction* const until = stop - at > stretch ? at + stretch : stop; at < until;) {
      const Instruction& instruction = *at++;
      if (instruction.opcode == Opcode::kKernel) [[likely]] {
        const int32_t code = instruction.fn(instruction.state, registers + instruction.first_slot, env);
        if (code != 0) [[unlikely]]
          return KernelError(worker, instruction, code);
        continue;
      }
      if (instruction.opcode == Opcode::kGuard) {
        SetGuard(instruction);
      } else if (instruction.opcode == Opcode::kSkip) {
        const plan::Jump& jump = plan_.jumps[instruction.detail];
        if (guards_[static_cast<size_t>(jump.guard)] == 0) at = tape + jump.target;
      } else if (instruction.opcode == Opcode::kRepeat) {
        const plan::Jump& jump = plan_.jumps[instruction.detail];
        if (guards_[static_cast<size_t>(jump.guard)] == 0) continue;
        at = tape + jump.target;
        break;  // ask again before the next iteration
      } else {
        WEIR_TRY(Special(worker, instruction));
        // A call may have taken long, or cut itself short because it was told that the step is to end.
        if (instruction.opcode == Opcode::kCall) break;
      }
    }
  }
  return control != nullptr && control->stopped() ? control->Check() : Status();
}

Status PlanRunner::Instance::Special(Worker& worker, const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kLockedKernel:
      return LockedKernel(worker, instruction);
    case Opcode::kCall:
      return At(instruction, Call(worker, instruction));
    case Opcode::kReadVariable:
      return At(instruction, ReadVariable(instruction));
    case Opcode::kAssign:
      return At(instruction, Assign(instruction));
    case Opcode::kIsInitialized:
    case Opcode::kVariableShape:
      return At(instruction, QueryVariable(instruction));
    case Opcode::kCopy:
      return At(instruction, Copy(instruction));
    case Opcode::kFetch: {
      Result<Tensor> fetched = Fetch(instruction);
      if (!fetched.ok()) return At(instruction, fetched.status());
      (*worker.fetches)[instruction.detail] = std::move(*fetched);
      return Status();
    }
    case Opcode::kRelease:
      Drop(static_cast<int>(instruction.detail));
      return Status();
    case Opcode::kMove:
      return At(instruction, Move(instruction));
    case Opcode::kMerge:
      Merge(instruction);
      return Status();
    case Opcode::kKernel:
    case Opcode::kGuard:
    case Opcode::kSkip:
    case Opcode::kRepeat:
      return Internal("a plain instruction reached the special ones");
  }
  return Status();
}

Status PlanRunner::Instance::At(const Instruction& instruction, const Status& status) const {
  return status.ok() ? status : graph::AtNode(status, *plan_.nodes[static_cast<size_t>(instruction.node)]);
}

Status PlanRunner::Instance::KernelError(const Worker& worker, const Instruction& instruction, int32_t code) const {
  const graph::Node& node = *plan_.nodes[static_cast<size_t>(instruction.node)];
  return graph::AtNode(worker.error.ToStatus(code, node.op().name), node);
}

const Value& PlanRunner::Instance::ValueOf(const Instruction& instruction, uint32_t operand) const {
  return plan_.values[static_cast<size_t>(plan_.slots[instruction.first_slot + operand].value)];
}

const Storage& PlanRunner::Instance::StorageOf(const Value& value) const {
  return plan_.storages[static_cast<size_t>(value.storage)];
}

const plan::VariableUse& PlanRunner::Instance::VariableAt(const Storage& storage) const {
  return plan_.variables[static_cast<size_t>(storage.variable)];
}

const Value& PlanRunner::Instance::Chosen(const Value& value) const {
  const Value* at = &value;
  while (StorageOf(*at).home == Storage::Home::kBound) {
    at = &plan_.values[static_cast<size_t>(chosen_[static_cast<size_t>(at->storage)])];
  }
  return *at;
}

Result<Tensor> PlanRunner::Instance::TensorOf(const Value& value) const {
  const Storage& storage = StorageOf(value);
  if (storage.home == Storage::Home::kBound) {
    WEIR_ASSIGN(Tensor tensor, TensorOf(Chosen(value)));
    return value.shape_known && !(tensor.shape() == value.shape) ? tensor.Reshaped(value.shape) : tensor;
  }
  if (storage.home == Storage::Home::kArena) {
    return Tensor::Over(value.dtype, value.shape, arenas_[static_cast<size_t>(storage.space + 1)], storage.offset);
  }
  if (storage.home == Storage::Home::kVariable) {
    const plan::VariableUse& use = VariableAt(storage);
    WEIR_TRY(CheckInitialized(use));
    return use.variable->value;
  }
  const Tensor& held =
      storage.home == Storage::Home::kConstant ? storage.constant : tensors_[static_cast<size_t>(value.storage)];
  if (!value.shape_known || held.shape() == value.shape) return held;
  return held.Reshaped(value.shape);
}

void PlanRunner::Instance::Hold(int storage, Tensor tensor) {
  const weir_reg from = RegisterOf(tensor, nullptr);
  for (const uint32_t slot : plan_.storage_slots[static_cast<size_t>(storage)]) {
    registers_[slot].data = from.data;
    registers_[slot].handle = from.handle;
  }
  tensors_[static_cast<size_t>(storage)] = std::move(tensor);
}

void PlanRunner::Instance::Drop(int storage) {
  Tensor& held = tensors_[static_cast<size_t>(storage)];
  if (!held.valid()) return;
  const int variable = plan_.storages[static_cast<size_t>(storage)].variable;
  if (variable < 0) {
    held = Tensor();
    return;
  }
  const std::shared_lock<std::shared_mutex> lock(plan_.variables[static_cast<size_t>(variable)].variable->mutex);
  held = Tensor();
}

Status PlanRunner::Instance::HoldOutput(const Value& value, Tensor tensor) {
  if (value.shape_known && !(tensor.shape() == value.shape)) {
    return Internal("a kernel made shape {} where its shape function said {}", tensor.shape().ToString(),
                    value.shape.ToString());
  }
  for (const std::shared_ptr<Buffer>& arena : arenas_) {
    if (arena && tensor.buffer() == arena) {  // the arena is written again before this tensor dies
      WEIR_ASSIGN(tensor, tensor.Clone());
      break;
    }
  }
  Hold(value.storage, std::move(tensor));
  return Status();
}

Status PlanRunner::Instance::Call(Worker& worker, const Instruction& instruction) {
  const VariableLocks locks(plan_, instruction);
  for (uint32_t l = instruction.locks_begin; l < instruction.locks_end; ++l) {
    const plan::Lock& lock = plan_.locks[l];
    if (!lock.exclusive) continue;
    const plan::VariableUse& use = plan_.variables[static_cast<size_t>(lock.variable)];
    WEIR_TRY(CheckInitialized(use));
    WEIR_TRY(Unshare(use, plan::kHostSpace));
  }
  std::vector<Tensor> inputs;
  for (uint32_t i = 0; i < instruction.inputs; ++i) {
    WEIR_ASSIGN(Tensor input, TensorOf(ValueOf(instruction, i)));
    inputs.push_back(std::move(input));
  }
  WEIR_ASSIGN(std::vector<Tensor> outputs,
              worker.runner->calls_[instruction.detail].Run(std::move(inputs), worker.step));
  if (outputs.size() != instruction.outputs) {
    return Internal("a call made {} outputs, wanted {}", outputs.size(), instruction.outputs);
  }
  for (uint32_t i = 0; i < instruction.outputs; ++i) {
    const Value& value = ValueOf(instruction, instruction.inputs + i);
    if (StorageOf(value).home == Storage::Home::kVariable) continue;  // updated in place
    WEIR_TRY(HoldOutput(value, std::move(outputs[i])));
  }
  return Status();
}

Status PlanRunner::Instance::Copy(const Instruction& instruction) {
  const VariableLocks locks(plan_, instruction);
  const Value& to = ValueOf(instruction, 1);
  const Storage& target = StorageOf(to);
  WEIR_ASSIGN(const Tensor from, TensorOf(ValueOf(instruction, 0)));
  const int from_space = StorageOf(ValueOf(instruction, 0)).space;
  Tensor moved = from;
  if (from_space != plan::kHostSpace) {
    WEIR_ASSIGN(moved, DeviceOf(from_space)->ToHost(from));
  }
  if (target.home != Storage::Home::kArena) {
    if (target.space != plan::kHostSpace) {
      WEIR_ASSIGN(moved, DeviceOf(target.space)->FromHost(moved));
    }
    return HoldOutput(to, std::move(moved));
  }
  if (moved.bytes() == 0) return Status();
  WEIR_ASSIGN(Tensor destination, TensorOf(to));
  if (target.space == plan::kHostSpace) {
    std::memcpy(destination.mutable_raw(), moved.raw(), moved.bytes());
    return Status();
  }
  weir_buf source = moved.buffer()->memory();
  source.host = const_cast<std::byte*>(moved.raw());
  source.offset += moved.offset();
  weir_buf place = destination.buffer()->memory();
  place.offset += destination.offset();
  if (place.host != nullptr) place.host = static_cast<std::byte*>(place.host) + destination.offset();
  return DeviceOf(target.space)->Copy(place, source, moved.bytes());
}

Result<Tensor> PlanRunner::Instance::Fetch(const Instruction& instruction) {
  if (guards_[static_cast<size_t>(plan_.fetch_guards[instruction.detail])] == 0) {
    return InvalidArgument("Retval[{}] does not have value: it lies on a branch that was not taken",
                           instruction.detail);
  }
  const VariableLocks locks(plan_, instruction);
  const Value& value = Chosen(ValueOf(instruction, 0));
  const Storage& storage = StorageOf(value);
  if (storage.home == Storage::Home::kVariable && VariableAt(storage).is_resource) {
    const plan::VariableUse& use = VariableAt(storage);
    WEIR_ASSIGN(Tensor handle, Tensor::Make(DType::kResource, Shape()));
    handle.mutable_as<ResourceHandle>()[0] = {use.key.device, use.key.container, use.key.name, 0, "tensorflow::Var"};
    return handle;
  }
  WEIR_ASSIGN(Tensor tensor, TensorOf(value));
  if (!tensor.on_host()) return DeviceOf(storage.space)->ToHost(tensor);
  // Two owners, this one and tensors_, mean that nobody outside the run sees the memory.
  const bool ours = storage.home == Storage::Home::kFresh ||
                    (storage.home == Storage::Home::kOwned && tensor.buffer() && tensor.buffer().use_count() == 2);
  return ours ? Result<Tensor>(std::move(tensor)) : tensor.Clone();
}

}  // namespace weir::execute
