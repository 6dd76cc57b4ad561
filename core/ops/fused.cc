// Ops that stand for several, made by core/fuse. Files do not have them.
#include <string>

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

Status RegionShape(ShapeContext& c) {
  WEIR_ASSIGN(const std::vector<PartialShape> shapes, c.attrs().Shapes("shapes"));
  for (size_t i = 0; i < shapes.size() && i < static_cast<size_t>(c.num_outputs()); ++i) {
    c.set_output(static_cast<int>(i), shapes[i]);
  }
  return Status();
}

void DeclareRegion(OpRegistry& ops) {
  ops.Declare("_Region")
      .Is(Category::kMath)
      .In("args: Tin")
      .Out("results: Tout")
      .Attr("Tin: list(type) >= 1")
      .Attr("Tout: list(type) >= 1")
      .Attr("shapes: list(shape)")
      .Attr("ops: list(string)")
      .Attr("operands: list(int)")
      .Attr("compiler: string = ''")
      .Attr("executable: string = ''")
      .Region()
      .Doc(
          "Ops in a row, each over the inputs and the results of those before it. Without a compiler they are "
          "elementwise ops of one type, and the last one's result is the output; else the results have `shapes`, and "
          "`executable` is the key of the code.")
      .Shape(RegionShape)
      .NoGradient(kMadeAfterGradients);
}

}  // namespace

void DeclareFused(OpRegistry& ops) {
  DeclareLayerNorm(ops);
  DeclareBiasedMatMul(ops);
  DeclareRegion(ops);
}

}  // namespace weir::ops
