// Softmax, LogSoftmax and the cross entropies: a block of threads for each row.
#include <cmath>
#include <limits>

#include "plugins/functors/cross_entropy.h"
#include "plugins/gpu/kernels/changed_rows.h"
#include "plugins/gpu/kernels/families.h"
#include "sdk/cpp/kernel.h"

namespace weir::gpu {
namespace {

using sdk::AnyInput;
using sdk::AnyOutput;
using sdk::Env;
using sdk::Prep;

constexpr int kRowBlock = 128;
int ThreadsFor(int64_t classes) { return classes >= kRowBlock ? kRowBlock : 32; }

/// A row of logits; its elements are `step` apart, or one element if it is 0.
struct Row {
  int64_t first, step;
};

/// The maximum and the sum of the exponentials of a row, for all threads of its block.
template <class S>
struct RowSums {
  using C = typename S::C;

  /// Writes them to `largest` and `sum`, which are in shared memory behind a number for each thread.
  template <class Block>
  WEIR_GPU_FN static void Find(Block& block, const S& storage, const char* x, Row row, int64_t classes, C* largest,
                               double* sum) {
    double* const shared = block.template Shared<double>(0);
    block.ForEachThread([&](int t) {
      C best = -std::numeric_limits<C>::infinity();
      for (int64_t i = t; i < classes; i += block.threads()) {
        const C value = storage.Load(x, row.first + i * row.step);
        best = value > best || value != value ? value : best;
      }
      shared[t] = static_cast<double>(best);
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t >= half) return;
        const double other = shared[t + half];
        if (other > shared[t] || other != other) shared[t] = other;
      });
    }
    block.ForEachThread([&](int t) {
      if (t == 0) *largest = static_cast<C>(shared[0]);
    });
    block.ForEachThread([&](int t) {
      double total = 0;
      for (int64_t i = t; i < classes; i += block.threads()) {
        total += static_cast<double>(std::exp(storage.Load(x, row.first + i * row.step) - *largest));
      }
      shared[t] = total;
    });
    for (int half = block.threads() / 2; half > 0; half /= 2) {
      block.ForEachThread([&](int t) {
        if (t < half) shared[t] += shared[t + half];
      });
    }
    block.ForEachThread([&](int t) {
      if (t == 0) *sum = shared[0];
    });
  }
};

constexpr uint32_t kResults = kRowBlock * sizeof(double);  // offset of maximum and sum in shared memory
constexpr uint32_t kSoftmaxShared = kResults + 32;

template <bool kLog, class S>
struct SoftmaxWork {
  Ptr<const char> x;
  Ptr<char> y;
  int64_t classes;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    using C = typename S::C;
    double* const sum = block.template Shared<double>(kResults);
    C* const largest = block.template Shared<C>(kResults + 8);
    const int64_t first = block.index() * classes;
    RowSums<S>::Find(block, storage, x.get(), {first, 1}, classes, largest, sum);
    block.ForEachThread([&](int t) {
      const C by = kLog ? static_cast<C>(std::log(*sum)) : C(1) / static_cast<C>(*sum);
      for (int64_t i = t; i < classes; i += block.threads()) {
        const C value = storage.Load(x.get(), first + i) - *largest;
        storage.Store(y.get(), first + i, kLog ? value - by : std::exp(value) * by);
      }
    });
  }
};

template <bool kLog>
struct Softmax {
  int64_t rows = 0, classes = 0;

  int32_t Prepare(Prep& prep) {
    const weir_shape& shape = prep.shape(0);
    if (shape.rank < 1) return prep.error().InvalidArgument("logits must have >= 1 dimension, got ", shape);
    classes = shape.dims[shape.rank - 1];
    rows = classes == 0 ? 0 : sdk::SizeOf(shape) / classes;
    prep.MayAlias(0, 0);
    return WEIR_OK;
  }
  int32_t Run(Env& env, AnyInput x, AnyOutput y) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(x.dtype(), [&](auto storage) {
      code = LaunchBlocks(env, rows, ThreadsFor(classes), kSoftmaxShared,
                          SoftmaxWork<kLog, decltype(storage)>{From(x), To(y), classes, storage});
    });
    return code;
  }
};

template <class S>
struct CrossEntropyWork {
  Ptr<const char> logits, labels;
  Ptr<char> loss, gradient;
  int64_t classes;
  functors::RowSteps logits_steps, labels_steps;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    using C = typename S::C;
    double* const sums = block.template Shared<double>(0);
    double* const sum = block.template Shared<double>(kResults);
    C* const largest = block.template Shared<C>(kResults + 8);
    const int64_t row = block.index();
    const Row x = {row * logits_steps.row, logits_steps.column};
    RowSums<S>::Find(block, storage, logits.get(), x, classes, largest, sum);
    block.ForEachThread([&](int t) {
      const C log_sum = static_cast<C>(std::log(*sum)), scale = C(1) / static_cast<C>(*sum);
      double total = 0;
      for (int64_t i = t; i < classes; i += block.threads()) {
        const C value = storage.Load(logits.get(), x.first + i * x.step) - *largest;
        const C wanted = storage.Load(labels.get(), row * labels_steps.row + i * labels_steps.column);
        total += static_cast<double>(wanted * (log_sum - value));
        storage.Store(gradient.get(), row * classes + i, std::exp(value) * scale - wanted);
      }
      sums[t] = total;
    });
    block.ForEachThread([&](int t) {
      if (t != 0) return;
      double total = 0;
      for (int i = 0; i < block.threads(); ++i) total += sums[i];
      storage.Store(loss.get(), row, static_cast<C>(total));
    });
  }
};

struct CrossEntropy : functors::CrossEntropyPlan {
  int32_t Run(Env& env, AnyInput logits, AnyInput labels, AnyOutput loss, AnyOutput gradient) const {
    if (classes == 0) {
      return Fill(env, loss.data(), 0, static_cast<uint64_t>(loss.size()) * sdk::SizeOf(loss.dtype()));
    }
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(logits.dtype(), [&](auto storage) {
      code = LaunchBlocks(env, rows, ThreadsFor(classes), kSoftmaxShared,
                          CrossEntropyWork<decltype(storage)>{From(logits), From(labels), To(loss), To(gradient),
                                                              classes, logits_steps, labels_steps, storage});
    });
    return code;
  }
};

/// A label out of range gives NaN, as in TensorFlow.
template <class S>
struct SparseCrossEntropyWork {
  Ptr<const char> logits;
  Indices labels;
  Ptr<char> loss, gradient;
  int64_t classes;
  S storage;
  template <class Block>
  WEIR_GPU_FN void operator()(Block& block) const {
    using C = typename S::C;
    double* const sum = block.template Shared<double>(kResults);
    C* const largest = block.template Shared<C>(kResults + 8);
    const int64_t row = block.index(), first = row * classes;
    RowSums<S>::Find(block, storage, logits.get(), {first, 1}, classes, largest, sum);
    block.ForEachThread([&](int t) {
      const int64_t label = labels[row];
      const bool known = label >= 0 && label < classes;
      if (t != 0) return;
      const C log_sum = static_cast<C>(std::log(*sum)), none = std::numeric_limits<C>::quiet_NaN();
      storage.Store(loss.get(), row, known ? log_sum - (storage.Load(logits.get(), first + label) - *largest) : none);
    });
    block.ForEachThread([&](int t) {
      const int64_t label = labels[row];
      const bool known = label >= 0 && label < classes;
      const C scale = C(1) / static_cast<C>(*sum), none = std::numeric_limits<C>::quiet_NaN();
      for (int64_t i = t; i < classes; i += block.threads()) {
        const C share = std::exp(storage.Load(logits.get(), first + i) - *largest) * scale;
        storage.Store(gradient.get(), first + i, !known ? none : i == label ? share - C(1) : share);
      }
    });
  }
};

struct SparseCrossEntropy : functors::SparseCrossEntropyPlan {
  int32_t Run(Env& env, AnyInput logits, AnyInput labels, AnyOutput loss, AnyOutput gradient) const {
    int32_t code = WEIR_OK;
    WithStorage<kFloats>(logits.dtype(), [&](auto storage) {
      code = LaunchBlocks(env, rows, ThreadsFor(classes), kSoftmaxShared,
                          SparseCrossEntropyWork<decltype(storage)>{From(logits), Indices(labels), To(loss),
                                                                    To(gradient), classes, storage});
    });
    return code;
  }
};

}  // namespace

void AddSoftmax(sdk::KernelTable& k) {
  k.Add<Softmax<false>>("Softmax").Restrict("T", kFloatingBits).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Add<Softmax<true>>("LogSoftmax").Restrict("T", kFloatingBits).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Add<CrossEntropy>("SoftmaxCrossEntropyWithLogits").Restrict("T", kFloatingBits).Class(WEIR_CLASS_ELEMENTWISE, 20);
  k.Add<SparseCrossEntropy>("SparseSoftmaxCrossEntropyWithLogits")
      .Restrict("T", kFloatingBits)
      .Restrict("Tlabels", kIndexBits)
      .Class(WEIR_CLASS_ELEMENTWISE, 20);
}

}  // namespace weir::gpu
