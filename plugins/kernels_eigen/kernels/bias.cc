// BiasAdd and its gradient: a vector along the channel dimension.
#include <algorithm>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

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

struct BiasAdd {
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

  template <class T>
  void Run(sdk::View<const T> value, sdk::View<const T> bias, sdk::View<T> out) const {
    using C = sdk::Compute<T>;
    const T* x = value.data();
    const T* b = bias.data();
    T* y = out.data();
    for (int64_t i = 0; i < view.outer; ++i) {
      if (view.inner == 1) {
        WEIR_INDEPENDENT
        for (int64_t c = 0; c < view.channels; ++c)
          y[c] = static_cast<T>(Sum(static_cast<C>(x[c]), static_cast<C>(b[c])));
        x += view.channels;
        y += view.channels;
        continue;
      }
      for (int64_t c = 0; c < view.channels; ++c, x += view.inner, y += view.inner) {
        const C shift = static_cast<C>(b[c]);
        WEIR_INDEPENDENT
        for (int64_t j = 0; j < view.inner; ++j) y[j] = static_cast<T>(Sum(static_cast<C>(x[j]), shift));
      }
    }
  }
};

constexpr int64_t kChannelTile = 512;  // channels summed at a time
constexpr int64_t kRowBlock = 64;      // rows summed before they are added to the total; limits the rounding error

struct BiasAddGrad {
  Channels view;

  int32_t Prepare(sdk::Prep& prep) {
    if (const int32_t code = view.Find(prep); code != WEIR_OK) return code;
    if (sdk::SizeOf(prep.output(0).shape) != view.channels) {
      return prep.error().InvalidArgument("the gradient has shape ", prep.output(0).shape, ", wanted [", view.channels,
                                          "]");
    }
    return WEIR_OK;
  }

  template <class T>
  void Run(sdk::View<const T> gradient, sdk::View<T> out) const {
    using C = sdk::Compute<T>;
    if (gradient.size() == 0) {  // with an extent of 0, other extents may be arbitrarily large
      for (int64_t c = 0; c < view.channels; ++c) out[c] = T(0);
      return;
    }
    const T* x = gradient.data();
    C total[kChannelTile], block[kChannelTile];
    for (int64_t begin = 0; begin < view.channels; begin += kChannelTile) {
      const int64_t count = std::min(kChannelTile, view.channels - begin);
      std::fill(total, total + count, C(0));
      for (int64_t row = 0; row < view.outer; row += kRowBlock) {
        std::fill(block, block + count, C(0));
        for (int64_t i = row; i < std::min(view.outer, row + kRowBlock); ++i) {
          AddRow(x + (i * view.channels + begin) * view.inner, count, block);
        }
        for (int64_t c = 0; c < count; ++c) total[c] = Sum(total[c], block[c]);
      }
      for (int64_t c = 0; c < count; ++c) out[begin + c] = static_cast<T>(total[c]);
    }
  }

  template <class T, class C>
  void AddRow(const T* x, int64_t count, C* sums) const {
    if (view.inner == 1) {
      for (int64_t c = 0; c < count; ++c) sums[c] = Sum(sums[c], static_cast<C>(x[c]));
      return;
    }
    for (int64_t c = 0; c < count; ++c, x += view.inner) {
      C sum(0);
      for (int64_t j = 0; j < view.inner; ++j) sum = Sum(sum, static_cast<C>(x[j]));
      sums[c] = Sum(sums[c], sum);
    }
  }
};

}  // namespace

void AddBias(sdk::KernelTable& k) {
  k.Add<BiasAdd>("BiasAdd", kNumbers).Class(WEIR_CLASS_ELEMENTWISE);
  k.Add<BiasAddGrad>("BiasAddGrad", kNumbers).Class(WEIR_CLASS_REDUCE);
}

}  // namespace weir::kernels_eigen
