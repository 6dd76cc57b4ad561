#include <algorithm>
#include <string>

#include "core/client/graph/scopes.h"
#include "core/client/ops/array_extra_ops.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {
namespace {

/// The type in which integers are divided, or kInvalid for types that divide as they are.
DType QuotientType(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUint8:
    case DType::kInt16:
    case DType::kUint16:
      return DType::kFloat;
    case DType::kInt32:
    case DType::kUint32:
    case DType::kInt64:
    case DType::kUint64:
      return DType::kDouble;
    default:
      return DType::kInvalid;
  }
}

Output Scan(std::string_view op, const Operand& x, int axis, const ScanOptions& options, Where where) {
  return BuildOp(op, {x, Operand(axis, where)}, {{"exclusive", options.exclusive}, {"reverse", options.reverse}},
                 options.name.empty() ? op : options.name, where)
      .output(0);
}

Output ArgExtremum(std::string_view op, const Operand& input, int axis, DType output_type, std::string_view name,
                   Where where) {
  return BuildOp(op, {input, Operand(Tensor::Scalar<int32_t>(axis), where)}, {{"output_type", output_type}}, name,
                 where)
      .output(0);
}

}  // namespace

Output Add(const Operand& x, const Operand& y, std::string_view name, Where where) {
  const bool text = BaseType((x.is_literal() ? y : x).dtype()) == DType::kString;
  return BuildOp(text ? "Add" : "AddV2", {x, y}, {}, name.empty() ? "Add" : name, where).output(0);
}

Output Divide(const Operand& x, const Operand& y, std::string_view name, Where where) {
  if (name.empty()) name = "truediv";
  const DType wide = QuotientType(BaseType((x.is_literal() ? y : x).dtype()));
  if (wide == DType::kInvalid) return BuildOp("RealDiv", {x, y}, {}, name, where).output(0);
  Graph& graph = GraphOf({x, y});
  const NameScope scope(name, graph);
  const DType dtype = BaseType((x.is_literal() ? y : x).dtype());
  const Output a = x.In(graph, x.is_literal() ? dtype : DType::kInvalid, "x");
  const Output b = y.In(graph, y.is_literal() ? dtype : DType::kInvalid, "y");
  const Output numerator = Cast(a, wide, "Cast", where);
  const Output denominator = Cast(b, wide, "Cast", where);
  return BuildOp("RealDiv", {numerator, denominator}, {}, scope.path(), where).output(0);
}

Output AddN(const std::vector<Operand>& inputs, std::string_view name, Where where) {
  if (name.empty()) name = "AddN";
  if (inputs.size() == 1) return BuildOp("Identity", inputs, {}, name, where).output(0);
  std::vector<Operand> values;
  for (const Operand& input : inputs) values.push_back(input.ReadNow());
  return BuildOp("AddN", values, {}, name, where).output(0);
}

Output Cast(const Operand& x, DType dtype, std::string_view name, Where where) {
  if (x.is_literal()) return x.In(Graph::Default(), dtype, name.empty() ? "Cast" : name);
  if (BaseType(x.dtype()) == dtype) return x.In(GraphOf(x));
  return BuildOp("Cast", {x}, {{"DstT", dtype}}, name.empty() ? "Cast" : name, where).output(0);
}

Output MatMul(const Operand& a, const Operand& b, const MatMulOptions& options, Where where) {
  const auto may_be_several = [](const PartialShape& shape) { return !shape.has_rank() || shape.rank() > 2; };
  if (may_be_several(a.shape()) || may_be_several(b.shape())) {
    return BuildOp("BatchMatMulV2", {a, b}, {{"adj_x", options.transpose_a}, {"adj_y", options.transpose_b}},
                   options.name, where)
        .output(0);
  }
  return BuildOp("MatMul", {a, b}, {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}},
                 options.name, where)
      .output(0);
}

Operand Axes::Of(const Operand& input, Where where) const {
  if (axes_) return axes_->is_literal() ? Operand(axes_->literal(), where) : *axes_;
  if (!input.exists()) return Operand(Output(), where);
  Graph& graph = GraphOf(input);
  const PartialShape shape = input.shape();
  if (shape.has_rank()) {
    std::vector<int> all(static_cast<size_t>(shape.rank()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    return Operand(Operand(Literal(Tensor::Vector<int32_t>({all.begin(), all.end()})), where).In(graph), where);
  }
  const Output rank = BuildOp("Rank", {input}, {}, "Rank", where).output(0);
  return Operand(BuildOp("Range", {Operand(0, where), rank, Operand(1, where)}, {}, "range", where).output(0), where);
}

Output ReduceOp::operator()(const Operand& input, const Axes& axes, const ReduceOptions& options, Where where) const {
  const Operand value = input.is_literal() ? input.In(Graph::Default()) : input;
  return BuildOp(op, {value, axes.Of(value, where)}, {{"keep_dims", options.keepdims}},
                 options.name.empty() ? op : options.name, where)
      .output(0);
}

Output ArgMax(const Operand& input, int axis, DType output_type, std::string_view name, Where where) {
  return ArgExtremum("ArgMax", input, axis, output_type, name, where);
}

Output ArgMin(const Operand& input, int axis, DType output_type, std::string_view name, Where where) {
  return ArgExtremum("ArgMin", input, axis, output_type, name, where);
}

Output Cumsum(const Operand& x, int axis, const ScanOptions& options, Where where) {
  return Scan("Cumsum", x, axis, options, where);
}

Output Cumprod(const Operand& x, int axis, const ScanOptions& options, Where where) {
  return Scan("Cumprod", x, axis, options, where);
}

namespace {

/// Whom Python asks for an operator, the left operand or else the right one, reads itself before the op's scope opens.
Output Operator(const auto& op, std::string_view name, const Operand& x, const Operand& y) {
  return op(x.ReadNow(), x.is_literal() ? y.ReadNow() : y, name, x.where());
}

/// Python asks the left operand, or where that is a number the right one for the mirrored comparison.
Output Comparison(const BinaryOp& op, const BinaryOp& mirrored, const Operand& x, const Operand& y) {
  if (x.is_literal() && !y.is_literal()) return mirrored(y.ReadNow(), x, {}, x.where());
  return op(x.ReadNow(), y, {}, x.where());
}

/// `x`, at the place in the source of the other operand.
Operand Beside(const Output& x, const Operand& y) { return Operand(x, y.where()); }

}  // namespace

Output operator+(const Operand& x, const Operand& y) { return Operator(Add, "add", x, y); }
Output operator-(const Operand& x, const Operand& y) { return Operator(Subtract, "sub", x, y); }
Output operator*(const Operand& x, const Operand& y) { return Operator(Multiply, "mul", x, y); }
Output operator/(const Operand& x, const Operand& y) { return Operator(Divide, "truediv", x, y); }
Output operator%(const Operand& x, const Operand& y) { return Operator(FloorMod, "mod", x, y); }
Output operator-(const Operand& x) { return Negative(x.ReadNow(), "Neg", x.where()); }
Output operator&(const Operand& x, const Operand& y) { return Operator(LogicalAnd, "and", x, y); }
Output operator|(const Operand& x, const Operand& y) { return Operator(LogicalOr, "or", x, y); }
Output operator~(const Operand& x) { return LogicalNot(x.ReadNow(), {}, x.where()); }
Output operator!(const Operand& x) { return LogicalNot(x.ReadNow(), {}, x.where()); }

Output operator<(const Operand& x, const Operand& y) { return Comparison(Less, Greater, x, y); }
Output operator<=(const Operand& x, const Operand& y) { return Comparison(LessEqual, GreaterEqual, x, y); }
Output operator>(const Operand& x, const Operand& y) { return Comparison(Greater, Less, x, y); }
Output operator>=(const Operand& x, const Operand& y) { return Comparison(GreaterEqual, LessEqual, x, y); }

Output& operator+=(Output& x, const Operand& y) { return x = Beside(x, y) + y; }
Output& operator-=(Output& x, const Operand& y) { return x = Beside(x, y) - y; }
Output& operator*=(Output& x, const Operand& y) { return x = Beside(x, y) * y; }
Output& operator/=(Output& x, const Operand& y) { return x = Beside(x, y) / y; }
Output& operator%=(Output& x, const Operand& y) { return x = Beside(x, y) % y; }

}  // namespace weir
