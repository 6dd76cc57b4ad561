// Random scheduling problems.
#ifndef WEIR_TESTS_UNIT_PLACE_RANDOM_PROBLEM_H_
#define WEIR_TESTS_UNIT_PLACE_RANDOM_PROBLEM_H_

#include <random>
#include <vector>

#include "core/place/problem.h"

namespace weir::place {

/// Layers of tasks with different times and edges between them.
inline Problem Random(uint32_t seed, int tasks, int accelerators, int64_t bytes, bool queues) {
  std::mt19937 random(seed);
  const auto up_to = [&random](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  std::vector<DeviceCost> devices = {{.space = 0}};
  for (int d = 1; d <= accelerators; ++d) devices.push_back({.space = d, .device_class = d});
  const int spaces = accelerators + 1;
  std::vector<LinkCost> links(static_cast<size_t>(spaces * spaces), {.ns_per_byte = 1, .queues = queues});
  Problem problem(devices, spaces, links);
  std::vector<int> made;
  for (int t = 0; t < tasks; ++t) {
    std::vector<int64_t> times;
    for (int d = 0; d <= accelerators; ++d) times.push_back(1 + up_to(d == 0 ? 400 : 100));
    problem.AddTask(times, t);
    for (int k = 0; k < 2 && !made.empty(); ++k) {
      const auto recent = static_cast<int64_t>(std::min<size_t>(made.size(), 6));
      problem.AddUse({made[made.size() - 1 - static_cast<size_t>(up_to(recent))]});
    }
    made.push_back(problem.AddValue({.task = t, .bytes = up_to(bytes)}));
  }
  problem.Seal();
  return problem;
}

}  // namespace weir::place

#endif  // WEIR_TESTS_UNIT_PLACE_RANDOM_PROBLEM_H_
