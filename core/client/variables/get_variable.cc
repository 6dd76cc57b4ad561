// GetVariable: makes, finds and cuts up variables by name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_ops.h"
#include "core/client/variables/partitioners.h"
#include "core/client/variables/variable_scope.h"
#include "core/client/variables/variable_store_internal.h"

namespace weir {
namespace {

/// One call, with what the scope adds to its arguments.
class Getting {
 public:
  Getting(Graph& graph, std::source_location where)
      : graph_(graph), store_(Internals(graph).variable_store()), where_(where) {}

  Variable Get(const std::string& name, const VariableArgs& args) {
    const bool scalar = args.shape.rank() == 0;
    if (args.partitioner && !scalar) return GetPartitioned(name, args);
    if (args.reuse == Reuse::kYes && store_.partitioned.contains(name)) return GetPartitioned(name, args);
    if (store_.variables.contains(name + "/part_0")) {
      return Fail(InvalidArgument(
          "No partitioner was provided, but a partitioned version of the variable was found: {}/part_0. Perhaps a "
          "variable of the same name was already created with partitioning?",
          name));
    }
    return GetSingle(name, args);
  }

  Variable Fail(const Status& status) {
    (void)graph_.Fail(status.Append(" (" + Format(where_) + ")"));
    return Variable::FromValue(Output::Absent(graph_));
  }

 private:
  Variable GetSingle(const std::string& name, const VariableArgs& args) {
    if (args.initializer.value() && args.shape.has_rank()) {
      return Fail(InvalidArgument("If initializer is a constant, do not specify shape."));
    }
    if (const auto found = store_.variables.find(name); found != store_.variables.end()) {
      return Share(name, found->second, args);
    }
    if (args.reuse == Reuse::kYes) {
      return Fail(
          NotFound("Variable {} does not exist, or was not created with tf.get_variable(). Did you mean to set "
                   "reuse=tf.AUTO_REUSE in VarScope?",
                   name));
    }
    if (!args.initializer && !args.shape.has_rank()) {
      return Fail(
          InvalidArgument("Variable {} did not get an initializer, so its `shape` argument must be specified.", name));
    }
    const Initializer initializer = args.initializer ? args.initializer : DefaultInitializer(args.dtype);
    if (!initializer) {
      return Fail(
          InvalidArgument("An initializer for variable {} of <dtype: '{}'> is required", name, NumpyName(args.dtype)));
    }
    if (initializer.wants_shape() && !args.shape.fully_defined()) {
      return Fail(
          InvalidArgument("The initializer passed is not valid. It should be a callable with no arguments and the "
                          "shape should not be provided or an instance of `tf.keras.initializers.*' and `shape` should "
                          "be fully defined."));
    }
    const Variable made(initializer, args.shape, args.dtype, OptionsFor(name, args), graph_, where_);
    if (!made.exists()) return made;
    store_.variables.insert_or_assign(name, made);
    Regularize(name, made, args);
    return made;
  }

  Variable Share(const std::string& name, const Variable& found, const VariableArgs& args) {
    if (args.reuse.value_or(Reuse::kNo) == Reuse::kNo) {
      return Fail(AlreadyExists(
          "Variable {} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope? "
          "Originally defined at: {}",
          name, found.op().node().origin()));
    }
    if (!args.shape.CompatibleWith(found.shape())) {
      return Fail(InvalidArgument("Trying to share variable {}, but specified shape {} and found shape {}.", name,
                                  args.shape.ToTupleString(), found.shape().ToTupleString()));
    }
    if (BaseType(args.dtype) != found.dtype()) {
      return Fail(InvalidArgument("Trying to share variable {}, but specified dtype {} and found dtype {}.", name,
                                  NumpyName(BaseType(args.dtype)), FoundType(found)));
    }
    return found;
  }

  static std::string FoundType(const Variable& found) {
    return std::string(NumpyName(found.is_resource() ? found.dtype() : RefType(found.dtype())));
  }

  VariableOptions OptionsFor(const std::string& name, const VariableArgs& args) const {
    VariableOptions options;
    options.name = name;
    options.trainable = args.trainable;
    options.collections = args.collections;
    if (!args.initializer.value()) options.dtype = args.dtype;
    options.validate_shape = args.validate_shape;
    options.use_resource = args.use_resource.value_or(false);
    options.caching_device = args.caching_device;
    options.constraint = args.constraint;
    options.slice = args.slice;
    return options;
  }

  void Regularize(const std::string& name, const Variable& variable, const VariableArgs& args) {
    if (!args.regularizer) return;
    const ColocateWith beside(variable, OuterColocation::kKeep, graph_);
    const NameScope scope(name + "/Regularizer/", graph_);
    const Output loss = args.regularizer(variable);
    if (loss.exists()) graph_.AddToCollection(keys::kRegularizationLosses, loss);
  }

  Variable GetPartitioned(const std::string& name, VariableArgs args) {
    if (store_.variables.contains(name)) {
      return Fail(InvalidArgument(
          "A partitioner was provided, but an unpartitioned version of the variable was found: {}.  Perhaps a variable "
          "of the same name was already created without partitioning?",
          name));
    }
    const std::optional<Operand> value = args.initializer.value();
    if (value && !args.shape.has_rank()) {
      args.shape = value->shape();
    }
    std::vector<int64_t> partitions;
    if (args.partitioner) {
      Result<std::vector<int64_t>> asked = CallPartitioner(args.partitioner, args.shape, args.dtype);
      if (!asked.ok()) return Fail(asked.status());
      partitions = std::move(*asked);
    }
    if (const auto found = store_.partitioned.find(name); found != store_.partitioned.end()) {
      return SharePartitioned(name, found->second, args, partitions);
    }
    if (args.reuse == Reuse::kYes) {
      return Fail(
          NotFound("PartitionedVariable {} does not exist, or was not created with tf.get_variable(). Did you "
                   "mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?",
                   name));
    }
    return Cut(name, args, partitions);
  }

  Variable SharePartitioned(const std::string& name, const Variable& found, const VariableArgs& args,
                            const std::vector<int64_t>& partitions) {
    if (args.reuse.value_or(Reuse::kNo) == Reuse::kNo) {
      return Fail(
          AlreadyExists("Partitioned variable with name {} already exists. Did you mean to set reuse=True or "
                        "reuse=tf.AUTO_REUSE in VarScope?",
                        name));
    }
    const std::string prefix = "Trying to reuse partitioned variable " + name + ", but specified ";
    if (!args.shape.CompatibleWith(found.shape())) {
      return Fail(InvalidArgument("{}shape {} and found shape {}.", prefix, args.shape.ToTupleString(),
                                  found.shape().ToTupleString()));
    }
    if (BaseType(args.dtype) != found.dtype()) {
      return Fail(InvalidArgument("{}dtype {} and found dtype {}.", prefix, NumpyName(BaseType(args.dtype)),
                                  NumpyName(found.dtype())));
    }
    if (!partitions.empty() && partitions != found.partitions()) {
      return Fail(InvalidArgument("{}partitions [{}] and found partitions [{}].", prefix, fmt::join(partitions, ", "),
                                  fmt::join(found.partitions(), ", ")));
    }
    return found;
  }

  Variable Cut(const std::string& name, const VariableArgs& args, const std::vector<int64_t>& partitions) {
    const Result<Shape> whole = args.shape.ToShape();
    if (!whole.ok()) return Fail(whole.status());
    std::vector<Variable> parts;
    for (const Part& part : CutInto(*whole, partitions)) {
      const std::string part_name = fmt::format("{}/part_{}", name, parts.size());
      VariableArgs part_args = args;
      part_args.partitioner = nullptr;
      if (args.initializer.value()) {
        part_args.initializer = PartOf(*args.initializer.value(), part, part_name, args.dtype);
        part_args.shape = PartialShape();
      } else {
        part_args.shape = Shape::Of(part.size);
      }
      part_args.slice = {name, {whole->dims().begin(), whole->dims().end()}, part.offset, part.size};
      parts.push_back(GetSingle(part_name, part_args));
      if (!parts.back().exists()) return parts.back();
    }
    Variable variable = Variable::FromParts(name, *whole, std::move(parts), partitions);
    store_.partitioned.insert_or_assign(name, variable);
    return variable;
  }

  Initializer PartOf(const Operand& whole, const Part& part, const std::string& part_name, DType dtype) {
    const NameScope scope(part_name + "/PartitionedInitializer", graph_);
    const Output value = whole.In(graph_, dtype);
    const auto ints = [](const std::vector<int64_t>& values) {
      return Literal(Tensor::Vector<int32_t>({values.begin(), values.end()}));
    };
    return Slice(value, ints(part.offset), ints(part.size), "Slice", where_);
  }

  Graph& graph_;
  VariableStore& store_;
  std::source_location where_;
};

/// The arguments completed by the scope's defaults.
VariableArgs Complete(VariableArgs args, const VarScope::State& scope) {
  if (!args.regularizer) args.regularizer = scope.regularizer;
  if (args.caching_device.empty()) args.caching_device = scope.caching_device;
  if (!args.partitioner) args.partitioner = scope.partitioner;
  if (!args.custom_getter) args.custom_getter = scope.custom_getter;
  if (!args.reuse) args.reuse = scope.reuse;
  if (!args.initializer) args.initializer = scope.initializer;
  if (!args.constraint) args.constraint = scope.constraint;
  if (args.dtype == DType::kInvalid) args.dtype = scope.dtype;
  args.dtype = BaseType(args.dtype);
  if (!args.use_resource) args.use_resource = scope.use_resource;
  return args;
}

/// A value to begin with says its type, which an explicit one does not contradict.
Status CheckValueType(const VariableArgs& args) {
  if (args.dtype == DType::kInvalid || !args.initializer.value()) return Status();
  const Operand& value = *args.initializer.value();
  Result<Tensor> literal = value.is_literal() ? value.literal().As(DType::kInvalid) : Tensor();
  WEIR_TRY(literal.status());
  const DType dtype = BaseType(value.is_literal() ? literal->dtype() : value.dtype());
  if (dtype == BaseType(args.dtype)) return Status();
  return InvalidArgument("Initializer type '<dtype: '{}'>' and explicit dtype '<dtype: '{}'>' don't match.",
                         NumpyName(dtype), NumpyName(BaseType(args.dtype)));
}

}  // namespace

Variable GetVariable(std::string_view name, const VariableArgs& args, std::source_location where) {
  Graph& graph = Graph::Default();
  Getting getting(graph, where);
  if (const Status shape = args.shape.Check(); !shape.ok()) return getting.Fail(shape);
  if (const Status type = CheckValueType(args); !type.ok()) return getting.Fail(type);
  const VarScope scope = GetVariableScope(graph);
  const std::string full_name = scope::JoinScopes(scope.name(), name);
  VariableArgs complete = Complete(args, scope.state());
  const VariableGetter work = [&](const std::string& wanted, const VariableArgs& with) {
    return getting.Get(wanted, with);
  };
  const Origin origin(where, graph);
  const NameScope root("", graph);
  const CustomGetter custom = std::exchange(complete.custom_getter, nullptr);
  return custom ? custom(work, full_name, complete) : work(full_name, complete);
}

}  // namespace weir
