// The text form of tensors in NumPy's layout; see also Tensor::SummarizeValues.
#ifndef WEIR_CORE_TENSOR_SUMMARIZE_H_
#define WEIR_CORE_TENSOR_SUMMARIZE_H_

#include <cstdint>
#include <string>

#include "core/tensor/tensor.h"

namespace weir {

/// A host tensor in NumPy's layout, one row per line: "3", "[0 1 2 ... 7 8 9]", "[[1 2]\n [3 4.5]]"; strings are
/// quoted. Shows `ends` elements from each end of every axis, or all if negative.
std::string LaidOut(const Tensor& tensor, int64_t ends = 3);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SUMMARIZE_H_
