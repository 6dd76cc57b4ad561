// Checks of gradients of pooling.
#ifndef WEIR_PLUGINS_FUNCTORS_POOL_PLANS_H_
#define WEIR_PLUGINS_FUNCTORS_POOL_PLANS_H_

#include <vector>

#include "plugins/functors/pool.h"

namespace weir::functors {

/// The gradient of a mean by its input, place by place: the sum over the windows that read it.
template <uint32_t kSpatial>
struct MeanGradPlan {
  PoolPlan plan;
  bool none = false;  // the input has no elements

  int32_t Prepare(sdk::Prep& prep) {
    const sdk::Error& error = prep.error();
    constexpr uint32_t kRank = kSpatial + 2;
    std::vector<int64_t> dims;
    if (const int32_t code = Steering(prep, 0, &dims); code != WEIR_OK) return code;
    if (prep.shape(0).rank != 1 || dims.size() != kRank) {
      return error.InvalidArgument("orig_input_shape must be 1-dimensional and ", kRank, " elements");
    }
    if (prep.shape(1).rank != kRank) {
      return error.InvalidArgument("out_backprop must be ", kRank, "-dimensional");
    }
    for (const int64_t dim : dims) {
      if (dim < 0) return error.InvalidArgument("Expected a non-negative size, got ", dim);
    }
    const weir_shape images{kRank, 0, dims.data()};
    if (const int32_t code = plan.Make(prep, images, {.spatial = kSpatial}); code != WEIR_OK) return code;
    if (const int32_t code = ExpectPooled(prep, 1, "grad", plan.Output(kSpatial)); code != WEIR_OK) return code;
    none = std::find(dims.begin(), dims.end(), 0) != dims.end();
    return ExpectOutput(prep, 0, dims);
  }
};

/// Checks of gradients of maxima; `images` has the shape of the differentiated op's input, `pooled` that of its output.
struct GradForm {
  PoolForm pool;
  int grad = 2;  // its input
  bool grad_is_pooled = true;
};

struct MaxGradientPlan {
  PoolPlan plan;

  int32_t Plan(sdk::Prep& prep, const GradForm& form) {
    const sdk::Error& error = prep.error();
    const uint32_t rank = form.pool.spatial + 2;
    const auto grad = static_cast<uint32_t>(form.grad);
    if (prep.shape(0).rank != rank) return error.InvalidArgument("tensor_in must be ", rank, "-dimensional");
    if (grad == 2 && prep.shape(1).rank != rank) {
      return error.InvalidArgument("tensor_out must be ", rank, "-dimensional");
    }
    if (prep.shape(grad).rank != rank) return error.InvalidArgument("out_backprop must be ", rank, "-dimensional");
    if (const int32_t code = plan.Make(prep, prep.shape(0), form.pool); code != WEIR_OK) return code;
    const std::vector<int64_t> pooled = plan.Output(form.pool.spatial), images = plan.Input(form.pool.spatial);
    if (grad == 2) {
      if (const int32_t code = ExpectPooled(prep, 1, "orig_output", pooled); code != WEIR_OK) return code;
    }
    const int32_t code = ExpectPooled(prep, grad, "grad", form.grad_is_pooled ? pooled : images);
    return code != WEIR_OK ? code : ExpectOutput(prep, 0, form.grad_is_pooled ? images : pooled);
  }
};

template <uint32_t kSpatial, bool kInputSteps>
constexpr GradForm FormOf(bool grad_is_pooled) {
  GradForm form;
  form.pool.spatial = kSpatial;
  form.pool.steps_at = kInputSteps ? 3 : -1;
  form.pool.depth_refusal = grad_is_pooled ? "MaxPoolingGrad is not yet supported on the depth dimension."
                                           : "MaxPoolingGradGrad is not yet supported on the depth dimension.";
  form.grad_is_pooled = grad_is_pooled;
  return form;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_POOL_PLANS_H_
