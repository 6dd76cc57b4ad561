// Text forms of tensors that TensorFlow's printing ops use, beside Tensor::SummarizeValues.
#ifndef WEIR_CORE_TENSOR_SUMMARIZE_H_
#define WEIR_CORE_TENSOR_SUMMARIZE_H_

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace weir {

/// A host tensor with a row per line, as NumPy lays it out: "3", "[0 1 2 ... 7 8 9]", "[[1 2]\n [3 4.5]]"; strings in
/// quotes. Of each axis `ends` elements from either end, or every one when it is negative.
std::string LaidOut(const Tensor& tensor, int64_t ends = 3);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SUMMARIZE_H_
