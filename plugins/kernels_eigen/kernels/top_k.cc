// TopK and InTopK: the largest elements of each row.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "plugins/functors/counting_plans.h"
#include "plugins/functors/top_k.h"
#include "plugins/kernels_eigen/dtypes.h"
#include "plugins/kernels_eigen/families.h"
#include "plugins/kernels_eigen/operands.h"
#include "sdk/cpp/kernel.h"

namespace weir::kernels_eigen {
namespace {

using sdk::HostIntegers;
using sdk::Integers;
using sdk::Prep;
using sdk::View;

struct Largest : functors::TopKPlan {
  int32_t Plan(Prep& prep, int64_t count) {
    const int32_t code = TopKPlan::Plan(prep, count);
    if (code == WEIR_OK && prep.size(0) != 0) prep.Scratch(static_cast<uint64_t>(columns) * sizeof(int64_t));
    return code;
  }
  template <class T, class I>
  void Find(const T* from, T* values, I* indices, int64_t* order) const {
    if (columns == 0 || k == 0) return;
    for (int64_t row = 0; row < rows; ++row, from += columns, values += k, indices += k) {
      std::iota(order, order + columns, int64_t{0});
      std::partial_sort(order, order + k, order + columns, [from](int64_t a, int64_t b) {
        using C = sdk::Compute<T>;
        return functors::ComesFirst(static_cast<C>(from[a]), static_cast<C>(from[b]), a, b);
      });
      for (int64_t i = 0; i < k; ++i) {
        values[i] = from[order[i]];
        indices[i] = static_cast<I>(order[i]);
      }
    }
  }
};

struct TopK : Largest {
  int32_t Prepare(Prep& prep) { return Plan(prep, prep.node().Int("k")); }
  template <class T>
  void Run(View<const T> input, View<T> values, View<int32_t> indices, sdk::Scratch<int64_t> order) const {
    Find(input.data(), values.data(), indices.data(), order.data());
  }
};

struct TopKV2 : Largest {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(1).rank != 0) return prep.error().InvalidArgument("k must be scalar, got shape ", prep.shape(1));
    int64_t count = 0;
    const int32_t code = Steering(prep, 1, "k", &count);
    return code != WEIR_OK ? code : Plan(prep, count);
  }
  template <class T, class I>
  void Run(View<const T> input, HostIntegers, View<T> values, View<I> indices, sdk::Scratch<int64_t> order) const {
    Find(input.data(), values.data(), indices.data(), order.data());
  }
};

struct Hits : functors::HitsPlan {
  void Find(View<const float> predictions, const Integers& targets, int64_t k, View<sdk::boolean> hits) const {
    for (int64_t row = 0; row < hits.size(); ++row) {
      const float* p = predictions.data() + row * classes;
      const int64_t target = targets[row];
      bool known = target >= 0 && target < classes;
      int64_t larger = 0;
      for (int64_t i = 0; known && i < classes; ++i) {
        known = std::isfinite(p[i]);
        larger += p[i] > p[target] ? 1 : 0;
      }
      hits[row] = known && larger < k;
    }
  }
};

struct InTopK : Hits {
  int64_t k = 0;
  int32_t Prepare(Prep& prep) {
    k = prep.node().Int("k");
    return Plan(prep);
  }
  void Run(View<const float> predictions, Integers targets, View<sdk::boolean> hits) const {
    Find(predictions, targets, k, hits);
  }
};

struct InTopKV2 : Hits {
  int32_t Prepare(Prep& prep) {
    if (prep.shape(2).rank != 0) return prep.error().InvalidArgument("k must be 0-D, got shape ", prep.shape(2));
    return Plan(prep);
  }
  void Run(View<const float> predictions, Integers targets, Integers k, View<sdk::boolean> hits) const {
    Find(predictions, targets, k[0], hits);
  }
};

}  // namespace

void AddTopK(sdk::KernelTable& k) {
  k.Add<TopK>("TopK", kReal).Class(WEIR_CLASS_REDUCE, 10);
  k.Add<TopKV2>("TopKV2", kReal, sdk::Attr("index_type", sdk::Types<int16_t, int32_t, int64_t>()))
      .Class(WEIR_CLASS_REDUCE, 10);
  k.Add<InTopK>("InTopK").Class(WEIR_CLASS_REDUCE, 2);
  k.Add<InTopKV2>("InTopKV2").Class(WEIR_CLASS_REDUCE, 2);
}

}  // namespace weir::kernels_eigen
