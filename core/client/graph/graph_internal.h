// The state of a Graph, for the sources of the client and for tools that look inside. Public headers do not include it.
#ifndef WEIR_CORE_CLIENT_GRAPH_GRAPH_INTERNAL_H_
#define WEIR_CORE_CLIENT_GRAPH_GRAPH_INTERNAL_H_

#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/client/control_flow/control_flow_context.h"
#include "core/client/graph/collections_internal.h"
#include "core/client/graph/graph.h"
#include "core/client/graph/scopes.h"
#include "core/graph/definition.h"
#include "core/scope/names.h"

namespace weir {

struct VariableStore;

/// What ControlDependencies asks for, and the nodes that were made under it.
struct ControlScope {
  std::vector<Operation> inputs;
  graph::NodeId failed = -1;  // the id of an input that does not exist; what is made here does not exist either
  std::unordered_set<graph::NodeId> made;
};

/// An error of building.
struct BuildError {
  Status status;
  bool has_value = false;  // values that do not exist stand for it
};

/// What a Graph is made of. Single-threaded.
struct GraphInternals {
  explicit GraphInternals(Graph& graph);

  /// The id of what the latest error kept from being made: -1 when there was none, else below that.
  graph::NodeId LatestError();
  /// The error behind the id of something that does not exist; ok when there is none.
  const Status& ErrorOf(graph::NodeId id) const;
  /// The error that kept a node of that name from being made; ok when there is none.
  const Status& ErrorOf(std::string_view node) const;
  /// Keeps an error that the caller is told, too: it spoils no run. Returns it.
  Status Tell(Status error);
  /// The first error that stands behind no value and was not taken.
  const Status& ErrorOfAll() const;

  /// Control inputs that an operation with data inputs from `inputs` gets: none of a scope in which one of them was
  /// made, as it waited already.
  std::vector<graph::NodeId> ControlInputsFor(const std::vector<graph::NodeId>& inputs) const;
  /// Takes note of a node made under the open scopes.
  void NoteUnderControl(graph::NodeId node);
  /// What the device scopes say for an operation that asks for `own` itself.
  std::string DeviceFor(const Operation& operation, std::string own = {});
  /// What the names of the device scopes come to, functions aside.
  std::string DeviceHere() const;
  /// Gives an operation its device, beside the innermost of `beside` that has one.
  void Place(const Operation& operation, const std::vector<Operation>& beside, bool by_reference);
  /// Attributes of the attribute and container scopes.
  void ApplyAttrScopes(const op::OpDef& def, op::AttrList& attrs) const;
  /// The path without last slash of a name scope for what is imported; InvalidArgument "… is not a valid scope name".
  Result<std::string> PrefixFor(std::string_view scope);
  /// What the scopes of this graph mean for nodes from `first` on, which came with a file, and their names.
  void AdoptImported(graph::NodeId first);
  /// Variables by name and the current variable scope, for GetVariable.
  VariableStore& variable_store();

  Graph& owner;
  graph::Definition definition;
  scope::Names names;
  Status status;                   // the first error that was not taken
  std::vector<BuildError> errors;  // every one, in order
  size_t taken = 0;                // of the errors, how many TakeStatus has cleared
  std::set<graph::Endpoint> unfeedable;
  Collections<CollectionEntry> collections;
  std::vector<ControlScope> control_stack;  // innermost last, as in all stacks
  std::vector<DeviceRequest> device_stack;
  std::vector<Operation> colocation_stack;
  /// Attributes that new operations get unless they have them; no value = none of what outer scopes give.
  std::vector<std::pair<std::string, std::optional<op::AttrValue>>> attr_stack;
  /// Where new operations come from, instead of where their specs say.
  std::optional<std::source_location> origin;
  std::vector<std::string> container_stack;  // resource containers of new stateful operations
  ControlFlow control_flow;

 private:
  std::shared_ptr<VariableStore> variable_store_;  // made when it is asked for
};

/// The errors of one builder: while it lives, Graph::status() is the first error since it began.
class ErrorsSince {
 public:
  [[nodiscard]] explicit ErrorsSince(Graph& graph);
  ~ErrorsSince();
  ErrorsSince(const ErrorsSince&) = delete;
  ErrorsSince& operator=(const ErrorsSince&) = delete;

 private:
  Status& status_;
  Status before_;
};

/// Whether an error kept it from being made, which then spoils what is built from it, too.
inline bool IsSpoiled(const Output& value) { return value.graph() != nullptr && value.endpoint().node < -1; }
inline bool IsSpoiled(const Operation& operation) { return operation.graph() != nullptr && operation.id() < -1; }

inline GraphInternals& Internals(Graph& graph) { return *graph.internals_; }
inline const GraphInternals& Internals(const Graph& graph) { return *graph.internals_; }

/// The colocation groups of `beside`, sorted, in the place of any other `_class`; unchanged without `beside`.
void JoinGroups(const std::vector<Operation>& beside, op::AttrList& attrs);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_GRAPH_INTERNAL_H_
