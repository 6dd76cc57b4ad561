// Loops of v1 control flow on a tape: their variables are moved at the end of an iteration, and the tape jumps back.
#include <algorithm>
#include <map>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/plan/emitters_internal.h"

namespace weir::plan {

using graph::Endpoint;
using graph::Flow;
using graph::NodeId;
using graph::StepNode;

namespace {

/// Loop variables of at least so many bytes exchange storages with their next values; smaller ones are copied.
constexpr uint64_t kWorthSwapping = 512;

}  // namespace

LoopEmitter::LoopEmitter(EmitContext& context, VariableEmitter& variables)
    : c_(context), tape_(context.tape), variables_(variables) {
  const graph::StepGraph& step = c_.step;
  merges_of_.resize(step.frame_count());
  counted_.resize(merges_of_.size(), false);
  iterations_.resize(merges_of_.size());
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const StepNode& node = step.nodes[i];
    const Flow flow = graph::FlowOf(node);
    if (flow == Flow::kSend || flow == Flow::kRecv) {
      for (FrameId frame = node.frame; frame > graph::kStepFrame; frame = c_.ParentFrame(frame)) counted_[frame] = true;
    }
    const auto back = [&](const Endpoint& input) { return graph::IsBackEdge(step, node, input); };
    if (std::ranges::any_of(node.inputs, back)) {
      merges_of_[node.frame].push_back(static_cast<NodeId>(i));
    }
  }
}

bool LoopEmitter::IsLoopVariable(NodeId merge) const {
  const std::vector<NodeId>& merges = MergesOf(c_.node(merge).frame);
  return std::binary_search(merges.begin(), merges.end(), merge);
}

std::vector<ValueId> LoopEmitter::Iterations(NodeId id) const {
  std::vector<ValueId> iterations;
  for (FrameId frame = c_.node(id).frame; frame > graph::kStepFrame; frame = c_.ParentFrame(frame)) {
    iterations.push_back(iterations_[frame]);
  }
  std::reverse(iterations.begin(), iterations.end());
  return iterations;
}

Status LoopEmitter::NotAlwaysVariable(NodeId id) const {
  return c_.Fail(id, Unimplemented("a variable of loop '{}' refers to a variable in some iterations only, wanted all "
                                   "or none",
                                   c_.FrameName(c_.node(id).frame)));
}

Status LoopEmitter::EmitExit(NodeId id) {
  WEIR_ASSIGN(const ValueId value, variables_.Forwarded(id));
  const StepNode& node = c_.node(id);
  const bool structured = Structured(node.frame);
  ValueId& left = c_.values[{id, 0}];  // of an unstructured loop: a place that Begin made
  const bool handle = !structured && node.types[0] == DType::kResource && !tape_.IsVariable(left);
  if (structured || (tape_.IsVariable(value) && !tape_.IsPlace(value) && !handle)) {
    left = value;
  } else if (handle) {
    tape_.Emit(Opcode::kMove, {variables_.HandleValue(value)}, {left});
  } else if (tape_.IsVariable(value) == tape_.IsVariable(left)) {
    tape_.Emit(Opcode::kMove, {value}, {left});
  } else {
    return NotAlwaysVariable(id);
  }
  if (!structured) c_.conditions.Or(c_.guards.outcome[id], tape_.guard());
  return Status();
}

Status LoopEmitter::BeginExits(FrameId frame) {
  for (const NodeId id : c_.guards.outcome.indices()) {
    const StepNode& node = c_.node(id);
    if (node.frame != frame || graph::FlowOf(node) != Flow::kExit) continue;
    c_.Begin(id);
    WEIR_ASSIGN(ValueId left, variables_.CellFor(id, Endpoint{id, 0}));
    if (!left.valid()) left = tape_.NewValue(node.types[0], node.shapes[0], c_.SpaceOf(id), Placing::kPlanned);
    c_.values[{id, 0}] = left;
    const bool refers = tape_.IsVariable(left);
    c_.conditions.Clear(c_.guards.outcome[id], std::span<const ValueId>(&left, refers ? 0 : 1));
  }
  return Status();
}

Status LoopEmitter::Begin(FrameId frame) {
  const GuardId base = c_.guards.base[frame];
  c_.conditions.Under(base);
  if (!Structured(frame)) WEIR_TRY(BeginExits(frame));
  OpenLoop loop;
  loop.sets = c_.conditions.Sets();
  const bool skipped = base != kAlways && !MergesOf(frame).empty();
  if (skipped) {
    c_.Begin(MergesOf(frame)[0]);
    loop.skip = tape_.AddJump(base);
    const GuardId before = tape_.guard();
    tape_.SetGuard(kAlways);
    tape_.Emit(Opcode::kSkip, {}, {}).detail = *loop.skip;
    tape_.SetGuard(before);
  }
  open_.push_back(std::move(loop));
  tape_.OpenLoop(skipped ? base : kAlways);
  for (const NodeId merge : MergesOf(frame)) WEIR_TRY(Enter(merge));
  BeginCount(frame);
  open_.back().first = tape_.position();
  open_.back().first_storage = tape_.plan().storages.end_index();
  return Status();
}

Result<ValueId> LoopEmitter::EnteringValue(NodeId merge, size_t input) {
  const StepNode& node = c_.node(merge);
  WEIR_ASSIGN(ValueId entering, c_.Input(merge, input));
  if (tape_.IsVariable(entering) && !KeepsVariable(node.types[0])) {
    entering = variables_.Snapshot(entering, node.shapes[0]);
  }
  if (tape_.IsVariable(entering) && node.types[0] == DType::kResource) {
    WEIR_ASSIGN(const bool stays, variables_.StaysVariable({merge, 0}));
    if (!stays) entering = variables_.HandleValue(entering);
  }
  return entering;
}

Status LoopEmitter::Enter(NodeId merge) {
  const StepNode& node = c_.Begin(merge);
  const GuardId alive = c_.guards.node[merge];
  ValueId& variable = c_.values[{merge, 0}];
  bool entered = false;
  for (size_t i = node.inputs.size(); i-- > 0;) {  // of several that are live the first one stays
    if (graph::IsBackEdge(c_.step, node, node.inputs[i])) continue;
    WEIR_TRY(c_.Input(merge, i).status());
    const GuardId guard = c_.guards.Of(c_.step, node.inputs[i]);
    c_.conditions.Ensure(guard);
    if (!Structured(node.frame)) entered ? c_.conditions.Or(alive, guard) : c_.conditions.Copy(alive, guard);
    c_.conditions.Under(guard);
    WEIR_ASSIGN(ValueId entering, EnteringValue(merge, i));
    if (!entered) {
      WEIR_ASSIGN(variable, LoopVariable(merge, entering));
    }
    if (tape_.IsVariable(entering) != tape_.IsVariable(variable)) return NotAlwaysVariable(merge);
    if (!tape_.IsVariable(variable)) {
      const SpaceId space = HasFixedSize(BaseType(node.types[0])) ? tape_.StorageAt(variable).space : kHostSpace;
      WEIR_ASSIGN(entering, c_.Located(entering, space));
    }
    if (tape_.StorageOf(entering) != tape_.StorageOf(variable)) tape_.Emit(Opcode::kMove, {entering}, {variable});
    if (c_.ReadsIndex(merge)) {
      ValueId& index = c_.values[{merge, 1}];
      if (!entered) index = tape_.NewScalar(DType::kInt32, Placing::kPlanned);
      tape_.Emit(Opcode::kMove, {tape_.AddConstant(Tensor::Scalar<int32_t>(static_cast<int32_t>(i)))}, {index});
    }
    entered = true;
  }
  return Status();
}

Result<ValueId> LoopEmitter::LoopVariable(NodeId merge, ValueId entering) {
  const StepNode& node = c_.node(merge);
  if (tape_.IsVariable(entering)) return variables_.CellFor(merge, Endpoint{merge, 0});
  return tape_.NewValue(node.types[0], node.shapes[0], c_.SpaceOf(merge), Placing::kPlanned);
}

Status LoopEmitter::CarryBack(NodeId merge, size_t input, std::vector<Carried>* moves) {
  const StepNode& node = c_.node(merge);
  const ValueId to = c_.values[{merge, 0}];
  WEIR_ASSIGN(ValueId from, c_.Input(merge, input));
  const GuardId guard = tape_.guard();
  if (c_.ReadsIndex(merge)) {
    const ValueId position = tape_.AddConstant(Tensor::Scalar<int32_t>(static_cast<int32_t>(input)));
    moves->push_back({position, c_.values[{merge, 1}], guard, merge, false, false});
  }
  if (tape_.IsVariable(from) && !KeepsVariable(node.types[0])) from = variables_.Snapshot(from, node.shapes[0]);
  if (!tape_.IsVariable(to) && node.types[0] == DType::kResource) from = variables_.HandleValue(from);
  if (tape_.StorageOf(from) == tape_.StorageOf(to)) return Status();
  if (tape_.IsVariable(from) != tape_.IsVariable(to)) return NotAlwaysVariable(merge);
  if (!tape_.IsVariable(to)) {
    WEIR_ASSIGN(from, c_.Located(from, tape_.StorageAt(to).space));
  }
  moves->push_back({from, to, guard, merge, false, false});
  return Status();
}

GuardId LoopEmitter::EitherReturns(std::span<const GuardId> alive, NodeId merge) {
  if (alive.size() == 1) return alive[0];
  const GuardId either = c_.guards.set.Of({RunCondition::Kind::kReturns, merge});
  c_.conditions.Clear(either);
  for (const GuardId guard : alive) c_.conditions.Or(either, guard);
  return either;
}

Status LoopEmitter::SaveOverwritten(std::vector<Carried>* moves) {
  for (Carried& move : *moves) {
    const StorageId from = tape_.StorageOf(move.from), to = tape_.StorageOf(move.to);
    const auto overwrites = [&](const Carried& other) { return tape_.StorageOf(other.to) == from; };
    const auto takes_place = [&](const Carried& other) { return other.swaps && tape_.StorageOf(other.from) == to; };
    const bool lost = tape_.StorageAt(move.from).home == Storage::Home::kBound ||
                      std::ranges::any_of(*moves, overwrites) || std::ranges::any_of(*moves, takes_place);
    if (move.swaps || !lost) continue;
    c_.Begin(move.merge);
    WEIR_ASSIGN(const ValueId kept, variables_.RoomFor(move.merge, move.from));
    c_.conditions.Under(move.guard);
    tape_.Emit(Opcode::kMove, {move.from}, {kept});
    move.from = kept;
    move.swaps = move.may_swap;
  }
  return Status();
}

Status LoopEmitter::CarryVariables(FrameId frame, std::vector<GuardId>* returns) {
  std::vector<Carried> moves;
  for (const NodeId merge : MergesOf(frame)) {
    const StepNode& node = c_.Begin(merge);
    std::vector<GuardId> alive;
    for (size_t i = node.inputs.size(); i-- > 0;) {  // of several that are live the first one stays
      if (!graph::IsBackEdge(c_.step, node, node.inputs[i])) continue;
      c_.conditions.Under(c_.guards.Of(c_.step, node.inputs[i]));
      alive.push_back(tape_.guard());
      WEIR_TRY(CarryBack(merge, i, &moves));
    }
    returns->push_back(EitherReturns(alive, merge));
  }
  if (Structured(frame)) FindSwaps(&moves);
  WEIR_TRY(SaveOverwritten(&moves));
  for (const Carried& move : moves) {
    if (move.swaps) continue;
    c_.Begin(move.merge);
    c_.conditions.Under(move.guard);
    tape_.Emit(Opcode::kMove, {move.from}, {move.to});
  }
  EmitSwaps(moves);
  return Status();
}

void LoopEmitter::FindSwaps(std::vector<Carried>* moves) {
  std::map<StorageId, int> users;                 // moves that would take its place
  std::map<StorageId, const Carried*> variables;  // by storage of a loop variable: its move
  for (Carried& move : *moves) {
    const Value& from = tape_.ValueAt(move.from);
    const Value& to = tape_.ValueAt(move.to);
    const Storage& given = tape_.StorageAt(move.from);
    const Storage& target = tape_.StorageAt(move.to);
    const bool alike = target.home == Storage::Home::kArena && from.shape_known && from.shape == to.shape;
    variables[to.storage] = &move;
    move.may_swap = alike && target.bytes >= kWorthSwapping && move.guard == moves->front().guard;
    move.swaps = move.may_swap && given.home == Storage::Home::kArena && given.bytes == target.bytes &&
                 given.space == target.space && ++users[from.storage] == 1;
  }
  const StorageId first_made_here = open_.back().first_storage;
  for (Carried& move : *moves) {  // a variable gives its place away only when it gets another one
    const StorageId from = tape_.StorageOf(move.from);
    const auto variable = variables.find(from);
    move.swaps = move.swaps && (variable == variables.end() ? from >= first_made_here : variable->second->may_swap);
  }
}

void LoopEmitter::EmitSwaps(std::span<const Carried> moves) {
  std::map<StorageId, ValueId> at, was;  // by storage: where its content is now; whose content it has now
  for (const Carried& move : moves) {
    if (!move.swaps) continue;
    const StorageId source = tape_.StorageOf(move.from), target = tape_.StorageOf(move.to);
    const ValueId from = at.try_emplace(source, move.from).first->second;
    if (tape_.StorageOf(from) == target) continue;
    c_.Begin(move.merge);
    c_.conditions.Under(move.guard);
    tape_.Emit(Opcode::kSwap, {}, {from, move.to});
    const ValueId lost = was.try_emplace(target, move.to).first->second;
    at[tape_.StorageOf(lost)] = from;
    was[tape_.StorageOf(from)] = lost;
    at[source] = move.to;
    was[target] = move.from;
  }
}

void LoopEmitter::CarryGuards(FrameId frame, std::vector<GuardId> returns, GuardId again) {
  const std::vector<NodeId>& merges = MergesOf(frame);
  const auto alive = [&](size_t m) { return c_.guards.node[merges[m]]; };
  c_.conditions.Clear(again);
  for (const GuardId guard : returns) c_.conditions.Or(again, guard);
  for (size_t m = 0; m < returns.size(); ++m) {
    bool overwritten = false;
    for (size_t other = 0; other < m; ++other) overwritten = overwritten || returns[m] == alive(other);
    if (!overwritten) continue;
    const GuardId kept = c_.guards.set.Of({RunCondition::Kind::kKept, merges[m]});
    c_.conditions.Copy(kept, returns[m]);
    returns[m] = kept;
  }
  for (size_t m = 0; m < returns.size(); ++m) c_.conditions.Copy(alive(m), returns[m]);
}

void LoopEmitter::BeginCount(FrameId frame) {
  if (!counted_[frame] || MergesOf(frame).empty()) return;
  c_.Begin(MergesOf(frame)[0]);
  c_.conditions.Under(c_.guards.base[frame]);
  iterations_[frame] = tape_.NewScalar(DType::kInt64, Placing::kPlanned);
  tape_.Emit(Opcode::kMove, {tape_.AddConstant(Tensor::Scalar<int64_t>(0))}, {iterations_[frame]});
}

void LoopEmitter::Count(FrameId frame) {
  const ValueId counter = iterations_[frame];
  if (!counter.valid()) return;
  c_.conditions.Under(kAlways);
  tape_.Emit(Opcode::kCount, {counter}, {counter});
}

Status LoopEmitter::End(FrameId frame) {
  std::vector<GuardId> returns;
  WEIR_TRY(CarryVariables(frame, &returns));
  OpenLoop loop = std::move(open_.back());
  open_.pop_back();
  tape_.CloseLoop();
  if (!returns.empty()) {
    Count(frame);
    GuardId again = returns[0];
    if (!Structured(frame)) {
      again = c_.guards.set.Of({RunCondition::Kind::kIterates, frame.number()});
      CarryGuards(frame, returns, again);
    }
    tape_.SetGuard(kAlways);
    tape_.plan().has_loops = true;
    tape_.AddLoop(loop.first, frame);
    const uint32_t jump = tape_.AddJump(again, loop.first);
    tape_.Emit(Opcode::kRepeat, {}, {}).detail = jump;
  }
  if (loop.skip) tape_.SetTarget(*loop.skip, tape_.position());
  c_.conditions.Restore(loop.sets);
  exits_ = std::move(loop.exits);
  if (Structured(frame)) return Status();
  for (const NodeId id : c_.guards.outcome.indices()) {
    const bool exit = c_.node(id).frame == frame && graph::FlowOf(c_.node(id)) == Flow::kExit;
    if (exit) c_.conditions.MarkSet(c_.guards.outcome[id]);
  }
  return Status();
}

void LoopEmitter::MatchSwapped() {
  std::vector<uint32_t> swaps;
  for (const Instruction& instruction : tape_.plan().instructions) {
    if (instruction.opcode == Opcode::kSwap) swaps.push_back(instruction.first_slot);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t slot : swaps) {
      Storage& one = tape_.StorageAt(tape_.plan().slots[slot].value);
      Storage& other = tape_.StorageAt(tape_.plan().slots[slot + 1].value);
      if (one.home == other.home) continue;
      changed = true;
      Storage& left = one.home == Storage::Home::kFresh ? other : one;
      const Storage& fetched = one.home == Storage::Home::kFresh ? one : other;
      left.home = fetched.home;
      left.dtype = fetched.dtype;
      left.shape = fetched.shape;
    }
  }
}

}  // namespace weir::plan
