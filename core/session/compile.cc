#include "core/session/compile.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/execute/denormals.h"
#include "core/execute/node_call.h"
#include "core/fuse/fuse.h"
#include "core/graph/subgraph_def.h"
#include "core/optimize/optimize.h"
#include "core/partition/partition.h"
#include "core/place/place.h"
#include "core/place/support.h"
#include "core/plan/plan.h"

namespace weir::session {
namespace {

/// Folds constants with the kernels that would run the node on the CPU.
class KernelEvaluator : public optimize::Evaluator {
 public:
  KernelEvaluator(const CompileContext& context, const graph::Graph& graph) : context_(context), graph_(graph) {
    for (const auto& device : context.runtime.plugins->devices().all()) {
      if (device_ == nullptr && device->host_memory()) device_ = device.get();
    }
  }

  Result<std::vector<Tensor>> Evaluate(const graph::Node& node, const std::vector<Tensor>& inputs) override {
    if (device_ == nullptr) return Unimplemented("no device with host memory folds constants");
    const execute::FlushDenormals flush;  // as the step would have computed it
    plan::CallSpec call;
    call.graph = &graph_;
    call.node = &node;
    call.device = device_;
    call.resources = &context_.node_resources;
    call.registry = &context_.runtime.plugins->kernels();
    if (node.op().run_by == op::RunBy::kBuiltin) call.builtin = context_.runtime.builtins.Find(node.op().name);
    if (call.builtin == nullptr) call.kernels = call.registry->Find(node.attrs(), device_->info().platform);
    return execute::NodeCall(std::move(call)).Run(inputs);
  }

 private:
  const CompileContext& context_;
  const graph::Graph& graph_;
  device::Device* device_ = nullptr;
};

Result<graph::StepGraph> OptimizedStep(const CompileContext& context, const graph::Graph& graph,
                                       const graph::StepRequest& request) {
  KernelEvaluator evaluator(context, graph);
  optimize::OptimizeOptions options;
  options.constant_folding = context.options.constant_folding;
  options.common_subexpressions = context.options.common_subexpressions;
  options.max_folded_bytes = context.options.max_folded_bytes;
  return optimize::Optimize(options, graph, request, &evaluator);
}

/// InvalidArgument for a random op that would draw its own seed.
Status CheckSeeds(const graph::StepGraph& step) {
  for (const graph::StepNode& node : step.nodes) {
    if (node.kind != graph::StepNode::Kind::kOp || node.source->op().category != op::Category::kRandom) continue;
    const Result<int64_t> seed = node.source->attrs().Int("seed"), seed2 = node.source->attrs().Int("seed2");
    if (!seed.ok() || !seed2.ok() || *seed != 0 || *seed2 != 0) continue;
    return graph::AtNode(
        InvalidArgument("Random ops require a seed to be set when determinism is enabled: '{}' ({}) has none. Set the "
                        "graph's seed or the op's, or turn the option 'deterministic' off",
                        node.name(), node.source->op().name),
        *node.source);
  }
  return Status();
}

place::PlaceOptions PlacementOptions(const CompileContext& context) {
  place::PlaceOptions options;
  if (context.options.placement != nullptr) options = *context.options.placement;
  options.allow_soft_placement = context.options.allow_soft_placement;
  options.default_device = context.options.default_device;
  if (context.options.log_device_placement) options.explain = place::PlaceOptions::Explain::kDevices;
  options.absent_plugins = context.runtime.plugins->Absent();
  return options;
}

/// Remembers where state went.
void KeepState(const graph::StepGraph& step, const graph::Placement& placement, StatePlaces& places) {
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (place::MakesState(step.nodes[i])) places.device_of.emplace(step.nodes[i].source->id(), placement.device_of[i]);
  }
}

Result<graph::Placement> PlaceStep(const CompileContext& context, const graph::StepGraph& step,
                                   place::Explanation* explanation) {
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  place::PlaceOptions options = PlacementOptions(context);
  if (context.places == nullptr || plugins.devices().all().size() < 2) {
    return place::Place(options, step, plugins.devices(), plugins.kernels(), explanation);
  }
  const std::lock_guard<std::mutex> lock(context.places->mutex);
  options.placed = &context.places->device_of;
  WEIR_ASSIGN(graph::Placement placement,
              place::Place(options, step, plugins.devices(), plugins.kernels(), explanation));
  KeepState(step, placement, *context.places);
  return placement;
}

}  // namespace

Result<place::Explanation> ExplainPlacement(const CompileContext& context, const graph::Graph& graph,
                                            const graph::StepRequest& request) {
  WEIR_ASSIGN(const graph::StepGraph step, OptimizedStep(context, graph, request));
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  place::PlaceOptions options = PlacementOptions(context);
  options.explain = place::PlaceOptions::Explain::kAll;
  place::Explanation explanation;
  if (context.places == nullptr) {
    WEIR_TRY(place::Place(options, step, plugins.devices(), plugins.kernels(), &explanation).status());
    return explanation;
  }
  const std::lock_guard<std::mutex> lock(context.places->mutex);
  options.placed = &context.places->device_of;
  WEIR_TRY(place::Place(options, step, plugins.devices(), plugins.kernels(), &explanation).status());
  return explanation;
}

Result<std::vector<std::string>> PartitionGraphs(const CompileContext& context, const graph::Graph& graph,
                                                 const graph::StepRequest& request) {
  WEIR_ASSIGN(const graph::StepGraph step, OptimizedStep(context, graph, request));
  WEIR_ASSIGN(graph::Placement placement, PlaceStep(context, step, nullptr));
  // What the host gives (feeds, constants) is shown on the device whose memory is the host's.
  const auto& devices = context.runtime.plugins->devices().all();
  const auto host = std::find_if(devices.begin(), devices.end(), [](const auto& d) { return d->host_memory(); });
  if (host == devices.end()) return FailedPrecondition("no device has host memory");
  for (int& device : placement.device_of) {
    if (device < 0) device = static_cast<int>(host - devices.begin());
  }
  return graph::ExportSubgraphs(request, step, placement, partition::Partition(step, placement));
}

Result<std::unique_ptr<execute::PlanRunner>> Compile(const CompileContext& context, const graph::Graph& graph,
                                                     const graph::StepRequest& request,
                                                     place::Explanation* explanation) {
  WEIR_ASSIGN(graph::StepGraph step, OptimizedStep(context, graph, request));
  if (context.options.deterministic) WEIR_TRY(CheckSeeds(step));
  WEIR_ASSIGN(graph::Placement placement, PlaceStep(context, step, explanation));
  if (context.options.fusion) {
    WEIR_TRY(fuse::Fuse(context.runtime.plugins->devices(), context.runtime.plugins->kernels(), step, placement));
  }

  const std::vector<graph::Subgraph> subgraphs = partition::Partition(step, placement);
  if (context.options.verify_placement) WEIR_TRY(partition::Verify(step, placement, subgraphs));

  plan::PlanOptions plan_options;
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  plan_options.devices = &plugins.devices();
  plan_options.kernels = &plugins.kernels();
  plan_options.builtins = &context.runtime.builtins;
  plan_options.resources = &context.resources;
  plan_options.node_resources = &context.node_resources;
  plan_options.parallelism = context.parallelism;
  plan_options.max_tiles = context.max_tiles;
  plan_options.calibration = context.calibration;
  plan_options.deterministic = context.options.deterministic;
  Result<std::unique_ptr<plan::ExecutionPlan>> plan =
      plan::Build(plan_options, step, placement, subgraphs, request.feeds.size());
  if (!plan.ok() && context.options.fusion && !step.made.empty()) {  // kernels decline what they were not asked before
    SessionOptions unfused = context.options;
    unfused.fusion = false;
    const CompileContext again{context.runtime,     unfused,           context.resources,   context.node_resources,
                               context.parallelism, context.max_tiles, context.calibration, context.places};
    return Compile(again, graph, request, explanation);
  }
  if (!plan.ok()) return plan.status();
  return std::make_unique<execute::PlanRunner>(std::move(*plan));
}

}  // namespace weir::session
