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

int GuardSet::Number(Literals literals) {
  const auto [found, is_new] = numbers_.try_emplace(literals, static_cast<int>(literals_.size()));
  if (is_new) literals_.push_back(std::move(literals));
  return found->second;
}

bool GuardSet::Implies(int a, int b) const {
  return b == kAlways || std::includes(Of(a).begin(), Of(a).end(), Of(b).begin(), Of(b).end());
}

int GuardSet::And(int a, int b) {
  if (Implies(a, b)) return a;
  if (Implies(b, a)) return b;
  Literals both;
  std::set_union(Of(a).begin(), Of(a).end(), Of(b).begin(), Of(b).end(), std::back_inserter(both));
  const int guard = Number(std::move(both));
  made_.try_emplace(guard, a, b);
  return guard;
}

int GuardSet::With(int guard, Endpoint predicate, bool value) {
  const auto [found, is_new] = predicates_.try_emplace(predicate, next_literal_);
  if (is_new) next_literal_ += 2;
  Literals more = Of(guard);
  const int literal = found->second + (value ? 1 : 0);
  const auto at = std::lower_bound(more.begin(), more.end(), literal);
  if (at == more.end() || *at != literal) more.insert(at, literal);
  return Number(std::move(more));
}

int GuardSet::Fact(NodeId node) {
  const auto [found, is_new] = facts_.try_emplace(node, next_literal_);
  if (is_new) next_literal_ += 2;
  return Number({found->second});
}

int GuardSet::Or(std::vector<int> guards) {
  const auto join = [&](int a, int b) -> int {
    if (Implies(a, b)) return b;
    if (Implies(b, a)) return a;
    Literals difference;
    std::set_symmetric_difference(Of(a).begin(), Of(a).end(), Of(b).begin(), Of(b).end(),
                                  std::back_inserter(difference));
    if (difference.size() != 2 || difference[0] / 2 != difference[1] / 2) return -1;
    Literals common;
    std::set_intersection(Of(a).begin(), Of(a).end(), Of(b).begin(), Of(b).end(), std::back_inserter(common));
    return Number(std::move(common));
  };
  while (guards.size() > 1) {
    bool joined = false;
    for (size_t i = 0; i < guards.size() && !joined; ++i) {
      for (size_t j = i + 1; j < guards.size() && !joined; ++j) {
        const int both = join(guards[i], guards[j]);
        if (both < 0) continue;
        guards[i] = both;
        guards.erase(guards.begin() + static_cast<std::ptrdiff_t>(j));
        joined = true;
      }
    }
    if (!joined) return -1;
  }
  return guards.empty() ? kAlways : guards[0];
}

std::pair<bool, bool> GuardSet::OneMore(int guard, int base) const {
  if (!Implies(guard, base) || Of(guard).size() != Of(base).size() + 1) return {false, false};
  Literals more;
  std::set_difference(Of(guard).begin(), Of(guard).end(), Of(base).begin(), Of(base).end(), std::back_inserter(more));
  return {true, more[0] % 2 != 0};
}

std::pair<int, int> GuardSet::Parts(int guard) const {
  const auto found = made_.find(guard);
  return found == made_.end() ? std::pair(-1, -1) : found->second;
}

Endpoint PredicateOf(const StepGraph& step, const StepNode& switch_node) {
  Endpoint predicate = switch_node.inputs[1];
  for (;;) {
    const StepNode& from = step.node(predicate.node);
    if (!from.is_op("Identity") && FlowOf(from) != Flow::kLoopCond) return predicate;
    if (IsRef(step.TypeOf(from.inputs[0]))) return predicate;  // a variable may have changed between two reads
    predicate = from.inputs[0];
  }
}

int StepGuards::Of(const StepGraph& step, Endpoint value) {
  const StepNode& from = step.node(value.node);
  if (from.kind != StepNode::Kind::kOp) return kAlways;
  const Flow flow = FlowOf(from);
  const int guard = node[static_cast<size_t>(value.node)];
  if (flow == Flow::kSwitch) return set.With(guard, PredicateOf(step, from), value.index == 1);
  return flow == Flow::kExit ? exit[static_cast<size_t>(value.node)] : guard;
}

namespace {

/// Walks the step in order with a belief about which loops are structured, then checks the belief.
class GuardFinder {
 public:
  explicit GuardFinder(const StepGraph& step) : step_(step) {
    guards_.structured.assign(std::max<size_t>(step.frames.size(), 1), true);
    for (const StepNode& node : step.nodes) {
      const auto back = [&](const Endpoint& input) { return graph::IsBackEdge(step, node, input); };
      const auto returning = std::count_if(node.inputs.begin(), node.inputs.end(), back);
      if (returning == 0) continue;
      if (returning != 1 || node.inputs.size() != 2) guards_.structured[static_cast<size_t>(node.frame)] = false;
    }
  }

  StepGuards Run() {
    do Walk();
    while (!BeliefHolds());
    return std::move(guards_);
  }

 private:
  bool Structured(const StepNode& node) const { return guards_.structured[static_cast<size_t>(node.frame)]; }

  void Walk() {
    guards_.node.assign(step_.nodes.size(), kAlways);
    guards_.exit.assign(step_.nodes.size(), kAlways);
    guards_.base.assign(guards_.structured.size(), -1);
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      const Flow flow = FlowOf(node);
      guards_.any = guards_.any || flow != Flow::kPlain;
      guards_.node[i] = flow == Flow::kMerge     ? OfMerge(static_cast<NodeId>(i), node)
                        : flow == Flow::kTrigger ? std::max(guards_.base[static_cast<size_t>(node.frame)], kAlways)
                                                 : OfInputs(node);
      if (flow == Flow::kEnter && !IsConstantEnter(node)) Widen(node.frame, guards_.node[i]);
      if (flow == Flow::kExit) guards_.exit[i] = OfExit(static_cast<NodeId>(i), node);
    }
    for (int& base : guards_.base) base = std::max(base, kAlways);
  }

  static bool IsConstantEnter(const StepNode& node) {
    Result<bool> constant = node.source->attrs().Bool("is_constant");
    return constant.ok() && *constant;
  }

  int OfInputs(const StepNode& node) {
    int guard = kAlways;
    for (const Endpoint& input : node.inputs) guard = guards_.set.And(guard, guards_.Of(step_, input));
    for (const NodeId control : node.control_inputs) {
      const StepNode& from = step_.node(control);
      if (from.kind != StepNode::Kind::kOp) continue;
      const bool exit = FlowOf(from) == Flow::kExit;
      guard = guards_.set.And(guard, (exit ? guards_.exit : guards_.node)[static_cast<size_t>(control)]);
    }
    return guard;
  }

  int OfMerge(NodeId id, const StepNode& node) {
    std::vector<int> inputs;
    bool loops = false;
    for (const Endpoint& input : node.inputs) {
      const bool back = graph::IsBackEdge(step_, node, input);
      loops = loops || back;
      if (!back) inputs.push_back(guards_.Of(step_, input));
    }
    const int either = loops && !Structured(node) ? -1 : guards_.set.Or(std::move(inputs));
    return either < 0 ? guards_.set.Fact(id) : either;
  }

  int OfExit(NodeId id, const StepNode& node) {
    return Structured(node) ? std::max(guards_.base[static_cast<size_t>(node.frame)], kAlways) : guards_.set.Fact(id);
  }

  /// What all Enter nodes of the frame's variables have in common, as far as one implies the other.
  void Widen(int frame, int guard) {
    int& base = guards_.base[static_cast<size_t>(frame)];
    if (base < 0 || guards_.set.Implies(base, guard)) {
      base = guard;
    } else if (!guards_.set.Implies(guard, base)) {
      base = kAlways;
    }
  }

  bool BeliefHolds() {
    std::vector<int> goes_on(guards_.structured.size(), -1);
    std::vector<int> leaves(guards_.structured.size(), -1);
    std::vector<bool> doubt(guards_.structured.size(), false);
    const auto same = [&](std::vector<int>& of, int frame, int guard) {
      int& known = of[static_cast<size_t>(frame)];
      if (known < 0) known = guard;
      if (known != guard) doubt[static_cast<size_t>(frame)] = true;
    };
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      const Flow flow = FlowOf(node);
      const auto frame = static_cast<size_t>(node.frame);
      if (flow == Flow::kNextIteration) same(goes_on, node.frame, guards_.node[i]);
      if (flow == Flow::kExit) same(leaves, node.frame, guards_.node[i]);
      if (flow == Flow::kEnter && !IsConstantEnter(node) && guards_.node[i] != guards_.base[frame]) doubt[frame] = true;
      if (flow == Flow::kEnter && !guards_.set.Implies(guards_.base[frame], guards_.node[i])) doubt[frame] = true;
    }
    bool holds = true;
    for (size_t f = 1; f < guards_.structured.size(); ++f) {
      if (!guards_.structured[f]) continue;
      if (goes_on[f] >= 0) {
        const auto [one, value] = guards_.set.OneMore(goes_on[f], guards_.base[f]);
        doubt[f] = doubt[f] || !one;
        if (leaves[f] >= 0) {
          const auto [other, opposite] = guards_.set.OneMore(leaves[f], guards_.base[f]);
          doubt[f] =
              doubt[f] || !other || opposite == value || guards_.set.Or({goes_on[f], leaves[f]}) != guards_.base[f];
        }
      } else {
        doubt[f] = doubt[f] || (leaves[f] >= 0 && leaves[f] != guards_.base[f]);
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

StepGuards FindGuards(const StepGraph& step) { return GuardFinder(step).Run(); }

}  // namespace weir::plan
