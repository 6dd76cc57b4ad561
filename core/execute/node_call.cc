#include "core/execute/node_call.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <list>
#include <utility>

#include "core/base/errors.h"
#include "core/execute/streams.h"
#include "core/execute/string_ids_internal.h"
#include "core/execute/unshared.h"
#include "core/kernel/launch.h"
#include "core/kernel/operand_args.h"
#include "core/tensor/buffer.h"

namespace weir::execute {

using kernel::ArgOfOperand;
using kernel::Masked;

namespace {

constexpr size_t kCachedKernels = 8;
constexpr uint64_t kLargestKey = 4096;

/// An alias of the kernel whose input is unshared, so that the kernel may overwrite it; null if there is none.
const weir_alias* InPlace(const kernel::PreparedKernel& kernel, const std::vector<Tensor>& inputs) {
  for (const weir_alias& alias : kernel.aliases()) {
    const Tensor& input = inputs[alias.input];
    if (alias.kind == WEIR_ALIAS_MAY && Unshared(input) && !input.buffer()->lent()) return &alias;
  }
  return nullptr;
}

}  // namespace

/// A cached way to run a call with given operands. The kernel and its output shapes depend on the input shapes and on
/// the values of shape operands.
struct Recipe {
  const kernel::KernelEntry* first = nullptr;  // of the candidates; calls on string elements have others
  const kernel::KernelEntry* entry = nullptr;
  std::vector<Shape> inputs;
  std::vector<std::pair<size_t, Tensor>> steering;  // shape operands: (input, copy of its value)
  std::vector<kernel::OperandSpec> outputs;
  std::shared_ptr<kernel::PreparedKernel> kernel;

  bool Serves(const kernel::KernelEntry* candidate, const std::vector<Tensor>& operands) const {
    if (candidate != first || operands.size() != inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!(operands[i].shape() == inputs[i])) return false;
    }
    return std::all_of(steering.begin(), steering.end(), [&](const auto& value) {
      const Tensor& operand = operands[value.first];
      return operand.raw() != nullptr && operand.dtype() == value.second.dtype() &&
             std::memcmp(operand.raw(), value.second.raw(), operand.bytes()) == 0;
    });
  }
};

/// Recipes of recent calls, and the dynamic forms of kernels.
struct NodeCall::Cache {
  std::mutex mutex;                                  // protects the two below
  std::list<std::shared_ptr<const Recipe>> recipes;  // most recent first
  std::map<const kernel::KernelEntry*, std::unique_ptr<kernel::DynamicKernel>> dynamic;
  std::mutex running;  // serializes stateful kernels
};

NodeCall::NodeCall(plan::CallSpec spec) : spec_(std::move(spec)), cache_(std::make_unique<Cache>()) {
  if (Result<op::Signature> signature = op::Expand(spec_.node->attrs()); signature.ok()) {
    input_args_ = ArgOfOperand(signature->input_counts);
    output_args_ = ArgOfOperand(signature->output_counts);
  }
}

NodeCall::~NodeCall() = default;
NodeCall::NodeCall(NodeCall&&) noexcept = default;

Result<std::vector<Tensor>> NodeCall::Run(std::vector<Tensor> inputs, const StepArgs& step) {
  std::promise<Result<std::vector<Tensor>>> completed;
  kernel::Later later;
  later.done = runtime::Completion([&](Result<std::vector<Tensor>> made) { completed.set_value(std::move(made)); });
  WEIR_ASSIGN(Outputs outputs, Start(std::move(inputs), step, later));
  if (outputs) return std::move(*outputs);
  return Finish(completed.get_future().get(), later);
}

Result<NodeCall::Outputs> NodeCall::Start(std::vector<Tensor> inputs, const StepArgs& step, kernel::Later& later) {
  Result<Outputs> outputs = [&]() -> Result<Outputs> {
    if (spec_.builtin != nullptr) return RunBuiltin(std::move(inputs), step, later);
    if (spec_.node->op().run_by == op::RunBy::kUniversal) return RunUniversal(inputs, step.streams);
    const auto is_string = [](const auto& x) { return x == DType::kString; };
    const auto types = spec_.node->output_types();
    const bool strings =
        std::any_of(types.begin(), types.end(), is_string) ||
        std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.dtype() == DType::kString; });
    if (strings) {
      // Kernels that access strings through the host have a dynamic form; the others get numbers instead of strings.
      auto entries = spec_.kernels;
      std::erase_if(entries, [](const kernel::KernelEntry* entry) { return entry->record->compute == nullptr; });
      if (entries.empty()) return RunStrings(std::move(inputs), step);
      return RunKernels(entries, spec_.node->attrs(), std::move(inputs), types, step, later);
    }
    return RunKernels(spec_.kernels, spec_.node->attrs(), std::move(inputs), types, step, later);
  }();
  if (!outputs.ok()) return graph::AtNode(outputs.status(), *spec_.node);
  return outputs;
}

Result<std::vector<Tensor>> NodeCall::Finish(Result<std::vector<Tensor>> made, const kernel::Later& later) const {
  Status status = made.status();
  if (status.ok() && spec_.builtin != nullptr) status = CheckBuiltin(*made);
  if (status.ok()) return made;
  if (spec_.builtin == nullptr) status = spec_.device->Judge(status, later.error_flags);
  return graph::AtNode(status, *spec_.node);
}

Result<std::vector<PartialShape>> NodeCall::Infer(const std::vector<Tensor>& inputs, RunStreams* streams,
                                                  std::vector<bool>* asked) {
  std::vector<PartialShape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool handle = spec_.node->signature().inputs[i] == DType::kResource;  // passed as the variable's value
    shapes.emplace_back(handle ? Shape() : inputs[i].shape());
  }
  std::vector<Tensor> on_host(inputs.size());
  const auto value = [&](int i) -> const Tensor* {
    const Tensor& input = inputs[static_cast<size_t>(i)];
    if (asked != nullptr) (*asked)[static_cast<size_t>(i)] = true;
    if (input.on_host()) return &input;
    Tensor& host = on_host[static_cast<size_t>(i)];
    if (!host.valid()) {
      Result<Tensor> moved = ToHost(input, streams);
      if (!moved.ok()) return nullptr;
      host = std::move(*moved);
    }
    return &host;
  };
  // The types were checked by the plan.
  const auto held = [&](int i) {
    return op::HeldValue{DType::kInvalid, PartialShape(inputs[static_cast<size_t>(i)].shape())};
  };
  return graph::InferShapes(*spec_.graph, *spec_.node, shapes, value, held);
}

Result<std::vector<Tensor>> NodeCall::RunUniversal(const std::vector<Tensor>& inputs, RunStreams* streams) {
  const op::Traits& traits = spec_.node->op().traits;
  std::vector<Tensor> outputs;
  if (traits.shape_query != nullptr) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      WEIR_ASSIGN(Tensor value,
                  traits.shape_query(inputs[i].shape(), static_cast<int>(i), spec_.node->output_types()[i]));
      outputs.push_back(std::move(value));
    }
    return outputs;
  }
  if (traits.universal == op::Universal::kReshape) {
    const auto view = [&]() -> Result<Tensor> {
      WEIR_ASSIGN(const std::vector<PartialShape> shapes, Infer(inputs, streams));
      WEIR_ASSIGN(Shape shape, shapes[0].ToShape());
      return inputs[0].Reshaped(std::move(shape));
    };
    Result<Tensor> made = view();
    if (!made.ok()) return traits.refusal != nullptr ? traits.refusal(made.status(), inputs) : made.status();
    outputs.push_back(std::move(*made));
    return outputs;
  }
  return inputs;  // identities
}

Result<NodeCall::Outputs> NodeCall::RunBuiltin(std::vector<Tensor> inputs, const StepArgs& step, kernel::Later& later) {
  for (Tensor& input : inputs) {
    if (input.on_host()) continue;
    WEIR_ASSIGN(input, ToHost(input, step.streams));
  }
  const bool host = spec_.device != nullptr && spec_.device->host_memory();
  kernel::BuiltinCall call{spec_.node->name(), spec_.node->attrs(),
                           std::move(inputs),  std::vector<Tensor>(spec_.node->output_types().size()),
                           spec_.resources,    spec_.scope,
                           step.cancellation,  step.step_id,
                           spec_.device,       host ? &spec_.device->allocator() : &HostAllocator(),
                           step.resources};
  if (spec_.builtin->async) {
    spec_.builtin->async(std::move(call), std::move(later.done));
    return Outputs();
  }
  WEIR_TRY(spec_.builtin->fn(call));
  WEIR_TRY(CheckBuiltin(call.outputs));
  return Outputs(std::move(call.outputs));
}

Status NodeCall::CheckBuiltin(const std::vector<Tensor>& outputs) const {
  const auto types = spec_.node->output_types();
  const std::string& op = spec_.node->op().name;
  if (outputs.size() != types.size())
    return Internal("{} gave {} outputs, wanted {}", op, outputs.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (outputs[i].dtype() == BaseType(types[i])) continue;
    return Internal("output {} of {} came as {}, wanted {}", i, op, Name(outputs[i].dtype()), Name(types[i]));
  }
  return {};
}

Result<std::vector<Tensor>> NodeCall::RunStrings(std::vector<Tensor> inputs, const StepArgs& step) {
  if (!spec_.node->op().traits.moves_elements) {
    return Unimplemented("op {} has no kernel for strings", spec_.node->op().name);
  }
  StringIds ids;
  std::vector<Tensor> numbered;
  for (const Tensor& input : inputs) {
    WEIR_ASSIGN(Tensor moved, ids.Encode(input));
    numbered.push_back(std::move(moved));
  }
  const op::AttrList attrs = WithoutStrings(spec_.node->attrs().explicit_values());
  const op::AttrView view(spec_.node->op(), attrs);
  const auto entries = spec_.registry->Find(view, spec_.device->info().platform);
  if (entries.empty()) return Unimplemented("op {} has no kernel for strings", spec_.node->op().name);
  std::vector<DType> types;
  for (const DType t : spec_.node->output_types()) {
    const DType moved = BaseType(t) == DType::kString ? DType::kInt64 : BaseType(t);
    types.push_back(IsRef(t) ? RefType(moved) : moved);
  }
  kernel::Later never;  // entries move elements; such kernels never complete later
  WEIR_ASSIGN(Outputs made, RunKernels(entries, view, numbered, types, step, never));
  if (!made) return Internal("kernel of {} for numbers completes later", spec_.node->op().name);
  std::vector<Tensor>& outputs = *made;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (spec_.node->output_types()[i] != DType::kString) continue;
    WEIR_ASSIGN(outputs[i], ids.Decode(outputs[i]));
  }
  if (inputs[0].dtype() == DType::kString && Masked(entries[0]->record->variable_writes, 0)) {
    WEIR_ASSIGN(Tensor changed, ids.Decode(numbered[0]));
    // The variable's own memory, under the lock that the caller holds, even if `inputs` shares it.
    auto* const variable = reinterpret_cast<std::string*>(inputs[0].buffer()->host() + inputs[0].offset());
    std::ranges::move(changed.mutable_as<std::string>(), variable);
  }
  return std::move(outputs);
}

namespace {

/// For a node whose outputs have no known shape although all operands are known: InvalidArgument with TensorFlow's text
/// if a vector of integers, of which one is the shape, has a negative element.
Status CheckExtents(std::span<const Tensor> operands) {
  const auto check = [](const auto values) {
    for (const int64_t extent : values) {
      if (extent < 0) return InvalidArgument("Dimension {} must be >= 0", extent);
    }
    return Status();
  };
  for (const Tensor& operand : operands) {
    if (operand.shape().rank() != 1 || !operand.on_host()) continue;
    if (operand.dtype() == DType::kInt32) WEIR_TRY(check(operand.as<int32_t>()));
    if (operand.dtype() == DType::kInt64) WEIR_TRY(check(operand.as<int64_t>()));
  }
  return Status();
}

}  // namespace

Result<NodeCall::Outputs> NodeCall::RunKernels(const std::vector<const kernel::KernelEntry*>& entries,
                                               op::AttrView attrs, std::vector<Tensor> inputs,
                                               std::span<const DType> output_types, const StepArgs& step,
                                               kernel::Later& later) {
  if (!entries.empty()) {
    if (const std::shared_ptr<const Recipe> known = Find(entries[0], inputs)) {
      return Follow(*known, inputs, step.streams);
    }
  }
  std::vector<bool> asked(inputs.size(), false);
  const Result<std::vector<PartialShape>> inferred = Infer(inputs, step.streams, &asked);
  if (!inferred.ok()) return Refusal(inferred.status(), entries, attrs, inputs, output_types);
  const std::vector<PartialShape>& shapes = *inferred;
  const bool known = std::all_of(shapes.begin(), shapes.end(), [](const PartialShape& s) { return s.fully_defined(); });
  std::string declined;
  const auto ranked = known ? Ranked(entries, attrs, inputs, output_types, shapes, &declined) : entries;
  for (const kernel::KernelEntry* entry : ranked) {
    if (known && entry->record->prepare != nullptr) {
      Recipe recipe{entries[0], entry, {}, {}, {}, {}};
      const Status prepared = Prepare(attrs, inputs, output_types, shapes, recipe);
      if (prepared.ok()) {
        const bool keep = Remember(recipe, asked, inputs);  // before the kernel can overwrite them
        Result<std::vector<Tensor>> outputs = Follow(recipe, inputs, step.streams);
        if (outputs.ok() && keep) Keep(std::move(recipe));
        return outputs;
      }
      if (prepared.code() != Code::kUnimplemented) return prepared;
      plan::AddDeclined(*entry, prepared, &declined);
    }
    if (entry->record->compute == nullptr) continue;
    return RunDynamic(*entry, attrs, std::move(inputs), output_types, step, later);
  }
  if (!known) WEIR_TRY(CheckExtents(inputs));
  return Unimplemented("no kernel of op {} on {} runs with these operands{}{}", spec_.node->op().name,
                       spec_.device->name(), declined.empty() ? "" : ": ", declined);
}

std::vector<const kernel::KernelEntry*> NodeCall::Ranked(const std::vector<const kernel::KernelEntry*>& entries,
                                                         op::AttrView attrs, const std::vector<Tensor>& inputs,
                                                         std::span<const DType> output_types,
                                                         const std::vector<PartialShape>& shapes,
                                                         std::string* declined) {
  if (entries.size() < 2 && (entries.empty() || !WEIR_HAS(entries[0]->record, supports))) return entries;
  const Result<Operands> operands = Describe(*entries[0]->record, inputs, output_types, shapes);
  if (!operands.ok()) return entries;
  // If the device does not use host memory, the operands are where the first kernel needs them.
  std::vector<const kernel::KernelEntry*> alike = entries;
  if (!spec_.device->host_memory()) {
    std::erase_if(alike, [&](const kernel::KernelEntry* entry) {
      return entry->record->host_inputs != entries[0]->record->host_inputs ||
             entry->record->host_outputs != entries[0]->record->host_outputs;
    });
  }
  const weir_node node{spec_.node->name(), attrs, [&](int i) { return operands->in[static_cast<size_t>(i)].value; },
                       spec_.resources,    {},    spec_.deterministic};
  return plan::RankKernels(alike, node, operands->in, operands->out, *spec_.device, spec_.calibration, declined);
}

Result<NodeCall::Operands> NodeCall::Describe(const weir_kernel& record, const std::vector<Tensor>& inputs,
                                              std::span<const DType> output_types,
                                              const std::vector<PartialShape>& shapes) const {
  const bool host_device = spec_.device->host_memory();
  Operands operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool steers = Masked(record.host_inputs, input_args_[i]);
    operands.in.push_back({inputs[i].dtype(), inputs[i].shape(), steers ? &inputs[i] : nullptr,
                           Masked(record.variable_writes | record.variable_reads, input_args_[i]),
                           steers || host_device});
  }
  for (size_t i = 0; i < output_types.size(); ++i) {
    const bool reference = IsRef(output_types[i]);
    WEIR_ASSIGN(Shape shape, reference ? Result<Shape>(inputs[0].shape()) : shapes[i].ToShape());
    operands.out.push_back({BaseType(output_types[i]), std::move(shape), nullptr, reference,
                            host_device || Masked(record.host_outputs, output_args_[i])});
  }
  return operands;
}

Result<NodeCall::Outputs> NodeCall::RunDynamic(const kernel::KernelEntry& entry, op::AttrView attrs,
                                               std::vector<Tensor> inputs, std::span<const DType> output_types,
                                               const StepArgs& step, kernel::Later& later) {
  WEIR_ASSIGN(kernel::DynamicKernel* const dynamic, Dynamic(entry, attrs));
  std::vector<DType> types;
  for (const DType t : output_types) types.push_back(BaseType(t));
  const kernel::LaunchArgs args{.device = spec_.device,
                                .stream = step.streams == nullptr ? nullptr : step.streams->Of(spec_.device),
                                .step_id = step.step_id,
                                .cancellation = step.cancellation,
                                .threads = step.intra_op};
  return kernel::LaunchDynamic(*dynamic, std::move(inputs), types, args, later);
}

Result<kernel::DynamicKernel*> NodeCall::Dynamic(const kernel::KernelEntry& entry, op::AttrView attrs) {
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  auto& made = cache_->dynamic[&entry];
  if (!made) {
    weir_node node{spec_.node->name(), attrs, {}, spec_.resources, {}};
    WEIR_ASSIGN(weir_device* const device, spec_.device->Open());
    WEIR_ASSIGN(made, kernel::DynamicKernel::Make(entry, node, device));
  }
  return made.get();
}

std::shared_ptr<const Recipe> NodeCall::Find(const kernel::KernelEntry* first, const std::vector<Tensor>& inputs) {
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  for (auto it = cache_->recipes.begin(); it != cache_->recipes.end(); ++it) {
    if (!(*it)->Serves(first, inputs)) continue;
    cache_->recipes.splice(cache_->recipes.begin(), cache_->recipes, it);
    return cache_->recipes.front();
  }
  return nullptr;
}

bool NodeCall::Remember(Recipe& recipe, const std::vector<bool>& asked, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!asked[i] && !Masked(recipe.entry->record->host_inputs, input_args_[i])) continue;
    if (inputs[i].raw() == nullptr || inputs[i].bytes() > kLargestKey || !HasFixedSize(inputs[i].dtype())) return false;
    Result<Tensor> value = inputs[i].Clone();
    if (!value.ok()) return false;
    recipe.steering.emplace_back(i, std::move(*value));
  }
  return true;
}

void NodeCall::Keep(Recipe recipe) {
  const std::lock_guard<std::mutex> lock(cache_->mutex);
  cache_->recipes.push_front(std::make_shared<const Recipe>(std::move(recipe)));
  if (cache_->recipes.size() > kCachedKernels) cache_->recipes.pop_back();
}

Status NodeCall::Refusal(const Status& inferred, const std::vector<const kernel::KernelEntry*>& entries,
                         op::AttrView attrs, const std::vector<Tensor>& inputs, std::span<const DType> output_types) {
  if (entries.empty() || entries[0]->record->prepare == nullptr) return inferred;
  const std::vector<PartialShape> any(output_types.size(), PartialShape(Shape()));
  Recipe recipe{entries[0], entries[0], {}, {}, {}, {}};
  const Status said = Prepare(attrs, inputs, output_types, any, recipe);
  return said.code() == Code::kInvalidArgument ? said : inferred;
}

Status NodeCall::Prepare(op::AttrView attrs, const std::vector<Tensor>& inputs, std::span<const DType> output_types,
                         const std::vector<PartialShape>& shapes, Recipe& recipe) {
  WEIR_ASSIGN(const Operands operands, Describe(*recipe.entry->record, inputs, output_types, shapes));
  for (const kernel::OperandSpec& input : operands.in) recipe.inputs.push_back(input.shape);
  recipe.outputs = operands.out;
  weir_node node{spec_.node->name(), attrs, [&](int i) { return operands.in[static_cast<size_t>(i)].value; },
                 spec_.resources,    {},    spec_.deterministic};
  WEIR_ASSIGN(weir_device* const device, spec_.device->Open());
  WEIR_ASSIGN(recipe.kernel, kernel::PreparedKernel::Make(*recipe.entry, node, operands.in, operands.out, device));
  return Status();
}

Result<std::vector<Tensor>> NodeCall::Follow(const Recipe& recipe, const std::vector<Tensor>& inputs,
                                             RunStreams* streams) {
  kernel::Launch launch(recipe.kernel, {.device = spec_.device,
                                        .stream = streams == nullptr ? nullptr : streams->Of(spec_.device),
                                        .serial = &cache_->running});
  if (spec_.device->host_memory()) {
    if (const weir_alias* const alias = InPlace(*recipe.kernel, inputs)) launch.InPlace(*alias);
  }
  WEIR_TRY(launch.Bind(inputs, recipe.outputs));
  WEIR_TRY(launch.Run());
  return launch.TakeOutputs();
}

Result<Tensor> NodeCall::ToHost(const Tensor& tensor, RunStreams* streams) {
  return streams != nullptr ? streams->ToHost(*spec_.device, tensor) : spec_.device->ToHost(tensor);
}

}  // namespace weir::execute
