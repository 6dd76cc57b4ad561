// When a node of a step runs: what Switch nodes make of v1 control flow, found out before anything runs.
#ifndef WEIR_CORE_PLAN_GUARDS_INTERNAL_H_
#define WEIR_CORE_PLAN_GUARDS_INTERNAL_H_

#include <map>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/step_graph.h"

namespace weir::plan {

/// Guard 0: nothing stands in the way.
inline constexpr int kAlways = 0;

/// Conjunctions of literals, each known by a small number. A literal is a predicate's outcome, or a fact that is only
/// known while running (which input of a Merge was alive).
class GuardSet {
 public:
  using Literals = std::vector<int>;  // sorted

  GuardSet() { Number({}); }
  int And(int a, int b);
  /// `guard` and the outcome `value` of a predicate.
  int With(int guard, graph::Endpoint predicate, bool value);
  /// A fact of its own, about a node.
  int Fact(graph::NodeId node);
  /// The guard of something that is alive when one of them is; -1 when no conjunction says that.
  int Or(std::vector<int> guards);
  /// Whoever runs under `a` also runs under `b`.
  bool Implies(int a, int b) const;
  /// The guard without one literal whose outcome is `value`, if there is exactly one that `base` lacks: (found, value).
  std::pair<bool, bool> OneMore(int guard, int base) const;
  /// Two guards whose conjunction it is; {-1, -1} when it was not made so.
  std::pair<int, int> Parts(int guard) const;
  size_t size() const { return literals_.size(); }

 private:
  int Number(Literals literals);
  const Literals& Of(int guard) const { return literals_[static_cast<size_t>(guard)]; }
  std::map<Literals, int> numbers_;
  std::vector<Literals> literals_;           // by guard
  std::map<int, std::pair<int, int>> made_;  // guard -> the two that And joined
  std::map<graph::Endpoint, int> predicates_;
  std::map<graph::NodeId, int> facts_;
  int next_literal_ = 0;
};

/// Guards of all nodes of a step.
struct StepGuards {
  GuardSet set;
  std::vector<int> node;  // when the node itself runs; of an Exit: when its input is alive
  std::vector<int> exit;  // of an Exit: when its output is alive, in the frame around the loop
  /// By frame: one predicate ends the loop, and all its variables live and die together. Else aliveness of Merge and
  /// Exit nodes is a fact kept while running.
  std::vector<bool> structured;
  /// By frame: what the Enter nodes of all loop variables have in common.
  std::vector<int> base;
  bool any = false;  // there is control flow at all

  /// When a value is alive, seen by its consumers.
  int Of(const graph::StepGraph& step, graph::Endpoint value);
};

StepGuards FindGuards(const graph::StepGraph& step);

/// The endpoint that decides, behind Identity and LoopCond.
graph::Endpoint PredicateOf(const graph::StepGraph& step, const graph::StepNode& switch_node);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_GUARDS_INTERNAL_H_
