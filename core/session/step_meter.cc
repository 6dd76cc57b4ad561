#include "core/session/step_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/base/errors.h"
#include "core/place/operands.h"
#include "core/session/explain.h"
#include "core/session/placing.h"
#include "core/session/profiles.h"

namespace weir::session {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Result<StepMeter> StepMeter::Make(const CompileContext& context, const graph::Definition& graph,
                                  const graph::StepRequest& request) {
  StepMeter meter;
  WEIR_ASSIGN(const graph::StepGraph step, OptimizeStep(context, graph, request));
  WEIR_ASSIGN(const place::Explanation explanation, ExplainStep(context, step));
  WEIR_ASSIGN(const PlacedStep compiled, Prepare(context, graph, request));
  meter.predicted_ns_ = explanation.makespan_ns;
  for (const auto& device : context.runtime.plugins->devices().all()) {
    const device::DeviceName& name = device->info().name;
    meter.fingerprints_[device->name()] = kernel::FingerprintOf(device->info());
    meter.short_names_[device->name()] = fmt::format("{}:{}", name.type.value_or("?"), name.id.value_or(0));
    if (device->host_memory() && meter.host_.empty()) meter.host_ = device->name();
    if (device->has_streams()) meter.with_streams_.insert(device->name());
  }
  std::map<std::string, Part, std::less<>> parts;
  size_t report = 0;
  for (const graph::StepNode& node : step.nodes) {
    if (node.kind != graph::StepNode::Kind::kOp) continue;
    const place::NodeReport& told = explanation.nodes[report++];
    Part part{"", told.name, told.device, 0};
    for (const place::CandidateReport& candidate : told.candidates) {
      if (candidate.chosen) part.declared_ns = static_cast<double>(std::max<int64_t>(candidate.exec_ns, 0));
    }
    const place::Operands operands = place::OperandsOf(step, node, 1);
    if (operands.known && node.source->op().run_by == op::RunBy::kKernel) {
      part.key = kernel::MeasuredKey(node.source->attrs(), operands.inputs);
    }
    parts.emplace(told.name, std::move(part));
  }
  const auto add = [&](const std::string& compiled_name, std::string_view name) {
    const auto part = parts.find(name);
    if (part != parts.end()) meter.parts_of_[compiled_name].push_back(part->second);
  };
  std::map<const graph::Node*, const graph::MadeNode*> made;
  for (const graph::MadeNode& node : compiled.step.made) made.emplace(node.node.get(), &node);
  for (const graph::StepNode& node : compiled.step.nodes) {
    if (node.kind != graph::StepNode::Kind::kOp) continue;
    const auto fused = made.find(node.source);
    if (fused == made.end()) {
      add(std::string(node.name()), node.name());
      continue;
    }
    for (const graph::Node* const part : fused->second->stands_for) add(std::string(node.name()), part->name());
  }
  return meter;
}

void StepMeter::Add(const trace::StepTrace& trace, int64_t untraced_ns) {
  double busy = 0;
  int ops = 0;
  std::map<std::string, double> of_run;
  for (const trace::Span& span : trace.spans) {
    const auto ns = static_cast<double>(span.end_ns - span.start_ns);
    busy += ns;
    const auto found = parts_of_.find(span.node);
    if (span.op == "copy" || span.op == "fetch") {
      const std::string from = found == parts_of_.end() || found->second.empty() ? host_ : found->second.front().device;
      const std::string to = span.device.empty() || span.device == from ? host_ : span.device;
      const bool timed = span.on_device || (!with_streams_.contains(from) && !with_streams_.contains(to));
      if (from != to && timed && span.bytes > 0)
        costs_.AddTransfer(short_names_[from] + "->" + short_names_[to], span.bytes, ns);
      continue;
    }
    ++ops;
    if (found == parts_of_.end()) continue;
    if (!span.on_device && with_streams_.contains(found->second.front().device)) continue;
    double weights = 0;
    for (const Part& part : found->second) weights += std::max(part.declared_ns, 1.0);
    for (const Part& part : found->second) {
      const double share = ns * std::max(part.declared_ns, 1.0) / weights;
      of_run[part.name] += share;
      if (!part.key.empty()) costs_.Add(fingerprints_[part.device], part.key, share, part.declared_ns);
    }
  }
  for (const auto& [name, ns] : of_run) node_ns_[name].push_back(ns);
  const auto total = static_cast<double>(untraced_ns > 0 ? untraced_ns : trace.total_ns);
  step_ns_.push_back(total);
  gap_ns_.push_back(ops == 0 ? 0 : std::max(total - busy, 0.0) / ops);
}

kernel::MeasuredCosts StepMeter::Costs(const Runtime& runtime) const {
  kernel::MeasuredCosts costs = costs_;
  const double gap = Median(gap_ns_);
  std::vector<std::string> devices;
  for (const auto& [name, device] : costs_.devices()) devices.push_back(name);
  for (const std::string& device : devices) costs.SetDevice(device, KernelSets(*runtime.plugins), gap);
  return costs;
}

std::map<std::string, std::string> StepMeter::devices() const {
  std::map<std::string, std::string> devices;
  for (const auto& [node, parts] : parts_of_) {
    for (const Part& part : parts) devices.emplace(part.name, part.device);
  }
  return devices;
}

StepMeasurement StepMeter::Medians() const {
  StepMeasurement result;
  result.runs = static_cast<int>(step_ns_.size());
  result.predicted_ns = predicted_ns_;
  result.step_ns = std::llround(Median(step_ns_));
  for (const auto& [name, ns] : node_ns_) result.node_ns[name] = std::llround(Median(ns));
  return result;
}

Result<StepMeasurement> MeasureRuns(StepMeter meter, const Runtime& runtime, int runs,
                                    const std::function<Status(trace::StepTrace*)>& run) {
  if (runs < 1) return InvalidArgument("{} runs measure nothing; wanted at least 1", runs);
  WEIR_TRY(run(nullptr));
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    WEIR_TRY(run(nullptr));
    const auto untraced = std::chrono::steady_clock::now() - begin;
    trace::StepTrace trace;
    WEIR_TRY(run(&trace));
    meter.Add(trace, std::chrono::duration_cast<std::chrono::nanoseconds>(untraced).count());
  }
  StepMeasurement measured = meter.Medians();
  measured.profile = meter.Costs(runtime).ToJson();
  return measured;
}

}  // namespace weir::session
