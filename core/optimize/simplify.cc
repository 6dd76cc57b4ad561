// Arithmetic that changes nothing, or that one op does as well as two: a table of rules.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/graph/rewriter.h"
#include "core/optimize/passes_internal.h"
#include "core/optimize/roles_internal.h"
#include "core/tensor/number.h"

namespace weir::optimize {
namespace {

using graph::Endpoint;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;
using ops::Algebra;

/// Constants with more elements are not merged.
constexpr int64_t kMostMerged = 1 << 16;

bool IsFloat(DType type) {
  return type == DType::kFloat || type == DType::kDouble || type == DType::kHalf || type == DType::kBfloat16;
}

template <class Holds>
bool AllOf(const Tensor& tensor, Holds&& holds) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (!holds(ElementAsDouble(tensor, i))) return false;
  }
  return true;
}

/// A step with the replacements that rules make. Ids stay.
class Simplifier {
 public:
  Simplifier(const PassContext& context, StepGraph& step)
      : context_(context),
        step_(step),
        roles_(RolesOf(step)),
        users_(graph::CountUsers(step)),
        instead_(step.nodes.size(), Endpoint{}) {}

  const StepGraph& step() const { return step_; }
  StepNode& node(NodeId id) { return step_.nodes[id]; }

  /// The node, with the inputs that earlier replacements give it.
  StepNode& Visit(NodeId id) {
    StepNode& of = node(id);
    for (Endpoint& input : of.inputs) input = Replaced(input);
    return of;
  }
  /// The role of a node that a rule may replace: one plain output, which needs its inputs alone.
  Algebra RoleOf(NodeId id) const {
    if (roles_[id] == Algebra::kNone) return Algebra::kNone;
    const StepNode& of = step_.node(id);
    const bool plain = of.kind == StepNode::Kind::kOp && of.values.empty() && of.control_inputs.empty() &&
                       of.types.size() == 1 && !IsRef(of.types[0]);
    if (!plain) return Algebra::kNone;
    for (const Endpoint& input : of.inputs) {
      if (IsRef(step_.TypeOf(input))) return Algebra::kNone;
    }
    return roles_[id];
  }
  /// The node behind an input if it has that role and is on the device and in the loop of its user; else -1.
  NodeId Inner(NodeId user, size_t input, Algebra role) const {
    const StepNode& of = step_.node(user);
    if (input >= of.inputs.size() || of.inputs[input].index != 0) return -1;
    const NodeId id = of.inputs[input].node;
    const StepNode& inner = step_.node(id);
    const bool together =
        id < user && RoleOf(id) == role && inner.frame == of.frame && inner.source->device() == of.source->device();
    return together ? id : -1;
  }
  /// A constant, which is live in every branch; null for other values.
  const Tensor* ConstantAt(const Endpoint& value) const {
    return step_.node(value.node).kind == StepNode::Kind::kConstant ? step_.ValueOf(value) : nullptr;
  }
  bool HasOneUser(NodeId id) const { return users_[id] == 1; }

  /// All users of the node take `value`. False, without a change, if that would change a type or a device.
  bool Replace(NodeId id, const Endpoint& value) {
    const StepNode &of = step_.node(id), &by = step_.node(value.node);
    const bool moves = !of.source->device().empty() && by.source->device() != of.source->device();
    if (moves || step_.TypeOf(value) != of.types[0]) return false;
    instead_[id] = value;
    users_[value.node] += users_[id];
    return true;
  }
  bool IsReplaced(NodeId id) const { return instead_[id].node >= 0; }
  /// A node that one other node uses becomes a constant.
  void MakeConstant(NodeId id, Tensor value) {
    StepNode& of = node(id);
    of.types = {value.dtype()};
    of.shapes = {PartialShape(value.shape())};
    of.values = {std::move(value)};
    of.kind = StepNode::Kind::kConstant;
    of.inputs.clear();
  }
  void SetInput(NodeId id, size_t input, const Endpoint& value) {
    node(id).inputs[input] = value;
    ++users_[value.node];
  }
  /// Gives a node another op and attributes.
  bool Become(NodeId id, const op::OpDef& op, op::AttrList attrs) {
    StepNode& of = node(id);
    for (const auto& [name, value] : of.source->attrs().explicit_values()) {
      if (name.starts_with('_')) attrs.emplace_back(name, value);
    }
    Result<std::shared_ptr<const graph::Node>> made = graph::Node::InPlaceOf(*of.source, op, std::move(attrs));
    if (!made.ok()) return false;
    graph::MadeNode entry{*made, {of.source}};
    const auto earlier = std::ranges::find_if(step_.made, [&](const auto& m) { return m.node.get() == of.source; });
    if (earlier != step_.made.end()) entry.stands_for = earlier->stands_for;
    of.source = made->get();
    roles_[id] = ops::AlgebraOf(op);
    step_.made.push_back(std::move(entry));
    return true;
  }
  /// The result of a node's op for these constants; not valid if it has none. The node's op is the graph's.
  Tensor Evaluate(NodeId id, const Tensor& x, const Tensor& y) const {
    Result<std::vector<Tensor>> made = context_.evaluator->Evaluate(*step_.node(id).source, {x, y});
    return made.ok() && made->size() == 1 ? std::move(made->front()) : Tensor();
  }

  void Finish() {
    for (StepNode& of : step_.nodes) {
      for (Endpoint& input : of.inputs) input = Replaced(input);
    }
    for (Endpoint& fetch : step_.fetches) fetch = Replaced(fetch);
  }

 private:
  Endpoint Replaced(Endpoint value) const {
    while (value.node >= 0 && value.index == 0 && instead_[value.node].node >= 0) value = instead_[value.node];
    return value;
  }

  const PassContext& context_;
  StepGraph& step_;
  IndexedVector<NodeId, Algebra> roles_;
  IndexedVector<NodeId, int> users_;
  IndexedVector<NodeId, Endpoint> instead_;  // of output 0; node -1 for none
};

/// True if the node's result has the shape of `x` whatever x is: the other operand is a scalar or the shapes are known.
bool KeepsShape(const StepGraph& step, const StepNode& node, const Endpoint& x, const Tensor& other) {
  if (other.shape().rank() == 0) return true;
  return step.ShapeOf(x).fully_defined() && node.shapes[0] == step.ShapeOf(x);
}

/// Calls body(x, constant) for both orders of the operands, the second only if the op is commutative.
template <class Body>
bool WithConstant(Simplifier& s, NodeId id, Body&& body) {
  const StepNode& node = s.step().node(id);
  if (node.inputs.size() != 2) return false;
  for (const size_t at : {size_t{1}, size_t{0}}) {
    if (at == 0 && !node.source->op().commutative) break;
    const Tensor* const constant = s.ConstantAt(node.inputs[at]);
    if (constant != nullptr && constant->elements() > 0 && body(node.inputs[1 - at], *constant, at)) return true;
  }
  return false;
}

/// x * 1, x / 1.
bool DropOnes(Simplifier& s, NodeId id) {
  const Algebra role = s.RoleOf(id);
  if (role != Algebra::kProduct && role != Algebra::kQuotient) return false;
  return WithConstant(s, id, [&](const Endpoint& x, const Tensor& constant, size_t) {
    if (!IsFloat(constant.dtype()) && !IsInteger(constant.dtype())) return false;
    return AllOf(constant, [](double e) { return e == 1; }) && KeepsShape(s.step(), s.step().node(id), x, constant) &&
           s.Replace(id, x);
  });
}

/// x + 0 and x - 0. Of floats, x + -0.0 and x - 0.0 keep all bits; -0.0 + 0.0 is 0.0.
bool DropZeros(Simplifier& s, NodeId id) {
  const Algebra role = s.RoleOf(id);
  if (role != Algebra::kSum && role != Algebra::kDifference) return false;
  return WithConstant(s, id, [&](const Endpoint& x, const Tensor& constant, size_t) {
    const bool floats = IsFloat(constant.dtype());
    if (!floats && !IsInteger(constant.dtype())) return false;
    const auto is_nothing = [&](double e) { return e == 0 && (!floats || std::signbit(e) == (role == Algebra::kSum)); };
    return AllOf(constant, is_nothing) && KeepsShape(s.step(), s.step().node(id), x, constant) && s.Replace(id, x);
  });
}

/// f(f(x)).
bool DropPairs(Simplifier& s, NodeId id) {
  if (s.RoleOf(id) != Algebra::kInvolution) return false;
  const NodeId inner = s.Inner(id, 0, Algebra::kInvolution);
  if (inner < 0 || &s.step().node(inner).source->op() != &s.step().node(id).source->op()) return false;
  return s.Replace(id, s.step().node(inner).inputs[0]);
}

/// The integers and the exponents that a type represents exactly.
struct Exact {
  bool is_signed = false;
  int bits = 0;      // of an integer's size
  int exponent = 0;  // of a float's; 0 for integers
};
Exact ExactOf(DType type) {
  switch (type) {
    case DType::kBool:
      return {false, 1};
    case DType::kUint8:
      return {false, 8};
    case DType::kUint16:
      return {false, 16};
    case DType::kUint32:
      return {false, 32};
    case DType::kUint64:
      return {false, 64};
    case DType::kInt8:
      return {true, 7};
    case DType::kInt16:
      return {true, 15};
    case DType::kInt32:
      return {true, 31};
    case DType::kInt64:
      return {true, 63};
    case DType::kHalf:
      return {true, 11, 5};
    case DType::kBfloat16:
      return {true, 8, 8};
    case DType::kFloat:
      return {true, 24, 8};
    case DType::kDouble:
      return {true, 53, 11};
    default:
      return {};
  }
}

/// True if every value of `from` is one of `to`.
bool LosesNothing(DType from, DType to) {
  const Exact a = ExactOf(from), b = ExactOf(to);
  if (a.bits == 0 || b.bits == 0 || (a.is_signed && !b.is_signed) || a.bits > b.bits) return false;
  // An int8's -128 is as exact as 127. Integers reach 2^15 in half.
  return a.exponent > 0 ? a.exponent <= b.exponent : b.exponent == 0 || b.exponent > 5 || a.bits <= 11;
}

/// A cast to the same type, a cast and back, and a cast in two steps, where the inner one loses nothing.
bool MergeCasts(Simplifier& s, NodeId id) {
  if (s.RoleOf(id) != Algebra::kCast) return false;
  const Endpoint x = s.step().node(id).inputs[0];
  const DType to = s.step().node(id).types[0];
  if (s.step().TypeOf(x) == to) return s.Replace(id, x);
  const NodeId inner = s.Inner(id, 0, Algebra::kCast);
  if (inner < 0) return false;
  const Endpoint first = s.step().node(inner).inputs[0];
  const DType from = s.step().TypeOf(first), between = s.step().TypeOf(x);
  if (!LosesNothing(from, between)) return false;
  if (from == to) return s.Replace(id, first);
  if (!LosesNothing(between, to)) return false;
  const op::OpDef& cast = s.step().node(id).source->op();
  if (!s.Become(id, cast, {{"SrcT", from}, {"DstT", to}})) return false;
  s.SetInput(id, 0, first);
  return true;
}

/// The permutation of a transpose; empty if it is unknown or none.
std::vector<int64_t> PermutationOf(Simplifier& s, NodeId id) {
  const Tensor* const order = s.ConstantAt(s.step().node(id).inputs[1]);
  if (order == nullptr || order->shape().rank() != 1 || !IsInteger(order->dtype())) return {};
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < order->elements(); ++i) permutation.push_back(ElementAsInt(*order, i));
  std::vector<int64_t> sorted = permutation;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return {};
  }
  return permutation;
}

bool IsIdentity(const std::vector<int64_t>& permutation) {
  return !permutation.empty() && std::ranges::is_sorted(permutation);
}

/// A transpose that moves nothing, and two in a row.
bool MergeTransposes(Simplifier& s, NodeId id) {
  if (s.RoleOf(id) != Algebra::kTranspose) return false;
  const std::vector<int64_t> outer = PermutationOf(s, id);
  if (outer.empty()) return false;
  const auto has_rank = [&](const Endpoint& x) {  // else the kernel refuses it
    return s.step().ShapeOf(x).has_rank() && s.step().ShapeOf(x).rank() == static_cast<int>(outer.size());
  };
  const Endpoint x = s.step().node(id).inputs[0];
  if (IsIdentity(outer)) return has_rank(x) && s.Replace(id, x);
  const NodeId before = s.Inner(id, 0, Algebra::kTranspose);
  if (before < 0) return false;
  const std::vector<int64_t> inner = PermutationOf(s, before);
  const Endpoint first = s.step().node(before).inputs[0];
  if (inner.size() != outer.size() || !has_rank(first)) return false;
  std::vector<int64_t> both;
  for (const int64_t at : outer) both.push_back(inner[static_cast<size_t>(at)]);
  if (IsIdentity(both)) return s.Replace(id, first);
  if (!s.HasOneUser(before)) return false;
  Tensor order = s.step().TypeOf(s.step().node(id).inputs[1]) == DType::kInt64
                     ? Tensor::Vector(both)
                     : Tensor::Vector(std::vector<int32_t>(both.begin(), both.end()));
  s.MakeConstant(before, std::move(order));
  s.node(id).inputs = {first, {before, 0}};
  return true;
}

/// The operands that give the shape, if any, are constants. Others may ask for a shape that the elements do not fill.
bool HasGivenShape(const Simplifier& s, const StepNode& reshape) {
  return std::all_of(reshape.inputs.begin() + 1, reshape.inputs.end(),
                     [&](const Endpoint& input) { return s.ConstantAt(input) != nullptr; });
}

/// A reshape to the shape that is there, and one of what was only reshaped. Shapes are given, so no error is lost.
bool MergeReshapes(Simplifier& s, NodeId id) {
  if (s.RoleOf(id) != Algebra::kReshape) return false;
  const StepNode& node = s.step().node(id);
  if (!HasGivenShape(s, node)) return false;
  const Endpoint x = node.inputs[0];
  if (!node.shapes[0].fully_defined() || !s.step().ShapeOf(x).fully_defined()) return false;
  if (node.shapes[0] == s.step().ShapeOf(x)) return s.Replace(id, x);
  const NodeId inner = s.Inner(id, 0, Algebra::kReshape);
  if (inner < 0 || !HasGivenShape(s, s.step().node(inner))) return false;
  if (!s.step().ShapeOf(s.step().node(inner).inputs[0]).fully_defined()) return false;
  s.SetInput(id, 0, s.step().node(inner).inputs[0]);
  return true;
}

struct Limits {
  double least, largest;  // of normal numbers
};
Limits LimitsOf(DType type) {
  if (type == DType::kDouble) return {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
  if (type == DType::kHalf) return {6.103515625e-5, 65504};
  return {std::numeric_limits<float>::min(), 3.3895e38};  // the largest bfloat16
}

/// True if one op with the merged constant does what two did: integers wrap, so always; floats if nothing overflows,
/// vanishes or cancels. So x + 2^23 - 2^23, which rounds, stays.
bool MayMerge(Algebra role, const Tensor& first, const Tensor& second, const Tensor& merged) {
  if (!merged.valid() || merged.elements() > std::max(first.elements(), second.elements())) return false;
  if (IsInteger(merged.dtype())) return true;
  if (!IsFloat(merged.dtype())) return false;
  const Limits limits = LimitsOf(merged.dtype());
  for (const Tensor* part : {&first, &second}) {
    if (part->elements() != 1 && part->shape() != merged.shape()) return false;
  }
  for (int64_t i = 0; i < merged.elements(); ++i) {
    const auto size = [i](const Tensor& of) { return std::fabs(ElementAsDouble(of, of.elements() == 1 ? 0 : i)); };
    const double least = role == Algebra::kProduct ? limits.least : std::max(size(first), size(second));
    const double made = size(merged);
    if (!(made >= least && made <= limits.largest)) return false;
  }
  return true;
}

/// (x + c) + d, and with one of the sums a difference; (x * c) * d. The inner node becomes the merged constant.
bool MergeConstants(Simplifier& s, NodeId id) {
  const Algebra role = s.RoleOf(id);
  if (role != Algebra::kSum && role != Algebra::kDifference && role != Algebra::kProduct) return false;
  return WithConstant(s, id, [&](const Endpoint& value, const Tensor& second, size_t at) {
    const size_t from = 1 - at;
    NodeId inner = s.Inner(id, from, role == Algebra::kProduct ? role : Algebra::kSum);
    const bool difference = inner < 0 && role == Algebra::kSum;
    if (difference) inner = s.Inner(id, from, Algebra::kDifference);
    if (inner < 0 || !s.HasOneUser(inner) || value.node != inner || second.elements() > kMostMerged) return false;
    return WithConstant(s, inner, [&](const Endpoint& x, const Tensor& first, size_t) {
      if (first.elements() > kMostMerged || s.ConstantAt(x) != nullptr) return false;
      // x + c - d is x + (c - d); x - c + d is x + (d - c). The evaluator takes nodes of the graph, and `inner` may be
      // a sum that was a difference there.
      Tensor merged = difference ? s.Evaluate(inner, second, first) : s.Evaluate(id, first, second);
      if (!MayMerge(role, first, second, merged)) return false;
      if (role == Algebra::kDifference) {
        const op::OpDef& sum = s.step().node(inner).source->op();
        if (!s.Become(id, sum, {{"T", merged.dtype()}})) return false;
      }
      const Endpoint kept = x;
      s.MakeConstant(inner, std::move(merged));
      s.node(id).inputs = {kept, {inner, 0}};
      return true;
    });
  });
}

struct Rule {
  const char* name;
  /// Replaces the node, or takes an op out from before it. False if the rule does not hold for it.
  bool (*apply)(Simplifier& s, NodeId id);
};

constexpr Rule kRules[] = {
    {"a factor or divisor of 1", DropOnes},   {"a summand of 0", DropZeros},
    {"an op that undoes itself", DropPairs},  {"casts that lose nothing", MergeCasts},
    {"transposes in a row", MergeTransposes}, {"reshapes in a row", MergeReshapes},
    {"constants in a row", MergeConstants},
};

}  // namespace

IndexedVector<NodeId, Algebra> RolesOf(const StepGraph& step) {
  IndexedVector<NodeId, Algebra> roles(step.nodes.size(), Algebra::kNone);
  std::map<const op::OpDef*, Algebra> known;
  for (NodeId id = 0; id < static_cast<NodeId>(step.nodes.size()); ++id) {
    const StepNode& node = step.node(id);
    if (node.kind != StepNode::Kind::kOp || !node.values.empty()) continue;
    const auto [at, fresh] = known.try_emplace(&node.source->op(), Algebra::kNone);
    if (fresh) at->second = ops::AlgebraOf(node.source->op());
    roles[id] = at->second;
  }
  return roles;
}

Status Simplify(const PassContext& context, StepGraph& step) {
  if (!context.options.constant_folding || context.evaluator == nullptr) return Status();
  Simplifier simplifier(context, step);
  for (NodeId id = 0; id < static_cast<NodeId>(step.nodes.size()); ++id) {
    (void)simplifier.Visit(id);
    const auto applies = [&](const Rule& rule) { return rule.apply(simplifier, id); };
    while (!simplifier.IsReplaced(id) && std::ranges::any_of(kRules, applies)) {
    }
  }
  simplifier.Finish();
  return Status();
}

}  // namespace weir::optimize
