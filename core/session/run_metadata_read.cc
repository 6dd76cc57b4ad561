#include <algorithm>
#include <limits>

#include "core/proto/parse.h"
#include "core/session/run_metadata.h"
#include "weir/proto/run_metadata.pb.h"

namespace weir::session {
namespace {

/// The op of a label "name = Op(in1, in2)"; empty for another text.
std::string OpOfLabel(const std::string& label) {
  const size_t begin = label.find(" = ");
  if (begin == std::string::npos) return {};
  const size_t end = label.find('(', begin);
  return end == std::string::npos ? std::string() : label.substr(begin + 3, end - begin - 3);
}

constexpr int64_t kMicroInNanos = 1000;
constexpr int64_t kMostNanos = std::numeric_limits<int64_t>::max() / 4;

/// A time of the message in ns, within bounds that sums cannot leave.
int64_t Nanos(int64_t nanos, int64_t micros) {
  if (nanos != 0) return std::clamp<int64_t>(nanos, 0, kMostNanos);
  return std::clamp<int64_t>(micros, 0, kMostNanos / kMicroInNanos) * kMicroInNanos;
}

int64_t StartOf(const tf::NodeExecStats& stats) { return Nanos(stats.all_start_nanos(), stats.all_start_micros()); }

trace::Span SpanFrom(const std::string& device, const tf::NodeExecStats& stats, int64_t origin_ns) {
  trace::Span span;
  span.node = stats.node_name();
  span.op = OpOfLabel(stats.timeline_label());
  span.device = device;
  span.start_ns = StartOf(stats) - origin_ns;
  span.end_ns = span.start_ns + Nanos(stats.all_end_rel_nanos(), stats.all_end_rel_micros());
  span.thread = static_cast<int>(stats.thread_id());
  for (const tf::NodeOutput& output : stats.output()) {
    trace::SpanOutput made;
    made.slot = output.slot();
    made.dtype = output.tensor_description().dtype();
    for (const auto& dim : output.tensor_description().shape().dim()) made.dims.push_back(dim.size());
    made.bytes = static_cast<uint64_t>(
        std::max<int64_t>(output.tensor_description().allocation_description().requested_bytes(), 0));
    span.bytes += made.bytes;
    span.outputs.push_back(std::move(made));
  }
  return span;
}

}  // namespace

Status ReadRunMetadata(std::string_view bytes, RunReport& report) {
  tf::RunMetadata message;
  WEIR_TRY(proto::ParseBinary(bytes, "RunMetadata", message));
  int64_t origin_ns = std::numeric_limits<int64_t>::max();
  for (const auto& device : message.step_stats().dev_stats()) {
    for (const auto& stats : device.node_stats()) origin_ns = std::min(origin_ns, StartOf(stats));
  }
  report.trace = {};
  report.trace.start_us = origin_ns == std::numeric_limits<int64_t>::max() ? 0 : origin_ns / kMicroInNanos;
  for (const auto& device : message.step_stats().dev_stats()) {
    for (const auto& stats : device.node_stats()) {
      report.trace.spans.push_back(SpanFrom(device.device(), stats, report.trace.start_us * kMicroInNanos));
      report.trace.total_ns = std::max(report.trace.total_ns, report.trace.spans.back().end_ns);
      ++report.placement[device.device()];
    }
  }
  std::ranges::stable_sort(report.trace.spans, {}, &trace::Span::end_ns);
  for (const auto& graph : message.partition_graphs()) {
    WEIR_ASSIGN(std::string part, proto::Serialize(graph, "GraphDef"));
    report.partition_graphs.push_back(std::move(part));
  }
  return Status();
}

}  // namespace weir::session
