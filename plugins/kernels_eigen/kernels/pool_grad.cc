// Gradients of maxima of windows, and the places of the maxima.
#include <algorithm>

#include "plugins/functors/pool_plans.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/lanes.h"
#include "plugins/kernels_eigen/kernels/pool.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Compute;
using sdk::Env;
using sdk::HostIntegers;
using sdk::Prep;
using sdk::View;

constexpr int64_t kWinnerBlock = 32;

/// Adds a window's gradient to an element of its input, in the input's type.
template <class T>
void AddTo(T& sum, T x) {
  using C = Compute<T>;
  sum = static_cast<T>(Sum(static_cast<C>(sum), static_cast<C>(x)));
}

/// The largest elements of a window, per channel of a block: the first of equal ones. NaN is one only as the
/// first element that a window reads.
template <class T>
struct Winners {
  using C = Compute<T>;
  C best[kWinnerBlock];
  int64_t at[kWinnerBlock];  // positions in the array; -1 if the window reads nothing

  void Find(const PoolPlan& plan, const PoolPlan::Box& box, const T* x, int64_t count) {
    std::fill(best, best + count, C(0));
    std::fill(at, at + count, int64_t{-1});
    PoolPlan::ForBox(box, plan.in_steps, [&](int64_t place) {
      for (int64_t c = 0; c < count; ++c) {
        const C value = static_cast<C>(x[place + c]);
        const bool wins = at[c] < 0 || value > best[c];
        best[c] = wins ? value : best[c];
        at[c] = wins ? place + c : at[c];
      }
    });
  }
};

/// Calls body(array, output position, first channel, channels, winners) for blocks of channels of every window of
/// output rows [begin, end).
template <class T, class Body>
void ForWinners(const PoolPlan& plan, int64_t begin, int64_t end, const T* x, Body body) {
  Winners<T> winners;
  plan.ForOutputRows(begin, end, [&](int64_t array, int64_t plane, int64_t row) {
    for (int64_t column = 0; column < plan.axes[2].output; ++column) {
      const PoolPlan::Box box = plan.Reads(plane, row, column);
      const int64_t place = plane * plan.out_steps[0] + row * plan.out_steps[1] + column * plan.out_steps[2];
      for (int64_t c = 0; c < plan.inner; c += kWinnerBlock) {
        const int64_t count = std::min(kWinnerBlock, plan.inner - c);
        winners.Find(plan, box, x + array * plan.in_size + c, count);
        body(array, place + c, c, count, winners);
      }
    }
  });
}

struct MaxGradient : functors::MaxGradientPlan {
  /// Tiles of whole arrays: windows of one array share elements.
  void TileArrays(Prep& prep) const {
    if (prep.size(0) == 0) return;
    prep.Tiles(static_cast<uint64_t>(std::min(plan.outer, prep.size(0) / kPoolTileWork)));
  }
  int64_t RowsOfArray() const { return plan.empty ? 0 : plan.axes[0].output * plan.axes[1].output; }
};

constexpr int kGradLanes = 8;
using EightInts = int32_t __attribute__((vector_size(32)));

/// kGradLanes neighbouring channels of one window that shares no element with others: dx at its places is dy at the
/// largest element (see Winners), else 0. The window reads something.
void SpreadLanes(const PoolPlan& plan, const PoolPlan::Box& box, const float* x, const float* dy, float* dx) {
  const int64_t first =
      box.planes.first * plan.in_steps[0] + box.rows.first * plan.in_steps[1] + box.columns.first * plan.in_steps[2];
  EightLanes best = LoadLoose<EightLanes>(x + first);
  EightInts winner{}, tap{};
  PoolPlan::ForBox(box, plan.in_steps, [&](int64_t at) {
    const EightLanes value = LoadLoose<EightLanes>(x + at);
    const auto wins = value > best;
    best = wins ? value : best;
    winner = wins ? tap : winner;
    tap += 1;
  });
  const EightLanes gradient = LoadLoose<EightLanes>(dy);
  tap = EightInts{};
  PoolPlan::ForBox(box, plan.in_steps, [&](int64_t at) {
    StoreLoose(winner == tap ? gradient : EightLanes{}, dx + at);
    tap += 1;
  });
}

/// The gradient of one window by lanes. False if its channels are fewer than lanes and those behind them are not in the
/// row.
bool SpreadWindow(const PoolPlan& plan, const PoolPlan::Box& box, int64_t column, const float* x, const float* dy,
                  float* dx) {
  if (plan.inner < kGradLanes) {
    // Lanes behind the last channel are those of the next pixel, whose own are written afterwards if a window has it.
    const int64_t covered = std::min(plan.axes[2].Start(plan.axes[2].output), plan.axes[2].input);
    const bool fits = (box.columns.end - 1) * plan.inner + kGradLanes <= covered * plan.inner &&
                      plan.HasLanesBehind(box, column, kGradLanes);
    if (fits) SpreadLanes(plan, box, x, dy, dx);
    return fits;
  }
  int64_t c = 0;
  for (; c + kGradLanes <= plan.inner; c += kGradLanes) SpreadLanes(plan, box, x + c, dy + c, dx + c);
  if (c == plan.inner) return true;
  c = plan.inner - kGradLanes;  // some of them once more
  SpreadLanes(plan, box, x + c, dy + c, dx + c);
  return true;
}

/// Each window's gradient goes to its largest element.
struct ToWinners : MaxGradient {
  /// True if no element is in two windows and neighbouring windows along a row touch.
  bool Disjoint() const {
    return plan.axes[0].stride >= plan.axes[0].window && plan.axes[1].stride >= plan.axes[1].window &&
           plan.axes[2].stride == plan.axes[2].window && plan.inner > 1 && plan.depth_window == 1;
  }
  /// True if every element is in some window.
  bool Covers() const {
    return !plan.empty && std::all_of(plan.axes.begin(), plan.axes.end(), [](const sdk::WindowAxis& a) {
      return a.stride <= a.window && a.Start(a.output - 1) + a.window >= a.input;
    });
  }

  void SpreadDisjoint(int64_t begin, int64_t end, const float* x, const float* dy, float* dx) const {
    if (!Covers()) std::fill(dx + begin * plan.in_size, dx + end * plan.in_size, 0.0f);
    const int64_t rows = RowsOfArray();
    Winners<float> winners;
    plan.ForOutputRows(begin * rows, end * rows, [&](int64_t array, int64_t plane, int64_t row) {
      const float* const images = x + array * plan.in_size;
      const float* from = dy + array * plan.out_size + plane * plan.out_steps[0] + row * plan.out_steps[1];
      float* const to = dx + array * plan.in_size;
      PoolPlan::Box box = plan.Reads(plane, row, 0);
      for (int64_t column = 0; column < plan.axes[2].output; ++column, from += plan.inner) {
        box.columns = plan.ReadsColumns(column);
        if (box.count() == 0 || SpreadWindow(plan, box, column, images, from, to)) continue;
        winners.Find(plan, box, images, plan.inner);
        PoolPlan::ForBox(box, plan.in_steps, [&](int64_t at) { std::fill_n(to + at, plan.inner, 0.0f); });
        for (int64_t c = 0; c < plan.inner; ++c) to[winners.at[c]] = from[c];
      }
    });
  }

  template <class T>
  void Spread(Env& env, View<const T> x, View<const T> dy, View<T> dx) const {
    if (dx.size() == 0) return;
    const auto [begin, end] = env.Range(plan.outer);
    if constexpr (std::is_same_v<T, float>) {
      if (Disjoint()) return SpreadDisjoint(begin, end, x.data(), dy.data(), dx.data());
    }
    std::fill(dx.data() + begin * plan.in_size, dx.data() + end * plan.in_size, T());
    const int64_t rows = RowsOfArray();
    ForWinners(plan, begin * rows, end * rows, x.data(),
               [&](int64_t array, int64_t place, int64_t first, int64_t count, const Winners<T>& winners) {
                 const T* from = dy.data() + array * plan.out_size + place;
                 // Positions of winners count from the block's first channel.
                 T* to = dx.data() + array * plan.in_size + first;
                 for (int64_t c = 0; c < count; ++c) {
                   if (winners.at[c] >= 0) AddTo(to[winners.at[c]], from[c]);
                 }
               });
  }
};

struct MaxPoolGrad : ToWinners {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep, functors::FormOf<2, false>(true));
    if (code == WEIR_OK) TileArrays(prep);
    return code;
  }
  template <class T>
  void Run(Env& env, View<const T> x, View<const T>, View<const T> dy, View<T> dx) const {
    Spread(env, x, dy, dx);
  }
};

struct MaxPoolGradV2 : ToWinners {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep, functors::FormOf<2, true>(true));
    if (code == WEIR_OK) TileArrays(prep);
    return code;
  }
  template <class T>
  void Run(Env& env, View<const T> x, View<const T>, View<const T> dy, HostIntegers, HostIntegers, View<T> dx) const {
    Spread(env, x, dy, dx);
  }
};

/// Of volumes, each window's gradient goes to all elements that equal its maximum, as in TensorFlow.
struct MaxPool3DGrad : MaxGradient {
  int32_t Prepare(Prep& prep) {
    const int32_t code = Plan(prep, functors::FormOf<3, false>(true));
    if (code == WEIR_OK) TileArrays(prep);
    return code;
  }
  template <class T>
  void Run(Env& env, View<const T> x, View<const T> y, View<const T> dy, View<T> dx) const {
    using C = Compute<T>;
    if (dx.size() == 0) return;
    const auto [begin, end] = env.Range(plan.outer);
    std::fill(dx.data() + begin * plan.in_size, dx.data() + end * plan.in_size, T());
    const int64_t rows = RowsOfArray();
    plan.ForOutputRows(begin * rows, end * rows, [&](int64_t array, int64_t plane, int64_t row) {
      const T* images = x.data() + array * plan.in_size;
      T* to = dx.data() + array * plan.in_size;
      for (int64_t column = 0; column < plan.axes[2].output; ++column) {
        const int64_t place = plane * plan.out_steps[0] + row * plan.out_steps[1] + column * plan.out_steps[2];
        const T* pooled = y.data() + array * plan.out_size + place;
        const T* from = dy.data() + array * plan.out_size + place;
        PoolPlan::ForBox(plan.Reads(plane, row, column), plan.in_steps, [&](int64_t at) {
          for (int64_t c = 0; c < plan.inner; ++c) {
            if (static_cast<C>(images[at + c]) == static_cast<C>(pooled[c])) AddTo(to[at + c], from[c]);
          }
        });
      }
    });
  }
};

/// Per window, the gradient at the first element that equals the maximum; 0 if none does.
struct FromWinners : MaxGradient {
  int32_t PlanRows(Prep& prep, const functors::GradForm& form) {
    const int32_t code = Plan(prep, form);
    const int64_t rows = plan.OutputRows();
    if (code == WEIR_OK && rows > 0) {
      prep.Tiles(static_cast<uint64_t>(std::min(rows, prep.size(0) / kPoolTileWork)));
    }
    return code;
  }

  template <class T>
  void Pick(Env& env, View<const T> x, View<const T> y, View<const T> grad, View<T> out) const {
    using C = Compute<T>;
    const auto [begin, end] = env.Range(plan.OutputRows());
    plan.ForOutputRows(begin, end, [&](int64_t array, int64_t plane, int64_t row) {
      const T* images = x.data() + array * plan.in_size;
      const T* from = grad.data() + array * plan.in_size;
      for (int64_t column = 0; column < plan.axes[2].output; ++column) {
        const int64_t place = plane * plan.out_steps[0] + row * plan.out_steps[1] + column * plan.out_steps[2];
        const T* pooled = y.data() + array * plan.out_size + place;
        T* to = out.data() + array * plan.out_size + place;
        std::array<bool, kWinnerBlock> found;
        const PoolPlan::Box box = plan.Reads(plane, row, column);
        for (int64_t block = 0; block < plan.inner; block += kWinnerBlock) {
          const int64_t count = std::min(kWinnerBlock, plan.inner - block);
          std::fill(to + block, to + block + count, T());
          found.fill(false);
          PoolPlan::ForBox(box, plan.in_steps, [&](int64_t at) {
            for (int64_t c = 0; c < count; ++c) {
              const int64_t i = block + c;
              if (found[static_cast<size_t>(c)] || static_cast<C>(images[at + i]) != static_cast<C>(pooled[i]))
                continue;
              found[static_cast<size_t>(c)] = true;
              to[i] = from[at + i];
            }
          });
        }
      }
    });
  }
};

template <uint32_t kSpatial>
struct MaxPoolGradGrad : FromWinners {
  int32_t Prepare(Prep& prep) { return PlanRows(prep, functors::FormOf<kSpatial, false>(false)); }
  template <class T>
  void Run(Env& env, View<const T> x, View<const T> y, View<const T> grad, View<T> out) const {
    Pick(env, x, y, grad, out);
  }
};

struct MaxPoolGradGradV2 : FromWinners {
  int32_t Prepare(Prep& prep) { return PlanRows(prep, functors::FormOf<2, true>(false)); }
  template <class T>
  void Run(Env& env, View<const T> x, View<const T> y, View<const T> grad, HostIntegers, HostIntegers,
           View<T> out) const {
    Pick(env, x, y, grad, out);
  }
};

/// Positions count the elements of an image, or of all images.
struct MaxPoolWithArgmax {
  PoolPlan plan;
  bool with_batch = false;

  int32_t Prepare(Prep& prep) {
    if (prep.shape(0).rank != 4) return prep.error().InvalidArgument("tensor_in must be 4-dimensional (2)");
    if (const int32_t code = plan.Make(prep, prep.shape(0), {}); code != WEIR_OK) return code;
    with_batch = prep.node().Bool("include_batch_in_index", false);
    const int64_t rows = plan.OutputRows();
    if (rows > 0) prep.Tiles(static_cast<uint64_t>(std::min(rows, prep.size(0) / kPoolTileWork)));
    const int32_t code = ExpectOutput(prep, 0, plan.Output(2));
    return code != WEIR_OK ? code : ExpectOutput(prep, 1, plan.Output(2));
  }
  template <class T, class I>
  void Run(Env& env, View<const T> x, View<T> y, View<I> argmax) const {
    const auto [begin, end] = env.Range(plan.OutputRows());
    ForWinners(plan, begin, end, x.data(),
               [&](int64_t array, int64_t place, int64_t first, int64_t count, const Winners<T>& winners) {
                 const int64_t at = array * plan.out_size + place;
                 const int64_t shift = first + (with_batch ? array * plan.in_size : 0);
                 for (int64_t c = 0; c < count; ++c) {
                   y[at + c] = static_cast<T>(winners.best[c]);
                   argmax[at + c] = static_cast<I>(winners.at[c] + shift);
                 }
               });
  }
};

struct MaxPoolGradWithArgmax : MaxGradient {
  bool with_batch = false;

  int32_t Prepare(Prep& prep) {
    functors::GradForm form;
    form.grad = 1;
    if (const int32_t code = Plan(prep, form); code != WEIR_OK) return code;
    with_batch = prep.node().Bool("include_batch_in_index", false);
    return ExpectPooled(prep, 2, "argmax", plan.Output(2));
  }
  template <class T, class I>
  int32_t Run(Env& env, View<const T>, View<const T> dy, View<const I> argmax, View<T> dx) const {
    if (dx.size() == 0) return WEIR_OK;
    std::fill(dx.data(), dx.data() + dx.size(), T());
    if (plan.empty) return WEIR_OK;
    for (int64_t image = 0; image < plan.outer; ++image) {
      const int64_t first = image * plan.in_size, end = first + plan.in_size;
      for (int64_t i = image * plan.out_size; i < (image + 1) * plan.out_size; ++i) {
        const auto named = static_cast<int64_t>(argmax[i]);
        const bool inside = with_batch ? named >= first && named < end : named >= 0 && named < plan.in_size;
        if (!inside) {
          return env.error().InvalidArgument("Invalid output gradient index: ", named, ", ", with_batch ? first : 0,
                                             ", ", with_batch ? end : plan.in_size);
        }
        AddTo(dx[with_batch ? named : first + named], dy[i]);
      }
    }
    return WEIR_OK;
  }
};

/// The volumes have the type of the gradient, though the op has an attribute for each.
template <class... E>
void AddOfOneType(sdk::KernelTable& k, sdk::Types<E...>) {
  (k.Add<MaxPool3DGrad>("MaxPool3DGrad", sdk::Types<E>())
       .Restrict("TInput", {sdk::kDType<E>})
       .Class(WEIR_CLASS_REDUCE, 27),
   ...);
}

}  // namespace

void AddPoolGrad(sdk::KernelTable& k) {
  constexpr auto kVolumeTypes = k16Bit + sdk::Types<float>();
  k.Add<MaxPoolGrad>("MaxPoolGrad", kReal).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<MaxPoolGradV2>("MaxPoolGradV2", kReal).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<MaxPoolGradGrad<2>>("MaxPoolGradGrad", kReal).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<MaxPoolGradGradV2>("MaxPoolGradGradV2", kReal).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<MaxPoolGradGrad<3>>("MaxPool3DGradGrad", kReal).Class(WEIR_CLASS_REDUCE, 27);
  k.Add<MaxPoolWithArgmax>("MaxPoolWithArgmax", kReal, sdk::Attr("Targmax", kIndex)).Class(WEIR_CLASS_REDUCE, 9);
  k.Add<MaxPoolGradWithArgmax>("MaxPoolGradWithArgmax", kReal, sdk::Attr("Targmax", kIndex))
      .Class(WEIR_CLASS_REDUCE, 9);
  AddOfOneType(k, kVolumeTypes);
}

}  // namespace weir::kernels_eigen
