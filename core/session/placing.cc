#include "core/session/placing.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/base/errors.h"
#include "core/optimize/optimize.h"
#include "core/place/place.h"
#include "core/place/support.h"
#include "core/session/outlook.h"

namespace weir::session {
namespace {

place::PlaceOptions PlacementOptions(const CompileContext& context) {
  place::PlaceOptions options;
  if (context.options.placement != nullptr) options = *context.options.placement;
  options.allow_soft_placement = context.options.allow_soft_placement;
  options.default_device = context.options.default_device;
  if (context.options.explain == SessionOptions::Explain::kAll) {
    options.explain = place::PlaceOptions::Explain::kAll;
  } else if (context.options.log_device_placement) {
    options.explain = place::PlaceOptions::Explain::kDevices;
  }
  options.measured = context.measured;
  options.warn_of_outgrown = context.options.replace_period == 0;  // else the session measures what it runs
  options.absent_plugins = context.runtime.plugins->Absent();
  return options;
}

/// Records the devices of state.
void KeepState(const graph::StepGraph& step, const graph::Placement& placement, StatePlaces& places) {
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (place::MakesState(step.nodes[i])) places.device_of.emplace(step.nodes[i].source->id(), placement.device_of[i]);
  }
}

/// Adds the devices of state that `step` is the first to use, from the placement of the steps that will use it. A
/// graph that cannot be placed as a whole gives none.
void Foresee(const CompileContext& context, const graph::StepGraph& step, const place::PlaceOptions& options,
             std::map<graph::NodeId, int>& foreseen) {
  if (!options.default_device.empty() || options.algorithm == place::Algorithm::kTf) return;
  const auto& all = context.runtime.plugins->devices().all();
  const auto may_be_chosen = [](const auto& device) { return (device->info().flags & WEIR_DEVICE_OPT_IN) == 0; };
  if (std::ranges::count_if(all, may_be_chosen) < 2) return;  // others take only what asks for them
  std::map<graph::NodeId, int> known = foreseen;
  if (options.placed != nullptr) known.insert(options.placed->begin(), options.placed->end());
  const std::optional<graph::StepRequest> request = UseOfState(step, known);
  if (!request) return;
  optimize::OptimizeOptions plain;
  plain.constant_folding = plain.common_subexpressions = false;
  const Result<graph::StepGraph> use = optimize::Optimize(plain, *step.graph, *request, nullptr);
  if (!use.ok()) return;
  place::PlaceOptions of_use = options;
  of_use.explain = place::PlaceOptions::Explain::kSummary;
  const plugin::Catalogue& plugins = *context.runtime.plugins;
  const Result<graph::Placement> placed = place::Place(of_use, *use, plugins.devices(), plugins.kernels());
  if (!placed.ok()) return;
  for (size_t i = 0; i < use->nodes.size(); ++i) {
    if (place::MakesState(use->nodes[i])) foreseen.emplace(use->nodes[i].source->id(), placed->device_of[i]);
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
  Foresee(context, step, options, context.places->foreseen);
  options.preferred = &context.places->foreseen;
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
  std::map<graph::NodeId, int> foreseen;
  if (context.places != nullptr) foreseen = context.places->foreseen;
  if (plugins.devices().all().size() > 1) Foresee(context, step, options, foreseen);
  options.preferred = &foreseen;
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
