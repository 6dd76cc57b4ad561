// Sets of nodes of a step that are shown to compilers.
#ifndef WEIR_CORE_FUSE_CANDIDATES_INTERNAL_H_
#define WEIR_CORE_FUSE_CANDIDATES_INTERNAL_H_

#include <memory>
#include <vector>

#include "core/compile/region.h"
#include "core/fuse/node_sets_internal.h"

namespace weir::fuse {

struct Candidate {
  int device = -1;
  std::vector<graph::NodeId> nodes;     // by node of the region, ascending
  std::vector<graph::Endpoint> inputs;  // by input of the region
  compile::Region region;
};

/// Finds connected sets of two or more ops (of one too if all are to be compiled) on one device in host memory without
/// streams, in one frame: elementwise ops and reductions of the last dimensions, of floats, integers and bools, with
/// known shapes, that cannot fail. Their values may be used outside by nodes behind the last of them only, and then
/// only if all nodes of the set run or none does. So a set is convex and can run in the place of its last node.
class CandidateFinder : private SetRules {
 public:
  explicit CandidateFinder(const Scene& scene);
  ~CandidateFinder() override;

  /// Disjoint sets, in descending order of their last nodes.
  std::vector<Candidate> Find() const;

  // What a node and a value outside are to a region.
  bool MayBeIn(graph::NodeId id) const override;
  std::span<const graph::Endpoint> OperandsOf(graph::NodeId id) const override;
  /// Without operands.
  compile::RegionOp OpOf(graph::NodeId id) const;
  compile::RegionValue InputOf(const graph::Endpoint& value) const;

  const Readers& readers() const { return readers_; }
  /// A control edge leads from the node.
  bool IsWaitedFor(graph::NodeId id) const { return waited_for_[id] != 0; }

 private:
  class Liveness;
  bool MayJoin(graph::NodeId id, graph::NodeId root, std::span<const graph::NodeId> outside) const override;
  bool IsOperand(graph::NodeId reader, const graph::Endpoint& value) const;
  bool IsElementwise(const graph::StepNode& node) const;
  std::vector<int64_t> ReducedAxes(const graph::StepNode& node) const;
  bool OnHostDevice(graph::NodeId id) const;
  Candidate Make(NodeSet set) const;
  double KernelNanoseconds(graph::NodeId id) const;

  const Scene& scene_;
  Readers readers_;
  IndexedVector<graph::NodeId, char> targets_;
  IndexedVector<graph::NodeId, char> waited_for_;  // by a control edge
  std::unique_ptr<Liveness> liveness_;
};

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_CANDIDATES_INTERNAL_H_
