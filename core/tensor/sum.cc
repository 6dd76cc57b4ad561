#include "core/tensor/sum.h"

#include <complex>
#include <cstring>
#include <type_traits>

#include "core/base/errors.h"
#include "core/tensor/number.h"
#include "core/tensor/variant.h"

namespace weir {
namespace {

template <class T>
T AddOne(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

/// Adds as T the elements of tensors whose element size is sizeof(T).
template <class T, class Add>
void AddElements(const Tensor& a, const Tensor& b, Tensor& sum, const Add& add) {
  const auto* const left = reinterpret_cast<const T*>(a.raw());
  const auto* const right = reinterpret_cast<const T*>(b.raw());
  auto* const to = reinterpret_cast<T*>(sum.mutable_raw());
  for (int64_t i = 0; i < sum.elements() && to != nullptr; ++i) to[i] = add(left[i], right[i]);
}
template <class T>
void AddAs(const Tensor& a, const Tensor& b, Tensor& sum) {
  AddElements<T>(a, b, sum, AddOne<T>);
}

Status AddVariants(const Tensor& a, const Tensor& b, Tensor& sum) {
  const auto left = a.as<Variant>(), right = b.as<Variant>();
  const auto to = sum.mutable_as<Variant>();
  for (size_t i = 0; i < to.size(); ++i) {
    if (!left[i].value || !right[i].value) return InvalidArgument("a variant without a value cannot be added");
    WEIR_ASSIGN(to[i], left[i].value->Add(*right[i].value));
  }
  return Status();
}

Status AddInto(const Tensor& a, const Tensor& b, Tensor& sum) {
  switch (a.dtype()) {
    case DType::kFloat:
      return AddAs<float>(a, b, sum), Status();
    case DType::kDouble:
      return AddAs<double>(a, b, sum), Status();
    case DType::kComplex64:
      return AddAs<std::complex<float>>(a, b, sum), Status();
    case DType::kComplex128:
      return AddAs<std::complex<double>>(a, b, sum), Status();
    case DType::kHalf:
      AddElements<uint16_t>(a, b, sum,
                            [](uint16_t x, uint16_t y) { return FloatToHalf(HalfToFloat(x) + HalfToFloat(y)); });
      return Status();
    case DType::kBfloat16:
      AddElements<uint16_t>(
          a, b, sum, [](uint16_t x, uint16_t y) { return FloatToBfloat16(Bfloat16ToFloat(x) + Bfloat16ToFloat(y)); });
      return Status();
    case DType::kInt8:
    case DType::kUint8:
      return AddAs<uint8_t>(a, b, sum), Status();
    case DType::kInt16:
    case DType::kUint16:
      return AddAs<uint16_t>(a, b, sum), Status();
    case DType::kInt32:
    case DType::kUint32:
      return AddAs<uint32_t>(a, b, sum), Status();
    case DType::kInt64:
    case DType::kUint64:
      return AddAs<uint64_t>(a, b, sum), Status();
    case DType::kVariant:
      return AddVariants(a, b, sum);
    default:
      return Unimplemented("tensors of type {} cannot be added up", Name(a.dtype()));
  }
}

}  // namespace

Result<Tensor> Sum(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) {
    return InvalidArgument("cannot add {} {} and {} {}, wanted one type and shape", Name(a.dtype()),
                           a.shape().ToString(), Name(b.dtype()), b.shape().ToString());
  }
  if (!a.on_host() || !b.on_host()) return InvalidArgument("only host tensors are added up");
  WEIR_ASSIGN(Tensor sum, Tensor::Make(a.dtype(), a.shape()));
  if (sum.elements() > 0) WEIR_TRY(AddInto(a, b, sum));
  return sum;
}

Result<Tensor> Zeros(DType dtype, const Shape& shape) {
  if (dtype == DType::kResource || dtype == DType::kVariant) {
    return InvalidArgument("there are no zeros of type {}", Name(dtype));
  }
  WEIR_ASSIGN(Tensor zeros, Tensor::Make(dtype, shape));
  if (zeros.bytes() > 0) std::memset(zeros.mutable_raw(), 0, zeros.bytes());
  return zeros;
}

Result<Tensor> ZerosLike(const Tensor& tensor) {
  if (tensor.dtype() != DType::kVariant) return Zeros(tensor.dtype(), tensor.shape());
  WEIR_ASSIGN(Tensor zeros, Tensor::Make(DType::kVariant, tensor.shape()));
  const auto from = tensor.as<Variant>();
  const auto to = zeros.mutable_as<Variant>();
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].value) return InvalidArgument("a variant without a value has no zeros");
    WEIR_ASSIGN(to[i], from[i].value->ZerosLike());
  }
  return zeros;
}

}  // namespace weir
