#include "core/base/errors.h"
#include "core/lower/body_gradient_internal.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/lower/lowerer_internal.h"
#include "core/op/deduce.h"
#include "core/op/function_gradient.h"
#include "core/tensor/number.h"

namespace weir::lower {
namespace {

using op::Grad;
using op::Value;

Endpoint ToEndpoint(Value v) { return {v.node, v.index}; }
Value ToValue(Endpoint e) { return {e.node, e.index}; }

/// Calls and functional control flow: executor ops that are not v1 control flow.
bool IsFunctional(const Node& node) {
  return node.op().run_by == op::RunBy::kExecutor && graph::FlowOf(node) == graph::Flow::kPlain;
}

/// `name`, with the first free suffix "_k" if it is used.
std::string FreeName(const Definition& graph, const std::string& name) {
  std::string free = name;
  for (int k = 1; graph.Find(free) != nullptr; ++k) free = fmt::format("{}_{}", name, k);
  return free;
}

Result<NodeId> AddPlaceholder(Definition& graph, const std::string& name, DType dtype, const PartialShape& shape) {
  graph::NodeSpec spec;
  WEIR_ASSIGN(spec.op, graph.ops().Get("Placeholder"));
  spec.name = FreeName(graph, name);
  spec.attrs = {{"dtype", dtype}, {"shape", shape}};
  WEIR_ASSIGN(const Node* const node, graph.Add(std::move(spec)));
  return node->id();
}

/// Adds the nodes of `from` in `kept`, starting at id `images.size()`. Appends the ids of the copies to `images`, kNone
/// for omitted nodes.
Status CopyNodes(const Definition& from, const IndexedVector<NodeId, bool>& kept, Definition& to,
                 IndexedVector<NodeId, NodeId>& images) {
  const NodeId first = images.end_index();
  images.resize(PositionOf(from.num_nodes()), kNone);
  const auto image = [&](Endpoint e) { return e.node < 0 ? Endpoint{} : Endpoint{images[e.node], e.index}; };
  for (NodeId id = first; id < from.num_nodes(); ++id) {
    if (!kept[id]) continue;
    const Node& node = from.node(id);
    graph::NodeSpec spec;
    spec.name = node.name();
    spec.op = &node.op();
    for (const Endpoint& input : node.inputs()) spec.inputs.push_back(image(input));
    for (const NodeId control : node.control_inputs()) {
      const NodeId copy = images[control];
      if (copy != kNone) spec.control_inputs.push_back(copy);
    }
    spec.device = node.device();
    spec.attrs = node.attrs().explicit_values();
    spec.origin = node.origin();
    WEIR_ASSIGN(const Node* const copy, to.Add(std::move(spec)));
    images[id] = copy->id();
  }
  for (NodeId id = first; id < from.num_nodes(); ++id) {  // back edges
    if (!kept[id]) continue;
    for (size_t i = 0; i < from.node(id).inputs().size(); ++i) {
      const Endpoint input = from.node(id).inputs()[i];
      if (input.node < id) continue;
      WEIR_TRY(to.SetInput(images[id], static_cast<int>(i), image(input)));
    }
  }
  return {};
}

/// Unimplemented if a second run of the node could differ from the first.
Status CheckRepeatable(const Node& node, const FunctionBody& body) {
  const op::OpDef& op = node.op();
  const op::Universal universal = op.traits.universal;
  const bool reads = universal == op::Universal::kReadVariable || universal == op::Universal::kIsInitialized ||
                     universal == op::Universal::kVariableShape || op.category == op::Category::kArray;
  if (!HasEffects(op) || IsFunctional(node) || op.traits.checks_only || reads) return {};
  return Unimplemented(
      "The gradient of function '{}' needs the value of its node '{}' a second time, and {} gives another one, or has "
      "another effect, each time it runs. Take it out of the function and pass its value as an argument",
      body.function->signature.name, node.name(), op.name);
}

/// Copies the nodes that the results of `whole` need to a new body.
Result<std::unique_ptr<const FunctionBody>> Pruned(const FunctionBody& whole) {
  const Definition& from = whole.graph;
  const size_t arguments = whole.num_arguments();
  IndexedVector<NodeId, bool> kept(PositionOf(from.num_nodes()), false);
  std::vector<NodeId> stack;
  for (const Endpoint& result : whole.results) stack.push_back(result.node);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (id < 0 || kept[id]) continue;
    kept[id] = true;
    for (const Endpoint& input : from.node(id).inputs()) stack.push_back(input.node);
    for (const NodeId control : from.node(id).control_inputs()) stack.push_back(control);
  }
  auto body = std::make_unique<FunctionBody>(FunctionBody{.function = whole.function, .graph = Definition(from.ops())});
  body->graph.SetFunctions(from.shared_functions());
  body->graph.versions() = from.versions();
  body->signature = whole.signature;
  IndexedVector<NodeId, NodeId> images;
  IndexedVector<NodeId, bool> reached;  // a node of the new graph depends on an argument
  for (size_t i = 0; i < arguments; ++i) {
    const Node& node = from.node(static_cast<NodeId>(i));
    WEIR_ASSIGN(images.emplace_back(),
                AddPlaceholder(body->graph, node.name(), node.output_types()[0], node.output_shapes()[0]));
  }
  WEIR_TRY(CopyNodes(from, kept, body->graph, images));
  for (NodeId id = 0; id < body->graph.num_nodes(); ++id) {
    const Node& node = body->graph.node(id);
    WEIR_TRY(CheckRepeatable(node, whole));
    if (IsFunctional(node)) body->graph.SetAttr(id, op::kValuesOnly, true);
    const auto is_reached = [&](NodeId from_id) { return from_id >= 0 && from_id < id && reached[from_id]; };
    reached.push_back(PositionOf(id) < arguments ||
                      (!IsFunctional(node) &&
                       (std::ranges::any_of(node.inputs(), [&](const Endpoint& e) { return is_reached(e.node); }) ||
                        std::ranges::any_of(node.control_inputs(), is_reached))));
  }
  for (const Endpoint& result : whole.results) {
    body->results.push_back({images[result.node], result.index});
    body->result_of_arguments.push_back(reached[body->results.back().node]);
  }
  return std::unique_ptr<const FunctionBody>(std::move(body));
}

/// The GradContext of a node of a body.
class NodeContext final : public op::GradContext {
 public:
  /// `held` is, by argument of the graph, the dtype of its gradients.
  NodeContext(Definition& graph, graph::FunctionBodies& bodies, std::span<const DType> held, std::string scope)
      : graph_(graph), bodies_(bodies), held_(held), scope_(std::move(scope)) {}

  void Differentiate(const Node& node, std::vector<Grad> dy) {
    node_ = &node;
    attrs_ = std::make_unique<op::AttrView>(node.attrs());
    dy_ = std::move(dy);
    scope_ = node.name() + "_grad";
  }

  const op::AttrView& attrs() const override { return *attrs_; }
  int num_inputs() const override { return static_cast<int>(node_->inputs().size()); }
  int num_outputs() const override { return node_->num_outputs(); }
  Value X(int i) override { return ToValue(node_->inputs()[PositionOf(i)]); }
  Value Y(int i) override { return {node_->id(), i}; }
  Value Dy(int i) override {
    Grad& dy = dy_[PositionOf(i)];
    dy = dy.exists() ? Dense(dy) : Apply("ZerosLike", {Y(i)});
    return dy.values;
  }
  Grad DyAsIs(int i) override {
    const Grad& dy = dy_[PositionOf(i)];
    return dy.sparse() ? dy : Grad(Dy(i));
  }
  bool HasDy(int i) const override { return dy_[PositionOf(i)].exists(); }
  DType TypeOf(Value v) const override { return v.exists() ? graph_.TypeOf(ToEndpoint(v)) : DType::kInvalid; }
  PartialShape ShapeOf(Value v) const override { return v.exists() ? graph_.ShapeOf(ToEndpoint(v)) : PartialShape(); }
  DType GradTypeOf(Value v) const override {
    if (BaseType(TypeOf(v)) != DType::kResource) return TypeOf(v);
    Endpoint from = ToEndpoint(v);
    while (graph_.node(from.node).op().traits.universal == op::Universal::kForward) {
      from = graph_.node(from.node).inputs()[PositionOf(from.index)];
    }
    if (PositionOf(from.node) < held_.size()) return held_[PositionOf(from.node)];
    const Node& node = graph_.node(from.node);
    const Result<DType> dtype =
        node.op().traits.universal == op::Universal::kVariable ? node.attrs().Type("dtype") : DType::kInvalid;
    return dtype.ok() ? *dtype : DType::kInvalid;
  }
  const Tensor* ConstantOf(Value v) override {
    if (!v.exists() || graph_.node(v.node).op().traits.universal != op::Universal::kConstant) return nullptr;
    const op::AttrValue* value = graph_.node(v.node).attrs().Find("value");
    return value == nullptr ? nullptr : value->get<Tensor>();
  }
  Value Apply(std::string_view op, std::initializer_list<Value> inputs, op::AttrList attrs = {}) override {
    return ApplyList(op, inputs, std::move(attrs));
  }
  Value ApplyList(std::string_view op, const std::vector<Value>& inputs, op::AttrList attrs) override {
    const std::vector<Value> all = ApplyAll(op, inputs, std::move(attrs));
    return all.empty() ? Value() : all[0];
  }
  std::vector<Value> ApplyAll(std::string_view op, const std::vector<Value>& inputs, op::AttrList attrs) override {
    if (!status_.ok() || std::ranges::any_of(inputs, [](Value v) { return !v.exists(); })) return {};
    Result<std::vector<Value>> outputs = Add(op, inputs, std::move(attrs));
    if (!outputs.ok()) {
      status_ = outputs.status();
      return {};
    }
    return std::move(*outputs);
  }
  Value Const(const Tensor& value) override { return Apply("Const", {}, {{"dtype", value.dtype()}, {"value", value}}); }
  Result<std::string> Define(const op::FunctionSpec& function) override { return bodies_.Define(function); }
  Status status() const override { return status_; }

  /// Converts IndexedSlices to a dense tensor; rows with equal indices are summed.
  Grad Dense(const Grad& grad) {
    if (!grad.sparse()) return grad;
    const Value rows = Apply("GatherV2", {grad.dense_shape, ConstInt(0), ConstInt(0)});
    return Apply("UnsortedSegmentSum", {grad.values, grad.indices, rows});
  }

 private:
  Result<std::vector<Value>> Add(std::string_view op, const std::vector<Value>& inputs, op::AttrList attrs) {
    graph::NodeSpec spec;
    WEIR_ASSIGN(spec.op, graph_.ops().Get(op));
    std::vector<DType> types;
    for (const Value v : inputs) {
      spec.inputs.push_back(ToEndpoint(v));
      types.push_back(TypeOf(v));
    }
    spec.name = FreeName(graph_, fmt::format("{}/{}", scope_, op));
    spec.attrs = op::Deduce(*spec.op, types, std::move(attrs));
    if (node_ != nullptr) {
      spec.device = node_->device();
      spec.origin = node_->origin();
    }
    WEIR_ASSIGN(const Node* const node, graph_.Add(std::move(spec)));
    std::vector<Value> outputs;
    for (int i = 0; i < node->num_outputs(); ++i) outputs.push_back({node->id(), i});
    return outputs;
  }

  Definition& graph_;
  graph::FunctionBodies& bodies_;
  std::span<const DType> held_;
  std::string scope_;
  const Node* node_ = nullptr;
  std::unique_ptr<op::AttrView> attrs_;
  std::vector<Grad> dy_;
  Status status_;
};

/// Walks a body from its results to its arguments.
class BodyGradient {
 public:
  BodyGradient(const FunctionBody& body, const GradientTypes& types, graph::FunctionBodies& bodies)
      : body_(body),
        types_(types),
        whole_{.function = body.function, .graph = Definition(body.graph.ops())},
        context_(whole_.graph, bodies, types.results, body.function->signature.name + "_grad") {}

  Result<std::unique_ptr<const FunctionBody>> Run() {
    WEIR_TRY(CheckTypes());
    WEIR_TRY(CopyForward());
    Seed();
    for (NodeId id = static_cast<NodeId>(images_.size() + body_.results.size()) - 1;
         id >= static_cast<NodeId>(types_.inputs.size()); --id) {
      WEIR_TRY(Visit(id));
    }
    WEIR_TRY(Finish());
    return Pruned(whole_);
  }

 private:
  Definition& graph() { return whole_.graph; }

  Status CheckTypes() const {
    const op::Signature& of = body_.signature;
    const std::string& name = body_.function->signature.name;
    if (types_.inputs.size() != of.inputs.size() + of.outputs.size() || types_.results.size() != of.inputs.size()) {
      return InvalidArgument(
          "The gradient of function '{}' takes {} arguments and {} gradients of results and gives {} gradients, not {} "
          "values and {} gradients",
          name, of.inputs.size(), of.outputs.size(), of.inputs.size(), types_.inputs.size(), types_.results.size());
    }
    const auto differs = [](DType wanted, DType got) { return wanted != DType::kResource && wanted != BaseType(got); };
    for (size_t i = 0; i < types_.inputs.size(); ++i) {
      const DType wanted = i < of.inputs.size() ? of.inputs[i] : of.outputs[i - of.inputs.size()];
      const bool handle = i < of.inputs.size() && wanted == DType::kResource && types_.inputs[i] != wanted;
      if (!handle && !differs(wanted, types_.inputs[i])) continue;
      return InvalidArgument("Expects arg[{}] to be {} but {} is provided; in the gradient of function '{}'", i,
                             Name(wanted), Name(types_.inputs[i]), name);
    }
    for (size_t i = 0; i < types_.results.size(); ++i) {
      if (!differs(of.inputs[i], types_.results[i])) continue;
      return InvalidArgument("Output {} of type {} does not match declared output type {}; in the gradient of '{}'", i,
                             Name(of.inputs[i]), Name(types_.results[i]), name);
    }
    return {};
  }

  /// Adds the arguments, the gradients of results, and the nodes of the body.
  Status CopyForward() {
    graph().SetFunctions(body_.graph.shared_functions());
    graph().versions() = body_.graph.versions();
    const size_t arguments = body_.num_arguments();
    for (size_t i = 0; i < types_.inputs.size(); ++i) {
      const std::string name =
          i < arguments ? body_.graph.node(static_cast<NodeId>(i)).name() : fmt::format("_dy{}", i - arguments);
      WEIR_ASSIGN(const NodeId id, AddPlaceholder(graph(), name, BaseType(types_.inputs[i]), types_.input_shapes[i]));
      if (i < arguments) images_.push_back(id);
    }
    const IndexedVector<NodeId, bool> all(PositionOf(body_.graph.num_nodes()), true);
    WEIR_TRY(CopyNodes(body_.graph, all, graph(), images_));
    whole_.signature.inputs.assign(types_.inputs.begin(), types_.inputs.end());
    whole_.signature.outputs.assign(types_.results.begin(), types_.results.end());
    reached_.assign(PositionOf(graph().num_nodes()), false);
    std::fill_n(reached_.begin(), arguments, true);
    for (NodeId id = static_cast<NodeId>(types_.inputs.size()); id < graph().num_nodes(); ++id) {
      reached_[id] = std::ranges::any_of(graph().node(id).inputs(), [&](const Endpoint& e) { return Wanted(e); });
    }
    return {};
  }

  /// True if an argument needs gradients of the value.
  bool Wanted(Endpoint e) const { return e.node >= 0 && reached_[e.node] && TakesGradient(context_, ToValue(e)); }

  void Flow(Endpoint to, const Grad& grad) {
    if (grad.exists() && reached_.Has(to.node) && Wanted(to)) pending_[to].push_back(grad);
  }

  void Seed() {
    for (size_t i = 0; i < body_.results.size(); ++i) {
      const Endpoint result = {images_[body_.results[i].node], body_.results[i].index};
      const auto dy = static_cast<NodeId>(body_.num_arguments() + i);
      if (context_.GradTypeOf(ToValue(result)) == graph().TypeOf({dy, 0})) Flow(result, ToValue({dy, 0}));
    }
  }

  Grad Sum(Endpoint e) {
    const auto found = pending_.find(e);
    if (found == pending_.end()) return {};
    if (found->second.size() == 1) return found->second[0];
    std::vector<Value> parts;
    for (const Grad& part : found->second) parts.push_back(context_.Dense(part).values);
    return context_.ApplyList("AddN", parts, {});
  }

  Status Visit(NodeId id) {
    const Node& node = graph().node(id);
    if (!reached_[id]) return {};
    std::vector<Grad> dy;
    for (int i = 0; i < node.num_outputs(); ++i) dy.push_back(Sum({id, i}));
    if (std::ranges::none_of(dy, &Grad::exists)) return context_.status();
    if (graph::FlowOf(node) != graph::Flow::kPlain) {
      return Unimplemented(
          "The gradient of function '{}' leads through its node '{}' ({}), which is control flow of TensorFlow 1.x. "
          "Write it as If or While within functions",
          body_.function->signature.name, node.name(), node.op().name);
    }
    if (!node.op().gradient) return {};  // outputs are not differentiable functions of the inputs
    context_.Differentiate(node, std::move(dy));
    const Result<std::vector<Grad>> grads = node.op().gradient(context_);
    const Status status = grads.ok() ? context_.status() : grads.status();
    if (!status.ok()) return status.Append(fmt::format("\n\t in the gradient of '{}'", node.name()));
    for (size_t i = 0; i < grads->size() && i < node.inputs().size(); ++i) Flow(node.inputs()[i], (*grads)[i]);
    return {};
  }

  Status Finish() {
    for (size_t i = 0; i < body_.num_arguments(); ++i) {
      const Endpoint x{static_cast<NodeId>(i), 0};
      const DType type = types_.results[i];
      Value value = context_.Dense(Sum(x)).values;
      if (!value.exists() && types_.inputs[i] != DType::kResource) {
        value = context_.Apply("ZerosLike", {ToValue(x)});
      } else if (!value.exists()) {
        value = context_.Apply("ZerosLike", {context_.Apply("ReadVariableOp", {ToValue(x)}, {{"dtype", type}})});
      }
      WEIR_TRY(context_.status());
      if (!value.exists() || BaseType(graph().TypeOf(ToEndpoint(value))) != type) {
        return InvalidArgument("The gradient of argument {} of function '{}' is {}, wanted {}", i,
                               body_.function->signature.name, Name(context_.TypeOf(value)), Name(type));
      }
      whole_.results.push_back(ToEndpoint(value));
    }
    return {};
  }

  const FunctionBody& body_;
  const GradientTypes types_;
  FunctionBody whole_;
  NodeContext context_;
  IndexedVector<NodeId, NodeId> images_;  // of the nodes of the body, in whole_
  IndexedVector<NodeId, bool> reached_;   // a node of whole_ before gradients depends on an argument
  std::map<Endpoint, std::vector<Grad>> pending_;
};

}  // namespace

Result<std::unique_ptr<const FunctionBody>> GradientBody(const FunctionBody& body, const GradientTypes& types,
                                                         graph::FunctionBodies& bodies) {
  return BodyGradient(body, types, bodies).Run();
}

Result<std::unique_ptr<const FunctionBody>> ValuesBody(const FunctionBody& body) { return Pruned(body); }

}  // namespace weir::lower
