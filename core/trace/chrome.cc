#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "core/trace/span.h"

namespace weir::trace {
namespace {

constexpr std::string_view kHost = "host";
constexpr int kAllocators = 1;        // the process of all memory counters
constexpr int kRowStride = 1000;      // between the numbers of the rows of one thread
constexpr int kLaneStride = 1000000;  // between those of the rows of runs beside each other
constexpr int64_t kNanosPerMicro = 1000;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

/// Ends of the spans that are open on each row of one thread, the innermost last.
using Rows = std::vector<std::vector<double>>;

/// The first row on which a span lies beside the others or within one of them: viewers hide spans that overlap in part.
/// Spans come in order of their starts, of equal ones the longest first.
int RowOf(double start, double end, Rows& rows) {
  for (size_t i = 0;; ++i) {
    if (i == rows.size()) rows.emplace_back();
    std::vector<double>& open = rows[i];
    while (!open.empty() && open.back() <= start) open.pop_back();
    if (!open.empty() && open.back() < end) continue;
    open.push_back(end);
    return static_cast<int>(i);
  }
}

/// By step: 0 for steps one after the other; a step that begins before others have ended has another lane than these.
std::vector<int> LanesOf(std::span<const StepTrace> steps) {
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return steps[i].start_us; });
  std::vector<int> lanes(steps.size(), 0);
  std::vector<int64_t> ends_us;  // by lane
  for (const size_t i : order) {
    // Starts are whole microseconds: a step may seem to begin one before the end of its predecessor.
    const auto free = std::ranges::find_if(ends_us, [&](int64_t end_us) { return end_us <= steps[i].start_us + 1; });
    lanes[i] = static_cast<int>(free - ends_us.begin());
    const int64_t end_us = steps[i].start_us + steps[i].total_ns / kNanosPerMicro;
    if (free == ends_us.end()) {
      ends_us.push_back(end_us);
    } else {
      *free = end_us;
    }
  }
  return lanes;
}

/// Where an event of a span is drawn.
struct Place {
  int process = 0;  // of the device's work; its tensors are in the next one
  int row = 0;
  double start_us = 0, end_us = 0;
};

class Writer {
 public:
  explicit Writer(std::span<const StepTrace> steps) : origin_us_(steps.empty() ? 0 : steps[0].start_us) {
    for (const StepTrace& step : steps) {
      for (const Span& span : step.spans) processes_.try_emplace(span.device, 0);
    }
    int next = kAllocators + 1;
    for (auto& [device, process] : processes_) {
      const std::string name(device.empty() ? kHost : device);
      process = next;
      NameProcess(next++, name + " Compute");
      NameProcess(next++, name + " Tensors");
    }
    if (!processes_.empty()) NameProcess(kAllocators, "Allocators");
  }

  void Add(std::span<const StepTrace> steps) {
    struct Work {
      int64_t start_ns, end_ns;
      size_t step;
      const Span* span;
    };
    std::vector<Work> all;  // of the steps beside each other, in order of their starts
    for (size_t s = 0; s < steps.size(); ++s) {
      const int64_t begin_ns = (steps[s].start_us - origin_us_) * kNanosPerMicro;
      for (const Span& span : steps[s].spans)
        all.push_back({begin_ns + span.start_ns, begin_ns + span.end_ns, s, &span});
    }
    std::ranges::stable_sort(all, {}, [](const Work& work) { return std::pair(work.start_ns, -work.end_ns); });
    const std::vector<int> lanes = LanesOf(steps);
    std::vector<std::vector<const Span*>> spans(steps.size());
    std::vector<std::vector<Place>> places(steps.size());
    for (const Work& work : all) {
      spans[work.step].push_back(work.span);
      places[work.step].push_back(AddWork(steps[work.step], *work.span, lanes[work.step]));
    }
    for (size_t s = 0; s < steps.size(); ++s) AddValues(spans[s], places[s]);
  }

  std::string Take() && { return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [" + events_ + "\n]}\n"; }

 private:
  void Event(std::string_view event) {
    events_ += events_.empty() ? "\n" : ",\n";
    events_ += event;
  }

  void NameProcess(int process, const std::string& name) {
    Event(fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": {}}}}})", process,
                      Quoted(name)));
  }

  void NameRow(int process, int thread, int row, int lane) {
    std::string name = thread == 0 ? "caller" : fmt::format("thread {}", thread);
    if (lane > 0) name += fmt::format(" of run lane {}", lane);
    if (row > 0) name += fmt::format(", beside it {}", row);
    Event(fmt::format(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})", process,
                      RowNumber(thread, row, lane), Quoted(name)));
  }

  static int RowNumber(int thread, int row, int lane) { return thread + kRowStride * row + kLaneStride * lane; }

  Place AddWork(const StepTrace& step, const Span& span, int lane) {
    const double begin_us = static_cast<double>(step.start_us - origin_us_);
    Place place;
    place.process = processes_.at(span.device);
    place.start_us = begin_us + static_cast<double>(span.start_ns) / 1e3;
    place.end_us = begin_us + static_cast<double>(span.end_ns) / 1e3;
    Rows& rows = rows_[{place.process, lane, span.thread}];
    const size_t before = rows.size();
    const int row = RowOf(place.start_us, place.end_us, rows);
    if (rows.size() > before) NameRow(place.process, span.thread, row, lane);
    place.row = RowNumber(span.thread, row, lane);
    Event(fmt::format(R"({{"ph": "X", "cat": "op", "name": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                      R"("args": {{"name": {}, "op": {}, "step": {}, "output_bytes": {}}}}})",
                      Quoted(span.op), place.process, place.row, place.start_us,
                      static_cast<double>(span.end_ns - span.start_ns) / 1e3, Quoted(span.node), Quoted(span.op),
                      step.step_id, span.bytes));
    return place;
  }

  /// Flows from each span to those that read its values; its values until the last of these has ended; the sum of the
  /// bytes by device. `spans` are in order of their starts.
  void AddValues(const std::vector<const Span*>& spans, const std::vector<Place>& places) {
    std::map<std::string_view, size_t> latest;  // by node, of the spans so far
    std::vector<double> freed;
    for (size_t i = 0; i < spans.size(); ++i) {
      freed.push_back(places[i].end_us);
      for (const std::string& input : spans[i]->inputs) {
        const auto found = latest.find(input);
        if (found == latest.end()) continue;
        const size_t from = found->second;
        if (places[from].end_us > places[i].start_us) continue;
        freed[from] = std::max(freed[from], places[i].end_us);
        AddFlow(input, places[from], places[i]);
      }
      latest[spans[i]->node] = i;
    }
    std::vector<std::tuple<double, std::string_view, int64_t>> changes;  // of bytes
    for (size_t i = 0; i < spans.size(); ++i) {
      for (const SpanOutput& output : spans[i]->outputs) AddTensor(*spans[i], output, places[i], freed[i]);
      if (spans[i]->bytes == 0) continue;
      changes.emplace_back(places[i].end_us, spans[i]->device, static_cast<int64_t>(spans[i]->bytes));
      changes.emplace_back(freed[i], spans[i]->device, -static_cast<int64_t>(spans[i]->bytes));
    }
    std::ranges::stable_sort(changes, {}, [](const auto& change) { return std::get<0>(change); });
    std::map<std::string_view, int64_t> held;
    for (const auto& [at_us, device, bytes] : changes) {
      held[device] += bytes;
      Event(fmt::format(R"({{"ph": "C", "cat": "memory", "name": {}, "pid": {}, "tid": 0, "ts": {:.3f}, )"
                        R"("args": {{"bytes": {}}}}})",
                        Quoted(device.empty() ? kHost : device), kAllocators, at_us, held[device]));
    }
  }

  void AddFlow(std::string_view node, const Place& from, const Place& to) {
    const int id = next_id_++;
    const auto add = [&](char phase, const Place& place, double at_us) {
      Event(
          fmt::format(R"({{"ph": "{}", "cat": "dataflow", "name": {}, "id": {}, "pid": {}, "tid": {}, "ts": {:.3f}}})",
                      phase, Quoted(node), id, place.process, place.row, at_us));
    };
    add('s', from, from.end_us);
    add('t', to, to.start_us);
  }

  void AddTensor(const Span& span, const SpanOutput& output, const Place& place, double freed_us) {
    const int id = next_id_++;
    const auto head = [&](char phase, double at_us) {
      return fmt::format(R"({{"ph": "{}", "cat": "tensor", "name": {}, "id": {}, "pid": {}, "tid": {}, "ts": {:.3f})",
                         phase, Quoted(fmt::format("{}:{}", span.node, output.slot)), id, place.process + 1, place.row,
                         at_us);
    };
    Event(head('N', place.end_us) + "}");
    Event(head('O', place.end_us) +
          fmt::format(R"(, "args": {{"snapshot": {{"dtype": {}, "shape": [{}], "bytes": {}}}}}}})", output.dtype,
                      fmt::join(output.dims, ", "), output.bytes));
    Event(head('D', freed_us) + "}");
  }

  const int64_t origin_us_;
  std::map<std::string, int> processes_;            // of the work of a device
  std::map<std::tuple<int, int, int>, Rows> rows_;  // by process, lane and thread
  int next_id_ = 0;                                 // of flows and tensors
  std::string events_;
};

}  // namespace

std::string ChromeTrace(std::span<const StepTrace> steps) {
  Writer writer(steps);
  writer.Add(steps);
  return std::move(writer).Take();
}

}  // namespace weir::trace
