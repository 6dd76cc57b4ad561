// Reductions along axes. One driver iterates over the elements; a reducer combines runs of them.
#include "plugins/kernels_eigen/kernels/reduce.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>

#include "plugins/functors/reducers.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/wrap.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {

namespace {

using sdk::View;

constexpr int64_t kLaneBlock = 256;  // elements combined in narrow lanes before they are added to the wide total
constexpr int64_t kColumns = 512;    // outputs of one pass down the rows

using functors::AllReducer;
using functors::AnyReducer;
using functors::MaxReducer;
using functors::MeanReducer;
using functors::MinReducer;
using functors::ProdReducer;
using functors::SumReducer;

/// Elements as lanes: the elements themselves if their type is Lane, else converted into `buffer`.
template <class Lane, class T>
const Lane* Load(const T* x, int64_t n, Lane* buffer) {
  if constexpr (std::is_same_v<Lane, T>) {
    return x;
  } else {
    if constexpr (std::is_same_v<T, sdk::half> || std::is_same_v<T, sdk::bfloat16>) {
      sdk::Widen(x, buffer, n);
    } else {
      for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<Lane>(x[i]);
    }
    return buffer;
  }
}

template <class R, class T>
struct Runs {
  using Lane = typename R::template Lane<T>;
  using Total = typename R::template Total<T>;
  static constexpr int kLanes = sizeof(Lane) == 1 ? 32 : 16;

  /// Combines n contiguous elements with `total`.
  static Total Row(const T* x, int64_t n, Total total) {
    Lane buffer[std::is_same_v<Lane, T> ? 1 : kLaneBlock];
    for (int64_t begin = 0; begin < n; begin += kLaneBlock) {
      const int64_t count = std::min(kLaneBlock, n - begin);
      const Lane* p = Load(x + begin, count, buffer);
      const int64_t i = count / kLanes * kLanes;
      if (i > 0) {
        Lane lanes[kLanes];
        Lanes(p, i, lanes);
        for (int width = kLanes / 2; width > 0; width /= 2) {
          for (int j = 0; j < width; ++j) lanes[j] = R::Combine(lanes[j], lanes[j + width]);
        }
        total = R::Combine(total, static_cast<Total>(lanes[0]));
      }
      for (int64_t j = i; j < count; ++j) total = R::Combine(total, static_cast<Total>(p[j]));
    }
    return total;
  }

  /// Combines n elements, a multiple of kLanes, that are kLanes apart.
  static void Lanes(const Lane* p, int64_t n, Lane* lanes) {
    if constexpr (requires { &R::template Take<Lane>; }) {
      // The compiler does not vectorise selections that propagate NaN, so the vectors are explicit.
      typedef Lane Vector __attribute__((vector_size(32)));
      constexpr int kWidth = sizeof(Vector) / sizeof(Lane), kVectors = kLanes / kWidth;
      Vector best[kVectors], next;
      std::memcpy(best, p, sizeof best);
      for (int64_t i = kLanes; i < n; i += kLanes) {
        for (int j = 0; j < kVectors; ++j) {
          std::memcpy(&next, p + i + j * kWidth, sizeof next);
          R::Take(best[j], next);
        }
      }
      std::memcpy(lanes, best, sizeof best);
    } else {
      std::copy(p, p + kLanes, lanes);
      for (int64_t i = kLanes; i < n; i += kLanes) {
        for (int j = 0; j < kLanes; ++j) lanes[j] = R::Combine(lanes[j], p[i + j]);
      }
    }
  }

  /// Combines `rows` rows of n elements, `step` apart, elementwise with `totals`.
  static void Columns(const T* x, int64_t rows, int64_t step, int64_t n, Total* totals) {
    int64_t row = 0;
    if constexpr (std::is_same_v<Lane, T> && !std::is_same_v<Lane, Total>) {
      for (; row + 4 <= rows; row += 4, x += 4 * step) {
        const T *a = x, *b = a + step, *c = b + step, *d = c + step;
        for (int64_t i = 0; i < n; ++i) {
          totals[i] =
              R::Combine(totals[i], static_cast<Total>(R::Combine(R::Combine(a[i], b[i]), R::Combine(c[i], d[i]))));
        }
      }
    }
    Lane buffer[std::is_same_v<Lane, T> ? 1 : kColumns];
    for (; row < rows; ++row, x += step) {
      const Lane* p = Load(x, n, buffer);
      for (int64_t i = 0; i < n; ++i) totals[i] = R::Combine(totals[i], static_cast<Total>(p[i]));
    }
  }
};

/// The typed functions of a reduction, for the untyped driver.
struct ReduceLoops {
  uint32_t bytes;  // of an element
  void (*row)(const void* x, int64_t n, void* total);
  void (*columns)(const void* x, int64_t rows, int64_t step, int64_t n, void* totals);
  void (*begin)(void* totals, int64_t n);
  void (*give)(const void* totals, int64_t n, int64_t elements, void* y);
};

template <class R, class T>
struct LoopsFor {
  using Total = typename R::template Total<T>;
  static void Row(const void* x, int64_t n, void* total) {
    auto* sum = static_cast<Total*>(total);
    *sum = Runs<R, T>::Row(static_cast<const T*>(x), n, *sum);
  }
  static void Columns(const void* x, int64_t rows, int64_t step, int64_t n, void* totals) {
    Runs<R, T>::Columns(static_cast<const T*>(x), rows, step, n, static_cast<Total*>(totals));
  }
  static void Begin(void* totals, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<Total*>(totals)[i] = R::template Identity<Total>();
  }
  static void Give(const void* totals, int64_t n, int64_t elements, void* y) {
    for (int64_t i = 0; i < n; ++i) {
      static_cast<T*>(y)[i] = R::template Give<T>(static_cast<const Total*>(totals)[i], elements);
    }
  }
  static constexpr ReduceLoops kLoops = {sizeof(T), &Row, &Columns, &Begin, &Give};
};

constexpr size_t kTotalBytes = sizeof(sdk::complex128);  // of the widest total

void ReduceRows(const ReduceLoops& loops, const ReducePlan& p, const sdk::Env& env, const char* x, char* y) {
  const auto [begin, end] = env.Range(p.outer_kept.count);
  alignas(16) char total[kTotalBytes];
  for (int64_t i = begin; i < end; ++i) {
    const int64_t base = p.outer_kept.Offset(i);
    loops.begin(total, 1);
    for (int64_t j = 0; j < p.outer_reduced.count; ++j) {
      loops.row(x + (base + p.outer_reduced.Offset(j)) * loops.bytes, p.inner, total);
    }
    loops.give(total, 1, p.reduced, y + i * loops.bytes);
  }
}

void ReduceColumns(const ReduceLoops& loops, const ReducePlan& p, const sdk::Env& env, const char* x, char* y) {
  alignas(64) char totals[kColumns * kTotalBytes];
  // The loops cover the innermost reduced dimension; this code covers the others.
  const Walk& walk = p.outer_reduced;
  const int64_t rows = walk.rank > 0 ? walk.dims[walk.rank - 1] : 1,
                step = walk.rank > 0 ? walk.steps[walk.rank - 1] : 0;
  const int64_t passes = (p.inner + kColumns - 1) / kColumns;
  const auto [begin, end] = env.Range(p.outer_kept.count * passes);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t kept = unit / passes, column = unit % passes * kColumns;
    const int64_t n = std::min(kColumns, p.inner - column);
    const int64_t base = p.outer_kept.Offset(kept) + column;
    loops.begin(totals, n);
    for (int64_t j = 0; j < walk.count; j += rows) {
      loops.columns(x + (base + walk.Offset(j)) * loops.bytes, rows, step, n, totals);
    }
    loops.give(totals, n, p.reduced, y + (kept * p.inner + column) * loops.bytes);
  }
}

/// For empty inputs: each output is the reduction of no elements.
void ReduceNothing(const ReduceLoops& loops, const ReducePlan& p, char* y) {
  alignas(16) char total[kTotalBytes];
  loops.begin(total, 1);
  for (int64_t i = 0; i < p.outputs; ++i) loops.give(total, 1, 0, y + i * loops.bytes);
}

struct ReduceKernel {
  std::optional<ReducePlan> plan;  // set if the axes are constant

  int32_t Prepare(sdk::Prep& prep) {
    const auto axes = prep.Constant(1);
    if (!axes) return WEIR_OK;
    plan.emplace();
    if (const int32_t code = plan->Make(prep.shape(0), *axes, prep.error()); code != WEIR_OK) return code;
    if (!plan->inner_reduced || plan->outer_kept.count > 1)
      prep.Tiles(static_cast<uint64_t>(prep.size(0) / (32 * 1024)));
    return WEIR_OK;
  }

  int32_t Reduce(const ReduceLoops& loops, const sdk::Env& env, const weir_shape& input, const void* x,
                 const sdk::Integers& axes, const weir_shape& output, void* y) const {
    ReducePlan made;
    if (!plan) {
      if (const int32_t code = made.Make(input, axes, env.error()); code != WEIR_OK) return code;
    }
    const ReducePlan& p = plan ? *plan : made;
    if (sdk::SizeOf(output) != p.outputs) {
      return env.error().InvalidArgument("the reduction of ", input, " has ", p.outputs, " elements, the output ",
                                         output);
    }
    if (p.reduced == 0) {
      ReduceNothing(loops, p, static_cast<char*>(y));
    } else if (p.outputs == 0) {
      return WEIR_OK;
    } else if (p.reduced == 1) {  // each output is one element, with its sign
      const auto [begin, end] = env.Range(p.outputs);
      std::memcpy(static_cast<char*>(y) + begin * loops.bytes, static_cast<const char*>(x) + begin * loops.bytes,
                  static_cast<size_t>(end - begin) * loops.bytes);
    } else if (p.inner_reduced) {
      ReduceRows(loops, p, env, static_cast<const char*>(x), static_cast<char*>(y));
    } else {
      ReduceColumns(loops, p, env, static_cast<const char*>(x), static_cast<char*>(y));
    }
    return WEIR_OK;
  }
};

template <class R>
struct Reduction : ReduceKernel {
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> input, sdk::HostIntegers axes, View<T> output) const {
    return Reduce(LoopsFor<R, T>::kLoops, env, input.shape(), input.data(), axes, output.shape(), output.data());
  }
};

}  // namespace

void AddReduce(sdk::KernelTable& k) {
  k.Add<Reduction<SumReducer>>("Sum", kNumbers).Class(WEIR_CLASS_REDUCE);
  k.Add<Reduction<MeanReducer>>("Mean", kNumbers).Class(WEIR_CLASS_REDUCE);
  k.Add<Reduction<ProdReducer>>("Prod", kNumbers).Class(WEIR_CLASS_REDUCE);
  k.Add<Reduction<MaxReducer>>("Max", kReal).Class(WEIR_CLASS_REDUCE);
  k.Add<Reduction<MinReducer>>("Min", kReal).Class(WEIR_CLASS_REDUCE);
  k.Add<Reduction<AllReducer>>("All", sdk::Attr("", kBool)).Class(WEIR_CLASS_REDUCE);
  k.Add<Reduction<AnyReducer>>("Any", sdk::Attr("", kBool)).Class(WEIR_CLASS_REDUCE);
}

}  // namespace weir::kernels_eigen
