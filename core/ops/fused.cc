// Ops that stand for several, made by core/fuse. Files do not have them.
#include <string>
#include <utility>
#include <vector>

#include "core/op/shape_context.h"
#include "core/ops/convolution_shapes.h"
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

constexpr const char* kActivations[] = {"Relu", "Relu6", "Tanh", "Sigmoid", "Elu", "LeakyRelu"};

/// The attributes of the activation, of which `alpha` is the slope of LeakyRelu below 0.
OpBuilder& WithActivation(OpBuilder& fused) {
  return fused.Attr("activation: {'None', 'Relu', 'Relu6', 'Tanh', 'Sigmoid', 'Elu', 'LeakyRelu'} = 'None'")
      .Attr("alpha: float = 0.2");
}

/// Rows for an expression, with every activation and without one: "Relu(BiasAdd(MatMul(a, b), bias))".
void ComputesWithActivations(OpBuilder& fused, const std::string& inner, const op::AttrList& attrs = {}) {
  for (const char* activation : kActivations) {
    op::AttrList with = attrs;
    with.emplace_back("activation", std::string(activation));
    fused.Computes(std::string(activation) + "(" + inner + ")", std::move(with));
  }
  fused.Computes(inner, attrs);
}

void DeclareBiasedMatMul(OpRegistry& ops) {
  OpBuilder fused = ops.Declare("_BiasedMatMul").Is(Category::kMath);
  fused.In("a: T").In("b: T").In("bias: T").Out("product: T").Attr("T: {float, double}");
  fused.Attr("transpose_a: bool = false").Attr("transpose_b: bool = false");
  WithActivation(fused).Shape(BiasedProductShape);
  fused.Doc("activation(op(a) op(b) + bias), where the bias [columns] is added to each row.").MeasuredAs("MatMul", 2);
  // A sum adds along the last axis, and so does the BiasAdd of a matrix in either format.
  for (const char* add : {"BiasAdd(", "AddV2|Add("}) {
    ComputesWithActivations(fused, add + std::string("MatMul(a, b), bias)"));
  }
  fused.NoGradient(kMadeAfterGradients);
}

/// activation(x * filter + bias), and + addend if `with_addend`.
OpBuilder BiasedConvolution(OpRegistry& ops, const char* name, bool with_addend) {
  OpBuilder fused = ops.Declare(name).Is(Category::kNeural);
  fused.In("input: T").In("filter: T").In("bias: T");
  if (with_addend) fused.In("addend: T");
  fused.Out("output: T").Attr("T: {float, double}").NoGradient(kMadeAfterGradients);
  WithActivation(fused);
  return fused;
}

void AddPlanarAttrs(OpBuilder& fused) {
  fused.Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
      .Attr("explicit_paddings: list(int) = []")
      .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
      .Attr("dilations: list(int) = [1, 1, 1, 1]");
}

/// BiasAdd has one format with the convolution, or there is no match; a sum adds along the last axis, which must be
/// that of the channels.
std::vector<std::string> BiasedTerms(const std::string& convolution) {
  return {"BiasAdd(" + convolution + "(input, filter), bias)",
          "AddV2|Add(" + convolution + "[data_format=NHWC](input, filter), bias)"};
}

void DeclareBiasedConvolutions(OpRegistry& ops) {
  struct Kind {
    const char *name, *convolution;
    op::ShapeFn shape;
  };
  const Kind kinds[] = {{"_BiasedConv2D", "Conv2D", Conv2DShape},
                        {"_BiasedDepthwiseConv2D", "DepthwiseConv2dNative", DepthwiseShape}};
  for (const Kind& kind : kinds) {
    OpBuilder fused = BiasedConvolution(ops, kind.name, false);
    AddPlanarAttrs(fused);
    fused.Shape(kind.shape)
        .MeasuredAs(kind.convolution, 2)
        .Doc(std::string("activation(") + kind.convolution + "(input, filter) + bias), where the " +
             "bias is added along the channels.");
    for (const std::string& biased : BiasedTerms(kind.convolution)) ComputesWithActivations(fused, biased);
  }
  OpBuilder residual = BiasedConvolution(ops, "_ResidualConv2D", true);
  AddPlanarAttrs(residual);
  residual.MeasuredAs("Conv2D", 2);
  residual.Shape(Conv2DShape).Doc("activation(Conv2D(input, filter) + bias + addend), with an addend like the result.");
  for (const std::string& biased : BiasedTerms("Conv2D")) {
    ComputesWithActivations(residual, "AddV2|Add(" + biased + ", addend)");
  }
  OpBuilder volumes = BiasedConvolution(ops, "_BiasedConv3D", false);
  volumes.Attr("strides: list(int) >= 5").Attr("padding: {'SAME', 'VALID'}");
  volumes.Attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'").Attr("dilations: list(int) = [1, 1, 1, 1, 1]");
  volumes.MeasuredAs("Conv3D", 2);
  volumes.Shape(Conv3DShape).Doc("activation(Conv3D(input, filter) + bias).");
  const op::AttrList last = {{"data_format", "NDHWC"}}, first = {{"data_format", "NCDHW"}};
  const std::string by_last = "Conv3D[data_format=NDHWC](input, filter), bias)";
  ComputesWithActivations(volumes, "BiasAdd[data_format=NHWC](" + by_last, last);
  ComputesWithActivations(volumes, "AddV2|Add(" + by_last, last);
  ComputesWithActivations(volumes, "BiasAdd[data_format=NCHW](Conv3D[data_format=NCDHW](input, filter), bias)", first);
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
      .Attr("loop: list(int) = []")
      .Region()
      .Doc(
          "Ops in a row, each over the inputs and the results of those before it. Without a compiler they are "
          "elementwise ops of one type, and the last one's result is the output; else the results have `shapes`, and "
          "`executable` is the key of the code. `loop` makes it a loop over its first inputs: the numbers of the "
          "condition and of the next values.")
      .Shape(RegionShape)
      .NoGradient(kMadeAfterGradients);
}

}  // namespace

void DeclareFused(OpRegistry& ops) {
  DeclareLayerNorm(ops);
  DeclareBiasedMatMul(ops);
  DeclareBiasedConvolutions(ops);
  DeclareStepProducts(ops);
  DeclareRegion(ops);
}

}  // namespace weir::ops
