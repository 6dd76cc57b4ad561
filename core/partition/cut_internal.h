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
  IndexedVector<graph::NodeId, int> part_of;
  IndexedVector<graph::NodeId, int> device_of;  // from the placement, unless the node moved to another part
  std::map<graph::Endpoint, Receivers> values;
  std::map<graph::NodeId, Receivers> controls;
  /// The parts with nodes in the frame or in nested frames, each with a device; empty if there is only one part.
  IndexedVector<graph::FrameId, Receivers> loops;
  IndexedVector<graph::FrameId, graph::NodeId> conditions;  // its LoopCond, -1 = none
  IndexedVector<graph::FrameId, graph::NodeId> enters;      // one of its Enter nodes
  int home = 0;                                             // a device; its part
  int home_part = 0;
};

Result<Cut> FindCut(const graph::StepGraph& step, const graph::Placement& placement, const Borders& borders);

class Cutter {
 public:
  Cutter(const graph::StepRequest& request, const graph::StepGraph& step, const graph::Placement& placement,
         const Cut& cut, const Borders& borders)
      : request_(request),
        step_(step),
        placement_(placement),
        cut_(cut),
        borders_(borders),
        copies_(step.nodes.size(), -1) {}
  Result<std::vector<graph::Part>> Run();

 private:
  using Endpoint = graph::Endpoint;
  using NodeId = graph::NodeId;

  const std::string& NameOf(int device) const { return placement_.devices[PositionOf(device)]; }
  graph::Definition& GraphOf(int part, int device);
  Result<NodeId> Add(int part, int device, std::string name, const char* op, std::vector<Endpoint> inputs,
                     std::vector<NodeId> controls, op::AttrList attrs);
  /// A name unused in the step and all parts: "n/_0".
  std::string NewName(std::string_view before);
  /// The endpoint of a value in a part's graph, where it was copied, received or duplicated before, or is received now.
  Result<Endpoint> Local(Endpoint value, int part, int device);
  Result<Endpoint> Given(Endpoint value, int part, int device);

  Status Copy(NodeId id);
  Status CloseLoops();
  Status SendOn(NodeId id);
  /// How a part gets a value: by a _Recv, and an op behind it that has one input, unless `then` is null.
  struct Arrival {
    int device = 0;
    std::string name;
    std::vector<NodeId> controls;
    op::AttrList attrs;
    const char* then = nullptr;
    std::string then_name = {};
    op::AttrList then_attrs = {};
  };
  /// A control edge as a value of the node that it leaves.
  static Endpoint ControlOf(NodeId id) { return {id, -1}; }
  /// What crosses: a value of a step node, as it is in the part and on the device that send it.
  struct Crossing {
    NodeId from = -1;
    Endpoint value;
    int part = 0, device = 0;
  };
  /// The home part first: others may get from it what it receives.
  std::vector<std::pair<int, int>> HomeFirst(const Receivers& receivers) const;
  /// The part that sends to another one, home if it goes through it; `made` is the value in the part that makes it.
  Result<Crossing> SenderOf(NodeId from, Endpoint value, Endpoint made, int to);
  /// Adds a _Send.
  Result<Arrival> Cross(const Crossing& crossing, DType type, int part, int device, const PartialShape& shape);
  /// As Cross, with the upper 16 bits of floats.
  Result<Arrival> CrossHalved(const Crossing& crossing, int part, int device, const PartialShape& shape);
  Result<Arrival> CrossControl(NodeId from, int part, int device);
  /// Keeps it for the first user; without Borders::late, the value is received at once.
  Status Expect(int part, Endpoint value, Arrival arrival);
  /// The node that gives a value that crosses; adds it if the value is expected.
  Result<NodeId> Received(int part, Endpoint value);
  /// With Borders::late: the copies of the nodes that make the operands of the operands of `id` that are made in its
  /// part. Empty if the step has control flow.
  std::vector<NodeId> MakersBehind(NodeId id) const;
  /// Control inputs that run once per iteration of the part's loop for the output frame of `id`; empty without such a
  /// loop.
  std::vector<NodeId> Pace(NodeId id, int part) const;
  /// Called for every frame before its first Enter; acts once per frame.
  Status OpenLoop(graph::FrameId frame);
  Status CloseSkeletons(graph::FrameId frame);
  Status Fetch(size_t i);

  const graph::StepRequest& request_;
  const graph::StepGraph& step_;
  const graph::Placement& placement_;
  const Cut& cut_;
  const Borders& borders_;
  bool waits_ = false;  // a _Recv may wait for nodes of its part
  std::map<int, graph::Part> parts_;
  IndexedVector<NodeId, NodeId> copies_;                 // by step node, in the graph of its part
  std::map<std::pair<int, Endpoint>, Endpoint> given_;   // by part, as the two below
  std::map<std::pair<int, Endpoint>, NodeId> received_;  // values and control edges
  std::map<std::pair<int, Endpoint>, Arrival> expected_;
  std::vector<NodeId> awaited_;  // what a _Recv that is added now waits for
  std::map<std::pair<graph::FrameId, int>, NodeId>
      skeletons_;  // by frame and part: the Merge of the part's control loop
  struct BackEdge {
    NodeId to;
    size_t input;
  };
  std::vector<BackEdge> back_edges_;
  int made_ = 0;  // counts new names
};

}  // namespace weir::partition

#endif  // WEIR_CORE_PARTITION_CUT_INTERNAL_H_
