#include <algorithm>
#include <functional>
#include <queue>

#include "core/plan/order_internal.h"

namespace weir::plan {
namespace {

using graph::NodeId;
using graph::StepNode;

/// Ops that change a variable take it by reference, or as a resource and give nothing back.
bool WritesVariable(const graph::StepGraph& step, const StepNode& node) {
  if (node.kind != StepNode::Kind::kOp) return false;
  const op::OpDef& op = node.source->op();
  if (std::any_of(op.inputs.begin(), op.inputs.end(), [](const op::ArgDef& arg) { return arg.is_ref; })) {
    return !op.outputs.empty() && op.outputs[0].is_ref;
  }
  return node.types.empty() && std::any_of(node.inputs.begin(), node.inputs.end(), [&](const graph::Endpoint& e) {
           return step.TypeOf(e) == DType::kResource;
         });
}

}  // namespace

std::vector<NodeId> Order(const graph::StepGraph& step) {
  const size_t count = step.nodes.size();
  std::vector<int> pending(count, 0);
  std::vector<int> first(count + 1, 0);
  const auto each_source = [&](const StepNode& node, const auto& visit) {
    for (const graph::Endpoint& input : node.inputs) visit(input.node);
    for (NodeId control : node.control_inputs) visit(control);
  };
  for (size_t i = 0; i < count; ++i) {
    each_source(step.nodes[i], [&](NodeId from) {
      ++pending[i];
      ++first[static_cast<size_t>(from) + 1];
    });
  }
  for (size_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<NodeId> users(static_cast<size_t>(first[count]));
  std::vector<int> fill(first.begin(), first.end() - 1);
  for (size_t i = 0; i < count; ++i) {
    each_source(step.nodes[i], [&](NodeId from) {
      users[static_cast<size_t>(fill[static_cast<size_t>(from)]++)] = static_cast<NodeId>(i);
    });
  }
  using Heap = std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>>;
  Heap ready;
  Heap writers;
  const auto push = [&](NodeId id) { (WritesVariable(step, step.node(id)) ? writers : ready).push(id); };
  for (size_t i = 0; i < count; ++i) {
    if (pending[i] == 0) push(static_cast<NodeId>(i));
  }
  std::vector<NodeId> order;
  order.reserve(count);
  while (!ready.empty() || !writers.empty()) {
    Heap& from = ready.empty() ? writers : ready;
    const NodeId id = from.top();
    from.pop();
    order.push_back(id);
    for (int u = first[static_cast<size_t>(id)]; u < first[static_cast<size_t>(id) + 1]; ++u) {
      const NodeId user = users[static_cast<size_t>(u)];
      if (--pending[static_cast<size_t>(user)] == 0) push(user);
    }
  }
  return order;
}

}  // namespace weir::plan
