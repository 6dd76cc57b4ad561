#include "core/graph/order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/graph/late_ranks_internal.h"

namespace weir::graph {

bool WritesVariable(const StepGraph& step, const StepNode& node) {
  if (node.kind != StepNode::Kind::kOp) return false;
  const op::OpDef& op = node.source->op();
  if (op.run_by == op::RunBy::kExecutor) return false;
  if (std::any_of(op.inputs.begin(), op.inputs.end(), [](const op::ArgDef& arg) { return arg.is_ref; })) {
    return !op.outputs.empty() && op.outputs[0].is_ref;
  }
  return node.types.empty() && std::any_of(node.inputs.begin(), node.inputs.end(),
                                           [&](const Endpoint& e) { return step.TypeOf(e) == DType::kResource; });
}

namespace {

/// Orders each level separately. The vertices of a level are the nodes of one frame and its child frames.
class Orderer {
 public:
  Orderer(const StepGraph& step, const OrderOptions& options)
      : step_(step),
        options_(options),
        first_frame_(static_cast<int>(step.nodes.size())),
        depth_(step.frame_count(), 0) {
    for (const FrameId frame : depth_.indices()) {
      if (frame != kStepFrame) depth_[frame] = depth_[step.ParentOf(frame)] + 1;
    }
    pending_.assign(step.nodes.size() + depth_.size(), 0);
    members_.resize(depth_.size());
    rank_.resize(pending_.size());
    std::iota(rank_.begin(), rank_.end(), 0);
    if (options.as_in_graph) RankAsInGraph();
  }

  Result<std::vector<OrderItem>> Run() {
    if (*std::max_element(depth_.begin(), depth_.end()) > kMaxDepth) {
      return InvalidArgument("loops are nested more than {} deep", kMaxDepth);
    }
    AddEdges();
    if (options_.late && !options_.as_in_graph) RankLate();
    for (const int v : pending_.indices()) {
      if (v != FrameVertex(kStepFrame)) members_[LevelOf(v)].push_back(v);
    }
    items_.reserve(pending_.size() + depth_.size());
    WEIR_TRY(Level(kStepFrame));
    return std::move(items_);
  }

 private:
  static constexpr int kMaxDepth = 64;

  /// Vertex numbers: nodes first, then frames.
  int FrameVertex(FrameId frame) const { return first_frame_ + frame.number(); }
  bool IsFrame(int vertex) const { return vertex >= first_frame_; }
  FrameId FrameAt(int vertex) const { return FrameId(vertex - first_frame_); }
  FrameId FrameOf(NodeId id) const {
    const StepNode& node = step_.node(id);
    return node.kind == StepNode::Kind::kOp ? node.frame : kStepFrame;
  }
  FrameId LevelOf(int vertex) const { return IsFrame(vertex) ? step_.ParentOf(FrameAt(vertex)) : FrameOf(vertex); }

  /// Visits every edge as a pair of vertices of the innermost level that contains both ends, with the value that it
  /// carries, null for a control edge; skips edges within one vertex.
  template <class Visit>
  void EachEdge(const Visit& visit) const {
    for (const NodeId id : step_.nodes.indices()) {
      const StepNode& node = step_.node(id);
      for (const Endpoint& input : node.inputs) {
        const auto reads = [&](int from, int to) { visit(from, to, &input); };
        if (!IsBackEdge(step_, node, input)) Lift(input.node, id, reads);
      }
      const auto waits = [&](int from, int to) { visit(from, to, static_cast<const Endpoint*>(nullptr)); };
      for (const NodeId control : node.control_inputs) Lift(control, id, waits);
    }
  }
  template <class Visit>
  void Lift(NodeId from, NodeId to, const Visit& visit) const {
    int a = from, b = to;
    FrameId fa = FrameOf(from), fb = FrameOf(to);
    const auto up = [&](int& vertex, FrameId& frame) {
      vertex = FrameVertex(frame);
      frame = step_.ParentOf(frame);
    };
    while (fa != fb) {
      if (depth_[fa] >= depth_[fb]) {
        up(a, fa);
      } else {
        up(b, fb);
      }
    }
    if (a != b) visit(a, b);
  }

  void AddEdges() {
    first_.assign(pending_.size() + 1, 0);
    EachEdge([&](int from, int to, const Endpoint*) {
      ++pending_[to];
      ++first_[from + 1];
    });
    for (const int v : pending_.indices()) first_[v + 1] += first_[v];
    users_.resize(PositionOf(first_.back()));
    IndexedVector<int, int> fill = first_;
    EachEdge([&](int from, int to, const Endpoint*) { users_[fill[from]++] = to; });
  }

  void RankLate() {
    LateRanks ranks(pending_.size());
    for (const NodeId id : step_.nodes.indices()) {
      if (WritesVariable(step_, step_.node(id))) ranks.AddWriter(id);
    }
    EachEdge([&](int from, int to, const Endpoint* value) {
      value == nullptr ? ranks.AddEdge(from, to) : ranks.AddUse(from, to, *value, BytesOf(*value));
    });
    std::ranges::copy(std::move(ranks).Find(), rank_.begin());
  }

  /// What a value takes in the memory of the step.
  double BytesOf(const Endpoint& value) const {
    constexpr double kUnknown = 4096;
    const DType type = step_.TypeOf(value);
    if (step_.node(value.node).kind != StepNode::Kind::kOp || IsRef(type) || type == DType::kResource) return 0;
    const PartialShape& shape = step_.ShapeOf(value);
    if (!shape.fully_defined() || !HasFixedSize(type)) return kUnknown;
    double bytes = static_cast<double>(SizeOf(type));
    for (const int64_t extent : shape.dims()) bytes *= static_cast<double>(extent);
    return bytes;
  }

  /// A loop has the rank of its first node.
  void RankAsInGraph() {
    std::fill(rank_.begin(), rank_.end(), std::numeric_limits<int>::max());
    for (const NodeId id : step_.nodes.indices()) {
      // Constants precede everything; a merged constant may come later in the graph than its users.
      const int at = step_.node(id).kind == StepNode::Kind::kOp ? step_.node(id).source->id() : -1;
      rank_[id] = at;
      for (FrameId frame = FrameOf(id); frame > kStepFrame; frame = step_.ParentOf(frame)) {
        int& first = rank_[FrameVertex(frame)];
        first = std::min(first, at);
      }
    }
  }

  using Ranked = std::pair<int, int>;  // rank and vertex
  using Heap = std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>>;
  struct Ready {
    Heap all;                     // may hold vertices already taken through their group
    std::map<int, Heap> grouped;  // by group; group 0 is served from `all`
    Heap writers;
  };

  bool HasGroups() const { return !options_.group_of_node.empty(); }
  int GroupOf(int vertex) const {
    if (!HasGroups()) return 0;
    return IsFrame(vertex) ? options_.group_of_frame[FrameAt(vertex)] : options_.group_of_node[vertex];
  }

  void Push(Ready& ready, int vertex) {
    const Ranked ranked(rank_[vertex], vertex);
    if (!options_.as_in_graph && !IsFrame(vertex) && WritesVariable(step_, step_.node(vertex))) {
      ready.writers.push(ranked);
      return;
    }
    ready.all.push(ranked);
    if (HasGroups()) ready.grouped[GroupOf(vertex)].push(ranked);
  }

  /// -1 if no vertex is ready.
  int Take(Ready& ready, int group) {
    const auto pop = [&](Heap& heap) {
      while (!heap.empty()) {
        const int vertex = heap.top().second;
        heap.pop();
        if (pending_[vertex] == 0) return vertex;
      }
      return -1;
    };
    int vertex = -1;
    if (HasGroups()) {
      const auto same = ready.grouped.find(group);
      if (same != ready.grouped.end()) vertex = pop(same->second);
    }
    if (vertex < 0) vertex = pop(ready.all);
    if (vertex < 0) vertex = pop(ready.writers);
    if (vertex >= 0) pending_[vertex] = -1;  // taken
    return vertex;
  }

  Status Level(FrameId frame) {
    const std::vector<int>& members = members_[frame];
    Ready ready;
    size_t left = members.size();
    const auto done = [&](int vertex) {
      --left;
      for (int u = first_[vertex]; u < first_[vertex + 1]; ++u) {
        const int user = users_[u];
        if (--pending_[user] == 0) Push(ready, user);
      }
    };
    std::vector<int> enters;
    for (const int vertex : members) {
      const bool enter = !IsFrame(vertex) && FlowOf(step_.node(vertex)) == Flow::kEnter;
      if (enter) {
        enters.push_back(vertex);
        items_.push_back({OrderItem::Kind::kNode, vertex});
      } else if (pending_[vertex] == 0) {
        Push(ready, vertex);
      }
    }
    if (frame != kStepFrame) items_.push_back({OrderItem::Kind::kLoopBegin, frame.number()});
    for (const int vertex : enters) {
      pending_[vertex] = -1;
      done(vertex);
    }
    int group = 0;
    for (int vertex = Take(ready, group); vertex >= 0; vertex = Take(ready, group)) {
      group = GroupOf(vertex);
      if (IsFrame(vertex)) {
        WEIR_TRY(Level(FrameAt(vertex)));
      } else {
        items_.push_back({OrderItem::Kind::kNode, vertex});
      }
      done(vertex);
    }
    if (left != 0) return Entangled(members);
    if (frame != kStepFrame) items_.push_back({OrderItem::Kind::kLoopEnd, frame.number()});
    return Status();
  }

  Status Entangled(const std::vector<int>& members) const {
    std::string names;
    for (const int vertex : members) {
      if (!IsFrame(vertex) || pending_[vertex] <= 0) continue;
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", step_.frames[FrameAt(vertex)].name);
    }
    return InvalidArgument("loops depend on each other's results while they run: frames {}", names);
  }

  const StepGraph& step_;
  const OrderOptions& options_;
  const int first_frame_;  // vertex
  IndexedVector<FrameId, int> depth_;
  IndexedVector<FrameId, std::vector<int>> members_;  // vertices
  IndexedVector<int, int> pending_;                   // by vertex: edges from unfinished vertices; -1 = taken
  IndexedVector<int, int> first_, users_;             // edges by source
  IndexedVector<int, int> rank_;                      // by vertex: the smallest ready one is taken next
  std::vector<OrderItem> items_;
};

}  // namespace

Result<std::vector<OrderItem>> Order(const StepGraph& step, const OrderOptions& options) {
  return Orderer(step, options).Run();
}

}  // namespace weir::graph
