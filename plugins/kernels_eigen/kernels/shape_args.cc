// Arithmetic on shape tensors, and Bitcast: BroadcastArgs, BroadcastGradientArgs, ConcatOffset.
#include "plugins/functors/shape_args.h"

#include <cstring>

#include "plugins/functors/bitcast_plan.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"

namespace weir::kernels_eigen {
namespace {

struct Bitcast : functors::BitcastPlan {
  void Run(sdk::AnyInput input, sdk::AnyOutput output) const {
    if (bytes != 0 && input.data() != output.data()) std::memcpy(output.data(), input.data(), bytes);
  }
};

}  // namespace

void AddShapeArgs(sdk::KernelTable& k) {
  constexpr sdk::Types<int32_t, int64_t> kIndexTypes;
  k.Add<functors::BroadcastArgs>("BroadcastArgs", kIndexTypes).HostOutputs(1).Class(WEIR_CLASS_CONTROL);
  k.Add<functors::BroadcastGradientArgs>("BroadcastGradientArgs", kIndexTypes).HostOutputs(3).Class(WEIR_CLASS_CONTROL);
  k.Add<functors::ConcatOffset>("ConcatOffset", sdk::Attr("shape_type", kIndexTypes))
      .HostOutputs(1)
      .Class(WEIR_CLASS_CONTROL);
  constexpr uint64_t kBits = (kPlainSet | kQuantizedSet) & ~DTypeSet({WEIR_BOOL});
  k.Add<Bitcast>("Bitcast").Restrict("T", kBits).Restrict("type", kBits).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
