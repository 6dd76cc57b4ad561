// MirrorPad and its gradient.
#include <algorithm>

#include "plugins/functors/mirror_plan.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

struct Mirror : functors::MirrorPlan {
  /// Calls visit(place in the padded array, place in the array) for all places in order.
  template <class Visit>
  void ForEach(Visit visit) const {
    if (std::ranges::any_of(axes, [](const functors::MirroredAxis& axis) { return axis.size() == 0; })) return;
    if (axes.empty()) return visit(0, 0);
    const functors::MirroredAxis& last = axes.back();
    std::vector<int64_t> at(axes.size() - 1, 0);
    int64_t place = 0;
    for (;;) {
      int64_t start = 0;
      for (size_t i = 0; i < at.size(); ++i) start += axes[i].Offset(at[i]);
      for (int64_t i = 0; i < last.size(); ++i) visit(place++, start + last.Offset(i));
      size_t axis = at.size();
      while (axis > 0 && ++at[axis - 1] == axes[axis - 1].size()) at[--axis] = 0;
      if (axis == 0) return;
    }
  }
};

struct MirrorPad {
  Mirror mirror;

  int32_t Prepare(Prep& prep) { return mirror.Plan(prep, prep.shape(0), prep.output(0).shape, "dimension"); }
  void Run(AnyInput input, HostIntegers, AnyOutput output) const {
    ForBytes(sdk::SizeOf(input.dtype()), [&](auto element) {
      using E = decltype(element);
      const auto* from = reinterpret_cast<const E*>(input.data());
      auto* to = reinterpret_cast<E*>(output.data());
      mirror.ForEach([from, to](int64_t padded, int64_t inner) { to[padded] = from[inner]; });
    });
  }
};

struct MirrorPadGrad {
  Mirror mirror;

  int32_t Prepare(Prep& prep) { return mirror.Plan(prep, prep.output(0).shape, prep.shape(0), "output dimension"); }
  template <class T>
  void Run(View<const T> input, HostIntegers, View<T> output) const {
    using C = sdk::Compute<T>;
    const T* from = input.data();
    T* to = output.data();
    std::fill_n(to, output.size(), T());
    mirror.ForEach([from, to](int64_t padded, int64_t inner) {
      to[inner] = static_cast<T>(Sum(static_cast<C>(to[inner]), static_cast<C>(from[padded])));
    });
  }
};

}  // namespace

void AddMirror(sdk::KernelTable& k) {
  k.Add<MirrorPad>("MirrorPad").Restrict("T", kPlainSet | kCommonQuantizedSet).Class(WEIR_CLASS_GATHER);
  k.Add<MirrorPadGrad>("MirrorPadGrad", kNumbers).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::kernels_eigen
