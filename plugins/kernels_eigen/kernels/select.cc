// Select, SelectV2 and ClipByValue: elements of one of several tensors.
#include <cstring>

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

/// max(min(t, high), low), so that `low` wins where the limits cross; NaN stays NaN. A limit is a scalar or has t's
/// shape.
struct ClipByValue {
  int64_t low_step = 0, high_step = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &t = prep.shape(0), &low = prep.shape(1), &high = prep.shape(2);
    const auto fits = [&t](const weir_shape& limit) { return limit.rank == 0 || sdk::SameShape(limit, t); };
    if (!fits(low) || !fits(high)) {
      return prep.error().InvalidArgument(
          "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. input shape: ", t,
          "clip_value_min shape: ", low, "clip_value_max shape: ", high);
    }
    low_step = low.rank == 0 ? 0 : 1;
    high_step = high.rank == 0 ? 0 : 1;
    prep.MayAlias(0, 0);
    prep.Tiles(static_cast<uint64_t>(prep.size(0) / sdk::internal::kGrain));
    return WEIR_OK;
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
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(Clipped(static_cast<C>(from[i]), least, most));
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      to[i] = static_cast<T>(
          Clipped(static_cast<C>(from[i]), static_cast<C>(low[i * low_step]), static_cast<C>(high[i * high_step])));
    }
  }

  template <class C>
  static C Clipped(C x, C least, C most) {
    const C below = x > most ? most : x;
    return below < least ? least : below;
  }
};

}  // namespace

void AddSelect(sdk::KernelTable& k) {
  k.Add<Select>("Select", kAnyBits).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<SelectV2>("SelectV2", kAnyBits).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<ClipByValue>("ClipByValue", kReal).Class(WEIR_CLASS_ELEMENTWISE, 2);
}

}  // namespace weir::kernels_eigen
