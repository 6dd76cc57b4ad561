#include <algorithm>

#include "core/base/errors.h"
#include "core/device/device_name.h"
#include "core/graph/frames.h"
#include "core/lower/lowerer_internal.h"

namespace weir::lower {
namespace {

constexpr std::string_view kLocation = "loc:@";

/// The parts of `inner`, completed by those of `outer`. An invalid name is returned unchanged; placement reports it.
std::string MergedDevice(const std::string& outer, const std::string& inner) {
  const Result<device::DeviceName> base = device::ParseDeviceName(outer);
  const Result<device::DeviceName> own = device::ParseDeviceName(inner);
  if (!base.ok() || !own.ok()) return inner;
  device::DeviceName merged = *own;
  if (!merged.job) merged.job = base->job;
  if (!merged.replica) merged.replica = base->replica;
  if (!merged.task) merged.task = base->task;
  if (!merged.type && !merged.id) {
    merged.type = base->type;
    merged.id = base->id;
  }
  return merged.ToString();
}

}  // namespace

/// The lowered ops and their lowering functions.
const Lowerer::LoweredOp Lowerer::kRules[] = {
    {"PartitionedCall", &Lowerer::LowerCall},
    {"StatefulPartitionedCall", &Lowerer::LowerCall},
    {"If", &Lowerer::LowerIf},
    {"StatelessIf", &Lowerer::LowerIf},
    {"Case", &Lowerer::LowerCase},
    {"StatelessCase", &Lowerer::LowerCase},
    {"While", &Lowerer::LowerWhile},
    {"StatelessWhile", &Lowerer::LowerWhile},
    {"For", &Lowerer::LowerFor},
    {"SymbolicGradient", &Lowerer::LowerSymbolicGradient},
    {"RemoteCall", &Lowerer::LowerRemoteCall},
    {"DeviceIndex", &Lowerer::LowerDeviceIndex},
};

Lowerer::Rule Lowerer::RuleOf(const op::OpDef& op) {
  if (op.run_by != op::RunBy::kExecutor) return nullptr;
  const auto* const rule = std::ranges::find(kRules, op.name, &LoweredOp::op);
  return rule == std::end(kRules) ? nullptr : rule->rule;
}

bool Lowerer::Lowers(const Definition& graph, const Node& node) {
  if (node.op().run_by != op::RunBy::kExecutor) return false;
  if (RuleOf(node.op()) != nullptr) return true;
  const graph::Function* const function = graph.functions().Find(node.op().name);
  return function != nullptr && &function->signature == &node.op();
}

bool HasEffects(const op::OpDef& op) {
  if (!op.stateful) return false;
  const bool names_state =
      op.inputs.empty() && op.outputs.size() == 1 && (op.outputs[0].is_ref || op.outputs[0].dtype == DType::kResource);
  return !names_state;
}

Status Lowerer::Lower(Scope& scope, const Node& node) {
  if (!Lowers(scope.from, node)) return Copy(scope, node);
  const Rule rule = RuleOf(node.op());
  WEIR_ASSIGN(Image image, Replace(scope, node, rule != nullptr ? rule : &Lowerer::LowerCallByName));
  if (image.has_effects) scope.effects.push_back(image.node);
  scope.images.push_back(std::move(image));
  return {};
}

Result<Image> Lowerer::Replace(Scope& scope, const Node& node, Rule rule) {
  if (scope.depth >= limits_.depth) {
    return ResourceExhausted("Calls are nested more than {} deep at '{}'", limits_.depth, scope.prefix + node.name());
  }
  graph::NodeSpec spec = SpecOf(scope, node);
  Call call{node,
            scope,
            std::move(spec.name),
            std::move(spec.device),
            std::move(spec.inputs),
            std::move(spec.control_inputs)};
  if (scope.anchor != kNone) call.controls.push_back(scope.anchor);
  // The body gets values: those of variables at the start of the call.
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    Endpoint& input = call.inputs[i];
    if (!IsRef(lowered_.TypeOf(input))) continue;
    WEIR_ASSIGN(input, AddIdentity(call, fmt::format("{}/_value_{}", call.name, i), input, call.controls));
  }
  WEIR_ASSIGN(Image image, (this->*rule)(call));
  for (int i = 0; i < node.num_outputs(); ++i) {
    // The caller's declared shapes are only hints; as in TensorFlow they may be wrong.
    (void)lowered_.RefineShape(image.At(i), node.output_shapes()[PositionOf(i)]);
  }
  return image;
}

Status Lowerer::CheckRoom() const {
  if (lowered_.num_nodes() - source_.num_nodes() < limits_.added_nodes) return {};
  return ResourceExhausted("The graph's calls make more than {} nodes", limits_.added_nodes);
}

Status Lowerer::Copy(Scope& scope, const Node& node) {
  graph::NodeSpec spec = SpecOf(scope, node);
  const bool has_effects = HasEffects(node.op());
  WEIR_TRY(CheckRoom());
  // Constants are the same in every loop and branch; other sources belong to the loop or branch of the call.
  const bool is_source =
      spec.inputs.empty() && spec.control_inputs.empty() && node.op().traits.universal != op::Universal::kConstant;
  if (scope.anchor != kNone && (has_effects || is_source)) spec.control_inputs.push_back(scope.anchor);
  WEIR_ASSIGN(const Node* const copy, lowered_.Add(std::move(spec)));
  if (has_effects) scope.effects.push_back(copy->id());
  scope.images.push_back({.node = copy->id()});
  return {};
}

void Lowerer::StandIn(Scope& scope, const Node& node) {
  graph::NodeSpec spec = SpecOf(scope, node);
  Result<Node*> copy = lowered_.Add(spec);
  if (!copy.ok()) {  // more precise shapes in the lowered graph may make the node invalid
    spec.op = &lowered_.AddForeignOp(node.op().name, node.num_outputs());
    copy = lowered_.Add(std::move(spec));
  }
  scope.images.push_back({.node = copy.ok() ? (*copy)->id() : 0});
}

graph::NodeSpec Lowerer::SpecOf(const Scope& scope, const Node& node) {
  graph::NodeSpec spec;
  const bool keeps_name = scope.function.empty() && lowered_.Find(node.name()) == nullptr;
  spec.name = keeps_name ? node.name() : Unique(scope.prefix + node.name());
  spec.op = &node.op();
  for (const Endpoint& input : node.inputs()) {
    const bool ready = input.node >= 0 && scope.images.Has(input.node);
    spec.inputs.push_back(ready ? scope.images[input.node].At(input.index) : Endpoint{});
  }
  for (const NodeId control : node.control_inputs()) {
    const Image& image = scope.images[control];
    if (image.node != kNone) spec.control_inputs.push_back(image.node);
  }
  spec.device = node.device();
  if (spec.device.empty() || scope.device.empty()) {
    if (spec.device.empty()) spec.device = scope.device;
  } else {
    std::string& merged = merged_devices_[scope.device + "|" + spec.device];
    if (merged.empty()) merged = MergedDevice(scope.device, spec.device);
    spec.device = merged;
  }
  spec.attrs = node.attrs().explicit_values();
  if (scope.function.empty()) {
    spec.origin = node.origin();
    return spec;
  }
  spec.origin = fmt::format("node '{}' of function '{}'{}", node.name(), scope.function,
                            scope.origin.empty() ? "" : ", called at " + scope.origin);
  for (auto& [name, value] : spec.attrs) {
    const auto* classes = name == "_class" ? value.get<std::vector<std::string>>() : nullptr;
    if (classes == nullptr) continue;
    std::vector<std::string> renamed;
    for (const std::string& text : *classes) {
      if (!text.starts_with(kLocation)) {
        renamed.push_back(text);
      } else if (scope.from.Find(text.substr(kLocation.size())) != nullptr) {
        renamed.push_back(fmt::format("{}{}{}", kLocation, scope.prefix, text.substr(kLocation.size())));
      }
    }
    value = std::move(renamed);
  }
  return spec;
}

Status Lowerer::CloseLoops(const Scope& scope, NodeId first) {
  for (NodeId id = first; id < scope.from.num_nodes(); ++id) {
    const Node& node = scope.from.node(id);
    if (graph::FlowOf(node) != graph::Flow::kMerge) continue;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Endpoint& from = node.inputs()[i];
      if (from.node < id) continue;
      const Image& merge = scope.images[id];
      WEIR_TRY(lowered_.SetInput(merge.node, static_cast<int>(i), scope.images[from.node].At(from.index)));
    }
  }
  return {};
}

std::string Lowerer::Unique(const std::string& name) const {
  const auto is_free = [this](const std::string& text) {
    return lowered_.Find(text) == nullptr && source_.Find(text) == nullptr;
  };
  std::string unique = name;
  for (int k = 1; !is_free(unique); ++k) unique = fmt::format("{}_{}", name, k);
  return unique;
}

Result<Endpoint> Lowerer::Add(const Call& call, std::string_view op, const std::string& name,
                              std::vector<Endpoint> inputs, Attrs attrs, std::vector<NodeId> controls) {
  graph::NodeSpec spec;
  WEIR_ASSIGN(spec.op, lowered_.ops().Get(op));
  spec.name = name == call.name ? name : Unique(name);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.control_inputs = std::move(controls);
  std::erase(spec.control_inputs, kNone);
  spec.device = call.device;
  spec.origin = call.node.origin();
  WEIR_TRY(CheckRoom());
  WEIR_ASSIGN(const Node* const node, lowered_.Add(std::move(spec)));
  return Endpoint{node->id(), 0};
}

Result<Endpoint> Lowerer::AddConst(const Call& call, const std::string& name, const Tensor& value) {
  return Add(call, "Const", name, {}, {{"dtype", value.dtype()}, {"value", value}});
}

Result<Endpoint> Lowerer::AddIdentity(const Call& call, const std::string& name, Endpoint value,
                                      std::vector<NodeId> controls) {
  return Add(call, "Identity", name, {value}, {{"T", TypeOf(value)}}, std::move(controls));
}

Result<NodeId> Lowerer::Join(const Call& call, const std::string& name, std::vector<NodeId> nodes) {
  std::erase(nodes, kNone);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.empty()) return kNone;
  if (nodes.size() == 1) return nodes[0];
  WEIR_ASSIGN(const Endpoint joined, Add(call, "NoOp", name, {}, {}, std::move(nodes)));
  return joined.node;
}

Result<Image> Lowerer::WithDone(const Call& call, std::vector<Endpoint> outputs, std::vector<NodeId> waits_for,
                                bool effects) {
  for (const Endpoint& output : outputs) waits_for.push_back(output.node);
  const std::string name = outputs.empty() ? call.name : call.name + "/_done";
  WEIR_ASSIGN(const Endpoint done, Add(call, "NoOp", name, {}, {}, std::move(waits_for)));
  return Image{.node = done.node, .outputs = std::move(outputs), .has_effects = effects};
}

std::string Lowerer::ResultName(const Call& call, size_t index) {
  return index == 0 ? call.name : fmt::format("{}/_result_{}", call.name, index);
}

}  // namespace weir::lower
