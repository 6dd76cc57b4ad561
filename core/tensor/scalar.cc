// Tensor::scalar and Tensor::values: element access without a prior check of the type.
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/errors.h"
#include "core/tensor/number.h"
#include "core/tensor/tensor.h"

namespace weir {
namespace {

/// True if T represents `value` exactly; writes it to `to`.
template <class T, class From>
bool Keep(From value, void* to) {
  if constexpr (std::is_floating_point_v<From>) {
    if (std::is_integral_v<T>) {
      // The maximum of a 64-bit integer is not a double, but the next power of two is.
      const From beyond = std::ldexp(From{1}, std::numeric_limits<T>::digits);
      if (!(value >= static_cast<From>(std::numeric_limits<T>::min()) && value < beyond)) return false;
    }
  }
  const T kept = static_cast<T>(value);
  const bool same = static_cast<long double>(kept) == static_cast<long double>(value);
  if (!same && value == value) return false;  // NaN stays NaN
  std::memcpy(to, &kept, sizeof(T));
  return true;
}

template <class T>
bool KeepNumber(const Tensor& tensor, void* to) {
  if (tensor.dtype() == DType::kUint64) return Keep<T>(static_cast<uint64_t>(ElementAsInt(tensor, 0)), to);
  return IsFloating(tensor.dtype()) ? Keep<T>(ElementAsDouble(tensor, 0), to) : Keep<T>(ElementAsInt(tensor, 0), to);
}

bool KeepNumber(DType wanted, const Tensor& tensor, void* to) {
  switch (wanted) {
    case DType::kFloat:
      return KeepNumber<float>(tensor, to);
    case DType::kDouble:
      return KeepNumber<double>(tensor, to);
    case DType::kInt8:
      return KeepNumber<int8_t>(tensor, to);
    case DType::kInt16:
      return KeepNumber<int16_t>(tensor, to);
    case DType::kInt32:
      return KeepNumber<int32_t>(tensor, to);
    case DType::kInt64:
      return KeepNumber<int64_t>(tensor, to);
    case DType::kUint8:
      return KeepNumber<uint8_t>(tensor, to);
    case DType::kUint16:
      return KeepNumber<uint16_t>(tensor, to);
    case DType::kUint32:
      return KeepNumber<uint32_t>(tensor, to);
    case DType::kUint64:
      return KeepNumber<uint64_t>(tensor, to);
    default:
      return false;
  }
}

}  // namespace

Status Tensor::CheckOne(DType wanted) const {
  if (valid() && elements() == 1) return Status();
  return InvalidArgument("one {} was asked for, and the tensor has type {} and shape {}", NumpyName(wanted),
                         NumpyName(dtype_), valid() ? shape_.ToString() : "none");
}

Status Tensor::CheckReadable(DType wanted) const {
  if (dtype_ != wanted) {
    return InvalidArgument("elements of type {} were asked for, and the tensor has type {} and shape {}",
                           NumpyName(wanted), NumpyName(dtype_), valid() ? shape_.ToString() : "none");
  }
  if (!on_host()) return FailedPrecondition("a tensor outside host memory cannot be read");
  return Status();
}

Status Tensor::ReadNumber(DType wanted, void* to) const {
  WEIR_TRY(CheckOne(wanted));
  const bool number = IsFloating(dtype_) || IsInteger(dtype_) || dtype_ == DType::kBool;
  if (dtype_ == wanted || !number || !on_host()) {
    WEIR_TRY(CheckReadable(wanted));
    std::memcpy(to, raw(), SizeOf(wanted));
    return Status();
  }
  if (KeepNumber(wanted, *this, to)) return Status();
  return InvalidArgument("one {} was asked for, and the tensor has type {}: {} is no {}", NumpyName(wanted),
                         NumpyName(dtype_), SummarizeValues(1), NumpyName(wanted));
}

}  // namespace weir
