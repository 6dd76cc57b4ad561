// Resized NHWC images and their gradients. A gradient's element sums what the CPU's sums, in its order.
#include "plugins/functors/resize_plans.h"

#include "plugins/functors/arithmetic.h"
#include "plugins/gpu/kernels/families.h"
#include "plugins/gpu/kernels/storage.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using functors::Neighbours;
using functors::Resampled;
using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;

/// Element i of images [batch, rows, columns, channels].
struct ImagePlace {
  int64_t image, row, column, channel;
  WEIR_GPU_FN ImagePlace(int64_t i, int64_t rows, int64_t columns, int64_t channels)
      : image(i / channels / columns / rows),
        row(i / channels / columns % rows),
        column(i / channels % columns),
        channel(i % channels) {}
};

/// Images and their resized form.
struct ResizedImages {
  Resampled rows, columns;
  int64_t channels;
  WEIR_GPU_FN ImagePlace InResized(int64_t i) const { return {i, rows.to, columns.to, channels}; }
  WEIR_GPU_FN ImagePlace InOriginal(int64_t i) const { return {i, rows.from, columns.from, channels}; }
  WEIR_GPU_FN int64_t Original(const ImagePlace& at, int64_t row, int64_t column) const {
    return ((at.image * rows.from + row) * columns.from + column) * channels + at.channel;
  }
  WEIR_GPU_FN int64_t Resized(const ImagePlace& at, int64_t row, int64_t column) const {
    return ((at.image * rows.to + row) * columns.to + column) * channels + at.channel;
  }
};

template <class S>
struct BilinearWork {
  Ptr<const char> from;
  Ptr<float> to;
  ResizedImages images;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const ImagePlace at = images.InResized(i);
    const Neighbours y = Neighbours::Of(images.rows, at.row), x = Neighbours::Of(images.columns, at.column);
    const float a = Pixel(at, y.low, x.low), b = Pixel(at, y.low, x.high);
    const float d = Pixel(at, y.high, x.low), e = Pixel(at, y.high, x.high);
    const float above = a + (b - a) * x.share, below = d + (e - d) * x.share;
    to[i] = above + (below - above) * y.share;
  }
  WEIR_GPU_FN float Pixel(const ImagePlace& at, int64_t row, int64_t column) const {
    return static_cast<float>(storage.Load(from.get(), images.Original(at, row, column)));
  }
};
struct ResizeBilinear : functors::ResizePlan {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput y) const {
    if (batch == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers>(x.dtype(), [&](auto storage) {
      const Ptr<float> to(static_cast<float*>(y.data()));
      code = Launch(env, y.size(), BilinearWork<decltype(storage)>{From(x), to, {rows, columns, channels}, storage});
    });
    return code;
  }
};

template <class E>
struct NearestWork {
  Ptr<const E> from;
  Ptr<E> to;
  ResizedImages images;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const ImagePlace at = images.InResized(i);
    to[i] = from[images.Original(at, images.rows.Nearest(at.row), images.columns.Nearest(at.column))];
  }
};
struct ResizeNearest : functors::ResizePlan {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  int32_t Run(Env& env, AnyInput x, HostIntegers, AnyOutput y) const {
    if (batch == 0) return WEIR_OK;
    return functors::ForBytes(sdk::SizeOf(y.dtype()), [&](auto element) {
      using E = decltype(element);
      return Launch(env, y.size(), NearestWork<E>{static_cast<const E*>(x.data()), static_cast<E*>(y.data()),
                                                  {rows, columns, channels}});
    });
  }
};

/// The first place in [0, n) whose image, which does not decrease, is at least `least`; n if there is none.
template <class Image>
WEIR_GPU_FN int64_t FirstAtLeast(int64_t n, int64_t least, const Image& image) {
  int64_t begin = 0, end = n;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (image(middle) < least) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// Resized places that an original one has a share in.
struct ResizedRange {
  int64_t begin, end;
  WEIR_GPU_FN static ResizedRange OfNeighbours(const Resampled& axis, int64_t place) {
    return {FirstAtLeast(axis.to, place, [&](int64_t i) { return Neighbours::Of(axis, i).high; }),
            FirstAtLeast(axis.to, place + 1, [&](int64_t i) { return Neighbours::Of(axis, i).low; })};
  }
  WEIR_GPU_FN static ResizedRange OfNearest(const Resampled& axis, int64_t place) {
    const auto nearest = [&](int64_t i) { return axis.Nearest(i); };
    return {FirstAtLeast(axis.to, place, nearest), FirstAtLeast(axis.to, place + 1, nearest)};
  }
};

template <class S>
struct BilinearGradWork {
  using C = typename S::C;
  Ptr<const float> grads;
  Ptr<char> to;
  ResizedImages images;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const ImagePlace at = images.InOriginal(i);
    const ResizedRange down = ResizedRange::OfNeighbours(images.rows, at.row),
                       across = ResizedRange::OfNeighbours(images.columns, at.column);
    C sum{};
    for (int64_t row = down.begin; row < down.end; ++row) {
      const Neighbours y = Neighbours::Of(images.rows, row);
      for (int64_t column = across.begin; column < across.end; ++column) {
        const Neighbours x = Neighbours::Of(images.columns, column);
        const float slope = grads[images.Resized(at, row, column)];
        const bool top = y.low == at.row, bottom = y.high == at.row;
        const bool left = x.low == at.column, right = x.high == at.column;
        if (top && left) sum += static_cast<C>(slope * ((1 - y.share) * (1 - x.share)));
        if (top && right) sum += static_cast<C>(slope * ((1 - y.share) * x.share));
        if (bottom && left) sum += static_cast<C>(slope * (y.share * (1 - x.share)));
        if (bottom && right) sum += static_cast<C>(slope * (y.share * x.share));
      }
    }
    storage.Store(to.get(), i, sum);
  }
};
struct ResizeBilinearGrad : functors::ResizeGradPlan {
  int32_t Prepare(Prep& prep) { return Plan(prep); }
  int32_t Run(Env& env, AnyInput grads, AnyInput, AnyOutput dx) const {
    if (batch == 0 || channels == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(dx.dtype(), [&](auto storage) {
      const Ptr<const float> from(static_cast<const float*>(grads.data()));
      code = Launch(env, dx.size(),
                    BilinearGradWork<decltype(storage)>{from, To(dx), {rows, columns, channels}, storage});
    });
    return code;
  }
};

/// Sums in the element type, as on the CPU.
template <class S>
struct NearestGradWork {
  Ptr<const char> grads;
  Ptr<char> to;
  ResizedImages images;
  S storage;
  WEIR_GPU_FN void operator()(int64_t i) const {
    const ImagePlace at = images.InOriginal(i);
    const ResizedRange down = ResizedRange::OfNearest(images.rows, at.row),
                       across = ResizedRange::OfNearest(images.columns, at.column);
    storage.Store(to.get(), i, typename S::C{});
    for (int64_t row = down.begin; row < down.end; ++row) {
      for (int64_t column = across.begin; column < across.end; ++column) {
        const auto slope = storage.Load(grads.get(), images.Resized(at, row, column));
        storage.Store(to.get(), i, functors::Sum(storage.Load(to.get(), i), slope));
      }
    }
  }
};
struct ResizeNearestGrad : functors::ResizeNearestGradPlan {
  int32_t Run(Env& env, AnyInput grads, HostIntegers, AnyOutput dx) const {
    if (batch == 0 || channels == 0) return WEIR_OK;
    int32_t code = WEIR_OK;
    WithStorage<kFloats | kIntegers>(dx.dtype(), [&](auto storage) {
      code = Launch(env, dx.size(),
                    NearestGradWork<decltype(storage)>{From(grads), To(dx), {rows, columns, channels}, storage});
    });
    return code;
  }
};

}  // namespace

void AddResize(sdk::KernelTable& k) {
  constexpr uint64_t kImages = kFloatingBits | kSignedBits | DTypes({WEIR_UINT8, WEIR_UINT16});
  k.Add<ResizeBilinear>("ResizeBilinear").Restrict("T", kImages).Class(WEIR_CLASS_GATHER, 8);
  k.Add<ResizeNearest>("ResizeNearestNeighbor").Restrict("T", kImages).Class(WEIR_CLASS_GATHER, 1);
  k.Add<ResizeBilinearGrad>("ResizeBilinearGrad").Restrict("T", kFloatingBits).Class(WEIR_CLASS_GATHER, 8);
  k.Add<ResizeNearestGrad>("ResizeNearestNeighborGrad")
      .Restrict("T", kFloatingBits | DTypes({WEIR_UINT8, WEIR_INT8, WEIR_INT32}))
      .Class(WEIR_CLASS_GATHER, 1);
}

}  // namespace weir::gpu
