// GraphDef export: from nodes to messages.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/attr_proto.h"
#include "core/graph/function_body.h"
#include "core/graph/graph_def.h"
#include "core/graph/graph_message.h"
#include "core/graph/large_graph.h"
#include "core/graph/origins.h"
#include "core/proto/parse.h"
#include "core/tensor/buffer.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

/// Bytes of the constant tensors in a node's attributes.
uint64_t PayloadBytes(const Node& node) {
  uint64_t bytes = 0;
  for (const auto& [name, value] : node.attrs().explicit_values()) {
    if (const Tensor* tensor = value.get<Tensor>()) bytes += tensor->bytes();
  }
  return bytes;
}

/// Reports graphs above protobuf's size limit before anything is copied.
Status CheckSize(const Definition& graph) {
  std::vector<std::pair<uint64_t, const Node*>> sizes;
  uint64_t total = 0;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const uint64_t bytes = PayloadBytes(graph.node(id));
    if (bytes > 0) sizes.emplace_back(bytes, &graph.node(id));
    total += bytes;
  }
  if (total <= proto::kMaxMessageBytes) return {};
  const size_t shown = std::min<size_t>(sizes.size(), 5);
  std::partial_sort(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(shown), sizes.end(),
                    [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string largest;
  for (size_t i = 0; i < shown; ++i) {
    largest += fmt::format("{}'{}' ({} bytes)", i > 0 ? ", " : "", sizes[i].second->name(), sizes[i].first);
  }
  return ResourceExhausted(
      "Cannot serialize protocol buffer of type GraphDef: its constants take {} bytes and the limit is {}. The largest "
      "nodes: {}",
      total, proto::kMaxMessageBytes, largest);
}

Status WriteShapes(const Node& node, tf::NodeDef& def) {
  if (node.num_outputs() == 0) return {};
  const auto known = node.output_shapes();
  return AttrToProto(std::vector<PartialShape>(known.begin(), known.end()), (*def.mutable_attr())["_output_shapes"]);
}

/// Of nodes of function bodies. Functions with attributes and those that cannot be instantiated stay as they are.
Status WriteShapes(const Definition& graph, tf::FunctionDefLibrary& library) {
  FunctionBodies bodies(graph);
  for (tf::FunctionDef& function : *library.mutable_function()) {
    if (function.signature().attr_size() > 0) continue;
    const Result<const FunctionBody*> body = bodies.Get({.name = function.signature().name()});
    if (!body.ok()) continue;
    for (tf::NodeDef& def : *function.mutable_node_def()) {
      if (const Node* const node = (*body)->graph.Find(def.name()); node != nullptr) WEIR_TRY(WriteShapes(*node, def));
    }
  }
  return {};
}

Status WriteAttrs(const Node& node, OutputShapes shapes, const PutAside& aside, tf::NodeDef& def) {
  auto& attrs = *def.mutable_attr();
  for (const op::AttrDef& attr : node.op().attrs) {
    if (attr.default_value.set()) WEIR_TRY(AttrToProto(attr.default_value, attrs[attr.name]));
  }
  for (const auto& [name, value] : node.attrs().explicit_values()) {
    const Tensor* const tensor = aside ? value.get<Tensor>() : nullptr;
    if (tensor != nullptr) {
      WEIR_ASSIGN(const bool elsewhere, aside(node, name, *tensor));
      if (elsewhere) {
        attrs[kBesideAttr].set_s(node.name());
        continue;
      }
    }
    WEIR_TRY(AttrToProto(value, attrs[name]));
  }
  return shapes == OutputShapes::kWrite ? WriteShapes(node, def) : Status();
}

}  // namespace

Status NodeToMessage(const Definition& graph, const Node& node, OutputShapes shapes, tf::NodeDef& def,
                     const PutAside& aside) {
  def.set_name(node.name());
  def.set_op(node.op().name);
  def.set_device(node.device());
  for (const Endpoint& from : node.inputs()) {
    if (from.node < 0) return FailedPrecondition("Node '{}' has an input that was never set", node.name());
    def.add_input(EndpointName(graph, from));
  }
  for (const NodeId from : node.control_inputs()) def.add_input("^" + graph.node(from).name());
  return WriteAttrs(node, shapes, aside, def);
}

Status GraphToMessage(const Definition& graph, OutputShapes shapes, tf::GraphDef& def) {
  WEIR_TRY(CheckSize(graph));
  return GraphToMessage(graph, shapes, nullptr, def);
}

Status GraphToMessage(const Definition& graph, OutputShapes shapes, const PutAside& aside, tf::GraphDef& def) {
  def.mutable_node()->Reserve(graph.num_nodes());
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (Status status = NodeToMessage(graph, node, shapes, *def.add_node(), aside); !status.ok()) {
      return status.WithNode(node.name(), node.origin());
    }
  }
  const Versions& versions = graph.versions();
  def.mutable_versions()->set_producer(versions.producer);
  def.mutable_versions()->set_min_consumer(versions.min_consumer);
  def.mutable_versions()->mutable_bad_consumers()->Add(versions.bad_consumers.begin(), versions.bad_consumers.end());
  tf::GraphDebugInfo origins;
  WriteOrigins(graph, origins);
  if (origins.files_size() > 0) *def.mutable_debug_info() = std::move(origins);
  if (graph.functions().empty()) return {};
  WEIR_TRY(graph.functions().WriteTo(*def.mutable_library()));
  return shapes == OutputShapes::kWrite ? WriteShapes(graph, *def.mutable_library()) : Status();
}

Result<std::string> ExportGraphDef(const Definition& graph, GraphFormat format, OutputShapes shapes) {
  google::protobuf::Arena arena;
  auto* def = google::protobuf::Arena::CreateMessage<tf::GraphDef>(&arena);
  WEIR_TRY(GraphToMessage(graph, shapes, *def));
  if (format == GraphFormat::kText) return proto::Print(*def);
  return proto::Serialize(*def, "GraphDef");
}

}  // namespace weir::graph
