#include "core/place/refine.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

namespace weir::place {
namespace {

constexpr int64_t kMostTaskSteps = 120'000;  // simulated tasks of all iterations together
constexpr int64_t kFewAssignments = 1500;
constexpr int kManyGroups = 5000;  // above, pairs of groups move together
constexpr int kLongestChunk = 32;

bool IsBetter(const Simulation& a, const Simulation& b) {
  return a.fits != b.fits ? a.fits : a.makespan_ns < b.makespan_ns;
}

/// A fixed sequence of numbers (splitmix64).
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : state_(seed) {}
  /// From 0 to `limit` - 1.
  int Below(int limit) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<int>((z ^ (z >> 31)) % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_;
};

uint64_t SeedOf(const Problem& problem) {
  uint64_t seed = static_cast<uint64_t>(problem.tasks()) * 31 + static_cast<uint64_t>(problem.device_count());
  for (int t = 0; t < problem.tasks(); ++t) {
    seed = seed * 1099511628211u + static_cast<uint64_t>(MeanTimeNs(problem, t));
  }
  return seed;
}

/// Two groups joined by values, with the bytes.
struct Join {
  int64_t bytes = 0;
  int from = 0;
  int to = 0;
};

std::vector<Join> JoinsOf(const Problem& problem) {
  std::vector<Join> joins;
  for (int v = 0; v < problem.values(); ++v) {
    const Value& value = problem.value(v);
    if (value.task < 0) continue;
    const int from = problem.group(value.task);
    for (const Problem::Consumer& consumer : problem.consumers(v)) {
      const int to = problem.group(consumer.task);
      if (from != to) joins.push_back({value.bytes * value.times, from, to});
    }
  }
  return joins;
}

bool AllowedAlike(const Problem& problem, int a, int b) {
  for (int d = 0; d < problem.device_count(); ++d) {
    if (problem.Allowed(a, d) != problem.Allowed(b, d)) return false;
  }
  return true;
}

class Union {
 public:
  explicit Union(int count) : parent_(static_cast<size_t>(count)), size_(static_cast<size_t>(count), 1) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int Root(int i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int& p = parent_[static_cast<size_t>(i)];
      p = parent_[static_cast<size_t>(p)];
      i = p;
    }
    return i;
  }
  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    parent_[static_cast<size_t>(b)] = a;
    size_[static_cast<size_t>(a)] += size_[static_cast<size_t>(b)];
  }
  int SizeOf(int i) { return size_[static_cast<size_t>(Root(i))]; }

 private:
  std::vector<int> parent_;
  std::vector<int> size_;
};

/// Lists of numbers by key, in one array.
class Lists {
 public:
  Lists() = default;
  Lists(int keys, const std::vector<std::pair<int, int>>& entries) : begin_(static_cast<size_t>(keys) + 1, 0) {
    for (const auto& [key, value] : entries) ++begin_[static_cast<size_t>(key) + 1];
    for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    values_.resize(entries.size());
    std::vector<int> next = begin_;
    for (const auto& [key, value] : entries) values_[static_cast<size_t>(next[static_cast<size_t>(key)]++)] = value;
  }
  std::span<const int> Of(int key) const {
    const auto from = static_cast<size_t>(begin_[static_cast<size_t>(key)]);
    return {values_.data() + from, static_cast<size_t>(begin_[static_cast<size_t>(key) + 1]) - from};
  }

 private:
  std::vector<int> begin_;
  std::vector<int> values_;
};

class Climber {
 public:
  Climber(const Problem& problem, const std::vector<int64_t>& ranks, Refined start, const RefineOptions& options)
      : problem_(problem), ranks_(ranks), best_(std::move(start)), options_(options), random_(SeedOf(problem)) {
    for (int g = 0; g < problem.groups(); ++g) {
      int allowed = 0;
      for (int d = 0; d < problem.device_count(); ++d) allowed += problem.Allowed(g, d) ? 1 : 0;
      if (allowed < 2) continue;
      free_.push_back(g);
      assignments_ = std::min(assignments_ * allowed, 2 * kFewAssignments);
    }
  }

  Refined Run() {
    const int64_t tasks = std::max(problem_.tasks(), 1);
    budget_ = std::min(options_.iterations, std::max<int64_t>(kMostTaskSteps / tasks, 1));
    if (free_.empty() || budget_ <= 0 || Enough()) return std::move(best_);
    if (assignments_ <= std::min(kFewAssignments, budget_)) {
      TryAll();
    } else {
      Climb();
    }
    return std::move(best_);
  }

 private:
  bool Enough() const { return best_.simulation.fits && best_.simulation.makespan_ns <= options_.enough_ns; }

  /// Every assignment of the groups that have a choice, as the digits of a number.
  void TryAll() {
    std::vector<std::vector<int>> choices;
    for (const int g : free_) {
      std::vector<int>& of_group = choices.emplace_back();
      for (int d = 0; d < problem_.device_count(); ++d) {
        if (problem_.Allowed(g, d)) of_group.push_back(d);
      }
    }
    MakeTasks();
    std::vector<size_t> digit(free_.size(), 0);
    std::vector<int> device_of = best_.device_of;
    while (!Enough()) {
      for (size_t k = 0; k < free_.size(); ++k) Put(device_of, free_[k], choices[k][digit[k]]);
      Simulation simulation = Simulate(problem_, device_of, ranks_);
      if (IsBetter(simulation, best_.simulation)) best_ = {device_of, std::move(simulation)};
      size_t k = 0;
      while (k < digit.size() && ++digit[k] == choices[k].size()) digit[k++] = 0;
      if (k == digit.size()) return;
    }
  }

  void Climb() {
    MakeTasks();
    MakeClusters();
    FindCriticalPath();
    int64_t since = 0;
    const int64_t patience = std::max<int64_t>(200, 6 * static_cast<int64_t>(clusters_free_.size()));
    for (int64_t i = 0; i < budget_ && since < patience && !Enough(); ++i) {
      std::vector<int> device_of = best_.device_of;
      if (!Move(device_of)) {
        ++since;
        continue;
      }
      Simulation simulation = Simulate(problem_, device_of, ranks_);
      if (IsBetter(best_.simulation, simulation)) {
        ++since;
        continue;
      }
      since = IsBetter(simulation, best_.simulation) ? 0 : since + 1;
      best_ = {std::move(device_of), std::move(simulation)};
      FindCriticalPath();
    }
  }

  void MakeTasks() {
    std::vector<std::pair<int, int>> entries;
    for (int t = 0; t < problem_.tasks(); ++t) entries.emplace_back(problem_.group(t), t);
    tasks_of_ = Lists(problem_.groups(), entries);
  }

  void MakeClusters() {
    cluster_of_ = Clusters(problem_, kManyGroups);
    const int clusters = 1 + *std::max_element(cluster_of_.begin(), cluster_of_.end());
    std::vector<std::pair<int, int>> members, near;
    std::vector<bool> free(static_cast<size_t>(clusters), false);
    for (int g = 0; g < problem_.groups(); ++g) members.emplace_back(cluster_of_[static_cast<size_t>(g)], g);
    for (const int g : free_) free[static_cast<size_t>(cluster_of_[static_cast<size_t>(g)])] = true;
    for (const Join& join : JoinsOf(problem_)) {
      const int a = cluster_of_[static_cast<size_t>(join.from)];
      const int b = cluster_of_[static_cast<size_t>(join.to)];
      if (a == b) continue;
      near.emplace_back(a, b);
      near.emplace_back(b, a);
    }
    groups_of_ = Lists(clusters, members);
    near_ = Lists(clusters, near);
    for (int c = 0; c < clusters; ++c) {
      if (free[static_cast<size_t>(c)]) clusters_free_.push_back(c);
    }
    seen_.assign(static_cast<size_t>(clusters), -1);
  }

  void Put(std::vector<int>& device_of, int group, int d) const {
    for (const int t : tasks_of_.Of(group)) device_of[static_cast<size_t>(t)] = d;
  }
  int DeviceOf(const std::vector<int>& device_of, int cluster) const {
    return device_of[static_cast<size_t>(tasks_of_.Of(groups_of_.Of(cluster).front()).front())];
  }
  bool MayRun(int cluster, int d) const {
    const auto groups = groups_of_.Of(cluster);
    return std::all_of(groups.begin(), groups.end(), [&](int g) { return problem_.Allowed(g, d); });
  }

  /// The clusters that decide when the step ends: from the last task back to the task or input that it waited for.
  void FindCriticalPath() {
    critical_.clear();
    const Simulation& simulation = best_.simulation;
    std::map<std::pair<int, int64_t>, int> ended;  // by device and time: the task that ended then
    int task = -1;
    for (int t = 0; t < problem_.tasks(); ++t) {
      const int64_t finish = simulation.finish_ns[static_cast<size_t>(t)];
      if (finish > simulation.start_ns[static_cast<size_t>(t)])
        ended[{best_.device_of[static_cast<size_t>(t)], finish}] = t;
      if (task < 0 || finish > simulation.finish_ns[static_cast<size_t>(task)]) task = t;
    }
    for (int steps = 0; task >= 0 && steps < problem_.tasks(); ++steps) {
      const int cluster = cluster_of_[static_cast<size_t>(problem_.group(task))];
      if (critical_.empty() || critical_.back() != cluster) critical_.push_back(cluster);
      const auto t = static_cast<size_t>(task);
      if (simulation.start_ns[t] > simulation.ready_ns[t]) {
        const auto before = ended.find({best_.device_of[t], simulation.start_ns[t]});
        if (before != ended.end() && before->second != task) {
          task = before->second;
          continue;
        }
      }
      int last = -1;
      for (const Use& use : problem_.uses(task)) {
        const int from = problem_.value(use.value).task;
        if (from < 0) continue;
        if (last < 0 ||
            simulation.finish_ns[static_cast<size_t>(from)] > simulation.finish_ns[static_cast<size_t>(last)])
          last = from;
      }
      task = last;
    }
  }

  /// Moves some clusters; false if the choice was none.
  bool Move(std::vector<int>& device_of) {
    const bool critical = !critical_.empty() && random_.Below(4) != 0;
    const int first = critical
                          ? critical_[static_cast<size_t>(random_.Below(static_cast<int>(critical_.size())))]
                          : clusters_free_[static_cast<size_t>(random_.Below(static_cast<int>(clusters_free_.size())))];
    const int from = DeviceOf(device_of, first);
    int to = random_.Below(problem_.device_count());
    const std::span<const int> around = near_.Of(first);
    if (!around.empty() && random_.Below(2) == 0) {
      to = DeviceOf(device_of, around[static_cast<size_t>(random_.Below(static_cast<int>(around.size())))]);
    }
    if (to == from || !MayRun(first, to)) return false;
    const int most = 1 << random_.Below(6);
    static_assert(kLongestChunk == 1 << 5);
    chunk_.assign(1, first);
    seen_[static_cast<size_t>(first)] = ++mark_;
    for (size_t k = 0; k < chunk_.size() && static_cast<int>(chunk_.size()) < most; ++k) {
      for (const int next : near_.Of(chunk_[k])) {
        if (static_cast<int>(chunk_.size()) == most) break;
        if (seen_[static_cast<size_t>(next)] == mark_ || DeviceOf(device_of, next) != from || !MayRun(next, to))
          continue;
        seen_[static_cast<size_t>(next)] = mark_;
        chunk_.push_back(next);
      }
    }
    for (const int cluster : chunk_) {
      for (const int g : groups_of_.Of(cluster)) Put(device_of, g, to);
    }
    return true;
  }

  const Problem& problem_;
  const std::vector<int64_t>& ranks_;
  Refined best_;
  const RefineOptions& options_;
  Sequence random_;
  int64_t budget_ = 0;
  int64_t assignments_ = 1;
  std::vector<int> free_;  // groups with a choice
  Lists tasks_of_;         // by group
  std::vector<int> cluster_of_;
  Lists groups_of_;  // by cluster
  Lists near_;       // by cluster: those that share a value with it
  std::vector<int> clusters_free_;
  std::vector<int> critical_;  // clusters
  std::vector<int> chunk_;
  std::vector<int64_t> seen_;  // by cluster: the last move that looked at it
  int64_t mark_ = 0;
};

}  // namespace

std::vector<int> Clusters(const Problem& problem, int most) {
  std::vector<Join> joins = JoinsOf(problem);
  const int groups = problem.groups();
  std::vector<int> users(static_cast<size_t>(groups), -1), sources(static_cast<size_t>(groups), -1);  // -2: several
  const auto note = [](int& one, int other) { one = one == -1 || one == other ? other : -2; };
  for (const Join& join : joins) {
    note(users[static_cast<size_t>(join.from)], join.to);
    note(sources[static_cast<size_t>(join.to)], join.from);
  }
  Union sets(groups);
  const bool many = groups > most;
  for (int g = 0; g < groups; ++g) {
    const int user = users[static_cast<size_t>(g)];
    if (user < 0 || sources[static_cast<size_t>(user)] != g || !AllowedAlike(problem, g, user)) continue;
    // Short chains only, so that a long one can still be cut.
    if (many && sets.SizeOf(g) + sets.SizeOf(user) <= kLongestChunk) sets.Join(g, user);
  }
  int left = 0;
  for (int g = 0; g < groups; ++g) left += sets.Root(g) == g ? 1 : 0;
  if (left > most) {
    std::stable_sort(joins.begin(), joins.end(), [](const Join& a, const Join& b) { return a.bytes > b.bytes; });
    for (const Join& join : joins) {
      if (left <= most) break;
      if (sets.Root(join.from) == sets.Root(join.to) || !AllowedAlike(problem, join.from, join.to)) continue;
      if (sets.SizeOf(join.from) + sets.SizeOf(join.to) > 2 * kLongestChunk) continue;
      sets.Join(join.from, join.to);
      --left;
    }
  }
  std::vector<int> number(static_cast<size_t>(groups), -1), cluster_of(static_cast<size_t>(groups));
  int next = 0;
  for (int g = 0; g < groups; ++g) {
    int& of_root = number[static_cast<size_t>(sets.Root(g))];
    if (of_root < 0) of_root = next++;
    cluster_of[static_cast<size_t>(g)] = of_root;
  }
  return cluster_of;
}

Refined Refine(const Problem& problem, const std::vector<int64_t>& ranks, Refined start, const RefineOptions& options) {
  return Climber(problem, ranks, std::move(start), options).Run();
}

}  // namespace weir::place
