// Tensors padded to one shape.
#ifndef WEIR_CORE_BUILTIN_PADDING_H_
#define WEIR_CORE_BUILTIN_PADDING_H_

#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace weir::builtin {

/// Pads host tensors of one type and rank at their ends with zeros or empty strings, up to the largest extent of each
/// axis. InvalidArgument for different ranks; Unimplemented for a type without plain elements other than strings.
Status PadToLargest(std::vector<Tensor>& tensors);

}  // namespace weir::builtin

#endif  // WEIR_CORE_BUILTIN_PADDING_H_
