#include "core/partition/partition.h"

#include <map>
#include <set>

namespace weir::partition {

std::vector<graph::Subgraph> Partition(const graph::StepGraph& step, const graph::Placement& placement) {
  std::map<int, graph::Subgraph> by_device;
  std::map<int, std::set<graph::Endpoint>> received;
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const int device = placement.device_of[i];
    graph::Subgraph& subgraph = by_device[device];
    subgraph.device = device;
    subgraph.nodes.push_back(static_cast<graph::NodeId>(i));
    for (const graph::Endpoint& input : step.nodes[i].inputs) {
      const int from = placement.device_of[static_cast<size_t>(input.node)];
      if (from != device && received[device].insert(input).second) subgraph.recvs.push_back({input, from});
    }
  }
  std::vector<graph::Subgraph> subgraphs;
  for (auto& [device, subgraph] : by_device) subgraphs.push_back(std::move(subgraph));
  return subgraphs;
}

namespace {

std::string NameOf(const graph::Placement& placement, int device) {
  return device < 0 ? "the host" : placement.devices[static_cast<size_t>(device)];
}

}  // namespace

Status Verify(const graph::StepGraph& step, const graph::Placement& placement,
              const std::vector<graph::Subgraph>& subgraphs) {
  std::vector<int> times(step.nodes.size(), 0);
  for (const graph::Subgraph& subgraph : subgraphs) {
    std::map<graph::Endpoint, int> sources;
    for (const graph::Recv& recv : subgraph.recvs) {
      const std::string_view name = step.node(recv.source.node).name();
      const int made_on = placement.device_of[static_cast<size_t>(recv.source.node)];
      if (!sources.emplace(recv.source, recv.from_device).second) {
        return Internal("'{}:{}' is received twice by {}", name, recv.source.index, NameOf(placement, subgraph.device));
      }
      if (recv.from_device != made_on) {
        return Internal("'{}:{}' is received from {}, but made on {}", name, recv.source.index,
                        NameOf(placement, recv.from_device), NameOf(placement, made_on));
      }
    }
    for (const graph::NodeId id : subgraph.nodes) {
      const int chosen = placement.device_of[static_cast<size_t>(id)];
      if (chosen != subgraph.device || ++times[static_cast<size_t>(id)] > 1) {
        return Internal("'{}' was placed on {} and is in the part of {}{}", step.node(id).name(),
                        NameOf(placement, chosen), NameOf(placement, subgraph.device),
                        chosen == subgraph.device ? " twice" : "");
      }
      for (const graph::Endpoint& input : step.node(id).inputs) {
        const int made_on = placement.device_of[static_cast<size_t>(input.node)];
        if (made_on == subgraph.device || sources.contains(input)) continue;
        return Internal("'{}' on {} uses '{}:{}' of {}, which nobody receives", step.node(id).name(),
                        NameOf(placement, subgraph.device), step.node(input.node).name(), input.index,
                        NameOf(placement, made_on));
      }
    }
  }
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] == 0) return Internal("'{}' was placed and is in no part", step.nodes[i].name());
  }
  return Status();
}

}  // namespace weir::partition
