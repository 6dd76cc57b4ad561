// Optimiser updates of reference and resource variables, with dense or sparse gradients.
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>

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

/// One row of the gradient for each of the variable's, or for each of the rows `indices`.
enum class StepRows { kAll, kIndexed };

/// An update: the variable and its slots, followed by the other inputs in the kernel's order.
struct Step {
  std::initializer_list<const char*> held;     // updated in place
  std::initializer_list<const char*> numbers;  // scalars except `gradient`
  const char* gradient = "grad";               // followed by "indices" if there are any
  const char* flag = nullptr;                  // an attribute of its own
};

constexpr const char* kNesterov = "use_nesterov: bool = false";
constexpr const char* kUpdateSlots = "update_slots: bool = true";
constexpr const char* kMultiplyLinear = "multiply_linear_by_lr: bool = false";

constexpr Step kGradientDescent = {{"var"}, {"alpha", "delta"}, "delta"};
constexpr Step kProximalDescent = {{"var"}, {"alpha", "l1", "l2", "delta"}, "delta"};
constexpr Step kSparseProximalDescent = {{"var"}, {"alpha", "l1", "l2", "grad"}};
constexpr Step kMomentum = {{"var", "accum"}, {"lr", "grad", "momentum"}, "grad", kNesterov};
constexpr Step kAdam = {
    {"var", "m", "v"}, {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"}, "grad", kNesterov};
constexpr Step kAdaMax = {{"var", "m", "v"}, {"beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"}};
constexpr Step kAdagrad = {{"var", "accum"}, {"lr", "grad"}, "grad", kUpdateSlots};
constexpr Step kAdagradV2 = {{"var", "accum"}, {"lr", "epsilon", "grad"}, "grad", kUpdateSlots};
constexpr Step kAdagradDa = {{"var", "gradient_accumulator", "gradient_squared_accumulator"},
                             {"grad", "lr", "l1", "l2", "global_step"}};
constexpr Step kProximalAdagrad = {{"var", "accum"}, {"lr", "l1", "l2", "grad"}};
constexpr Step kRmsProp = {{"var", "ms", "mom"}, {"lr", "rho", "momentum", "epsilon", "grad"}};
constexpr Step kCenteredRmsProp = {{"var", "mg", "ms", "mom"}, {"lr", "rho", "momentum", "epsilon", "grad"}};
constexpr Step kAdadelta = {{"var", "accum", "accum_update"}, {"lr", "rho", "epsilon", "grad"}};
constexpr Step kFtrl = {{"var", "accum", "linear"}, {"grad", "lr", "l1", "l2", "lr_power"}, "grad", kMultiplyLinear};
constexpr Step kFtrlV2 = {
    {"var", "accum", "linear"}, {"grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"}, "grad", kMultiplyLinear};
constexpr Step kAddSign = {{"var", "m"}, {"lr", "alpha", "sign_decay", "beta", "grad"}};
constexpr Step kPowerSign = {{"var", "m"}, {"lr", "logbase", "sign_decay", "beta", "grad"}};

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
ShapeFn StepShape(const Step& step, Holder holder, StepRows rows) {
  return [&step, holder, rows](ShapeContext& c) -> Status {
    PartialShape shape;
    int i = 0;
    for (; i < static_cast<int>(step.held.size()); ++i) {
      WEIR_ASSIGN(const PartialShape held, HeldShape(c, holder, i));
      WEIR_ASSIGN(shape, shape.Merge(held));
    }
    for (std::string_view number : step.numbers) {
      if (number != step.gradient) {
        WEIR_TRY(c.WithRank(i, 0).status());
      } else if (rows == StepRows::kAll) {
        WEIR_ASSIGN(shape, shape.Merge(c.input(i)));
      } else {
        WEIR_TRY(CheckGradientRows(shape, c.input(i), c.input(i + 1)));
        ++i;  // the indices
      }
      ++i;
    }
    if (holder == Holder::kRef) c.set_output(0, std::move(shape));
    return Status();
  };
}

void DeclareStep(OpRegistry& ops, std::string_view name, const Step& step, Holder holder, StepRows rows,
                 std::string_view doc) {
  const std::string op = fmt::format("{}{}Apply{}", holder == Holder::kRef ? "" : "Resource",
                                     rows == StepRows::kAll ? "" : "Sparse", name);
  OpBuilder declared = ops.Declare(op).Is(Category::kTraining);
  for (std::string_view held : step.held) {
    declared.In(fmt::format("{}: {}", held, holder == Holder::kRef ? "Ref(T)" : "resource"));
  }
  for (std::string_view number : step.numbers) {
    declared.In(fmt::format("{}: {}", number, number == "global_step" ? "int64" : "T"));
    if (number == step.gradient && rows == StepRows::kIndexed) declared.In("indices: Tindices");
  }
  if (holder == Holder::kRef) declared.Out("out: Ref(T)");
  declared.Attr(kNumberT).Attr("use_locking: bool = false");
  if (rows == StepRows::kIndexed) declared.Attr("Tindices: {int32, int64}");
  if (step.flag != nullptr) declared.Attr(step.flag);
  if (holder == Holder::kResource) declared.Stateful();
  declared.Doc(rows == StepRows::kAll ? std::string(doc) : fmt::format("{} Of the rows `indices`, in order.", doc))
      .Shape(StepShape(step, holder, rows))
      .NoGradient("a step changes variables; it is not a function of them");
}

void DeclareDense(OpRegistry& ops, std::string_view name, const Step& step, std::string_view doc) {
  DeclareStep(ops, name, step, Holder::kRef, StepRows::kAll, doc);
  DeclareStep(ops, name, step, Holder::kResource, StepRows::kAll, doc);
}
void DeclareSparse(OpRegistry& ops, std::string_view name, const Step& step, std::string_view doc) {
  DeclareStep(ops, name, step, Holder::kRef, StepRows::kIndexed, doc);
  DeclareStep(ops, name, step, Holder::kResource, StepRows::kIndexed, doc);
}
void DeclareBoth(OpRegistry& ops, std::string_view name, const Step& step, std::string_view doc) {
  DeclareDense(ops, name, step, doc);
  DeclareSparse(ops, name, step, doc);
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

void DeclareMomenta(OpRegistry& ops) {
  DeclareDense(ops, "GradientDescent", kGradientDescent, "var -= alpha * delta.");
  DeclareBoth(ops, "Momentum", kMomentum,
              "accum = accum * momentum + grad; var -= lr * accum, or var -= lr * (grad + momentum * accum) if "
              "use_nesterov.");
  const char* kKerasDoc =
      "accum = accum * momentum - lr * grad; var += accum, or var += accum * momentum - lr * grad if use_nesterov.";
  DeclareStep(ops, "KerasMomentum", kMomentum, Holder::kResource, StepRows::kAll, kKerasDoc);
  DeclareStep(ops, "KerasMomentum", kMomentum, Holder::kResource, StepRows::kIndexed, kKerasDoc);
  DeclareDense(ops, "Adam", kAdam,
               "With rate = lr * sqrt(1 - beta2_power) / (1 - beta1_power): m += (1 - beta1) * (grad - m); "
               "v += (1 - beta2) * (grad^2 - v); var -= rate * m / (sqrt(v) + epsilon), where use_nesterov takes "
               "beta1 * m + (1 - beta1) * grad for m in the last.");
  DeclareDense(ops, "AdaMax", kAdaMax,
               "m += (1 - beta1) * (grad - m); v = max(beta2 * v, |grad|); var -= lr / (1 - beta1_power) * m / (v + "
               "epsilon).");
  DeclareDense(ops, "AddSign", kAddSign,
               "m = beta * m + (1 - beta) * grad; var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad.");
  DeclareDense(ops, "PowerSign", kPowerSign,
               "m = beta * m + (1 - beta) * grad; var -= lr * e^(logbase * sign_decay * sign(grad) * sign(m)) * grad.");
}

void DeclareAdaptive(OpRegistry& ops) {
  DeclareBoth(ops, "Adagrad", kAdagrad,
              "accum += grad^2 unless update_slots is false; var -= lr * grad / sqrt(accum).");
  DeclareBoth(ops, "AdagradV2", kAdagradV2,
              "accum += grad^2 unless update_slots is false; var -= lr * grad / (sqrt(accum) + epsilon).");
  DeclareBoth(ops, "RMSProp", kRmsProp,
              "ms += (1 - rho) * (grad^2 - ms); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom.");
  DeclareBoth(ops, "CenteredRMSProp", kCenteredRmsProp,
              "ms += (1 - rho) * (grad^2 - ms); mg += (1 - rho) * (grad - mg); mom = momentum * mom + lr * grad / "
              "sqrt(ms - mg^2 + epsilon); var -= mom.");
  DeclareBoth(ops, "Adadelta", kAdadelta,
              "accum = rho * accum + (1 - rho) * grad^2; update = grad * sqrt(accum_update + epsilon) / sqrt(accum + "
              "epsilon); accum_update = rho * accum_update + (1 - rho) * update^2; var -= lr * update.");
}

void DeclareRegularised(OpRegistry& ops) {
  const char* kProximalDoc =
      "With x = var - alpha * gradient: var = sign(x) * max(|x| - alpha * l1, 0) / (1 + alpha * l2).";
  DeclareDense(ops, "ProximalGradientDescent", kProximalDescent, kProximalDoc);
  DeclareSparse(ops, "ProximalGradientDescent", kSparseProximalDescent, kProximalDoc);
  DeclareBoth(ops, "ProximalAdagrad", kProximalAdagrad,
              "accum += grad^2, then a step of ProximalGradientDescent with alpha = lr / sqrt(accum).");
  DeclareBoth(ops, "AdagradDA", kAdagradDa,
              "Adagrad by dual averages: a sum of gradients g and one of their squares s; var = -lr * sign(g) * "
              "max(|g| - l1 * global_step, 0) / (l2 * global_step * lr + sqrt(s)).");
  const char* kFtrlDoc =
      "With p = -lr_power and sum = accum + grad^2: linear += grad - (sum^p - accum^p) / lr * var; accum = sum; var = "
      "(sign(linear) * l1 - linear) / (sum^p / lr + 2 * l2) where |linear| > l1, else 0. With multiply_linear_by_lr, "
      "linear is held times lr.";
  DeclareBoth(ops, "Ftrl", kFtrl, kFtrlDoc);
  DeclareBoth(ops, "FtrlV2", kFtrlV2,
              fmt::format("{} linear gets 2 * l2_shrinkage * var beside the gradient.", kFtrlDoc));
}

}  // namespace

void DeclareTrain(OpRegistry& ops) {
  DeclareMomenta(ops);
  DeclareAdaptive(ops);
  DeclareRegularised(ops);
  DeclareProductStep(ops, "_ApplyGradientDescentMatMul", "ApplyGradientDescent", Holder::kRef);
  DeclareProductStep(ops, "_ResourceApplyGradientDescentMatMul", "ResourceApplyGradientDescent", Holder::kResource);
}

}  // namespace weir::ops
