#include <utility>

#include "core/client/gradients/loop_gradient_internal.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/tensor/number.h"

namespace weir {

using graph::Endpoint;

namespace {

Output IntIn(Graph& graph, int value, std::string_view name) {
  return Operand(Literal(value)).In(graph, DType::kInt32, name);
}

/// Whether values of the node's loop are recalled in the current context.
bool IsRecalled(ControlFlow& flow, graph::NodeId node) {
  WhileContext* const current = flow.current() != nullptr ? flow.current()->Loop() : nullptr;
  ControlFlowContext* const from = flow.OutputContextOf(node);
  return current != nullptr && from != nullptr && from->Loop() != nullptr && current->Recalls(from->Loop());
}

}  // namespace

Result<std::unique_ptr<LoopGradient>> LoopGradient::Make(Graph& graph, WhileContext& forward, LoopGradient* around,
                                                         ControlFlowContext* home, const Where& where) {
  std::unique_ptr<LoopGradient> made(new LoopGradient(graph, forward, around, home, where));
  const ControlDependencies none(std::nullopt, graph);
  ControlFlowContext* const outer = around != nullptr ? &around->context() : forward.outer();
  {
    const InContext in(Internals(graph).control_flow, outer);
    made->context_ = &Internals(graph).control_flow.AddLoop(forward.settings(), forward.name());
  }
  made->context_->SetHistory(made.get());
  WEIR_TRY(made->CountForward());
  WEIR_TRY(made->CountBack());
  return made;
}

Status LoopGradient::CountForward() {
  Output zero;
  {
    const InContext in(flow_, forward_.outer());
    // Pushes of one run of an inner loop come before those of the next.
    std::vector<Dependency> before;
    if (around_ != nullptr) before.emplace_back(around_->forward_index_);
    const ControlDependencies after(before, graph_);
    zero = IntIn(graph_, 0, "f_count");
  }
  WEIR_TRY(graph_.status());
  WEIR_ASSIGN(forward_merge_, EnterAndMerge(forward_, zero, PartialShape::Of({}), "f_count", "Merge"));
  const InContext in(flow_, &forward_);
  const Operation split = AddOp(graph_, "Switch", {forward_merge_, {&graph_, forward_.pivot()}}, "Switch", where_);
  WEIR_TRY(graph_.status());
  forward_index_ = BuildOp("AddV2", {split.output(1), Operand(1, where_)}, {}, "Add", where_).output(0);
  trips_ = AddOp(graph_, "Exit", {split.output(0)}, "f_count", where_).output(0);
  WEIR_TRY(graph_.status());
  forward_.AddExit(trips_.endpoint());
  return Status();
}

Status LoopGradient::CountBack() {
  WEIR_ASSIGN(merge_, EnterAndMerge(*context_, trips_, PartialShape::Of({}), "b_count", "Merge"));
  context_->SetPivotForPred(merge_.endpoint());
  const InContext in(flow_, context_);
  const Output more = BuildOp("GreaterEqual", {merge_, Operand(1, where_)}, {}, "GreaterEqual", where_).output(0);
  const Output pivot = AddOp(graph_, "LoopCond", {more}, "b_count", where_).output(0);
  WEIR_TRY(graph_.status());
  context_->SetPivot(pivot.endpoint());
  const Operation split = AddOp(graph_, "Switch", {merge_, pivot}, "Switch", where_);
  WEIR_TRY(graph_.status());
  index_ = BuildOp("Sub", {split.output(1), Operand(1, where_)}, {}, "Sub", where_).output(0);
  const Output done = AddOp(graph_, "Exit", {split.output(0)}, "b_count", where_).output(0);
  WEIR_TRY(graph_.status());
  context_->SetPivotForBody(index_.endpoint());
  context_->AddExit(done.endpoint());
  if (around_ != nullptr) around_->pops_.push_back(done.op());
  return Status();
}

Result<Output> LoopGradient::EnterAndMerge(WhileContext& loop, const Output& initial, const PartialShape& shape,
                                           std::string_view enter, std::string_view merge) {
  const CaptureSite site{Internals(graph_).names.current(), Internals(graph_).DeviceHere(), Format(where_)};
  WEIR_ASSIGN(const Endpoint entered, loop.EnterVariable(initial.endpoint(), enter, site));
  const Output value(&graph_, entered);
  value.SetShape(shape);
  const InContext in(flow_, &loop);
  const Output merged = AddOp(graph_, "Merge", {value, value}, merge, where_).output(0);
  WEIR_TRY(graph_.status());
  return merged;
}

Result<LoopGradient::Carried> LoopGradient::Carry(const Output& initial, const PartialShape& shape,
                                                  std::string_view enter, std::string_view merge) {
  WEIR_ASSIGN(const Output merged, EnterAndMerge(*context_, initial, shape, enter, merge));
  const InContext in(flow_, context_);
  const Operation split = AddOp(graph_, "Switch", {merged, {&graph_, context_->pivot()}}, "Switch", where_);
  WEIR_TRY(graph_.status());
  return Carried{merged, split.output(1), split.output(0)};
}

Status LoopGradient::Close(const Carried& carried, const Output& next) {
  const Output again = AddOp(graph_, "NextIteration", {next}, "NextIteration", where_).output(0);
  WEIR_TRY(graph_.status());
  return Internals(graph_).definition.SetInput(carried.merge.op().id(), 1, again.endpoint());
}

Result<Output> LoopGradient::Leave(const Carried& carried, std::string_view name) {
  const InContext in(flow_, context_);
  const Output left = AddOp(graph_, "Exit", {carried.last}, name, where_).output(0);
  WEIR_TRY(graph_.status());
  context_->AddExit(left.endpoint());
  return left;
}

Result<Output> LoopGradient::Accumulate(const Output& invariant, const Output& gradient) {
  Output zeros;
  {
    const InContext in(flow_, context_->outer());
    WEIR_ASSIGN(zeros, ZerosLikeForward(invariant, gradient.dtype(), where_));
  }
  const PartialShape shape = invariant.dtype() == DType::kResource ? gradient.shape() : invariant.shape();
  WEIR_ASSIGN(const Carried sum, Carry(zeros, shape, "b_acc", "b_acc"));
  const InContext in(flow_, context_);
  const Output next = AddOp(graph_, "AddV2", {sum.value, gradient}, "Add", where_).output(0);
  WEIR_TRY(graph_.status());
  WEIR_TRY(Close(sum, next));
  return Leave(sum, "b_acc");
}

Result<Output> LoopGradient::AccumulateRows(const Output& rows) {
  PartialShape shape = rows.shape();
  shape.set_dim(0, 0);
  WEIR_ASSIGN(const Shape none, shape.ToShape());
  WEIR_ASSIGN(const Tensor empty, Tensor::Make(rows.dtype(), none));
  shape.set_dim(0, -1);
  Output start;
  {
    const InContext in(flow_, context_->outer());
    start = Operand(Literal(empty)).In(graph_, rows.dtype(), "b_acc");
  }
  WEIR_ASSIGN(const Carried all, Carry(start, shape, "b_acc", "b_acc"));
  const InContext in(flow_, context_);
  const Output next =
      AddOp(graph_, "ConcatV2", {all.value, rows, IntIn(graph_, 0, "axis")}, "concat", where_).output(0);
  WEIR_TRY(graph_.status());
  WEIR_TRY(Close(all, next));
  return Leave(all, "b_acc");
}

Result<Endpoint> LoopGradient::Recall(Endpoint value) {
  const graph::Node& node = Internals(graph_).definition.node(value.node);
  if (IsConstantEnter(node)) {
    const CaptureSite site{Internals(graph_).names.current(), Internals(graph_).DeviceHere(), Format(where_)};
    return context_->Bring(node.inputs()[0], site);
  }
  const ControlDependencies none(std::nullopt, graph_);
  const ColocateWith nothing(std::nullopt, graph_);
  const Output forward(&graph_, value);
  if (node.op().traits.universal == op::Universal::kConstant) {
    const InContext in(flow_, context_);
    const Tensor& constant = *node.attrs().Find("value")->get<Tensor>();
    const Output copy = Operand(Literal(constant)).In(graph_, forward.dtype(), "Const");
    WEIR_TRY(graph_.status());
    return copy.endpoint();
  }
  WEIR_ASSIGN(const Output stack, Push(forward));
  return Pop(stack, forward);
}

Result<Output> LoopGradient::Push(const Output& value) {
  OperationSpec make;
  make.op = "StackV2";
  make.name = "f_acc";
  make.attrs = {{"elem_type", BaseType(value.dtype())}};
  make.where = where_;
  Output stack;
  {
    const InContext in(flow_, home_);
    make.inputs = {IntIn(graph_, -1, "Const")};
    stack = graph_.Add(make).output(0);
  }
  WEIR_TRY(graph_.status());
  ControlFlowContext* const from = flow_.OutputContextOf(value.op().id());
  OperationSpec push;
  push.op = "StackPushV2";
  push.inputs = {stack, value};
  push.attrs = {{"swap_memory", forward_.settings().swap_memory}};
  push.control_inputs = {forward_index_.op()};
  push.where = where_;
  const InContext in(flow_, from);
  const Operation pushed = graph_.Add(push);
  WEIR_TRY(graph_.status());
  (from == &forward_ ? pushes_ : guarded_pushes_).push_back(pushed);
  return stack;
}

Result<Endpoint> LoopGradient::Pop(const Output& stack, const Output& value) {
  const InContext in(flow_, context_);
  OperationSpec pop;
  pop.op = "StackPopV2";
  pop.inputs = {stack};
  pop.attrs = {{"elem_type", BaseType(value.dtype())}};
  pop.where = where_;
  if (const CondContext* cond = flow_.OutputContextOf(value.op().id())->AsCond()) {
    const Operation split = AddOp(graph_, "Switch", {stack, {&graph_, cond->pred()}}, "Switch", where_);
    WEIR_TRY(graph_.status());
    pop.inputs = {split.output(cond->branch())};
  }
  const Operation popped = graph_.Add(pop);
  WEIR_TRY(graph_.status());
  popped.output(0).SetShape(value.shape());
  pops_.push_back(popped);
  return popped.output(0).endpoint();
}

Status LoopGradient::CloseCounter(WhileContext& loop, const Output& merge, const Output& index,
                                  std::vector<Operation> before, const std::vector<Operation>& sync,
                                  std::string_view sync_name) {
  const InContext in(flow_, &loop);
  if (!sync.empty()) {
    OperationSpec trigger;
    trigger.op = "ControlTrigger";
    trigger.name = sync_name;
    trigger.control_inputs = sync;
    trigger.where = where_;
    before.push_back(graph_.Add(trigger));
  }
  OperationSpec next;
  next.op = "NextIteration";
  next.inputs = {index};
  next.control_inputs = std::move(before);
  next.where = where_;
  const Operation again = graph_.Add(next);
  WEIR_TRY(graph_.status());
  return Internals(graph_).definition.SetInput(merge.op().id(), 1, {again.id(), 0});
}

Status LoopGradient::Finish() {
  const ControlDependencies none(std::nullopt, graph_);
  WEIR_TRY(CloseCounter(forward_, forward_merge_, forward_index_, pushes_, guarded_pushes_, "f_sync"));
  return CloseCounter(*context_, merge_, index_, {}, pops_, "b_sync");
}

bool InGradientLoop(const ControlFlow& flow) {
  const WhileContext* const loop = flow.current() == nullptr ? nullptr : flow.current()->Loop();
  return loop != nullptr && loop->is_gradient();
}

Result<Output> ZerosLikeForward(const Output& value, DType dtype, const Where& where) {
  constexpr int64_t kMostElements = 1000;  // of a constant
  Graph& graph = *value.graph();
  const bool handle = value.dtype() == DType::kResource;
  if (!handle && !InGradientLoop(Internals(graph).control_flow)) {
    const Output zeros = AddOp(graph, "ZerosLike", {value}, "zeros_like", where).output(0);
    WEIR_TRY(graph.status());
    return zeros;
  }
  WEIR_ASSIGN(const Tensor zero, ScalarFrom(dtype, 0));
  Output shape;
  if (handle) {
    shape = AddOp(graph, "VariableShape", {value}, "VariableShape", where).output(0);
  } else if (value.shape().fully_defined() && value.shape().elements() <= kMostElements) {
    WEIR_ASSIGN(const Shape known, value.shape().ToShape());
    const AsDefault in(graph);
    const Output zeros = Zeros(known, dtype, "zeros", where);
    WEIR_TRY(graph.status());
    return zeros;
  } else {
    WEIR_ASSIGN(shape, QueryForward("Shape", value, DType::kInt32, where));
  }
  const Output element = Operand(Literal(zero), where).In(graph, dtype, "zeros/Const");
  const Output zeros = AddOp(graph, "Fill", {shape, element}, "zeros", where).output(0);
  WEIR_TRY(graph.status());
  return zeros;
}

Result<Output> QueryForward(std::string_view op, const Output& value, DType out_type, const Where& where) {
  Graph& graph = *value.graph();
  ControlFlow& flow = Internals(graph).control_flow;
  WEIR_ASSIGN(const op::OpDef* query, Internals(graph).definition.ops().Get(op));
  WEIR_ASSIGN(const Tensor known, query->traits.shape_query(value.shape(), 0, out_type));
  if (known.valid()) return Operand(Literal(known), where).In(graph, out_type, op);
  // An invariant is asked outside of its loop.
  Output asked = value;
  while (IsRecalled(flow, asked.op().id()) && IsConstantEnter(asked.op().node())) asked = asked.op().inputs()[0];
  OperationSpec spec;
  spec.op = op;
  spec.inputs = {asked};
  if (query->FindAttr("out_type") != nullptr) spec.attrs = {{"out_type", out_type}};
  spec.where = where;
  const bool recalled = IsRecalled(flow, asked.op().id());
  const InContext in(flow, recalled ? flow.OutputContextOf(asked.op().id()) : flow.current());
  const Output answer = graph.Add(spec).output(0);
  WEIR_TRY(graph.status());
  return answer;
}

}  // namespace weir
