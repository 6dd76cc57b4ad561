#include "core/place/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <ranges>

#include "core/base/errors.h"
#include "core/config/pins.h"
#include "core/place/errors.h"

namespace weir::place {
namespace {

using graph::StepGraph;
using graph::StepNode;

/// The first device that uses host memory.
int HostDevice(const device::DeviceSet& devices) {
  const auto& all = devices.all();
  const auto host = std::find_if(all.begin(), all.end(), [](const auto& device) { return device->host_memory(); });
  return host == all.end() ? 0 : static_cast<int>(host - all.begin());
}

/// The device that the node would have in a step of its own.
Result<int> PlaceAlone(const PlaceOptions& options, const Requests& requests, const graph::Node& node,
                       std::string_view asked, Support& support) {
  Group group;
  group.members = {0};
  group.asked = 0;
  group.mask = support.Of(node);
  WEIR_ASSIGN(device::DeviceName wanted, ParseRequest(asked, node));
  if (support.Empty(group.mask)) group.mask = support.All();  // a fed value needs no kernel
  group.requested = requests.Resolve(std::move(wanted), support, group.mask);
  std::vector<int> devices = support.Allowed(group.mask, group.requested);
  if (devices.empty() && options.allow_soft_placement) {
    devices = SoftCandidates(support, group.mask, group.requested).devices;
  }
  if (!devices.empty()) return devices.front();
  StepGraph alone;
  alone.nodes.emplace_back().source = &node;
  return CannotAssign({options, alone, support}, group);
}

}  // namespace

Result<Requests> Requests::Make(const PlaceOptions& options) {
  if (options.pins && !options.pins->status().ok()) return options.pins->status().Prepend("placement.pin: ");
  return Requests(options);
}

Requests::Requests(const PlaceOptions& options) : options_(&options) {}

std::string_view Requests::For(const graph::Node& node) const {
  const std::string* const pinned = options_->pins ? options_->pins->For(node.name()) : nullptr;
  if (pinned != nullptr) return *pinned;
  const std::string_view graph = options_->keep_graph_devices ? std::string_view(node.device()) : std::string_view();
  if (!graph.empty() || options_->plan.empty()) return graph;
  const auto planned = options_->plan.find(node.name());
  return planned == options_->plan.end() ? std::string_view() : std::string_view(planned->second);
}

Status Requests::CheckPins(const graph::Node& node) const {
  if (!options_->pins) return Status();
  const config::Pins::Pin pin = options_->pins->Find(node.name());
  if (pin.rival == nullptr) return Status();
  return graph::AtNode(
      InvalidArgument("placement.pin: the patterns '{}' and '{}' match equally much of '{}' and ask for different "
                      "devices; remove one of them, or make one match more of the name",
                      *pin.pattern, *pin.rival, node.name()),
      node);
}

std::string Requests::PinText(const graph::Node& node) const {
  const config::Pins::Pin pin = options_->pins ? options_->pins->Find(node.name()) : config::Pins::Pin();
  if (pin.pattern == nullptr) return {};
  return fmt::format("\nweir: [placement.pin] \"{}\" = \"{}\" pins '{}'", *pin.pattern, *pin.device, node.name());
}

device::DeviceName Requests::Resolve(device::DeviceName spec, const Support& support, DeviceMask mask) const {
  if (options_->aliases.empty() || !spec.type) return spec;
  const auto found = std::find_if(options_->aliases.begin(), options_->aliases.end(), [&](const auto& alias) {
    return std::ranges::equal(alias.first, *spec.type,
                              [](unsigned char a, unsigned char b) { return std::toupper(a) == std::toupper(b); });
  });
  if (found == options_->aliases.end()) return spec;
  std::optional<device::DeviceName> exists, first;
  for (const std::string& text : found->second) {
    Result<device::DeviceName> device = device::ParseDeviceName(text);
    if (!device.ok()) continue;  // the configuration was checked
    if (!device->job) device->job = spec.job;
    if (!device->replica) device->replica = spec.replica;
    if (!device->task) device->task = spec.task;
    if (!support.Allowed(mask, *device).empty()) return *device;
    if (!first) first = *device;
    if (!exists && !support.devices().Matching(*device).empty()) exists = *device;
  }
  return exists ? *exists : first.value_or(spec);
}

Result<device::DeviceName> ParseRequest(std::string_view asked, const graph::Node& node) {
  Result<device::DeviceName> spec = device::ParseDeviceName(asked);
  if (spec.ok()) return spec;
  const bool said = spec.status().message().starts_with("Malformed");
  return graph::AtNode(
      said ? spec.status() : spec.status().Prepend(fmt::format("Malformed device specification '{}': ", asked)), node);
}

Softened SoftCandidates(const Support& support, DeviceMask mask, device::DeviceName spec) {
  spec.id.reset();
  Softened softened{support.Allowed(mask, spec), SoftRule::kIdDropped};
  if (!softened.devices.empty()) return softened;
  spec.type.reset();
  return {support.Allowed(mask, spec), SoftRule::kTypeDropped};
}

Result<std::vector<int>> PlaceWritten(const PlaceOptions& options, const StepGraph& step, Support& support) {
  if (step.written.empty()) return std::vector<int>();
  WEIR_ASSIGN(const Requests requests, Requests::Make(options));
  std::vector<bool> runs(PositionOf(step.graph->num_nodes()), false);
  for (const StepNode& node : step.nodes) {
    if (node.kind == StepNode::Kind::kOp) runs[node.source->id()] = true;
  }
  const int host = HostDevice(support.devices());
  std::vector<int> device_of;
  device_of.reserve(step.written.size());
  for (const graph::Node* const node : step.written) {
    device_of.push_back(-1);
    if (runs[node->id()]) continue;
    device_of.back() = host;
    const std::string_view asked = requests.For(*node);
    if (asked.empty()) continue;
    WEIR_ASSIGN(device_of.back(), PlaceAlone(options, requests, *node, asked, support));
  }
  return device_of;
}

}  // namespace weir::place
