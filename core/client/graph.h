// Building graphs: Graph, Operation, Output, and the graph that new operations go to by default.
#ifndef WEIR_CORE_CLIENT_GRAPH_H_
#define WEIR_CORE_CLIENT_GRAPH_H_

#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/op/attr_value.h"
#include "core/scope/names.h"

namespace weir {

class ControlFlow;
class ControlFlowContext;
class Graph;
class Operation;
class Variable;

/// A symbolic value: one output of an operation. Cheap to copy; refers to its graph, which outlives it. The default
/// Output does not exist: it stands where TensorFlow's Python has None, and where an error kept a value from being made
/// (Graph::status says which).
class Output {
 public:
  Output() = default;
  Output(Graph* graph, graph::Endpoint endpoint) : graph_(graph), endpoint_(endpoint) {}

  bool exists() const { return graph_ != nullptr && endpoint_.node >= 0; }
  Graph* graph() const { return graph_; }
  graph::Endpoint endpoint() const { return endpoint_; }
  Operation op() const;
  int index() const { return endpoint_.index; }
  /// "add:0"; empty when it does not exist.
  std::string name() const;
  DType dtype() const;
  PartialShape shape() const;
  /// Merges more knowledge into the static shape.
  void SetShape(const PartialShape& shape) const;
  /// `Tensor("add:0", shape=(), dtype=float32)`.
  std::string ToString() const;
  /// `<tf.Tensor 'add:0' shape=() dtype=float32>`.
  std::string DebugString() const;
  bool operator==(const Output&) const = default;

 private:
  Graph* graph_ = nullptr;
  graph::Endpoint endpoint_;
};

/// A node of a graph. Cheap to copy; refers to its graph.
class Operation {
 public:
  Operation() = default;
  Operation(Graph* graph, graph::NodeId id) : graph_(graph), id_(id) {}

  bool exists() const { return graph_ != nullptr && id_ >= 0; }
  Graph* graph() const { return graph_; }
  graph::NodeId id() const { return id_; }
  const graph::Node& node() const;
  std::string name() const;
  std::string type() const;
  std::string device() const;
  int num_outputs() const;
  Output output(int i) const { return {graph_, {id_, i}}; }
  std::vector<Output> outputs() const;
  std::vector<Output> inputs() const;
  std::vector<Operation> control_inputs() const;
  /// `<tf.Operation 'Const_8' type=Const>`.
  std::string ToString() const;
  bool operator==(const Operation&) const = default;

 private:
  Graph* graph_ = nullptr;
  graph::NodeId id_ = -1;
};

/// What an entry of a collection is while the program runs: a value, an operation, a variable, a cond or loop (owned by
/// the graph), or a text.
struct CollectionEntry {
  Output output;
  Operation operation;
  std::shared_ptr<Variable> variable;
  ControlFlowContext* context = nullptr;
  std::string text;
};

/// Everything that a new operation is made of.
struct OperationSpec {
  std::string_view op;
  std::vector<Output> inputs;  // flattened
  /// Attributes that do not follow from the inputs: type attributes and list lengths are deduced.
  op::AttrList attrs;
  std::string_view name;  // empty = the op's name
  std::source_location where = std::source_location::current();
  std::vector<Operation> control_inputs;
};

/// What ControlDependencies asks for, and the nodes that were made under it.
struct ControlScope {
  std::vector<Operation> inputs;
  std::unordered_set<graph::NodeId> made;
};

/// A graph under construction. Errors of building do not throw: the first one stays in status(), names the operation
/// with file and line of the model code, and every later run of a session on this graph returns it. Single-threaded.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// The innermost graph made default on this thread, else one for the whole program.
  static Graph& Default();
  /// Forgets the program-wide default graph. FailedPrecondition inside an AsDefault, with TensorFlow's text. Outputs of
  /// the old graph stay valid.
  static Status ResetDefault();

  /// The first error of building.
  const Status& status() const { return status_; }
  /// Keeps an error unless there is one already; returns it.
  Status Fail(Status status);
  /// Takes note of an error and clears it: for callers that handle it.
  Status TakeStatus();

  /// Adds an operation; one that does not exist when there is an error.
  Operation Add(const OperationSpec& spec);

  /// As TensorFlow's: NotFound `The name 'nope:0' refers to a Tensor which does not exist. …`.
  Result<Output> TensorByName(std::string_view name);
  Result<Operation> OperationByName(std::string_view name);
  /// A value for "add:0", an operation for "add".
  Result<std::variant<Output, Operation>> ElementByName(std::string_view name);
  std::vector<Operation> Operations();

  /// No operation can be added afterwards: FailedPrecondition "Graph is finalized and cannot be modified."
  void Finalize() { definition_.Finalize(); }
  bool finalized() const { return definition_.finalized(); }

  /// Feeding `tensor` is an error from now on.
  void PreventFeeding(const Output& tensor) { unfeedable_.insert(tensor.endpoint()); }
  bool IsFeedable(const Output& tensor) const { return !unfeedable_.contains(tensor.endpoint()); }
  /// False inside of conds and loops, where there may be no value, or many.
  bool IsFetchable(const Operation& operation) const;

  /// Adds a GraphDef (binary or text); names get `prefix` + "/".
  Status Import(std::string_view graph_def, std::string_view prefix = "import");

  void AddToCollection(const std::string& key, CollectionEntry entry);
  /// A copy; empty for an unknown key, which is not created.
  std::vector<CollectionEntry> GetCollection(const std::string& key) const;
  /// The list itself, created when it is not there.
  std::vector<CollectionEntry>& CollectionRef(const std::string& key) { return collections_[key]; }
  std::vector<std::string> CollectionKeys() const;

  const graph::Graph& definition() const { return definition_; }
  graph::Graph& definition() { return definition_; }
  scope::Names& names() { return names_; }
  /// Control inputs that new operations get, innermost last.
  std::vector<ControlScope>& control_stack() { return control_stack_; }
  /// Those that an operation with data inputs from `inputs` gets: none of a scope in which one of them was made, as it
  /// waited already.
  std::vector<graph::NodeId> ControlInputsFor(const std::vector<graph::NodeId>& inputs) const;
  /// Takes note of a node made under the open scopes.
  void NoteUnderControl(graph::NodeId node);
  /// Conds and loops.
  ControlFlow& control_flow() { return *control_flow_; }
  /// Device that new operations ask for.
  std::vector<std::string>& device_stack() { return device_stack_; }
  /// Seed of the graph that op seeds are combined with; -1 = none.
  int64_t random_seed = -1;
  /// Variables by name, for GetVariable.
  std::map<std::string, std::shared_ptr<Variable>>& variables() { return variables_; }

 private:
  graph::Graph definition_;
  scope::Names names_;
  Status status_;
  std::set<graph::Endpoint> unfeedable_;
  std::map<std::string, std::vector<CollectionEntry>> collections_;
  std::vector<ControlScope> control_stack_;
  std::vector<std::string> device_stack_;
  std::map<std::string, std::shared_ptr<Variable>> variables_;
  std::unique_ptr<ControlFlow> control_flow_;
};

/// Makes a graph the default one of this thread while it lives.
class AsDefault {
 public:
  explicit AsDefault(Graph& graph);
  ~AsDefault();
  AsDefault(const AsDefault&) = delete;
  AsDefault& operator=(const AsDefault&) = delete;
};

/// Names of operations made while it lives begin with the scope's path.
class NameScope {
 public:
  explicit NameScope(std::string_view name, Graph& graph = Graph::Default());
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  /// "scope1/scope2/".
  const std::string& path() const { return path_; }

 private:
  Graph& graph_;
  std::string path_;
};

/// Operations made while it lives run after `inputs`. An empty list asks for nothing.
class ControlDependencies {
 public:
  explicit ControlDependencies(std::vector<Operation> inputs, Graph& graph = Graph::Default());
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;
  ControlDependencies& operator=(const ControlDependencies&) = delete;

 private:
  Graph& graph_;
};

/// Operations made while it lives ask for `device`, merged with what outer ones ask for.
class DeviceScope {
 public:
  explicit DeviceScope(std::string_view device, Graph& graph = Graph::Default());
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Graph& graph_;
};

/// Standard collection keys.
namespace keys {
inline constexpr char kGlobalVariables[] = "variables";
inline constexpr char kLocalVariables[] = "local_variables";
inline constexpr char kTrainableVariables[] = "trainable_variables";
inline constexpr char kSummaries[] = "summaries";
inline constexpr char kUpdateOps[] = "update_ops";
inline constexpr char kLosses[] = "losses";
inline constexpr char kTrainOp[] = "train_op";
inline constexpr char kGlobalStep[] = "global_step";
inline constexpr char kSavers[] = "savers";
}  // namespace keys

/// `file:line` with the file's base name and folder, as it appears in errors.
std::string Format(const std::source_location& where);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_H_
