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

namespace weir::graph {
namespace {

/// True for ops that write a variable: they take it by reference and return it, or take a resource and have no outputs.
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

/// Orders each level separately. The vertices of a level are the nodes of one frame and its child frames.
class Orderer {
 public:
  Orderer(const StepGraph& step, const OrderOptions& options)
      : step_(step), options_(options), frames_(std::max<size_t>(step.frames.size(), 1)) {
    depth_.assign(frames_, 0);
    for (size_t f = 1; f < frames_; ++f) depth_[f] = depth_[static_cast<size_t>(step.frames[f].parent)] + 1;
    pending_.assign(step.nodes.size() + frames_, 0);
    members_.resize(frames_);
    rank_.resize(pending_.size());
    std::iota(rank_.begin(), rank_.end(), 0);
    if (options.as_in_graph) RankAsInGraph();
  }

  Result<std::vector<OrderItem>> Run() {
    if (*std::max_element(depth_.begin(), depth_.end()) > kMaxDepth) {
      return InvalidArgument("loops are nested more than {} deep", kMaxDepth);
    }
    AddEdges();
    for (size_t v = 0; v < pending_.size(); ++v) {
      if (v != step_.nodes.size()) members_[LevelOf(static_cast<int>(v))].push_back(static_cast<int>(v));
    }
    items_.reserve(pending_.size() + frames_);
    WEIR_TRY(Level(0));
    return std::move(items_);
  }

 private:
  static constexpr int kMaxDepth = 64;

  /// Vertex numbers: nodes first, then frames.
  int FrameVertex(int frame) const { return static_cast<int>(step_.nodes.size()) + frame; }
  bool IsFrame(int vertex) const { return vertex >= static_cast<int>(step_.nodes.size()); }
  int FrameOf(NodeId id) const {
    const StepNode& node = step_.node(id);
    return node.kind == StepNode::Kind::kOp ? node.frame : 0;
  }
  size_t LevelOf(int vertex) const {
    if (!IsFrame(vertex)) return static_cast<size_t>(FrameOf(static_cast<NodeId>(vertex)));
    return static_cast<size_t>(step_.frames[static_cast<size_t>(vertex - FrameVertex(0))].parent);
  }

  /// Visits every edge as a pair of vertices of the innermost level that contains both ends; skips edges within one
  /// vertex.
  template <class Visit>
  void EachEdge(const Visit& visit) const {
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      for (const Endpoint& input : node.inputs) {
        if (!IsBackEdge(step_, node, input)) Lift(input.node, static_cast<NodeId>(i), visit);
      }
      for (const NodeId control : node.control_inputs) Lift(control, static_cast<NodeId>(i), visit);
    }
  }
  template <class Visit>
  void Lift(NodeId from, NodeId to, const Visit& visit) const {
    int a = from, b = to;
    int fa = FrameOf(from), fb = FrameOf(to);
    const auto up = [&](int& vertex, int& frame) {
      vertex = FrameVertex(frame);
      frame = step_.frames[static_cast<size_t>(frame)].parent;
    };
    while (fa != fb) {
      if (depth_[static_cast<size_t>(fa)] >= depth_[static_cast<size_t>(fb)]) {
        up(a, fa);
      } else {
        up(b, fb);
      }
    }
    if (a != b) visit(a, b);
  }

  void AddEdges() {
    first_.assign(pending_.size() + 1, 0);
    EachEdge([&](int from, int to) {
      ++pending_[static_cast<size_t>(to)];
      ++first_[static_cast<size_t>(from) + 1];
    });
    for (size_t i = 0; i + 1 < first_.size(); ++i) first_[i + 1] += first_[i];
    users_.resize(static_cast<size_t>(first_.back()));
    std::vector<int> fill(first_.begin(), first_.end() - 1);
    EachEdge([&](int from, int to) { users_[static_cast<size_t>(fill[static_cast<size_t>(from)]++)] = to; });
  }

  /// A loop has the rank of its first node.
  void RankAsInGraph() {
    std::fill(rank_.begin(), rank_.end(), std::numeric_limits<int>::max());
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      // Constants precede everything; a merged constant may come later in the graph than its users.
      const int at = step_.nodes[i].kind == StepNode::Kind::kOp ? step_.nodes[i].source->id() : -1;
      rank_[i] = at;
      for (int frame = FrameOf(static_cast<NodeId>(i)); frame > 0;
           frame = step_.frames[static_cast<size_t>(frame)].parent) {
        int& first = rank_[static_cast<size_t>(FrameVertex(frame))];
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
    return IsFrame(vertex) ? options_.group_of_frame[static_cast<size_t>(vertex - FrameVertex(0))]
                           : options_.group_of_node[static_cast<size_t>(vertex)];
  }

  void Push(Ready& ready, int vertex) {
    const Ranked ranked(rank_[static_cast<size_t>(vertex)], vertex);
    if (!options_.as_in_graph && !IsFrame(vertex) && WritesVariable(step_, step_.node(static_cast<NodeId>(vertex)))) {
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
        if (pending_[static_cast<size_t>(vertex)] == 0) return vertex;
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
    if (vertex >= 0) pending_[static_cast<size_t>(vertex)] = -1;  // taken
    return vertex;
  }

  Status Level(int frame) {
    const std::vector<int>& members = members_[static_cast<size_t>(frame)];
    Ready ready;
    size_t left = members.size();
    const auto done = [&](int vertex) {
      --left;
      for (int u = first_[static_cast<size_t>(vertex)]; u < first_[static_cast<size_t>(vertex) + 1]; ++u) {
        const int user = users_[static_cast<size_t>(u)];
        if (--pending_[static_cast<size_t>(user)] == 0) Push(ready, user);
      }
    };
    std::vector<int> enters;
    for (const int vertex : members) {
      const bool enter = !IsFrame(vertex) && FlowOf(step_.node(static_cast<NodeId>(vertex))) == Flow::kEnter;
      if (enter) {
        enters.push_back(vertex);
        items_.push_back({OrderItem::Kind::kNode, vertex});
      } else if (pending_[static_cast<size_t>(vertex)] == 0) {
        Push(ready, vertex);
      }
    }
    if (frame != 0) items_.push_back({OrderItem::Kind::kLoopBegin, frame});
    for (const int vertex : enters) {
      pending_[static_cast<size_t>(vertex)] = -1;
      done(vertex);
    }
    int group = 0;
    for (int vertex = Take(ready, group); vertex >= 0; vertex = Take(ready, group)) {
      group = GroupOf(vertex);
      if (IsFrame(vertex)) {
        WEIR_TRY(Level(vertex - FrameVertex(0)));
      } else {
        items_.push_back({OrderItem::Kind::kNode, vertex});
      }
      done(vertex);
    }
    if (left != 0) return Entangled(members);
    if (frame != 0) items_.push_back({OrderItem::Kind::kLoopEnd, frame});
    return Status();
  }

  Status Entangled(const std::vector<int>& members) const {
    std::string names;
    for (const int vertex : members) {
      if (!IsFrame(vertex) || pending_[static_cast<size_t>(vertex)] <= 0) continue;
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ",
                           step_.frames[static_cast<size_t>(vertex - FrameVertex(0))].name);
    }
    return InvalidArgument("loops depend on each other's results while they run: frames {}", names);
  }

  const StepGraph& step_;
  const OrderOptions& options_;
  const size_t frames_;
  std::vector<int> depth_;                 // by frame
  std::vector<std::vector<int>> members_;  // vertices by frame
  std::vector<int> pending_;               // by vertex: edges from unfinished vertices; -1 = taken
  std::vector<int> first_, users_;         // edges by source
  std::vector<int> rank_;                  // by vertex: the smallest ready one is taken next
  std::vector<OrderItem> items_;
};

}  // namespace

Result<std::vector<OrderItem>> Order(const StepGraph& step, const OrderOptions& options) {
  return Orderer(step, options).Run();
}

}  // namespace weir::graph
