// Which devices have kernels for which nodes.
#ifndef WEIR_CORE_PLACE_SUPPORT_H_
#define WEIR_CORE_PLACE_SUPPORT_H_

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/graph/step_graph.h"
#include "core/kernel/registry.h"

namespace weir::place {

/// A set of devices, as the number of an interned set: equal sets have equal numbers.
using DeviceMask = int;

/// Answers are kept by op and types, so that asking again is cheap. For one thread.
class Support {
 public:
  Support(const device::DeviceSet& devices, const kernel::KernelRegistry& kernels);

  /// Devices that can run the node: all of them when the core itself runs the op.
  DeviceMask Of(const graph::Node& node);
  DeviceMask And(DeviceMask a, DeviceMask b);
  /// All devices.
  DeviceMask All() { return Intern(std::vector<bool>(devices_.all().size(), true)); }
  bool Has(DeviceMask mask, int device) const { return sets_[static_cast<size_t>(mask)][static_cast<size_t>(device)]; }
  bool Empty(DeviceMask mask) const;
  /// Devices of a set that a request allows, rising. Opt-in devices have to be asked for by type, or be all there is.
  std::vector<int> Allowed(DeviceMask mask, const device::DeviceName& spec) const;

  /// Kernels whose constraints fit the node, best first; none for ops that the core runs. Valid until the next call.
  std::span<const kernel::KernelEntry* const> Kernels(const graph::Node& node, int device);

  const device::DeviceSet& devices() const { return devices_; }
  const kernel::KernelRegistry& kernels() const { return kernels_; }

 private:
  using Key = std::pair<const op::OpDef*, const op::Signature*>;
  struct Known {
    std::vector<std::vector<const kernel::KernelEntry*>> kernels;  // by platform
    DeviceMask mask = 0;
  };

  const Known& Find(const graph::Node& node);
  Known Ask(const graph::Node& node);
  DeviceMask Intern(std::vector<bool> set);
  bool TypesTellKernels(const op::OpDef& op);

  const device::DeviceSet& devices_;
  const kernel::KernelRegistry& kernels_;
  std::vector<std::string> platforms_;
  std::vector<int> platform_of_;  // by device
  std::map<Key, Known> known_;
  std::unordered_map<const op::OpDef*, bool> types_tell_;
  Known last_;  // of a node whose kernels depend on more than its types
  std::vector<std::vector<bool>> sets_;
  std::map<std::vector<bool>, DeviceMask> interned_;
  std::map<std::pair<DeviceMask, DeviceMask>, DeviceMask> ands_;
};

/// The value that ties its user to its maker's device.
inline bool TiesToProducer(DType type) { return IsRef(type) || type == DType::kResource; }
/// The op's reference and resource inputs may come from anywhere all the same.
bool PassesThrough(const op::OpDef& op);
/// An op that makes state: no inputs, one reference or resource.
bool MakesState(const graph::StepNode& node);
/// What the node's `_class` names as "loc:@NAME".
std::vector<std::string_view> ColocatedWith(const graph::Node& node);
/// The loop that the node is in and that is in no other; 0 outside loops.
int OutermostFrame(const graph::StepGraph& step, const graph::StepNode& node);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_SUPPORT_H_
