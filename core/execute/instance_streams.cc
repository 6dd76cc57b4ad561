// The end of a run's work on streams, and errors that come after the call that enqueued the work has returned.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/execute/instance_internal.h"
#include "core/execute/tape_trace.h"

namespace weir::execute {

Status PlanRunner::Instance::EndStreams(Status status) {
  const bool ran = status.ok();
  status = streams_.End(std::move(status));
  for (const device::DeviceActivity& one : streams_.activities()) {
    const uint32_t at = device::RestOf(one.mark);
    if (trace_ != nullptr && at != 0) trace_->AddOnDevice(at - 1, one.begin_ns, one.end_ns);
  }
  trace_ = nullptr;
  if (status.ok() || !ran) return status;
  if (streams_.cause() != RunStreams::kNone) return Blame(status, streams_.cause(), "the end of the step");
  const bool ended = status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded;
  if (ended || status.code() == Code::kUnavailable) return status;
  return status.Append("\nreported late, at the end of the step: the device does not say whose work failed");
}

Status PlanRunner::Instance::Apart(Worker& worker, const Instruction** position) {
  const Instruction& instruction = **position;
  int64_t empty_ns = 0;
  WEIR_TRY(At(instruction, streams_.Finish(instruction.stream, &empty_ns)));
  const TapeTrace::Clock::time_point begin = TapeTrace::Clock::now();
  WEIR_TRY(Stretch(worker, position, *position + 1));
  WEIR_TRY(At(instruction, streams_.Finish(instruction.stream, &empty_ns)));
  const auto since_boot = [](TapeTrace::Clock::time_point time) {
    return time.time_since_epoch() / std::chrono::nanoseconds(1);
  };
  const int64_t begin_ns = since_boot(begin), end_ns = since_boot(TapeTrace::Clock::now()) - empty_ns;
  worker.step.trace->AddOnDevice(static_cast<uint32_t>(&instruction - plan_.instructions.data()), begin_ns,
                                 std::max(begin_ns, end_ns));
  return {};
}

Status PlanRunner::Instance::StreamKernels(uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    streams_.Works(i);
    WEIR_TRY(StreamKernel(plan_.instructions[i]));
  }
  return {};
}

Status PlanRunner::Instance::RunStretch(Captures::Stretch& stretch) {
  const Captures::Way way = captures_.Next(stretch, registers_);
  if (way == Captures::Way::kRun) return StreamKernels(stretch.begin, stretch.end);
  streams_.WorksOnSeveral();
  if (way == Captures::Way::kLaunch) return streams_.Launch(stretch.stream, *stretch.recorded);
  WEIR_ASSIGN(std::shared_ptr<const device::Captured> recorded, streams_.Record(stretch.stream, [&] {
    return StreamKernels(stretch.begin, stretch.end);
  }));
  const bool ran = recorded != nullptr;
  captures_.Recorded(stretch, registers_, std::move(recorded));
  return ran ? Status() : StreamKernels(stretch.begin, stretch.end);
}

Status PlanRunner::Instance::Blame(const Status& status, uint32_t cause, std::string_view met) const {
  const graph::Node& node = *plan_.nodes[static_cast<size_t>(plan_.instructions[cause].node)];
  return graph::AtNode(
      status.Append(fmt::format("\nreported late: the work failed after '{}' had enqueued it; the error was met at {}",
                                node.name(), met)),
      node);
}

Status PlanRunner::Instance::Arrived(Status status) {
  for (const auto& [arrived, fetch] : std::exchange(arriving_, {})) {
    const Status one = streams_.Await(arrived);
    if (status.ok()) status = At(*fetch, one);
  }
  return status;
}

Status PlanRunner::Instance::At(const Instruction& instruction, const Status& status) const {
  if (status.ok()) return status;
  const graph::Node& node = *plan_.nodes[instruction.node];
  const uint32_t cause = streams_.any() && status.node().empty() ? streams_.CauseOf(status) : RunStreams::kNone;
  const bool late = cause < plan_.instructions.size() && plan_.instructions[cause].node != instruction.node;
  return late ? Blame(status, cause, fmt::format("'{}'", node.name())) : graph::AtNode(status, node);
}

}  // namespace weir::execute
