// String ops.
#include <re2/re2.h>

#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"

namespace weir::builtin {
namespace {

Status StringJoin(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 0, 1));
  WEIR_ASSIGN(const std::string separator, call.attrs.String("separator"));
  // Scalars are broadcast; all other inputs must have one shape.
  Shape shape;
  std::vector<std::span<const std::string>> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    WEIR_ASSIGN(const std::span<const std::string> input, Elements<std::string>(call, i, "inputs"));
    inputs.push_back(input);
    const Shape& own = call.inputs[i].shape();
    if (own.rank() == 0) continue;
    if (shape.rank() != 0 && !(shape == own)) {
      return InvalidArgument("Input shapes do not match: {} vs. {}", shape.ToString(), own.ToString());
    }
    shape = own;
  }
  WEIR_ASSIGN(call.outputs[0], Tensor::Make(DType::kString, shape));
  const std::span<std::string> joined = call.outputs[0].mutable_as<std::string>();
  for (size_t e = 0; e < joined.size(); ++e) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i > 0) joined[e] += separator;
      joined[e] += inputs[i][call.inputs[i].shape().rank() == 0 ? 0 : e];
    }
  }
  return Status();
}

Status StaticRegexFullMatch(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  WEIR_ASSIGN(const std::span<const std::string> texts, Elements<std::string>(call, 0, "input"));
  WEIR_ASSIGN(const std::string pattern, call.attrs.String("pattern"));
  const re2::RE2 regex(pattern, re2::RE2::Quiet);
  if (!regex.ok()) return InvalidArgument("Invalid pattern: {}, error: {}", pattern, regex.error());
  WEIR_ASSIGN(call.outputs[0], Tensor::Make(DType::kBool, call.inputs[0].shape()));
  const std::span<bool> matches = call.outputs[0].mutable_as<bool>();
  for (size_t i = 0; i < matches.size(); ++i) matches[i] = re2::RE2::FullMatch(texts[i], regex);
  return Status();
}

}  // namespace

void AddStrings(kernel::KernelRegistry& kernels) {
  kernels.AddHost("StringJoin", StringJoin);
  kernels.AddHost("StaticRegexFullMatch", StaticRegexFullMatch);
}

}  // namespace weir::builtin
