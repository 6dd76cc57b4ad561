// Attribute values of nodes, and defaults in op definitions.
#ifndef WEIR_CORE_OP_ATTR_VALUE_H_
#define WEIR_CORE_OP_ATTR_VALUE_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace weir::op {

class AttrValue;
using AttrList = std::vector<std::pair<std::string, AttrValue>>;

/// A function named by an attribute, with its instantiation attributes.
struct FuncRef {
  std::string name;
  std::shared_ptr<const AttrList> attrs;  // null when there are none
};

/// "placeholder" in a function body: replaced by the call's attribute of that name.
struct AttrPlaceholder {
  std::string name;
};

/// An empty list whose element type is unknown: a proto AttrValue with an empty `list`.
struct EmptyList {};

/// A value of one of TensorFlow's attribute types. std::monostate means "not set".
class AttrValue {
 public:
  using Value = std::variant<std::monostate, std::string, int64_t, float, bool, DType, PartialShape, Tensor, FuncRef,
                             AttrPlaceholder, EmptyList, std::vector<std::string>, std::vector<int64_t>,
                             std::vector<float>, std::vector<bool>, std::vector<DType>, std::vector<PartialShape>,
                             std::vector<Tensor>, std::vector<FuncRef>>;

  AttrValue() = default;
  template <class T>
  requires std::is_constructible_v<Value, T> &&(!std::is_same_v<std::decay_t<T>, AttrValue>)AttrValue(T&& value)
      : value_(std::forward<T>(value)) {}                     // NOLINT(google-explicit-constructor)
  AttrValue(const char* text) : value_(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  AttrValue(int value) : value_(int64_t{value}) {}            // NOLINT(google-explicit-constructor)

  const Value& value() const { return value_; }
  bool set() const { return !std::holds_alternative<std::monostate>(value_); }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }

  /// "string", "int", "float", "bool", "type", "shape", "tensor", "func", "list(int)" …; "list" for an EmptyList.
  std::string TypeName() const;
  /// The form of TensorFlow's node attributes: `DT_FLOAT`, `[2,3]`, `"text"`, `true`, `[1, 2]`.
  std::string ToString() const;
  /// True for equal type and value; tensors are compared by bits.
  bool operator==(const AttrValue& other) const;

 private:
  Value value_;
};

}  // namespace weir::op

#endif  // WEIR_CORE_OP_ATTR_VALUE_H_
