// Batch normalisation with given statistics: what the ops of old graphs demand of their operands.
#ifndef WEIR_PLUGINS_FUNCTORS_GIVEN_STATISTICS_H_
#define WEIR_PLUGINS_FUNCTORS_GIVEN_STATISTICS_H_

#include <initializer_list>
#include <string_view>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Images with the channels last, and statistics per channel.
struct GivenStatistics {
  int64_t rows = 0, channels = 0;
  double epsilon = 0;
  bool scales = false;

  /// Operand 0 are the images, `vectors` the names of those behind them.
  int32_t Plan(const sdk::Prep& prep, std::initializer_list<std::string_view> vectors) {
    const sdk::Error& error = prep.error();
    epsilon = prep.node().Float("variance_epsilon", 0);
    scales = prep.node().Bool("scale_after_normalization", false);
    const weir_shape& images = prep.shape(0);
    if (images.rank != 4) return error.InvalidArgument("input must be 4-dimensional", images);
    channels = images.dims[3];
    uint32_t i = 1;
    for (const std::string_view name : vectors) {
      const weir_shape& vector = prep.shape(i++);
      if (vector.rank != 1) return error.InvalidArgument(name, " must be 1-dimensional", vector);
      if (vector.dims[0] == channels) continue;
      return error.InvalidArgument(name, " must have an element per channel, ", channels, ", but has shape ", vector);
    }
    rows = prep.size(0) == 0 ? 0 : SizeOf(images, 0, 3);
    return WEIR_OK;
  }
  /// That of the gradient: operand 4 is the gradient by the result.
  int32_t PlanGradient(const sdk::Prep& prep) {
    if (const int32_t code = Plan(prep, {"mean", "var", "gamma"}); code != WEIR_OK) return code;
    if (sdk::SameShape(prep.shape(0), prep.shape(4))) return WEIR_OK;
    return prep.error().InvalidArgument("backprop of shape ", prep.shape(4), " must have the input's shape ",
                                        prep.shape(0));
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_GIVEN_STATISTICS_H_
