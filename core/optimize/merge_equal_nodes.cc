// Common subexpressions: stateless nodes with equal op, attributes, inputs and device run once.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

size_t Combine(size_t seed, size_t value) { return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2)); }

size_t HashOf(const StepNode& node) {
  size_t hash = std::hash<const void*>()(&node.source->op());
  if (node.kind == StepNode::Kind::kConstant) {
    hash = 7;
    for (const Tensor& value : node.values) {
      hash = Combine(hash, static_cast<size_t>(value.dtype()));
      hash = Combine(hash, static_cast<size_t>(value.elements()));
      const size_t bytes = HasFixedSize(value.dtype()) ? std::min<uint64_t>(value.bytes(), 64) : 0;
      if (value.raw()) {
        hash = Combine(hash, std::hash<std::string_view>()({reinterpret_cast<const char*>(value.raw()), bytes}));
      }
    }
    return hash;
  }
  for (const Endpoint& input : node.inputs) {
    hash = Combine(Combine(hash, static_cast<size_t>(input.node)), static_cast<size_t>(input.index));
  }
  return hash;
}

bool EqualAttrs(const op::AttrView& a, const op::AttrView& b) {
  for (const op::AttrDef& def : a.def().attrs) {
    const op::AttrValue* left = a.Find(def.name);
    const op::AttrValue* right = b.Find(def.name);
    if ((left == nullptr) != (right == nullptr)) return false;
    if (left != nullptr && !(*left == *right)) return false;
  }
  return true;
}

bool Equal(const StepNode& a, const StepNode& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == StepNode::Kind::kConstant) {
    return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                      [](const Tensor& x, const Tensor& y) { return x.SameBits(y); });
  }
  return &a.source->op() == &b.source->op() && a.inputs == b.inputs && a.source->device() == b.source->device() &&
         EqualAttrs(a.source->attrs(), b.source->attrs());
}

bool Mergeable(const StepNode& node) {
  if (!node.control_inputs.empty() || node.kind == StepNode::Kind::kFeed) return false;
  if (node.kind == StepNode::Kind::kConstant) return true;
  const op::OpDef& op = node.source->op();
  if (op.stateful || op.run_by == op::RunBy::kExecutor || node.types.empty()) return false;
  return std::none_of(node.types.begin(), node.types.end(), IsRef) &&
         std::none_of(op.inputs.begin(), op.inputs.end(), [](const op::ArgDef& arg) { return arg.is_ref; });
}

/// A read of a variable's reference is not a pure function of the step.
bool ReadsReference(const StepGraph& step, const StepNode& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Endpoint& e) { return IsRef(step.TypeOf(e)); });
}

}  // namespace

Status MergeEqualNodes(const PassContext& context, StepGraph& step) {
  if (!context.options.common_subexpressions) return Status();
  std::unordered_multimap<size_t, NodeId> seen;
  std::vector<NodeId> replaced(step.nodes.size());
  std::iota(replaced.begin(), replaced.end(), NodeId{0});
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    StepNode& node = step.nodes[i];
    for (Endpoint& input : node.inputs) input.node = replaced[static_cast<size_t>(input.node)];
    for (NodeId& control : node.control_inputs) control = replaced[static_cast<size_t>(control)];
    if (!Mergeable(node) || ReadsReference(step, node)) continue;
    const size_t hash = HashOf(node);
    const auto [begin, end] = seen.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& entry) { return Equal(step.node(entry.second), node); });
    if (same != end) {
      replaced[i] = same->second;
    } else {
      seen.emplace(hash, static_cast<NodeId>(i));
    }
  }
  for (Endpoint& fetch : step.fetches) fetch.node = replaced[static_cast<size_t>(fetch.node)];
  for (NodeId& target : step.targets) target = replaced[static_cast<size_t>(target)];
  return Status();
}

}  // namespace weir::optimize
