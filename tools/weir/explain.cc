// `weir explain`: the placement of a graph, with every candidate of every node.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "core/base/errors.h"
#include "core/io/files.h"
#include "core/place/place.h"
#include "core/session/options.h"
#include "core/session/session.h"
#include "tools/weir/commands.h"
#include "tools/weir/explain_page.h"
#include "tools/weir/run_request.h"

namespace weir::cli {
namespace {

Result<place::Algorithm> AlgorithmOf(const std::string& name) {
  if (name == "costsim") return place::Algorithm::kCostSim;
  if (name == "whitepaper") return place::Algorithm::kWhitePaper;
  if (name == "tf") return place::Algorithm::kTf;
  if (name == "single") return place::Algorithm::kSingle;
  return InvalidArgument("no placement algorithm '{}'; there are costsim, whitepaper, tf and single", name);
}

Json MicrosecondsOrNull(int64_t ns) { return ns < 0 ? Json(nullptr) : Json(static_cast<double>(ns) / 1e3); }

Json CandidateJson(const place::CandidateReport& candidate) {
  return {{"device", candidate.device},
          {"kernel", candidate.kernel.empty() ? Json(nullptr) : Json(candidate.kernel)},
          {"cost_us", MicrosecondsOrNull(candidate.exec_ns)},
          {"provenance", candidate.exec_ns < 0 ? Json(nullptr) : Json(place::Name(candidate.provenance))},
          {"verdict", candidate.verdict},
          {"chosen", candidate.chosen},
          {"inputs_us", MicrosecondsOrNull(candidate.inputs_ns)},
          {"link_wait_us", MicrosecondsOrNull(candidate.link_wait_ns)},
          {"queue_us", MicrosecondsOrNull(candidate.queue_ns)},
          {"finish_us", MicrosecondsOrNull(candidate.finish_ns)}};
}

void Fill(const place::Explanation& explanation, Json& report) {
  report["nodes"] = Json::array();
  for (const place::NodeReport& node : explanation.nodes) {
    Json candidates = Json::array();
    for (const place::CandidateReport& candidate : node.candidates) candidates.push_back(CandidateJson(candidate));
    report["nodes"].push_back({{"name", node.name},
                               {"op", node.op},
                               {"operands", node.operands},
                               {"device", node.device},
                               {"reason", place::Name(node.reason)},
                               {"requested", node.requested.empty() ? Json(nullptr) : Json(node.requested)},
                               {"note", node.note.empty() ? Json(nullptr) : Json(node.note)},
                               {"group", node.group},
                               {"candidates", std::move(candidates)}});
  }
  report["not_run"] = Json::array();
  for (const place::WrittenNode& node : explanation.written) {
    if (!node.runs) report["not_run"].push_back({{"name", node.name}, {"op", node.op}, {"device", node.device}});
  }
  report["summary"] = explanation.summary;
  report["warnings"] = explanation.warnings;
  report["plan"] = explanation.winner;
  report["predicted_us"] = MicrosecondsOrNull(explanation.makespan_ns);
  report["bound_us"] = MicrosecondsOrNull(explanation.bound_ns);
  report["hash"] = fmt::format("{:016x}", explanation.hash);
  report["transfers"] = explanation.transfers;
  report["transferred_bytes"] = explanation.transferred_bytes;
  report["tried"] = Json::array();
  for (const place::Tried& tried : explanation.tried) {
    report["tried"].push_back(
        {{"plan", tried.name}, {"predicted_us", MicrosecondsOrNull(tried.makespan_ns)}, {"fits_memory", tried.fits}});
  }
}

constexpr size_t kLargestShown = 20;

void ShowMemory(const place::Explanation& explanation, const Console& console, Json& report) {
  report["memory"] = Json::array();
  Table table({"device", "variables", "constants", "values", "together", "capacity"});
  const auto text = [](int64_t bytes) { return bytes < 0 ? "unknown" : BytesText(static_cast<double>(bytes)); };
  for (const place::DeviceMemory& on : explanation.memory) {
    const int64_t together = on.state_bytes + on.constant_bytes + on.value_bytes;
    report["memory"].push_back({{"device", on.device},
                                {"variable_bytes", on.state_bytes},
                                {"constant_bytes", on.constant_bytes},
                                {"value_bytes", on.value_bytes},
                                {"bytes", together},
                                {"capacity_bytes", on.capacity_bytes < 0 ? Json(nullptr) : Json(on.capacity_bytes)}});
    table.Add({on.device, text(on.state_bytes), text(on.constant_bytes), text(on.value_bytes), text(together),
               text(on.capacity_bytes)});
  }
  std::vector<const place::NodeReport*> nodes;
  for (const place::NodeReport& node : explanation.nodes) {
    if (node.bytes > 0) nodes.push_back(&node);
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  if (nodes.size() > kLargestShown) nodes.resize(kLargestShown);
  report["largest"] = Json::array();
  Table largest({"bytes", "node", "op", "operands", "device"});
  for (const place::NodeReport* node : nodes) {
    report["largest"].push_back(
        {{"node", node->name}, {"op", node->op}, {"bytes", node->bytes}, {"device", node->device}});
    largest.Add({text(node->bytes), node->name, node->op, node->operands, node->device});
  }
  report["warnings"] = explanation.warnings;
  console.Print(table);
  console.Print(largest);
  for (const std::string& warning : explanation.warnings) console.Print("warning: " + warning);
}

/// The medians of runs beside the predicted times, the nodes with the largest differences first.
void ShowMeasured(const place::Explanation& explanation, const session::StepMeasurement& measured,
                  const Console& console, Json& report) {
  const auto ratio = [](int64_t took, int64_t predicted) {
    return static_cast<double>(took) / static_cast<double>(std::max<int64_t>(predicted, 1));
  };
  const auto us = [](int64_t ns) { return fmt::format("{:.4g} us", static_cast<double>(ns) / 1e3); };
  struct Row {
    std::string node, op;
    int64_t predicted = 0, took = 0;
  };
  std::vector<Row> rows;
  for (const place::NodeReport& node : explanation.nodes) {
    const auto took = measured.node_ns.find(node.name);
    if (took == measured.node_ns.end()) continue;
    Row row{node.name, node.op, 0, took->second};
    for (const place::CandidateReport& candidate : node.candidates) {
      if (candidate.chosen) row.predicted = std::max<int64_t>(candidate.exec_ns, 0);
    }
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::abs(a.took - a.predicted) > std::abs(b.took - b.predicted);
  });
  report["measured"] = {{"runs", measured.runs},
                        {"step_us", MicrosecondsOrNull(measured.step_ns)},
                        {"predicted_us", MicrosecondsOrNull(measured.predicted_ns)},
                        {"ratio", ratio(measured.step_ns, measured.predicted_ns)},
                        {"nodes", Json::array()}};
  Table table({"node", "op", "predicted", "measured", "ratio"});
  for (const Row& row : rows) {
    report["measured"]["nodes"].push_back({{"node", row.node},
                                           {"op", row.op},
                                           {"predicted_us", MicrosecondsOrNull(row.predicted)},
                                           {"measured_us", MicrosecondsOrNull(row.took)}});
    table.Add(
        {row.node, row.op, us(row.predicted), us(row.took), fmt::format("{:.2f}", ratio(row.took, row.predicted))});
  }
  console.Print(fmt::format("measured {}/step, predicted {} (ratio {:.2f}), median of {} runs", us(measured.step_ns),
                            us(measured.predicted_ns), ratio(measured.step_ns, measured.predicted_ns), measured.runs));
  console.Print(table);
}

}  // namespace

Status ExplainGraph(const ExplainOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const graph::Definition graph, ReadGraph(options.run.graph));
  WEIR_ASSIGN(const Request request, MakeRequest(options.run, graph));
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  session::SessionOptions session_options = session::SessionOptionsFrom(runtime->config);
  session_options.default_device = options.run.device;
  // The command's own output says where nodes are; several devices are worth a line of the session.
  session_options.allow_soft_placement = session_options.allow_soft_placement && options.soft;
  if (!options.algorithm.empty()) {
    auto placement = session_options.placement == nullptr
                         ? std::make_shared<place::PlaceOptions>()
                         : std::make_shared<place::PlaceOptions>(*session_options.placement);
    WEIR_ASSIGN(placement->algorithm, AlgorithmOf(options.algorithm));
    session_options.placement = std::move(placement);
  }
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session,
              session::Session::Make(std::move(runtime), graph, std::move(session_options)));
  static const std::map<std::string, session::Stage> kStages = {
      {"graph", session::Stage::kGraph}, {"plan", session::Stage::kPlan}, {"passes", session::Stage::kPasses}};
  if (const auto shown = kStages.find(options.what); shown != kStages.end()) {
    const session::Stage stage = shown->second;
    WEIR_ASSIGN(std::string stage_text,
                session->ExplainStage(stage, request.feeds, request.fetches, options.run.targets));
    report[options.what] = stage_text;
    if (stage_text.ends_with('\n')) stage_text.pop_back();
    console.Print(stage_text);
    return Status();
  }
  std::optional<session::StepMeasurement> measured;
  if (options.measure > 0) {
    for (const std::string& init : options.run.inits) {
      WEIR_TRY(session->Run(request.feeds, {}, std::span(&init, 1)).status());
    }
    WEIR_ASSIGN(measured, session->MeasureStep(request.feeds, request.fetches, options.run.targets, options.measure));
  }
  WEIR_ASSIGN(const place::Explanation explanation,
              session->ExplainPlacement(request.feeds, request.fetches, options.run.targets));
  if (!options.html.empty()) {
    const std::string page = ExplainPage(options.run.graph, explanation, measured ? &*measured : nullptr);
    WEIR_TRY(io::WriteFileAtomically(options.html, page));
    report["html"] = options.html;
  }
  if (options.what == "memory") {
    ShowMemory(explanation, console, report);
    return Status();
  }
  Fill(explanation, report);
  if (measured) ShowMeasured(explanation, *measured, console, report);
  if (!options.html.empty()) {
    console.Print(explanation.summary);
    console.Print("wrote " + options.html);
    return Status();
  }
  std::string text = place::ToText(explanation);
  if (text.ends_with('\n')) text.pop_back();
  console.Print(text);
  return Status();
}

}  // namespace weir::cli
