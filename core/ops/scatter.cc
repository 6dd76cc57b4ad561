// Writes of rows or elements by index, to variables by reference and by handle and to new tensors; also GatherNd, the
// inverse read.
#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/grad_shapes.h"
#include "core/ops/scatter_shapes.h"
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
using op::Value;

constexpr std::string_view kIndexTypes = "{int32, int64}";
constexpr std::string_view kMinMaxTypes = "{half, bfloat16, float, double, int32, int64}";

/// updates: one row of the variable per index, or a scalar for all.
Status CheckUpdatedRows(const PartialShape& variable, const PartialShape& indices, const PartialShape& updates) {
  if (variable.rank() == 0) return InvalidArgument("params must be at least 1-D, got shape []");
  if (updates.rank() == 0) return Status();
  WEIR_ASSIGN(const PartialShape wanted, Join(indices, Span(variable, 1)));
  return updates.Merge(wanted).status();
}

/// Checks that two ranges of extents agree; error texts use TensorFlow's names.
Status CheckStretch(std::string_view of, const PartialShape& whole, int begin, int end, const PartialShape& updates,
                    int from, int to) {
  const PartialShape part = Span(whole, begin, end), other = Span(updates, from, to);
  const Status merged = part.Merge(other).status();
  if (merged.ok()) return merged;
  return InvalidArgument(
      "Dimensions [{},{}) of {}[shape={}] = {} must match dimensions [{},{}) of updates[shape={}] = {}: {}", begin, end,
      of, whole.ToString(), part.ToString(), from, to, updates.ToString(), other.ToString(), merged.message());
}

/// indices: [outer…, depth], updates: [outer…, extents of `target` from depth on].
Status CheckPlaces(const PartialShape& target, const PartialShape& given_indices, const PartialShape& given_updates) {
  WEIR_ASSIGN(const PartialShape indices, ToRankAtLeast(given_indices, 1));
  WEIR_ASSIGN(const PartialShape updates, ToRankAtLeast(given_updates, 1));
  if (target.elements() == 0 && (indices.elements() > 0 || updates.elements() > 0)) {
    return InvalidArgument("Indices and updates specified for empty input");
  }
  if (!indices.has_rank() || !updates.has_rank()) return Status();
  const int outer = indices.rank() - 1;
  WEIR_TRY(CheckStretch("indices", indices, 0, outer, updates, 0, outer));
  const int64_t depth = indices.dim(outer);
  if (depth < 0 || !target.has_rank()) return Status();
  // The kernel rejects more coordinates than axes, as in TensorFlow.
  if (depth > target.rank()) return Status();
  return CheckStretch("input", target, static_cast<int>(depth), target.rank(), updates, outer, updates.rank());
}

using Check = Status (*)(const PartialShape& target, const PartialShape& indices, const PartialShape& updates);

template <Check kCheck>
Status RefShape(ShapeContext& c) {
  WEIR_TRY(kCheck(c.input(0), c.input(1), c.input(2)));
  c.set_output(0, c.input(0));
  return Status();
}

template <Check kCheck>
Status HandleShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(const PartialShape held, c.held_shape(0));
  return kCheck(held, c.input(1), c.input(2));
}

Status ScatterNdShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(2, 1).status());
  if (c.input_type(2) == DType::kInt16) {
    return InvalidArgument("Input tensor must be int32 or int64, but was int16");
  }
  if (const std::optional<std::vector<int64_t>> dims = c.ints(2)) {
    for (const int64_t dim : *dims) {
      if (dim < 0) return InvalidArgument("Dimension {} must be >= 0", dim);
    }
  }
  WEIR_ASSIGN(PartialShape shape, c.shape_from(2));
  WEIR_TRY(CheckPlaces(shape, c.input(0), c.input(1)));
  c.set_output(0, std::move(shape));
  return Status();
}

Result<std::vector<Grad>> ScatterNdGradient(GradContext& g) {
  return std::vector<Grad>{Grad::None(), g.Apply("GatherNd", {g.Dy(0), g.X(0)}), Grad::None()};
}

/// The slices of `params` at the coordinates in input 1.
Status SlicesShape(ShapeContext& c, const PartialShape& params) {
  WEIR_ASSIGN(const PartialShape indices, ToRankAtLeast(c.input(1), 1));
  if (!params.has_rank() || !indices.has_rank()) return Status();
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  if (depth < 0) return Status();
  if (depth > params.rank()) {
    return InvalidArgument("indices.shape[-1] must be <= params.rank, but saw indices shape: {} and params shape: {}",
                           indices.ToString(), params.ToString());
  }
  WEIR_ASSIGN(PartialShape out, Join(Span(indices, 0, outer), Span(params, static_cast<int>(depth))));
  c.set_output(0, std::move(out));
  return Status();
}

Status GatherNdShape(ShapeContext& c) { return SlicesShape(c, c.input(0)); }

/// The gradient for single coordinates is IndexedSlices; otherwise updates are summed into a tensor of params' `shape`.
Grad SlicesGradient(GradContext& g, Value indices, Value shape) {
  const PartialShape places = g.ShapeOf(indices);
  if (places.rank() == 2 && places.dim(1) == 1) {
    const Value rows = g.Apply("Squeeze", {indices}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
    return Grad::Slices(g.Dy(0), rows, shape);
  }
  return g.Apply("ScatterNd", {indices, g.Dy(0), shape});
}

Result<std::vector<Grad>> GatherNdGradient(GradContext& g) {
  const Value indices = g.X(1);
  return std::vector<Grad>{SlicesGradient(g, indices, ShapeAs(g, g.X(0), g.TypeOf(indices))), Grad::None()};
}

/// The declared shape of the variable behind the handle takes the place of params'.
Status ResourceGatherNdShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 0).status());
  WEIR_ASSIGN(const PartialShape held, c.held_shape(0));
  return SlicesShape(c, held);
}

Result<std::vector<Grad>> ResourceGatherNdGradient(GradContext& g) {
  const Value indices = g.X(1);
  const Value shape = g.Apply("VariableShape", {g.X(0)}, {{"out_type", g.TypeOf(indices)}});
  return std::vector<Grad>{SlicesGradient(g, indices, shape), Grad::None()};
}

Status TensorScatterShape(ShapeContext& c) {
  WEIR_TRY(CheckPlaces(c.input(0), c.input(1), c.input(2)));
  c.set_output(0, c.input(0));
  return Status();
}

/// The updates' part of dy.
Value Updated(GradContext& g) { return g.Apply("GatherNd", {g.Dy(0), g.X(1)}); }

Result<std::vector<Grad>> TensorScatterUpdateGradient(GradContext& g) {
  const Value zeros = g.Apply("ZerosLike", {g.X(2)});
  const Value kept = g.Apply("TensorScatterUpdate", {g.Apply("Identity", {g.Dy(0)}), g.X(1), zeros});
  return std::vector<Grad>{kept, Grad::None(), Updated(g)};
}
Result<std::vector<Grad>> TensorScatterAddGradient(GradContext& g) {
  return std::vector<Grad>{g.Apply("Identity", {g.Dy(0)}), Grad::None(), Updated(g)};
}
Result<std::vector<Grad>> TensorScatterSubGradient(GradContext& g) {
  return std::vector<Grad>{g.Apply("Identity", {g.Dy(0)}), Grad::None(), g.Neg(Updated(g))};
}

/// dy is divided evenly among the element of the tensor and the updates that equal the result.
Result<std::vector<Grad>> TensorScatterExtremeGradient(GradContext& g) {
  const Value x = g.X(0), indices = g.X(1), updates = g.X(2), dy = g.Dy(0);
  const auto equal = [&](Value a, Value b) {
    return g.Apply("Cast", {g.Apply("Equal", {a, b})}, {{"DstT", g.TypeOf(dy)}});
  };
  const Value of_x = equal(x, g.Y(0)), of_updates = equal(updates, g.Apply("GatherNd", {g.Y(0), indices}));
  const Value counts = g.Apply("ScatterNd", {indices, of_updates, ShapeAs(g, x, g.TypeOf(indices))});
  const Value all = g.Add(of_x, counts);
  const Value share = g.Apply("GatherNd", {g.Div(dy, all), indices});
  return std::vector<Grad>{g.Div(g.Mul(dy, of_x), all), Grad::None(), g.Mul(share, of_updates)};
}

/// The operation applied at the indexed elements.
struct Change {
  const char* name;
  std::string_view types;
  const char* locks;
  const char* rows;    // doc of the forms with rows
  const char* places;  // doc of the forms with coordinates; null where TensorFlow has none

  /// The types of all forms but that with a reference and rows.
  std::string_view wide() const { return types == kMinMaxTypes ? "numbertype" : types; }
};

constexpr Change kChanges[] = {
    {"Update", "type", "true",
     "Makes row i of `updates` row indices[i] of the variable; of rows for one place the last stays.",
     "Makes slice i of `updates` the slice of the variable at the coordinates indices[i]; of several the last stays."},
    {"Add", "numbertype", "false",
     "Adds row i of `updates` to row indices[i] of the variable; indices that repeat add up.",
     "Adds slice i of `updates` to the slice of the variable at the coordinates indices[i]; those that repeat add up."},
    {"Sub", "numbertype", "false",
     "Subtracts row i of `updates` from row indices[i] of the variable; indices that repeat add up.",
     "Subtracts slice i of `updates` from the slice at the coordinates indices[i]; those that repeat add up."},
    {"Mul", "numbertype", "false", "Multiplies row indices[i] of the variable by row i of `updates`, in order.",
     nullptr},
    {"Div", "numbertype", "false", "Divides row indices[i] of the variable by row i of `updates`, in order.", nullptr},
    {"Min", kMinMaxTypes, "false", "Row indices[i] becomes the smaller of itself and row i of `updates`, by element.",
     "The slice at the coordinates indices[i] becomes the smaller of itself and slice i of `updates`, by element."},
    {"Max", kMinMaxTypes, "false", "Row indices[i] becomes the larger of itself and row i of `updates`, by element.",
     "The slice at the coordinates indices[i] becomes the larger of itself and slice i of `updates`, by element."},
};

OpBuilder Scatter(OpRegistry& ops, const std::string& name, const Change& change) {
  OpBuilder declared = ops.Declare(name);
  if (change.types == "type") declared.MovesElements();  // no arithmetic is defined for all types
  return declared.Is(Category::kState).Attr(fmt::format("Tindices: {}", kIndexTypes)).NoGradient(kUpdate);
}

OpBuilder RefScatter(OpRegistry& ops, const std::string& name, const Change& change, std::string_view types) {
  return Scatter(ops, name, change)
      .In("ref: Ref(T)")
      .In("indices: Tindices")
      .In("updates: T")
      .Out("output_ref: Ref(T)")
      .Attr(fmt::format("T: {}", types))
      .Attr(fmt::format("use_locking: bool = {}", change.locks));
}

void DeclareRows(OpRegistry& ops, const Change& change) {
  RefScatter(ops, fmt::format("Scatter{}", change.name), change, change.types)
      .Shape(RefShape<CheckUpdatedRows>)
      .Doc(change.rows);
  Scatter(ops, fmt::format("ResourceScatter{}", change.name), change)
      .In("resource: resource")
      .In("indices: Tindices")
      .In("updates: dtype")
      .Attr(fmt::format("dtype: {}", change.wide()))
      .Stateful()
      .Shape(HandleShape<CheckUpdatedRows>)
      .Doc(change.rows);
}

void DeclarePlaces(OpRegistry& ops, const Change& change) {
  RefScatter(ops, fmt::format("ScatterNd{}", change.name), change, change.wide())
      .Shape(RefShape<CheckPlaces>)
      .Doc(change.places);
  Scatter(ops, fmt::format("ResourceScatterNd{}", change.name), change)
      .In("ref: resource")
      .In("indices: Tindices")
      .In("updates: T")
      .Attr(kAnyT)
      .Attr("use_locking: bool = true")
      .Stateful()
      .Shape(HandleShape<CheckPlaces>)
      .Doc(change.places);
}

OpBuilder TensorScatter(OpRegistry& ops, std::string_view name, std::string_view target, std::string_view type,
                        std::string_view indices) {
  return ops.Declare(name)
      .Is(Category::kArray)
      .In(fmt::format("{}: T", target))
      .In("indices: Tindices")
      .In("updates: T")
      .Out("output: T")
      .Attr(type)
      .Attr(indices)
      .Shape(TensorScatterShape);
}

void DeclareTensorScatters(OpRegistry& ops) {
  const std::string narrow = fmt::format("Tindices: {}", kIndexTypes);
  TensorScatter(ops, "TensorScatterUpdate", "tensor", kAnyT, "Tindices: {int16, int32, int64, uint16}")
      .MovesElements()
      .Grad(TensorScatterUpdateGradient)
      .Doc("`tensor` with slice i of `updates` at the coordinates indices[i]; of several the last stays.");
  TensorScatter(ops, "TensorScatterAdd", "tensor", kAnyT, narrow)
      .Grad(TensorScatterAddGradient)
      .Doc("`tensor` to which slice i of `updates` is added at the coordinates indices[i].");
  TensorScatter(ops, "TensorScatterSub", "tensor", kAnyT, narrow)
      .Grad(TensorScatterSubGradient)
      .Doc("`tensor` from which slice i of `updates` is subtracted at the coordinates indices[i].");
  TensorScatter(ops, "TensorScatterMin", "tensor", kAnyT, narrow)
      .Grad(TensorScatterExtremeGradient)
      .Doc("`tensor` with the smaller of itself and slice i of `updates` at the coordinates indices[i].");
  TensorScatter(ops, "TensorScatterMax", "tensor", kAnyT, narrow)
      .Grad(TensorScatterExtremeGradient)
      .Doc("`tensor` with the larger of itself and slice i of `updates` at the coordinates indices[i].");
  TensorScatter(ops, "ScatterNdNonAliasingAdd", "input",
                "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
                "qint16, quint16, uint16, complex128, half, uint32, uint64, bool}",
                narrow)
      .Grad(TensorScatterAddGradient)
      .Doc("`input` to which slice i of `updates` is added at the coordinates indices[i].");
}

}  // namespace

Status CheckScatteredSlices(const PartialShape& target, const PartialShape& indices, const PartialShape& updates) {
  return CheckPlaces(target, indices, updates);
}

void DeclareScatter(OpRegistry& ops) {
  for (const Change& change : kChanges) {
    DeclareRows(ops, change);
    if (change.places != nullptr) DeclarePlaces(ops, change);
  }
  ops.Declare("ScatterNd")
      .Is(Category::kArray)
      .In("indices: Tindices")
      .In("updates: T")
      .In("shape: Tindices")
      .Out("output: T")
      .Attr(kAnyT)
      .Attr("Tindices: {int16, int32, int64}")
      .Shape(ScatterNdShape)
      .Grad(ScatterNdGradient)
      .Doc("Zeros of `shape` to which slice i of `updates` is added at the coordinates indices[i].");
  ops.Declare("GatherNd")
      .Is(Category::kArray)
      .In("params: Tparams")
      .In("indices: Tindices")
      .Out("output: Tparams")
      .Attr("Tparams: type")
      .Attr("Tindices: {int16, int32, int64}")
      .Attr("bad_indices_policy: string = ''")
      .MovesElements()
      .Shape(GatherNdShape)
      .Grad(GatherNdGradient)
      .Doc("The slices of `params` at the coordinates in the last axis of `indices`.");
  ops.Declare("ResourceGatherNd")
      .Is(Category::kArray)
      .In("resource: resource")
      .In("indices: Tindices")
      .Out("output: dtype")
      .Attr("dtype: type")
      .Attr(fmt::format("Tindices: {}", kIndexTypes))
      .Stateful()
      .MovesElements()
      .Shape(ResourceGatherNdShape)
      .Grad(ResourceGatherNdGradient)
      .Doc("The slices of the variable behind the handle at the coordinates in the last axis of `indices`.");
  DeclareTensorScatters(ops);
}

}  // namespace weir::ops
