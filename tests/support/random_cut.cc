#include "tests/support/random_cut.h"

#include <numeric>
#include <vector>

namespace weir::testing {

void PlaceAtRandom(std::span<const std::string> devices, std::mt19937& random, graph::Definition& graph) {
  std::vector<graph::NodeId> root(static_cast<size_t>(graph.num_nodes()));
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](graph::NodeId n) {
    while (root[static_cast<size_t>(n)] != n) n = root[static_cast<size_t>(n)];
    return n;
  };
  for (graph::NodeId n = 0; n < graph.num_nodes(); ++n) {
    for (const graph::Endpoint& input : graph.node(n).inputs()) {
      const DType type = graph.node(input.node).output_types()[static_cast<size_t>(input.index)];
      if (IsRef(type)) root[static_cast<size_t>(find(n))] = find(input.node);
    }
  }
  std::vector<std::string> chosen;
  for (graph::NodeId n = 0; n < graph.num_nodes(); ++n) chosen.push_back(devices[random() % devices.size()]);
  for (graph::NodeId n = 0; n < graph.num_nodes(); ++n) graph.SetDevice(n, chosen[static_cast<size_t>(find(n))]);
}

}  // namespace weir::testing
