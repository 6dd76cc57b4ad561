// Arrays made larger: Tile, BroadcastTo, Pad, PadV2.
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
using sdk::Prep;

struct Tile : functors::TilePlan<StridedCopy> {
  void Run(AnyInput input, HostIntegers, AnyOutput output) const { copy.Run(input.data(), output.data()); }
};

struct BroadcastTo : functors::BroadcastToPlan<StridedCopy> {
  void Run(AnyInput input, HostIntegers, AnyOutput output) const { copy.Run(input.data(), output.data()); }
};

struct Pad : functors::PadPlan<StridedCopy> {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  void Run(AnyInput input, HostIntegers, AnyOutput output) const {
    const size_t bytes = static_cast<size_t>(output.size()) * sdk::SizeOf(output.dtype());
    if (pads && bytes != 0) std::memset(output.data(), 0, bytes);
    copy.Run(input.data(), output.data());
  }
};

struct PadV2 : functors::PadPlan<StridedCopy> {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(2).rank == 0) return Plan(prep);
    return prep.error().InvalidArgument("constant_values must be a scalar. Found: ", prep.shape(2));
  }
  void Run(AnyInput input, HostIntegers, AnyInput constant, AnyOutput output) const {
    if (pads) FillWith(constant.data(), output);
    copy.Run(input.data(), output.data());
  }
};

}  // namespace

void AddRepeat(sdk::KernelTable& k) {
  k.Add<Tile>("Tile").Restrict("T", kPlainSet & ~DTypeSet({WEIR_UINT16})).Class(WEIR_CLASS_GATHER);
  k.Add<BroadcastTo>("BroadcastTo").Restrict("T", kPlainSet | kFloat8Set).Class(WEIR_CLASS_GATHER);
  k.Add<PadV2>("PadV2").Restrict("T", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
  k.Add<Pad>("Pad").Restrict("T", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
