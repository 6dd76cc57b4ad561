#include "core/client/variable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/client/random_ops.h"
#include "core/tensor/number.h"

namespace weir {
namespace {

/// A Const in the current name scope.
Output MakeConst(Graph& graph, const Literal& value, DType dtype, std::string_view name) {
  return Operand(value).In(graph, dtype, name);
}

Tensor ShapeTensor(const Shape& shape) { return Tensor::Vector<int32_t>({shape.dims().begin(), shape.dims().end()}); }

/// A random initial value, as the builders of random ops make it in the current scope.
Initializer Drawn(decltype(RandomUniform)* draw, double first, double second, int64_t seed) {
  return [=](Graph& graph, DType dtype, const Shape& shape) {
    const AsDefault in(graph);
    RandomOptions options;
    options.dtype = dtype;
    options.seed = seed;
    return draw(Literal(ShapeTensor(shape)), first, second, options, std::source_location::current());
  };
}

Initializer Filled(double value, const char* name) {
  return [value, name](Graph& graph, DType dtype, const Shape& shape) -> Output {
    Result<Tensor> filled = Tensor::Make(dtype, shape);
    const Result<Tensor> one = ScalarFrom(dtype, value);
    if (!filled.ok() || !one.ok()) {
      (void)graph.Fail(filled.ok() ? one.status() : filled.status());
      return Output();
    }
    const size_t size = SizeOf(dtype);
    for (int64_t i = 0; i < filled->elements(); ++i) {
      std::copy_n(one->raw(), size, filled->mutable_raw() + static_cast<size_t>(i) * size);
    }
    return MakeConst(graph, *filled, dtype, name);
  };
}

std::vector<Variable> VariablesIn(const Graph& graph, const char* key) {
  std::vector<Variable> all;
  for (const CollectionEntry& entry : graph.GetCollection(key)) {
    if (entry.variable) all.push_back(*entry.variable);
  }
  return all;
}

}  // namespace

/// Adds the nodes of a variable in TensorFlow's order.
class VariableBuilder {
 public:
  VariableBuilder(Graph& graph, const VariableOptions& options, std::source_location where)
      : graph_(graph), options_(options), where_(where) {}

  /// Inside the variable's name scope, whose path is `path` ("v/").
  Variable Build(const std::string& path, const Output& initial_value) {
    Variable v;
    v.initial_value_ = initial_value;
    v.dtype_ = BaseType(initial_value.dtype());
    if (options_.validate_shape) v.shape_ = initial_value.shape();
    v.trainable_ = options_.trainable;
    v.is_resource_ = options_.use_resource;
    const std::string bare = path.substr(0, path.size() - 1);
    OperationSpec spec = Spec(v.is_resource_ ? "VarHandleOp" : "VariableV2", path);
    spec.attrs = {{"dtype", v.dtype_}, {"shape", v.shape_}};
    if (v.is_resource_) spec.attrs.emplace_back("shared_name", bare);
    v.handle_ = graph_.Add(spec).output(0);
    if (!graph_.status().ok()) return v;
    if (v.is_resource_) {
      AddResourceNodes(v);
    } else {
      AddReferenceNodes(v, bare);
    }
    AddToCollections(v);
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

  void AddReferenceNodes(Variable& v, const std::string& bare) {
    const std::vector<std::string> together = {"loc:@" + bare};
    OperationSpec assign = Spec("Assign", "Assign");
    assign.inputs = {v.handle_, v.initial_value_};
    assign.attrs = {{"validate_shape", options_.validate_shape}, {"_class", together}};
    v.initializer_ = graph_.Add(assign);
    OperationSpec read = Spec("Identity", "read");
    read.inputs = {v.handle_};
    read.attrs = {{"_class", together}};
    v.value_ = graph_.Add(read).output(0);
  }

  void AddResourceNodes(Variable& v) {
    {
      const NameScope scope("IsInitialized", graph_);
      OperationSpec check = Spec("VarIsInitializedOp", "VarIsInitializedOp");
      check.inputs = {v.handle_};
      graph_.Add(check);
    }
    OperationSpec assign = Spec("AssignVariableOp", "Assign");
    assign.inputs = {v.handle_, v.initial_value_};
    assign.attrs = {{"dtype", v.dtype_}};
    v.initializer_ = graph_.Add(assign);
    const NameScope scope("Read", graph_);
    OperationSpec read = Spec("ReadVariableOp", "ReadVariableOp");
    read.inputs = {v.handle_};
    read.attrs = {{"dtype", v.dtype_}};
    v.value_ = graph_.Add(read).output(0);
  }

  void AddToCollections(const Variable& v) {
    std::vector<std::string> collections = options_.collections;
    if (collections.empty()) collections = {keys::kGlobalVariables};
    const bool listed =
        std::find(collections.begin(), collections.end(), keys::kTrainableVariables) != collections.end();
    if (v.trainable_ && !listed) collections.emplace_back(keys::kTrainableVariables);
    CollectionEntry entry;
    entry.output = v.handle_;
    entry.variable = std::make_shared<Variable>(v);
    for (const std::string& key : collections) graph_.AddToCollection(key, entry);
  }

  Graph& graph_;
  const VariableOptions& options_;
  std::source_location where_;
};

Variable::Variable(const Operand& initial_value, const VariableOptions& options, std::source_location where) {
  Graph& graph = initial_value.graph() != nullptr ? *initial_value.graph() : Graph::Default();
  const NameScope scope(options.name.empty() ? "Variable" : options.name, graph);
  Output initial;
  {
    const std::string at = scope.path() + (options.use_resource ? "Initializer/" : "");
    const NameScope inner(at, graph);
    initial = initial_value.is_literal() ? initial_value.In(graph, options.dtype, "initial_value")
                                         : BuildOp("Identity", {initial_value}, {}, "initial_value", where).output(0);
  }
  if (!initial.exists()) return;
  *this = VariableBuilder(graph, options, where).Build(scope.path(), initial);
}

Variable::Variable(const Initializer& initializer, const Shape& shape, DType dtype, const VariableOptions& options,
                   Graph& graph, std::source_location where) {
  const NameScope scope(options.name.empty() ? "Variable" : options.name, graph);
  Output initial;
  {
    const NameScope inner("Initializer", graph);
    initial = initializer(graph, dtype, shape);
  }
  if (initial.exists()) *this = VariableBuilder(graph, options, where).Build(scope.path(), initial);
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
  return v;
}

Output Variable::Assign(const Operand& value, std::source_location where) const {
  if (!is_resource_) return BuildOp("Assign", {handle_, value}, {}, "Assign", where).output(0);
  const Operation assign =
      BuildOp("AssignVariableOp", {handle_, value}, {{"dtype", dtype_}}, "AssignVariableOp", where);
  const ControlDependencies after({assign}, *graph());
  return BuildOp("ReadVariableOp", {handle_}, {{"dtype", dtype_}}, "ReadVariableOp", where).output(0);
}

Output Variable::AssignAdd(const Operand& value, std::source_location where) const {
  if (!is_resource_) return BuildOp("AssignAdd", {handle_, value}, {}, "AssignAdd", where).output(0);
  const Operation add =
      BuildOp("AssignAddVariableOp", {handle_, value}, {{"dtype", dtype_}}, "AssignAddVariableOp", where);
  const ControlDependencies after({add}, *graph());
  return BuildOp("ReadVariableOp", {handle_}, {{"dtype", dtype_}}, "ReadVariableOp", where).output(0);
}

Output Variable::AssignSub(const Operand& value, std::source_location where) const {
  if (!is_resource_) return BuildOp("AssignSub", {handle_, value}, {}, "AssignSub", where).output(0);
  const Operation sub =
      BuildOp("AssignSubVariableOp", {handle_, value}, {{"dtype", dtype_}}, "AssignSubVariableOp", where);
  const ControlDependencies after({sub}, *graph());
  return BuildOp("ReadVariableOp", {handle_}, {{"dtype", dtype_}}, "ReadVariableOp", where).output(0);
}

std::string Variable::ToString() const {
  return fmt::format("<tf.Variable '{}' shape={} dtype={}>", name(), shape_.ToTupleString(),
                     NumpyName(is_resource_ ? dtype_ : RefType(dtype_)));
}

Initializer ZerosInitializer() { return Filled(0, "zeros"); }
Initializer OnesInitializer() { return Filled(1, "ones"); }

Initializer ConstantInitializer(Literal value) {
  return [value = std::move(value)](Graph& graph, DType dtype, const Shape& shape) -> Output {
    if (value.tensor.elements() == 1 && shape.elements() != 1) {
      return Filled(ElementAsDouble(value.tensor, 0), "Const")(graph, dtype, shape);
    }
    const Result<Tensor> typed = value.As(dtype);
    Result<Tensor> shaped = typed.ok() ? typed->Reshaped(shape) : typed;
    if (!shaped.ok()) {
      (void)graph.Fail(shaped.status());
      return Output();
    }
    return MakeConst(graph, *shaped, dtype, "Const");
  };
}

Initializer RandomUniformInitializer(double minval, double maxval, int64_t seed) {
  return Drawn(RandomUniform, minval, maxval, seed);
}

Initializer RandomNormalInitializer(double mean, double stddev, int64_t seed) {
  return Drawn(RandomNormal, mean, stddev, seed);
}

Initializer TruncatedNormalInitializer(double mean, double stddev, int64_t seed) {
  return Drawn(TruncatedNormal, mean, stddev, seed);
}

Initializer GlorotUniformInitializer(int64_t seed) {
  return [=](Graph& graph, DType dtype, const Shape& shape) {
    double fan_in = 1, fan_out = 1, receptive = 1;
    const int rank = shape.rank();
    for (int i = 0; i + 2 < rank; ++i) receptive *= static_cast<double>(shape.dim(i));
    if (rank == 1) fan_in = fan_out = static_cast<double>(shape.dim(0));
    if (rank >= 2) {
      fan_in = static_cast<double>(shape.dim(rank - 2)) * receptive;
      fan_out = static_cast<double>(shape.dim(rank - 1)) * receptive;
    }
    const double limit = std::sqrt(6.0 / std::max(1.0, fan_in + fan_out));
    return Drawn(RandomUniform, -limit, limit, seed)(graph, dtype, shape);
  };
}

Variable GetVariable(std::string_view name, const Shape& shape, DType dtype, Initializer initializer, bool trainable,
                     std::source_location where) {
  Graph& graph = Graph::Default();
  if (const auto found = graph.variables().find(std::string(name)); found != graph.variables().end()) {
    (void)graph.Fail(
        AlreadyExists("Variable {} already exists, disallowed. Did you mean to set reuse=True or "
                      "reuse=tf.AUTO_REUSE in VarScope? Originally defined at: {} ({})",
                      name, found->second->op().node().origin(), Format(where)));
    return Variable();
  }
  if (!initializer) initializer = IsFloating(dtype) ? GlorotUniformInitializer() : ZerosInitializer();
  VariableOptions options;
  options.name = name;
  options.trainable = trainable;
  const NameScope root("", graph);
  Variable made(initializer, shape, dtype, options, graph, where);
  graph.variables().emplace(name, std::make_shared<Variable>(made));
  return made;
}

Operation VariablesInitializer(const std::vector<Variable>& variables, std::string_view name) {
  Graph& graph = variables.empty() ? Graph::Default() : *variables[0].graph();
  OperationSpec spec;
  spec.op = "NoOp";
  spec.name = name;
  for (const Variable& v : variables) spec.control_inputs.push_back(v.initializer());
  return graph.Add(spec);
}

Operation GlobalVariablesInitializer(Graph& graph) {
  const AsDefault in(graph);
  return VariablesInitializer(GlobalVariables(graph));
}

Operation LocalVariablesInitializer(Graph& graph) {
  const AsDefault in(graph);
  return VariablesInitializer(LocalVariables(graph));
}

std::vector<Variable> GlobalVariables(Graph& graph) { return VariablesIn(graph, keys::kGlobalVariables); }
std::vector<Variable> LocalVariables(Graph& graph) { return VariablesIn(graph, keys::kLocalVariables); }
std::vector<Variable> TrainableVariables(Graph& graph) { return VariablesIn(graph, keys::kTrainableVariables); }

Output ReportUninitializedVariables(std::vector<Variable> variables, Graph& graph) {
  if (variables.empty()) {
    variables = GlobalVariables(graph);
    for (const Variable& v : LocalVariables(graph)) variables.push_back(v);
  }
  const AsDefault in(graph);
  const NameScope scope("report_uninitialized_variables", graph);
  std::vector<std::string> names;
  std::vector<Operand> flags;
  for (const Variable& v : variables) {
    names.push_back(v.op().name());
    flags.emplace_back(
        BuildOp(v.is_resource() ? "VarIsInitializedOp" : "IsVariableInitialized", {v.handle()}).output(0));
  }
  if (flags.empty()) return MakeConst(graph, Tensor::Vector<std::string>({}), DType::kString, "Const");
  const Output initialized = BuildOp("Pack", flags, {{"axis", 0}}, "stack").output(0);
  const Output missing = BuildOp("LogicalNot", {initialized}).output(0);
  const Output all = MakeConst(graph, Tensor::Vector<std::string>(names), DType::kString, "Const");
  const NameScope mask("boolean_mask", graph);
  const Output where = BuildOp("Where", {missing}).output(0);
  const Output rows = BuildOp("Squeeze", {where}, {{"squeeze_dims", std::vector<int64_t>{1}}}).output(0);
  return BuildOp("GatherV2", {all, rows, MakeConst(graph, Literal(0), DType::kInt32, "axis")}).output(0);
}

}  // namespace weir
