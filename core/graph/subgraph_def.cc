#include "core/graph/subgraph_def.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/graph/attr_proto.h"
#include "core/graph/graph_message.h"
#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

class SubgraphWriter {
 public:
  SubgraphWriter(const StepRequest& request, const StepGraph& step, const Placement& placement,
                 std::span<const Subgraph> subgraphs)
      : request_(request), step_(step), placement_(placement), defs_(subgraphs.size()) {
    for (size_t i = 0; i < subgraphs.size(); ++i) def_of_[subgraphs[i].device] = &defs_[i];
  }

  Result<std::vector<std::string>> Write(std::span<const Subgraph> subgraphs) {
    for (const Subgraph& subgraph : subgraphs) {
      for (const Recv& recv : subgraph.recvs) WEIR_TRY(WriteCrossing(recv, subgraph.device));
    }
    for (const Subgraph& subgraph : subgraphs) {
      for (const NodeId id : subgraph.nodes) WEIR_TRY(WriteNode(id, *def_of_[subgraph.device]));
    }
    for (size_t i = 0; i < step_.fetches.size(); ++i) WEIR_TRY(WriteFetch(i));
    std::vector<std::string> bytes;
    for (tf::GraphDef& def : defs_) {
      def.mutable_versions()->set_producer(step_.graph->versions().producer);
      WEIR_ASSIGN(bytes.emplace_back(), proto::Serialize(def, "GraphDef"));
    }
    return bytes;
  }

 private:
  int DeviceOf(NodeId id) const { return placement_.device_of[static_cast<size_t>(id)]; }
  const std::string& DeviceName(int device) const { return placement_.devices[static_cast<size_t>(device)]; }

  /// What the endpoint is called on its own device.
  std::string NameOf(Endpoint e) const {
    const StepNode& node = step_.node(e.node);
    if (node.kind == StepNode::Kind::kFeed) {
      const int index = request_.feeds[static_cast<size_t>(node.feed)].endpoint.index;
      return fmt::format("_arg_{}_{}_{}", node.name(), index, node.feed);
    }
    if (e.index == 0) return std::string(node.name());
    return std::string(node.name()) + (node.kind == StepNode::Kind::kConstant ? "/_output_" : ":") +
           std::to_string(e.index);
  }

  tf::NodeDef& Add(tf::GraphDef& def, std::string name, const char* op, int device) const {
    tf::NodeDef& node = *def.add_node();
    node.set_name(std::move(name));
    node.set_op(op);
    node.set_device(DeviceName(device));
    return node;
  }

  static Status Set(tf::NodeDef& node, const char* attr, const op::AttrValue& value) {
    return AttrToProto(value, (*node.mutable_attr())[attr]);
  }

  /// A pair of _Send and _Recv; the name of the latter.
  Result<std::string> Cross(NodeId node, const std::string& value, DType type, int from, int to) {
    const std::string tensor = fmt::format("edge_{}_{}", crossings_, step_.node(node).name());
    const auto common = [&](tf::NodeDef& made) -> Status {
      WEIR_TRY(Set(made, "tensor_name", tensor));
      WEIR_TRY(Set(made, "send_device", DeviceName(from)));
      WEIR_TRY(Set(made, "recv_device", DeviceName(to)));
      WEIR_TRY(Set(made, "send_device_incarnation", int64_t{1}));
      return Set(made, "client_terminated", false);
    };
    tf::NodeDef& send = Add(*def_of_[from], NewName(node), "_Send", from);
    send.add_input(value);
    WEIR_TRY(Set(send, "T", type));
    WEIR_TRY(common(send));
    tf::NodeDef& received = Add(*def_of_[to], NewName(node), "_Recv", to);
    WEIR_TRY(Set(received, "tensor_type", type));
    WEIR_TRY(common(received));
    return received.name();
  }
  std::string NewName(NodeId node, const char* between = "") {
    return fmt::format("{}/{}_{}", step_.node(node).name(), between, crossings_++);
  }

  Status WriteCrossing(const Recv& recv, int to) {
    const DType type = BaseType(step_.TypeOf(recv.source));
    WEIR_ASSIGN(const std::string received, Cross(recv.source.node, NameOf(recv.source), type, recv.from_device, to));
    received_[{to, recv.source}] = received;
    return Status();
  }

  /// What stands on device `to` for a node of another device that somebody there waits for: an empty tensor crosses.
  Result<std::string> WriteControl(NodeId node, int to) {
    std::string& awaited = awaited_[{to, node}];
    if (!awaited.empty()) return awaited;
    const int from = DeviceOf(node);
    tf::NodeDef& token = Add(*def_of_[from], NewName(node, "ctrl/"), "Const", from);
    token.add_input("^" + NameOf({node, 0}));
    WEIR_TRY(Set(token, "dtype", DType::kFloat));
    WEIR_TRY(Set(token, "value", Tensor::Vector<float>({})));
    WEIR_ASSIGN(const std::string received, Cross(node, token.name(), DType::kFloat, from, to));
    tf::NodeDef& arrived = Add(*def_of_[to], NewName(node), "Identity", to);
    arrived.add_input(received);
    WEIR_TRY(Set(arrived, "T", DType::kFloat));
    return awaited = arrived.name();
  }

  Status WriteNode(NodeId id, tf::GraphDef& def) {
    const StepNode& node = step_.node(id);
    const int device = DeviceOf(id);
    if (node.kind == StepNode::Kind::kFeed) {
      tf::NodeDef& argument = Add(def, NameOf({id, 0}), "_Arg", device);
      WEIR_TRY(Set(argument, "T", node.types[0]));
      return Set(argument, "index", int64_t{node.feed});
    }
    if (node.kind == StepNode::Kind::kConstant) {
      for (int i = 0; i < static_cast<int>(node.values.size()); ++i) {
        tf::NodeDef& constant = Add(def, NameOf({id, i}), "Const", device);
        WEIR_TRY(Set(constant, "dtype", node.types[static_cast<size_t>(i)]));
        WEIR_TRY(Set(constant, "value", node.values[static_cast<size_t>(i)]));
      }
      return Status();
    }
    tf::NodeDef& written = *def.add_node();
    WEIR_TRY(NodeToMessage(*step_.graph, *node.source, OutputShapes::kOmit, written));
    written.set_device(DeviceName(device));
    written.clear_input();
    for (const Endpoint& input : node.inputs) {
      const auto received = received_.find({device, input});
      written.add_input(received == received_.end() ? NameOf(input) : received->second);
    }
    for (const NodeId control : node.control_inputs) {
      std::string awaited = NameOf({control, 0});
      if (DeviceOf(control) != device) {
        WEIR_ASSIGN(awaited, WriteControl(control, device));
      }
      written.add_input("^" + awaited);
    }
    return Status();
  }

  Status WriteFetch(size_t i) {
    const Endpoint source = step_.fetches[i];
    const int device = DeviceOf(source.node);
    const Endpoint asked = request_.fetches[i];
    tf::NodeDef& fetch =
        Add(*def_of_[device], fmt::format("_retval_{}_{}_{}", step_.graph->node(asked.node).name(), asked.index, i),
            "_Retval", device);
    fetch.add_input(NameOf(source));
    WEIR_TRY(Set(fetch, "T", BaseType(step_.TypeOf(source))));
    return Set(fetch, "index", static_cast<int64_t>(i));
  }

  const StepRequest& request_;
  const StepGraph& step_;
  const Placement& placement_;
  std::vector<tf::GraphDef> defs_;
  std::map<int, tf::GraphDef*> def_of_;  // by device
  std::map<std::pair<int, Endpoint>, std::string> received_;
  std::map<std::pair<int, NodeId>, std::string> awaited_;
  int crossings_ = 0;
};

}  // namespace

Result<std::vector<std::string>> ExportSubgraphs(const StepRequest& request, const StepGraph& step,
                                                 const Placement& placement, std::span<const Subgraph> subgraphs) {
  return SubgraphWriter(request, step, placement, subgraphs).Write(subgraphs);
}

}  // namespace weir::graph
