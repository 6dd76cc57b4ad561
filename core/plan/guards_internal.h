// Guards: the condition under which each node of a step runs, derived statically from Switch nodes of v1 control flow.
#ifndef WEIR_CORE_PLAN_GUARDS_INTERNAL_H_
#define WEIR_CORE_PLAN_GUARDS_INTERNAL_H_

#include <compare>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/graph/step_graph.h"
#include "core/plan/plan.h"

namespace weir::plan {

/// A condition that only the run knows, besides predicates.
struct RunCondition {
  enum class Kind : uint8_t {
    kLive,      // the output of node `id`, a Merge, an Exit or a Recv, is live
    kReturns,   // one of several NextIteration nodes gives the loop variable of Merge `id` a live value
    kKept,      // a copy of the above, while the guards of other variables are overwritten
    kIterates,  // the loop of frame `id` runs another iteration
  };
  Kind kind = Kind::kLive;
  int id = -1;
  auto operator<=>(const RunCondition&) const = default;
};

/// A predicate of Switch nodes, or a RunCondition.
using Condition = std::variant<graph::Endpoint, RunCondition>;
using ConditionId = Id<struct ConditionTag>;

/// A condition and the outcome that is wanted of it; a RunCondition has one outcome, true.
struct Literal {
  ConditionId condition;
  bool outcome = true;
  auto operator<=>(const Literal&) const = default;
};

/// Interned conjunctions of literals.
class GuardSet {
 public:
  GuardSet() { Number({}); }
  GuardId And(GuardId a, GuardId b);
  /// `guard` and the outcome of a predicate.
  GuardId With(GuardId guard, graph::Endpoint predicate, bool outcome);
  GuardId Of(RunCondition condition) { return Number({{NumberOf(condition), true}}); }
  /// The guard of a value that is live if one of `guards` holds; none if that is not a conjunction.
  GuardId Or(std::vector<GuardId> guards);
  /// True if `a` implies `b`.
  bool Implies(GuardId a, GuardId b) const;
  /// The outcome of the literal that `guard` has in addition to `base`, if that is exactly one.
  std::optional<bool> ExtraOutcome(GuardId guard, GuardId base) const;
  /// The two guards from which And made this one; none for other guards.
  std::pair<GuardId, GuardId> Parts(GuardId guard) const;
  size_t size() const { return literals_.size(); }

 private:
  using Literals = std::vector<Literal>;  // sorted
  GuardId Number(Literals literals);
  ConditionId NumberOf(const Condition& condition);
  GuardId Join(GuardId a, GuardId b);
  const Literals& In(GuardId guard) const { return literals_[guard]; }

  std::map<Literals, GuardId> numbers_;
  IndexedVector<GuardId, Literals> literals_;
  std::map<GuardId, std::pair<GuardId, GuardId>> made_;  // the two operands of And
  std::map<Condition, ConditionId> conditions_;
};

/// Guards of all nodes of a step.
struct StepGuards {
  GuardSet set;
  IndexedVector<graph::NodeId, GuardId> node;  // when the node runs; for an Exit and a Send: when its input is live
  /// For an Exit and a Recv: when the output is live; for an Exit in the frame around the loop.
  IndexedVector<graph::NodeId, GuardId> outcome;
  /// By frame: a single predicate ends the loop, and all its variables are live together. Otherwise the liveness of
  /// Merge and Exit nodes is tracked at run time.
  IndexedVector<FrameId, bool> structured;
  /// By frame: the common guard of the Enter nodes of all loop variables.
  IndexedVector<FrameId, GuardId> base;
  bool any = false;  // the step has control flow

  /// When a value is live for its consumers.
  GuardId Of(const graph::StepGraph& step, graph::Endpoint value);
};

StepGuards FindGuards(const graph::StepGraph& step);

/// The endpoint of the predicate, behind Identity and LoopCond.
graph::Endpoint PredicateOf(const graph::StepGraph& step, const graph::StepNode& switch_node);

}  // namespace weir::plan

#endif  // WEIR_CORE_PLAN_GUARDS_INTERNAL_H_
