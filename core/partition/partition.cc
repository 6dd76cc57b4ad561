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

}  // namespace weir::partition
