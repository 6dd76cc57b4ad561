#include "core/client/saver/init_from_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/saver/checkpoint_reader.h"
#include "core/client/saver/saver.h"
#include "core/client/variables/variable_internal.h"
#include "core/client/variables/variable_store_internal.h"

namespace weir {
namespace {

using CheckpointShapes = std::map<std::string, std::vector<int64_t>>;

/// Python's text of the map: "{'b': [], 'v': [2, 2]}".
std::string TextOfShapes(const CheckpointShapes& shapes) {
  std::string text;
  for (const auto& [name, dims] : shapes) {
    text += fmt::format("{}'{}': [{}]", text.empty() ? "" : ", ", name, fmt::join(dims, ", "));
  }
  return "{" + text + "}";
}

/// A variable, or a part of one, and the tensor that it is to begin with.
struct InitialLoad {
  Variable variable;
  std::string tensor;
};

/// Finds the loads that a map asks for.
class LoadFinder {
 public:
  LoadFinder(std::string path, CheckpointShapes shapes, Graph& graph)
      : path_(std::move(path)), shapes_(std::move(shapes)), store_(Internals(graph).variable_store()) {}

  Status Add(const std::string& tensor, const InitTarget& target) {
    if (const auto* variable = std::get_if<Variable>(&target.target())) return AddVariable(tensor, *variable);
    const std::string& name = std::get<std::string>(target.target());
    if (const auto found = store_.variables.find(name); found != store_.variables.end()) {
      return AddVariable(tensor, found->second);
    }
    if (const auto found = store_.partitioned.find(name); found != store_.partitioned.end()) {
      return AddVariable(tensor, found->second);
    }
    return AddScope(tensor, name);
  }
  std::vector<InitialLoad> Take() && { return std::move(loads_); }

 private:
  Status AddVariable(const std::string& tensor, const Variable& variable) {
    if (!variable.exists()) return InvalidArgument("the variable to initialize from '{}' does not exist", tensor);
    const auto found = shapes_.find(tensor);
    if (found == shapes_.end()) {
      return InvalidArgument("Tensor {} is not found in {} checkpoint {}", tensor, path_, TextOfShapes(shapes_));
    }
    const std::vector<Variable> parts = Flattened({variable});
    const PartialShape whole =
        variable.slice() ? PartialShape(Shape::Of(variable.slice()->full_shape)) : variable.shape();
    if (!whole.CompatibleWith(PartialShape(Shape::Of(found->second)))) {
      return InvalidArgument(
          "Shape of variable {} ({}) doesn't match with shape of tensor {} ([{}]) from checkpoint reader.",
          variable.name(), whole.ToTupleString(), tensor, fmt::join(found->second, ", "));
    }
    for (const Variable& part : parts) loads_.push_back({part, tensor});
    return Status();
  }

  Status AddScope(const std::string& tensors, const std::string& name) {
    const size_t slash = name.rfind('/');
    const std::string scope = slash == std::string::npos ? std::string() : name.substr(0, slash);
    if (!tensors.ends_with('/')) {
      return InvalidArgument(
          "Assignment map with scope only name {} should map to scope only {}. Should be 'scope/': 'other_scope/'.",
          scope, tensors);
    }
    const std::string front = scope.empty() ? std::string() : scope + "/";
    bool any = false;
    const auto add = [&](const std::string& full_name, const Variable& variable) -> Status {
      if (!full_name.starts_with(front)) return Status();
      any = true;
      const std::string rest = full_name.substr(front.size());
      const std::string tensor = tensors == "/" ? rest : tensors + rest;
      if (!shapes_.contains(tensor)) {
        return InvalidArgument("Tensor {} ({} in {}) is not found in {} checkpoint", tensor, rest, tensors, path_);
      }
      return AddVariable(tensor, variable);
    };
    for (const auto& [full_name, variable] : store_.variables) {
      if (!variable.slice()) WEIR_TRY(add(full_name, variable));
    }
    for (const auto& [full_name, variable] : store_.partitioned) WEIR_TRY(add(full_name, variable));
    if (!any && !scope.empty()) return NotFound("no variable of GetVariable lies in the scope '{}'", scope);
    return Status();
  }

  const std::string path_;
  const CheckpointShapes shapes_;
  const VariableStore& store_;
  std::vector<InitialLoad> loads_;
};

/// Replaces one initializer.
void ReplaceFrom(const std::string& path, const InitialLoad& load, const Where& where) {
  Graph& graph = load.variable.Home();
  Output value;
  {
    const DeviceScope beside(load.variable.op().device(), graph);
    const DeviceScope host("/device:CPU:0", graph);
    const NameScope inner("checkpoint_initializer", graph);
    const auto strings = [&](const std::string& text, std::string_view name, bool scalar) {
      const Tensor tensor = scalar ? Tensor::String(text) : Tensor::Vector<std::string>({text});
      return Operand(Literal(tensor)).In(graph, DType::kString, name);
    };
    OperationSpec spec;
    spec.op = "RestoreV2";
    spec.inputs = {strings(path, "prefix", true), strings(load.tensor, "tensor_names", false),
                   strings(load.variable.slice() ? load.variable.slice()->spec() : "", "shape_and_slices", false)};
    spec.attrs = {{"dtypes", std::vector<DType>{load.variable.dtype()}}};
    const std::string at = inner.path();
    spec.name = at;
    spec.where = where;
    value = graph.Add(spec).output(0);
  }
  if (!value.exists()) return;
  Operation assign;
  if (load.variable.is_resource()) {
    const DeviceScope there(load.variable.op().device(), graph);
    const Output moved = BuildOp("Identity", {value}, {}, "Identity", where).output(0);
    assign = BuildOp("AssignVariableOp", {load.variable.handle(), moved}, {}, "AssignVariableOp", where);
  } else {
    assign = BuildOp("Assign", {load.variable.handle(), value}, {}, "Assign", where);
  }
  if (assign.exists()) ReplaceInitializer(load.variable, assign, value);
}

}  // namespace

Status InitFromCheckpoint(const std::string& path_or_dir, const AssignmentMap& assignments, Graph& graph, Where where) {
  WEIR_ASSIGN(const CheckpointReader reader, CheckpointReader::Open(path_or_dir));
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path_or_dir, error);
  const std::string path = folder ? LatestCheckpoint(path_or_dir) : path_or_dir;
  LoadFinder finder(path_or_dir, reader.VariableToShapeMap(), graph);
  AssignmentMap sorted = assignments;
  std::ranges::stable_sort(sorted, {}, &AssignmentMap::value_type::first);
  for (const auto& [tensor, target] : sorted) WEIR_TRY(finder.Add(tensor, target));
  const AsDefault in(graph);
  const NameScope root("", graph);
  const ControlDependencies none(std::nullopt, graph);
  for (const InitialLoad& load : std::move(finder).Take()) ReplaceFrom(path, load, where);
  return graph.status();
}

}  // namespace weir
