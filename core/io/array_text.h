// Arrays as NumPy prints them, which is how TensorFlow's users are used to see tensors.
#ifndef WEIR_CORE_IO_ARRAY_TEXT_H_
#define WEIR_CORE_IO_ARRAY_TEXT_H_

#include <string>

#include "core/tensor/tensor.h"

namespace weir::io {

/// "[[1.  2.5]\n [3.  4. ]]": eight digits behind the point at most, columns aligned, lines up to 75 characters, beyond
/// 1000 elements the first and last three of each dimension. Scalars print bare ("1.0"), strings as b'text'.
std::string ArrayText(const Tensor& tensor);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_ARRAY_TEXT_H_
