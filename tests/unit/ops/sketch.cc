#include "tests/unit/ops/sketch.h"

#include <algorithm>

#include "core/base/errors.h"

namespace weir::ops::test {
namespace {

using op::AttrDef;
using op::AttrList;
using op::AttrValue;
using op::OpDef;
using op::Value;

const AttrValue* Find(const AttrList& attrs, const std::string& name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string Numbered(const char* letter, size_t i, size_t count) {
  return count == 1 ? letter : fmt::format("{}{}", letter, i);
}

}  // namespace

Sketch::Sketch(const op::OpRegistry& ops, const Row& row, Flow flow)
    : ops_(ops), attrs_(*row.def, row.attrs), flow_(flow) {
  const Result<std::vector<PartialShape>> shapes = InferShapes(row);
  status_ = shapes.status();
  if (!status_.ok()) return;
  const size_t inputs = row.inputs.size(), outputs = shapes->size();
  for (size_t i = 0; i < inputs; ++i) {
    xs_.push_back(Leaf(Numbered("x", i, inputs), row.signature.inputs[i], row.inputs[i].shape));
    nodes_.back().constant = row.inputs[i].value;
    nodes_.back().partial_value = row.inputs[i].partial_value;
    nodes_.back().held = row.inputs[i].held;
  }
  for (size_t i = 0; i < outputs; ++i) {
    ys_.push_back(Leaf(Numbered("y", i, outputs), row.signature.outputs[i], (*shapes)[i]));
  }
  for (size_t i = 0; i < outputs; ++i) {
    dys_.push_back(Leaf(Numbered("dy", i, outputs), BaseType(row.signature.outputs[i]), (*shapes)[i]));
  }
}

Value Sketch::Leaf(std::string text, DType type, PartialShape shape) {
  nodes_.push_back({std::move(text), {type}, {std::move(shape)}, Tensor(), PartialShape()});
  return {static_cast<int32_t>(nodes_.size() - 1), 0};
}

DType Sketch::TypeOf(Value v) const { return v.exists() ? nodes_[v.node].types[v.index] : DType::kInvalid; }

PartialShape Sketch::ShapeOf(Value v) const { return v.exists() ? nodes_[v.node].shapes[v.index] : PartialShape(); }

const Tensor* Sketch::ConstantOf(Value v) {
  return v.exists() && nodes_[v.node].constant.valid() ? &nodes_[v.node].constant : nullptr;
}

Value Sketch::Const(const Tensor& value) {
  if (!value.valid() && status_.ok()) status_ = InvalidArgument("a constant without a value");
  if (!status_.ok()) return {};
  std::string text = value.SummarizeValues(8);
  std::ranges::replace(text, ' ', ',');
  if (value.shape().rank() == 0) text = text.substr(1, text.size() - 2);
  const Value v = Leaf(std::move(text), value.dtype(), value.shape());
  nodes_.back().constant = value;
  return v;
}

Value Sketch::Apply(std::string_view op, std::initializer_list<Value> inputs, AttrList attrs) {
  return ApplyList(op, std::vector<Value>(inputs), std::move(attrs));
}

Value Sketch::ApplyList(std::string_view op, const std::vector<Value>& inputs, AttrList attrs) {
  const std::vector<Value> all = ApplyAll(op, inputs, std::move(attrs));
  return all.empty() ? Value() : all[0];
}

std::vector<Value> Sketch::ApplyAll(std::string_view op, const std::vector<Value>& inputs, AttrList attrs) {
  if (!status_.ok()) return {};
  const Result<const OpDef*> def = ops_.Get(op);
  if (!def.ok()) {
    status_ = def.status();
    return {};
  }
  Result<Node> node = Emit(**def, inputs, std::move(attrs));
  if (!node.ok()) {
    status_ = node.status().Prepend(fmt::format("{}: ", op));
    return {};
  }
  nodes_.push_back(std::move(*node));
  std::vector<Value> outputs(nodes_.back().types.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {static_cast<int32_t>(nodes_.size() - 1), static_cast<int32_t>(i)};
  }
  return outputs;
}

Status Sketch::InferTypes(const OpDef& def, const std::vector<Value>& inputs, AttrList& attrs) const {
  size_t next = 0;
  for (const op::ArgDef& arg : def.inputs) {
    int64_t count = 1;
    const std::vector<DType>* list = nullptr;
    if (!arg.number_attr.empty()) {
      const AttrValue* number = Find(attrs, arg.number_attr);
      if (number == nullptr || number->get<int64_t>() == nullptr) return InvalidArgument("no {}", arg.number_attr);
      count = *number->get<int64_t>();
    } else if (!arg.type_list_attr.empty()) {
      if (Find(attrs, arg.type_list_attr) == nullptr) {  // all remaining inputs
        std::vector<DType> types;
        for (size_t i = next; i < inputs.size(); ++i) types.push_back(BaseType(TypeOf(inputs[i])));
        attrs.emplace_back(arg.type_list_attr, std::move(types));
      }
      list = Find(attrs, arg.type_list_attr)->get<std::vector<DType>>();
      if (list == nullptr) return InvalidArgument("{} is no list of types", arg.type_list_attr);
      count = static_cast<int64_t>(list->size());
    }
    for (int64_t i = 0; i < count; ++i, ++next) {
      if (next >= inputs.size()) return InvalidArgument("{} inputs are too few", inputs.size());
      if (!inputs[next].exists()) return InvalidArgument("input {} is empty", next);
      const DType type = TypeOf(inputs[next]);
      DType wanted = list == nullptr ? arg.dtype : (*list)[static_cast<size_t>(i)];
      if (!arg.type_attr.empty()) {
        const AttrValue* given = Find(attrs, arg.type_attr);
        if (given == nullptr) attrs.emplace_back(arg.type_attr, BaseType(type));
        wanted = given == nullptr ? BaseType(type) : *given->get<DType>();
      }
      if (BaseType(type) != wanted) {
        return InvalidArgument("input {} is of type {}, wanted {}", next, Name(type), Name(wanted));
      }
    }
  }
  return next == inputs.size() ? Status() : InvalidArgument("{} inputs, wanted {}", inputs.size(), next);
}

Result<Sketch::Node> Sketch::Emit(const OpDef& def, const std::vector<Value>& inputs, AttrList attrs) const {
  Node node;
  node.text = def.name + "(";
  for (size_t i = 0; i < inputs.size(); ++i) node.text += (i > 0 ? ", " : "") + Formula(inputs[i]);
  for (const auto& [name, value] : attrs) {
    if (def.FindAttr(name) == nullptr) return InvalidArgument("no attribute '{}'", name);
    if (name != "N") node.text += ", " + name + "=" + value.ToString();
  }
  node.text += ")";
  WEIR_TRY(InferTypes(def, inputs, attrs));
  const op::AttrView view(def, attrs);
  WEIR_TRY(op::Validate(view));
  WEIR_ASSIGN(op::Signature signature, op::Expand(view));

  std::vector<PartialShape> shapes;
  for (Value v : inputs) shapes.push_back(ShapeOf(v));
  op::ShapeContext context(
      view, signature.inputs, shapes, static_cast<int>(signature.outputs.size()),
      [&](int i) {
        const Node& input = nodes_[inputs[i].node];
        return input.constant.valid() ? &input.constant : nullptr;
      },
      [&](int i) { return nodes_[inputs[i].node].partial_value; }, [&](int i) { return nodes_[inputs[i].node].held; });
  WEIR_TRY(def.shape(context));
  node.types = signature.outputs;
  node.shapes = context.outputs();
  if (def.name == "Shape") node.partial_value = shapes[0];
  return node;
}

std::string Sketch::Formula(Value v) const {
  if (!v.exists()) return "-";
  const Node& node = nodes_[v.node];
  return v.index == 0 ? node.text : fmt::format("{}:{}", node.text, v.index);
}

}  // namespace weir::ops::test
