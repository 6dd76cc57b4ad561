// Variables updated in place by a tensor of their own shape.
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

template <bool kAdd>
struct Update {
  template <class T>
  int32_t Run(sdk::Env& env, sdk::Variable<T> variable, sdk::View<const T> value) const {
    if (!sdk::SameShape(variable.shape(), value.shape())) {
      return env.error().InvalidArgument("Cannot update variable with shape ", variable.shape(),
                                         " using a Tensor with shape ", value.shape(), ", shapes must be equal.");
    }
    using C = sdk::Compute<T>;
    T* to = variable.data();
    const T* x = value.data();
    const int64_t n = variable.size();
    WEIR_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const C a = static_cast<C>(to[i]), b = static_cast<C>(x[i]);
      to[i] = static_cast<T>(kAdd ? Sum(a, b) : Difference(a, b));
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddAssignAdd(sdk::KernelTable& k) {
  k.Add<Update<true>>("AssignAdd", kNumbers).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Update<false>>("AssignSub", kNumbers).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Update<true>>("AssignAddVariableOp", sdk::Attr("dtype", kNumbers)).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<Update<false>>("AssignSubVariableOp", sdk::Attr("dtype", kNumbers)).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
