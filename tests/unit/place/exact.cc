#include "tests/unit/place/exact.h"

#include <algorithm>
#include <vector>

namespace weir::place {
namespace {

class Search {
 public:
  explicit Search(const Problem& problem)
      : problem_(problem),
        rest_(static_cast<size_t>(problem.tasks()), 0),
        device_(static_cast<size_t>(problem.tasks()), -1),
        finish_(static_cast<size_t>(problem.tasks()), 0),
        free_(static_cast<size_t>(problem.device_count()), 0) {
    for (int t = problem.tasks() - 1; t >= 0; --t) {
      int64_t longest = 0;
      for (const int v : problem.values_of(t)) {
        for (const auto& consumer : problem.consumers(v)) longest = std::max(longest, Rest(consumer.task));
      }
      int64_t best = kImpossible;
      for (int d = 0; d < problem.device_count(); ++d) best = std::min(best, problem.TimeNs(t, d));
      Rest(t) = best + longest;
    }
  }

  int64_t Run() {
    Extend(0, 0);
    return best_;
  }

 private:
  int64_t& Rest(int t) { return rest_[static_cast<size_t>(t)]; }

  int64_t StartNs(int t, int d) const {
    int64_t start = free_[static_cast<size_t>(d)];
    for (const Use& use : problem_.uses(t)) {
      const Value& value = problem_.value(use.value);
      const auto from = static_cast<size_t>(value.task);
      const int source = problem_.SourceSpace(value, device_[from]);
      const int target = problem_.TargetSpace(use.host, d);
      start = std::max(start,
                       finish_[from] + (source == target ? 0 : problem_.link(source, target).TransferNs(value.bytes)));
    }
    return start;
  }

  bool Ready(int t) const {
    if (device_[static_cast<size_t>(t)] >= 0) return false;
    for (const Use& use : problem_.uses(t)) {
      if (device_[static_cast<size_t>(problem_.value(use.value).task)] < 0) return false;
    }
    return true;
  }

  void Extend(int placed, int64_t makespan) {
    if (placed == problem_.tasks()) {
      best_ = std::min(best_, makespan);
      return;
    }
    for (int t = 0; t < problem_.tasks(); ++t) {
      if (!Ready(t)) continue;
      for (int d = 0; d < problem_.device_count(); ++d) {
        const int64_t start = StartNs(t, d);
        const int64_t finish = start + problem_.TimeNs(t, d);
        int64_t bound = std::max(makespan, finish);
        for (const int v : problem_.values_of(t)) {
          for (const auto& consumer : problem_.consumers(v)) bound = std::max(bound, finish + Rest(consumer.task));
        }
        if (bound >= best_) continue;
        const int64_t was_free = free_[static_cast<size_t>(d)];
        device_[static_cast<size_t>(t)] = d;
        finish_[static_cast<size_t>(t)] = free_[static_cast<size_t>(d)] = finish;
        if (!Hopeless()) Extend(placed + 1, std::max(makespan, finish));
        device_[static_cast<size_t>(t)] = -1;
        free_[static_cast<size_t>(d)] = was_free;
      }
    }
  }

  /// True if a ready task cannot end in time on any device.
  bool Hopeless() {
    for (int t = 0; t < problem_.tasks(); ++t) {
      if (!Ready(t)) continue;
      int64_t earliest = kImpossible;
      int64_t fastest = kImpossible;
      for (int d = 0; d < problem_.device_count(); ++d) {
        earliest = std::min(earliest, StartNs(t, d) + problem_.TimeNs(t, d));
        fastest = std::min(fastest, problem_.TimeNs(t, d));
      }
      if (earliest - fastest + Rest(t) >= best_) return true;
    }
    return false;
  }

  const Problem& problem_;
  std::vector<int64_t> rest_;
  std::vector<int> device_;
  std::vector<int64_t> finish_;
  std::vector<int64_t> free_;
  int64_t best_ = kImpossible;
};

}  // namespace

int64_t OptimumNs(const Problem& problem) { return Search(problem).Run(); }

}  // namespace weir::place
