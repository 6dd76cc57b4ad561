// Slices of a tensor replaced, or combined with updates, at given coordinates: TensorScatterUpdate, TensorScatterAdd, …
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
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

Status TensorScatterShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape out, c.WithRankAtLeast(0, 1));
  WEIR_TRY(CheckScatteredSlices(out, c.input(1), c.input(2)));
  c.set_output(0, std::move(out));
  return Status();
}

std::vector<Grad> ReplacingGradient(GradContext& g) {
  const Value kept = g.Apply("TensorScatterUpdate", {g.Dy(0), g.X(1), g.Apply("ZerosLike", {g.X(2)})});
  return {kept, Grad::None(), g.Apply("GatherNd", {g.Dy(0), g.X(1)})};
}

std::vector<Grad> AddingGradient(GradContext& g) {
  return {g.Dy(0), Grad::None(), g.Apply("GatherNd", {g.Dy(0), g.X(1)})};
}

std::vector<Grad> SubtractingGradient(GradContext& g) {
  return {g.Dy(0), Grad::None(), g.Neg(g.Apply("GatherNd", {g.Dy(0), g.X(1)}))};
}

/// Among equal extreme elements the gradient is divided.
std::vector<Grad> ExtremeGradient(GradContext& g) {
  const Value x = g.X(0), indices = g.X(1), y = g.X(2), dy = g.Dy(0);
  const auto same = [&](Value a, Value b) {
    return g.Apply("Cast", {g.Apply("Equal", {a, b})}, {{"DstT", g.TypeOf(dy)}});
  };
  const Value from_x = same(x, g.Y(0)), from_y = same(y, g.Apply("GatherNd", {g.Y(0), indices}));
  const Value shape = ShapeAs(g, x, g.TypeOf(indices));
  const Value count = g.Add(from_x, g.Apply("ScatterNd", {indices, from_y, shape}));
  const Value share = g.Div(dy, count);
  return {g.Mul(share, from_x), Grad::None(), g.Mul(g.Apply("GatherNd", {share, indices}), from_y)};
}

struct TensorScatterForm {
  const char* name;
  std::vector<Grad> (*gradient)(GradContext& g);
  const char* indices;
  const char* doc;
};

constexpr const char* kTwoIndexTypes = "Tindices: {int32, int64}";
constexpr TensorScatterForm kTensorScatterForms[] = {
    {"TensorScatterUpdate", ReplacingGradient, "Tindices: {int16, int32, int64, uint16}",
     "`tensor` with slice i of `updates` at the coordinates indices[i]; of several the last stays."},
    {"TensorScatterAdd", AddingGradient, kTwoIndexTypes,
     "`tensor` with slice i of `updates` added at the coordinates indices[i]; those that repeat add up."},
    {"TensorScatterSub", SubtractingGradient, kTwoIndexTypes,
     "`tensor` with slice i of `updates` subtracted at the coordinates indices[i]; those that repeat add up."},
    {"TensorScatterMin", ExtremeGradient, kTwoIndexTypes,
     "`tensor` with the smaller of its element and that of slice i of `updates` at the coordinates indices[i]."},
    {"TensorScatterMax", ExtremeGradient, kTwoIndexTypes,
     "`tensor` with the larger of its element and that of slice i of `updates` at the coordinates indices[i]."},
};

}  // namespace

void DeclareScattered(OpRegistry& ops) {
  for (const TensorScatterForm& form : kTensorScatterForms) {
    op::OpBuilder declared = ops.Declare(form.name);
    declared.Is(Category::kArray).In("tensor: T").In("indices: Tindices").In("updates: T").Out("output: T");
    declared.Attr(kAnyT).Attr(form.indices).Shape(TensorScatterShape).Grad(form.gradient).Doc(form.doc);
    if (form.gradient == ReplacingGradient) declared.MovesElements();
  }
}

}  // namespace weir::ops
