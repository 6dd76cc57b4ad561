// Tensor arrays: a step writes and reads them element by element.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Unknown;
using op::Value;

constexpr std::string_view kMakesArray = "it makes an array: what is written to it has gradients";

Status FlowAndScalars(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape(Shape()));
  return Status();
}

/// Checks that input i is a scalar.
Status ScalarAt(ShapeContext& c, int i) {
  WEIR_TRY(c.WithRank(i, 0).status());
  return FlowAndScalars(c);
}

Status WriteShape(ShapeContext& c) {
  WEIR_TRY(ScalarAt(c, 1));
  return ScalarAt(c, 3);
}

Status ElementShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  WEIR_TRY(c.WithRank(2, 0).status());
  c.set_output(0, PartialShape());
  return Status();
}

/// Output: [indices, element_shape...].
Status ArrayGatherShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(1, 1));
  WEIR_TRY(c.WithRank(2, 0).status());
  WEIR_ASSIGN(const PartialShape element, c.attrs().ShapeAttr("element_shape"));
  WEIR_ASSIGN(PartialShape gathered, Join(VectorOf(indices.dim(0)), element));
  c.set_output(0, std::move(gathered));
  return Status();
}

Status ArrayScatterShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 1).status());
  WEIR_TRY(c.WithRankAtLeast(2, 1).status());
  return ScalarAt(c, 3);
}

/// Outputs: [?, element_shape_except0...] and the lengths.
Status ArrayConcatShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(1, 0).status());
  WEIR_ASSIGN(const PartialShape rest, c.attrs().ShapeAttr("element_shape_except0"));
  WEIR_ASSIGN(PartialShape whole, Join(VectorOf(-1), rest));
  c.set_output(0, std::move(whole));
  c.set_output(1, VectorOf(-1));
  return Status();
}

Status ArraySplitShape(ShapeContext& c) {
  WEIR_TRY(c.WithRankAtLeast(1, 1).status());
  WEIR_TRY(c.WithRank(2, 1).status());
  return ScalarAt(c, 3);
}

/// Version 2 names an array by two strings, version 3 by a handle.
bool IsVersion2(GradContext& g) { return g.TypeOf(g.X(0)) == DType::kString; }

/// The op of the node's version, "TensorArray<use>V3".
std::string OfVersion(GradContext& g, std::string_view use) {
  return "TensorArray" + std::string(use) + (IsVersion2(g) ? "V2" : "V3");
}

/// The gradient array of the node's array, and a flow that is sequenced after its creation; version 2 has the handle
/// alone for that.
struct GradientArray {
  Value handle;
  Value flow;
};
GradientArray GradientOf(GradContext& g, Value flow) {
  const std::vector<Value> made = g.ApplyAll(OfVersion(g, "Grad"), {g.X(0), flow}, {{"source", g.source()}});
  if (made.empty()) return GradientArray{};  // the context has the error
  return {made[0], made.size() == 2 ? made[1] : flow};
}

Result<std::vector<Grad>> ArrayReadGradient(GradContext& g) {
  const GradientArray array = GradientOf(g, g.X(2));
  const Value flow = g.Apply(OfVersion(g, "Write"), {array.handle, g.X(1), g.Dy(0), array.flow});
  return std::vector<Grad>{Grad(), Grad(), flow};
}

Result<std::vector<Grad>> ArrayWriteGradient(GradContext& g) {
  const Value dy = g.Dy(0);
  const GradientArray array = GradientOf(g, dy);
  const Value value = g.Apply(OfVersion(g, "Read"), {array.handle, g.X(1), array.flow}, {{"dtype", g.TypeOf(g.X(2))}});
  return std::vector<Grad>{Grad(), Grad(), value, dy};
}

Result<std::vector<Grad>> ArrayGatherGradient(GradContext& g) {
  const GradientArray array = GradientOf(g, g.X(2));
  const Value flow = g.Apply(OfVersion(g, "Scatter"), {array.handle, g.X(1), g.Dy(0), array.flow});
  return std::vector<Grad>{Grad(), Grad(), flow};
}

Result<std::vector<Grad>> ArrayScatterGradient(GradContext& g) {
  const Value dy = g.Dy(0);
  const GradientArray array = GradientOf(g, dy);
  const Value value =
      g.Apply(OfVersion(g, "Gather"), {array.handle, g.X(1), array.flow}, {{"dtype", g.TypeOf(g.X(2))}});
  return std::vector<Grad>{Grad(), Grad(), value, dy};
}

Result<std::vector<Grad>> ArrayConcatGradient(GradContext& g) {
  const GradientArray array = GradientOf(g, g.X(1));
  const Value flow = g.Apply(OfVersion(g, "Split"), {array.handle, g.Dy(0), g.Y(1), array.flow});
  return std::vector<Grad>{Grad(), flow};
}

Result<std::vector<Grad>> ArraySplitGradient(GradContext& g) {
  const Value dy = g.Dy(0);
  const GradientArray array = GradientOf(g, dy);
  const std::vector<Value> whole =
      g.ApplyAll(OfVersion(g, "Concat"), {array.handle, array.flow}, {{"dtype", g.TypeOf(g.X(1))}});
  return std::vector<Grad>{Grad(), whole.empty() ? Grad() : Grad(whole[0]), Grad(), dy};
}

/// The ops of version 3 have handles of resources. Those of version 2 have strings in their place and no flow out of
/// what makes arrays, and TensorFlow declares only the latter stateful.
class ArrayOps {
 public:
  ArrayOps(OpRegistry& ops, int version)
      : ops_(ops), version_(version), handle_(version == 3 ? kByHandle : std::string_view("handle: string")) {}

  void DeclareMakers();
  void DeclareElements();
  void DeclarePieces();

 private:
  OpBuilder Maker(std::string_view name) { return ops_.Declare(Full(name)).Is(Category::kState).Stateful(); }
  OpBuilder Use(std::string_view name) {
    OpBuilder made = ops_.Declare(Full(name)).Is(Category::kState);
    made.In(handle_);
    return version_ == 3 ? made.Stateful() : made;
  }
  std::string Full(std::string_view name) const { return std::string(name) + (version_ == 3 ? "V3" : "V2"); }

  OpRegistry& ops_;
  const int version_;
  const std::string_view handle_;
};

void ArrayOps::DeclareMakers() {
  OpBuilder array = Maker("TensorArray");
  array.In("size: int32").Out(handle_);
  if (version_ == 3) array.Out("flow: float").Attr("identical_element_shapes: bool = false");
  array.Attr("dtype: type")
      .Attr("element_shape: shape = { unknown_rank: true }")
      .Attr("dynamic_size: bool = false")
      .Attr("clear_after_read: bool = true")
      .Attr("tensor_array_name: string = ''")
      .Shape([version = version_](ShapeContext& c) {
        WEIR_TRY(ScalarAt(c, 0));
        if (version == 2) c.set_output(0, VectorOf(2));
        return Status();
      })
      .NoGradient(kMakesArray)
      .Doc(
          "A new array of `size` elements that ends with the step; each is written once. With dynamic_size a write "
          "behind the end makes it longer. `flow` orders what is done with it.");
  OpBuilder gradients = Maker("TensorArrayGrad");
  gradients.In(handle_).In("flow_in: float").Out(version_ == 3 ? "grad_handle: resource" : "grad_handle: string");
  if (version_ == 3) gradients.Out("flow_out: float");
  gradients.Attr("source: string")
      .Shape([version = version_](ShapeContext& c) {
        WEIR_TRY(FlowAndScalars(c));
        if (version == 2) c.set_output(0, VectorOf(2));
        return Status();
      })
      .NoGradient(kMakesArray)
      .Doc(
          "The array of gradients that belongs to an array, one for each `source`, made on first use. It adds up what "
          "is written to one element.");
  Use("TensorArraySize")
      .In("flow_in: float")
      .Out("size: int32")
      .Shape(FlowAndScalars)
      .NoGradient(kDiscrete)
      .Doc("How many elements the array has.");
  Use("TensorArrayClose")
      .Shape(op::NoOutputs())
      .NoGradient("it has no outputs")
      .Doc("Drops the elements; the array cannot be used any more.");
}

void ArrayOps::DeclareElements() {
  Use("TensorArrayRead")
      .In("index: int32")
      .In("flow_in: float")
      .Out("value: dtype")
      .Attr("dtype: type")
      .Shape(ElementShape)
      .Grad(ArrayReadGradient)
      .Doc("The element; with clear_after_read it can be read once.");
  Use("TensorArrayWrite")
      .In("index: int32")
      .In("value: T")
      .In("flow_in: float")
      .Out("flow_out: float")
      .Attr(kAnyT)
      .Shape(WriteShape)
      .Grad(ArrayWriteGradient)
      .Doc("Makes `value` the element.");
  Use("TensorArrayGather")
      .In("indices: int32")
      .In("flow_in: float")
      .Out("value: dtype")
      .Attr("dtype: type")
      .Attr("element_shape: shape = { unknown_rank: true }")
      .Shape(ArrayGatherShape)
      .Grad(ArrayGatherGradient)
      .Doc("The elements at the indices as one tensor, stacked along a new first axis.");
  Use("TensorArrayScatter")
      .In("indices: int32")
      .In("value: T")
      .In("flow_in: float")
      .Out("flow_out: float")
      .Attr(kAnyT)
      .Shape(ArrayScatterShape)
      .Grad(ArrayScatterGradient)
      .Doc("Writes the slices of `value` along its first axis to the elements at the indices.");
}

void ArrayOps::DeclarePieces() {
  Use("TensorArrayConcat")
      .In("flow_in: float")
      .Out("value: dtype")
      .Out("lengths: int64")
      .Attr("dtype: type")
      .Attr("element_shape_except0: shape = { unknown_rank: true }")
      .Shape(ArrayConcatShape)
      .Grad(ArrayConcatGradient)
      .Doc("All elements one after the other along their first axis, and how long each is.");
  Use("TensorArraySplit")
      .In("value: T")
      .In("lengths: int64")
      .In("flow_in: float")
      .Out("flow_out: float")
      .Attr(kAnyT)
      .Shape(ArraySplitShape)
      .Grad(ArraySplitGradient)
      .Doc("Cuts `value` along its first axis into pieces of these lengths and writes them to the elements in order.");
}

}  // namespace

void DeclareTensorArray(OpRegistry& ops) {
  for (const int version : {2, 3}) {
    ArrayOps arrays(ops, version);
    arrays.DeclareMakers();
    arrays.DeclareElements();
    arrays.DeclarePieces();
  }
}

}  // namespace weir::ops
