#include "core/place/constraints.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/place/errors.h"

namespace weir::place {
namespace {

using device::DeviceName;
using graph::Endpoint;
using graph::StepGraph;
using graph::StepNode;

/// Ops whose reference and resource inputs may come from anywhere.
constexpr std::array<std::string_view, 3> kPassThrough = {"PartitionedCall", "StatefulPartitionedCall", "IdentityN"};

bool PassesThrough(const StepNode& node) {
  return std::find(kPassThrough.begin(), kPassThrough.end(), node.source->op().name) != kPassThrough.end();
}

/// Makes state: no inputs, one reference or resource.
bool MakesState(const StepNode& node) {
  return node.inputs.empty() && node.types.size() == 1 && TiesToProducer(node.types[0]);
}

/// Parts that `strong` leaves open are `weak`'s, unless the two name different types.
DeviceName Override(const DeviceName& strong, const DeviceName& weak) {
  DeviceName merged = strong;
  if (!merged.job) merged.job = weak.job;
  if (!merged.replica) merged.replica = weak.replica;
  if (!merged.task) merged.task = weak.task;
  const bool same_type = !strong.type || !weak.type || *strong.type == *weak.type;
  if (!merged.type) merged.type = weak.type;
  if (!merged.id && same_type) merged.id = weak.id;
  return merged;
}

/// Device requests from outside the graph.
class OutsideRequests {
 public:
  static Result<OutsideRequests> Make(const PlaceOptions& options) {
    OutsideRequests requests;
    requests.plan_ = &options.plan;
    requests.keep_graph_devices_ = options.keep_graph_devices;
    for (const auto& [pattern, device] : options.pins) {
      RE2::Options quiet;
      quiet.set_log_errors(false);
      auto regex = std::make_unique<RE2>(pattern, quiet);
      if (!regex->ok()) return InvalidArgument("placement.pin: '{}' is no pattern: {}", pattern, regex->error());
      requests.pins_.emplace_back(std::move(regex), device);
    }
    return requests;
  }

  /// What a pin says, else what the graph says, else what the plan says.
  std::string_view For(const StepNode& node) const {
    std::string_view best;
    size_t longest = 0;
    bool pinned = false;
    for (const auto& [regex, device] : pins_) {
      const re2::StringPiece name(node.name().data(), node.name().size());
      re2::StringPiece match;
      if (!regex->Match(name, 0, name.size(), RE2::UNANCHORED, &match, 1)) continue;
      if (pinned && match.size() <= longest) continue;
      pinned = true;
      longest = match.size();
      best = device;
    }
    if (pinned) return best;
    const std::string_view graph = keep_graph_devices_ ? std::string_view(node.source->device()) : std::string_view();
    if (!graph.empty() || plan_->empty()) return graph;
    const auto planned = plan_->find(std::string(node.name()));
    return planned == plan_->end() ? std::string_view() : std::string_view(planned->second);
  }

 private:
  const std::map<std::string, std::string>* plan_ = nullptr;
  bool keep_graph_devices_ = true;
  std::vector<std::pair<std::unique_ptr<RE2>, std::string>> pins_;
};

enum class Join { kEdge, kLoop, kClass };

class Constrainer {
 public:
  Constrainer(const PlaceOptions& options, const StepGraph& step, Support& support, OutsideRequests outside)
      : options_(options),
        step_(step),
        support_(support),
        outside_(std::move(outside)),
        refusal_{options, step, support} {}

  Result<Constraints> Run() {
    WEIR_TRY(AddNodes());
    WEIR_TRY(JoinEdges());
    WEIR_TRY(JoinLoops());
    WEIR_TRY(JoinClasses());
    MakeGroups();
    for (Group& group : result_.groups) WEIR_TRY(FindCandidates(group));
    return std::move(result_);
  }

 private:
  /// A request with the node that made it.
  struct Request {
    DeviceName spec;
    int node = -1;
  };
  /// What is known of a set of joined nodes, kept at its root.
  struct Root {
    DeviceMask mask = 0;
    int request = -1;  // into requests_
    int state = -1;    // request of a node that makes state, into requests_
    Status conflict;   // between requests that a state's own may override
  };

  const StepNode& NodeAt(int i) const { return step_.nodes[static_cast<size_t>(i)]; }
  Root& RootOf(int i) { return roots_[static_cast<size_t>(i)]; }

  int Find(int i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int& p = parent_[static_cast<size_t>(i)];
      p = parent_[static_cast<size_t>(p)];
      i = p;
    }
    return i;
  }

  Status AddNodes() {
    parent_.resize(step_.nodes.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    roots_.resize(step_.nodes.size());
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      roots_[i].mask = support_.Of(*node.source);
      const std::string_view asked = outside_.For(node);
      if (asked.empty()) continue;
      Result<DeviceName> spec = device::ParseDeviceName(asked);
      if (!spec.ok()) {
        return graph::AtNode(
            InvalidArgument("Malformed device specification '{}' ({})", asked, spec.status().message()), *node.source);
      }
      requests_.push_back({std::move(*spec), static_cast<int>(i)});
      (MakesState(node) ? roots_[i].state : roots_[i].request) = static_cast<int>(requests_.size()) - 1;
    }
    return Status();
  }

  Status JoinEdges() {
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp || PassesThrough(node)) continue;
      for (const Endpoint& input : node.inputs) {
        if (input.node < 0 || NodeAt(input.node).kind != StepNode::Kind::kOp) continue;
        if (TiesToProducer(step_.TypeOf(input))) WEIR_TRY(Unite(input.node, static_cast<int>(i), Join::kEdge));
      }
    }
    return Status();
  }

  Status JoinLoops() {
    std::map<int, int> first;  // by outermost frame
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp || node.frame <= 0) continue;
      int frame = node.frame;
      while (step_.frames[static_cast<size_t>(frame)].parent > 0)
        frame = step_.frames[static_cast<size_t>(frame)].parent;
      WEIR_TRY(Unite(first.emplace(frame, static_cast<int>(i)).first->second, static_cast<int>(i), Join::kLoop));
    }
    return Status();
  }

  Status JoinClasses() {
    std::unordered_map<std::string_view, int> by_name;
    std::map<std::string, int, std::less<>> strangers;  // names that are no node of the step
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      const op::AttrValue* attr = node.source->attrs().Find("_class");
      const auto* names = attr ? attr->get<std::vector<std::string>>() : nullptr;
      if (names == nullptr) continue;
      if (by_name.empty()) {
        for (size_t k = 0; k < step_.nodes.size(); ++k) {
          if (step_.nodes[k].kind == StepNode::Kind::kOp) by_name.emplace(step_.nodes[k].name(), static_cast<int>(k));
        }
      }
      for (const std::string& name : *names) {
        if (!name.starts_with("loc:@")) continue;
        const std::string_view target = std::string_view(name).substr(5);
        const auto found = by_name.find(target);
        const int other =
            found != by_name.end() ? found->second : strangers.emplace(target, static_cast<int>(i)).first->second;
        WEIR_TRY(Unite(other, static_cast<int>(i), Join::kClass));
      }
    }
    return Status();
  }

  Status Unite(int a, int b, Join join) {
    const int from = std::max(Find(a), Find(b));
    const int to = std::min(Find(a), Find(b));
    if (from == to) return Status();
    Root& kept = RootOf(to);
    Root& added = RootOf(from);
    const DeviceMask both = support_.And(kept.mask, added.mask);
    if (support_.Empty(both)) {
      if (join == Join::kClass && options_.allow_soft_placement && !support_.Empty(kept.mask) &&
          !support_.Empty(added.mask)) {
        result_.notes.push_back(
            fmt::format("'{}' is not colocated with '{}': no device runs both", NodeAt(b).name(), NodeAt(a).name()));
        return Status();
      }
      return CannotColocate(refusal_, b, a, join == Join::kLoop ? "The nodes of a loop share a device." : "");
    }
    WEIR_TRY(MergeStates(kept, added, a, b, join));
    MergeRequests(kept, added, b);
    if (kept.conflict.ok()) kept.conflict = added.conflict;
    kept.mask = both;
    parent_[static_cast<size_t>(from)] = to;
    return Status();
  }

  const Request& RequestAt(int r) const { return requests_[static_cast<size_t>(r)]; }

  Status MergeStates(Root& kept, const Root& added, int a, int b, Join join) {
    if (added.state < 0) return Status();
    if (kept.state < 0) {
      kept.state = added.state;
      return Status();
    }
    const Request& first = RequestAt(kept.state);
    const Request& second = RequestAt(added.state);
    Result<DeviceName> merged = device::MergeNames(second.spec, first.spec, options_.allow_soft_placement);
    if (!merged.ok()) {
      if (join == Join::kClass) return CannotMerge(merged.status(), second.node, first.node);
      return graph::AtNode(
          InvalidArgument("Cannot place the graph because a reference or resource edge connects colocation groups with "
                          "incompatible resource devices: {} vs {}. The edge src node is {}, and the dst node is {}.",
                          first.spec.ToString(), second.spec.ToString(), NodeAt(a).name(), NodeAt(b).name()),
          *NodeAt(b).source);
    }
    requests_.push_back({std::move(*merged), first.node});
    kept.state = static_cast<int>(requests_.size()) - 1;
    return Status();
  }

  void MergeRequests(Root& kept, const Root& added, int b) {
    if (added.request < 0) return;
    if (kept.request < 0) {
      kept.request = added.request;
      return;
    }
    const Request& first = RequestAt(kept.request);
    const Request& second = RequestAt(added.request);
    Result<DeviceName> merged = device::MergeNames(second.spec, first.spec, options_.allow_soft_placement);
    if (!merged.ok()) {
      if (kept.conflict.ok()) kept.conflict = CannotMerge(merged.status(), second.node, first.node);
      return;
    }
    if (options_.allow_soft_placement && !device::MergeNames(first.spec, second.spec, false).ok()) {
      result_.notes.push_back(fmt::format("'{}' asks for {}, '{}' in its group for {}: neither is kept",
                                          NodeAt(first.node).name(), first.spec.ToString(), NodeAt(b).name(),
                                          second.spec.ToString()));
    }
    requests_.push_back({std::move(*merged), first.node});
    kept.request = static_cast<int>(requests_.size()) - 1;
  }

  /// TensorFlow names the node first that asks to be beside the other.
  Status CannotMerge(const Status& why, int later, int earlier) const {
    return graph::AtNode(why.Prepend(fmt::format("Cannot colocate nodes {{{{colocation_node {}}}}} and "
                                                 "{{{{colocation_node {}}}}}: ",
                                                 NodeAt(later).name(), NodeAt(earlier).name())),
                         *NodeAt(later).source);
  }

  void MakeGroups() {
    result_.group_of.assign(step_.nodes.size(), -1);
    std::vector<int> group_of_root(step_.nodes.size(), -1);
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      if (step_.nodes[i].kind != StepNode::Kind::kOp) continue;
      int& number = group_of_root[static_cast<size_t>(Find(static_cast<int>(i)))];
      if (number < 0) {
        number = static_cast<int>(result_.groups.size());
        result_.groups.emplace_back().mask = RootOf(Find(static_cast<int>(i))).mask;
      }
      Group& group = result_.groups[static_cast<size_t>(number)];
      group.members.push_back(static_cast<int>(i));
      result_.group_of[i] = number;
      if (options_.placed != nullptr && group.fixed < 0) {
        const auto placed = options_.placed->find(step_.nodes[i].source->id());
        if (placed != options_.placed->end()) group.fixed = placed->second;
      }
    }
  }

  Status FindCandidates(Group& group) {
    const Root& root = RootOf(Find(group.members.front()));
    if (root.state >= 0) {
      const Request& state = RequestAt(root.state);
      group.asked = state.node;
      group.requested = root.request < 0 ? state.spec : Override(state.spec, RequestAt(root.request).spec);
    } else if (root.request >= 0) {
      group.asked = RequestAt(root.request).node;
      group.requested = RequestAt(root.request).spec;
    }
    if (!root.conflict.ok() && !(root.state >= 0 && RequestAt(root.state).spec.type)) return root.conflict;
    if (group.fixed >= 0) {
      group.candidates = {group.fixed};
      if (support_.Has(group.mask, group.fixed)) return Status();
      group.requested = support_.devices().all()[static_cast<size_t>(group.fixed)]->info().name;
      return CannotAssign(refusal_, group);
    }
    group.candidates = Allowed(group, group.requested);
    if (group.candidates.empty() && options_.allow_soft_placement) Soften(group);
    if (group.candidates.empty()) return CannotAssign(refusal_, group);
    if (options_.strict_devices && group.rule == SoftRule::kTypeDropped) {
      const StepNode& node = NodeAt(group.asked);
      return graph::AtNode(
          FailedPrecondition("'{}' asks for {} and would run on {}; strict_devices = true in [placement] "
                             "forbids that",
                             node.name(), group.requested.ToString(), NameOf(group.candidates.front())),
          *node.source);
    }
    return Status();
  }

  std::string NameOf(int device) const { return support_.devices().all()[static_cast<size_t>(device)]->name(); }

  /// Devices that a request allows and that run the group. Opt-in devices have to be asked for by type, or be all there
  /// is.
  std::vector<int> Allowed(const Group& group, const DeviceName& spec) const {
    const auto& all = support_.devices().all();
    const auto opt_in = [](const auto& device) { return (device->info().flags & WEIR_DEVICE_OPT_IN) != 0; };
    const bool any = spec.type.has_value() || std::all_of(all.begin(), all.end(), opt_in);
    std::vector<int> allowed;
    for (size_t d = 0; d < all.size(); ++d) {
      if ((any || !opt_in(all[d])) && support_.Has(group.mask, static_cast<int>(d)) &&
          device::Matches(spec, all[d]->info().name)) {
        allowed.push_back(static_cast<int>(d));
      }
    }
    return allowed;
  }

  /// Gives up the device number, then the type.
  void Soften(Group& group) {
    DeviceName spec = group.requested;
    for (const SoftRule rule : {SoftRule::kIdDropped, SoftRule::kTypeDropped}) {
      if (rule == SoftRule::kTypeDropped) spec.type.reset();
      spec.id.reset();
      group.candidates = Allowed(group, spec);
      if (group.candidates.empty()) continue;
      group.rule = rule;
      if (std::any_of(group.members.begin(), group.members.end(), [&](int i) { return MakesState(NodeAt(i)); })) {
        result_.notes.push_back(fmt::format("the state of '{}' cannot live on {}; it moves to {}",
                                            NodeAt(group.asked).name(), group.requested.ToString(),
                                            NameOf(group.candidates.front())));
      }
      return;
    }
  }

  const PlaceOptions& options_;
  const StepGraph& step_;
  Support& support_;
  OutsideRequests outside_;
  Refusal refusal_;
  std::vector<int> parent_;
  std::vector<Root> roots_;
  std::vector<Request> requests_;
  Constraints result_;
};

}  // namespace

Result<Constraints> Constrain(const PlaceOptions& options, const StepGraph& step, Support& support) {
  WEIR_ASSIGN(OutsideRequests outside, OutsideRequests::Make(options));
  return Constrainer(options, step, support, std::move(outside)).Run();
}

}  // namespace weir::place
