#include "core/session/placing.h"

#include <map>
#include <string>

#include "core/base/errors.h"
#include "core/place/place.h"
#include "core/place/support.h"

namespace weir::session {
namespace {

place::PlaceOptions PlacementOptions(const CompileContext& context) {
  place::PlaceOptions options;
  if (context.options.placement != nullptr) options = *context.options.placement;
  options.allow_soft_placement = context.options.allow_soft_placement;
  options.default_device = context.options.default_device;
  if (context.options.log_device_placement) options.explain = place::PlaceOptions::Explain::kDevices;
  options.absent_plugins = context.runtime.plugins->Absent();
  return options;
}

/// Records the devices of state.
void KeepState(const graph::StepGraph& step, const graph::Placement& placement, StatePlaces& places) {
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (place::MakesState(step.nodes[i])) places.device_of.emplace(step.nodes[i].source->id(), placement.device_of[i]);
  }
}

}  // namespace

Result<graph::Placement> PlaceStep(const CompileContext& context, const graph::StepGraph& step,
                                   place::Explanation* explanation) {
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  place::PlaceOptions options = PlacementOptions(context);
  if (context.places == nullptr || plugins.devices().all().size() < 2) {
    return place::Place(options, step, plugins.devices(), plugins.kernels(), explanation);
  }
  const std::lock_guard<std::mutex> lock(context.places->mutex);
  options.placed = &context.places->device_of;
  WEIR_ASSIGN(graph::Placement placement,
              place::Place(options, step, plugins.devices(), plugins.kernels(), explanation));
  KeepState(step, placement, *context.places);
  return placement;
}

Result<place::Explanation> ExplainStep(const CompileContext& context, const graph::StepGraph& step) {
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  place::PlaceOptions options = PlacementOptions(context);
  options.explain = place::PlaceOptions::Explain::kAll;
  place::Explanation explanation;
  std::unique_lock<std::mutex> lock;
  if (context.places != nullptr) {
    lock = std::unique_lock<std::mutex>(context.places->mutex);
    options.placed = &context.places->device_of;
  }
  WEIR_TRY(place::Place(options, step, plugins.devices(), plugins.kernels(), &explanation).status());
  return explanation;
}

Result<graph::Placement> PlacedAsWritten(const device::DeviceSet& devices, const graph::StepGraph& step) {
  graph::Placement placement;
  std::map<std::string, int> index;
  for (const auto& device : devices.all()) {
    index.emplace(device->name(), static_cast<int>(placement.devices.size()));
    placement.devices.push_back(device->name());
  }
  for (const graph::StepNode& node : step.nodes) {
    placement.device_of.push_back(place::kHost);
    if (node.kind != graph::StepNode::Kind::kOp) continue;
    const auto found = index.find(node.source->device());
    if (found == index.end()) {
      return graph::AtNode(
          NotFound("'{}' is to run on {}, which this process does not have", node.name(), node.source->device()),
          *node.source);
    }
    placement.device_of.back() = found->second;
  }
  return placement;
}

Result<int> HostDevice(const device::DeviceSet& devices) {
  for (size_t d = 0; d < devices.all().size(); ++d) {
    if (devices.all()[d]->host_memory()) return static_cast<int>(d);
  }
  return FailedPrecondition("no device has host memory");
}

}  // namespace weir::session
