#include "core/trace/chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace weir::trace {
namespace {

constexpr std::string_view kHost = "host";
constexpr int kAllocators = 1;        // the process of all memory counters
constexpr int kRowStride = 1000;      // between the numbers of the rows of one thread
constexpr int kLaneStride = 1000000;  // between those of the rows of runs beside each other
constexpr int64_t kNanosPerMicro = 1000;

/// The bytes of the UTF-8 character at the front of `text`; 0 if there is none.
size_t CharacterAt(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t size = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (size == 0 || size > text.size() || byte(0) > 0xf4) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer forms than needed, surrogates, and numbers beyond Unicode.
  const bool wrong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
                     (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : size;
}

/// A JSON string; bytes that are no UTF-8 become U+FFFD.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const char c = text[0];
    const size_t size = CharacterAt(text);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (size == 1 && static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += size == 0 ? "\\ufffd" : text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return quoted + '"';
}

std::string MemoryOf(const Span& span, const SpanOutput& output) {
  if (!output.memory.empty()) return output.memory;
  return span.device.empty() ? std::string(kHost) : span.device;
}

}  // namespace

std::string ChromeWriter::Add(const StepTrace& step) {
  std::vector<const Span*> spans;
  for (const Span& span : step.spans) spans.push_back(&span);
  std::ranges::stable_sort(spans, {}, [](const Span* span) { return std::pair(span->start_ns, -span->end_ns); });
  const int lane = LaneOf(step);
  std::vector<Place> places;
  for (const Span* span : spans) places.push_back(AddWork(step, *span, lane));
  AddValues(spans, places);
  return std::exchange(events_, {});
}

std::string ChromeWriter::Memory(int64_t until_us) {
  const auto until = static_cast<double>(until_us - origin_us_);
  std::ranges::stable_sort(changes_, {}, &Change::at_us);
  const auto end = std::ranges::upper_bound(changes_, until, {}, &Change::at_us);
  for (auto change = changes_.begin(); change != end; ++change) {
    int64_t& held = held_[change->memory];
    held += change->bytes;
    Event(fmt::format(R"({{"ph": "C", "cat": "memory", "name": {}, "pid": {}, "tid": 0, "ts": {:.3f}, )"
                      R"("args": {{"bytes": {}}}}})",
                      Quoted(change->memory), kAllocators, change->at_us, held));
  }
  changes_.erase(changes_.begin(), end);
  return std::exchange(events_, {});
}

void ChromeWriter::Event(std::string_view event) {
  events_ += any_ ? ",\n" : "\n";
  events_ += event;
  any_ = true;
}

void ChromeWriter::NameProcess(int process, const std::string& name) {
  Event(fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": {}}}}})", process,
                    Quoted(name)));
}

void ChromeWriter::NameRow(int process, int thread, int row, int lane) {
  std::string name = thread == 0 ? "caller" : fmt::format("thread {}", thread);
  if (lane > 0) name += fmt::format(" of run lane {}", lane);
  if (row > 0) name += fmt::format(", beside it {}", row);
  Event(fmt::format(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})", process,
                    thread + kRowStride * row + kLaneStride * lane, Quoted(name)));
}

int ChromeWriter::ProcessOf(const std::string& device) {
  if (processes_.empty()) NameProcess(kAllocators, "Allocators");
  const int next = kAllocators + 1 + 2 * static_cast<int>(processes_.size());
  const auto [found, added] = processes_.try_emplace(device, next);
  if (added) {
    const std::string name(device.empty() ? kHost : device);
    NameProcess(next, name + " Compute");
    NameProcess(next + 1, name + " Tensors");
  }
  return found->second;
}

int ChromeWriter::LaneOf(const StepTrace& step) {
  // Starts are whole microseconds: a step may seem to begin one before the end of its predecessor.
  const auto free = std::ranges::find_if(lane_ends_us_, [&](int64_t end_us) { return end_us <= step.start_us + 1; });
  const auto lane = static_cast<int>(free - lane_ends_us_.begin());
  const int64_t end_us = step.start_us + step.total_ns / kNanosPerMicro;
  if (free == lane_ends_us_.end()) {
    lane_ends_us_.push_back(end_us);
  } else {
    *free = end_us;
  }
  return lane;
}

/// The first row on which a span lies beside the others or within one of them: viewers hide spans that overlap in part.
/// The spans of a step come in order of their starts, of equal ones the longest first.
int ChromeWriter::RowOf(double start, double end, std::vector<Row>& rows) {
  for (size_t i = 0;; ++i) {
    if (i == rows.size()) rows.push_back({{}, start});
    Row& row = rows[i];
    if (start < row.last_start) continue;
    std::vector<double>& open = row.open_ends;
    while (!open.empty() && open.back() <= start) open.pop_back();
    if (!open.empty() && open.back() < end) continue;
    open.push_back(end);
    row.last_start = start;
    return static_cast<int>(i);
  }
}

ChromeWriter::Place ChromeWriter::AddWork(const StepTrace& step, const Span& span, int lane) {
  const auto begin_us = static_cast<double>(step.start_us - origin_us_);
  Place place;
  place.process = ProcessOf(span.device);
  place.start_us = begin_us + static_cast<double>(span.start_ns) / 1e3;
  place.end_us = begin_us + static_cast<double>(span.end_ns) / 1e3;
  std::vector<Row>& rows = rows_[{place.process, lane, span.thread}];
  const size_t before = rows.size();
  const int row = RowOf(place.start_us, place.end_us, rows);
  if (rows.size() > before) NameRow(place.process, span.thread, row, lane);
  place.row = span.thread + kRowStride * row + kLaneStride * lane;
  std::string details;
  std::vector<int> dtypes;
  for (const SpanOutput& output : span.outputs) dtypes.push_back(output.dtype);
  if (!dtypes.empty()) details += fmt::format(R"(, "dtypes": [{}])", fmt::join(dtypes, ", "));
  if (!span.kernel.empty()) details += fmt::format(R"(, "kernel": {})", Quoted(span.kernel));
  if (!span.fused_from.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : span.fused_from) names.push_back(Quoted(name));
    details += fmt::format(R"(, "fused_from": [{}])", fmt::join(names, ", "));
  }
  Event(fmt::format(R"({{"ph": "X", "cat": "op", "name": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                    R"("args": {{"name": {}, "op": {}, "step": {}, "output_bytes": {}{}}}}})",
                    Quoted(span.op), place.process, place.row, place.start_us,
                    static_cast<double>(span.end_ns - span.start_ns) / 1e3, Quoted(span.node), Quoted(span.op),
                    step.step_id, span.bytes, details));
  return place;
}

/// Flows from each span to those that read its values; its values until the last of these has ended; the changes of the
/// bytes in each memory. `spans` are in order of their starts.
void ChromeWriter::AddValues(const std::vector<const Span*>& spans, const std::vector<Place>& places) {
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
  for (size_t i = 0; i < spans.size(); ++i) {
    for (const SpanOutput& output : spans[i]->outputs) {
      AddTensor(*spans[i], output, places[i], freed[i]);
      if (output.bytes == 0) continue;
      const std::string memory = MemoryOf(*spans[i], output);
      changes_.push_back({places[i].end_us, memory, static_cast<int64_t>(output.bytes)});
      changes_.push_back({freed[i], memory, -static_cast<int64_t>(output.bytes)});
    }
  }
}

void ChromeWriter::AddFlow(std::string_view node, const Place& from, const Place& to) {
  const int id = next_id_++;
  const auto add = [&](char phase, const Place& place, double at_us) {
    Event(fmt::format(R"({{"ph": "{}", "cat": "dataflow", "name": {}, "id": {}, "pid": {}, "tid": {}, "ts": {:.3f}}})",
                      phase, Quoted(node), id, place.process, place.row, at_us));
  };
  add('s', from, from.end_us);
  add('t', to, to.start_us);
}

void ChromeWriter::AddTensor(const Span& span, const SpanOutput& output, const Place& place, double freed_us) {
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

std::string ChromeTrace(std::span<const StepTrace> steps) {
  std::vector<const StepTrace*> order;
  for (const StepTrace& step : steps) order.push_back(&step);
  std::ranges::stable_sort(order, {}, &StepTrace::start_us);
  ChromeWriter writer(steps.empty() ? 0 : order[0]->start_us);
  std::string text(ChromeWriter::kBegin);
  for (const StepTrace* step : order) text += writer.Add(*step);
  text += writer.Memory(std::numeric_limits<int64_t>::max());
  return text.append(ChromeWriter::kEnd);
}

}  // namespace weir::trace
