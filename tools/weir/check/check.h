// `weir check`: tests the rules for a plugin file, stage by stage in child processes.
#ifndef WEIR_TOOLS_WEIR_CHECK_CHECK_H_
#define WEIR_TOOLS_WEIR_CHECK_CHECK_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/op/registry.h"

namespace weir::check {

/// kWarn: nothing that the plugin alone can mend, or nothing that harms; the check passes.
enum class Verdict { kPass, kFail, kWarn, kSkip };
/// "pass", "fail", "warn", "skip".
std::string_view Name(Verdict verdict);

/// The result of one rule. A rule may occur more than once in a stage.
struct RuleResult {
  std::string id;  // WEIR-MEM-02
  Verdict verdict = Verdict::kPass;
  std::string message;  // why it failed, warns or was skipped
};

struct StageResult {
  std::string name;
  std::vector<RuleResult> rules;
};

/// A rule of the plugin ABI that the checker enforces.
struct Rule {
  std::string_view id;
  std::string_view stage;
  std::string_view text;
};
std::span<const Rule> Rules();

/// The stages in order: static, load, abi, lifecycle, options, memory, streams, kernels, values, order, gradients,
/// costs, compiler.
std::span<const std::string_view> StageNames();

struct CheckOptions {
  std::string plugin;                // path of the file
  std::vector<std::string> stages;   // empty = all
  int time_limit_ms = 30000;         // for a rule, or what a rule notes that it tries
  std::vector<std::string> folders;  // folders of device plugins and the CPU's kernels, besides the plugin's own
  std::string cases;                 // the folder of op cases; empty = UsualCases()
  config::Config config;             // gives the options of plugins, and settings of sessions
};

/// `../share/weir/op_cases` relative to the running command's folder.
std::string UsualCases();

/// Checks one file. NotFound for a file that does not exist, InvalidArgument for an unknown stage (nearest names).
/// Forks, so the process must have a single thread. Standard output and error of the children are discarded.
Result<std::vector<StageResult>> Check(const op::OpRegistry& ops, const CheckOptions& options);

/// No rule failed.
bool Passed(std::span<const StageResult> stages);

/// A JUnit report, one test case per result.
std::string JUnit(std::string_view plugin, std::span<const StageResult> stages);

}  // namespace weir::check

#endif  // WEIR_TOOLS_WEIR_CHECK_CHECK_H_
