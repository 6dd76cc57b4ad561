#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/trace/rows_internal.h"
#include "core/trace/writer.h"

namespace weir::trace {
namespace {

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

class ChromeWriter final : public TraceWriter {
 public:
  explicit ChromeWriter(int64_t origin_us) : origin_us_(origin_us) {}

  std::string Begin() const override { return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["; }
  std::string Add(const StepTrace& step) override;
  std::string Memory(int64_t until_us) override;
  std::string End(const Summary& summary) const override {
    return fmt::format("\n], \"weir\": {{\"runs\": {}, \"written\": {}, \"dropped\": {}}}}}\n", summary.runs,
                       summary.written, summary.dropped);
  }

 private:
  /// Where an event of a span is drawn.
  struct Place {
    int process = 0;  // of the device's work; its tensors are in the next one
    int row = 0;
    int64_t start_ns = 0, end_ns = 0;
  };

  void Event(std::string_view event);
  void NameProcess(int process, const std::string& name);
  int ProcessOf(const std::string& device);
  Place AddWork(const StepTrace& step, const Span& span, int lane);
  void AddValues(const std::vector<const Span*>& spans, const std::vector<Place>& places);
  void AddFlow(std::string_view node, const Place& from, const Place& to);
  void AddTensor(const Span& span, const SpanOutput& output, const Place& place, int64_t freed_ns);

  const int64_t origin_us_;
  std::map<std::string, int> processes_;  // of the work of a device
  TraceRows rows_;
  HeldBytes held_;
  int next_id_ = 0;     // of flows and tensors
  bool any_ = false;    // an event was written
  std::string events_;  // of the call that is under way
};

/// Microseconds, with three digits.
double Micros(int64_t ns) { return static_cast<double>(ns) / 1e3; }

std::string ChromeWriter::Add(const StepTrace& step) {
  const std::vector<const Span*> spans = InOrder(step);
  const int lane = rows_.LaneOf(step);
  std::vector<Place> places;
  for (const Span* span : spans) places.push_back(AddWork(step, *span, lane));
  AddValues(spans, places);
  return std::exchange(events_, {});
}

std::string ChromeWriter::Memory(int64_t until_us) {
  const int64_t most_us = INT64_MAX / kNanosPerMicro - std::abs(origin_us_);
  for (const HeldBytes::Sample& sample : held_.Take((std::min(until_us, most_us) - origin_us_) * kNanosPerMicro)) {
    Event(fmt::format(R"({{"ph": "C", "cat": "memory", "name": {}, "pid": {}, "tid": 0, "ts": {:.3f}, )"
                      R"("args": {{"bytes": {}}}}})",
                      Quoted(sample.memory), kAllocators, Micros(sample.at_ns), sample.bytes));
  }
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

int ChromeWriter::ProcessOf(const std::string& device) {
  if (processes_.empty()) NameProcess(kAllocators, "Allocators");
  const int next = kAllocators + 1 + 2 * static_cast<int>(processes_.size());
  const auto [found, added] = processes_.try_emplace(device, next);
  if (added) {
    NameProcess(next, DeviceText(device) + " Compute");
    NameProcess(next + 1, DeviceText(device) + " Tensors");
  }
  return found->second;
}

ChromeWriter::Place ChromeWriter::AddWork(const StepTrace& step, const Span& span, int lane) {
  const int64_t begin_ns = (step.start_us - origin_us_) * kNanosPerMicro;
  Place place;
  place.process = ProcessOf(span.device);
  place.start_ns = begin_ns + span.start_ns;
  place.end_ns = begin_ns + span.end_ns;
  const auto [row, added] = rows_.RowOf(place.process, lane, span.thread, place.start_ns, place.end_ns);
  place.row = span.thread + kRowStride * row + kLaneStride * lane;
  if (added) {
    Event(fmt::format(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
                      place.process, place.row, Quoted(RowName(span.thread, row, lane))));
  }
  std::string details;
  std::vector<int> dtypes;
  for (const SpanOutput& output : span.outputs) dtypes.push_back(output.dtype);
  if (!dtypes.empty()) details += fmt::format(R"(, "dtypes": [{}])", fmt::join(dtypes, ", "));
  if (!span.kernel.empty()) details += fmt::format(R"(, "kernel": {})", Quoted(span.kernel));
  if (!span.layout.empty()) details += fmt::format(R"(, "layout": {})", Quoted(span.layout));
  if (!span.fused_from.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : span.fused_from) names.push_back(Quoted(name));
    details += fmt::format(R"(, "fused_from": [{}])", fmt::join(names, ", "));
  }
  Event(fmt::format(R"({{"ph": "X", "cat": "op", "name": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                    R"("args": {{"name": {}, "op": {}, "step": {}, "output_bytes": {}{}}}}})",
                    Quoted(span.op), place.process, place.row, Micros(place.start_ns),
                    Micros(span.end_ns - span.start_ns), Quoted(span.node), Quoted(span.op), step.step_id, span.bytes,
                    details));
  return place;
}

/// Flows from each span to those that read its values; its values until the last of these has ended; the changes of the
/// bytes in each memory. `spans` are in order of their starts.
void ChromeWriter::AddValues(const std::vector<const Span*>& spans, const std::vector<Place>& places) {
  std::vector<int64_t> freed_ns;
  for (const Place& place : places) freed_ns.push_back(place.end_ns);
  for (const auto& [from, to] : FlowsOf(spans)) {
    freed_ns[from] = std::max(freed_ns[from], places[to].end_ns);
    AddFlow(spans[from]->node, places[from], places[to]);
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    for (const SpanOutput& output : spans[i]->outputs) {
      AddTensor(*spans[i], output, places[i], freed_ns[i]);
      held_.Add(*spans[i], output, places[i].end_ns, freed_ns[i]);
    }
  }
}

void ChromeWriter::AddFlow(std::string_view node, const Place& from, const Place& to) {
  const int id = next_id_++;
  const auto add = [&](char phase, const Place& place, int64_t at_ns) {
    Event(fmt::format(R"({{"ph": "{}", "cat": "dataflow", "name": {}, "id": {}, "pid": {}, "tid": {}, "ts": {:.3f}}})",
                      phase, Quoted(node), id, place.process, place.row, Micros(at_ns)));
  };
  add('s', from, from.end_ns);
  add('t', to, to.start_ns);
}

void ChromeWriter::AddTensor(const Span& span, const SpanOutput& output, const Place& place, int64_t freed_ns) {
  const int id = next_id_++;
  const auto head = [&](char phase, int64_t at_ns) {
    return fmt::format(R"({{"ph": "{}", "cat": "tensor", "name": {}, "id": {}, "pid": {}, "tid": {}, "ts": {:.3f})",
                       phase, Quoted(fmt::format("{}:{}", span.node, output.slot)), id, place.process + 1, place.row,
                       Micros(at_ns));
  };
  Event(head('N', place.end_ns) + "}");
  Event(head('O', place.end_ns) +
        fmt::format(R"(, "args": {{"snapshot": {{"dtype": {}, "shape": [{}], "bytes": {}}}}}}})", output.dtype,
                    fmt::join(output.dims, ", "), output.bytes));
  Event(head('D', freed_ns) + "}");
}

}  // namespace

std::unique_ptr<TraceWriter> MakeChromeWriter(int64_t origin_us) { return std::make_unique<ChromeWriter>(origin_us); }

std::string ChromeTrace(std::span<const StepTrace> steps) {
  std::vector<const StepTrace*> order;
  for (const StepTrace& step : steps) order.push_back(&step);
  std::ranges::stable_sort(order, {}, &StepTrace::start_us);
  ChromeWriter writer(steps.empty() ? 0 : order[0]->start_us);
  std::string text = writer.Begin();
  for (const StepTrace* step : order) text += writer.Add(*step);
  text += writer.Memory(std::numeric_limits<int64_t>::max());
  const auto count = static_cast<int64_t>(steps.size());
  return text + writer.End({count, count, 0});
}

}  // namespace weir::trace
