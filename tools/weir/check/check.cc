#include "tools/weir/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/nearest.h"
#include "tools/weir/check/stages.h"

namespace weir::check {
namespace {

constexpr std::string_view kStages[] = {"static",  "load",   "abi",   "lifecycle", "options", "memory",  "streams",
                                        "kernels", "values", "order", "gradients", "costs",   "compiler"};
constexpr std::vector<RuleResult> (*kStageFunctions[])(const Target&) = {
    StaticStage,  LoadStage,   AbiStage,   LifecycleStage, OptionsStage, MemoryStage,  StreamsStage,
    KernelsStage, ValuesStage, OrderStage, GradientsStage, CostsStage,   CompilerStage};
static_assert(std::size(kStages) == std::size(kStageFunctions));

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kSkip:
      return "skip";
  }
  return "fail";
}

std::span<const std::string_view> StageNames() { return kStages; }

Result<std::vector<StageResult>> Check(const op::OpRegistry& ops, const CheckOptions& options) {
  for (const std::string& stage : options.stages) {
    if (std::find(std::begin(kStages), std::end(kStages), stage) != std::end(kStages)) continue;
    const std::vector<std::string_view> known(std::begin(kStages), std::end(kStages));
    return InvalidArgument("there is no stage '{}', wanted one of {}{}", stage, fmt::join(kStages, ", "),
                           NearestHint(stage, known));
  }
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(options.plugin, error);
  if (error) return NotFound("cannot check '{}': {}", options.plugin, error.message());
  Target target;
  target.path = path.string();
  target.ops = &ops;
  target.time_limit_ms = options.time_limit_ms;
  target.config = std::make_shared<const config::Config>(options.config);
  target.cases = options.cases.empty() ? UsualCases() : options.cases;
  target.folders.push_back(path.parent_path().string());
  for (const std::string& folder : options.folders) {
    const std::filesystem::path real = std::filesystem::canonical(folder, error);
    const std::string text = error ? folder : real.string();
    if (std::ranges::find(target.folders, text) == target.folders.end()) target.folders.push_back(text);
  }
  std::vector<StageResult> results;
  for (size_t i = 0; i < std::size(kStages); ++i) {
    const std::string stage(kStages[i]);
    const bool wanted = options.stages.empty() ||
                        std::find(options.stages.begin(), options.stages.end(), stage) != options.stages.end();
    if (wanted) results.push_back({stage, kStageFunctions[i](target)});
  }
  return results;
}

std::string UsualCases() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / ".." / "share" / "weir" / "op_cases").lexically_normal().string();
}

bool Passed(std::span<const StageResult> stages) {
  return std::all_of(stages.begin(), stages.end(), [](const StageResult& stage) {
    return std::none_of(stage.rules.begin(), stage.rules.end(),
                        [](const RuleResult& r) { return r.verdict == Verdict::kFail; });
  });
}

std::string JUnit(std::string_view plugin, std::span<const StageResult> stages) {
  size_t tests = 0, failures = 0, skipped = 0;
  std::string suites;
  for (const StageResult& stage : stages) {
    std::string cases;
    size_t failed = 0, left_out = 0;
    for (const RuleResult& rule : stage.rules) {
      cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", EscapeXml(stage.name), EscapeXml(rule.id));
      const std::string message = EscapeXml(rule.message);
      if (rule.verdict == Verdict::kPass) {
        cases += "/>\n";
      } else if (rule.verdict == Verdict::kWarn) {
        cases += fmt::format(">\n      <system-out>warning: {}</system-out>\n    </testcase>\n", message);
      } else if (rule.verdict == Verdict::kFail) {
        ++failed;
        cases += fmt::format(">\n      <failure message=\"{}\"/>\n    </testcase>\n", message);
      } else {
        ++left_out;
        cases += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", message);
      }
    }
    suites += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n",
                          EscapeXml(stage.name), stage.rules.size(), failed, left_out, cases);
    tests += stage.rules.size();
    failures += failed;
    skipped += left_out;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" "
      "skipped=\"{}\">\n{}</testsuites>\n",
      EscapeXml(plugin), tests, failures, skipped, suites);
}

}  // namespace weir::check
