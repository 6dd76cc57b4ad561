#include "core/client/gradients.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/client/control_flow_internal.h"
#include "core/client/operand.h"
#include "core/client/ops.h"
#include "core/client/scopes.h"
#include "core/op/grad_context.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;

Operation AddOp(Graph& graph, std::string_view op, std::vector<Output> inputs, op::AttrList attrs = {},
                std::string_view name = {}, const std::source_location& where = std::source_location::current()) {
  OperationSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.name = name;
  spec.where = where;
  return graph.Add(spec);
}

/// A dense tensor from rows: a sum of the rows of each index.
Output Densify(Graph& graph, const Gradient& gradient) {
  if (!gradient.sparse()) return gradient.values;
  const Output zero = Operand(Literal(0)).In(graph, gradient.dense_shape.dtype(), "begin");
  const Output one = Operand(Literal(Tensor::Vector<int32_t>({1}))).In(graph, DType::kInt32, "size");
  const Output begin =
      AddOp(graph, "ExpandDims", {zero, Operand(Literal(0)).In(graph, DType::kInt32, "axis")}).output(0);
  const Output size =
      AddOp(graph, "Cast", {one}, {{"DstT", gradient.dense_shape.dtype()}, {"SrcT", DType::kInt32}}).output(0);
  const Output first = AddOp(graph, "Slice", {gradient.dense_shape, begin, size}).output(0);
  const Output rows = AddOp(graph, "Squeeze", {first}).output(0);
  return AddOp(graph, "UnsortedSegmentSum", {gradient.values, gradient.indices, rows}).output(0);
}

/// What a gradient function sees of one forward node.
class Differentiation : public op::GradContext {
 public:
  Differentiation(Graph& graph, const Operation& forward, std::vector<Gradient> dy, const std::source_location& where)
      : graph_(graph), forward_(forward), attrs_(forward.node().attrs()), dy_(std::move(dy)), where_(where) {}

  const op::AttrView& attrs() const override { return attrs_; }
  int num_inputs() const override { return static_cast<int>(forward_.node().inputs().size()); }
  int num_outputs() const override { return forward_.num_outputs(); }
  op::Value X(int i) override { return ToValue(Output(&graph_, forward_.node().inputs()[static_cast<size_t>(i)])); }
  op::Value Y(int i) override { return ToValue(forward_.output(i)); }

  op::Value Dy(int i) override {
    Gradient& dy = dy_[static_cast<size_t>(i)];
    if (!dy.exists()) {
      dy.values = AddOp(graph_, "ZerosLike", {forward_.output(i)}, {}, "zeros_like", where_).output(0);
    } else if (dy.sparse()) {
      dy = Gradient{Densify(graph_, dy), {}, {}};
    }
    return ToValue(dy.values);
  }

  op::Grad DyAsIs(int i) override {
    const Gradient& dy = dy_[static_cast<size_t>(i)];
    if (!dy.sparse()) return Dy(i);
    return op::Grad::Slices(ToValue(dy.values), ToValue(dy.indices), ToValue(dy.dense_shape));
  }

  bool HasDy(int i) const override { return dy_[static_cast<size_t>(i)].exists(); }
  DType TypeOf(op::Value v) const override { return v.exists() ? ToOutput(v).dtype() : DType::kInvalid; }
  PartialShape ShapeOf(op::Value v) const override { return v.exists() ? ToOutput(v).shape() : PartialShape(); }

  const Tensor* ConstantOf(op::Value v) override {
    if (!v.exists() || ToOutput(v).op().type() != "Const") return nullptr;
    const op::AttrValue* value = ToOutput(v).op().node().attrs().Find("value");
    return value == nullptr ? nullptr : value->get<Tensor>();
  }

  op::Value Apply(std::string_view op, std::initializer_list<op::Value> inputs, op::AttrList attrs) override {
    return First(Build(op, std::vector<op::Value>(inputs), std::move(attrs)));
  }
  op::Value ApplyList(std::string_view op, const std::vector<op::Value>& inputs, op::AttrList attrs) override {
    return First(Build(op, inputs, std::move(attrs)));
  }
  std::vector<op::Value> ApplyAll(std::string_view op, const std::vector<op::Value>& inputs,
                                  op::AttrList attrs) override {
    std::vector<op::Value> all;
    for (const Output& output : Build(op, inputs, std::move(attrs)).outputs()) all.push_back(ToValue(output));
    return all;
  }
  op::Value Const(const Tensor& value) override {
    return ToValue(Operand(Literal(value)).In(graph_, DType::kInvalid, "Const"));
  }
  Status status() const override { return graph_.status(); }

  Output ToOutput(op::Value v) const { return v.exists() ? Output(&graph_, {v.node, v.index}) : Output(); }

 private:
  static op::Value ToValue(const Output& output) {
    return output.exists() ? op::Value{output.endpoint().node, output.endpoint().index} : op::Value();
  }
  static op::Value First(const Operation& operation) {
    return operation.num_outputs() > 0 ? ToValue(operation.output(0)) : op::Value();
  }
  Operation Build(std::string_view op, const std::vector<op::Value>& inputs, op::AttrList attrs) {
    std::vector<Output> outputs;
    for (const op::Value input : inputs) {
      if (!input.exists() && !graph_.status().ok()) return Operation();
      outputs.push_back(ToOutput(input));
    }
    return AddOp(graph_, op, std::move(outputs), std::move(attrs), {}, where_);
  }

  Graph& graph_;
  Operation forward_;
  op::AttrView attrs_;
  std::vector<Gradient> dy_;
  std::source_location where_;
};

/// One backward walk.
class Backward {
 public:
  Backward(Graph& graph, const std::vector<Output>& ys, const std::vector<Output>& xs, const GradientsOptions& options,
           std::source_location where)
      : graph_(graph), ys_(ys), xs_(xs), options_(options), where_(where) {}

  Result<List<Gradient>> Run() {
    const NameScope scope(options_.name, graph_);
    WEIR_TRY(CheckArguments());
    MarkPath();
    WEIR_TRY(Seed());
    for (auto it = path_.rbegin(); it != path_.rend(); ++it) WEIR_TRY(Differentiate(*it));
    List<Gradient> answers;
    for (const Output& x : xs_) {
      Gradient gradient = Sum(x.endpoint());
      if (!gradient.exists() && options_.unconnected == Unconnected::kZero) {
        WEIR_ASSIGN(gradient.values, ZerosFor(x));
      }
      answers.push_back(gradient);
    }
    WEIR_TRY(graph_.status());
    return answers;
  }

 private:
  Status CheckArguments() const {
    for (const std::vector<Output>* list : {&ys_, &xs_, &options_.stop_gradients, &options_.grad_ys}) {
      for (const Output& output : *list) {
        if (!output.exists() && list == &options_.grad_ys) continue;
        if (!output.exists()) return InvalidArgument("None values not supported. ({})", Format(where_));
        if (output.graph() != &graph_) {
          return InvalidArgument("{} must be from the same graph as {}.", output.ToString(), ys_[0].ToString());
        }
      }
    }
    if (!options_.grad_ys.empty() && options_.grad_ys.size() != ys_.size()) {
      return InvalidArgument("Passed {} grad_ys for {} ys", options_.grad_ys.size(), ys_.size());
    }
    return Status();
  }

  bool Stopped(Endpoint e) const {
    return std::any_of(options_.stop_gradients.begin(), options_.stop_gradients.end(),
                       [&](const Output& o) { return o.endpoint() == e; });
  }

  const Node& NodeAt(NodeId id) const { return graph_.definition().node(id); }

  /// Nodes that an x reaches and that reach a y, in ascending order.
  void MarkPath() {
    std::set<NodeId> behind;  // what the ys need
    std::vector<NodeId> stack;
    for (const Output& y : ys_) stack.push_back(y.endpoint().node);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!behind.insert(id).second) continue;
      for (const Endpoint& input : NodeAt(id).inputs()) stack.push_back(input.node);
    }
    std::set<NodeId> reached;
    std::set<Endpoint> sources;
    for (const Output& x : xs_) sources.insert(x.endpoint());
    bool again = true;
    while (again) {
      again = false;
      for (const NodeId id : behind) {  // ascending: inputs come first, but for the edges that close a loop
        if (reached.contains(id)) continue;
        const auto inputs = NodeAt(id).inputs();
        const bool on_path = std::any_of(inputs.begin(), inputs.end(), [&](const Endpoint& input) {
          return !Stopped(input) && (sources.contains(input) || reached.contains(input.node));
        });
        if (!on_path) continue;
        reached.insert(id);
        again = again || NodeAt(id).op().name == "NextIteration";
      }
    }
    path_.assign(reached.begin(), reached.end());
    sources_ = std::move(sources);
    reached_ = std::move(reached);
  }

  Status Seed() {
    for (size_t i = 0; i < ys_.size(); ++i) {
      Output seed = i < options_.grad_ys.size() ? options_.grad_ys[i] : Output();
      if (!seed.exists()) {
        const DType dtype = BaseType(ys_[i].dtype());
        const Result<Tensor> one = ScalarFrom(dtype, 1);
        if (!one.ok())
          return InvalidArgument("{} has type {}, of which there are no gradients", ys_[i].name(), Name(dtype));
        const Output shape = weir::ShapeOf(ys_[i], DType::kInt32, "Shape", where_);
        const Output value = Operand(Literal(*one)).In(graph_, dtype, "grad_ys_" + std::to_string(i) + "/Const");
        seed = AddOp(graph_, "Fill", {shape, value}, {}, "grad_ys_" + std::to_string(i), where_).output(0);
      }
      pending_[ys_[i].endpoint()].push_back({seed, {}, {}});
    }
    return Status();
  }

  /// All gradients that flowed into a value, as one.
  Gradient Sum(Endpoint e) {
    const auto found = pending_.find(e);
    if (found == pending_.end() || found->second.empty()) return {};
    std::vector<Gradient>& parts = found->second;
    if (parts.size() > 1) {
      const bool sparse = std::all_of(parts.begin(), parts.end(), [](const Gradient& g) { return g.sparse(); });
      parts = {sparse ? Concatenate(parts) : AddUp(parts)};
    }
    return parts[0];
  }

  Gradient AddUp(const std::vector<Gradient>& parts) {
    std::vector<Output> dense;
    for (const Gradient& part : parts) dense.push_back(Densify(graph_, part));
    return {AddOp(graph_, "AddN", std::move(dense), {}, {}, where_).output(0), {}, {}};
  }

  Gradient Concatenate(const std::vector<Gradient>& parts) {
    std::vector<Output> values, indices;
    for (const Gradient& part : parts) {
      values.push_back(part.values);
      indices.push_back(part.indices);
    }
    const Output all = Joined(std::move(values));
    return {all, Joined(std::move(indices)), parts[0].dense_shape};
  }

  /// Along the first axis.
  Output Joined(std::vector<Output> parts) {
    const NameScope scope("concat", graph_);
    parts.push_back(Operand(Literal(0)).In(graph_, DType::kInt32, "axis"));
    const std::string path = scope.path();
    return AddOp(graph_, "ConcatV2", std::move(parts), {}, path, where_).output(0);
  }

  /// Like `x`, or like the variable behind a handle.
  Result<Output> ZerosFor(const Output& x) {
    if (x.dtype() != DType::kResource) return AddOp(graph_, "ZerosLike", {x}, {}, "zeros_like", where_).output(0);
    WEIR_ASSIGN(const DType dtype, x.op().node().attrs().Type("dtype"));
    WEIR_ASSIGN(const Tensor zero, ScalarFrom(dtype, 0));
    const Output shape = AddOp(graph_, "VariableShape", {x}, {}, {}, where_).output(0);
    const Output value = Operand(Literal(zero)).In(graph_, dtype, "zeros/Const");
    return AddOp(graph_, "Fill", {shape, value}, {}, "zeros", where_).output(0);
  }

  Status Differentiate(NodeId id) {
    const Operation forward(&graph_, id);
    std::vector<Gradient> dy;
    bool any = false;
    for (int i = 0; i < forward.num_outputs(); ++i) {
      dy.push_back(Sum({id, i}));
      any = any || dy.back().exists();
    }
    if (!any) return Status();
    if (CarriesControlFlow(forward.node())) return DifferentiateControlFlow(forward, dy);
    const op::OpDef& op = forward.node().op();
    if (!op.gradient) return Status();  // its outputs do not vary with its inputs, or not smoothly
    const NameScope scope(forward.name() + "_grad", graph_);
    Differentiation context(graph_, forward, std::move(dy), where_);
    Result<std::vector<op::Grad>> grads = op.gradient(context);
    if (!grads.ok()) return graph_.Fail(grads.status().WithNode(forward.name(), forward.node().origin()));
    std::vector<Output> all;
    for (const op::Grad& grad : *grads) all.push_back(context.ToOutput(grad.values));
    if (options_.gate) Gate(all);
    const auto inputs = forward.node().inputs();
    for (size_t i = 0; i < grads->size() && i < inputs.size(); ++i) {
      const op::Grad& grad = (*grads)[i];
      Flow(inputs[i], {all[i], context.ToOutput(grad.indices), context.ToOutput(grad.dense_shape)});
    }
    return graph_.status();
  }

  /// A gradient of a node's input. Of a handle it is the gradient of the variable, whose shape is not the handle's.
  void Flow(Endpoint input, const Gradient& gradient) {
    const bool wanted = sources_.contains(input) || reached_.contains(input.node);
    if (!gradient.exists() || !wanted || Stopped(input)) return;
    const graph::Graph& definition = graph_.definition();
    const bool like_input = !gradient.sparse() && definition.TypeOf(input) != DType::kResource;
    if (like_input) gradient.values.SetShape(definition.ShapeOf(input));
    pending_[input].push_back(gradient);
  }

  /// Puts an Identity behind each of several gradients, which waits for all of them.
  void Gate(std::vector<Output>& gradients) {
    std::vector<Groupable> made;
    for (const Output& gradient : gradients) {
      if (gradient.exists()) made.emplace_back(gradient);
    }
    if (made.size() < 2) return;
    const NameScope scope("tuple", graph_);
    const DeviceScope anywhere(std::nullopt, graph_);
    const ControlDependencies after({Group(made, "group_deps", where_)}, graph_);
    for (Output& gradient : gradients) {
      if (!gradient.exists()) continue;
      const ColocateWith beside(gradient.op(), OuterColocation::kIgnore, graph_);
      gradient = AddOp(graph_, "Identity", {gradient}, {}, "control_dependency", where_).output(0);
    }
  }

  Status DifferentiateControlFlow(const Operation& forward, const std::vector<Gradient>& dy) {
    std::vector<Output> dense;
    for (const Gradient& gradient : dy) dense.push_back(gradient.exists() ? Densify(graph_, gradient) : Output());
    const Result<std::vector<Output>> grads =
        ControlFlowGradients(forward, std::move(dense), forward.name() + "_grad", where_);
    if (!grads.ok()) return graph_.Fail(grads.status().WithNode(forward.name(), forward.node().origin()));
    const auto inputs = forward.node().inputs();
    for (size_t i = 0; i < grads->size() && i < inputs.size(); ++i) Flow(inputs[i], {(*grads)[i], {}, {}});
    return graph_.status();
  }

  Graph& graph_;
  const std::vector<Output>& ys_;
  const std::vector<Output>& xs_;
  const GradientsOptions& options_;
  std::source_location where_;
  std::vector<NodeId> path_;
  std::set<NodeId> reached_;
  std::set<Endpoint> sources_;
  std::map<Endpoint, std::vector<Gradient>> pending_;
};

}  // namespace

std::vector<Output> Differentiated::Values(std::source_location where) const {
  std::vector<Output> values;
  for (const Value& value : values_) {
    const Variable* variable = std::get_if<Variable>(&value);
    values.push_back(variable != nullptr ? variable->value(where) : std::get<Output>(value));
  }
  return values;
}

std::vector<Output> Differentiated::Sources() const {
  std::vector<Output> sources;
  for (const Value& value : values_) {
    const Variable* variable = std::get_if<Variable>(&value);
    sources.push_back(variable != nullptr ? variable->handle() : std::get<Output>(value));
  }
  return sources;
}

Result<List<Gradient>> Gradients(const Differentiated& of, const Differentiated& by,
                                        const GradientsOptions& options, std::source_location where) {
  const std::vector<Output> ys = of.Values(where), xs = by.Sources();
  if (xs.empty() || ys.empty()) return List<Gradient>();
  Graph& graph = GraphOf({ys.begin(), ys.end()});
  WEIR_TRY(graph.status());
  const Origin origin(where, graph);
  Result<List<Gradient>> gradients = Backward(graph, ys, xs, options, where).Run();
  if (!gradients.ok()) (void)graph.Fail(gradients.status());
  return gradients;
}

}  // namespace weir
