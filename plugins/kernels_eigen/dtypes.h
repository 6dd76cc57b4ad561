// Element type lists shared by the families. Sanitizer builds use short ones.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_DTYPES_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_DTYPES_H_

#include "sdk/cpp/types.h"

namespace weir::kernels_eigen {

#if defined(WEIR_KERNEL_DTYPES_SHORT)

inline constexpr sdk::Types<> k16Bit;
inline constexpr sdk::Types<> kComplex;
inline constexpr sdk::Types<> kSmallInts;
inline constexpr sdk::Types<> kUnsigned;
inline constexpr sdk::Types<> kQuantized;

inline constexpr sdk::Types<sdk::As<WEIR_FLOAT32, uint32_t>, sdk::As<WEIR_FLOAT64, uint64_t>,
                            sdk::As<WEIR_INT32, uint32_t>, sdk::As<WEIR_INT64, uint64_t>, sdk::As<WEIR_BOOL, uint8_t>>
    kAnyBits;

#else

inline constexpr sdk::Types<sdk::half, sdk::bfloat16> k16Bit;
inline constexpr sdk::Types<sdk::complex64, sdk::complex128> kComplex;
inline constexpr sdk::Types<int8_t, int16_t> kSmallInts;
inline constexpr sdk::Types<uint8_t, uint16_t, uint32_t, uint64_t> kUnsigned;
/// Types that are compared and moved as the integers they are stored as.
inline constexpr sdk::Types<sdk::As<WEIR_QINT8, int8_t>, sdk::As<WEIR_QINT16, int16_t>, sdk::As<WEIR_QINT32, int32_t>,
                            sdk::As<WEIR_QUINT8, uint8_t>, sdk::As<WEIR_QUINT16, uint16_t>>
    kQuantized;

/// All types with plain elements, as bits of their size: for kernels that only move elements.
inline constexpr sdk::Types<
    sdk::As<WEIR_FLOAT16, uint16_t>, sdk::As<WEIR_BFLOAT16, uint16_t>, sdk::As<WEIR_FLOAT32, uint32_t>,
    sdk::As<WEIR_FLOAT64, uint64_t>, sdk::As<WEIR_COMPLEX64, uint64_t>, sdk::As<WEIR_COMPLEX128, sdk::bits128>,
    sdk::As<WEIR_INT8, uint8_t>, sdk::As<WEIR_INT16, uint16_t>, sdk::As<WEIR_INT32, uint32_t>,
    sdk::As<WEIR_INT64, uint64_t>, sdk::As<WEIR_UINT8, uint8_t>, sdk::As<WEIR_UINT16, uint16_t>,
    sdk::As<WEIR_UINT32, uint32_t>, sdk::As<WEIR_UINT64, uint64_t>, sdk::As<WEIR_BOOL, uint8_t>,
    sdk::As<WEIR_QINT8, uint8_t>, sdk::As<WEIR_QINT16, uint16_t>, sdk::As<WEIR_QINT32, uint32_t>,
    sdk::As<WEIR_QUINT8, uint8_t>, sdk::As<WEIR_QUINT16, uint16_t>, sdk::As<WEIR_FLOAT8_E5M2, uint8_t>,
    sdk::As<WEIR_FLOAT8_E4M3FN, uint8_t>, sdk::As<WEIR_INT4, uint8_t>, sdk::As<WEIR_UINT4, uint8_t>>
    kAnyBits;

#endif

inline constexpr sdk::Types<float, double> kFloat;
inline constexpr sdk::Types<int32_t, int64_t> kIndex;
inline constexpr sdk::Types<sdk::boolean> kBool;

inline constexpr auto kFloating = k16Bit + kFloat;
inline constexpr auto kSigned = kSmallInts + kIndex;
inline constexpr auto kInts = kSigned + kUnsigned;
inline constexpr auto kReal = kFloating + kInts;
inline constexpr auto kFloatingOrComplex = kFloating + kComplex;
inline constexpr auto kNumbers = kReal + kComplex;

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_DTYPES_H_
