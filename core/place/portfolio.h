// Candidate plans for one problem, and which of them wins.
#ifndef WEIR_CORE_PLACE_PORTFOLIO_H_
#define WEIR_CORE_PLACE_PORTFOLIO_H_

#include <string>
#include <vector>

#include "core/place/problem.h"
#include "core/place/simulate.h"

namespace weir::place {

enum class Algorithm : uint8_t {
  kCostSim,     // list schedules and baselines; the plan that simulates best
  kWhitePaper,  // one greedy walk from the sources, as the paper describes it
  kTf,          // the plan given, of TensorFlow's rules
  kSingle,      // everything on one device, the best one
};

/// A complete placement with what it costs.
struct Plan {
  std::string name;
  std::vector<int> device_of;  // by task
  Simulation simulation;
};

/// What a candidate came to.
struct Tried {
  std::string name;
  int64_t makespan_ns = 0;
  bool fits = true;
};

struct Choice {
  Plan plan;
  std::vector<Tried> tried;    // in the order of trial
  int64_t best_single_ns = 0;  // of the single-device plans tried that fit; 0 when there is none
  std::vector<int64_t> ranks;  // UpwardRanks
};

/// `given` are plans from outside, baselines as well: TensorFlow's (which kTf takes as it is).
/// kCostSim never returns a plan that simulates worse than the best baseline; a plan that fits the memory always beats
/// one that does not. Equal plans: the one tried first, baselines before schedules.
Choice ChoosePlan(const Problem& problem, Algorithm algorithm, std::vector<Plan> given);

/// Every group that may be on `d` is there, the others where their fallback is.
std::vector<int> SingleDevicePlan(const Problem& problem, int d);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_PORTFOLIO_H_
