// Positions and extents of axes in another format of images: DataFormatDimMap, DataFormatVecPermute.
#include "plugins/functors/layout_plans.h"

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::Env;
using sdk::View;

constexpr size_t kMostFormatAxes = 8;

/// For each axis its place in the other format.
struct AxisPlaces {
  int64_t count = 0;
  int64_t at[kMostFormatAxes] = {};
  /// Element i is the place in `in` of axis i of `of`.
  static AxisPlaces Of(const std::string& of, const std::string& in) {
    AxisPlaces places;
    for (const char axis : of) places.at[places.count++] = static_cast<int64_t>(in.find(axis));
    return places;
  }
};

template <class T>
struct DimMapWork {
  Ptr<const T> x;
  Ptr<T> y;
  AxisPlaces places;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t axis = (x[i] % places.count + places.count) % places.count;
    y[i] = static_cast<T>(places.at[axis]);
  }
};
/// As in TensorFlow, axes out of range wrap around.
struct DimMap : functors::DimMapPlan {
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<T> y) const {
    return Launch(env, x.size(), DimMapWork<T>{x.data(), y.data(), AxisPlaces::Of(from, to)});
  }
};

template <class T>
struct VecPermuteWork {
  Ptr<const T> x;
  Ptr<T> y;
  int64_t row;
  AxisPlaces places;
  WEIR_GPU_FN void operator()(int64_t i) const { y[i] = x[places.at[i / row] * row + i % row]; }
};
struct VecPermute : functors::VecPermutePlan {
  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = VecPermutePlan::Prepare(prep);
    if (code != WEIR_OK || to.size() <= kMostFormatAxes) return code;
    return prep.error().Unimplemented("formats of more than ", kMostFormatAxes, " axes");
  }
  template <class T>
  int32_t Run(Env& env, View<const T> x, View<T> y) const {
    const int64_t row = x.rank() == 2 ? 2 : 1;
    return Launch(env, y.size(), VecPermuteWork<T>{x.data(), y.data(), row, AxisPlaces::Of(to, from)});
  }
};

}  // namespace

void AddLayouts(sdk::KernelTable& k) {
  constexpr sdk::Types<int32_t, int64_t> kIndexTypes;
  k.Add<DimMap>("DataFormatDimMap", kIndexTypes).Class(WEIR_CLASS_GATHER);
  k.Add<VecPermute>("DataFormatVecPermute", kIndexTypes).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::gpu
