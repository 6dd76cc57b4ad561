// Simulates a step with a given placement, as the executor would dispatch it.
#ifndef WEIR_CORE_PLACE_SIMULATE_H_
#define WEIR_CORE_PLACE_SIMULATE_H_

#include <cstdint>
#include <vector>

#include "core/place/problem.h"

namespace weir::place {

/// The result of a simulated step.
struct Simulation {
  int64_t makespan_ns = 0;
  std::vector<int64_t> start_ns, finish_ns;  // by task
  std::vector<int64_t> ready_ns;             // arrival of the last input; the task queues until its start
  std::vector<int64_t> link_wait_ns;         // longest wait of an input for a busy link
  std::vector<int64_t> peak_bytes;           // by device
  int64_t transfers = 0;
  int64_t transferred_bytes = 0;
  bool fits = true;  // no device exceeds its capacity
};

/// What happened in a simulation.
struct Course {
  struct Transfer {
    int value = -1;
    int from = 0;  // spaces
    int to = 0;
    int64_t start_ns = 0;
    int64_t finish_ns = 0;
  };
  struct Memory {
    int device = 0;
    int64_t time_ns = 0;
    int64_t bytes = 0;  // in use from then on
  };
  std::vector<Transfer> transfers;
  std::vector<Memory> memory;
};

/// A device runs ready tasks by descending rank, then by number. A link transfers values in the order in which they are
/// produced; a value is transferred once per space. Deterministic. O((tasks + uses) log tasks).
/// `course` may be null.
Simulation Simulate(const Problem& problem, const std::vector<int>& device_of, const std::vector<int64_t>& ranks,
                    Course* course = nullptr);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_SIMULATE_H_
