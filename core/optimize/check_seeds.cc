// Rejects unseeded random ops in deterministic steps.
#include "core/base/errors.h"
#include "core/op/same_bits.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {

Status CheckSeeds(const PassContext& context, graph::StepGraph& step) {
  if (!context.options.deterministic) return Status();
  for (const graph::StepNode& node : step.nodes) {
    if (node.kind != graph::StepNode::Kind::kOp || op::SameBitsOf(node.source->op()) != op::SameBits::kSeeds) {
      continue;
    }
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

}  // namespace weir::optimize
