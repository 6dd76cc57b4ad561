#include "core/session/replacing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/place/place.h"
#include "core/place/support.h"
#include "core/runtime/resource.h"
#include "core/session/placing.h"

namespace weir::session {
namespace {

using graph::NodeId;

/// The key of a node's variable on a device, as plans form it.
runtime::ResourceKey VariableKey(const graph::Node& node, const std::string& device) {
  const auto text = [&node](const char* name) {
    const Result<std::string> value = node.attrs().String(name);
    return value.ok() ? *value : std::string();
  };
  const std::string container = text("container"), name = text("shared_name");
  return {device, container.empty() ? runtime::kDefaultContainer : container, name.empty() ? node.name() : name};
}

/// The moves of state to where `free` has it; nullopt if something other than a variable would have to move.
std::optional<std::map<NodeId, int>> MovesTo(const CompileContext& context, const graph::StepGraph& step,
                                             const graph::Placement& free) {
  std::map<NodeId, int> moves;
  const std::lock_guard<std::mutex> lock(context.places->mutex);
  for (size_t i = 0; i < step.nodes.size(); ++i) {
    if (!place::MakesState(step.nodes[i])) continue;
    const graph::Node& node = *step.nodes[i].source;
    const auto now = context.places->device_of.find(node.id());
    if (now == context.places->device_of.end() || now->second == free.device_of[i]) continue;
    if (!context.resources.Find(VariableKey(node, free.devices[static_cast<size_t>(now->second)]))) return std::nullopt;
    moves.emplace(node.id(), free.device_of[i]);
  }
  return moves;
}

}  // namespace

Result<std::shared_ptr<Replacing>> Replacing::Make(const CompileContext& context, const graph::Definition& graph,
                                                   const graph::StepRequest& request, int64_t period) {
  WEIR_ASSIGN(StepMeter meter, StepMeter::Make(context, graph, request));
  std::shared_ptr<Replacing> made(new Replacing(std::move(meter)));
  made->next.store(std::max(period, int64_t{1}));
  return made;
}

bool Replacing::Measures(int64_t run) const {
  const int64_t until = next.load(std::memory_order_relaxed);
  const int64_t wanted = std::min(kMeasured, std::max<int64_t>(until - 1, 1));
  return run <= until && run > until - wanted;
}

bool Replacing::Add(int64_t run, const trace::StepTrace& trace) {
  const std::lock_guard<std::mutex> lock(mutex);
  meter.Add(trace);
  int64_t due = run;
  return next.compare_exchange_strong(due, 2 * run);
}

Result<std::optional<NewPlacement>> PlaceAgain(const CompileContext& context, const graph::Definition& graph,
                                               const graph::StepRequest& request,
                                               const std::map<std::string, std::string>& devices, double min_gain,
                                               bool move_state) {
  WEIR_ASSIGN(const graph::StepGraph step, OptimizeStep(context, graph, request));
  const auto predict = [&](const CompileContext& with) -> Result<NewPlacement> {
    WEIR_ASSIGN(const place::Explanation explanation, ExplainStep(with, step));
    NewPlacement found{explanation.makespan_ns, explanation.makespan_ns, {}};
    for (const place::Tried& tried : explanation.tried) {
      if (tried.name == "file") found.old_ns = tried.makespan_ns;
    }
    return found;
  };
  SessionOptions options = context.options;
  auto placement = std::make_shared<place::PlaceOptions>();
  if (options.placement != nullptr) *placement = *options.placement;
  placement->candidate = devices;
  options.placement = placement;
  const CompileContext with_old{context.runtime,     options,           context.resources,   context.node_resources,
                                context.parallelism, context.max_tiles, context.calibration, context.places,
                                context.lowering,    context.watch,     context.measured};
  const auto worth = [min_gain](int64_t old_ns, int64_t new_ns) {
    return static_cast<double>(new_ns) < static_cast<double>(old_ns) * (1 - min_gain) && new_ns < old_ns;
  };
  WEIR_ASSIGN(NewPlacement fixed, predict(with_old));
  if (move_state && context.places != nullptr) {
    CompileContext apart = with_old;
    apart.places = nullptr;
    WEIR_ASSIGN(NewPlacement moved, predict(apart));
    if (worth(fixed.new_ns, moved.new_ns)) {
      WEIR_ASSIGN(const graph::Placement free, PlaceStep(apart, step, nullptr));
      if (auto moves = MovesTo(context, step, free); moves && !moves->empty()) {
        return std::optional<NewPlacement>({fixed.old_ns, moved.new_ns, std::move(*moves)});
      }
    }
  }
  if (!worth(fixed.old_ns, fixed.new_ns)) return std::optional<NewPlacement>();
  return std::optional<NewPlacement>(std::move(fixed));
}

std::string ReplaceText(int64_t run, const StepMeasurement& took, const Result<std::optional<NewPlacement>>& found) {
  const auto ms = [](int64_t ns) { return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6); };
  std::string text = fmt::format("run {}: ", run);
  if (!found.ok()) {
    text += "not placed again: " + std::string(found.status().message());
  } else if (!*found) {
    text += "placed as before";
  } else {
    text += fmt::format("placed again, predicted {}/step instead of {}", ms((*found)->new_ns), ms((*found)->old_ns));
    if (!(*found)->moves.empty()) text += fmt::format("; {} variables move", (*found)->moves.size());
  }
  text += fmt::format("; measured {}/step, predicted before {}", ms(took.step_ns), ms(took.predicted_ns));
  const double ratio = static_cast<double>(std::max<int64_t>(took.step_ns, 1)) /
                       static_cast<double>(std::max<int64_t>(took.predicted_ns, 1));
  if (ratio > 1.5 || ratio < 1 / 1.5) text += "; warning: these differ by more than half";
  return text;
}

Status MoveState(const CompileContext& context, const graph::Definition& graph, const std::map<NodeId, int>& moves) {
  const auto& devices = context.runtime.plugins->devices().all();
  const std::lock_guard<std::mutex> lock(context.places->mutex);
  for (const auto& [id, device] : moves) {
    const graph::Node& node = graph.node(id);
    const auto now = context.places->device_of.find(id);
    if (now == context.places->device_of.end()) continue;
    device::Device& from = *devices[static_cast<size_t>(now->second)];
    device::Device& to = *devices[static_cast<size_t>(device)];
    const runtime::ResourceKey old_key = VariableKey(node, from.name());
    const std::shared_ptr<runtime::Variable> old = context.resources.Find(old_key);
    if (!old) return Internal("the variable '{}' is not on {}", node.name(), from.name());
    WEIR_TRY(old->use.SyncWrites());
    WEIR_ASSIGN(const std::shared_ptr<runtime::Variable> made,
                context.resources.GetOrCreate(VariableKey(node, to.name()), old->dtype));
    if (old->value.valid()) {
      WEIR_ASSIGN(const Tensor on_host, from.ToHost(old->value));
      WEIR_ASSIGN(made->value, to.FromHost(on_host));
    }
    WEIR_TRY(context.resources.Destroy(runtime::HandleOf(old_key, old)));
    now->second = device;
  }
  return Status();
}

}  // namespace weir::session
