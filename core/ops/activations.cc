// Activation functions of neural nets, and the ops of their gradients.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::Category;
using op::Grad;
using op::GradContext;
using op::One;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

OpBuilder Activation(OpRegistry& ops, std::string_view name, std::string_view type_attr) {
  return ops.Declare(name)
      .Is(Category::kNeural)
      .In("features: T")
      .Out("activations: T")
      .Attr(type_attr)
      .Shape(op::SameAs(0))
      .Elementwise();
}

Status BothShape(ShapeContext& c) {
  WEIR_ASSIGN(PartialShape shape, c.input(0).Merge(c.input(1)));
  c.set_output(0, std::move(shape));
  return Status();
}

/// The op of an activation's gradient; `of` names the activation's input or its output.
OpBuilder ActivationGrad(OpRegistry& ops, std::string_view name, std::string_view of, std::string_view type_attr) {
  return ops.Declare(name)
      .Is(Category::kNeural)
      .In("gradients: T")
      .In(of)
      .Out("backprops: T")
      .Attr(type_attr)
      .Shape(BothShape)
      .Elementwise();
}

/// Gradients of f(gradients, x) that is linear in the gradients, with slopes that do not change with x.
std::vector<Grad> StepGradient(GradContext& g, std::string_view op, AttrList attrs = {}) {
  const Value x = g.X(1);
  const Value dgradients = g.Apply(op, {g.Dy(0), x}, std::move(attrs));
  return {dgradients, g.Apply("ZerosLike", {x})};
}

/// Gradients of f(gradients, y) whose slope is y plus a constant below 0.
std::vector<Grad> ExponentialGradient(GradContext& g, std::string_view op) {
  const Value y = g.X(1);
  const Value dgradients = g.Apply(op, {g.Dy(0), y});
  const Value below = g.Apply("Less", {y, g.ConstLike(y, 0)});
  const Value product = g.Mul(g.Dy(0), g.X(0));
  return {dgradients, g.Apply("SelectV2", {below, product, g.Apply("ZerosLike", {y})})};
}

AttrList Alpha(const GradContext& g) {
  const Result<float> alpha = g.attrs().Float("alpha");
  return alpha.ok() ? AttrList{{"alpha", *alpha}} : AttrList{};
}

void DeclareRectifiers(OpRegistry& ops) {
  Activation(ops, "Relu", "T: {realnumbertype, qint8}")
      .Doc("max(features, 0), element by element; NaN stays NaN.")
      .Grad([](GradContext& g) {
        return One(g.Apply("ReluGrad", {g.Dy(0), g.Y(0)}));
      });
  ActivationGrad(ops, "ReluGrad", "features: T", kRealNumberT)
      .Doc("gradients where features > 0, else 0; features may be Relu's input or its output.")
      .Grad([](GradContext& g) { return StepGradient(g, "ReluGrad"); });
  Activation(ops, "Relu6", kRealNumberT)
      .Doc("min(max(features, 0), 6), element by element; NaN stays NaN.")
      .Grad([](GradContext& g) {
        return One(g.Apply("Relu6Grad", {g.Dy(0), g.Y(0)}));
      });
  ActivationGrad(ops, "Relu6Grad", "features: T", kRealNumberT)
      .Doc("gradients where 0 < features < 6, else 0; features may be Relu6's input or its output.")
      .Grad([](GradContext& g) { return StepGradient(g, "Relu6Grad"); });
  const char* kLeakyT = "T: {half, bfloat16, float, double} = DT_FLOAT";
  const char* kAlpha = "alpha: float = 0.2";
  Activation(ops, "LeakyRelu", kLeakyT)
      .Attr(kAlpha)
      .Doc("features where they are positive, else alpha * features.")
      .Grad([](GradContext& g) {
        return One(g.Apply("LeakyReluGrad", {g.Dy(0), g.X(0)}, Alpha(g)));
      });
  ActivationGrad(ops, "LeakyReluGrad", "features: T", kLeakyT)
      .Attr(kAlpha)
      .Doc("gradients where features > 0, else alpha * gradients.")
      .Grad([](GradContext& g) { return StepGradient(g, "LeakyReluGrad", Alpha(g)); });
}

void DeclareExponentialUnits(OpRegistry& ops) {
  Activation(ops, "Elu", kFloatT)
      .Doc("features where they are not negative, else e^features - 1.")
      .Grad([](GradContext& g) {
        return One(g.Apply("EluGrad", {g.Dy(0), g.Y(0)}));
      });
  ActivationGrad(ops, "EluGrad", "outputs: T", kFloatT)
      .Doc("The gradient of outputs = Elu(x): gradients * (outputs + 1) where outputs < 0, else gradients.")
      .Grad([](GradContext& g) { return ExponentialGradient(g, "EluGrad"); });
  Activation(ops, "Selu", kFloatT)
      .Doc("1.0507 * features where they are not negative, else 1.7581 * (e^features - 1), with TensorFlow's digits.")
      .Grad([](GradContext& g) {
        return One(g.Apply("SeluGrad", {g.Dy(0), g.Y(0)}));
      });
  ActivationGrad(ops, "SeluGrad", "outputs: T", kFloatT)
      .Doc(
          "The gradient of outputs = Selu(x): gradients * (outputs + 1.7581) where outputs < 0, else gradients * "
          "1.0507.")
      .Grad([](GradContext& g) { return ExponentialGradient(g, "SeluGrad"); });
}

void DeclareSmoothOnes(OpRegistry& ops) {
  Activation(ops, "Softplus", kFloatT).Doc("log(1 + e^features), safe from overflow.").Grad([](GradContext& g) {
    return One(g.Mul(g.Dy(0), g.Apply("Sigmoid", {g.X(0)})));
  });
  ActivationGrad(ops, "SoftplusGrad", "features: T", kFloatT)
      .Doc("gradients / (1 + e^-features): the gradient of Softplus.")
      .Grad([](GradContext& g) {
        const Value x = g.X(1);
        const Value scaled = g.Mul(g.Dy(0), g.X(0));
        const Value falling = g.Add(g.Apply("Exp", {g.Neg(x)}), g.ConstLike(x, 2));
        const Value curvature = g.Div(scaled, g.Add(falling, g.Apply("Exp", {x})));
        return std::vector<Grad>{g.Apply("SoftplusGrad", {g.Dy(0), x}), curvature};
      });
  Activation(ops, "Softsign", kFloatT).Doc("features / (1 + |features|).").Grad([](GradContext& g) {
    return One(g.Apply("SoftsignGrad", {g.Dy(0), g.X(0)}));
  });
  ActivationGrad(ops, "SoftsignGrad", "features: T", kFloatT)
      .Doc("gradients / (1 + |features|)^2: the gradient of Softsign.")
      .NoGradient(op::kUndefinedGradient);
}

}  // namespace

void DeclareActivations(OpRegistry& ops) {
  DeclareRectifiers(ops);
  DeclareExponentialUnits(ops);
  DeclareSmoothOnes(ops);
}

}  // namespace weir::ops
