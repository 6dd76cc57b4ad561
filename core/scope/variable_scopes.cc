#include "core/scope/variable_scopes.h"

namespace weir::scope {

std::string JoinScopes(std::string_view parent, std::string_view name) {
  if (parent.empty()) return std::string(name);
  return std::string(parent) + "/" + std::string(name);
}

void VariableScopes::Open(std::string_view path) { opened_.emplace(path); }

void VariableScopes::CloseBelow(std::string_view path) {
  const std::string below = std::string(path) + "/";
  auto from = opened_.lower_bound(below);
  auto to = from;
  while (to != opened_.end() && to->starts_with(below)) ++to;
  opened_.erase(from, to);
}

std::string VariableScopes::Unique(std::string_view parent, std::string_view name) const {
  std::string free(name);
  for (int k = 1; opened_.contains(JoinScopes(parent, free)); ++k) free = std::string(name) + "_" + std::to_string(k);
  return free;
}

}  // namespace weir::scope
