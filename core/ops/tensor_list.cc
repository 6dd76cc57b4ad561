// Tensor lists as values: each op returns a new list and does not change its input.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;
using op::Value;

constexpr std::string_view kMakesList = "it makes a list without elements of its own";

// Gradients.

DType ListElementType(GradContext& g) {
  const Result<DType> type = g.attrs().Type("element_dtype");
  return type.ok() ? *type : DType::kInvalid;
}
Value ListShape(GradContext& g, Value list) {
  return g.Apply("TensorListElementShape", {list}, {{"shape_type", DType::kInt32}});
}
/// The extents of `tensor` except the first.
Value RowShape(GradContext& g, Value tensor) {
  return g.Apply("Slice", {g.ShapeOp(tensor), g.ConstInts({1}), g.ConstInts({-1})});
}
Value ListOf(GradContext& g, std::string_view op, std::initializer_list<Value> inputs) {
  return g.Apply(op, inputs, {{"element_dtype", ListElementType(g)}});
}

Result<std::vector<Grad>> ListPushGradient(GradContext& g) {
  const std::vector<Value> both =
      g.ApplyAll("TensorListPopBack", {g.Dy(0), g.ShapeOp(g.X(1))}, {{"element_dtype", ListElementType(g)}});
  if (both.size() != 2) return std::vector<Grad>(2);
  return std::vector<Grad>{both[0], both[1]};
}

Result<std::vector<Grad>> ListPopGradient(GradContext& g) {
  const Value none = g.ConstInt(-1);
  const Value list = g.HasDy(0) ? g.Dy(0) : ListOf(g, "EmptyTensorList", {ListShape(g, g.Y(0)), none});
  return std::vector<Grad>{ListOf(g, "TensorListPushBack", {list, g.Dy(1)}), Grad()};
}

Result<std::vector<Grad>> ListStackGradient(GradContext& g) {
  return std::vector<Grad>{ListOf(g, "TensorListFromTensor", {g.Dy(0), RowShape(g, g.Dy(0))}), Grad()};
}

Result<std::vector<Grad>> ListFromTensorGradient(GradContext& g) {
  const PartialShape shape = g.ShapeOf(g.X(0));
  const int64_t count = shape.rank() > 0 ? shape.dim(0) : -1;
  const Value stacked = g.Apply("TensorListStack", {g.Dy(0), RowShape(g, g.X(0))},
                                {{"element_dtype", ListElementType(g)}, {"num_elements", count}});
  return std::vector<Grad>{stacked, Grad()};
}

Result<std::vector<Grad>> ListGetGradient(GradContext& g) {
  const Value length = g.Apply("TensorListLength", {g.X(0)});
  const Value empty = ListOf(g, "TensorListReserve", {ListShape(g, g.X(0)), length});
  return std::vector<Grad>{ListOf(g, "TensorListSetItem", {empty, g.X(1), g.Dy(0)}), Grad(), Grad()};
}

Result<std::vector<Grad>> ListSetGradient(GradContext& g) {
  const Value list = ListOf(g, "TensorListSetItem", {g.Dy(0), g.X(1), g.Apply("ZerosLike", {g.X(2)})});
  const Value item = ListOf(g, "TensorListGetItem", {g.Dy(0), g.X(1), g.ShapeOp(g.X(2))});
  return std::vector<Grad>{list, Grad(), item};
}

Result<std::vector<Grad>> ListResizeGradient(GradContext& g) {
  const Value length = g.Apply("TensorListLength", {g.X(0)});
  return std::vector<Grad>{g.Apply("TensorListResize", {g.Dy(0), length}), Grad()};
}

Result<std::vector<Grad>> ListGatherGradient(GradContext& g) {
  const Value length = g.Apply("TensorListLength", {g.X(0)});
  return std::vector<Grad>{ListOf(g, "TensorListScatterV2", {g.Dy(0), g.X(1), RowShape(g, g.Dy(0)), length}), Grad(),
                           Grad()};
}

Result<std::vector<Grad>> ListScatterGradient(GradContext& g) {
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = ListOf(g, "TensorListGather", {g.Dy(0), g.X(1), RowShape(g, g.X(0))});
  return grads;
}

Result<std::vector<Grad>> ListConcatGradient(GradContext& g) {
  return std::vector<Grad>{ListOf(g, "TensorListSplit", {g.Dy(0), ListShape(g, g.X(0)), g.Y(1)}), Grad(), Grad()};
}

Result<std::vector<Grad>> ListSplitGradient(GradContext& g) {
  const Value any = g.ConstInts({-1});
  const Value shape = g.Apply("ConcatV2", {any, RowShape(g, g.X(0)), g.ConstInt(0)}, {{"N", int64_t{2}}});
  const std::vector<Value> whole =
      g.ApplyAll("TensorListConcatV2", {g.Dy(0), shape, g.X(2)}, {{"element_dtype", ListElementType(g)}});
  return std::vector<Grad>{whole.empty() ? Grad() : Grad(whole[0]), Grad(), Grad()};
}

// Shapes.

/// The element shape in input `i`: a vector of extents, or the scalar -1 for unknown rank.
Result<PartialShape> ListElementFrom(ShapeContext& c, int i) {
  return c.input(i).rank() == 0 ? Result<PartialShape>(PartialShape()) : c.shape_from(i);
}

/// [count, elements...] with the element shape in input `i`.
Status StackedShape(ShapeContext& c, int64_t count, int i) {
  WEIR_ASSIGN(const PartialShape element, ListElementFrom(c, i));
  WEIR_ASSIGN(PartialShape stacked, Join(VectorOf(count), element));
  c.set_output(0, std::move(stacked));
  return Status();
}

Status ListStackShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t count, c.attrs().Int("num_elements"));
  return StackedShape(c, count < 0 ? -1 : count, 1);
}

Status ListGatherShape(ShapeContext& c) {
  const PartialShape& indices = c.input(1);
  return StackedShape(c, indices.rank() == 1 ? indices.dim(0) : -1, 2);
}

Status ListConcatShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape element, ListElementFrom(c, 1));
  WEIR_ASSIGN(PartialShape whole, Join(VectorOf(-1), Span(element, 1)));
  c.set_output(0, std::move(whole));
  c.set_output(1, VectorOf(-1));
  return Status();
}

Status ListGetShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape element, ListElementFrom(c, 2));
  c.set_output(0, std::move(element));
  return Status();
}

Status ListPopShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape element, ListElementFrom(c, 1));
  c.set_output(0, PartialShape(Shape()));
  c.set_output(1, std::move(element));
  return Status();
}

Status ElementShapeShape(ShapeContext& c) {
  c.set_output(0, PartialShape());
  return Status();
}

Status ListBatchShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_ASSIGN(const PartialShape tensor, c.WithRankAtLeast(1, 1));
  WEIR_ASSIGN(PartialShape handles, c.input(0).Merge(VectorOf(tensor.has_rank() ? tensor.dim(0) : -1)));
  c.set_output(0, std::move(handles));
  return Status();
}

OpBuilder ListOp(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kArray); }
OpBuilder TypedList(OpBuilder op) { return op.Attr("element_dtype: type"); }
OpBuilder ShapedList(OpBuilder op) { return TypedList(op).Attr("shape_type: {int32, int64}"); }

void DeclareListMakers(OpRegistry& ops) {
  ShapedList(ListOp(ops, "EmptyTensorList"))
      .In("element_shape: shape_type")
      .In("max_num_elements: int32")
      .Out("handle: variant")
      .Shape(Scalar())
      .NoGradient(kMakesList)
      .Doc("A list without elements that may get max_num_elements (negative: any number).");
  ShapedList(ListOp(ops, "TensorListReserve"))
      .In("element_shape: shape_type")
      .In("num_elements: int32")
      .Out("handle: variant")
      .Shape(Scalar())
      .NoGradient(kMakesList)
      .Doc("A list of num_elements elements that are not set yet.");
  ShapedList(ListOp(ops, "TensorListFromTensor"))
      .In("tensor: element_dtype")
      .In("element_shape: shape_type")
      .Out("output_handle: variant")
      .Shape(Scalar())
      .Grad(ListFromTensorGradient)
      .Doc("The list of the slices of a tensor along its first axis.");
  for (const bool sized : {false, true}) {
    OpBuilder scatter = ShapedList(ListOp(ops, sized ? "TensorListScatterV2" : "TensorListScatter"))
                            .In("tensor: element_dtype")
                            .In("indices: int32")
                            .In("element_shape: shape_type");
    if (sized) scatter.In("num_elements: int32");
    scatter.Out("output_handle: variant")
        .Shape(Scalar())
        .Grad(ListScatterGradient)
        .Doc(sized ? "A list of num_elements elements (-1: as the indices need) with the slices at the indices."
                   : "A list with the slices of `tensor` along its first axis at the indices.");
  }
  ShapedList(ListOp(ops, "TensorListSplit"))
      .In("tensor: element_dtype")
      .In("element_shape: shape_type")
      .In("lengths: int64")
      .Out("output_handle: variant")
      .Shape(Scalar())
      .Grad(ListSplitGradient)
      .Doc("The list of the pieces of a tensor of these lengths along its first axis.");
}

void DeclareListTensors(OpRegistry& ops) {
  TypedList(ListOp(ops, "TensorListStack"))
      .In("input_handle: variant")
      .In("element_shape: int32")
      .Out("tensor: element_dtype")
      .Attr("num_elements: int = -1")
      .Shape(ListStackShape)
      .Grad(ListStackGradient)
      .Doc("All elements stacked along a new first axis; those that are not set are zeros.");
  TypedList(ListOp(ops, "TensorListGather"))
      .In("input_handle: variant")
      .In("indices: int32")
      .In("element_shape: int32")
      .Out("values: element_dtype")
      .Shape(ListGatherShape)
      .Grad(ListGatherGradient)
      .Doc("The elements at the indices stacked along a new first axis; those that are not set are zeros.");
  ShapedList(ListOp(ops, "TensorListConcatV2"))
      .In("input_handle: variant")
      .In("element_shape: shape_type")
      .In("leading_dims: int64")
      .Out("tensor: element_dtype")
      .Out("lengths: int64")
      .Shape(ListConcatShape)
      .Grad(ListConcatGradient)
      .Doc("All elements one after the other along their first axis, and how long each is.");
  ListOp(ops, "TensorListLength")
      .In("input_handle: variant")
      .Out("length: int32")
      .Shape(Scalar())
      .NoGradient(kDiscrete)
      .Doc("How many elements the list has.");
  ListOp(ops, "TensorListElementShape")
      .In("input_handle: variant")
      .Out("element_shape: shape_type")
      .Attr("shape_type: {int32, int64}")
      .Shape(ElementShapeShape)
      .NoGradient(kDiscrete)
      .Doc("The shape that all elements have, with -1 for what is not known.");
}

void DeclareListElements(OpRegistry& ops) {
  TypedList(ListOp(ops, "TensorListPushBack"))
      .In("input_handle: variant")
      .In("tensor: element_dtype")
      .Out("output_handle: variant")
      .Shape(Scalar())
      .Grad(ListPushGradient)
      .Doc("The list with one more element at its end.");
  TypedList(ListOp(ops, "TensorListPopBack"))
      .In("input_handle: variant")
      .In("element_shape: int32")
      .Out("output_handle: variant")
      .Out("tensor: element_dtype")
      .Shape(ListPopShape)
      .Grad(ListPopGradient)
      .Doc("The list without its last element, and that element.");
  TypedList(ListOp(ops, "TensorListGetItem"))
      .In("input_handle: variant")
      .In("index: int32")
      .In("element_shape: int32")
      .Out("item: element_dtype")
      .Shape(ListGetShape)
      .Grad(ListGetGradient)
      .Doc("One element; zeros where it is not set.");
  TypedList(ListOp(ops, "TensorListSetItem"))
      .In("input_handle: variant")
      .In("index: int32")
      .In("item: element_dtype")
      .Out("output_handle: variant")
      .Attr("resize_if_index_out_of_bounds: bool = false")
      .Shape(Scalar())
      .Grad(ListSetGradient)
      .Doc("The list with another element at the index.");
  ListOp(ops, "TensorListResize")
      .In("input_handle: variant")
      .In("size: int32")
      .Out("output_handle: variant")
      .Shape(Scalar())
      .Grad(ListResizeGradient)
      .Doc("The first `size` elements, or all and others that are not set.");
  TypedList(ListOp(ops, "TensorListConcatLists"))
      .In("input_a: variant")
      .In("input_b: variant")
      .Out("output: variant")
      .Shape(op::SameAs(0))
      .NoGradient(op::kUndefinedGradient)
      .Doc("For each two lists the elements of the one and then those of the other.");
  TypedList(ListOp(ops, "TensorListPushBackBatch"))
      .In("input_handles: variant")
      .In("tensor: element_dtype")
      .Out("output_handles: variant")
      .Shape(ListBatchShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("Each of a vector of lists with one more element: its slice of the tensor along the first axis.");
}

}  // namespace

void DeclareTensorList(OpRegistry& ops) {
  DeclareListMakers(ops);
  DeclareListTensors(ops);
  DeclareListElements(ops);
}

}  // namespace weir::ops
