// Sets of nodes of a step that are shown to compilers.
#ifndef WEIR_CORE_FUSE_CANDIDATES_INTERNAL_H_
#define WEIR_CORE_FUSE_CANDIDATES_INTERNAL_H_

#include <memory>
#include <vector>

#include "core/compile/region.h"
#include "core/fuse/match_internal.h"

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
class CandidateFinder {
 public:
  explicit CandidateFinder(const Scene& scene);
  ~CandidateFinder();

  /// Disjoint sets, in descending order of their last nodes.
  std::vector<Candidate> Find() const;

 private:
  class Liveness;
  bool MayBeIn(graph::NodeId id) const;
  bool IsOperand(graph::NodeId reader, const graph::Endpoint& value) const;
  bool IsElementwise(const graph::StepNode& node) const;
  std::vector<int64_t> ReducedAxes(const graph::StepNode& node) const;
  bool OnHostDevice(graph::NodeId id) const;
  std::vector<graph::NodeId> Grow(graph::NodeId root, const IndexedVector<graph::NodeId, char>& taken) const;
  Candidate Make(std::vector<graph::NodeId> members) const;
  compile::RegionOp OpOf(graph::NodeId id) const;
  double KernelNanoseconds(graph::NodeId id) const;

  const Scene& scene_;
  std::vector<std::vector<graph::NodeId>> readers_;  // by node: a reader for each of its uses by inputs; -1: a fetch
  IndexedVector<graph::NodeId, char> targets_;
  IndexedVector<graph::NodeId, char> waited_for_;  // by a control edge
  std::unique_ptr<Liveness> liveness_;
};

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_CANDIDATES_INTERNAL_H_
