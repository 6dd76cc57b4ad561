// Rewriting of a step: passes fold, replace, bypass and erase nodes, and the edges follow.
#ifndef WEIR_CORE_GRAPH_REWRITER_H_
#define WEIR_CORE_GRAPH_REWRITER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/indexed.h"
#include "core/base/status.h"
#include "core/graph/step_graph.h"

namespace weir::graph {

/// By node: the inputs, fetches and targets that use it. Control edges do not count. O(V + E).
IndexedVector<NodeId, int> CountUsers(const StepGraph& step);

/// Collects edits of one pass. An edit reaches the edges of a node when the pass visits the node, and all edges in
/// Finish. O(1) per edit except for the edges that it moves.
class Rewriter {
 public:
  explicit Rewriter(StepGraph& step) : step_(step) {}

  /// The node, with its edges as the edits so far leave them. For passes that walk the step in order.
  StepNode& Visit(NodeId id);
  /// The outputs of `id` have known values, and their shapes. The node keeps its edges: it is dead if its inputs are.
  void SetValues(NodeId id, std::vector<Tensor> values);
  /// Turns `id`, whose values are known, into a constant, which has no inputs and is always live.
  void MakeConstant(NodeId id);
  /// All users of `id` use `by`, an earlier node with the same outputs. `id` stays, without users.
  void Replace(NodeId id, NodeId by);
  /// Replaces control edges from `id` by edges from the nodes that it waits for: its control inputs, and the ops among
  /// its inputs. False, without an edit, if these are more than `most`.
  bool Bypass(NodeId id, size_t most = SIZE_MAX);
  /// `root` becomes a node of `op` that keeps its name and users, and stands for it and for `others`, or for the nodes
  /// of the graph that these stand for themselves. It also waits for the control inputs of `others`. The caller sets
  /// inputs, types and shapes, and erases `others`.
  Status StandFor(NodeId root, std::span<const NodeId> others, const op::OpDef& op, const op::AttrList& attrs);
  /// Bypasses `id` and removes it in Finish. By then, no input, fetch or target may use it.
  void Erase(NodeId id);
  /// Applies the edits to all edges, fetches and targets, and removes erased nodes. Returns the new id of each node,
  /// -1 if erased; empty if no node moved.
  IndexedVector<NodeId, NodeId> Finish();

 private:
  struct Edit {
    NodeId by = -1;                // Replace
    std::vector<NodeId> controls;  // Bypass
    bool bypassed = false;
    bool erased = false;
  };
  Edit& EditOf(NodeId id);
  const Edit* Find(NodeId id) const {
    const int edit = edits_.empty() ? -1 : edit_of_[id];
    return edit < 0 ? nullptr : &edits_[static_cast<size_t>(edit)];
  }
  NodeId Replaced(NodeId id) const;
  void Redirect(StepNode& node) const;
  void RedirectControls(std::vector<NodeId>& controls) const;

  StepGraph& step_;
  NodeId next_ = 0;                 // all nodes before it were visited, in order
  bool behind_ = false;             // a node that was passed may have edges that an edit moves
  std::vector<NodeId> back_edges_;  // visited nodes with inputs that follow them
  std::vector<Edit> edits_;
  IndexedVector<NodeId, int> edit_of_;  // into edits_, -1 for none; empty before the first edit
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_REWRITER_H_
