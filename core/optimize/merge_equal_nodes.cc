// Common subexpression elimination: stateless nodes with equal op, attributes, inputs and device run once.
#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>
#include <vector>

#include "core/graph/rewriter.h"
#include "core/op/equal_attrs.h"
#include "core/optimize/passes_internal.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

size_t Combine(size_t seed, size_t value) { return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2)); }

/// The order of the operands does not matter.
bool Swaps(const StepNode& node) { return node.source->op().commutative && node.inputs.size() == 2; }

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
  size_t inputs = 0;
  for (const Endpoint& input : node.inputs) {
    const size_t one = Combine(static_cast<size_t>(input.node), static_cast<size_t>(input.index));
    inputs = Swaps(node) ? inputs + one * one : Combine(inputs, one);
  }
  return Combine(hash, inputs);
}

bool EqualInputs(const StepNode& a, const StepNode& b) {
  return a.inputs == b.inputs || (Swaps(a) && a.inputs[0] == b.inputs[1] && a.inputs[1] == b.inputs[0]);
}

bool Equal(const StepNode& a, const StepNode& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == StepNode::Kind::kConstant) {
    return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                      [](const Tensor& x, const Tensor& y) { return x.SameBits(y); });
  }
  return &a.source->op() == &b.source->op() && EqualInputs(a, b) && a.source->device() == b.source->device() &&
         op::EqualAttrs(a.source->attrs(), b.source->attrs());
}

bool Mergeable(const StepNode& node) {
  if (!node.control_inputs.empty() || node.kind == StepNode::Kind::kFeed) return false;
  if (node.kind == StepNode::Kind::kConstant) return true;
  const op::OpDef& op = node.source->op();
  if (op.MayDiffer() || op.run_by == op::RunBy::kExecutor || node.types.empty()) return false;
  return std::none_of(node.types.begin(), node.types.end(), IsRef) &&
         std::none_of(op.inputs.begin(), op.inputs.end(), [](const op::ArgDef& arg) { return arg.is_ref; });
}

/// A read through a variable's reference depends on when it runs.
bool ReadsReference(const StepGraph& step, const StepNode& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Endpoint& e) { return IsRef(step.TypeOf(e)); });
}

/// Nodes by hash: chains of those whose hashes begin with the same bits.
class SeenNodes {
 public:
  /// For at most `nodes` of them.
  explicit SeenNodes(size_t nodes) : first_(std::bit_ceil(nodes + 1), kNone), hashes_(nodes), next_(nodes, kNone) {}

  /// The first node with this hash that `same` says yes to; else `id`, which is added.
  template <class Same>
  NodeId FindOrAdd(size_t hash, NodeId id, const Same& same) {
    NodeId* link = &first_[hash & (first_.size() - 1)];
    for (; *link != kNone; link = &next_[static_cast<size_t>(*link)]) {
      if (hashes_[static_cast<size_t>(*link)] == hash && same(*link)) return *link;
    }
    hashes_[static_cast<size_t>(id)] = hash;
    return *link = id;
  }

 private:
  static constexpr NodeId kNone = -1;
  std::vector<NodeId> first_;   // by the lower bits of the hash
  std::vector<size_t> hashes_;  // by node
  std::vector<NodeId> next_;    // by node: in its chain
};

}  // namespace

Status MergeEqualNodes(const PassContext& context, StepGraph& step) {
  if (!context.options.common_subexpressions) return Status();
  SeenNodes seen(step.nodes.size());
  graph::Rewriter rewriter(step);
  for (NodeId id = 0; id < static_cast<NodeId>(step.nodes.size()); ++id) {
    const StepNode& node = rewriter.Visit(id);
    if (!Mergeable(node) || ReadsReference(step, node)) continue;
    const NodeId first = seen.FindOrAdd(HashOf(node), id, [&](NodeId other) { return Equal(step.node(other), node); });
    if (first != id) rewriter.Replace(id, first);
  }
  (void)rewriter.Finish();  // nothing is erased: DropUnused removes what has no users
  return Status();
}

}  // namespace weir::optimize
