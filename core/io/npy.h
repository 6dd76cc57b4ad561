// NumPy's .npy files, in which people hand arrays to the command line and get them back.
#ifndef WEIR_CORE_IO_NPY_H_
#define WEIR_CORE_IO_NPY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::io {

/// The array of a version 1, 2 or 3 file as a host tensor: booleans, integers, half to double, complex, byte strings
/// ("S", trailing NULs dropped) and texts ("U", as UTF-8), either byte order, C or Fortran order (the tensor is always
/// row-major). InvalidArgument naming `path` for another type or a bad header; DataLoss when the data is not as long as
/// the header says, found before anything is allocated.
Result<Tensor> DecodeNpy(std::string_view file, const std::string& path);
/// The same from a file; ResourceExhausted when it exceeds `limit_bytes`.
Result<Tensor> ReadNpy(const std::string& path, uint64_t limit_bytes = uint64_t{16} << 30);

/// A version 1 file (2 when the header needs it) as NumPy writes it. bfloat16 and float8 become float32, quantised
/// types the integers that hold them, strings an "S" array as wide as the longest. Unimplemented for resources and
/// variants.
Result<std::string> EncodeNpy(const Tensor& tensor);
Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_NPY_H_
