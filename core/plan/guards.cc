#include <algorithm>
#include <iterator>

#include "core/graph/frames.h"
#include "core/plan/guards_internal.h"

namespace weir::plan {

using graph::Endpoint;
using graph::Flow;
using graph::FlowOf;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

GuardId GuardSet::Number(Literals literals) {
  const auto [found, is_new] = numbers_.try_emplace(literals, literals_.end_index());
  if (is_new) literals_.push_back(std::move(literals));
  return found->second;
}

ConditionId GuardSet::NumberOf(const Condition& condition) {
  return conditions_.try_emplace(condition, ConditionId(conditions_.size())).first->second;
}

bool GuardSet::Implies(GuardId a, GuardId b) const {
  return b == kAlways || std::includes(In(a).begin(), In(a).end(), In(b).begin(), In(b).end());
}

GuardId GuardSet::And(GuardId a, GuardId b) {
  if (Implies(a, b)) return a;
  if (Implies(b, a)) return b;
  Literals both;
  std::set_union(In(a).begin(), In(a).end(), In(b).begin(), In(b).end(), std::back_inserter(both));
  const GuardId guard = Number(std::move(both));
  made_.try_emplace(guard, a, b);
  return guard;
}

GuardId GuardSet::With(GuardId guard, Endpoint predicate, bool outcome) {
  const Literal literal{NumberOf(predicate), outcome};
  Literals more = In(guard);
  const auto at = std::lower_bound(more.begin(), more.end(), literal);
  if (at == more.end() || *at != literal) more.insert(at, literal);
  return Number(std::move(more));
}

GuardId GuardSet::Join(GuardId a, GuardId b) {
  if (Implies(a, b)) return b;
  if (Implies(b, a)) return a;
  Literals difference;
  std::set_symmetric_difference(In(a).begin(), In(a).end(), In(b).begin(), In(b).end(), std::back_inserter(difference));
  if (difference.size() != 2 || difference[0].condition != difference[1].condition) return GuardId();
  Literals common;
  std::set_intersection(In(a).begin(), In(a).end(), In(b).begin(), In(b).end(), std::back_inserter(common));
  return Number(std::move(common));
}

GuardId GuardSet::Or(std::vector<GuardId> guards) {
  while (guards.size() > 1) {
    bool joined = false;
    for (size_t i = 0; i < guards.size() && !joined; ++i) {
      for (size_t j = i + 1; j < guards.size() && !joined; ++j) {
        const GuardId both = Join(guards[i], guards[j]);
        if (!both.valid()) continue;
        guards[i] = both;
        guards.erase(guards.begin() + static_cast<std::ptrdiff_t>(j));
        joined = true;
      }
    }
    if (!joined) return GuardId();
  }
  return guards.empty() ? kAlways : guards[0];
}

std::optional<bool> GuardSet::ExtraOutcome(GuardId guard, GuardId base) const {
  if (!Implies(guard, base) || In(guard).size() != In(base).size() + 1) return std::nullopt;
  Literals more;
  std::set_difference(In(guard).begin(), In(guard).end(), In(base).begin(), In(base).end(), std::back_inserter(more));
  return more[0].outcome;
}

std::pair<GuardId, GuardId> GuardSet::Parts(GuardId guard) const {
  const auto found = made_.find(guard);
  return found == made_.end() ? std::pair<GuardId, GuardId>() : found->second;
}

Endpoint PredicateOf(const StepGraph& step, const StepNode& switch_node) {
  Endpoint predicate = switch_node.inputs[1];
  for (;;) {
    const StepNode& from = step.node(predicate.node);
    const bool passes = from.kind == StepNode::Kind::kOp && from.source->op().traits.passes_value;
    if (!passes && FlowOf(from) != Flow::kLoopCond) return predicate;
    const Endpoint input = from.inputs[passes ? PositionOf(predicate.index) : 0];
    if (IsRef(step.TypeOf(input))) return predicate;  // a variable may change between two reads
    predicate = input;
  }
}

namespace {

/// True if the liveness of the output differs from whether the node runs.
bool HasOutcome(Flow flow) { return flow == Flow::kExit || flow == Flow::kRecv; }

}  // namespace

GuardId StepGuards::Of(const StepGraph& step, Endpoint value) {
  const StepNode& from = step.node(value.node);
  if (from.kind != StepNode::Kind::kOp) return kAlways;
  const Flow flow = FlowOf(from);
  const GuardId guard = node[value.node];
  if (flow == Flow::kSwitch) return set.With(guard, PredicateOf(step, from), value.index == 1);
  return HasOutcome(flow) ? outcome[value.node] : guard;
}

namespace {

/// Walks the step in order with assumptions about which loops are structured, then verifies them.
class GuardFinder {
 public:
  explicit GuardFinder(const StepGraph& step) : step_(step) {
    guards_.structured.assign(step.frame_count(), true);
    for (const StepNode& node : step.nodes) {
      const auto back = [&](const Endpoint& input) { return graph::IsBackEdge(step, node, input); };
      const auto returning = std::count_if(node.inputs.begin(), node.inputs.end(), back);
      if (returning == 0) continue;
      if (returning != 1 || node.inputs.size() != 2) guards_.structured[node.frame] = false;
    }
  }

  StepGuards Run() {
    do Walk();
    while (!BeliefHolds());
    return std::move(guards_);
  }

 private:
  bool Structured(const StepNode& node) const { return guards_.structured[node.frame]; }

  /// Of the frame, as far as its Enter nodes were visited.
  GuardId Base(const StepNode& node) const { return std::max(guards_.base[node.frame], kAlways); }
  GuardId Live(NodeId id) { return guards_.set.Of({RunCondition::Kind::kLive, id}); }

  void Walk() {
    guards_.node.assign(step_.nodes.size(), kAlways);
    guards_.outcome.assign(step_.nodes.size(), kAlways);
    guards_.base.assign(guards_.structured.size(), GuardId());
    for (const NodeId i : guards_.node.indices()) {
      const StepNode& node = step_.node(i);
      if (node.kind != StepNode::Kind::kOp) continue;
      const Flow flow = FlowOf(node);
      guards_.any = guards_.any || flow != Flow::kPlain;
      guards_.node[i] = flow == Flow::kMerge ? OfMerge(i, node) : flow == Flow::kTrigger ? Base(node) : OfInputs(node);
      if (flow == Flow::kEnter && !IsConstantEnter(node)) Widen(node.frame, guards_.node[i]);
      if (flow == Flow::kExit) guards_.outcome[i] = Structured(node) ? Base(node) : Live(i);
      if (flow == Flow::kRecv) guards_.outcome[i] = guards_.set.And(guards_.node[i], Live(i));
    }
    for (GuardId& base : guards_.base) base = std::max(base, kAlways);
  }

  static bool IsConstantEnter(const StepNode& node) {
    Result<bool> constant = node.source->attrs().Bool("is_constant");
    return constant.ok() && *constant;
  }

  GuardId OfInputs(const StepNode& node) {
    GuardId guard = kAlways;
    for (const Endpoint& input : node.inputs) guard = guards_.set.And(guard, guards_.Of(step_, input));
    for (const NodeId control : node.control_inputs) {
      const StepNode& from = step_.node(control);
      if (from.kind != StepNode::Kind::kOp) continue;
      const bool outcome = HasOutcome(FlowOf(from));
      guard = guards_.set.And(guard, (outcome ? guards_.outcome : guards_.node)[control]);
    }
    return guard;
  }

  GuardId OfMerge(NodeId id, const StepNode& node) {
    std::vector<GuardId> inputs;
    bool loops = false;
    for (const Endpoint& input : node.inputs) {
      const bool back = graph::IsBackEdge(step_, node, input);
      loops = loops || back;
      if (!back) inputs.push_back(guards_.Of(step_, input));
    }
    const GuardId either = loops && !Structured(node) ? GuardId() : guards_.set.Or(std::move(inputs));
    return either.valid() ? either : Live(id);
  }

  /// Generalises the common guard of all Enter nodes of the frame's variables, if one implies the other.
  void Widen(FrameId frame, GuardId guard) {
    GuardId& base = guards_.base[frame];
    if (!base.valid() || guards_.set.Implies(base, guard)) {
      base = guard;
    } else if (!guards_.set.Implies(guard, base)) {
      base = kAlways;
    }
  }

  bool BeliefHolds() {
    IndexedVector<FrameId, GuardId> goes_on(guards_.structured.size());
    IndexedVector<FrameId, GuardId> leaves(guards_.structured.size());
    IndexedVector<FrameId, bool> doubt(guards_.structured.size(), false);
    const auto same = [&](IndexedVector<FrameId, GuardId>& of, FrameId frame, GuardId guard) {
      GuardId& known = of[frame];
      if (!known.valid()) known = guard;
      if (known != guard) doubt[frame] = true;
    };
    for (const NodeId i : guards_.node.indices()) {
      const StepNode& node = step_.node(i);
      const Flow flow = FlowOf(node);
      const FrameId frame = node.frame;
      if (flow == Flow::kNextIteration) same(goes_on, node.frame, guards_.node[i]);
      if (flow == Flow::kExit) same(leaves, node.frame, guards_.node[i]);
      if (flow == Flow::kEnter && !IsConstantEnter(node) && guards_.node[i] != guards_.base[frame]) doubt[frame] = true;
      if (flow == Flow::kEnter && !guards_.set.Implies(guards_.base[frame], guards_.node[i])) doubt[frame] = true;
    }
    bool holds = true;
    for (const FrameId f : guards_.structured.indices()) {
      if (f == graph::kStepFrame) continue;
      if (!guards_.structured[f]) continue;
      const GuardId base = guards_.base[f];
      if (goes_on[f].valid()) {
        const std::optional<bool> again = guards_.set.ExtraOutcome(goes_on[f], base);
        doubt[f] = doubt[f] || !again;
        if (leaves[f].valid()) {
          const std::optional<bool> end = guards_.set.ExtraOutcome(leaves[f], base);
          doubt[f] = doubt[f] || !end || end == again || guards_.set.Or({goes_on[f], leaves[f]}) != base;
        }
      } else {
        doubt[f] = doubt[f] || (leaves[f].valid() && leaves[f] != base);
      }
      if (!doubt[f]) continue;
      guards_.structured[f] = false;
      holds = false;
    }
    return holds;
  }

  const StepGraph& step_;
  StepGuards guards_;
};

}  // namespace

StepGuards FindGuards(const StepGraph& step) {
  const auto plain = [](const StepNode& node) { return FlowOf(node) == Flow::kPlain; };
  if (std::ranges::all_of(step.nodes, plain)) {
    StepGuards always;
    always.structured.assign(step.frame_count(), true);
    always.base.assign(always.structured.size(), kAlways);
    always.node.assign(step.nodes.size(), kAlways);
    always.outcome.assign(step.nodes.size(), kAlways);
    return always;
  }
  return GuardFinder(step).Run();
}

}  // namespace weir::plan
