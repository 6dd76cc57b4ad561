// Arguments of the op builders: values of the graph, or literals that become constants.
#ifndef WEIR_CORE_CLIENT_OPERAND_H_
#define WEIR_CORE_CLIENT_OPERAND_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "core/client/graph.h"
#include "core/tensor/tensor.h"

namespace weir {

class Variable;

/// A host value given where the graph, a feed or an initial value wants one: numbers, strings, (nested) lists, tensors.
/// `flexible` literals take the type that their use asks for (3 next to a float tensor is 3.0f); tensors keep theirs.
struct Literal {
  Tensor tensor;
  bool flexible = false;
  DType natural = DType::kInvalid;  // its type where nothing asks for one; kInvalid = the tensor's

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

  /// The natural type.
  DType dtype() const { return natural == DType::kInvalid ? tensor.dtype() : natural; }
  bool is_empty_list() const { return !tensor.valid() && natural != DType::kInvalid; }
  /// As `dtype` (kInvalid = the natural type): converted when flexible, which reals to integers and bools to numbers
  /// never are; else InvalidArgument with TensorFlow's text when it is of another type.
  Result<Tensor> As(DType dtype) const;
  /// The same for feeds, where reals become integers by truncation, bools 0 and 1, and texts the numbers that they
  /// spell. InvalidArgument for a number that does not fit.
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

/// An argument of a builder. Made implicitly at the call, whose place in the source it remembers.
class Operand {
 public:
  Operand(Output output, std::source_location where = std::source_location::current())  // NOLINT
      : output_(output), where_(where) {}
  Operand(const Variable& variable, std::source_location where = std::source_location::current());  // NOLINT
  template <class T>
  requires std::constructible_from<Literal, T> &&(!std::same_as<std::decay_t<T>, Literal>)
      Operand(T&& value, std::source_location where = std::source_location::current())  // NOLINT
      : literal_(std::forward<T>(value)), is_literal_(true), where_(where) {}
  Operand(Literal literal, std::source_location where = std::source_location::current())  // NOLINT
      : literal_(std::move(literal)), is_literal_(true), where_(where) {}
  Operand(std::initializer_list<Literal> rows, std::source_location where = std::source_location::current())  // NOLINT
      : literal_(rows), is_literal_(true), where_(where) {}

  bool is_literal() const { return is_literal_; }
  const Literal& literal() const { return literal_; }
  const std::source_location& where() const { return where_; }

  /// Whether it is a literal or a value that is there.
  bool exists() const { return is_literal_ || output_.exists(); }
  /// The graph of the value, or null for a literal.
  Graph* graph() const { return is_literal_ ? nullptr : output_.graph(); }
  /// Type and shape of the value; of a literal those that it has where nothing asks for a type.
  DType dtype() const { return is_literal_ ? literal_.dtype() : output_.dtype(); }
  PartialShape shape() const { return is_literal_ ? PartialShape(literal_.tensor.shape()) : output_.shape(); }

  /// The value itself, a new read of a resource variable, or a Const (named `name`) in `graph` of type `dtype`
  /// (kInvalid = the literal's own type).
  Output In(Graph& graph, DType dtype = DType::kInvalid, std::string_view name = "Const") const;
  /// Whether In adds a node.
  bool adds_node() const { return is_literal_ || handle_.exists(); }
  /// The same, with a resource variable read now, in the current scopes, instead of where In is called.
  Operand ReadNow() const;

 private:
  Output output_;  // of a resource variable the value that was made with it
  Output handle_;  // exists for variables that each use reads anew
  Literal literal_;
  bool is_literal_ = false;
  std::source_location where_;
};

/// The graph that an op of these operands goes to: that of the first value among them, or the default graph.
Graph& GraphOf(const Operand& operand);
Graph& GraphOf(const std::vector<Operand>& operands);

/// Calls a builder for an op: literals take the type of the first argument that shares their type attribute and is a
/// value, and become constants below the op's name scope, as TensorFlow does ("add/y"); resource variables are read
/// there ("Relu/ReadVariableOp").
Operation BuildOp(std::string_view op, const std::vector<Operand>& inputs, op::AttrList attrs = {},
                  std::string_view name = {}, std::source_location where = std::source_location::current());

/// `count` values that an error kept from being made; none where the count cannot be meant.
List<Output> AbsentValues(Graph& graph, int64_t count);
/// The outputs of an operation; of one that does not exist, `count` values that do not either.
List<Output> OutputsOr(const Operation& operation, int64_t count);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPERAND_H_
