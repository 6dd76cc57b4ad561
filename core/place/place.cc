#include "core/place/place.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/place/constraints.h"
#include "core/place/cost_table.h"
#include "core/place/errors.h"
#include "core/place/explain.h"
#include "core/place/requests.h"
#include "core/place/rules.h"
#include "core/place/support.h"

namespace weir::place {
namespace {

using device::DeviceName;

/// Devices that match the default device first, then the others.
Result<std::vector<int>> DefaultOrder(const std::string& default_device, const device::DeviceSet& devices) {
  WEIR_ASSIGN(const DeviceName spec, device::ParseDeviceName(default_device));
  std::vector<int> order = TypeOrder(devices);
  const auto matches = [&](int d) { return device::Matches(spec, devices.all()[d]->info().name); };
  if (std::none_of(order.begin(), order.end(), matches)) {
    return InvalidArgument("the default device '{}' does not exist; available devices are [ {} ]", default_device,
                           DeviceList(devices));
  }
  std::sort(order.begin(), order.end());
  std::stable_partition(order.begin(), order.end(), matches);
  return order;
}

/// Adds the default device to the candidates of groups without a request, even if it is opt-in.
void AdmitDefault(const std::vector<int>& order, Support& support, Constraints& constraints) {
  const int preferred = order.front();
  for (Group& group : constraints.groups) {
    const bool free = group.asked < 0 && group.fixed < 0 && support.Has(group.mask, preferred);
    if (!free || std::binary_search(group.candidates.begin(), group.candidates.end(), preferred)) continue;
    group.candidates.insert(std::lower_bound(group.candidates.begin(), group.candidates.end(), preferred), preferred);
  }
}

bool LeaveChoice(const Constraints& constraints) {
  return std::any_of(constraints.groups.begin(), constraints.groups.end(),
                     [](const Group& group) { return group.candidates.size() > 1; });
}

std::vector<int> ByTask(const CostTable& table, const Constraints& constraints, const std::vector<int>& by_group) {
  std::vector<int> device_of(table.node_of.size());
  for (size_t t = 0; t < device_of.size(); ++t) {
    const GroupId group = constraints.group_of[table.node_of[t]];
    device_of[t] = by_group[group];
  }
  return device_of;
}

std::vector<int> ByGroup(const CostTable& table, const Constraints& constraints, const std::vector<int>& by_task) {
  std::vector<int> device_of(constraints.groups.size(), -1);
  for (size_t t = 0; t < by_task.size(); ++t) {
    const GroupId group = constraints.group_of[table.node_of[t]];
    const std::vector<int>& candidates = constraints.groups[group].candidates;
    device_of[group] =
        std::binary_search(candidates.begin(), candidates.end(), by_task[t]) ? by_task[t] : candidates.front();
  }
  return device_of;
}

/// The devices of PlaceOptions::candidate; groups without an entry keep those of `others`. The first member with an
/// entry that names a candidate decides. InvalidArgument for an invalid device name.
Result<std::vector<int>> PlaceByPlan(const PlaceOptions& options, const graph::StepGraph& step,
                                     const Constraints& constraints, std::vector<int> device_of,
                                     const Support& support) {
  std::vector<bool> decided(constraints.groups.size(), false);
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const int g = constraints.group_of[i];
    if (g < 0 || decided[g]) continue;
    const auto entry = options.candidate.find(std::string(step.nodes[i].name()));
    if (entry == options.candidate.end()) continue;
    WEIR_ASSIGN(const DeviceName spec, ParseRequest(entry->second, *step.nodes[i].source));
    for (const int d : constraints.groups[g].candidates) {
      if (!device::Matches(spec, support.devices().all()[d]->info().name)) continue;
      device_of[g] = d;
      decided[g] = true;
      break;
    }
  }
  return device_of;
}

std::vector<WrittenNode> Written(const graph::StepGraph& step, const std::vector<int>& aside,
                                 const graph::Placement& placement) {
  IndexedVector<graph::NodeId, DeviceId> device_of(PositionOf(step.graph->num_nodes()), kHost);
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (placement.device_of[i] != kHost) device_of[step.nodes[i].source->id()] = placement.device_of[i];
  }
  std::vector<WrittenNode> written;
  written.reserve(aside.size());
  for (size_t k = 0; k < aside.size(); ++k) {
    const graph::Node& node = *step.written[k];
    const bool runs = aside[k] < 0;
    const int device = runs ? device_of[node.id()] : aside[k];
    written.push_back({node.name(), node.op().name, placement.devices[device], runs});
  }
  return written;
}

}  // namespace

Result<graph::Placement> Place(const PlaceOptions& options, const graph::StepGraph& step,
                               const device::DeviceSet& devices, const kernel::KernelRegistry& kernels,
                               Explanation* explanation) {
  if (devices.all().empty()) {
    return FailedPrecondition("there is no device to place nodes on: no plugin with a device was loaded");
  }
  const bool by_default = !options.default_device.empty();
  std::vector<int> order = TypeOrder(devices);
  if (by_default) {
    WEIR_ASSIGN(order, DefaultOrder(options.default_device, devices));
  }
  Support support(devices, kernels);
  WEIR_ASSIGN(Constraints constraints, Constrain(options, step, support));
  if (by_default) AdmitDefault(order, support, constraints);
  const bool by_cost = !by_default && options.algorithm != Algorithm::kTf;
  SettleState(step, {order, by_cost, options.preferred}, constraints);
  WEIR_ASSIGN(const std::vector<int> written, PlaceWritten(options, step, support));

  const bool explain_all = explanation != nullptr && options.explain == PlaceOptions::Explain::kAll;
  std::vector<int> by_group = PlaceByOrder(step, constraints, order);
  std::optional<CostTable> table;
  Choice choice;
  if (explain_all || (by_cost && LeaveChoice(constraints))) {
    table = BuildCostTable(options, step, constraints, support);
    if (by_cost) LimitDevices(*table->problem, options.max_devices);
    std::vector<Plan> given;
    given.push_back({by_default ? "default device" : "tf", ByTask(*table, constraints, by_group), {}});
    if (!options.candidate.empty()) {
      WEIR_ASSIGN(const std::vector<int> candidate, PlaceByPlan(options, step, constraints, by_group, support));
      given.push_back({"file", ByTask(*table, constraints, candidate), {}});
    }
    choice = ChoosePlan(*table->problem, by_cost ? options.algorithm : Algorithm::kTf, std::move(given),
                        {options.refine_iterations});
    by_group = ByGroup(*table, constraints, choice.plan.device_of);
  }

  graph::Placement placement;
  for (const auto& device : devices.all()) placement.devices.push_back(device->name());
  placement.device_of.assign(step.nodes.size(), kHost);
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const int group = constraints.group_of[i];
    if (group >= 0) placement.device_of[i] = by_group[group];
  }
  if (explanation != nullptr) {
    *explanation = Explain({options, step, constraints, support, placement, table ? &*table : nullptr,
                            table ? &choice : nullptr, by_cost});
    if (options.explain != PlaceOptions::Explain::kSummary) explanation->written = Written(step, written, placement);
  }
  return placement;
}

}  // namespace weir::place
