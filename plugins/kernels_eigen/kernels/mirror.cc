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

/// Where each place of a padded array comes from in the array itself.
struct Mirror {
  std::vector<std::vector<int64_t>> from;  // by axis and padded index: elements before it in the array

  /// `inner` is the operand or result without paddings, whose shape is the other's less the paddings.
  int32_t Plan(Prep& prep, const weir_shape& inner, const weir_shape& padded, std::string_view size_name) {
    std::vector<int64_t> paddings;
    if (const int32_t code = Steering(prep, 1, &paddings); code != WEIR_OK) return code;
    if (paddings.size() != 2 * static_cast<size_t>(inner.rank) || padded.rank != inner.rank) {
      return prep.error().InvalidArgument("The first dimension of paddings must be the rank of inputs", prep.shape(1),
                                          ", ", prep.shape(0));
    }
    // A reflection does not repeat the end.
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
      std::vector<int64_t>& places = from.emplace_back();
      for (int64_t i = before; i > 0; --i) places.push_back((i - 1 + skipped) * steps[axis]);
      for (int64_t i = 0; i < extent; ++i) places.push_back(i * steps[axis]);
      for (int64_t i = 0; i < after; ++i) places.push_back((extent - 1 - skipped - i) * steps[axis]);
    }
    return WEIR_OK;
  }

  /// Calls visit(place in the padded array, place in the array) for all places in order.
  template <class Visit>
  void ForEach(Visit visit) const {
    if (std::ranges::any_of(from, [](const auto& places) { return places.empty(); })) return;
    const size_t axes = from.size();
    const std::vector<int64_t> scalar = {0};
    const std::vector<int64_t>& last = axes == 0 ? scalar : from.back();
    std::vector<size_t> at(axes, 0);
    int64_t place = 0;
    for (;;) {
      int64_t start = 0;
      for (size_t axis = 0; axis + 1 < axes; ++axis) start += from[axis][at[axis]];
      for (const int64_t offset : last) visit(place++, start + offset);
      size_t axis = axes < 2 ? 0 : axes - 1;
      while (axis > 0 && ++at[axis - 1] == from[axis - 1].size()) at[--axis] = 0;
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
