// Fusion: replaces several ops by one, so that intermediate values need not be written to memory.
#ifndef WEIR_CORE_FUSE_FUSE_H_
#define WEIR_CORE_FUSE_FUSE_H_

#include "core/base/passes.h"
#include "core/base/status.h"
#include "core/device/device.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/kernel/registry.h"

namespace weir::fuse {

struct FuseOptions {
  const device::DeviceSet* devices = nullptr;
  const kernel::KernelRegistry* kernels = nullptr;
  PassOptions passes;
  /// Elementwise ops become regions (op::Traits::region), which the plan of this process runs tile by tile.
  bool regions = false;
};

/// Replaces pairs of nodes in a placed step by fused ops (op::Fusion), such as ApplyGradientDescent(var, alpha,
/// MatMul(a, b)) by _ApplyGradientDescentMatMul(var, alpha, a, b). Conditions: the root updates a variable and its
/// other inputs are scalars; the operand has the variable's shape and no other users; both are on one device in one
/// frame; all shapes are known; and a kernel of the device's platform accepts the fused op with these inputs.
/// Identity nodes between the two are removed too; control edges from a removed node are replaced by its own control
/// inputs. The new node has the id, name and origin of the root. The update is rounded once less than before.
/// Also replaces the expressions of fused ops (op::FusedExpression), such as Relu(BiasAdd(MatMul(a, b), bias)), under
/// the same conditions; they may have any leaves of known shapes. Then elementwise ops of one shape of at least 8,192
/// elements that pass values to each other become regions, with the same bits. O(V + E).
Status Fuse(const FuseOptions& options, graph::StepGraph& step, graph::Placement& placement);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_FUSE_H_
