#include "core/graph/definition.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/inference.h"

namespace weir::graph {
namespace {

bool HasFlow(const Node& node, op::Flow flow) { return node.op().traits.flow == flow; }

std::string TypeList(std::span<const DType> types) {
  std::string text;
  for (const DType type : types) text += (text.empty() ? "" : ", ") + Name(type);
  return text;
}

/// Removes repeated ids, keeping the first of each.
void RemoveRepeated(std::vector<NodeId>& ids) {
  if (ids.size() < 2) return;
  std::unordered_set<NodeId> seen;
  std::erase_if(ids, [&](NodeId id) { return !seen.insert(id).second; });
}

/// The `value` attribute if it is a tensor, else null.
const Tensor* ConstValue(const op::AttrList& attrs) {
  for (const auto& [name, value] : attrs) {
    if (name == "value") return value.get<Tensor>();
  }
  return nullptr;
}

Status CheckConst(const op::AttrView& attrs) {
  const Tensor* value = ConstValue(attrs.explicit_values());
  const op::AttrValue* dtype = attrs.Find("dtype");
  const DType* wanted = dtype != nullptr ? dtype->get<DType>() : nullptr;
  if (value == nullptr || wanted == nullptr || value->dtype() == *wanted) return {};
  return InvalidArgument("Type mismatch between value ({}) and dtype ({})", Name(value->dtype()), Name(*wanted));
}

}  // namespace

Result<std::shared_ptr<const Node>> Node::InPlaceOf(const Node& original, const op::OpDef& op, op::AttrList attrs) {
  struct Holder {
    Node node;
    op::Signature signature;
  };
  auto holder = std::make_shared<Holder>();
  Node& node = holder->node;
  node.id_ = original.id_;
  node.name_ = original.name_;
  node.device_ = original.device_;
  node.origin_ = original.origin_;
  node.op_ = &op;
  node.attrs_ = std::move(attrs);
  WEIR_TRY(op::Validate(node.attrs()));
  WEIR_ASSIGN(holder->signature, op::Expand(node.attrs()));
  node.signature_ = &holder->signature;
  return std::shared_ptr<const Node>(holder, &node);
}

Definition::Definition(const op::OpRegistry& ops) : ops_(&ops) {}

Result<Node*> Definition::Add(NodeSpec spec) {
  Node& node = nodes_.emplace_back();
  node.id_ = num_nodes() - 1;
  if (Status status = Fill(spec, node); !status.ok()) {
    status = status.WithNode(std::move(node.name_), std::move(node.origin_));
    nodes_.pop_back();
    return status;
  }
  by_name_.Insert(node.name_, node.id_);
  return &node;
}

Status Definition::Fill(NodeSpec& spec, Node& node) {
  node.name_ = std::move(spec.name);
  node.origin_ = std::move(spec.origin);
  if (finalized_) return FailedPrecondition("Graph is finalized and cannot be modified.");
  if (!IsValidInternalName(node.name_)) {
    return InvalidArgument("Node '{}': Node name contains invalid characters", node.name_);
  }
  if (Find(node.name_) != nullptr) return InvalidArgument("Node '{}' is not unique", node.name_);
  if (spec.op == nullptr) return InvalidArgument("Node '{}' has no op", node.name_);

  node.op_ = spec.op;
  node.device_ = std::move(spec.device);
  node.attrs_ = std::move(spec.attrs);
  node.inputs_ = std::move(spec.inputs);
  node.control_inputs_ = std::move(spec.control_inputs);
  RemoveRepeated(node.control_inputs_);
  for (const NodeId from : node.control_inputs_) {
    if (from < 0 || from >= node.id_) {
      return InvalidArgument("Node '{}': control input {} is no node of the graph", node.name_, from);
    }
  }
  const op::AttrView attrs = node.attrs();
  if (Status valid = op::Validate(attrs); !valid.ok()) {
    return valid.Append(fmt::format("; NodeDef: {{{{node {}}}}}", node.name_));
  }
  WEIR_ASSIGN(node.signature_, signatures_.Get(attrs));
  WEIR_TRY(CheckInputs(node));
  if (node.op_->traits.universal == op::Universal::kConstant) {
    if (Status status = CheckConst(attrs); !status.ok()) {
      return status.Append(fmt::format("\n\t [[{{{{node {}}}}}]]", node.name_));
    }
  }
  return InferOutputShapes(node);
}

Status Definition::CheckInputs(const Node& node) const {
  const std::vector<DType>& wanted = node.signature_->inputs;
  const bool foreign = IsForeign(node);
  if (!foreign && node.inputs_.size() != wanted.size()) {
    return InvalidArgument(
        "NodeDef expected inputs '{}' do not match {} inputs specified; {}; NodeDef: {{{{node {}}}}}", TypeList(wanted),
        node.inputs_.size(), op::Summarize(*node.op_), node.name_);
  }
  for (size_t i = 0; i < node.inputs_.size(); ++i) {
    const Endpoint& from = node.inputs_[i];
    if (from == Endpoint{} && HasFlow(node, op::Flow::kMerge)) continue;
    if (from.node < 0 || from.node >= node.id_) {
      return InvalidArgument("Node '{}': input {} comes from node {}, which the graph does not have", node.name_, i,
                             from.node);
    }
    WEIR_TRY(CheckInput(node, static_cast<int>(i)));
  }
  return {};
}

Status Definition::CheckInput(const Node& node, int index) const {
  const std::vector<DType>& types = node.signature_->inputs;
  const DType wanted = IsForeign(node) ? DType::kInvalid : types[static_cast<size_t>(index)];
  const Endpoint from = node.inputs_[static_cast<size_t>(index)];
  const Node& source = this->node(from.node);
  if (from.index < 0 || from.index >= source.num_outputs()) {
    return InvalidArgument("Node '{}': Connecting to invalid output {} of source node {} which has {} outputs",
                           node.name_, from.index, source.name(), source.num_outputs());
  }
  const DType given = TypeOf(from);
  if (given == wanted || given == DType::kInvalid || wanted == DType::kInvalid) return {};
  if (!IsRef(wanted) && BaseType(given) == wanted) return {};
  return InvalidArgument("Input {} of node {} was passed {} from {} incompatible with expected {}.", index, node.name_,
                         Name(given), FullEndpointName(*this, from), Name(wanted));
}

Status Definition::InferOutputShapes(Node& node) {
  scratch_shapes_.clear();
  for (const Endpoint& from : node.inputs_) {
    scratch_shapes_.push_back(from.node < 0 ? PartialShape() : ShapeOf(from));
  }
  InputKnowledge knowledge(*this, node.inputs_);
  Result<std::vector<PartialShape>> shapes = RunShapeFunction(node, scratch_shapes_, knowledge);
  if (!shapes.ok()) {
    const auto is_unfit = [](const auto& attr) { return attr.first == kUnfitAttr; };
    if (std::ranges::none_of(node.attrs_, is_unfit)) return shapes.status();
    node.output_shapes_.assign(static_cast<size_t>(node.num_outputs()), PartialShape());
    return {};
  }
  node.output_shapes_ = *std::move(shapes);
  return {};
}

Status Definition::SetInput(NodeId id, int index, Endpoint from) {
  Node& node = nodes_[static_cast<size_t>(id)];
  const auto fail = [&](const Status& status) { return status.WithNode(node.name_, node.origin_); };
  if (index < 0 || index >= static_cast<int>(node.inputs_.size())) {
    return fail(InvalidArgument("Node '{}' has no input {}", node.name_, index));
  }
  if (from.node < 0 || from.node >= num_nodes()) {
    return fail(InvalidArgument("Node '{}': input {} comes from node {}, which the graph does not have", node.name_,
                                index, from.node));
  }
  const bool closes_loop = HasFlow(this->node(from.node), op::Flow::kNextIteration) && HasFlow(node, op::Flow::kMerge);
  if (from.node >= id && !closes_loop) {
    return fail(InvalidArgument("Node '{}': input {} from '{}', which is younger, would close a cycle", node.name_,
                                index, this->node(from.node).name()));
  }
  const Endpoint before = std::exchange(node.inputs_[static_cast<size_t>(index)], from);
  if (Status status = CheckInput(node, index); !status.ok()) {
    node.inputs_[static_cast<size_t>(index)] = before;
    return fail(status);
  }
  return {};
}

Status Definition::AddControlInput(NodeId id, NodeId from) {
  Node& node = nodes_[static_cast<size_t>(id)];
  if (from < 0 || from >= id) {
    return InvalidArgument("Node '{}': a control input from a newer node would close a cycle", node.name_)
        .WithNode(node.name_, node.origin_);
  }
  if (std::ranges::find(node.control_inputs_, from) == node.control_inputs_.end()) {
    node.control_inputs_.push_back(from);
  }
  return {};
}

const op::OpDef& Definition::AddForeignOp(std::string_view name, int outputs) {
  const auto [entry, fresh] = foreign_ops_.try_emplace({std::string(name), outputs});
  op::OpDef& def = entry->second;
  if (!fresh) return def;
  def.name = name;
  def.shape = op::Unknown();
  def.no_gradient = "the op is not known";
  def.outputs.resize(static_cast<size_t>(outputs));
  for (int i = 0; i < outputs; ++i) def.outputs[static_cast<size_t>(i)].name = fmt::format("output_{}", i);
  return def;
}

bool Definition::IsForeign(const Node& node) const {
  if (foreign_ops_.empty()) return false;
  const auto found = foreign_ops_.find({node.op().name, static_cast<int>(node.op().outputs.size())});
  return found != foreign_ops_.end() && &found->second == &node.op();
}

void Definition::SetFunctions(std::shared_ptr<const FunctionLibrary> functions) {
  functions_.swap(functions);
  if (functions->size() > functions_->size()) past_functions_.push_back(std::move(functions));
}

void Definition::SetAttr(NodeId id, std::string_view name, op::AttrValue value) {
  op::AttrList& attrs = nodes_[static_cast<size_t>(id)].attrs_;
  const auto found = std::ranges::find(attrs, name, &op::AttrList::value_type::first);
  if (found != attrs.end()) {
    found->second = std::move(value);
  } else {
    attrs.emplace_back(name, std::move(value));
  }
}

void Definition::SetDevice(NodeId id, std::string device) {
  nodes_[static_cast<size_t>(id)].device_ = std::move(device);
}

Status Definition::RefineShape(Endpoint endpoint, const PartialShape& shape) {
  Node& node = nodes_[static_cast<size_t>(endpoint.node)];
  PartialShape& known = node.output_shapes_[static_cast<size_t>(endpoint.index)];
  Result<PartialShape> merged = known.Merge(shape);
  if (!merged.ok()) return merged.status().WithNode(node.name_, node.origin_);
  known = std::move(*merged);
  return {};
}

void Definition::Reserve(int nodes) { by_name_.Reserve(nodes); }

void Definition::Truncate(int nodes) {
  while (num_nodes() > std::max(nodes, 0)) {
    nodes_.pop_back();
  }
  by_name_.Clear();
  for (const Node& node : nodes_) by_name_.Insert(node.name_, node.id_);
}

const Node* Definition::Find(std::string_view name) const {
  const NodeId id = by_name_.Find(name, [this](NodeId i) { return std::string_view(node(i).name_); });
  return id >= 0 ? &node(id) : nullptr;
}

std::vector<std::string_view> Definition::Names() const {
  std::vector<std::string_view> names;
  names.reserve(nodes_.size());
  for (const Node& node : nodes_) names.emplace_back(node.name_);
  return names;
}

std::string Definition::Summary(NodeId id) const {
  const Node& n = node(id);
  std::string attrs;
  for (const auto& [name, value] : n.attrs_)
    attrs += fmt::format("{}{}={}", attrs.empty() ? "" : ", ", name, value.ToString());
  if (!n.device_.empty()) attrs += fmt::format("{}_device=\"{}\"", attrs.empty() ? "" : ", ", n.device_);
  std::string inputs;
  for (const Endpoint& e : n.inputs_) {
    inputs += fmt::format("{}{}", inputs.empty() ? "" : ", ", e.node < 0 ? "?" : EndpointName(*this, e));
  }
  for (const NodeId c : n.control_inputs_) inputs += fmt::format("{}^{}", inputs.empty() ? "" : ", ", node(c).name());
  return fmt::format("{{{{node {}}}}} = {}[{}]({})", n.name_, n.op_->name, attrs, inputs);
}

}  // namespace weir::graph
