#include "core/fuse/candidates_internal.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/graph/frames.h"
#include "core/kernel/roofline.h"
#include "core/ops/elementwise.h"

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

constexpr size_t kMostMembers = 256;

bool IsNumber(DType type) {
  return type == DType::kBool || IsInteger(type) || type == DType::kHalf || type == DType::kBfloat16 ||
         type == DType::kFloat || type == DType::kDouble;
}

bool IsScalarAttr(const op::AttrValue& value) {
  return value.get<int64_t>() != nullptr || value.get<float>() != nullptr || value.get<bool>() != nullptr ||
         value.get<DType>() != nullptr || value.get<std::string>() != nullptr;
}

/// Aligned at their last dimensions, every extent of `from` is 1 or that of `to`.
bool Broadcasts(const PartialShape& from, const PartialShape& to) {
  if (!from.fully_defined() || from.rank() > to.rank()) return false;
  const size_t skipped = to.dims().size() - from.dims().size();
  for (size_t i = 0; i < from.dims().size(); ++i) {
    if (from.dims()[i] != 1 && from.dims()[i] != to.dims()[skipped + i]) return false;
  }
  return true;
}

/// condition ? t : e, as the record shows.
bool IsChoice(const op::OpDef& op) {
  return op.inputs.size() == 3 && op.outputs.size() == 1 && op.attrs.size() == 1 &&
         op.inputs[0].dtype == DType::kBool && op.inputs[1].type_attr == op.attrs[0].name &&
         op.inputs[2].type_attr == op.attrs[0].name && op.outputs[0].type_attr == op.attrs[0].name;
}

/// An op whose second operand has the numbers of the dimensions of the first that it removes, or keeps as 1.
bool IsReduction(const op::OpDef& op) {
  return op.inputs.size() == 2 && op.outputs.size() == 1 && op.FindAttr("keep_dims") != nullptr &&
         op.FindAttr("Tidx") != nullptr && op.attrs.size() <= 3;
}

}  // namespace

/// What decides whether a node runs: the outputs of Switches and the other control flow that it depends on, as the
/// number of a set. Two nodes with the same number run in the same iterations of the same runs.
class CandidateFinder::Liveness {
 public:
  explicit Liveness(const StepGraph& step) : step_(step), set_of_(step.nodes.size(), 0) {
    numbers_.emplace(Conditions(), 0);
    sets_.push_back(Conditions());
    const auto count = static_cast<NodeId>(step.nodes.size());
    for (NodeId id = 0; id < count; ++id) set_of_[id] = SetFor(id);
  }

  int Of(NodeId id) const { return set_of_[id]; }

 private:
  /// Node, output.
  using Conditions = std::set<std::pair<NodeId, int>>;

  int SetFor(NodeId id) {
    const StepNode& node = step_.node(id);
    const graph::Flow flow = graph::FlowOf(node);
    const bool own = flow != graph::Flow::kPlain && flow != graph::Flow::kSwitch && flow != graph::Flow::kEnter &&
                     flow != graph::Flow::kLoopCond && flow != graph::Flow::kNextIteration;
    if (own) return NumberOf({{id, 0}});
    std::set<int> sets;
    Conditions more;
    const auto add = [&](const Endpoint& from) {
      if (from.node >= id) return;
      sets.insert(set_of_[from.node]);
      const StepNode& source = step_.node(from.node);
      if (graph::FlowOf(source) != graph::Flow::kSwitch || source.inputs.size() != 2) return;
      // Switches of one predicate choose alike.
      const Endpoint& predicate = source.inputs[1];
      more.insert({predicate.node, 2 * predicate.index + (from.index == 0 ? 0 : 1) + 1});
    };
    for (const Endpoint& input : node.inputs) add(input);
    for (const NodeId control : node.control_inputs) {
      if (control < id) sets.insert(set_of_[control]);
    }
    sets.erase(0);
    if (more.empty() && sets.empty()) return 0;
    if (more.empty() && sets.size() == 1) return *sets.begin();
    for (const int set : sets) more.insert(sets_[PositionOf(set)].begin(), sets_[PositionOf(set)].end());
    return NumberOf(std::move(more));
  }

  int NumberOf(Conditions conditions) {
    const auto [at, is_new] = numbers_.emplace(std::move(conditions), static_cast<int>(sets_.size()));
    if (is_new) sets_.push_back(at->first);
    return at->second;
  }

  const StepGraph& step_;
  IndexedVector<NodeId, int> set_of_;
  std::map<Conditions, int> numbers_;
  std::vector<Conditions> sets_;
};

CandidateFinder::CandidateFinder(const Scene& scene)
    : SetRules(scene.options.compile.always ? 1 : 2, kMostMembers),
      scene_(scene),
      readers_(ReadersOf(scene.step)),
      targets_(scene.step.nodes.size(), 0),
      waited_for_(scene.step.nodes.size(), 0) {
  for (const StepNode& node : scene.step.nodes) {
    for (const NodeId control : node.control_inputs) waited_for_[control] = 1;
  }
  for (const NodeId target : scene.step.targets) targets_[target] = 1;
  liveness_ = std::make_unique<Liveness>(scene.step);
}

CandidateFinder::~CandidateFinder() = default;

std::vector<Candidate> CandidateFinder::Find() const {
  std::vector<Candidate> all;
  for (NodeSet& set : FindSets(scene_, readers_, *this)) all.push_back(Make(std::move(set)));
  return all;
}

bool CandidateFinder::OnHostDevice(NodeId id) const {
  const int number = scene_.DeviceOf(id);
  if (number < 0) return false;
  const device::Device& device = *scene_.options.devices->all()[PositionOf(number)];
  return device.host_memory() && !device.has_streams();
}

bool CandidateFinder::IsElementwise(const StepNode& node) const {
  const op::OpDef& op = node.source->op();
  const bool choice = IsChoice(op);
  if (!op.traits.elementwise && !choice) return false;
  const PartialShape& shape = node.shapes[0];
  for (const Endpoint& input : node.inputs) {
    if (!Broadcasts(scene_.step.ShapeOf(input), shape)) return false;
  }
  // A vector may choose rows.
  return !choice || scene_.step.ShapeOf(node.inputs[0]) == shape ||
         (op.traits.elementwise && (scene_.step.ShapeOf(node.inputs[0]).rank() != 1 || shape.rank() == 1));
}

/// Empty if the node is no reduction of the last dimensions.
std::vector<int64_t> CandidateFinder::ReducedAxes(const StepNode& node) const {
  if (!IsReduction(node.source->op()) || node.inputs.size() != 2) return {};
  const PartialShape& shape = scene_.step.ShapeOf(node.inputs[0]);
  if (!shape.fully_defined()) return {};
  const std::optional<std::vector<int64_t>> axes = IntegersOf(scene_.step, node.inputs[1], shape.rank());
  if (!axes) return {};
  std::set<int64_t> reduced;
  for (const int64_t given : *axes) {
    const int64_t axis = given < 0 ? given + shape.rank() : given;
    if (axis < 0 || axis >= shape.rank()) return {};
    reduced.insert(axis);
  }
  const bool last = !reduced.empty() && *reduced.begin() == shape.rank() - static_cast<int64_t>(reduced.size());
  return last ? std::vector<int64_t>(reduced.begin(), reduced.end()) : std::vector<int64_t>();
}

bool CandidateFinder::MayBeIn(NodeId id) const {
  const StepNode& node = scene_.step.node(id);
  if (node.kind != StepNode::Kind::kOp || !node.values.empty() || node.types.size() != 1 || targets_[id] != 0 ||
      readers_[id].empty()) {
    return false;
  }
  const op::OpDef& op = node.source->op();
  if (op.stateful || !IsNumber(node.types[0]) || node.inputs.empty()) return false;
  const PartialShape& shape = node.shapes[0];
  if (!shape.fully_defined() || shape.elements() <= 0) return false;
  for (const op::AttrDef& attr : op.attrs) {
    const op::AttrValue* const value = node.source->attrs().Find(attr.name);
    if (value == nullptr || !IsScalarAttr(*value)) return false;
  }
  const bool reduces = !ReducedAxes(node).empty();
  if (!reduces && !IsElementwise(node)) return false;
  for (const Endpoint& input : node.inputs) {
    if (!IsOperand(id, input) || ops::MayRefuseElements(op, scene_.step.TypeOf(input))) return false;
  }
  return OnHostDevice(id);
}

/// A reader of a Switch tells the nodes that wait for it which branch runs; without them, the region tells its readers.
bool CandidateFinder::IsOperand(NodeId reader, const Endpoint& value) const {
  const PartialShape& shape = scene_.step.ShapeOf(value);
  const bool of_switch = graph::FlowOf(scene_.step.node(value.node)) == graph::Flow::kSwitch;
  return IsNumber(scene_.step.TypeOf(value)) && shape.fully_defined() && shape.elements() > 0 &&
         (!of_switch || waited_for_[reader] == 0);
}

bool CandidateFinder::MayJoin(NodeId id, NodeId root, std::span<const NodeId> outside) const {
  const auto is_behind = [root](NodeId reader) { return reader < 0 || reader > root; };
  return MayBeIn(id) && std::ranges::all_of(outside, is_behind) &&
         (outside.empty() || liveness_->Of(id) == liveness_->Of(root));
}

/// The axes of a reduction are part of its op.
std::span<const Endpoint> CandidateFinder::OperandsOf(NodeId id) const {
  const StepNode& node = scene_.step.node(id);
  return std::span(node.inputs).first(ReducedAxes(node).empty() ? node.inputs.size() : 1);
}

compile::RegionOp CandidateFinder::OpOf(NodeId id) const {
  const StepNode& node = scene_.step.node(id);
  const op::AttrView attrs = node.source->attrs();
  compile::RegionOp made;
  made.op = node.source->op().name;
  for (const op::AttrDef& attr : node.source->op().attrs) made.attrs.emplace_back(attr.name, *attrs.Find(attr.name));
  std::ranges::sort(made.attrs, {}, [](const auto& attr) -> const std::string& { return attr.first; });
  made.axes = ReducedAxes(node);
  const Result<Shape> shape = node.shapes[0].ToShape();
  made.result = {node.types[0], shape.ok() ? *shape : Shape(), Tensor()};
  made.kernel_ns = KernelNanoseconds(id);
  return made;
}

/// The least declared time of the node's kernels; NaN if none declares one.
double CandidateFinder::KernelNanoseconds(NodeId id) const {
  const StepGraph& step = scene_.step;
  const StepNode& node = step.node(id);
  device::Device& device = *scene_.options.devices->all()[PositionOf(scene_.DeviceOf(id))];
  std::vector<kernel::OperandSpec> in, out;
  for (const Endpoint& input : node.inputs) {
    const Result<Shape> shape = step.ShapeOf(input).ToShape();
    in.push_back({step.TypeOf(input), shape.ok() ? *shape : Shape(), step.ValueOf(input), false, true});
  }
  const Result<Shape> shape = node.shapes[0].ToShape();
  out.push_back({node.types[0], shape.ok() ? *shape : Shape(), nullptr, false, true});
  const op::AttrView attrs = node.source->attrs();
  const weir_node view{node.name(), attrs, [&](int i) { return in[PositionOf(i)].value; }, nullptr, {}, false};
  const Result<weir_device*> open = kernel::HandleToAsk(device);
  double least = std::numeric_limits<double>::quiet_NaN();
  if (!open.ok()) return least;
  for (const kernel::KernelEntry* entry : scene_.options.kernels->Find(attrs, device.info().platform)) {
    if (!WEIR_HAS(entry->record, estimate) && !(entry->record->flops_per_element > 0)) continue;
    const Result<weir_cost> estimated = WEIR_HAS(entry->record, estimate)
                                            ? kernel::Estimate(*entry, view, in, out, *open, device.profile())
                                            : Result<weir_cost>(kernel::DeclaredWork(*entry->record, in, out));
    if (!estimated.ok()) continue;
    const double ns = kernel::RooflineNs(*estimated, device.profile(), node.types[0]);
    if (!(ns >= least)) least = ns;
  }
  return least;
}

compile::RegionValue CandidateFinder::InputOf(const Endpoint& value) const {
  const Result<Shape> shape = scene_.step.ShapeOf(value).ToShape();
  const Tensor* const known = scene_.step.ValueOf(value);
  const bool shown = known != nullptr && known->bytes() <= WEIR_REGION_CONSTANT_BYTES && known->raw() != nullptr;
  return {scene_.step.TypeOf(value), shape.ok() ? *shape : Shape(), shown ? *known : Tensor()};
}

Candidate CandidateFinder::Make(NodeSet set) const {
  Candidate candidate;
  candidate.device = scene_.DeviceOf(set.nodes.back());
  candidate.region.deterministic = scene_.options.compile.deterministic;
  for (const Endpoint& value : set.inputs) candidate.region.inputs.push_back(InputOf(value));
  const auto is_outside = [&](NodeId reader) { return !std::ranges::binary_search(set.nodes, reader); };
  for (size_t i = 0; i < set.nodes.size(); ++i) {
    candidate.region.nodes.push_back(OpOf(set.nodes[i]));
    candidate.region.nodes[i].operands = std::move(set.operands[i]);
    if (std::ranges::any_of(readers_[set.nodes[i]], is_outside)) {
      candidate.region.outputs.push_back(candidate.region.ValueOf(i));
    }
  }
  candidate.inputs = std::move(set.inputs);
  candidate.nodes = std::move(set.nodes);
  return candidate;
}

}  // namespace weir::fuse
