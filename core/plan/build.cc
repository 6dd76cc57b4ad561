// Building a plan: one node after the other becomes instructions over values.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/builder_internal.h"
#include "core/plan/memory_internal.h"
#include "core/plan/order_internal.h"
#include "core/plan/plan.h"

namespace weir::plan {

using graph::Endpoint;
using graph::NodeId;
using graph::StepNode;

Builder::Builder(const PlanOptions& options, const graph::StepGraph& step, const graph::Placement& placement,
                 const Receivers& receivers, size_t feeds)
    : options_(options),
      step_(step),
      placement_(placement),
      receivers_(receivers),
      plan_(std::make_unique<ExecutionPlan>()) {
  for (const auto& device : options.devices->all()) {
    plan_->devices.push_back(device.get());
    if (plan_->host_device == nullptr && device->host_memory()) plan_->host_device = device.get();
  }
  plan_->placement = placement;
  for (const graph::MadeNode& made : step.made) {
    plan_->made_nodes.push_back(made.node);
    stands_for_[made.node.get()] = &made.stands_for;
  }
  plan_->fetch_count = step.fetches.size();
  plan_->fetch_guards.assign(step.fetches.size(), kAlways);
  plan_->feed_storages.assign(feeds, -1);
  value_of_.resize(step.nodes.size());
  for (size_t i = 0; i < step.nodes.size(); ++i) value_of_[i].assign(step.nodes[i].types.size(), -1);
  fetches_of_.resize(step.nodes.size());
  plan_->instructions.reserve(step.nodes.size());
  plan_->storages.reserve(step.nodes.size());
  plan_->values.reserve(step.nodes.size());
  plan_->placed_nodes.reserve(step.nodes.size());
  for (size_t i = 0; i < step.fetches.size(); ++i) {
    fetches_of_[static_cast<size_t>(step.fetches[i].node)].push_back(static_cast<int>(i));
  }
  node_instructions_.resize(step.nodes.size());
  merges_of_.resize(std::max<size_t>(step.frames.size(), 1));
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    const StepNode& node = step.nodes[i];
    const auto back = [&](const Endpoint& input) { return graph::IsBackEdge(step, node, input); };
    if (std::any_of(node.inputs.begin(), node.inputs.end(), back)) {
      merges_of_[static_cast<size_t>(node.frame)].push_back(static_cast<NodeId>(i));
    }
  }
}

Result<std::unique_ptr<ExecutionPlan>> Builder::Run() {
  guards_ = FindGuards(step_);
  WEIR_ASSIGN(const std::vector<TapeItem> items, Order(step_, guards_));
  for (const TapeItem& item : items) {
    if (item.kind == TapeItem::Kind::kLoopBegin) {
      WEIR_TRY(BeginLoop(item.id));
    } else if (item.kind == TapeItem::Kind::kLoopEnd) {
      WEIR_TRY(EndLoop(item.id));
    } else {
      current_ = item.id;
      Under(guards_.node[static_cast<size_t>(item.id)]);
      Range& emitted = node_instructions_[static_cast<size_t>(item.id)];
      emitted.begin = static_cast<uint32_t>(plan_->instructions.size());
      WEIR_TRY(EmitNode());
      emitted.end = static_cast<uint32_t>(plan_->instructions.size());
      if (graph::FlowOf(Current()) == graph::Flow::kExit) {
        open_loops_.back().exits.push_back(current_);  // its value is there once the loop is over
      } else {
        WEIR_TRY(HandOut());
      }
    }
  }
  plan_->guard_count = guards_.set.size();
  FetchSwapped();
  const std::vector<LoopWork> works = CutTasks(step_, node_instructions_, notes_, options_.parallelism, shape_, *plan_);
  for (size_t l = 0; l < works.size(); ++l) loops_[shape_.loops[l].frame] = works[l];
  WEIR_TRY(LayOutArena(shape_, *plan_));
  const std::vector<uint32_t> moved = FinishTape(shape_, *plan_);
  for (Task& task : plan_->tasks) {
    for (uint32_t* at : {&task.begin, &task.end, &task.body, &task.repeat}) *at = moved[*at];
  }
  Finish();
  return std::move(plan_);
}

Status Builder::HandOut() {
  WEIR_TRY(EmitSends());
  for (const int fetch : fetches_of_[static_cast<size_t>(current_)]) WEIR_TRY(EmitFetch(fetch));
  return Status();
}

void Builder::Finish() {
  plan_->storage_slots.resize(plan_->storages.size());
  plan_->slot_shapes.reserve(plan_->slots.size());
  for (size_t s = 0; s < plan_->slots.size(); ++s) {
    const Value& value = plan_->values[static_cast<size_t>(plan_->slots[s].value)];
    plan_->storage_slots[static_cast<size_t>(value.storage)].push_back(static_cast<uint32_t>(s));
    const auto rank = value.shape_known ? static_cast<uint32_t>(value.shape.rank()) : WEIR_UNKNOWN_RANK;
    plan_->slot_shapes.push_back({rank, 0, value.shape.dims().data()});
  }
  for (Instruction& move : plan_->instructions) {
    if (move.opcode != Opcode::kMove) continue;
    const Value& from = plan_->values[static_cast<size_t>(plan_->slots[move.first_slot].value)];
    const Value& to = plan_->values[static_cast<size_t>(plan_->slots[move.first_slot + 1].value)];
    const Storage& target = plan_->storages[static_cast<size_t>(to.storage)];
    const bool planned = target.home == Storage::Home::kArena || target.home == Storage::Home::kFresh;
    const bool pointed = !IsVariable(plan_->slots[move.first_slot].value) && from.shape_known && from.shape == to.shape;
    if (!planned || !pointed || target.space != kHostSpace || target.bytes > UINT32_MAX) continue;
    move.opcode = Opcode::kMoveBytes;
    move.detail = static_cast<uint32_t>(target.bytes);
  }
  for (size_t s = 0; s < plan_->storages.size(); ++s) {
    if (plan_->storages[s].home == Storage::Home::kFresh) plan_->fresh_storages.push_back(static_cast<int>(s));
  }
}

int Builder::SpaceOf(int device) const {
  return device < 0 || plan_->devices[static_cast<size_t>(device)]->host_memory() ? kHostSpace : device;
}

device::Device* Builder::DeviceOf(NodeId id) const {
  const int device = placement_.device_of[static_cast<size_t>(id)];
  return device < 0 ? plan_->host_device : plan_->devices[static_cast<size_t>(device)];
}

int Builder::AddStorage(Storage storage) {
  plan_->storages.push_back(std::move(storage));
  return static_cast<int>(plan_->storages.size()) - 1;
}

int Builder::AddValue(Value value) {
  plan_->values.push_back(std::move(value));
  return static_cast<int>(plan_->values.size()) - 1;
}

int Builder::NewValue(DType dtype, const PartialShape& shape, int space, Placing placing) {
  Value value;
  value.dtype = BaseType(dtype);
  if (Result<Shape> known = shape.ToShape(); known.ok()) {
    value.shape_known = true;
    value.shape = std::move(*known);
  }
  Storage storage;
  storage.space = space;
  const bool plain = HasFixedSize(value.dtype);  // strings are no bytes to lay out
  // What no memory holds is made while running: the step fails there, and only if it gets there.
  const Result<uint64_t> bytes = PayloadBytes(value.dtype, value.shape);
  const bool planned = placing == Placing::kPlanned && value.shape_known && plain && bytes.ok();
  storage.home = planned ? Storage::Home::kArena : Storage::Home::kOwned;
  storage.bytes = bytes.ok() ? *bytes : 0;
  value.storage = AddStorage(std::move(storage));
  return AddValue(std::move(value));
}

int Builder::ViewOf(int value, const PartialShape& shape) {
  Value view = plan_->values[static_cast<size_t>(value)];
  if (Result<Shape> known = shape.ToShape(); known.ok()) {
    view.shape_known = true;
    view.shape = std::move(*known);
  }
  return AddValue(std::move(view));
}

Instruction& Builder::Emit(Opcode opcode, const std::vector<int>& inputs, const std::vector<int>& outputs) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.node = NodeIndex();
  instruction.first_slot = static_cast<uint32_t>(plan_->slots.size());
  instruction.inputs = static_cast<uint32_t>(inputs.size());
  instruction.outputs = static_cast<uint16_t>(outputs.size());
  for (const int value : inputs) plan_->slots.push_back({value});
  for (const int value : outputs) plan_->slots.push_back({value});
  plan_->instructions.push_back(instruction);
  const bool inside = !open_loops_.empty() && open_loops_.back().base == guard_;  // the loop is skipped as a whole
  shape_.guards.push_back(inside ? kAlways : guard_);
  notes_.push_back({std::exchange(next_ns_, 0), std::exchange(next_blocks_, false)});
  return plan_->instructions.back();
}

NodeId Builder::NodeIndex() {
  const graph::Node* source = Current().source;
  if (plan_->nodes.empty() || plan_->nodes.back() != source) plan_->nodes.push_back(source);
  return static_cast<NodeId>(plan_->nodes.size()) - 1;
}

int& Builder::ValueAt(Endpoint e) { return value_of_[static_cast<size_t>(e.node)][static_cast<size_t>(e.index)]; }

bool Builder::IsVariable(int value) const {
  return plan_->storages[static_cast<size_t>(plan_->values[static_cast<size_t>(value)].storage)].home ==
         Storage::Home::kVariable;
}

int Builder::VariableOf(int value) const {
  return plan_->storages[static_cast<size_t>(plan_->values[static_cast<size_t>(value)].storage)].variable;
}

Result<int> Builder::Located(int value, int space) {
  const Value& from = plan_->values[static_cast<size_t>(value)];
  const Storage& storage = plan_->storages[static_cast<size_t>(from.storage)];
  if (storage.space == space || !HasFixedSize(from.dtype)) return value;
  const auto found = copies_.find({value, space});
  if (found != copies_.end() && guards_.set.Implies(guard_, found->second.guard)) return found->second.value;
  int copy = -1;
  if (storage.home == Storage::Home::kConstant && storage.space == kHostSpace) {
    WEIR_ASSIGN(Tensor moved, plan_->devices[static_cast<size_t>(space)]->FromHost(storage.constant));
    Storage constant;
    constant.home = Storage::Home::kConstant;
    constant.space = space;
    constant.constant = std::move(moved);
    Value view = from;
    view.storage = AddStorage(std::move(constant));
    copy = AddValue(std::move(view));
  } else {
    const PartialShape shape = from.shape_known ? PartialShape(from.shape) : PartialShape();
    copy = NewValue(from.dtype, shape, space, Placing::kPlanned);
    std::vector<Lock> locks;
    if (IsVariable(value)) locks.push_back({VariableOf(value), false});
    SetLocks(std::move(locks), Emit(Opcode::kCopy, {value}, {copy}));
  }
  // A variable may change between two reads, so its copies are not shared.
  if (!IsVariable(value)) copies_[{value, space}] = {copy, guard_};
  return copy;
}

void SortLocks(const std::vector<VariableUse>& variables, std::vector<Lock>& locks) {
  const auto address = [&](const Lock& lock) { return variables[static_cast<size_t>(lock.variable)].variable.get(); };
  std::sort(locks.begin(), locks.end(), [&](const Lock& a, const Lock& b) {
    return std::pair(address(a), !a.exclusive) < std::pair(address(b), !b.exclusive);
  });
  const auto again = [&](const Lock& a, const Lock& b) { return address(a) != nullptr && address(a) == address(b); };
  locks.erase(std::unique(locks.begin(), locks.end(), again), locks.end());
}

void Builder::SetLocks(std::vector<Lock> locks, Instruction& instruction) {
  SortLocks(plan_->variables, locks);
  instruction.locks_begin = static_cast<uint32_t>(plan_->locks.size());
  plan_->locks.insert(plan_->locks.end(), locks.begin(), locks.end());
  instruction.locks_end = static_cast<uint32_t>(plan_->locks.size());
}

Status Builder::EmitNode() {
  const StepNode& node = Current();
  if (node.types.size() > kMostOutputs) {
    return Fail(ResourceExhausted("{} outputs, at most {} are possible", node.types.size(), kMostOutputs));
  }
  if (node.kind == StepNode::Kind::kFeed) {
    const int value = NewValue(node.types[0], node.shapes[0], kHostSpace, Placing::kAtRun);
    Storage& made = plan_->storages[static_cast<size_t>(plan_->values[static_cast<size_t>(value)].storage)];
    made.home = Storage::Home::kFeed;
    made.feed = node.feed;
    plan_->feed_storages[static_cast<size_t>(node.feed)] = plan_->values[static_cast<size_t>(value)].storage;
    ValueAt({current_, 0}) = value;
    return Status();
  }
  if (node.kind == StepNode::Kind::kConstant) {
    for (size_t i = 0; i < node.values.size(); ++i)
      ValueAt({current_, static_cast<int>(i)}) = AddConstant(node.values[i]);
    return Status();
  }
  const int device = placement_.device_of[static_cast<size_t>(current_)];
  const std::string_view where =
      device < 0 ? std::string_view() : plan_->placement.devices[static_cast<size_t>(device)];
  const auto add = [&](const graph::Node& of) { plan_->placed_nodes.push_back({of.name(), of.op().name, where}); };
  if (const auto made = stands_for_.find(node.source); made != stands_for_.end()) {
    for (const graph::Node* original : *made->second) add(*original);
  } else {
    add(*node.source);
  }
  switch (node.source->op().run_by) {
    case op::RunBy::kExecutor:
      return EmitFlow(graph::FlowOf(node));
    case op::RunBy::kUniversal:
      return EmitUniversal();
    case op::RunBy::kBuiltin:
      return EmitCall({});
    case op::RunBy::kPlugin:
      return EmitKernel();
  }
  return Status();
}

Status Builder::EmitSends() {
  for (size_t i = 0; i < Current().types.size(); ++i) {
    const auto found = receivers_.find(Endpoint{current_, static_cast<int>(i)});
    const int value = value_of_[static_cast<size_t>(current_)][i];
    if (found == receivers_.end() || value < 0 || IsVariable(value)) continue;
    const Storage& storage = plan_->storages[static_cast<size_t>(plan_->values[static_cast<size_t>(value)].storage)];
    if (storage.home == Storage::Home::kConstant) continue;  // moved once, when the plan is built
    for (const int device : found->second) WEIR_TRY(Located(value, SpaceOf(device)).status());
  }
  return Status();
}

int Builder::AddConstant(const Tensor& tensor) {
  Storage storage;
  storage.home = Storage::Home::kConstant;
  storage.constant = tensor;
  Value value;
  value.dtype = tensor.dtype();
  value.shape_known = true;
  value.shape = tensor.shape();
  value.storage = AddStorage(std::move(storage));
  return AddValue(std::move(value));
}

Status Builder::EmitFetch(int fetch) {
  const int value = ValueAt(step_.fetches[static_cast<size_t>(fetch)]);
  if (value < 0) return Fail(Internal("fetch {} has no value", fetch));
  const Value& fetched = plan_->values[static_cast<size_t>(value)];
  Storage& storage = plan_->storages[static_cast<size_t>(fetched.storage)];
  if (storage.home == Storage::Home::kArena && storage.space == kHostSpace && storage.bytes > 0) {
    storage.home = Storage::Home::kFresh;
    storage.dtype = fetched.dtype;
    storage.shape = fetched.shape;
  }
  const Endpoint endpoint = step_.fetches[static_cast<size_t>(fetch)];
  const bool is_op = Current().kind == StepNode::Kind::kOp;
  const bool leaves = graph::FlowOf(Current()) == graph::Flow::kExit;
  const int frame = !is_op ? 0 : leaves ? step_.frames[static_cast<size_t>(Current().frame)].parent : Current().frame;
  if (frame != 0) {
    return Fail(
        InvalidArgument("Operation '{}' has been marked as not fetchable: it runs inside the loop '{}', fetch "
                        "what leaves the loop instead",
                        Current().name(), step_.frames[static_cast<size_t>(frame)].name));
  }
  const int guard = guards_.Of(step_, endpoint);
  Ensure(guard);
  Under(kAlways);
  Instruction& instruction = Emit(Opcode::kFetch, {value}, {});
  instruction.detail = static_cast<uint32_t>(fetch);
  plan_->fetch_guards[static_cast<size_t>(fetch)] = guard;
  if (IsVariable(value)) SetLocks({{VariableOf(value), false}}, instruction);
  return Status();
}

Status Builder::Fail(const Status& status) const { return graph::AtNode(status, *Current().source); }

}  // namespace weir::plan
