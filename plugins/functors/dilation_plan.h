// What morphological dilation of images and its gradients demand of their operands.
#ifndef WEIR_PLUGINS_FUNCTORS_DILATION_PLAN_H_
#define WEIR_PLUGINS_FUNCTORS_DILATION_PLAN_H_

#include <algorithm>
#include <span>
#include <utility>

#include "plugins/functors/operands.h"
#include "sdk/cpp/windows.h"

namespace weir::functors {

/// Images [batch, height, width, channels], a filter [height, width, channels].
struct DilationPlan {
  sdk::Windows windows;
  int64_t channels = 0;
  bool empty = true;  // there is nothing to compute

  /// `out_backprop` is input 2 of the gradients. InvalidArgument with TensorFlow's texts.
  int32_t Plan(sdk::Prep& prep, bool gradient) {
    const sdk::Error& error = prep.error();
    const weir_shape &x = prep.shape(0), &w = prep.shape(1);
    if (x.rank != 4) return error.InvalidArgument("input must be 4-dimensional", x);
    if (w.rank != 3) return error.InvalidArgument("filter must be 3-dimensional: ", w);
    if (x.dims[3] != w.dims[2]) {
      return error.InvalidArgument("input and filter must have the same depth: ", x.dims[3], " vs ", w.dims[2]);
    }
    const std::pair<const char*, const char*> steps[] = {{"strides", "Stride"}, {"rates", "Rate"}};
    for (const auto& [name, text] : steps) {
      const std::span<const int64_t> values = prep.node().Ints(name);
      if (values.size() != 4) {
        return error.InvalidArgument("the ", name, " attribute must contain 4 values, but got: ", values.size());
      }
      if (values[0] != 1 || values[3] != 1) {
        return error.InvalidArgument(text, " is only supported across spatial dimensions.");
      }
    }
    windows.spatial = 2;
    if (const int32_t code = windows.Plan(prep, x, {w.dims, 2}, {.dilations = "rates"}); code != WEIR_OK) return code;
    channels = x.dims[3];
    const weir_shape& y = gradient ? prep.shape(2) : prep.output(0).shape;
    if (!windows.IsOutput(y, channels)) {
      return gradient ? error.InvalidArgument("out_backprop has incompatible size.")
                      : error.Fail(WEIR_INTERNAL, "the output has shape ", y, ", which does not fit the windows");
    }
    empty = HasNoElements(y);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_DILATION_PLAN_H_
