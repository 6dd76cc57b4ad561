// Losses: softmax cross entropy with dense and with sparse labels, per row and with its gradient; half sums of squares.
#include <algorithm>
#include <cmath>
#include <utility>

#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/kernels/exponentials.h"
#include "plugins/kernels_eigen/kernels/vector_math.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::View;

/// Steps of one operand over [rows, classes]; 0 along broadcast dimensions.
struct Steps {
  int64_t row = 0, column = 0;
};

Steps BroadcastSteps(const weir_shape& shape) {
  const int64_t columns = shape.rank >= 1 ? shape.dims[shape.rank - 1] : 1;
  const int64_t rows = shape.rank >= 2 ? shape.dims[shape.rank - 2] : 1;
  return {rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
}

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

struct SoftmaxCrossEntropy {
  int64_t rows = 0, classes = 0;
  Steps logits_steps, labels_steps;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &logits = prep.shape(0), &labels = prep.shape(1), &out = prep.output(1).shape;
    if (out.rank != 2 || logits.rank > 2 || labels.rank > 2) {
      return prep.error().InvalidArgument(
          "logits and labels must be either 2-dimensional, or broadcasted to be "
          "2-dimensional: logits ",
          logits, ", labels ", labels);
    }
    rows = out.dims[0];
    classes = out.dims[1];
    const auto fits = [&](const weir_shape& shape) {
      for (uint32_t i = 0; i < shape.rank; ++i) {
        const int64_t dim = shape.dims[shape.rank - 1 - i];
        if (dim != 1 && dim != out.dims[1 - i]) return false;
      }
      return true;
    };
    if (!fits(logits) || !fits(labels) || sdk::SizeOf(prep.output(0).shape) != rows) {
      return prep.error().InvalidArgument("logits and labels must be broadcastable: logits_size=", logits,
                                          " labels_size=", labels);
    }
    logits_steps = BroadcastSteps(logits);
    labels_steps = BroadcastSteps(labels);
    ScratchRows(prep, classes);
    if (sdk::SameShape(logits, out)) prep.MayAlias(0, 1);
    return WEIR_OK;
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

struct SparseSoftmaxCrossEntropy {
  int64_t rows = 0, classes = 0;

  int32_t Prepare(sdk::Prep& prep) {
    const weir_shape &logits = prep.shape(0), &labels = prep.shape(1);
    if (logits.rank != 2) return prep.error().InvalidArgument("logits must be 2-D, but got shape ", logits);
    if (labels.rank != 1) return prep.error().InvalidArgument("labels must be 1-D, but got shape ", labels);
    rows = logits.dims[0];
    classes = logits.dims[1];
    if (labels.dims[0] != rows) {
      return prep.error().InvalidArgument("logits and labels must have the same first dimension, got logits shape ",
                                          logits, " and labels shape ", labels);
    }
    if (classes == 0 && rows > 0) {
      return prep.error().InvalidArgument("Must have at least one class, but got logits shape ", logits);
    }
    ScratchRows(prep, classes);
    prep.MayAlias(0, 1);
    return WEIR_OK;
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
