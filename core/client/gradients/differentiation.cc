#include <memory>
#include <span>

#include "core/client/gradients/differentiation_internal.h"
#include "core/client/gradients/loop_gradient_internal.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/ops/build_op.h"
#include "core/graph/inference.h"

namespace weir {
namespace {

op::Value ToValue(const Output& output) {
  return output.exists() ? op::Value{output.endpoint().node, output.endpoint().index} : op::Value();
}

op::Value First(const std::vector<Output>& outputs) { return outputs.empty() ? op::Value() : ToValue(outputs[0]); }

}  // namespace

Operation AddOp(Graph& graph, std::string_view op, std::vector<Output> inputs, op::AttrList attrs,
                std::string_view name, const Where& where) {
  OperationSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.name = name;
  spec.where = where;
  return graph.Add(spec);
}

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

op::Value Differentiation::X(int i) {
  return ToValue(Output(&graph_, forward_.node().inputs()[static_cast<size_t>(i)]));
}

op::Value Differentiation::Y(int i) { return ToValue(forward_.output(i)); }

op::Value Differentiation::Dy(int i) {
  Gradient& dy = dy_[static_cast<size_t>(i)];
  if (!dy.exists()) {
    const Output y = forward_.output(i);
    dy.values = OrFail(ZerosLikeForward(y, BaseType(y.dtype()), where_));
  } else if (dy.sparse()) {
    dy = Gradient{Densify(graph_, dy), {}, {}};
  }
  return ToValue(dy.values);
}

op::Grad Differentiation::DyAsIs(int i) {
  const Gradient& dy = dy_[static_cast<size_t>(i)];
  if (!dy.sparse()) return Dy(i);
  return op::Grad::Slices(ToValue(dy.values), ToValue(dy.indices), ToValue(dy.dense_shape));
}

const Tensor* Differentiation::ConstantOf(op::Value v) {
  if (!v.exists()) return nullptr;
  const graph::Node* node = &Internals(graph_).definition.node(v.node);
  while (IsConstantEnter(*node)) node = &Internals(graph_).definition.node(node->inputs()[0].node);
  if (node->op().traits.universal != op::Universal::kConstant) return nullptr;
  const op::AttrValue* value = node->attrs().Find("value");
  return value == nullptr ? nullptr : value->get<Tensor>();
}

op::Value Differentiation::Apply(std::string_view op, std::initializer_list<op::Value> inputs, op::AttrList attrs) {
  return First(Build(op, std::vector<op::Value>(inputs), std::move(attrs)));
}

op::Value Differentiation::ApplyList(std::string_view op, const std::vector<op::Value>& inputs, op::AttrList attrs) {
  return First(Build(op, inputs, std::move(attrs)));
}

std::vector<op::Value> Differentiation::ApplyAll(std::string_view op, const std::vector<op::Value>& inputs,
                                                 op::AttrList attrs) {
  std::vector<op::Value> all;
  for (const Output& output : Build(op, inputs, std::move(attrs))) all.push_back(ToValue(output));
  return all;
}

op::Value Differentiation::Const(const Tensor& value) {
  return ToValue(Operand(Literal(value)).In(graph_, DType::kInvalid, "Const"));
}

DType Differentiation::GradTypeOf(op::Value v) const {
  if (!v.exists() || BaseType(TypeOf(v)) != DType::kResource) return TypeOf(v);
  const graph::Endpoint handle{v.node, v.index};
  return graph::InputKnowledge(Internals(graph_).definition, std::span(&handle, 1)).Held(0).dtype;
}

Result<std::string> Differentiation::Define(const op::FunctionSpec& function) {
  graph::Definition& definition = Internals(graph_).definition;
  auto functions = std::make_shared<graph::FunctionLibrary>(definition.functions());
  WEIR_ASSIGN(std::string name, functions->Define(function, definition.ops()));
  definition.SetFunctions(std::move(functions));
  return name;
}

std::vector<Output> Differentiation::Build(std::string_view op, const std::vector<op::Value>& inputs,
                                           op::AttrList attrs) {
  std::vector<Output> outputs;
  for (const op::Value input : inputs) {
    if (!input.exists() && !graph_.status().ok()) return {};
    outputs.push_back(ToOutput(input));
  }
  if (InGradientLoop(Internals(graph_).control_flow)) {
    const op::OpDef* const def = Internals(graph_).definition.ops().Find(op);
    if (def != nullptr && def->traits.shape_query != nullptr) return Query(op, outputs, op::AttrView(*def, attrs));
  }
  return AddOp(graph_, op, std::move(outputs), std::move(attrs), {}, where_).outputs();
}

std::vector<Output> Differentiation::Query(std::string_view op, const std::vector<Output>& values,
                                           const op::AttrView& attrs) {
  const Result<DType> type = attrs.Type("out_type");
  std::vector<Output> answers;
  for (const Output& value : values) {
    answers.push_back(
        OrFail(QueryForward(op == "ShapeN" ? "Shape" : op, value, type.ok() ? *type : DType::kInt32, where_)));
  }
  return answers;
}

Output Differentiation::OrFail(Result<Output> value) {
  if (value.ok()) return *value;
  (void)graph_.Fail(value.status());
  return Output::Absent(graph_);
}

}  // namespace weir
