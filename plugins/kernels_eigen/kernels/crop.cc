// CropAndResize: boxes of images, resized, and its gradients.
#include <cmath>

#include "plugins/functors/crop_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using functors::CropAxis;
using functors::CropPlace;
using sdk::Compute;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Integers;
using sdk::View;

/// OutOfRange unless each box has an image.
int32_t CheckNumbers(const sdk::Error& error, const functors::CropPlan& plan, const Integers& numbers) {
  for (int64_t i = 0; i < plan.boxes; ++i) {
    if (numbers[i] >= 0 && numbers[i] < plan.images) continue;
    return error.Fail(WEIR_OUT_OF_RANGE, "box_index has values outside [0, batch_size)");
  }
  return WEIR_OK;
}

struct CropAndResize : functors::CropAndResizePlan {
  template <class T>
  int32_t Run(Env& env, View<const T> image, View<const float> corners, Integers numbers, HostIntegers,
              View<float> crops) const {
    if (const int32_t code = CheckNumbers(env.error(), *this, numbers); code != WEIR_OK) return code;
    for (int64_t i = 0; i < 4 * boxes; ++i) {
      if (std::isfinite(corners[i])) continue;
      return env.error().InvalidArgument("Boxes contains at least one element that is not finite");
    }
    if (depth == 0) return WEIR_OK;
    float* to = crops.data();
    for (int64_t box = 0; box < boxes; ++box) {
      const CropAxis rows = Rows(corners.data() + 4 * box), columns = Columns(corners.data() + 4 * box);
      const T* from = image.data() + numbers[box] * ImageSize();
      for (int64_t y = 0; y < crop_height; ++y) {
        const float row = rows.Place(y);
        for (int64_t x = 0; x < crop_width; ++x, to += depth) {
          const float column = columns.Place(x);
          if (rows.Holds(row) && columns.Holds(column)) {
            Sample(from, row, column, to);
          } else {
            std::fill_n(to, depth, outside);
          }
        }
      }
    }
    return WEIR_OK;
  }

  template <class T>
  void Sample(const T* from, float row, float column, float* to) const {
    if (nearest) {
      const T* pixel =
          from + static_cast<int64_t>(std::round(row)) * LineSize() + static_cast<int64_t>(std::round(column)) * depth;
      for (int64_t c = 0; c < depth; ++c) to[c] = static_cast<float>(pixel[c]);
      return;
    }
    const CropPlace y(row), x(column);
    const T *top = from + y.low * LineSize(), *bottom = from + y.high * LineSize();
    for (int64_t c = 0; c < depth; ++c) {
      const auto a = static_cast<float>(top[x.low * depth + c]), b = static_cast<float>(top[x.high * depth + c]);
      const auto d = static_cast<float>(bottom[x.low * depth + c]), e = static_cast<float>(bottom[x.high * depth + c]);
      const float above = a + (b - a) * x.share, below = d + (e - d) * x.share;
      to[c] = above + (below - above) * y.share;
    }
  }
};

struct CropGradImage : functors::CropGradImagePlan {
  template <class T>
  int32_t Run(Env& env, View<const float> grads, View<const float> corners, Integers numbers, HostIntegers,
              View<T> image) const {
    if (const int32_t code = CheckNumbers(env.error(), *this, numbers); code != WEIR_OK) return code;
    if (depth == 0 || images == 0) return WEIR_OK;
    std::fill_n(image.data(), images * ImageSize(), T());
    const float* from = grads.data();
    for (int64_t box = 0; box < boxes; ++box) {
      const CropAxis rows = Rows(corners.data() + 4 * box), columns = Columns(corners.data() + 4 * box);
      T* to = image.data() + numbers[box] * ImageSize();
      for (int64_t y = 0; y < crop_height; ++y) {
        const float row = rows.Place(y);
        for (int64_t x = 0; x < crop_width; ++x, from += depth) {
          const float column = columns.Place(x);
          if (rows.Holds(row) && columns.Holds(column)) Spread(from, row, column, to);
        }
      }
    }
    return WEIR_OK;
  }

  template <class T>
  void Spread(const float* from, float row, float column, T* to) const {
    if (nearest) {
      return AddPixel(from, 1, to, static_cast<int64_t>(std::round(row)), static_cast<int64_t>(std::round(column)));
    }
    const CropPlace y(row), x(column);
    AddPixel(from, (1 - y.share) * (1 - x.share), to, y.low, x.low);
    AddPixel(from, (1 - y.share) * x.share, to, y.low, x.high);
    AddPixel(from, y.share * (1 - x.share), to, y.high, x.low);
    AddPixel(from, y.share * x.share, to, y.high, x.high);
  }
  template <class T>
  void AddPixel(const float* from, float weight, T* to, int64_t y, int64_t x) const {
    using C = Compute<T>;
    T* pixel = to + y * LineSize() + x * depth;
    for (int64_t c = 0; c < depth; ++c) {
      pixel[c] = static_cast<T>(static_cast<C>(pixel[c]) + static_cast<C>(weight * from[c]));
    }
  }
};

struct CropGradBoxes : functors::CropGradBoxesPlan {
  template <class T>
  int32_t Run(Env& env, View<const float> grads, View<const T> image, View<const float> corners, Integers numbers,
              View<float> out) const {
    if (const int32_t code = CheckNumbers(env.error(), *this, numbers); code != WEIR_OK) return code;
    std::fill_n(out.data(), 4 * boxes, 0.0f);
    if (depth == 0) return WEIR_OK;
    const float* from = grads.data();
    const float last_row = static_cast<float>(height - 1), last_column = static_cast<float>(width - 1);
    for (int64_t box = 0; box < boxes; ++box) {
      const CropAxis rows = Rows(corners.data() + 4 * box), columns = Columns(corners.data() + 4 * box);
      const T* pixels = image.data() + numbers[box] * ImageSize();
      float* to = out.data() + 4 * box;
      for (int64_t y = 0; y < crop_height; ++y) {
        const float row = rows.Place(y);
        for (int64_t x = 0; x < crop_width; ++x, from += depth) {
          const float column = columns.Place(x);
          if (!rows.Holds(row) || !columns.Holds(column)) continue;
          const Slopes slopes = SlopesAt(from, row, column, pixels);
          AddCorners(slopes.row * last_row, rows.places, y, to);
          AddCorners(slopes.column * last_column, columns.places, x, to + 1);
        }
      }
    }
    return WEIR_OK;
  }

  /// The derivatives of the gradients' sum by the place of a sample.
  struct Slopes {
    float row, column;
  };
  template <class T>
  Slopes SlopesAt(const float* grads, float row, float column, const T* pixels) const {
    const CropPlace y(row), x(column);
    const T *top = pixels + y.low * LineSize(), *bottom = pixels + y.high * LineSize();
    Slopes slopes{0, 0};
    for (int64_t c = 0; c < depth; ++c) {
      const auto a = static_cast<float>(top[x.low * depth + c]), b = static_cast<float>(top[x.high * depth + c]);
      const auto d = static_cast<float>(bottom[x.low * depth + c]), e = static_cast<float>(bottom[x.high * depth + c]);
      slopes.row += grads[c] * ((1 - x.share) * (d - a) + x.share * (e - b));
      slopes.column += grads[c] * ((1 - y.share) * (b - a) + y.share * (e - d));
    }
    return slopes;
  }
  /// Adds to a box's first corner, to[0], and second corner, to[2], along an axis.
  static void AddCorners(float slope, int64_t places, int64_t i, float* to) {
    const float second = places > 1 ? static_cast<float>(i) / static_cast<float>(places - 1) : 0.5f;
    to[0] += slope * (1 - second);
    to[2] += slope * second;
  }
};

}  // namespace

void AddCrop(sdk::KernelTable& k) {
  constexpr auto kCropTypes = sdk::Types<sdk::half, float, double>() + kSigned + sdk::Types<uint8_t, uint16_t>();
  k.Add<CropAndResize>("CropAndResize", kCropTypes).Class(WEIR_CLASS_GATHER, 8);
  k.Add<CropGradImage>("CropAndResizeGradImage", sdk::Types<sdk::half, float, double>()).Class(WEIR_CLASS_GATHER, 8);
  k.Add<CropGradBoxes>("CropAndResizeGradBoxes", kCropTypes).Class(WEIR_CLASS_GATHER, 16);
}

}  // namespace weir::kernels_eigen
