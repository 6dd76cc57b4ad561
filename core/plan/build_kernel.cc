// Binding nodes to plugin kernels: prepared where everything is known, a call on tensors where not.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/kernel/operand_args.h"
#include "core/plan/builder_internal.h"

namespace weir::plan {

using kernel::ArgOfOperand;
using kernel::Masked;

namespace {

/// Below, waking other threads and waiting for them costs what they save.
constexpr double kTiledNanoseconds = 500e3;
/// For all tiles of a call together.
constexpr uint64_t kMostTileScratch = uint64_t{16} << 20;

}  // namespace

Result<Builder::Operands> Builder::Gather() {
  const graph::StepNode& node = Current();
  Result<op::Signature> signature = op::Expand(node.source->attrs());
  if (!signature.ok()) return Fail(signature.status());
  Operands operands;
  operands.input_args = ArgOfOperand(signature->input_counts);
  operands.output_args = ArgOfOperand(signature->output_counts);
  operands.inputs.reserve(node.inputs.size());
  operands.input_specs.reserve(node.inputs.size());
  operands.output_specs.reserve(node.types.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int index = ValueAt(node.inputs[i]);
    if (index < 0) return Fail(Internal("an input has no value"));
    const op::ArgDef& arg = node.source->op().inputs[static_cast<size_t>(operands.input_args[i])];
    if (arg.dtype != DType::kResource) WEIR_TRY(CheckNoHandle(static_cast<int>(i)));
    const Value& value = plan_->values[static_cast<size_t>(index)];
    const Storage& storage = plan_->storages[static_cast<size_t>(value.storage)];
    kernel::OperandSpec spec;
    spec.dtype = value.dtype;
    spec.shape = value.shape;
    spec.value = storage.home == Storage::Home::kConstant && storage.space == kHostSpace ? &storage.constant : nullptr;
    spec.variable = storage.home == Storage::Home::kVariable;
    if (spec.variable) WEIR_TRY(CheckHeld(static_cast<int>(operands.inputs.size()), index));
    operands.shapes_known = operands.shapes_known && value.shape_known;
    operands.strings = operands.strings || !HasFixedSize(value.dtype);
    operands.inputs.push_back(index);
    operands.input_specs.push_back(std::move(spec));
  }
  for (size_t i = 0; i < node.types.size(); ++i) {
    kernel::OperandSpec spec;
    spec.dtype = BaseType(node.types[i]);
    Result<Shape> shape = node.shapes[i].ToShape();
    if (IsRef(node.types[i])) {
      spec.shape = operands.input_specs[0].shape;
      spec.variable = true;
    } else if (shape.ok()) {
      spec.shape = std::move(*shape);
    } else {
      operands.shapes_known = false;
    }
    operands.strings = operands.strings || !HasFixedSize(spec.dtype);
    operands.output_specs.push_back(std::move(spec));
  }
  return operands;
}

Status Builder::CheckNoHandle(int input) {
  if (step_.TypeOf(Current().inputs[static_cast<size_t>(input)]) != DType::kResource) return Status();
  return Fail(Unimplemented("input {} is a resource handle; {} does not take handles as values", input,
                            Current().source->op().name));
}

Status Builder::EmitKernel() {
  WEIR_ASSIGN(Operands operands, Gather());
  device::Device* device = DeviceOf(current_);
  if (device == nullptr) return Fail(FailedPrecondition("no device runs this node"));
  weir_node node{Current().name(),
                 Current().source->attrs(),
                 [&](int i) { return operands.input_specs[static_cast<size_t>(i)].value; },
                 options_.node_resources,
                 {},
                 options_.deterministic};
  std::vector<const kernel::KernelEntry*> ranked =
      RankKernels(*options_.kernels, node, operands.input_specs, operands.output_specs, operands.shapes_known, *device,
                  options_.calibration);
  if (ranked.empty() && !operands.strings) {
    return Fail(kernel::NoKernelError(*options_.kernels, node.attrs, node.name, {device->info().kind}));
  }
  if (operands.shapes_known && !operands.strings) {
    bool declined = true;
    for (const kernel::KernelEntry* entry : ranked) {
      WEIR_ASSIGN(const Prepared prepared, TryPrepared(*entry, node, operands));
      if (prepared == Prepared::kBound) return Status();
      declined = declined && prepared == Prepared::kDeclined && entry->record->compute == nullptr;
      if (entry->record->compute != nullptr) break;  // the best kernel prefers its dynamic form
    }
    // Of a fused op the step can do without; of others the call will say why nobody runs them.
    if (declined && stands_for_.contains(Current().source)) {
      return Fail(Unimplemented("no kernel runs op {} with these operands", Current().source->op().name));
    }
  }
  return EmitCall(std::move(ranked));
}

Result<Builder::Prepared> Builder::TryPrepared(const kernel::KernelEntry& entry, const weir_node& node,
                                               Operands& operands) {
  const weir_kernel& record = *entry.record;
  if (record.prepare == nullptr || (record.flags & WEIR_KERNEL_ASYNC) != 0) return Prepared::kNotNow;
  const int device_space = SpaceOf(placement_.device_of[static_cast<size_t>(current_)]);
  for (size_t i = 0; i < operands.inputs.size(); ++i) {
    const bool host = Masked(record.host_inputs, operands.input_args[i]);
    // Host operands steer the kernel, which reads them when it is prepared: they have to be known by then.
    if (host && operands.input_specs[i].value == nullptr) return Prepared::kNotNow;
    operands.input_specs[i].host = host || device_space == kHostSpace;
  }
  for (size_t i = 0; i < operands.output_specs.size(); ++i) {
    operands.output_specs[i].host = Masked(record.host_outputs, operands.output_args[i]) || device_space == kHostSpace;
  }
  Result<weir_device*> open = DeviceOf(current_)->Open();
  if (!open.ok()) return Fail(open.status());
  const std::span<const kernel::OperandSpec> in = operands.input_specs, out = operands.output_specs;
  const double ns = DeclaredNanoseconds(entry, node, in, out, true, *DeviceOf(current_));
  const auto prepare = [&](uint64_t tiles) { return kernel::PreparedKernel::Make(entry, node, in, out, *open, tiles); };
  const bool cut = ns >= kTiledNanoseconds && !DeviceOf(current_)->has_streams();
  Result<std::unique_ptr<kernel::PreparedKernel>> prepared = prepare(cut ? options_.max_tiles : 1);
  const bool whole = prepared.ok() && (*prepared)->tiles() > 1 &&
                     ((*prepared)->tile_scratch_bytes() * (*prepared)->tiles() > kMostTileScratch ||
                      ((*prepared)->flags() & WEIR_KERNEL_STATEFUL) != 0);
  if (whole) prepared = prepare(1);
  if (!prepared.ok()) {
    if (prepared.status().code() == Code::kUnimplemented) return Prepared::kDeclined;
    // Operands that the op cannot be given, or that no memory holds, are an error of the run, if it gets there.
    const Code code = prepared.status().code();
    if (code == Code::kInvalidArgument || code == Code::kResourceExhausted) return Prepared::kNotNow;
    return Fail(prepared.status());
  }
  WEIR_ASSIGN(const std::vector<int> inputs, MoveInputs(record, operands));
  next_ns_ = ns;  // of the instruction that Bind emits, not of the copies before it
  WEIR_TRY(Bind(std::move(*prepared), inputs, operands));
  return Prepared::kBound;
}

Result<std::vector<int>> Builder::MoveInputs(const weir_kernel& record, const Operands& operands) {
  const int device_space = SpaceOf(placement_.device_of[static_cast<size_t>(current_)]);
  std::vector<int> moved;
  for (size_t i = 0; i < operands.inputs.size(); ++i) {
    const int space = Masked(record.host_inputs, operands.input_args[i]) ? kHostSpace : device_space;
    WEIR_ASSIGN(const int value, Located(operands.inputs[i], space));
    moved.push_back(value);
  }
  return moved;
}

std::vector<int> Builder::MakeOutputs(const weir_kernel& record, const Operands& operands, Placing placing,
                                      const std::vector<int>& inputs, const kernel::PreparedKernel* kernel) {
  const graph::StepNode& node = Current();
  const int device_space = SpaceOf(placement_.device_of[static_cast<size_t>(current_)]);
  std::vector<int> outputs;
  for (size_t i = 0; i < node.types.size(); ++i) {
    int view_of = -1;
    if (kernel != nullptr) {
      for (const weir_alias& alias : kernel->aliases()) {
        if (alias.kind == WEIR_ALIAS_MUST && alias.output == i) view_of = inputs[alias.input];
      }
    }
    if (IsRef(node.types[i])) {
      outputs.push_back(inputs[0]);
    } else if (view_of >= 0 && !IsVariable(view_of)) {
      outputs.push_back(ViewOf(view_of, node.shapes[i]));
    } else {
      const bool host = Masked(record.host_outputs, operands.output_args[i]);
      outputs.push_back(NewValue(node.types[i], node.shapes[i], host ? kHostSpace : device_space, placing));
    }
    ValueAt({current_, static_cast<int>(i)}) = outputs.back();
  }
  return outputs;
}

std::vector<Lock> Builder::LocksOf(const weir_kernel* record, const std::vector<int>& inputs,
                                   const Operands& operands) const {
  std::vector<Lock> locks;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsVariable(inputs[i])) continue;
    const bool writes = record != nullptr && Masked(record->variable_writes, operands.input_args[i]);
    locks.push_back({VariableOf(inputs[i]), writes});
  }
  return locks;
}

Status Builder::Bind(std::unique_ptr<kernel::PreparedKernel> kernel, const std::vector<int>& inputs,
                     const Operands& operands) {
  const weir_kernel& record = *kernel->entry().record;
  std::vector<int> outputs = MakeOutputs(record, operands, Placing::kPlanned, inputs, kernel.get());
  std::vector<Lock> locks = LocksOf(&record, inputs, operands);
  const bool serialized = (kernel->flags() & WEIR_KERNEL_STATEFUL) != 0;
  if (kernel->fn() != nullptr) {
    if (kernel->scratch_bytes() > 0) {
      Storage scratch;
      const int device_space = SpaceOf(placement_.device_of[static_cast<size_t>(current_)]);
      scratch.space = device_space;
      scratch.bytes = kernel->reserved_scratch_bytes();
      scratch.alignment = kernel->scratch_alignment();
      Value value;
      value.dtype = DType::kUint8;
      value.shape_known = value.scratch = true;
      value.shape = Shape::Of({static_cast<int64_t>(scratch.bytes)});
      value.storage = AddStorage(std::move(scratch));
      outputs.push_back(AddValue(std::move(value)));
    }
    const Opcode plain = DeviceOf(current_)->has_streams() ? Opcode::kStreamKernel
                         : kernel->tiles() > 1             ? Opcode::kTiledKernel
                                                           : Opcode::kKernel;
    Instruction& instruction = Emit(locks.empty() && !serialized ? plain : Opcode::kLockedKernel, inputs, outputs);
    instruction.space = static_cast<int16_t>(SpaceOf(placement_.device_of[static_cast<size_t>(current_)]));
    instruction.fn = kernel->fn();
    instruction.state = kernel->state();
    instruction.serialized = serialized;
    instruction.detail = static_cast<uint32_t>(plan_->kernels.size());
    SetLocks(std::move(locks), instruction);
    for (const weir_alias& alias : kernel->aliases()) {
      if (alias.kind != WEIR_ALIAS_MAY) continue;
      shape_.shares.push_back({static_cast<uint32_t>(plan_->instructions.size()) - 1,
                               instruction.first_slot + alias.input,
                               instruction.first_slot + instruction.inputs + alias.output});
    }
  }
  plan_->kernels.push_back(std::move(kernel));
  plan_->kernel_devices.push_back(DeviceOf(current_));
  return Status();
}

Status Builder::EmitCall(std::vector<const kernel::KernelEntry*> kernels) {
  WEIR_ASSIGN(Operands operands, Gather());
  // Kernels that move strings as numbers are found when they are called; of these ops only the state's own write.
  static const weir_kernel kOnHost = [] {
    weir_kernel record{};
    record.host_inputs = record.host_outputs = std::numeric_limits<uint64_t>::max();
    record.variable_writes = 1;
    return record;
  }();
  const op::OpDef& op = Current().source->op();
  CallSpec call;
  call.graph = step_.graph;
  call.node = Current().source;
  call.kernels = std::move(kernels);
  // Strings live on the host, whoever moves them.
  call.device = operands.strings && plan_->host_device != nullptr ? plan_->host_device : DeviceOf(current_);
  call.resources = options_.node_resources;
  call.registry = options_.kernels;
  call.deterministic = options_.deterministic;
  if (op.run_by == op::RunBy::kBuiltin) {
    call.builtin = options_.builtins->Find(op.name);
    if (call.builtin == nullptr) return Fail(Unimplemented("no builtin kernel runs op {}", op.name));
  }
  const bool metadata = op.run_by == op::RunBy::kUniversal;
  const weir_kernel& record = call.kernels.empty() ? kOnHost : *call.kernels[0]->record;
  std::vector<int> inputs = operands.inputs;
  if (!metadata) {
    WEIR_ASSIGN(inputs, MoveInputs(record, operands));
  }
  std::vector<int> outputs;
  if (metadata) {
    const bool keeps_memory = kernel::OnlyReshapes(op.name);
    const Value& first = plan_->values[static_cast<size_t>(inputs[0])];
    const int space = keeps_memory ? plan_->storages[static_cast<size_t>(first.storage)].space : kHostSpace;
    for (size_t i = 0; i < Current().types.size(); ++i) {
      outputs.push_back(NewValue(Current().types[i], Current().shapes[i], space, Placing::kAtRun));
      ValueAt({current_, static_cast<int>(i)}) = outputs.back();
    }
  } else {
    outputs = MakeOutputs(record, operands, Placing::kAtRun, inputs, nullptr);
  }
  const bool async = !call.kernels.empty() && (record.flags & WEIR_KERNEL_ASYNC) != 0;
  next_blocks_ = async || (call.builtin != nullptr && op.stateful);
  if (!call.kernels.empty() && call.device != nullptr) {
    const weir_node node{Current().name(), Current().source->attrs(), {}, nullptr, {}};
    next_ns_ = DeclaredNanoseconds(*call.kernels[0], node, operands.input_specs, operands.output_specs,
                                   operands.shapes_known, *call.device);
  }
  Instruction& instruction = Emit(Opcode::kCall, inputs, outputs);
  instruction.detail = static_cast<uint32_t>(plan_->calls.size());
  const bool writes = !call.kernels.empty() || (operands.strings && op.category == op::Category::kState);
  SetLocks(LocksOf(writes ? &record : nullptr, inputs, operands), instruction);
  plan_->calls.push_back(std::move(call));
  return Status();
}

}  // namespace weir::plan
