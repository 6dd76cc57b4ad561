// Where the spans of steps are drawn: lanes of steps, rows of threads, and the bytes in each memory.
#ifndef WEIR_CORE_TRACE_ROWS_INTERNAL_H_
#define WEIR_CORE_TRACE_ROWS_INTERNAL_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/trace/span.h"

namespace weir::trace {

/// A lane has steps one after the other; a step that begins before others have ended has another lane than these. A row
/// has spans beside each other or within one another, since viewers hide spans that overlap in part.
class TraceRows {
 public:
  /// Steps come in order of their starts, or of their ends.
  int LaneOf(const StepTrace& step) {
    // Starts are whole microseconds: a step may seem to begin one before the end of its predecessor.
    const auto free = std::ranges::find_if(lane_ends_us_, [&](int64_t end_us) { return end_us <= step.start_us + 1; });
    const auto lane = static_cast<int>(free - lane_ends_us_.begin());
    const int64_t end_us = step.start_us + step.total_ns / 1000;
    if (free == lane_ends_us_.end()) {
      lane_ends_us_.push_back(end_us);
    } else {
      *free = end_us;
    }
    return lane;
  }

  /// The spans of a step come in order of their starts, of equal ones the longest first. True in the second: the row is
  /// new.
  std::pair<int, bool> RowOf(int process, int lane, int thread, int64_t start_ns, int64_t end_ns) {
    std::vector<Row>& rows = rows_[{process, lane, thread}];
    for (size_t i = 0;; ++i) {
      const bool added = i == rows.size();
      if (added) rows.push_back({{}, start_ns});
      Row& row = rows[i];
      if (start_ns < row.last_start_ns) continue;
      std::vector<int64_t>& open = row.open_ends_ns;
      while (!open.empty() && open.back() <= start_ns) open.pop_back();
      if (!open.empty() && open.back() < end_ns) continue;
      open.push_back(end_ns);
      row.last_start_ns = start_ns;
      return {static_cast<int>(i), added};
    }
  }

 private:
  struct Row {
    std::vector<int64_t> open_ends_ns;  // of open spans, the innermost last
    int64_t last_start_ns = 0;
  };
  std::vector<int64_t> lane_ends_us_;                           // by lane: the end of its last step
  std::map<std::tuple<int, int, int>, std::vector<Row>> rows_;  // by process, lane and thread
};

/// "caller", "thread 3 of run lane 2, beside it 1".
inline std::string RowName(int thread, int row, int lane) {
  std::string name = thread == 0 ? "caller" : "thread " + std::to_string(thread);
  if (lane > 0) name += " of run lane " + std::to_string(lane);
  if (row > 0) name += ", beside it " + std::to_string(row);
  return name;
}

/// The device of a span or "host".
inline std::string DeviceText(const std::string& device) { return device.empty() ? std::string("host") : device; }

/// The bytes of values by memory, from the ends of the spans that make them to the ends of their last readers.
class HeldBytes {
 public:
  struct Sample {
    int64_t at_ns = 0;
    std::string memory;
    int64_t bytes = 0;
  };

  void Add(const Span& span, const SpanOutput& output, int64_t made_ns, int64_t freed_ns) {
    if (output.bytes == 0) return;
    const std::string memory = output.memory.empty() ? DeviceText(span.device) : output.memory;
    changes_.push_back({made_ns, memory, static_cast<int64_t>(output.bytes)});
    changes_.push_back({freed_ns, memory, -static_cast<int64_t>(output.bytes)});
  }
  /// What each memory holds at its changes up to `until_ns`; these are forgotten.
  std::vector<Sample> Take(int64_t until_ns) {
    std::ranges::stable_sort(changes_, {}, &Sample::at_ns);
    const auto end = std::ranges::upper_bound(changes_, until_ns, {}, &Sample::at_ns);
    std::vector<Sample> samples(changes_.begin(), end);
    changes_.erase(changes_.begin(), end);
    for (Sample& sample : samples) sample.bytes = held_[sample.memory] += sample.bytes;
    return samples;
  }

 private:
  std::vector<Sample> changes_;
  std::map<std::string, int64_t> held_;
};

/// The spans of a step in the order that TraceRows wants.
inline std::vector<const Span*> InOrder(const StepTrace& step) {
  std::vector<const Span*> spans;
  for (const Span& span : step.spans) spans.push_back(&span);
  std::ranges::stable_sort(spans, {}, [](const Span* span) { return std::pair(span->start_ns, -span->end_ns); });
  return spans;
}

/// For each span the one that reads a value of another: pairs of positions in `spans`, writer first.
inline std::vector<std::pair<size_t, size_t>> FlowsOf(const std::vector<const Span*>& spans) {
  std::vector<std::pair<size_t, size_t>> flows;
  std::map<std::string_view, size_t> latest;  // by node, of the spans so far
  for (size_t i = 0; i < spans.size(); ++i) {
    for (const std::string& input : spans[i]->inputs) {
      const auto found = latest.find(input);
      if (found != latest.end() && spans[found->second]->end_ns <= spans[i]->start_ns) {
        flows.emplace_back(found->second, i);
      }
    }
    latest[spans[i]->node] = i;
  }
  return flows;
}

}  // namespace weir::trace

#endif  // WEIR_CORE_TRACE_ROWS_INTERNAL_H_
