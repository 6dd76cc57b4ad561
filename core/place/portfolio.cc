#include "core/place/portfolio.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/place/list_schedule.h"
#include "core/place/refine.h"

namespace weir::place {
namespace {

/// Keeps the best plan so far.
class Contest {
 public:
  Contest(const Problem& problem, const std::vector<int64_t>& ranks) : problem_(problem), ranks_(ranks) {}

  /// Simulates the plan unless it equals the best one, and keeps it if it is better.
  void Enter(Plan plan) {
    if (!tried_.empty() && plan.device_of == best_.device_of) {
      tried_.push_back({plan.name, best_.simulation.makespan_ns, best_.simulation.fits});
      return;
    }
    plan.simulation = Simulate(problem_, plan.device_of, ranks_);
    const bool first = tried_.empty();
    tried_.push_back({plan.name, plan.simulation.makespan_ns, plan.simulation.fits});
    if (first || Better(plan.simulation, best_.simulation)) best_ = std::move(plan);
  }

  /// As Enter, for a plan that was simulated already; it is listed only if it is better.
  void EnterSimulated(Plan plan) {
    if (!Better(plan.simulation, best_.simulation)) return;
    tried_.push_back({plan.name, plan.simulation.makespan_ns, plan.simulation.fits});
    best_ = std::move(plan);
  }

  const Plan& best() const { return best_; }
  const std::vector<Tried>& tried() const { return tried_; }
  Plan TakeBest() { return std::move(best_); }

 private:
  static bool Better(const Simulation& a, const Simulation& b) {
    return a.fits != b.fits ? a.fits : a.makespan_ns < b.makespan_ns;
  }

  const Problem& problem_;
  const std::vector<int64_t>& ranks_;
  std::vector<Tried> tried_;
  Plan best_;
};

/// Enters one single-device plan per class of devices that are interchangeable for all groups.
void EnterSingles(const Problem& problem, Contest& contest) {
  for (int d = 0; d < problem.device_count(); ++d) {
    const auto alike = [&](int other) {
      if (!problem.Alike(other, d)) return false;
      for (int g = 0; g < problem.groups(); ++g) {
        if (problem.Allowed(g, d) != problem.Allowed(g, other)) return false;
      }
      return true;
    };
    bool repeated = false;
    for (int other = 0; other < d && !repeated; ++other) repeated = alike(other);
    if (repeated) continue;
    contest.Enter({"single:" + std::to_string(d), SingleDevicePlan(problem, d), {}});
    // What it cannot run may be better off on the host than on the fallback.
    for (int rest = 0; rest < problem.device_count(); ++rest) {
      if (rest == d || problem.device(rest).space != kHostSpace) continue;
      std::vector<int> device_of = SingleDevicePlan(problem, d, rest);
      if (device_of != SingleDevicePlan(problem, d)) {
        contest.Enter({"single:" + std::to_string(d) + "+" + std::to_string(rest), std::move(device_of), {}});
      }
      break;
    }
  }
}

ListOptions WhitePaperOptions() {
  ListOptions options;
  options.order = ListOptions::Order::kReadyTime;
  options.deferral = ListOptions::Deferral::kNone;
  options.reserve_links = false;
  options.max_gaps = 0;
  return options;
}

/// Schedules of larger problems are fewer: each takes a tenth of a second with 100,000 tasks.
constexpr int kManyTasks = 20'000;

void EnterSchedules(const Problem& problem, const std::vector<int64_t>& ranks, Contest& contest) {
  ListOptions options;
  contest.Enter({"heft", ListSchedule(problem, options, ranks).device_of, {}});
  options.order = ListOptions::Order::kReadyTime;
  contest.Enter({"ready-time", ListSchedule(problem, options, ranks).device_of, {}});
  if (problem.tasks() > kManyTasks) return;
  ListOptions look;
  look.children = 16;
  contest.Enter({"lookahead", ListSchedule(problem, look, ranks).device_of, {}});
  const TaskTable ahead = OptimisticCosts(problem);
  const std::vector<int64_t> mean_ahead = MeanOver(problem, ahead);
  ListOptions peft;
  peft.order = ListOptions::Order::kReadyRank;
  peft.ahead_ns = &ahead;
  contest.Enter({"peft", ListSchedule(problem, peft, mean_ahead).device_of, {}});
  look.deferral = peft.deferral = ListOptions::Deferral::kNone;
  contest.Enter({"lookahead-eager", ListSchedule(problem, look, ranks).device_of, {}});
  contest.Enter({"peft-eager", ListSchedule(problem, peft, mean_ahead).device_of, {}});
  peft.order = ListOptions::Order::kRank;
  contest.Enter({"peft-by-rank", ListSchedule(problem, peft, ranks).device_of, {}});
}

/// Improves the best plan.
void EnterRefined(const Problem& problem, const std::vector<int64_t>& ranks, const ChoiceOptions& options,
                  int64_t enough_ns, Contest& contest) {
  if (options.refine_iterations <= 0) return;
  Refined start{contest.best().device_of, contest.best().simulation};
  Refined refined = Refine(problem, ranks, std::move(start), {options.refine_iterations, enough_ns});
  contest.EnterSimulated(
      {contest.best().name + "+refined", std::move(refined.device_of), std::move(refined.simulation)});
}

int64_t BestSingleNs(const std::vector<Tried>& tried) {
  int64_t best = 0;
  for (const Tried& plan : tried) {
    if (!plan.fits || !plan.name.starts_with("single:")) continue;
    best = best == 0 ? plan.makespan_ns : std::min(best, plan.makespan_ns);
  }
  return best;
}

}  // namespace

std::vector<int> SingleDevicePlan(const Problem& problem, int d, int rest) {
  std::vector<DeviceId> device_of(PositionOf(problem.tasks()));
  for (int t = 0; t < problem.tasks(); ++t) {
    const int group = problem.group(t);
    const int other = rest >= 0 && problem.Allowed(group, rest) ? rest : problem.Fallback(group);
    device_of[t] = problem.Allowed(group, d) ? d : other;
  }
  return device_of;
}

void LimitDevices(Problem& problem, int most) {
  if (most <= 0 || most >= problem.device_count()) return;
  const std::vector<int64_t> ranks = UpwardRanks(problem);
  std::vector<DeviceId> order(PositionOf(problem.device_count()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<bool, int64_t>> alone;  // does not fit, time
  for (const int d : order) {
    const Simulation simulation = Simulate(problem, SingleDevicePlan(problem, d), ranks);
    alone.emplace_back(!simulation.fits, simulation.makespan_ns);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return alone[a] < alone[b]; });
  order.resize(PositionOf(most));
  problem.KeepDevices(order);
}

Choice ChoosePlan(const Problem& problem, Algorithm algorithm, std::vector<Plan> given, const ChoiceOptions& options) {
  Choice choice;
  choice.ranks = UpwardRanks(problem);
  for (Plan& plan : given) {
    for (int t = 0; t < problem.tasks(); ++t) {
      int& d = plan.device_of[t];
      if (!problem.Allowed(problem.group(t), d)) d = problem.Fallback(problem.group(t));
    }
  }
  choice.bound_ns = LowerBoundNs(problem);
  Contest contest(problem, choice.ranks);
  switch (algorithm) {
    case Algorithm::kWhitePaper:
      contest.Enter({"whitepaper", ListSchedule(problem, WhitePaperOptions(), choice.ranks).device_of, {}});
      break;
    case Algorithm::kTf:
      for (Plan& plan : given) contest.Enter(std::move(plan));
      break;
    case Algorithm::kSingle:
      EnterSingles(problem, contest);
      break;
    case Algorithm::kCostSim:
      EnterSingles(problem, contest);
      for (Plan& plan : given) contest.Enter(std::move(plan));
      EnterSchedules(problem, choice.ranks, contest);
      EnterRefined(problem, choice.ranks, options, choice.bound_ns, contest);
      break;
  }
  choice.tried = contest.tried();
  choice.best_single_ns = BestSingleNs(choice.tried);
  choice.plan = contest.TakeBest();
  return choice;
}

}  // namespace weir::place
