// BiasAdd and its gradient: checks and geometry.
#ifndef WEIR_PLUGINS_FUNCTORS_BIAS_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_BIAS_PLANS_H_

#include "sdk/cpp/kernel.h"

namespace weir::functors {

/// A tensor viewed as [outer, channels, inner].
struct Channels {
  int64_t outer = 1, channels = 1, inner = 1;

  int32_t Find(const sdk::Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (shape.rank < 2) {
      return prep.error().InvalidArgument("Input tensor must be at least 2D: ", shape);
    }
    const uint32_t at = prep.node().String("data_format", "NHWC") == "NCHW" ? 1 : shape.rank - 1;
    channels = shape.dims[at];
    for (uint32_t i = 0; i < shape.rank; ++i) {
      if (i < at) outer *= shape.dims[i];
      if (i > at) inner *= shape.dims[i];
    }
    return WEIR_OK;
  }
};

struct BiasPlan {
  Channels view;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = view.Find(prep); code != WEIR_OK) return code;
    const weir_shape& bias = prep.shape(1);
    if (bias.rank != 1) return prep.error().InvalidArgument("Biases must be 1D: ", bias);
    if (bias.dims[0] != view.channels) {
      return prep.error().InvalidArgument(
          "Must provide as many biases as the last dimension of the input tensor: ", bias, " vs. ", prep.shape(0));
    }
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

struct BiasGradPlan {
  Channels view;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = view.Find(prep); code != WEIR_OK) return code;
    if (sdk::SizeOf(prep.output(0).shape) != view.channels) {
      return prep.error().InvalidArgument("the gradient has shape ", prep.output(0).shape, ", wanted [", view.channels,
                                          "]");
    }
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BIAS_PLANS_H_
