#include "core/tensor/number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/errors.h"

namespace weir {
namespace {

template <class T>
T Read(const Tensor& tensor, int64_t i) {
  T value;
  std::memcpy(&value, tensor.raw() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

/// Decodes a small float from sign, exponent and mantissa. With `finite_only` the largest exponent holds ordinary
/// numbers and `nan` is the only NaN; otherwise it holds infinity and NaNs as in IEEE 754.
float Decode(uint32_t bits, int exponent_bits, int mantissa_bits, int bias, bool finite_only, uint32_t nan) {
  if (finite_only && (bits == nan || (nan == 0x7f && bits == 0xff))) return std::numeric_limits<float>::quiet_NaN();
  const uint32_t sign = bits >> (exponent_bits + mantissa_bits);
  const uint32_t top = (1u << exponent_bits) - 1;
  const uint32_t exponent = (bits >> mantissa_bits) & top;
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  float value;
  if (exponent == top && !finite_only) {
    value = mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(static_cast<float>(mantissa | (1u << mantissa_bits)),
                       static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return sign != 0 ? -value : value;
}

template <class T>
T Clamped(double value) {
  if (std::isnan(value)) return T{0};
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class T>
Status Put(std::byte* element, T value) {
  std::memcpy(element, &value, sizeof(T));
  return {};
}

Status PutNarrow(std::byte* element, double value, double low, double high) {
  const double inside = std::isnan(value) ? 0.0 : std::clamp(value, low, high);
  return Put(element, static_cast<int8_t>(inside));
}

}  // namespace

float HalfToFloat(uint16_t bits) { return Decode(bits, 5, 10, 15, false, 0); }

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;  // 65536 and above
  if (magnitude < 0x38800000u) {                        // below 2^-14: subnormal, in units of 2^-24
    const float units = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return sign | static_cast<uint16_t>(std::nearbyint(units));
  }
  const uint32_t rebased = magnitude - (112u << 23);
  return sign | static_cast<uint16_t>((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13);
}

float Bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float Float8ToFloat(DType dtype, uint8_t bits) {
  switch (dtype) {
    case DType::kFloat8E5m2:
      return Decode(bits, 5, 2, 15, false, 0);
    case DType::kFloat8E4m3fn:
      return Decode(bits, 4, 3, 7, true, 0x7f);
    case DType::kFloat8E4m3fnuz:
      return Decode(bits, 4, 3, 8, true, 0x80);
    case DType::kFloat8E4m3b11fnuz:
      return Decode(bits, 4, 3, 11, true, 0x80);
    case DType::kFloat8E5m2fnuz:
      return Decode(bits, 5, 2, 16, true, 0x80);
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

int64_t ElementAsInt(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kBool:
      return Read<uint8_t>(tensor, i) != 0;
    case DType::kInt8:
    case DType::kQint8:
    case DType::kInt4:
    case DType::kInt2:
      return Read<int8_t>(tensor, i);
    case DType::kUint8:
    case DType::kQuint8:
    case DType::kUint4:
    case DType::kUint2:
      return Read<uint8_t>(tensor, i);
    case DType::kInt16:
    case DType::kQint16:
      return Read<int16_t>(tensor, i);
    case DType::kUint16:
    case DType::kQuint16:
      return Read<uint16_t>(tensor, i);
    case DType::kInt32:
    case DType::kQint32:
      return Read<int32_t>(tensor, i);
    case DType::kUint32:
      return Read<uint32_t>(tensor, i);
    case DType::kInt64:
      return Read<int64_t>(tensor, i);
    case DType::kUint64:
      return static_cast<int64_t>(Read<uint64_t>(tensor, i));
    default:
      return 0;
  }
}

double ElementAsDouble(const Tensor& tensor, int64_t i) {
  const DType dtype = tensor.dtype();
  switch (dtype) {
    case DType::kFloat:
    case DType::kComplex64:
      return IsComplex(dtype) ? Read<std::complex<float>>(tensor, i).real() : Read<float>(tensor, i);
    case DType::kDouble:
      return Read<double>(tensor, i);
    case DType::kComplex128:
      return Read<std::complex<double>>(tensor, i).real();
    case DType::kHalf:
      return HalfToFloat(Read<uint16_t>(tensor, i));
    case DType::kBfloat16:
      return Bfloat16ToFloat(Read<uint16_t>(tensor, i));
    case DType::kUint64:
      return static_cast<double>(Read<uint64_t>(tensor, i));
    default:
      if (IsFloating(dtype)) return Float8ToFloat(dtype, Read<uint8_t>(tensor, i));
      if (IsInteger(dtype) || IsQuantized(dtype) || dtype == DType::kBool) {
        return static_cast<double>(ElementAsInt(tensor, i));
      }
      return std::numeric_limits<double>::quiet_NaN();
  }
}

std::complex<double> ElementAsComplex(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kComplex64) return Read<std::complex<float>>(tensor, i);
  if (tensor.dtype() == DType::kComplex128) return Read<std::complex<double>>(tensor, i);
  return ElementAsDouble(tensor, i);
}

Status StoreNumber(DType dtype, std::complex<double> number, std::byte* element) {
  const double value = number.real();
  switch (dtype) {
    case DType::kFloat:
      return Put(element, static_cast<float>(value));
    case DType::kDouble:
      return Put(element, value);
    case DType::kHalf:
      return Put(element, FloatToHalf(static_cast<float>(value)));
    case DType::kBfloat16:
      return Put(element, FloatToBfloat16(static_cast<float>(value)));
    case DType::kComplex64:
      return Put(element, std::complex<float>(number));
    case DType::kComplex128:
      return Put(element, number);
    case DType::kBool:
      return Put(element, static_cast<uint8_t>(value != 0));
    case DType::kInt8:
    case DType::kQint8:
      return Put(element, Clamped<int8_t>(value));
    case DType::kUint8:
    case DType::kQuint8:
      return Put(element, Clamped<uint8_t>(value));
    case DType::kInt16:
    case DType::kQint16:
      return Put(element, Clamped<int16_t>(value));
    case DType::kUint16:
    case DType::kQuint16:
      return Put(element, Clamped<uint16_t>(value));
    case DType::kInt32:
    case DType::kQint32:
      return Put(element, Clamped<int32_t>(value));
    case DType::kUint32:
      return Put(element, Clamped<uint32_t>(value));
    case DType::kInt64:
      return Put(element, Clamped<int64_t>(value));
    case DType::kUint64:
      return Put(element, Clamped<uint64_t>(value));
    case DType::kInt4:
      return PutNarrow(element, value, -8, 7);
    case DType::kUint4:
      return PutNarrow(element, value, 0, 15);
    case DType::kInt2:
      return PutNarrow(element, value, -2, 1);
    case DType::kUint2:
      return PutNarrow(element, value, 0, 3);
    default:
      if (IsFloating(dtype)) return Unimplemented("a number cannot be converted to {}", Name(dtype));
      return InvalidArgument("a number cannot be converted to {}", Name(dtype));
  }
}

Result<Tensor> ScalarFrom(DType dtype, double value) {
  std::byte element[sizeof(std::complex<double>)];
  WEIR_TRY(StoreNumber(dtype, value, element));
  WEIR_ASSIGN(Tensor tensor, Tensor::Make(dtype, Shape()));
  std::memcpy(tensor.mutable_raw(), element, tensor.bytes());
  return tensor;
}

}  // namespace weir
