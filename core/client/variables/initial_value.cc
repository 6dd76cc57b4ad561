#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/variables/initial_value_internal.h"
#include "core/client/variables/variable.h"

namespace weir {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;

bool IsReference(const Node& node) { return node.op().name == "VariableV2" || node.op().name == "Variable"; }

/// Whether the node looks at variables as they are. A RefSwitch becomes a Switch.
bool TakesAsIs(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "VarIsInitializedOp" || op == "ReadVariableOp") return true;
  return op != "RefSwitch" && std::ranges::any_of(node.op().inputs, [](const op::ArgDef& arg) { return arg.is_ref; });
}

class Rewriting {
 public:
  Rewriting(Graph& graph, const std::string& name, std::source_location where)
      : graph_(graph), name_(name), where_(where) {}

  /// Inputs before the nodes that use them, the first one first: the order of TensorFlow's names.
  Output Of(const Output& initial) {
    std::vector<NodeId> open = {initial.op().id()};
    while (!open.empty()) {
      const NodeId id = open.back();
      if (const NodeId input = NextInput(id); input >= 0) {
        open.push_back(input);
        continue;
      }
      open.pop_back();
      const NodeId now = Rewritten(id);
      now_.emplace(id, now);
    }
    return Now(initial.endpoint());
  }

 private:
  const Node& NodeAt(NodeId id) const { return Internals(graph_).definition.node(id); }
  Output Now(Endpoint e) const { return {&graph_, {now_.at(e.node), e.index}}; }

  /// An input that was not looked at, or -1.
  NodeId NextInput(NodeId id) const {
    if (TakesAsIs(NodeAt(id))) return -1;
    const auto inputs = NodeAt(id).inputs();
    const auto next = std::ranges::find_if(inputs, [&](const Endpoint& input) { return !now_.contains(input.node); });
    return next == inputs.end() ? -1 : next->node;
  }

  /// What stands for a node from now on; itself when nothing before it changed.
  NodeId Rewritten(NodeId id) {
    if (IsReference(NodeAt(id))) return InitializedValueOf(id);
    const auto inputs = NodeAt(id).inputs();
    const auto changed = [&](const Endpoint& input) { return now_.at(input.node) != input.node; };
    if (TakesAsIs(NodeAt(id)) || std::ranges::none_of(inputs, changed)) return id;
    const std::string op = NodeAt(id).op().name == "RefSwitch" ? "Switch" : NodeAt(id).op().name;
    const std::string copy = NodeAt(id).name() + "_" + name_;
    OperationSpec spec;
    spec.op = op;
    spec.name = copy;
    spec.attrs = NodeAt(id).attrs().explicit_values();
    spec.where = where_;
    for (const Endpoint& input : inputs) spec.inputs.push_back(Now(input));
    const bool placed = NodeAt(id).attrs().Has("_class");
    const std::string device = NodeAt(id).device();
    const NameScope root("", graph_);
    const Operation made = graph_.Add(spec);
    if (!made.exists()) return id;
    if (placed) Internals(graph_).definition.SetDevice(made.id(), device);  // where its colocation group is
    return made.id();
  }

  NodeId InitializedValueOf(NodeId reference) {
    for (const char* key : {keys::kGlobalVariables, keys::kLocalVariables}) {
      for (const Variable& variable : VariablesIn(key, {}, graph_)) {
        if (variable.is_partitioned() || variable.op().id() != reference) continue;
        const Output value = variable.initial_value().exists() ? variable.InitializedValue(where_) : Output();
        return value.exists() ? value.op().id() : reference;
      }
    }
    return reference;
  }

  Graph& graph_;
  const std::string& name_;
  std::source_location where_;
  std::map<NodeId, NodeId> now_;
};

/// Whether a value reads a reference variable, and not through a loop.
bool ReadsReference(const Output& value) {
  const graph::Definition& definition = Internals(*value.graph()).definition;
  std::vector<NodeId> open = {value.op().id()};
  std::set<NodeId> seen = {value.op().id()};
  bool reads = false;
  while (!open.empty()) {
    const Node& node = definition.node(open.back());
    open.pop_back();
    if (node.op().name == "NextIteration") return false;
    reads = reads || IsReference(node);
    std::vector<NodeId> before(node.control_inputs().begin(), node.control_inputs().end());
    for (const Endpoint& input : node.inputs()) before.push_back(input.node);
    std::ranges::copy_if(before, std::back_inserter(open), [&](NodeId id) { return seen.insert(id).second; });
  }
  return reads;
}

}  // namespace

Output InAnyOrder(const Output& initial, const std::string& name, std::source_location where) {
  return ReadsReference(initial) ? Rewriting(*initial.graph(), name, where).Of(initial) : initial;
}

}  // namespace weir
