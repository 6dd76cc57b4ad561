#include "core/client/ops/check_ops.h"

#include <optional>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/client/control_flow/control_flow.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/graph/inference.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

std::optional<Tensor> KnownValue(const Output& value) {
  const graph::Endpoint from = value.endpoint();
  graph::InputKnowledge knowledge(Internals(*value.graph()).definition, std::span(&from, 1));
  const Tensor* known = knowledge.Value(0);
  return known == nullptr ? std::nullopt : std::optional(*known);
}

struct Comparison {
  std::string_view sign;
  std::string_view name;  // of the scope
  BinaryOp op;
  bool (*holds)(double, double);
};

constexpr Comparison kEqual = {"==", "assert_equal", Equal, [](double a, double b) { return a == b; }};
constexpr Comparison kNoneEqual = {"!=", "assert_none_equal", NotEqual, [](double a, double b) { return a != b; }};
constexpr Comparison kLess = {"<", "assert_less", Less, [](double a, double b) { return a < b; }};
constexpr Comparison kLessEqual = {"<=", "assert_less_equal", LessEqual, [](double a, double b) { return a <= b; }};
constexpr Comparison kGreater = {">", "assert_greater", Greater, [](double a, double b) { return a > b; }};
constexpr Comparison kGreaterEqual = {">=", "assert_greater_equal", GreaterEqual,
                                      [](double a, double b) { return a >= b; }};

/// Whether the comparison holds for all elements; true where it cannot be told here: of texts, 64 bit integers that a
/// double cannot hold, and shapes that are neither equal nor a scalar.
bool HoldsForAll(const Comparison& comparison, const Tensor& x, const Tensor& y) {
  const auto exact = [](const Tensor& t) {
    return HasFixedSize(t.dtype()) && !IsComplex(t.dtype()) && t.dtype() != DType::kInt64 &&
           t.dtype() != DType::kUint64;
  };
  if (!exact(x) || !exact(y)) return true;
  const bool same = x.shape() == y.shape();
  if (!same && x.shape().rank() != 0 && y.shape().rank() != 0) return true;
  const int64_t count = same ? x.elements() : x.elements() * y.elements();
  for (int64_t i = 0; i < count; ++i) {
    const double a = ElementAsDouble(x, x.shape().rank() == 0 ? 0 : i);
    const double b = ElementAsDouble(y, y.shape().rank() == 0 ? 0 : i);
    if (!comparison.holds(a, b)) return false;
  }
  return true;
}

/// The texts and values of `data`, a line each.
std::string Lines(const std::vector<Operand>& data) {
  std::string lines;
  for (const Operand& each : data) {
    if (!lines.empty()) lines += "\n";
    std::optional<Tensor> value;
    if (each.is_literal()) {
      value = each.literal().tensor;
    } else {
      value = KnownValue(each.In(*each.graph()));
    }
    if (!value) {
      lines += each.In(*each.graph()).ToString();
    } else if (value->dtype() == DType::kString && value->shape().rank() == 0) {
      lines += *value->scalar<std::string>();
    } else {
      lines += value->SummarizeValues(1000);
    }
  }
  return lines;
}

Operation Compare(const Comparison& comparison, const Operand& x, const Operand& y, const CheckOptions& options,
                  const Where& where) {
  Graph& graph = GraphOf({x, y});
  const AsDefault in(graph);
  const NameScope scope(options.name.empty() ? comparison.name : options.name, graph);
  const DType type = x.is_literal() && !y.is_literal() ? BaseType(y.dtype()) : DType::kInvalid;
  const Output a = x.In(graph, type, "x");
  const Output b = y.In(graph, a.exists() ? BaseType(a.dtype()) : DType::kInvalid, "y");
  if (!a.exists() || !b.exists()) return Operation::Absent(graph);
  std::vector<Operand> data = options.data;
  if (data.empty()) {
    data = {Operand(fmt::format("Condition x {} y did not hold element-wise:", comparison.sign), where),
            Operand(fmt::format("x ({}) = ", a.name()), where), a, Operand(fmt::format("y ({}) = ", b.name()), where),
            b};
  }
  if (!options.message.empty()) data.insert(data.begin(), Operand(options.message, where));
  const Output holds = ReduceAll(comparison.op(a, b, {}, where), {}, {}, where);
  const std::optional<Tensor> known_a = KnownValue(a), known_b = KnownValue(b);
  if (known_a && known_b && !HoldsForAll(comparison, *known_a, *known_b)) {
    (void)graph.Fail(InvalidArgument("{} ({})", Lines(data), Format(where)));
    return Operation::Absent(graph);
  }
  return Assert(holds, data, {.summarize = options.summarize}, where);
}

/// A comparison of `x` with zero, which is its left side where `zero_first`.
Operation CompareWithZero(const Comparison& comparison, std::string_view name, std::string_view sign, bool zero_first,
                          const Operand& x, const CheckOptions& options, const Where& where) {
  Graph& graph = GraphOf(x);
  const AsDefault in(graph);
  const NameScope scope(options.name.empty() ? name : options.name, graph);
  const Output value = x.In(graph, DType::kInvalid, "x");
  if (!value.exists()) return Operation::Absent(graph);
  CheckOptions inner{.data = options.data, .summarize = options.summarize};
  if (inner.data.empty()) {
    inner.data = {Operand(options.message.empty() ? "" : options.message + "  ", where),
                  Operand(fmt::format("Condition x {} 0 did not hold element-wise:", sign), where),
                  Operand(fmt::format("x ({}) = ", value.name()), where), value};
  }
  const Output zero = Operand(Literal(0), where).In(graph, BaseType(value.dtype()), "Const");
  return zero_first ? Compare(comparison, zero, value, inner, where) : Compare(comparison, value, zero, inner, where);
}

enum class RankRule { kExactly, kAtLeast };

Operation CheckRank(const Operand& x, int rank, RankRule rule, const CheckOptions& options, const Where& where) {
  Graph& graph = GraphOf(x);
  const AsDefault in(graph);
  const bool exactly = rule == RankRule::kExactly;
  const std::string_view name = exactly ? "assert_rank" : "assert_rank_at_least";
  const std::string_view must = exactly ? "must have rank" : "must have rank at least";
  const NameScope scope(options.name.empty() ? name : options.name, graph);
  const Output value = x.In(graph, DType::kInvalid, "x");
  if (!value.exists()) return Operation::Absent(graph);
  const Output wanted = Operand(Literal(rank), where).In(graph, DType::kInt32, "rank");
  (void)AssertType(wanted, DType::kInt32, {}, where);  // TensorFlow's graphs have this node too
  const std::string prefix = options.message.empty() ? "" : options.message + "  ";
  std::vector<Operand> data = options.data;
  if (data.empty()) {
    data = {Operand(prefix, where), Operand(fmt::format("Tensor {} {}", value.name(), must), where), wanted,
            Operand("Received shape: ", where), ShapeOf(value, DType::kInt32, "Shape", where)};
  }
  const PartialShape shape = value.shape();
  if (shape.has_rank()) {
    if (exactly ? shape.rank() == rank : shape.rank() >= rank) {
      return NoOp("static_checks_determined_all_ok", where);
    }
    (void)graph.Fail(InvalidArgument("{}Tensor {} {} {}.  Received rank {}, shape {} ({})", prefix, value.name(), must,
                                     rank, shape.rank(), shape.ToTupleString(), Format(where)));
    return Operation::Absent(graph);
  }
  const Output has = RankOf(value, "Rank", where);
  const Output holds = exactly ? Equal(has, wanted, {}, where) : GreaterEqual(has, wanted, {}, where);
  return Assert(holds, data, {.summarize = options.summarize}, where);
}

}  // namespace

Operation AssertEqual(const Operand& x, const Operand& y, const CheckOptions& options, Where where) {
  // TensorFlow opens the scope twice, so that nodes are below "assert_equal_1".
  Graph& graph = GraphOf({x, y});
  const AsDefault in(graph);
  { const NameScope scope(options.name.empty() ? kEqual.name : options.name, graph); }
  return Compare(kEqual, x, y, options, where);
}
Operation AssertNoneEqual(const Operand& x, const Operand& y, const CheckOptions& options, Where where) {
  return Compare(kNoneEqual, x, y, options, where);
}
Operation AssertLess(const Operand& x, const Operand& y, const CheckOptions& options, Where where) {
  return Compare(kLess, x, y, options, where);
}
Operation AssertLessEqual(const Operand& x, const Operand& y, const CheckOptions& options, Where where) {
  return Compare(kLessEqual, x, y, options, where);
}
Operation AssertGreater(const Operand& x, const Operand& y, const CheckOptions& options, Where where) {
  return Compare(kGreater, x, y, options, where);
}
Operation AssertGreaterEqual(const Operand& x, const Operand& y, const CheckOptions& options, Where where) {
  return Compare(kGreaterEqual, x, y, options, where);
}
Operation AssertPositive(const Operand& x, const CheckOptions& options, Where where) {
  return CompareWithZero(kLess, "assert_positive", ">", true, x, options, where);
}
Operation AssertNegative(const Operand& x, const CheckOptions& options, Where where) {
  return CompareWithZero(kLess, "assert_negative", "<", false, x, options, where);
}
Operation AssertNonPositive(const Operand& x, const CheckOptions& options, Where where) {
  return CompareWithZero(kLessEqual, "assert_non_positive", "<=", false, x, options, where);
}
Operation AssertNonNegative(const Operand& x, const CheckOptions& options, Where where) {
  return CompareWithZero(kLessEqual, "assert_non_negative", ">=", true, x, options, where);
}

Operation AssertRank(const Operand& x, int rank, const CheckOptions& options, Where where) {
  return CheckRank(x, rank, RankRule::kExactly, options, where);
}
Operation AssertRankAtLeast(const Operand& x, int rank, const CheckOptions& options, Where where) {
  return CheckRank(x, rank, RankRule::kAtLeast, options, where);
}

Operation AssertType(const Operand& x, DType dtype, const CheckOptions& options, Where where) {
  Graph& graph = GraphOf(x);
  const AsDefault in(graph);
  const NameScope scope(options.name.empty() ? "assert_type" : options.name, graph);
  const Output value = x.In(graph, DType::kInvalid, "tensor");
  if (!value.exists()) return Operation::Absent(graph);
  if (BaseType(value.dtype()) == dtype) return NoOp("statically_determined_correct_type", where);
  (void)graph.Fail(InvalidArgument("{}{} must be of type <dtype: '{}'>; got <dtype: '{}'> ({})",
                                   options.message.empty() ? "" : options.message + "  ", value.name(),
                                   NumpyName(dtype), NumpyName(BaseType(value.dtype())), Format(where)));
  return Operation::Absent(graph);
}

Operation AddCheckNumericsOps(Graph& graph, Where where) {
  const AsDefault in(graph);
  std::vector<Dependency> before;
  std::vector<Groupable> last;
  for (const Operation& operation : graph.Operations()) {
    for (const Output& output : operation.outputs()) {
      const DType type = output.dtype();
      if (type != DType::kHalf && type != DType::kFloat && type != DType::kDouble) continue;
      if (!graph.IsFetchable(operation)) {
        (void)graph.Fail(
            InvalidArgument("`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations "
                            "such as `tf.cond()` "
                            "or `tf.while_loop()`. ('{}', {})",
                            operation.name(), Format(where)));
        return Operation::Absent(graph);
      }
      const ControlDependencies after(before, graph);
      const std::string message = fmt::format("{}:{}", operation.name(), output.index());
      const Operation check = BuildOp("CheckNumerics", {output}, {{"message", message}}, {}, where);
      before = {check};
      last = {check};
    }
  }
  return Group(last, "group_deps", where);
}

}  // namespace weir
