// Fusion: replaces several ops by one, so that intermediate values need not be written to memory.
#ifndef WEIR_CORE_FUSE_FUSE_H_
#define WEIR_CORE_FUSE_FUSE_H_

#include <string>
#include <vector>

#include "core/base/passes.h"
#include "core/base/status.h"
#include "core/compile/compilers.h"
#include "core/device/device.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/kernel/registry.h"

namespace weir::fuse {

/// What the compilation of regions takes and leaves.
struct CompileOptions {
  compile::Compilers* compilers = nullptr;  // null: no region is compiled
  bool always = false;                      // also where the declared gain does not repay the compilation
  bool deterministic = false;
  compile::CompileLimits limits;
  compile::Executables* executables = nullptr;  // gets those that the step needs
  std::vector<std::string>* notes = nullptr;    // gets faults of compilers, each text once in the process; may be null
  std::vector<std::string>* report = nullptr;   // gets a line for each region and what became of it; may be null
};

struct FuseOptions {
  const device::DeviceSet* devices = nullptr;
  const kernel::KernelRegistry* kernels = nullptr;
  PassOptions passes;
  /// Elementwise ops become regions (op::Traits::region), which the plan of this process runs tile by tile.
  bool regions = false;
  CompileOptions compile;
};

/// Replaces pairs of nodes in a placed step by fused ops (op::Fusion), such as ApplyGradientDescent(var, alpha,
/// MatMul(a, b)) by _ApplyGradientDescentMatMul(var, alpha, a, b). Conditions: the root updates a variable and its
/// other inputs are scalars; the operand has the variable's shape and no other users; both are on one device in one
/// frame; all shapes are known; and a kernel of the device's platform accepts the fused op with these inputs.
/// Identity nodes between the two are removed too; control edges from a removed node are replaced by its own control
/// inputs. The new node has the id, name and origin of the root. The update is rounded once less than before.
/// Also replaces the expressions of fused ops (op::FusedExpression), such as Relu(BiasAdd(MatMul(a, b), bias)), under
/// the same conditions; they may have any leaves of known shapes. Then compilers take whole loops of such ops
/// (loops_internal.h), and regions of elementwise ops and reductions of last dimensions (compiled_internal.h), within 4
/// units in the last place of each op. Of the others,
/// elementwise ops of one shape of at least 8,192 elements that pass values to each other become regions, with the same
/// bits. O(V + E), without the compilers' time.
Status Fuse(const FuseOptions& options, graph::StepGraph& step, graph::Placement& placement);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_FUSE_H_
