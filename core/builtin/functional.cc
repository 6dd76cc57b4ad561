// Helper ops of lowered functional control flow.
#include "core/builtin/families.h"
#include "core/builtin/operands.h"
#include "core/tensor/number.h"

namespace weir::builtin {
namespace {

Status ToBool(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 1, 1));
  const Tensor& input = call.inputs[0];
  bool answer = input.elements() > 0;
  if (input.shape().rank() == 0 && input.dtype() == DType::kString) {
    answer = !input.as<std::string>()[0].empty();
  } else if (input.shape().rank() == 0) {
    answer = ElementAsComplex(input, 0) != 0.0;
  }
  call.outputs[0] = Tensor::Scalar<bool>(answer);
  return Status();
}

/// Zeros of the declared shape; unknown extents are 0, and an unknown rank gives a scalar.
Status FakeParam(kernel::BuiltinCall& call) {
  WEIR_TRY(CheckCounts(call, 0, 1));
  WEIR_ASSIGN(const DType dtype, call.attrs.Type("dtype"));
  WEIR_ASSIGN(PartialShape declared, call.attrs.ShapeAttr("shape"));
  for (int i = 0; i < declared.rank(); ++i) {
    if (declared.dim(i) < 0) declared.set_dim(i, 0);
  }
  WEIR_ASSIGN(const Shape shape, declared.has_rank() ? declared.ToShape() : Result<Shape>(Shape()));
  WEIR_ASSIGN(call.outputs[0], Tensor::Make(dtype, shape));
  return Status();
}

}  // namespace

void AddFunctional(kernel::KernelRegistry& kernels) {
  kernels.AddHost("ToBool", ToBool);
  kernels.AddHost("FakeParam", FakeParam);
}

}  // namespace weir::builtin
