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

/// TensorFlow's DataType. A reference type (the output of a legacy variable) is the value type plus 100.
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

/// Set of value types as bits indexed by type number (at most 63).
using DTypeSet = uint64_t;
constexpr DTypeSet Bit(DType t) { return uint64_t{1} << static_cast<uint32_t>(t); }
constexpr bool Contains(DTypeSet set, DType t) { return static_cast<uint32_t>(t) < 64 && (set & Bit(t)) != 0; }
constexpr DTypeSet kAnyType = ~uint64_t{0};

/// Bytes of one element; 0 for string, resource, variant and invalid. Sub-byte types use one byte per element.
size_t SizeOf(DType t);
/// True if elements are plain bytes. False for strings, resources and variants, which are objects on the host, and for
/// kInvalid.
inline bool HasFixedSize(DType t) { return SizeOf(t) != 0; }
/// True for value and reference types in the table, except kInvalid.
bool IsKnown(DType t);
/// These predicates apply to value types.
bool IsFloating(DType t);  // half, bfloat16, float, double, float8_*
bool IsComplex(DType t);
bool IsInteger(DType t);  // signed and unsigned, quantised excluded
bool IsQuantized(DType t);
/// Trainable in TensorFlow's sense: floating or complex.
bool IsTrainable(DType t);

/// The name in TensorFlow's graph mode: "float", "int32", "float_ref", "bool"; "DT_99" for an unknown number.
std::string Name(DType t);
/// The name in Python: "float32", "float64", "float32_ref"; otherwise as Name.
std::string NumpyName(DType t);
/// Prints "<dtype: 'float32'>", as Python does.
std::ostream& operator<<(std::ostream& out, DType t);
/// The name in protos: "DT_FLOAT", "DT_FLOAT_REF".
std::string EnumName(DType t);
/// Parses any of the three spellings; nullopt if unknown.
std::optional<DType> ParseDType(std::string_view text);

/// Maps the C++ type of a host tensor's element to its DType. Other types have no `value`.
template <class T>
struct DTypeOf {};
template <DType kType>
struct DTypeConstant {
  static constexpr DType value = kType;
};
// clang-format off
template <> struct DTypeOf<float> : DTypeConstant<DType::kFloat> {};
template <> struct DTypeOf<double> : DTypeConstant<DType::kDouble> {};
template <> struct DTypeOf<int8_t> : DTypeConstant<DType::kInt8> {};
template <> struct DTypeOf<int16_t> : DTypeConstant<DType::kInt16> {};
template <> struct DTypeOf<int32_t> : DTypeConstant<DType::kInt32> {};
template <> struct DTypeOf<int64_t> : DTypeConstant<DType::kInt64> {};
template <> struct DTypeOf<uint8_t> : DTypeConstant<DType::kUint8> {};
template <> struct DTypeOf<uint16_t> : DTypeConstant<DType::kUint16> {};
template <> struct DTypeOf<uint32_t> : DTypeConstant<DType::kUint32> {};
template <> struct DTypeOf<uint64_t> : DTypeConstant<DType::kUint64> {};
template <> struct DTypeOf<bool> : DTypeConstant<DType::kBool> {};
template <> struct DTypeOf<std::string> : DTypeConstant<DType::kString> {};
// clang-format on

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_DTYPE_H_
