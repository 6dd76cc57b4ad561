// Names of variable scopes: which were opened, and the next free one.
#ifndef WEIR_CORE_SCOPE_VARIABLE_SCOPES_H_
#define WEIR_CORE_SCOPE_VARIABLE_SCOPES_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace weir::scope {

/// "parent/name", "name" at the root.
std::string JoinScopes(std::string_view parent, std::string_view name);

/// The variable scopes that were opened below the current ones, for default names. A scope's own entry outlives it,
/// those below it go with it: a scope that is opened again names its inner scopes as the first time. Single-threaded.
class VariableScopes {
 public:
  void Open(std::string_view path);
  void CloseBelow(std::string_view path);
  /// `name`, or the first of name_1, name_2, … that was not opened below `parent`.
  std::string Unique(std::string_view parent, std::string_view name) const;

  /// What is open, to be given back: a jump to another scope leaves no trace.
  std::set<std::string, std::less<>> Snapshot() const { return opened_; }
  void Restore(std::set<std::string, std::less<>> snapshot) { opened_ = std::move(snapshot); }

 private:
  std::set<std::string, std::less<>> opened_;
};

}  // namespace weir::scope

#endif  // WEIR_CORE_SCOPE_VARIABLE_SCOPES_H_
