#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/config/sources.h"
#include "core/io/files.h"
#include "core/ops/declare_all.h"
#include "core/plugin/catalogue.h"
#include "tools/weir/check/check.h"
#include "tools/weir/commands.h"

namespace weir::cli {
namespace {

Paint PaintOf(check::Verdict verdict) {
  switch (verdict) {
    case check::Verdict::kPass:
      return Paint::kGood;
    case check::Verdict::kFail:
      return Paint::kBad;
    case check::Verdict::kWarn:
      return Paint::kNone;
    case check::Verdict::kSkip:
      return Paint::kFaint;
  }
  return Paint::kNone;
}

std::string TextOf(const std::string& id) {
  for (const check::Rule& rule : check::Rules()) {
    if (rule.id == id) return std::string(rule.text);
  }
  return {};
}

void Print(const std::vector<check::StageResult>& stages, const Console& console) {
  Table table({"stage", "rule", "verdict", "what"});
  for (const check::StageResult& stage : stages) {
    for (const check::RuleResult& rule : stage.rules) {
      std::string what = TextOf(rule.id);
      if (!rule.message.empty()) what += (what.empty() ? "" : ": ") + rule.message;
      table.Add({stage.name, rule.id, Cell(std::string(check::Name(rule.verdict)), PaintOf(rule.verdict)), what});
    }
  }
  console.Print(table);
}

Json JsonOf(const std::vector<check::StageResult>& stages) {
  Json list = Json::array();
  for (const check::StageResult& stage : stages) {
    Json rules = Json::array();
    for (const check::RuleResult& rule : stage.rules) {
      rules.push_back({{"id", rule.id}, {"verdict", check::Name(rule.verdict)}, {"message", rule.message}});
    }
    list.push_back({{"name", stage.name}, {"rules", std::move(rules)}});
  }
  return list;
}

Status ListRules(const Console& console, Json& report) {
  Table table({"stage", "rule", "what"});
  report["rules"] = Json::array();
  for (const check::Rule& rule : check::Rules()) {
    table.Add({std::string(rule.stage), std::string(rule.id), std::string(rule.text)});
    report["rules"].push_back({{"stage", rule.stage}, {"id", rule.id}, {"text", rule.text}});
  }
  console.Print(table);
  return {};
}

}  // namespace

Status CheckPlugin(const CheckCommandOptions& options, const Console& console, Json& report) {
  if (options.rules) return ListRules(console, report);
  if (options.plugin.empty()) return InvalidArgument("wanted a plugin file: `weir check PLUGIN.so`");
  WEIR_ASSIGN(const op::OpRegistry* ops, ops::Catalogue());
  WEIR_ASSIGN(const config::Loaded loaded, config::Load(options.sources));
  check::CheckOptions check_options;
  check_options.plugin = options.plugin;
  check_options.stages = options.stages;
  check_options.folders = plugin::SearchPath();
  check_options.cases = options.cases;
  check_options.config = loaded.config;
  check_options.time_limit_ms = options.time_limit_s * 1000;
  WEIR_ASSIGN(const std::vector<check::StageResult> stages, check::Check(*ops, check_options));
  report["stages"] = JsonOf(stages);
  Print(stages, console);
  if (!options.json.empty()) {
    Json file = {{"schema", 1}, {"plugin", options.plugin}, {"passed", check::Passed(stages)}};
    file["stages"] = report["stages"];
    WEIR_TRY(io::WriteFileAtomically(options.json, file.dump(2) + "\n"));
  }
  if (!options.junit.empty()) {
    WEIR_TRY(io::WriteFileAtomically(options.junit, check::JUnit(options.plugin, stages)));
  }
  std::map<check::Verdict, int> counts;
  std::vector<std::string> broken;
  for (const check::StageResult& stage : stages) {
    for (const check::RuleResult& rule : stage.rules) {
      ++counts[rule.verdict];
      if (rule.verdict == check::Verdict::kFail) broken.push_back(rule.id);
    }
  }
  console.Print(fmt::format("{}: {} passed, {} failed, {} warned, {} skipped", options.plugin,
                            counts[check::Verdict::kPass], counts[check::Verdict::kFail], counts[check::Verdict::kWarn],
                            counts[check::Verdict::kSkip]));
  if (check::Passed(stages)) return Status();
  return FailedPrecondition("{} breaks {}", options.plugin, fmt::join(broken, ", "));
}

}  // namespace weir::cli
