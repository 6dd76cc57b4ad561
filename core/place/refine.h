// Improves a plan by moving groups of tasks between devices.
#ifndef WEIR_CORE_PLACE_REFINE_H_
#define WEIR_CORE_PLACE_REFINE_H_

#include <cstdint>
#include <vector>

#include "core/place/problem.h"
#include "core/place/simulate.h"

namespace weir::place {

struct RefineOptions {
  int64_t iterations = 2000;  // most simulations; large problems get fewer, so that all take similar time
  int64_t enough_ns = 0;      // a step this short is not improved further: a lower bound of all plans
};

/// A plan and its simulation.
struct Refined {
  std::vector<int> device_of;  // by task
  Simulation simulation;
};

/// Coarsening: groups that are moved together. At most `most` groups stay alone. Of more, short chains are joined, in
/// which each group is the only user of the one before and all may run on the same devices; then the groups with the
/// heaviest values between them, until at most `most` clusters are left. By group: the number of its cluster, from 0.
std::vector<int> Clusters(const Problem& problem, int most);

/// Hill climbing with a fixed budget and a fixed seed. A move takes clusters that touch each other, from one device to
/// another; it starts at a task of the simulated critical path or at a random one, and is kept if the plan still fits
/// the memory and takes no longer. Where all assignments are few, tries all of them. The result is never longer than
/// `start`. Deterministic.
Refined Refine(const Problem& problem, const std::vector<int64_t>& ranks, Refined start, const RefineOptions& options);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_REFINE_H_
