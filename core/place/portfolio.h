// Candidate plans for a problem and the selection of the best.
#ifndef WEIR_CORE_PLACE_PORTFOLIO_H_
#define WEIR_CORE_PLACE_PORTFOLIO_H_

#include <string>
#include <vector>

#include "core/place/problem.h"
#include "core/place/simulate.h"

namespace weir::place {

enum class Algorithm : uint8_t {
  kCostSim,     // list schedules and baselines; the shortest simulated plan wins
  kWhitePaper,  // one greedy pass from the sources, as in the white paper
  kTf,          // the given plan by TensorFlow's rules
  kSingle,      // the best single device
};

/// A complete placement with its simulated costs.
struct Plan {
  std::string name;
  std::vector<int> device_of;  // by task
  Simulation simulation;
};

/// The result of a candidate plan.
struct Tried {
  std::string name;
  int64_t makespan_ns = 0;
  bool fits = true;
};

struct ChoiceOptions {
  int64_t refine_iterations = 2000;  // of kCostSim; RefineOptions
};

struct Choice {
  Plan plan;
  std::vector<Tried> tried;    // in the order tried
  int64_t best_single_ns = 0;  // best fitting single-device plan; 0 if there is none
  int64_t bound_ns = 0;        // no plan is shorter: LowerBoundNs
  std::vector<int64_t> ranks;  // from UpwardRanks
};

/// `given` are external plans, used as baselines; kTf uses TensorFlow's unchanged. kCostSim never returns a plan with a
/// longer simulated time than the best baseline. A plan that fits the memory always beats one that does not. On ties
/// the plan tried first wins; baselines are tried before schedules.
Choice ChoosePlan(const Problem& problem, Algorithm algorithm, std::vector<Plan> given,
                  const ChoiceOptions& options = {});

/// Limits a problem to the `most` devices that are fastest alone. Groups that none of these can run keep their devices.
void LimitDevices(Problem& problem, int most);

/// Puts every group that may run on `d` there, and the others on their fallback; with `rest` they go to this device
/// where they may.
std::vector<int> SingleDevicePlan(const Problem& problem, int d, int rest = -1);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_PORTFOLIO_H_
