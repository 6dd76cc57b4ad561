// Loops of a step that compilers take as a whole.
#ifndef WEIR_CORE_FUSE_LOOPS_INTERNAL_H_
#define WEIR_CORE_FUSE_LOOPS_INTERNAL_H_

#include "core/base/status.h"
#include "core/fuse/fuse.h"

namespace weir::fuse {

/// Shows to the compilers each while loop of TensorFlow 1's form whose condition and body consist of ops that a region
/// may have (candidates_internal.h), on one device in host memory. Such ops neither fail nor have effects; so loops
/// whose values are kept for gradients, and loops around others, are left alone. Of a loop that is compiled the frame
/// stays, with its condition: a node of `result`, the op with the trait `region`, takes the place of the body and makes
/// many iterations. So the plan asks between two calls whether the step goes on. O(V) for each frame.
Status ReplaceLoops(const FuseOptions& options, const op::OpDef& result, graph::StepGraph& step,
                    graph::Placement& placement);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_LOOPS_INTERNAL_H_
