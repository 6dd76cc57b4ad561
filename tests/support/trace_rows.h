// Checks of traces in Chrome's format.
#ifndef WEIR_TESTS_SUPPORT_TRACE_ROWS_H_
#define WEIR_TESTS_SUPPORT_TRACE_ROWS_H_

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace weir::test {

/// Names the first complete events of one row that overlap without one lying in the other; empty if there are none.
/// Viewers hide such events.
inline std::string FaultOfRows(const nlohmann::json& trace) {
  struct Event {
    long long begin_ns, end_ns;
    std::string name;
  };
  std::map<std::pair<int, int>, std::vector<Event>> rows;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"].get<double>() * 1e3, took = event["dur"].get<double>() * 1e3;
    const auto begin_ns = static_cast<long long>(begin + 0.5);
    rows[{event["pid"].get<int>(), event["tid"].get<int>()}].push_back(
        {begin_ns, begin_ns + static_cast<long long>(took + 0.5), event["args"]["name"].get<std::string>()});
  }
  for (auto& [row, events] : rows) {
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::pair(a.begin_ns, -a.end_ns) < std::pair(b.begin_ns, -b.end_ns);
    });
    std::vector<const Event*> open;
    for (const Event& event : events) {
      while (!open.empty() && open.back()->end_ns <= event.begin_ns) open.pop_back();
      if (!open.empty() && open.back()->end_ns < event.end_ns) {
        return open.back()->name + " and " + event.name + " overlap in row " + std::to_string(row.second) +
               " of process " + std::to_string(row.first);
      }
      open.push_back(&event);
    }
  }
  return "";
}

}  // namespace weir::test

#endif  // WEIR_TESTS_SUPPORT_TRACE_ROWS_H_
