// Names of operations: unique within a graph and relative to the current name scope.
#ifndef WEIR_CORE_SCOPE_NAMES_H_
#define WEIR_CORE_SCOPE_NAMES_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"

namespace weir::scope {

/// TensorFlow's naming rules for one graph: names are compared case-insensitively, and a name already used by an
/// operation or scope gets the first free suffix "_k". Single-threaded.
class Names {
 public:
  /// Returns a free variant of the full path `name` and marks it used.
  std::string Unique(std::string_view name);
  /// Marks an external name (from an imported graph) as used; its scopes are not marked and can still be opened.
  void MarkUsed(std::string_view name);

  /// Opens the scope `name` within the current one; returns its path with a trailing slash. A name that ends in "/" is
  /// an absolute path to re-enter; the empty name is the root. InvalidArgument "'a b' is not a valid scope name".
  Result<std::string> Enter(std::string_view name);
  void Leave();
  /// Path of the current scope: "" or "a/b/".
  const std::string& current() const;
  /// The unique full path of an operation `name` in the current scope. A name that ends in "/" is an absolute path,
  /// used without the slash and not made unique. InvalidArgument "'a b' is not a valid scope name" for bad characters.
  Result<std::string> ForOperation(std::string_view name);

 private:
  std::unordered_map<std::string, int> used_;  // lower-case path -> next suffix to try
  std::vector<std::string> scopes_;            // open scopes, innermost last
};

}  // namespace weir::scope

#endif  // WEIR_CORE_SCOPE_NAMES_H_
