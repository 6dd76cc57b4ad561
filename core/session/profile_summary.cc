#include "core/session/profile_summary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/errors.h"
#include "core/tensor/dtype.h"

namespace weir::session {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kComputeSuffix = " Compute";
constexpr std::pair<SummaryBy, std::string_view> kKeys[] = {{SummaryBy::kOp, "op"},
                                                            {SummaryBy::kDevice, "device"},
                                                            {SummaryBy::kOpAndDevice, "op,device"},
                                                            {SummaryBy::kKernel, "kernel"},
                                                            {SummaryBy::kNode, "node"}};

std::string KeyOf(const trace::Span& span, SummaryBy by) {
  switch (by) {
    case SummaryBy::kOp:
      return span.op;
    case SummaryBy::kDevice:
      return span.device;
    case SummaryBy::kOpAndDevice:
      return span.op + "\n" + span.device;
    case SummaryBy::kKernel:
      return span.kernel;
    case SummaryBy::kNode:
      return span.node + "\n" + span.op;
  }
  return {};
}

/// Adds up spans by their keys.
class Adder {
 public:
  explicit Adder(SummaryBy by) : by_(by) {}

  /// `us`: the time of the span in microseconds.
  void Add(const trace::Span& span, double us, int64_t step) {
    SummaryLine& line = lines_[KeyOf(span, by_)];
    line.op = span.op;
    line.device = span.device;
    line.node = span.node;
    if (!span.kernel.empty()) line.kernels.insert(span.kernel);
    if (!span.layout.empty()) line.layouts.insert(span.layout);
    for (const trace::SpanOutput& output : span.outputs) {
      line.dtypes.emplace(weir::Name(static_cast<DType>(output.dtype)));
    }
    line.fused_from.insert(span.fused_from.begin(), span.fused_from.end());
    ++line.calls;
    line.total_us += us;
    line.max_us = std::max(line.max_us, us);
    line.output_bytes += span.bytes;
    total_us_ += us;
    steps_.insert(step);
  }

  ProfileSummary Finish() && {
    ProfileSummary summary{by_, static_cast<int64_t>(steps_.size()), total_us_, {}};
    for (auto& [key, line] : lines_) {
      line.share = total_us_ > 0 ? line.total_us / total_us_ : 0;
      summary.lines.push_back(std::move(line));
    }
    std::ranges::stable_sort(summary.lines,
                             [](const SummaryLine& a, const SummaryLine& b) { return a.total_us > b.total_us; });
    return summary;
  }

 private:
  const SummaryBy by_;
  std::map<std::string, SummaryLine> lines_;  // by key
  std::set<int64_t> steps_;
  double total_us_ = 0;
};

std::string TextIn(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
double NumberIn(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::vector<std::string> TextsIn(const Json& object, const char* field) {
  std::vector<std::string> texts;
  const auto found = object.find(field);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& text : *found) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

/// The devices of a trace by the numbers of their processes.
std::map<int64_t, std::string> DevicesOf(const Json& events) {
  std::map<int64_t, std::string> devices;
  for (const Json& event : events) {
    if (!event.is_object() || TextIn(event, "name") != "process_name" || !event.contains("args")) continue;
    std::string name = TextIn(event["args"], "name");
    if (!name.ends_with(kComputeSuffix)) continue;
    name.resize(name.size() - kComputeSuffix.size());
    devices[static_cast<int64_t>(NumberIn(event, "pid"))] = name;
  }
  return devices;
}

/// A span as far as a line needs it.
trace::Span SpanFrom(const Json& args, const std::string& device) {
  trace::Span span{TextIn(args, "name"), TextIn(args, "op"), device, 0, 0, 0, 0, {}};
  span.kernel = TextIn(args, "kernel");
  span.layout = TextIn(args, "layout");
  span.fused_from = TextsIn(args, "fused_from");
  const double bytes = NumberIn(args, "output_bytes");
  if (bytes > 0 && bytes < 1e18) span.bytes = static_cast<uint64_t>(bytes);
  if (const auto dtypes = args.find("dtypes"); dtypes != args.end() && dtypes->is_array()) {
    for (const Json& dtype : *dtypes) {
      if (dtype.is_number_integer()) span.outputs.push_back({0, dtype.get<int>(), {}, 0});
    }
  }
  return span;
}

}  // namespace

Result<SummaryBy> SummaryByFrom(std::string_view text) {
  for (const auto& [by, name] : kKeys) {
    if (name == text) return by;
  }
  return InvalidArgument("a profile is summed by op, device, op,device, kernel or node, not by '{}'", text);
}

std::string_view Name(SummaryBy by) {
  for (const auto& [key, name] : kKeys) {
    if (key == by) return name;
  }
  return "";
}

ProfileSummary Summarize(std::span<const trace::StepTrace> steps, SummaryBy by) {
  Adder adder(by);
  for (const trace::StepTrace& step : steps) {
    for (const trace::Span& span : step.spans) {
      adder.Add(span, static_cast<double>(span.end_ns - span.start_ns) / 1e3, step.step_id);
    }
  }
  return std::move(adder).Finish();
}

Result<ProfileSummary> SummarizeChromeTrace(std::string_view json, SummaryBy by, std::string_view what) {
  const Json trace = Json::parse(json, nullptr, false);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array()) {
    return InvalidArgument("{} is no trace: wanted a JSON object with a list `traceEvents`", what);
  }
  const Json& events = trace["traceEvents"];
  const std::map<int64_t, std::string> devices = DevicesOf(events);
  Adder adder(by);
  for (const Json& event : events) {
    if (!event.is_object() || TextIn(event, "ph") != "X") continue;
    const auto args = event.find("args");
    if (args == event.end() || !args->is_object()) continue;
    const auto device = devices.find(static_cast<int64_t>(NumberIn(event, "pid")));
    adder.Add(SpanFrom(*args, device == devices.end() ? std::string() : device->second), NumberIn(event, "dur"),
              static_cast<int64_t>(NumberIn(*args, "step")));
  }
  return std::move(adder).Finish();
}

std::string ToJson(const ProfileSummary& summary) {
  const SummaryBy by = summary.by;
  Json report = {{"by", Name(by)}, {"steps", summary.steps}, {"total_us", summary.total_us}, {"lines", Json::array()}};
  for (const SummaryLine& line : summary.lines) {
    Json row = {{"kernels", line.kernels},
                {"calls", line.calls},
                {"total_us", line.total_us},
                {"mean_us", line.total_us / static_cast<double>(line.calls)},
                {"max_us", line.max_us},
                {"share", line.share},
                {"output_bytes", line.output_bytes}};
    const bool of_op = by == SummaryBy::kOp || by == SummaryBy::kOpAndDevice || by == SummaryBy::kNode;
    if (of_op) row["op"] = line.op;
    if (of_op) row["dtypes"] = line.dtypes;
    if (of_op) row["layouts"] = line.layouts;
    if (of_op ? by != SummaryBy::kOp : by == SummaryBy::kDevice) row["device"] = line.device;
    if (by == SummaryBy::kNode) row["node"] = line.node;
    if (by == SummaryBy::kNode) row["fused_from"] = line.fused_from;
    report["lines"].push_back(std::move(row));
  }
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::session
