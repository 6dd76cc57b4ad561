// Images under projective transforms: ImageProjectiveTransformV2 and V3, a thread for each number of the result.
#include "plugins/functors/projective.h"

#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::View;

constexpr unsigned kProjected = kFloats | kIntegers;

template <class S>
struct ProjectiveWork {
  using C = typename S::C;
  struct Pixels {
    const char* images;
    int64_t first, depth;
    S storage;
    WEIR_HD C operator()(int64_t i) const { return storage.Load(images, first + i * depth); }
  };
  Ptr<const char> images;
  Ptr<const float> transforms;
  Ptr<char> y;
  int64_t height, width, depth, rows, columns, transform_step;
  float fill;
  functors::ProjectiveSampling sampling;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t c = i % depth, column = i / depth % columns, row = i / depth / columns % rows;
    const int64_t image = i / depth / columns / rows;
    const Pixels pixels{images.get(), image * height * width * depth + c, depth, storage};
    const functors::ProjectedChannel<C, Pixels> channel{pixels, height, width, static_cast<C>(fill)};
    const functors::ProjectedPlace place =
        sampling.Find(transforms.get() + image * transform_step, row, column, height, width);
    storage.Store(y.get(), i, channel.Sample(place, sampling.nearest));
  }
};

struct Projective : functors::ProjectivePlan {
  int32_t Transform(const Env& env, const AnyInput& images, const View<const float>& transforms, float fill,
                    const AnyOutput& y) const {
    const int64_t *from = images.shape().dims, *to = y.shape().dims;
    int32_t code = WEIR_OK;
    if (y.size() == 0) return code;
    WithStorage<kProjected>(y.dtype(), [&](auto storage) {
      using Work = ProjectiveWork<decltype(storage)>;
      const int64_t step = transforms.dim(0) == 1 ? 0 : 8;
      code = Launch(env, y.size(),
                    Work{From(images), transforms.data(), To(y), from[1], from[2], from[3], to[1], to[2], step, fill,
                         sampling, storage});
    });
    return code;
  }
};
struct ProjectiveV2 : Projective {
  int32_t Run(Env& env, AnyInput images, View<const float> transforms, sdk::HostIntegers, AnyOutput y) const {
    return Transform(env, images, transforms, 0, y);
  }
};
struct ProjectiveV3 : Projective {
  int32_t Run(Env& env, AnyInput images, View<const float> transforms, sdk::HostIntegers, sdk::Host<const float> fill,
              AnyOutput y) const {
    if (const int32_t code = CheckFill(env, fill); code != WEIR_OK) return code;
    return Transform(env, images, transforms, fill[0], y);
  }
};

}  // namespace

void AddProjective(sdk::KernelTable& k) {
  const uint64_t dtypes = kFloatingBits | kIndexBits | (kShort ? 0 : DTypes({WEIR_UINT8}));
  k.Add<ProjectiveV2>("ImageProjectiveTransformV2").Restrict("dtype", dtypes).Class(WEIR_CLASS_GATHER, 20);
  k.Add<ProjectiveV3>("ImageProjectiveTransformV3").Restrict("dtype", dtypes).Class(WEIR_CLASS_GATHER, 20);
}

}  // namespace weir::gpu
