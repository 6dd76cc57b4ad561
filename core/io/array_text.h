// Arrays in NumPy's text form.
#ifndef WEIR_CORE_IO_ARRAY_TEXT_H_
#define WEIR_CORE_IO_ARRAY_TEXT_H_

#include <string>

#include "core/tensor/tensor.h"

namespace weir::io {

/// "[[1.  2.5]\n [3.  4. ]]": at most eight digits after the point, aligned columns, lines of up to 75 characters;
/// above 1000 elements only the first and last three of each axis. Scalars print bare ("1.0"), strings as b'text'.
std::string ArrayText(const Tensor& tensor);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_ARRAY_TEXT_H_
