#include "core/client/training/clipping.h"

#include <string>

#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

Graph& GraphOf(const std::vector<Gradient>& gradients) {
  for (const Gradient& gradient : gradients) {
    if (gradient.exists()) return *gradient.values.graph();
  }
  return Graph::Default();
}

}  // namespace

Output GlobalNorm(const std::vector<Gradient>& gradients, std::string_view name, Where where) {
  Graph& graph = GraphOf(gradients);
  const NameScope scope(name.empty() ? "global_norm" : name, graph);
  std::vector<Operand> halves;
  for (const Gradient& gradient : gradients) {
    if (!gradient.exists()) continue;
    const ColocateWith beside(gradient.values, OuterColocation::kKeep, graph);
    halves.emplace_back(BuildOp("L2Loss", {gradient.values}, {}, {}, where).output(0));
  }
  if (halves.empty()) halves.emplace_back(Tensor::Scalar<float>(0));
  const Output sum = ReduceSum(Stack(halves, 0, "stack", where), {}, {}, where);
  const Output two = Operand(2.0f, where).In(graph, BaseType(sum.dtype()));
  return Sqrt(Multiply(sum, two, "mul", where), "global_norm", where);
}

ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, const Operand& clip_norm,
                                  const Output& use_norm, std::string_view name, Where where) {
  Graph& graph = GraphOf(gradients);
  const Output norm = use_norm.exists() ? use_norm : GlobalNorm(gradients, name, where);
  const NameScope scope(name.empty() ? "clip_by_global_norm" : name, graph);
  const Operand clip = clip_norm.ReadNow();
  const Output inverse = Divide(1.0, norm, "truediv", where);
  const Output one = Operand(1.0, where).In(graph, BaseType(norm.dtype()));
  const Output finite = Multiply(clip, Minimum(inverse, Divide(one, clip, "truediv", where), {}, where), "mul", where);
  const Output scale = Add(finite, Subtract(norm, norm, "sub", where), "add", where);  // NaN where norm is not finite
  ClippedGradients clipped{gradients, norm};
  const std::string path = scope.path();
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].exists()) continue;
    const ColocateWith beside(gradients[i].values, OuterColocation::kKeep, graph);
    const Output scaled = Multiply(gradients[i].values, scale, "mul", where);
    clipped.gradients[i].values = Identity(scaled, path + "_" + std::to_string(i), where);
  }
  return clipped;
}

}  // namespace weir
