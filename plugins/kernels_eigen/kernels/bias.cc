// BiasAdd and its gradient: a vector along the channel dimension.
#include <algorithm>

#include "plugins/functors/bias_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

constexpr int64_t kFewChannels = 16;            // fewer channels fill no vector: several rows are taken as one
constexpr int64_t kWideRow = 4 * kFewChannels;  // channels of such a row, at most

struct BiasAdd : functors::BiasPlan {
  template <class T>
  void Run(sdk::View<const T> value, sdk::View<const T> bias, sdk::View<T> out) const {
    using C = sdk::Compute<T>;
    const T* x = value.data();
    const T* b = bias.data();
    T* y = out.data();
    int64_t first = 0;
    if (view.inner == 1 && view.channels > 0 && view.channels < kFewChannels && view.outer >= kWideRow) {
      T repeated[kWideRow];
      const int64_t rows = kWideRow / view.channels, wide = rows * view.channels;
      for (int64_t i = 0; i < wide; ++i) repeated[i] = b[i % view.channels];
      for (; first + rows <= view.outer; first += rows, x += wide, y += wide) {
        WEIR_INDEPENDENT
        for (int64_t c = 0; c < wide; ++c)
          y[c] = static_cast<T>(Sum(static_cast<C>(x[c]), static_cast<C>(repeated[c])));
      }
    }
    for (int64_t i = first; i < view.outer; ++i) {
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

struct BiasAddGrad : functors::BiasGradPlan {
  template <class T>
  void Run(sdk::View<const T> gradient, sdk::View<T> out) const {
    using C = sdk::Compute<T>;
    if (gradient.size() == 0) {  // with an extent of 0, other extents may be arbitrarily large
      for (int64_t c = 0; c < view.channels; ++c) out[c] = T(0);
      return;
    }
    const T* x = gradient.data();
    if (view.inner == 1 && view.channels < kFewChannels && view.outer >= kWideRow)
      return SumNarrow<T, C>(x, out.data());
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
  void SumNarrow(const T* x, T* out) const {
    const int64_t together = kWideRow / view.channels, wide = together * view.channels;
    C total[kWideRow] = {}, block[kWideRow];
    int64_t left = view.outer;
    while (left >= together) {
      std::fill(block, block + wide, C(0));
      for (int64_t i = 0; i < kRowBlock && left >= together; ++i, left -= together, x += wide) AddRow(x, wide, block);
      for (int64_t c = 0; c < wide; ++c) total[c] = Sum(total[c], block[c]);
    }
    AddRow(x, left * view.channels, total);
    for (int64_t i = view.channels; i < wide; ++i) total[i % view.channels] = Sum(total[i % view.channels], total[i]);
    for (int64_t c = 0; c < view.channels; ++c) out[c] = static_cast<T>(total[c]);
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
