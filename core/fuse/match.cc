#include <algorithm>
#include <iterator>

#include "core/fuse/match_internal.h"
#include "core/graph/frames.h"
#include "core/kernel/prepared.h"

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// A value, neither a reference nor a handle: it does not change during the step.
bool IsValue(DType type) { return !IsRef(type) && type != DType::kResource; }

bool IsTheOperand(const Scene& scene, const Match& match) {
  return scene.step.node(match.operand).is_op(match.pattern->operand);
}

bool HasNoOtherUser(const Scene& scene, const Match& match) { return scene.users[match.operand] == 1; }

bool IsOnOneDevice(const Scene& scene, const Match& match) {
  const int device = scene.DeviceOf(match.root);
  return device >= 0 && device == scene.DeviceOf(match.operand);
}

bool IsInOneFrame(const Scene& scene, const Match& match) {
  return scene.step.node(match.root).frame == scene.step.node(match.operand).frame;
}

bool TakesPlainValues(const Scene& scene, const Match& match) {
  return std::ranges::all_of(scene.step.node(match.operand).inputs,
                             [&](const Endpoint& input) { return IsPlain(scene.step, input); });
}

bool OtherInputsAreScalars(const Scene& scene, const Match& match) {
  const std::vector<Endpoint>& inputs = scene.step.node(match.root).inputs;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (static_cast<int>(i) == match.pattern->input) continue;
    if (!IsPlain(scene.step, inputs[i]) || scene.step.ShapeOf(inputs[i]).rank() != 0) return false;
  }
  return true;
}

/// The shape of the variable that a node updates; unknown unless the op that creates it is the direct input.
PartialShape VariableShape(const StepGraph& step, const StepNode& update) {
  const StepNode& variable = step.node(update.inputs[0].node);
  if (step.TypeOf(update.inputs[0]) != DType::kResource) return step.ShapeOf(update.inputs[0]);
  if (variable.kind != StepNode::Kind::kOp || !variable.source->op().MakesState()) return PartialShape();
  const Result<PartialShape> declared = variable.source->attrs().ShapeAttr("shape");
  return declared.ok() ? *declared : PartialShape();
}

bool FillsTheVariable(const Scene& scene, const Match& match) {
  const PartialShape variable = VariableShape(scene.step, scene.step.node(match.root));
  return variable.fully_defined() && variable == scene.step.node(match.operand).shapes[0];
}

bool SomeKernelTakesIt(const Scene& scene, const Match& match) {
  const StepGraph& step = scene.step;
  const StepNode &root = step.node(match.root), &operand = step.node(match.operand);
  device::Device& device = *scene.options.devices->all()[PositionOf(scene.DeviceOf(match.root))];
  std::vector<kernel::OperandSpec> inputs, outputs;
  for (const Endpoint& input : match.Inputs(step)) {
    const Result<Shape> shape = step.ShapeOf(input).ToShape();
    inputs.push_back({BaseType(step.TypeOf(input)), shape.ok() ? *shape : Shape(), step.ValueOf(input), false,
                      device.host_memory()});
  }
  inputs[0] = {BaseType(operand.types[0]), *operand.shapes[0].ToShape(), nullptr, true, device.host_memory()};
  if (!root.types.empty()) outputs.push_back(inputs[0]);
  const op::AttrList list = match.Attrs(step);
  const op::AttrView attrs(*match.pattern->result, list);
  const auto value = [&](int i) { return inputs[PositionOf(i)].value; };
  const weir_node node{root.name(), attrs, value, nullptr, {}, false};
  const Result<weir_device*> open = device.Open();
  return open.ok() &&
         std::ranges::any_of(scene.options.kernels->Find(attrs, device.info().platform),
                             [&](const kernel::KernelEntry* entry) {
                               return entry->record->compute != nullptr ||
                                      kernel::PreparedKernel::Make(*entry, node, inputs, outputs, *open).ok();
                             });
}

constexpr Condition kConditions[] = {
    {"the input is the operand's op", IsTheOperand},
    {"nothing else uses the operand", HasNoOtherUser},
    {"both are on one device", IsOnOneDevice},
    {"both are in one frame", IsInOneFrame},
    {"the operand takes values of known shapes", TakesPlainValues},
    {"the root's other inputs are scalars", OtherInputsAreScalars},
    {"the operand has the variable's shape", FillsTheVariable},
    {"a kernel takes the fused op", SomeKernelTakesIt},
};

}  // namespace

std::span<const Condition> Conditions() { return kConditions; }

void FollowMoves(const IndexedVector<NodeId, NodeId>& moved, const StepGraph& step, graph::Placement& placement) {
  for (const NodeId id : moved.indices()) {
    if (moved[id] >= 0) placement.device_of[moved[id]] = placement.device_of[id];
  }
  placement.device_of.resize(step.nodes.size());
}

bool IsPlain(const StepGraph& step, const Endpoint& input) {
  return IsValue(step.TypeOf(input)) && step.ShapeOf(input).fully_defined() &&
         graph::FlowOf(step.node(input.node)) != graph::Flow::kSwitch;
}

std::optional<std::vector<int64_t>> IntegersOf(const StepGraph& step, const Endpoint& value, int64_t most) {
  const Tensor* const known = step.ValueOf(value);
  if (known == nullptr || known->elements() > most) return std::nullopt;
  std::vector<int64_t> integers;
  if (known->dtype() == DType::kInt64) {
    std::ranges::copy(known->as<int64_t>(), std::back_inserter(integers));
  } else if (known->dtype() == DType::kInt32) {
    std::ranges::copy(known->as<int32_t>(), std::back_inserter(integers));
  } else {
    return std::nullopt;
  }
  return integers;
}

bool SomeKernelTakes(const Scene& scene, NodeId root, const op::OpDef& result, const std::vector<Endpoint>& inputs,
                     const op::AttrList& attrs) {
  constexpr int64_t kFew = 64;
  const StepGraph& step = scene.step;
  device::Device& device = *scene.options.devices->all()[PositionOf(scene.DeviceOf(root))];
  std::vector<kernel::OperandSpec> in, out;
  for (const Endpoint& input : inputs) {
    const Result<Shape> shape = step.ShapeOf(input).ToShape();
    if (!shape.ok()) return false;
    const Tensor* const value = shape->elements() <= kFew ? step.ValueOf(input) : nullptr;
    in.push_back({BaseType(step.TypeOf(input)), *shape, value, false, device.host_memory()});
  }
  const Result<Shape> shape = step.node(root).shapes[0].ToShape();
  if (!shape.ok()) return false;
  out.push_back({BaseType(step.node(root).types[0]), *shape, nullptr, false, device.host_memory()});
  const op::AttrView view(result, attrs);
  const weir_node node{step.node(root).name(), view, [&](int i) { return in[PositionOf(i)].value; }, nullptr, {}};
  const Result<weir_device*> open = device.Open();
  return open.ok() && std::ranges::any_of(scene.options.kernels->Find(view, device.info().platform),
                                          [&](const kernel::KernelEntry* entry) {
                                            return kernel::PreparedKernel::Make(*entry, node, in, out, *open).ok();
                                          });
}

std::vector<Endpoint> Match::Inputs(const StepGraph& step) const {
  std::vector<Endpoint> inputs = step.node(root).inputs;
  const std::vector<Endpoint>& inner = step.node(operand).inputs;
  const auto at = inputs.erase(inputs.begin() + pattern->input);
  inputs.insert(at, inner.begin(), inner.end());
  return inputs;
}

op::AttrList Match::Attrs(const StepGraph& step) const {
  op::AttrList attrs;
  for (const op::AttrDef& attr : pattern->result->attrs) {
    const op::AttrValue* value = step.node(root).source->attrs().Find(attr.name);
    if (value == nullptr) value = step.node(operand).source->attrs().Find(attr.name);
    if (value != nullptr) attrs.emplace_back(attr.name, *value);
  }
  return attrs;
}

Match MatchAt(const Scene& scene, const Pattern& pattern, NodeId root) {
  const StepGraph& step = scene.step;
  Match match{&pattern, root, step.node(root).inputs[PositionOf(pattern.input)].node, {}};
  const auto is_between = [&](NodeId id) {
    const StepNode& node = step.node(id);
    return node.kind == StepNode::Kind::kOp && node.source->op().traits.passes_value && node.inputs.size() == 1 &&
           scene.users[id] == 1 && node.frame == step.node(root).frame && scene.DeviceOf(id) == scene.DeviceOf(root);
  };
  while (is_between(match.operand)) {
    match.between.push_back(match.operand);
    match.operand = step.node(match.operand).inputs[0].node;
  }
  return match;
}

}  // namespace weir::fuse
