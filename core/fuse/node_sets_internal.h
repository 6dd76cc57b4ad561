// Connected sets of nodes of a step that may become one node.
#ifndef WEIR_CORE_FUSE_NODE_SETS_INTERNAL_H_
#define WEIR_CORE_FUSE_NODE_SETS_INTERNAL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/fuse/match_internal.h"

namespace weir::fuse {

struct NodeSet {
  std::vector<graph::NodeId> nodes;             // ascending
  std::vector<graph::Endpoint> inputs;          // values made outside, in the order of their first users
  std::vector<std::vector<uint32_t>> operands;  // by node: numbers of inputs and, behind those, of nodes
};

/// By node: a reader for each of its uses by inputs; -1 for a fetch or a target.
using Readers = IndexedVector<graph::NodeId, std::vector<graph::NodeId>>;
Readers ReadersOf(const graph::StepGraph& step);

/// What sets consist of.
class SetRules {
 public:
  SetRules(size_t at_least, size_t at_most) : least(at_least), most(at_most) {}
  virtual ~SetRules() = default;

  /// A set may end with the node.
  virtual bool MayBeIn(graph::NodeId id) const = 0;
  /// The node may be in a set that ends with `root` and has all of its readers but those `outside`.
  virtual bool MayJoin(graph::NodeId id, graph::NodeId root, std::span<const graph::NodeId> outside) const = 0;
  /// The inputs whose values a node of a set gets from other nodes.
  virtual std::span<const graph::Endpoint> OperandsOf(graph::NodeId id) const = 0;

  const size_t least, most;  // nodes
};

/// Disjoint sets of nodes of one device and one frame, in descending order of their last nodes. A set is as large as
/// the rules allow: it has each node whose first output one of its nodes reads and that may join.
std::vector<NodeSet> FindSets(const Scene& scene, const Readers& readers, const SetRules& rules);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_NODE_SETS_INTERNAL_H_
