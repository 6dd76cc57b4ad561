// Element types: TensorFlow's numbers, names and sizes.
#ifndef WEIR_CORE_TENSOR_DTYPE_H_
#define WEIR_CORE_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// TensorFlow's DataType. A reference type (what a legacy variable yields) is the value type plus 100.
enum class DType : uint32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5m2 = 24,
  kFloat8E4m3fn = 25,
  kFloat8E4m3fnuz = 26,
  kFloat8E4m3b11fnuz = 27,
  kFloat8E5m2fnuz = 28,
  kInt4 = 29,
  kUint4 = 30,
  kInt2 = 31,
  kUint2 = 32,
};

constexpr bool IsRef(DType t) { return static_cast<uint32_t>(t) > 100; }
constexpr DType BaseType(DType t) { return IsRef(t) ? static_cast<DType>(static_cast<uint32_t>(t) - 100) : t; }
constexpr DType RefType(DType t) { return IsRef(t) ? t : static_cast<DType>(static_cast<uint32_t>(t) + 100); }

/// Set of types as bits by number; only value types up to 63.
using DTypeSet = uint64_t;
constexpr DTypeSet Bit(DType t) { return uint64_t{1} << static_cast<uint32_t>(t); }
constexpr bool Contains(DTypeSet set, DType t) { return static_cast<uint32_t>(t) < 64 && (set & Bit(t)) != 0; }
constexpr DTypeSet kAnyType = ~uint64_t{0};

/// Bytes of one element; 0 for string, resource, variant and invalid. Sub-byte types are stored one element a byte.
size_t SizeOf(DType t);
/// True when a tensor's elements are plain bytes. False for strings, resources and variants, which are objects on the
/// host, and for kInvalid.
inline bool HasFixedSize(DType t) { return SizeOf(t) != 0; }
/// A type of the catalogue (value or reference), not kInvalid.
bool IsKnown(DType t);
/// Real, complex, or quantised predicates on value types.
bool IsFloating(DType t);  // half, bfloat16, float, double, float8_*
bool IsComplex(DType t);
bool IsInteger(DType t);  // signed and unsigned, quantised excluded
bool IsQuantized(DType t);
/// Trainable in TensorFlow's sense: floating or complex.
bool IsTrainable(DType t);

/// As TensorFlow's graph mode prints it: "float", "int32", "float_ref", "bool"; "DT_99" for an unknown number.
std::string Name(DType t);
/// As Python prints it: "float32", "float64", "float32_ref"; otherwise as Name.
std::string NumpyName(DType t);
/// "<dtype: 'float32'>", as Python prints it.
std::ostream& operator<<(std::ostream& out, DType t);
/// As protos print it: "DT_FLOAT", "DT_FLOAT_REF".
std::string EnumName(DType t);
/// From any of the three spellings; nothing when unknown.
std::optional<DType> ParseDType(std::string_view text);

/// The C++ type of an element -> its DType, for host tensors.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kDouble;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kUint16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kUint32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kUint64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<std::string> {
  static constexpr DType value = DType::kString;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_DTYPE_H_
