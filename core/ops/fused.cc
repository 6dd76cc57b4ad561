// Ops that stand for several, made by core/fuse. Files do not have them.
#include <string>
#include <vector>

#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kMadeAfterGradients = "it replaces ops whose gradients were taken before";

void DeclareLayerNorm(OpRegistry& ops) {
  OpBuilder norm = ops.Declare("_LayerNorm").Is(Category::kNeural);
  norm.In("x: T").In("gamma: T").In("beta: T").Out("y: T").Attr("T: {float, double}").Attr("epsilon: float");
  norm.Doc("(x - mean) / sqrt(variance + epsilon) * gamma + beta, over the last dimension.").Shape(op::SameAs(0));
  // d * rsqrt(variance + epsilon) * gamma + beta, with d = x - mean.
  const std::string d = "d=Sub(x, Mean(x, last))";
  for (const std::string& square : {"Square(" + d + ")", "Mul(" + d + ", d)"}) {
    const std::string spread = "AddV2|Add(Mean(" + square + ", last), epsilon)";
    norm.Computes("AddV2|Add(Mul(Mul(" + d + ", Rsqrt(" + spread + ")), gamma), beta)");
    norm.Computes("AddV2|Add(Mul(Mul(Rsqrt(" + spread + "), gamma), " + d + "), beta)");
    norm.Computes("AddV2|Add(Mul(RealDiv|Div(" + d + ", Sqrt(" + spread + ")), gamma), beta)");
  }
  // tf.nn.moments and tf.nn.batch_normalization: x * inv + (beta - mean * inv).
  for (const char* mean : {"StopGradient(m=Mean(x, last))", "m=Mean(x, last)"}) {
    const std::string variance = std::string("Mean(SquaredDifference(x, ") + mean + "), last)";
    const std::string inverse = "inv=Mul(Rsqrt(AddV2|Add(" + variance + ", epsilon)), gamma)";
    norm.Computes("AddV2|Add(Mul(x, " + inverse + "), Sub(beta, Mul(m, inv)))");
  }
  norm.NoGradient(kMadeAfterGradients);
}

Status BiasedProductShape(ShapeContext& c) {
  WEIR_ASSIGN(const bool transpose_a, c.attrs().Bool("transpose_a"));
  WEIR_ASSIGN(const bool transpose_b, c.attrs().Bool("transpose_b"));
  WEIR_ASSIGN(const PartialShape a, c.WithRank(0, 2));
  WEIR_ASSIGN(const PartialShape b, c.WithRank(1, 2));
  WEIR_TRY(c.WithRank(2, 1).status());
  WEIR_ASSIGN(PartialShape product, MatrixProduct(a, transpose_a, b, transpose_b));
  c.set_output(0, std::move(product));
  return Status();
}

/// Rows for a producer and its bias, each also with every activation: "Relu(BiasAdd(MatMul(a, b), bias))".
void ComputesWithActivations(OpBuilder& fused, const std::string& producer) {
  for (const char* add : {"BiasAdd(", "AddV2|Add("}) {
    const std::string biased = add + producer + ", bias)";
    for (const char* activation : {"Relu", "Relu6", "Tanh", "Sigmoid", "Elu"}) {
      fused.Computes(std::string(activation) + "(" + biased + ")", {{"activation", std::string(activation)}});
    }
    fused.Computes(biased);
  }
}

void DeclareBiasedMatMul(OpRegistry& ops) {
  OpBuilder fused = ops.Declare("_BiasedMatMul").Is(Category::kMath);
  fused.In("a: T").In("b: T").In("bias: T").Out("product: T").Attr("T: {float, double}");
  fused.Attr("transpose_a: bool = false").Attr("transpose_b: bool = false");
  fused.Attr("activation: {'None', 'Relu', 'Relu6', 'Tanh', 'Sigmoid', 'Elu'} = 'None'");
  fused.Doc("activation(op(a) op(b) + bias), where the bias [columns] is added to each row.").Shape(BiasedProductShape);
  ComputesWithActivations(fused, "MatMul(a, b)");
  fused.NoGradient(kMadeAfterGradients);
}

Status StepsProductShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape x, c.WithRank(0, 3));
  WEIR_ASSIGN(const PartialShape w, c.WithRank(1, 2));
  WEIR_ASSIGN(PartialShape product, PartialShape::Make(std::vector<int64_t>{x.dim(0), x.dim(1), w.dim(1)}));
  c.set_output(0, std::move(product));
  return Status();
}

Status StepProductShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape p, c.WithRank(0, 3));
  WEIR_TRY(c.WithRank(1, 0).status());
  WEIR_ASSIGN(PartialShape product, PartialShape::Make(std::vector<int64_t>{p.dim(1), p.dim(2)}));
  c.set_output(0, std::move(product));
  return Status();
}

/// In a loop, [x[t], h] w + bias is p[t] + h times the last rows of w, where p is made ahead of the loop.
void DeclareStepProducts(OpRegistry& ops) {
  OpBuilder plain = ops.Declare("_MatMulOfSteps").Is(Category::kMath);
  plain.In("x: T").In("w: T").Out("p: T").Attr("T: {float}").Shape(StepsProductShape);
  plain.Doc("p[t] = x[t] times the first rows of w, for x [steps, rows, k].").NoGradient(kMadeAfterGradients);
  OpBuilder biased = ops.Declare("_BiasedMatMulOfSteps").Is(Category::kMath);
  biased.In("x: T").In("w: T").In("bias: T").Out("p: T").Attr("T: {float}").Shape(StepsProductShape);
  biased.Doc("_MatMulOfSteps with the bias [columns] added to each row.").NoGradient(kMadeAfterGradients);
  OpBuilder step = ops.Declare("_MatMulOfStep").Is(Category::kMath);
  step.In("p: T").In("t: Tindices").In("h: T").In("w: T").Out("product: T").Attr("T: {float}");
  step.Attr("Tindices: {int32, int64} = int32").Attr("batch_dims: int = 0");
  step.Attr("transpose_a: bool = false").Attr("transpose_b: bool = false").Attr("of_array: bool = false");
  step.Doc("p[t] + h times the last rows of w, for p of _MatMulOfSteps.").Shape(StepProductShape);
  const std::string row = "GatherV2(x, t, first)", element = "TensorArrayReadV3(array, t, flow)";
  const std::string scattered = ", flow=TensorArrayScatterV3(array, all, x, start), next=AddV2|Add(t, step)";
  const auto product = [](const std::string& part) { return "MatMul(ConcatV2(" + part + ", h, last), w)"; };
  for (const std::string add : {"BiasAdd(", "AddV2|Add("}) {
    const std::string with = ", bias) with p=_BiasedMatMulOfSteps(x, w, bias)";
    step.Computes(add + product(row) + with);
    step.Computes(add + product(element) + with + scattered, {{"of_array", true}});
  }
  step.Computes(product(row) + " with p=_MatMulOfSteps(x, w)");
  step.NoGradient(kMadeAfterGradients);
}

Status RegionShape(ShapeContext& c) {
  PartialShape all = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN(all, op::BroadcastShapes(all, c.input(i)));
  }
  c.set_output(0, std::move(all));
  return Status();
}

void DeclareRegion(OpRegistry& ops) {
  ops.Declare("_Region")
      .Is(Category::kMath)
      .In("args: N*T")
      .Out("y: T")
      .Attr("N: int >= 1")
      .Attr("T: {float, double}")
      .Attr("ops: list(string)")
      .Attr("operands: list(int)")
      .Region()
      .Doc("Elementwise ops in a row, each over the inputs and the results of those before it; the last one's result.")
      .Shape(RegionShape)
      .NoGradient(kMadeAfterGradients);
}

}  // namespace

void DeclareFused(OpRegistry& ops) {
  DeclareLayerNorm(ops);
  DeclareBiasedMatMul(ops);
  DeclareStepProducts(ops);
  DeclareRegion(ops);
}

}  // namespace weir::ops
