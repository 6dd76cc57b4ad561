// Distributions over classes, from which candidate samplers draw.
#ifndef WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_CLASS_WEIGHTS_H_
#define WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_CLASS_WEIGHTS_H_

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugins/kernels_eigen/kernels/draws.h"

namespace weir::kernels_eigen {

/// Draws from fixed weights in constant time: A. J. Walker, "An efficient method for generating discrete random
/// variables with general distributions" (1977). Equal words give TensorFlow's classes.
class AliasTable {
 public:
  AliasTable() = default;
  /// At least one weight, fewer than 2^31, none negative, some positive.
  explicit AliasTable(const std::vector<float>& weights) : entries_(weights.size()) {
    const auto n = static_cast<int64_t>(weights.size());
    double sum = 0;
    for (const float weight : weights) sum += static_cast<double>(weight);
    std::vector<double> share(weights.size());
    std::vector<int32_t> large, small;
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      share[at] = static_cast<double>(weights[at] * static_cast<float>(n)) / sum;
      (share[at] < 1 ? small : large).push_back(static_cast<int32_t>(i));
      entries_[at] = {0, static_cast<int32_t>(i)};
    }
    while (!large.empty() && !small.empty()) {
      const int32_t low = small.back(), high = large.back();
      small.pop_back();
      large.pop_back();
      entries_[static_cast<size_t>(low)].second = high;
      double& rest = share[static_cast<size_t>(high)];
      rest -= 1.0 - share[static_cast<size_t>(low)];
      (rest < 1 ? small : large).push_back(high);
    }
    for (size_t i = 0; i < entries_.size(); ++i) entries_[i].first = static_cast<float>(share[i]);
    for (const auto* left : {&large, &small}) {  // shares of 1 but for rounding
      for (const int32_t i : *left) entries_[static_cast<size_t>(i)] = {1.0f, i};
    }
  }

  int64_t Draw(Words& words) const {
    const float place = words.NextFloat();
    const size_t i = words.Next() % static_cast<uint32_t>(entries_.size());
    return place < entries_[i].first ? static_cast<int64_t>(i) : entries_[i].second;
  }

 private:
  std::vector<std::pair<float, int32_t>> entries_;  // the share of a class in its own slot, and the other class there
};

/// Counts of classes, each at least 1; memory grows with the classes that were counted. Not thread-safe.
class ClassCounts {
 public:
  /// 0 < range < 2^31.
  explicit ClassCounts(int64_t range) : range_(range), total_(range) {
    while (top_ * 2 <= range) top_ *= 2;
  }

  int64_t total() const { return total_; }
  int64_t Weight(int64_t value) const { return 1 + At(counts_, value); }
  /// The class whose interval of the cumulative counts holds a random place.
  int64_t Draw(Words& words) const {
    auto place = static_cast<int64_t>(words.Next() % static_cast<uint32_t>(total_));
    int64_t value = 0;
    for (int64_t step = top_; step > 0; step /= 2) {
      if (value + step > range_) continue;
      const int64_t below = step + At(sums_, value + step);
      if (below > place) continue;
      value += step;
      place -= below;
    }
    return value;
  }
  /// Ignored once the total is 2^31 - 1.
  void Count(int64_t value) {
    if (total_ >= std::numeric_limits<int32_t>::max()) return;
    ++total_;
    ++counts_[value];
    for (int64_t i = value + 1; i <= range_; i += i & -i) ++sums_[i];
  }

 private:
  using Map = std::unordered_map<int64_t, int64_t>;
  static int64_t At(const Map& map, int64_t key) {
    const auto found = map.find(key);
    return found == map.end() ? 0 : found->second;
  }

  int64_t range_, total_, top_ = 1;
  Map counts_;
  Map sums_;  // a Fenwick tree of counts_
};

}  // namespace weir::kernels_eigen

#endif  // WEIR_PLUGINS_KERNELS_EIGEN_KERNELS_CLASS_WEIGHTS_H_
