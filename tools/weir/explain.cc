// `weir explain`: the placement of a graph, with every candidate of every node.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/place/place.h"
#include "core/session/options.h"
#include "core/session/session.h"
#include "tools/weir/commands.h"
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

}  // namespace

Status ExplainGraph(const ExplainOptions& options, const Console& console, Json& report) {
  WEIR_ASSIGN(const graph::Definition graph, ReadGraph(options.run.graph));
  WEIR_ASSIGN(const Request request, MakeRequest(options.run, graph));
  WEIR_ASSIGN(std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  session::SessionOptions session_options = session::SessionOptionsFrom(runtime->config);
  session_options.default_device = options.run.device;
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
  WEIR_ASSIGN(const place::Explanation explanation,
              session->ExplainPlacement(request.feeds, request.fetches, options.run.targets));
  if (options.what == "memory") {
    ShowMemory(explanation, console, report);
    return Status();
  }
  Fill(explanation, report);
  std::string text = place::ToText(explanation);
  if (text.ends_with('\n')) text.pop_back();
  console.Print(text);
  return Status();
}

}  // namespace weir::cli
