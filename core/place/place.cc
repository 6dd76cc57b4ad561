#include "core/place/place.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::place {
namespace {

using device::Device;
using device::DeviceName;
using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// Sets of nodes that share a device.
class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int Root(int i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int& p = parent_[static_cast<size_t>(i)];
      p = parent_[static_cast<size_t>(p)];
      i = p;
    }
    return i;
  }
  /// The smaller id becomes the root, so that results do not depend on the order of joins.
  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

bool TiesToProducer(DType type) { return IsRef(type) || type == DType::kResource; }

Groups Group(const StepGraph& step) {
  Groups groups(step.nodes.size());
  std::map<std::string, int, std::less<>> by_class;
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const StepNode& node = step.nodes[i];
    if (node.kind != StepNode::Kind::kOp) continue;
    by_class.emplace("loc:@" + node.source->name(), static_cast<int>(i));
    for (const Endpoint& input : node.inputs) {
      if (TiesToProducer(step.TypeOf(input))) groups.Join(static_cast<int>(i), input.node);
    }
  }
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const StepNode& node = step.nodes[i];
    if (node.kind != StepNode::Kind::kOp) continue;
    const op::AttrValue* attr = node.source->attrs().Find("_class");
    const auto* names = attr ? attr->get<std::vector<std::string>>() : nullptr;
    if (names == nullptr) continue;
    for (const std::string& name : *names) {
      if (!name.starts_with("loc:@")) continue;
      groups.Join(by_class.emplace(name, static_cast<int>(i)).first->second, static_cast<int>(i));
    }
  }
  return groups;
}

/// Places the groups one by one.
class Placer {
 public:
  Placer(const PlaceOptions& options, const StepGraph& step, const device::DeviceSet& devices,
         const kernel::KernelRegistry& kernels)
      : options_(options), step_(step), devices_(devices), kernels_(kernels), groups_(Group(step)) {}

  Result<graph::Placement> Run() {
    if (devices_.all().empty()) {
      return FailedPrecondition("there is no device to place nodes on: no plugin with a device was loaded");
    }
    for (const auto& device : devices_.all()) placement_.devices.push_back(device->name());
    placement_.device_of.assign(step_.nodes.size(), kHost);
    WEIR_ASSIGN(default_, DefaultDevice());
    WEIR_TRY(MergeRequests());
    std::map<int, std::vector<int>> members;
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      if (step_.nodes[i].kind == StepNode::Kind::kOp)
        members[groups_.Root(static_cast<int>(i))].push_back(static_cast<int>(i));
    }
    for (const auto& [root, nodes] : members) WEIR_TRY(PlaceGroup(root, nodes));
    return std::move(placement_);
  }

 private:
  static const StepNode& NodeOf(const StepGraph& step, int i) { return step.nodes[static_cast<size_t>(i)]; }

  Result<int> DefaultDevice() const {
    const auto& all = devices_.all();
    if (!options_.default_device.empty()) {
      WEIR_ASSIGN(const DeviceName spec, device::ParseDeviceName(options_.default_device));
      for (size_t i = 0; i < all.size(); ++i) {
        if (device::Matches(spec, all[i]->info().name)) return static_cast<int>(i);
      }
      return InvalidArgument("the default device '{}' does not exist; available devices are [ {} ]",
                             options_.default_device, DeviceList());
    }
    int first = -1;
    for (size_t i = 0; i < all.size(); ++i) {
      if ((all[i]->info().flags & WEIR_DEVICE_OPT_IN) != 0) continue;
      if (all[i]->info().kind == "CPU") return static_cast<int>(i);
      if (first < 0) first = static_cast<int>(i);
    }
    return std::max(first, 0);
  }

  std::string DeviceList() const {
    std::string list;
    for (const auto& device : devices_.all()) list += (list.empty() ? "" : ", ") + device->name();
    return list;
  }

  Status MergeRequests() {
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp || node.source->device().empty()) continue;
      Result<DeviceName> spec = device::ParseDeviceName(node.source->device());
      if (!spec.ok()) {
        return graph::AtNode(InvalidArgument("Malformed device specification '{}'", node.source->device()),
                             *node.source);
      }
      const auto [entry, fresh] =
          requests_.emplace(groups_.Root(static_cast<int>(i)), Request{*spec, static_cast<int>(i)});
      if (fresh) continue;
      Result<DeviceName> merged = device::MergeNames(entry->second.spec, *spec, options_.allow_soft_placement);
      if (!merged.ok()) {
        return graph::AtNode(merged.status().Prepend("Cannot colocate nodes {{colocation_node " +
                                                     std::string(NodeOf(step_, entry->second.node).name()) +
                                                     "}} and {{colocation_node " + std::string(node.name()) + "}}: "),
                             *node.source);
      }
      entry->second.spec = std::move(*merged);
    }
    return Status();
  }

  bool CanRun(const StepNode& node, const Device& device) const {
    const op::OpDef& op = node.source->op();
    if (op.run_by != op::RunBy::kPlugin) return true;
    return !kernels_.Find(node.source->attrs(), device.info().platform).empty() || HasStringOperand(node);
  }

  /// Strings are moved about by the core on any host device.
  static bool HasStringOperand(const StepNode& node) {
    return std::any_of(node.types.begin(), node.types.end(), [](DType t) { return t == DType::kString; });
  }

  bool AllCanRun(const std::vector<int>& nodes, const Device& device) const {
    return std::all_of(nodes.begin(), nodes.end(), [&](int i) { return CanRun(NodeOf(step_, i), device); });
  }

  /// The first device that matches and can run all nodes, the default device first; -1 when there is none.
  int FirstMatch(const DeviceName& spec, const std::vector<int>& nodes, int preferred) const {
    const auto& all = devices_.all();
    const auto fits = [&](int i) {
      const Device& device = *all[static_cast<size_t>(i)];
      return device::Matches(spec, device.info().name) && AllCanRun(nodes, device);
    };
    if (preferred >= 0 && fits(preferred)) return preferred;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool named = spec.type.has_value();
      if ((named || (all[i]->info().flags & WEIR_DEVICE_OPT_IN) == 0) && fits(static_cast<int>(i)))
        return static_cast<int>(i);
    }
    return -1;
  }

  /// Metadata and aliases stay with what they look at.
  int Preferred(const std::vector<int>& nodes) const {
    const StepNode& first = NodeOf(step_, nodes.front());
    if (first.source->op().run_by != op::RunBy::kUniversal || first.inputs.empty()) return default_;
    const int device = placement_.device_of[static_cast<size_t>(first.inputs[0].node)];
    return device == kHost ? default_ : device;
  }

  Status PlaceGroup(int root, const std::vector<int>& nodes) {
    const auto request = requests_.find(root);
    const DeviceName spec = request == requests_.end() ? DeviceName() : request->second.spec;
    int chosen = FirstMatch(spec, nodes, Preferred(nodes));
    if (chosen < 0 && options_.allow_soft_placement) {
      DeviceName soft = spec;
      soft.type.reset();
      soft.id.reset();
      chosen = FirstMatch(soft, nodes, default_);
    }
    if (chosen < 0) return NoDevice(request == requests_.end() ? nodes.front() : request->second.node, spec, nodes);
    for (int i : nodes) placement_.device_of[static_cast<size_t>(i)] = chosen;
    return Status();
  }

  Status NoDevice(int asked, const DeviceName& spec, const std::vector<int>& nodes) const {
    for (int i : nodes) {
      const StepNode& node = NodeOf(step_, i);
      const auto& all = devices_.all();
      if (std::any_of(all.begin(), all.end(), [&](const auto& d) { return CanRun(node, *d); })) continue;
      std::vector<std::string> kinds;
      for (const auto& device : all) kinds.push_back(device->info().kind);
      kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
      return graph::AtNode(kernel::NoKernelError(kernels_, node.source->attrs(), node.name(), kinds), *node.source);
    }
    const StepNode& node = NodeOf(step_, asked);
    const std::string name(node.name());
    if (devices_.Matching(spec).empty()) {
      return graph::AtNode(
          InvalidArgument("Cannot assign a device for operation {}: {{{{node {}}}}} was explicitly assigned "
                          "to {} but available devices are [ {} ]. Make sure the device specification "
                          "refers to a valid device.",
                          name, name, spec.ToString(), DeviceList()),
          *node.source);
    }
    return graph::AtNode(
        InvalidArgument("Cannot assign a device for operation {}: Could not satisfy explicit device "
                        "specification '{}' because no device among [ {} ] that it allows has kernels for "
                        "all nodes that must be together",
                        name, spec.ToString(), DeviceList()),
        *node.source);
  }

  struct Request {
    DeviceName spec;
    int node;  // the first that asked
  };

  const PlaceOptions& options_;
  const StepGraph& step_;
  const device::DeviceSet& devices_;
  const kernel::KernelRegistry& kernels_;
  Groups groups_;
  std::map<int, Request> requests_;  // by group root
  graph::Placement placement_;
  int default_ = 0;
};

}  // namespace

Result<graph::Placement> Place(const PlaceOptions& options, const StepGraph& step, const device::DeviceSet& devices,
                               const kernel::KernelRegistry& kernels) {
  return Placer(options, step, devices, kernels).Run();
}

}  // namespace weir::place
