// Images scaled and moved by any numbers: ScaleAndTranslate and its gradient.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>
#include <vector>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/function_families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Env;
using sdk::Error;
using sdk::HostIntegers;
using sdk::View;

constexpr float kPi = std::numbers::pi_v<float>;

/// A weight by the distance x >= 0, 0 from `radius` on.
struct ResizeFilter {
  float radius = 1;
  float (*weight)(float x, float radius) = nullptr;
};

float Lanczos(float x, float radius) {
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}
float Gaussian(float x, float radius) {
  const float sigma = radius / 3;
  return x >= radius ? 0 : std::exp(-x * x / (2 * sigma * sigma));
}
float Box(float x, float) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; }
float Triangle(float x, float) { return x < 1 ? 1 - x : 0; }
float KeysCubic(float x, float) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : ((1.5f * x - 2.5f) * x) * x + 1;
}
float MitchellCubic(float x, float) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9 : ((7.0f / 6 * x - 2) * x) * x + 8.0f / 9;
}

ResizeFilter ResizeFilterNamed(std::string_view name) {
  if (name == "lanczos1") return {1, Lanczos};
  if (name == "lanczos3") return {3, Lanczos};
  if (name == "lanczos5") return {5, Lanczos};
  if (name == "gaussian") return {1.5f, Gaussian};
  if (name == "box") return {1, Box};
  if (name == "triangle") return {1, Triangle};
  if (name == "keyscubic") return {2, KeysCubic};
  if (name == "mitchellcubic") return {2, MitchellCubic};
  return {};
}

/// The pixels [start, start + weights.size()) of the input that one pixel of the output is the mean of; none outside of
/// the image.
struct Span {
  int64_t start = 0;
  std::vector<float> weights;
};

struct ScalePlan {
  ResizeFilter sampler;
  bool antialias = true;

  int32_t Prepare(sdk::Prep& prep) {
    const std::string_view name = prep.node().String("kernel_type", "lanczos3");
    sampler = ResizeFilterNamed(name);
    antialias = prep.node().Bool("antialias", true);
    return sampler.weight != nullptr ? WEIR_OK : prep.error().InvalidArgument("Unrecognized kernel type: ", name);
  }

  std::vector<Span> SpansOf(int64_t outputs, int64_t inputs, float scale, float translation) const {
    const float step = 1 / scale, offset = -step * translation;
    const float width = antialias ? std::max(step, 1.0f) : 1.0f, per_width = 1 / width;
    std::vector<Span> spans(static_cast<size_t>(outputs));
    for (int64_t i = 0; i < outputs; ++i) {
      const float middle = (static_cast<float>(i) + 0.5f) * step + offset;
      if (!(middle >= 0 && middle <= static_cast<float>(inputs))) continue;
      const float reach = sampler.radius * width;
      const auto first = static_cast<int64_t>(std::max(0.0f, std::ceil(middle - reach - 0.5f)));
      // Beyond 2^24 pixels a float may be larger than the number that it stands for.
      const float end = std::min(static_cast<float>(inputs - 1), std::floor(middle + reach - 0.5f));
      const int64_t last = std::min(inputs - 1, static_cast<int64_t>(end));
      Span& span = spans[static_cast<size_t>(i)];
      span.start = first;
      float total = 0;
      for (int64_t at = first; at <= last; ++at) {
        span.weights.push_back(
            sampler.weight(std::fabs(static_cast<float>(at) + 0.5f - middle) * per_width, sampler.radius));
        total += span.weights.back();
      }
      if (std::fabs(total) < 1000 * std::numeric_limits<float>::min()) continue;
      for (float& weight : span.weights) weight *= 1 / total;
    }
    return spans;
  }

  /// Two positive numbers, or any two.
  static int32_t CheckPairs(const Error& error, View<const float> scale, View<const float> translation) {
    for (const View<const float>* pair : {&scale, &translation}) {
      if (pair->rank() != 1) return error.InvalidArgument("t must be 1-dimensional", pair->shape());
      if (pair->size() != 2) return error.InvalidArgument("t must have two elements", pair->shape());
    }
    if (scale[0] > 0 && scale[1] > 0) return WEIR_OK;
    return error.InvalidArgument("Scale must be greater than zero.");
  }
};

struct ScaleAndTranslate : ScalePlan {
  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape& images = prep.shape(0);
    if (images.rank != 4) return prep.error().InvalidArgument("input must be 4-dimensional", images);
    std::vector<int64_t> size;
    if (const int32_t code = Steering(prep, 1, &size); code != WEIR_OK) return code;
    if (size.size() != 2) return prep.error().InvalidArgument("output_shape_t must have two elements", prep.shape(1));
    if (size[0] <= 0 || size[1] <= 0) return prep.error().InvalidArgument("output dimensions must be positive");
    const int32_t code = ExpectOutput(prep, 0, {images.dims[0], size[0], size[1], images.dims[3]});
    return code != WEIR_OK ? code : ScalePlan::Prepare(prep);
  }
  template <class T>
  int32_t Run(Env& env, View<const T> images, HostIntegers, View<const float> scale, View<const float> translation,
              View<float> output) const {
    if (const int32_t code = CheckPairs(env.error(), scale, translation); code != WEIR_OK) return code;
    if (images.size() == 0 && images.dim(0) != 0) {
      return env.error().InvalidArgument(images.dim(3) == 0 ? "image must have at least one channel"
                                                            : "input image must be of non-zero size");
    }
    const int64_t height = images.dim(1), width = images.dim(2), depth = images.dim(3);
    const std::vector<Span> rows = SpansOf(output.dim(1), height, scale[0], translation[0]);
    const std::vector<Span> columns = SpansOf(output.dim(2), width, scale[1], translation[1]);
    std::vector<float> line(static_cast<size_t>(width * depth));
    float* to = output.data();
    for (int64_t image = 0; image < images.dim(0); ++image) {
      for (const Span& row : rows) {
        std::fill(line.begin(), line.end(), 0.0f);
        for (size_t k = 0; k < row.weights.size(); ++k) {
          const T* from = images.data() + (image * height + row.start + static_cast<int64_t>(k)) * width * depth;
          for (size_t i = 0; i < line.size(); ++i) line[i] += row.weights[k] * static_cast<float>(from[i]);
        }
        for (const Span& column : columns) {
          std::fill_n(to, depth, 0.0f);
          for (size_t k = 0; k < column.weights.size(); ++k) {
            const float* from = line.data() + (column.start + static_cast<int64_t>(k)) * depth;
            for (int64_t c = 0; c < depth; ++c) to[c] += column.weights[k] * from[c];
          }
          to += depth;
        }
      }
    }
    return WEIR_OK;
  }
};

struct ScaleAndTranslateGrad : ScalePlan {
  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &grads = prep.shape(0), &image = prep.shape(1);
    if (grads.rank != 4) return prep.error().InvalidArgument("input_grad must be 4-dimensional", grads);
    if (image.rank != 4) return prep.error().InvalidArgument("original_image must be 4-dimensional", image);
    if (grads.dims[0] != image.dims[0] || grads.dims[3] != image.dims[3]) {
      return prep.error().InvalidArgument("input_grad ", grads, " and original_image ", image,
                                          " must have the same batch and channels");
    }
    return ScalePlan::Prepare(prep);
  }
  int32_t Run(Env& env, View<const float> grads, View<const float> original, View<const float> scale,
              View<const float> translation, View<float> output) const {
    if (const int32_t code = CheckPairs(env.error(), scale, translation); code != WEIR_OK) return code;
    const int64_t height = original.dim(1), width = original.dim(2), depth = original.dim(3);
    const std::vector<Span> rows = SpansOf(grads.dim(1), height, scale[0], translation[0]);
    const std::vector<Span> columns = SpansOf(grads.dim(2), width, scale[1], translation[1]);
    std::vector<float> line(static_cast<size_t>(width * depth));
    std::fill_n(output.data(), output.size(), 0.0f);
    const float* from = grads.data();
    for (int64_t image = 0; image < original.dim(0); ++image) {
      for (const Span& row : rows) {
        std::fill(line.begin(), line.end(), 0.0f);
        for (const Span& column : columns) {
          for (size_t k = 0; k < column.weights.size(); ++k) {
            float* to = line.data() + (column.start + static_cast<int64_t>(k)) * depth;
            for (int64_t c = 0; c < depth; ++c) to[c] += column.weights[k] * from[c];
          }
          from += depth;
        }
        for (size_t k = 0; k < row.weights.size(); ++k) {
          float* to = output.data() + (image * height + row.start + static_cast<int64_t>(k)) * width * depth;
          for (size_t i = 0; i < line.size(); ++i) to[i] += row.weights[k] * line[i];
        }
      }
    }
    return WEIR_OK;
  }
};

}  // namespace

void AddScaleAndTranslate(sdk::KernelTable& k) {
#if defined(WEIR_KERNEL_DTYPES_SHORT)
  constexpr auto kImages = kFloat;
#else
  constexpr auto kImages = kFloating + kSigned + sdk::Types<uint8_t, uint16_t>();
#endif
  k.Add<ScaleAndTranslate>("ScaleAndTranslate", kImages).Class(WEIR_CLASS_GATHER, 8);
  k.Add<ScaleAndTranslateGrad>("ScaleAndTranslateGrad").Class(WEIR_CLASS_GATHER, 8);
}

}  // namespace weir::kernels_eigen
