// Select and SelectV2: elements of one of two tensors, by a condition.
#include <cstring>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/broadcast.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::boolean;
using sdk::View;

/// Condition, then and else broadcast against each other.
struct SelectV2 {
  sdk::Broadcast<3> plan;

  int32_t Prepare(sdk::Prep& prep) {
    if (!plan.Plan({prep.shape(0), prep.shape(1), prep.shape(2)}, prep.output(0).shape)) {
      return prep.error().InvalidArgument("condition ", prep.shape(0), ", then ", prep.shape(1), " and else ",
                                          prep.shape(2), " must be broadcastable to ", prep.output(0).shape);
    }
    const int64_t n = sdk::SizeOf(prep.output(0).shape);
    for (const uint32_t i : {1u, 2u}) {
      if (prep.size(i) == n) prep.MayAlias(i, 0);
    }
    return WEIR_OK;
  }

  template <class T>
  void Run(View<const boolean> condition, View<const T> yes, View<const T> no, View<T> out) const {
    if (out.size() == 0) return;
    T* to = out.data();
    plan.ForRuns(0, plan.runs, [&](const std::array<int64_t, 3>& at) {
      const boolean* c = condition.data() + at[0];
      const T* t = yes.data() + at[1];
      const T* e = no.data() + at[2];
      if (plan.advances[0] && plan.advances[1] && plan.advances[2]) {
        for (int64_t i = 0; i < plan.run; ++i) to[i] = c[i] ? t[i] : e[i];
      } else {
        const int64_t cs = plan.advances[0], ts = plan.advances[1], es = plan.advances[2];
        for (int64_t i = 0; i < plan.run; ++i) to[i] = c[i * cs] ? t[i * ts] : e[i * es];
      }
      to += plan.run;
      return true;
    });
  }
};

/// The older form: then and else have the same shape; the condition has it too, or is a scalar, or selects whole rows.
struct Select {
  int64_t row = 1;  // elements per condition value

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &condition = prep.shape(0), &yes = prep.shape(1);
    if (!sdk::SameShape(yes, prep.shape(2))) {
      return prep.error().InvalidArgument("'then' and 'else' must have the same size.  but received: ", yes, " vs. ",
                                          prep.shape(2));
    }
    const int64_t n = sdk::SizeOf(yes), conditions = sdk::SizeOf(condition);
    const bool fits = sdk::SameShape(condition, yes) || condition.rank == 0 ||
                      (condition.rank == 1 && yes.rank >= 1 && condition.dims[0] == yes.dims[0]);
    if (!fits) {
      return prep.error().InvalidArgument(
          "'cond' must be a scalar, a vector as long as the first dimension of 'then', or "
          "of its shape: got ",
          condition, " for ", yes);
    }
    row = conditions == 0 ? 0 : n / conditions;
    prep.MayAlias(1, 0);
    prep.MayAlias(2, 0);
    return WEIR_OK;
  }

  template <class T>
  void Run(View<const boolean> condition, View<const T> yes, View<const T> no, View<T> out) const {
    const int64_t n = out.size();
    T* to = out.data();
    if (row == 1) {
      for (int64_t i = 0; i < n; ++i) to[i] = condition[i] ? yes[i] : no[i];
      return;
    }
    for (int64_t i = 0; row != 0 && i * row < n; ++i) {
      std::memmove(to + i * row, (condition[i] ? yes : no).data() + i * row, static_cast<size_t>(row) * sizeof(T));
    }
  }
};

}  // namespace

void AddSelect(sdk::KernelTable& k) {
  k.Add<Select>("Select", kAnyBits).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<SelectV2>("SelectV2", kAnyBits).Class(WEIR_CLASS_ELEMENTWISE);
}

}  // namespace weir::kernels_eigen
