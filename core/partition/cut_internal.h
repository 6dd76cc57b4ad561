// The assignment of nodes to parts, and the construction of the parts' graphs.
#ifndef WEIR_CORE_PARTITION_CUT_INTERNAL_H_
#define WEIR_CORE_PARTITION_CUT_INTERNAL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/frames.h"
#include "core/partition/partition.h"

namespace weir::partition {

/// Receiving parts, each with the device of its first receiving node.
using Receivers = std::map<int, int>;

/// The decisions made before any graph is built.
struct Cut {
  static constexpr int kEverywhere = -1;  // feeds and constants
  std::vector<int> part_of;               // by step node
  std::vector<int> device_of;             // by step node: from the placement, unless the node moved to another part
  std::map<graph::Endpoint, Receivers> values;
  std::map<graph::NodeId, Receivers> controls;
  /// By frame: the parts with nodes in it or in nested frames, each with a device; empty if there is only one part.
  std::vector<Receivers> loops;
  std::vector<graph::NodeId> conditions;  // by frame: its LoopCond, -1 = none
  std::vector<graph::NodeId> enters;      // by frame: one of its Enter nodes
  int home = 0;                           // a device; its part
  int home_part = 0;
};

Result<Cut> FindCut(const graph::StepGraph& step, const graph::Placement& placement, const Borders& borders);

class Cutter {
 public:
  Cutter(const graph::StepRequest& request, const graph::StepGraph& step, const graph::Placement& placement,
         const Cut& cut, bool bfloat16)
      : request_(request),
        step_(step),
        placement_(placement),
        cut_(cut),
        bfloat16_(bfloat16),
        copies_(step.nodes.size(), -1) {}
  Result<std::vector<graph::Part>> Run();

 private:
  using Endpoint = graph::Endpoint;
  using NodeId = graph::NodeId;

  const std::string& NameOf(int device) const { return placement_.devices[static_cast<size_t>(device)]; }
  graph::Definition& GraphOf(int part, int device);
  Result<NodeId> Add(int part, int device, std::string name, const char* op, std::vector<Endpoint> inputs,
                     std::vector<NodeId> controls, op::AttrList attrs);
  /// A name unused in the step and all parts: "n/_0".
  std::string NewName(std::string_view before);
  /// The endpoint of a value in a part's graph, where it was copied, received or duplicated before.
  Result<Endpoint> Local(Endpoint value, int part, int device);
  Result<Endpoint> Given(Endpoint value, int part, int device);

  Status Copy(NodeId id);
  Status CloseLoops();
  Status SendOn(NodeId id);
  /// Adds a _Send and a _Recv; returns the _Recv.
  Result<NodeId> Cross(NodeId from, Endpoint value, DType type, int part, int device, const PartialShape& shape);
  /// As Cross, with the upper 16 bits of floats.
  Result<NodeId> CrossHalved(NodeId from, Endpoint value, int part, int device, const PartialShape& shape);
  Status CrossControl(NodeId from, int part, int device);
  /// Control inputs that run once per iteration of the part's loop for the output frame of `id`; empty without such a
  /// loop.
  std::vector<NodeId> Pace(NodeId id, int part) const;
  /// Called for every frame before its first Enter; acts once per frame.
  Status OpenLoop(int frame);
  Status CloseSkeletons(int frame);
  Status Fetch(size_t i);

  const graph::StepRequest& request_;
  const graph::StepGraph& step_;
  const graph::Placement& placement_;
  const Cut& cut_;
  const bool bfloat16_;
  std::map<int, graph::Part> parts_;
  std::vector<NodeId> copies_;                                     // by step node, in the graph of its part
  std::map<std::pair<int, Endpoint>, Endpoint> given_, received_;  // by part
  std::map<std::pair<int, NodeId>, NodeId> awaited_;
  std::map<std::pair<int, int>, NodeId> skeletons_;  // by frame and part: the Merge of the part's control loop
  struct BackEdge {
    NodeId to;
    size_t input;
  };
  std::vector<BackEdge> back_edges_;
  int made_ = 0;  // counts new names
};

}  // namespace weir::partition

#endif  // WEIR_CORE_PARTITION_CUT_INTERNAL_H_
