// Op builders under TensorFlow's names. Each adds nodes to the graph of its arguments (literals: the default graph) in
// the current name scope and returns the value. After an error (Graph::status) the value does not exist. An empty
// `name` is the op's.
#ifndef WEIR_CORE_CLIENT_OPS_OPS_H_
#define WEIR_CORE_CLIENT_OPS_OPS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/ops/operand.h"

namespace weir {

/// A value that is part of the graph. `dtype`: kInvalid = the literal's own type (integers int32, reals float).
Output Constant(const Literal& value, DType dtype = DType::kInvalid, std::string_view name = "Const",
                Where where = Where::current());
/// The elements of `value` in row-major order as `shape`: the last one fills what is left. InvalidArgument "Too many
/// elements provided. Needed at most 2, but received 3".
Output Constant(const Literal& value, const Shape& shape, DType dtype = DType::kInvalid,
                std::string_view name = "Const", Where where = Where::current());

/// A value that every run must feed. `shape`: what fed values must fit; unknown rank takes any.
Output Placeholder(DType dtype, const PartialShape& shape = {}, std::string_view name = "Placeholder",
                   Where where = Where::current());
/// With the shape as a list: {-1, 4}, extents of -1 being unknown, or {} for a scalar.
Output Placeholder(DType dtype, std::initializer_list<int64_t> shape, std::string_view name = "Placeholder",
                   Where where = Where::current());

/// A value that a run may feed; `input` otherwise. `input` must fit `shape`.
Output PlaceholderWithDefault(const Operand& input, const PartialShape& shape,
                              std::string_view name = "PlaceholderWithDefault", Where where = Where::current());

/// The same values under a name of their own.
inline constexpr UnaryOp Identity{"Identity"};
/// The same values; gradients do not pass.
inline constexpr UnaryOp StopGradient{"StopGradient"};

/// The same values; ends the run with InvalidArgument "`message` : Tensor had NaN values" when one is not finite.
Output CheckNumerics(const Operand& tensor, std::string_view message, std::string_view name = "CheckNumerics",
                     Where where = Where::current());

/// Does nothing, after its control inputs.
Operation NoOp(std::string_view name = "NoOp", Where where = Where::current());

using Groupable = Dependency;
/// A NoOp that runs after all of `inputs`, on their device; if they have several, with a NoOp per device between.
Operation Group(const std::vector<Groupable>& inputs, std::string_view name = "group_deps",
                Where where = Where::current());

inline constexpr UnaryOp Abs{"Abs"}, Negative{"Neg"}, Sign{"Sign"}, Reciprocal{"Reciprocal"}, Square{"Square"},
    Sqrt{"Sqrt"}, Rsqrt{"Rsqrt"}, Exp{"Exp"}, Expm1{"Expm1"}, Log{"Log"}, Log1p{"Log1p"}, Floor{"Floor"}, Ceil{"Ceil"};
/// To the nearest integer, ties to even.
inline constexpr UnaryOp Round{"Round"}, LogicalNot{"LogicalNot"};

/// x + y, of strings too.
Output Add(const Operand& x, const Operand& y, std::string_view name = "Add", Where where = Where::current());
inline constexpr BinaryOp Subtract{"Sub"}, Multiply{"Mul"};
/// x / y; integers are divided as doubles (8 and 16 bits: as floats), as Python 3 does.
Output Divide(const Operand& x, const Operand& y, std::string_view name = "truediv", Where where = Where::current());
/// 0 where y is 0.
inline constexpr BinaryOp DivNoNan{"DivNoNan", "div_no_nan"}, FloorDiv{"FloorDiv", "floordiv"}, FloorMod{"FloorMod"},
    Pow{"Pow"}, Maximum{"Maximum"}, Minimum{"Minimum"}, SquaredDifference{"SquaredDifference"};

inline constexpr BinaryOp Equal{"Equal"}, NotEqual{"NotEqual"}, Less{"Less"}, LessEqual{"LessEqual"},
    Greater{"Greater"}, GreaterEqual{"GreaterEqual"}, LogicalAnd{"LogicalAnd"}, LogicalOr{"LogicalOr"};

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

/// Axes of a reduction: all, one, several (negative: from the end), or a value.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : axes_(Operand(axis)) {}                                           // NOLINT
  Axes(std::initializer_list<int> axes) : axes_(Operand(std::vector<int>(axes))) {}  // NOLINT
  Axes(const std::vector<int>& axes) : axes_(Operand(axes)) {}                       // NOLINT
  Axes(Output axes) : axes_(Operand(axes)) {}                                        // NOLINT
  /// The indices, a constant if known from literals or the static shape of `input`.
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
inline constexpr ReduceOp ReduceSum{"Sum"}, ReduceMean{"Mean"}, ReduceMax{"Max"}, ReduceMin{"Min"}, ReduceProd{"Prod"},
    ReduceAll{"All"}, ReduceAny{"Any"};

/// Index of the largest (smallest) element along `axis`, the first of equal ones.
Output ArgMax(const Operand& input, int axis = 0, DType output_type = DType::kInt64, std::string_view name = "ArgMax",
              Where where = Where::current());
Output ArgMin(const Operand& input, int axis = 0, DType output_type = DType::kInt64, std::string_view name = "ArgMin",
              Where where = Where::current());

/// Nodes are named "add", "sub", "mul", "truediv", "mod" and "Neg"; a literal becomes "add/y". Python's `//` is
/// FloorDiv, its `**` Pow(x, y, "pow"), its `@` MatMul(x, y, {.name = "matmul"}).
Output operator+(const Operand& x, const Operand& y);
Output operator-(const Operand& x, const Operand& y);
Output operator*(const Operand& x, const Operand& y);
Output operator/(const Operand& x, const Operand& y);
Output operator%(const Operand& x, const Operand& y);
Output operator-(const Operand& x);
/// LogicalAnd "and", LogicalOr "or" and LogicalNot of values of type bool.
Output operator&(const Operand& x, const Operand& y);
Output operator|(const Operand& x, const Operand& y);
Output operator~(const Operand& x);
Output operator!(const Operand& x);
/// Elementwise, bool: "Less", "LessEqual", "Greater", "GreaterEqual". `==` and `!=` compare identities of Outputs, as
/// in TensorFlow 1.x; Equal and NotEqual compare elements.
Output operator<(const Operand& x, const Operand& y);
Output operator<=(const Operand& x, const Operand& y);
Output operator>(const Operand& x, const Operand& y);
Output operator>=(const Operand& x, const Operand& y);

/// `x` becomes the new value, as in Python.
Output& operator+=(Output& x, const Operand& y);
Output& operator-=(Output& x, const Operand& y);
Output& operator*=(Output& x, const Operand& y);
Output& operator/=(Output& x, const Operand& y);
Output& operator%=(Output& x, const Operand& y);

inline constexpr UnaryOp Relu{"Relu"}, Tanh{"Tanh"}, Sigmoid{"Sigmoid"};
/// exp(x) / sum(exp(x)) along the last axis of a matrix.
inline constexpr UnaryOp Softmax{"Softmax"}, LogSoftmax{"LogSoftmax"};

/// value: [.., channels] + bias: [channels].
Output BiasAdd(const Operand& value, const Operand& bias, std::string_view name = "BiasAdd",
               Where where = Where::current());

/// Cross entropy of softmax(logits) against distributions, by row. labels, logits: [batch, classes] -> [batch].
/// Gradients flow to both.
Output SoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits,
                                     std::string_view name = "softmax_cross_entropy_with_logits",
                                     Where where = Where::current());

/// The same against class numbers. labels: int32 or int64 [batch], in [0, classes).
Output SparseSoftmaxCrossEntropyWithLogits(const Operand& labels, const Operand& logits,
                                           std::string_view name = "SparseSoftmaxCrossEntropyWithLogits",
                                           Where where = Where::current());

/// What random builders take beside their parameters.
struct RandomOptions {
  DType dtype = DType::kFloat;  // half, bfloat16, float or double
  int64_t seed = -1;            // -1 = none of its own
  std::string_view name = {};
};

/// Evenly from [minval, maxval), maxval = 1 if absent. shape: int32 or int64 [rank]. Integers need whole bounds, both.
Output RandomUniform(const Operand& shape, double minval = 0, std::optional<double> maxval = std::nullopt,
                     const RandomOptions& options = {}, Where where = Where::current());
Output RandomNormal(const Operand& shape, double mean = 0, double stddev = 1, const RandomOptions& options = {},
                    Where where = Where::current());
/// Normal values; those more than two standard deviations from the mean are drawn again.
Output TruncatedNormal(const Operand& shape, double mean = 0, double stddev = 1, const RandomOptions& options = {},
                       Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_OPS_H_
