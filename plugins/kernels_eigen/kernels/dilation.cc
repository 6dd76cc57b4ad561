// Morphological dilation of images and its gradients.
#include <algorithm>
#include <limits>

#include "plugins/functors/dilation_plan.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/images.h"
#include "plugins/kernels_eigen/kernels/patches.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

/// The least finite number of a type.
template <class T>
sdk::Compute<T> LeastOf() {
  if constexpr (std::is_same_v<T, sdk::half>) return -65504.0f;
  if constexpr (std::is_same_v<T, sdk::bfloat16>) return -0x1.fep127f;
  return std::numeric_limits<sdk::Compute<T>>::lowest();
}

/// The first largest sum of a window: its value, and the elements of the image and of the filter that it is of; -1 if
/// no sum is larger than the least number.
template <class C>
struct Largest {
  C value;
  int64_t image = -1, filter = -1;
};

struct Morphology {
  Patches patches;
  int64_t places = 0;  // of all images; 0 if there is nothing to compute
  int64_t channels = 0;

  int32_t Plan(sdk::Prep& prep, bool gradient) {
    functors::DilationPlan plan;
    if (const int32_t code = plan.Plan(prep, gradient); code != WEIR_OK || plan.empty) return code;
    channels = plan.channels;
    patches = Patches::Of(plan.windows);
    places = plan.windows.batch * patches.Places();
    return WEIR_OK;
  }

  /// Calls visit(element of y, largest sum) for all elements of y. Sums are rounded to T before they are compared.
  template <class T, class Visit>
  void ForLargest(const T* x, const T* w, Visit&& visit) const {
    using C = sdk::Compute<T>;
    if (places == 0) return;
    Place place(patches, 0);
    for (int64_t i = 0; i < places; ++i, place.Next(patches)) {
      for (int64_t c = 0; c < channels; ++c) {
        Largest<C> largest{LeastOf<T>()};
        ForTapRows(
            patches, place,
            [&](int64_t taps, int64_t run, int64_t offset, int64_t step) {
              for (int64_t t = 0; t < run; ++t) {
                const int64_t image = offset + t * step + c, filter = (taps + t) * channels + c;
                const C sum = static_cast<C>(static_cast<T>(Sum(static_cast<C>(x[image]), static_cast<C>(w[filter]))));
                if (sum > largest.value) largest = {sum, image, filter};
              }
            },
            [](int64_t, int64_t) {});
        visit(i * channels + c, largest);
      }
    }
  }
  template <class T>
  static void AddTo(T& sum, T term) {
    using C = sdk::Compute<T>;
    sum = static_cast<T>(Sum(static_cast<C>(sum), static_cast<C>(term)));
  }
};

struct Dilate {
  Morphology morphology;
  int32_t Prepare(sdk::Prep& prep) { return morphology.Plan(prep, false); }
  template <class T>
  void Run(View<const T> x, View<const T> w, View<T> y) const {
    morphology.ForLargest(x.data(), w.data(),
                          [&](int64_t i, const auto& largest) { y[i] = static_cast<T>(largest.value); });
  }
};

struct DilateByInput {
  Morphology morphology;
  int32_t Prepare(sdk::Prep& prep) { return morphology.Plan(prep, true); }
  template <class T>
  void Run(View<const T> x, View<const T> w, View<const T> dy, View<T> dx) const {
    ZeroFill(dx);
    morphology.ForLargest(x.data(), w.data(), [&](int64_t i, const auto& largest) {
      if (largest.image >= 0) morphology.AddTo(dx[largest.image], dy[i]);
    });
  }
};

struct DilateByFilter {
  Morphology morphology;
  int32_t Prepare(sdk::Prep& prep) { return morphology.Plan(prep, true); }
  template <class T>
  void Run(View<const T> x, View<const T> w, View<const T> dy, View<T> dw) const {
    ZeroFill(dw);
    morphology.ForLargest(x.data(), w.data(), [&](int64_t i, const auto& largest) {
      if (largest.filter >= 0) morphology.AddTo(dw[largest.filter], dy[i]);
    });
  }
};

}  // namespace

void AddDilation(sdk::KernelTable& k) {
  k.Add<Dilate>("Dilation2D", kReal).Class(WEIR_CLASS_CONV);
  k.Add<DilateByInput>("Dilation2DBackpropInput", kReal).Class(WEIR_CLASS_CONV);
  k.Add<DilateByFilter>("Dilation2DBackpropFilter", kReal).Class(WEIR_CLASS_CONV);
}

}  // namespace weir::kernels_eigen
