#include "core/graph/collapsed.h"

#include <fmt/format.h>
#include <google/protobuf/arena.h>

#include <algorithm>
#include <map>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/graph/graph_message.h"
#include "core/graph/large_graph.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

constexpr char kCollapsedOp[] = "Collapsed";

/// A name scope: the nodes directly in it, and the scopes within.
struct NameTree {
  std::string_view path;  // "" = the root
  int depth = 0;
  std::vector<int> scopes;
  std::vector<NodeId> nodes;
};

/// Which nodes are shown as what.
class Collapse {
 public:
  Collapse(const Definition& graph, size_t most) : graph_(graph), room_(std::max<size_t>(most, 1)) {
    trees_.emplace_back();
    for (NodeId id = 0; id < graph.num_nodes(); ++id) trees_[TreeOf(graph.node(id).name())].nodes.push_back(id);
    shown_as_.assign(static_cast<size_t>(graph.num_nodes()), -1);
    Open();
  }

  /// Of the node's item; kept nodes have none.
  bool Kept(NodeId id) const { return shown_as_[static_cast<size_t>(id)] < 0; }
  /// The name of the item that shows a node.
  const std::string& NameOf(NodeId id) const {
    return Kept(id) ? graph_.node(id).name() : items_[static_cast<size_t>(shown_as_[static_cast<size_t>(id)])].name;
  }
  struct Item {
    std::string name;
    std::vector<NodeId> nodes;
  };
  const std::vector<Item>& items() const { return items_; }

 private:
  int TreeOf(std::string_view name) {
    const size_t slash = name.rfind('/');
    if (slash == std::string_view::npos) return 0;
    const std::string_view path = name.substr(0, slash);
    const auto found = tree_at_.find(path);
    if (found != tree_at_.end()) return found->second;
    const int parent = TreeOf(path);
    const int made = static_cast<int>(trees_.size());
    trees_.push_back({path, trees_[static_cast<size_t>(parent)].depth + 1, {}, {}});
    trees_[static_cast<size_t>(parent)].scopes.push_back(made);
    tree_at_.emplace(path, made);
    return made;
  }

  std::map<std::string_view, std::vector<NodeId>> ByOp(const NameTree& tree) const {
    std::map<std::string_view, std::vector<NodeId>> by_op;
    for (const NodeId id : tree.nodes) by_op[graph_.node(id).op().name].push_back(id);
    return by_op;
  }

  void Open() {
    using Waiting = std::pair<std::pair<int, size_t>, int>;  // depth, parts, tree
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> closed;
    const auto add = [&](int t) {
      const NameTree& tree = trees_[static_cast<size_t>(t)];
      closed.push({{tree.depth, tree.nodes.size() + tree.scopes.size()}, t});
    };
    add(0);
    --room_;  // a closed scope takes one place, which its parts may have
    while (!closed.empty()) {
      const int t = closed.top().second;
      closed.pop();
      const NameTree& tree = trees_[static_cast<size_t>(t)];
      const size_t room = room_ + 1;
      const auto by_op = ByOp(tree);
      const size_t whole = tree.nodes.size() + tree.scopes.size(), grouped = by_op.size() + tree.scopes.size();
      if (whole > room && grouped > room && t != 0) {
        Show(NameIn(tree, "collapsed"), All(t));
        continue;
      }
      if (whole > room) {
        ShowByOp(tree, by_op);
      }
      if (std::min(whole, grouped) > room) {  // of the root
        std::vector<NodeId> nodes;
        for (const int scope : tree.scopes) {
          const std::vector<NodeId> all = All(scope);
          nodes.insert(nodes.end(), all.begin(), all.end());
        }
        if (by_op.size() >= room) {  // not even its ops
          items_.clear();
          nodes.insert(nodes.end(), tree.nodes.begin(), tree.nodes.end());
        }
        Show(NameIn(tree, "scopes"), std::move(nodes));
        return;
      }
      room_ = room - (whole > room ? grouped : whole);
      for (const int scope : tree.scopes) add(scope);
    }
  }

  void ShowByOp(const NameTree& tree, const std::map<std::string_view, std::vector<NodeId>>& by_op) {
    for (const auto& [op, nodes] : by_op) {
      if (nodes.size() > 1) Show(NameIn(tree, fmt::format("{}_nodes", op)), nodes);
    }
  }

  void Show(std::string name, std::vector<NodeId> nodes) {
    for (const NodeId id : nodes) shown_as_[static_cast<size_t>(id)] = static_cast<int>(items_.size());
    items_.push_back({std::move(name), std::move(nodes)});
  }

  /// A name in the scope that no node of the graph has.
  std::string NameIn(const NameTree& tree, std::string_view last) const {
    const std::string base = tree.path.empty() ? std::string(last) : fmt::format("{}/{}", tree.path, last);
    std::string name = base;
    for (int k = 1; graph_.Find(name) != nullptr; ++k) name = fmt::format("{}_{}", base, k);
    return name;
  }

  std::vector<NodeId> All(int root) const {
    std::vector<NodeId> all;
    std::vector<int> left = {root};
    while (!left.empty()) {
      const NameTree& tree = trees_[static_cast<size_t>(left.back())];
      left.pop_back();
      all.insert(all.end(), tree.nodes.begin(), tree.nodes.end());
      left.insert(left.end(), tree.scopes.begin(), tree.scopes.end());
    }
    return all;
  }

  const Definition& graph_;
  size_t room_;
  std::vector<NameTree> trees_;
  std::unordered_map<std::string_view, int> tree_at_;
  std::vector<int> shown_as_;  // by node: an item; -1 = itself
  std::vector<Item> items_;
};

/// Adds the inputs of a node to the message that shows it, each once.
class Inputs {
 public:
  Inputs(const Definition& graph, const Collapse& collapse, tf::NodeDef& to)
      : graph_(graph), collapse_(collapse), to_(to) {}

  void Add(const Node& node) {
    for (const Endpoint& from : node.inputs()) {
      if (from.node < 0) continue;
      Add(collapse_.Kept(from.node) ? EndpointName(graph_, from) : collapse_.NameOf(from.node));
    }
    for (const NodeId from : node.control_inputs()) controls_.push_back(collapse_.NameOf(from));
  }
  /// Control inputs come last in a NodeDef; one beside an input of the same name says nothing.
  void End() {
    for (const std::string& name : controls_) {
      if (!added_.contains(name)) Add("^" + name);
    }
  }

 private:
  void Add(const std::string& name) {
    if (name != to_.name() && name != "^" + to_.name() && added_.insert(name).second) to_.add_input(name);
  }

  const Definition& graph_;
  const Collapse& collapse_;
  tf::NodeDef& to_;
  std::unordered_set<std::string> added_;
  std::vector<std::string> controls_;
};

/// "MatMul 12, Add 3": the most frequent ones.
std::string OpsText(const std::map<std::string_view, int>& ops) {
  constexpr size_t kShown = 12;
  std::vector<std::pair<int, std::string_view>> sorted;
  for (const auto& [op, count] : ops) sorted.emplace_back(-count, op);
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (size_t k = 0; k < sorted.size() && k < kShown; ++k) {
    text += fmt::format("{}{} {}", k == 0 ? "" : ", ", sorted[k].second, -sorted[k].first);
  }
  return sorted.size() > kShown ? text + ", …" : text;
}

std::string_view DeviceOf(const Node& node, const CollapseOptions& options) {
  const auto placed = options.devices.find(node.name());
  return placed == options.devices.end() ? std::string_view(node.device()) : placed->second;
}

void WriteItem(const Definition& graph, const CollapseOptions& options, const Collapse& collapse,
               const Collapse::Item& item, tf::NodeDef& def) {
  std::map<std::string_view, int> ops, devices;
  Inputs inputs(graph, collapse, def);
  def.set_name(item.name);
  def.set_op(kCollapsedOp);
  for (const NodeId id : item.nodes) {
    const Node& node = graph.node(id);
    ++ops[node.op().name];
    ++devices[DeviceOf(node, options)];
    inputs.Add(node);
  }
  inputs.End();
  const auto most = std::max_element(devices.begin(), devices.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != devices.end()) def.set_device(std::string(most->first));
  (*def.mutable_attr())["nodes"].set_i(static_cast<int64_t>(item.nodes.size()));
  (*def.mutable_attr())["ops"].set_s(OpsText(ops));
}

Status WriteKept(const Definition& graph, const CollapseOptions& options, const Collapse& collapse, const Node& node,
                 tf::NodeDef& def) {
  const size_t most_bytes = options.most_attr_bytes;
  const PutAside large = [&](const Node&, std::string_view, const Tensor& tensor) -> Result<bool> {
    return tensor.bytes() > most_bytes;
  };
  WEIR_TRY(NodeToMessage(graph, node, OutputShapes::kWrite, def, large));
  auto& attrs = *def.mutable_attr();
  attrs.erase(kBesideAttr);
  for (const op::AttrDef& attr : node.op().attrs) {
    const auto found = attrs.find(attr.name);
    if (found != attrs.end() && found->second.ByteSizeLong() > most_bytes) attrs.erase(found);
  }
  def.set_device(std::string(DeviceOf(node, options)));
  def.clear_input();
  Inputs inputs(graph, collapse, def);
  inputs.Add(node);
  inputs.End();
  return {};
}

/// The functions, without their bodies if these are large.
Status WriteFunctions(const Definition& graph, size_t most_nodes, tf::FunctionDefLibrary& library) {
  WEIR_TRY(graph.functions().WriteTo(library));
  size_t nodes = 0;
  for (const tf::FunctionDef& function : library.function()) nodes += static_cast<size_t>(function.node_def_size());
  if (nodes <= most_nodes) return {};
  for (tf::FunctionDef& function : *library.mutable_function()) {
    function.clear_node_def();
    function.clear_ret();
    function.clear_control_ret();
  }
  return {};
}

}  // namespace

Result<std::string> ExportCollapsed(const Definition& graph, const CollapseOptions& options) {
  google::protobuf::Arena arena;
  auto* def = google::protobuf::Arena::CreateMessage<tf::GraphDef>(&arena);
  const Collapse collapse(graph, options.most_nodes);
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (!collapse.Kept(id)) continue;
    const Node& node = graph.node(id);
    const Status written = WriteKept(graph, options, collapse, node, *def->add_node());
    if (!written.ok()) return written.WithNode(node.name(), node.origin());
  }
  for (const Collapse::Item& item : collapse.items()) WriteItem(graph, options, collapse, item, *def->add_node());
  def->mutable_versions()->set_producer(graph.versions().producer);
  if (!graph.functions().empty()) WEIR_TRY(WriteFunctions(graph, options.most_nodes, *def->mutable_library()));
  return proto::Serialize(*def, "GraphDef");
}

}  // namespace weir::graph
