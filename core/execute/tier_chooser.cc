#include "core/execute/tier_chooser.h"

#include <algorithm>

namespace weir::execute {
namespace {

double MedianOf(std::vector<int64_t>& times) {
  std::sort(times.begin(), times.end());
  const size_t half = times.size() / 2;
  const auto upper = static_cast<double>(times[half]);
  return times.size() % 2 != 0 ? upper : (upper + static_cast<double>(times[half - 1])) / 2;
}

}  // namespace

TierChooser::Turn TierChooser::Measure() {
  if (measuring_.exchange(true, std::memory_order_acquire)) return {way(), false};
  return {at_ / kInRow % times_.size(), true};
}

bool TierChooser::Took(Turn turn, int64_t ns) {
  if (ns >= 0 && at_ % kInRow != 0) times_[turn.way].push_back(ns);
  const bool over = ns < 0 || ++at_ == kPasses * kInRow * times_.size();
  if (over) {
    if (ns < 0) {
      left_.store(kLeastInterval, std::memory_order_relaxed);
    } else {
      Choose();
    }
    for (std::vector<int64_t>& times : times_) times.clear();
    at_ = 0;
  }
  measuring_.store(false, std::memory_order_release);
  return over;
}

void TierChooser::Choose() {
  std::vector<double> median;
  for (std::vector<int64_t>& times : times_) median.push_back(std::max(1.0, MedianOf(times)));
  const auto weighed = [&](size_t way) { return way == alone_ ? median[way] * kWorthThreads : median[way]; };
  const size_t before = way();
  size_t best = before;
  for (size_t way = 0; way < median.size(); ++way) {
    const bool better = best == before ? weighed(way) < kWorthChanging * weighed(best) : weighed(way) < weighed(best);
    if (better) best = way;
  }
  double lost = 0;  // runs of the best way that would fit in the extra time of a check
  for (const double time : median) {
    lost += std::max(0.0, time / median[best] - 1) * static_cast<double>(kPasses * kInRow);
  }
  unchanged_ = best == before ? std::min<int64_t>(unchanged_ * 2, 64) : 1;
  left_.store(std::max(kLeastInterval * unchanged_, static_cast<int64_t>(lost / kCheckShare)),
              std::memory_order_relaxed);
  way_.store(best, std::memory_order_relaxed);
}

}  // namespace weir::execute
