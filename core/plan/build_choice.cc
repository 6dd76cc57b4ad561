// References that are chosen while running: a place stands for whichever variable was put there last.
#include <algorithm>
#include <set>
#include <utility>

#include "core/plan/builder_internal.h"

namespace weir::plan {
namespace {

using graph::Endpoint;
using graph::Flow;
using graph::NodeId;
using graph::StepGraph;
using graph::StepNode;

/// The nodes that name the variables which may come to `reference`.
std::set<NodeId> VariablesBehind(const StepGraph& step, Endpoint reference) {
  std::set<NodeId> variables;
  std::set<Endpoint> seen;
  std::vector<Endpoint> open = {reference};
  while (!open.empty()) {
    const Endpoint at = open.back();
    open.pop_back();
    const StepNode& node = step.node(at.node);
    if (!KeepsVariable(step.TypeOf(at)) || !seen.insert(at).second) continue;
    if (NamesVariable(node)) {
      variables.insert(at.node);
    } else if (graph::FlowOf(node) == Flow::kMerge) {
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    } else if (node.is_op("RefSelect")) {
      open.insert(open.end(), node.inputs.begin() + 1, node.inputs.end());
    } else if (!node.inputs.empty()) {
      open.push_back(node.inputs[node.is_op("IdentityN") ? static_cast<size_t>(at.index) : 0]);
    }
  }
  return variables;
}

}  // namespace

bool Builder::IsPlace(int value) const {
  return IsVariable(value) && plan_->variables[static_cast<size_t>(VariableOf(value))].variable == nullptr;
}

Result<int> Builder::PlaceFor(const std::vector<int>& references) {
  const std::string_view op = Current().source->op().name;
  VariableUse place;
  Value value;
  int space = kHostSpace;
  for (const int reference : references) {
    if (!IsVariable(reference)) {
      return Fail(Unimplemented("{} chooses between a variable and what is none, wanted variables only", op));
    }
    const Value& one = plan_->values[static_cast<size_t>(reference)];
    const VariableUse& use = plan_->variables[static_cast<size_t>(VariableOf(reference))];
    const std::vector<int> choices = use.variable != nullptr ? std::vector<int>{VariableOf(reference)} : use.choices;
    if (place.choices.empty()) {
      value = one;
      place.node = use.node;
      place.is_resource = use.is_resource;
      space = plan_->storages[static_cast<size_t>(one.storage)].space;
    }
    place.choices.insert(place.choices.end(), choices.begin(), choices.end());
    value.shape_known = value.shape_known && one.shape_known && one.shape == value.shape;
    if (one.dtype != value.dtype) {
      return Fail(Unimplemented("{} chooses between variables of types {} and {}, wanted one type", op,
                                Name(value.dtype), Name(one.dtype)));
    }
    if (plan_->storages[static_cast<size_t>(one.storage)].space != space) {
      return Fail(Unimplemented("{} chooses between variables on several devices, wanted one device", op));
    }
  }
  std::sort(place.choices.begin(), place.choices.end());
  place.choices.erase(std::unique(place.choices.begin(), place.choices.end()), place.choices.end());
  if (place.choices.size() == 1) return references[0];
  if (!value.shape_known) value.shape = Shape();
  Storage storage;
  storage.home = Storage::Home::kVariable;
  storage.space = space;
  storage.variable = static_cast<int>(plan_->variables.size());
  plan_->variables.push_back(std::move(place));
  value.storage = AddStorage(std::move(storage));
  return AddValue(std::move(value));
}

Result<int> Builder::PlaceFor(Endpoint reference) {
  std::vector<int> variables;
  const NodeId asking = current_;
  for (const NodeId id : VariablesBehind(step_, reference)) {
    current_ = id;
    WEIR_TRY(EmitVariable());
    variables.push_back(ValueAt({id, 0}));
  }
  current_ = asking;
  if (variables.size() > 1) return PlaceFor(variables);
  return variables.empty() ? -1 : variables[0];
}

Result<int> Builder::RoomFor(int value) {
  if (IsVariable(value)) return PlaceFor(std::vector<int>{value});
  const Value& from = plan_->values[static_cast<size_t>(value)];
  const PartialShape shape = from.shape_known ? PartialShape(from.shape) : PartialShape();
  const int space = plan_->storages[static_cast<size_t>(from.storage)].space;
  return NewValue(from.dtype, shape, space, Placing::kPlanned);
}

Status Builder::NotAlwaysVariable() const {
  return Fail(Unimplemented("a variable of loop '{}' refers to a variable in some iterations only, wanted all or none",
                            step_.frames[static_cast<size_t>(Current().frame)].name));
}

Status Builder::EmitSelect() {
  WEIR_ASSIGN(const int index, HostInput(0));
  std::vector<int> operands = {index};
  std::vector<Lock> locks;
  for (size_t i = 1; i < Current().inputs.size(); ++i) {
    operands.push_back(ValueAt(Current().inputs[i]));
    if (operands.back() < 0) return Fail(Internal("input {} has no value", i));
    if (IsVariable(operands.back())) locks.push_back({VariableOf(operands.back()), false});
  }
  WEIR_ASSIGN(const int place, PlaceFor(std::vector<int>(operands.begin() + 1, operands.end())));
  SetLocks(std::move(locks), Emit(Opcode::kSelect, operands, {place}));
  ValueAt({current_, 0}) = place;
  return Status();
}

}  // namespace weir::plan
