#include "core/place/problem.h"

#include <algorithm>
#include <cmath>
#include <tuple>
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

int64_t LinkCost::TransferNs(int64_t bytes, int64_t times) const {
  const double ns = static_cast<double>(latency_ns) + static_cast<double>(bytes) * ns_per_byte;
  return std::llround(std::min(ns * static_cast<double>(times), 2.0 * static_cast<double>(kLongestTimeNs)));
}

Problem::Problem(std::vector<DeviceCost> devices, int spaces, std::vector<LinkCost> links)
    : spaces_(spaces), links_(PositionOf(spaces), PositionOf(spaces)) {
  for (DeviceCost& device : devices) devices_.push_back(device);
  links.resize(PositionOf(spaces) * PositionOf(spaces));
  auto link = links.begin();
  for (SpaceId from = 0; from < spaces; ++from) {
    for (SpaceId to = 0; to < spaces; ++to) links_(from, to) = *link++;
  }
}

TaskId Problem::AddTask(std::span<const int64_t> time_ns, GroupId group, int64_t resident_bytes, bool deferrable) {
  const TaskId task = group_.Add(group);
  time_ns_.AddRow(time_ns);
  for (int64_t& ns : time_ns_.Row(task)) ns = ns == kImpossible ? ns : std::clamp<int64_t>(ns, 0, kLongestTimeNs);
  resident_.push_back(resident_bytes);
  deferrable_.push_back(deferrable ? 1 : 0);
  use_begin_.push_back(uses_.end_index());
  return task;
}

ValueId Problem::AddValue(const Value& value) { return values_.Add(value); }

void Problem::AddUse(const Use& use) {
  uses_.push_back(use);
  use_begin_.back() = uses_.end_index();
}

void Problem::Seal() {
  int groups = 0;
  for (const int g : group_) groups = std::max(groups, g + 1);
  group_bytes_.assign(PositionOf(groups), 0);
  allowed_.assign(PositionOf(groups), devices_.size(), 1);
  for (const TaskId t : group_.indices()) {
    group_bytes_[group(t)] += resident_bytes(t);
    for (const DeviceId d : devices_.indices()) {
      if (TimeNs(t, d) == kImpossible) allowed_(group(t), d) = 0;
    }
  }
  // Counting sorts: values by producing task, uses by value.
  made_begin_.assign(group_.size() + 1, 0);
  for (const Value& value : values_) {
    if (value.task >= 0) ++made_begin_[value.task + 1];
  }
  consumer_begin_.assign(values_.size() + 1, 0);
  for (const Use& use : uses_) ++consumer_begin_[use.value + 1];
  for (const TaskId t : group_.indices()) made_begin_[t + 1] += made_begin_[t];
  for (const ValueId v : values_.indices()) consumer_begin_[v + 1] += consumer_begin_[v];
  made_.resize(PositionOf(made_begin_.back()));
  consumers_.resize(uses_.size());
  IndexedVector<int, int> next = made_begin_;
  for (const ValueId v : values_.indices()) {
    const TaskId task = value(v).task;
    if (task >= 0) made_[next[task]++] = v;
  }
  next = consumer_begin_;
  for (const TaskId t : group_.indices()) {
    for (const Use& use : uses(t)) consumers_[next[use.value]++] = {t, use.host};
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

void Problem::KeepDevices(const std::vector<int>& kept) {
  for (int g = 0; g < groups(); ++g) {
    const auto allowed = [&](int d) { return Allowed(g, d); };
    if (std::none_of(kept.begin(), kept.end(), allowed)) continue;
    for (int d = 0; d < device_count(); ++d) {
      if (std::find(kept.begin(), kept.end(), d) != kept.end()) continue;
      allowed_(g, d) = 0;
    }
  }
}

int64_t Problem::WayNs(int from, int to, int64_t bytes, int64_t times) const {
  if (from == to) return 0;
  if (link(from, to).direct || from == kHostSpace || to == kHostSpace) return link(from, to).TransferNs(bytes, times);
  return link(from, kHostSpace).TransferNs(bytes, times) + link(kHostSpace, to).TransferNs(bytes, times);
}

int64_t Problem::FetchNs(int task, int d) const {
  int64_t longest = 0;
  for (const int v : values_of(task)) {
    if (value(v).fetched) longest = std::max(longest, WayNs(SourceSpace(value(v), d), kHostSpace, value(v)));
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
  ranks.resize(PositionOf(problem.tasks()), 0);
  for (int t = problem.tasks() - 1; t >= 0; --t) {
    int64_t longest = 0;
    for (const int v : problem.values_of(t)) {
      const double way = mean.latency_ns + mean.ns_per_byte * static_cast<double>(problem.value(v).bytes);
      const auto way_ns = static_cast<int64_t>(std::min(way, static_cast<double>(kLongestTimeNs)));
      for (const Problem::Consumer& consumer : problem.consumers(v)) {
        longest = std::max(longest, way_ns + ranks[consumer.task]);
      }
      if (problem.value(v).fetched && !problem.value(v).host) longest = std::max(longest, way_ns);
    }
    ranks[t] += MeanTimeNs(problem, t) + longest;
  }
  return ranks;
}

int64_t PathBoundNs(const Problem& problem) {
  IndexedVector<TaskId, int64_t> from(PositionOf(problem.tasks()), 0);
  int64_t longest = 0;
  for (int t = problem.tasks() - 1; t >= 0; --t) {
    int64_t rest = 0;
    for (const int v : problem.values_of(t)) {
      for (const Problem::Consumer& consumer : problem.consumers(v)) {
        rest = std::max(rest, from[consumer.task]);
      }
    }
    from[t] = rest + BestTimeNs(problem, t);
    longest = std::max(longest, from[t]);
  }
  return longest;
}

namespace {

/// The dual of the program that divides groups among devices within their memory: any weights of devices and prices of
/// memory give a lower bound, and better ones are found by following the gradient.
class LoadBound {
 public:
  explicit LoadBound(const Problem& problem)
      : problem_(problem),
        devices_(problem.device_count()),
        time_(PositionOf(problem.groups()), PositionOf(devices_), 0),
        weight_(PositionOf(devices_), 1),
        price_(PositionOf(devices_), 0) {
    for (TaskId t = 0; t < problem.tasks(); ++t) {
      for (DeviceId d = 0; d < devices_; ++d) {
        const int64_t ns = problem.TimeNs(t, d);
        if (ns != kImpossible) time_(problem.group(t), d) += static_cast<double>(ns);
      }
    }
    double all = 0;
    for (int g = 0; g < problem.groups(); ++g) all += static_cast<double>(problem.group_bytes(g));
    for (DeviceId d = 0; d < devices_; ++d) tight_ = tight_ || all > Capacity(d);
  }

  double Run() {
    const int rounds = tight_ ? 300 : 60;
    double best = 0;
    for (int round = 0; round < rounds; ++round) {
      best = std::max(best, Assign());
      const double most = *std::max_element(load_.begin(), load_.end());
      if (most <= 0) break;
      // Devices with more load than others get more weight, and those with too little memory a price for it, by smaller
      // and smaller steps.
      const double step = 1.5 / (1 + round);
      for (DeviceId d = 0; d < devices_; ++d) weight_[d] *= std::exp(step * (load_[d] / most - 0.5));
      const double largest = *std::max_element(weight_.begin(), weight_.end());
      for (double& w : weight_) w = std::max(w / largest, 1e-9);
      for (DeviceId d = 0; d < devices_ && tight_; ++d) {
        if (Capacity(d) >= kEndless) continue;
        const double over = used_[d] / Capacity(d) - 1;
        price_[d] = std::max(0.0, price_[d] + 2.0 / (1 + round / 20.0) * std::max(best, 1.0) / Capacity(d) * over);
      }
    }
    return best;
  }

 private:
  static constexpr double kEndless = 1e18;
  double Capacity(DeviceId d) const {
    const int64_t bytes = problem_.device(d).capacity_bytes;
    return bytes == kUnlimited ? kEndless : std::max(static_cast<double>(bytes), 1.0);
  }

  /// Gives each group the device with the least weighted cost; returns the bound that this proves.
  double Assign() {
    load_.assign(PositionOf(devices_), 0);
    used_.assign(PositionOf(devices_), 0);
    double sum = 0, scale = 0;
    for (DeviceId d = 0; d < devices_; ++d) {
      scale += weight_[d] * problem_.device(d).streams;
      if (price_[d] > 0) sum -= price_[d] * Capacity(d);
    }
    for (int g = 0; g < problem_.groups(); ++g) {
      const auto bytes = static_cast<double>(problem_.group_bytes(g));
      DeviceId least = devices_;
      double cost = 0;
      for (DeviceId d = 0; d < devices_; ++d) {
        if (!problem_.Allowed(g, d)) continue;
        const double own = weight_[d] * time_(g, d) + price_[d] * bytes;
        if (least == devices_ || own < cost) std::tie(least, cost) = std::pair(d, own);
      }
      if (least == devices_) continue;
      sum += cost;
      load_[least] += time_(g, least) / problem_.device(least).streams;
      used_[least] += bytes;
    }
    return sum / scale;
  }

  const Problem& problem_;
  const int devices_;
  IndexedTable<GroupId, DeviceId, double> time_;
  IndexedVector<DeviceId, double> weight_, price_;
  IndexedVector<DeviceId, double> load_, used_;  // ns and bytes
  bool tight_ = false;                           // a device cannot hold everything
};

}  // namespace

int64_t LoadBoundNs(const Problem& problem) { return static_cast<int64_t>(LoadBound(problem).Run()); }

int64_t LowerBoundNs(const Problem& problem) { return std::max(PathBoundNs(problem), LoadBoundNs(problem)); }

}  // namespace weir::place
