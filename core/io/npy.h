// NumPy's .npy files, the array format of the command line.
#ifndef WEIR_CORE_IO_NPY_H_
#define WEIR_CORE_IO_NPY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::io {

/// Decodes a version 1, 2 or 3 file to a host tensor: booleans, integers, half to double, complex, byte strings ("S",
/// without trailing NULs) and texts ("U", converted to UTF-8); either byte order, C or Fortran order (the tensor is
/// always row-major). InvalidArgument names `path` for another type or a bad header; DataLoss if the data size differs
/// from the header, checked before anything is allocated.
Result<Tensor> DecodeNpy(std::string_view file, const std::string& path);
/// As DecodeNpy, from a file; ResourceExhausted above `limit_bytes`.
Result<Tensor> ReadNpy(const std::string& path, uint64_t limit_bytes = uint64_t{16} << 30);

/// Encodes a version 1 file (2 if the header needs it) in NumPy's format. bfloat16 and float8 become float32, quantised
/// types their integer types, strings an "S" array of the longest string's width. Unimplemented for resources and
/// variants.
Result<std::string> EncodeNpy(const Tensor& tensor);
Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace weir::io

#endif  // WEIR_CORE_IO_NPY_H_
