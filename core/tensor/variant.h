// Variants: tensor elements that hold an object of any type.
#ifndef WEIR_CORE_TENSOR_VARIANT_H_
#define WEIR_CORE_TENSOR_VARIANT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace weir {

class VariantValue;

/// Element of a variant tensor. Copies share the value; null means no value.
struct Variant {
  std::shared_ptr<const VariantValue> value;
};
template <>
struct DTypeOf<Variant> : DTypeConstant<DType::kVariant> {};

/// Immutable once shared: operations return new values. Thread-safe.
class VariantValue {
 public:
  virtual ~VariantValue() = default;

  /// The type name in TensorFlow's serialized form: "tensorflow::TensorList".
  virtual std::string_view type_name() const = 0;
  /// A one-line description.
  virtual std::string DebugString() const = 0;
  /// Payload bytes, including those shared with other values.
  virtual uint64_t MemoryBytes() const = 0;

  /// The same structure with all numbers replaced by zeros.
  virtual Result<Variant> ZerosLike() const = 0;
  /// The sum with a value of the same type and structure; InvalidArgument otherwise.
  virtual Result<Variant> Add(const VariantValue& other) const = 0;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_VARIANT_H_
