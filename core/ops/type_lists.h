// Signature texts shared by several op families, with TensorFlow 2.17's type sets.
#ifndef WEIR_CORE_OPS_TYPE_LISTS_H_
#define WEIR_CORE_OPS_TYPE_LISTS_H_

#include <string_view>

namespace weir::ops {

inline constexpr std::string_view kAnyT = "T: type";
inline constexpr std::string_view kNumberT = "T: numbertype";
inline constexpr std::string_view kRealNumberT = "T: realnumbertype";
inline constexpr std::string_view kFloatT = "T: {bfloat16, half, float, double}";
inline constexpr std::string_view kInexactT = "T: {bfloat16, half, float, double, complex64, complex128}";
/// Floating, complex and signed integer types.
inline constexpr std::string_view kSignedT =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";
/// Floating, complex and all integer types.
inline constexpr std::string_view kArithmeticT =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}";
inline constexpr std::string_view kIndexT = "Tidx: {int32, int64} = DT_INT32";

/// How an op names a resource: by a reference to two strings, container and name, or by a handle.
inline constexpr std::string_view kByReference = "handle: Ref(string)", kByHandle = "handle: resource";

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_TYPE_LISTS_H_
