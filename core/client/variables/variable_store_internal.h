// What GetVariable keeps for a graph.
#ifndef WEIR_CORE_CLIENT_VARIABLES_VARIABLE_STORE_INTERNAL_H_
#define WEIR_CORE_CLIENT_VARIABLES_VARIABLE_STORE_INTERNAL_H_

#include <map>
#include <string>

#include "core/client/variables/variable_scope.h"
#include "core/scope/variable_scopes.h"

namespace weir {

/// What a graph knows of variables by name.
struct VariableStore {
  std::map<std::string, Variable> variables;  // by full name, parts included
  std::map<std::string, Variable> partitioned;
  VarScope current{VarScope::State{}};
  scope::VariableScopes scopes;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_VARIABLE_STORE_INTERNAL_H_
