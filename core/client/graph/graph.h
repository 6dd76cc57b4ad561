// Building graphs: Graph, Operation, Output, the default graph, and the collections of a graph.
#ifndef WEIR_CORE_CLIENT_GRAPH_GRAPH_H_
#define WEIR_CORE_CLIENT_GRAPH_GRAPH_H_

#include <any>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <ranges>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/graph/endpoint.h"
#include "core/op/attr_value.h"

namespace weir {

/// Place in the model's source, for errors.
using Where = std::source_location;

/// A vector whose elements beyond the end read as `none` (for Outputs a value that does not exist); writes there have
/// no effect. `Split(x, 2)[1]` is safe after an error, too.
template <class T>
class List : public std::vector<T> {
 public:
  List() = default;
  List(std::initializer_list<T> elements) : std::vector<T>(elements) {}
  List(std::vector<T> elements, T none = T())  // NOLINT(google-explicit-constructor)
      : std::vector<T>(std::move(elements)), none_(std::move(none)) {}
  template <class Iterator>
  requires requires(Iterator i) {
    *i;
    ++i;
  }
  List(Iterator first, Iterator last) : std::vector<T>(first, last) {}
  /// `count` elements that stand for none.
  static List Absent(size_t count, T none) { return List(std::vector<T>(count, none), none); }

  const T& operator[](size_t i) const { return i < this->size() ? this->data()[i] : none_; }
  T& operator[](size_t i) {
    if (i < this->size()) return this->data()[i];
    written_ = none_;
    return written_;
  }
  const T& at(size_t i) const { return (*this)[i]; }
  const T& front() const { return (*this)[0]; }
  const T& back() const { return (*this)[this->size() - 1]; }

 private:
  T none_ = T();
  T written_ = T();
};

/// The text, "" for a null pointer.
inline std::string OrEmpty(const char* text) { return text == nullptr ? std::string() : std::string(text); }

/// Standard collection keys.
namespace keys {
inline constexpr char kGlobalVariables[] = "variables", kLocalVariables[] = "local_variables",
                      kMetricVariables[] = "metric_variables", kModelVariables[] = "model_variables",
                      kTrainableVariables[] = "trainable_variables",
                      kMovingAverageVariables[] = "moving_average_variables",
                      kConcatenatedVariables[] = "concatenated_variables",
                      kTrainableResourceVariables[] = "trainable_resource_variables", kSummaries[] = "summaries",
                      kSummaryOp[] = "summary_op", kQueueRunners[] = "queue_runners",
                      kTableInitializers[] = "table_initializer", kAssetFilepaths[] = "asset_filepaths",
                      kRegularizationLosses[] = "regularization_losses", kLosses[] = "losses",
                      kUpdateOps[] = "update_ops", kSaveableObjects[] = "saveable_objects", kSavers[] = "savers",
                      kWeights[] = "weights", kBiases[] = "biases", kActivations[] = "activations",
                      kResources[] = "resources", kLocalResources[] = "local_resources", kInitOp[] = "init_op",
                      kLocalInitOp[] = "local_init_op", kReadyOp[] = "ready_op",
                      kReadyForLocalInitOp[] = "ready_for_local_init_op", kTrainOp[] = "train_op",
                      kGlobalStep[] = "global_step", kEvalStep[] = "eval_step", kCondContext[] = "cond_context",
                      kWhileContext[] = "while_context";
}  // namespace keys

/// A regular expression for the start of the names of entries. None selects all; "" only those with a name.
using CollectionScope = std::optional<std::string_view>;

class ControlFlowContext;
class Graph;
class Index;
class Operation;
class Variable;
struct ControlScope;
struct GraphInternals;
struct OperationSpec;

/// A symbolic value: one output of an operation. Cheap to copy; its graph must outlive it. The default Output does not
/// exist, as None in Python. A value whose building failed does not exist either: values built from it do not exist,
/// and a run that fetches one returns the error. All functions accept values that do not exist.
class Output {
 public:
  Output() = default;
  Output(Graph* graph, graph::Endpoint endpoint) : graph_(graph), endpoint_(endpoint) {}

  /// The value that the latest error of building prevented.
  static Output Absent(Graph& graph);

  bool exists() const;
  Graph* graph() const { return graph_; }
  graph::Endpoint endpoint() const { return endpoint_; }
  Operation op() const;
  int index() const { return endpoint_.index; }
  /// "add:0"; empty when it does not exist.
  std::string name() const;
  DType dtype() const;
  PartialShape shape() const;
  /// Python's x[0], x[1:3], x[0, ..., 1:3]: `x[0]`, `x[Span{1, 3}]`, `x[{0, kEllipsis, Span{1, 3}}]`. Nodes are named
  /// `strided_slice`, `strided_slice/stack`, …
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
std::ostream& operator<<(std::ostream& out, const Output& output);

/// A node of a graph. Cheap to copy; refers to its graph.
class Operation {
 public:
  Operation() = default;
  Operation(Graph* graph, graph::NodeId id) : graph_(graph), id_(id) {}

  /// The operation that the latest error of building prevented.
  static Operation Absent(Graph& graph);

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
  Output output(int i, Where where = Where::current()) const;
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
std::ostream& operator<<(std::ostream& out, const Operation& operation);

/// An entry of a collection: a value, an operation, a variable, a cond or loop (owned by the graph), a text, a number,
/// a list that counts as one entry, or any object. Files hold all but the last two.
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

/// A graph under construction. An error of building names the operation with file and line of the model, and fails the
/// runs that need it; an error that belongs to no value (scope, collection, shape) fails every later run.
/// Single-threaded.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// The innermost graph made default on this thread, else one for the whole program.
  static Graph& Default();
  /// Replaces the program-wide default graph; Outputs of the old one stay valid. FailedPrecondition inside an
  /// AsDefault.
  static Status ResetDefault();

  /// The first error of building.
  const Status& status() const;
  /// Keeps an error; returns it.
  Status Fail(Status status);
  /// Returns the first error and clears all. Values that do not exist keep theirs.
  Status TakeStatus();

  /// Adds an operation (core/client/ops/build_op.h), which does not exist after an error.
  Operation Add(const OperationSpec& spec);

  /// As TensorFlow's: NotFound `The name 'nope:0' refers to a Tensor which does not exist. …`.
  Result<Output> TensorByName(std::string_view name);
  Result<Operation> OperationByName(std::string_view name);
  /// A value for "add:0", an operation for "add".
  Result<std::variant<Output, Operation>> ElementByName(std::string_view name);
  std::vector<Operation> Operations();

  /// Later additions fail with FailedPrecondition "Graph is finalized and cannot be modified."
  void Finalize();
  bool finalized() const;

  /// Feeding `tensor` is an error from now on.
  void PreventFeeding(const Output& tensor);
  bool IsFeedable(const Output& tensor) const;
  /// False inside conds and loops.
  bool IsFetchable(const Operation& operation) const;

  /// Adds a GraphDef (binary or text) in the name scope `prefix` and the open device, colocation and control scopes.
  Status Import(std::string_view graph_def, std::string_view prefix = "import");
  /// The nodes as a GraphDef, as TensorFlow's as_graph_def; fails with the first error of building, if any.
  Result<std::string> Export(graph::GraphFormat format = graph::GraphFormat::kBinary, bool add_shapes = false) const;

  void AddToCollection(const std::string& key, CollectionEntry entry, Where where = Where::current());
  /// Once for each distinct key.
  void AddToCollections(const std::vector<std::string>& keys, const CollectionEntry& entry,
                        Where where = Where::current());
  /// A copy; empty for an unknown key. A bad scope is an error of the graph.
  std::vector<CollectionEntry> GetCollection(const std::string& key, CollectionScope scope = {});
  /// The list itself, created if missing.
  std::vector<CollectionEntry>& CollectionRef(const std::string& key);
  void ClearCollection(const std::string& key, Where where = Where::current());
  const std::vector<std::string>& CollectionKeys() const;

  /// Path of the current name scope without the last slash; "" at the root.
  std::string name_scope() const;
  /// Seed of the graph that op seeds are combined with; -1 = none.
  int64_t random_seed = -1;

 private:
  friend GraphInternals& Internals(Graph& graph);
  friend const GraphInternals& Internals(const Graph& graph);
  bool CanModify(const Where& where);

  const std::unique_ptr<GraphInternals> internals_;
};

/// Extents, -1 if unknown. InvalidArgument without a rank: "as_list() is not defined on an unknown TensorShape."
Result<std::vector<int64_t>> AsList(const PartialShape& shape);

/// `file:line` with the file's base name and folder, as it appears in errors.
std::string Format(const Where& where);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GRAPH_GRAPH_H_
