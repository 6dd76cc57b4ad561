#include "core/fuse/lift_internal.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/graph/frames.h"
#include "core/graph/rewriter.h"
#include "core/op/attrs.h"

namespace weir::fuse {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

bool IsLoopConstant(const StepNode& node) {
  if (node.source == nullptr || graph::FlowOf(*node.source) != Flow::kEnter) return false;
  const Result<bool> constant = node.source->attrs().Bool("is_constant");
  return constant.ok() && *constant;
}

/// The value of a loop constant ahead of its loop; other values that all frames see as they are.
std::optional<Endpoint> Outside(const StepGraph& step, const Endpoint& value) {
  const StepNode& node = step.node(value.node);
  if (node.kind != StepNode::Kind::kOp) return value;
  if (!IsLoopConstant(node)) return std::nullopt;
  return node.inputs[0];
}

/// A match of a lift with the values of its names ahead of the loop.
struct Place {
  const Lift* lift = nullptr;
  NodeId root = -1;
  Bindings bound;
  std::map<std::string, Endpoint, std::less<>> outside;
  std::vector<NodeId> kept, erased;  // inner nodes, ascending
  std::vector<NodeId> held;          // nodes that hold x for the kept ones only: the loop constants, and their makers
  bool held_whole = false;           // all of x, and of its type and shape
  NodeId enter = -1;                 // a loop constant of the loop, of the type of the lifted value
};

/// The elements are 0, 1, 2 …
bool CountsUp(const Tensor& numbers) {
  if (numbers.dtype() != DType::kInt32 || numbers.shape().rank() != 1) return false;
  const auto elements = numbers.as<int32_t>();
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

class PlaceFinder {
 public:
  explicit PlaceFinder(const Scene& scene) : step_(scene.step), users_(scene.users), scene_(scene) {}

  std::optional<Place> At(const Lift& lift, NodeId root) const {
    Place place;
    place.lift = &lift;
    place.root = root;
    if (step_.node(root).frame <= graph::kStepFrame || !MatchLift(scene_, lift, root, place.bound)) return std::nullopt;
    for (const auto& [name, value] : place.bound.values) {
      if (const std::optional<Endpoint> outer = Outside(step_, value)) place.outside[name] = *outer;
    }
    bool counts = false;
    for (const Term& producer : lift.producers) {
      if (producer.name == "next") {
        counts = IsCounter(producer, place.bound.values.find("t")->second);
      } else if (!MatchProducer(producer, place)) {
        return std::nullopt;
      }
    }
    if (!TakeInner(place) || !FindEnter(place) || !OperandsAreThere(place)) return std::nullopt;
    if (counts && place.held_whole) {  // each element is read at most once, and the fused node checks the index
      place.erased.insert(place.erased.end(), place.kept.begin(), place.kept.end());
      place.kept.clear();
      std::ranges::sort(place.erased);
    } else {
      place.held.clear();
    }
    return place;
  }

 private:
  /// The loop constant is the only output of a node of this op, which nothing else uses. Operands with a name that the
  /// expression has are those ahead of the loop. "all" are the numbers of all rows of x, and `start` another output of
  /// the node that makes an operand before it, whose outputs have no users but the nodes of the expression.
  bool MatchProducer(const Term& producer, Place& place) const {
    const auto given = place.bound.values.find(producer.name);
    const auto made = place.outside.find(producer.name);
    if (given == place.bound.values.end() || made == place.outside.end() || made->second == given->second) return false;
    const StepNode& node = step_.node(made->second.node);
    const bool is_it = node.kind == StepNode::Kind::kOp && node.source->op().name == producer.ops[0] &&
                       node.inputs.size() == producer.operands.size() && node.types.size() == 1;
    if (!is_it || users_[made->second.node] != 1 || users_[given->second.node] != 1) return false;
    NodeId maker = -1;
    int uses = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string& name = producer.operands[i].name;
      const Endpoint& input = node.inputs[i];
      const auto known = place.outside.find(name);
      if (name == "all") {
        const Tensor* const numbers = step_.ValueOf(input);
        if (numbers == nullptr || !CountsUp(*numbers)) return false;
      } else if (name == "start") {
        if (input.node != maker) return false;
        ++uses;
      } else if (known == place.outside.end()) {
        place.outside[name] = input;
      } else {
        if (!(known->second == input)) return false;
        const Endpoint& inner = place.bound.values.find(name)->second;
        if (users_[inner.node] != 1) return false;
        maker = input.node;
        uses += 2;  // here, and by the loop constant
      }
    }
    if (maker < 0 || users_[maker] != uses) return false;
    const StepNode& holder = step_.node(maker);
    for (const auto& [name, value] : place.bound.values) {
      const std::optional<Endpoint> outer = Outside(step_, value);
      if (outer && outer->node == maker) place.held.push_back(value.node);
    }
    place.held.insert(place.held.end(), {given->second.node, made->second.node, maker});
    place.held_whole =
        HoldsAll(holder, step_.TypeOf(place.outside.find("x")->second), step_.ShapeOf(place.outside.find("x")->second));
    return true;
  }

  /// The array has as many elements as x, of x's type and of a shape that it accepts.
  bool HoldsAll(const StepNode& array, DType type, const PartialShape& x) const {
    const Tensor* const size = array.inputs.empty() ? nullptr : step_.ValueOf(array.inputs[0]);
    const Result<DType> dtype = array.source->attrs().Type("dtype");
    const Result<PartialShape> element = array.source->attrs().ShapeAttr("element_shape");
    if (size == nullptr || size->dtype() != DType::kInt32 || size->elements() != 1 || x.rank() != 3) return false;
    const Result<PartialShape> row = PartialShape::Make(std::vector<int64_t>{x.dim(1), x.dim(2)});
    return size->as<int32_t>()[0] == x.dim(0) && dtype.ok() && *dtype == type && element.ok() && row.ok() &&
           element->CompatibleWith(*row);
  }

  /// The value that this one is in all iterations in which it is live.
  Endpoint Passed(Endpoint value) const {
    for (;;) {
      const StepNode& node = step_.node(value.node);
      const bool passes = node.kind == StepNode::Kind::kOp && !node.inputs.empty() &&
                          (node.source->op().traits.passes_value || graph::FlowOf(node) == Flow::kSwitch);
      if (!passes) return value;
      value = node.inputs[0];
    }
  }

  /// `t` is a loop variable whose next value is made by one of the ops from it and a constant above 0.
  bool IsCounter(const Term& next, const Endpoint& t) const {
    const Endpoint variable = Passed(t);
    const StepNode& merge = step_.node(variable.node);
    if (graph::FlowOf(merge) != Flow::kMerge || merge.inputs.size() != 2 || variable.index != 0) return false;
    const auto back = std::ranges::find_if(
        merge.inputs, [&](const Endpoint& input) { return graph::IsBackEdge(step_, merge, input); });
    if (back == merge.inputs.end()) return false;
    const StepNode& sum = step_.node(Passed(step_.node(back->node).inputs[0]).node);
    if (sum.kind != StepNode::Kind::kOp || sum.inputs.size() != 2) return false;
    if (std::ranges::find(next.ops, sum.source->op().name) == next.ops.end()) return false;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Tensor* const step = step_.ValueOf(sum.inputs[1 - i]);
      if (!(Passed(sum.inputs[i]) == variable) || step == nullptr || step->dtype() != DType::kInt32) continue;
      if (step->elements() == 1 && step->as<int32_t>()[0] > 0) return true;
    }
    return false;
  }

  /// Sorts the inner nodes into stateful ones, which stay, and others, whose users are all of the expression.
  bool TakeInner(Place& place) const {
    std::map<NodeId, int> uses;
    for (const NodeId id : place.bound.nodes) {
      for (const Endpoint& input : step_.node(id).inputs) ++uses[input.node];
    }
    const std::set<NodeId> inner(place.bound.nodes.begin() + 1, place.bound.nodes.end());
    for (const NodeId id : inner) {
      if (uses[id] != users_[id]) return false;
      (step_.node(id).source->op().stateful ? place.kept : place.erased).push_back(id);
    }
    return place.erased.size() >= 2;  // their names are those of the new nodes
  }

  bool FindEnter(Place& place) const {
    const DType type = step_.node(place.root).types[0];
    for (const auto& [name, value] : place.bound.values) {
      const StepNode& node = step_.node(value.node);
      if (!IsLoopConstant(node) || node.types.size() != 1 || node.types[0] != type) continue;
      if (node.kind == StepNode::Kind::kOp && node.frame == step_.node(place.root).frame) place.enter = value.node;
    }
    return place.enter >= 0;
  }

  /// The operands of both nodes are plain values, and the parts of the left matrix are as long together as the right
  /// one is high.
  bool OperandsAreThere(const Place& place) const {
    for (const Term& operand : place.lift->lifted.operands) {
      const auto value = place.outside.find(operand.name);
      if (value == place.outside.end() || !IsPlain(step_, value->second)) return false;
    }
    for (const op::ArgDef& arg : place.lift->result->inputs) {
      if (arg.name == place.lift->lifted.name) continue;
      const auto value = place.bound.values.find(arg.name);
      if (value == place.bound.values.end() || !IsPlain(step_, value->second)) return false;
    }
    const PartialShape& x = step_.ShapeOf(place.outside.find("x")->second);
    const PartialShape& h = step_.ShapeOf(place.bound.values.find("h")->second);
    const PartialShape& w = step_.ShapeOf(place.bound.values.find("w")->second);
    return x.rank() == 3 && h.rank() == 2 && w.rank() == 2 && x.dim(1) == h.dim(0) && x.dim(2) + h.dim(1) == w.dim(0) &&
           step_.node(place.root).shapes[0].fully_defined();
  }

  const StepGraph& step_;
  const IndexedVector<NodeId, int>& users_;
  const Scene& scene_;
};

/// Puts nodes at position `at`; their inputs have the numbers of the step before.
void Insert(NodeId at, std::vector<StepNode> nodes, int device, StepGraph& step, graph::Placement& placement) {
  const auto count = static_cast<NodeId>(nodes.size());
  const auto move = [&](NodeId& id) { id += id >= at ? count : 0; };
  for (StepNode& node : step.nodes) {
    for (Endpoint& input : node.inputs) move(input.node);
    for (NodeId& control : node.control_inputs) move(control);
  }
  for (Endpoint& fetch : step.fetches) move(fetch.node);
  for (NodeId& target : step.targets) move(target);
  const std::vector<int> devices(nodes.size(), device);
  step.nodes.InsertAt(at, std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
  placement.device_of.InsertAt(at, devices.begin(), devices.end());
}

StepNode OpNode(const graph::Node& source, DType type, const PartialShape& shape, graph::FrameId frame,
                std::vector<Endpoint> inputs) {
  StepNode node;
  node.source = &source;
  node.inputs = std::move(inputs);
  node.types = {type};
  node.shapes = {shape};
  node.frame = frame;
  return node;
}

/// The node ahead of the loop, and what the fused node is made of. Ids are those of the step without new nodes.
struct Lifted {
  const op::OpDef* op = nullptr;
  op::AttrList attrs, fused_attrs;
  std::vector<Endpoint> operands;
  graph::MadeNode made, enter;
  PartialShape shape;
};

/// No value if the nodes of the place do not agree on attributes.
Result<std::optional<Lifted>> LiftedAt(const Place& place, const StepGraph& step) {
  const Lift& lift = *place.lift;
  Lifted lifted;
  lifted.op = step.graph->ops().Find(lift.lifted.ops[0]);
  if (lifted.op == nullptr) return Internal("op {}: there is no op '{}'", lift.result->name, lift.lifted.ops[0]);
  lifted.fused_attrs = lift.expression->attrs;
  const graph::Node& enter = *step.node(place.enter).source;
  op::AttrList enter_attrs;
  const bool agree = AddAttrs(step, place.bound.nodes, *lift.result, lifted.fused_attrs) &&
                     AddAttrs(step, place.bound.nodes, *lifted.op, lifted.attrs) &&
                     AddAttrs(step, {place.enter}, enter.op(), enter_attrs);
  if (!agree || !op::Validate({*lift.result, lifted.fused_attrs}).ok() ||
      !op::Validate({*lifted.op, lifted.attrs}).ok()) {
    return std::optional<Lifted>();  // of another type
  }
  const PartialShape& x = step.ShapeOf(place.outside.find("x")->second);
  const PartialShape& product = step.node(place.root).shapes[0];
  const std::vector<int64_t> extents = {x.dim(0), product.dim(0), product.dim(1)};
  WEIR_ASSIGN(lifted.shape, PartialShape::Make(extents));
  for (const Term& operand : lift.lifted.operands) {
    lifted.operands.push_back(place.outside.find(operand.name)->second);
  }
  for (const NodeId id : place.erased) lifted.made.stands_for.push_back(step.node(id).source);
  const std::vector<const graph::Node*>& replaced = lifted.made.stands_for;
  const size_t count = replaced.size();
  WEIR_ASSIGN(lifted.made.node, graph::Node::InPlaceOf(*replaced[count - 1], *lifted.op, lifted.attrs));
  WEIR_ASSIGN(lifted.enter.node, graph::Node::InPlaceOf(*replaced[count - 2], enter.op(), enter_attrs));
  return std::optional<Lifted>(std::move(lifted));
}

/// The inputs of the fused node, with `lifted` as the value of the lifted node in the loop.
std::vector<Endpoint> FusedInputs(const Place& place, Endpoint lifted) {
  std::vector<Endpoint> inputs;
  for (const op::ArgDef& arg : place.lift->result->inputs) {
    const bool is_it = arg.name == place.lift->lifted.name;
    inputs.push_back(is_it ? lifted : place.bound.values.find(arg.name)->second);
  }
  return inputs;
}

/// Kernels take both nodes. The step is as before when this returns.
bool KernelsTake(const FuseOptions& options, const Place& place, const Lifted& lifted,
                 const IndexedVector<NodeId, int>& users, StepGraph& step, graph::Placement& placement) {
  const NodeId made = step.nodes.end_index();
  const StepNode& root = step.node(place.root);
  std::vector<StepNode> nodes;
  nodes.push_back(OpNode(*lifted.made.node, root.types[0], lifted.shape, graph::kStepFrame, lifted.operands));
  nodes.push_back(OpNode(*lifted.enter.node, root.types[0], lifted.shape, root.frame, {{made, 0}}));
  for (StepNode& node : nodes) step.nodes.push_back(std::move(node));
  placement.device_of.resize(step.nodes.size(), placement.device_of[place.root]);
  const Scene scene{options, step, placement, users};
  const bool taken =
      SomeKernelTakes(scene, place.root, *place.lift->result, FusedInputs(place, {made + 1, 0}), lifted.fused_attrs) &&
      SomeKernelTakes(scene, made, *lifted.op, lifted.operands, lifted.attrs);
  step.nodes.resize(PositionOf(made));
  placement.device_of.resize(step.nodes.size());
  return taken;
}

/// The lifted node and its Enter are put behind the operands; the root becomes the fused node. False, with the step as
/// it was, if a kernel is missing.
Result<bool> Apply(const FuseOptions& options, const Place& place, const IndexedVector<NodeId, int>& users,
                   StepGraph& step, graph::Placement& placement) {
  WEIR_ASSIGN(std::optional<Lifted> lifted, LiftedAt(place, step));
  if (!lifted || !KernelsTake(options, place, *lifted, users, step, placement)) return false;
  NodeId at = 0;
  for (const Endpoint& operand : lifted->operands) at = std::max(at, operand.node + 1);
  const StepNode& root = step.node(place.root);
  const graph::FrameId parent = step.ParentOf(root.frame);
  std::vector<StepNode> nodes;
  nodes.push_back(OpNode(*lifted->made.node, root.types[0], lifted->shape, parent, lifted->operands));
  nodes.push_back(OpNode(*lifted->enter.node, root.types[0], lifted->shape, root.frame, {}));
  step.made.push_back(std::move(lifted->made));
  step.made.push_back(std::move(lifted->enter));
  Insert(at, std::move(nodes), placement.device_of[place.root], step, placement);
  step.nodes[at + 1].inputs = {{at, 0}};

  const auto moved = [&](NodeId id) { return id >= at ? id + 2 : id; };
  std::vector<Endpoint> inputs = FusedInputs(place, {-1, 0});
  for (Endpoint& input : inputs) input.node = input.node < 0 ? at + 1 : moved(input.node);
  graph::Rewriter rewriter(step);
  WEIR_TRY(rewriter.StandFor(moved(place.root), {}, *place.lift->result, lifted->fused_attrs));
  StepNode& fused = step.nodes[moved(place.root)];
  fused.inputs = std::move(inputs);
  for (const NodeId id : place.kept) fused.control_inputs.push_back(moved(id));
  for (const NodeId id : place.erased) {
    const StepNode& node = step.node(moved(id));
    fused.control_inputs.insert(fused.control_inputs.end(), node.control_inputs.begin(), node.control_inputs.end());
    rewriter.Erase(moved(id));
  }
  for (const NodeId id : place.held) rewriter.Erase(moved(id));
  FollowMoves(rewriter.Finish(), step, placement);
  return true;
}

}  // namespace

Status LiftFromLoops(const FuseOptions& options, StepGraph& step, graph::Placement& placement) {
  if (step.frames.size() <= 1) return Status();
  WEIR_ASSIGN(const Expressions expressions, Expressions::Of(step));
  IndexedVector<NodeId, int> users = graph::CountUsers(step);
  for (NodeId id = step.nodes.end_index() - 1; id >= 0; --id) {
    for (const Lift* const lift : expressions.LiftsAt(step.node(id))) {
      const std::optional<Place> place = PlaceFinder({options, step, placement, users}).At(*lift, id);
      if (!place) continue;
      const auto before = static_cast<NodeId>(step.nodes.size());
      WEIR_ASSIGN(const bool applied, Apply(options, *place, users, step, placement));
      if (!applied) continue;
      id += static_cast<NodeId>(step.nodes.size()) - before;  // of the root now
      users = graph::CountUsers(step);
      break;
    }
  }
  return Status();
}

}  // namespace weir::fuse
