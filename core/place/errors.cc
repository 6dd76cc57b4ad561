#include "core/place/errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/place/requests.h"

namespace weir::place {
namespace {

using device::DeviceName;
using graph::StepNode;

constexpr size_t kMembersShown = 16;

const StepNode& NodeAt(const Refusal& refusal, int i) { return refusal.step.nodes[i]; }

std::vector<std::string> Kinds(const device::DeviceSet& devices) {
  std::vector<std::string> kinds;
  for (const auto& device : devices.all()) {
    if (std::find(kinds.begin(), kinds.end(), device->info().kind) == kinds.end()) kinds.push_back(device->info().kind);
  }
  return kinds;
}

/// The nearest satisfiable request of the group: the soft placement for a corrected job and task, else an opt-in
/// device; empty if no device can run the group.
std::string NearestRequest(const Refusal& refusal, const Group& group) {
  const auto& all = refusal.support.devices().all();
  DeviceName spec;
  spec.type = group.requested.type;
  std::vector<int> devices = SoftCandidates(refusal.support, group.mask, std::move(spec)).devices;
  for (size_t d = 0; d < all.size() && devices.empty(); ++d) {
    if (refusal.support.Has(group.mask, static_cast<int>(d))) devices.push_back(static_cast<int>(d));
  }
  if (devices.empty()) return {};
  const DeviceName& name = all[devices.front()]->info().name;
  return fmt::format("/device:{}:{}", *name.type, *name.id);
}

/// The last line of the message, which TensorFlow does not have.
std::string Advice(const Refusal& refusal, const Group& group) {
  std::string line = "\nweir: ";
  const std::string nearest = NearestRequest(refusal, group);
  if (nearest.empty()) {
    line += "no device runs all nodes that must be together";
  } else {
    line += fmt::format("the nearest request that can be met is '{}'", nearest);
    if (!refusal.options.allow_soft_placement &&
        !SoftCandidates(refusal.support, group.mask, group.requested).devices.empty()) {
      line += "; `allow_soft_placement = true` in the configuration lets weir choose it";
    } else if (group.requested.job || group.requested.replica || group.requested.task) {
      line += "; soft placement keeps job, replica and task";
    }
  }
  for (const std::string& plugin : refusal.options.absent_plugins) line += fmt::format("; not loaded: {}", plugin);
  return line;
}

/// The members with the device kinds that can run them.
std::string GroupDump(const Refusal& refusal, const Group& group) {
  std::string dump = "\nColocation Debug Info:\nColocation group had the following types and supported devices: \n";
  const auto& all = refusal.support.devices().all();
  for (size_t m = 0; m < group.members.size() && m < kMembersShown; ++m) {
    const StepNode& node = NodeAt(refusal, group.members[m]);
    std::set<std::string> kinds;
    for (size_t d = 0; d < all.size(); ++d) {
      if (refusal.support.Has(refusal.support.Of(*node.source), static_cast<int>(d))) kinds.insert(all[d]->info().kind);
    }
    dump += fmt::format("{}: {} ({})", node.source->op().name, fmt::join(kinds, " "), node.name());
    if (!node.source->device().empty()) dump += " " + node.source->device();
    if (!node.source->origin().empty()) dump += fmt::format(" (defined at {})", node.source->origin());
    dump += '\n';
  }
  if (group.members.size() > kMembersShown) dump += fmt::format("and {} more\n", group.members.size() - kMembersShown);
  return dump;
}

/// "\nOp: …\nNode attrs: …\nRegistered kernels:\n…" in TensorFlow's format.
std::string KernelDump(const Refusal& refusal, const StepNode& node) {
  const kernel::KernelListing listing = kernel::ListKernels(refusal.support.kernels(), node.source->attrs());
  return fmt::format("\nOp: {}\nNode attrs: {}\n{}", node.source->op().name, listing.attrs, listing.kernels);
}

bool RunsNowhere(const Refusal& refusal, int i) {
  return refusal.support.Empty(refusal.support.Of(*NodeAt(refusal, i).source));
}

/// The error if kernels exist on the requested devices but reject the operands.
Status KernelsRefuse(const Refusal& refusal, const Group& group, const std::string& prefix) {
  std::string refusals;
  for (const auto& [device, why] : group.refused) {
    refusals += fmt::format("\n  {}: {}", refusal.support.devices().all()[device]->name(), why);
  }
  return InvalidArgument(
      "{}Could not satisfy explicit device specification '{}' because kernels there refuse operands:{}{}{}", prefix,
      group.requested.ToString(), refusals, GroupDump(refusal, group), Advice(refusal, group));
}

}  // namespace

std::string DeviceList(const device::DeviceSet& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices.all()) names.push_back(device->name());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

Status CannotAssign(const Refusal& refusal, const Group& group) {
  const device::DeviceSet& devices = refusal.support.devices();
  for (const int i : group.members) {
    if (!RunsNowhere(refusal, i)) continue;
    const StepNode& node = NodeAt(refusal, i);
    return graph::AtNode(
        kernel::NoKernelError(refusal.support.kernels(), node.source->attrs(), node.name(), Kinds(devices)),
        *node.source);
  }
  const StepNode& node = NodeAt(refusal, group.asked < 0 ? group.members.front() : group.asked);
  const std::string asked = group.requested.ToString();
  const std::string prefix = fmt::format("Cannot assign a device for operation {}: ", node.name());
  const std::vector<device::Device*> matching = devices.Matching(group.requested);
  if (matching.empty()) {
    return graph::AtNode(
        InvalidArgument(
            "{}{{{{node {}}}}} was explicitly assigned to {} but available devices are [ {} ]. Make sure the "
            "device specification refers to a valid device.{}",
            prefix, node.name(), asked, DeviceList(devices), Advice(refusal, group)),
        *node.source);
  }
  if (!group.refused.empty()) return graph::AtNode(KernelsRefuse(refusal, group, prefix), *node.source);
  const auto& all = devices.all();
  bool alone = false;  // the requesting node alone could be placed there
  for (size_t d = 0; d < all.size(); ++d) {
    if (device::Matches(group.requested, all[d]->info().name) &&
        refusal.support.Has(refusal.support.Of(*node.source), static_cast<int>(d))) {
      alone = true;
    }
  }
  if (!alone) {
    const std::string type = group.requested.type.value_or(matching.front()->info().kind);
    return graph::AtNode(
        InvalidArgument(
            "{}Could not satisfy explicit device specification '{}' because no supported kernel for {} devices "
            "is available.{}{}{}",
            prefix, asked, type, GroupDump(refusal, group), KernelDump(refusal, node), Advice(refusal, group)),
        *node.source);
  }
  for (const int i : group.members) {
    const StepNode& other = NodeAt(refusal, i);
    const DeviceMask mask = refusal.support.Of(*other.source);
    const bool obstacle = std::none_of(matching.begin(), matching.end(), [&](const device::Device* d) {
      for (size_t k = 0; k < all.size(); ++k) {
        if (all[k].get() == d) return refusal.support.Has(mask, static_cast<int>(k));
      }
      return false;
    });
    if (!obstacle) continue;
    return graph::AtNode(
        InvalidArgument(
            "{}Could not satisfy explicit device specification '{}' because the node {{{{colocation_node {}}}}} "
            "was colocated with a group of nodes that required incompatible device '{}'. All available "
            "devices [{}]. The node {{{{colocation_node {}}}}} ({}) has no kernel there.{}{}",
            prefix, asked, node.name(), NearestRequest(refusal, group), DeviceList(devices), other.name(),
            other.source->op().name, GroupDump(refusal, group), Advice(refusal, group)),
        *node.source);
  }
  return graph::AtNode(
      InvalidArgument(
          "{}Could not satisfy explicit device specification '{}' because no supported kernel for one device "
          "is available for all nodes that must be together. All available devices [{}].{}{}",
          prefix, asked, DeviceList(devices), GroupDump(refusal, group), Advice(refusal, group)),
      *node.source);
}

Status CannotMove(const Refusal& refusal, const Group& group) {
  const device::DeviceSet& devices = refusal.support.devices();
  const std::string home = devices.all()[group.fixed]->name();
  for (const int i : group.members) {
    const StepNode& node = NodeAt(refusal, i);
    if (refusal.support.Has(refusal.support.Of(*node.source), group.fixed)) continue;
    const std::string nearest = NearestRequest(refusal, group);
    return graph::AtNode(
        InvalidArgument("Cannot assign a device for operation {}: the state that it uses has been on {} since an "
                        "earlier run, and {} has no kernel there.{}{}{}",
                        node.name(), home, node.source->op().name, GroupDump(refusal, group), KernelDump(refusal, node),
                        nearest.empty()
                            ? ""
                            : fmt::format("\nweir: all of them run on '{}', if the state asks for it before "
                                          "it is first set",
                                          nearest)),
        *node.source);
  }
  const StepNode& node = NodeAt(refusal, group.asked);
  return graph::AtNode(
      InvalidArgument(
          "Cannot assign a device for operation {0}: Could not satisfy explicit device specification '{1}' "
          "because the node {{{{colocation_node {0}}}}} was colocated with a group of nodes that required "
          "incompatible device '{2}'. All available devices [{3}]. {4}\nweir: the group's state has been on "
          "'{2}' since an earlier run; it can live on '{1}' if it asks for that before it is first set",
          node.name(), group.requested.ToString(), home, DeviceList(devices), GroupDump(refusal, group)),
      *node.source);
}

Status CannotColocate(const Refusal& refusal, int later, int earlier, const std::string& why) {
  for (const int i : {later, earlier}) {
    if (!RunsNowhere(refusal, i)) continue;
    Group alone;
    alone.members = {i};
    alone.mask = refusal.support.Of(*NodeAt(refusal, i).source);
    return CannotAssign(refusal, alone);
  }
  const StepNode& first = NodeAt(refusal, later);
  const StepNode& second = NodeAt(refusal, earlier);
  Group both;
  both.members = {earlier, later};
  return graph::AtNode(
      InvalidArgument(
          "Cannot colocate nodes {{{{colocation_node {}}}}} and {{{{colocation_node {}}}}} because no device "
          "type supports both of those nodes and the other nodes colocated with them{}.{}",
          first.name(), second.name(), why, GroupDump(refusal, both)),
      *first.source);
}

}  // namespace weir::place
