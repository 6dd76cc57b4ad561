// The definition of a dataflow graph: nodes, edges, functions and collections.
#ifndef WEIR_CORE_GRAPH_DEFINITION_H_
#define WEIR_CORE_GRAPH_DEFINITION_H_

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
#include "core/graph/endpoint.h"
#include "core/graph/function.h"
#include "core/graph/name_index.h"
#include "core/graph/signature_table.h"
#include "core/op/attrs.h"
#include "core/op/op_def.h"
#include "core/op/registry.h"
#include "core/op/shape_context.h"
#include "core/tensor/shape.h"

namespace weir::graph {

/// The description of a new node.
struct NodeSpec {
  std::string name;
  const op::OpDef* op = nullptr;       // of the graph's registry, or made by Graph::AddForeignOp
  std::vector<Endpoint> inputs;        // a Merge may have an open input, Endpoint{}, set later by SetInput
  std::vector<NodeId> control_inputs;  // repeated ones are merged
  std::string device;                  // requested, in any spelling; empty = unconstrained
  op::AttrList attrs;
  std::string origin;  // file:line of the model code, or empty
};

/// A node. Owned by its graph; its address is stable. Changed only through the graph.
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
  /// Output types, references as reference types.
  std::span<const DType> output_types() const { return signature_->outputs; }
  int num_outputs() const { return static_cast<int>(signature_->outputs.size()); }
  /// Operand types of the op with the node's attributes. Nodes of equal op and types share it.
  const op::Signature& signature() const { return *signature_; }
  /// Inferred shapes, one per output.
  std::span<const PartialShape> output_shapes() const { return output_shapes_; }

  /// A node outside any graph that replaces the op of `original`. It has the id, name, device and origin of the
  /// original, but no edges and shapes. `op` must outlive it. InvalidArgument if the attributes do not fit the op.
  static Result<std::shared_ptr<const Node>> InPlaceOf(const Node& original, const op::OpDef& op, op::AttrList attrs);

 private:
  friend class Definition;
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

/// An item of a collection in a serializable form.
struct CollectionItem {
  enum class Kind { kNode, kBytes, kInt, kFloat, kAny };
  Kind kind = Kind::kNode;
  std::string text;  // node or tensor name, serialized bytes, or a serialized google.protobuf.Any
  int64_t number = 0;
  float real = 0;
};

/// The GraphDef version written for graphs built here: that of TensorFlow 1.15.
inline constexpr int32_t kGraphDefVersion = 134;

/// Versions of a GraphDef.
struct Versions {
  int32_t producer = kGraphDefVersion;
  int32_t min_consumer = 0;
  std::vector<int32_t> bad_consumers;
};

/// The definition of a graph: typed nodes with edges, functions and collections. Ids are dense and in order of
/// addition; inputs have smaller ids than their users, except on edges from NextIteration. Adding a node is amortised
/// O(inputs). Thread-compatible: concurrent reads are safe without a concurrent write.
class Definition {
 public:
  explicit Definition(const op::OpRegistry& ops);
  Definition(Definition&&) = default;
  Definition& operator=(Definition&&) = default;

  const op::OpRegistry& ops() const { return *ops_; }

  /// Adds a node after checking name, attributes, arity and types, and infers its output shapes. Errors use
  /// TensorFlow's texts and name the node and its origin. FailedPrecondition once finalized.
  Result<Node*> Add(NodeSpec spec);
  /// Sets or replaces a data input after the same type checks. `from` must be older than the node, or a NextIteration.
  /// Output shapes are not updated.
  Status SetInput(NodeId node, int index, Endpoint from);
  /// Adds a control input that is older than the node; ignores duplicates.
  Status AddControlInput(NodeId node, NodeId from);
  /// Declares an op unknown to the registry, for nodes that are inspected but never run. It takes any inputs and has
  /// `outputs` outputs of unknown type and shape. Owned by the graph, one per name and count.
  const op::OpDef& AddForeignOp(std::string_view name, int outputs);
  /// True if AddForeignOp made the node's op.
  bool IsForeign(const Node& node) const;
  /// Sets or replaces an attribute without validation; for `_class`, `_output_shapes` and similar.
  void SetAttr(NodeId node, std::string_view name, op::AttrValue value);
  void SetDevice(NodeId node, std::string device);
  /// Merges `shape` into an output's shape; InvalidArgument if they contradict each other.
  Status RefineShape(Endpoint endpoint, const PartialShape& shape);

  /// Reserves memory for `nodes` nodes in total.
  void Reserve(int nodes);
  /// Removes the newest nodes until `nodes` remain; used to roll back an import.
  void Truncate(int nodes);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  bool Has(NodeId id) const { return id >= 0 && id < num_nodes(); }
  bool Has(Endpoint e) const { return Has(e.node) && e.index >= 0 && e.index < node(e.node).num_outputs(); }
  /// Null if there is none.
  const Node* Find(std::string_view name) const;
  DType TypeOf(Endpoint e) const { return node(e.node).output_types()[static_cast<size_t>(e.index)]; }
  const PartialShape& ShapeOf(Endpoint e) const { return node(e.node).output_shapes()[static_cast<size_t>(e.index)]; }
  /// Names of all nodes, for error messages.
  std::vector<std::string_view> Names() const;

  /// The node in the form of TensorFlow's messages: "{{node c}} = Add[T=DT_FLOAT](a, b:1, ^d)".
  std::string Summary(NodeId id) const;

  /// Forbids the addition of nodes.
  void Finalize() { finalized_ = true; }
  bool finalized() const { return finalized_; }

  Versions& versions() { return versions_; }
  const Versions& versions() const { return versions_; }
  /// Collections by key; sorted, so that printing is deterministic.
  std::map<std::string, std::vector<CollectionItem>>& collections() { return collections_; }
  const std::map<std::string, std::vector<CollectionItem>>& collections() const { return collections_; }

  /// The functions that nodes may call. A node whose op is a function's signature is a call of it.
  const FunctionLibrary& functions() const { return *functions_; }
  /// The function library for sharing with another graph; never null.
  const std::shared_ptr<const FunctionLibrary>& shared_functions() const { return functions_; }
  /// Replaces the library, which must not be null and must contain all functions called by nodes.
  void SetFunctions(std::shared_ptr<const FunctionLibrary> functions);

 private:
  Status Fill(NodeSpec& spec, Node& node);
  Status CheckInputs(const Node& node) const;
  Status CheckInput(const Node& node, int index) const;
  Status InferOutputShapes(Node& node);

  const op::OpRegistry* ops_;
  std::deque<Node> nodes_;
  std::shared_ptr<const FunctionLibrary> functions_ = std::make_shared<FunctionLibrary>();
  std::vector<std::shared_ptr<const FunctionLibrary>> past_functions_;  // own op records that signatures_ refers to
  std::map<std::pair<std::string, int>, op::OpDef> foreign_ops_;        // by name and number of outputs
  std::vector<PartialShape> scratch_shapes_;
  SignatureTable signatures_;
  NameIndex by_name_;
  Versions versions_;
  std::map<std::string, std::vector<CollectionItem>> collections_;
  bool finalized_ = false;
};

/// "name" for output 0, else "name:1".
std::string EndpointName(const Definition& graph, Endpoint e);
/// "name:0", with the index also for output 0.
std::string FullEndpointName(const Definition& graph, Endpoint e);

/// Splits "name", "name:2" or "^name". InvalidArgument for an index out of range.
struct InputName {
  std::string_view node;
  int32_t index = 0;
  bool control = false;
};
Result<InputName> ParseInputName(std::string_view text);

/// TensorFlow's rule for names in files: a letter, digit or ".", then also "_", "-" and "/". Names that follow it may
/// be joined by ">".
bool IsValidName(std::string_view name);
/// As IsValidName, but also allows a leading "_": names of nodes added by the runtime.
bool IsValidInternalName(std::string_view name);

/// Runs the op's shape function for one node. `value` gives known input values and may be empty. `held` gives the
/// variables behind resource handles; if it is empty, the declarations in the graph are used. Errors end in
/// TensorFlow's text " for 'n' (op: 'X') with input shapes: [2], [3].", followed by the computed inputs that were read.
Result<std::vector<PartialShape>> InferShapes(const Definition& graph, const Node& node,
                                              std::span<const PartialShape> input_shapes,
                                              const op::ShapeContext::ValueFn& value = {},
                                              const op::ShapeContext::HandleFn& held = {});

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_DEFINITION_H_
