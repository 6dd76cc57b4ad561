// Single elements of any numeric type as double, and back.
#ifndef WEIR_CORE_TENSOR_NUMBER_H_
#define WEIR_CORE_TENSOR_NUMBER_H_

#include <complex>
#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir {

/// IEEE 754 binary16 and bfloat16 bits. Conversion from float rounds to nearest, ties to even; NaN stays NaN.
float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float Bfloat16ToFloat(uint16_t bits);
uint16_t FloatToBfloat16(float value);
/// Decodes one of the float8 types; NaN for another dtype.
float Float8ToFloat(DType dtype, uint8_t bits);

/// Element `i` of a host tensor of a floating, integer, quantised or bool type (an int64 beyond 2^53 is rounded), or
/// the real part of a complex one. NaN for other types.
double ElementAsDouble(const Tensor& tensor, int64_t i);
/// The same for complex types; the imaginary part of others is 0.
std::complex<double> ElementAsComplex(const Tensor& tensor, int64_t i);
/// Element `i` of a host tensor of an integer, quantised or bool type, exactly (uint64 wraps); 0 for other types.
int64_t ElementAsInt(const Tensor& tensor, int64_t i);

/// Writes an element of a floating, complex, integer, quantised or bool type, converted as in C++; real types get the
/// real part. Values out of an integer type's range are clamped. InvalidArgument for other types, Unimplemented for
/// float8.
Status StoreNumber(DType dtype, std::complex<double> number, std::byte* element);
/// A scalar that is stored so.
Result<Tensor> ScalarFrom(DType dtype, double value);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_NUMBER_H_
