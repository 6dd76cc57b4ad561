// Constant folding with the kernels of the step.
#ifndef WEIR_CORE_SESSION_FOLDING_H_
#define WEIR_CORE_SESSION_FOLDING_H_

#include <vector>

#include "core/optimize/optimize.h"
#include "core/session/compile.h"

namespace weir::session {

/// Calls the kernels that would run a node on the CPU. Both constructor arguments must outlive it.
class KernelEvaluator final : public optimize::Evaluator {
 public:
  KernelEvaluator(const CompileContext& context, const graph::Definition& graph);
  /// Unimplemented if no device uses host memory.
  Result<std::vector<Tensor>> Evaluate(const graph::Node& node, const std::vector<Tensor>& inputs) override;

 private:
  const CompileContext& context_;
  const graph::Definition& graph_;
  device::Device* device_ = nullptr;
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_FOLDING_H_
