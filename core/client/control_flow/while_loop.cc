// WhileLoop.
#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/client/control_flow/control_flow_internal.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"

namespace weir {
namespace {

using graph::Endpoint;

/// True when every shape of `part` is one of `whole`.
bool Includes(const PartialShape& whole, const PartialShape& part) {
  if (!whole.has_rank()) return true;
  if (part.rank() != whole.rank()) return false;
  for (int i = 0; i < whole.rank(); ++i) {
    if (whole.dim(i) >= 0 && whole.dim(i) != part.dim(i)) return false;
  }
  return true;
}

/// One loop, in TensorFlow's order of nodes.
class LoopBuilder {
 public:
  LoopBuilder(Graph& graph, WhileContext& context, Where where) : graph_(graph), context_(context), where_(where) {}

  Result<LoopVars> Build(const LoopCondFn& cond, const LoopBodyFn& body, const LoopVars& vars,
                         const std::vector<PartialShape>& invariants) {
    WEIR_TRY(Enter(vars, invariants));
    const InContext in(Internals(graph_).control_flow, &context_);
    for (const Output& enter : enters_) {
      merges_.push_back(AddOp(graph_, "Merge", {enter, enter}, "Merge", where_).output(0));
    }
    WEIR_TRY(graph_.status());
    context_.SetPivotForPred(merges_[0].endpoint());
    WEIR_TRY(BuildCond(cond));
    WEIR_TRY(BuildBody(body));
    LoopVars exits;
    for (const Operation& split : switches_) {
      exits.push_back(AddOp(graph_, "Exit", {split.output(0)}, "Exit", where_).output(0));
      WEIR_TRY(graph_.status());
      context_.AddExit(exits.back().endpoint());
    }
    return exits;
  }

 private:
  Status Enter(const LoopVars& vars, const std::vector<PartialShape>& invariants) {
    std::vector<Endpoint> values;
    for (const Output& var : vars) values.push_back(var.endpoint());
    const CaptureSite site{Internals(graph_).names.current(), Internals(graph_).DeviceHere(), Format(where_)};
    WEIR_ASSIGN(const std::vector<Endpoint> enters, context_.EnterAll(values, site));
    for (size_t i = 0; i < enters.size(); ++i) {
      enters_.emplace_back(&graph_, enters[i]);
      if (!invariants.empty() && !Includes(invariants[i], vars[i].shape())) {
        return InvalidArgument(
            "The shape invariant specified for {} is not compatible with the initial shape of the loop variable. It "
            "enters the loop with shape {}, but the specified shape invariant is {}.",
            vars[i].name(), vars[i].shape().ToTupleString(), invariants[i].ToTupleString());
      }
      enters_[i].SetShape(invariants.empty() ? vars[i].shape() : invariants[i]);
    }
    return graph_.status();
  }

  Status BuildCond(const LoopCondFn& cond) {
    const Output holds = cond(merges_);
    WEIR_TRY(graph_.status());
    if (!holds.exists()) return InvalidArgument("cond must return a value");
    const Output pivot = AddOp(graph_, "LoopCond", {holds}, "LoopCond", where_).output(0);
    WEIR_TRY(graph_.status());
    context_.SetPivot(pivot.endpoint());
    for (const Output& merge : merges_) {
      switches_.push_back(AddBeside(merge, "Switch", {merge, pivot}, "Switch", where_));
    }
    return graph_.status();
  }

  Status BuildBody(const LoopBodyFn& body) {
    LoopVars inside;
    for (const Operation& split : switches_) {
      inside.push_back(AddOp(graph_, "Identity", {split.output(1)}, "Identity", where_).output(0));
    }
    WEIR_TRY(graph_.status());
    context_.SetPivotForBody(inside[0].endpoint());
    const LoopVars next = body(inside);
    WEIR_TRY(graph_.status());
    if (next.size() != merges_.size()) {
      return InvalidArgument(
          "The two structures don't have the same nested structure. The loop has {} variables, its body returns {}.",
          merges_.size(), next.size());
    }
    for (size_t i = 0; i < next.size(); ++i) WEIR_TRY(CloseLoop(merges_[i], next[i]));
    return Status();
  }

  Status CloseLoop(const Output& merge, const Output& next) {
    if (!next.exists()) return InvalidArgument("body must return a value for each loop variable");
    const Output again = AddOp(graph_, "NextIteration", {next}, "NextIteration", where_).output(0);
    WEIR_TRY(graph_.status());
    if (!Includes(merge.shape(), again.shape())) {
      const Output entered(&graph_, merge.op().inputs()[0].op().inputs()[0].endpoint());
      return InvalidArgument(
          "Input tensor '{}' enters the loop with shape {}, but has shape {} after one iteration. To allow the shape "
          "to vary across iterations, use the `shape_invariants` argument of tf.while_loop to specify a less-specific "
          "shape.",
          entered.name(), entered.shape().ToTupleString(), again.shape().ToTupleString());
    }
    return Internals(graph_).definition.SetInput(merge.op().id(), 1, again.endpoint());
  }

  Graph& graph_;
  WhileContext& context_;
  Where where_;
  LoopVars enters_;
  LoopVars merges_;
  std::vector<Operation> switches_;
};

/// The loop with a counter in front of its variables.
struct Limited {
  Output limit;

  LoopCondFn Wrap(const LoopCondFn& cond) const {
    return [limit = limit, cond](const LoopVars& vars) {
      const Output below = Less(vars[0], limit);
      return LogicalAnd(below, cond({vars.begin() + 1, vars.end()}));
    };
  }
  LoopBodyFn Wrap(const LoopBodyFn& body) const {
    return [body](const LoopVars& vars) {
      LoopVars next = {vars[0] + Operand(1)};
      for (const Output& value : body({vars.begin() + 1, vars.end()})) next.push_back(value);
      return next;
    };
  }
};

Status CheckArguments(const LoopCondFn& cond, const LoopBodyFn& body, const std::vector<Operand>& vars,
                      const WhileOptions& options) {
  if (!cond) return InvalidArgument("cond must be callable.");
  if (!body) return InvalidArgument("body must be callable.");
  if (options.parallel_iterations < 1) return InvalidArgument("parallel_iterations must be a positive integer.");
  if (vars.empty()) return InvalidArgument("No loop variables provided");
  if (!options.shape_invariants.empty() && options.shape_invariants.size() != vars.size()) {
    return InvalidArgument(
        "The two structures don't have the same nested structure. The loop has {} variables and {} shape invariants.",
        vars.size(), options.shape_invariants.size());
  }
  return Status();
}

/// Inside the loop's name scope.
Result<LoopVars> BuildLoop(Graph& graph, LoopCondFn cond, LoopBodyFn body, const std::vector<Operand>& vars,
                           const WhileOptions& options, const Where& where) {
  LoopSettings settings{options.parallel_iterations, options.back_prop, options.swap_memory, {}};
  std::vector<PartialShape> invariants = options.shape_invariants;
  LoopVars values;
  if (options.maximum_iterations) {
    const Output limit = options.maximum_iterations->In(graph, DType::kInvalid, "maximum_iterations");
    WEIR_TRY(graph.status());
    if (limit.shape().has_rank() && limit.shape().rank() != 0) {
      return InvalidArgument("maximum_iterations must be a scalar, saw shape: {}", limit.shape().ToTupleString());
    }
    settings.maximum_iterations = limit.endpoint();
    values.push_back(Operand(Literal(0), where).In(graph, limit.dtype(), "iteration_counter"));
    if (!invariants.empty()) invariants.insert(invariants.begin(), PartialShape::Of({}));
    cond = Limited{limit}.Wrap(cond);
    body = Limited{limit}.Wrap(body);
  }
  WhileContext& context = Internals(graph).control_flow.AddLoop(settings);
  if (context.outer() == nullptr) {
    CollectionEntry entry;
    entry.context = &context;
    graph.AddToCollection("while_context", entry);
  }
  for (const Operand& var : vars) values.push_back(var.In(graph));
  WEIR_TRY(graph.status());
  for (const Output& value : values) {
    WEIR_TRY(Internals(graph).ErrorOf(value.endpoint().node));
    if (!value.exists()) return InvalidArgument("None values not supported.");
    if (value.graph() != &graph) {
      return InvalidArgument("{} must be from the same graph as {}.", value.ToString(), values[0].ToString());
    }
  }
  WEIR_ASSIGN(LoopVars exits, LoopBuilder(graph, context, where).Build(cond, body, values, invariants));
  if (options.maximum_iterations) exits.erase(exits.begin());
  return exits;
}

}  // namespace

LoopVars WhileLoop(const LoopCondFn& cond, const LoopBodyFn& body, const std::vector<Operand>& vars,
                   const WhileOptions& options, Where where) {
  Graph& graph = GraphOf(vars);
  const ErrorsSince errors(graph);
  for (const Operand& var : vars) {
    if (var.is_literal() || var.exists()) continue;
    if (const Output spoiled = var.In(graph); IsSpoiled(spoiled)) return List<Output>::Absent(vars.size(), spoiled);
  }
  const AsDefault in(graph);
  const auto build = [&]() -> Result<LoopVars> {
    WEIR_TRY(CheckArguments(cond, body, vars, options));
    std::vector<Operand> read;
    for (const Operand& var : vars) read.push_back(var.ReadNow());
    const NameScope scope(options.name.empty() ? "while" : options.name, graph);
    return BuildLoop(graph, cond, body, read, options, where);
  };
  Result<LoopVars> exits = build();
  if (exits.ok()) return LoopVars(std::move(*exits), Output(&graph, {}));
  (void)graph.Fail(exits.status().Append(" (" + Format(where) + ")"));
  return AbsentValues(graph, static_cast<int64_t>(vars.size()));
}

Output WhileLoop(const std::function<Output(Output)>& cond, const std::function<Output(Output)>& body,
                 const Operand& var, const WhileOptions& options, Where where) {
  LoopCondFn list_cond;
  LoopBodyFn list_body;
  if (cond) list_cond = [cond](const LoopVars& vars) { return cond(vars[0]); };
  if (body) list_body = [body](const LoopVars& vars) { return LoopVars{body(vars[0])}; };
  return WhileLoop(list_cond, list_body, {var}, options, where)[0];
}

}  // namespace weir
