// MirrorPad and its gradient.
#include <algorithm>
#include <string_view>

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

/// One axis of a padded array, and where its places come from in the array itself.
struct MirroredAxis {
  int64_t before = 0, extent = 0, after = 0;
  int64_t skipped = 0;  // 1: a reflection, which does not repeat the end
  int64_t step = 0;     // elements of the array per step along the axis

  int64_t size() const { return before + extent + after; }
  /// Elements in front of place i.
  int64_t Offset(int64_t i) const {
    const int64_t inner = i - before;
    const int64_t mirrored = inner < 0         ? skipped - 1 - inner
                             : inner >= extent ? 2 * extent - 1 - skipped - inner
                                               : inner;
    return mirrored * step;
  }
};

struct Mirror {
  std::vector<MirroredAxis> axes;

  /// `inner` is the operand or result without paddings, whose shape is the other's less the paddings.
  int32_t Plan(Prep& prep, const weir_shape& inner, const weir_shape& padded, std::string_view size_name) {
    std::vector<int64_t> paddings;
    if (const int32_t code = Steering(prep, 1, &paddings); code != WEIR_OK) return code;
    if (paddings.size() != 2 * static_cast<size_t>(inner.rank) || padded.rank != inner.rank) {
      return prep.error().InvalidArgument("The first dimension of paddings must be the rank of inputs", prep.shape(1),
                                          ", ", prep.shape(0));
    }
    const int64_t skipped = prep.node().String("mode") == "REFLECT" ? 1 : 0;
    const std::vector<int64_t> steps = StepsOf(DimsOf(inner));
    for (uint32_t axis = 0; axis < inner.rank; ++axis) {
      const int64_t before = paddings[2 * axis], after = paddings[2 * axis + 1], extent = inner.dims[axis];
      if (before < 0 || after < 0) {
        return prep.error().InvalidArgument("paddings must be non-negative: ", before, " ", after);
      }
      if (before > extent - skipped || after > extent - skipped) {
        return prep.error().InvalidArgument("paddings must be ", skipped != 0 ? "less than" : "no greater than",
                                            " the ", size_name, " size: ", before, ", ", after,
                                            skipped != 0 ? " not less than " : " greater than ", extent);
      }
      if (padded.dims[axis] != extent + before + after) {
        return prep.error().Fail(WEIR_INTERNAL, "shapes ", inner, " and ", padded, " do not fit the paddings ", before,
                                 " and ", after, " of axis ", axis);
      }
      axes.push_back({before, extent, after, skipped, steps[axis]});
    }
    return WEIR_OK;
  }

  /// Calls visit(place in the padded array, place in the array) for all places in order.
  template <class Visit>
  void ForEach(Visit visit) const {
    if (std::ranges::any_of(axes, [](const MirroredAxis& axis) { return axis.size() == 0; })) return;
    if (axes.empty()) return visit(0, 0);
    const MirroredAxis& last = axes.back();
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
