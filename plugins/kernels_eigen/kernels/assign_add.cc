// In-place updates of variables: by a tensor of the same shape, or as counters.
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

template <bool kAdd>
struct Update {
  int32_t Prepare(sdk::Prep& prep) {
    if (sdk::SameShape(prep.shape(0), prep.shape(1))) {
      prep.Tiles(static_cast<uint64_t>(prep.size(0) / sdk::internal::kGrain));
      return WEIR_OK;
    }
    // The form for references, which returns the reference, has a different text.
    if (prep.outputs() > 0) return prep.error().InvalidArgument("Parameters and update must be the same size");
    return prep.error().InvalidArgument("Cannot update variable with shape ", prep.shape(0),
                                        " using a Tensor with shape ", prep.shape(1), ", shapes must be equal.");
  }

  template <class T>
  void Run(const sdk::Env& env, sdk::Variable<T> variable, sdk::View<const T> value) const {
    using C = sdk::Compute<T>;
    T* to = variable.data();
    const T* x = value.data();
    const auto [begin, end] = env.Range(variable.size());
    WEIR_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) {
      const C a = static_cast<C>(to[i]), b = static_cast<C>(x[i]);
      to[i] = static_cast<T>(kAdd ? Sum(a, b) : Difference(a, b));
    }
  }
};

/// Returns the variable's value and adds one to it, unless it has reached the limit.
struct CountUpTo {
  int64_t limit = 0;

  int32_t Prepare(sdk::Prep& prep) {
    limit = prep.node().Int("limit");
    if (prep.shape(0).rank == 0) return WEIR_OK;
    return prep.error().InvalidArgument("input is not a scalar: ", prep.shape(0));
  }

  template <class T>
  int32_t Run(sdk::Env& env, sdk::Variable<T> counter, sdk::View<T> value) const {
    if (counter[0] >= limit) return env.error().Fail(WEIR_OUT_OF_RANGE, "Reached limit of ", limit);
    value[0] = counter[0]++;
    return WEIR_OK;
  }
};

}  // namespace

void AddAssignAdd(sdk::KernelTable& k) {
  k.Add<Update<true>>("AssignAdd", kNumbers).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Update<false>>("AssignSub", kNumbers).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Update<true>>("AssignAddVariableOp", sdk::Attr("dtype", kNumbers)).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Update<false>>("AssignSubVariableOp", sdk::Attr("dtype", kNumbers)).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<CountUpTo>("CountUpTo", kIndex).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<CountUpTo>("ResourceCountUpTo", kIndex).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
