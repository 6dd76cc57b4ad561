// Runs a placement in simulated time, as the executor would dispatch it.
#ifndef WEIR_CORE_PLACE_SIMULATE_H_
#define WEIR_CORE_PLACE_SIMULATE_H_

#include <cstdint>
#include <vector>

#include "core/place/problem.h"

namespace weir::place {

/// What a simulated step did.
struct Simulation {
  int64_t makespan_ns = 0;
  std::vector<int64_t> start_ns, finish_ns;  // by task
  std::vector<int64_t> ready_ns;             // when the last input was there; the rest until start is queueing
  std::vector<int64_t> link_wait_ns;         // longest wait of one of its inputs for a busy link
  std::vector<int64_t> peak_bytes;           // by device
  int64_t transfers = 0;
  int64_t transferred_bytes = 0;
  bool fits = true;  // no device above its capacity
};

/// A device runs ready tasks by falling rank, then by number; a link carries values in the order in which they are
/// made; a value crosses once per space. Deterministic. O((tasks + uses) log tasks).
Simulation Simulate(const Problem& problem, const std::vector<int>& device_of, const std::vector<int64_t>& ranks);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_SIMULATE_H_
