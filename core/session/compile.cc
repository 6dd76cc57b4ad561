#include "core/session/compile.h"

#include <utility>
#include <vector>

#include "core/execute/node_call.h"
#include "core/optimize/optimize.h"
#include "core/partition/partition.h"
#include "core/place/place.h"
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

}  // namespace

Result<std::unique_ptr<execute::PlanRunner>> Compile(const CompileContext& context, const graph::Graph& graph,
                                                     const graph::StepRequest& request) {
  const SessionOptions& options = context.options;
  const plugin::Catalogue& plugins = *context.runtime.plugins;

  KernelEvaluator evaluator(context, graph);
  optimize::OptimizeOptions optimize_options;
  optimize_options.constant_folding = options.constant_folding;
  optimize_options.common_subexpressions = options.common_subexpressions;
  WEIR_ASSIGN(const graph::StepGraph step, optimize::Optimize(optimize_options, graph, request, &evaluator));

  place::PlaceOptions place_options;
  place_options.allow_soft_placement = options.allow_soft_placement;
  place_options.default_device = options.default_device;
  WEIR_ASSIGN(const graph::Placement placement,
              place::Place(place_options, step, plugins.devices(), plugins.kernels()));

  const std::vector<graph::Subgraph> subgraphs = partition::Partition(step, placement);

  plan::PlanOptions plan_options;
  plan_options.devices = &plugins.devices();
  plan_options.kernels = &plugins.kernels();
  plan_options.builtins = &context.runtime.builtins;
  plan_options.resources = &context.resources;
  plan_options.node_resources = &context.node_resources;
  plan_options.parallelism = context.parallelism;
  WEIR_ASSIGN(std::unique_ptr<plan::ExecutionPlan> plan,
              plan::Build(plan_options, step, placement, subgraphs, request.feeds.size()));

  return std::make_unique<execute::PlanRunner>(std::move(plan));
}

}  // namespace weir::session
