#include "core/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/partition/cut_internal.h"

namespace weir::partition {

using graph::Flow;
using graph::NodeId;
using graph::StepNode;

Borders BetweenDevices(size_t devices, int home) {
  Borders borders;
  borders.part_of.resize(devices);
  std::iota(borders.part_of.begin(), borders.part_of.end(), 0);
  borders.home = home;
  return borders;
}

Result<std::vector<graph::Part>> Partition(const graph::StepRequest& request, const graph::StepGraph& step,
                                           const graph::Placement& placement, const Borders& borders) {
  WEIR_ASSIGN(const Cut cut, FindCut(step, placement, borders));
  return Cutter(request, step, placement, cut, borders).Run();
}

namespace {

std::string_view AttrOf(const graph::Node& node, const char* name) {
  const op::AttrValue* const value = node.attrs().Find(name);
  const std::string* const text = value == nullptr ? nullptr : value->get<std::string>();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

/// Checks that every _Recv has a matching _Send, by tensor name.
Status VerifyTransfers(std::span<const graph::Part> parts) {
  std::map<std::string_view, const graph::Node*> sends, receives;
  for (const graph::Part& part : parts) {
    for (NodeId id = 0; id < part.graph.num_nodes(); ++id) {
      const graph::Node& node = part.graph.node(id);
      const Flow flow = graph::FlowOf(node);
      if (flow != Flow::kSend && flow != Flow::kRecv) continue;
      const std::string_view tensor = AttrOf(node, "tensor_name");
      if (!(flow == Flow::kSend ? sends : receives).emplace(tensor, &node).second) {
        return Internal("'{}' is {} twice", tensor, flow == Flow::kSend ? "sent" : "received");
      }
    }
  }
  for (const auto& [tensor, receive] : receives) {
    const auto send = sends.find(tensor);
    if (send == sends.end()) return Internal("'{}' waits for '{}', which nobody sends", receive->name(), tensor);
    for (const char* const end : {"send_device", "recv_device"}) {
      if (AttrOf(*send->second, end) == AttrOf(*receive, end)) continue;
      return Internal("'{}' is sent with {} {} and received with {}", tensor, end, AttrOf(*send->second, end),
                      AttrOf(*receive, end));
    }
  }
  return Status();
}

}  // namespace

Status Verify(const graph::StepGraph& step, const graph::Placement& placement, std::span<const graph::Part> parts) {
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const StepNode& node = step.nodes[i];
    if (node.kind != StepNode::Kind::kOp) continue;
    const int chosen = placement.device_of[i];
    const Flow flow = graph::FlowOf(node);
    const bool may_move = chosen < 0 || flow == Flow::kEnter || flow == Flow::kMerge || flow == Flow::kNextIteration ||
                          flow == Flow::kExit;
    int times = 0;
    for (const graph::Part& part : parts) {
      const graph::Node* const found = part.graph.Find(node.name());
      if (found == nullptr) continue;
      if (++times > 1) return Internal("'{}' is in two parts, that of {} and one before", node.name(), part.device);
      if (may_move || found->device() == placement.devices[PositionOf(chosen)]) continue;
      return Internal("'{}' was placed on {} and is on {} in the part of {}", node.name(),
                      placement.devices[PositionOf(chosen)], found->device(), part.device);
    }
    if (times == 0) return Internal("'{}' was placed and is in no part", node.name());
  }
  return VerifyTransfers(parts);
}

}  // namespace weir::partition
