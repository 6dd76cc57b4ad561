#include "core/client/variables/regularizers.h"

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

/// `scale` times what `measure` makes of the weights, in a name scope of the regularizer's name, which is the node's.
Regularizer Scaled(double scale, const char* name, Output (*measure)(const Operand& weights)) {
  return [=](const Operand& weights) -> Output {
    if (scale == 0) return Output();
    Graph& graph = GraphOf(weights);
    if (!(scale > 0)) {
      (void)graph.Fail(InvalidArgument("Setting a scale less than 0 on a regularizer: {}", scale));
      return Output();
    }
    const NameScope scope(name, graph);
    const Output factor = Operand(Literal(scale)).In(graph, weights.dtype(), "scale");
    const Output size = measure(weights);
    const std::string path = scope.path();
    return BuildOp("Mul", {factor, size}, {}, path).output(0);
  };
}

Output SumOfMagnitudes(const Operand& weights) { return ReduceSum(Abs(weights)); }
Output HalfSumOfSquares(const Operand& weights) { return ReduceSum(Square(weights)) * 0.5; }

}  // namespace

Regularizer L1Regularizer(double scale) { return Scaled(scale, "l1_regularizer", SumOfMagnitudes); }
Regularizer L2Regularizer(double scale) { return Scaled(scale, "l2_regularizer", HalfSumOfSquares); }

Regularizer L1L2Regularizer(double scale_l1, double scale_l2) {
  return [=](const Operand& weights) {
    const NameScope scope("l1_l2_regularizer", GraphOf(weights));
    const Output first = L1Regularizer(scale_l1)(weights);
    const Output second = L2Regularizer(scale_l2)(weights);
    if (!first.exists()) return second;
    if (!second.exists()) return first;
    const std::string path = scope.path();
    return AddN({first, second}, path);
  };
}

Regularizer NoRegularizer() {
  return [](const Operand&) { return Output(); };
}

}  // namespace weir
