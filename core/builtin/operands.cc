#include "core/builtin/operands.h"

#include <algorithm>
#include <vector>

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

std::string ListText(std::span<const DType> types) {
  std::string text;
  for (const DType type : types) text += (text.empty() ? "" : ", ") + Name(type);
  return text;
}

std::string ListText(std::span<const PartialShape> shapes) {
  std::string text;
  for (const PartialShape& shape : shapes) text += (text.empty() ? "" : ",") + shape.ToString();
  return "[" + text + "]";
}

Status CheckSignature(const kernel::BuiltinCall& call, std::span<const DType> wanted_inputs,
                      std::span<const DType> outputs, std::span<const DType> wanted_outputs) {
  std::vector<DType> inputs;
  for (size_t i = 1; i < call.inputs.size(); ++i) inputs.push_back(call.inputs[i].dtype());
  if (std::ranges::equal(inputs, wanted_inputs) && std::ranges::equal(outputs, wanted_outputs)) return Status();
  const std::string_view handle = call.inputs[0].dtype() == DType::kResource ? "resource" : "string_ref";
  const auto text = [&](std::span<const DType> in, std::span<const DType> out) {
    return fmt::format("{}{}{}->{}", handle, in.empty() ? "" : ", ", ListText(in), ListText(out));
  };
  return InvalidArgument("Signature mismatch, have: {} expected: {}", text(inputs, outputs),
                         text(wanted_inputs, wanted_outputs));
}

}  // namespace weir::builtin
