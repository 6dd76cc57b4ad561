#include "core/builtin/operands.h"

#include "core/base/errors.h"

namespace weir::builtin {

Status CheckCounts(const kernel::BuiltinCall& call, size_t min_inputs, size_t outputs) {
  if (call.inputs.size() >= min_inputs && call.outputs.size() == outputs) return Status();
  return InvalidArgument("{} wants {} or more inputs and {} outputs, got {} and {}", call.attrs.def().name, min_inputs,
                         outputs, call.inputs.size(), call.outputs.size());
}

Result<std::span<const std::string>> StringVector(const kernel::BuiltinCall& call, size_t i, std::string_view what) {
  if (call.inputs[i].shape().rank() != 1) {
    return InvalidArgument("Input {} should be a 1-D tensor, got shape {}", what, call.inputs[i].shape().ToString());
  }
  return Elements<std::string>(call, i, what);
}

}  // namespace weir::builtin
