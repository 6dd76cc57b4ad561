#include "core/client/gradients/gradients.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/client/gradients/differentiation_internal.h"
#include "core/client/gradients/loop_gradient_internal.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/operand.h"
#include "core/client/ops/ops.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using op::Flow;

/// One backward walk.
class Backward {
 public:
  Backward(Graph& graph, const std::vector<Output>& ys, const std::vector<Output>& xs, const GradientsOptions& options,
           std::source_location where)
      : graph_(graph),
        flow_(Internals(graph).control_flow),
        home_(flow_.current()),
        ys_(ys),
        xs_(xs),
        options_(options),
        where_(where) {}

  Result<List<Gradient>> Run() {
    const NameScope scope(options_.name, graph_);
    source_ = scope.path().substr(0, scope.path().find_last_not_of('/') + 1);
    WEIR_TRY(CheckArguments());
    MarkPath();
    CountUses();
    WEIR_TRY(Seed());
    while (!ready_.empty()) {
      const NodeId last = *ready_.rbegin();
      ready_.erase(last);
      WEIR_TRY(Visit(last));
    }
    for (auto& [context, loop] : loops_) {
      if (loop.gradient != nullptr) WEIR_TRY(loop.gradient->Finish());
    }
    List<Gradient> answers;
    for (const Output& x : xs_) {
      Gradient gradient = Sum(x.endpoint());
      if (!gradient.exists() && options_.unconnected == Unconnected::kZero) {
        WEIR_ASSIGN(gradient.values, ZerosFor(x));
      }
      if (!gradient.exists()) gradient.why_none = WhyNone(x.endpoint());
      answers.push_back(gradient);
    }
    WEIR_TRY(graph_.status());
    return answers;
  }

 private:
  Status CheckArguments() const {
    for (const std::vector<Output>* list : {&ys_, &xs_, &options_.stop_gradients, &options_.grad_ys}) {
      for (const Output& output : *list) {
        if (!output.exists() && list == &options_.grad_ys) continue;
        if (!output.exists()) return InvalidArgument("None values not supported. ({})", Format(where_));
        if (output.graph() != &graph_) {
          return InvalidArgument("{} must be from the same graph as {}.", output.ToString(), ys_[0].ToString());
        }
      }
    }
    if (!options_.grad_ys.empty() && options_.grad_ys.size() != ys_.size()) {
      return InvalidArgument("Passed {} grad_ys for {} ys", options_.grad_ys.size(), ys_.size());
    }
    return Status();
  }

  bool Stopped(Endpoint e) const {
    return std::any_of(options_.stop_gradients.begin(), options_.stop_gradients.end(),
                       [&](const Output& o) { return o.endpoint() == e; });
  }

  const Node& NodeAt(NodeId id) const { return Internals(graph_).definition.node(id); }

  /// Whether a gradient may flow from a node to one of its inputs: not of what decides (bool), not into a loop without
  /// back_prop, and within the body of a loop not into the iteration before.
  bool Follows(NodeId id, const Endpoint& input) const {
    if (Stopped(input) || BaseType(Internals(graph_).definition.TypeOf(input)) == DType::kBool) return false;
    const WhileContext* const loop = LoopOf(id);
    if (loop == nullptr) return true;
    if (NodeAt(id).op().traits.flow == Flow::kExit) return loop->settings().back_prop;
    return !IsLoopMerge(NodeAt(id)) || home_ == nullptr || !home_->Within(loop);
  }

  /// The loop that a node was made in: of an Exit the one that it leaves.
  WhileContext* LoopOf(NodeId id) const {
    ControlFlowContext* const context = flow_.ContextOf(id);
    return context == nullptr ? nullptr : context->Loop();
  }

  bool IsLoopMerge(const Node& node) const {
    return node.op().traits.flow == Flow::kMerge && std::ranges::any_of(node.inputs(), [&](const Endpoint& input) {
             return NodeAt(input.node).op().traits.flow == Flow::kNextIteration;
           });
  }
  bool IsLoopSwitch(const Node& node) const {
    return node.op().traits.flow == Flow::kSwitch && NodeAt(node.inputs()[1].node).op().traits.flow == Flow::kLoopCond;
  }

  /// Nodes that an x reaches and that reach a y.
  void MarkPath() {
    std::set<NodeId> behind;  // what the ys need
    std::vector<NodeId> stack;
    for (const Output& y : ys_) stack.push_back(y.endpoint().node);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!behind.insert(id).second) continue;
      for (const Endpoint& input : NodeAt(id).inputs()) {
        if (Follows(id, input)) stack.push_back(input.node);
      }
    }
    for (const Output& x : xs_) sources_.insert(x.endpoint());
    bool again = true;
    while (again) {
      again = false;
      for (const NodeId id : behind) {  // ascending: inputs come first, but for the edges that close a loop
        if (path_.contains(id)) continue;
        const bool on_path = std::ranges::any_of(
            NodeAt(id).inputs(), [&](const Endpoint& input) { return Wanted(input) && Follows(id, input); });
        if (!on_path) continue;
        path_.insert(id);
        again = again || NodeAt(id).op().traits.flow == Flow::kNextIteration;
      }
    }
  }

  bool Wanted(const Endpoint& e) const { return sources_.contains(e) || path_.contains(e.node); }

  /// A node's gradients are complete when all its uses have been visited. Exit, Merge and Switch of a loop variable do
  /// not count as uses: they go with their loop.
  void CountUses() {
    for (const NodeId id : path_) {
      const Node& node = NodeAt(id);
      const bool exit = node.op().traits.flow == Flow::kExit;
      WhileContext* const loop = LoopOf(id);
      if (exit && loop != nullptr) ++loops_[loop].open_exits;
      if (exit || IsLoopMerge(node) || IsLoopSwitch(node)) continue;
      for (const Endpoint& input : node.inputs()) {
        if (path_.contains(input.node) && Follows(id, input)) ++uses_[input.node];
      }
    }
    for (const Output& y : ys_) {
      const NodeId id = y.endpoint().node;
      if (path_.contains(id) && !uses_.contains(id)) ready_.insert(id);
    }
  }

  /// One use less of each input.
  void Release(NodeId id) {
    for (const Endpoint& input : NodeAt(id).inputs()) {
      if (path_.contains(input.node) && Follows(id, input) && --uses_[input.node] == 0) ready_.insert(input.node);
    }
  }

  Status Seed() {
    for (size_t i = 0; i < ys_.size(); ++i) {
      Output seed = i < options_.grad_ys.size() ? options_.grad_ys[i] : Output();
      if (!seed.exists()) {
        const DType dtype = BaseType(ys_[i].dtype());
        const Result<Tensor> one = ScalarFrom(dtype, 1);
        if (!one.ok())
          return InvalidArgument("{} has type {}, of which there are no gradients", ys_[i].name(), Name(dtype));
        const Output shape = weir::ShapeOf(ys_[i], DType::kInt32, "Shape", where_);
        const Output value = Operand(Literal(*one)).In(graph_, dtype, "grad_ys_" + std::to_string(i) + "/Const");
        seed = AddOp(graph_, "Fill", {shape, value}, {}, "grad_ys_" + std::to_string(i), where_).output(0);
      }
      pending_[ys_[i].endpoint()].push_back({seed, {}, {}});
    }
    return Status();
  }

  /// All gradients that flowed into a value, as one.
  Gradient Sum(Endpoint e) {
    const auto found = pending_.find(e);
    if (found == pending_.end() || found->second.empty()) return {};
    std::vector<Gradient>& parts = found->second;
    if (parts.size() > 1) {
      const bool sparse = std::all_of(parts.begin(), parts.end(), [](const Gradient& g) { return g.sparse(); });
      parts = {sparse ? Concatenate(parts) : AddUp(parts)};
    }
    return parts[0];
  }

  Gradient AddUp(const std::vector<Gradient>& parts) {
    std::vector<Output> dense;
    for (const Gradient& part : parts) dense.push_back(Densify(graph_, part));
    return {AddOp(graph_, "AddN", std::move(dense), {}, {}, where_).output(0), {}, {}};
  }

  Gradient Concatenate(const std::vector<Gradient>& parts) {
    std::vector<Output> values, indices;
    for (const Gradient& part : parts) {
      values.push_back(part.values);
      indices.push_back(part.indices);
    }
    const Output all = Joined(std::move(values));
    return {all, Joined(std::move(indices)), parts[0].dense_shape};
  }

  /// Along the first axis.
  Output Joined(std::vector<Output> parts) {
    const NameScope scope("concat", graph_);
    parts.push_back(Operand(Literal(0)).In(graph_, DType::kInt32, "axis"));
    const std::string path = scope.path();
    return AddOp(graph_, "ConcatV2", std::move(parts), {}, path, where_).output(0);
  }

  /// Nodes that use `x`, directly or not, and that ys need.
  std::set<NodeId> Between(Endpoint x) const {
    std::set<NodeId> behind;  // what the ys need
    std::vector<NodeId> stack;
    for (const Output& y : ys_) stack.push_back(y.endpoint().node);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (id < 0 || !behind.insert(id).second) continue;
      for (const Endpoint& input : NodeAt(id).inputs()) stack.push_back(input.node);
    }
    std::set<NodeId> between;
    for (bool again = true; again;) {
      again = false;
      for (const NodeId id : behind) {
        if (between.contains(id)) continue;
        const bool uses = std::ranges::any_of(
            NodeAt(id).inputs(), [&](const Endpoint& input) { return input == x || between.contains(input.node); });
        if (!uses) continue;
        between.insert(id);
        again = again || NodeAt(id).op().traits.flow == Flow::kNextIteration;
      }
    }
    return between;
  }

  /// Where gradients stopped on their way to `x`.
  std::string WhyNone(Endpoint x) const {
    const graph::Definition& definition = Internals(graph_).definition;
    if (Stopped(x)) return fmt::format("'{}' is among stop_gradients", FullEndpointName(definition, x));
    const std::set<NodeId> between = Between(x);
    std::set<NodeId> led;  // those that gradients of x could come from
    const auto leads = [&](const Endpoint& input) { return input == x || led.contains(input.node); };
    for (const NodeId id : between) {  // ascending: inputs come first
      const auto follows = [&](const Endpoint& input) { return leads(input) && Follows(id, input); };
      if (std::ranges::any_of(NodeAt(id).inputs(), follows)) led.insert(id);
    }
    std::string breaks;
    int count = 0;
    for (auto id = between.rbegin(); id != between.rend(); ++id) {
      const Node& node = NodeAt(*id);
      bool arrived = false;
      for (int i = 0; i < node.num_outputs(); ++i) arrived = arrived || HasGradient({*id, i});
      const auto end = std::ranges::find_if(node.inputs(), [&](const Endpoint& input) {
        return leads(input) && (!Follows(*id, input) || (arrived && !HasGradient(input)));
      });
      if (end == node.inputs().end() || ++count > 3) continue;
      breaks += (breaks.empty() ? "at " : ", at ") + Break(node, *end);
    }
    if (count > 3) breaks += fmt::format(" and {} others", count - 3);
    if (!breaks.empty()) return breaks;
    return fmt::format("'{}' does not depend on '{}'", ys_[0].name(), FullEndpointName(definition, x));
  }

  /// "'ArgMax' (ArgMax): its answer is discrete".
  std::string Break(const Node& node, Endpoint input) const {
    std::string why = fmt::format("it gives none for '{}'", FullEndpointName(Internals(graph_).definition, input));
    if (Stopped(input)) {
      why =
          fmt::format("its input '{}' is among stop_gradients", FullEndpointName(Internals(graph_).definition, input));
    } else if (BaseType(Internals(graph_).definition.TypeOf(input)) == DType::kBool) {
      why = fmt::format("its input '{}' is boolean", FullEndpointName(Internals(graph_).definition, input));
    } else if (!node.op().gradient && !node.op().no_gradient.empty()) {
      why = node.op().no_gradient;
    }
    return fmt::format("'{}' ({}): {}", node.name(), node.op().name, why);
  }

  /// Like `x`, or like the variable behind a handle.
  Result<Output> ZerosFor(const Output& x) {
    DType dtype = BaseType(x.dtype());
    if (dtype == DType::kResource) {
      WEIR_ASSIGN(dtype, x.op().node().attrs().Type("dtype"));
    }
    return ZerosLikeForward(x, dtype, where_);
  }

  Status Visit(NodeId id) {
    const Node& node = NodeAt(id);
    if (node.op().traits.flow == Flow::kExit) {
      WhileContext* const loop = LoopOf(id);
      if (loop == nullptr) return NoContext(id);
      return --loops_[loop].open_exits == 0 ? GoBackThrough(*loop) : Status();
    }
    const InContext in(flow_, HomeOf(flow_.OutputContextOf(id)));
    if (IsLoopSwitch(node)) return CloseVariable(id);
    WEIR_TRY(Differentiate(id));
    Release(id);
    return Status();
  }

  Status NoContext(NodeId exit) {
    if (!HasGradient({exit, 0})) return Status();
    return FailedPrecondition(
        "Failed to call gradients on a while loop without properly serializing graph via MetaGraphDef: '{}' leaves a "
        "loop of which the graph knows no context",
        NodeAt(exit).name());
  }

  bool HasGradient(Endpoint e) const {
    const auto found = pending_.find(e);
    return found != pending_.end() && !found->second.empty();
  }

  /// Where gradients of what is made in `context` are made.
  ControlFlowContext* HomeOf(ControlFlowContext* context) const {
    const auto found = context == nullptr ? loops_.end() : loops_.find(context->Loop());
    return found == loops_.end() || found->second.gradient == nullptr ? home_ : &found->second.gradient->context();
  }

  LoopGradient* GradientOf(const WhileContext* loop) const {
    const auto found = loops_.find(loop);
    return found == loops_.end() ? nullptr : found->second.gradient.get();
  }

  /// Begins the gradient loop, now that the gradients of all exits are there.
  Status GoBackThrough(WhileContext& forward) {
    const std::vector<Endpoint> exits = forward.exits();
    const InContext in(flow_, HomeOf(forward.outer()));
    if (std::ranges::any_of(exits, [&](const Endpoint& exit) { return HasGradient(exit); })) {
      if (forward.is_gradient()) return Unimplemented("Second-order gradient for while loops not supported.");
      const WhileContext* const around = forward.outer() == nullptr ? nullptr : forward.outer()->Loop();
      WEIR_ASSIGN(loops_[&forward].gradient,
                  LoopGradient::Make(graph_, forward, GradientOf(around), home_, Where(where_)));
    }
    for (const Endpoint& exit : exits) {
      const NodeId split = NodeAt(exit.node).inputs()[0].node, merge = NodeAt(split).inputs()[0].node;
      if (!path_.contains(merge)) continue;
      WEIR_TRY(BeginVariable(forward, exit, split));
      for (const Endpoint& input : NodeAt(merge).inputs()) Release(input.node);
      if (!uses_.contains(split)) ready_.insert(split);
    }
    return graph_.status();
  }

  /// A loop variable's gradient is a variable of the gradient loop: it begins with that of the exit, and ends as that
  /// of the initial value.
  Status BeginVariable(const WhileContext& forward, Endpoint exit, NodeId split) {
    LoopGradient* const gradient = GradientOf(&forward);
    if (gradient == nullptr || !IsTrainable(BaseType(Internals(graph_).definition.TypeOf(exit)))) return Status();
    const Output value(&graph_, {split, 1});
    Output dy = Densify(graph_, Sum(exit));
    const NameScope scope(NodeAt(exit.node).name() + "_grad", graph_);
    if (!dy.exists()) {
      WEIR_ASSIGN(dy, ZerosLikeForward(Output(&graph_, exit), BaseType(value.dtype()), where_));
    }
    WEIR_ASSIGN(const LoopGradient::Carried carried, gradient->Carry(dy, value.shape(), "b_exit", "b_switch"));
    carried_[split] = carried;
    for (const Endpoint& into : NodeAt(NodeAt(split).inputs()[0].node).inputs()) {
      const Node& way = NodeAt(into.node);
      if (!Wanted(way.inputs()[0])) continue;
      Output back = carried.value;
      if (way.op().traits.flow == Flow::kEnter) {
        WEIR_ASSIGN(back, gradient->Leave(carried, "Exit"));
      }
      Flow(way.inputs()[0], {back, {}, {}});
    }
    return graph_.status();
  }

  /// What flowed back through the body is the variable's gradient one iteration earlier.
  Status CloseVariable(NodeId split) {
    const auto carried = carried_.find(split);
    if (carried == carried_.end()) return Status();
    const Output value(&graph_, {split, 1});
    const NameScope scope(NodeAt(split).name() + "_grad", graph_);
    Output dy = Densify(graph_, Sum(value.endpoint()));
    if (!dy.exists()) {
      WEIR_ASSIGN(dy, ZerosLikeForward(value, BaseType(value.dtype()), where_));
    }
    return LoopOf(split) == nullptr ? Status() : GradientOf(LoopOf(split))->Close(carried->second, dy);
  }

  /// Of a loop invariant: the sum over all iterations. Within the body of a loop: of this iteration.
  Status DifferentiateInvariant(NodeId enter, const Gradient& dy) {
    const Endpoint outside = NodeAt(enter).inputs()[0];
    LoopGradient* const gradient = GradientOf(LoopOf(enter));
    Gradient sum = dy;
    const NameScope scope(NodeAt(enter).name() + "_grad", graph_);
    if (gradient != nullptr && HasKnownRows(dy)) {
      WEIR_ASSIGN(sum.values, gradient->AccumulateRows(dy.values));
      WEIR_ASSIGN(sum.indices, gradient->AccumulateRows(dy.indices));
      const InContext in(flow_, gradient->context().outer());
      WEIR_ASSIGN(sum.dense_shape, ShapeOfInvariant(outside, dy.dense_shape.dtype()));
    } else if (gradient != nullptr) {
      sum = {};
      WEIR_ASSIGN(sum.values, gradient->Accumulate(Output(&graph_, outside), Densify(graph_, dy)));
    }
    Flow(outside, sum);
    return graph_.status();
  }

  /// Rows of which all extents but their number are known.
  static bool HasKnownRows(const Gradient& gradient) {
    if (!gradient.sparse() || !gradient.dense_shape.exists()) return false;
    PartialShape shape = gradient.values.shape();
    if (!shape.has_rank() || shape.rank() == 0) return false;
    shape.set_dim(0, 0);
    return shape.fully_defined();
  }

  Result<Output> ShapeOfInvariant(Endpoint invariant, DType type) {
    const Output value(&graph_, invariant);
    if (value.dtype() != DType::kResource) return QueryForward("Shape", value, type, where_);
    return AddOp(graph_, "VariableShape", {value}, {{"out_type", type}}, {}, where_).output(0);
  }

  Status Differentiate(NodeId id) {
    const Operation forward(&graph_, id);
    std::vector<Gradient> dy;
    bool any = false;
    for (int i = 0; i < forward.num_outputs(); ++i) {
      dy.push_back(Sum({id, i}));
      any = any || dy.back().exists();
    }
    if (!any) return Status();
    const op::OpDef& op = forward.node().op();
    if (op.traits.flow == Flow::kEnter) return DifferentiateInvariant(id, dy[0]);
    if (op.traits.flow == Flow::kSwitch || op.traits.flow == Flow::kMerge) return DifferentiateControlFlow(forward, dy);
    if (!op.gradient && op.no_gradient == op::kUndefinedGradient) {
      return NotFound("No gradient defined for operation '{}' (op type: {})", forward.name(), op.name)
          .WithNode(forward.name(), forward.node().origin());
    }
    if (!op.gradient) return Status();  // its outputs do not vary with its inputs, or not smoothly
    const NameScope scope(forward.name() + "_grad", graph_);
    Differentiation context(graph_, forward, std::move(dy), source_, where_);
    Result<std::vector<op::Grad>> grads = op.gradient(context);
    if (!grads.ok()) return Internals(graph_).Tell(grads.status().WithNode(forward.name(), forward.node().origin()));
    std::vector<Output> all;
    for (const op::Grad& grad : *grads) all.push_back(context.ToOutput(grad.values));
    if (options_.gate) Gate(all);
    const auto inputs = forward.node().inputs();
    for (size_t i = 0; i < grads->size() && i < inputs.size(); ++i) {
      const op::Grad& grad = (*grads)[i];
      Flow(inputs[i], {all[i], context.ToOutput(grad.indices), context.ToOutput(grad.dense_shape)});
    }
    return graph_.status();
  }

  /// A gradient of a node's input. Of a handle it is the gradient of the variable, whose shape is not the handle's.
  void Flow(Endpoint input, const Gradient& gradient) {
    if (!gradient.exists() || !Wanted(input) || Stopped(input)) return;
    const graph::Definition& definition = Internals(graph_).definition;
    const bool like_input = !gradient.sparse() && definition.TypeOf(input) != DType::kResource;
    if (like_input) gradient.values.SetShape(definition.ShapeOf(input));
    pending_[input].push_back(gradient);
  }

  /// Puts an Identity behind each of several gradients, which waits for all of them.
  void Gate(std::vector<Output>& gradients) {
    std::vector<Groupable> made;
    for (const Output& gradient : gradients) {
      if (gradient.exists()) made.emplace_back(gradient);
    }
    if (made.size() < 2) return;
    const NameScope scope("tuple", graph_);
    const DeviceScope anywhere(std::nullopt, graph_);
    const ControlDependencies after({Group(made, "group_deps", where_)}, graph_);
    for (Output& gradient : gradients) {
      if (!gradient.exists()) continue;
      const ColocateWith beside(gradient.op(), OuterColocation::kIgnore, graph_);
      gradient = AddOp(graph_, "Identity", {gradient}, {}, "control_dependency", where_).output(0);
    }
  }

  Status DifferentiateControlFlow(const Operation& forward, const std::vector<Gradient>& dy) {
    std::vector<Output> dense;
    for (const Gradient& gradient : dy) dense.push_back(gradient.exists() ? Densify(graph_, gradient) : Output());
    const Result<std::vector<Output>> grads =
        ControlFlowGradients(forward, std::move(dense), forward.name() + "_grad", where_);
    if (!grads.ok()) return Internals(graph_).Tell(grads.status().WithNode(forward.name(), forward.node().origin()));
    const auto inputs = forward.node().inputs();
    for (size_t i = 0; i < grads->size() && i < inputs.size(); ++i) Flow(inputs[i], {(*grads)[i], {}, {}});
    return graph_.status();
  }

  struct Loop {
    int open_exits = 0;
    std::unique_ptr<LoopGradient> gradient;  // null where no gradient arrived
  };

  Graph& graph_;
  ControlFlow& flow_;
  ControlFlowContext* const home_;  // where gradients were asked for
  const std::vector<Output>& ys_;
  const std::vector<Output>& xs_;
  const GradientsOptions& options_;
  std::source_location where_;
  std::string source_;  // GradContext::source
  std::set<NodeId> path_;
  std::set<Endpoint> sources_;
  std::map<NodeId, int> uses_;  // by nodes of the path that were not visited yet
  std::set<NodeId> ready_;
  std::map<const WhileContext*, Loop> loops_;        // those that the path leaves
  std::map<NodeId, LoopGradient::Carried> carried_;  // by the Switch of the loop variable
  std::map<Endpoint, std::vector<Gradient>> pending_;
};

}  // namespace

std::vector<Output> Differentiated::Values(std::source_location where) const {
  std::vector<Output> values;
  for (const Value& value : values_) {
    const Variable* variable = std::get_if<Variable>(&value);
    values.push_back(variable != nullptr ? variable->value(where) : std::get<Output>(value));
  }
  return values;
}

std::vector<Output> Differentiated::Sources() const {
  std::vector<Output> sources;
  for (const Value& value : values_) {
    const Variable* variable = std::get_if<Variable>(&value);
    sources.push_back(variable != nullptr ? variable->handle() : std::get<Output>(value));
  }
  return sources;
}

Result<List<Gradient>> Gradients(const Differentiated& of, const Differentiated& by, const GradientsOptions& options,
                                 std::source_location where) {
  const std::vector<Output> ys = of.Values(where), xs = by.Sources();
  if (ys.empty() && xs.empty()) return InvalidArgument("Gradients of nothing: ys and xs are empty ({})", Format(where));
  Graph& graph = GraphOf(ys.empty() ? std::vector<Operand>{xs[0]} : std::vector<Operand>{ys.begin(), ys.end()});
  if (xs.empty() || ys.empty()) {
    return graph.Fail(InvalidArgument("Gradients {}: {} are empty ({})", xs.empty() ? "by nothing" : "of nothing",
                                      xs.empty() ? "xs" : "ys", Format(where)));
  }
  for (const std::vector<Output>* const list : {&ys, &xs}) {
    for (const Output& value : *list) {
      if (value.graph() == &graph) WEIR_TRY(Internals(graph).ErrorOf(value.endpoint().node));
    }
  }
  const ErrorsSince errors(graph);
  const Origin origin(where, graph);
  Result<List<Gradient>> gradients = Backward(graph, ys, xs, options, where).Run();
  if (!gradients.ok()) (void)Internals(graph).Tell(gradients.status());
  return gradients;
}

}  // namespace weir
