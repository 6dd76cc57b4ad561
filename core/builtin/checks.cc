// Ops that check values and fail the step.
#include "core/base/errors.h"
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/tensor/numerics.h"

namespace weir::builtin {
namespace {

Status Assert(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 0));
  WEIR_ASSIGN(const std::span<const bool> condition, Elements<bool>(call, 0, "In[0]"));
  if (call.inputs[0].shape().rank() != 0)
    return InvalidArgument("In[0] should be a scalar: {}", call.inputs[0].shape().ToString());
  if (condition[0]) return Status();
  WEIR_ASSIGN(const int64_t summarize, call.attrs.Int("summarize"));
  std::string data;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    data += (i > 1 ? " " : "") + call.inputs[i].SummarizeValues(summarize);
  }
  return InvalidArgument("assertion failed: {}", data);
}

Status CheckNumerics(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  const Numbers numbers = NumbersOf(call.inputs[0]);
  if (!numbers.fault().empty()) {
    WEIR_ASSIGN(const std::string message, call.attrs.String("message"));
    return InvalidArgument("{} : Tensor had {} values", message, numbers.fault());
  }
  call.outputs[0] = call.inputs[0];
  return Status();
}

}  // namespace

void AddChecks(kernel::KernelRegistry& kernels) {
  kernels.AddHost("Assert", Assert);
  kernels.AddHost("CheckNumerics", CheckNumerics);
}

}  // namespace weir::builtin
