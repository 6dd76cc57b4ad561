// Parts of arrays: Slice, StridedSlice with its masks, StridedSliceGrad.
#include <algorithm>
#include <cstring>

#include "plugins/functors/strided_plans.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/strided_copy.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;

struct Slice : functors::SlicePlan<StridedCopy> {
  void Run(AnyInput input, HostIntegers, HostIntegers, AnyOutput output) const {
    copy.Run(input.data(), output.data());
  }
};

struct StridedSlice : functors::StridedSlicePlan<StridedCopy> {
  void Run(AnyInput input, HostIntegers, HostIntegers, HostIntegers, AnyOutput output) const {
    copy.Run(input.data(), output.data());
  }
};

struct StridedSliceGrad : functors::StridedSliceGradPlan<StridedCopy> {
  void Run(HostIntegers, HostIntegers, HostIntegers, HostIntegers, AnyInput dy, AnyOutput output) const {
    const size_t bytes = static_cast<size_t>(output.size()) * sdk::SizeOf(output.dtype());
    if (!covers && bytes != 0) std::memset(output.data(), 0, bytes);
    copy.Run(dy.data(), output.data());
  }
};

}  // namespace

void AddSlice(sdk::KernelTable& k) {
  constexpr uint64_t kSliced = kPlainSet | kCommonQuantizedSet | kFloat8Set;
  k.Add<Slice>("Slice").Restrict("T", kSliced).Class(WEIR_CLASS_GATHER);
  k.Add<StridedSlice>("StridedSlice").Restrict("T", kSliced).Class(WEIR_CLASS_GATHER);
  k.Add<StridedSliceGrad>("StridedSliceGrad").Restrict("T", kSliced).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
