// Functions with bound attributes: graphs in which every value has a type.
#ifndef WEIR_CORE_GRAPH_FUNCTION_BODY_H_
#define WEIR_CORE_GRAPH_FUNCTION_BODY_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/graph/function.h"
#include "core/op/attr_value.h"

namespace weir::graph {

/// A function instantiated for one set of attributes. Nodes 0 to n - 1 of the graph are Placeholders for the n
/// arguments. Arguments and results are flattened.
struct FunctionBody {
  const Function* function = nullptr;
  Definition graph;
  op::Signature signature;                // types of arguments and results
  std::vector<Endpoint> results;          // in `graph`
  std::vector<NodeId> control_results;    // nodes that every call must run
  std::vector<bool> result_of_arguments;  // by result: depends on an argument

  size_t num_arguments() const { return signature.inputs.size(); }
};

/// Caches the bodies that the calls of one graph need. The graph is borrowed and may grow, including its functions.
/// Single-threaded.
class FunctionBodies {
 public:
  explicit FunctionBodies(const Definition& graph) : graph_(graph) {}

  /// The body of `function.name` instantiated with the attributes of `function`, which may include undeclared ones.
  /// Borrowed; valid as long as this object. Errors name the function and use TensorFlow's texts: NotFound for a
  /// function missing from the graph and for an unknown op; InvalidArgument for a missing or disallowed attribute,
  /// unresolved inputs, missing or mistyped results, and for all errors of graph import.
  Result<const FunctionBody*> Get(const op::FuncRef& function);

  /// Adds a function that the graph does not have; returns its name (FunctionLibrary::Define).
  Result<std::string> Define(const op::FunctionSpec& function);

 private:
  struct Made {
    op::AttrList attrs;
    std::unique_ptr<const FunctionBody> body;
  };
  /// Null if neither the graph nor Define has it.
  const Function* Find(std::string_view name) const;

  const Definition& graph_;
  FunctionLibrary defined_;
  std::map<const Function*, std::vector<Made>> made_;
};

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_FUNCTION_BODY_H_
