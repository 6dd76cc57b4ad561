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
  template <class Elements>
  int OneOf(const Elements& elements) {
    return elements[PositionOf(Below(static_cast<int>(elements.size())))];
  }
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
  explicit Union(int count) : parent_(PositionOf(count)), size_(PositionOf(count), 1) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int Root(int i) {
    while (parent_[i] != i) {
      int& p = parent_[i];
      p = parent_[p];
      i = p;
    }
    return i;
  }
  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    parent_[b] = a;
    size_[a] += size_[b];
  }
  int SizeOf(int i) { return size_[Root(i)]; }

 private:
  IndexedVector<int, int> parent_;
  IndexedVector<int, int> size_;
};

/// Lists of numbers by key, in one array.
class Lists {
 public:
  Lists() = default;
  Lists(int keys, const std::vector<std::pair<int, int>>& entries) : begin_(PositionOf(keys) + 1, 0) {
    for (const auto& [key, value] : entries) ++begin_[key + 1];
    for (int key = 0; key < keys; ++key) begin_[key + 1] += begin_[key];
    values_.resize(entries.size());
    IndexedVector<int, int> next = begin_;
    for (const auto& [key, value] : entries) values_[next[key]++] = value;
  }
  std::span<const int> Of(int key) const {
    return std::span(values_.elements()).subspan(PositionOf(begin_[key]), PositionOf(begin_[key + 1] - begin_[key]));
  }

 private:
  IndexedVector<int, int> begin_;   // by key, and the end of all
  IndexedVector<int, int> values_;  // of the first key, then of the next one
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
    IndexedVector<int, bool> free(PositionOf(clusters), false);
    for (int g = 0; g < problem_.groups(); ++g) members.emplace_back(cluster_of_[g], g);
    for (const int g : free_) free[cluster_of_[g]] = true;
    for (const Join& join : JoinsOf(problem_)) {
      const int a = cluster_of_[join.from];
      const int b = cluster_of_[join.to];
      if (a == b) continue;
      near.emplace_back(a, b);
      near.emplace_back(b, a);
    }
    groups_of_ = Lists(clusters, members);
    near_ = Lists(clusters, near);
    for (int c = 0; c < clusters; ++c) {
      if (free[c]) clusters_free_.push_back(c);
    }
    seen_.assign(PositionOf(clusters), -1);
  }

  void Put(std::vector<int>& device_of, int group, int d) const {
    for (const int t : tasks_of_.Of(group)) device_of[t] = d;
  }
  int DeviceOf(const std::vector<int>& device_of, int cluster) const {
    return device_of[tasks_of_.Of(groups_of_.Of(cluster).front()).front()];
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
      const int64_t finish = simulation.finish_ns[t];
      if (finish > simulation.start_ns[t]) ended[{best_.device_of[t], finish}] = t;
      if (task < 0 || finish > simulation.finish_ns[task]) task = t;
    }
    for (int steps = 0; task >= 0 && steps < problem_.tasks(); ++steps) {
      const int cluster = cluster_of_[problem_.group(task)];
      if (critical_.empty() || critical_.back() != cluster) critical_.push_back(cluster);
      if (simulation.start_ns[task] > simulation.ready_ns[task]) {
        const auto before = ended.find({best_.device_of[task], simulation.start_ns[task]});
        if (before != ended.end() && before->second != task) {
          task = before->second;
          continue;
        }
      }
      int last = -1;
      for (const Use& use : problem_.uses(task)) {
        const int from = problem_.value(use.value).task;
        if (from < 0) continue;
        if (last < 0 || simulation.finish_ns[from] > simulation.finish_ns[last]) last = from;
      }
      task = last;
    }
  }

  /// Moves some clusters; false if the choice was none.
  bool Move(std::vector<int>& device_of) {
    const bool critical = !critical_.empty() && random_.Below(4) != 0;
    const int first = critical ? random_.OneOf(critical_) : random_.OneOf(clusters_free_);
    const int from = DeviceOf(device_of, first);
    int to = random_.Below(problem_.device_count());
    const std::span<const int> around = near_.Of(first);
    if (!around.empty() && random_.Below(2) == 0) {
      to = DeviceOf(device_of, random_.OneOf(around));
    }
    if (to == from || !MayRun(first, to)) return false;
    const size_t most = size_t{1} << random_.Below(6);
    static_assert(kLongestChunk == 1 << 5);
    chunk_.assign(1, first);
    seen_[first] = ++mark_;
    for (size_t k = 0; k < chunk_.size() && chunk_.size() < most; ++k) {
      for (const int next : near_.Of(chunk_[k])) {
        if (chunk_.size() == most) break;
        if (seen_[next] == mark_ || DeviceOf(device_of, next) != from || !MayRun(next, to)) continue;
        seen_[next] = mark_;
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
  IndexedVector<int, int64_t> seen_;  // by cluster: the last move that looked at it
  int64_t mark_ = 0;
};

}  // namespace

std::vector<int> Clusters(const Problem& problem, int most) {
  std::vector<Join> joins = JoinsOf(problem);
  const int groups = problem.groups();
  IndexedVector<GroupId, GroupId> users(PositionOf(groups), -1), sources(PositionOf(groups), -1);  // -2: several
  const auto note = [](int& one, int other) { one = one == -1 || one == other ? other : -2; };
  for (const Join& join : joins) {
    note(users[join.from], join.to);
    note(sources[join.to], join.from);
  }
  Union sets(groups);
  const bool many = groups > most;
  for (int g = 0; g < groups; ++g) {
    const int user = users[g];
    if (user < 0 || sources[user] != g || !AllowedAlike(problem, g, user)) continue;
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
  IndexedVector<GroupId, int> number(PositionOf(groups), -1);
  std::vector<int> cluster_of(PositionOf(groups));
  int next = 0;
  for (int g = 0; g < groups; ++g) {
    int& of_root = number[sets.Root(g)];
    if (of_root < 0) of_root = next++;
    cluster_of[g] = of_root;
  }
  return cluster_of;
}

Refined Refine(const Problem& problem, const std::vector<int64_t>& ranks, Refined start, const RefineOptions& options) {
  return Climber(problem, ranks, std::move(start), options).Run();
}

}  // namespace weir::place
