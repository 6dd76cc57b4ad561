// Products of matrices and of batches of matrices.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::AttrList;
using op::BroadcastShapes;
using op::Grad;
using op::GradContext;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;
using op::Value;

Status MatMulShape(ShapeContext& c) {
  WEIR_ASSIGN(bool transpose_a, c.attrs().Bool("transpose_a"));
  WEIR_ASSIGN(bool transpose_b, c.attrs().Bool("transpose_b"));
  WEIR_ASSIGN(PartialShape a, c.WithRank(0, 2));
  WEIR_ASSIGN(PartialShape b, c.WithRank(1, 2));
  WEIR_ASSIGN(PartialShape product, MatrixProduct(a, transpose_a, b, transpose_b));
  c.set_output(0, std::move(product));
  return Status();
}

/// All but the last two extents.
PartialShape BatchOf(const PartialShape& s) { return Span(s, 0, s.rank() - 2); }

enum class BatchRule { kEqual, kBroadcast };

Status BatchMatMulShape(ShapeContext& c, BatchRule rule) {
  WEIR_ASSIGN(bool adj_x, c.attrs().Bool("adj_x"));
  WEIR_ASSIGN(bool adj_y, c.attrs().Bool("adj_y"));
  WEIR_ASSIGN(PartialShape x, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN(PartialShape y, c.WithRankAtLeast(1, 2));
  const PartialShape x_batch = BatchOf(x), y_batch = BatchOf(y);
  WEIR_ASSIGN(PartialShape batch,
              rule == BatchRule::kEqual ? x_batch.Merge(y_batch) : BroadcastShapes(x_batch, y_batch));
  WEIR_ASSIGN(const PartialShape product, MatrixProduct(x, adj_x, y, adj_y));
  WEIR_ASSIGN(PartialShape output, Join(batch, product));
  c.set_output(0, std::move(output));
  return Status();
}

/// An op for matrix products with the names of its two flags; expresses gradients of op(a) * op(b) as products.
struct ProductOp {
  std::string_view name;
  const char* flag_a;
  const char* flag_b;
};
std::pair<Value, Value> ProductGradient(GradContext& g, const ProductOp& op, Value a, bool transpose_a, Value b,
                                        bool transpose_b) {
  auto product = [&](Value left, bool flip_left, Value right, bool flip_right) {
    return g.Apply(op.name, {left, right}, {{op.flag_a, flip_left}, {op.flag_b, flip_right}});
  };
  const Value dy = g.Dy(0);
  const Value da = transpose_a ? product(b, transpose_b, dy, true) : product(dy, false, b, !transpose_b);
  const Value db = transpose_b ? product(dy, true, a, transpose_a) : product(a, !transpose_a, dy, false);
  return {da, db};
}

Result<std::vector<Grad>> MatMulGradient(GradContext& g) {
  WEIR_ASSIGN(bool transpose_a, g.attrs().Bool("transpose_a"));
  WEIR_ASSIGN(bool transpose_b, g.attrs().Bool("transpose_b"));
  const Value a = g.Conj(g.X(0)), b = g.Conj(g.X(1));
  const auto [da, db] = ProductGradient(g, {"MatMul", "transpose_a", "transpose_b"}, a, transpose_a, b, transpose_b);
  return std::vector<Grad>{da, db};
}

/// The flags select adjoints, so unlike in MatMul no operand needs an explicit conjugate.
Result<std::pair<Value, Value>> BatchProductGradient(GradContext& g, Value x, Value y) {
  WEIR_ASSIGN(bool adj_x, g.attrs().Bool("adj_x"));
  WEIR_ASSIGN(bool adj_y, g.attrs().Bool("adj_y"));
  return ProductGradient(g, {"BatchMatMulV2", "adj_x", "adj_y"}, x, adj_x, y, adj_y);
}

Result<std::vector<Grad>> BatchMatMulGradient(GradContext& g) {
  WEIR_ASSIGN(auto product, BatchProductGradient(g, g.X(0), g.X(1)));
  return std::vector<Grad>{product.first, product.second};
}

/// True if the batch extents of both sides are equal, so that no broadcasting is needed.
bool SameBatch(const PartialShape& x, const PartialShape& y) {
  if (!x.has_rank() || !y.has_rank()) return false;
  const PartialShape x_batch = BatchOf(x), y_batch = BatchOf(y);
  return x_batch.fully_defined() && x_batch == y_batch;
}

/// A shape vector without the last two extents.
Value BatchExtents(GradContext& g, Value shape) {
  return g.Apply("StridedSlice", {shape, g.ConstInts({0}), g.ConstInts({-2}), g.ConstInts({1})},
                 {{"begin_mask", int64_t{1}}});
}

/// The gradient of a product of x and y, which are the operands or casts of them, with broadcast batches.
Result<std::vector<Grad>> BroadcastProductGradient(GradContext& g, Value x, Value y) {
  WEIR_ASSIGN(auto product, BatchProductGradient(g, x, y));
  if (SameBatch(g.ShapeOf(g.X(0)), g.ShapeOf(g.X(1)))) return std::vector<Grad>{product.first, product.second};
  const Value x_shape = g.ShapeOp(g.X(0));
  const Value y_shape = g.ShapeOp(g.X(1));
  const Value x_batch = BatchExtents(g, x_shape);
  const Value y_batch = BatchExtents(g, y_shape);
  const std::vector<Value> axes = g.ApplyAll("BroadcastGradientArgs", {x_batch, y_batch});
  if (axes.size() != 2) return g.status();
  const Value dx = g.Reshape(g.Apply("Sum", {product.first, axes[0]}), x_shape);
  return std::vector<Grad>{dx, g.Reshape(g.Apply("Sum", {product.second, axes[1]}), y_shape)};
}

constexpr std::string_view kFactorTypes =
    "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}";

Result<std::vector<Grad>> BatchMatMulV2Gradient(GradContext& g) { return BroadcastProductGradient(g, g.X(0), g.X(1)); }

Value CastTo(GradContext& g, Value v, DType type) {
  return g.TypeOf(v) == type ? v : g.Apply("Cast", {v}, {{"DstT", type}});
}

/// Of a product whose operands and result have types of their own: in the type of the result.
Result<std::vector<Grad>> MixedMatMulGradient(GradContext& g) {
  const DType type = g.TypeOf(g.Dy(0));
  WEIR_ASSIGN(std::vector<Grad> grads, BroadcastProductGradient(g, CastTo(g, g.X(0), type), CastTo(g, g.X(1), type)));
  for (int i = 0; i < static_cast<int>(grads.size()); ++i) {
    Grad& grad = grads[static_cast<size_t>(i)];
    grad = CastTo(g, grad.values, g.TypeOf(g.X(i)));
  }
  return grads;
}

/// The gradient of a product of float or bfloat16 operands with a float result.
Result<std::vector<Grad>> SparseMatMulGradient(GradContext& g) {
  WEIR_ASSIGN(bool transpose_a, g.attrs().Bool("transpose_a"));
  WEIR_ASSIGN(bool transpose_b, g.attrs().Bool("transpose_b"));
  const Value a = CastTo(g, g.X(0), DType::kFloat), b = CastTo(g, g.X(1), DType::kFloat);
  const auto [da, db] = ProductGradient(g, {"MatMul", "transpose_a", "transpose_b"}, a, transpose_a, b, transpose_b);
  return std::vector<Grad>{CastTo(g, da, g.TypeOf(g.X(0))), CastTo(g, db, g.TypeOf(g.X(1)))};
}

void DeclareMixedProducts(OpRegistry& ops) {
  ops.Declare("BatchMatMulV3")
      .In("x: Ta")
      .In("y: Tb")
      .Out("output: Tout")
      .Attr(fmt::format("Ta: {}", kFactorTypes))
      .Attr(fmt::format("Tb: {}", kFactorTypes))
      .Attr("Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}")
      .Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false")
      .Attr("grad_x: bool = false")
      .Attr("grad_y: bool = false")
      .Doc("As BatchMatMulV2, with operands of two types and a result of a third.")
      .Shape([](ShapeContext& c) { return BatchMatMulShape(c, BatchRule::kBroadcast); })
      .Grad(MixedMatMulGradient);
  ops.Declare("SparseMatMul")
      .In("a: Ta")
      .In("b: Tb")
      .Out("product: float")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("a_is_sparse: bool = false")
      .Attr("b_is_sparse: bool = false")
      .Attr("Ta: {float, bfloat16} = DT_FLOAT")
      .Attr("Tb: {float, bfloat16} = DT_FLOAT")
      .Doc("As MatMul, with a float result; a_is_sparse and b_is_sparse say which operands have many zeros.")
      .Shape(MatMulShape)
      .Grad(SparseMatMulGradient);
}

OpBuilder BatchProduct(OpRegistry& ops, std::string_view name, std::string_view type_attr) {
  return ops.Declare(name)
      .In("x: T")
      .In("y: T")
      .Out("output: T")
      .Attr(type_attr)
      .Attr("adj_x: bool = false")
      .Attr("adj_y: bool = false")
      .Attr("grad_x: bool = false")
      .Attr("grad_y: bool = false");
}

}  // namespace

void DeclareLinalg(OpRegistry& ops) {
  ops.Declare("MatMul")
      .In("a: T")
      .In("b: T")
      .Out("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}")
      .Attr("grad_a: bool = false")
      .Attr("grad_b: bool = false")
      .Doc("The matrix product of a [m, k] and b [k, n], either transposed first on demand: [m, n]; zeros if k is 0.")
      .Shape(MatMulShape)
      .Grad(MatMulGradient);
  BatchProduct(ops, "BatchMatMul", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
      .Doc(
          "Matrix products of the last two axes, x [..., m, k] times y [..., k, n]; the other axes must be equal. "
          "adj_x and adj_y take the conjugate transpose first.")
      .Shape([](ShapeContext& c) { return BatchMatMulShape(c, BatchRule::kEqual); })
      .Grad(BatchMatMulGradient);
  BatchProduct(ops, "BatchMatMulV2",
               "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
               "complex128}")
      .Doc(
          "Matrix products of the last two axes, x [..., m, k] times y [..., k, n]; the other axes broadcast. "
          "adj_x and adj_y take the conjugate transpose first.")
      .Shape([](ShapeContext& c) { return BatchMatMulShape(c, BatchRule::kBroadcast); })
      .Grad(BatchMatMulV2Gradient);
  DeclareMixedProducts(ops);
}

}  // namespace weir::ops
