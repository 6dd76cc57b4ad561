#include "core/place/list_schedule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

namespace weir::place {
namespace {

/// The busy times of a device: disjoint intervals in order; adjacent ones are merged.
class Timeline {
 public:
  /// The earliest start at or after `ready` of an idle interval of at least `time_ns`.
  int64_t Slot(int64_t ready, int64_t time_ns, int max_gaps) const {
    if (busy_.empty()) return ready;
    if (time_ns == 0 && max_gaps > 0) return Boundary(ready);
    if (max_gaps > 0) {
      auto next = std::lower_bound(busy_.begin(), busy_.end(), ready,
                                   [](const Interval& interval, int64_t t) { return interval.begin < t; });
      int64_t free = next == busy_.begin() ? ready : std::max(ready, std::prev(next)->end);
      for (int gap = 0; gap < max_gaps && next != busy_.end(); ++gap, ++next) {
        if (free + time_ns <= next->begin) return free;
        free = std::max(free, next->end);
      }
      if (next == busy_.end()) return free;
    }
    return std::max(ready, busy_.back().end);
  }

  /// The new interval may overlap existing ones.
  void Occupy(int64_t begin, int64_t time_ns) {
    if (time_ns == 0) return;
    begins_.insert(std::lower_bound(begins_.begin(), begins_.end(), begin), begin);
    Interval whole{begin, begin + time_ns};
    const auto first = std::lower_bound(busy_.begin(), busy_.end(), begin,
                                        [](const Interval& interval, int64_t t) { return interval.end < t; });
    auto last = first;
    for (; last != busy_.end() && last->begin <= whole.end; ++last) {
      whole = {std::min(whole.begin, last->begin), std::max(whole.end, last->end)};
    }
    if (first == last) {
      busy_.insert(first, whole);
    } else {
      *first = whole;
      busy_.erase(std::next(first), last);
    }
  }

 private:
  struct Interval {
    int64_t begin = 0;
    int64_t end = 0;
  };
  /// The start of a zero-length task: the first time from `ready` on at which no task is running.
  int64_t Boundary(int64_t ready) const {
    const auto next = std::upper_bound(busy_.begin(), busy_.end(), ready,
                                       [](int64_t t, const Interval& interval) { return t < interval.begin; });
    if (next == busy_.begin() || std::prev(next)->end <= ready) return ready;
    const auto begin = std::lower_bound(begins_.begin(), begins_.end(), ready);
    return begin == begins_.end() ? std::prev(next)->end : std::min(*begin, std::prev(next)->end);
  }

  std::vector<Interval> busy_;
  std::vector<int64_t> begins_;  // of all tasks, sorted
};

constexpr int64_t kNotYet = -1;

/// When the link from one space to another is free.
using LinkTimes = IndexedTable<SpaceId, SpaceId, int64_t>;

class Pass {
 public:
  Pass(const Problem& problem, const ListOptions& options)
      : problem_(problem),
        options_(options),
        timelines_(PositionOf(problem.device_count())),
        used_bytes_(PositionOf(problem.device_count()), 0),
        device_of_group_(PositionOf(problem.groups()), -1),
        uses_left_(PositionOf(problem.values())),
        copied_(PositionOf(problem.values()), PositionOf(problem.device_count()), 0),
        arrival_(PositionOf(problem.values()), PositionOf(problem.spaces()), kNotYet),
        link_free_(PositionOf(problem.spaces()), PositionOf(problem.spaces()), 0) {
    const size_t tasks = PositionOf(problem.tasks());
    schedule_.device_of.assign(tasks, -1);
    schedule_.start_ns.assign(tasks, 0);
    schedule_.finish_ns.assign(tasks, 0);
    for (int v = 0; v < problem.values(); ++v) {
      uses_left_[v] = static_cast<int>(problem.consumers(v).size());
    }
  }

  Schedule Run(const std::vector<int64_t>& ranks) {
    if (options_.order == ListOptions::Order::kRank) {
      VisitByRank(ranks);
    } else {
      VisitReady(options_.order == ListOptions::Order::kReadyRank ? &ranks : nullptr);
    }
    for (int t = 0; t < problem_.tasks(); ++t) {
      if (DeviceOf(t) < 0) Visit(t);  // a deferred task without placed consumers; also places its inputs
    }
    for (const int64_t finish : schedule_.finish_ns) schedule_.makespan_ns = std::max(schedule_.makespan_ns, finish);
    return std::move(schedule_);
  }

 private:
  int DeviceOf(int task) const { return schedule_.device_of[task]; }
  int64_t FinishNs(int task) const { return task < 0 ? 0 : schedule_.finish_ns[task]; }
  bool Deferred(int task) const {
    return options_.deferral != ListOptions::Deferral::kNone && problem_.deferrable(task);
  }
  bool IsCopied(ValueId v, DeviceId d) const { return copied_(v, d) != 0; }

  /// The ranks, with the time of each deferred task added to its consumer of highest rank, which it precedes.
  std::vector<int64_t> Priorities(const std::vector<int64_t>& ranks) const {
    if (options_.deferral != ListOptions::Deferral::kBefore) return ranks;
    std::vector<int64_t> more(ranks.size(), 0);
    bool any = false;
    for (int t = 0; t < problem_.tasks(); ++t) {
      const int64_t time = Deferred(t) ? MeanTimeNs(problem_, t) + more[t] : 0;
      if (time == 0) continue;
      int first = -1;
      for (const int v : problem_.values_of(t)) {
        for (const Problem::Consumer& consumer : problem_.consumers(v)) {
          if (first < 0 || ranks[consumer.task] > ranks[first]) first = consumer.task;
        }
      }
      if (first < 0) continue;
      more[first] += time;
      any = true;
    }
    return any ? UpwardRanks(problem_, std::move(more)) : ranks;
  }

  void VisitByRank(const std::vector<int64_t>& ranks) {
    const std::vector<int64_t> priorities = Priorities(ranks);
    std::vector<TaskId> order(PositionOf(problem_.tasks()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return priorities[a] > priorities[b]; });
    for (const int t : order) {
      if (!Deferred(t)) Visit(t);
    }
  }

  /// Visits ready tasks by descending rank, or by the time at which they are ready if there are no ranks.
  void VisitReady(const std::vector<int64_t>* ranks) {
    using Ready = std::pair<int64_t, int>;  // time or negative rank, task
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    IndexedVector<TaskId, int> missing(PositionOf(problem_.tasks()), 0);
    const auto done = [&](int task, auto&& visit) {
      for (const int v : problem_.values_of(task)) {
        for (const Problem::Consumer& consumer : problem_.consumers(v)) visit(consumer.task);
      }
    };
    for (int t = 0; t < problem_.tasks(); ++t) {
      for (const Use& use : problem_.uses(t)) {
        const int from = problem_.value(use.value).task;
        if (from >= 0 && !Deferred(from)) ++missing[t];
      }
      if (missing[t] == 0 && !Deferred(t)) ready.emplace(KeyOf(ranks, t), t);
    }
    while (!ready.empty()) {
      const int task = ready.top().second;
      ready.pop();
      Visit(task);
      done(task, [&](int next) {
        if (--missing[next] != 0) return;
        ready.emplace(KeyOf(ranks, next), next);
      });
    }
  }

  int64_t KeyOf(const std::vector<int64_t>* ranks, int task) const {
    if (ranks != nullptr) return -(*ranks)[task];
    int64_t time = 0;
    for (const Use& use : problem_.uses(task)) time = std::max(time, FinishNs(problem_.value(use.value).task));
    return time;
  }

  /// Chooses a task's device, transfers its inputs there and adds it to the timeline.
  void Visit(int task) {
    OrderInputs(task);
    most_incoming_ = MostIncomingBytes();
    int best = -1;
    int64_t best_finish = 0;
    bool best_fits = false;
    const int fixed = device_of_group_[problem_.group(task)];
    for (int d = fixed < 0 ? 0 : fixed; d < problem_.device_count(); ++d) {
      if (fixed < 0 && !problem_.Allowed(problem_.group(task), d)) continue;
      const bool fits = fixed >= 0 || Fits(task, d);
      if (best < 0 || fits >= best_fits) {
        const int64_t time = problem_.TimeNs(task, d);
        const int64_t finish = Ahead(task, d, timelines_[d].Slot(ReadyNs(d), time, options_.max_gaps) + time);
        if (best < 0 || fits > best_fits || finish < best_finish) {
          best = d;
          best_finish = finish;
          best_fits = fits;
        }
      }
      if (fixed >= 0) break;
    }
    if (best < 0) best = problem_.Fallback(problem_.group(task));
    const bool beside = options_.deferral == ListOptions::Deferral::kBeside;
    const int64_t start = beside ? SlotNs(task, best, ReadyNs(best)) : kNotYet;
    for (const Use& use : inputs_) {
      const int from = problem_.value(use.value).task;
      if (from >= 0 && DeviceOf(from) < 0) PutDeferred(from, best, start);
    }
    const int64_t ready = BringInputs(inputs_, best);
    Put(task, best, beside ? start : SlotNs(task, best, ready));
    for (const Use& use : inputs_) ReleaseUse(use.value);
  }

  /// The score of a device on which the task ends at `finish`: this time plus what follows it, as the options say.
  int64_t Ahead(int task, int d, int64_t finish) const {
    const int64_t fetched = finish + problem_.FetchNs(task, d);
    if (options_.ahead_ns != nullptr) {
      return std::max(fetched, finish + (*options_.ahead_ns)(task, d));
    }
    int64_t latest = fetched;
    int children = 0;
    for (const int v : problem_.values_of(task)) {
      for (const Problem::Consumer& consumer : problem_.consumers(v)) {
        if (++children > options_.children) return latest;
        latest = std::max(latest, BestFinishNs(consumer, v, d, finish));
      }
    }
    return latest;
  }

  /// The earliest end of a consumer of a value that is made on `d` at `made`.
  int64_t BestFinishNs(const Problem::Consumer& consumer, int v, int d, int64_t made) const {
    const int group = problem_.group(consumer.task);
    const int fixed = device_of_group_[group];
    int64_t best = kImpossible;
    for (int e = 0; e < problem_.device_count(); ++e) {
      if (fixed >= 0 ? e != fixed : !problem_.Allowed(group, e)) continue;
      const Value& value = problem_.value(v);
      const int64_t there =
          made + problem_.WayNs(problem_.SourceSpace(value, d), problem_.TargetSpace(consumer.host, e), value);
      const int64_t time = BookedNs(consumer.task, e);
      best = std::min(best, timelines_[e].Slot(there, time, options_.max_gaps) + time);
    }
    return best == kImpossible ? made : best;
  }

  /// Places a deferred task and the deferred tasks that it depends on for a consumer on `d`: starting at `start`, or
  /// before the consumer if it is kNotYet.
  void PutDeferred(int task, int d, int64_t start) {
    std::vector<std::pair<int, bool>> stack = {{task, false}};  // task, inputs pushed
    const int home = GeneratorDevice(task, d);
    while (!stack.empty()) {
      const auto [next, expanded] = stack.back();
      if (expanded || DeviceOf(next) >= 0) {
        stack.pop_back();
        if (DeviceOf(next) >= 0) continue;
        const int there = GeneratorDevice(next, home);
        const int64_t ready = BringInputs(problem_.uses(next), there);
        Put(next, there, start == kNotYet ? SlotNs(next, there, ready) : start);
        for (const Use& use : problem_.uses(next)) ReleaseUse(use.value);
        continue;
      }
      stack.back().second = true;
      for (const Use& use : problem_.uses(next)) {
        const int from = problem_.value(use.value).task;
        if (from >= 0 && DeviceOf(from) < 0) stack.emplace_back(from, false);
      }
    }
  }

  /// Sorts the task's uses by the time at which their values are produced.
  void OrderInputs(int task) {
    const auto uses = problem_.uses(task);
    inputs_.assign(uses.begin(), uses.end());
    std::sort(inputs_.begin(), inputs_.end(), [this](const Use& a, const Use& b) {
      return std::tuple(FinishNs(problem_.value(a.value).task), a.value, a.host) <
             std::tuple(FinishNs(problem_.value(b.value).task), b.value, b.host);
    });
  }

  /// Upper bound of the bytes that the uses add on any device.
  int64_t MostIncomingBytes() const {
    int64_t bytes = 0;
    for (const Use& use : inputs_) {
      const Value& value = problem_.value(use.value);
      bytes += value.copied_bytes;
      if (value.task >= 0 && DeviceOf(value.task) < 0)
        bytes += value.held_bytes + problem_.group_bytes(problem_.group(value.task));
    }
    return bytes;
  }

  /// The device of a deferred task whose consumer is on `d`.
  int GeneratorDevice(int task, int d) const {
    const int group = problem_.group(task);
    const int fixed = device_of_group_[group];
    if (fixed >= 0) return fixed;
    return problem_.Allowed(group, d) ? d : problem_.Fallback(group);
  }

  bool Fits(int task, int d) const {
    const int64_t capacity = problem_.device(d).capacity_bytes;
    if (capacity == kUnlimited) return true;
    int64_t bytes = used_bytes_[d] + problem_.group_bytes(problem_.group(task));
    for (const int v : problem_.values_of(task)) bytes += problem_.HeldBytes(problem_.value(v), d);
    if (bytes + most_incoming_ <= capacity) return true;
    int last = -1;
    for (const Use& use : inputs_) {
      if (use.value == std::exchange(last, use.value)) continue;
      bytes += InputBytes(use, problem_.group(task), d);
    }
    return bytes <= capacity;
  }

  /// Bytes that a use on `d` adds to the memory in use; those of `group` are already included.
  int64_t InputBytes(const Use& use, int group, int d) const {
    const Value& value = problem_.value(use.value);
    const bool deferred = value.task >= 0 && DeviceOf(value.task) < 0;
    const int home = value.task < 0 ? 0 : deferred ? GeneratorDevice(value.task, d) : DeviceOf(value.task);
    int64_t bytes = deferred && home == d ? problem_.HeldBytes(value, d) : 0;
    const int made_by = value.task < 0 ? group : problem_.group(value.task);
    const bool decided = made_by == group || device_of_group_[made_by] >= 0;
    if (deferred && home == d && !decided) bytes += problem_.group_bytes(made_by);
    if (problem_.Copies(value, home, use.host, d) && !IsCopied(use.value, d)) bytes += value.copied_bytes;
    return bytes;
  }

  int64_t ReadyNs(int d) {
    int64_t ready = 0;
    trial_in_use_ = false;
    for (const Use& use : inputs_) {
      const Value& value = problem_.value(use.value);
      const int target = problem_.TargetSpace(use.host, d);
      if (value.task >= 0 && DeviceOf(value.task) < 0) {
        const int home = GeneratorDevice(value.task, d);
        const int source = problem_.SourceSpace(value, home);
        ready = std::max(ready, problem_.TimeNs(value.task, home) + problem_.WayNs(source, target, value));
        continue;
      }
      const int source = problem_.SourceSpace(value, value.task < 0 ? 0 : DeviceOf(value.task));
      const int64_t made = FinishNs(value.task);
      if (source == target || value.constant) {
        ready = std::max(ready, made);
      } else if (const int64_t there = arrival_(use.value, target); there != kNotYet) {
        ready = std::max(ready, there);
      } else if (options_.reserve_links) {
        if (!trial_in_use_) trial_ = link_free_;
        trial_in_use_ = true;
        ready = std::max(ready, Transfer(trial_, source, target, value, made));
      } else {
        ready = std::max(ready, made + problem_.WayNs(source, target, value));
      }
    }
    return ready;
  }

  /// Reserves the link (or both) in `free` from the time the value is produced; returns the arrival time.
  int64_t Transfer(LinkTimes& free, SpaceId source, SpaceId target, const Value& value, int64_t made) const {
    if (!problem_.link(source, target).direct && source != kHostSpace && target != kHostSpace) {
      return Transfer(free, kHostSpace, target, value, Transfer(free, source, kHostSpace, value, made));
    }
    const LinkCost& cost = problem_.link(source, target);
    const int64_t time = cost.TransferNs(value.bytes, value.times);
    if (!cost.queues) return made + time;
    int64_t& link = free(source, target);
    link = std::max(made, link) + time;
    return link;
  }

  /// Transfers the inputs of a task to its device; returns the arrival time of the last one.
  int64_t BringInputs(std::span<const Use> uses, int d) {
    int64_t ready = 0;
    for (const Use& use : uses) {
      const Value& value = problem_.value(use.value);
      const int target = problem_.TargetSpace(use.host, d);
      const int source = problem_.SourceSpace(value, value.task < 0 ? 0 : DeviceOf(value.task));
      int64_t there = FinishNs(value.task);
      if (source != target && !value.constant) there = Bring(use.value, source, target);
      ready = std::max(ready, there);
    }
    return ready;
  }

  /// Transfers a value to another space unless it is there already; returns the arrival time.
  int64_t Bring(int v, int source, int target) {
    const Value& value = problem_.value(v);
    const int64_t made = FinishNs(value.task);
    int64_t& arrival = arrival_(v, target);
    if (arrival == kNotYet) {
      arrival = options_.reserve_links ? Transfer(link_free_, source, target, value, made)
                                       : made + problem_.WayNs(source, target, value);
    }
    return arrival;
  }

  /// Time that the task occupies in the timeline; 0 if the device cannot run it.
  int64_t BookedNs(int task, int d) const {
    return problem_.TimeNs(task, d) == kImpossible ? 0 : problem_.TimeNs(task, d);
  }
  int64_t SlotNs(int task, int d, int64_t ready) const {
    return timelines_[d].Slot(ready, BookedNs(task, d), options_.max_gaps);
  }

  void Put(int task, int d, int64_t start) {
    schedule_.device_of[task] = d;
    schedule_.start_ns[task] = start;
    schedule_.finish_ns[task] = start + BookedNs(task, d);
    timelines_[d].Occupy(start, BookedNs(task, d));
    int& of_group = device_of_group_[problem_.group(task)];
    if (of_group < 0) used_bytes_[d] += problem_.group_bytes(problem_.group(task));
    of_group = d;
    for (const Use& use : problem_.uses(task)) {
      const Value& value = problem_.value(use.value);
      if (IsCopied(use.value, d) || !problem_.Copies(value, value.task < 0 ? 0 : DeviceOf(value.task), use.host, d))
        continue;
      copied_(use.value, d) = 1;
      used_bytes_[d] += value.copied_bytes;
    }
    for (const int v : problem_.values_of(task)) {
      const Value& value = problem_.value(v);
      used_bytes_[d] += problem_.HeldBytes(value, d);
      const int source = problem_.SourceSpace(value, d);
      if (value.fetched && source != kHostSpace)
        schedule_.makespan_ns = std::max(schedule_.makespan_ns, Bring(v, source, kHostSpace));
    }
  }

  void ReleaseUse(int v) {
    const Value& value = problem_.value(v);
    if (--uses_left_[v] != 0 || value.constant) return;
    for (int d = 0; d < problem_.device_count(); ++d) {
      if (IsCopied(v, d)) used_bytes_[d] -= value.copied_bytes;
    }
    if (value.task < 0) return;
    used_bytes_[DeviceOf(value.task)] -= problem_.HeldBytes(value, DeviceOf(value.task));
  }

  const Problem& problem_;
  const ListOptions& options_;
  Schedule schedule_;
  IndexedVector<DeviceId, Timeline> timelines_;
  IndexedVector<DeviceId, int64_t> used_bytes_;
  IndexedVector<GroupId, DeviceId> device_of_group_;  // -1 = undecided
  IndexedVector<ValueId, int> uses_left_;
  IndexedTable<ValueId, DeviceId, uint8_t> copied_;  // a copy uses memory there
  IndexedTable<ValueId, SpaceId, int64_t> arrival_;
  LinkTimes link_free_;
  LinkTimes trial_;  // copy of link_free_ for trying a device
  bool trial_in_use_ = false;
  std::vector<Use> inputs_;  // of the current task
  int64_t most_incoming_ = 0;
};

}  // namespace

TaskTable OptimisticCosts(const Problem& problem) {
  TaskTable ahead(PositionOf(problem.tasks()), PositionOf(problem.device_count()), 0);
  for (int t = problem.tasks() - 1; t >= 0; --t) {
    for (int d = 0; d < problem.device_count(); ++d) {
      int64_t longest = problem.FetchNs(t, d);
      for (const int v : problem.values_of(t)) {
        const Value& value = problem.value(v);
        for (const Problem::Consumer& consumer : problem.consumers(v)) {
          int64_t least = kImpossible;
          for (int e = 0; e < problem.device_count(); ++e) {
            if (!problem.Allowed(problem.group(consumer.task), e)) continue;
            const int64_t way = value.constant ? 0
                                               : problem.WayNs(problem.SourceSpace(value, d),
                                                               problem.TargetSpace(consumer.host, e), value);
            least = std::min(least, way + problem.TimeNs(consumer.task, e) + ahead(consumer.task, e));
          }
          if (least != kImpossible) longest = std::max(longest, least);
        }
      }
      ahead(t, d) = longest;
    }
  }
  return ahead;
}

std::vector<int64_t> MeanOver(const Problem& problem, const TaskTable& by_device) {
  std::vector<int64_t> mean(PositionOf(problem.tasks()), 0);
  for (TaskId t = 0; t < problem.tasks(); ++t) {
    double sum = 0;
    int count = 0;
    for (DeviceId d = 0; d < problem.device_count(); ++d) {
      if (!problem.Allowed(problem.group(t), d)) continue;
      sum += static_cast<double>(by_device(t, d));
      ++count;
    }
    if (count > 0) mean[t] = static_cast<int64_t>(sum / count);
  }
  return mean;
}

Schedule ListSchedule(const Problem& problem, const ListOptions& options, const std::vector<int64_t>& ranks) {
  return Pass(problem, options).Run(ranks);
}

}  // namespace weir::place
