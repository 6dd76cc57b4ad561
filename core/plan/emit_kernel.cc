// Ops with kernels: prepared where everything is known, a call on tensors where not.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/kernel/operand_args.h"
#include "core/plan/emitters_internal.h"
#include "core/plan/region_internal.h"
#include "core/plan/streams_internal.h"

namespace weir::plan {

using graph::NodeId;
using kernel::ArgOfOperand;
using kernel::Masked;

namespace {

/// Below, waking other threads and waiting for them costs what they save.
constexpr double kTiledNanoseconds = 500e3;
/// For all tiles of a call together.
constexpr uint64_t kMostTileScratch = uint64_t{16} << 20;

/// A reference to what the first input refers to. An op without inputs names a resource, as strings.
bool RefersToInput(const graph::StepNode& node, size_t output) {
  return IsRef(node.types[output]) && !node.inputs.empty();
}

/// Locks of variables to write are not held until a call completes.
bool MayCompleteLater(const CallSpec& call) {
  if (call.builtin != nullptr) return static_cast<bool>(call.builtin->async);
  if (call.kernels.empty() || call.kernels[0]->record->variable_writes != 0) return false;
  return std::ranges::any_of(call.kernels, [](const kernel::KernelEntry* entry) {
    return WEIR_HAS(entry->record, compute) && (entry->record->flags & WEIR_KERNEL_ASYNC) != 0;
  });
}

}  // namespace

Status KernelEmitter::GatherInputs(NodeId id) {
  const graph::StepNode& node = c_.node(id);
  Operands& operands = operands_;
  const size_t storages = tape_.plan().storages.size();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId input = c_.values[node.inputs[i]];
    if (!input.valid()) return c_.Input(id, i).status();
    if (c_.step.TypeOf(node.inputs[i]) == DType::kResource) {
      WEIR_ASSIGN(input, HandleOperand(id, static_cast<int>(i)));
    }
    const Value& value = tape_.ValueAt(input);
    kernel::OperandSpec spec;
    spec.dtype = value.dtype;
    spec.shape = value.shape;
    spec.value = ConstantAt(input);
    spec.variable = tape_.IsVariable(input);
    if (spec.variable) WEIR_TRY(variables_.CheckHeld(id, static_cast<int>(i), input));
    operands.shapes_known = operands.shapes_known && value.shape_known;
    operands.strings = operands.strings || !HasFixedSize(value.dtype);
    operands.inputs.push_back(input);
    operands.input_specs.push_back(std::move(spec));
  }
  if (tape_.plan().storages.size() == storages) return {};
  for (size_t i = 0; i < operands.inputs.size(); ++i) {  // resolving a handle moved the storages
    operands.input_specs[i].value = ConstantAt(operands.inputs[i]);
  }
  return {};
}

const Tensor* KernelEmitter::ConstantAt(ValueId value) const {
  const Storage& storage = tape_.StorageAt(value);
  return storage.home == Storage::Home::kConstant && storage.space == kHostSpace ? &storage.constant : nullptr;
}

Status KernelEmitter::Gather(NodeId id) {
  const graph::StepNode& node = c_.node(id);
  const op::Signature& signature = node.source->signature();
  Operands& operands = operands_;
  if (operands.signature != &signature) {
    operands.signature = &signature;
    operands.input_args = ArgOfOperand(signature.input_counts);
    operands.output_args = ArgOfOperand(signature.output_counts);
  }
  operands.inputs.clear();
  operands.input_specs.clear();
  operands.output_specs.clear();
  operands.shapes_known = true;
  operands.strings = false;
  WEIR_TRY(GatherInputs(id));
  for (size_t i = 0; i < node.types.size(); ++i) {
    kernel::OperandSpec spec;
    spec.dtype = BaseType(node.types[i]);
    Result<Shape> shape = node.shapes[i].ToShape();
    if (RefersToInput(node, i)) {
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
  return {};
}

Result<ValueId> KernelEmitter::HandleOperand(NodeId id, int input) {
  const op::OpDef& op = c_.node(id).source->op();
  WEIR_ASSIGN(const ValueId value, c_.Input(id, PositionOf(input)));
  if (RunsOnHost(id)) return variables_.HandleValue(value);
  const size_t arg = PositionOf(operands_.input_args[PositionOf(input)]);
  if (op.inputs[arg].dtype != DType::kResource) {
    return c_.Fail(id,
                   Unimplemented("input {} is a resource handle; {} does not take handles as values", input, op.name));
  }
  return tape_.IsVariable(value) ? Result<ValueId>(value) : variables_.Resolved(id, input);
}

bool KernelEmitter::RunsOnHost(NodeId id) const {
  const graph::Node& node = *c_.node(id).source;
  return c_.options.kernels->FindHost(node.op().name) != nullptr &&
         c_.options.kernels->Find(node.attrs(), c_.DeviceOf(id)->info().platform).empty();
}

Status KernelEmitter::Emit(NodeId id) {
  std::string declined;
  WEIR_ASSIGN(const bool emitted, EmitOnDevice(id, &declined));
  if (emitted) return Status();
  const graph::StepNode& node = c_.node(id);
  if (stands_for_.contains(node.source)) {  // the step can do without a fused op
    return c_.Fail(id, Unimplemented("no kernel runs op {} with these operands", node.source->op().name));
  }
  int& device = c_.placement.device_of[id];
  const int placed = device;
  for (const DeviceId other : OtherDevices(id)) {
    device = other.number();
    const Result<bool> moved = EmitOnDevice(id, nullptr);
    if (!moved.ok() || !*moved) continue;
    graph::Placement& told = tape_.plan().placement;
    told.device_of[id] = other.number();
    tape_.plan().notes.push_back(fmt::format("'{}' runs on {} instead of {}, where no kernel takes its operands: {}",
                                             node.name(), told.devices[other.position()],
                                             told.devices[PositionOf(placed)], declined));
    return Status();
  }
  device = placed;
  // The call gives the reasons, if the step gets there.
  std::vector<const kernel::KernelEntry*> kernels =
      c_.options.kernels->Find(node.source->attrs(), c_.DeviceOf(id)->info().platform);
  if (!kernels.empty()) return EmitCall(id, std::move(kernels));
  return c_.Fail(id, kernel::NoKernelError(*c_.options.kernels, node.source->attrs(), node.name(),
                                           {c_.DeviceOf(id)->info().kind}));
}

std::vector<DeviceId> KernelEmitter::OtherDevices(NodeId id) const {
  const graph::StepNode& node = c_.node(id);
  const auto keeps = [&](const graph::Endpoint& input) { return KeepsVariable(c_.step.TypeOf(input)); };
  const bool tied = std::any_of(node.inputs.begin(), node.inputs.end(), keeps) ||
                    std::any_of(node.types.begin(), node.types.end(), KeepsVariable) || node.frame != graph::kStepFrame;
  std::vector<DeviceId> others;
  if (tied || !(c_.options.allow_soft_placement || node.source->device().empty())) return others;
  for (const DeviceId device : tape_.plan().devices.indices()) {
    const bool opt_in = (tape_.plan().devices[device]->info().flags & WEIR_DEVICE_OPT_IN) != 0;
    if (!opt_in && device != c_.PlacedOn(id)) others.push_back(device);
  }
  return others;
}

Result<bool> KernelEmitter::EmitOnDevice(NodeId id, std::string* declined) {
  WEIR_TRY(Gather(id));
  Operands& operands = operands_;
  device::Device* device = c_.DeviceOf(id);
  if (device == nullptr) return c_.Fail(id, FailedPrecondition("no device runs this node"));
  const bool preparable = operands.shapes_known && !operands.strings;
  if (preparable) {
    const BoundKernels::Bound* const equal =
        bound_.Find(*c_.node(id).source, c_.PlacedOn(id), {operands.input_specs, operands.output_specs});
    if (equal != nullptr) {
      WEIR_TRY(Bind(id, *equal));
      return true;
    }
    if (c_.node(id).source->op().traits.region) {
      WEIR_TRY(EmitRegion(id));
      return true;
    }
  }
  const weir_node node{c_.node(id).name(),
                       c_.node(id).source->attrs(),
                       [&](int i) { return operands.input_specs[PositionOf(i)].value; },
                       c_.options.node_resources,
                       {},
                       c_.options.deterministic};
  std::vector<const kernel::KernelEntry*> kernels = c_.options.kernels->Find(node.attrs, device->info().platform);
  bool all_decline = kernels.empty() && !operands.strings;
  if (preparable) {
    kernels = RankKernels(kernels, node, operands.input_specs, operands.output_specs, *device, c_.options.calibration,
                          declined);
    all_decline = true;
    for (const kernel::KernelEntry* entry : kernels) {
      WEIR_ASSIGN(const Prepared prepared, TryPrepared(id, *entry, node, declined));
      if (prepared == Prepared::kBound) return true;
      all_decline = all_decline && prepared == Prepared::kDeclined && entry->record->compute == nullptr;
      if (entry->record->compute != nullptr) break;  // the best kernel prefers its dynamic form
    }
  }
  const kernel::KernelEntry* const host = c_.options.kernels->FindHost(c_.node(id).source->op().name);
  if (host != nullptr && (all_decline || kernels.empty())) {
    WEIR_TRY(EmitCall(id, {}, host->host.get()));
    return true;
  }
  if (all_decline) return false;
  WEIR_TRY(EmitCall(id, std::move(kernels)));
  return true;
}

Result<KernelEmitter::Prepared> KernelEmitter::TryPrepared(NodeId id, const kernel::KernelEntry& entry,
                                                           const weir_node& node, std::string* declined) {
  Operands& operands = operands_;
  const weir_kernel& record = *entry.record;
  if (record.prepare == nullptr || (record.flags & WEIR_KERNEL_ASYNC) != 0) return Prepared::kNotNow;
  const SpaceId device_space = c_.SpaceOf(id);
  for (size_t i = 0; i < operands.inputs.size(); ++i) {
    const bool host = Masked(record.host_inputs, operands.input_args[i]);
    // Host operands steer the kernel, which reads them when it is prepared: they have to be known by then.
    if (host && operands.input_specs[i].value == nullptr) return Prepared::kNotNow;
    operands.input_specs[i].host = host || device_space == kHostSpace;
  }
  for (size_t i = 0; i < operands.output_specs.size(); ++i) {
    operands.output_specs[i].host = Masked(record.host_outputs, operands.output_args[i]) || device_space == kHostSpace;
  }
  if (const Result<weir_device*> open = c_.DeviceOf(id)->Open(); !open.ok()) return c_.Fail(id, open.status());
  const std::span<const kernel::OperandSpec> in = operands.input_specs, out = operands.output_specs;
  const double ns = DeclaredNanoseconds(entry, node, in, out, true, *c_.DeviceOf(id));
  Result<std::unique_ptr<kernel::PreparedKernel>> prepared = Prepare(entry, node, *c_.DeviceOf(id), ns);
  if (!prepared.ok()) {
    if (prepared.status().code() == Code::kUnimplemented) {
      AddDeclined(entry, prepared.status(), declined);
      return Prepared::kDeclined;
    }
    // Operands that the op cannot be given, or that no memory holds, are an error of the run, if it gets there.
    const Code code = prepared.status().code();
    if (code == Code::kInvalidArgument || code == Code::kResourceExhausted) return Prepared::kNotNow;
    return c_.Fail(id, prepared.status());
  }
  const BoundKernels::Bound bound{static_cast<uint32_t>(tape_.plan().kernels.size()), ns};
  const bool keeps_state = ((*prepared)->flags() & WEIR_KERNEL_STATEFUL) != 0;
  tape_.plan().kernels.push_back(std::move(*prepared));
  if (!keeps_state) bound_.Add(*c_.node(id).source, c_.PlacedOn(id), {in, out}, bound);
  WEIR_TRY(Bind(id, bound));
  return Prepared::kBound;
}

Status KernelEmitter::EmitRegion(NodeId id) {
  for (kernel::OperandSpec& spec : operands_.input_specs) spec.host = true;
  for (kernel::OperandSpec& spec : operands_.output_specs) spec.host = true;
  const graph::Node& source = *c_.node(id).source;
  Result<Region> region = MakeRegion(
      c_.options, {&c_.step.graph->ops(), source.attrs(), operands_.input_specs, operands_.output_specs.data()},
      *c_.DeviceOf(id));
  if (!region.ok()) return c_.Fail(id, region.status());
  const BoundKernels::Bound bound{static_cast<uint32_t>(tape_.plan().kernels.size()), region->ns};
  tape_.plan().kernels.push_back(std::move(region->kernel));
  bound_.Add(source, c_.PlacedOn(id), {operands_.input_specs, operands_.output_specs}, bound);
  return Bind(id, bound);
}

Result<std::unique_ptr<kernel::PreparedKernel>> KernelEmitter::Prepare(const kernel::KernelEntry& entry,
                                                                       const weir_node& node, device::Device& device,
                                                                       double ns) const {
  WEIR_ASSIGN(weir_device* const open, device.Open());
  const auto prepare = [&](uint64_t tiles) {
    return kernel::PreparedKernel::Make(entry, node, operands_.input_specs, operands_.output_specs, open, tiles);
  };
  const bool cut = ns >= kTiledNanoseconds && !device.has_streams();
  WEIR_ASSIGN(std::unique_ptr<kernel::PreparedKernel> prepared, prepare(cut ? c_.options.max_tiles : 1));
  const bool whole = prepared->tiles() > 1 && (prepared->tile_scratch_bytes() * prepared->tiles() > kMostTileScratch ||
                                               (prepared->flags() & WEIR_KERNEL_STATEFUL) != 0);
  if (whole) return prepare(1);
  return prepared;
}

Status KernelEmitter::MoveInputs(NodeId id, const weir_kernel& record) {
  const SpaceId device_space = c_.SpaceOf(id);
  for (size_t i = 0; i < operands_.inputs.size(); ++i) {
    const SpaceId space = Masked(record.host_inputs, operands_.input_args[i]) ? kHostSpace : device_space;
    WEIR_ASSIGN(operands_.inputs[i], c_.Located(operands_.inputs[i], space));
  }
  return {};
}

std::vector<ValueId> KernelEmitter::MakeOutputs(NodeId id, const weir_kernel& record, Placing placing,
                                                const kernel::PreparedKernel* kernel) {
  const std::vector<ValueId>& inputs = operands_.inputs;
  const graph::StepNode& node = c_.node(id);
  const SpaceId device_space = c_.SpaceOf(id);
  std::vector<ValueId> outputs;
  outputs.reserve(node.types.size() + 1);  // with scratch memory
  for (size_t i = 0; i < node.types.size(); ++i) {
    ValueId view_of;
    if (kernel != nullptr) {
      for (const weir_alias& alias : kernel->aliases()) {
        if (alias.kind == WEIR_ALIAS_MUST && alias.output == i) view_of = inputs[alias.input];
      }
    }
    if (RefersToInput(node, i)) {
      outputs.push_back(inputs[0]);
    } else if (view_of.valid() && !tape_.IsVariable(view_of)) {
      outputs.push_back(tape_.ViewOf(view_of, node.shapes[i]));
    } else {
      const bool host = Masked(record.host_outputs, operands_.output_args[i]);
      outputs.push_back(
          tape_.NewValue(BaseType(node.types[i]), node.shapes[i], host ? kHostSpace : device_space, placing));
    }
    c_.values[{id, static_cast<int>(i)}] = outputs.back();
  }
  return outputs;
}

std::vector<Lock> KernelEmitter::LocksOf(const weir_kernel* record) const {
  std::vector<Lock> locks;
  for (size_t i = 0; i < operands_.inputs.size(); ++i) {
    const ValueId input = operands_.inputs[i];
    if (!tape_.IsVariable(input)) continue;
    const bool writes = record != nullptr && Masked(record->variable_writes, operands_.input_args[i]);
    locks.push_back({tape_.VariableOf(input), writes});
  }
  return locks;
}

Status KernelEmitter::Bind(NodeId id, const BoundKernels::Bound& bound) {
  const kernel::PreparedKernel* const kernel = tape_.plan().kernels[bound.kernel].get();
  const weir_kernel& record = *kernel->entry().record;
  WEIR_TRY(MoveInputs(id, record));
  std::vector<ValueId> outputs = MakeOutputs(id, record, Placing::kPlanned, kernel);
  if (kernel->fn() == nullptr) return Status();  // all outputs are views
  const SpaceId space = c_.SpaceOf(id);
  if (kernel->scratch_bytes() > 0) {
    outputs.push_back(tape_.NewScratch(kernel->reserved_scratch_bytes(), kernel->scratch_alignment(), space));
  }
  std::vector<Lock> locks = LocksOf(&record);
  const bool serialized = (kernel->flags() & WEIR_KERNEL_STATEFUL) != 0;
  const Opcode opcode = !locks.empty() || serialized      ? Opcode::kLockedKernel
                        : HasStreams(tape_.plan(), space) ? Opcode::kStreamKernel
                        : kernel->tiles() > 1             ? Opcode::kTiledKernel
                                                          : Opcode::kKernel;
  Instruction& instruction = tape_.Emit(opcode, operands_.inputs, outputs, {.ns = bound.ns});
  instruction.device = c_.PlacedOn(id);
  instruction.memory = space;
  instruction.fn = kernel->fn();
  instruction.state = kernel->state();
  instruction.serialized = serialized;
  instruction.detail = bound.kernel;
  tape_.SetLocks(std::move(locks), instruction);
  for (const weir_alias& alias : kernel->aliases()) {
    if (alias.kind == WEIR_ALIAS_MAY) tape_.AllowSharing(alias.input, alias.output);
  }
  return Status();
}

Status KernelEmitter::EmitCall(NodeId id, std::vector<const kernel::KernelEntry*> kernels,
                               const kernel::BuiltinKernel* host) {
  WEIR_TRY(Gather(id));
  const Operands& operands = operands_;
  // Kernels that move strings as numbers are found when they are called; of these ops only the state's own write.
  static const weir_kernel kOnHost = [] {
    weir_kernel record{};
    record.host_inputs = record.host_outputs = std::numeric_limits<uint64_t>::max();
    record.variable_writes = 1;
    return record;
  }();
  const op::OpDef& op = c_.node(id).source->op();
  CallSpec call;
  call.graph = c_.step.graph;
  call.node = c_.node(id).source;
  call.kernels = std::move(kernels);
  // Strings are on the host, also those of other devices' nodes.
  call.device = operands.strings && tape_.plan().host_device != nullptr ? tape_.plan().host_device : c_.DeviceOf(id);
  call.resources = c_.options.node_resources;
  call.scope = c_.options.resources;
  call.registry = c_.options.kernels;
  call.calibration = c_.options.calibration;
  call.deterministic = c_.options.deterministic;
  call.builtin = host;
  call.suspends = MayCompleteLater(call);
  TapeNote note;
  note.suspends = call.suspends;
  note.blocks = call.suspends || (call.builtin != nullptr && call.builtin->blocks);
  if (!call.kernels.empty() && call.device != nullptr) {
    const weir_node node{c_.node(id).name(), c_.node(id).source->attrs(), {}, nullptr, {}};
    note.ns = DeclaredNanoseconds(*call.kernels[0], node, operands.input_specs, operands.output_specs,
                                  operands.shapes_known, *call.device);
  }
  const bool metadata = op.run_by == op::RunBy::kUniversal;
  const weir_kernel& record = call.kernels.empty() ? kOnHost : *call.kernels[0]->record;
  if (!metadata) WEIR_TRY(MoveInputs(id, record));
  for (size_t i = 1; metadata && i < operands_.inputs.size(); ++i) {  // new shapes and the like
    WEIR_ASSIGN(operands_.inputs[i], c_.Located(operands_.inputs[i], kHostSpace));
  }
  std::vector<ValueId> outputs;
  if (metadata) {
    const bool keeps_memory = op.traits.universal == op::Universal::kReshape;
    const SpaceId space = keeps_memory ? tape_.StorageAt(operands.inputs[0]).space : kHostSpace;
    for (size_t i = 0; i < c_.node(id).types.size(); ++i) {
      outputs.push_back(tape_.NewValue(c_.node(id).types[i], c_.node(id).shapes[i], space, Placing::kAtRun));
      c_.values[{id, static_cast<int>(i)}] = outputs.back();
    }
  } else {
    outputs = MakeOutputs(id, record, Placing::kAtRun, nullptr);
  }
  Instruction& instruction = tape_.Emit(Opcode::kCall, operands.inputs, outputs, note);
  instruction.detail = static_cast<uint32_t>(tape_.plan().calls.size());
  if (call.device == c_.DeviceOf(id)) {
    instruction.device = c_.PlacedOn(id);
    instruction.memory = c_.SpaceOf(id);
  }
  const bool writes = !call.kernels.empty() || (operands.strings && op.category == op::Category::kState);
  tape_.SetLocks(LocksOf(writes ? &record : nullptr), instruction);
  tape_.plan().calls.push_back(std::move(call));
  return Status();
}

}  // namespace weir::plan
