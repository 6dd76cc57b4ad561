#include "core/place/problem.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weir::place {
namespace {

// Longer than any real task or transfer; sums of millions do not overflow.
constexpr int64_t kLongestTimeNs = 1'000'000'000'000;

/// Mean transfer cost between two different devices.
struct MeanLink {
  double latency_ns = 0;
  double ns_per_byte = 0;
};

MeanLink MeanOverPairs(const Problem& problem) {
  MeanLink mean;
  const int count = problem.device_count();
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < count; ++b) {
      const int from = problem.device(a).space;
      const int to = problem.device(b).space;
      if (a == b || from == to) continue;
      const auto add = [&mean](const LinkCost& link) {
        mean.latency_ns += static_cast<double>(link.latency_ns);
        mean.ns_per_byte += link.ns_per_byte;
      };
      if (problem.link(from, to).direct || from == kHostSpace || to == kHostSpace) {
        add(problem.link(from, to));
      } else {
        add(problem.link(from, kHostSpace));
        add(problem.link(kHostSpace, to));
      }
    }
  }
  const int pairs = std::max(count * (count - 1), 1);
  mean.latency_ns /= pairs;
  mean.ns_per_byte /= pairs;
  return mean;
}

int64_t BestTimeNs(const Problem& problem, int task) {
  int64_t best = kImpossible;
  for (int d = 0; d < problem.device_count(); ++d) {
    if (problem.Allowed(problem.group(task), d)) best = std::min(best, problem.TimeNs(task, d));
  }
  return best == kImpossible ? 0 : best;
}

}  // namespace

int64_t LinkCost::TransferNs(int64_t bytes) const {
  return latency_ns +
         std::llround(std::min(static_cast<double>(bytes) * ns_per_byte, static_cast<double>(kLongestTimeNs)));
}

Problem::Problem(std::vector<DeviceCost> devices, int spaces, std::vector<LinkCost> links)
    : devices_(std::move(devices)), spaces_(spaces), links_(std::move(links)) {
  links_.resize(static_cast<size_t>(spaces_) * static_cast<size_t>(spaces_));
}

int Problem::AddTask(std::span<const int64_t> time_ns, int group, int64_t resident_bytes, bool deferrable) {
  for (const int64_t ns : time_ns)
    time_ns_.push_back(ns == kImpossible ? ns : std::clamp<int64_t>(ns, 0, kLongestTimeNs));
  group_.push_back(group);
  resident_.push_back(resident_bytes);
  deferrable_.push_back(deferrable ? 1 : 0);
  use_begin_.push_back(static_cast<int>(uses_.size()));
  return tasks() - 1;
}

int Problem::AddValue(const Value& value) {
  values_.push_back(value);
  return values() - 1;
}

void Problem::AddUse(const Use& use) {
  uses_.push_back(use);
  use_begin_.back() = static_cast<int>(uses_.size());
}

void Problem::Seal() {
  int groups = 0;
  for (const int g : group_) groups = std::max(groups, g + 1);
  group_bytes_.assign(static_cast<size_t>(groups), 0);
  allowed_.assign(static_cast<size_t>(groups) * devices_.size(), 1);
  for (int t = 0; t < tasks(); ++t) {
    group_bytes_[static_cast<size_t>(group(t))] += resident_bytes(t);
    for (int d = 0; d < device_count(); ++d) {
      if (TimeNs(t, d) != kImpossible) continue;
      allowed_[static_cast<size_t>(group(t)) * devices_.size() + static_cast<size_t>(d)] = 0;
    }
  }
  // Counting sorts: values by producing task, uses by value.
  made_begin_.assign(static_cast<size_t>(tasks()) + 1, 0);
  for (const Value& value : values_) {
    if (value.task >= 0) ++made_begin_[static_cast<size_t>(value.task) + 1];
  }
  consumer_begin_.assign(values_.size() + 1, 0);
  for (const Use& use : uses_) ++consumer_begin_[static_cast<size_t>(use.value) + 1];
  for (size_t i = 1; i < made_begin_.size(); ++i) made_begin_[i] += made_begin_[i - 1];
  for (size_t i = 1; i < consumer_begin_.size(); ++i) consumer_begin_[i] += consumer_begin_[i - 1];
  made_.resize(static_cast<size_t>(made_begin_.back()));
  consumers_.resize(uses_.size());
  std::vector<int> next = made_begin_;
  for (int v = 0; v < values(); ++v) {
    const int task = value(v).task;
    if (task >= 0) made_[static_cast<size_t>(next[static_cast<size_t>(task)]++)] = v;
  }
  next = consumer_begin_;
  for (int t = 0; t < tasks(); ++t) {
    for (const Use& use : uses(t)) {
      consumers_[static_cast<size_t>(next[static_cast<size_t>(use.value)]++)] = {t, use.host};
    }
  }
}

bool Problem::Alike(int a, int b) const {
  const DeviceCost& left = device(a);
  const DeviceCost& right = device(b);
  if (left.device_class != right.device_class || left.streams != right.streams ||
      left.capacity_bytes != right.capacity_bytes) {
    return false;
  }
  const auto same_way = [&](int space) {
    if (left.space == space || right.space == space) return left.space == right.space;
    return link(left.space, space) == link(right.space, space) && link(space, left.space) == link(space, right.space);
  };
  bool same = same_way(kHostSpace);
  for (int d = 0; d < device_count() && same; ++d) same = d == a || d == b || same_way(device(d).space);
  return same;
}

int64_t Problem::WayNs(int from, int to, int64_t bytes) const {
  if (from == to) return 0;
  if (link(from, to).direct || from == kHostSpace || to == kHostSpace) return link(from, to).TransferNs(bytes);
  return link(from, kHostSpace).TransferNs(bytes) + link(kHostSpace, to).TransferNs(bytes);
}

int64_t Problem::FetchNs(int task, int d) const {
  int64_t longest = 0;
  for (const int v : values_of(task)) {
    if (value(v).fetched) longest = std::max(longest, WayNs(SourceSpace(value(v), d), kHostSpace, value(v).bytes));
  }
  return longest;
}

int Problem::Fallback(int group) const {
  int best = -1;
  for (int d = 0; d < device_count(); ++d) {
    if (Allowed(group, d) && (best < 0 || device(d).priority > device(best).priority)) best = d;
  }
  return std::max(best, 0);
}

int64_t MeanTimeNs(const Problem& problem, int task) {
  double sum = 0;
  int count = 0;
  for (int d = 0; d < problem.device_count(); ++d) {
    if (!problem.Allowed(problem.group(task), d)) continue;
    sum += static_cast<double>(problem.TimeNs(task, d));
    ++count;
  }
  return count == 0 ? 0 : static_cast<int64_t>(sum / count);
}

std::vector<int64_t> UpwardRanks(const Problem& problem, std::vector<int64_t> ranks) {  // initially more_ns
  const MeanLink mean = MeanOverPairs(problem);
  ranks.resize(static_cast<size_t>(problem.tasks()), 0);
  for (int t = problem.tasks() - 1; t >= 0; --t) {
    int64_t longest = 0;
    for (const int v : problem.values_of(t)) {
      const double way = mean.latency_ns + mean.ns_per_byte * static_cast<double>(problem.value(v).bytes);
      const auto way_ns = static_cast<int64_t>(std::min(way, static_cast<double>(kLongestTimeNs)));
      for (const Problem::Consumer& consumer : problem.consumers(v)) {
        longest = std::max(longest, way_ns + ranks[static_cast<size_t>(consumer.task)]);
      }
      if (problem.value(v).fetched && !problem.value(v).host) longest = std::max(longest, way_ns);
    }
    ranks[static_cast<size_t>(t)] += MeanTimeNs(problem, t) + longest;
  }
  return ranks;
}

int64_t PathBoundNs(const Problem& problem) {
  std::vector<int64_t> from(static_cast<size_t>(problem.tasks()), 0);
  int64_t longest = 0;
  for (int t = problem.tasks() - 1; t >= 0; --t) {
    int64_t rest = 0;
    for (const int v : problem.values_of(t)) {
      for (const Problem::Consumer& consumer : problem.consumers(v)) {
        rest = std::max(rest, from[static_cast<size_t>(consumer.task)]);
      }
    }
    from[static_cast<size_t>(t)] = rest + BestTimeNs(problem, t);
    longest = std::max(longest, from[static_cast<size_t>(t)]);
  }
  return longest;
}

}  // namespace weir::place
