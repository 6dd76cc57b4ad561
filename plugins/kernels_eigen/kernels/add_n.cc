// AddN and AccumulateNV2: the sum of equally shaped tensors.
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

constexpr int64_t kSumTile = 1024;

struct AddN {
  int32_t Prepare(sdk::Prep& prep) {
    for (uint32_t i = 1; i < prep.inputs(); ++i) {
      if (sdk::SameShape(prep.shape(i), prep.shape(0))) continue;
      return prep.error().InvalidArgument("Inputs to operation ", prep.node().name(), " of type ", prep.node().op(),
                                          " must have the same size and shape.  Input 0: ", prep.shape(0), " != input ",
                                          i, ": ", prep.shape(i));
    }
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }

  // Adds tile by tile: all inputs of a tile are read before the output is written, which may share input 0's buffer.
  template <class T>
  void Run(sdk::Views<const T> values, sdk::View<T> sum) const {
    using C = sdk::Compute<T>;
    C total[kSumTile];
    const int64_t n = sum.size();
    for (int64_t begin = 0; begin < n; begin += kSumTile) {
      const int64_t count = std::min(kSumTile, n - begin);
      for (uint32_t k = 0; k < values.size(); ++k) {
        const T* x = values[k].data() + begin;
        if (k == 0) {
          for (int64_t i = 0; i < count; ++i) total[i] = static_cast<C>(x[i]);
        } else {
          for (int64_t i = 0; i < count; ++i) total[i] = Sum(total[i], static_cast<C>(x[i]));
        }
      }
      for (int64_t i = 0; i < count; ++i) sum[begin + i] = static_cast<T>(total[i]);
    }
  }
};

}  // namespace

void AddAddN(sdk::KernelTable& k) {
  k.Add<AddN>("AddN", kNumbers).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<AddN>("AccumulateNV2", kNumbers).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
