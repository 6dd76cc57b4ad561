// Kernel availability: the devices that can run each node.
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

/// A set of devices, as the index of an interned set: equal sets have equal indices.
using DeviceMask = int;

/// Results are cached by op and types. Single-threaded.
class Support {
 public:
  Support(const device::DeviceSet& devices, const kernel::KernelRegistry& kernels);

  /// Devices that can run the node; all devices if the core runs the op.
  DeviceMask Of(const graph::Node& node);
  DeviceMask And(DeviceMask a, DeviceMask b);
  /// All devices.
  DeviceMask All() { return Intern(std::vector<bool>(devices_.all().size(), true)); }
  bool Has(DeviceMask mask, int device) const { return sets_[mask][device]; }
  bool Empty(DeviceMask mask) const;
  /// Devices of a set that satisfy a request, ascending. Opt-in devices are included only if their type, of remote
  /// devices their job, is requested or there are no others.
  std::vector<int> Allowed(DeviceMask mask, const device::DeviceName& spec) const;

  /// The reason why all kernels on a device reject the known operands of a step node: the results of `supports` with
  /// the kernels. Empty if a kernel accepts them, or if the device has no kernel or cannot be opened.
  std::string Refusal(const graph::StepGraph& step, const graph::StepNode& node, int device);
  /// False with one device, whose run reports what its kernels reject, and if no kernel has `supports`.
  bool MayRefuse() const { return may_refuse_; }
  /// The set minus one device.
  DeviceMask Without(DeviceMask mask, int device);

  /// Kernels whose constraints match the node, best first; empty for ops run by the core. Valid until the next call.
  std::span<const kernel::KernelEntry* const> Kernels(const graph::Node& node, int device);
  /// True if no device has a kernel for the node, so that the core's host kernel runs it on every device.
  bool OnHostOnly(const graph::Node& node) { return Find(node).on_host_only; }

  const device::DeviceSet& devices() const { return devices_; }
  const kernel::KernelRegistry& kernels() const { return kernels_; }

 private:
  using Key = std::pair<const op::OpDef*, const op::Signature*>;
  struct Known {
    std::vector<std::vector<const kernel::KernelEntry*>> kernels;  // by platform
    DeviceMask mask = 0;
    bool on_host_only = false;
  };

  const Known& Find(const graph::Node& node);
  Known Ask(const graph::Node& node);
  DeviceMask Intern(std::vector<bool> set);
  bool TypesTellKernels(const op::OpDef& op);

  const device::DeviceSet& devices_;
  const kernel::KernelRegistry& kernels_;
  std::vector<std::string> platforms_;
  std::vector<int> platform_of_;  // by device
  bool may_refuse_ = false;       // there is a choice of devices, and a kernel has `supports`
  std::map<Key, Known> known_;
  std::unordered_map<const op::OpDef*, bool> types_tell_;
  Known last_;  // for nodes whose kernels depend on more than their types
  std::vector<std::vector<bool>> sets_;
  std::map<std::vector<bool>, DeviceMask> interned_;
  std::map<std::pair<DeviceMask, DeviceMask>, DeviceMask> ands_;
};

/// True for values whose consumers must be on the producer's device.
inline bool TiesToProducer(DType type) { return IsRef(type) || type == DType::kResource; }
/// As above for one consumer, whose op takes `taken`. A consumer that only reads a reference's value may be elsewhere
/// if it has a request.
inline bool TiesToProducer(DType given, DType taken, bool asks) {
  return TiesToProducer(given) && (!IsRef(given) || IsRef(taken) || !asks);
}
/// True for an op that creates state (OpDef::MakesState).
bool MakesState(const graph::StepNode& node);
/// The names in the node's `_class` entries "loc:@NAME".
std::vector<std::string_view> ColocatedWith(const graph::Node& node);
/// The outermost loop frame around the node; graph::kStepFrame outside loops.
graph::FrameId OutermostFrame(const graph::StepGraph& step, const graph::StepNode& node);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_SUPPORT_H_
