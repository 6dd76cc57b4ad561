#include "core/session/run_metadata.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/base/errors.h"
#include "core/device/device_name.h"
#include "core/proto/parse.h"
#include "weir/proto/run_metadata.pb.h"

namespace weir::session {
namespace {

constexpr int64_t kNanosPerMicro = 1000;
constexpr char kHost[] = "/job:localhost/replica:0/task:0/device:CPU:0";

std::string Label(const graph::Definition& graph, const trace::Span& span) {
  const graph::Node* node = graph.Find(span.node);
  std::string inputs;
  if (span.op == "fetch") {
    inputs = span.node;
  } else if (node != nullptr) {
    for (const graph::Endpoint& input : node->inputs()) {
      inputs += (inputs.empty() ? "" : ", ") + graph::EndpointName(graph, input);
    }
  }
  return fmt::format("{} = {}({})", span.node, span.op, inputs);
}

void Write(const graph::Definition& graph, const trace::StepTrace& step, const trace::Span& span,
           tf::NodeExecStats& stats) {
  const int64_t start_ns = step.start_us * kNanosPerMicro + span.start_ns;
  const int64_t took_ns = span.end_ns - span.start_ns;
  stats.set_node_name(span.node);
  stats.set_timeline_label(Label(graph, span));
  stats.set_thread_id(static_cast<uint32_t>(span.thread));
  stats.set_all_start_nanos(start_ns);
  stats.set_scheduled_nanos(start_ns);
  stats.set_op_end_rel_nanos(took_ns);
  stats.set_all_end_rel_nanos(took_ns);
  stats.set_all_start_micros(start_ns / kNanosPerMicro);
  stats.set_scheduled_micros(start_ns / kNanosPerMicro);
  stats.set_op_end_rel_micros(took_ns / kNanosPerMicro);
  stats.set_all_end_rel_micros(took_ns / kNanosPerMicro);
  const Result<device::DeviceName> device = device::ParseDeviceName(span.device.empty() ? kHost : span.device);
  const std::string allocator = device.ok() ? device->type.value_or("") : std::string();
  for (const trace::SpanOutput& output : span.outputs) {
    tf::NodeOutput& written = *stats.add_output();
    written.set_slot(output.slot);
    tf::TensorDescription& tensor = *written.mutable_tensor_description();
    tensor.set_dtype(static_cast<tf::DataType>(output.dtype));
    for (const int64_t dim : output.dims) tensor.mutable_shape()->add_dim()->set_size(dim);
    tf::AllocationDescription& allocation = *tensor.mutable_allocation_description();
    allocation.set_requested_bytes(static_cast<int64_t>(output.bytes));
    allocation.set_allocator_name(allocator);
  }
  if (span.bytes == 0) return;
  tf::AllocatorMemoryUsed& memory = *stats.add_memory();
  memory.set_allocator_name(allocator);
  memory.set_total_bytes(static_cast<int64_t>(span.bytes));
}

void Write(const graph::Definition& graph, const trace::StepTrace& step, tf::StepStats& stats) {
  std::map<std::string, tf::DeviceStepStats*> devices;
  for (const trace::Span& span : step.spans) {
    const std::string name = span.device.empty() ? kHost : span.device;
    tf::DeviceStepStats*& device = devices[name];
    if (device == nullptr) {
      device = stats.add_dev_stats();
      device->set_device(name);
    }
    Write(graph, step, span, *device->add_node_stats());
    (*device->mutable_thread_names())[static_cast<uint32_t>(span.thread)] =
        span.thread == 0 ? "caller" : fmt::format("worker {}", span.thread);
  }
}

}  // namespace

Result<RunOptions> ParseRunOptions(std::string_view bytes) {
  tf::RunOptions message;
  WEIR_TRY(proto::ParseEither(bytes, "RunOptions", message));
  if (message.debug_options().debug_tensor_watch_opts_size() > 0) {
    return Unimplemented("RunOptions.debug_options.debug_tensor_watch_opts: weir has no debug ops; fetch '{}' instead",
                         message.debug_options().debug_tensor_watch_opts(0).node_name());
  }
  RunOptions options;
  options.trace = message.trace_level() != tf::RunOptions::NO_TRACE;
  options.timeout_in_ms = message.timeout_in_ms();
  options.inter_op_thread_pool = message.inter_op_thread_pool();
  options.output_partition_graphs = message.output_partition_graphs();
  return options;
}

Result<std::string> RunMetadata(const graph::Definition& graph, const RunReport& report) {
  tf::RunMetadata message;
  if (!report.trace.spans.empty()) Write(graph, report.trace, *message.mutable_step_stats());
  for (const std::string& part : report.partition_graphs) {
    WEIR_TRY(proto::ParseBinary(part, "GraphDef", *message.add_partition_graphs()));
  }
  return proto::Serialize(message, "RunMetadata");
}

}  // namespace weir::session
