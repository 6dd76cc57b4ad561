#include "core/session/partial_run.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/graph/step_graph.h"

namespace weir::session {
namespace {

using graph::Flow;

bool IsHandle(DType type) { return IsRef(type) || type == DType::kResource || type == DType::kVariant; }

/// True if the output is a value that can be fed to a later part.
bool IsValue(const graph::Definition& graph, graph::Endpoint endpoint) {
  const DType type = graph.TypeOf(endpoint);
  return type != DType::kResource && type != DType::kVariant;
}

}  // namespace

PartialRun::PartialRun(const graph::Definition& graph, ResolvedNames whole)
    : graph_(graph),
      whole_(std::move(whole)),
      all_feeds_(whole_.feeds.begin(), whole_.feeds.end()),
      all_fetches_(whole_.fetches.begin(), whole_.fetches.end()),
      unfed_(all_feeds_),
      unfetched_(all_fetches_) {
  FindNodes();
  for (const NodeId id : nodes_) around_[id] = AroundNode(id);
}

std::vector<PartialRun::Edge> PartialRun::EdgesInto(NodeId id) const {
  const graph::Node& node = graph_.node(id);
  std::vector<Edge> edges;
  for (const Endpoint& input : node.inputs()) edges.push_back({input, static_cast<int>(edges.size())});
  for (const NodeId control : node.control_inputs()) {
    const bool placeholder = graph_.node(control).op().traits.universal == op::Universal::kPlaceholder;
    const bool fed = placeholder && all_feeds_.contains({control, 0});
    edges.push_back({{control, fed ? 0 : -1}, -1});
  }
  return edges;
}

void PartialRun::FindNodes() {
  std::vector<NodeId> reached = whole_.targets;
  for (const Endpoint& fetch : whole_.fetches) reached.push_back(fetch.node);
  std::set<NodeId> found(reached.begin(), reached.end());
  while (!reached.empty()) {
    const NodeId id = reached.back();
    reached.pop_back();
    for (const Edge& edge : EdgesInto(id)) {
      if (!all_feeds_.contains(edge.from) && found.insert(edge.from.node).second) reached.push_back(edge.from.node);
    }
  }
  nodes_.assign(found.begin(), found.end());
}

PartialRun::Around PartialRun::AroundNode(NodeId id) const {
  Around around;
  bool closes_loop = false;
  for (const Edge& edge : EdgesInto(id)) {
    const auto input = around_.find(edge.from.node);
    if (all_feeds_.contains(edge.from)) continue;
    closes_loop |= graph::FlowOf(graph_.node(edge.from.node)) == Flow::kNextIteration;
    if (input == around_.end()) continue;
    around.conds = std::max(around.conds, input->second.conds);
    around.loops = std::max(around.loops, input->second.loops);
  }
  switch (graph::FlowOf(graph_.node(id))) {
    case Flow::kSwitch:
      ++around.conds;
      break;
    case Flow::kMerge:
      if (!closes_loop) around.conds = std::max(0, around.conds - 1);
      break;
    case Flow::kEnter:
      ++around.loops;
      break;
    case Flow::kExit:  // leaves through a Switch of the loop
      around.conds = std::max(0, around.conds - 1);
      around.loops = std::max(0, around.loops - 1);
      break;
    default:
      break;
  }
  return around;
}

bool PartialRun::RunsAgain(NodeId id) const {
  const graph::Node& node = graph_.node(id);
  const Around& around = around_.at(id);
  if (node.num_outputs() == 0 || around.loops > 0) return false;
  const bool handle = IsHandle(node.output_types()[0]);
  if (node.inputs().empty()) return handle || !node.op().stateful;
  const bool passes = node.op().traits.passes_value && node.num_outputs() == 1;
  const bool routes = passes || graph::FlowOf(node) == Flow::kSwitch;
  return routes && (handle || around.conds > 0);
}

bool PartialRun::CanBeCut(const Edge& edge, NodeId to) const {
  const Around& around = around_.at(edge.from.node);
  if (around.loops > 0 || around.conds > 0) return false;
  if (edge.input < 0) return true;
  const bool reference = IsRef(graph_.node(to).signature().inputs[static_cast<size_t>(edge.input)]);
  return !reference && IsValue(graph_, edge.from);
}

void PartialRun::WaitForFeeds(const std::set<Endpoint>& unfed, Marks& waiting) const {
  for (const NodeId id : nodes_) {
    if (done_.contains(id)) continue;
    for (const Edge& edge : EdgesInto(id)) {
      const bool waits =
          all_feeds_.contains(edge.from) ? unfed.contains(edge.from) : waiting[static_cast<size_t>(edge.from.node)];
      if (waits) waiting[static_cast<size_t>(id)] = true;
    }
  }
}

PartialRun::Marks PartialRun::Waiting(const std::set<Endpoint>& unfed) const {
  Marks waiting(nodes_.empty() ? 0 : static_cast<size_t>(nodes_.back()) + 1, false);
  for (bool changed = true; changed;) {
    const Marks before = waiting;
    WaitForFeeds(unfed, waiting);
    const Marks later = Later(waiting);
    for (const NodeId id : nodes_) {
      if (!later[static_cast<size_t>(id)]) continue;
      for (const Edge& edge : EdgesInto(id)) {
        const NodeId from = edge.from.node;
        if (all_feeds_.contains(edge.from) || done_.contains(from) || RunsAgain(from)) continue;
        if (!CanBeCut(edge, id)) waiting[static_cast<size_t>(from)] = true;
      }
    }
    changed = waiting != before;
  }
  return waiting;
}

PartialRun::Marks PartialRun::Later(const Marks& waiting) const {
  Marks later = waiting;
  for (const Endpoint& fetch : unfetched_) {
    if (RunsAgain(fetch.node)) later[static_cast<size_t>(fetch.node)] = true;
  }
  for (auto id = nodes_.rbegin(); id != nodes_.rend(); ++id) {
    if (!later[static_cast<size_t>(*id)]) continue;
    for (const Edge& edge : EdgesInto(*id)) {
      if (!all_feeds_.contains(edge.from) && RunsAgain(edge.from.node)) {
        later[static_cast<size_t>(edge.from.node)] = true;
      }
    }
  }
  return later;
}

std::optional<graph::Endpoint> PartialRun::Find(const std::string& name) const {
  const Result<graph::InputName> parsed = graph::ParseInputName(name);
  const graph::Node* node = parsed.ok() && !parsed->control ? graph_.Find(parsed->node) : nullptr;
  if (node == nullptr) return std::nullopt;
  return Endpoint{node->id(), parsed->index};
}

Status PartialRun::CheckComputable(Endpoint fetch, const std::set<Endpoint>& unfed, const Marks& waiting) const {
  std::vector<NodeId> reached = {fetch.node};
  std::set<NodeId> seen = {fetch.node};
  while (!reached.empty()) {
    const NodeId id = reached.back();
    reached.pop_back();
    if (done_.contains(id)) continue;
    for (const Edge& edge : EdgesInto(id)) {
      if (unfed.contains(edge.from)) {
        return InvalidArgument("Fetch {} can't be computed from the feeds that have been fed so far.",
                               graph::FullEndpointName(graph_, edge.from));
      }
      if (!all_feeds_.contains(edge.from) && seen.insert(edge.from.node).second) reached.push_back(edge.from.node);
    }
  }
  if (!waiting[static_cast<size_t>(fetch.node)]) return Status();
  return graph::AtNode(
      Unimplemented(
          "{} is computed in one go with values that wait for feeds: a cond, a loop or a reference joins them. "
          "Feed these, or run without parts",
          graph::FullEndpointName(graph_, fetch)),
      graph_.node(fetch.node));
}

Result<PartialRun::Part> PartialRun::Next(std::span<const Feed> feeds, std::span<const std::string> fetches) {
  Part part;
  std::set<Endpoint> unfed = unfed_;
  std::map<Endpoint, Tensor> fed;
  for (const Feed& feed : feeds) {
    const std::optional<Endpoint> endpoint = Find(feed.first);
    if (!endpoint || !all_feeds_.contains(*endpoint)) {
      return InvalidArgument("The feed {} was not specified in partial_run_setup.", feed.first);
    }
    if (unfed.erase(*endpoint) == 0) return InvalidArgument("The feed {} has already been fed.", feed.first);
    WEIR_TRY(CheckFeed(graph_, *endpoint, feed.second));
    WEIR_ASSIGN(fed[*endpoint], feed.second.Clone());  // the caller may change it before the last part
  }
  std::set<Endpoint> unfetched = unfetched_;
  for (const std::string& fetch : fetches) {
    const std::optional<Endpoint> endpoint = Find(fetch);
    if (!endpoint || !all_fetches_.contains(*endpoint)) {
      return InvalidArgument("The fetch {} was not specified in partial_run_setup.", fetch);
    }
    const bool again = std::find(part.asked.begin(), part.asked.end(), *endpoint) != part.asked.end();
    if (unfetched.erase(*endpoint) == 0 && !again) {
      return InvalidArgument("The fetch {} has already been fetched.", fetch);
    }
    part.asked.push_back(*endpoint);
  }
  const Marks waiting = Waiting(unfed);
  for (const Endpoint& fetch : part.asked) WEIR_TRY(CheckComputable(fetch, unfed, waiting));
  unfed_ = std::move(unfed);
  values_.merge(fed);
  Choose(waiting, part);
  return part;
}

void PartialRun::Choose(const Marks& waiting, Part& part) const {
  const Marks later = Later(waiting);
  std::set<Endpoint> fetches;
  std::set<NodeId> targets;
  const auto runs_now = [&](NodeId id) {
    return !waiting[static_cast<size_t>(id)] && !done_.contains(id) && !RunsAgain(id);
  };
  for (const NodeId id : nodes_) {
    if (runs_now(id)) part.runs.push_back(id);
    if (!later[static_cast<size_t>(id)]) continue;
    for (const Edge& edge : EdgesInto(id)) {
      if (all_feeds_.contains(edge.from) || !runs_now(edge.from.node)) continue;
      if (edge.input < 0) {
        targets.insert(edge.from.node);
      } else {
        fetches.insert(edge.from);
      }
    }
  }
  for (const Endpoint& fetch : unfetched_) {
    if (runs_now(fetch.node)) fetches.insert(fetch);
  }
  for (const Endpoint& fetch : part.asked) {
    if (!values_.contains(fetch)) fetches.insert(fetch);
  }
  for (const NodeId target : whole_.targets) {
    if (!waiting[static_cast<size_t>(target)] && !done_.contains(target)) targets.insert(target);
  }
  part.names.fetches.assign(fetches.begin(), fetches.end());
  part.names.targets.assign(targets.begin(), targets.end());
  part.names.done.assign(done_.begin(), done_.end());
  for (const auto& [endpoint, value] : values_) {
    part.names.feeds.push_back(endpoint);
    part.feeds.push_back(value);
  }
}

Result<std::vector<Tensor>> PartialRun::Finish(const Part& part, std::vector<Tensor> computed) {
  for (size_t i = 0; i < computed.size(); ++i) values_[part.names.fetches[i]] = std::move(computed[i]);
  done_.insert(part.runs.begin(), part.runs.end());
  std::vector<Tensor> fetched;
  for (const Endpoint& fetch : part.asked) {
    fetched.push_back(values_.at(fetch));
    unfetched_.erase(fetch);
  }
  Forget();
  for (size_t i = 0; i < fetched.size(); ++i) {
    const auto asked = part.asked.begin(), own = asked + static_cast<ptrdiff_t>(i);
    const bool shared = values_.contains(*own) || std::find(asked, own, *own) != own;
    if (!shared) continue;
    WEIR_ASSIGN(fetched[i], fetched[i].Clone());  // later parts read it, or the caller already has it
  }
  return fetched;
}

void PartialRun::Forget() {
  const Marks later = Later(Waiting(unfed_));
  std::set<Endpoint> needed = unfetched_;
  for (const NodeId id : nodes_) {
    if (!later[static_cast<size_t>(id)]) continue;
    for (const Edge& edge : EdgesInto(id)) needed.insert(edge.from);
  }
  std::erase_if(values_, [&](const auto& value) { return !needed.contains(value.first); });
}

}  // namespace weir::session
