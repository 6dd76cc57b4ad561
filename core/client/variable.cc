#include "core/client/variable.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/client/array_ops.h"
#include "core/client/control_flow.h"
#include "core/client/initial_value_internal.h"
#include "core/client/scopes.h"
#include "core/client/variable_scope.h"
#include "core/io/tensor_slice.h"

namespace weir {
namespace {

/// A Const in the current name scope.
Output MakeConst(Graph& graph, const Literal& value, DType dtype, std::string_view name) {
  return Operand(value).In(graph, dtype, name);
}

op::AttrValue Beside(const std::string& variable) { return std::vector<std::string>{"loc:@" + variable}; }

Output MakeInitial(const Initializer& initializer, const PartialShape& shape, DType dtype,
                   const VariableOptions& options, Graph& graph) {
  const Result<Shape> known = initializer.wants_shape() ? shape.ToShape() : Shape();
  if (!known.ok()) {
    (void)graph.Fail(known.status().Append(" (" + Format(graph.origin().value_or(Where::current())) + ")"));
    return Output::Absent(graph);
  }
  if (!options.slice) return initializer(graph, dtype, *known);
  const PartitionInfo part{Shape::Of(options.slice->full_shape), options.slice->offset};
  return initializer(graph, dtype, *known, &part);
}

/// "v" of "v/".
std::string Bare(const std::string& path) { return path.substr(0, path.empty() ? 0 : path.size() - 1); }

}  // namespace

struct Variable::Rest {
  VariableConstraint constraint;
  std::optional<SaveSlice> slice;
  std::string name;  // of a partitioned variable
  std::vector<Variable> parts;
  std::vector<int64_t> partitions;
};

/// Adds the nodes of a variable in TensorFlow's order.
class VariableBuilder {
 public:
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
      if (graph_.status().ok()) (void)graph_.Fail(InvalidArgument("None values not supported. ({})", Format(where_)));
      return false;
    }
    if (graph_.control_flow().OutputContextOf(initial.op().id()) != nullptr) {
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
    Variable v;
    v.initial_value_ = initial_value;
    v.dtype_ = BaseType(initial_value.dtype());
    v.shape_ = shape.has_rank() || !(options_.validate_shape || use_resource_) ? shape : initial_value.shape();
    v.trainable_ = options_.trainable;
    v.is_resource_ = use_resource_;
    v.handle_ = handle;
    if (options_.constraint || options_.slice) {
      auto rest = std::make_shared<Variable::Rest>();
      rest->constraint = options_.constraint;
      rest->slice = options_.slice;
      v.rest_ = std::move(rest);
    }
    if (options_.validate_shape && !initial_value.shape().fully_defined()) {
      (void)graph_.Fail(InvalidArgument("initial_value must have a shape specified: {} ({})", initial_value.ToString(),
                                        Format(where_)));
      return Variable::FromValue(Output::Absent(graph_));
    }
    if (!handle.exists()) return Variable::FromValue(Output::Absent(graph_));
    if (v.is_resource_) {
      AddResourceNodes(v);
    } else {
      AddReferenceNodes(v);
    }
    if (v.value_.exists()) AddToCollections(v);
    return v;
  }

 private:
  OperationSpec Spec(std::string_view op, std::string_view name) {
    OperationSpec spec;
    spec.op = op;
    spec.name = name;
    spec.where = where_;
    return spec;
  }

  void AddReferenceNodes(Variable& v) {
    OperationSpec assign = Spec("Assign", "Assign");
    assign.inputs = {v.handle_, InAnyOrder(v.initial_value_, v.op().name(), where_)};
    assign.attrs = {{"validate_shape", options_.validate_shape}};
    v.initializer_ = graph_.Add(assign);
    if (!v.initializer_.exists()) return;
    OperationSpec read = Spec("Identity", "read");
    read.inputs = {v.handle_};
    if (!options_.caching_device.empty()) {
      const DeviceScope cache(options_.caching_device, graph_);
      v.value_ = graph_.Add(read).output(0);
      return;
    }
    const ColocateWith variable(v.op(), OuterColocation::kKeep, graph_);
    v.value_ = graph_.Add(read).output(0);
  }

  void AddResourceNodes(Variable& v) {
    {
      const NameScope scope("IsInitialized", graph_);
      OperationSpec check = Spec("VarIsInitializedOp", "VarIsInitializedOp");
      check.inputs = {v.handle_};
      graph_.Add(check);
    }
    {
      const NameScope scope("Assign", graph_);
      const std::string path = scope.path();
      const ColocateWith nothing(std::nullopt, graph_);
      const DeviceScope there(v.handle_.op().device(), graph_);
      OperationSpec assign = Spec("AssignVariableOp", path);
      assign.inputs = {v.handle_, InAnyOrder(v.initial_value_, v.op().name(), where_)};
      assign.attrs = {{"dtype", v.dtype_}};
      v.initializer_ = graph_.Add(assign);
    }
    const NameScope scope("Read", graph_);
    OperationSpec read = Spec("ReadVariableOp", "ReadVariableOp");
    read.inputs = {v.handle_};
    read.attrs = {{"dtype", v.dtype_}};
    {
      const DeviceScope there(v.handle_.op().device(), graph_);
      v.value_ = graph_.Add(read).output(0);
    }
    if (options_.caching_device.empty()) return;
    const ColocateWith nothing(std::nullopt, graph_);
    const DeviceScope cache(options_.caching_device, graph_);
    v.value_ = BuildOp("Identity", {v.value_}, {}, {}, where_).output(0);
  }

  void AddToCollections(const Variable& v) {
    std::vector<std::string> collections = options_.collections;
    const bool listed =
        std::find(collections.begin(), collections.end(), keys::kTrainableVariables) != collections.end();
    if (v.trainable_ && !listed) collections.emplace_back(keys::kTrainableVariables);
    graph_.AddToCollections(collections, v);
  }

  Graph& graph_;
  const VariableOptions& options_;
  const bool use_resource_;
  std::source_location where_;
};

Variable::Variable(const Operand& initial_value, const VariableOptions& options, std::source_location where) {
  Graph& graph = GraphOf(initial_value);
  value_ = Output::Absent(graph);
  const ControlDependencies none(std::nullopt, graph);
  const NameScope scope(options.name.empty() ? "Variable" : options.name, graph);
  if (!scope.opened()) return;
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
  if (!builder.Takes(initial, options.dtype, scope.path())) return;
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
  value_ = Output::Absent(graph);
  if (const Status valid = shape.Check(); !valid.ok()) {
    (void)graph.Fail(valid.Append(" (" + Format(where) + ")"));
    return;
  }
  const Origin origin(where, graph);
  const ControlDependencies none(std::nullopt, graph);
  const NameScope scope(options.name.empty() ? "Variable" : options.name, graph);
  if (!scope.opened()) return;
  VariableBuilder builder(graph, options, where);
  Output initial, handle;
  {
    const AttrScope beside("_class", Beside(Bare(scope.path())), graph);
    {
      const NameScope inner("Initializer", graph);
      const DeviceScope anywhere(std::nullopt, graph);
      initial = MakeInitial(initializer, shape, dtype, options, graph);
    }
    if (!builder.Takes(initial, initializer.wants_shape() ? dtype : DType::kInvalid, scope.path())) return;
    const bool like_initial = !shape.has_rank() && (options.validate_shape || builder.use_resource());
    handle = builder.AddHandle(scope.path(), BaseType(initial.dtype()), like_initial ? initial.shape() : shape);
  }
  *this = builder.Build(handle, initial, shape);
}

Variable Variable::FromNodes(const VariableNodes& nodes) {
  Variable v;
  v.handle_ = nodes.handle;
  v.value_ = nodes.value;
  v.initial_value_ = nodes.initial_value;
  v.initializer_ = nodes.initializer;
  v.dtype_ = BaseType(nodes.value.dtype());
  v.shape_ = nodes.value.shape();
  v.trainable_ = nodes.trainable;
  v.is_resource_ = nodes.handle.dtype() == DType::kResource;
  if (nodes.slice) {
    auto rest = std::make_shared<Rest>();
    rest->slice = nodes.slice;
    v.rest_ = std::move(rest);
  }
  return v;
}

Variable Variable::FromValue(const Output& value) {
  Variable v;
  v.value_ = value;
  v.dtype_ = BaseType(value.dtype());
  v.shape_ = value.shape();
  return v;
}

Variable Variable::FromParts(std::string name, const Shape& shape, std::vector<Variable> parts,
                             std::vector<int64_t> partitions) {
  Variable whole;
  if (parts.empty()) return whole;
  whole.dtype_ = parts[0].dtype();
  whole.shape_ = shape;
  whole.trainable_ = parts[0].trainable();
  whole.is_resource_ = parts[0].is_resource();
  auto rest = std::make_shared<Rest>();
  rest->name = std::move(name);
  rest->parts = std::move(parts);
  rest->partitions = std::move(partitions);
  whole.rest_ = std::move(rest);
  return whole;
}

Output ReadHandle(const Output& handle, DType dtype, std::source_location where) {
  if (handle.graph() == nullptr) return Output();
  const ColocateWith nothing(std::nullopt, *handle.graph());
  return BuildOp("ReadVariableOp", {handle}, {{"dtype", dtype}}, {}, where).output(0);
}

Output Variable::value(std::source_location where) const {
  if (is_read_anew()) return ReadHandle(handle_, dtype_, where);
  if (!is_partitioned()) return value_;
  Graph& graph = Home();
  const ControlDependencies none(std::nullopt, graph);
  Operand whole(parts()[0], where);
  if (parts().size() > 1) {
    const NameScope scope(rest_->name + "/ConcatPartitions/", graph);
    whole = Concat({parts().begin(), parts().end()}, cut_axis(), "concat", where);
  }
  const NameScope root("", graph);
  return BuildOp("Identity", {whole}, {}, rest_->name, where).output(0);
}

std::string Variable::name() const {
  if (is_partitioned()) return rest_->name;
  return handle_.exists() ? handle_.name() : value_.name();
}

const VariableConstraint& Variable::constraint() const {
  static const VariableConstraint kNone;
  return rest_ ? rest_->constraint : kNone;
}

const std::optional<SaveSlice>& Variable::slice() const {
  static const std::optional<SaveSlice> kWhole;
  return rest_ ? rest_->slice : kWhole;
}

const std::vector<Variable>& Variable::parts() const {
  static const std::vector<Variable> kNone;
  return rest_ ? rest_->parts : kNone;
}

const std::vector<int64_t>& Variable::partitions() const {
  static const std::vector<int64_t> kNone;
  return rest_ ? rest_->partitions : kNone;
}

std::string SaveSlice::spec() const {
  io::TensorSlice slice;
  for (size_t i = 0; i < offset.size() && i < shape.size(); ++i) slice.push_back({offset[i], shape[i]});
  std::string text;
  for (const int64_t extent : full_shape) text += fmt::format("{} ", extent);
  return text + io::ToString(slice);
}

Output Variable::ReadValue(std::source_location where) const {
  if (!is_resource_) return BuildOp("Identity", {handle_}, {}, "read", where).output(0);
  Output read;
  {
    const NameScope scope("Read", Home());
    std::optional<ColocateWith> nothing;
    std::optional<DeviceScope> cache;
    if (!is_read_anew()) {
      nothing.emplace(std::nullopt, Home());
      cache.emplace(value_.op().device(), Home());
    }
    read = BuildOp("ReadVariableOp", {handle_}, {{"dtype", dtype_}}, {}, where).output(0);
  }
  return BuildOp("Identity", {read}, {}, "Identity", where).output(0);
}

Graph& Variable::Home() const { return graph() != nullptr ? *graph() : Graph::Default(); }

Output Variable::InitializedValue(std::source_location where) const {
  const ControlDependencies none(std::nullopt, Home());
  const BranchFn read = [&] { return ReadValue(where); };
  const BranchFn initial = [&] { return initial_value_; };
  return Cond(IsInitialized({}, where), read, initial, "cond", where);
}

Output Variable::IsInitialized(std::string_view name, std::source_location where) const {
  return BuildOp(is_resource_ ? "VarIsInitializedOp" : "IsVariableInitialized", {handle_}, {}, name, where).output(0);
}

Output Variable::ReadAfter(const Operation& change, std::source_location where) const {
  if (!change.exists()) return Output::Absent(Home());
  const ControlDependencies after({change}, Home());
  return BuildOp("ReadVariableOp", {handle_}, {{"dtype", dtype_}}, "ReadVariableOp", where).output(0);
}

int Variable::cut_axis() const {
  const auto cut = std::ranges::find_if(partitions(), [](int64_t n) { return n > 1; });
  return cut == partitions().end() ? 0 : static_cast<int>(cut - partitions().begin());
}

/// Each part by its piece of `value`; the new values together.
Output Variable::ChangeParts(const std::string& op, const Operand& value, std::source_location where) const {
  std::vector<int> lengths;
  for (const Variable& part : parts()) {
    const PartialShape& shape = part.shape();
    lengths.push_back(cut_axis() < shape.rank() ? static_cast<int>(shape.dim(cut_axis())) : 0);
  }
  const List<Output> pieces = SplitV(value.In(Home(), dtype_, "value"), lengths, cut_axis(), "split", where);
  std::vector<Operand> changed;
  for (size_t i = 0; i < parts().size(); ++i) changed.emplace_back(parts()[i].Change(op, pieces[i], where));
  return changed.size() == 1 ? changed[0].In(Home()) : Concat(changed, cut_axis(), "concat", where);
}

Output Variable::Change(const std::string& op, const Operand& value, std::source_location where) const {
  if (is_partitioned()) return ChangeParts(op, value, where);
  if (!is_resource_) return BuildOp(op, {handle_, value}, {{"use_locking", false}}, op, where).output(0);
  const std::string handled = op + "VariableOp";
  Operation change;
  {
    std::optional<ControlDependencies> cached;  // a cache has the value from before the change
    if (!is_read_anew() && op != "Assign") cached.emplace(std::vector<Dependency>{value_}, Home());
    change = BuildOp(handled, {handle_, value.In(Home(), dtype_)}, {{"dtype", dtype_}}, handled, where);
  }
  return ReadAfter(change, where);
}

Output Variable::Assign(const Operand& value, std::source_location where) const {
  return Change("Assign", value, where);
}

Output Variable::AssignAdd(const Operand& value, std::source_location where) const {
  return Change("AssignAdd", value, where);
}

Output Variable::AssignSub(const Operand& value, std::source_location where) const {
  return Change("AssignSub", value, where);
}

std::string Variable::ToString() const {
  return fmt::format("<tf.Variable '{}' shape={} dtype={}>", name(), shape_.ToTupleString(),
                     NumpyName(is_resource_ ? dtype_ : RefType(dtype_)));
}

std::vector<Variable> Flattened(const std::vector<Variable>& variables) {
  std::vector<Variable> all;
  for (const Variable& v : variables) {
    if (v.is_partitioned()) {
      all.insert(all.end(), v.parts().begin(), v.parts().end());
    } else {
      all.push_back(v);
    }
  }
  return all;
}

Operation VariablesInitializer(const std::vector<Variable>& variables, std::string_view name,
                               std::source_location where) {
  const bool known = !variables.empty() && variables[0].graph() != nullptr;
  Graph& graph = known ? *variables[0].graph() : Graph::Default();
  const AsDefault in(graph);
  std::vector<Groupable> initializers;
  for (const Variable& v : Flattened(variables)) initializers.emplace_back(v.initializer());
  return Group(initializers, name, where);
}

Operation GlobalVariablesInitializer(Graph& graph, std::source_location where) {
  const AsDefault in(graph);
  return VariablesInitializer(GlobalVariables(graph), "init", where);
}

Operation LocalVariablesInitializer(Graph& graph, std::source_location where) {
  const AsDefault in(graph);
  return VariablesInitializer(LocalVariables(graph), "init", where);
}

std::vector<Variable> VariablesIn(const std::string& key, CollectionScope scope, Graph& graph) {
  std::vector<Variable> all;
  for (const CollectionEntry& entry : graph.GetCollection(key, scope)) {
    if (entry.variable) all.push_back(*entry.variable);
  }
  return all;
}

std::vector<Variable> GlobalVariables(Graph& graph) { return VariablesIn(keys::kGlobalVariables, {}, graph); }
std::vector<Variable> LocalVariables(Graph& graph) { return VariablesIn(keys::kLocalVariables, {}, graph); }
std::vector<Variable> TrainableVariables(Graph& graph) { return VariablesIn(keys::kTrainableVariables, {}, graph); }

CollectionEntry::CollectionEntry(const Variable& value)
    : output(value.handle()), variable(std::make_shared<Variable>(value)) {}

std::string CollectionEntry::name() const {
  if (variable) return variable->name();
  if (output.exists()) return output.name();
  return operation.exists() ? operation.name() : "";
}

Dependency::Dependency(const Variable& variable)
    : operation_(variable.handle().exists() ? variable.op() : variable.value().op()) {}

Output ReportUninitializedVariables(std::vector<Variable> variables, Graph& graph, std::source_location where) {
  if (variables.empty()) {
    variables = GlobalVariables(graph);
    for (const Variable& v : LocalVariables(graph)) variables.push_back(v);
  }
  const AsDefault in(graph);
  const Origin origin(where, graph);
  const NameScope scope("report_uninitialized_variables", graph);
  std::vector<std::string> names;
  std::vector<Operand> flags;
  for (const Variable& v : Flattened(variables)) {
    names.push_back(v.op().name());
    flags.emplace_back(v.IsInitialized());
  }
  const DeviceScope host("/cpu:0", graph);  // which has strings
  if (flags.empty()) return MakeConst(graph, Tensor::Vector<std::string>({}), DType::kString, "Const");
  const Output initialized = BuildOp("Pack", flags, {{"axis", 0}}, "stack").output(0);
  const Output missing = BuildOp("LogicalNot", {initialized}).output(0);
  const Output all = MakeConst(graph, Tensor::Vector<std::string>(names), DType::kString, "Const");
  const NameScope mask("boolean_mask", graph);
  const Output places = BuildOp("Where", {missing}).output(0);
  const Output rows = BuildOp("Squeeze", {places}, {{"squeeze_dims", std::vector<int64_t>{1}}}).output(0);
  return BuildOp("GatherV2", {all, rows, MakeConst(graph, Literal(0), DType::kInt32, "axis")}).output(0);
}

}  // namespace weir
