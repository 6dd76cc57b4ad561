// Losses: softmax cross entropy with dense and with sparse labels, per row and with its gradient; half sums of squares.
#include <algorithm>
#include <cmath>
#include <utility>

#include "plugins/functors/cross_entropy.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/exponentials.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

/// e becomes exp(x - max(x)); returns the sum of e, and max(x).
template <class C>
std::pair<C, C> Exponentials(const C* x, C* e, int64_t n) {
  if constexpr (std::is_same_v<C, float>) {
    const float largest = LargestOf(x, n);
    return {static_cast<float>(ExpSum(x, largest, e, n)), largest};
  } else {
    const C largest = MaxArray(x, n);
    return {ExpSumArray(x, -largest, e, n), largest};
  }
}

/// The row as elements of the compute type: itself, or its copy in `memory`.
template <class T, class C>
const C* RowOf(const T* row, int64_t step, int64_t n, C* memory) {
  if constexpr (std::is_same_v<T, C>) {
    if (step == 1) return row;
  }
  for (int64_t i = 0; i < n; ++i) memory[i] = static_cast<C>(row[i * step]);
  return memory;
}

/// Scratch for two rows in the compute type.
void ScratchRows(sdk::Prep& prep, int64_t classes) {
  const bool wide = prep.input(0).dtype == WEIR_FLOAT64;
  prep.Scratch(2 * static_cast<uint64_t>(classes) * (wide ? sizeof(double) : sizeof(float)));
}

struct SoftmaxCrossEntropy : functors::CrossEntropyPlan {
  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = CrossEntropyPlan::Prepare(prep);
    if (code == WEIR_OK) ScratchRows(prep, classes);
    return code;
  }
  template <class T>
  void Run(View<const T> logits, View<const T> labels, View<T> loss, View<T> gradient,
           sdk::Scratch<sdk::Compute<T>> scratch) const {
    using C = sdk::Compute<T>;
    C* e = scratch.data() + classes;
    for (int64_t row = 0; row < rows && classes > 0; ++row) {
      const C* x = RowOf(logits.data() + row * logits_steps.row, logits_steps.column, classes, scratch.data());
      const T* label = labels.data() + row * labels_steps.row;
      T* out = gradient.data() + row * classes;
      const auto [sum, largest] = Exponentials(x, e, classes);
      const C log_sum = std::log(sum), scale = C(1) / sum;
      loss[row] = static_cast<T>(labels_steps.column == 1
                                     ? Finish(x, label, 1, e, largest, log_sum, scale, out)
                                     : Finish(x, label, labels_steps.column, e, largest, log_sum, scale, out));
    }
    if (classes == 0) std::fill(loss.data(), loss.data() + rows, T(0.0f));
  }
  /// Writes the gradient of a row, which may be where x is; returns its loss.
  template <class T, class C>
  C Finish(const C* x, const T* label, int64_t step, const C* e, C largest, C log_sum, C scale, T* out) const {
    double total = 0;
    for (int64_t begin = 0; begin < classes; begin += kSumBlock) {
      const int64_t end = std::min(classes, begin + kSumBlock);
      C part(0);
#pragma omp simd reduction(+ : part)
      for (int64_t i = begin; i < end; ++i) {
        const C wanted = static_cast<C>(label[i * step]);
        part += wanted * (log_sum - (x[i] - largest));
        out[i] = static_cast<T>(e[i] * scale - wanted);
      }
      total += static_cast<double>(part);
    }
    return static_cast<C>(total);
  }
};

struct SparseSoftmaxCrossEntropy : functors::SparseCrossEntropyPlan {
  int32_t Prepare(sdk::Prep& prep) {
    const int32_t code = SparseCrossEntropyPlan::Prepare(prep);
    if (code == WEIR_OK) ScratchRows(prep, classes);
    return code;
  }
  template <class T>
  int32_t Run(sdk::Env& env, View<const T> logits, sdk::Integers labels, View<T> loss, View<T> gradient,
              sdk::Scratch<sdk::Compute<T>> scratch) const {
    using C = sdk::Compute<T>;
    for (int64_t row = 0; row < rows; ++row) {
      if (labels[row] < 0 || labels[row] >= classes) {
        return env.error().InvalidArgument("Received a label value of ", labels[row],
                                           " which is outside the valid range of [0, ", classes, "): label ", row);
      }
    }
    C* e = scratch.data() + classes;
    for (int64_t row = 0; row < rows; ++row) {
      const C* x = RowOf(logits.data() + row * classes, 1, classes, scratch.data());
      T* out = gradient.data() + row * classes;
      const int64_t label = labels[row];
      const auto [sum, largest] = Exponentials(x, e, classes);
      const C scale = C(1) / sum;
      loss[row] = static_cast<T>(std::log(sum) - (x[label] - largest));
      for (int64_t i = 0; i < classes; ++i) out[i] = static_cast<T>(e[i] * scale);
      out[label] = static_cast<T>(e[label] * scale - C(1));
    }
    return WEIR_OK;
  }
};

/// Blocks are summed in lanes of the compute type, and their sums in double.
struct L2Loss {
  int64_t elements = 0;

  int32_t Prepare(sdk::Prep& prep) {
    elements = prep.size(0);
    return WEIR_OK;
  }

  template <class T>
  void Run(View<const T> t, View<T> out) const {
    using C = sdk::Compute<T>;
    constexpr int64_t kLanes = 16, kBlock = 256;
    double total = 0;
    for (int64_t begin = 0; begin < elements; begin += kBlock) {
      const int64_t n = std::min(kBlock, elements - begin);
      const T* x = t.data() + begin;
      C lanes[kLanes] = {};
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          const C value = static_cast<C>(x[i + lane]);
          lanes[lane] += value * value;
        }
      }
      for (; i < n; ++i) lanes[0] += static_cast<C>(x[i]) * static_cast<C>(x[i]);
      for (const C lane : lanes) total += static_cast<double>(lane);
    }
    out.data()[0] = static_cast<T>(static_cast<C>(total / 2));
  }
};

}  // namespace

void AddCrossEntropy(sdk::KernelTable& k) {
  k.Add<SoftmaxCrossEntropy>("SoftmaxCrossEntropyWithLogits", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Add<SparseSoftmaxCrossEntropy>("SparseSoftmaxCrossEntropyWithLogits", kFloating)
      .Class(WEIR_CLASS_ELEMENTWISE, 20)
      .Restrict("Tlabels", {WEIR_INT32, WEIR_INT64});
  k.Add<L2Loss>("L2Loss", kFloating).Class(WEIR_CLASS_ELEMENTWISE, 2);
}

}  // namespace weir::kernels_eigen
