// Kernels on shapes and on keys of random generators, whose operands lie in host memory as in TensorFlow: they enqueue
// nothing.
#include "plugins/functors/shape_args.h"

#include "plugins/functors/generator_state.h"
#include "plugins/gpu/kernels/families.h"

namespace weir::gpu {
namespace {

struct InvertPermutation {
  template <class T>
  int32_t Run(sdk::Env& env, sdk::Host<const T> x, sdk::View<T> y) const {
    return functors::InvertPermutation(env, x, y);
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
  k.Add<InvertPermutation>("InvertPermutation", kIndexTypes).HostOutputs(1).Class(WEIR_CLASS_CONTROL);
  const auto seeds = sdk::Attr("Tseed", functors::kSeedTypes);
  k.Add<functors::KeyCounter>("StatelessRandomGetKeyCounter", seeds).HostOutputs(3).Class(WEIR_CLASS_CONTROL);
  k.Add<functors::KeyCounterAlgorithm>("StatelessRandomGetKeyCounterAlg", seeds)
      .HostOutputs(7)
      .Class(WEIR_CLASS_CONTROL);
  k.Add<functors::DeviceAlgorithm>("StatelessRandomGetAlg").HostOutputs(1).Class(WEIR_CLASS_CONTROL);
}

}  // namespace weir::gpu
