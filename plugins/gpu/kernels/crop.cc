// CropAndResize and its gradients. As a gather of a row that does not exist gives zeros, a box of an image that does
// not exist, or without finite corners, gives the value for places outside of an image, and has no gradient.
#include "plugins/functors/crop_plans.h"

#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::CropAxis;
using functors::CropPlace;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

/// functors::CropPlan on the device.
struct Crops {
  Ptr<const float> corners;
  Indices numbers;
  int64_t boxes, images, height, width, depth, crop_height, crop_width;
  bool nearest;

  Crops(const functors::CropPlan& plan, const AnyInput& boxes_of, const AnyInput& numbers_of)
      : corners(static_cast<const float*>(boxes_of.data())),
        numbers(numbers_of),
        boxes(plan.boxes),
        images(plan.images),
        height(plan.height),
        width(plan.width),
        depth(plan.depth),
        crop_height(plan.crop_height),
        crop_width(plan.crop_width),
        nearest(plan.nearest) {}
  WEIR_GPU_FN CropAxis Rows(int64_t box) const {
    return {height, crop_height, corners[4 * box], corners[4 * box + 2]};
  }
  WEIR_GPU_FN CropAxis Columns(int64_t box) const {
    return {width, crop_width, corners[4 * box + 1], corners[4 * box + 3]};
  }
  WEIR_GPU_FN bool HasImage(int64_t box) const { return numbers[box] >= 0 && numbers[box] < images; }
  WEIR_GPU_FN int64_t Pixel(int64_t image, int64_t row, int64_t column) const {
    return ((image * height + row) * width + column) * depth;
  }
  WEIR_GPU_FN int64_t Sample(int64_t box, int64_t row, int64_t column) const {
    return ((box * crop_height + row) * crop_width + column) * depth;
  }
};

template <class S>
struct CropWork {
  Ptr<const char> from;
  Ptr<float> to;
  Crops crops;
  float outside;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t channel = i % crops.depth, place = i / crops.depth;
    const int64_t box = place / crops.crop_width / crops.crop_height;
    const CropAxis rows = crops.Rows(box), columns = crops.Columns(box);
    const float row = rows.Place(place / crops.crop_width % crops.crop_height),
                column = columns.Place(place % crops.crop_width);
    if (!crops.HasImage(box) || !rows.Holds(row) || !columns.Holds(column)) {
      to[i] = outside;
      return;
    }
    const int64_t image = crops.numbers[box];
    const auto at = [&](int64_t y, int64_t x) {
      return static_cast<float>(storage.Load(from.get(), crops.Pixel(image, y, x) + channel));
    };
    if (crops.nearest) {
      to[i] = at(static_cast<int64_t>(std::round(row)), static_cast<int64_t>(std::round(column)));
      return;
    }
    const CropPlace y(row), x(column);
    const float a = at(y.low, x.low), b = at(y.low, x.high), d = at(y.high, x.low), e = at(y.high, x.high);
    const float above = a + (b - a) * x.share, below = d + (e - d) * x.share;
    to[i] = above + (below - above) * y.share;
  }
};
struct CropAndResize : functors::CropAndResizePlan {
  int32_t Run(Env& env, AnyInput image, AnyInput corners, AnyInput numbers, HostIntegers, AnyOutput y) const {
    if (depth == 0 || boxes == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers>(image.dtype(), [&](auto storage) {
      const Ptr<float> to(static_cast<float*>(y.data()));
      code = Launch(env, y.size(), CropWork<decltype(storage)>{From(image), to, Crops(*this, corners, numbers), outside,
                                                               storage});
    });
    return code;
  }
};

/// An element of the images sums the shares that samples of all boxes give it, in their order.
template <class S>
struct CropGradImageWork {
  using C = typename S::C;
  Ptr<const float> grads;
  Ptr<char> to;
  Crops crops;
  S storage;

  WEIR_GPU_FN void operator()(int64_t i) const {
    const int64_t channel = i % crops.depth, column = i / crops.depth % crops.width;
    const int64_t row = i / crops.depth / crops.width % crops.height;
    const int64_t image = i / crops.depth / crops.width / crops.height;
    storage.Store(to.get(), i, C{});
    for (int64_t box = 0; box < crops.boxes; ++box) {
      if (crops.numbers[box] == image) AddBox(i, box, row, column, channel);
    }
  }
  WEIR_GPU_FN void AddBox(int64_t i, int64_t box, int64_t row, int64_t column, int64_t channel) const {
    const CropAxis rows = crops.Rows(box), columns = crops.Columns(box);
    for (int64_t r = 0; r < crops.crop_height; ++r) {
      const float down = rows.Place(r);
      if (!rows.Holds(down) || !Near(down, row)) continue;
      for (int64_t c = 0; c < crops.crop_width; ++c) {
        const float across = columns.Place(c);
        if (!columns.Holds(across) || !Near(across, column)) continue;
        AddSample(i, grads[crops.Sample(box, r, c) + channel], down, across, row, column);
      }
    }
  }
  WEIR_GPU_FN static bool Near(float place, int64_t pixel) {
    const float distance = place - static_cast<float>(pixel);
    return distance > -1 && distance < 1;
  }
  WEIR_GPU_FN void AddSample(int64_t i, float slope, float down, float across, int64_t row, int64_t column) const {
    if (crops.nearest) {
      const bool here = static_cast<int64_t>(std::round(down)) == row;
      if (here && static_cast<int64_t>(std::round(across)) == column) Add(i, slope);
      return;
    }
    const CropPlace y(down), x(across);
    if (y.low == row && x.low == column) Add(i, (1 - y.share) * (1 - x.share) * slope);
    if (y.low == row && x.high == column) Add(i, (1 - y.share) * x.share * slope);
    if (y.high == row && x.low == column) Add(i, y.share * (1 - x.share) * slope);
    if (y.high == row && x.high == column) Add(i, y.share * x.share * slope);
  }
  WEIR_GPU_FN void Add(int64_t i, float x) const {
    storage.Store(to.get(), i, storage.Load(to.get(), i) + static_cast<C>(x));
  }
};
struct CropGradImage : functors::CropGradImagePlan {
  int32_t Run(Env& env, AnyInput grads, AnyInput corners, AnyInput numbers, HostIntegers, AnyOutput dx) const {
    if (depth == 0 || images == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(dx.dtype(), [&](auto storage) {
      const Ptr<const float> from(static_cast<const float*>(grads.data()));
      code = Launch(env, dx.size(),
                    CropGradImageWork<decltype(storage)>{from, To(dx), Crops(*this, corners, numbers), storage});
    });
    return code;
  }
};

constexpr int kCropThreads = 128;

/// A block for a box: the sums of its threads' samples.
template <class S>
struct CropGradBoxesWork {
  struct Sums {
    float at[4];
  };
  static constexpr uint32_t kSharedBytes = kCropThreads * sizeof(Sums);
  Ptr<const float> grads;
  Ptr<const char> image;
  Ptr<float> to;
  Crops crops;
  S storage;

  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    Sums* const sums = block.template Shared<Sums>(0);
    const int64_t box = block.index(), samples = crops.crop_height * crops.crop_width;
    block.ForEachThread([&](int t) {
      Sums own = {};
      for (int64_t i = t; i < samples && crops.HasImage(box); i += block.threads()) AddSample(box, i, own);
      sums[t] = own;
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        for (int k = 0; t < half && k < 4; ++k) sums[t].at[k] += sums[t + half].at[k];
      });
    }
    block.ForEachThread([&](int t) {
      if (t < 4) to[4 * box + t] = sums[0].at[t];
    });
  }
  WEIR_GPU_FN void AddSample(int64_t box, int64_t i, Sums& sums) const {
    const int64_t r = i / crops.crop_width, c = i % crops.crop_width;
    const CropAxis rows = crops.Rows(box), columns = crops.Columns(box);
    const float row = rows.Place(r), column = columns.Place(c);
    if (!rows.Holds(row) || !columns.Holds(column)) return;
    const CropPlace y(row), x(column);
    const int64_t number = crops.numbers[box], sample = crops.Sample(box, r, c);
    float down = 0, across = 0;
    for (int64_t k = 0; k < crops.depth; ++k) {
      const auto at = [&](int64_t p, int64_t q) {
        return static_cast<float>(storage.Load(image.get(), crops.Pixel(number, p, q) + k));
      };
      const float a = at(y.low, x.low), b = at(y.low, x.high), d = at(y.high, x.low), e = at(y.high, x.high);
      down += grads[sample + k] * ((1 - x.share) * (d - a) + x.share * (e - b));
      across += grads[sample + k] * ((1 - y.share) * (b - a) + y.share * (e - d));
    }
    AddCorners(down * static_cast<float>(crops.height - 1), rows.places, r, sums.at);
    AddCorners(across * static_cast<float>(crops.width - 1), columns.places, c, sums.at + 1);
  }
  WEIR_GPU_FN static void AddCorners(float slope, int64_t places, int64_t i, float* sums) {
    const float second = places > 1 ? static_cast<float>(i) / static_cast<float>(places - 1) : 0.5f;
    sums[0] += slope * (1 - second);
    sums[2] += slope * second;
  }
};
struct CropGradBoxes : functors::CropGradBoxesPlan {
  int32_t Run(Env& env, AnyInput grads, AnyInput image, AnyInput corners, AnyInput numbers, AnyOutput out) const {
    if (boxes == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers>(image.dtype(), [&](auto storage) {
      using Work = CropGradBoxesWork<decltype(storage)>;
      const Work work{Ptr<const float>(static_cast<const float*>(grads.data())), From(image),
                      Ptr<float>(static_cast<float*>(out.data())), Crops(*this, corners, numbers), storage};
      code = LaunchBlocks(env, boxes, kCropThreads, Work::kSharedBytes, work);
    });
    return code;
  }
};

}  // namespace

void AddCrop(sdk::KernelTable& k) {
  constexpr uint64_t kFloatTypes = kFloatingBits & ~WEIR_DTYPE_BIT(WEIR_BFLOAT16);
  constexpr uint64_t kCropTypes = kFloatTypes | kSignedBits | DTypes({WEIR_UINT8, WEIR_UINT16});
  k.Add<CropAndResize>("CropAndResize").Restrict("T", kCropTypes).Class(WEIR_CLASS_GATHER, 8);
  k.Add<CropGradImage>("CropAndResizeGradImage").Restrict("T", kFloatTypes).Class(WEIR_CLASS_GATHER, 8);
  k.Add<CropGradBoxes>("CropAndResizeGradBoxes").Restrict("T", kCropTypes).Class(WEIR_CLASS_GATHER, 16);
}

}  // namespace weir::gpu
