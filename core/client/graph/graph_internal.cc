#include "core/client/graph/graph_internal.h"

#include <algorithm>
#include <string>

#include "core/op/deduce.h"
#include "core/ops/declare_all.h"
#include "core/scope/device_merge.h"
#include "core/session/runtime.h"

namespace weir {
namespace {

/// The catalogue; a fault in it is a bug of weir's that its own tests catch, so an empty one stands in.
const op::OpRegistry& Ops() {
  static const op::OpRegistry kEmpty;
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  session::Runtime::LoadOpsOnDemand();
  return ops.ok() ? **ops : kEmpty;
}

const Status& Ok() {
  static const Status kOk;
  return kOk;
}

}  // namespace

void JoinGroups(const std::vector<Operation>& beside, op::AttrList& attrs) {
  if (beside.empty()) return;
  std::set<std::string> groups;
  for (const Operation& operation : beside) {
    for (std::string& group : ColocationGroups(operation.node())) groups.insert(std::move(group));
  }
  std::erase_if(attrs, [](const auto& attr) { return attr.first == "_class"; });
  attrs.emplace_back("_class", std::vector<std::string>(groups.begin(), groups.end()));
}

GraphInternals::GraphInternals(Graph& graph) : owner(graph), definition(Ops()), control_flow(graph) {}

Status Graph::Fail(Status status) {
  if (status.ok()) return status;
  GraphInternals& in = *internals_;
  if (in.status.ok()) in.status = status;
  in.errors.push_back({status});
  return status;
}

Status Graph::TakeStatus() {
  internals_->taken = internals_->errors.size();
  return std::exchange(internals_->status, Status());
}

graph::NodeId GraphInternals::LatestError() {
  if (errors.empty()) return -1;
  errors.back().has_value = true;
  return -1 - static_cast<graph::NodeId>(errors.size());
}

ErrorsSince::ErrorsSince(Graph& graph) : status_(Internals(graph).status), before_(std::exchange(status_, Status())) {}

ErrorsSince::~ErrorsSince() {
  if (!before_.ok()) status_ = std::move(before_);
}

const Status& GraphInternals::ErrorOf(graph::NodeId id) const {
  const size_t number = id < -1 ? static_cast<size_t>(-2 - id) : errors.size();
  return number < errors.size() ? errors[number].status : Ok();
}

const Status& GraphInternals::ErrorOf(std::string_view node) const {
  const auto found = std::ranges::find_if(errors, [&](const BuildError& error) { return error.status.node() == node; });
  return found == errors.end() ? Ok() : found->status;
}

Status GraphInternals::Tell(Status error) {
  if (!error.ok()) {
    (void)owner.Fail(error);
    errors.back().has_value = true;
  }
  return error;
}

const Status& GraphInternals::ErrorOfAll() const {
  for (size_t i = taken; i < errors.size(); ++i) {
    if (!errors[i].has_value) return errors[i].status;
  }
  return Ok();
}

std::vector<graph::NodeId> GraphInternals::ControlInputsFor(const std::vector<graph::NodeId>& inputs) const {
  std::vector<graph::NodeId> controls;
  for (const ControlScope& scope : control_stack) {
    if (std::ranges::any_of(inputs, [&](graph::NodeId input) { return scope.made.contains(input); })) continue;
    for (const Operation& control : scope.inputs) {
      if (std::ranges::find(inputs, control.id()) == inputs.end()) controls.push_back(control.id());
    }
  }
  return controls;
}

void GraphInternals::NoteUnderControl(graph::NodeId node) {
  for (ControlScope& scope : control_stack) scope.made.insert(node);
}

void GraphInternals::ApplyAttrScopes(const op::OpDef& def, op::AttrList& attrs) const {
  std::set<std::string_view> seen;
  for (auto scope = attr_stack.rbegin(); scope != attr_stack.rend(); ++scope) {
    if (seen.insert(scope->first).second && scope->second) op::SetDefault(attrs, scope->first, *scope->second);
  }
  if (!container_stack.empty() && !container_stack.back().empty() && def.stateful && def.FindAttr("container")) {
    op::SetDefault(attrs, "container", container_stack.back());
  }
}

std::string GraphInternals::DeviceFor(const Operation& operation, std::string own) {
  for (auto request = device_stack.rbegin(); request != device_stack.rend() && !request->clears; ++request) {
    if (request->function) {
      definition.SetDevice(operation.id(), own);
      own = request->function(operation);
    }
    Result<std::string> merged = scope::MergeDevices(own, request->function ? "" : request->name);
    if (!merged.ok()) {
      (void)owner.Fail(merged.status().WithNode(operation.name(), operation.node().origin()));
      return {};
    }
    own = std::move(*merged);
  }
  return own;
}

std::string GraphInternals::DeviceHere() const {
  std::string device;
  for (auto request = device_stack.rbegin(); request != device_stack.rend() && !request->clears; ++request) {
    if (Result<std::string> merged = scope::MergeDevices(device, request->name); merged.ok())
      device = std::move(*merged);
  }
  return device;
}

/// An operation made beside others asks for the device of the innermost of them that has one; one that takes a
/// reference asks for no other.
void GraphInternals::Place(const Operation& operation, const std::vector<Operation>& beside, bool by_reference) {
  std::string device = by_reference ? std::string() : DeviceFor(operation);
  const auto placed =
      std::find_if(beside.rbegin(), beside.rend(), [](const Operation& o) { return !o.device().empty(); });
  if (placed != beside.rend()) device = placed->device();
  definition.SetDevice(operation.id(), std::move(device));
}

}  // namespace weir
