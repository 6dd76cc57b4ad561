// Regions of a step that compilers take.
#ifndef WEIR_CORE_FUSE_COMPILED_INTERNAL_H_
#define WEIR_CORE_FUSE_COMPILED_INTERNAL_H_

#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/fuse/candidates_internal.h"
#include "core/graph/rewriter.h"

namespace weir::fuse {

/// A region that was compiled, in terms of the step.
struct Replacement {
  std::vector<graph::NodeId> nodes;     // ascending
  std::vector<graph::Endpoint> inputs;  // before the replacement of other regions
  std::vector<graph::NodeId> outputs;   // by output: the node that gives it; of a loop none
  std::vector<DType> types;             // by output
  std::vector<PartialShape> shapes;     // by output
  op::AttrList attrs;                   // of the node that stands for it
};

/// Shows a loop to the compilers and compiles it. No value if none wants it, it does not repay its compilation, or it
/// does not compile.
std::optional<Replacement> CompileLoop(const Scene& scene, const Candidate& loop);

/// Shows the candidates of the step (candidates_internal.h) to the compilers, compiles the proposals that gain most,
/// and replaces their nodes by nodes of `result`, the op with the trait `region`. A proposal that is not convex, cannot
/// run in the place of its last node, does not repay its compilation, or does not compile leaves its nodes to kernels.
/// A compilation is repaid if the declared gain of 1,000 runs exceeds its time, where a loop counts as 100 iterations.
/// `step` is the scene's; its nodes are erased by the rewriter's Finish.
Status ReplaceCompiled(const Scene& scene, const op::OpDef& result, graph::StepGraph& step, graph::Rewriter& rewriter);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_COMPILED_INTERNAL_H_
