// Values from and for other parts of a cut step.
#include <algorithm>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/plan/emitters_internal.h"
#include "core/runtime/rendezvous.h"

namespace weir::plan {

using graph::NodeId;

bool IsPart(const graph::StepGraph& step) {
  return std::ranges::any_of(step.nodes, [](const graph::StepNode& node) {
    const graph::Flow flow = graph::FlowOf(node);
    return flow == graph::Flow::kSend || flow == graph::Flow::kRecv;
  });
}

Result<uint32_t> TransferEmitter::AddTransfer(NodeId id, GuardId guard) {
  const op::AttrView attrs = c_.node(id).source->attrs();
  Transfer transfer;
  WEIR_ASSIGN(const std::string tensor, attrs.String("tensor_name"));
  WEIR_ASSIGN(const std::string from, attrs.String("send_device"));
  WEIR_ASSIGN(const std::string to, attrs.String("recv_device"));
  WEIR_ASSIGN(const int64_t incarnation, attrs.Int("send_device_incarnation"));
  transfer.key = runtime::TransferKey(from, static_cast<uint64_t>(incarnation), to, tensor);
  transfer.guard = guard;
  const std::vector<ValueId> iterations = loops_.Iterations(id);
  for (FrameId frame = c_.node(id).frame; frame > graph::kStepFrame; frame = c_.ParentFrame(frame)) {
    if (!iterations[iterations.size() - 1 - transfer.frames.size()].valid()) {
      return c_.Fail(id, InvalidArgument("'{}' stands in the frame '{}', which is no loop", c_.node(id).name(),
                                         c_.FrameName(frame)));
    }
    transfer.frames.push_back(c_.FrameName(frame));
  }
  std::reverse(transfer.frames.begin(), transfer.frames.end());
  tape_.plan().transfers.push_back(std::move(transfer));
  return static_cast<uint32_t>(tape_.plan().transfers.size()) - 1;
}

Status TransferEmitter::EmitSend(NodeId id) {
  const GuardId alive = tape_.guard();
  WEIR_ASSIGN(const ValueId value, variables_.HostInput(id, 0));
  if (c_.node(id).frame == graph::kStepFrame) tape_.MakeFresh(value);  // the receiver keeps it
  WEIR_ASSIGN(const uint32_t transfer, AddTransfer(id, alive));
  std::vector<ValueId> inputs = loops_.Iterations(id);
  inputs.insert(inputs.begin(), value);
  c_.conditions.Under(kAlways);  // a dead value is sent as dead
  tape_.Emit(Opcode::kSend, inputs, {}).detail = transfer;
  return Status();
}

Status TransferEmitter::EmitRecv(NodeId id) {
  const GuardId live = c_.guards.set.Of({RunCondition::Kind::kLive, id});
  WEIR_ASSIGN(const uint32_t transfer, AddTransfer(id, live));
  const graph::StepNode& node = c_.node(id);
  const std::vector<ValueId> outputs = {tape_.NewValue(node.types[0], node.shapes[0], kHostSpace, Placing::kAtRun)};
  c_.values[{id, 0}] = outputs[0];
  const TapeNote waits{.blocks = true, .suspends = true};
  tape_.Emit(Opcode::kRecv, loops_.Iterations(id), outputs, waits).detail = transfer;
  c_.conditions.MarkSet(live);
  return Status();
}

}  // namespace weir::plan
