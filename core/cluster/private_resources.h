// Resources of single nodes, which belong to one session of a server.
#ifndef WEIR_CORE_CLUSTER_PRIVATE_RESOURCES_H_
#define WEIR_CORE_CLUSTER_PRIVATE_RESOURCES_H_

#include <string>

#include "core/graph/definition.h"

namespace weir::cluster {

/// Moves resources that belong to one node, such as queues without a shared name, of the nodes from `first` on into
/// `container`, which ends with the session. Variables and resources with names keep their containers.
inline void KeepPrivate(const std::string& container, graph::Definition& graph, graph::NodeId first = 0) {
  for (graph::NodeId id = first; id < graph.num_nodes(); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.op().traits.universal != op::Universal::kNone) continue;
    const Result<std::string> shared = node.attrs().String("shared_name"), own = node.attrs().String("container");
    const Result<bool> by_name = node.attrs().Bool("use_node_name_sharing");
    if (!shared.ok() || !own.ok() || !shared->empty() || (by_name.ok() && *by_name)) continue;
    if (node.op().name.ends_with("SparseToTensorsMap")) continue;  // the op that takes finds it by this node's name
    graph.SetAttr(id, "container", container);
  }
}

}  // namespace weir::cluster

#endif  // WEIR_CORE_CLUSTER_PRIVATE_RESOURCES_H_
