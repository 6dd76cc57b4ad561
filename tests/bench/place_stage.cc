#include "tests/bench/place_stage.h"

#include <utility>

#include "core/graph/graph_def.h"
#include "core/optimize/optimize.h"
#include "core/place/place.h"
#include "tests/bench/measure.h"
#include "tests/bench/workloads.h"

namespace weir::bench {
namespace {

int32_t OpenAny(weir_str, const weir_opt*, uint64_t, weir_device** device, weir_error*) {
  static int handle;
  *device = reinterpret_cast<weir_device*>(&handle);
  return WEIR_OK;
}
void CloseAny(weir_device*) {}

int32_t Profile(weir_device*, weir_profile* profile, weir_error*) {
  profile->provenance = WEIR_PROVENANCE_DATASHEET;
  for (double& peak : profile->peak_flops_per_ns) peak = 100;
  profile->bandwidth_bytes_per_ns = 100;
  profile->launch_ns = 50;
  return WEIR_OK;
}

int32_t Link(weir_device*, uint32_t, weir_device*, uint32_t, weir_link* link, weir_error*) {
  link->latency_ns = 20;
  link->bandwidth_pageable_bytes_per_ns = 1;
  return WEIR_OK;
}

const weir_device_api* Api() {
  static const weir_device_api api = [] {
    weir_device_api made{};
    made.struct_size = sizeof(made);
    made.open = OpenAny;
    made.close = CloseAny;
    return made;
  }();
  return &api;
}

}  // namespace

struct PlaceStage::State {
  const session::Runtime* runtime = nullptr;
  device::DeviceSet devices;
  std::unique_ptr<graph::Definition> graph;
  graph::StepGraph step;
};

Result<std::unique_ptr<PlaceStage>> PlaceStage::Make(const session::Runtime& runtime, int nodes, int devices) {
  static constexpr weir_cost_api kCosts = {sizeof(weir_cost_api), 0, Profile, Link, nullptr};
  auto state = std::make_unique<State>();
  state->runtime = &runtime;
  for (int d = 0; d < devices; ++d) {
    device::DeviceInfo info;
    const std::string kind = d == 0 ? "CPU:0" : "GPU:" + std::to_string(d - 1);
    WEIR_ASSIGN(info.name, device::ParseDeviceName("/job:localhost/replica:0/task:0/device:" + kind));
    info.kind = kind.substr(0, 3);
    info.platform = "cpu";  // so that kernels exist
    info.class_id = std::to_string(d);
    info.plugin = "bench";
    info.uid = std::to_string(d);
    info.flags = d == 0 ? WEIR_DEVICE_UNIFIED_MEMORY : 0;
    state->devices.Add(std::make_shared<device::Device>(info, Api(), &kCosts, device::MemoryOptions()));
  }
  WEIR_ASSIGN(graph::Definition graph, graph::ParseGraph(LargeGraphDef(nodes, *runtime.ops), *runtime.ops));
  state->graph = std::make_unique<graph::Definition>(std::move(graph));
  graph::StepRequest request;
  for (graph::NodeId id = 0; id < state->graph->num_nodes(); ++id) request.targets.push_back(id);
  optimize::OptimizeOptions options;
  options.constant_folding = options.common_subexpressions = false;
  WEIR_ASSIGN(state->step, optimize::Optimize(options, *state->graph, request, nullptr));
  return std::unique_ptr<PlaceStage>(new PlaceStage(std::move(state)));
}

PlaceStage::PlaceStage(std::unique_ptr<State> state) : state_(std::move(state)) {}
PlaceStage::~PlaceStage() = default;

bool PlaceStage::PlaceOnce(std::string* error) {
  const Status status =
      place::Place({}, state_->step, state_->devices, state_->runtime->plugins->kernels()).status();
  if (!status.ok()) *error = status.ToString();
  return status.ok();
}

double PlaceStage::PlaceNs(std::string* error) {
  Status status;
  const double ns = TimeNs(
      [&] { status = place::Place({}, state_->step, state_->devices, state_->runtime->plugins->kernels()).status(); });
  if (!status.ok()) *error = status.ToString();
  return status.ok() ? ns : -1;
}

}  // namespace weir::bench
