// Images under projective transforms: ImageProjectiveTransformV2 and V3.
#include "plugins/functors/projective.h"

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::View;

struct Projective : functors::ProjectivePlan {
  template <class T>
  int32_t Transform(View<const T> images, View<const float> transforms, float fill, View<T> output) const {
    const int64_t height = images.dim(1), width = images.dim(2), depth = images.dim(3);
    T* to = output.data();
    for (int64_t i = 0; i < output.dim(0); ++i) {
      const T* const pixels = images.data() + i * height * width * depth;
      const float* const t = transforms.data() + (transforms.dim(0) == 1 ? 0 : 8 * i);
      for (int64_t row = 0; row < output.dim(1); ++row) {
        for (int64_t column = 0; column < output.dim(2); ++column) {
          const functors::ProjectedPlace place = sampling.Find(t, row, column, height, width);
          for (int64_t c = 0; c < depth; ++c) {
            const auto load = [=](int64_t at) { return pixels[at * depth + c]; };
            const functors::ProjectedChannel<T, decltype(load)> channel{load, height, width, static_cast<T>(fill)};
            *to++ = channel.Sample(place, sampling.nearest);
          }
        }
      }
    }
    return WEIR_OK;
  }
};

struct ProjectiveV2 : Projective {
  template <class T>
  int32_t Run(View<const T> images, View<const float> transforms, sdk::HostIntegers, View<T> output) const {
    return Transform(images, transforms, 0, output);
  }
};

struct ProjectiveV3 : Projective {
  template <class T>
  int32_t Run(Env& env, View<const T> images, View<const float> transforms, sdk::HostIntegers, View<const float> fill,
              View<T> output) const {
    if (const int32_t code = CheckFill(env, fill); code != WEIR_OK) return code;
    return Transform(images, transforms, fill[0], output);
  }
};

}  // namespace

void AddProjective(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr auto kImages = kFloat + kIndex;
#else
  constexpr auto kImages = kFloating + kIndex + sdk::Types<uint8_t>();
#endif
  k.Add<ProjectiveV2>("ImageProjectiveTransformV2", sdk::Attr("dtype", kImages)).Class(WEIR_CLASS_GATHER, 20);
  k.Add<ProjectiveV3>("ImageProjectiveTransformV3", sdk::Attr("dtype", kImages)).Class(WEIR_CLASS_GATHER, 20);
}

}  // namespace weir::kernels_eigen
