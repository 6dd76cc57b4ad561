// Names of operations: unique within a graph, below the current name scope.
#ifndef WEIR_CORE_SCOPE_NAMES_H_
#define WEIR_CORE_SCOPE_NAMES_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"

namespace weir::scope {

/// TensorFlow's naming rules for one graph: names are compared without case, a name in use (by an operation or a scope)
/// gets the first free "_k". Single-threaded.
class Names {
 public:
  /// A free name for `name` taken as a full path, and marks it used.
  std::string Unique(std::string_view name);
  /// Marks a name that came from elsewhere (an imported graph) as used; the scopes in it are not, and can be opened.
  void MarkUsed(std::string_view name);

  /// Opens the scope `name` below the current one; returns its path with a trailing slash. A name that ends in "/" is
  /// re-entered as it stands; the empty name is the root. InvalidArgument "'a b' is not a valid scope name".
  Result<std::string> Enter(std::string_view name);
  void Leave();
  /// Path of the current scope: "" or "a/b/".
  const std::string& current() const;
  /// The full path of an operation that asks for `name` here, unique. A name that ends in "/" is taken without the
  /// slash and as it stands. InvalidArgument "'a b' is not a valid scope name" for bad characters.
  Result<std::string> ForOperation(std::string_view name);

 private:
  std::unordered_map<std::string, int> used_;  // lower-case path -> next suffix to try
  std::vector<std::string> scopes_;            // open scopes, innermost last
};

}  // namespace weir::scope

#endif  // WEIR_CORE_SCOPE_NAMES_H_
