// Builds the graphs of the parts node by node.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/graph/order.h"
#include "core/op/op_names.h"
#include "core/partition/cut_internal.h"

namespace weir::partition {

using graph::Endpoint;
using graph::Flow;
using graph::FlowOf;
using graph::NodeId;
using graph::OrderItem;
using graph::StepNode;

Result<std::vector<graph::Part>> Cutter::Run() {
  graph::OrderOptions wishes;
  wishes.late = borders_.late;
  WEIR_ASSIGN(const std::vector<OrderItem> order, graph::Order(step_, wishes));
  const auto is_plain = [](const StepNode& node) { return FlowOf(node) == Flow::kPlain; };
  waits_ = borders_.late && std::ranges::all_of(step_.nodes, is_plain);
  for (const OrderItem& item : order) {
    if (item.kind != OrderItem::Kind::kNode || step_.node(item.id).kind != StepNode::Kind::kOp) continue;
    if (FlowOf(step_.node(item.id)) == Flow::kEnter) WEIR_TRY(OpenLoop(step_.node(item.id).frame));
    WEIR_TRY(Copy(item.id));
    WEIR_TRY(SendOn(item.id));
  }
  WEIR_TRY(CloseLoops());
  for (size_t i = 0; i < step_.fetches.size(); ++i) WEIR_TRY(Fetch(i));
  std::vector<graph::Part> parts;
  for (auto& [number, part] : parts_) parts.push_back(std::move(part));
  return parts;
}

graph::Definition& Cutter::GraphOf(int part, int device) {
  const auto found = parts_.find(part);
  if (found != parts_.end()) return found->second.graph;
  graph::Definition graph(step_.graph->ops());
  graph.versions().producer = step_.graph->versions().producer;
  return parts_.emplace(part, graph::Part{NameOf(device), std::move(graph)}).first->second.graph;
}

std::string Cutter::NewName(std::string_view before) {
  for (;;) {
    std::string name = fmt::format("{}_{}", before, made_++);
    if (step_.graph->Find(name) == nullptr) return name;
  }
}

Result<NodeId> Cutter::Add(int part, int device, std::string name, const char* op, std::vector<Endpoint> inputs,
                           std::vector<NodeId> controls, op::AttrList attrs) {
  graph::NodeSpec spec;
  spec.name = std::move(name);
  WEIR_ASSIGN(spec.op, step_.graph->ops().Get(op));
  spec.inputs = std::move(inputs);
  spec.control_inputs = std::move(controls);
  spec.device = NameOf(device);
  spec.attrs = std::move(attrs);
  WEIR_ASSIGN(const graph::Node* const made, GraphOf(part, device).Add(std::move(spec)));
  return made->id();
}

Result<Endpoint> Cutter::Given(Endpoint value, int part, int device) {
  Endpoint& given = given_.try_emplace({part, value}, Endpoint{}).first->second;
  if (given.node >= 0) return given;
  const StepNode& node = step_.node(value.node);
  if (node.kind == StepNode::Kind::kFeed) {
    const int index = request_.feeds[PositionOf(node.feed)].endpoint.index;
    WEIR_ASSIGN(given.node, Add(part, device, fmt::format("_arg_{}_{}_{}", node.name(), index, node.feed), op::kArgOp,
                                {}, {}, {{"T", node.types[0]}, {"index", node.feed}}));
    return given;
  }
  std::string name(node.name());
  if (value.index > 0) name += fmt::format("/_output_{}", value.index);
  const Tensor& tensor = node.values[PositionOf(value.index)];
  WEIR_ASSIGN(given.node,
              Add(part, device, std::move(name), op::kConstOp, {}, {}, {{"dtype", tensor.dtype()}, {"value", tensor}}));
  return given;
}

Result<Endpoint> Cutter::Local(Endpoint value, int part, int device) {
  if (step_.node(value.node).kind != StepNode::Kind::kOp) return Given(value, part, device);
  if (cut_.part_of[value.node] == part) {
    return Endpoint{copies_[value.node], value.index};
  }
  WEIR_ASSIGN(const NodeId received, Received(part, value));
  return Endpoint{received, 0};
}

Status Cutter::Expect(int part, Endpoint value, Arrival arrival) {
  expected_.emplace(std::pair(part, value), std::move(arrival));
  return borders_.late ? Status() : Received(part, value).status();
}

Result<NodeId> Cutter::Received(int part, Endpoint value) {
  const auto expected = expected_.find({part, value});
  if (expected == expected_.end()) return received_.at({part, value});
  Arrival arrival = std::move(expected->second);
  expected_.erase(expected);
  arrival.controls.insert(arrival.controls.end(), awaited_.begin(), awaited_.end());
  WEIR_ASSIGN(NodeId node, Add(part, arrival.device, std::move(arrival.name), op::kRecvOp, {},
                               std::move(arrival.controls), std::move(arrival.attrs)));
  if (arrival.then != nullptr) {
    WEIR_ASSIGN(node, Add(part, arrival.device, std::move(arrival.then_name), arrival.then, {{node, 0}}, {},
                          std::move(arrival.then_attrs)));
  }
  received_[{part, value}] = node;
  return node;
}

std::vector<NodeId> Cutter::MakersBehind(NodeId id) const {
  std::set<NodeId> makers;
  const auto is_here = [&](const Endpoint& value) {
    return step_.node(value.node).kind == StepNode::Kind::kOp && cut_.part_of[value.node] == cut_.part_of[id];
  };
  for (const Endpoint& input : step_.node(id).inputs) {
    if (!waits_ || !is_here(input)) continue;
    for (const Endpoint& operand : step_.node(input.node).inputs) {
      if (is_here(operand)) makers.insert(copies_[operand.node]);
    }
  }
  return {makers.begin(), makers.end()};
}

Status Cutter::Copy(NodeId id) {
  const StepNode& node = step_.node(id);
  const int part = cut_.part_of[id], device = cut_.device_of[id];
  graph::NodeSpec spec;
  spec.name = node.name();
  const auto begun = parts_.find(part);
  if (begun != parts_.end() && begun->second.graph.Find(spec.name) != nullptr) {
    spec.name = NewName(spec.name);  // a second node of one source
  }
  spec.op = &node.source->op();
  spec.device = NameOf(device);
  spec.attrs = node.source->attrs().explicit_values();
  std::erase_if(spec.attrs, [](const auto& attr) { return attr.first == "_class"; });  // the node is already placed
  if (spec.op->MakesState() && IsRef(node.types[0]) && !node.shapes[0].fully_defined()) {
    // An Assign elsewhere in the graph may change the declared shape of the variable, and the part does not contain it.
    for (auto& [name, value] : spec.attrs) {
      if (name == "shape") value = node.shapes[0];
    }
  }
  spec.origin = node.source->origin();
  awaited_ = MakersBehind(id);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph::IsBackEdge(step_, node, node.inputs[i])) {
      back_edges_.push_back({id, i});
      spec.inputs.push_back({});
    } else {
      WEIR_ASSIGN(const Endpoint local, Local(node.inputs[i], part, device));
      spec.inputs.push_back(local);
    }
  }
  for (const NodeId control : node.control_inputs) {
    if (step_.node(control).kind != StepNode::Kind::kOp) continue;  // available before the step starts
    const bool here = cut_.part_of[control] == part;
    WEIR_ASSIGN(const NodeId local, here ? copies_[control] : Received(part, ControlOf(control)));
    spec.control_inputs.push_back(local);
  }
  awaited_.clear();
  WEIR_ASSIGN(const graph::Node* const made, GraphOf(part, device).Add(std::move(spec)));
  copies_[id] = made->id();
  return Status();
}

Status Cutter::CloseLoops() {
  for (const BackEdge& edge : back_edges_) {
    const int part = cut_.part_of[edge.to];
    const Endpoint from = step_.node(edge.to).inputs[edge.input];
    const NodeId to = copies_[edge.to];
    const Endpoint next{copies_[from.node], from.index};
    WEIR_TRY(parts_.at(part).graph.SetInput(to, static_cast<int>(edge.input), next));
  }
  return Status();
}

Status Cutter::SendOn(NodeId id) {
  const StepNode& node = step_.node(id);
  for (int i = 0; i < static_cast<int>(node.types.size()); ++i) {
    const auto receivers = cut_.values.find({id, i});
    if (receivers == cut_.values.end()) continue;
    const DType type = BaseType(node.types[PositionOf(i)]);
    const Endpoint made{copies_[id], i};
    for (const auto& [part, device] : HomeFirst(receivers->second)) {
      const PartialShape& shape = node.shapes[PositionOf(i)];
      WEIR_ASSIGN(const Crossing sent, SenderOf(id, {id, i}, made, part));
      WEIR_ASSIGN(Arrival arrival, borders_.bfloat16 && type == DType::kFloat
                                       ? CrossHalved(sent, part, device, shape)
                                       : Cross(sent, type, part, device, shape));
      WEIR_TRY(Expect(part, {id, i}, std::move(arrival)));
    }
  }
  if (const auto waiting = cut_.controls.find(id); waiting != cut_.controls.end()) {
    for (const auto& [part, device] : HomeFirst(waiting->second)) {
      WEIR_ASSIGN(Arrival arrival, CrossControl(id, part, device));
      WEIR_TRY(Expect(part, ControlOf(id), std::move(arrival)));
    }
  }
  return FlowOf(node) == Flow::kLoopCond ? CloseSkeletons(node.frame) : Status();
}

std::vector<NodeId> Cutter::Pace(NodeId id, int part) const {
  const auto skeleton = skeletons_.find({graph::OutputFrame(step_, id), part});
  return skeleton == skeletons_.end() ? std::vector<NodeId>() : std::vector<NodeId>{skeleton->second};
}

std::vector<std::pair<int, int>> Cutter::HomeFirst(const Receivers& receivers) const {
  std::vector<std::pair<int, int>> ordered(receivers.begin(), receivers.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [&](const auto& receiver) { return receiver.first == cut_.home_part; });
  return ordered;
}

Result<Cutter::Crossing> Cutter::SenderOf(NodeId from, Endpoint value, Endpoint made, int to) {
  if (!borders_.through_home || to == cut_.home_part || cut_.part_of[from] == cut_.home_part) {
    return Crossing{from, made, cut_.part_of[from], cut_.device_of[from]};
  }
  WEIR_ASSIGN(const NodeId received, Received(cut_.home_part, value));
  return Crossing{from, {received, 0}, cut_.home_part, cut_.home};
}

Result<Cutter::Arrival> Cutter::Cross(const Crossing& crossing, DType type, int part, int device,
                                      const PartialShape& shape) {
  const auto& [from, value, sender, made_on] = crossing;
  const std::string_view name = step_.node(from).name();
  const uint64_t own = borders_.incarnations.empty() ? 1 : borders_.incarnations[PositionOf(made_on)];
  const auto incarnation = static_cast<int64_t>(own);
  const auto with = [&, tensor = fmt::format("edge_{}_{}", made_, name)](op::AttrList attrs) {
    attrs.emplace_back("tensor_name", tensor);
    attrs.emplace_back("send_device", NameOf(made_on));
    attrs.emplace_back("send_device_incarnation", incarnation);
    attrs.emplace_back("recv_device", NameOf(device));
    return attrs;
  };
  const std::string before = fmt::format("{}/", name);
  WEIR_TRY(
      Add(sender, made_on, NewName(before), op::kSendOp, {value}, Pace(from, sender), with({{"T", type}})).status());
  Arrival arrival{device, NewName(before), Pace(from, part), with({{"tensor_type", type}})};
  if (shape.has_rank()) arrival.attrs.emplace_back("_output_shapes", std::vector<PartialShape>{shape});
  return arrival;
}

Result<Cutter::Arrival> Cutter::CrossHalved(const Crossing& crossing, int part, int device,
                                            const PartialShape& shape) {
  const std::string before = fmt::format("{}/", step_.node(crossing.from).name());
  WEIR_ASSIGN(const NodeId halved,
              Add(crossing.part, crossing.device, NewName(before), op::kCastOp, {crossing.value}, {},
                  {{"SrcT", DType::kFloat}, {"DstT", DType::kBfloat16}, {"Truncate", true}}));
  const Crossing sent{crossing.from, {halved, 0}, crossing.part, crossing.device};
  WEIR_ASSIGN(Arrival arrival, Cross(sent, DType::kBfloat16, part, device, shape));
  arrival.then = op::kCastOp;
  arrival.then_name = NewName(before);
  arrival.then_attrs = {{"SrcT", DType::kBfloat16}, {"DstT", DType::kFloat}, {"Truncate", false}};
  return arrival;
}

Result<Cutter::Arrival> Cutter::CrossControl(NodeId from, int part, int device) {
  const std::string_view name = step_.node(from).name();
  const Tensor empty = Tensor::Vector<float>({});
  WEIR_ASSIGN(Crossing sent, SenderOf(from, ControlOf(from), {}, part));
  if (sent.value.node < 0) {
    WEIR_ASSIGN(sent.value.node,
                Add(sent.part, sent.device, NewName(fmt::format("{}/ctrl/", name)), op::kConstOp, {}, {copies_[from]},
                    {{"dtype", DType::kFloat}, {"value", empty}}));
  }
  WEIR_ASSIGN(Arrival arrival, Cross(sent, DType::kFloat, part, device, PartialShape(empty.shape())));
  arrival.then = op::kIdentityOp;
  arrival.then_name = NewName(fmt::format("{}/", name));
  arrival.then_attrs = {{"T", DType::kFloat}};
  return arrival;
}

Status Cutter::OpenLoop(graph::FrameId frame) {
  const Receivers& parts = cut_.loops[frame];
  if (parts.empty() || skeletons_.contains({frame, parts.begin()->first})) return Status();
  const graph::Frame& opened = step_.frames[frame];
  const graph::Node& entered = *step_.node(cut_.enters[frame]).source;
  WEIR_ASSIGN(const int64_t parallel, entered.attrs().Int("parallel_iterations"));
  for (const auto& [part, device] : parts) {
    Endpoint token;
    if (opened.parent > graph::kStepFrame) {
      token = {skeletons_.at({opened.parent, part}), 0};
    } else {
      WEIR_ASSIGN(token.node, Add(part, device, NewName("_cloop"), op::kConstOp, {}, {},
                                  {{"dtype", DType::kFloat}, {"value", Tensor::Vector<float>({})}}));
    }
    WEIR_ASSIGN(const NodeId enter, Add(part, device, NewName("_cloop"), op::kEnterOp, {token}, {},
                                        {{"T", DType::kFloat},
                                         {"frame_name", opened.name},
                                         {"is_constant", false},
                                         {"parallel_iterations", parallel}}));
    WEIR_ASSIGN((skeletons_[{frame, part}]), Add(part, device, NewName("_cloop"), op::kMergeOp, {{enter, 0}, {}}, {},
                                                 {{"T", DType::kFloat}, {"N", int64_t{2}}}));
  }
  return Status();
}

Status Cutter::CloseSkeletons(graph::FrameId frame) {
  const Endpoint goes_on{cut_.conditions[frame], 0};
  for (const auto& [part, device] : cut_.loops[frame]) {
    const NodeId merge = skeletons_.at({frame, part});
    WEIR_ASSIGN(const Endpoint predicate, Local(goes_on, part, device));
    WEIR_ASSIGN(const NodeId chosen, Add(part, device, NewName("_cloop"), op::kSwitchOp, {{merge, 0}, predicate}, {},
                                         {{"T", DType::kFloat}}));
    WEIR_ASSIGN(const NodeId next,
                Add(part, device, NewName("_cloop"), op::kNextIterationOp, {{chosen, 1}}, {}, {{"T", DType::kFloat}}));
    WEIR_TRY(parts_.at(part).graph.SetInput(merge, 1, {next, 0}));
  }
  return Status();
}

Status Cutter::Fetch(size_t i) {
  const Endpoint source = step_.fetches[i];
  const bool made = step_.node(source.node).kind == StepNode::Kind::kOp;
  const int part = made ? cut_.part_of[source.node] : cut_.home_part;
  const int device = made ? cut_.device_of[source.node] : cut_.home;
  WEIR_ASSIGN(const Endpoint value, Local(source, part, device));
  const Endpoint asked = request_.fetches[i];
  return Add(part, device, fmt::format("_retval_{}_{}_{}", step_.graph->node(asked.node).name(), asked.index, i),
             op::kRetvalOp, {value}, {}, {{"T", BaseType(step_.TypeOf(source))}, {"index", static_cast<int64_t>(i)}})
      .status();
}

}  // namespace weir::partition
