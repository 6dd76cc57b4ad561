// Select, SelectV2 and ClipByValue: elements of one of several tensors.
#include <cstring>

#include "plugins/functors/select_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "sdk/cpp/broadcast.h"
#include "sdk/cpp/elementwise.h"
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

struct Select : functors::SelectPlan {
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

struct ClipByValue : functors::ClipPlan {
  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = ClipPlan::Prepare(prep);
    if (code == WEIR_OK) prep.Tiles(static_cast<uint64_t>(prep.size(0) / sdk::internal::kGrain));
    return code;
  }
  template <class T>
  void Run(sdk::Env& env, View<const T> t, View<const T> low, View<const T> high, View<T> out) const {
    using C = sdk::Compute<T>;
    const auto [begin, end] = env.Range(out.size());
    const T* from = t.data();
    T* to = out.data();
    if (low_step == 0 && high_step == 0 && end > begin) {
      const C least = static_cast<C>(low[0]), most = static_cast<C>(high[0]);
      WEIR_INDEPENDENT
      for (int64_t i = begin; i < end; ++i)
        to[i] = static_cast<T>(functors::Clipped(static_cast<C>(from[i]), least, most));
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      to[i] = static_cast<T>(functors::Clipped(static_cast<C>(from[i]), static_cast<C>(low[i * low_step]),
                                               static_cast<C>(high[i * high_step])));
    }
  }
};

}  // namespace

void AddSelect(sdk::KernelTable& k) {
  k.Add<Select>("Select", kAnyBits).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<SelectV2>("SelectV2", kAnyBits).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<ClipByValue>("ClipByValue", kReal).Class(WEIR_CLASS_ELEMENTWISE, 2);
}

}  // namespace weir::kernels_eigen
