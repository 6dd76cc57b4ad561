// Batch norms and constant factors and summands behind a convolution with a constant filter: the factors go into the
// filter, and one bias stays.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/rewriter.h"
#include "core/op/op_names.h"
#include "core/optimize/folded_filters.h"
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

/// The axis of the channels in a value of that rank.
int ChannelAxis(const graph::Node& node, int rank) {
  const Result<std::string> format = node.attrs().String("data_format");
  return format.ok() && format->starts_with("NC") ? 1 : rank - 1;
}

/// y = scale x + shift, by channel.
struct Affine {
  std::vector<double> scale, shift;
  bool scales = false;

  explicit Affine(size_t channels) : scale(channels, 1), shift(channels, 0) {}

  template <class F>
  void ForEach(const F& f) {
    for (size_t c = 0; c < scale.size(); ++c) f(c, scale[c], shift[c]);
  }
  bool IsFinite() const {
    const auto finite = [](double e) { return std::isfinite(e); };
    return std::ranges::all_of(scale, finite) && std::ranges::all_of(shift, finite);
  }
};

/// A convolution and the ops behind it that are folded.
struct Chain {
  NodeId convolution = -1, root = -1;
  std::vector<NodeId> between;  // unused afterwards
  Affine affine;
};

class Finder {
 public:
  Finder(const StepGraph& step, IndexedVector<NodeId, Algebra> roles)
      : step_(step), roles_(std::move(roles)), users_(graph::CountUsers(step)) {
    user_of_.assign(step.nodes.size(), -1);
    others_used_.assign(step.nodes.size(), 0);
    for (NodeId id = 0; id < static_cast<NodeId>(step.nodes.size()); ++id) {
      for (const Endpoint& input : step.node(id).inputs) {
        if (input.index == 0) user_of_[input.node] = id;
        if (input.index != 0) others_used_[input.node] = 1;
      }
    }
    for (const Endpoint& fetch : step.fetches) {
      if (fetch.index != 0) others_used_[fetch.node] = 1;
    }
  }

  /// The longest chain behind the node, if it is a convolution with a constant filter and folding gains anything.
  std::optional<Chain> At(NodeId id) const {
    const StepNode& node = step_.node(id);
    const Algebra role = RoleOf(id);
    if (role != Algebra::kConvolution && role != Algebra::kDepthwise) return std::nullopt;
    const Tensor* const filter = ConstantAt(node.inputs[1]);
    if (filter == nullptr || filter->elements() == 0 || !node.shapes[0].has_rank()) return std::nullopt;
    if (filter->dtype() != DType::kFloat && filter->dtype() != DType::kDouble) return std::nullopt;
    const int last = filter->shape().rank() - 1;
    int64_t channels = filter->shape().dim(last);
    if (role == Algebra::kDepthwise) channels *= filter->shape().dim(last - 1);
    Chain chain{id, -1, {}, Affine(static_cast<size_t>(channels))};
    const int axis = ChannelAxis(*node.source, node.shapes[0].rank());
    std::vector<NodeId> passed;
    size_t sums = 0;
    bool odd_sum = false;  // a lone sum that is no bias yet
    Affine affine = chain.affine;
    NodeId from = id;
    for (NodeId at = NextOf(id); at >= 0; from = at, at = NextOf(at)) {
      const StepNode& user = step_.node(at);
      const bool moves = user.frame != node.frame || user.source->device() != node.source->device();
      if (moves || others_used_[at] != 0) break;
      const Algebra what = RoleOf(at);
      if (what == Algebra::kNone && user.source->op().traits.passes_value && user.inputs.size() == 1 &&
          user.control_inputs.empty() && user.types.size() == 1 && !IsRef(user.types[0])) {
        passed.push_back(at);
        continue;
      }
      if (!Follow(what, user, from, axis, affine) || !affine.IsFinite()) break;
      ++sums;
      odd_sum = odd_sum || (what != Algebra::kBiasSum && axis == 1 && node.shapes[0].rank() > 2);
      if (chain.root >= 0) chain.between.push_back(chain.root);
      chain.between.insert(chain.between.end(), passed.begin(), passed.end());
      passed.clear();
      chain.root = at;
      chain.affine = affine;
    }
    const bool gains = chain.root >= 0 && (chain.affine.scales || sums > 1 || odd_sum);
    return gains ? std::optional<Chain>(std::move(chain)) : std::nullopt;
  }

  const Tensor* ConstantAt(const Endpoint& value) const {
    return step_.node(value.node).kind == StepNode::Kind::kConstant ? step_.ValueOf(value) : nullptr;
  }

 private:
  Algebra RoleOf(NodeId id) const {
    const StepNode& node = step_.node(id);
    return node.types.empty() || IsRef(node.types[0]) ? Algebra::kNone : roles_[id];
  }
  /// The node that alone uses output 0; -1 if there is none.
  NodeId NextOf(NodeId id) const {
    const NodeId user = user_of_[id];
    if (users_[id] != 1 || user <= id) return -1;
    return user;
  }

  /// A constant with an element, or one for each channel, for users of that rank; its elements by channel.
  std::optional<std::vector<double>> ByChannel(const Endpoint& value, int rank, int axis, size_t channels) const {
    const Tensor* const constant = ConstantAt(value);
    if (constant == nullptr || constant->shape().rank() > rank) return std::nullopt;
    const int missing = rank - constant->shape().rank();
    for (int i = 0; i < constant->shape().rank(); ++i) {
      const int64_t extent = constant->shape().dim(i);
      if (extent != 1 && (i + missing != axis || extent != static_cast<int64_t>(channels))) return std::nullopt;
    }
    std::vector<double> elements;
    for (size_t c = 0; c < channels; ++c) {
      elements.push_back(ElementAsDouble(*constant, constant->elements() == 1 ? 0 : static_cast<int64_t>(c)));
    }
    return elements;
  }
  /// A constant vector with an element for each channel.
  std::optional<std::vector<double>> Vector(const Endpoint& value, size_t channels) const {
    const Tensor* const constant = ConstantAt(value);
    const bool fits =
        constant != nullptr && constant->shape().rank() == 1 && constant->elements() == static_cast<int64_t>(channels);
    return fits ? ByChannel(value, 1, 0, channels) : std::nullopt;
  }

  /// Puts the op of `user`, which takes the value of `from`, behind the affine function. False if it is none.
  bool Follow(Algebra what, const StepNode& user, NodeId from, int axis, Affine& affine) const {
    if (!user.control_inputs.empty() || user.inputs.size() < 2 || !user.shapes[0].has_rank()) return false;
    const int rank = user.shapes[0].rank();
    const size_t channels = affine.scale.size();
    const bool first = user.inputs[0] == Endpoint{from, 0};
    const Endpoint& other = user.inputs[first ? 1 : 0];
    switch (what) {
      case Algebra::kSum:
      case Algebra::kDifference:
      case Algebra::kProduct:
      case Algebra::kQuotient:
        return FollowBinary(what, first, ByChannel(other, rank, axis, channels), affine);
      case Algebra::kBiasSum:
        if (!first || ChannelAxis(*user.source, rank) != axis) return false;
        return FollowBinary(Algebra::kSum, true, Vector(other, channels), affine);
      case Algebra::kBatchNorm:
        return first && ChannelAxis(*user.source, rank) == axis && FollowBatchNorm(user, affine);
      default:
        return false;
    }
  }
  static bool FollowBinary(Algebra what, bool first, const std::optional<std::vector<double>>& by, Affine& affine) {
    if (!by || (what == Algebra::kQuotient && !first)) return false;
    affine.scales = affine.scales || what == Algebra::kProduct || what == Algebra::kQuotient || !first;
    affine.ForEach([&](size_t c, double& scale, double& shift) {
      const double e = (*by)[c];
      if (what == Algebra::kSum) {
        shift += e;
      } else if (what == Algebra::kDifference) {
        scale = first ? scale : -scale;
        shift = first ? shift - e : e - shift;
      } else {
        scale = what == Algebra::kProduct ? scale * e : scale / e;
        shift = what == Algebra::kProduct ? shift * e : shift / e;
      }
    });
    return true;
  }
  bool FollowBatchNorm(const StepNode& norm, Affine& affine) const {
    const Result<bool> training = norm.source->attrs().Bool("is_training");
    const Result<float> epsilon = norm.source->attrs().Float("epsilon");
    if (!training.ok() || *training || !epsilon.ok() || norm.inputs.size() != 5) return false;
    std::vector<std::vector<double>> statistics;
    for (size_t i = 1; i < 5; ++i) {
      std::optional<std::vector<double>> vector = Vector(norm.inputs[i], affine.scale.size());
      if (!vector) return false;
      statistics.push_back(std::move(*vector));
    }
    affine.scales = true;
    affine.ForEach([&](size_t c, double& scale, double& shift) {
      const double factor = statistics[0][c] / std::sqrt(statistics[3][c] + static_cast<double>(*epsilon));
      scale *= factor;
      shift = (shift - statistics[2][c]) * factor + statistics[1][c];
    });
    return true;
  }

  const StepGraph& step_;
  IndexedVector<NodeId, Algebra> roles_;
  IndexedVector<NodeId, int> users_;
  IndexedVector<NodeId, NodeId> user_of_;    // of output 0; the last one
  IndexedVector<NodeId, char> others_used_;  // outputs but the first
};

/// A tensor of value(i), rounded to T; not valid if there is no value, or a float is not finite.
template <class T, class Value>
Tensor TensorOf(const Shape& shape, const Value& value) {
  Result<Tensor> tensor = Tensor::Make(std::is_same_v<T, double> ? DType::kDouble : DType::kFloat, shape);
  if (!tensor.ok()) return Tensor();
  size_t i = 0;
  for (T& element : tensor->mutable_as<T>()) {
    const std::optional<double> exact = value(i++);
    if (!exact) return Tensor();
    element = static_cast<T>(*exact);
    if (std::is_same_v<T, float> && !std::isfinite(element)) return Tensor();
  }
  return std::move(*tensor);
}
template <class Value>
Tensor TensorOf(DType dtype, const Shape& shape, const Value& value) {
  return dtype == DType::kDouble ? TensorOf<double>(shape, value) : TensorOf<float>(shape, value);
}

/// The filter with each output channel multiplied by its factor. Channels are the innermost elements of filters of all
/// convolutions.
Tensor Scaled(const Tensor& filter, const std::vector<double>& scale) {
  return TensorOf(filter.dtype(), filter.shape(), [&](size_t i) -> std::optional<double> {
    const double element = ElementAsDouble(filter, static_cast<int64_t>(i)), made = element * scale[i % scale.size()];
    if (!std::isfinite(made) && std::isfinite(element)) return std::nullopt;
    return made;
  });
}

/// The same, shared with other steps of the session.
Tensor SharedScaled(const Tensor& filter, const std::vector<double>& scale, FoldedFilters* shared) {
  if (shared == nullptr) return Scaled(filter, scale);
  if (Tensor known = shared->Find(filter, scale); known.valid()) return known;
  const Tensor made = Scaled(filter, scale);
  return made.valid() ? shared->Keep(filter, scale, made) : made;
}

/// Constants that a pass adds: nodes before all others, whose ids are set by Insert. Until then they have ids from the
/// number of nodes on.
class NewConstants {
 public:
  explicit NewConstants(StepGraph& step)
      : step_(step),
        first_(static_cast<NodeId>(step.nodes.size())),
        owner_(std::make_shared<graph::Definition>(step.graph->ops())) {}

  /// `name` gets a tail if the graph has it.
  Result<Endpoint> Add(std::string name, Tensor value) {
    while (step_.graph->Find(name) != nullptr) name += "_";
    op::AttrList attrs = {{"dtype", value.dtype()}, {"value", value}};
    WEIR_ASSIGN(const graph::Node* const source,
                owner_->Add({name, owner_->ops().Find(op::kConstOp), {}, {}, {}, std::move(attrs), {}}));
    StepNode node;
    node.kind = StepNode::Kind::kConstant;
    node.source = source;
    node.types = {value.dtype()};
    node.shapes = {PartialShape(value.shape())};
    node.values = {std::move(value)};
    made_.push_back(std::move(node));
    return Endpoint{first_ + static_cast<NodeId>(made_.size()) - 1, 0};
  }
  void Insert() {
    if (made_.empty()) return;
    const auto count = static_cast<NodeId>(made_.size());
    const auto moved = [&](NodeId id) { return id < 0 ? id : id >= first_ ? id - first_ : id + count; };
    for (StepNode& node : step_.nodes) {
      for (Endpoint& input : node.inputs) input.node = moved(input.node);
      for (NodeId& control : node.control_inputs) control = moved(control);
    }
    for (Endpoint& fetch : step_.fetches) fetch.node = moved(fetch.node);
    for (NodeId& target : step_.targets) target = moved(target);
    for (const StepNode& node : made_) {
      step_.made.push_back({std::shared_ptr<const graph::Node>(owner_, node.source), {}});
    }
    step_.nodes.InsertAt(0, std::make_move_iterator(made_.begin()), std::make_move_iterator(made_.end()));
  }

 private:
  StepGraph& step_;
  NodeId first_;
  std::shared_ptr<graph::Definition> owner_;
  std::vector<StepNode> made_;
};

/// Attributes that start with "_", such as colocation groups, stay with a node.
op::AttrList HiddenAttrs(const graph::Node& node) {
  op::AttrList hidden;
  for (const auto& [name, value] : node.attrs().explicit_values()) {
    if (name.starts_with('_')) hidden.emplace_back(name, value);
  }
  return hidden;
}

/// The root becomes the sum of the convolution and a bias, for all nodes of the chain.
Status MakeBiasSum(const Chain& chain, const Endpoint& bias, StepGraph& step) {
  StepNode& root = step.nodes[chain.root];
  const StepNode& convolution = step.node(chain.convolution);
  const bool first = ChannelAxis(*convolution.source, convolution.shapes[0].rank()) == 1;
  op::AttrList attrs = HiddenAttrs(*root.source);
  attrs.emplace_back("T", convolution.types[0]);
  attrs.emplace_back("data_format", first ? "NCHW" : "NHWC");
  graph::MadeNode made;
  WEIR_ASSIGN(made.node,
              graph::Node::InPlaceOf(*root.source, *step.graph->ops().Find(ops::kBiasSumOp), std::move(attrs)));
  for (const NodeId id : chain.between) made.stands_for.push_back(step.node(id).source);
  made.stands_for.push_back(root.source);
  root.source = made.node.get();
  root.inputs = {{chain.convolution, 0}, bias};
  root.types.resize(1);
  root.shapes.resize(1);
  step.made.push_back(std::move(made));
  return Status();
}

}  // namespace

Status FoldIntoFilters(const PassContext& context, StepGraph& step) {
  if (!context.options.constant_folding || !context.options.fold_into_filters) return Status();
  IndexedVector<NodeId, Algebra> roles = RolesOf(step);
  const auto convolves = [&](NodeId id) {
    return roles[id] == Algebra::kConvolution || roles[id] == Algebra::kDepthwise;
  };
  std::vector<NodeId> convolutions;
  for (NodeId id = 0; id < static_cast<NodeId>(step.nodes.size()); ++id) {
    if (convolves(id)) convolutions.push_back(id);
  }
  if (convolutions.empty()) return Status();
  const Finder finder(step, std::move(roles));
  NewConstants constants(step);
  std::vector<Chain> chains;
  for (const NodeId id : convolutions) {
    if (std::optional<Chain> chain = finder.At(id)) chains.push_back(std::move(*chain));
  }
  for (const Chain& chain : chains) {
    StepNode& convolution = step.nodes[chain.convolution];
    const Tensor& filter = *step.ValueOf(convolution.inputs[1]);
    const auto channels = static_cast<int64_t>(chain.affine.scale.size());
    const Tensor scaled =
        chain.affine.scales ? SharedScaled(filter, chain.affine.scale, context.options.folded_filters) : filter;
    const Tensor bias = TensorOf(filter.dtype(), Shape::Of({channels}),
                                 [&](size_t c) { return std::optional<double>(chain.affine.shift[c]); });
    if (!scaled.valid() || !bias.valid()) continue;
    const std::string name(step.node(chain.root).name());
    WEIR_ASSIGN(const Endpoint bias_at, constants.Add(name + "/bias", bias));
    if (chain.affine.scales) {
      WEIR_ASSIGN(convolution.inputs[1], constants.Add(name + "/filter", scaled));
    }
    WEIR_TRY(MakeBiasSum(chain, bias_at, step));
  }
  constants.Insert();
  return Status();
}

}  // namespace weir::optimize
