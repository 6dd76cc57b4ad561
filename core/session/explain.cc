#include "core/session/explain.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/errors.h"
#include "core/graph/graph_def.h"
#include "core/plan/plan.h"
#include "core/session/placing.h"

namespace weir::session {

Result<place::Explanation> ExplainPlacement(const CompileContext& context, const graph::Definition& graph,
                                            const graph::StepRequest& request) {
  WEIR_ASSIGN(const graph::StepGraph step, OptimizeStep(context, graph, request));
  return ExplainStep(context, step);
}

namespace {

Result<std::string> PlanText(const CompileContext& context, const graph::StepRequest& request,
                             const PlacedStep& placed) {
  if (NeedsTasks(context.options, placed.placement)) {
    return Unimplemented("each task of the cluster plans its own part of the step");
  }
  if (!context.options.cut_between_devices) {
    WEIR_ASSIGN(const Program program, PlanWhole(context, request, placed, nullptr));
    return plan::ToString(*program.plans().front());
  }
  WEIR_ASSIGN(std::vector<graph::Part> parts, CutBetweenDevices(context, request, placed));
  std::string text;
  std::vector<std::string> devices;
  for (const graph::Part& part : parts) devices.push_back(part.device);
  WEIR_ASSIGN(const Program program, PlanParts(context, request, std::move(parts), nullptr));
  for (size_t i = 0; i < devices.size(); ++i) {
    text += "part " + devices[i] + "\n" + plan::ToString(*program.plans()[i]);
  }
  return text;
}

/// "after STAGE/PASS" and what the pass left, or "after STAGE/PASS: no change".
Result<std::string> PassesText(CompileContext context, const graph::Definition& graph,
                               const graph::StepRequest& request) {
  std::string all, last;
  context.watch = [&](const PassReport& report) {
    std::string text = report.text();
    all += fmt::format("after {}/{}", report.stage, report.pass);
    all += text == last ? ": no change\n" : "\n" + text;
    last = std::move(text);
  };
  WEIR_TRY(Compile(context, graph, request).status());
  return all;
}

}  // namespace

Result<std::string> StageText(const CompileContext& context, const graph::Definition& graph,
                              const graph::StepRequest& request, Stage stage) {
  if (stage == Stage::kPasses) return PassesText(context, graph, request);
  WEIR_ASSIGN(const PlacedStep placed, Prepare(context, graph, request));
  if (stage != Stage::kGraph) return PlanText(context, request, placed);
  std::string text = graph::ToString(placed.step, &placed.placement);
  for (const std::string& region : placed.regions) text += region + "\n";
  return text;
}

Result<std::vector<std::string>> PartitionGraphs(const CompileContext& context, const graph::Definition& graph,
                                                 const graph::StepRequest& request) {
  PlacedStep placed;
  WEIR_ASSIGN(placed.step, OptimizeStep(context, graph, request));
  WEIR_ASSIGN(placed.placement, PlaceStep(context, placed.step, nullptr));
  WEIR_ASSIGN(const std::vector<graph::Part> parts, CutBetweenDevices(context, request, placed));
  std::vector<std::string> texts;
  for (const graph::Part& part : parts) {
    WEIR_ASSIGN(texts.emplace_back(), graph::ExportGraphDef(part.graph));
  }
  return texts;
}

}  // namespace weir::session
