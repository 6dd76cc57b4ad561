#include "core/cluster/step_traces.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "core/base/errors.h"
#include "core/proto/parse.h"
#include "weir/proto/wire.pb.h"

namespace weir::cluster {
namespace {

constexpr int kRoundTrips = 5;
constexpr std::chrono::seconds kClockAge{10};
constexpr int64_t kNanosPerMicro = 1000;
/// Of clocks of other processes, some time in 2067: differences of such times fit in nanoseconds.
constexpr int64_t kMostMicros = std::numeric_limits<int64_t>::max() / kNanosPerMicro / 3;
/// Of times since the start of a step: over a month.
constexpr int64_t kMostNanos = kMostMicros;

void SpanToWire(const trace::Span& span, wire::Span& to) {
  to.set_node(span.node);
  to.set_op(span.op);
  to.set_device(span.device);
  to.set_start_ns(span.start_ns);
  to.set_end_ns(span.end_ns);
  to.set_thread(span.thread);
  to.set_bytes(span.bytes);
  to.set_kernel(span.kernel);
  to.set_layout(span.layout);
  for (const trace::SpanOutput& output : span.outputs) {
    wire::SpanOutput& one = *to.add_output();
    one.set_slot(output.slot);
    one.set_dtype(output.dtype);
    for (const int64_t dim : output.dims) one.add_dim(dim);
    one.set_bytes(output.bytes);
    one.set_memory(output.memory);
  }
  for (const std::string& input : span.inputs) to.add_input(input);
  for (const std::string& node : span.fused_from) to.add_fused_from(node);
}

trace::Span SpanFromWire(const wire::Span& from) {
  trace::Span span{from.node(),   from.op(),     from.device(), from.start_ns(),
                   from.end_ns(), from.thread(), from.bytes(),  {}};
  span.kernel = from.kernel();
  span.layout = from.layout();
  for (const wire::SpanOutput& one : from.output()) {
    span.outputs.push_back(
        {one.slot(), one.dtype(), {one.dim().begin(), one.dim().end()}, one.bytes(), one.memory()});
  }
  span.inputs.assign(from.input().begin(), from.input().end());
  span.fused_from.assign(from.fused_from().begin(), from.fused_from().end());
  return span;
}

}  // namespace

int64_t WallClockMicros() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
}

Result<std::string> EncodeTrace(const trace::StepTrace& trace) {
  wire::StepTrace to;
  to.set_start_us(trace.start_us);
  to.set_total_ns(trace.total_ns);
  for (const trace::Span& span : trace.spans) SpanToWire(span, *to.add_span());
  return proto::Serialize(to, "a trace");
}

Result<trace::StepTrace> DecodeTrace(std::string_view bytes) {
  wire::StepTrace from;
  WEIR_TRY(proto::ParseBinary(bytes, "a trace", from));
  trace::StepTrace trace;
  trace.start_us = from.start_us();
  trace.total_ns = from.total_ns();
  if (trace.start_us < 0 || trace.start_us > kMostMicros || trace.total_ns < 0 || trace.total_ns > kMostNanos) {
    return InvalidArgument("a trace begins at {} us and takes {} ns", trace.start_us, trace.total_ns);
  }
  for (const wire::Span& span : from.span()) {
    if (span.start_ns() < 0 || span.end_ns() < span.start_ns() || span.end_ns() > kMostNanos) {
      return InvalidArgument("node '{}' of a trace runs from {} ns to {} ns", span.node(), span.start_ns(),
                             span.end_ns());
    }
    trace.spans.push_back(SpanFromWire(span));
  }
  return trace;
}

Result<int64_t> TaskClocks::Ahead(Worker& worker, Clock::time_point deadline) {
  if (worker.own_devices() != nullptr) return int64_t{0};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = measured_.find(worker.task());
    if (found != measured_.end() && Clock::now() - found->second.at < kClockAge) return found->second.ahead_us;
  }
  Measured best;
  Clock::duration fastest = Clock::duration::max();
  for (int i = 0; i < kRoundTrips; ++i) {
    const int64_t before_us = WallClockMicros();
    const Clock::time_point begin = Clock::now();
    WEIR_ASSIGN(const WorkerStatus status, worker.GetStatus(deadline));
    const Clock::duration took = Clock::now() - begin;
    if (status.clock_us < 0 || status.clock_us > kMostMicros) {
      return InvalidArgument("the clock of {} shows {} us", worker.task().ToString(), status.clock_us);
    }
    if (took >= fastest) continue;
    fastest = took;
    const auto half_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count() / 2;
    best = {status.clock_us - before_us - half_us, Clock::now()};
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return (measured_[worker.task()] = best).ahead_us;
}

trace::StepTrace MergeTraces(std::vector<TaskTrace> parts, int64_t step_id) {
  trace::StepTrace merged;
  merged.step_id = step_id;
  // A part without ops has no start.
  const auto started = [](const TaskTrace& part) { return part.trace.ok() && part.trace->start_us > 0; };
  int64_t first_us = std::numeric_limits<int64_t>::max();
  for (const TaskTrace& part : parts) {
    if (started(part)) first_us = std::min(first_us, part.trace->start_us - part.ahead_us);
  }
  if (first_us == std::numeric_limits<int64_t>::max()) first_us = WallClockMicros();
  merged.start_us = first_us;
  for (TaskTrace& part : parts) {
    const std::string cpu = part.task.ToString() + "/device:CPU:0";
    if (!part.trace.ok()) {
      trace::Span missing{"trace of " + part.task.ToString() + " is missing: " + part.trace.status().ToString(),
                          "MissingTrace", cpu, 0, 0, 0, 0, {}};
      merged.spans.push_back(std::move(missing));
      continue;
    }
    if (!started(part)) continue;
    const int64_t shift_ns = (part.trace->start_us - part.ahead_us - first_us) * kNanosPerMicro;
    merged.total_ns = std::max(merged.total_ns, part.trace->total_ns + shift_ns);
    for (trace::Span& span : part.trace->spans) {
      span.start_ns += shift_ns;
      span.end_ns += shift_ns;
      if (span.device.empty()) span.device = cpu;
      merged.spans.push_back(std::move(span));
    }
  }
  std::ranges::stable_sort(merged.spans, {}, &trace::Span::end_ns);
  return merged;
}

}  // namespace weir::cluster
