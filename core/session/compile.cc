#include "core/session/compile.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/fuse/fuse.h"
#include "core/optimize/optimize.h"
#include "core/partition/partition.h"
#include "core/plan/plan.h"
#include "core/session/folding.h"
#include "core/session/placing.h"

namespace weir::session {

// The master's half: optimize -> place -> fuse -> partition.

Result<graph::StepGraph> OptimizeStep(const CompileContext& context, const graph::Definition& graph,
                                      const graph::StepRequest& request) {
  KernelEvaluator evaluator(context, graph);
  optimize::OptimizeOptions options;
  options.constant_folding = context.options.constant_folding;
  options.common_subexpressions = context.options.common_subexpressions;
  options.fold_into_filters = context.options.fusion;
  options.folded_filters = context.folded_filters;
  options.max_folded_bytes = context.options.max_folded_bytes;
  options.deterministic = context.options.deterministic;
  options.passes.watch = context.watch;
  WEIR_ASSIGN(graph::StepGraph step, optimize::Optimize(options, graph, request, &evaluator));
  if (context.lowering != nullptr) WEIR_TRY(context.lowering->Check(step));
  return step;
}

Result<PlacedStep> Prepare(const CompileContext& context, const graph::Definition& graph,
                           const graph::StepRequest& request, place::Explanation* explanation) {
  PlacedStep placed;
  WEIR_ASSIGN(placed.step, OptimizeStep(context, graph, request));
  WEIR_ASSIGN(placed.placement, PlaceStep(context, placed.step, explanation));
  if (!context.options.fusion || NeedsTasks(context.options, placed.placement)) return placed;
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  fuse::FuseOptions options{&plugins.devices(), &plugins.kernels(), {}, false};
  options.passes.watch = context.watch;
  options.regions = !context.options.cut_between_devices;
  std::vector<std::string> notes;
  if (context.options.compile_regions != CompileRegions::kOff) {
    fuse::CompileOptions& compile = options.compile;
    compile.compilers = context.runtime.compilers.get();
    compile.always = context.options.compile_regions == CompileRegions::kOn;
    compile.deterministic = context.options.deterministic;
    compile.limits = {std::chrono::milliseconds(context.options.compile_limit_ms), context.max_tiles,
                      context.options.keep_compiled_regions};
    compile.executables = &placed.executables;
    compile.notes = &notes;
    compile.report = &placed.regions;
  }
  WEIR_TRY(fuse::Fuse(options, placed.step, placed.placement));
  if (explanation != nullptr) {
    explanation->warnings.insert(explanation->warnings.end(), notes.begin(), notes.end());
  }
  return placed;
}

Result<std::vector<graph::Part>> CutBetweenDevices(const CompileContext& context, const graph::StepRequest& request,
                                                   const PlacedStep& placed) {
  WEIR_ASSIGN(const int host, HostDevice(context.runtime.plugins->devices()));
  partition::Borders borders = partition::BetweenDevices(placed.placement.devices.size(), host);
  borders.bfloat16 = context.options.bfloat16_transfers;
  borders.late = context.options.late_scheduling;
  WEIR_ASSIGN(std::vector<graph::Part> parts, partition::Partition(request, placed.step, placed.placement, borders));
  if (context.options.verify_placement) WEIR_TRY(partition::Verify(placed.step, placed.placement, parts));
  return parts;
}

bool NeedsTasks(const SessionOptions& options, const graph::Placement& placement) {
  if (options.tasks == nullptr) return false;
  if (options.tasks->own_parts() == Tasks::OwnParts::kRegistered) return true;
  std::vector<bool> away;
  for (const std::string& device : placement.devices) away.push_back(!options.tasks->IsHere(device));
  return std::ranges::any_of(placement.device_of, [&](int d) { return d >= 0 && away[static_cast<size_t>(d)]; });
}

Result<std::vector<graph::Part>> CutBetweenTasks(const CompileContext& context, const graph::StepRequest& request,
                                                 const PlacedStep& placed) {
  const auto& devices = context.runtime.plugins->devices().all();
  partition::Borders borders;
  WEIR_ASSIGN(borders.home, HostDevice(context.runtime.plugins->devices()));
  borders.bfloat16 = context.options.bfloat16_transfers;
  borders.late = context.options.late_scheduling;
  std::map<std::pair<std::string, int>, int> tasks;
  for (const auto& device : devices) {
    const device::DeviceName& name = device->info().name;
    const std::pair<std::string, int> task(name.job.value_or(""), name.task.value_or(0));
    borders.part_of.push_back(tasks.emplace(task, static_cast<int>(tasks.size())).first->second);
    if (context.options.tasks != nullptr) {
      borders.incarnations.push_back(context.options.tasks->IncarnationOf(device->name()));
      borders.through_home = context.options.tasks->own_parts() == Tasks::OwnParts::kInSession;
    }
  }
  WEIR_ASSIGN(std::vector<graph::Part> parts, partition::Partition(request, placed.step, placed.placement, borders));
  if (context.options.verify_placement) WEIR_TRY(partition::Verify(placed.step, placed.placement, parts));
  return parts;
}

// The part's half: plan, for the whole step or for each of its parts.

namespace {

Result<std::unique_ptr<plan::ExecutionPlan>> PlanStep(const CompileContext& context, const graph::StepGraph& step,
                                                      const graph::Placement& placement, size_t feeds,
                                                      const compile::Executables* executables,
                                                      place::Explanation* explanation) {
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  plan::PlanOptions options;
  options.devices = &plugins.devices();
  options.kernels = &plugins.kernels();
  options.resources = &context.resources;
  options.node_resources = &context.node_resources;
  options.parallelism = context.parallelism;
  options.max_tiles = context.max_tiles;
  options.calibration = context.calibration;
  options.deterministic = context.options.deterministic;
  options.allow_soft_placement = context.options.allow_soft_placement;
  options.executables = executables;
  options.late = context.options.late_scheduling;
  options.passes.watch = context.watch;
  WEIR_ASSIGN(std::unique_ptr<plan::ExecutionPlan> plan, plan::Build(options, step, placement, feeds));
  for (const std::string& note : plan->notes) {
    if (explanation != nullptr) explanation->warnings.push_back(note);
  }
  return plan;
}

}  // namespace

Result<Program> PlanWhole(const CompileContext& context, const graph::StepRequest& request, const PlacedStep& placed,
                          place::Explanation* explanation) {
  WEIR_ASSIGN(auto plan,
              PlanStep(context, placed.step, placed.placement, request.feeds.size(), &placed.executables, explanation));
  return Program(std::make_unique<execute::PlanRunner>(std::move(plan)));
}

Result<Program> PlanParts(const CompileContext& context, const graph::StepRequest& request,
                          std::vector<graph::Part> parts, place::Explanation* explanation) {
  std::vector<std::unique_ptr<graph::Part>> graphs;
  std::vector<execute::PartsRunner::Part> planned;
  for (graph::Part& part : parts) {
    const graph::Definition& graph = graphs.emplace_back(std::make_unique<graph::Part>(std::move(part)))->graph;
    WEIR_ASSIGN(graph::PartRequest own, graph::RequestOfPart(graph, request.feeds));
    WEIR_ASSIGN(const graph::StepGraph step, OptimizeStep(context, graph, own.request));
    WEIR_ASSIGN(const graph::Placement placement, PlacedAsWritten(context.runtime.plugins->devices(), step));
    WEIR_ASSIGN(auto plan, PlanStep(context, step, placement, own.feeds.size(), nullptr, explanation));
    planned.push_back({std::move(plan), std::move(own.feeds), std::move(own.fetches)});
  }
  return Program(std::move(graphs), std::move(planned));
}

// Both halves.

Result<Program> Compile(const CompileContext& context, const graph::Definition& graph,
                        const graph::StepRequest& request, place::Explanation* explanation) {
  WEIR_ASSIGN(const PlacedStep placed, Prepare(context, graph, request, explanation));
  if (NeedsTasks(context.options, placed.placement)) {
    WEIR_ASSIGN(std::vector<graph::Part> parts, CutBetweenTasks(context, request, placed));
    WEIR_ASSIGN(auto away, context.options.tasks->Register(std::move(parts), request.fetches.size()));
    return Program(std::move(away));
  }
  if (!context.options.cut_between_devices) return PlanWhole(context, request, placed, explanation);
  WEIR_ASSIGN(std::vector<graph::Part> parts, CutBetweenDevices(context, request, placed));
  return PlanParts(context, request, std::move(parts), explanation);
}

}  // namespace weir::session
