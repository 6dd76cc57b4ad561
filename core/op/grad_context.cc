#include "core/op/grad_context.h"

#include "core/base/errors.h"
#include "core/op/function_gradient.h"
#include "core/tensor/number.h"

namespace weir::op {

Result<std::string> GradContext::Define(const FunctionSpec& function) {
  return Unimplemented("a gradient needs function '{}', but this graph does not support functions", function.name);
}

Value GradContext::ConstLike(Value like, double value) {
  if (!like.exists()) return {};
  Result<Tensor> scalar = ScalarFrom(BaseType(TypeOf(like)), value);
  // An invalid tensor makes Const record an error.
  return Const(scalar.ok() ? *scalar : Tensor());
}

Value GradContext::Conj(Value a) {
  if (!a.exists() || !IsComplex(BaseType(TypeOf(a)))) return a;
  return Apply("Conj", {a});
}

// These nodes are emitted even if both shapes are known and equal: TensorFlow 1.x does so, and users fetch them by
// name. Folding removes them before a step runs.
std::vector<Grad> GradContext::Unbroadcast(Value da, Value db) {
  const Value shape_a = ShapeOp(X(0));
  const Value shape_b = ShapeOp(X(1));
  const std::vector<Value> axes = ApplyAll("BroadcastGradientArgs", {shape_a, shape_b});
  if (axes.size() < 2) return {Grad(), Grad()};
  const auto reduce = [this](Value gradient, Value over, Value shape) {
    return gradient.exists() ? Grad(Reshape(Apply("Sum", {gradient, over}), shape)) : Grad();
  };
  Grad to_a = reduce(da, axes[0], shape_a);
  Grad to_b = reduce(db, axes[1], shape_b);
  return {to_a, to_b};
}

std::vector<Grad> One(Value v) { return {Grad(v)}; }

}  // namespace weir::op
