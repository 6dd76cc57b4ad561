#include "core/client/containers/tensor_array.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"
#include "core/graph/inference.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// Behind the first axis.
PartialShape ElementShapeOf(const PartialShape& shape) {
  return shape.rank() < 1 ? PartialShape() : PartialShape::Of(shape.dims().subspan(1));
}

PartialShape Stacked(int64_t first, const PartialShape& rest) {
  if (!rest.has_rank()) return PartialShape();
  std::vector<int64_t> dims = {first};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return PartialShape::Of(dims);
}

/// A Cast, also of what could be a constant of the other type.
Output ToInt64(Graph& graph, const Operand& operand, const Where& where) {
  if (!operand.is_literal() && operand.dtype() == DType::kInt64) return operand.In(graph);
  const NameScope scope("Cast", graph);
  const Output value = operand.In(graph, DType::kInvalid, "x");
  const std::string path = scope.path();
  return BuildOp("Cast", {value}, {{"DstT", DType::kInt64}}, path, where).output(0);
}

/// The integers of a value that the graph knows.
std::optional<std::vector<int64_t>> KnownInts(const Operand& operand) {
  Tensor value;
  if (operand.is_literal()) {
    value = operand.literal().tensor;
  } else if (operand.exists()) {
    const graph::Endpoint from = operand.In(*operand.graph()).endpoint();
    graph::InputKnowledge knowledge(Internals(*operand.graph()).definition, std::span(&from, 1));
    if (const Tensor* known = knowledge.Value(0)) value = *known;
  }
  if (!value.valid() || !IsInteger(value.dtype())) return std::nullopt;
  std::vector<int64_t> ints;
  for (int64_t i = 0; i < value.elements(); ++i) ints.push_back(static_cast<int64_t>(ElementAsDouble(value, i)));
  return ints;
}

}  // namespace

struct TensorArray::Shared {
  DType dtype;
  bool infer_shape;
  bool dynamic_size;
  PartialShape element_shape;
  std::optional<Operand> size;  // none for an array that came as a handle
  bool colocates;               // what writes is placed beside the first value that is written
  std::optional<Output> beside = {};
};

TensorArray::TensorArray(DType dtype, const Operand& size, const TensorArrayOptions& options, Where where)
    : shared_(std::make_shared<Shared>(Shared{.dtype = BaseType(dtype),
                                              .infer_shape = options.infer_shape,
                                              .dynamic_size = options.dynamic_size,
                                              .element_shape = options.element_shape,
                                              .size = size,
                                              .colocates = options.colocate_with_first_write_call})) {
  Graph& graph = GraphOf(size);
  const AsDefault in(graph);
  const std::string_view name = options.name.empty() ? "TensorArray" : options.name;
  const auto make = [&] {
    const Operation made = BuildOp("TensorArrayV3", {size},
                                   {{"dtype", shared_->dtype},
                                    {"element_shape", options.element_shape},
                                    {"identical_element_shapes", options.infer_shape},
                                    {"dynamic_size", options.dynamic_size},
                                    {"clear_after_read", options.clear_after_read},
                                    {"tensor_array_name", options.tensor_array_name}},
                                   name, where);
    const List<Output> outputs = OutputsOr(made, 2);
    handle_ = outputs[0];
    flow_ = outputs[1];
  };
  if (!shared_->colocates) {
    make();
    return;
  }
  const DeviceScope anywhere(std::nullopt);
  const ColocateWith nothing(std::nullopt);
  make();
}

TensorArray::TensorArray(DType dtype, const Output& handle, const Output& flow, bool infer_shape)
    : shared_(std::make_shared<Shared>(Shared{.dtype = BaseType(dtype),
                                              .infer_shape = infer_shape,
                                              .dynamic_size = true,
                                              .element_shape = {},
                                              .size = {},
                                              .colocates = false})),
      handle_(handle),
      flow_(flow) {}

DType TensorArray::dtype() const { return shared_->dtype; }
const PartialShape& TensorArray::element_shape() const { return shared_->element_shape; }

TensorArray TensorArray::WithFlow(const Output& flow) const {
  TensorArray other = *this;
  other.flow_ = flow;
  return other;
}

bool TensorArray::CheckElementShape(const PartialShape& shape, const Where& where) const {
  PartialShape& known = shared_->element_shape;
  Result<PartialShape> merged = shape.Merge(known);
  if (!merged.ok()) {
    (void)GraphOf(handle_).Fail(InvalidArgument("Inconsistent shapes: saw {} but expected {} ({})",
                                                shape.ToTupleString(), known.ToTupleString(), Format(where)));
    return false;
  }
  if (shared_->infer_shape) known = std::move(*merged);
  return true;
}

/// Places nodes beside the first value that was written, which `value` is if there is none yet.
void TensorArray::Colocate(const Output& value, std::optional<ColocateWith>& beside) const {
  if (!shared_->colocates || !value.exists()) return;
  if (!shared_->beside) shared_->beside = value;
  beside.emplace(shared_->beside->op(), OuterColocation::kKeep, *value.graph());
}

/// A node that writes `value`.
Output TensorArray::Placed(std::string_view op, const std::vector<Operand>& inputs, const Output& value,
                           std::string_view name, const Where& where) const {
  std::optional<ColocateWith> beside;
  Colocate(value, beside);
  return BuildOp(op, inputs, {}, name, where).output(0);
}

Output TensorArray::Read(const Operand& index, std::string_view name, Where where) const {
  const Output value =
      BuildOp("TensorArrayReadV3", {handle_, index, flow_}, {{"dtype", dtype()}}, name, where).output(0);
  if (value.exists()) value.SetShape(element_shape());
  return value;
}

TensorArray TensorArray::Write(const Operand& index, const Operand& value, std::string_view name, Where where) const {
  Graph& graph = GraphOf(handle_);
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "TensorArrayWrite" : name, graph);
  const Output written = value.In(graph, value.is_literal() ? dtype() : DType::kInvalid, "value");
  if (!written.exists() || !CheckElementShape(written.shape(), where)) return WithFlow(Output::Absent(graph));
  return WithFlow(Placed("TensorArrayWriteV3", {handle_, index, written, flow_}, written, name, where));
}

Output TensorArray::Stack(std::string_view name, Where where) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return Output::Absent(graph);
  const AsDefault in(graph);
  const ColocateWith beside(handle_.op(), OuterColocation::kKeep, graph);
  const NameScope scope(name.empty() ? "TensorArrayStack" : name, graph);
  const Output size = Size({}, where);
  const Output value = Gather(Range(0, size, 1, "range", where), name, where);
  if (value.exists() && element_shape().has_rank() && !shared_->dynamic_size && shared_->size) {
    const std::optional<std::vector<int64_t>> known = KnownInts(*shared_->size);
    value.SetShape(Stacked(known && known->size() == 1 ? (*known)[0] : -1, element_shape()));
  }
  return value;
}

Output TensorArray::Gather(const Operand& indices, std::string_view name, Where where) const {
  const Output value = BuildOp("TensorArrayGatherV3", {handle_, indices, flow_},
                               {{"dtype", dtype()}, {"element_shape", element_shape()}}, name, where)
                           .output(0);
  if (value.exists()) value.SetShape(Stacked(-1, element_shape()));
  return value;
}

Output TensorArray::Concat(std::string_view name, Where where) const {
  const PartialShape& element = element_shape();
  const Output value = BuildOp("TensorArrayConcatV3", {handle_, flow_},
                               {{"dtype", dtype()}, {"element_shape_except0", ElementShapeOf(element)}}, name, where)
                           .output(0);
  if (!value.exists() || element.rank() < 1) return value;
  int64_t rows = -1;
  if (shared_->infer_shape) {
    const std::optional<std::vector<int64_t>> size = KnownInts(Size({}, where));
    if (size && size->size() == 1 && element.dim(0) >= 0) rows = (*size)[0] * element.dim(0);
  }
  value.SetShape(Stacked(rows, ElementShapeOf(element)));
  return value;
}

TensorArray TensorArray::Unstack(const Operand& value, std::string_view name, Where where) const {
  Graph& graph = GraphOf(handle_);
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "TensorArrayUnstack" : name, graph);
  const Output shape = ShapeOf(value, DType::kInt32, "Shape", where);
  if (!shape.exists()) return WithFlow(Output::Absent(graph));
  const Output count = shape[0];
  return Scatter(Range(0, count, 1, "range", where), value, name, where);
}

TensorArray TensorArray::Scatter(const Operand& indices, const Operand& value, std::string_view name,
                                 Where where) const {
  Graph& graph = GraphOf(handle_);
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "TensorArrayScatter" : name, graph);
  const Output written = value.In(graph, value.is_literal() ? dtype() : DType::kInvalid, "value");
  if (!written.exists() || !CheckElementShape(ElementShapeOf(written.shape()), where))
    return WithFlow(Output::Absent(graph));
  return WithFlow(Placed("TensorArrayScatterV3", {handle_, indices, written, flow_}, written, name, where));
}

TensorArray TensorArray::Split(const Operand& value, const Operand& lengths, std::string_view name, Where where) const {
  Graph& graph = GraphOf(handle_);
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "TensorArraySplit" : name, graph);
  const Output written = value.In(graph, dtype(), "value");
  if (!written.exists()) return WithFlow(Output::Absent(graph));
  std::optional<ColocateWith> beside;
  Colocate(written, beside);
  const Output wide = ToInt64(graph, lengths, where);
  const std::optional<std::vector<int64_t>> known = KnownInts(lengths);
  const bool equal = known && !known->empty() && std::ranges::count(*known, (*known)[0]) == std::ssize(*known);
  if (equal && written.shape().rank() >= 1 &&
      !CheckElementShape(Stacked((*known)[0], ElementShapeOf(written.shape())), where)) {
    return WithFlow(Output::Absent(graph));
  }
  return WithFlow(Placed("TensorArraySplitV3", {handle_, written, wide, flow_}, written, name, where));
}

Output TensorArray::Size(std::string_view name, Where where) const {
  if (!shared_->dynamic_size && shared_->size) return shared_->size->In(GraphOf(handle_), DType::kInt32, "Const");
  return BuildOp("TensorArraySizeV3", {handle_, flow_}, {}, name, where).output(0);
}

Operation TensorArray::Close(std::string_view name, Where where) const {
  return BuildOp("TensorArrayCloseV3", {handle_}, {}, name, where);
}

TensorArray TensorArray::Grad(std::string_view source, std::string_view name, Where where) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return *this;
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "TensorArrayGrad" : name, graph);
  const ColocateWith beside(handle_.op(), OuterColocation::kKeep, graph);
  const Output made =
      BuildOp("TensorArrayGradV3", {handle_, flow_}, {{"source", std::string(source)}}, name, where).output(0);
  if (!made.exists()) return WithFlow(Output::Absent(graph));
  const ControlDependencies after({made.op()}, graph);
  TensorArray grad(dtype(), made, BuildOp("Identity", {flow_}, {}, "gradient_flow", where).output(0),
                   shared_->infer_shape);
  grad.shared_->element_shape = element_shape();
  return grad;
}

TensorArray TensorArray::Identity(Where where) const {
  return WithFlow(BuildOp("Identity", {flow_}, {}, "Identity", where).output(0));
}

}  // namespace weir
