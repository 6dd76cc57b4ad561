// Building graphs: Graph, Operation, Output, and the graph that new operations go to by default.
#ifndef WEIR_CORE_CLIENT_GRAPH_H_
#define WEIR_CORE_CLIENT_GRAPH_H_

#include <any>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/client/collections.h"
#include "core/client/list.h"
#include "core/graph/graph.h"
#include "core/graph/graph_def.h"
#include "core/op/attr_value.h"
#include "core/scope/names.h"

namespace weir {

class ControlFlow;
class ControlFlowContext;
class Graph;
class InContext;
class Index;
class Operation;
class Variable;
struct VariableStore;

/// A symbolic value: one output of an operation. Cheap to copy; refers to its graph, which outlives it. The default
/// Output does not exist: it stands where TensorFlow's Python has None, and where an error kept a value from being made
/// (Graph::status says which; graph() is the graph that has the error). Every function takes one that does not exist,
/// and answers it with an error or with a value that does not exist either.
class Output {
 public:
  Output() = default;
  Output(Graph* graph, graph::Endpoint endpoint) : graph_(graph), endpoint_(endpoint) {}

  /// What `graph` gives where an error kept it from making a value.
  static Output Absent(Graph& graph) { return {&graph, {}}; }

  bool exists() const;
  Graph* graph() const { return graph_; }
  graph::Endpoint endpoint() const { return endpoint_; }
  Operation op() const;
  int index() const { return endpoint_.index; }
  /// "add:0"; empty when it does not exist.
  std::string name() const;
  DType dtype() const;
  PartialShape shape() const;
  /// Elements, as Python's x[0], x[1:3] and x[0, ..., 1:3] (core/client/index.h): `x[0]`, `x[Span{1, 3}]`,
  /// `x[{0, kEllipsis, Span{1, 3}}]`. Nodes are named `strided_slice`, `strided_slice/stack`, …
  Output operator[](const Index& index) const;
  Output operator[](std::initializer_list<Index> indices) const;
  /// Merges more knowledge into the static shape.
  void SetShape(const PartialShape& shape) const;
  /// `Tensor("add:0", shape=(), dtype=float32)`.
  std::string ToString() const;
  /// `<tf.Tensor 'add:0' shape=() dtype=float32>`.
  std::string DebugString() const;
  /// Whether both are the same value of the graph, as in TensorFlow 1.x; Equal compares what they hold.
  bool operator==(const Output&) const = default;

 private:
  Graph* graph_ = nullptr;
  graph::Endpoint endpoint_;
};
/// As ToString.
std::ostream& operator<<(std::ostream& out, const Output& output);

/// A node of a graph. Cheap to copy; refers to its graph.
class Operation {
 public:
  Operation() = default;
  Operation(Graph* graph, graph::NodeId id) : graph_(graph), id_(id) {}

  static Operation Absent(Graph& graph) { return {&graph, -1}; }

  bool exists() const;
  Graph* graph() const { return graph_; }
  graph::NodeId id() const { return id_; }
  /// A node "None" of another graph when it does not exist.
  const graph::Node& node() const;
  std::string name() const;
  std::string type() const;
  std::string device() const;
  int num_outputs() const;
  /// OutOfRange, and a value that does not exist, for an index that the operation has not.
  Output output(int i, std::source_location where = std::source_location::current()) const;
  List<Output> outputs() const;
  List<Output> inputs() const;
  List<Operation> control_inputs() const;
  /// `<tf.Operation 'Const_8' type=Const>`.
  std::string ToString() const;
  bool operator==(const Operation&) const = default;

 private:
  Graph* graph_ = nullptr;
  graph::NodeId id_ = -1;
};
/// As ToString.
std::ostream& operator<<(std::ostream& out, const Operation& operation);

/// What an entry of a collection is while the program runs: a value, an operation, a variable, a cond or loop (owned by
/// the graph), a text, a number, a list that counts as one entry, or an object of the program's own. Files carry all
/// but the last two.
struct CollectionEntry {
  Output output;
  Operation operation;
  std::shared_ptr<Variable> variable;
  ControlFlowContext* context = nullptr;
  std::string text;
  std::variant<std::monostate, int64_t, double> number;
  std::shared_ptr<std::vector<CollectionEntry>> list;
  std::any object;

  CollectionEntry() = default;
  CollectionEntry(Output value) : output(value) {}                            // NOLINT(google-explicit-constructor)
  CollectionEntry(Operation value) : operation(value) {}                      // NOLINT(google-explicit-constructor)
  CollectionEntry(const Variable& value);                                     // NOLINT(google-explicit-constructor)
  CollectionEntry(std::string value) : text(std::move(value)) {}              // NOLINT(google-explicit-constructor)
  CollectionEntry(const char* value) : text(OrEmpty(value)) {}                // NOLINT(google-explicit-constructor)
  CollectionEntry(std::integral auto value) : number(int64_t{value}) {}       // NOLINT(google-explicit-constructor)
  CollectionEntry(std::floating_point auto value) : number(double{value}) {}  // NOLINT(google-explicit-constructor)
  CollectionEntry(std::vector<CollectionEntry> values);                       // NOLINT(google-explicit-constructor)
  static CollectionEntry Object(std::any object);

  /// "add:0", "add", "w:0"; empty for what has no name.
  std::string name() const;
};

/// Everything that a new operation is made of.
struct OperationSpec {
  std::string_view op = {};
  std::vector<Output> inputs = {};  // flattened
  /// Attributes that do not follow from the inputs: type attributes and list lengths are deduced.
  op::AttrList attrs = {};
  std::string_view name = {};  // empty = the op's name
  std::source_location where = std::source_location::current();
  std::vector<Operation> control_inputs = {};
};

/// What ControlDependencies asks for, and the nodes that were made under it.
struct ControlScope {
  std::vector<Operation> inputs;
  std::unordered_set<graph::NodeId> made;
};

/// Says what device an operation asks for, instead of what inner scopes asked for (`operation.device()`).
using DeviceFunction = std::function<std::string(const Operation& operation)>;

/// What one device scope asks for: a full or partial name, what a function says, or (std::nullopt) that outer scopes do
/// not count.
struct DeviceRequest {
  std::string name;
  DeviceFunction function;
  bool clears = false;

  DeviceRequest() = default;
  DeviceRequest(std::nullopt_t) : clears(true) {}                 // NOLINT(google-explicit-constructor)
  DeviceRequest(const char* device) : name(OrEmpty(device)) {}    // NOLINT(google-explicit-constructor)
  DeviceRequest(std::string device) : name(std::move(device)) {}  // NOLINT(google-explicit-constructor)
  DeviceRequest(std::string_view device) : name(device) {}        // NOLINT(google-explicit-constructor)
  template <class F>
  requires std::is_invocable_r_v<std::string, F&, const Operation&> DeviceRequest(F f)  // NOLINT
      : function(std::move(f)) {}

  bool empty() const { return name.empty() && !function && !clears; }
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

  /// Neither operations nor entries of collections can be added afterwards: FailedPrecondition "Graph is finalized and
  /// cannot be modified."
  void Finalize() { definition_.Finalize(); }
  bool finalized() const { return definition_.finalized(); }

  /// Feeding `tensor` is an error from now on.
  void PreventFeeding(const Output& tensor) { unfeedable_.insert(tensor.endpoint()); }
  bool IsFeedable(const Output& tensor) const { return !unfeedable_.contains(tensor.endpoint()); }
  /// False inside of conds and loops, where there may be no value, or many.
  bool IsFetchable(const Operation& operation) const;

  /// Adds a GraphDef (binary or text); names get `prefix`, which is a name scope, and those that are taken a "_k". Open
  /// device, colocation and control scopes count for its nodes.
  Status Import(std::string_view graph_def, std::string_view prefix = "import");
  /// The nodes as a GraphDef, binary or text, as TensorFlow's as_graph_def; the first error of building comes first.
  Result<std::string> Export(graph::GraphFormat format = graph::GraphFormat::kBinary) const;
  /// The path without last slash of a name scope for what is imported; InvalidArgument "… is not a valid scope name".
  Result<std::string> PrefixFor(std::string_view scope);
  /// What the scopes of this graph mean for nodes from `first` on, which came with a file, and their names.
  void AdoptImported(graph::NodeId first);

  void AddToCollection(const std::string& key, CollectionEntry entry,
                       std::source_location where = std::source_location::current());
  /// To each of the keys once, repeated ones too.
  void AddToCollections(const std::vector<std::string>& keys, const CollectionEntry& entry,
                        std::source_location where = std::source_location::current());
  /// A copy; empty for an unknown key, which is not created. A bad scope is an error of the graph.
  std::vector<CollectionEntry> GetCollection(const std::string& key, CollectionScope scope = {});
  /// The list itself, created when it is not there.
  std::vector<CollectionEntry>& CollectionRef(const std::string& key) { return collections_.Ref(key); }
  void ClearCollection(const std::string& key, std::source_location where = std::source_location::current());
  /// In the order in which they were made.
  const std::vector<std::string>& CollectionKeys() const { return collections_.keys(); }

  const graph::Graph& definition() const { return definition_; }
  graph::Graph& definition() { return definition_; }
  scope::Names& names() { return names_; }
  /// Path of the current name scope without the last slash; "" at the root.
  std::string name_scope() const;
  /// Control inputs that new operations get, innermost last.
  std::vector<ControlScope>& control_stack() { return control_stack_; }
  /// Those that an operation with data inputs from `inputs` gets: none of a scope in which one of them was made, as it
  /// waited already.
  std::vector<graph::NodeId> ControlInputsFor(const std::vector<graph::NodeId>& inputs) const;
  /// Takes note of a node made under the open scopes.
  void NoteUnderControl(graph::NodeId node);
  /// Conds and loops.
  ControlFlow& control_flow() { return *control_flow_; }
  /// Devices that new operations ask for, innermost last.
  std::vector<DeviceRequest>& device_stack() { return device_stack_; }
  /// What the device scopes say for an operation that asks for `own` itself.
  std::string DeviceFor(const Operation& operation, std::string own = {});
  /// What the names of the device scopes come to, functions aside.
  std::string DeviceHere() const;
  /// Operations whose place new ones share, innermost last.
  std::vector<Operation>& colocation_stack() { return colocation_stack_; }
  /// Attributes that new operations get unless they have them; no value = none of what outer scopes give.
  std::vector<std::pair<std::string, std::optional<op::AttrValue>>>& attr_stack() { return attr_stack_; }
  /// Where new operations come from, instead of where their specs say.
  std::optional<std::source_location>& origin() { return origin_; }
  /// Resource containers of new stateful operations, innermost last.
  std::vector<std::string>& container_stack() { return container_stack_; }
  /// Seed of the graph that op seeds are combined with; -1 = none.
  int64_t random_seed = -1;
  /// Variables by name and the current variable scope, for GetVariable.
  VariableStore& variable_store();

 private:
  bool CanModify(const std::source_location& where);
  /// The groups of `beside`, sorted, in the place of any other `_class`.
  static void JoinGroups(const std::vector<Operation>& beside, op::AttrList& attrs);
  void ApplyAttrScopes(const op::OpDef& def, op::AttrList& attrs) const;
  void Place(const Operation& operation, const std::vector<Operation>& beside, bool by_reference);

  graph::Graph definition_;
  scope::Names names_;
  Status status_;
  std::set<graph::Endpoint> unfeedable_;
  Collections<CollectionEntry> collections_;
  std::vector<ControlScope> control_stack_;
  std::vector<DeviceRequest> device_stack_;
  std::vector<Operation> colocation_stack_;
  std::vector<std::pair<std::string, std::optional<op::AttrValue>>> attr_stack_;
  std::optional<std::source_location> origin_;
  std::vector<std::string> container_stack_;
  std::shared_ptr<VariableStore> variable_store_;  // made when it is asked for
  std::unique_ptr<ControlFlow> control_flow_;
};

inline bool Output::exists() const { return graph_ != nullptr && graph_->definition().Has(endpoint_); }
inline bool Operation::exists() const { return graph_ != nullptr && graph_->definition().Has(id_); }

/// Whether what is made default on a thread must end in reverse order.
enum class Nesting { kEnforced, kFree };

/// Makes a graph the default one of this thread while it lives. Those of one thread end in reverse order: one that ends
/// earlier gives the graph the error "Nesting violated for default stack of Graph objects".
class AsDefault {
 public:
  [[nodiscard]] explicit AsDefault(Graph& graph, Nesting nesting = Nesting::kEnforced);
  ~AsDefault();
  AsDefault(const AsDefault&) = delete;
  AsDefault& operator=(const AsDefault&) = delete;

 private:
  Graph& graph_;
  const Nesting nesting_;
};

/// Names of operations made while it lives begin with the scope's path.
class NameScope {
 public:
  [[nodiscard]] explicit NameScope(std::string_view name, Graph& graph = Graph::Default());
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  /// "scope1/scope2/".
  const std::string& path() const { return path_; }
  /// False for what is no name, which is an error of the graph; the scope around goes on then.
  bool opened() const { return opened_; }

 private:
  Graph& graph_;
  bool opened_ = true;
  std::string path_;
};

/// What an operation waits for: an operation, the one that makes a value, or a variable's (`^v`).
class Dependency {
 public:
  Dependency(Operation operation) : operation_(operation) {}  // NOLINT(google-explicit-constructor)
  Dependency(Output value) : operation_(value.op()) {}        // NOLINT(google-explicit-constructor)
  Dependency(const Variable& variable);                       // NOLINT(google-explicit-constructor)
  const Operation& operation() const { return operation_; }

 private:
  Operation operation_;
};

/// Operations made while it lives run after `inputs`, but for those that use what was made under it and so wait
/// already. An empty list asks for nothing; std::nullopt puts the outer ones aside.
class ControlDependencies {
 public:
  [[nodiscard]] explicit ControlDependencies(std::vector<Dependency> inputs, Graph& graph = Graph::Default());
  [[nodiscard]] explicit ControlDependencies(std::nullopt_t, Graph& graph = Graph::Default());
  template <std::ranges::input_range R>
  requires std::convertible_to<std::ranges::range_reference_t<R>, Dependency>
  [[nodiscard]] explicit ControlDependencies(const R& inputs, Graph& graph = Graph::Default())
      : ControlDependencies(std::vector<Dependency>(std::ranges::begin(inputs), std::ranges::end(inputs)), graph) {}
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;
  ControlDependencies& operator=(const ControlDependencies&) = delete;

 private:
  Graph& graph_;
  std::optional<std::vector<ControlScope>> outer_;  // put aside
  std::unique_ptr<InContext> outside_;
};

/// Operations made while it lives ask for `device`, completed by what outer scopes ask for. Functions are called
/// innermost first.
class DeviceScope {
 public:
  [[nodiscard]] explicit DeviceScope(DeviceRequest device, Graph& graph = Graph::Default());
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Graph& graph_;
};

/// The extents of a static shape, -1 for those that are unknown. InvalidArgument without a rank: "as_list() is not
/// defined on an unknown TensorShape."
Result<std::vector<int64_t>> AsList(const PartialShape& shape);

/// `file:line` with the file's base name and folder, as it appears in errors.
std::string Format(const std::source_location& where);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_H_
