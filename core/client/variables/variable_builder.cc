// Makes variables: their nodes, in TensorFlow's order.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/variables/initial_value_internal.h"
#include "core/client/variables/variable_internal.h"
#include "core/client/variables/variable_scope.h"

namespace weir {
namespace {

op::AttrValue Beside(const std::string& variable) { return std::vector<std::string>{"loc:@" + variable}; }

Output MakeInitial(const Initializer& initializer, const PartialShape& shape, DType dtype,
                   const VariableOptions& options, Graph& graph) {
  const Result<Shape> known = initializer.wants_shape() ? shape.ToShape() : Shape();
  if (!known.ok()) {
    (void)graph.Fail(known.status().Append(" (" + Format(Internals(graph).origin.value_or(Where::current())) + ")"));
    return Output::Absent(graph);
  }
  if (!options.slice) return initializer(graph, dtype, *known);
  const PartitionInfo part{Shape::Of(options.slice->full_shape), options.slice->offset};
  return initializer(graph, dtype, *known, &part);
}

/// "v" of "v/".
std::string Bare(const std::string& path) { return path.substr(0, path.empty() ? 0 : path.size() - 1); }

}  // namespace

/// Adds the nodes of a variable in TensorFlow's order.
class VariableBuilder {
 public:
  static const VariableKind& KindOf(const Variable& variable) { return variable.kind(); }

  VariableBuilder(Graph& graph, const VariableOptions& options, std::source_location where)
      : graph_(graph),
        options_(options),
        use_resource_(options.use_resource.value_or(GetVariableScope(graph).state().use_resource.value_or(false))),
        where_(where) {}

  bool use_resource() const { return use_resource_; }

  /// Inside the variable's name scope, whose path is `path` ("v/"). `like` has the type and the shape.
  Output AddHandle(const std::string& path, DType dtype, const PartialShape& shape) {
    OperationSpec spec = Spec(use_resource_ ? "VarHandleOp" : "VariableV2", path);
    spec.attrs = {{"dtype", dtype}, {"shape", shape}};
    if (use_resource_) spec.attrs.emplace_back("shared_name", Bare(path));
    return graph_.Add(spec).output(0);
  }

  /// False, and an error of the graph, for no value, for one from inside a cond or loop, and for one of another type
  /// than `wanted` (kInvalid = any). `path` as for AddHandle.
  bool Takes(const Output& initial, DType wanted, const std::string& path) {
    if (!initial.exists()) {
      if (!IsSpoiled(initial)) (void)graph_.Fail(InvalidArgument("None values not supported. ({})", Format(where_)));
      return false;
    }
    if (Internals(graph_).control_flow.OutputContextOf(initial.op().id()) != nullptr) {
      (void)graph_.Fail(
          InvalidArgument("Initializer for variable {} is from inside a control-flow construct, such as a loop or "
                          "conditional. When creating a variable inside a loop or conditional, use a lambda as the "
                          "initializer. ({})",
                          path, Format(where_)));
      return false;
    }
    const DType dtype = BaseType(initial.dtype());
    if (wanted == DType::kInvalid || BaseType(wanted) == dtype) return true;
    (void)graph_.Fail(
        InvalidArgument("initial_value: Tensor conversion requested dtype {} for Tensor with dtype {}: {} "
                        "({})",
                        NumpyName(BaseType(wanted)), NumpyName(dtype), initial.DebugString(), Format(where_)));
    return false;
  }

  /// `shape`: the variable's, when it does not follow from the initial value.
  Variable Build(const Output& handle, const Output& initial_value, const PartialShape& shape = {}) {
    const std::shared_ptr<VariableKind> kind = use_resource_ ? std::shared_ptr<VariableKind>(new ResourceVariable)
                                                             : std::shared_ptr<VariableKind>(new ReferenceVariable);
    VariableKind& v = *kind;
    v.initial_value = initial_value;
    v.dtype = BaseType(initial_value.dtype());
    v.shape = shape.has_rank() || !(options_.validate_shape || use_resource_) ? shape : initial_value.shape();
    v.trainable = options_.trainable;
    v.handle = handle;
    v.constraint = options_.constraint;
    v.slice = options_.slice;
    if (options_.validate_shape && !initial_value.shape().fully_defined()) {
      (void)graph_.Fail(InvalidArgument("initial_value must have a shape specified: {} ({})", initial_value.ToString(),
                                        Format(where_)));
      return Variable::FromValue(Output::Absent(graph_));
    }
    if (!handle.exists()) return Variable::FromValue(handle);
    if (use_resource_) {
      AddResourceNodes(v);
    } else {
      AddReferenceNodes(v);
    }
    Variable variable(kind);
    if (v.value.exists()) AddToCollections(variable);
    return variable;
  }

 private:
  OperationSpec Spec(std::string_view op, std::string_view name) {
    OperationSpec spec;
    spec.op = op;
    spec.name = name;
    spec.where = where_;
    return spec;
  }

  void AddReferenceNodes(VariableKind& v) {
    OperationSpec assign = Spec("Assign", "Assign");
    assign.inputs = {v.handle, InAnyOrder(v.initial_value, v.handle.op().name(), where_)};
    assign.attrs = {{"validate_shape", options_.validate_shape}};
    v.initializer = graph_.Add(assign);
    if (!v.initializer.exists()) {
      v.value = Output(&graph_, {v.initializer.id(), 0});
      return;
    }
    OperationSpec read = Spec("Identity", "read");
    read.inputs = {v.handle};
    if (!options_.caching_device.empty()) {
      const DeviceScope cache(options_.caching_device, graph_);
      v.value = graph_.Add(read).output(0);
      return;
    }
    const ColocateWith variable(v.handle.op(), OuterColocation::kKeep, graph_);
    v.value = graph_.Add(read).output(0);
  }

  void AddResourceNodes(VariableKind& v) {
    {
      const NameScope scope("IsInitialized", graph_);
      OperationSpec check = Spec("VarIsInitializedOp", "VarIsInitializedOp");
      check.inputs = {v.handle};
      graph_.Add(check);
    }
    {
      const NameScope scope("Assign", graph_);
      const std::string path = scope.path();
      const ColocateWith nothing(std::nullopt, graph_);
      const DeviceScope there(v.handle.op().device(), graph_);
      OperationSpec assign = Spec("AssignVariableOp", path);
      assign.inputs = {v.handle, InAnyOrder(v.initial_value, v.handle.op().name(), where_)};
      assign.attrs = {{"dtype", v.dtype}};
      v.initializer = graph_.Add(assign);
    }
    const NameScope scope("Read", graph_);
    OperationSpec read = Spec("ReadVariableOp", "ReadVariableOp");
    read.inputs = {v.handle};
    read.attrs = {{"dtype", v.dtype}};
    {
      const DeviceScope there(v.handle.op().device(), graph_);
      v.value = graph_.Add(read).output(0);
    }
    if (options_.caching_device.empty()) return;
    const ColocateWith nothing(std::nullopt, graph_);
    const DeviceScope cache(options_.caching_device, graph_);
    v.value = BuildOp("Identity", {v.value}, {}, {}, where_).output(0);
  }

  void AddToCollections(const Variable& v) {
    std::vector<std::string> collections = options_.collections;
    const bool listed =
        std::find(collections.begin(), collections.end(), keys::kTrainableVariables) != collections.end();
    if (v.trainable() && !listed) collections.emplace_back(keys::kTrainableVariables);
    graph_.AddToCollections(collections, v);
  }

  Graph& graph_;
  const VariableOptions& options_;
  const bool use_resource_;
  std::source_location where_;
};

Variable::Variable(const Operand& initial_value, const VariableOptions& options, std::source_location where) {
  Graph& graph = GraphOf(initial_value);
  const auto fail = [&](const Output& initial) {
    *this = FromValue(IsSpoiled(initial) ? initial : Output::Absent(graph));
  };
  const ControlDependencies none(std::nullopt, graph);
  const NameScope scope(options.name.empty() ? "Variable" : options.name, graph);
  if (!scope.opened()) {
    fail({});
    return;
  }
  VariableBuilder builder(graph, options, where);
  std::optional<AttrScope> beside;
  Output initial;
  if (builder.use_resource()) {
    beside.emplace("_class", Beside(Bare(scope.path())), graph);
    const NameScope inner("Initializer", graph);
    const DeviceScope anywhere(std::nullopt, graph);
    initial = initial_value.In(graph, options.dtype, "initial_value");
  } else {
    initial = initial_value.In(graph, options.dtype, "initial_value");
  }
  if (!builder.Takes(initial, options.dtype, scope.path())) {
    fail(initial);
    return;
  }
  const bool like_initial = options.validate_shape || builder.use_resource();
  const Output handle =
      builder.AddHandle(scope.path(), BaseType(initial.dtype()), like_initial ? initial.shape() : PartialShape());
  beside.reset();
  *this = builder.Build(handle, initial);
}

Variable::Variable(const Initializer& initializer, const PartialShape& shape, DType dtype,
                   const VariableOptions& options, Graph& graph, std::source_location where) {
  if (initializer.value()) {
    *this = Variable(*initializer.value(), options, where);
    return;
  }
  const auto fail = [&](const Output& initial) {
    *this = FromValue(IsSpoiled(initial) ? initial : Output::Absent(graph));
  };
  if (const Status valid = shape.Check(); !valid.ok()) {
    (void)graph.Fail(valid.Append(" (" + Format(where) + ")"));
    fail({});
    return;
  }
  const Origin origin(where, graph);
  const ControlDependencies none(std::nullopt, graph);
  const NameScope scope(options.name.empty() ? "Variable" : options.name, graph);
  if (!scope.opened()) {
    fail({});
    return;
  }
  VariableBuilder builder(graph, options, where);
  Output initial, handle;
  {
    const AttrScope beside("_class", Beside(Bare(scope.path())), graph);
    {
      const NameScope inner("Initializer", graph);
      const DeviceScope anywhere(std::nullopt, graph);
      initial = MakeInitial(initializer, shape, dtype, options, graph);
    }
    if (!builder.Takes(initial, initializer.wants_shape() ? dtype : DType::kInvalid, scope.path())) {
      fail(initial);
      return;
    }
    const bool like_initial = !shape.has_rank() && (options.validate_shape || builder.use_resource());
    handle = builder.AddHandle(scope.path(), BaseType(initial.dtype()), like_initial ? initial.shape() : shape);
  }
  *this = builder.Build(handle, initial, shape);
}

void ReplaceInitializer(const Variable& variable, const Operation& initializer, const Output& initial_value) {
  const VariableKind& kind = VariableBuilder::KindOf(variable);
  kind.initializer = initializer;
  kind.initial_value = initial_value;
}

}  // namespace weir
