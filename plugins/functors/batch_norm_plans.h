// FusedBatchNorm and its gradient: checks and geometry. `Layout` is a ChannelPlan.
#ifndef WEIR_PLUGINS_FUNCTORS_BATCH_NORM_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_BATCH_NORM_PLANS_H_

#include <string_view>

#include "plugins/functors/operands.h"

namespace weir::functors {

/// Images as [outer, channels, inner]; inner is 1 if the channels are the last axis.
struct ChannelPlan {
  int64_t outer = 0, channels = 0, inner = 1;
  bool empty = false;

  int32_t Read(const sdk::Prep& prep, uint32_t images) {
    const std::string_view format = prep.node().String("data_format", "NHWC");
    const weir_shape& shape = prep.shape(images);
    const auto rank = static_cast<uint32_t>(format.size());
    if (shape.rank != rank) return prep.error().InvalidArgument("input must be ", rank, "-dimensional", shape);
    const uint32_t axis = format[1] == 'C' ? 1 : rank - 1;
    channels = shape.dims[axis];
    empty = prep.size(images) == 0;
    if (empty) return WEIR_OK;
    outer = SizeOf(shape, 0, axis);
    inner = SizeOf(shape, axis + 1, rank);
    return WEIR_OK;
  }
  /// Elements of a channel.
  int64_t Count() const { return outer * inner; }

  int32_t ExpectVector(const sdk::Prep& prep, uint32_t i, std::string_view name) const {
    if (prep.shape(i).rank == 1) return WEIR_OK;
    return prep.error().InvalidArgument(name, " must be 1-dimensional", prep.shape(i));
  }
  int32_t ExpectChannels(const sdk::Prep& prep, uint32_t i, std::string_view name) const {
    if (prep.shape(i).dims[0] == channels) return WEIR_OK;
    return prep.error().InvalidArgument(name, " must have the same number of elements as the channels of x, got ",
                                        prep.shape(i).dims[0], " and ", channels);
  }
};

template <class Layout>
struct BatchNormPlan {
  Layout layout;
  float epsilon = 0, average = 1;
  bool training = true;

  int32_t Plan(sdk::Prep& prep) {
    const sdk::Node& node = prep.node();
    training = node.Bool("is_training", true);
    epsilon = static_cast<float>(node.Float("epsilon", 1e-4));
    average = static_cast<float>(node.Float("exponential_avg_factor", 1));
    if (const int32_t code = layout.Read(prep, 0); code != WEIR_OK) return code;
    constexpr std::string_view kNames[] = {"scale", "offset", "estimated_mean", "estimated_variance"};
    for (uint32_t i = 0; i < 4; ++i) {
      if (const int32_t code = layout.ExpectVector(prep, i + 1, kNames[i]); code != WEIR_OK) return code;
    }
    for (uint32_t i = 0; i < 2; ++i) {
      if (const int32_t code = layout.ExpectChannels(prep, i + 1, kNames[i]); code != WEIR_OK) return code;
    }
    if (!training || average != 1) {
      const bool infers = !training;
      const auto expect = [&](uint32_t i, std::string_view in_inference, std::string_view in_training) {
        return layout.ExpectChannels(prep, i, infers ? in_inference : in_training);
      };
      int32_t code = expect(3, "When is_training=false, mean", "When exponential_avg_factor != 1, mean");
      if (code == WEIR_OK) {
        code = expect(4, "When is_training=false, variance", "When exponential_avg_factor != 1, variance");
      }
      if (code != WEIR_OK) return code;
    }
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
};

template <class Layout>
struct BatchNormGradPlan {
  Layout layout;
  float epsilon = 0;
  bool training = true;

  int32_t Plan(sdk::Prep& prep) {
    const sdk::Node& node = prep.node();
    training = node.Bool("is_training", true);
    epsilon = static_cast<float>(node.Float("epsilon", 1e-4));
    if (const int32_t code = layout.Read(prep, 0); code != WEIR_OK) return code;
    if (const int32_t code = layout.Read(prep, 1); code != WEIR_OK) return code;
    constexpr std::string_view kNames[] = {"scale", "saved mean", "saved variance"};
    constexpr std::string_view kSizes[] = {"scale", "reserve_space_1", "reserve_space_2"};
    for (uint32_t i = 0; i < 3; ++i) {
      if (const int32_t code = layout.ExpectVector(prep, i + 2, kNames[i]); code != WEIR_OK) return code;
    }
    if (!sdk::SameShape(prep.shape(0), prep.shape(1))) {
      return prep.error().InvalidArgument("x and y_backprop must have same shape, but x has shape ", prep.shape(1),
                                          " and y_backprop has shape ", prep.shape(0));
    }
    for (uint32_t i = 0; i < 3; ++i) {
      if (const int32_t code = layout.ExpectChannels(prep, i + 2, kSizes[i]); code != WEIR_OK) return code;
    }
    prep.MayAlias(0, 0);
    prep.MayAlias(1, 0);
    return WEIR_OK;
  }
};

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_BATCH_NORM_PLANS_H_
