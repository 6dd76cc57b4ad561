#include "core/session/folding.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/execute/denormals.h"
#include "core/execute/node_call.h"
#include "core/plan/plan.h"

namespace weir::session {

KernelEvaluator::KernelEvaluator(const CompileContext& context, const graph::Definition& graph)
    : context_(context), graph_(graph) {
  for (const auto& device : context.runtime.plugins->devices().all()) {
    if (device_ == nullptr && device->host_memory()) device_ = device.get();
  }
}

Result<std::vector<Tensor>> KernelEvaluator::Evaluate(const graph::Node& node, const std::vector<Tensor>& inputs) {
  if (device_ == nullptr) return Unimplemented("no device with host memory folds constants");
  const execute::FlushDenormals flush;  // same results as in the step
  plan::CallSpec call;
  call.graph = &graph_;
  call.node = &node;
  call.device = device_;
  call.resources = &context_.node_resources;
  call.registry = &context_.runtime.plugins->kernels();
  call.kernels = call.registry->Find(node.attrs(), device_->info().platform);
  const kernel::KernelEntry* const host = call.registry->FindHost(node.op().name);
  if (call.kernels.empty() && host != nullptr) call.builtin = host->host.get();
  // A kernel that never completes would block compilation, since there is no cancellation.
  const auto later = [](const kernel::KernelEntry* entry) { return (entry->record->flags & WEIR_KERNEL_ASYNC) != 0; };
  if (std::ranges::any_of(call.kernels, later)) return Unimplemented("no constant is folded by an ASYNC kernel");
  return execute::NodeCall(std::move(call)).Run(inputs);
}

}  // namespace weir::session
