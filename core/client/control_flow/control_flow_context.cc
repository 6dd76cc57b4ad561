#include "core/client/control_flow/control_flow_context.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/ops/array_extra_ops.h"
#include "core/client/ops/build_op.h"

namespace weir {

using graph::Endpoint;
using graph::NodeId;
using graph::NodeSpec;

bool IsConstantEnter(const graph::Node& node) {
  if (node.op().traits.flow != op::Flow::kEnter) return false;
  const Result<bool> constant = node.attrs().Bool("is_constant");
  return constant.ok() && *constant;
}

namespace {

bool IsExit(const graph::Node& node) { return node.op().traits.flow == op::Flow::kExit; }

void AddControl(NodeSpec& node, NodeId from) {
  if (std::ranges::find(node.control_inputs, from) == node.control_inputs.end()) node.control_inputs.push_back(from);
}

}  // namespace

std::vector<std::string> ColocationGroups(const graph::Node& node) {
  std::vector<std::string> groups;
  const op::AttrValue* attr = node.attrs().Find("_class");
  const auto* classes = attr != nullptr ? attr->get<std::vector<std::string>>() : nullptr;
  if (classes != nullptr) {
    std::ranges::copy_if(*classes, std::back_inserter(groups), [](const auto& c) { return c.starts_with("loc:@"); });
  }
  if (groups.empty()) groups.push_back("loc:@" + node.name());
  return groups;
}

WhileContext* ControlFlowContext::Loop() {
  for (ControlFlowContext* context = this; context != nullptr; context = context->outer_) {
    if (WhileContext* loop = context->AsWhile()) return loop;
  }
  return nullptr;
}

bool ControlFlowContext::Within(const ControlFlowContext* other) const {
  const ControlFlowContext* context = this;
  while (context != nullptr && context != other) context = context->outer_;
  return context == other;
}

void ControlFlowContext::NoteResults(const std::vector<Endpoint>& results) {
  if (outer_ != nullptr) outer_->values_.insert(results.begin(), results.end());
}

Endpoint ControlFlowContext::Known(Endpoint value) const {
  const auto found = external_.find(value);
  return found == external_.end() ? value : found->second;
}

void ControlFlowContext::See(Endpoint value) {
  for (ControlFlowContext* context = this; context != nullptr; context = context->outer_) {
    context->values_.insert(value);
  }
}

std::vector<NodeId> ControlFlowContext::DropExternalControls(NodeSpec& node) {
  const WhileContext* loop = Loop();
  std::vector<NodeId> external;
  if (loop == nullptr) return external;
  std::erase_if(node.control_inputs, [&](NodeId control) {
    ControlFlowContext* context = flow_.OutputContextOf(control);
    if (context != nullptr && context->Loop() == loop) return false;
    external.push_back(control);
    return true;
  });
  return external;
}

Result<NodeId> CondContext::Switch(Endpoint value, const CaptureSite& site) {
  Endpoint outside = value;
  if (outer_ != nullptr) {
    WEIR_ASSIGN(outside, outer_->Bring(value, site));
    values_.insert(outside);
    external_[outside] = outside;
  }
  WEIR_ASSIGN(const NodeId node, flow_.AddSwitch(outside, pred_, site));
  flow_.SetContext(node, this);
  flow_.PreventFetching(node);
  external_[value] = {node, branch_};
  return node;
}

Result<Endpoint> CondContext::Bring(Endpoint value, const CaptureSite& site) {
  if (!values_.insert(value).second) return Known(value);
  WEIR_ASSIGN(const NodeId node, Switch(value, site));
  const Endpoint inside{node, branch_};
  See(inside);
  return inside;
}

Result<Endpoint> CondContext::BringResult(Endpoint value, const CaptureSite& site) {
  if (!values_.insert(value).second) return Known(value);
  WEIR_ASSIGN(const NodeId node, Switch(value, site));
  Note(Internals(flow_.graph()).definition.node(node));
  return Endpoint{node, branch_};
}

Status CondContext::Adapt(NodeSpec& node, const CaptureSite& site) {
  for (Endpoint& input : node.inputs) {
    WEIR_ASSIGN(input, Bring(input, site));
  }
  (void)DropExternalControls(node);
  if (!node.inputs.empty()) return Status();
  const bool inside = std::ranges::any_of(node.control_inputs, [&](NodeId control) {
    const ControlFlowContext* context = flow_.ContextOf(control);
    return context != nullptr && context->Within(this);
  });
  if (!inside) AddControl(node, pivot_.node);
  return Status();
}

void CondContext::Note(const graph::Node& node) {
  for (int i = 0; i < node.num_outputs(); ++i) See({node.id(), i});
  if (outer_ != nullptr || !IsExit(node)) flow_.PreventFetching(node.id());
}

Result<Endpoint> WhileContext::Bring(Endpoint value, const CaptureSite& site) {
  if (flow_.ContextOf(value.node) == this || !values_.insert(value).second) return Known(value);
  if (history_ != nullptr) {
    ControlFlowContext* const from = flow_.OutputContextOf(value.node);
    if (from != nullptr && from->Loop() == &history_->forward()) {
      WEIR_ASSIGN(const Endpoint recalled, history_->Recall(value));
      return external_[value] = recalled;
    }
  }
  Endpoint outside = value;
  if (outer_ != nullptr) {
    WEIR_ASSIGN(outside, outer_->Bring(value, site));
  }
  WEIR_ASSIGN(const Endpoint enter, AddEnter(outside, Invariant::kYes, "", site));
  values_.insert(enter);
  return external_[value] = enter;
}

Result<Endpoint> WhileContext::AddEnter(Endpoint value, Invariant invariant, std::string_view name,
                                        const CaptureSite& site) {
  const graph::Definition& definition = Internals(flow_.graph()).definition;
  const DType dtype = definition.TypeOf(value);
  const bool reference = IsRef(dtype) && invariant == Invariant::kYes;
  const std::string_view op = reference ? "RefEnter" : "Enter";
  NodeSpec spec;
  spec.name = site.scope + std::string(name.empty() ? op : name);
  spec.inputs = {value};
  spec.attrs = {{"T", BaseType(dtype)},
                {"frame_name", name_},
                {"is_constant", invariant == Invariant::kYes},
                {"parallel_iterations", settings_.parallel_iterations}};
  const std::vector<Operation>& beside = Internals(flow_.graph()).colocation_stack;
  if (reference) {
    spec.attrs.emplace_back("_class", ColocationGroups(definition.node(value.node)));
  } else if (invariant == Invariant::kYes && !beside.empty()) {
    std::set<std::string> groups;
    for (const Operation& operation : beside) {
      for (std::string& group : ColocationGroups(operation.node())) groups.insert(std::move(group));
    }
    spec.attrs.emplace_back("_class", std::vector<std::string>(groups.begin(), groups.end()));
  }
  spec.device = site.device;
  spec.origin = site.origin;
  spec.control_inputs = OuterControls(value.node);
  if (invariant == Invariant::kNo && IsConstantEnter(definition.node(value.node))) {
    for (const ControlFlowContext* context = outer_; context != nullptr; context = context->outer()) {
      if (context->pivot_node() < 0) continue;
      AddControl(spec, context->pivot_node());
      break;
    }
  }
  WEIR_ASSIGN(const NodeId node, flow_.AddAsIs(op, std::move(spec)));
  flow_.SetContext(node, this);
  flow_.graph().PreventFeeding({&flow_.graph(), {node, 0}});
  Internals(flow_.graph()).NoteUnderControl(node);
  return Endpoint{node, 0};
}

std::vector<NodeId> WhileContext::OuterControls(NodeId source) const {
  const ControlFlowContext* loop_around = outer_ != nullptr ? outer_->Loop() : nullptr;
  std::vector<NodeId> kept;
  for (const NodeId control : Internals(flow_.graph()).ControlInputsFor({source})) {
    const ControlFlowContext* wanted = flow_.OutputContextOf(control);
    const ControlFlowContext* context = outer_;
    while (context != wanted && context != nullptr && context != loop_around) context = context->outer();
    if (context == wanted) kept.push_back(control);
  }
  return kept;
}

Result<std::vector<Endpoint>> WhileContext::EnterAll(const std::vector<Endpoint>& values, const CaptureSite& site) {
  values_.insert(values.begin(), values.end());
  std::vector<Endpoint> outside = values;
  if (outer_ != nullptr) {
    for (Endpoint& value : outside) {
      WEIR_ASSIGN(value, outer_->Bring(value, site));
    }
  }
  for (const Endpoint& value : outside) {
    WEIR_ASSIGN(const Endpoint enter, AddEnter(value, Invariant::kNo, "", site));
    enters_.push_back(enter);
  }
  values_ = {enters_.begin(), enters_.end()};
  return enters_;
}

Result<Endpoint> WhileContext::EnterVariable(Endpoint value, std::string_view name, const CaptureSite& site) {
  if (outer_ != nullptr) {
    WEIR_ASSIGN(value, outer_->Bring(value, site));
  }
  WEIR_ASSIGN(const Endpoint enter, AddEnter(value, Invariant::kNo, name, site));
  enters_.push_back(enter);
  values_.insert(enter);
  return enter;
}

void WhileContext::AddExit(Endpoint exit) {
  exits_.push_back(exit);
  NoteResults({exit});
}

void WhileContext::SetHistory(LoopHistory* history) {
  history_ = history;
  is_gradient_ = is_gradient_ || history != nullptr;
}

bool WhileContext::Recalls(const WhileContext* loop) const {
  if (history_ != nullptr && &history_->forward() == loop) return true;
  WhileContext* const around = outer_ != nullptr ? outer_->Loop() : nullptr;
  return around != nullptr && around->Recalls(loop);
}

Status WhileContext::Adapt(NodeSpec& node, const CaptureSite& site) {
  for (Endpoint& input : node.inputs) {
    WEIR_ASSIGN(input, Bring(input, site));
  }
  const std::vector<NodeId> external = DropExternalControls(node);
  const graph::Definition& definition = Internals(flow_.graph()).definition;
  // Loop invariants are there before the iteration is wanted.
  const bool early = std::ranges::all_of(
      node.inputs, [&](const Endpoint& input) { return IsConstantEnter(definition.node(input.node)); });
  if (node.control_inputs.empty() && early) AddControl(node, pivot_node());
  for (const NodeId control : external) {
    if (definition.node(control).num_outputs() == 0) continue;
    WEIR_ASSIGN(const NodeId inside, BringControl(control, site));
    AddControl(node, inside);
  }
  return Status();
}

/// A control edge cannot enter a frame: the node's first output does, and an Identity of it is waited for.
Result<NodeId> WhileContext::BringControl(NodeId node, const CaptureSite& site) {
  Graph& graph = flow_.graph();
  NodeSpec spec;
  spec.name = Internals(graph).names.Unique(site.scope + "Identity");
  spec.op = Internals(graph).definition.ops().Find("Identity");
  spec.inputs = {{node, 0}};
  spec.attrs = {{"T", BaseType(Internals(graph).definition.TypeOf({node, 0}))}};
  spec.device = site.device;
  spec.origin = site.origin;
  std::vector<ControlScope> controls = std::exchange(Internals(graph).control_stack, {});
  const Status adapted = Adapt(spec, {spec.name + "/", site.device, site.origin});
  Internals(graph).control_stack = std::move(controls);
  WEIR_TRY(adapted);
  WEIR_ASSIGN(const graph::Node* added, Internals(graph).definition.Add(std::move(spec)));
  flow_.SetContext(added->id(), this);
  Note(*added);
  return added->id();
}

void WhileContext::Note(const graph::Node& node) {
  const bool leaves = outer_ == nullptr && IsExit(node);
  for (int i = 0; i < node.num_outputs(); ++i) {
    values_.insert({node.id(), i});
    if (!leaves) flow_.graph().PreventFeeding({&flow_.graph(), {node.id(), i}});
  }
  if (!leaves) flow_.PreventFetching(node.id());
}

void ControlFlow::Own(std::unique_ptr<ControlFlowContext> context) {
  context->outer_ = current_;
  if (current_ != nullptr) current_->nested_.push_back(context.get());
  contexts_.push_back(std::move(context));
}

CondContext& ControlFlow::AddCond(Endpoint pred, Endpoint pivot, int branch) {
  auto made = std::unique_ptr<CondContext>(
      new CondContext(*this, Internals(graph_).names.Unique(Internals(graph_).names.current() + "cond_text")));
  CondContext& context = *made;
  context.pred_ = pred;
  context.pivot_ = pivot;
  context.branch_ = branch;
  context.values_ = {pred, pivot};
  context.external_ = {{pred, pred}};
  SetContext(pivot.node, &context);
  Own(std::move(made));
  return context;
}

WhileContext& ControlFlow::AddLoop(const LoopSettings& settings, std::string_view name) {
  auto made = std::unique_ptr<WhileContext>(
      new WhileContext(*this, Internals(graph_).names.Unique(Internals(graph_).names.current() + std::string(name))));
  WhileContext& context = *made;
  context.settings_ = settings;
  Own(std::move(made));
  return context;
}

ControlFlowContext* ControlFlow::ContextOf(NodeId node) const {
  const auto i = static_cast<size_t>(node);
  return node >= 0 && i < context_of_.size() ? context_of_[i] : nullptr;
}

ControlFlowContext* ControlFlow::OutputContextOf(NodeId node) const {
  ControlFlowContext* context = ContextOf(node);
  return context != nullptr && IsExit(Internals(graph_).definition.node(node)) ? context->outer() : context;
}

void ControlFlow::SetContext(NodeId node, ControlFlowContext* context) {
  const auto i = static_cast<size_t>(node);
  if (i >= context_of_.size()) context_of_.resize(i + 1);
  context_of_[i] = context;
}

Status ControlFlow::CheckReach(const NodeSpec& node) const {
  WhileContext* loop = current_ != nullptr ? current_->Loop() : nullptr;
  for (const Endpoint& input : node.inputs) {
    ControlFlowContext* from = input.node >= 0 ? OutputContextOf(input.node) : nullptr;
    if (from == nullptr || from == current_) continue;
    const WhileContext* from_loop = from->Loop();
    if (from_loop == nullptr || (loop != nullptr && loop->Within(from_loop))) continue;
    if (loop != nullptr && loop->Recalls(from_loop)) continue;
    const std::string& name = Internals(graph_).definition.node(input.node).name();
    if (loop != nullptr) {
      return InvalidArgument("Cannot use '{}' as input to '{}' because they are in different while loops.", name,
                             node.name);
    }
    return InvalidArgument("Cannot use '{}' as input to '{}' because '{}' is in a while loop.", name, node.name, name);
  }
  return Status();
}

Status ControlFlow::Adapt(NodeSpec& node) {
  if (contexts_.empty()) return Status();
  WEIR_TRY(CheckReach(node));
  if (current_ == nullptr) return Status();
  // TensorFlow's constants open no name scope of their own.
  const bool bare = node.op != nullptr && node.op->name == "Const";
  const std::string scope = bare ? Internals(graph_).names.current() : node.name + "/";
  return current_->Adapt(node, {scope, Internals(graph_).DeviceHere(), node.origin});
}

void ControlFlow::Note(NodeId node) {
  if (current_ == nullptr) return;
  SetContext(node, current_);
  current_->Note(Internals(graph_).definition.node(node));
}

Result<NodeId> ControlFlow::AddAsIs(std::string_view op, NodeSpec node) {
  WEIR_ASSIGN(node.op, Internals(graph_).definition.ops().Get(op));
  node.name = Internals(graph_).names.Unique(node.name);
  WEIR_ASSIGN(const graph::Node* added, Internals(graph_).definition.Add(std::move(node)));
  return added->id();
}

Result<NodeId> ControlFlow::AddSwitch(Endpoint value, Endpoint pred, const CaptureSite& site) {
  const graph::Node& source = Internals(graph_).definition.node(value.node);
  const DType dtype = Internals(graph_).definition.TypeOf(value);
  NodeSpec spec;
  spec.name = site.scope + "Switch";
  spec.inputs = {value, pred};
  spec.attrs = {{"T", BaseType(dtype)}, {"_class", ColocationGroups(source)}};
  spec.device = source.device();
  spec.origin = site.origin;
  return AddAsIs(IsRef(dtype) ? "RefSwitch" : "Switch", std::move(spec));
}

}  // namespace weir
