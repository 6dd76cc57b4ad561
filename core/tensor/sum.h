// Sums of host tensors, for resources that accumulate writes.
#ifndef WEIR_CORE_TENSOR_SUM_H_
#define WEIR_CORE_TENSOR_SUM_H_

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir {

/// Element-wise a + b of host tensors of equal shape and equal integer, floating, complex or variant type. 16-bit
/// floats are added as float and rounded; integers wrap. InvalidArgument for different shapes or types, Unimplemented
/// for other types.
Result<Tensor> Sum(const Tensor& a, const Tensor& b);

/// Zeros, empty strings or false of a type and shape; InvalidArgument for types without a zero value.
Result<Tensor> Zeros(DType dtype, const Shape& shape);
/// Zeros of the tensor's type and shape; variants use VariantValue::ZerosLike.
Result<Tensor> ZerosLike(const Tensor& tensor);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SUM_H_
