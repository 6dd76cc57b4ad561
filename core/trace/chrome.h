// Traces in the format of chrome://tracing and Perfetto, written step by step.
#ifndef WEIR_CORE_TRACE_CHROME_H_
#define WEIR_CORE_TRACE_CHROME_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/trace/span.h"

namespace weir::trace {

/// Turns steps into the events of ChromeTrace (span.h). A file is kBegin, the texts of Add and Memory in the order of
/// the calls, and kEnd. Keeps what later steps need: a few bytes per row and per value that is counted later.
class ChromeWriter {
 public:
  static constexpr std::string_view kBegin = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  static constexpr std::string_view kEnd = "\n]}\n";

  /// Times are counted from `origin_us`, microseconds since 1970.
  explicit ChromeWriter(int64_t origin_us) : origin_us_(origin_us) {}

  /// The events of a step, except for those of Memory. Steps come in order of their starts, or of their ends: a step
  /// that begins before others have ended has another lane than these.
  std::string Add(const StepTrace& step);
  /// The bytes held by device memory, at each change up to `until_us`, for the steps added so far. Steps added later
  /// have no change up to then.
  std::string Memory(int64_t until_us);

 private:
  /// Spans of one row, the innermost open one last.
  struct Row {
    std::vector<double> open_ends;
    double last_start = 0;
  };
  /// Where an event of a span is drawn.
  struct Place {
    int process = 0;  // of the device's work; its tensors are in the next one
    int row = 0;
    double start_us = 0, end_us = 0;
  };
  struct Change {
    double at_us = 0;
    std::string memory;
    int64_t bytes = 0;
  };

  void Event(std::string_view event);
  void NameProcess(int process, const std::string& name);
  void NameRow(int process, int thread, int row, int lane);
  int ProcessOf(const std::string& device);
  int LaneOf(const StepTrace& step);
  static int RowOf(double start, double end, std::vector<Row>& rows);
  Place AddWork(const StepTrace& step, const Span& span, int lane);
  void AddValues(const std::vector<const Span*>& spans, const std::vector<Place>& places);
  void AddFlow(std::string_view node, const Place& from, const Place& to);
  void AddTensor(const Span& span, const SpanOutput& output, const Place& place, double freed_us);

  const int64_t origin_us_;
  std::map<std::string, int> processes_;                        // of the work of a device
  std::vector<int64_t> lane_ends_us_;                           // by lane: the end of its last step
  std::map<std::tuple<int, int, int>, std::vector<Row>> rows_;  // by process, lane and thread
  std::vector<Change> changes_;                                 // not written yet
  std::map<std::string, int64_t> held_;                         // bytes by memory
  int next_id_ = 0;                                             // of flows and tensors
  bool any_ = false;                                            // an event was written
  std::string events_;                                          // of the call that is under way
};

}  // namespace weir::trace

#endif  // WEIR_CORE_TRACE_CHROME_H_
