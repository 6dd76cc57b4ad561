// Maxima and means of windows over images and volumes.
#include "plugins/kernels_eigen/kernels/pool.h"

#include "plugins/functors/pool_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/lanes.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/elementwise.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Compute;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

/// The largest element; NaN is never.
struct WindowMax {
  template <class C>
  static C First() {
    return std::numeric_limits<C>::lowest();
  }
  template <class C>
  static C Fold(C so_far, C x) {
    return x > so_far ? x : so_far;
  }
  template <class C>
  static C Result(C folded, int64_t) {
    return folded;
  }
};

struct WindowMean {
  template <class C>
  static C First() {
    return C(0);
  }
  template <class C>
  static C Fold(C so_far, C x) {
    return so_far + x;
  }
  template <class C>
  static C Result(C folded, int64_t count) {
    if constexpr (std::is_same_v<C, EightLanes>) return folded / static_cast<float>(count);
    else return folded / static_cast<C>(count);
  }
};

/// 8 * kVectors neighbouring channels of 2 x 2 places of a plane, of which `x` is the first one, in the order of
/// FoldFloats.
template <class F, int kVectors>
void FoldFour(const PoolPlan& plan, const float* x, float* y) {
  const int64_t places[] = {0, plan.in_steps[2], plan.in_steps[1], plan.in_steps[1] + plan.in_steps[2]};
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) {
    EightLanes folded = EightLanes{} + F::template First<float>();
#pragma GCC unroll 4
    for (const int64_t place : places) folded = F::Fold(folded, LoadLoose<EightLanes>(x + place + 8 * i));
    StoreLoose(F::Result(folded, 4), y + 8 * i);
  }
}

/// 8 * kVectors neighbouring channels of one window, in registers.
template <class F, int kVectors>
void FoldFloats(const PoolPlan& plan, const PoolPlan::Box& box, const float* x, float* y) {
  const bool square = box.rows.end - box.rows.first == 2 && box.columns.end - box.columns.first == 2;
  if (square && box.planes.end - box.planes.first == 1) {
    const int64_t line = box.planes.first * plan.in_steps[0] + box.rows.first * plan.in_steps[1];
    return FoldFour<F, kVectors>(plan, x + line + box.columns.first * plan.in_steps[2], y);
  }
  EightLanes folded[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) folded[i] = EightLanes{} + F::template First<float>();
  const int64_t columns = box.columns.end - box.columns.first, step = plan.in_steps[2];
  for (int64_t z = box.planes.first; z < box.planes.end; ++z) {
    for (int64_t row = box.rows.first; row < box.rows.end; ++row) {
      const float* from = x + z * plan.in_steps[0] + row * plan.in_steps[1] + box.columns.first * step;
      for (int64_t column = 0; column < columns; ++column, from += step) {
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) folded[i] = F::Fold(folded[i], LoadLoose<EightLanes>(from + 8 * i));
      }
    }
  }
  const int64_t count = box.count();
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) StoreLoose(F::Result(folded[i], count), y + 8 * i);
}

/// kChannels neighbouring channels of one window.
template <class F, int kChannels, class T>
void FoldLanes(const PoolPlan& plan, const PoolPlan::Box& box, const T* x, T* y) {
  using C = Compute<T>;
  if constexpr (std::is_same_v<T, float> && kChannels % 8 == 0) return FoldFloats<F, kChannels / 8>(plan, box, x, y);
  C folded[kChannels];
  for (int i = 0; i < kChannels; ++i) folded[i] = F::template First<C>();
  PoolPlan::ForBox(box, plan.in_steps, [&](int64_t at) {
    const T* from = x + at;
    for (int i = 0; i < kChannels; ++i) folded[i] = F::Fold(folded[i], static_cast<C>(from[i]));
  });
  const int64_t count = box.count();
  for (int i = 0; i < kChannels; ++i) y[i] = static_cast<T>(F::Result(folded[i], count));
}

/// One row of outputs with channels beside each other.
template <class F, class T>
void FoldRow(const PoolPlan& plan, int64_t plane, int64_t row, const T* x, T* y) {
  PoolPlan::Box box = plan.Reads(plane, row, 0);
  for (int64_t column = 0; column < plan.axes[2].output; ++column, y += plan.out_steps[2]) {
    box.columns = plan.ReadsColumns(column);
    // Lanes behind the last channel are those of the next pixel, whose own are written afterwards.
    if (plan.inner < 8 && plan.HasLanesBehind(box, column, 8)) {
      FoldLanes<F, 8>(plan, box, x, y);
      continue;
    }
    int64_t c = 0;
    for (; c + 32 <= plan.inner; c += 32) FoldLanes<F, 32>(plan, box, x + c, y + c);
    for (; c + 8 <= plan.inner; c += 8) FoldLanes<F, 8>(plan, box, x + c, y + c);
    if (c > 0 && c < plan.inner) c = plan.inner - 8;  // some of them once more
    for (; c + 8 <= plan.inner; c += 8) FoldLanes<F, 8>(plan, box, x + c, y + c);
    for (; c < plan.inner; ++c) FoldLanes<F, 1>(plan, box, x + c, y + c);
  }
}

constexpr int64_t kColumnTile = 256;

/// One row of outputs of a single channel, tap by tap for many columns at a time.
template <class F, class T>
void FoldColumns(const PoolPlan& plan, int64_t plane, int64_t row, const T* x, T* y) {
  using C = Compute<T>;
  const sdk::WindowAxis& axis = plan.axes[2];
  const PoolPlan::Box lines = plan.Reads(plane, row, 0);
  const int64_t line_count = (lines.planes.end - lines.planes.first) * (lines.rows.end - lines.rows.first);
  C folded[kColumnTile];
  for (int64_t begin = 0; begin < axis.output; begin += kColumnTile) {
    const int64_t end = std::min(axis.output, begin + kColumnTile);
    std::fill(folded, folded + (end - begin), F::template First<C>());
    const int64_t first_tap = std::max<int64_t>(0, -axis.Start(end - 1));
    const int64_t end_tap = std::min(axis.window, axis.input - axis.Start(begin));
    for (int64_t z = lines.planes.first; z < lines.planes.end; ++z) {
      for (int64_t line = lines.rows.first; line < lines.rows.end; ++line) {
        const T* from = x + z * plan.in_steps[0] + line * plan.in_steps[1];
        for (int64_t tap = first_tap; tap < end_tap; ++tap) {
          const sdk::Places places = axis.Outputs(tap);
          const int64_t first = std::max(places.first, begin), last = std::min(places.end, end);
          WEIR_INDEPENDENT
          for (int64_t i = first; i < last; ++i) {
            folded[i - begin] = F::Fold(folded[i - begin], static_cast<C>(from[axis.Start(i) + tap]));
          }
        }
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      const PoolPlan::Box box = plan.Reads(plane, row, i);
      const int64_t columns = std::max<int64_t>(0, box.columns.end - box.columns.first);
      y[i] = static_cast<T>(F::Result(folded[i - begin], line_count * columns));
    }
  }
}

/// Windows across channels: plan.depth_window neighbours each.
template <class F, class T>
void FoldDepth(const PoolPlan& plan, const T* x, T* y, int64_t count) {
  using C = Compute<T>;
  for (int64_t i = 0; i < count; ++i, x += plan.depth_window) {
    C folded = F::template First<C>();
    for (int64_t c = 0; c < plan.depth_window; ++c) folded = F::Fold(folded, static_cast<C>(x[c]));
    y[i] = static_cast<T>(F::Result(folded, plan.depth_window));
  }
}

template <class F>
struct Pool {
  PoolPlan plan;

  int32_t Plan(Prep& prep, const PoolForm& form) {
    if (prep.shape(0).rank != form.spatial + 2) {
      return prep.error().InvalidArgument("tensor_in must be ", form.spatial + 2, "-dimensional");
    }
    if (const int32_t code = plan.Make(prep, prep.shape(0), form); code != WEIR_OK) return code;
    if (const int32_t code = ExpectOutput(prep, 0, plan.Output(form.spatial)); code != WEIR_OK) return code;
    const int64_t rows = plan.OutputRows();
    if (rows > 0) prep.Tiles(static_cast<uint64_t>(std::min(rows, prep.size(0) / kPoolTileWork)));
    return WEIR_OK;
  }

  template <class T>
  void Fold(Env& env, const T* x, T* y) const {
    const auto [begin, end] = env.Range(plan.OutputRows());
    plan.ForOutputRows(begin, end, [&](int64_t array, int64_t plane, int64_t row) {
      const T* from = x + array * plan.in_size;
      T* to = y + array * plan.out_size + plane * plan.out_steps[0] + row * plan.out_steps[1];
      if (plan.depth_window > 1) {
        from += plane * plan.in_steps[0] + row * plan.in_steps[1];
        FoldDepth<F>(plan, from, to, plan.out_steps[1]);
      } else if (plan.inner == 1) {
        FoldColumns<F>(plan, plane, row, from, to);
      } else {
        FoldRow<F>(plan, plane, row, from, to);
      }
    });
  }
};

template <class F, uint32_t kSpatial, bool kDepth>
struct PoolByAttrs : Pool<F> {
  int32_t Prepare(Prep& prep) { return this->Plan(prep, {.spatial = kSpatial, .depth = kDepth}); }
  template <class T>
  void Run(Env& env, View<const T> x, View<T> y) const {
    this->Fold(env, x.data(), y.data());
  }
};

struct MaxPoolV2 : Pool<WindowMax> {
  int32_t Prepare(Prep& prep) { return Plan(prep, {.depth = true, .steps_at = 1}); }
  template <class T>
  void Run(Env& env, View<const T> x, HostIntegers, HostIntegers, View<T> y) const {
    Fold(env, x.data(), y.data());
  }
};

template <uint32_t kSpatial>
struct MeanGrad : functors::MeanGradPlan<kSpatial> {
  using functors::MeanGradPlan<kSpatial>::plan;

  int32_t Prepare(Prep& prep) {
    const int32_t code = functors::MeanGradPlan<kSpatial>::Prepare(prep);
    if (code == WEIR_OK && !this->none) {
      const weir_shape& images = prep.output(0).shape;
      prep.Tiles(static_cast<uint64_t>(std::min(Rows(), SizeOf(images, 0, images.rank) / kPoolTileWork)));
    }
    return code;
  }
  int64_t Rows() const { return this->none ? 0 : plan.outer * plan.axes[0].input * plan.axes[1].input; }
  template <class T>
  void Run(Env& env, HostIntegers, View<const T> dy, View<T> dx) const {
    const auto [begin, end] = env.Range(Rows());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % plan.axes[1].input, rest = i / plan.axes[1].input;
      const int64_t plane = rest % plan.axes[0].input, array = rest / plan.axes[0].input;
      T* to = dx.data() + array * plan.in_size + plane * plan.in_steps[0] + row * plan.in_steps[1];
      for (int64_t column = 0; column < plan.axes[2].input; ++column, to += plan.inner) {
        const PoolPlan::Box box = plan.ReadBy(plane, row, column);
        int64_t c = 0;
        const T* from = dy.data() + array * plan.out_size;
        for (; c + 16 <= plan.inner; c += 16) Gather<16>(box, from + c, to + c);
        if (c > 0 && c < plan.inner) c = plan.inner - 16;  // some of them once more
        for (; c + 16 <= plan.inner; c += 16) Gather<16>(box, from + c, to + c);
        for (; c < plan.inner; ++c) Gather<1>(box, from + c, to + c);
      }
    }
  }
  template <int kLanes, class T>
  void Gather(const PoolPlan::Box& box, const T* dy, T* dx) const {
    using C = Compute<T>;
    C sums[kLanes] = {};
    for (int64_t z = box.planes.first; z < box.planes.end; ++z) {
      for (int64_t y = box.rows.first; y < box.rows.end; ++y) {
        for (int64_t x = box.columns.first; x < box.columns.end; ++x) {
          const T* from = dy + z * plan.out_steps[0] + y * plan.out_steps[1] + x * plan.out_steps[2];
          const C share = C(1) / static_cast<C>(plan.Reads(z, y, x).count());
          for (int i = 0; i < kLanes; ++i) sums[i] += static_cast<C>(from[i]) * share;
        }
      }
    }
    for (int i = 0; i < kLanes; ++i) dx[i] = static_cast<T>(sums[i]);
  }
};

}  // namespace

void AddPool(sdk::KernelTable& k) {
  constexpr auto kMaxTypes = kFloating + kSigned + sdk::Types<uint8_t, uint16_t>();
  constexpr auto kVolumeTypes = k16Bit + sdk::Types<float>();
  k.Add<PoolByAttrs<WindowMax, 2, true>>("MaxPool", kMaxTypes).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<MaxPoolV2>("MaxPoolV2", kMaxTypes).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<PoolByAttrs<WindowMax, 3, false>>("MaxPool3D", kVolumeTypes).Class(WEIR_CLASS_REDUCE, 27);
  k.Add<PoolByAttrs<WindowMean, 2, false>>("AvgPool", kFloating).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<PoolByAttrs<WindowMean, 3, false>>("AvgPool3D", kFloating).Class(WEIR_CLASS_REDUCE, 27);
  k.Add<MeanGrad<2>>("AvgPoolGrad", kFloating).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<MeanGrad<3>>("AvgPool3DGrad", kFloating).Class(WEIR_CLASS_REDUCE, 27);
}

}  // namespace weir::kernels_eigen
