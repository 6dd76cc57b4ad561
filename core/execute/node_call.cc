#include "core/execute/node_call.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <string_view>
#include <utility>

#include "core/execute/streams.h"
#include "core/execute/string_ids_internal.h"
#include "core/graph/shape_values.h"
#include "core/kernel/operand_args.h"
#include "core/tensor/number.h"

namespace weir::execute {

using kernel::ArgOfOperand;
using kernel::Masked;

namespace {

constexpr size_t kCachedKernels = 8;
constexpr uint64_t kLargestKey = 4096;

/// What Reshape says while it runs where shape inference, whose words are others, refused its operands.
Status ReshapeRefusal(const Status& inferred, const Tensor& value, const Tensor& wanted) {
  if (wanted.raw() == nullptr) return inferred;
  int64_t elements = 1, open = 0;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const int64_t extent = ElementAsInt(wanted, i);
    if (extent == -1 && ++open == 1) continue;
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return inferred;
  }
  return InvalidArgument("Input to reshape is a tensor with {} values, but the requested shape {} {}", value.elements(),
                         open > 0 && elements > 0 ? "requires a multiple of" : "has", elements);
}

}  // namespace

/// How a call with such operands is run. A kernel and the shapes of its outputs depend on the shapes of the inputs and
/// on the values of those that steer it.
struct Recipe {
  const kernel::KernelEntry* first = nullptr;  // of the candidates: calls on string elements have others
  const kernel::KernelEntry* entry = nullptr;
  std::vector<Shape> inputs;
  std::vector<std::pair<size_t, Tensor>> steering;  // input, a copy of its value
  std::vector<Shape> outputs;
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
  std::mutex running;  // serializes kernels that change their state
};

NodeCall::NodeCall(plan::CallSpec spec) : spec_(std::move(spec)), cache_(std::make_unique<Cache>()) {
  if (Result<op::Signature> signature = op::Expand(spec_.node->attrs()); signature.ok()) {
    input_args_ = ArgOfOperand(signature->input_counts);
    output_args_ = ArgOfOperand(signature->output_counts);
  }
}

NodeCall::~NodeCall() = default;
NodeCall::NodeCall(NodeCall&&) noexcept = default;

weir_reg RegisterOf(const Tensor& tensor, const weir_shape* shape) {
  weir_reg reg{};
  reg.shape = shape;
  reg.dtype = static_cast<uint32_t>(tensor.dtype());
  if (tensor.buffer() == nullptr) return reg;
  const weir_buf& memory = tensor.buffer()->memory();
  reg.handle = memory.handle;
  reg.data = memory.host != nullptr ? reinterpret_cast<uint64_t>(memory.host) + tensor.offset()
                                    : memory.offset + tensor.offset();
  return reg;
}

Result<std::vector<Tensor>> NodeCall::Run(std::vector<Tensor> inputs, const StepArgs& step) {
  Result<std::vector<Tensor>> outputs = [&]() -> Result<std::vector<Tensor>> {
    if (spec_.builtin != nullptr) return RunBuiltin(std::move(inputs), step.streams);
    if (spec_.node->op().run_by == op::RunBy::kUniversal) return RunUniversal(inputs, step.streams);
    const auto is_string = [](const auto& x) { return x == DType::kString; };
    const auto types = spec_.node->output_types();
    const bool strings =
        std::any_of(types.begin(), types.end(), is_string) ||
        std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.dtype() == DType::kString; });
    if (strings) {
      // A kernel that reaches strings through the host has the dynamic form; the others are given numbers for them.
      auto entries = spec_.kernels;
      std::erase_if(entries, [](const kernel::KernelEntry* entry) { return entry->record->compute == nullptr; });
      if (entries.empty()) return RunStrings(std::move(inputs), step);
      return RunKernels(entries, spec_.node->attrs(), std::move(inputs), types, step);
    }
    return RunKernels(spec_.kernels, spec_.node->attrs(), std::move(inputs), types, step);
  }();
  if (!outputs.ok()) return graph::AtNode(outputs.status(), *spec_.node);
  return outputs;
}

Result<std::vector<PartialShape>> NodeCall::Infer(const std::vector<Tensor>& inputs, RunStreams* streams,
                                                  std::vector<bool>* asked) {
  std::vector<PartialShape> shapes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool handle = spec_.node->signature().inputs[i] == DType::kResource;  // comes as the variable's value
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
  // The types agree: the plan compared them.
  const auto held = [&](int i) {
    return op::HeldValue{DType::kInvalid, PartialShape(inputs[static_cast<size_t>(i)].shape())};
  };
  return graph::InferShapes(*spec_.graph, *spec_.node, shapes, value, held);
}

Result<std::vector<Tensor>> NodeCall::RunUniversal(const std::vector<Tensor>& inputs, RunStreams* streams) {
  const std::string_view op = spec_.node->op().name;
  std::vector<Tensor> outputs;
  if (graph::AsksForShape(op)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      WEIR_ASSIGN(Tensor value,
                  graph::ShapeValue(op, static_cast<int>(i), inputs[i].shape(), spec_.node->output_types()[i]));
      outputs.push_back(std::move(value));
    }
    return outputs;
  }
  if (kernel::OnlyReshapes(op)) {
    const auto view = [&]() -> Result<Tensor> {
      WEIR_ASSIGN(const std::vector<PartialShape> shapes, Infer(inputs, streams));
      WEIR_ASSIGN(Shape shape, shapes[0].ToShape());
      return inputs[0].Reshaped(std::move(shape));
    };
    Result<Tensor> made = view();
    if (!made.ok()) return op == "Reshape" ? ReshapeRefusal(made.status(), inputs[0], inputs[1]) : made.status();
    outputs.push_back(std::move(*made));
    return outputs;
  }
  return inputs;  // identities
}

Result<std::vector<Tensor>> NodeCall::RunBuiltin(std::vector<Tensor> inputs, RunStreams* streams) {
  for (Tensor& input : inputs) {
    if (input.on_host()) continue;
    WEIR_ASSIGN(input, ToHost(input, streams));
  }
  const auto types = spec_.node->output_types();
  kernel::BuiltinCall call{spec_.node->name(), spec_.node->attrs(), std::move(inputs),
                           std::vector<Tensor>(types.size()), spec_.resources};
  WEIR_TRY((*spec_.builtin)(call));
  for (size_t i = 0; i < types.size(); ++i) {
    if (call.outputs[i].dtype() != BaseType(types[i])) {
      return Internal("output {} of {} came as {}, wanted {}", i, spec_.node->op().name, Name(call.outputs[i].dtype()),
                      Name(types[i]));
    }
  }
  return std::move(call.outputs);
}

Result<std::vector<Tensor>> NodeCall::RunStrings(std::vector<Tensor> inputs, const StepArgs& step) {
  if (!MovesElements(spec_.node->op().name)) {
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
  WEIR_ASSIGN(std::vector<Tensor> outputs, RunKernels(entries, view, numbered, types, step));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (spec_.node->output_types()[i] != DType::kString) continue;
    WEIR_ASSIGN(outputs[i], ids.Decode(outputs[i]));
  }
  if (inputs[0].dtype() == DType::kString && Masked(entries[0]->record->variable_writes, 0)) {
    WEIR_ASSIGN(Tensor changed, ids.Decode(numbered[0]));
    // The variable's own memory, whose lock the caller has, also where `inputs` shares it.
    auto* const variable = reinterpret_cast<std::string*>(inputs[0].buffer()->host() + inputs[0].offset());
    std::ranges::move(changed.mutable_as<std::string>(), variable);
  }
  return outputs;
}

Result<std::vector<Tensor>> NodeCall::RunKernels(const std::vector<const kernel::KernelEntry*>& entries,
                                                 op::AttrView attrs, std::vector<Tensor> inputs,
                                                 std::span<const DType> output_types, const StepArgs& step) {
  if (!entries.empty()) {
    if (const std::shared_ptr<const Recipe> known = Find(entries[0], inputs)) {
      return Follow(*known, inputs, output_types, step.streams);
    }
  }
  std::vector<bool> asked(inputs.size(), false);
  const Result<std::vector<PartialShape>> inferred = Infer(inputs, step.streams, &asked);
  if (!inferred.ok()) return Refusal(inferred.status(), entries, attrs, inputs, output_types);
  const std::vector<PartialShape>& shapes = *inferred;
  const bool known = std::all_of(shapes.begin(), shapes.end(), [](const PartialShape& s) { return s.fully_defined(); });
  Status last = Unimplemented("no kernel of op {} runs with these operands", spec_.node->op().name);
  for (const kernel::KernelEntry* entry : entries) {
    if (known && entry->record->prepare != nullptr) {
      Recipe recipe{entries[0], entry, {}, {}, {}, {}};
      const Status prepared = Prepare(attrs, inputs, output_types, shapes, recipe);
      if (prepared.ok()) {
        Result<std::vector<Tensor>> outputs = Follow(recipe, inputs, output_types, step.streams);
        if (outputs.ok()) Keep(std::move(recipe), asked, inputs);
        return outputs;
      }
      if (prepared.code() != Code::kUnimplemented) return prepared;
      last = prepared;
    }
    if (entry->record->compute == nullptr) continue;
    WEIR_ASSIGN(kernel::DynamicKernel* const dynamic, Dynamic(*entry, attrs));
    std::vector<DType> base;
    for (const DType t : output_types) base.push_back(BaseType(t));
    uint32_t flags = 0;
    auto outputs = dynamic->Compute(std::move(inputs), base, spec_.device->allocator(), step.step_id,
                                    {step.control, step.intra_op, &flags});
    if (!outputs.ok()) return spec_.device->Judge(outputs.status(), flags);
    return outputs;
  }
  return last;
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

void NodeCall::Keep(Recipe recipe, const std::vector<bool>& asked, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!asked[i] && !Masked(recipe.entry->record->host_inputs, input_args_[i])) continue;
    if (inputs[i].raw() == nullptr || inputs[i].bytes() > kLargestKey || !HasFixedSize(inputs[i].dtype())) return;
    Result<Tensor> value = inputs[i].Clone();
    if (!value.ok()) return;
    recipe.steering.emplace_back(i, std::move(*value));
  }
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
  const weir_kernel& record = *recipe.entry->record;
  const bool host_device = spec_.device->host_memory();
  std::vector<kernel::OperandSpec> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool steers = Masked(record.host_inputs, input_args_[i]);
    recipe.inputs.push_back(inputs[i].shape());
    in.push_back({inputs[i].dtype(), inputs[i].shape(), steers ? &inputs[i] : nullptr,
                  Masked(record.variable_writes | record.variable_reads, input_args_[i]), steers || host_device});
  }
  for (size_t i = 0; i < output_types.size(); ++i) {
    WEIR_ASSIGN(Shape shape, shapes[i].ToShape());
    recipe.outputs.push_back(IsRef(output_types[i]) ? inputs[0].shape() : std::move(shape));
    out.push_back({BaseType(output_types[i]), recipe.outputs.back(), nullptr, IsRef(output_types[i]),
                   host_device || Masked(record.host_outputs, output_args_[i])});
  }
  weir_node node{spec_.node->name(), attrs, [&](int i) { return in[static_cast<size_t>(i)].value; },
                 spec_.resources,    {},    spec_.deterministic};
  WEIR_ASSIGN(weir_device* const device, spec_.device->Open());
  WEIR_ASSIGN(recipe.kernel, kernel::PreparedKernel::Make(*recipe.entry, node, in, out, device));
  return Status();
}

Result<std::vector<Tensor>> NodeCall::Follow(const Recipe& recipe, std::vector<Tensor>& inputs,
                                             std::span<const DType> output_types, RunStreams* streams) {
  device::Stream* const stream = streams == nullptr ? nullptr : streams->Of(spec_.device);
  const std::shared_ptr<kernel::PreparedKernel>& kernel = recipe.kernel;
  std::vector<Tensor> outputs;
  outputs.reserve(output_types.size());
  for (size_t i = 0; i < output_types.size(); ++i) {
    const Tensor* same = IsRef(output_types[i]) ? &inputs[0] : nullptr;
    for (const weir_alias& alias : kernel->aliases()) {
      if (alias.kind == WEIR_ALIAS_MUST && alias.output == i) same = &inputs[alias.input];
    }
    if (same != nullptr) {
      WEIR_ASSIGN(Tensor view, IsRef(output_types[i]) ? Result<Tensor>(*same) : same->Reshaped(recipe.outputs[i]));
      outputs.push_back(std::move(view));
      continue;
    }
    const bool host = Masked(recipe.entry->record->host_outputs, output_args_[i]);
    WEIR_ASSIGN(Tensor made,
                host ? Tensor::Make(BaseType(output_types[i]), recipe.outputs[i])
                     : Tensor::Make(BaseType(output_types[i]), recipe.outputs[i], spec_.device->allocator()));
    outputs.push_back(std::move(made));
  }
  if (kernel->fn() == nullptr) return outputs;
  std::vector<weir_shape> views;
  views.reserve(inputs.size() + outputs.size() + 1);
  std::vector<weir_reg> regs;
  regs.reserve(inputs.size() + outputs.size() + 1);
  for (const std::vector<Tensor>* operands : {&inputs, &outputs}) {
    for (const Tensor& tensor : *operands) {
      views.push_back(kernel::ViewOf(tensor.shape()));
      regs.push_back(RegisterOf(tensor, &views.back()));
    }
  }
  std::shared_ptr<Buffer> scratch;
  const weir_shape scratch_shape = {};
  if (kernel->scratch_bytes() > 0) {
    Allocator& allocator = spec_.device->allocator();
    const uint64_t bytes = kernel->reserved_scratch_bytes();
    WEIR_ASSIGN(scratch, stream != nullptr ? stream->Temporary(bytes, allocator) : allocator.Allocate(bytes));
    const weir_buf& memory = scratch->memory();
    const uint64_t begin = memory.host != nullptr ? reinterpret_cast<uint64_t>(memory.host) : memory.offset;
    const uint64_t data = (begin + kernel->scratch_alignment() - 1) & ~(kernel->scratch_alignment() - 1);
    regs.push_back({data, memory.handle, &scratch_shape, static_cast<uint32_t>(DType::kUint8), 0});
  }
  if (stream != nullptr) stream->Keep(kernel, 0);
  WEIR_TRY(Launch(*kernel, regs, stream));
  return outputs;
}

Status NodeCall::Launch(const kernel::PreparedKernel& kernel, const std::vector<weir_reg>& regs,
                        device::Stream* stream) {
  kernel::ErrorRecord error;
  weir_env env{};
  env.struct_size = sizeof(env);
  env.tile_end = kernel.tiles();
  env.error = error.get();
  if (stream != nullptr) {
    env.stream = stream->handle();
    env.native_stream = stream->native();
  }
  std::unique_lock<std::mutex> running(cache_->running, std::defer_lock);
  if ((kernel.flags() & WEIR_KERNEL_STATEFUL) != 0) running.lock();
  const int32_t code = kernel.fn()(kernel.state(), regs.data(), &env);
  const Status status = code == 0 ? Status() : error.ToStatus(code, spec_.node->op().name);
  if (stream != nullptr) {
    stream->Launched();
    if (!status.ok()) stream->Refused(status, error.flags());
  }
  return spec_.device->Judge(status, error.flags());
}

Result<Tensor> NodeCall::ToHost(const Tensor& tensor, RunStreams* streams) {
  return streams != nullptr ? streams->ToHost(*spec_.device, tensor) : spec_.device->ToHost(tensor);
}

}  // namespace weir::execute
