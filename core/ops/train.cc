// Optimiser updates of reference and resource variables, with dense or sparse gradients.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::ShapeFn;

enum class Holder { kRef, kResource };

/// An update: the variable and its slots, followed by the other inputs in the kernel's order.
struct Step {
  std::initializer_list<const char*> held;     // updated in place
  std::initializer_list<const char*> numbers;  // scalars except `gradient` and "indices"
  const char* gradient;
  bool nesterov;
};

constexpr Step kGradientDescent = {{"var"}, {"alpha", "delta"}, "delta", false};
constexpr Step kMomentum = {{"var", "accum"}, {"lr", "grad", "momentum"}, "grad", true};
constexpr Step kSparseMomentum = {{"var", "accum"}, {"lr", "grad", "indices", "momentum"}, "grad", true};
constexpr Step kAdam = {
    {"var", "m", "v"}, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"}, "grad", true};

constexpr std::string_view kIndices = "indices";

bool IsSparse(const Step& step) { return std::ranges::find(step.numbers, kIndices) != step.numbers.end(); }

/// Sparse gradient: one row per element of the vector `indices`.
Status CheckGradientRows(const PartialShape& variable, const PartialShape& gradient, const PartialShape& indices) {
  WEIR_ASSIGN(const PartialShape vector, ToRank(indices, 1));
  WEIR_ASSIGN(const PartialShape wanted, Join(vector, Span(variable, 1)));
  return gradient.Merge(wanted).status();
}

/// The shape of the variable or slot behind input i.
Result<PartialShape> HeldShape(ShapeContext& c, Holder holder, int i) {
  if (holder == Holder::kRef) return c.input(i);
  WEIR_TRY(c.WithRank(i, 0).status());
  return c.held_shape(i);
}

/// Variable, slots, gradient and output reference have one shape; the other inputs are scalars.
ShapeFn StepShape(const Step& step, Holder holder) {
  return [&step, holder](ShapeContext& c) -> Status {
    PartialShape shape;
    int i = 0;
    for (; i < static_cast<int>(step.held.size()); ++i) {
      WEIR_ASSIGN(const PartialShape held, HeldShape(c, holder, i));
      WEIR_ASSIGN(shape, shape.Merge(held));
    }
    for (std::string_view number : step.numbers) {
      if (number == step.gradient && IsSparse(step)) {
        WEIR_TRY(CheckGradientRows(shape, c.input(i), c.input(i + 1)));
      } else if (number == kIndices) {
        // checked with the gradient, which precedes them
      } else if (number == step.gradient) {
        WEIR_ASSIGN(shape, shape.Merge(c.input(i)));
      } else {
        WEIR_TRY(c.WithRank(i, 0).status());
      }
      ++i;
    }
    if (holder == Holder::kRef) c.set_output(0, std::move(shape));
    return Status();
  };
}

void DeclareStep(OpRegistry& ops, std::string_view name, const Step& step, Holder holder, std::string_view doc) {
  OpBuilder declared = ops.Declare(name).Is(Category::kTraining);
  for (std::string_view held : step.held) {
    declared.In(fmt::format("{}: {}", held, holder == Holder::kRef ? "Ref(T)" : "resource"));
  }
  for (std::string_view number : step.numbers) {
    declared.In(fmt::format("{}: {}", number, number == kIndices ? "Tindices" : "T"));
  }
  if (holder == Holder::kRef) declared.Out("out: Ref(T)");
  declared.Attr(kNumberT).Attr("use_locking: bool = false");
  if (IsSparse(step)) declared.Attr("Tindices: {int32, int64}");
  if (step.nesterov) declared.Attr("use_nesterov: bool = false");
  if (holder == Holder::kResource) declared.Stateful();
  declared.Doc(doc).Shape(StepShape(step, holder)).NoGradient("a step changes variables; it is not a function of them");
}

/// The product, the variable and the output reference have one shape.
ShapeFn ProductStepShape(Holder holder) {
  return [holder](ShapeContext& c) -> Status {
    WEIR_ASSIGN(const PartialShape variable, HeldShape(c, holder, 0));
    WEIR_TRY(c.WithRank(1, 0).status());
    WEIR_ASSIGN(const bool transpose_a, c.attrs().Bool("transpose_a"));
    WEIR_ASSIGN(const bool transpose_b, c.attrs().Bool("transpose_b"));
    WEIR_ASSIGN(const PartialShape a, c.WithRank(2, 2));
    WEIR_ASSIGN(const PartialShape b, c.WithRank(3, 2));
    WEIR_ASSIGN(const PartialShape product, MatrixProduct(a, transpose_a, b, transpose_b));
    WEIR_ASSIGN(PartialShape shape, variable.Merge(product));
    if (holder == Holder::kRef) c.set_output(0, std::move(shape));
    return Status();
  };
}

/// An update with a product that has no other users; core/fuse replaces both by this op.
void DeclareProductStep(OpRegistry& ops, std::string_view name, std::string_view step, Holder holder) {
  OpBuilder declared = ops.Declare(name).Is(Category::kTraining).Fuses(step, 2, "MatMul");
  declared.In(holder == Holder::kRef ? "var: Ref(T)" : "var: resource").In("alpha: T").In("a: T").In("b: T");
  if (holder == Holder::kRef) declared.Out("out: Ref(T)");
  declared.Attr(kNumberT).Attr("transpose_a: bool = false").Attr("transpose_b: bool = false");
  declared.Attr("use_locking: bool = false");
  if (holder == Holder::kResource) declared.Stateful();
  declared.Doc("var -= alpha * op(a) op(b), the product of matrices, each transposed first where its flag says so.")
      .Shape(ProductStepShape(holder))
      .NoGradient("a step changes variables; it is not a function of them");
}

}  // namespace

void DeclareTrain(OpRegistry& ops) {
  const char* kDescentDoc = "var -= alpha * delta.";
  const char* kMomentumDoc =
      "accum = accum * momentum + grad; var -= lr * accum, or var -= lr * (grad + momentum * accum) if use_nesterov.";
  const char* kAdamDoc =
      "With rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power): m += (1 - beta1) * (grad - m); "
      "v += (1 - beta2) * (grad^2 - v); var -= rate * m / (sqrt(v) + epsilon), where use_nesterov takes "
      "beta1 * m + (1 - beta1) * grad for m in the last.";
  DeclareStep(ops, "ApplyGradientDescent", kGradientDescent, Holder::kRef, kDescentDoc);
  DeclareStep(ops, "ApplyMomentum", kMomentum, Holder::kRef, kMomentumDoc);
  DeclareStep(ops, "ApplyAdam", kAdam, Holder::kRef, kAdamDoc);
  DeclareStep(ops, "ResourceApplyGradientDescent", kGradientDescent, Holder::kResource, kDescentDoc);
  DeclareStep(ops, "ResourceApplyMomentum", kMomentum, Holder::kResource, kMomentumDoc);
  const char* kSparseMomentumDoc =
      "The step of ApplyMomentum on the rows `indices`, each of which has a row of `grad`.";
  DeclareStep(ops, "SparseApplyMomentum", kSparseMomentum, Holder::kRef, kSparseMomentumDoc);
  DeclareStep(ops, "ResourceSparseApplyMomentum", kSparseMomentum, Holder::kResource, kSparseMomentumDoc);
  DeclareStep(ops, "ResourceApplyAdam", kAdam, Holder::kResource, kAdamDoc);
  DeclareProductStep(ops, "_ApplyGradientDescentMatMul", "ApplyGradientDescent", Holder::kRef);
  DeclareProductStep(ops, "_ResourceApplyGradientDescentMatMul", "ResourceApplyGradientDescent", Holder::kResource);
}

}  // namespace weir::ops
