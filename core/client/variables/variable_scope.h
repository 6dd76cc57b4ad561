// Initial values of variables and penalties on their size; variables by name, and the scopes with their defaults.
#ifndef WEIR_CORE_CLIENT_VARIABLES_VARIABLE_SCOPE_H_
#define WEIR_CORE_CLIENT_VARIABLES_VARIABLE_SCOPE_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/client/graph/scopes.h"
#include "core/client/ops/operand.h"
#include "core/client/variables/variable.h"

namespace weir {

/// The whole that a part of a partitioned variable belongs to.
struct PartitionInfo {
  Shape full_shape = {};
  std::vector<int64_t> offset = {};  // of the part's first element
};

/// The initial value of a variable: a function that makes it for a type and shape in the current name scope
/// (`v/Initializer`), or a value with its own type and shape. Empty = the default of the scope and type.
class Initializer {
 public:
  using Function = std::function<Output(Graph&, DType, const Shape&, const PartitionInfo*)>;

  Initializer() = default;
  Initializer(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <class F>
  requires std::is_invocable_r_v<Output, F&, Graph&, DType, const Shape&> Initializer(F f) {  // NOLINT
    if constexpr (requires { f == nullptr; }) {  // std::function and pointers may be empty
      if (f == nullptr) return;
    }
    function_ = [f = std::move(f)](Graph& graph, DType dtype, const Shape& shape, const PartitionInfo*) {
      return f(graph, dtype, shape);
    };
  }
  /// With the whole variable if it makes a part, else null.
  template <class F>
  requires std::is_invocable_r_v<Output, F&, Graph&, DType, const Shape&, const PartitionInfo*> Initializer(F f)
      : function_(std::move(f)) {}  // NOLINT(google-explicit-constructor)
  /// With its own type and shape.
  template <class F>
  requires std::is_invocable_r_v<Output, F&> Initializer(F f)  // NOLINT(google-explicit-constructor)
      : self_contained_(std::move(f)) {}
  /// ZerosInitializer for ZerosInitializer().
  Initializer(Initializer (*factory)())
      : Initializer(factory == nullptr ? Initializer() : factory()) {}  // NOLINT(google-explicit-constructor)
  template <class T>
  requires std::constructible_from<Operand, T> &&
      (!std::same_as<std::decay_t<T>, Initializer>)Initializer(T&& value)  // NOLINT(google-explicit-constructor)
      : value_(Operand(std::forward<T>(value))) {}

  explicit operator bool() const { return function_ || self_contained_ || value_; }
  const std::optional<Operand>& value() const { return value_; }
  bool wants_shape() const { return static_cast<bool>(function_); }
  /// An Output that does not exist when it is empty or a value.
  Output operator()(Graph& graph, DType dtype, const Shape& shape, const PartitionInfo* part = nullptr) const;

 private:
  Function function_;
  std::function<Output()> self_contained_;
  std::optional<Operand> value_;
};

/// Constants of up to 1000 elements, else a Fill.
Initializer ZerosInitializer();
Initializer OnesInitializer();
/// The elements of `value` in order, then its last one. InvalidArgument "Too many elements provided. …" for more than
/// the variable has.
Initializer ConstantInitializer(Literal value, Where where = Where::current());
Initializer RandomUniformInitializer(double minval = -0.05, double maxval = 0.05, int64_t seed = -1);
Initializer RandomNormalInitializer(double mean = 0, double stddev = 0.05, int64_t seed = -1);
Initializer TruncatedNormalInitializer(double mean = 0, double stddev = 0.05, int64_t seed = -1);

/// Uniform in ±sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio 2010.
Initializer GlorotUniformInitializer(int64_t seed = -1);
/// TensorFlow's default: glorot uniform for floating types, zeros for integers, bool and string; empty for the rest.
Initializer DefaultInitializer(DType dtype);

/// Makes a scalar for the collection `regularization_losses`, in the name scope `w/Regularizer/` beside the variable; a
/// value that does not exist adds nothing.
using Regularizer = std::function<Output(const Operand& weights)>;

/// Returns the number of parts along each axis for a variable of that shape (rank at least 1) and type.
using Partitioner = std::function<std::vector<int64_t>(const Shape& shape, DType dtype)>;

/// kNo makes new variables only, kYes finds existing ones only, kAuto (TensorFlow's AUTO_REUSE) does either.
enum class Reuse { kNo, kYes, kAuto };

struct VariableArgs;
/// Makes or finds the variable of that full name.
using VariableGetter = std::function<Variable(const std::string& name, const VariableArgs& args)>;
/// Called in place of `getter` (the outer scope's getter or the real one): may change name, arguments and the result.
/// Variable::FromValue makes a value a result.
using CustomGetter =
    std::function<Variable(const VariableGetter& getter, const std::string& name, const VariableArgs& args)>;

/// Arguments of GetVariable. Empty members come from the variable scope.
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

/// Makes or finds the variable `name` of the current variable scope ("scope/name"), depending on `reuse`. With a
/// partitioner, the parts are w/part_0, w/part_1, … Errors of the graph: AlreadyExists "Variable w already exists,
/// disallowed. …", NotFound "Variable w does not exist, …", InvalidArgument "Trying to share variable w, but …".
Variable GetVariable(std::string_view name, const VariableArgs& args = {}, Where where = Where::current());
template <std::convertible_to<PartialShape> T>
Variable GetVariable(std::string_view name, const T& shape, DType dtype = DType::kInvalid,
                     Initializer initializer = nullptr, bool trainable = true, Where where = Where::current()) {
  VariableArgs args = {.shape = shape, .dtype = dtype, .initializer = std::move(initializer), .trainable = trainable};
  return GetVariable(name, args, where);
}
/// With the shape as a list: {3, 2}, or {} for a scalar. A template so that {.shape = {2}} means VariableArgs.
template <class = void>
Variable GetVariable(std::string_view name, std::initializer_list<int64_t> shape, DType dtype = DType::kInvalid,
                     Initializer initializer = nullptr, bool trainable = true, Where where = Where::current()) {
  return GetVariable(name, Shape(shape), dtype, std::move(initializer), trainable, where);
}

/// Prefix of names and defaults for GetVariable. A handle: copies refer to the same scope and may outlive its block, so
/// that VariableScope can enter it again.
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
  /// Until the scope ends, variables are only found, not made.
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

/// Empty members come from the outer scope.
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

/// GetVariable makes variables below this scope while it lives; operations get a unique name scope of the same name.
/// Scopes end in reverse order, else "Improper nesting of variable_scope."
class VariableScope : Scope {
 public:
  [[nodiscard]] explicit VariableScope(std::string_view name, VariableScopeOptions options = {},
                                       Graph& graph = Graph::Default());
  [[nodiscard]] explicit VariableScope(const char* name, VariableScopeOptions options = {},
                                       Graph& graph = Graph::Default())
      : VariableScope(std::string_view(name), std::move(options), graph) {}
  /// Enters `scope` again, with its name and defaults. Operations get a new name scope below the current one.
  [[nodiscard]] explicit VariableScope(const VarScope& scope, VariableScopeOptions options = {},
                                       Graph& graph = Graph::Default());
  /// With a unique default name: "layer", "layer_1", … InvalidArgument "reuse=True cannot be used without a
  /// name_or_scope".
  [[nodiscard]] VariableScope(std::nullopt_t, std::string_view default_name, VariableScopeOptions options = {},
                              Graph& graph = Graph::Default());
  ~VariableScope();

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

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_VARIABLE_SCOPE_H_
