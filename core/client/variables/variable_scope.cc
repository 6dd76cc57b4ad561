#include "core/client/variables/variable_scope.h"

#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/array_extra_ops.h"
#include "core/client/variables/variable_store_internal.h"

namespace weir {
namespace {

/// What a custom getter does before the one of the outer scope.
CustomGetter Chain(CustomGetter inner, CustomGetter outer) {
  if (!outer) return inner;
  return [inner = std::move(inner), outer = std::move(outer)](const VariableGetter& getter, const std::string& name,
                                                              const VariableArgs& args) {
    const VariableGetter next = [&](const std::string& passed, const VariableArgs& with) {
      return outer(getter, passed, with);
    };
    return inner(next, name, args);
  };
}

void Override(const VariableScopeOptions& options, VarScope::State& state) {
  if (options.initializer) state.initializer = options.initializer;
  if (options.regularizer) state.regularizer = options.regularizer;
  if (!options.caching_device.empty()) state.caching_device = options.caching_device;
  if (options.partitioner) state.partitioner = options.partitioner;
  if (options.custom_getter) state.custom_getter = Chain(options.custom_getter, state.custom_getter);
  if (options.dtype != DType::kInvalid) state.dtype = BaseType(options.dtype);
  if (options.use_resource) state.use_resource = options.use_resource;
  if (options.constraint) state.constraint = options.constraint;
  if (options.reuse && *options.reuse != Reuse::kNo) state.reuse = *options.reuse;
}

/// "b" of "a/b".
std::string_view LastPart(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

std::vector<Variable> Below(const VarScope& scope, const char* key, Graph& graph) {
  if (scope.name().empty()) return VariablesIn(key, {}, graph);
  const std::string prefix = scope.name() + "/";
  return VariablesIn(key, prefix, graph);
}

}  // namespace

VariableStore& GraphInternals::variable_store() {
  if (!variable_store_) variable_store_ = std::make_shared<VariableStore>();
  return *variable_store_;
}

VarScope GetVariableScope(Graph& graph) { return Internals(graph).variable_store().current; }

std::vector<Variable> VarScope::GlobalVariables(Graph& graph) const {
  return Below(*this, keys::kGlobalVariables, graph);
}
std::vector<Variable> VarScope::LocalVariables(Graph& graph) const {
  return Below(*this, keys::kLocalVariables, graph);
}
std::vector<Variable> VarScope::TrainableVariables(Graph& graph) const {
  return Below(*this, keys::kTrainableVariables, graph);
}

VariableScope::VariableScope(std::string_view name, VariableScopeOptions options, Graph& graph)
    : graph_(graph), options_(std::move(options)) {
  OpenNames(name);
  VarScope::State state = GetVariableScope(graph).state();
  state.name = scope::JoinScopes(state.name, name);
  const bool no_names = name.empty() && options_.name_scope == NameScopeToo::kYes;
  state.original_name_scope = no_names ? "" : Internals(graph).names.current();
  Enter(std::move(state));
}

VariableScope::VariableScope(const VarScope& scope, VariableScopeOptions options, Graph& graph)
    : graph_(graph), options_(std::move(options)) {
  OpenNames(LastPart(scope.name()));
  opened_ = Internals(graph).variable_store().scopes.Snapshot();
  Enter(scope.state());
}

VariableScope::VariableScope(std::nullopt_t, std::string_view default_name, VariableScopeOptions options, Graph& graph)
    : graph_(graph), options_(std::move(options)) {
  if (default_name.empty()) (void)graph.Fail(InvalidArgument("If default_name is None then name_or_scope is required"));
  if (options_.reuse.value_or(Reuse::kNo) != Reuse::kNo) {
    (void)graph.Fail(InvalidArgument("reuse=True cannot be used without a name_or_scope"));
  }
  OpenNames(default_name);
  VarScope::State state = GetVariableScope(graph).state();
  const std::string name = Internals(graph).variable_store().scopes.Unique(state.name, default_name);
  state.name = scope::JoinScopes(state.name, name);
  state.original_name_scope = Internals(graph).names.current();
  Enter(std::move(state));
}

/// The empty name opens none.
void VariableScope::OpenNames(std::string_view name) {
  if (options_.name_scope == NameScopeToo::kYes && !name.empty()) names_ = std::make_unique<NameScope>(name, graph_);
}

void VariableScope::Enter(VarScope::State state) {
  Override(options_, state);
  VariableStore& store = Internals(graph_).variable_store();
  store.scopes.Open(state.name);
  outer_ = std::make_unique<VarScope>(store.current);
  entered_ = std::make_unique<VarScope>(std::move(state));
  store.current = *entered_;
}

VariableScope::~VariableScope() {
  VariableStore& store = Internals(graph_).variable_store();
  if (!store.current.Same(*entered_)) {
    (void)graph_.Fail(FailedPrecondition("Improper nesting of variable_scope."));
    return;
  }
  if (opened_) {
    store.scopes.Restore(std::move(*opened_));
  } else {
    store.scopes.CloseBelow(entered_->name());
  }
  store.current = *outer_;
}

}  // namespace weir
