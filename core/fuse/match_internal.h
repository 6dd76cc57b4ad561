// Matches of fusion patterns in a placed step, and the conditions under which a match is fused.
#ifndef WEIR_CORE_FUSE_MATCH_INTERNAL_H_
#define WEIR_CORE_FUSE_MATCH_INTERNAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/indexed.h"
#include "core/fuse/fuse.h"

namespace weir::fuse {

/// A row of the table of fusions, from the record of the fused op: `root(..., operand(...), ...)` may become `result`.
struct Pattern {
  const op::OpDef* root = nullptr;
  int input = 0;             // of the root, at which the operand is
  std::string_view operand;  // op
  const op::OpDef* result = nullptr;
};

/// Inputs of the conditions besides the match.
struct Scene {
  const FuseOptions& options;
  const graph::StepGraph& step;
  const graph::Placement& placement;
  const IndexedVector<graph::NodeId, int>& users;  // graph::CountUsers

  int DeviceOf(graph::NodeId id) const { return placement.device_of[id]; }
};

/// Nodes of a step that a pattern fits.
struct Match {
  const Pattern* pattern = nullptr;
  graph::NodeId root = -1;
  graph::NodeId operand = -1;
  /// Identity nodes between the two, from root to operand. TensorFlow's gradients insert them to order all gradients
  /// of one op.
  std::vector<graph::NodeId> between;

  /// The inputs of the fused node: the operand's take the place of its value.
  std::vector<graph::Endpoint> Inputs(const graph::StepGraph& step) const;
  /// The attributes of the fused node: the root's where it has them, else the operand's.
  op::AttrList Attrs(const graph::StepGraph& step) const;
};

/// Devices follow the nodes of a rewritten step. `moved`: from Rewriter::Finish.
void FollowMoves(const IndexedVector<graph::NodeId, graph::NodeId>& moved, const graph::StepGraph& step,
                 graph::Placement& placement);

/// A value of known shape that does not change during the step. A reader of a Switch tells its control successors which
/// branch runs; a control edge from the Switch would not, so its outputs do not count.
bool IsPlain(const graph::StepGraph& step, const graph::Endpoint& input);

/// The elements of a constant of int32 or int64. No value for more than `most`, and for any other value.
std::optional<std::vector<int64_t>> IntegersOf(const graph::StepGraph& step, const graph::Endpoint& value,
                                               int64_t most);

/// True if a kernel of the root's device accepts a node of `result` in its place. Long constants are shown to it
/// without their values, so that it does not rearrange them.
bool SomeKernelTakes(const Scene& scene, graph::NodeId root, const op::OpDef& result,
                     const std::vector<graph::Endpoint>& inputs, const op::AttrList& attrs);

/// A condition on a match.
struct Condition {
  const char* name;
  bool (*holds)(const Scene& scene, const Match& match);
};

/// All must hold. Cheap ones come first.
std::span<const Condition> Conditions();

/// Follows the root's input to the operand of the pattern, past Identity nodes that nothing else reads on the same
/// device in the same frame.
Match MatchAt(const Scene& scene, const Pattern& pattern, graph::NodeId root);

}  // namespace weir::fuse

#endif  // WEIR_CORE_FUSE_MATCH_INTERNAL_H_
