#include "core/plan/order_internal.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/graph/frames.h"

namespace weir::plan {
namespace {

using graph::Flow;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// Ops that change a variable take it by reference, or as a resource and give nothing back.
bool WritesVariable(const StepGraph& step, const StepNode& node) {
  if (node.kind != StepNode::Kind::kOp) return false;
  const op::OpDef& op = node.source->op();
  if (op.run_by == op::RunBy::kExecutor) return false;
  if (std::any_of(op.inputs.begin(), op.inputs.end(), [](const op::ArgDef& arg) { return arg.is_ref; })) {
    return !op.outputs.empty() && op.outputs[0].is_ref;
  }
  return node.types.empty() && std::any_of(node.inputs.begin(), node.inputs.end(), [&](const graph::Endpoint& e) {
           return step.TypeOf(e) == DType::kResource;
         });
}

/// Nodes of one frame and its child frames are the vertices of a level; every level is ordered by itself.
class Orderer {
 public:
  Orderer(const StepGraph& step, const StepGuards& guards)
      : step_(step), guards_(guards), frames_(std::max<size_t>(step.frames.size(), 1)) {
    depth_.assign(frames_, 0);
    for (size_t f = 1; f < frames_; ++f) depth_[f] = depth_[static_cast<size_t>(step.frames[f].parent)] + 1;
    pending_.assign(step.nodes.size() + frames_, 0);
    members_.resize(frames_);
  }

  Result<std::vector<TapeItem>> Run() {
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

  /// Vertices: nodes, then frames.
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

  /// Visits every edge as its two ends in the level where they part; edges inside a vertex of no level are left out.
  template <class Visit>
  void EachEdge(const Visit& visit) const {
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      for (const graph::Endpoint& input : node.inputs) {
        if (!graph::IsBackEdge(step_, node, input)) Lift(input.node, static_cast<NodeId>(i), visit);
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

  using Heap = std::priority_queue<int, std::vector<int>, std::greater<>>;
  struct Ready {
    Heap all;                     // may hold vertices that were taken through their guard
    std::map<int, Heap> guarded;  // by guard; kAlways is served from `all`
    Heap writers;
  };

  int GuardOf(int vertex) const {
    return IsFrame(vertex) ? guards_.base[static_cast<size_t>(vertex - FrameVertex(0))]
                           : guards_.node[static_cast<size_t>(vertex)];
  }

  void Push(Ready& ready, int vertex) {
    if (!IsFrame(vertex) && WritesVariable(step_, step_.node(static_cast<NodeId>(vertex)))) {
      ready.writers.push(vertex);
      return;
    }
    ready.all.push(vertex);
    if (guards_.any) ready.guarded[GuardOf(vertex)].push(vertex);
  }

  /// -1 when nothing is ready.
  int Take(Ready& ready, int guard) {
    const auto pop = [&](Heap& heap) {
      while (!heap.empty()) {
        const int vertex = heap.top();
        heap.pop();
        if (pending_[static_cast<size_t>(vertex)] == 0) return vertex;
      }
      return -1;
    };
    int vertex = -1;
    if (guards_.any) {
      const auto same = ready.guarded.find(guard);
      if (same != ready.guarded.end()) vertex = pop(same->second);
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
      const bool enter = !IsFrame(vertex) && graph::FlowOf(step_.node(static_cast<NodeId>(vertex))) == Flow::kEnter;
      if (enter) {
        enters.push_back(vertex);
        items_.push_back({TapeItem::Kind::kNode, vertex});
      } else if (pending_[static_cast<size_t>(vertex)] == 0) {
        Push(ready, vertex);
      }
    }
    if (frame != 0) items_.push_back({TapeItem::Kind::kLoopBegin, frame});
    for (const int vertex : enters) {
      pending_[static_cast<size_t>(vertex)] = -1;
      done(vertex);
    }
    int guard = kAlways;
    for (int vertex = Take(ready, guard); vertex >= 0; vertex = Take(ready, guard)) {
      guard = GuardOf(vertex);
      if (IsFrame(vertex)) {
        WEIR_TRY(Level(vertex - FrameVertex(0)));
      } else {
        items_.push_back({TapeItem::Kind::kNode, vertex});
      }
      done(vertex);
    }
    if (left != 0) return Entangled(members);
    if (frame != 0) items_.push_back({TapeItem::Kind::kLoopEnd, frame});
    return Status();
  }

  Status Entangled(const std::vector<int>& members) const {
    std::string names;
    for (const int vertex : members) {
      if (!IsFrame(vertex) || pending_[static_cast<size_t>(vertex)] <= 0) continue;
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ",
                           step_.frames[static_cast<size_t>(vertex - FrameVertex(0))].name);
    }
    return InvalidArgument("loops need each other's results while they run: frames {}", names);
  }

  const StepGraph& step_;
  const StepGuards& guards_;
  const size_t frames_;
  std::vector<int> depth_;                 // by frame
  std::vector<std::vector<int>> members_;  // vertices by frame
  std::vector<int> pending_;               // by vertex: edges not yet served; -1 = on the tape
  std::vector<int> first_, users_;         // edges by source
  std::vector<TapeItem> items_;
};

}  // namespace

Result<std::vector<TapeItem>> Order(const StepGraph& step, const StepGuards& guards) {
  return Orderer(step, guards).Run();
}

}  // namespace weir::plan
