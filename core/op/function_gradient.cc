#include "core/op/function_gradient.h"

#include <utility>

namespace weir::op {
namespace {

/// The gradient of output `i`, zeros if there is none. For strings and handles, which have no gradient, a scalar
/// placeholder.
Value DyOrNothing(GradContext& g, int i) {
  const Value y = g.Y(i);
  const DType type = BaseType(g.TypeOf(y));
  if (g.HasDy(i)) return g.Dy(i);
  if (type == DType::kString) return g.Const(Tensor::Scalar<std::string>(""));
  if (type == DType::kResource) return g.Const(Tensor::Scalar<float>(0));
  return g.Apply("ZerosLike", {y});
}

}  // namespace

bool TakesGradient(const GradContext& g, Value v) {
  const DType type = BaseType(g.GradTypeOf(v));
  return type != DType::kInvalid && type != DType::kBool && type != DType::kString;
}

AttrList SymbolicGradient::Attrs(FuncRef f) const {
  return {{"Tin", input_types}, {"Tout", output_types}, {"f", std::move(f)}};
}

SymbolicGradient SymbolicGradientOf(GradContext& g, int first) {
  SymbolicGradient gradient;
  for (int i = first; i < g.num_inputs(); ++i) {
    const Value x = g.X(i);
    gradient.inputs.push_back(x);
    gradient.input_types.push_back(BaseType(g.TypeOf(x)));
    const DType type = g.GradTypeOf(x);
    gradient.output_types.push_back(type == DType::kInvalid ? DType::kFloat : BaseType(type));
  }
  for (int i = 0; i < g.num_outputs(); ++i) {
    const Value dy = DyOrNothing(g, i);
    gradient.inputs.push_back(dy);
    gradient.input_types.push_back(dy.exists() ? BaseType(g.TypeOf(dy)) : DType::kFloat);
  }
  return gradient;
}

std::vector<Grad> GradientOfCall(GradContext& g, FuncRef function) {
  const SymbolicGradient gradient = SymbolicGradientOf(g, 0);
  const std::vector<Value> dx = g.ApplyAll("SymbolicGradient", gradient.inputs, gradient.Attrs(std::move(function)));
  std::vector<Grad> grads(static_cast<size_t>(g.num_inputs()));
  for (size_t i = 0; i < dx.size() && i < grads.size(); ++i) {
    if (TakesGradient(g, g.X(static_cast<int>(i)))) grads[i] = dx[i];
  }
  return grads;
}

}  // namespace weir::op
