// CropAndResize and its gradients: places of crops in images, checks and extents.
#ifndef WEIR_PLUGINS_FUNCTORS_CROP_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_CROP_PLANS_H_

#include <cmath>
#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

/// Places of a crop along one axis of an image of `extent` pixels; the box spans [begin, end] of it.
struct CropAxis {
  int64_t extent = 0, places = 0;
  float begin = 0, end = 0, scale = 0;

  WEIR_HD CropAxis(int64_t pixels, int64_t crop, float from, float to)
      : extent(pixels),
        places(crop),
        begin(from),
        end(to),
        scale(crop > 1 ? (to - from) * static_cast<float>(pixels - 1) / static_cast<float>(crop - 1) : 0) {}

  WEIR_HD float Place(int64_t i) const {
    const auto last = static_cast<float>(extent - 1);
    return places > 1 ? begin * last + static_cast<float>(i) * scale : 0.5f * (begin + end) * last;
  }
  /// False for NaN.
  WEIR_HD bool Holds(float place) const { return place >= 0 && place <= static_cast<float>(extent - 1); }
};

/// A place between two pixels.
struct CropPlace {
  int64_t low, high;
  float share;  // of the upper one

  WEIR_HD explicit CropPlace(float place)
      : low(static_cast<int64_t>(std::floor(place))),
        high(static_cast<int64_t>(std::ceil(place))),
        share(place - static_cast<float>(low)) {}
};

/// Boxes, their images and the extents of images and crops.
struct CropPlan {
  int64_t boxes = 0, images = 0, height = 0, width = 0, depth = 0, crop_height = 0, crop_width = 0;
  bool nearest = false;

  void ReadMethod(const sdk::Prep& prep) { nearest = prep.node().String("method", "bilinear") == "nearest"; }

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
  int32_t CheckBoxes(const sdk::Prep& prep, uint32_t at) {
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
  int32_t CheckGrads(const sdk::Prep& prep) {
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
  WEIR_HD int64_t LineSize() const { return width * depth; }
  WEIR_HD int64_t ImageSize() const { return height * LineSize(); }
  WEIR_HD CropAxis Rows(const float* box) const { return {height, crop_height, box[0], box[2]}; }
  WEIR_HD CropAxis Columns(const float* box) const { return {width, crop_width, box[1], box[3]}; }
};

struct CropAndResizePlan : CropPlan {
  float outside = 0;

  int32_t Prepare(sdk::Prep& prep) {
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
};

struct CropGradImagePlan : CropPlan {
  int32_t Prepare(sdk::Prep& prep) {
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
};

struct CropGradBoxesPlan : CropPlan {
  int32_t Prepare(sdk::Prep& prep) {
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
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_CROP_PLANS_H_
