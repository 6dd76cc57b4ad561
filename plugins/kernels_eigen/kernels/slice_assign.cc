// Assignments to parts of arrays: StridedSliceAssign, ResourceStridedSliceAssign, TensorStridedSliceUpdate.
#include <algorithm>
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

/// The copy of `value`, input 4, which is broadcast, into the selected elements of input 0.
struct SliceAssignPlan {
  StridedCopy copy;

  int32_t Prepare(sdk::Prep& prep) {
    const std::vector<int64_t> whole = DimsOf(prep.shape(0));
    functors::Selection selection;
    if (const int32_t code = selection.Read(prep, 1, whole); code != WEIR_OK) return code;
    std::vector<int64_t> value = DimsOf(prep.shape(4));
    const std::vector<int64_t> value_steps = StepsOf(value);
    const size_t rank = selection.answer.size(), missing = rank - std::min(rank, value.size());
    const size_t surplus = value.size() - std::min(rank, value.size());
    bool fits =
        std::all_of(value.begin(), value.begin() + static_cast<int64_t>(surplus), [](int64_t n) { return n == 1; });
    // Extents of 1 aside, the axes of the answer are those of the array.
    std::vector<int64_t> dims, from, to;
    for (size_t i = 0; i < rank && fits; ++i) {
      const int64_t extent = selection.answer[i];
      const int64_t own = i < missing ? 1 : value[surplus + i - missing];
      fits = own == extent || own == 1;
      if (extent == 1) continue;
      dims.push_back(extent);
      from.push_back(own == 1 ? 0 : value_steps[surplus + i - missing]);
    }
    if (!fits) {
      const weir_shape final{static_cast<uint32_t>(rank), 0, selection.answer.data()};
      return prep.error().InvalidArgument("Cannot broadcast input shape ", prep.shape(4), " into final shape ", final);
    }
    int64_t offset = 0;
    const std::vector<int64_t> steps = selection.Steps(whole, &offset);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (selection.axes[i].count != 1) to.push_back(steps[i]);
    }
    copy.Plan(dims, from, to, sdk::SizeOf(prep.input(4).dtype), 0, offset);
    return WEIR_OK;
  }
};

struct SliceAssign : SliceAssignPlan {
  template <class T>
  void Run(sdk::Variable<T> variable, HostIntegers, HostIntegers, HostIntegers, sdk::View<const T> value) const {
    copy.Run(value.data(), variable.data());
  }
};

struct SliceUpdate : SliceAssignPlan {
  int32_t Prepare(sdk::Prep& prep) {
    prep.MayAlias(0, 0);
    return SliceAssignPlan::Prepare(prep);
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
