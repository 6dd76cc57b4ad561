// Resized NHWC images and gradients of resizing: checks and extents.
#ifndef WEIR_PLUGINS_FUNCTORS_RESIZE_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_RESIZE_PLANS_H_

#include <string_view>
#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/resample.h"

namespace weir::functors {

/// Images of input 0 resized to the extents in input 1.
struct ResizePlan {
  Resampled rows, columns;
  int64_t batch = 0, channels = 0;

  int32_t Plan(sdk::Prep& prep) {
    Sampling sampling;
    if (const int32_t code = sampling.Read(prep, true); code != WEIR_OK) return code;
    const weir_shape& images = prep.shape(0);
    std::vector<int64_t> size;
    if (const int32_t code = ReadSize(prep, "output dimensions must be positive", &size); code != WEIR_OK) return code;
    if (images.dims[1] <= 0 || images.dims[2] <= 0) {
      return prep.error().InvalidArgument("input image must be of non-zero size");
    }
    batch = images.dims[0];
    channels = images.dims[3];
    if (channels <= 0) return prep.error().InvalidArgument("image must have at least one channel");
    rows = {images.dims[1], size[0], sampling};
    columns = {images.dims[2], size[1], sampling};
    return ExpectOutput(prep, 0, {batch, size[0], size[1], channels});
  }

  static int32_t ReadSize(sdk::Prep& prep, std::string_view refusal, std::vector<int64_t>* size) {
    const sdk::Error& error = prep.error();
    const weir_shape &images = prep.shape(0), &vector = prep.shape(1);
    if (images.rank != 4) return error.InvalidArgument("input must be 4-dimensional", images);
    if (vector.rank != 1) return error.InvalidArgument("shape_t must be 1-dimensional", vector);
    if (vector.dims[0] != 2) return error.InvalidArgument("shape_t must have two elements", vector);
    if (const int32_t code = Steering(prep, 1, size); code != WEIR_OK) return code;
    return (*size)[0] > 0 && (*size)[1] > 0 ? WEIR_OK : error.InvalidArgument(refusal);
  }

  int64_t ImageSize() const { return rows.from * columns.from * channels; }
  int64_t LineSize() const { return columns.from * channels; }
};

/// Gradients by images with the shape of input 1.
struct ResizeGradPlan {
  Resampled rows, columns;
  int64_t batch = 0, channels = 0;

  int32_t Plan(sdk::Prep& prep) {
    const sdk::Error& error = prep.error();
    const weir_shape &grads = prep.shape(0), &images = prep.shape(1);
    Sampling sampling;
    if (const int32_t code = sampling.Read(prep, true); code != WEIR_OK) return code;
    if (grads.rank != 4) return error.InvalidArgument("input_grad must be 4-dimensional", grads);
    if (images.rank != 4) return error.InvalidArgument("original_image must be 4-dimensional", images);
    if (grads.dims[0] != images.dims[0] || grads.dims[3] != images.dims[3]) {
      return error.InvalidArgument("input_grad ", grads, " and original_image ", images,
                                   " must have the same batch and channels");
    }
    if (images.dims[1] <= 0 || images.dims[2] <= 0) {
      return error.InvalidArgument("original dimensions must be positive");
    }
    if (grads.dims[1] <= 0 || grads.dims[2] <= 0) {
      return error.InvalidArgument("resized dimensions must be positive");
    }
    batch = images.dims[0];
    channels = images.dims[3];
    rows = {images.dims[1], grads.dims[1], sampling};
    columns = {images.dims[2], grads.dims[2], sampling};
    return ExpectOutput(prep, 0, DimsOf(images));
  }
  int64_t ImageSize() const { return rows.from * columns.from * channels; }
};

/// Images of the extents in input 1: each resized pixel's gradient goes to the pixel that it came from.
struct ResizeNearestGradPlan {
  Resampled rows, columns;
  int64_t batch = 0, channels = 0;

  int32_t Prepare(sdk::Prep& prep) {
    Sampling sampling;
    if (const int32_t code = sampling.Read(prep, false); code != WEIR_OK) return code;
    std::vector<int64_t> size;
    const int32_t code = ResizePlan::ReadSize(prep, "shape_t's elements must be positive", &size);
    if (code != WEIR_OK) return code;
    const weir_shape& grads = prep.shape(0);
    batch = grads.dims[0];
    channels = grads.dims[3];
    rows = {size[0], grads.dims[1], sampling};
    columns = {size[1], grads.dims[2], sampling};
    return ExpectOutput(prep, 0, {batch, size[0], size[1], channels});
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_RESIZE_PLANS_H_
