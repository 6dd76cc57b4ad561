// One op for several, where a device can run them as one and nothing in between has to be written to memory.
#ifndef WEIR_CORE_FUSE_FUSE_H_
#define WEIR_CORE_FUSE_FUSE_H_

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/kernel/registry.h"

namespace weir::fuse {

/// Replaces, in a placed step, (Resource)ApplyGradientDescent(var, alpha, MatMul(a, b)) by
/// _(Resource)ApplyGradientDescentMatMul(var, alpha, a, b) when nobody else reads the product, both run on one device
/// in one frame, all shapes are known, and the device's platform has a kernel for the new op. Identity nodes between
/// the two go, too; whoever waited for a node that went waits for what it waited for. The new node has the id, name and
/// origin of the step that it replaces. What is added to the variable is rounded once less than before. O(V + E).
Status Fuse(const device::DeviceSet& devices, const kernel::KernelRegistry& kernels, graph::StepGraph& step,
            graph::Placement& placement);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_FUSE_H_
