// Conds and loops as the messages that model files carry.
#include <fmt/format.h>

#include <utility>

#include "core/client/control_flow/control_flow_context.h"
#include "core/client/graph/graph.h"
#include "core/client/graph/graph_internal.h"
#include "core/proto/parse.h"
#include "weir/proto/control_flow.pb.h"

namespace weir {

using graph::Endpoint;

/// Fills messages from contexts.
class ContextWriter {
 public:
  explicit ContextWriter(const graph::Definition& graph) : graph_(graph) {}

  void Fill(const CondContext& context, tf::CondContextDef& def) const {
    def.set_context_name(context.name());
    def.set_pred_name(NameOf(context.pred()));
    def.set_pivot_name(NameOf(context.pivot()));
    def.set_branch(context.branch());
    FillShared(context, def);
  }

  void Fill(const WhileContext& context, tf::WhileContextDef& def) const {
    const LoopSettings& settings = context.settings();
    def.set_context_name(context.name());
    def.set_parallel_iterations(static_cast<int32_t>(settings.parallel_iterations));
    def.set_back_prop(settings.back_prop);
    def.set_swap_memory(settings.swap_memory);
    def.set_pivot_name(NameOf(context.pivot_));
    def.set_pivot_for_pred_name(NameOf(context.pivot_for_pred_));
    def.set_pivot_for_body_name(NameOf(context.pivot_for_body_));
    for (const Endpoint& exit : context.exits()) def.add_loop_exit_names(NameOf(exit));
    for (const Endpoint& enter : context.enters()) def.add_loop_enter_names(NameOf(enter));
    if (settings.maximum_iterations.node >= 0) def.set_maximum_iterations_name(NameOf(settings.maximum_iterations));
    FillShared(context, def);
  }

 private:
  std::string NameOf(Endpoint e) const { return e.node < 0 ? std::string() : graph::FullEndpointName(graph_, e); }

  template <class Def>
  void FillShared(const ControlFlowContext& context, Def& def) const {
    std::set<std::string> names;
    for (const Endpoint& value : context.values()) names.insert(NameOf(value));
    for (const std::string& name : names) def.mutable_values_def()->add_values(name);
    auto& external = *def.mutable_values_def()->mutable_external_values();
    for (const auto& [outside, inside] : context.external_values()) external[NameOf(outside)] = NameOf(inside);
    for (ControlFlowContext* nested : context.nested()) {
      tf::ControlFlowContextDef& into = *def.add_nested_contexts();
      if (const CondContext* cond = nested->AsCond()) Fill(*cond, *into.mutable_cond_ctxt());
      if (const WhileContext* loop = nested->AsWhile()) Fill(*loop, *into.mutable_while_ctxt());
    }
  }

  const graph::Definition& graph_;
};

Result<std::string> CondContext::Serialize() const {
  tf::CondContextDef def;
  ContextWriter(Internals(flow_.graph()).definition).Fill(*this, def);
  return proto::Serialize(def, "CondContextDef");
}

Result<std::string> WhileContext::Serialize() const {
  tf::WhileContextDef def;
  ContextWriter(Internals(flow_.graph()).definition).Fill(*this, def);
  return proto::Serialize(def, "WhileContextDef");
}

/// Makes contexts from messages, those nested in them too.
class ContextReader {
 public:
  ContextReader(ControlFlow& flow, std::string_view prefix) : flow_(flow), prefix_(prefix) {}

  Result<ControlFlowContext*> Read(const tf::CondContextDef& def) {
    auto made = std::unique_ptr<CondContext>(new CondContext(flow_, FullName(def.context_name())));
    CondContext& context = *made;
    WEIR_ASSIGN(context.pred_, Find(def.pred_name()));
    WEIR_ASSIGN(context.pivot_, Find(def.pivot_name()));
    context.branch_ = def.branch() != 0 ? 1 : 0;
    WEIR_TRY(Finish(std::move(made), def));
    return &context;
  }

  Result<ControlFlowContext*> Read(const tf::WhileContextDef& def) {
    auto made = std::unique_ptr<WhileContext>(new WhileContext(flow_, FullName(def.context_name())));
    WhileContext& context = *made;
    context.settings_.parallel_iterations = def.parallel_iterations();
    context.settings_.back_prop = def.back_prop();
    context.settings_.swap_memory = def.swap_memory();
    if (!def.maximum_iterations_name().empty()) {
      WEIR_ASSIGN(context.settings_.maximum_iterations, Find(def.maximum_iterations_name()));
    }
    WEIR_ASSIGN(context.pivot_, Find(def.pivot_name()));
    WEIR_ASSIGN(context.pivot_for_pred_, Find(def.pivot_for_pred_name()));
    WEIR_ASSIGN(context.pivot_for_body_, Find(def.pivot_for_body_name()));
    WEIR_ASSIGN(context.exits_, FindAll(def.loop_exit_names()));
    WEIR_ASSIGN(context.enters_, FindAll(def.loop_enter_names()));
    WEIR_TRY(Finish(std::move(made), def));
    if (!prefix_.empty()) RenameFrame(context);
    return &context;
  }

 private:
  std::string FullName(std::string_view name) const {
    return prefix_.empty() ? std::string(name) : fmt::format("{}/{}", prefix_, name);
  }

  Result<Endpoint> Find(std::string_view name) const {
    WEIR_ASSIGN(const Output value, flow_.graph().TensorByName(FullName(name)));
    return value.endpoint();
  }

  Result<std::vector<Endpoint>> FindAll(const auto& names) const {
    std::vector<Endpoint> all;
    for (const std::string& name : names) {
      WEIR_ASSIGN(const Endpoint found, Find(name));
      all.push_back(found);
    }
    return all;
  }

  /// What conds and loops have in common. Nodes of nested ones get their own context afterwards.
  template <class Def>
  Status Finish(std::unique_ptr<ControlFlowContext> made, const Def& def) {
    ControlFlowContext& context = *made;
    for (const auto& [outside, inside] : def.values_def().external_values()) {
      WEIR_ASSIGN(const Endpoint from, Find(outside));
      WEIR_ASSIGN(context.external_[from], Find(inside));
    }
    for (const std::string& name : def.values_def().values()) {
      WEIR_ASSIGN(const Endpoint value, Find(name));
      context.values_.insert(value);
      if (!context.external_.contains(value)) flow_.SetContext(value.node, &context);
    }
    flow_.Own(std::move(made));
    const InContext in(flow_, &context);
    for (const tf::ControlFlowContextDef& nested : def.nested_contexts()) {
      if (nested.has_cond_ctxt()) WEIR_TRY(Read(nested.cond_ctxt()).status());
      if (nested.has_while_ctxt()) WEIR_TRY(Read(nested.while_ctxt()).status());
    }
    return Status();
  }

  /// The frame of an imported loop is named as the loop is now.
  void RenameFrame(const WhileContext& context) {
    graph::Definition& graph = Internals(flow_.graph()).definition;
    for (const Endpoint& value : context.values_) {
      const std::string& op = graph.node(value.node).op().name;
      if (flow_.ContextOf(value.node) == &context && (op == "Enter" || op == "RefEnter")) {
        graph.SetAttr(value.node, "frame_name", context.name_);
      }
    }
  }

  ControlFlow& flow_;
  std::string_view prefix_;
};

Result<ControlFlowContext*> ControlFlow::Read(std::string_view key, std::string_view bytes, std::string_view prefix) {
  ContextReader reader(*this, prefix);
  if (key == "cond_context") {
    tf::CondContextDef def;
    WEIR_TRY(proto::ParseBinary(bytes, "CondContextDef", def));
    return reader.Read(def);
  }
  tf::WhileContextDef def;
  WEIR_TRY(proto::ParseBinary(bytes, "WhileContextDef", def));
  return reader.Read(def);
}

}  // namespace weir
