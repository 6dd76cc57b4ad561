// Gradients of Switch and Merge: a cond's gradient is a cond by the same predicate.
#include <utility>

#include "core/client/control_flow_internal.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// Name of the op without "Ref".
std::string_view KindOf(const graph::Node& node) {
  std::string_view op = node.op().name;
  if (op.starts_with("Ref")) op.remove_prefix(3);
  return op;
}

/// Zeros of type `dtype` and the shape of the value, or of the variable behind the handle, that are there only when
/// `alive` is.
Result<Output> ZerosOf(const Output& alive, DType dtype, const Where& where) {
  Graph& graph = *alive.graph();
  const bool handle = alive.dtype() == DType::kResource;
  const Output guard = AddOp(graph, "Identity", {alive}, "Identity", where).output(0);
  // TensorFlow has the guard before the one and after the other.
  const ControlDependencies guarded(handle ? std::vector<Dependency>{guard.op()} : std::vector<Dependency>(), graph);
  const std::string_view op = handle ? "VariableShape" : "Shape";
  const Output shape = AddOp(graph, op, {alive}, op, where).output(0);
  WEIR_TRY(graph.status());
  WEIR_ASSIGN(const Tensor zero, ScalarFrom(dtype, 0));
  const ControlDependencies after({guard.op()}, graph);
  const NameScope scope("zeros", graph);
  const Output value = Operand(Literal(zero), where).In(graph, dtype, "Const");
  const std::string path = scope.path();
  return AddOp(graph, "Fill", {shape, value}, path, where).output(0);
}

/// The frame that a node belongs to, for messages: what its Enter says.
std::string FrameOf(Graph& graph, const Operation& forward) {
  if (ControlFlowContext* context = graph.control_flow().ContextOf(forward.id())) {
    if (const WhileContext* loop = context->Loop()) return loop->name();
  }
  Operation at = forward;
  constexpr int kSteps = 4;  // Exit, Switch, Merge, Enter
  for (int i = 0; i < kSteps && at.exists(); ++i) {
    if (const Result<std::string> frame = at.node().attrs().String("frame_name"); frame.ok()) return *frame;
    const std::vector<Output> inputs = at.inputs();
    at = inputs.empty() ? Operation() : inputs[0].op();
  }
  return forward.name();
}

class Builder {
 public:
  Builder(const Operation& forward, std::vector<Output> dy, std::string_view scope, const Where& where)
      : graph_(*forward.graph()),
        flow_(graph_.control_flow()),
        forward_(forward),
        dy_(std::move(dy)),
        scope_(scope),
        where_(where) {}

  Result<std::vector<Output>> Build() {
    const std::string_view kind = KindOf(forward_.node());
    std::vector<Output> inputs = forward_.inputs();
    if (kind == "Switch") {
      ControlFlowContext* context = flow_.ContextOf(forward_.id());
      if (context != nullptr && context->AsWhile() != nullptr) return AtLoop(*context->AsWhile());
      return OfSwitch(context == nullptr ? nullptr : context->AsCond());
    }
    if (kind == "Merge") {
      ControlFlowContext* context = flow_.OutputContextOf(inputs[0].op().id());
      const bool back = KindOf(inputs.back().op().node()) == "NextIteration";
      if (context != nullptr && context->AsWhile() != nullptr) return AtLoop(*context->AsWhile());
      if (back) return Refuse();
      return OfMerge(context == nullptr ? nullptr : context->AsCond());
    }
    ControlFlowContext* context = flow_.ContextOf(forward_.id());
    WhileContext* loop = context == nullptr ? nullptr : context->Loop();
    return loop == nullptr ? Refuse() : AtLoop(*loop);
  }

 private:
  std::vector<Output> None() const { return std::vector<Output>(forward_.inputs().size()); }

  Status Refuse() const {
    return Unimplemented(
        "Gradients through while loops are not implemented: '{}' belongs to the loop '{}'. Take gradients within the "
        "loop's body, or make the loop with back_prop=false where none is wanted.",
        forward_.name(), FrameOf(graph_, forward_));
  }

  /// A gradient taken within the body ends at the loop's variables.
  Result<std::vector<Output>> AtLoop(const WhileContext& loop) const {
    if (!loop.settings().back_prop) return None();
    ControlFlowContext* current = flow_.current();
    const bool within = current != nullptr && current->Loop() == &loop;
    const std::string_view kind = KindOf(forward_.node());
    if (within && (kind == "Switch" || kind == "Merge")) return None();
    return Refuse();
  }

  Result<std::vector<Output>> OfSwitch(const CondContext* cond) {
    const std::vector<Output> inputs = forward_.inputs();
    for (size_t i = 0; i < dy_.size(); ++i) {
      if (dy_[i].exists()) continue;
      if (cond == nullptr) {
        dy_[i] = AddOp(graph_, "ZerosLike", {forward_.output(static_cast<int>(i))}, "zeros_like", where_).output(0);
        continue;
      }
      const Operation split = AddOp(graph_, "Switch", {inputs[0], Output(&graph_, cond->pred())}, "Switch", where_);
      WEIR_TRY(graph_.status());
      WEIR_ASSIGN(dy_[i], ZerosOf(split.output(static_cast<int>(i)), BaseType(dy_[1 - i].dtype()), where_));
    }
    const NameScope scope(scope_, graph_);
    std::vector<Output> grads = None();
    if (cond != nullptr) {
      grads[0] = AddOp(graph_, "Merge", dy_, "cond_grad", where_).output(0);
      return grads;
    }
    const Output no = AddOp(graph_, "Switch", {dy_[0], inputs[1]}, "Switch", where_).output(0);
    const Output yes = AddOp(graph_, "Switch", {dy_[1], inputs[1]}, "Switch", where_).output(1);
    grads[0] = AddOp(graph_, "Merge", {no, yes}, "Merge", where_).output(0);
    return grads;
  }

  Result<std::vector<Output>> OfMerge(const CondContext* cond) {
    const NameScope scope(scope_, graph_);
    std::vector<Output> grads = None();
    if (!dy_[0].exists()) return grads;
    if (cond != nullptr && grads.size() == 2) {
      const Operation split = AddBeside(dy_[0], "Switch", {dy_[0], Output(&graph_, cond->pred())}, "cond_grad", where_);
      return std::vector<Output>{split.output(0), split.output(1)};
    }
    std::vector<Output> arrived;
    for (size_t i = 0; i < grads.size(); ++i) {
      arrived.push_back(
          BuildOp("Equal", {forward_.output(1), Operand(static_cast<int>(i), where_)}, {}, "Equal", where_).output(0));
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      grads[i] = AddBeside(dy_[0], "Switch", {dy_[0], arrived[i]}, "Switch", where_).output(1);
    }
    return grads;
  }

  Graph& graph_;
  ControlFlow& flow_;
  Operation forward_;
  std::vector<Output> dy_;
  std::string_view scope_;
  Where where_;
};

}  // namespace

bool CarriesControlFlow(const graph::Node& node) {
  const std::string_view kind = KindOf(node);
  return kind == "Switch" || kind == "Merge" || kind == "Enter" || kind == "Exit" || kind == "NextIteration";
}

Result<std::vector<Output>> ControlFlowGradients(const Operation& forward, std::vector<Output> dy,
                                                 std::string_view scope, const Where& where) {
  Graph& graph = *forward.graph();
  Result<std::vector<Output>> grads = Builder(forward, std::move(dy), scope, where).Build();
  WEIR_TRY(graph.status());
  return grads;
}

}  // namespace weir
