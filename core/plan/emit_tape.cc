// Emits a step: one node after the other becomes instructions over values.
#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/plan/draft_internal.h"
#include "core/plan/emitters_internal.h"

namespace weir::plan {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::NodeId;
using graph::StepNode;

/// An empty plan for the step.
std::unique_ptr<ExecutionPlan> NewPlan(const DraftInput& input, size_t guards) {
  const graph::StepGraph& step = input.step;
  auto plan = std::make_unique<ExecutionPlan>();
  for (const auto& device : input.options.devices->all()) {
    plan->devices.push_back(device.get());
    if (plan->host_device == nullptr && device->host_memory()) plan->host_device = device.get();
  }
  plan->placement = input.placement;
  for (const graph::MadeNode& made : step.made) plan->made_nodes.push_back(made.node);
  plan->resources = input.options.resources;
  plan->guard_count = guards;
  plan->fetch_count = step.fetches.size();
  plan->fetch_guards.assign(step.fetches.size(), kAlways);
  plan->feed_storages.assign(input.feeds, StorageId());
  plan->instructions.reserve(step.nodes.size());
  plan->storages.reserve(step.nodes.size());
  plan->values.reserve(step.nodes.size());
  plan->placed_nodes.reserve(step.nodes.size());
  return plan;
}

/// Hands each node to the emitter of its kind.
class StepEmitter {
 public:
  StepEmitter(const DraftInput& input, StepGuards& guards, ExecutionPlan& plan)
      : input_(input),
        placement_(input.placement),
        tape_(plan),
        c_(input.options, input.step, placement_, guards, tape_),
        variables_(c_),
        kernels_(c_, variables_, stands_for_),
        universal_(c_, variables_, kernels_),
        conds_(c_, variables_),
        loops_(c_, variables_),
        stacks_(c_),
        transfers_(c_, variables_, loops_),
        fetches_of_(input.step.nodes.size()),
        instructions_of_(input.step.nodes.size()) {
    for (const graph::MadeNode& made : input.step.made) {
      stands_for_[made.node.get()] = &made.stands_for;
      plan.stands_for[made.node.get()] = made.stands_for;
    }
    for (size_t i = 0; i < input.step.fetches.size(); ++i) fetches_of_[input.step.fetches[i].node].push_back(i);
  }

  Status Run(const std::vector<graph::OrderItem>& order) {
    for (const graph::OrderItem& item : order) {
      if (item.kind == graph::OrderItem::Kind::kLoopBegin) {
        WEIR_TRY(loops_.Begin(item.frame()));
      } else if (item.kind == graph::OrderItem::Kind::kLoopEnd) {
        WEIR_TRY(EndLoop(item.frame()));
      } else {
        WEIR_TRY(Emit(item.id));
      }
    }
    loops_.MatchSwapped();
    for (const auto& [id, fetch] : fetched_last_) {
      c_.Begin(id);
      WEIR_TRY(EmitFetch(id, fetch));
    }
    return Status();
  }

  /// Moves the results to the draft.
  void Finish(Draft& draft) {
    draft.shape = std::move(tape_.shape());
    draft.notes = std::move(tape_.notes());
    draft.instructions_of = std::move(instructions_of_);
    tape_.plan().guard_count = c_.guards.set.size();
  }

 private:
  Status Emit(NodeId id) {
    const StepNode& node = c_.Begin(id);
    c_.conditions.Under(c_.guards.node[id]);
    Range& emitted = instructions_of_[id];
    emitted.begin = tape_.position();
    WEIR_TRY(EmitNode(id));
    emitted.end = tape_.position();
    if (graph::FlowOf(node) != Flow::kExit) return HandOut(id);
    loops_.DeferExit(id);
    return Status();
  }

  Status EmitNode(NodeId id) {
    const StepNode& node = c_.node(id);
    if (node.types.size() > kMostOutputs) {
      return c_.Fail(id, ResourceExhausted("{} outputs, at most {} are possible", node.types.size(), kMostOutputs));
    }
    if (node.kind == StepNode::Kind::kFeed) {
      const ValueId value = tape_.NewValue(node.types[0], node.shapes[0], kHostSpace, Placing::kAtRun);
      tape_.StorageAt(value).home = Storage::Home::kFeed;
      tape_.StorageAt(value).feed = node.feed;
      tape_.plan().feed_storages[node.feed] = tape_.StorageOf(value);
      c_.values[{id, 0}] = value;
      return Status();
    }
    if (node.kind == StepNode::Kind::kConstant || !node.values.empty()) {
      for (size_t i = 0; i < node.values.size(); ++i) {
        c_.values[{id, static_cast<int>(i)}] = tape_.AddConstant(node.values[i]);
      }
    } else {
      WEIR_TRY(EmitOp(id));
    }
    if (node.kind == StepNode::Kind::kOp) ReportPlaced(id);
    return Status();
  }

  Status EmitOp(NodeId id) {
    switch (c_.node(id).source->op().run_by) {
      case op::RunBy::kExecutor:
        return EmitFlow(id);
      case op::RunBy::kUniversal:
        return universal_.Emit(id);
      case op::RunBy::kKernel:
        if (stacks_.Emits(id)) return stacks_.Emit(id);
        if (!IsFirstInput(id)) return kernels_.Emit(id);
        c_.values[{id, 0}] = c_.values[c_.node(id).inputs[0]];
        return Status();
    }
    return Status();
  }

  /// True if the output is the first input, as that of a sum over no axes.
  bool IsFirstInput(NodeId id) {
    const StepNode& node = c_.node(id);
    const int decides = node.source->op().traits.same_if_empty;
    if (decides < 0) return false;
    const Tensor* const known = c_.step.ValueOf(node.inputs[PositionOf(decides)]);
    const ValueId first = c_.values[node.inputs[0]];
    if (known == nullptr || known->elements() != 0 || !first.valid() || tape_.IsVariable(first)) return false;
    return tape_.ValueAt(first).shape_known && tape_.ShapeOf(first) == node.shapes[0];
  }

  Status EmitFlow(NodeId id) {
    const StepNode& node = c_.node(id);
    switch (graph::FlowOf(node)) {
      case Flow::kTrigger:
      case Flow::kResult:
        return Status();
      case Flow::kArgument:
        return c_.Fail(id, InvalidArgument("'{}' was not fed", node.name()));
      case Flow::kSelect:
        return variables_.EmitSelect(id);
      case Flow::kSwitch:
        return conds_.EmitSwitch(id);
      case Flow::kMerge:
        return loops_.IsLoopVariable(id) ? Status() : conds_.EmitMerge(id);
      case Flow::kExit:
        return loops_.EmitExit(id);
      case Flow::kSend:
        return transfers_.EmitSend(id);
      case Flow::kRecv:
        return transfers_.EmitRecv(id);
      case Flow::kPlain:  // nothing, or a reference handed on
      case Flow::kEnter:
      case Flow::kNextIteration:
      case Flow::kLoopCond: {
        if (node.types.empty()) return Status();
        WEIR_ASSIGN(const ValueId value, variables_.Forwarded(id));
        c_.values[{id, 0}] = value;
        return Status();
      }
    }
    return Status();
  }

  Status EndLoop(FrameId frame) {
    WEIR_TRY(loops_.End(frame));
    for (const NodeId exit : loops_.TakeExits()) {
      c_.Begin(exit);
      c_.conditions.Under(c_.guards.outcome[exit]);
      WEIR_TRY(HandOut(exit));
    }
    return Status();
  }

  /// Sends and fetches the outputs of a node.
  Status HandOut(NodeId id) {
    WEIR_TRY(EmitSends(id));
    for (const size_t fetch : fetches_of_[id]) {
      if (IsReference(c_.values[c_.step.fetches[fetch]])) {
        fetched_last_.emplace_back(id, fetch);  // after all writes of the step
      } else {
        WEIR_TRY(EmitFetch(id, fetch));
      }
    }
    return Status();
  }

  /// True for a reference to one variable.
  bool IsReference(ValueId value) const {
    if (!value.valid() || !tape_.IsVariable(value)) return false;
    const VariableUse& use = tape_.UseOf(value);
    return !use.is_resource && use.variable != nullptr;
  }

  /// Copies the values that other devices receive.
  Status EmitSends(NodeId id) {
    for (size_t i = 0; i < c_.node(id).types.size(); ++i) {
      const Endpoint output{id, static_cast<int>(i)};
      const auto found = input_.receivers.find(output);
      const ValueId value = c_.values[output];
      if (found == input_.receivers.end() || !value.valid() || tape_.IsVariable(value)) continue;
      if (tape_.StorageAt(value).home == Storage::Home::kConstant) continue;  // moved once, when the plan is built
      for (const int device : found->second) {
        WEIR_TRY(c_.Located(value, c_.SpaceOfDevice(DeviceId(device))).status());
      }
    }
    return Status();
  }

  Status EmitFetch(NodeId id, size_t fetch) {
    const Endpoint endpoint = c_.step.fetches[fetch];
    const StepNode& node = c_.node(id);
    const ValueId value = c_.values[endpoint];
    if (!value.valid()) return c_.Fail(id, Internal("fetch {} has no value", fetch));
    tape_.MakeFresh(value);
    const bool leaves = graph::FlowOf(node) == Flow::kExit;
    const FrameId frame = node.kind != StepNode::Kind::kOp ? graph::kStepFrame
                          : leaves                         ? c_.ParentFrame(node.frame)
                                                           : node.frame;
    if (frame != graph::kStepFrame) {
      return c_.Fail(id, InvalidArgument("Operation '{}' has been marked as not fetchable: it runs inside the loop "
                                         "'{}', fetch what leaves the loop instead",
                                         node.name(), c_.FrameName(frame)));
    }
    const GuardId guard = c_.guards.Of(c_.step, endpoint);
    c_.conditions.Ensure(guard);
    c_.conditions.Under(kAlways);
    Instruction& instruction = tape_.Emit(Opcode::kFetch, {value}, {});
    instruction.detail = static_cast<uint32_t>(fetch);
    instruction.memory = tape_.StorageAt(value).space;
    tape_.plan().fetch_guards[fetch] = guard;
    if (tape_.IsVariable(value)) tape_.SetLocks({{tape_.VariableOf(value), false}}, instruction);
    return Status();
  }

  /// Records the device of the node, or of the nodes that it replaces.
  void ReportPlaced(NodeId id) {
    ExecutionPlan& plan = tape_.plan();
    const DeviceId device = c_.PlacedOn(id);
    const std::string_view where = device.valid() ? plan.placement.devices[device.position()] : std::string_view();
    const auto add = [&](const graph::Node& of) { plan.placed_nodes.push_back({of.name(), of.op().name, where}); };
    const graph::Node& source = *c_.node(id).source;
    if (const auto made = stands_for_.find(&source); made != stands_for_.end()) {
      for (const graph::Node* original : *made->second) add(*original);
    } else {
      add(source);
    }
  }

  const DraftInput& input_;
  graph::Placement placement_;                                                       // nodes whose kernels decline move
  std::map<const graph::Node*, const std::vector<const graph::Node*>*> stands_for_;  // of fused nodes
  TapeBuilder tape_;
  EmitContext c_;
  VariableEmitter variables_;
  KernelEmitter kernels_;
  UniversalEmitter universal_;
  CondEmitter conds_;
  LoopEmitter loops_;
  StackEmitter stacks_;
  TransferEmitter transfers_;
  IndexedVector<NodeId, std::vector<size_t>> fetches_of_;
  std::vector<std::pair<NodeId, size_t>> fetched_last_;  // node, fetch
  IndexedVector<graph::NodeId, Range> instructions_of_;  // by step node
};

}  // namespace

Status EmitTape(const DraftInput& input, Draft& draft) {
  draft.plan = NewPlan(input, draft.guards.set.size());
  StepEmitter emitter(input, draft.guards, *draft.plan);
  WEIR_TRY(emitter.Run(draft.order));
  emitter.Finish(draft);
  return Status();
}

}  // namespace weir::plan
