#include "core/trace/chrome.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace weir::trace {
namespace {

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

}  // namespace

std::string ChromeTrace(std::span<const StepTrace> steps) {
  std::map<std::string, int> processes;
  std::set<std::pair<int, int>> threads;
  for (const StepTrace& step : steps) {
    for (const Span& span : step.spans) processes.try_emplace(span.device, 0);
  }
  int next = 1;
  for (auto& [device, id] : processes) id = next++;
  std::string events;
  const auto add = [&](std::string event) { events += (events.empty() ? "\n" : ",\n") + std::move(event); };
  for (const auto& [device, id] : processes) {
    add(fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": {}}}}})", id,
                    Quoted(device.empty() ? "host" : device)));
  }
  const int64_t origin_us = steps.empty() ? 0 : steps[0].start_us;
  for (const StepTrace& step : steps) {
    const double begin_us = static_cast<double>(step.start_us - origin_us);
    for (const Span& span : step.spans) {
      const int process = processes.at(span.device);
      if (threads.emplace(process, span.thread).second) {
        add(fmt::format(R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
                        process, span.thread,
                        Quoted(span.thread == 0 ? "caller" : fmt::format("thread {}", span.thread))));
      }
      add(fmt::format(R"({{"ph": "X", "cat": "op", "name": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                      R"("args": {{"name": {}, "op": {}, "step": {}, "output_bytes": {}}}}})",
                      Quoted(span.op), process, span.thread, begin_us + static_cast<double>(span.start_ns) / 1e3,
                      static_cast<double>(span.end_ns - span.start_ns) / 1e3, Quoted(span.node), Quoted(span.op),
                      step.step_id, span.bytes));
    }
  }
  return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [" + events + "\n]}\n";
}

}  // namespace weir::trace
