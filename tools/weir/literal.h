// Values written on the command line.
#ifndef WEIR_TOOLS_WEIR_LITERAL_H_
#define WEIR_TOOLS_WEIR_LITERAL_H_

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::cli {

/// Converts a JSON text to a tensor: numbers, `true`, `false`, `nan`, `inf`, `-inf` or "text", alone or in arrays of
/// equal lengths ("[[1,2],[3,4]]" has shape [2,2]); or a shape with a type and the value of all elements, "2x3xf32=0.5"
/// ("f32=1" a scalar). InvalidArgument, with the fault and its column, for syntax errors,
/// for arrays of unequal lengths, and for a value that `dtype` cannot represent; Unimplemented for types without
/// literals.
Result<Tensor> ParseLiteral(std::string_view text, DType dtype);

/// The type as such a literal names it: "f32", "bf16", "i64", "u8", "i1" for bool, else its own name.
std::string ShortName(DType dtype);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_LITERAL_H_
