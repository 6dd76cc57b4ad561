// Names of variable scopes: the scopes opened so far, and the next free name.
#ifndef WEIR_CORE_SCOPE_VARIABLE_SCOPES_H_
#define WEIR_CORE_SCOPE_VARIABLE_SCOPES_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace weir::scope {

/// "parent/name"; "name" at the root.
std::string JoinScopes(std::string_view parent, std::string_view name);

/// The variable scopes opened so far, for default names. Closing a scope keeps its own entry and removes those below
/// it, so reopening it gives its inner scopes the same names again. Single-threaded.
class VariableScopes {
 public:
  void Open(std::string_view path);
  void CloseBelow(std::string_view path);
  /// `name`, or the first of name_1, name_2, … that was not opened in `parent`.
  std::string Unique(std::string_view parent, std::string_view name) const;

  /// The opened scopes, for a later Restore: a jump to another scope leaves no trace.
  std::set<std::string, std::less<>> Snapshot() const { return opened_; }
  void Restore(std::set<std::string, std::less<>> snapshot) { opened_ = std::move(snapshot); }

 private:
  std::set<std::string, std::less<>> opened_;
};

}  // namespace weir::scope

#endif  // WEIR_CORE_SCOPE_VARIABLE_SCOPES_H_
