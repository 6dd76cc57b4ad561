// Assignments to parts of arrays: StridedSliceAssign, ResourceStridedSliceAssign, TensorStridedSliceUpdate.
#include <cstring>

#include "plugins/functors/strided_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/kernels/strided_copy.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;

struct SliceAssign : functors::SliceAssignPlan<StridedCopy> {
  template <class T>
  void Run(sdk::Variable<T> variable, HostIntegers, HostIntegers, HostIntegers, sdk::View<const T> value) const {
    copy.Run(value.data(), variable.data());
  }
};

struct SliceUpdate : functors::SliceAssignPlan<StridedCopy> {
  int32_t Prepare(sdk::Prep& prep) {
    prep.MayAlias(0, 0);
    return functors::SliceAssignPlan<StridedCopy>::Prepare(prep);
  }
  void Run(AnyInput input, HostIntegers, HostIntegers, HostIntegers, AnyInput value, AnyOutput output) const {
    const size_t bytes = static_cast<size_t>(output.size()) * sdk::SizeOf(output.dtype());
    if (output.data() != input.data() && bytes != 0) std::memcpy(output.data(), input.data(), bytes);
    copy.Run(value.data(), output.data());
  }
};

}  // namespace

void AddSliceAssign(sdk::KernelTable& k) {
  k.Add<SliceAssign>("StridedSliceAssign", kAnyBits).Class(WEIR_CLASS_GATHER);
  k.Add<SliceAssign>("ResourceStridedSliceAssign", kAnyBits).Class(WEIR_CLASS_GATHER);
  k.Add<SliceUpdate>("TensorStridedSliceUpdate").Restrict("T", kPlainSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
