#include "core/client/control_flow/control_flow.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/client/control_flow/control_flow_internal.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"

namespace weir {

Operation AddOp(Graph& graph, std::string_view op, std::vector<Output> inputs, std::string_view name,
                const Where& where) {
  OperationSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.name = name;
  spec.where = where;
  return graph.Add(spec);
}

Operation AddBeside(const Output& value, std::string_view op, std::vector<Output> inputs, std::string_view name,
                    const Where& where) {
  if (!value.exists()) return Operation();
  Graph& graph = *value.graph();
  const ColocateWith beside(value, OuterColocation::kIgnore, graph);
  OperationSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.name = name;
  spec.where = where;
  return graph.Add(spec);
}

namespace {

using graph::Endpoint;
using graph::NodeId;

Status At(const Status& status, const Where& where) { return status.Append(" (" + Format(where) + ")"); }

std::vector<Endpoint> EndpointsOf(const std::vector<Output>& outputs) {
  std::vector<Endpoint> endpoints;
  for (const Output& output : outputs) endpoints.push_back(output.endpoint());
  return endpoints;
}

/// What nodes that are made for the caller, here and now, belong to.
CaptureSite SiteOf(Graph& graph, const Where& where) {
  return {Internals(graph).names.current(), Internals(graph).DeviceHere(), Format(where)};
}

/// Results of a branch: values, or one operation.
struct BranchResults {
  std::vector<Output> values;
  Operation operation;
};
using Branch = std::function<BranchResults()>;

Branch Of(const BranchFn& fn) {
  if (!fn) return nullptr;
  return [fn] { return BranchResults{{fn()}, {}}; };
}
Branch Of(const BranchListFn& fn) {
  if (!fn) return nullptr;
  return [fn] { return BranchResults{fn(), {}}; };
}
Branch Of(const BranchOperationFn& fn) {
  if (!fn) return nullptr;
  return [fn] { return BranchResults{{}, fn()}; };
}

/// One cond.
class CondBuilder {
 public:
  CondBuilder(Graph& graph, Where where) : graph_(graph), flow_(Internals(graph).control_flow), where_(where) {}

  /// How many values the branch returned that was called last.
  size_t count() const { return count_; }

  Result<std::vector<Output>> Build(const Output& pred, const Branch& true_fn, const Branch& false_fn) {
    const Operation split = AddOp(graph_, "Switch", {pred, pred}, "Switch", where_);
    const Output taken = AddOp(graph_, "Identity", {split.output(1)}, "switch_t", where_).output(0);
    const Output other = AddOp(graph_, "Identity", {split.output(0)}, "switch_f", where_).output(0);
    const Output id = AddOp(graph_, "Identity", {pred}, "pred_id", where_).output(0);
    WEIR_TRY(graph_.status());
    for (const NodeId node : {split.id(), taken.op().id(), other.op().id(), id.op().id()}) flow_.PreventFetching(node);
    WEIR_ASSIGN(const std::vector<Output> yes, BuildBranch(id, taken, 1, true_fn));
    WEIR_ASSIGN(const std::vector<Output> no, BuildBranch(id, other, 0, false_fn));
    if (yes.size() != no.size()) {
      return InvalidArgument(
          "Incompatible return values of 'true_fn' and 'false_fn': The two structures don't have the same nested "
          "structure. 'true_fn' returns {} values, 'false_fn' {}.",
          yes.size(), no.size());
    }
    if (yes.empty()) return InvalidArgument("'true_fn' and 'false_fn' must return at least one result.");
    return MergeAll(yes, no);
  }

 private:
  Result<std::vector<Output>> BuildBranch(const Output& pred, const Output& pivot, int branch, const Branch& fn) {
    CondContext& context = flow_.AddCond(pred.endpoint(), pivot.endpoint(), branch);
    if (context.outer() == nullptr) {
      CollectionEntry entry;
      entry.context = &context;
      graph_.AddToCollection("cond_context", entry);
    }
    const InContext in(flow_, &context);
    BranchResults results = fn();
    count_ = results.values.size();
    WEIR_TRY(graph_.status());
    if (results.operation.exists()) results.values = {WithDependencies({results.operation}, pivot)};
    std::vector<Output> outputs;
    for (const Output& value : results.values) {
      WEIR_TRY(Internals(graph_).ErrorOf(value.endpoint().node));
      if (!value.exists()) return InvalidArgument("'{}' must have a return value.", branch ? "true_fn" : "false_fn");
      if (value.graph() != &graph_) {
        return InvalidArgument("{} must be from the same graph as {}.", value.ToString(), pred.ToString());
      }
      WEIR_ASSIGN(const Endpoint inside, context.BringResult(value.endpoint(), SiteOf(graph_, where_)));
      outputs.emplace_back(&graph_, inside);
    }
    context.NoteResults(EndpointsOf(outputs));
    return outputs;
  }

  Result<std::vector<Output>> MergeAll(const std::vector<Output>& yes, const std::vector<Output>& no) {
    for (size_t i = 0; i < yes.size(); ++i) {
      if (BaseType(yes[i].dtype()) == BaseType(no[i].dtype())) continue;
      return InvalidArgument(
          "Outputs of 'true_fn' and 'false_fn' must have the same type(s). Received {} from 'true_fn' and {} from "
          "'false_fn'.",
          NumpyName(yes[i].dtype()), NumpyName(no[i].dtype()));
    }
    std::vector<Output> merged;
    for (size_t i = 0; i < yes.size(); ++i) {
      const bool references = IsRef(yes[i].dtype()) && IsRef(no[i].dtype());
      merged.push_back(AddOp(graph_, references ? "RefMerge" : "Merge", {no[i], yes[i]}, "Merge", where_).output(0));
    }
    WEIR_TRY(graph_.status());
    return merged;
  }

  Graph& graph_;
  ControlFlow& flow_;
  Where where_;
  size_t count_ = 0;
};

List<Output> BuildCond(const Operand& pred, const Branch& true_fn, const Branch& false_fn, std::string_view name,
                       const Where& where) {
  Graph& graph = pred.graph() != nullptr ? *pred.graph() : Graph::Default();
  const ErrorsSince errors(graph);
  if (!true_fn || !false_fn) {
    const char* const which = true_fn ? "false_fn" : "true_fn";
    (void)graph.Fail(At(InvalidArgument("{} must be callable.", which), where));
    return AbsentValues(graph, 0);
  }
  if (!pred.is_literal() && !pred.exists()) {
    if (const Output spoiled = pred.In(graph); IsSpoiled(spoiled)) return List<Output>({}, spoiled);
  }
  if (pred.is_literal() || !pred.exists()) {
    const char* what = pred.is_literal() && pred.literal().tensor.dtype() == DType::kBool
                           ? "pred must not be a Python bool"
                           : "pred must be a value of the graph";
    (void)graph.Fail(At(InvalidArgument("{}", what), where));
    return AbsentValues(graph, 0);
  }
  const AsDefault in(graph);
  const NameScope scope(name.empty() ? "cond" : name, graph);
  CondBuilder builder(graph, where);
  Result<std::vector<Output>> merged = builder.Build(pred.In(graph), true_fn, false_fn);
  if (merged.ok()) return List<Output>(std::move(*merged), Output(&graph, {}));
  (void)graph.Fail(At(merged.status(), where));
  return AbsentValues(graph, static_cast<int64_t>(builder.count()));
}

/// Fails the run when more than `n` of the conditions hold.
Operation AssertAtMost(const std::vector<Output>& predicates, int n, std::string_view message, const Where& where) {
  Graph& graph = Graph::Default();
  const std::vector<Operand> operands(predicates.begin(), predicates.end());
  const Output all = predicates.empty() ? Constant(Tensor::Vector<float>({}), DType::kInvalid, "preds_c", where)
                                        : Stack(operands, 0, "preds_c", where);
  const Output numbers = Cast(all, DType::kInt32, "Cast", where);
  const Output count = ReduceSum(numbers, {}, {.name = "num_true_conds"}, where);
  const Output limit = Constant(n, DType::kInt32, "n_true_conds", where);
  const Output holds = LessEqual(count, limit, {}, where);
  std::string names;
  for (const Output& predicate : predicates) names += (names.empty() ? "" : ", ") + predicate.name();
  if (!graph.status().ok()) return Operation();
  const std::string text = fmt::format("{}: more than {} conditions ({}) evaluated as True:", message, n, names);
  return Assert(holds, {Operand(text, where), all}, {.summarize = static_cast<int64_t>(predicates.size())}, where);
}

using ListBranches = std::vector<std::pair<Output, BranchListFn>>;

/// The last branch as the default, behind checks that it is the one.
BranchListFn DefaultFrom(const ListBranches& branches, const Where& where) {
  return [branches, where]() -> List<Output> {
    std::vector<Output> others;
    std::vector<Operand> all;
    for (const auto& [predicate, fn] : branches) {
      all.emplace_back(predicate);
      others.push_back(predicate);
    }
    others.pop_back();
    const Output values = Stack(all, 0, "preds_c", where);
    const std::string text = fmt::format(
        "Implementation error: selected default action #{} was called, but some of other predicates are "
        "True: ",
        others.size());
    const Operation none = AssertAtMost(others, 0, text, where);
    const Operation one =
        Assert(branches.back().first, {Operand("Input error: None of conditions evaluated as True:", where), values},
               {}, where);
    if (!none.exists() || !one.exists()) return {};
    const ControlDependencies after({none, one});
    return branches.back().second();
  };
}

Status CheckBranches(const ListBranches& branches) {
  if (branches.empty()) return InvalidArgument("pred_fn_pairs must not be empty");
  for (const auto& [predicate, fn] : branches) {
    if (!predicate.exists()) return InvalidArgument("pred must be a Tensor, got: None");
    if (BaseType(predicate.dtype()) != DType::kBool) {
      return InvalidArgument("pred must be Tensor of type bool: {}", predicate.name());
    }
    if (predicate.graph() != branches[0].first.graph()) {
      return InvalidArgument("{} must be from the same graph as {}.", predicate.ToString(),
                             branches[0].first.ToString());
    }
    if (!fn) return InvalidArgument("fn for pred {} must be callable.", predicate.name());
  }
  return Status();
}

/// Conds within the false branches of conds, so that conditions are looked at in order.
List<Output> BuildCase(const ListBranches& branches, const BranchListFn& default_fn, const Where& where) {
  BranchListFn fn = default_fn;
  for (auto branch = branches.rbegin(); branch != branches.rend(); ++branch) {
    fn = [branch = *branch, otherwise = std::move(fn), where] {
      return Cond(branch.first, branch.second, otherwise, "cond", where);
    };
  }
  return fn();
}

}  // namespace

Output Cond(const Operand& pred, const BranchFn& true_fn, const BranchFn& false_fn, std::string_view name,
            Where where) {
  return BuildCond(pred, Of(true_fn), Of(false_fn), name, where)[0];
}

List<Output> Cond(const Operand& pred, const BranchListFn& true_fn, const BranchListFn& false_fn, std::string_view name,
                  Where where) {
  return BuildCond(pred, Of(true_fn), Of(false_fn), name, where);
}

Output Cond(const Operand& pred, const BranchOperationFn& true_fn, const BranchOperationFn& false_fn,
            std::string_view name, Where where) {
  return BuildCond(pred, Of(true_fn), Of(false_fn), name, where)[0];
}

List<Output> Case(const std::vector<std::pair<Output, BranchListFn>>& branches, const BranchListFn& default_fn,
                  const CaseOptions& options, Where where) {
  const bool known = !branches.empty() && branches[0].first.graph() != nullptr;
  Graph& graph = known ? *branches[0].first.graph() : Graph::Default();
  const ErrorsSince errors(graph);
  for (const auto& [predicate, fn] : branches) {
    if (IsSpoiled(predicate)) return List<Output>({}, predicate);
  }
  if (const Status valid = CheckBranches(branches); !valid.ok()) {
    (void)graph.Fail(At(valid, where));
    return AbsentValues(graph, 0);
  }
  const AsDefault in(graph);
  const NameScope scope(options.name.empty() ? "case" : options.name, graph);
  ListBranches tried = branches;
  BranchListFn otherwise = default_fn;
  if (!otherwise) {
    otherwise = DefaultFrom(branches, where);
    tried.pop_back();
  }
  std::vector<Operation> after;
  if (options.exclusive) {
    std::vector<Output> predicates;
    for (const auto& [predicate, fn] : tried) predicates.push_back(predicate);
    after = {AssertAtMost(predicates, 1, "Input error: exclusive=True", where)};
    if (!after[0].exists()) return AbsentValues(graph, 0);
  }
  const ControlDependencies checked(after, graph);
  List<Output> values = BuildCase(tried, otherwise, where);
  const auto missing = [](const Output& value) { return !value.exists() && !IsSpoiled(value); };
  if (std::ranges::any_of(values, missing)) {
    (void)graph.Fail(At(InvalidArgument("fn must have a return value."), where));
  }
  return values;
}

Output Case(const std::vector<std::pair<Output, BranchFn>>& branches, const BranchFn& default_fn,
            const CaseOptions& options, Where where) {
  const auto list = [](const BranchFn& fn) -> BranchListFn {
    if (!fn) return nullptr;
    return [fn] { return List<Output>{fn()}; };
  };
  ListBranches lists;
  for (const auto& [predicate, fn] : branches) lists.emplace_back(predicate, list(fn));
  return Case(lists, list(default_fn), options, where)[0];
}

Output WithDependencies(const std::vector<Groupable>& dependencies, const Output& value, std::string_view name,
                        Where where) {
  if (!value.exists()) return value;
  Graph& graph = *value.graph();
  std::vector<Operation> operations;
  for (const Groupable& dependency : dependencies) operations.push_back(dependency.operation());
  const NameScope scope(name.empty() ? "control_dependency" : name, graph);
  const ColocateWith beside(value, OuterColocation::kKeep, graph);
  const ControlDependencies after(std::move(operations), graph);
  return AddOp(graph, "Identity", {value}, std::string(scope.path()), where).output(0);
}

List<Output> Tuple(const std::vector<Output>& values, const std::vector<Groupable>& control_inputs,
                   std::string_view name, Where where) {
  std::vector<Operation> gates;
  for (const Output& value : values) {
    if (value.exists()) gates.push_back(value.op());
  }
  for (const Groupable& control : control_inputs) {
    if (IsSpoiled(control.operation())) {
      const Output spoiled(control.operation().graph(), {control.operation().id(), 0});
      return List<Output>::Absent(values.size(), spoiled);
    }
    gates.push_back(control.operation());
  }
  if (gates.empty()) {
    Graph& none = GraphOf({values.begin(), values.end()});
    (void)none.Fail(At(InvalidArgument("Must have at least one Tensor"), where));
    return AbsentValues(none, static_cast<int64_t>(values.size()));
  }
  if (std::ranges::any_of(gates, [](const Operation& gate) { return !gate.exists(); })) {
    Graph& none = GraphOf({values.begin(), values.end()});
    (void)none.Fail(At(InvalidArgument("Control input must be an Operation, a Tensor, or a Variable: None"), where));
    return AbsentValues(none, static_cast<int64_t>(values.size()));
  }
  std::ranges::sort(gates, {}, &Operation::id);
  gates.erase(std::unique(gates.begin(), gates.end()), gates.end());
  Graph& graph = *gates[0].graph();
  const NameScope scope(name.empty() ? "tuple" : name, graph);
  const Operation gate = Group({gates.begin(), gates.end()}, "group_deps", where);
  List<Output> gated({}, Output(&graph, {}));
  for (const Output& value : values) {
    gated.push_back(value.exists() ? WithDependencies({gate}, value, "control_dependency", where) : value);
  }
  return gated;
}

Operation Assert(const Operand& condition, const std::vector<Operand>& data, const AssertOptions& options,
                 Where where) {
  Graph* graph = condition.graph();
  for (const Operand& value : data) graph = graph == nullptr ? value.graph() : graph;
  if (graph == nullptr) graph = &Graph::Default();
  if (data.empty()) {
    (void)graph->Fail(
        At(InvalidArgument("Attr 'T' of 'Assert' Op passed list of length 0 less than minimum 1."), where));
    return Operation::Absent(*graph);
  }
  const AsDefault in(*graph);
  const NameScope scope(options.name.empty() ? "Assert" : options.name, *graph);
  for (const Operand& value : data) {
    if (value.adds_node()) value.In(*graph);  // TensorFlow's graphs have these nodes too
  }
  // Without a cond, as TensorFlow does, where all data is in host memory anyway.
  const bool plain = std::ranges::all_of(data, [](const Operand& value) {
    return BaseType(value.dtype()) == DType::kString || BaseType(value.dtype()) == DType::kInt32;
  });
  const Output holds = condition.In(*graph, DType::kBool, plain ? "Assert/condition" : "Condition");
  const BranchOperationFn fail = [&] {
    const NameScope inner("Assert", *graph);
    OperationSpec spec;
    spec.op = "Assert";
    spec.inputs = {holds};
    for (size_t i = 0; i < data.size(); ++i) {
      spec.inputs.push_back(data[i].In(*graph, DType::kInvalid, "data_" + std::to_string(i)));
    }
    spec.attrs = {{"summarize", options.summarize}};
    const std::string path = inner.path();
    spec.name = path;
    spec.where = where;
    return graph->Add(spec);
  };
  if (plain) return fail();
  const BranchOperationFn pass = [&] { return NoOp("NoOp", where); };
  return Cond(holds, pass, fail, "AssertGuard", where).op();
}

}  // namespace weir
