// Gradients of a cond's Switch and Merge: a cond by the same predicate.
#include <utility>

#include "core/client/gradients/loop_gradient_internal.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

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

class Builder {
 public:
  Builder(const Operation& forward, std::vector<Output> dy, std::string_view scope, const Where& where)
      : graph_(*forward.graph()),
        flow_(Internals(graph_).control_flow),
        forward_(forward),
        dy_(std::move(dy)),
        scope_(scope),
        where_(where) {}

  Result<std::vector<Output>> Build() {
    const Operation source = forward_.inputs()[0].op();
    if (forward_.node().op().traits.flow == op::Flow::kSwitch) return OfSwitch(CondOf(flow_.ContextOf(forward_.id())));
    return OfMerge(CondOf(flow_.OutputContextOf(source.id())));
  }

 private:
  std::vector<Output> None() const { return std::vector<Output>(forward_.inputs().size()); }

  static const CondContext* CondOf(ControlFlowContext* context) {
    return context == nullptr ? nullptr : context->AsCond();
  }

  /// Zeros for a branch that was not taken.
  Result<Output> ZerosFor(const Output& value, const CondContext& cond, size_t branch) {
    const Output pred(&graph_, cond.pred());
    const DType dtype = BaseType(dy_[1 - branch].dtype());
    if (!InGradientLoop(flow_)) {
      const Operation split = AddOp(graph_, "Switch", {value, pred}, "Switch", where_);
      WEIR_TRY(graph_.status());
      return ZerosOf(split.output(static_cast<int>(branch)), dtype, where_);
    }
    WEIR_ASSIGN(const Output zeros, ZerosLikeForward(value, dtype, where_));
    return AddOp(graph_, "Switch", {zeros, pred}, "Switch", where_).output(static_cast<int>(branch));
  }

  Result<std::vector<Output>> OfSwitch(const CondContext* cond) {
    const std::vector<Output> inputs = forward_.inputs();
    for (size_t i = 0; i < dy_.size(); ++i) {
      if (dy_[i].exists()) continue;
      if (cond == nullptr) {
        const Output value = forward_.output(static_cast<int>(i));
        WEIR_ASSIGN(dy_[i], ZerosLikeForward(value, BaseType(value.dtype()), where_));
      } else {
        WEIR_ASSIGN(dy_[i], ZerosFor(inputs[0], *cond, i));
      }
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

Result<std::vector<Output>> ControlFlowGradients(const Operation& forward, std::vector<Output> dy,
                                                 std::string_view scope, const Where& where) {
  Graph& graph = *forward.graph();
  Result<std::vector<Output>> grads = Builder(forward, std::move(dy), scope, where).Build();
  WEIR_TRY(graph.status());
  return grads;
}

}  // namespace weir
