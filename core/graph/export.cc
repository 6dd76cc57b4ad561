// GraphDef out: from nodes to messages.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <utility>

#include "core/graph/attr_proto.h"
#include "core/graph/graph_def.h"
#include "core/graph/graph_message.h"
#include "core/graph/origins.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

/// Bytes of the constants among a node's attributes.
uint64_t PayloadBytes(const Node& node) {
  uint64_t bytes = 0;
  for (const auto& [name, value] : node.attrs().explicit_values()) {
    if (const Tensor* tensor = value.get<Tensor>()) bytes += tensor->bytes();
  }
  return bytes;
}

/// Protobuf cannot write more; said before a copy of everything is made.
Status CheckSize(const Graph& graph) {
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

Status WriteAttrs(const Node& node, OutputShapes shapes, tf::NodeDef& def) {
  auto& attrs = *def.mutable_attr();
  for (const op::AttrDef& attr : node.op().attrs) {
    if (attr.default_value.set()) WEIR_TRY(AttrToProto(attr.default_value, attrs[attr.name]));
  }
  for (const auto& [name, value] : node.attrs().explicit_values()) WEIR_TRY(AttrToProto(value, attrs[name]));
  if (shapes == OutputShapes::kWrite && node.num_outputs() > 0) {
    const auto known = node.output_shapes();
    WEIR_TRY(AttrToProto(std::vector<PartialShape>(known.begin(), known.end()), attrs["_output_shapes"]));
  }
  return {};
}

}  // namespace

Status NodeToMessage(const Graph& graph, const Node& node, OutputShapes shapes, tf::NodeDef& def) {
  def.set_name(node.name());
  def.set_op(node.op().name);
  def.set_device(node.device());
  for (const Endpoint& from : node.inputs()) {
    if (from.node < 0) return FailedPrecondition("Node '{}' has an input that was never set", node.name());
    def.add_input(EndpointName(graph, from));
  }
  for (const NodeId from : node.control_inputs()) def.add_input("^" + graph.node(from).name());
  return WriteAttrs(node, shapes, def);
}

Status GraphToMessage(const Graph& graph, OutputShapes shapes, tf::GraphDef& def) {
  WEIR_TRY(CheckSize(graph));
  def.mutable_node()->Reserve(graph.num_nodes());
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (Status status = NodeToMessage(graph, node, shapes, *def.add_node()); !status.ok()) {
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
  if (graph.function_library.empty()) return {};
  return proto::ParseBinary(graph.function_library, "FunctionDefLibrary", *def.mutable_library());
}

Result<std::string> ExportGraphDef(const Graph& graph, GraphFormat format, OutputShapes shapes) {
  google::protobuf::Arena arena;
  auto* def = google::protobuf::Arena::CreateMessage<tf::GraphDef>(&arena);
  WEIR_TRY(GraphToMessage(graph, shapes, *def));
  if (format == GraphFormat::kText) return proto::Print(*def);
  return proto::Serialize(*def, "GraphDef");
}

}  // namespace weir::graph
