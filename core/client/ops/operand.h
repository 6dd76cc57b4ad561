// Arguments of the op builders: values of the graph, literals that become constants, indices. Builders as objects.
#ifndef WEIR_CORE_CLIENT_OPS_OPERAND_H_
#define WEIR_CORE_CLIENT_OPS_OPERAND_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/client/graph/graph.h"
#include "core/client/ops/operand.h"
#include "core/tensor/tensor.h"

namespace weir {

class Variable;

/// A host value: a number, a string, a (nested) list, a tensor. `flexible` literals take the type that their use needs
/// (3 beside a float tensor is 3.0f); tensors keep theirs.
struct Literal {
  Tensor tensor;
  bool flexible = false;
  DType natural = DType::kInvalid;  // its default type; kInvalid = the tensor's

  /// {}: an empty list.
  Literal() : natural(DType::kFloat) {}
  Literal(Tensor value) : tensor(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::integral<T> || std::floating_point<T> Literal(T value)  // NOLINT(google-explicit-constructor)
      : tensor(Of(value)), flexible(true), natural(Natural(tensor)) {}
  Literal(const char* text) : tensor(Tensor::String(OrEmpty(text))) {}  // NOLINT(google-explicit-constructor)
  Literal(const std::string& text) : tensor(Tensor::String(text)) {}    // NOLINT(google-explicit-constructor)
  template <class T>
  Literal(const std::vector<T>& values)  // NOLINT(google-explicit-constructor)
      : tensor(FromVector(values)), flexible(true) {}
  /// {1, 2, 3} and {{1, 2}, {3, 4}}; rows of unequal shape give an invalid tensor.
  Literal(std::initializer_list<Literal> rows)
      : tensor(Stack({rows.begin(), rows.end()})), flexible(true), natural(Natural(tensor)) {}

  DType dtype() const { return natural == DType::kInvalid ? tensor.dtype() : natural; }
  bool is_empty_list() const { return !tensor.valid() && natural != DType::kInvalid; }
  /// As `dtype` (kInvalid = the natural type). Flexible literals convert, but not reals to integers and bools to
  /// numbers; other types are InvalidArgument with TensorFlow's text.
  Result<Tensor> As(DType dtype) const;
  /// For feeds: also truncates reals, converts bools to 0 and 1, and parses texts. InvalidArgument for overflow.
  Result<Tensor> ForFeed(DType dtype) const;

 private:
  /// Integers are int32 where they fit, else int64, else uint64; reals are kept as double and become float.
  static Tensor Of(bool value) { return Tensor::Scalar<bool>(value); }
  static Tensor Of(std::integral auto value) {
    const auto wide = static_cast<int64_t>(value);
    if (wide < 0 && value > 0) return Tensor::Scalar<uint64_t>(static_cast<uint64_t>(value));
    return wide == static_cast<int32_t>(wide) ? Tensor::Scalar<int32_t>(static_cast<int32_t>(wide))
                                              : Tensor::Scalar<int64_t>(wide);
  }
  static Tensor Of(float value) { return Tensor::Scalar<float>(value); }
  static Tensor Of(std::floating_point auto value) { return Tensor::Scalar<double>(static_cast<double>(value)); }
  static DType Natural(const Tensor& tensor) {
    return tensor.dtype() == DType::kDouble ? DType::kFloat : DType::kInvalid;
  }
  static Tensor Stack(const std::vector<Literal>& rows);
  /// Numbers keep the vector's element type.
  template <class T>
  static Tensor FromVector(const std::vector<T>& values) {
    if constexpr (requires { DTypeOf<T>::value; }) {
      return Tensor::Vector<T>(values);
    } else {
      return Stack({values.begin(), values.end()});
    }
  }
};

/// An argument of a builder, with the source location of the call.
class Operand {
 public:
  Operand(Output output, Where where = Where::current())  // NOLINT
      : output_(output), where_(where) {}
  Operand(const Variable& variable, Where where = Where::current());  // NOLINT
  template <class T>
  requires std::constructible_from<Literal, T> &&
      (!std::same_as<std::decay_t<T>, Literal>)Operand(T&& value, Where where = Where::current())  // NOLINT
      : literal_(std::forward<T>(value)), is_literal_(true), where_(where) {}
  Operand(Literal literal, Where where = Where::current())  // NOLINT
      : literal_(std::move(literal)), is_literal_(true), where_(where) {}
  Operand(std::initializer_list<Literal> rows, Where where = Where::current())  // NOLINT
      : literal_(rows), is_literal_(true), where_(where) {}

  bool is_literal() const { return is_literal_; }
  const Literal& literal() const { return literal_; }
  const std::source_location& where() const { return where_; }

  /// True for a literal and for a value that exists.
  bool exists() const { return is_literal_ || output_.exists(); }
  /// The graph of the value, or null for a literal.
  Graph* graph() const { return is_literal_ ? nullptr : output_.graph(); }
  /// Type and shape of the value, or those of the literal by default.
  DType dtype() const { return is_literal_ ? literal_.dtype() : output_.dtype(); }
  PartialShape shape() const { return is_literal_ ? PartialShape(literal_.tensor.shape()) : output_.shape(); }

  /// The value, a new read of a resource variable, or a Const `name` in `graph` of type `dtype` (kInvalid = its own).
  Output In(Graph& graph, DType dtype = DType::kInvalid, std::string_view name = "Const") const;
  bool adds_node() const { return is_literal_ || handle_.exists(); }
  /// With a resource variable read now, in the current scopes.
  Operand ReadNow() const;

 private:
  Output output_;  // of a resource variable the value that was made with it
  Output handle_;  // exists for variables that each use reads anew
  Literal literal_;
  bool is_literal_ = false;
  std::source_location where_;
};

/// An op of one input; `node`: TensorFlow's node name if it is not the op's.
struct UnaryOp {
  const char* op;
  const char* node = op;

  Output operator()(const Operand& x, std::string_view name = {}, Where where = Where::current()) const;
};

/// An op of two inputs; a literal takes the other's type. Shapes broadcast as in NumPy.
struct BinaryOp {
  const char* op;
  const char* node = op;

  Output operator()(const Operand& x, const Operand& y, std::string_view name = {},
                    Where where = Where::current()) const;
};

/// Python's begin:end:stride: `Span{1, 3}`, `Span{.end = -1}`, `Span{}` for all; integers or integer scalars.
struct Span {
  std::optional<Operand> begin = {};
  std::optional<Operand> end = {};
  std::optional<Operand> stride = {};
};

/// Python's `...`: the remaining axes.
struct Ellipsis {};
inline constexpr Ellipsis kEllipsis;
/// tf.newaxis: an axis of extent 1.
struct NewAxis {};
inline constexpr NewAxis kNewAxis;

/// One index: a position, which takes its axis away, a span, kEllipsis or kNewAxis.
class Index {
 public:
  using Kind = std::variant<Operand, Span, Ellipsis, NewAxis>;

  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T position, Where where = Where::current())  // NOLINT
      : kind_(Operand(position, where)), where_(where) {}
  Index(Output position, Where where = Where::current())  // NOLINT
      : kind_(Operand(position, where)), where_(where) {}
  Index(Span span, Where where = Where::current())  // NOLINT
      : kind_(std::move(span)), where_(where) {}
  Index(Ellipsis all, Where where = Where::current())  // NOLINT
      : kind_(all), where_(where) {}
  Index(NewAxis axis, Where where = Where::current())  // NOLINT
      : kind_(axis), where_(where) {}

  const Kind& kind() const { return kind_; }
  const std::source_location& where() const { return where_; }

 private:
  Kind kind_;
  std::source_location where_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_OPERAND_H_
