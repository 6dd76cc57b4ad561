// The dataflow graph: nodes, their edges, and the collections beside them.
#ifndef WEIR_CORE_GRAPH_GRAPH_H_
#define WEIR_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/graph/name_index.h"
#include "core/graph/signature_table.h"
#include "core/op/attrs.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"
#include "core/op/shape_context.h"
#include "core/tensor/shape.h"

namespace weir::graph {

using NodeId = int32_t;

/// Output `index` of node `node`.
struct Endpoint {
  NodeId node = -1;
  int32_t index = 0;
  bool operator==(const Endpoint&) const = default;
  auto operator<=>(const Endpoint&) const = default;
};

/// What a new node is made of.
struct NodeSpec {
  std::string name;
  const op::OpDef* op = nullptr;       // of the graph's registry, or made by Graph::AddForeignOp
  std::vector<Endpoint> inputs;        // a Merge may leave one open: Endpoint{}, given later by SetInput
  std::vector<NodeId> control_inputs;  // repeated ones are merged
  std::string device;                  // requested, in any spelling; empty = unconstrained
  op::AttrList attrs;
  std::string origin;  // file:line of the model code, or empty
};

/// A node. Owned by its graph; stable address. Changed only through the graph.
class Node {
 public:
  NodeId id() const { return id_; }
  const std::string& name() const { return name_; }
  const op::OpDef& op() const { return *op_; }
  const std::string& device() const { return device_; }
  const std::string& origin() const { return origin_; }
  op::AttrView attrs() const { return op::AttrView(*op_, attrs_); }

  std::span<const Endpoint> inputs() const { return inputs_; }
  std::span<const NodeId> control_inputs() const { return control_inputs_; }
  /// Types of the outputs (references as reference types).
  std::span<const DType> output_types() const { return signature_->outputs; }
  int num_outputs() const { return static_cast<int>(signature_->outputs.size()); }
  /// Types that the op takes and gives with the node's attributes; shared by like nodes.
  const op::Signature& signature() const { return *signature_; }
  /// What shape inference knows, one per output.
  std::span<const PartialShape> output_shapes() const { return output_shapes_; }

  /// A node of no graph that stands for `original` with another op: id, name, device and origin are those of the
  /// original; edges and shapes it has none. `op` outlives it. InvalidArgument when the attributes do not fit the op.
  static Result<std::shared_ptr<const Node>> InPlaceOf(const Node& original, const op::OpDef& op, op::AttrList attrs);

 private:
  friend class Graph;
  NodeId id_ = -1;
  std::string name_;
  const op::OpDef* op_ = nullptr;
  std::string device_;
  std::string origin_;
  op::AttrList attrs_;
  std::vector<Endpoint> inputs_;
  std::vector<NodeId> control_inputs_;
  const op::Signature* signature_ = nullptr;
  std::vector<PartialShape> output_shapes_;
};

/// An entry of a collection that files can carry.
struct CollectionItem {
  enum class Kind { kNode, kBytes, kInt, kFloat, kAny };
  Kind kind = Kind::kNode;
  std::string text;  // node or tensor name, serialized bytes, or a serialized google.protobuf.Any
  int64_t number = 0;
  float real = 0;
};

/// The GraphDef version that graphs made here claim: that of TensorFlow 1.15.
inline constexpr int32_t kGraphDefVersion = 134;

/// Versions of a GraphDef.
struct Versions {
  int32_t producer = kGraphDefVersion;
  int32_t min_consumer = 0;
  std::vector<int32_t> bad_consumers;
};

/// A directed graph of typed nodes; ids are dense and in order of addition, inputs have smaller ids than their users
/// except on edges out of NextIteration. Adding is amortised O(inputs). Thread-compatible: concurrent reads are safe
/// while nobody writes.
class Graph {
 public:
  explicit Graph(const op::OpRegistry& ops);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  const op::OpRegistry& ops() const { return *ops_; }

  /// Adds a node after checking name, attributes, arity and types, and infers its output shapes. TensorFlow's texts;
  /// the error names the node and its origin. FailedPrecondition once finalized.
  Result<Node*> Add(NodeSpec spec);
  /// Sets or replaces a data input after the same checks of type. `from` is older than the node, or a NextIteration.
  /// Output shapes stay as they are.
  Status SetInput(NodeId node, int index, Endpoint from);
  /// Adds a control input that is older than the node, unless it is there already.
  Status AddControlInput(NodeId node, NodeId from);
  /// An op that the registry does not know, for nodes that are looked at but never run: any inputs, and `outputs`
  /// outputs of unknown type and shape. Owned by the graph, one per name and count.
  const op::OpDef& AddForeignOp(std::string_view name, int outputs);
  /// True when the node's op was made by AddForeignOp.
  bool IsForeign(const Node& node) const;
  /// Sets or replaces an attribute without revalidating; for `_class`, `_output_shapes` and the like.
  void SetAttr(NodeId node, std::string_view name, op::AttrValue value);
  void SetDevice(NodeId node, std::string device);
  /// Merges more knowledge into an output's shape; InvalidArgument when it contradicts.
  Status RefineShape(Endpoint endpoint, const PartialShape& shape);

  /// Makes room for that many nodes in all.
  void Reserve(int nodes);
  /// Removes the newest nodes until `nodes` are left; how import takes back what it added.
  void Truncate(int nodes);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  bool Has(NodeId id) const { return id >= 0 && id < num_nodes(); }
  bool Has(Endpoint e) const { return Has(e.node) && e.index >= 0 && e.index < node(e.node).num_outputs(); }
  /// Null when there is none.
  const Node* Find(std::string_view name) const;
  DType TypeOf(Endpoint e) const { return node(e.node).output_types()[static_cast<size_t>(e.index)]; }
  const PartialShape& ShapeOf(Endpoint e) const { return node(e.node).output_shapes()[static_cast<size_t>(e.index)]; }
  /// Names of all nodes, for error messages.
  std::vector<std::string_view> Names() const;

  /// The node as TensorFlow's messages print it: "{{node c}} = Add[T=DT_FLOAT](a, b:1, ^d)".
  std::string Summary(NodeId id) const;

  /// Forbids adding nodes.
  void Finalize() { finalized_ = true; }
  bool finalized() const { return finalized_; }

  Versions& versions() { return versions_; }
  const Versions& versions() const { return versions_; }
  /// Collections by key; std::map so that printing is deterministic.
  std::map<std::string, std::vector<CollectionItem>>& collections() { return collections_; }
  const std::map<std::string, std::vector<CollectionItem>>& collections() const { return collections_; }

  /// Serialized FunctionDefLibrary, carried through import and export untouched; empty when there is none.
  std::string function_library;

 private:
  Status Fill(NodeSpec& spec, Node& node);
  Status CheckInputs(const Node& node) const;
  Status CheckInput(const Node& node, int index) const;
  Status InferOutputShapes(Node& node);

  const op::OpRegistry* ops_;
  std::deque<Node> nodes_;
  std::map<std::pair<std::string, int>, op::OpDef> foreign_ops_;  // by name and number of outputs
  std::vector<PartialShape> scratch_shapes_;
  SignatureTable signatures_;
  NameIndex by_name_;
  Versions versions_;
  std::map<std::string, std::vector<CollectionItem>> collections_;
  bool finalized_ = false;
};

/// "name" for output 0, else "name:1".
std::string EndpointName(const Graph& graph, Endpoint e);
/// Always with the index: "name:0".
std::string FullEndpointName(const Graph& graph, Endpoint e);

/// Splits "name", "name:2" or "^name". InvalidArgument for an index that does not fit.
struct InputName {
  std::string_view node;
  int32_t index = 0;
  bool control = false;
};
Result<InputName> ParseInputName(std::string_view text);

/// TensorFlow's rule for names in files: a letter, digit or ".", then also "_", "-" and "/"; parts made so may be
/// joined by ">".
bool IsValidName(std::string_view name);
/// The same, with a leading "_" allowed: names of nodes that the runtime adds.
bool IsValidInternalName(std::string_view name);

/// Runs the op's shape function for one node with what is known of its inputs. `value` may be empty. What inputs that
/// are resource handles name is told by `held`, else taken from the graph, as it is declared there. Errors carry
/// TensorFlow's tail " for 'n' (op: 'X') with input shapes: [2], [3].", with the computed inputs that were asked for.
Result<std::vector<PartialShape>> InferShapes(const Graph& graph, const Node& node,
                                              std::span<const PartialShape> input_shapes,
                                              const op::ShapeContext::ValueFn& value = {},
                                              const op::ShapeContext::HandleFn& held = {});

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_H_
