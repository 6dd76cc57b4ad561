#include "core/place/constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/errors.h"
#include "core/place/bystanders.h"
#include "core/place/errors.h"
#include "core/place/requests.h"

namespace weir::place {
namespace {

using device::DeviceName;
using graph::Endpoint;
using graph::StepGraph;
using graph::StepNode;

/// Completes `strong` with parts of `weak`, unless they name different types.
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

enum class JoinKind { kEdge, kLoop, kClass };

const char* WhyJoined(JoinKind join) { return join == JoinKind::kLoop ? ". The nodes of a loop share a device" : ""; }

class Constrainer {
 public:
  /// Nodes from `inside` on are bystanders: their requests are honoured only as long as the step can still be placed.
  Constrainer(const PlaceOptions& options, const StepGraph& step, size_t inside, Support& support, Requests asked)
      : options_(options),
        step_(step),
        inside_(static_cast<int>(inside)),
        support_(support),
        asked_(std::move(asked)),
        refusal_{options, step, support} {}

  Result<Constraints> Run() {
    if (TakeOnlyDevice()) return std::move(result_);
    WEIR_TRY(AddNodes());
    WEIR_TRY(JoinAll());
    if (step_.nodes.end_index() > inside_) {
      bystanders_ = true;
      WEIR_TRY(JoinAll());
    }
    MakeGroups();
    for (Group& group : result_.groups) WEIR_TRY(FindCandidates(group));
    return std::move(result_);
  }

 private:
  /// A device request and the node that made it.
  struct Request {
    DeviceName spec;
    int node = -1;
  };
  /// The state of a set of joined nodes, stored at its root.
  struct Root {
    DeviceMask mask = 0;
    int request = -1;  // index into requests_
    int state = -1;    // request of a node that creates state: index into requests_
    int fixed = -1;    // the device of state placed by an earlier step
    Status conflict;   // between requests; the request of a state may override it
  };

  const StepNode& NodeAt(int i) const { return step_.nodes[i]; }
  Root& RootOf(int i) { return roots_[i]; }

  int Find(int i) {
    while (parent_[i] != i) {
      int& p = parent_[i];
      p = parent_[p];
      i = p;
    }
    return i;
  }

  /// Makes all nodes one group if there is one device, all can run there and none asks for another. Groups are then of
  /// interest to a full explanation only.
  bool TakeOnlyDevice() {
    if (support_.devices().all().size() != 1 || options_.explain == PlaceOptions::Explain::kAll) return false;
    if (options_.placed != nullptr && !options_.placed->empty()) return false;
    Group all;
    all.mask = support_.All();
    all.candidates = support_.Allowed(all.mask, DeviceName());
    if (all.candidates.empty()) return false;
    IndexedVector<graph::NodeId, GroupId> group_of(step_.nodes.size(), -1);
    for (const int i : step_.nodes.indices()) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      if (!asked_.For(*node.source).empty() || !support_.Has(support_.Of(*node.source), 0)) return false;
      all.members.push_back(i);
      group_of[i] = 0;
    }
    if (!all.members.empty()) result_.groups.push_back(std::move(all));
    result_.group_of = std::move(group_of);
    return true;
  }

  Status AddNodes() {
    parent_.resize(step_.nodes.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    roots_.resize(step_.nodes.size());
    for (const int i : step_.nodes.indices()) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      roots_[i].mask = support_.Of(*node.source);
      if (options_.placed != nullptr) {
        const auto placed = options_.placed->find(node.source->id());
        if (placed != options_.placed->end()) roots_[i].fixed = placed->second;
      }
      const std::string_view asked = asked_.For(*node.source);
      if (asked.empty()) continue;
      if (i < inside_) WEIR_TRY(asked_.CheckPins(*node.source));
      Result<DeviceName> spec = ParseRequest(asked, *node.source);
      if (!spec.ok()) {
        if (i >= inside_) continue;
        return spec.status();
      }
      requests_.push_back({asked_.Resolve(std::move(*spec), support_, roots_[i].mask), i});
      (MakesState(node) ? roots_[i].state : roots_[i].request) = static_cast<int>(requests_.size()) - 1;
    }
    return Status();
  }

  Status JoinAll() {
    WEIR_TRY(JoinEdges());
    WEIR_TRY(JoinLoops());
    return JoinClasses();
  }

  Status JoinEdges() {
    for (const int i : step_.nodes.indices()) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp || node.source->op().traits.handles_from_anywhere) continue;
      const std::vector<DType>& taken = node.source->signature().inputs;
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        const Endpoint& input = node.inputs[k];
        if (input.node < 0 || NodeAt(input.node).kind != StepNode::Kind::kOp) continue;
        if (!TiesToProducer(step_.TypeOf(input))) continue;
        const bool asks = !asked_.For(*node.source).empty();
        if (!TiesToProducer(step_.TypeOf(input), taken[k], asks)) continue;
        WEIR_TRY(Unite(input.node, i, JoinKind::kEdge));
      }
    }
    return Status();
  }

  Status JoinLoops() {
    std::map<graph::FrameId, std::vector<int>> loops;  // nodes by outermost frame
    for (const int i : step_.nodes.indices()) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp || node.frame <= graph::kStepFrame) continue;
      loops[OutermostFrame(step_, node)].push_back(i);
    }
    for (const auto& [frame, nodes] : loops) {
      const DeviceMask wanted = DevicesOfLoop(nodes);
      int first = -1;
      for (const int i : nodes) {
        if (support_.And(RootOf(Find(i)).mask, wanted) != wanted) {
          if (!bystanders_ && i < inside_ && first >= 0) result_.splits.push_back({first, i});
        } else if (first < 0) {
          first = i;
        } else {
          WEIR_TRY(Unite(first, i, JoinKind::kLoop));
        }
      }
    }
    return Status();
  }

  /// The devices with kernels for all nodes, and those that lack at most one kernel in eight, or one; if every device
  /// lacks more, those that lack fewest.
  DeviceMask DevicesOfLoop(const std::vector<int>& nodes) {
    const size_t devices = support_.devices().all().size();
    std::vector<size_t> lacking(devices, 0);
    for (const int i : nodes) {
      const DeviceMask mask = RootOf(Find(i)).mask;
      for (size_t d = 0; d < devices; ++d) lacking[d] += support_.Has(mask, static_cast<int>(d)) ? 0 : 1;
    }
    const size_t least = *std::min_element(lacking.begin(), lacking.end());
    const size_t most = std::max({least, nodes.size() / 8, size_t{1}});
    DeviceMask wanted = support_.All();
    for (size_t d = 0; d < devices; ++d) {
      if (lacking[d] > most) wanted = support_.Without(wanted, static_cast<int>(d));
    }
    return wanted;
  }

  Status JoinClasses() {
    std::unordered_map<std::string_view, int> by_name;
    std::map<std::string, int, std::less<>> strangers;  // names of nodes that the step does not have
    for (const int i : step_.nodes.indices()) {
      const StepNode& node = step_.nodes[i];
      if (node.kind != StepNode::Kind::kOp) continue;
      const std::vector<std::string_view> names = ColocatedWith(*node.source);
      if (!names.empty() && by_name.empty()) {
        for (const int k : step_.nodes.indices()) {
          if (step_.nodes[k].kind == StepNode::Kind::kOp) by_name.emplace(step_.nodes[k].name(), k);
        }
      }
      for (const std::string_view target : names) {
        const auto found = by_name.find(target);
        const int other = found != by_name.end() ? found->second : strangers.emplace(target, i).first->second;
        WEIR_TRY(Unite(other, i, JoinKind::kClass));
      }
    }
    return Status();
  }

  Status Unite(int a, int b, JoinKind join) {
    if ((std::max(a, b) >= inside_) != bystanders_) return Status();
    const int from = std::max(Find(a), Find(b));
    const int to = std::min(Find(a), Find(b));
    if (from == to) return Status();
    Root merged = RootOf(to);
    const size_t notes = result_.notes.size();
    const Result<bool> joined = Merge(merged, RootOf(from), a, b, join);
    if (bystanders_ && !(joined.ok() && *joined && CanBePlaced(merged))) {
      result_.notes.resize(notes);
      return Status();
    }
    if (!joined.ok() || !*joined) return joined.status();
    RootOf(to) = std::move(merged);
    parent_[from] = to;
    return Status();
  }

  /// False if soft placement separates the two.
  Result<bool> Merge(Root& kept, const Root& added, int a, int b, JoinKind join) {
    const bool soft = join == JoinKind::kClass && options_.allow_soft_placement;
    const DeviceMask both = support_.And(kept.mask, added.mask);
    if (support_.Empty(both)) {
      if (soft && !support_.Empty(kept.mask) && !support_.Empty(added.mask)) return Apart(a, b, "no device runs both");
      return CannotColocate(refusal_, b, a, WhyJoined(join));
    }
    kept.mask = both;
    if (kept.fixed >= 0 && added.fixed >= 0 && kept.fixed != added.fixed) {
      if (soft) return Apart(a, b, "their states live on different devices");
      return StatesApart(NameOf(kept.fixed), NameOf(added.fixed), a, b, join);
    }
    kept.fixed = std::max(kept.fixed, added.fixed);
    if (kept.fixed >= 0 && soft && !support_.Has(both, kept.fixed)) {
      return Apart(a, b, fmt::format("state lives on {}, which does not run both", NameOf(kept.fixed)));
    }
    if (kept.fixed >= 0 && bystanders_) return true;
    WEIR_ASSIGN(const bool together, MergeStates(kept, added, a, b, join));
    if (!together) return false;
    MergeRequests(kept, added, join);
    if (kept.conflict.ok()) kept.conflict = added.conflict;
    return true;
  }

  bool Apart(int a, int b, const std::string& why) {
    result_.notes.push_back(
        fmt::format("'{}' is not colocated with '{}': {}", NodeAt(b).name(), NodeAt(a).name(), why));
    return false;
  }

  Status StatesApart(const std::string& first, const std::string& second, int a, int b, JoinKind join) const {
    if (join == JoinKind::kEdge) {
      return graph::AtNode(
          InvalidArgument("Cannot place the graph because a reference or resource edge connects colocation groups with "
                          "incompatible assigned devices: {} vs {}. The edge src node is {}, and the dst node is {}.",
                          first, second, NodeAt(a).name(), NodeAt(b).name()),
          *NodeAt(b).source);
    }
    return CannotMerge(InvalidArgument("their states live on '{}' and '{}' since earlier runs", second, first), b, a,
                       join);
  }

  const Request& RequestAt(int r) const { return requests_[r]; }

  /// False if soft placement separates the two.
  Result<bool> MergeStates(Root& kept, const Root& added, int a, int b, JoinKind join) {
    if (added.state < 0) return true;
    if (kept.state < 0) {
      kept.state = added.state;
      return true;
    }
    const Request& first = RequestAt(kept.state);
    const Request& second = RequestAt(added.state);
    const bool soft = options_.allow_soft_placement;
    const bool agree = device::MergeNames(second.spec, first.spec, false).ok();
    if (soft && !agree && join == JoinKind::kClass) return Apart(a, b, "their states ask for different devices");
    Result<DeviceName> merged = device::MergeNames(second.spec, first.spec, soft);
    if (!merged.ok()) {
      if (join == JoinKind::kClass) return CannotMerge(merged.status(), second.node, first.node, join);
      return graph::AtNode(
          InvalidArgument("Cannot place the graph because a reference or resource edge connects colocation groups with "
                          "incompatible resource devices: {} vs {}. The edge src node is {}, and the dst node is {}.",
                          first.spec.ToString(), second.spec.ToString(), NodeAt(a).name(), NodeAt(b).name()),
          *NodeAt(b).source);
    }
    if (!agree) NoteDropped(first, second, join);
    requests_.push_back({std::move(*merged), first.node});
    kept.state = static_cast<int>(requests_.size()) - 1;
    return true;
  }

  void MergeRequests(Root& kept, const Root& added, JoinKind join) {
    if (added.request < 0) return;
    if (kept.request < 0) {
      kept.request = added.request;
      return;
    }
    const Request& first = RequestAt(kept.request);
    const Request& second = RequestAt(added.request);
    Result<DeviceName> merged = device::MergeNames(second.spec, first.spec, options_.allow_soft_placement);
    if (!merged.ok()) {
      if (kept.conflict.ok()) kept.conflict = CannotMerge(merged.status(), second.node, first.node, join);
      return;
    }
    if (!device::MergeNames(first.spec, second.spec, false).ok()) NoteDropped(first, second, join);
    const int node = *merged == second.spec && *merged != first.spec ? second.node : first.node;
    requests_.push_back({std::move(*merged), node});
    kept.request = static_cast<int>(requests_.size()) - 1;
  }

  void NoteDropped(const Request& first, const Request& second, JoinKind join) {
    result_.notes.push_back(
        fmt::format("{}, in one group with it {}: neither is kept{}", Asking(first), Asking(second), WhyJoined(join)));
  }

  /// "'a' asks for /device:CPU:1"
  std::string Asking(const Request& request) const {
    const Result<DeviceName> own = device::ParseDeviceName(asked_.For(*NodeAt(request.node).source));
    return fmt::format("'{}'{} for {}", NodeAt(request.node).name(),
                       own.ok() && *own == request.spec ? " asks" : " and its group ask", request.spec.ToString());
  }

  /// As in TensorFlow, the node that requests the colocation comes first.
  Status CannotMerge(const Status& why, int later, int earlier, JoinKind join) const {
    return graph::AtNode(
        why.Prepend(fmt::format("Cannot colocate nodes {{{{colocation_node {}}}}} and "
                                "{{{{colocation_node {}}}}}: ",
                                NodeAt(later).name(), NodeAt(earlier).name()))
            .Append(WhyJoined(join) + asked_.PinText(*NodeAt(later).source) + asked_.PinText(*NodeAt(earlier).source)),
        *NodeAt(later).source);
  }

  void MakeGroups() {
    result_.group_of.assign(PositionOf(inside_), -1);
    IndexedVector<int, GroupId> group_of_root(PositionOf(inside_), -1);  // roots of groups with step nodes are such
    size_t roots = 0;
    for (int i = 0; i < inside_; ++i) roots += parent_[i] == i ? 1 : 0;
    result_.groups.reserve(roots);
    for (int i = 0; i < inside_; ++i) {
      if (step_.nodes[i].kind != StepNode::Kind::kOp) continue;
      GroupId& number = group_of_root[Find(i)];
      if (number < 0) {
        number = result_.groups.Add({});
        const Root& root = RootOf(Find(i));
        result_.groups[number].mask = root.mask;
        result_.groups[number].fixed = root.fixed;
      }
      result_.groups[number].members.push_back(i);
      result_.group_of[i] = number;
    }
  }

  /// The merged request of a group and the node that made it (-1: none).
  Request RequestOf(const Root& root) const {
    if (root.state < 0) return root.request < 0 ? Request() : RequestAt(root.request);
    Request state = RequestAt(root.state);
    if (root.request >= 0) state.spec = Override(state.spec, RequestAt(root.request).spec);
    return state;
  }

  /// A request by state that names a type overrides all others.
  bool Contradicts(const Root& root) const {
    return !root.conflict.ok() && !(root.state >= 0 && RequestAt(root.state).spec.type);
  }

  bool CanBePlaced(const Root& root) const {
    if (Contradicts(root)) return false;
    const DeviceName spec = RequestOf(root).spec;
    const bool met = !support_.Allowed(root.mask, spec).empty();
    const bool soft = !met && options_.allow_soft_placement;
    if (root.fixed < 0) return met || (soft && !SoftCandidates(support_, root.mask, spec).devices.empty());
    return support_.Has(root.mask, root.fixed) && (soft || device::Matches(spec, InfoOf(root.fixed).name));
  }

  Status FindCandidates(Group& group) {
    const Root& root = RootOf(Find(group.members.front()));
    const Request request = RequestOf(root);
    group.asked = request.node;
    group.requested = request.spec;
    if (Contradicts(root)) return root.conflict;
    group.candidates = support_.Allowed(group.mask, group.requested);
    if (group.fixed >= 0) return StayPut(group);
    const DeviceMask mask = group.mask;
    const std::vector<int> matching = group.candidates;
    DropRefusing(group);
    if (group.candidates.empty() && options_.allow_soft_placement) Soften(group);
    if (group.candidates.empty() && (group.asked < 0 || options_.allow_soft_placement)) {
      group.candidates = matching;  // if all kernels reject the node, the run reports why
      group.mask = mask;
    }
    if (group.candidates.empty()) {
      if (!group.refused.empty()) AskAll(group);
      const std::string pin = group.asked < 0 ? std::string() : asked_.PinText(*NodeAt(group.asked).source);
      return CannotAssign(refusal_, group).Append(pin);
    }
    NoteSoftened(group);
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

  /// Existing state does not move, regardless of requests.
  Status StayPut(Group& group) {
    if (!support_.Has(group.mask, group.fixed)) return CannotMove(refusal_, group);
    const bool other =
        group.asked >= 0 && group.asked < inside_ && !device::Matches(group.requested, InfoOf(group.fixed).name);
    if (other && !options_.allow_soft_placement) {
      return group.candidates.empty() ? CannotAssign(refusal_, group) : CannotMove(refusal_, group);
    }
    if (other && !group.candidates.empty()) {
      result_.notes.push_back(fmt::format("'{}' asks for {}; its state stays on {}", NodeAt(group.asked).name(),
                                          group.requested.ToString(), NameOf(group.fixed)));
    }
    group.candidates = {group.fixed};
    return Status();
  }

  const device::DeviceInfo& InfoOf(int device) const { return support_.devices().all()[device]->info(); }
  std::string NameOf(int device) const { return InfoOf(device).name.ToString(); }

  /// Removes candidate devices whose kernels reject the operands of a member. Kernel records cover types only, so
  /// `supports` is called.
  void DropRefusing(Group& group) {
    if (!support_.MayRefuse()) return;  // the run reports the error
    std::erase_if(group.candidates, [&](int device) {
      for (const int i : group.members) {
        if (i >= inside_) break;
        std::string why = support_.Refusal(step_, NodeAt(i), device);
        if (why.empty()) continue;
        group.refused.emplace(device, fmt::format("'{}' cannot run there: {}", NodeAt(i).name(), why));
        group.mask = support_.Without(group.mask, device);
        return true;
      }
      return false;
    });
  }

  /// Excludes rejecting devices from the advice in the error message.
  void AskAll(Group& group) {
    Group all = group;
    all.candidates = support_.Allowed(group.mask, DeviceName());
    DropRefusing(all);
    group.mask = all.mask;
  }

  /// Sets the candidates to the nearest devices to the request that do not reject the operands.
  void Soften(Group& group) {
    Softened softened{};
    do {
      softened = SoftCandidates(support_, group.mask, group.requested);
      group.candidates = softened.devices;
      DropRefusing(group);
    } while (group.candidates.empty() && !softened.devices.empty());
    if (!group.candidates.empty()) group.rule = softened.rule;
  }

  void NoteSoftened(const Group& group) {
    if (group.rule == SoftRule::kNone) return;
    if (std::any_of(group.members.begin(), group.members.end(), [&](int i) { return MakesState(NodeAt(i)); })) {
      result_.notes.push_back(fmt::format("the state of '{}' cannot live on {}; it moves to {}",
                                          NodeAt(group.asked).name(), group.requested.ToString(),
                                          NameOf(group.candidates.front())));
    }
  }

  const PlaceOptions& options_;
  const StepGraph& step_;
  const int inside_;
  bool bystanders_ = false;  // whether bystanders are being joined
  Support& support_;
  Requests asked_;
  Refusal refusal_;
  std::vector<int> parent_;
  std::vector<Root> roots_;
  std::vector<Request> requests_;
  Constraints result_;
};

}  // namespace

Result<Constraints> Constrain(const PlaceOptions& options, const StepGraph& step, Support& support) {
  WEIR_ASSIGN(Requests asked, Requests::Make(options));
  std::optional<StepGraph> wide;
  if (support.devices().all().size() > 1) wide = WithBystanders(step, options.placed);
  return Constrainer(options, wide ? *wide : step, step.nodes.size(), support, std::move(asked)).Run();
}

}  // namespace weir::place
