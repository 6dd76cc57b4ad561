// CropAndResize: boxes of images, resized, and its gradients.
#include <cmath>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Compute;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Integers;
using sdk::Prep;
using sdk::View;

/// Places of a crop along one axis of an image of `extent` pixels; the box spans [begin, end] of it.
struct CropAxis {
  int64_t extent = 0, places = 0;
  float begin = 0, end = 0, scale = 0;

  CropAxis(int64_t pixels, int64_t crop, float from, float to)
      : extent(pixels),
        places(crop),
        begin(from),
        end(to),
        scale(crop > 1 ? (to - from) * static_cast<float>(pixels - 1) / static_cast<float>(crop - 1) : 0) {}

  float Place(int64_t i) const {
    const auto last = static_cast<float>(extent - 1);
    return places > 1 ? begin * last + static_cast<float>(i) * scale : 0.5f * (begin + end) * last;
  }
  /// False for NaN.
  bool Holds(float place) const { return place >= 0 && place <= static_cast<float>(extent - 1); }
};

/// A place between two pixels.
struct CropPlace {
  int64_t low, high;
  float share;  // of the upper one

  explicit CropPlace(float place)
      : low(static_cast<int64_t>(std::floor(place))),
        high(static_cast<int64_t>(std::ceil(place))),
        share(place - static_cast<float>(low)) {}
};

/// Boxes, their images and the extents of images and crops.
struct Cropping {
  int64_t boxes = 0, images = 0, height = 0, width = 0, depth = 0, crop_height = 0, crop_width = 0;
  bool nearest = false;

  void ReadMethod(const Prep& prep) { nearest = prep.node().String("method", "bilinear") == "nearest"; }

  void SetImages(const int64_t* dims) {
    images = dims[0];
    height = dims[1];
    width = dims[2];
    depth = dims[3];
  }
  void SetCrops(const int64_t* dims) {
    crop_height = dims[1];
    crop_width = dims[2];
  }

  /// Checks inputs `at`, the boxes, and `at` + 1, their images' numbers.
  int32_t CheckBoxes(const Prep& prep, uint32_t at) {
    const sdk::Error& error = prep.error();
    const weir_shape &corners = prep.shape(at), &numbers = prep.shape(at + 1);
    if (corners.rank != 2) return error.InvalidArgument("boxes must be 2-D, got: ", corners);
    boxes = corners.dims[0];
    if (corners.dims[1] != 4) return error.InvalidArgument("boxes must have 4 columns");
    if (numbers.rank != 1) return error.InvalidArgument("box_indices must be rank 1 but is shape ", numbers);
    if (numbers.dims[0] != boxes) return error.InvalidArgument("box_index has incompatible shape");
    return WEIR_OK;
  }
  /// Checks input 0, the gradients of the crops.
  int32_t CheckGrads(const Prep& prep) {
    const sdk::Error& error = prep.error();
    const weir_shape& grads = prep.shape(0);
    if (grads.rank != 4) return error.InvalidArgument("grads image must be 4-D", grads);
    SetCrops(grads.dims);
    if (crop_height <= 0 || crop_width <= 0) return error.InvalidArgument("grads dimensions must be positive");
    return WEIR_OK;
  }
  int32_t CheckPixels(const sdk::Error& error) const {
    return height > 0 && width > 0 ? WEIR_OK : error.InvalidArgument("image dimensions must be positive");
  }
  int32_t CheckNumbers(const sdk::Error& error, const Integers& numbers) const {
    for (int64_t i = 0; i < boxes; ++i) {
      if (numbers[i] >= 0 && numbers[i] < images) continue;
      return error.Fail(WEIR_OUT_OF_RANGE, "box_index has values outside [0, batch_size)");
    }
    return WEIR_OK;
  }

  int64_t LineSize() const { return width * depth; }
  int64_t ImageSize() const { return height * LineSize(); }
  CropAxis Rows(const float* box) const { return {height, crop_height, box[0], box[2]}; }
  CropAxis Columns(const float* box) const { return {width, crop_width, box[1], box[3]}; }
};

struct CropAndResize : Cropping {
  float outside = 0;

  int32_t Prepare(Prep& prep) {
    const sdk::Error& error = prep.error();
    if (prep.shape(0).rank != 4) return error.InvalidArgument("input image must be 4-D", prep.shape(0));
    SetImages(prep.shape(0).dims);
    if (const int32_t code = CheckBoxes(prep, 1); code != WEIR_OK) return code;
    if (prep.shape(3).rank != 1) return error.InvalidArgument("crop_size must be 1-D", prep.shape(3));
    if (prep.shape(3).dims[0] != 2) return error.InvalidArgument("crop_size must have two elements", prep.shape(3));
    std::vector<int64_t> size;
    if (const int32_t code = Steering(prep, 3, &size); code != WEIR_OK) return code;
    if (const int32_t code = CheckPixels(error); code != WEIR_OK) return code;
    crop_height = size[0];
    crop_width = size[1];
    if (crop_height <= 0 || crop_width <= 0) return error.InvalidArgument("crop dimensions must be positive");
    ReadMethod(prep);
    outside = static_cast<float>(prep.node().Float("extrapolation_value", 0));
    return ExpectOutput(prep, 0, {boxes, crop_height, crop_width, depth});
  }

  template <class T>
  int32_t Run(Env& env, View<const T> image, View<const float> corners, Integers numbers, HostIntegers,
              View<float> crops) const {
    if (const int32_t code = CheckNumbers(env.error(), numbers); code != WEIR_OK) return code;
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

struct CropGradImage : Cropping {
  int32_t Prepare(Prep& prep) {
    const sdk::Error& error = prep.error();
    if (const int32_t code = CheckGrads(prep); code != WEIR_OK) return code;
    if (const int32_t code = CheckBoxes(prep, 1); code != WEIR_OK) return code;
    if (prep.shape(0).dims[0] != boxes) return error.InvalidArgument("boxes and grads have incompatible shape");
    const weir_shape& size = prep.shape(3);
    if (size.rank != 1) return error.InvalidArgument("image_size must be 1-D", size);
    if (size.dims[0] != 4) return error.InvalidArgument("image_size must have 4 elements", size);
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 3, &dims); code != WEIR_OK) return code;
    SetImages(dims.data());
    if (const int32_t code = CheckPixels(error); code != WEIR_OK) return code;
    if (depth != prep.shape(0).dims[3]) return error.InvalidArgument("image_size and grads are incompatible");
    ReadMethod(prep);
    return ExpectOutput(prep, 0, dims);
  }

  template <class T>
  int32_t Run(Env& env, View<const float> grads, View<const float> corners, Integers numbers, HostIntegers,
              View<T> image) const {
    if (const int32_t code = CheckNumbers(env.error(), numbers); code != WEIR_OK) return code;
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

struct CropGradBoxes : Cropping {
  int32_t Prepare(Prep& prep) {
    const sdk::Error& error = prep.error();
    if (const int32_t code = CheckGrads(prep); code != WEIR_OK) return code;
    if (prep.shape(1).rank != 4) return error.InvalidArgument("input image must be 4-D", prep.shape(1));
    SetImages(prep.shape(1).dims);
    if (const int32_t code = CheckPixels(error); code != WEIR_OK) return code;
    if (prep.shape(0).dims[3] != depth) return error.InvalidArgument("image, grads depth differ");
    if (const int32_t code = CheckBoxes(prep, 2); code != WEIR_OK) return code;
    if (prep.shape(0).dims[0] != boxes) return error.InvalidArgument("boxes and grads have incompatible shape");
    return ExpectOutput(prep, 0, {boxes, 4});
  }

  template <class T>
  int32_t Run(Env& env, View<const float> grads, View<const T> image, View<const float> corners, Integers numbers,
              View<float> out) const {
    if (const int32_t code = CheckNumbers(env.error(), numbers); code != WEIR_OK) return code;
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
