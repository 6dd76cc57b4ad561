#include "core/place/portfolio.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/place/list_schedule.h"

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
    if (!repeated) contest.Enter({"single:" + std::to_string(d), SingleDevicePlan(problem, d), {}});
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

void EnterSchedules(const Problem& problem, const std::vector<int64_t>& ranks, Contest& contest) {
  ListOptions options;
  contest.Enter({"heft", ListSchedule(problem, options, ranks).device_of, {}});
  options.order = ListOptions::Order::kReadyTime;
  contest.Enter({"ready-time", ListSchedule(problem, options, ranks).device_of, {}});
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

std::vector<int> SingleDevicePlan(const Problem& problem, int d) {
  std::vector<int> device_of(static_cast<size_t>(problem.tasks()));
  for (int t = 0; t < problem.tasks(); ++t) {
    const int group = problem.group(t);
    device_of[static_cast<size_t>(t)] = problem.Allowed(group, d) ? d : problem.Fallback(group);
  }
  return device_of;
}

Choice ChoosePlan(const Problem& problem, Algorithm algorithm, std::vector<Plan> given) {
  Choice choice;
  choice.ranks = UpwardRanks(problem);
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
      break;
  }
  choice.tried = contest.tried();
  choice.best_single_ns = BestSingleNs(choice.tried);
  choice.plan = contest.TakeBest();
  return choice;
}

}  // namespace weir::place
