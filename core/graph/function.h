// Function libraries: named bodies that nodes of a graph call.
#ifndef WEIR_CORE_GRAPH_FUNCTION_H_
#define WEIR_CORE_GRAPH_FUNCTION_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"

namespace weir::tf {
class FunctionDefLibrary;
}

namespace weir::op {
struct FunctionSpec;
}

namespace weir::graph {

/// A function as defined in a library. Its body has no types before instantiation (function_body.h), because they may
/// depend on attributes of the call. Immutable.
struct Function {
  /// The function as an op record: arguments, results, attributes, statefulness. A node whose op is this record is a
  /// call.
  op::OpDef signature;
  /// Functions that the body may call: ops of its nodes and functions in their attributes, also if the library lacks
  /// them. Sorted, without duplicates.
  std::vector<std::string> callees;
  /// The serialized FunctionDef with sorted map entries. Export writes it unchanged, including fields that only
  /// TensorFlow reads.
  std::string definition;
};

/// Functions by name in insertion order, and their gradient functions. Functions are shared, so copies are cheap.
/// Thread-compatible.
class FunctionLibrary {
 public:
  /// Adds the contents of a serialized FunctionDefLibrary. Equal functions and gradients may be added repeatedly. On
  /// error the library is unchanged. InvalidArgument for malformed bytes, a function without a name or with untyped
  /// arguments, a function named like an op of `ops` or differing from the known function of that name, and for
  /// recursion, with the chain of calls.
  Status Merge(std::string_view bytes, const op::OpRegistry& ops);
  Status WriteTo(tf::FunctionDefLibrary& library) const;
  /// Adds a function for a gradient. Returns its name: that of `function`, with the first suffix "_k" that is unused or
  /// belongs to an equal function.
  Result<std::string> Define(const op::FunctionSpec& function, const op::OpRegistry& ops);

  bool empty() const { return functions_.empty() && gradients_.empty() && registered_gradients_.empty(); }
  size_t size() const { return functions_.size(); }
  const std::vector<std::shared_ptr<const Function>>& functions() const { return functions_; }
  /// Null if there is none.
  const Function* Find(std::string_view name) const;
  /// Name of the gradient function of `name`, or empty.
  std::string_view GradientOf(std::string_view name) const;

 private:
  Status Add(const tf::FunctionDefLibrary& added, const op::OpRegistry& ops);
  Status CheckRecursion() const;

  std::vector<std::shared_ptr<const Function>> functions_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> gradients_;             // function -> its gradient
  std::map<std::string, std::string, std::less<>> registered_gradients_;  // op type -> function
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_FUNCTION_H_
