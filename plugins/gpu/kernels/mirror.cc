// MirrorPad and its gradient: a thread for each element of the result.
#include "plugins/functors/mirror_plan.h"

#include "plugins/functors/arithmetic.h"
#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::MirroredAxis;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

/// functors::MirrorPlan on the device.
struct MirrorShape {
  static constexpr uint32_t kMostAxes = 8;
  uint32_t rank = 0;
  MirroredAxis axes[kMostAxes] = {};
  int64_t steps[kMostAxes] = {};  // of the padded array
  Divider divider;

  static int32_t Check(const Prep& prep, const functors::MirrorPlan& plan) {
    if (plan.axes.size() <= kMostAxes) return WEIR_OK;
    return prep.error().Unimplemented("arrays with more than ", kMostAxes, " axes");
  }
  MirrorShape(const functors::MirrorPlan& plan, int64_t largest)
      : rank(static_cast<uint32_t>(plan.axes.size())), divider(Divider::For(largest)) {
    int64_t step = 1;
    for (uint32_t d = rank; d-- > 0;) {
      axes[d] = plan.axes[d];
      steps[d] = step;
      step *= axes[d].size();
    }
  }
};

template <class E>
struct MirrorWork {
  Ptr<const E> from;
  Ptr<E> to;
  MirrorShape shape;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t rest = i, at = 0;
    for (uint32_t d = shape.rank; d-- > 0;) at += shape.axes[d].Offset(shape.divider.Split(rest, shape.axes[d].size()));
    to[i] = from[at];
  }
};

/// The places of an axis that come from one element, in order: its image in front, itself, its image behind.
struct Images {
  int64_t at[3];
  int count = 0;
  WEIR_GPU_FN Images(const MirroredAxis& axis, int64_t element) {
    const int64_t front = axis.before + axis.skipped - 1 - element;
    const int64_t behind = axis.before + 2 * axis.extent - 1 - axis.skipped - element;
    if (front >= 0 && front < axis.before) at[count++] = front;
    at[count++] = axis.before + element;
    if (behind >= axis.before + axis.extent && behind < axis.size()) at[count++] = behind;
  }
};

/// The sum of an element's images, in the element type and the order of the CPU's.
template <class S>
struct MirrorGradWork {
  Ptr<const char> dy;
  Ptr<char> dx;
  MirrorShape shape;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    int64_t element[MirrorShape::kMostAxes], rest = i;
    for (uint32_t d = shape.rank; d-- > 0;) element[d] = shape.divider.Split(rest, shape.axes[d].extent);
    int image[MirrorShape::kMostAxes] = {};
    storage.Store(dx.get(), i, typename S::C{});
    while (true) {
      int64_t at = 0;
      for (uint32_t d = 0; d < shape.rank; ++d) {
        at += Images(shape.axes[d], element[d]).at[image[d]] * shape.steps[d];
      }
      storage.Store(dx.get(), i, functors::Sum(storage.Load(dx.get(), i), storage.Load(dy.get(), at)));
      uint32_t d = shape.rank;
      while (d > 0 && ++image[d - 1] == Images(shape.axes[d - 1], element[d - 1]).count) image[--d] = 0;
      if (d == 0) return;
    }
  }
};

struct MirrorPadding {
  functors::MirrorPlan plan;

  int32_t Prepare(Prep& prep) {
    const int32_t code = plan.Plan(prep, prep.shape(0), prep.output(0).shape, "dimension");
    return code != WEIR_OK ? code : MirrorShape::Check(prep, plan);
  }
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput y) const {
    if (functors::HasNoElements(y.shape())) return WEIR_OK;
    const int64_t n = y.size();
    return functors::ForBytes(sdk::SizeOf(y.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(env, n,
                    MirrorWork<E>{static_cast<const E*>(x.data()), static_cast<E*>(y.data()), MirrorShape(plan, n)});
    });
  }
};

struct MirrorPaddingGrad {
  functors::MirrorPlan plan;

  int32_t Prepare(Prep& prep) {
    const int32_t code = plan.Plan(prep, prep.output(0).shape, prep.shape(0), "output dimension");
    return code != WEIR_OK ? code : MirrorShape::Check(prep, plan);
  }
  int32_t Run(Env& env, AnyInput dy, HostIntegers, AnyOutput dx) const {
    if (functors::HasNoElements(dx.shape())) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers | kComplexes>(dx.dtype(), [&](auto storage) {
      code = Launch(env, dx.size(),
                    MirrorGradWork<decltype(storage)>{From(dy), To(dx), MirrorShape(plan, dy.size()), storage});
    });
    return code;
  }
};

}  // namespace

void AddMirror(sdk::KernelTable& k) {
  k.Add<MirrorPadding>("MirrorPad").Restrict("T", functors::kPlainSet).Class(WEIR_CLASS_GATHER);
  k.Add<MirrorPaddingGrad>("MirrorPadGrad").Restrict("T", kNumberBits).Class(WEIR_CLASS_GATHER);
}

}  // namespace weir::gpu
