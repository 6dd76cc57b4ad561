// Variables by name: GetVariable, and the scopes that say where it looks and what it takes for granted.
#ifndef WEIR_CORE_CLIENT_VARIABLE_SCOPE_H_
#define WEIR_CORE_CLIENT_VARIABLE_SCOPE_H_

#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client/initializers.h"
#include "core/client/regularizers.h"
#include "core/client/variable.h"
#include "core/scope/partition.h"
#include "core/scope/variable_scopes.h"

namespace weir {

using scope::FixedSizePartitioner;
using scope::MinMaxVariablePartitioner;
using scope::Partitioner;
using scope::VariableAxisSizePartitioner;

/// What happens to a variable that is there already, and to one that is not: kNo makes new ones only, kYes takes old
/// ones only, kAuto (TensorFlow's AUTO_REUSE) does what fits.
enum class Reuse { kNo, kYes, kAuto };

struct VariableArgs;
/// Makes or finds the variable of that full name.
using VariableGetter = std::function<Variable(const std::string& name, const VariableArgs& args)>;
/// Stands between GetVariable and its work: may change name and arguments, and what `getter` returns.
/// Variable::FromValue lets it return a value. `getter` is the outer scope's getter, or the work itself.
using CustomGetter =
    std::function<Variable(const VariableGetter& getter, const std::string& name, const VariableArgs& args)>;

/// Arguments of GetVariable. What is empty comes from the variable scope.
struct VariableArgs {
  PartialShape shape = {};        // unknown rank = not given, as for an initializer that is a value
  DType dtype = DType::kInvalid;  // kInvalid = the scope's, else float
  Initializer initializer = {};
  Regularizer regularizer = {};
  bool trainable = true;
  std::vector<std::string> collections = {keys::kGlobalVariables};
  std::optional<Reuse> reuse = {};
  DeviceRequest caching_device = {};
  Partitioner partitioner = {};
  CustomGetter custom_getter = {};
  bool validate_shape = true;
  std::optional<bool> use_resource = {};
  VariableConstraint constraint = {};
  std::optional<SaveSlice> slice = {};  // when it is a part of a larger one
};

/// The variable `name` of the current variable scope ("scope/name"), made or found as `reuse` says; name scopes do not
/// count. Errors are the graph's, with TensorFlow's texts: AlreadyExists "Variable w already exists, disallowed. …",
/// NotFound "Variable w does not exist, …", InvalidArgument "Trying to share variable w, but specified shape …". With a
/// partitioner: a partitioned variable w whose parts are w/part_0, w/part_1, …
Variable GetVariable(std::string_view name, const VariableArgs& args = {},
                     std::source_location where = std::source_location::current());
/// The same with the arguments that are wanted most. An empty initializer: glorot uniform for floating types, zeros for
/// integers, bool and string.
template <std::convertible_to<PartialShape> T>
Variable GetVariable(std::string_view name, const T& shape, DType dtype = DType::kInvalid,
                     Initializer initializer = nullptr, bool trainable = true,
                     std::source_location where = std::source_location::current()) {
  VariableArgs args = {.shape = shape, .dtype = dtype, .initializer = std::move(initializer), .trainable = trainable};
  return GetVariable(name, args, where);
}
/// With the shape as a list: {3, 2}, or {} for a scalar. A template so that {.shape = {2}} means VariableArgs.
template <class = void>
Variable GetVariable(std::string_view name, std::initializer_list<int64_t> shape, DType dtype = DType::kInvalid,
                     Initializer initializer = nullptr, bool trainable = true,
                     std::source_location where = std::source_location::current()) {
  return GetVariable(name, Shape(shape), dtype, std::move(initializer), trainable, where);
}

/// What an open variable scope says: the prefix of names and defaults for GetVariable. A handle: copies mean the same
/// scope, and outlive its block, so that VariableScope can enter it again.
class VarScope {
 public:
  struct State {
    std::string name = {};  // "a/b"; "" at the root
    std::string original_name_scope = {};
    Reuse reuse = Reuse::kNo;
    DType dtype = DType::kFloat;
    Initializer initializer = {};
    Regularizer regularizer = {};
    DeviceRequest caching_device = {};
    Partitioner partitioner = {};
    CustomGetter custom_getter = {};
    std::optional<bool> use_resource = {};
    VariableConstraint constraint = {};
  };
  explicit VarScope(State state) : state_(std::make_shared<State>(std::move(state))) {}

  /// "a/b".
  const std::string& name() const { return state_->name; }
  /// The name scope that was opened with it first: "a_1/b/".
  const std::string& original_name_scope() const { return state_->original_name_scope; }
  Reuse reuse() const { return state_->reuse; }
  /// From here on variables are found, not made, until the scope ends.
  void ReuseVariables() { state_->reuse = Reuse::kYes; }
  const State& state() const { return *state_; }
  /// Defaults that can be changed while the scope is open.
  State& state() { return *state_; }

  /// Variables of the scope and below it.
  std::vector<Variable> GlobalVariables(Graph& graph = Graph::Default()) const;
  std::vector<Variable> LocalVariables(Graph& graph = Graph::Default()) const;
  std::vector<Variable> TrainableVariables(Graph& graph = Graph::Default()) const;

  bool Same(const VarScope& other) const { return state_ == other.state_; }

 private:
  std::shared_ptr<State> state_;
};

/// The innermost open variable scope, or the root.
VarScope GetVariableScope(Graph& graph = Graph::Default());

/// Whether a variable scope opens a name scope of its name, too.
enum class NameScopeToo { kYes, kNo };

/// What a variable scope says beside its name; what is empty comes from the outer scope.
struct VariableScopeOptions {
  std::optional<Reuse> reuse = {};  // kNo does not switch off what outer scopes say
  Initializer initializer = {};
  Regularizer regularizer = {};
  DeviceRequest caching_device = {};
  Partitioner partitioner = {};
  CustomGetter custom_getter = {};  // runs before the outer ones
  DType dtype = DType::kInvalid;
  std::optional<bool> use_resource = {};
  VariableConstraint constraint = {};
  NameScopeToo name_scope = NameScopeToo::kYes;
};

/// Variables that GetVariable makes while it lives are named below the scope; operations get a name scope of the same
/// name, unique. Scopes end in reverse order; one that does not gives the graph the error "Improper nesting of
/// variable_scope."
class VariableScope {
 public:
  /// Below the current variable scope.
  [[nodiscard]] explicit VariableScope(std::string_view name, VariableScopeOptions options = {},
                                       Graph& graph = Graph::Default());
  [[nodiscard]] explicit VariableScope(const char* name, VariableScopeOptions options = {},
                                       Graph& graph = Graph::Default())
      : VariableScope(std::string_view(name), std::move(options), graph) {}
  /// A scope that was open before, wherever it is entered: its name and its defaults. Operations get a new name scope
  /// below the current one.
  [[nodiscard]] explicit VariableScope(const VarScope& scope, VariableScopeOptions options = {},
                                       Graph& graph = Graph::Default());
  /// Of a default name, made unique: "layer", "layer_1", … InvalidArgument "reuse=True cannot be used without a
  /// name_or_scope" for what that contradicts.
  [[nodiscard]] VariableScope(std::nullopt_t, std::string_view default_name, VariableScopeOptions options = {},
                              Graph& graph = Graph::Default());
  ~VariableScope();
  VariableScope(const VariableScope&) = delete;
  VariableScope& operator=(const VariableScope&) = delete;

  const VarScope& scope() const { return *entered_; }
  const std::string& name() const { return entered_->name(); }
  const std::string& original_name_scope() const { return entered_->original_name_scope(); }
  void ReuseVariables() { entered_->ReuseVariables(); }

 private:
  void OpenNames(std::string_view name);
  void Enter(VarScope::State state);

  Graph& graph_;
  VariableScopeOptions options_;
  std::unique_ptr<NameScope> names_;
  std::unique_ptr<VarScope> outer_, entered_;
  std::optional<std::set<std::string, std::less<>>> opened_;  // put back after a jump
};

/// What a graph knows of variables by name.
struct VariableStore {
  std::map<std::string, Variable> variables;  // by full name, parts included
  std::map<std::string, Variable> partitioned;
  VarScope current{VarScope::State{}};
  scope::VariableScopes scopes;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLE_SCOPE_H_
