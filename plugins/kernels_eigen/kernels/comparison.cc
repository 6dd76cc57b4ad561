// Comparisons and logic, with broadcasting.
#include "plugins/functors/comparison.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/elementwise.h"

namespace weir::kernels_eigen {
namespace {

template <bool kValue>
int32_t ConstantFn(void*, const weir_reg* regs, const weir_env*) noexcept {
  *reinterpret_cast<bool*>(regs[2].data) = kValue;
  return WEIR_OK;
}

/// With incompatible_shape_error false, operands that do not broadcast are unequal as a whole: the result is one
/// scalar.
template <bool kValue>
int32_t PrepareEquality(const sdk::internal::Variant& variant, sdk::Prep& prep, weir_kernel_fn* fn,
                        std::unique_ptr<sdk::internal::State>* state) {
  if (prep.inputs() == 2 && prep.outputs() == 1 && prep.output(0).shape.rank == 0 &&
      !prep.node().Bool("incompatible_shape_error", true) && (prep.size(0) != 1 || prep.size(1) != 1)) {
    *fn = &ConstantFn<kValue>;
    *state = std::make_unique<sdk::internal::State>();
    return WEIR_OK;
  }
  return sdk::internal::PrepareBinary(variant, prep, fn, state);
}

template <class F, class List>
void AddEquality(sdk::KernelTable& k, const char* op, List list) {
  sdk::Kernel& kernel = k.Binary<F>(op, list);
  for (sdk::internal::Variant& variant : kernel.Variants()) variant.prepare = &PrepareEquality<F::kOfDifferentShapes>;
}

}  // namespace

void AddComparison(sdk::KernelTable& k) {
  constexpr auto kComparable = kNumbers + kBool + kQuantized;
  AddEquality<functors::Equal>(k, "Equal", kComparable);
  AddEquality<functors::NotEqual>(k, "NotEqual", kComparable);
  k.Binary<functors::Less>("Less", kReal);
  k.Binary<functors::LessEqual>("LessEqual", kReal);
  k.Binary<functors::Greater>("Greater", kReal);
  k.Binary<functors::GreaterEqual>("GreaterEqual", kReal);
  k.Unary<functors::IsFinite>("IsFinite", kFloating);
  k.Unary<functors::IsNan>("IsNan", kFloating);
  k.Unary<functors::IsInf>("IsInf", kFloating);
  k.Binary<functors::LogicalAnd>("LogicalAnd", sdk::Attr("", kBool));
  k.Binary<functors::LogicalOr>("LogicalOr", sdk::Attr("", kBool));
}

}  // namespace weir::kernels_eigen
