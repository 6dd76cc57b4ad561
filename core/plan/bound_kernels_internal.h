// Caches kernels bound by a plan for reuse by equivalent nodes.
#ifndef WEIR_CORE_PLAN_BOUND_KERNELS_INTERNAL_H_
#define WEIR_CORE_PLAN_BOUND_KERNELS_INTERNAL_H_

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/graph/definition.h"
#include "core/kernel/prepared.h"
#include "core/plan/plan.h"

namespace weir::plan {

/// The choice and preparation of a kernel depend on the op, its attributes, the device, and the types, shapes and
/// constant values of the operands. Nodes that agree in these share a kernel. Stateful ops do not, since their kernels
/// may keep state per node.
class BoundKernels {
 public:
  struct Bound {
    uint32_t kernel = 0;  // into ExecutionPlan::kernels
    double ns = 0;        // declared time
  };
  struct Operands {
    std::span<const kernel::OperandSpec> inputs, outputs;
  };

  /// Null if no equivalent node was bound. Valid until the next Add.
  const Bound* Find(const graph::Node& node, DeviceId device, const Operands& operands) const;
  /// `node` and the memory of constant operands must outlive this object.
  void Add(const graph::Node& node, DeviceId device, const Operands& operands, Bound bound);

 private:
  struct Entry {
    const graph::Node* node = nullptr;
    DeviceId device;
    std::vector<kernel::OperandSpec> inputs, outputs;
    std::vector<const void*> values;  // by input: the memory of the constant, else null
    Bound bound;
  };
  static bool Same(const Entry& entry, const graph::Node& node, DeviceId device, const Operands& operands);

  std::unordered_multimap<uint64_t, Entry> entries_;
};

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_BOUND_KERNELS_INTERNAL_H_
