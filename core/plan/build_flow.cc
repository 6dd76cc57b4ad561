// v1 control flow on a tape: Switch sets guards, Merge chooses, a loop's variables are moved at its end and it jumps
// back.
#include <algorithm>
#include <string>
#include <utility>

#include "core/plan/builder_internal.h"

namespace weir::plan {

using graph::Endpoint;
using graph::Flow;
using graph::NodeId;
using graph::StepNode;

namespace {

/// Loop variables of at least so many bytes change places with what they become; smaller ones are copied.
constexpr uint64_t kWorthSwapping = 512;

}  // namespace

void Builder::Under(int guard) {
  Ensure(guard);
  guard_ = guard;
}

void Builder::Ensure(int guard) {
  if (ready_.size() < guards_.set.size()) ready_.resize(guards_.set.size(), false);
  if (guard == kAlways || ready_[static_cast<size_t>(guard)]) return;
  const auto [a, b] = guards_.set.Parts(guard);
  if (a < 0) return;  // the Switch that makes it comes first on the tape
  Ensure(a);
  Ensure(b);
  EmitGuard({GuardStep::Kind::kAnd, guard, 0, a, b}, {});
}

void Builder::EmitGuard(GuardStep step, const std::vector<int>& inputs, const std::vector<int>& outputs) {
  if (ready_.size() < guards_.set.size()) ready_.resize(guards_.set.size(), false);
  const int before = std::exchange(guard_, kAlways);
  Emit(Opcode::kGuard, inputs, outputs).detail = static_cast<uint32_t>(plan_->guard_steps.size());
  guard_ = before;
  plan_->guard_steps.push_back(step);
  ready_[static_cast<size_t>(step.to)] = true;
  ready_[static_cast<size_t>(step.otherwise)] = true;
}

void Builder::EmitMove(int from, int to) { Emit(Opcode::kMove, {from}, {to}); }

int Builder::AddJump(int guard) {
  plan_->jumps.push_back({guard, 0});
  return static_cast<int>(plan_->jumps.size()) - 1;
}

Status Builder::EmitFlow(Flow flow) {
  switch (flow) {
    case Flow::kTrigger:
      return Status();
    case Flow::kPlain: {  // NoOp, RefSelect and RefIdentity
      if (Current().types.empty()) return Status();
      if (Current().is_op("RefSelect")) return EmitSelect();
      WEIR_ASSIGN(ValueAt({current_, 0}), Forwarded());
      return Status();
    }
    case Flow::kSwitch:
      return EmitSwitch();
    case Flow::kMerge: {
      const std::vector<NodeId>& looping = merges_of_[static_cast<size_t>(Current().frame)];
      return std::binary_search(looping.begin(), looping.end(), current_) ? Status() : EmitMerge();
    }
    case Flow::kExit:
      return EmitExit();
    case Flow::kEnter:
    case Flow::kNextIteration:
    case Flow::kLoopCond: {
      WEIR_ASSIGN(ValueAt({current_, 0}), Forwarded());
      return Status();
    }
  }
  return Status();
}

Result<int> Builder::Forwarded() {
  const int value = ValueAt(Current().inputs[0]);
  if (value < 0) return Fail(Internal("input 0 has no value"));
  if (!IsVariable(value) || KeepsVariable(Current().types[0])) return value;
  WEIR_TRY(EmitRead(0));
  return ValueAt({current_, 0});
}

Result<int> Builder::HostInput(int input) {
  int value = ValueAt(Current().inputs[static_cast<size_t>(input)]);
  if (value < 0) return Fail(Internal("input {} has no value", input));
  if (IsVariable(value)) value = Snapshot(value, step_.ShapeOf(Current().inputs[static_cast<size_t>(input)]));
  return Located(value, kHostSpace);
}

Result<int> Builder::Predicate() {
  WEIR_ASSIGN(const int given, HostInput(1));
  const Value& value = plan_->values[static_cast<size_t>(given)];
  if (value.shape_known && value.shape.rank() == 0) return given;
  const int scalar = NewValue(DType::kBool, PartialShape(Shape()), kHostSpace, Placing::kAtRun);
  Emit(Opcode::kCopy, {given}, {scalar});  // which refuses any other shape
  return scalar;
}

Status Builder::EmitSwitch() {
  const StepNode& node = Current();
  WEIR_ASSIGN(const int value, Forwarded());
  ValueAt({current_, 0}) = ValueAt({current_, 1}) = value;
  WEIR_ASSIGN(const int predicate, Predicate());
  const Endpoint decides = PredicateOf(step_, node);
  const int yes = guards_.set.With(guard_, decides, true);
  const int no = guards_.set.With(guard_, decides, false);
  if (ready_.size() < guards_.set.size()) ready_.resize(guards_.set.size(), false);
  if (ready_[static_cast<size_t>(yes)] && ready_[static_cast<size_t>(no)]) return Status();
  EmitGuard({GuardStep::Kind::kPredicate, yes, no, guard_, 0}, {predicate});
  return Status();
}

Status Builder::EmitMerge() {
  const StepNode& node = Current();
  std::vector<int> inputs, guards;
  for (const Endpoint& input : node.inputs) {
    inputs.push_back(ValueAt(input));
    guards.push_back(guards_.Of(step_, input));
    if (inputs.back() < 0) return Fail(Internal("an input has no value"));
    if (!IsVariable(inputs.back()) || KeepsVariable(node.types[0])) continue;
    Under(guards.back());
    inputs.back() = Snapshot(inputs.back(), node.shapes[0]);
  }
  const bool same = std::all_of(inputs.begin(), inputs.end(), [&](int value) { return value == inputs[0]; });
  const bool refers = std::any_of(inputs.begin(), inputs.end(), [&](int value) { return IsVariable(value); });
  const int space = same ? kHostSpace : SpaceOf(placement_.device_of[static_cast<size_t>(current_)]);
  const int own = guards_.node[static_cast<size_t>(current_)];
  for (size_t i = 0; i < inputs.size() && !same && !refers; ++i) {
    Under(guards[i]);
    WEIR_ASSIGN(inputs[i], Located(inputs[i], space));
  }
  for (const int guard : guards) Ensure(guard);
  const bool fact =
      std::none_of(guards.begin(), guards.end(), [&](int guard) { return guards_.set.Implies(guard, own); });
  if (fact) {
    EmitGuard({GuardStep::Kind::kClear, own, 0, 0, 0}, {});
    for (const int guard : guards) EmitGuard({GuardStep::Kind::kOr, own, 0, own, guard}, {});
  }
  Under(own);
  std::vector<int> outputs;
  if (same) {
    ValueAt({current_, 0}) = inputs[0];
    inputs.clear();
  } else if (refers) {
    WEIR_ASSIGN(const int place, PlaceFor(inputs));
    outputs.push_back(place);
    ValueAt({current_, 0}) = place;
  } else {
    Value merged = plan_->values[static_cast<size_t>(inputs[0])];
    Storage storage;
    storage.home = Storage::Home::kBound;
    storage.space = space;
    for (const int input : inputs) {
      const Value& value = plan_->values[static_cast<size_t>(input)];
      merged.shape_known = merged.shape_known && value.shape_known && value.shape == merged.shape;
      storage.sources.push_back(value.storage);
    }
    merged.storage = AddStorage(std::move(storage));
    outputs.push_back(AddValue(std::move(merged)));
    ValueAt({current_, 0}) = outputs[0];
  }
  if (node.types.size() > 1) {
    outputs.push_back(NewValue(DType::kInt32, PartialShape(Shape()), kHostSpace, Placing::kPlanned));
    ValueAt({current_, 1}) = outputs.back();
  }
  Emit(Opcode::kMerge, inputs, outputs).detail = static_cast<uint32_t>(plan_->merges.size());
  plan_->merges.push_back(std::move(guards));
  return Status();
}

Status Builder::EmitExit() {
  WEIR_ASSIGN(const int value, Forwarded());
  const bool structured = guards_.structured[static_cast<size_t>(Current().frame)];
  const int made = ValueAt({current_, 0});  // when the loop began
  if (structured || (IsVariable(value) && !IsPlace(value))) {
    ValueAt({current_, 0}) = value;
  } else if (IsVariable(value) == IsVariable(made)) {
    EmitMove(value, made);
  } else {
    return NotAlwaysVariable();
  }
  if (!structured) {
    const int left = guards_.exit[static_cast<size_t>(current_)];
    EmitGuard({GuardStep::Kind::kOr, left, 0, left, guard_}, {});
  }
  return Status();
}

Status Builder::BeginLoop(int frame) {
  const auto f = static_cast<size_t>(frame);
  const int base = guards_.base[f];
  Under(base);
  if (!guards_.structured[f]) {
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const StepNode& node = step_.nodes[i];
      if (node.frame != frame || graph::FlowOf(node) != Flow::kExit) continue;
      current_ = static_cast<NodeId>(i);
      WEIR_ASSIGN(int left, PlaceFor(Endpoint{current_, 0}));
      if (left < 0) left = NewValue(node.types[0], node.shapes[0], SpaceOf(placement_.device_of[i]), Placing::kPlanned);
      ValueAt({current_, 0}) = left;
      const std::vector<int> touched = IsVariable(left) ? std::vector<int>() : std::vector<int>{left};
      EmitGuard({GuardStep::Kind::kClear, guards_.exit[i], 0, 0, 0}, {}, touched);
    }
  }
  OpenLoop loop;
  loop.base = base;
  loop.ready = ready_;
  if (base != kAlways && !merges_of_[f].empty()) {
    current_ = merges_of_[f][0];
    loop.skip = AddJump(base);
    const int before = std::exchange(guard_, kAlways);
    Emit(Opcode::kSkip, {}, {}).detail = static_cast<uint32_t>(loop.skip);
    guard_ = before;
  } else {
    loop.base = kAlways;
  }
  open_loops_.push_back(std::move(loop));
  for (const NodeId merge : merges_of_[f]) WEIR_TRY(EnterVariable(merge));
  open_loops_.back().first = static_cast<uint32_t>(plan_->instructions.size());
  open_loops_.back().first_storage = static_cast<int>(plan_->storages.size());
  return Status();
}

Status Builder::EnterVariable(NodeId merge) {
  current_ = merge;
  const StepNode& node = Current();
  const bool structured = guards_.structured[static_cast<size_t>(node.frame)];
  const int alive = guards_.node[static_cast<size_t>(merge)];
  int& variable = ValueAt({merge, 0});
  bool entered = false;
  for (size_t i = node.inputs.size(); i-- > 0;) {  // of several that are alive the first one stays
    if (graph::IsBackEdge(step_, node, node.inputs[i])) continue;
    int entering = ValueAt(node.inputs[i]);
    if (entering < 0) return Fail(Internal("a loop variable has no value"));
    const int guard = guards_.Of(step_, node.inputs[i]);
    Ensure(guard);
    if (!structured && entered) {
      EmitGuard({GuardStep::Kind::kOr, alive, 0, alive, guard}, {});
    } else if (!structured) {
      EmitGuard({GuardStep::Kind::kCopy, alive, 0, guard, 0}, {});
    }
    Under(guard);
    if (IsVariable(entering) && !KeepsVariable(node.types[0])) entering = Snapshot(entering, node.shapes[0]);
    if (!entered) {
      WEIR_ASSIGN(variable, LoopVariable(entering));
    }
    if (IsVariable(entering) != IsVariable(variable)) return NotAlwaysVariable();
    if (!IsVariable(variable)) {
      const int space = plan_->storages[static_cast<size_t>(StorageOf(variable))].space;
      WEIR_ASSIGN(entering, Located(entering, HasFixedSize(BaseType(node.types[0])) ? space : kHostSpace));
    }
    if (StorageOf(entering) != StorageOf(variable)) EmitMove(entering, variable);
    if (node.types.size() > 1) {
      int& index = ValueAt({merge, 1});
      if (!entered) index = NewValue(DType::kInt32, PartialShape(Shape()), kHostSpace, Placing::kPlanned);
      EmitMove(AddConstant(Tensor::Scalar<int32_t>(static_cast<int32_t>(i))), index);
    }
    entered = true;
  }
  return Status();
}

Result<int> Builder::LoopVariable(int entering) {
  const StepNode& node = Current();
  if (!IsVariable(entering)) {
    const int space = SpaceOf(placement_.device_of[static_cast<size_t>(current_)]);
    return NewValue(node.types[0], node.shapes[0], space, Placing::kPlanned);
  }
  return PlaceFor(Endpoint{current_, 0});
}

Status Builder::CarryBack(size_t input, std::vector<Carried>* moves) {
  const StepNode& node = Current();
  const int to = ValueAt({current_, 0});
  int from = ValueAt(node.inputs[input]);
  if (from < 0) return Fail(Internal("a loop variable gets no value back"));
  if (node.types.size() > 1) {
    const int position = AddConstant(Tensor::Scalar<int32_t>(static_cast<int32_t>(input)));
    moves->push_back({position, ValueAt({current_, 1}), guard_, current_, false, false});
  }
  if (IsVariable(from) && !KeepsVariable(node.types[0])) from = Snapshot(from, node.shapes[0]);
  if (StorageOf(from) == StorageOf(to)) return Status();
  if (IsVariable(from) != IsVariable(to)) return NotAlwaysVariable();
  if (!IsVariable(to)) {
    WEIR_ASSIGN(from, Located(from, plan_->storages[static_cast<size_t>(StorageOf(to))].space));
  }
  moves->push_back({from, to, guard_, current_, false, false});
  return Status();
}

int Builder::EitherReturns(const std::vector<int>& alive, NodeId merge) {
  if (alive.size() == 1) return alive[0];
  const auto first = static_cast<NodeId>(2 * step_.nodes.size() + step_.frames.size());
  const int either = guards_.set.Fact(first + merge);
  EmitGuard({GuardStep::Kind::kClear, either, 0, 0, 0}, {});
  for (const int guard : alive) EmitGuard({GuardStep::Kind::kOr, either, 0, either, guard}, {});
  return either;
}

Status Builder::CarryVariables(int frame, std::vector<int>* go_on) {
  std::vector<Carried> moves;
  for (const NodeId merge : merges_of_[static_cast<size_t>(frame)]) {
    current_ = merge;
    std::vector<int> alive;
    for (size_t i = Current().inputs.size(); i-- > 0;) {  // of several that are alive the first one stays
      if (!graph::IsBackEdge(step_, Current(), Current().inputs[i])) continue;
      Under(guards_.Of(step_, Current().inputs[i]));
      alive.push_back(guard_);
      WEIR_TRY(CarryBack(i, &moves));
    }
    go_on->push_back(EitherReturns(alive, merge));
  }
  if (guards_.structured[static_cast<size_t>(frame)]) FindSwaps(&moves);
  for (Carried& move : moves) {
    const int from = StorageOf(move.from), to = StorageOf(move.to);
    const Storage& given = plan_->storages[static_cast<size_t>(from)];
    const bool bound = given.home == Storage::Home::kBound;
    const auto overwrites = [&](const Carried& other) { return StorageOf(other.to) == from; };
    const auto takes_place = [&](const Carried& other) { return other.swaps && StorageOf(other.from) == to; };
    const bool shared = bound || std::any_of(moves.begin(), moves.end(), overwrites) ||
                        std::any_of(moves.begin(), moves.end(), takes_place);
    if (move.swaps || !shared) continue;
    current_ = move.merge;
    WEIR_ASSIGN(const int kept, RoomFor(move.from));
    Under(move.guard);
    EmitMove(move.from, kept);
    move.from = kept;
    move.swaps = move.may_swap;
  }
  for (const Carried& move : moves) {
    if (move.swaps) continue;
    current_ = move.merge;
    Under(move.guard);
    EmitMove(move.from, move.to);
  }
  EmitSwaps(moves);
  return Status();
}

void Builder::FindSwaps(std::vector<Carried>* moves) {
  std::map<int, int> users;                 // storage -> moves that would take its place
  std::map<int, const Carried*> variables;  // storage of a loop variable -> its move
  for (Carried& move : *moves) {
    const Value& from = plan_->values[static_cast<size_t>(move.from)];
    const Value& to = plan_->values[static_cast<size_t>(move.to)];
    const Storage& given = plan_->storages[static_cast<size_t>(from.storage)];
    const Storage& target = plan_->storages[static_cast<size_t>(to.storage)];
    const bool alike = target.home == Storage::Home::kArena && from.shape_known && from.shape == to.shape;
    variables[to.storage] = &move;
    move.may_swap = alike && target.bytes >= kWorthSwapping && move.guard == moves->front().guard;
    move.swaps = move.may_swap && given.home == Storage::Home::kArena && given.bytes == target.bytes &&
                 given.space == target.space && ++users[from.storage] == 1;
  }
  const int first_made_here = open_loops_.back().first_storage;
  for (Carried& move : *moves) {  // a variable gives its place away only when it gets another one
    const int from = StorageOf(move.from);
    const auto variable = variables.find(from);
    move.swaps = move.swaps && (variable == variables.end() ? from >= first_made_here : variable->second->may_swap);
  }
}

void Builder::EmitSwaps(const std::vector<Carried>& moves) {
  std::map<int, int> at, was;  // by storage, as values: where its content is now; whose content it has now
  for (const Carried& move : moves) {
    if (!move.swaps) continue;
    const int from = at.try_emplace(StorageOf(move.from), move.from).first->second;
    if (StorageOf(from) == StorageOf(move.to)) continue;
    current_ = move.merge;
    Under(move.guard);
    Emit(Opcode::kSwap, {}, {from, move.to});
    const int lost = was.try_emplace(StorageOf(move.to), move.to).first->second;
    at[StorageOf(lost)] = from;
    was[StorageOf(from)] = lost;
    at[StorageOf(move.from)] = move.to;
    was[StorageOf(move.to)] = move.from;
  }
}

void Builder::FetchSwapped() {
  std::vector<uint32_t> swaps;
  for (const Instruction& instruction : plan_->instructions) {
    if (instruction.opcode == Opcode::kSwap) swaps.push_back(instruction.first_slot);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t slot : swaps) {
      Storage& one = plan_->storages[static_cast<size_t>(StorageOf(plan_->slots[slot].value))];
      Storage& other = plan_->storages[static_cast<size_t>(StorageOf(plan_->slots[slot + 1].value))];
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

void Builder::CarryGuards(int frame, std::vector<int> go_on, int again) {
  const std::vector<NodeId>& merges = merges_of_[static_cast<size_t>(frame)];
  const auto alive = [&](size_t m) { return guards_.node[static_cast<size_t>(merges[m])]; };
  EmitGuard({GuardStep::Kind::kClear, again, 0, 0, 0}, {});
  for (const int guard : go_on) EmitGuard({GuardStep::Kind::kOr, again, 0, again, guard}, {});
  const auto first_kept = static_cast<NodeId>(step_.nodes.size() + step_.frames.size());
  for (size_t m = 0; m < go_on.size(); ++m) {
    bool overwritten = false;
    for (size_t other = 0; other < m; ++other) overwritten = overwritten || go_on[m] == alive(other);
    if (!overwritten) continue;
    const int kept = guards_.set.Fact(first_kept + merges[m]);
    EmitGuard({GuardStep::Kind::kCopy, kept, 0, go_on[m], 0}, {});
    go_on[m] = kept;
  }
  for (size_t m = 0; m < go_on.size(); ++m) EmitGuard({GuardStep::Kind::kCopy, alive(m), 0, go_on[m], 0}, {});
}

Status Builder::EndLoop(int frame) {
  const auto f = static_cast<size_t>(frame);
  std::vector<int> go_on;
  WEIR_TRY(CarryVariables(frame, &go_on));
  const OpenLoop loop = std::move(open_loops_.back());
  open_loops_.pop_back();
  if (!go_on.empty()) {
    int again = go_on[0];
    if (!guards_.structured[f]) {
      again = guards_.set.Fact(static_cast<NodeId>(step_.nodes.size()) + frame);
      CarryGuards(frame, go_on, again);
    }
    const int jump = AddJump(again);
    plan_->jumps[static_cast<size_t>(jump)].target = loop.first;
    guard_ = kAlways;
    plan_->has_loops = true;
    shape_.loops.push_back({loop.first, static_cast<uint32_t>(plan_->instructions.size()), frame});
    Emit(Opcode::kRepeat, {}, {}).detail = static_cast<uint32_t>(jump);
  }
  if (loop.skip >= 0) {
    plan_->jumps[static_cast<size_t>(loop.skip)].target = static_cast<uint32_t>(plan_->instructions.size());
  }
  const size_t known = loop.ready.size();
  for (size_t g = 0; g < ready_.size(); ++g) ready_[g] = g < known && loop.ready[g];
  for (size_t i = 0; i < step_.nodes.size() && !guards_.structured[f]; ++i) {
    const bool exit = step_.nodes[i].frame == frame && graph::FlowOf(step_.nodes[i]) == Flow::kExit;
    if (exit) ready_[static_cast<size_t>(guards_.exit[i])] = true;
  }
  for (const NodeId exit : loop.exits) {
    current_ = exit;
    Under(guards_.exit[static_cast<size_t>(exit)]);
    WEIR_TRY(HandOut());
  }
  return Status();
}

}  // namespace weir::plan
