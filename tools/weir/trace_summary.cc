// `weir profile summary`: where the time of traced runs went.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/tensor/dtype.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 30;
constexpr std::string_view kComputeSuffix = " Compute";

/// Spans of one key together.
struct Line {
  std::string op, device, node;
  std::set<std::string> kernels, dtypes, fused_from;
  int64_t calls = 0;
  double us = 0, most_us = 0;
  int64_t bytes = 0;  // of all outputs
};

struct TraceRead {
  std::map<std::string, Line> lines;  // by key
  std::set<int64_t> steps;
  double us = 0;  // of all spans
};

std::string TextIn(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
double NumberIn(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

Status ReadTrace(const std::string& path, Json* read) {
  WEIR_ASSIGN(const std::string text, io::ReadFile(path, kMaxTraceBytes));
  *read = Json::parse(text, nullptr, false);
  const Json& trace = *read;
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array()) {
    return InvalidArgument("'{}' is no trace: wanted a JSON object with a list `traceEvents`", path);
  }
  return Status();
}

void AddSpan(const Json& event, const std::string& device, const std::string& by, TraceRead& read) {
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return;
  const std::string op = TextIn(*args, "op"), node = TextIn(*args, "name");
  const std::string key = by == "op"       ? op
                          : by == "device" ? device
                          : by == "kernel" ? TextIn(*args, "kernel")
                          : by == "node"   ? node + "\n" + op
                                           : op + "\n" + device;
  Line& line = read.lines[key];
  line.op = op;
  line.device = device;
  line.node = node;
  if (const std::string kernel = TextIn(*args, "kernel"); !kernel.empty()) line.kernels.insert(kernel);
  if (const auto dtypes = args->find("dtypes"); dtypes != args->end() && dtypes->is_array()) {
    for (const Json& dtype : *dtypes) {
      if (dtype.is_number_integer()) line.dtypes.emplace(Name(static_cast<DType>(dtype.get<int>())));
    }
  }
  if (const auto fused = args->find("fused_from"); fused != args->end() && fused->is_array()) {
    for (const Json& from : *fused) {
      if (from.is_string()) line.fused_from.insert(from.get<std::string>());
    }
  }
  const double us = NumberIn(event, "dur");
  ++line.calls;
  line.us += us;
  line.most_us = std::max(line.most_us, us);
  line.bytes += static_cast<int64_t>(NumberIn(*args, "output_bytes"));
  read.us += us;
  read.steps.insert(static_cast<int64_t>(NumberIn(*args, "step")));
}

TraceRead Summed(const Json& trace, const std::string& by) {
  TraceRead read;
  std::map<int64_t, std::string> devices;  // by process
  for (const Json& event : trace["traceEvents"]) {
    if (!event.is_object() || TextIn(event, "name") != "process_name" || !event.contains("args")) continue;
    std::string name = TextIn(event["args"], "name");
    if (!name.ends_with(kComputeSuffix)) continue;
    name.resize(name.size() - kComputeSuffix.size());
    devices[static_cast<int64_t>(NumberIn(event, "pid"))] = name;
  }
  for (const Json& event : trace["traceEvents"]) {
    if (!event.is_object() || TextIn(event, "ph") != "X") continue;
    const auto device = devices.find(static_cast<int64_t>(NumberIn(event, "pid")));
    AddSpan(event, device == devices.end() ? std::string() : device->second, by, read);
  }
  return read;
}

Json LineJson(const Line& line, const std::string& by, double share) {
  Json row;
  if (by == "op" || by == "op,device" || by == "node") row["op"] = line.op;
  if (by == "device" || by == "op,device" || by == "node") row["device"] = line.device;
  if (by == "node") row["node"] = line.node;
  row["kernels"] = line.kernels;
  if (by != "device" && by != "kernel") row["dtypes"] = line.dtypes;
  if (by == "node") row["fused_from"] = line.fused_from;
  row["calls"] = line.calls;
  row["total_us"] = line.us;
  row["mean_us"] = line.us / static_cast<double>(line.calls);
  row["max_us"] = line.most_us;
  row["share"] = share;
  row["output_bytes"] = line.bytes;
  return row;
}

std::string KeyText(const Line& line, const std::string& by) {
  if (by == "op") return line.op;
  if (by == "device") return line.device;
  if (by == "kernel") return line.kernels.empty() ? "none" : *line.kernels.begin();
  return by == "node" ? fmt::format("{} ({})", line.node, line.op) : fmt::format("{} on {}", line.op, line.device);
}

}  // namespace

Status SummarizeProfile(const ProfileOptions& options, const Console& console, Json& report) {
  Json trace;
  WEIR_TRY(ReadTrace(options.files.front(), &trace));
  return SummarizeTrace(trace, options.by, "'" + options.files.front() + "'", console, report);
}

Status SummarizeTrace(const Json& trace, const std::string& by, const std::string& what, const Console& console,
                      Json& report) {
  const TraceRead read = Summed(trace, by);
  if (read.lines.empty()) return InvalidArgument("{} has no spans of ops", what);
  std::vector<const Line*> lines;
  for (const auto& [key, line] : read.lines) lines.push_back(&line);
  std::ranges::stable_sort(lines, [](const Line* a, const Line* b) { return a->us > b->us; });
  Table table({by, "calls", "total us", "mean us", "max us", "%", "output", "kernels", "fused from"});
  report["by"] = by;
  report["steps"] = read.steps.size();
  report["total_us"] = read.us;
  report["lines"] = Json::array();
  for (const Line* line : lines) {
    const double share = read.us > 0 ? line->us / read.us : 0;
    report["lines"].push_back(LineJson(*line, by, share));
    table.Add({KeyText(*line, by), std::to_string(line->calls), fmt::format("{:.1f}", line->us),
               fmt::format("{:.1f}", line->us / static_cast<double>(line->calls)), fmt::format("{:.1f}", line->most_us),
               fmt::format("{:.1f}", 100 * share), BytesText(static_cast<double>(line->bytes)),
               fmt::format("{}", fmt::join(line->kernels, ", ")),
               by == "node" ? fmt::format("{}", fmt::join(line->fused_from, ", ")) : ""});
  }
  console.Print(table);
  console.Print(
      fmt::format("{:.1f} us in {} {}", read.us, read.steps.size(), read.steps.size() == 1 ? "step" : "steps"));
  return Status();
}

}  // namespace weir::cli
