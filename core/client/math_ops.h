// Builders of arithmetic: elementwise ops, comparisons, products, reductions, and the operators + - * /.
#ifndef WEIR_CORE_CLIENT_MATH_OPS_H_
#define WEIR_CORE_CLIENT_MATH_OPS_H_

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "core/client/unary_op.h"

namespace weir {

inline constexpr UnaryOp Abs{"Abs"};
inline constexpr UnaryOp Negative{"Neg"};
inline constexpr UnaryOp Sign{"Sign"};
inline constexpr UnaryOp Reciprocal{"Reciprocal"};
inline constexpr UnaryOp Square{"Square"};
inline constexpr UnaryOp Sqrt{"Sqrt"};
inline constexpr UnaryOp Rsqrt{"Rsqrt"};
inline constexpr UnaryOp Exp{"Exp"};
inline constexpr UnaryOp Expm1{"Expm1"};
inline constexpr UnaryOp Log{"Log"};
inline constexpr UnaryOp Log1p{"Log1p"};
inline constexpr UnaryOp Floor{"Floor"};
inline constexpr UnaryOp Ceil{"Ceil"};
/// To the nearest integer, ties to even.
inline constexpr UnaryOp Round{"Round"};
inline constexpr UnaryOp LogicalNot{"LogicalNot"};

/// x + y, of strings too.
Output Add(const Operand& x, const Operand& y, std::string_view name = "Add", Where where = Where::current());
inline constexpr BinaryOp Subtract{"Sub"};
inline constexpr BinaryOp Multiply{"Mul"};
/// x / y; integers are divided as doubles (8 and 16 bits: as floats), as Python 3 does.
Output Divide(const Operand& x, const Operand& y, std::string_view name = "truediv", Where where = Where::current());
/// 0 where y is 0.
inline constexpr BinaryOp DivNoNan{"DivNoNan", "div_no_nan"};
inline constexpr BinaryOp FloorDiv{"FloorDiv", "floordiv"};
inline constexpr BinaryOp FloorMod{"FloorMod"};
inline constexpr BinaryOp Pow{"Pow"};
inline constexpr BinaryOp Maximum{"Maximum"};
inline constexpr BinaryOp Minimum{"Minimum"};
inline constexpr BinaryOp SquaredDifference{"SquaredDifference"};

inline constexpr BinaryOp Equal{"Equal"};
inline constexpr BinaryOp NotEqual{"NotEqual"};
inline constexpr BinaryOp Less{"Less"};
inline constexpr BinaryOp LessEqual{"LessEqual"};
inline constexpr BinaryOp Greater{"Greater"};
inline constexpr BinaryOp GreaterEqual{"GreaterEqual"};
inline constexpr BinaryOp LogicalAnd{"LogicalAnd"};
inline constexpr BinaryOp LogicalOr{"LogicalOr"};

/// Sum of one or more values of one shape.
Output AddN(const std::vector<Operand>& inputs, std::string_view name = "AddN", Where where = Where::current());

/// Converts element by element; the value itself when it is of that type already.
Output Cast(const Operand& x, DType dtype, std::string_view name = "Cast", Where where = Where::current());

struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  std::string_view name = "MatMul";
};
/// a: [n, k], b: [k, m] -> [n, m]; of higher (or unknown) rank: a product for each pair of matrices.
Output MatMul(const Operand& a, const Operand& b, const MatMulOptions& options = {}, Where where = Where::current());

/// Which axes a reduction takes away: all, one, several (negative ones count from the end), or what a value says.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : axes_(Operand(axis)) {}                                           // NOLINT
  Axes(std::initializer_list<int> axes) : axes_(Operand(std::vector<int>(axes))) {}  // NOLINT
  Axes(const std::vector<int>& axes) : axes_(Operand(axes)) {}                       // NOLINT
  Axes(Output axes) : axes_(Operand(axes)) {}                                        // NOLINT
  /// The indices of the axes, as a constant where they are literals or follow from the static shape of `input`.
  Operand Of(const Operand& input, Where where) const;

 private:
  std::optional<Operand> axes_;
};

struct ReduceOptions {
  bool keepdims = false;  // reduced axes stay, with extent 1
  std::string_view name = {};
};

/// An op that reduces axes.
struct ReduceOp {
  const char* op;
  Output operator()(const Operand& input, const Axes& axes = {}, const ReduceOptions& options = {},
                    Where where = Where::current()) const;
};
inline constexpr ReduceOp ReduceSum{"Sum"};
inline constexpr ReduceOp ReduceMean{"Mean"};
inline constexpr ReduceOp ReduceMax{"Max"};
inline constexpr ReduceOp ReduceMin{"Min"};
inline constexpr ReduceOp ReduceProd{"Prod"};
inline constexpr ReduceOp ReduceAll{"All"};
inline constexpr ReduceOp ReduceAny{"Any"};

/// Index of the largest (smallest) element along `axis`, the first of equal ones.
Output ArgMax(const Operand& input, int axis = 0, DType output_type = DType::kInt64, std::string_view name = "ArgMax",
              Where where = Where::current());
Output ArgMin(const Operand& input, int axis = 0, DType output_type = DType::kInt64, std::string_view name = "ArgMin",
              Where where = Where::current());

struct ScanOptions {
  bool exclusive = false;
  bool reverse = false;
  std::string_view name = {};
};
Output Cumsum(const Operand& x, int axis = 0, const ScanOptions& options = {}, Where where = Where::current());
Output Cumprod(const Operand& x, int axis = 0, const ScanOptions& options = {}, Where where = Where::current());

/// Nodes are named "add", "sub", "mul", "truediv", "mod" and "Neg"; a literal becomes "add/y". For Python's `//` there
/// is FloorDiv, for `**` Pow.
Output operator+(const Operand& x, const Operand& y);
Output operator-(const Operand& x, const Operand& y);
Output operator*(const Operand& x, const Operand& y);
Output operator/(const Operand& x, const Operand& y);
Output operator%(const Operand& x, const Operand& y);
Output operator-(const Operand& x);

/// Element by element, a value of type bool: "Less", "LessEqual", "Greater", "GreaterEqual". `==` and `!=` are no ops:
/// they tell whether two Outputs are the same one, as in TensorFlow 1.x; see Equal and NotEqual.
Output operator<(const Operand& x, const Operand& y);
Output operator<=(const Operand& x, const Operand& y);
Output operator>(const Operand& x, const Operand& y);
Output operator>=(const Operand& x, const Operand& y);

/// `x` names the new value from now on, as in Python; the node that it named stays as it is.
Output& operator+=(Output& x, const Operand& y);
Output& operator-=(Output& x, const Operand& y);
Output& operator*=(Output& x, const Operand& y);
Output& operator/=(Output& x, const Operand& y);
Output& operator%=(Output& x, const Operand& y);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_MATH_OPS_H_
