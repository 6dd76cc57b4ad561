// Regions of ops (trait `region`): one prepared kernel, which is compiled code or calls those of elementwise ops tile
// by tile, so that intermediate values stay in the first cache.
#ifndef WEIR_CORE_PLAN_REGION_INTERNAL_H_
#define WEIR_CORE_PLAN_REGION_INTERNAL_H_

#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/kernel/prepared.h"
#include "core/op/attrs.h"
#include "core/op/registry.h"
#include "core/plan/plan.h"

namespace weir::plan {

/// What MakeRegion takes of a node.
struct RegionNode {
  const op::OpRegistry* ops = nullptr;
  op::AttrView attrs;
  std::span<const kernel::OperandSpec> inputs;  // not compiled: scalars, and values of the output's shape
  const kernel::OperandSpec* output = nullptr;  // the first one
};

struct Region {
  std::unique_ptr<kernel::PreparedKernel> kernel;
  double ns = 0;  // declared time
};

/// A compiled region is the executable of PlanOptions::executables; its declared time is that of one pass over its
/// operands. For another, chooses a kernel for each op, prepares it for a tile and for the last, shorter one, and
/// assigns the intermediate values to buffers in the scratch memory. The results have the bits of the ops one by one.
/// With `max_tiles` above 1 and enough work, several threads may share the tiles. Internal for a region that core/fuse
/// would not make; errors do not name the node. The device must have host memory and no streams.
Result<Region> MakeRegion(const PlanOptions& options, const RegionNode& node, device::Device& device);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_REGION_INTERNAL_H_
