// Values written on the command line.
#ifndef WEIR_TOOLS_WEIR_LITERAL_H_
#define WEIR_TOOLS_WEIR_LITERAL_H_

#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::cli {

/// The tensor that a JSON text stands for: numbers, `true`, `false`, `nan`, `inf`, `-inf` or "text", alone or in arrays
/// of equal lengths ("[[1,2],[3,4]]" has shape [2,2]). InvalidArgument saying what is wrong at which column, for arrays
/// of unequal lengths, and for a value that `dtype` cannot hold; Unimplemented for types that have no literals.
Result<Tensor> ParseLiteral(std::string_view text, DType dtype);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_LITERAL_H_
