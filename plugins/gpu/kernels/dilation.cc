// Morphological dilation of images and its gradients. A thread finds the largest sum of a window; the gradients add
// what those sums get in the order of the output, as the CPU does.
#include "plugins/functors/dilation_plan.h"

#include <limits>

#include "plugins/functors/arithmetic.h"
#include "plugins/gpu/kernels/broadcasting.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Prep;

/// The number that a storage keeps of x.
template <class S>
WEIR_HD typename S::C Rounded(const S& storage, typename S::C x) {
  uint64_t bits = 0;
  char* const place = reinterpret_cast<char*>(&bits);
  storage.Store(place, 0, x);
  return storage.Load(place, 0);
}
/// The least finite number of a storage.
template <class T>
WEIR_HD T LeastFinite(const Exact<T>&) {
  return std::numeric_limits<T>::lowest();
}
WEIR_HD inline float LeastFinite(const Float16& storage) { return storage.brain ? -0x1.fep127f : -65504.0f; }

/// The first largest sum of a window; places are -1 if no sum is larger than the least number.
template <class C>
struct LargestSum {
  C value;
  int64_t image, filter;
};

template <class S>
struct Dilated {
  using C = typename S::C;
  Ptr<const char> x, w;
  sdk::WindowAxis height, width;
  int64_t channels;
  Divider divider;
  S storage;

  /// Of element i of the output. Sums are rounded to the element type before they are compared.
  WEIR_GPU_FN LargestSum<C> At(int64_t i) const {
    const int64_t channel = divider.Split(i, channels), column = divider.Split(i, width.output),
                  row = divider.Split(i, height.output);
    LargestSum<C> largest{LeastFinite(storage), -1, -1};
    for (int64_t a = 0; a < height.window; ++a) {
      const int64_t y = row * height.stride - height.before + a * height.dilation;
      if (y < 0 || y >= height.input) continue;
      for (int64_t b = 0; b < width.window; ++b) {
        const int64_t place = column * width.stride - width.before + b * width.dilation;
        if (place < 0 || place >= width.input) continue;
        const int64_t image = ((i * height.input + y) * width.input + place) * channels + channel,
                      filter = (a * width.window + b) * channels + channel;
        const C sum = Rounded(storage, functors::Sum(storage.Load(x.get(), image), storage.Load(w.get(), filter)));
        if (sum > largest.value) largest = {sum, image, filter};
      }
    }
    return largest;
  }
};

template <class S>
struct DilateWork {
  Dilated<S> sums;
  Ptr<char> y;
  WEIR_GPU_FN void operator()(int64_t i) const { sums.storage.Store(y.get(), i, sums.At(i).value); }
};

/// The element that gets the gradient of element i of the output.
template <class S, bool kFilter>
struct DilatedKey {
  Dilated<S> sums;
  WEIR_GPU_FN uint64_t operator()(int64_t i) const {
    const auto largest = sums.At(i);
    return static_cast<uint64_t>(kFilter ? largest.filter : largest.image);  // -1 is kNowhere
  }
};

template <class S>
Dilated<S> DilatedBy(const functors::DilationPlan& plan, const AnyInput& x, const AnyInput& w, int64_t n, S storage) {
  return {From(x), From(w), plan.windows.axes[0], plan.windows.axes[1], plan.channels, Divider::For(n), storage};
}

struct Dilation2D : functors::DilationPlan {
  int32_t Prepare(Prep& prep) { return Plan(prep, false); }
  int32_t Run(Env& env, AnyInput x, AnyInput w, AnyOutput y) const {
    if (empty) return WEIR_OK;
    int32_t code = WEIR_OK;
    const int64_t n = y.size();
    WithStorage<kFloats>(y.dtype(), [&](auto storage) {
      code = Launch(env, n, DilateWork<decltype(storage)>{DilatedBy(*this, x, w, n, storage), To(y)});
    });
    return code;
  }
};

template <bool kFilter>
struct DilationGrad : functors::DilationPlan {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep, true);
    if (code == WEIR_OK && !empty) prep.Scratch(SortBytes(prep.size(2)));
    return code;
  }
  int32_t Run(Env& env, AnyInput x, AnyInput w, AnyInput dy, AnyOutput to, sdk::Scratch<char> scratch) const {
    if (functors::HasNoElements(to.shape())) return WEIR_OK;
    int32_t code = Fill(env, to.data(), 0, static_cast<uint64_t>(to.size()) * sdk::SizeOf(to.dtype()));
    if (code != WEIR_OK || empty) return code;
    const int64_t n = dy.size();
    const Ptr<const KeyedPlace> order(reinterpret_cast<const KeyedPlace*>(scratch.data()));
    WithStorage<kFloats>(to.dtype(), [&](auto storage) {
      using S = decltype(storage);
      using Change = ElementChange<functors::Add, S>;
      const DilatedKey<S, kFilter> key{DilatedBy(*this, x, w, n, storage)};
      code = SortPlaces(StreamOf(env), n, scratch.data(), key, env.error());
      if (code != WEIR_OK) return;
      code = Launch(env, n, ChangedRowsWork<Change>{order, n, 1, Change{From(dy), To(to), 1, storage}});
    });
    return code;
  }
};

}  // namespace

void AddDilation(sdk::KernelTable& k) {
  k.Add<Dilation2D>("Dilation2D").Restrict("T", kFloatingBits).Class(WEIR_CLASS_CONV);
  k.Add<DilationGrad<false>>("Dilation2DBackpropInput").Restrict("T", kFloatingBits).Class(WEIR_CLASS_CONV);
  k.Add<DilationGrad<true>>("Dilation2DBackpropFilter").Restrict("T", kFloatingBits).Class(WEIR_CLASS_CONV);
}

}  // namespace weir::gpu
