#include "tools/weir/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/nearest.h"
#include "tools/weir/check/stages.h"

namespace weir::check {
namespace {

constexpr Rule kRules[] = {
    {"WEIR-NOTE-01", "static", "the file is a 64-bit ELF library with one valid note of weir"},
    {"WEIR-NOTE-02", "static",
     "the note fits this host: machine, ABI, must-understand bits, sanitizer, instruction set"},
    {"WEIR-NOTE-03", "static", "the note lists the plugin's parts, and kernels name their platforms"},
    {"WEIR-ELF-01", "static", "exactly one symbol is exported: weir_plugin_query_v1"},
    {"WEIR-ELF-02", "static", "no symbol of the core is imported"},
    {"WEIR-ELF-03", "static", "no exported symbol is unique across the process (GNU_UNIQUE)"},
    {"WEIR-ELF-04", "static", "no text relocations, no executable stack; relro and immediate binding"},
    {"WEIR-ELF-05", "static", "the run path has only the plugin's own folder"},
    {"WEIR-ELF-06", "static", "only root and the user may change the file and its folder"},
    {"WEIR-LOAD-01", "load", "the dynamic linker loads it"},
    {"WEIR-LOAD-02", "load", "loading does not change environment, folder, signal handlers or floating-point mode"},
    {"WEIR-LOAD-03", "load", "loading and starting print nothing"},
    {"WEIR-LOAD-04", "load", "loading starts no thread and opens no file"},
    {"WEIR-ABI-01", "abi", "the query function accepts this ABI major and no other"},
    {"WEIR-ABI-02", "abi", "the plugin's table is complete and agrees with its note"},
    {"WEIR-ABI-03", "abi", "interfaces: listed ones exist, unknown ids return null, results are constant"},
    {"WEIR-ABI-04", "abi", "tables have their required functions"},
    {"WEIR-ABI-05", "abi", "a null error record is legal"},
    {"WEIR-ABI-06", "abi", "an error message stays inside its buffer"},
    {"WEIR-ABI-07", "abi", "a newer host, with a longer table, works"},
    {"WEIR-LIFE-01", "lifecycle", "init succeeds with default options"},
    {"WEIR-LIFE-02", "lifecycle", "enumerate ends, and returns the same devices again"},
    {"WEIR-LIFE-03", "lifecycle", "device records are complete and have distinct uids"},
    {"WEIR-LIFE-04", "lifecycle", "opening an unknown device is an error"},
    {"WEIR-LIFE-05", "lifecycle", "a device opens twice at once, and a thousand times in turn"},
    {"WEIR-LIFE-07", "lifecycle", "a second init is refused and changes nothing"},
    {"WEIR-LIFE-06", "lifecycle", "shutdown ends the plugin's threads"},
    {"WEIR-OPT-01", "options", "the schema is well formed, its defaults are in range"},
    {"WEIR-OPT-02", "options", "init accepts what the schema allows"},
    {"WEIR-MEM-00", "memory", "the plugin starts and opens its devices"},
    {"WEIR-MEM-01", "memory", "blocks of every size are complete, aligned and disjoint"},
    {"WEIR-MEM-02", "memory", "an allocation that is too large fails, and smaller ones succeed afterwards"},
    {"WEIR-MEM-03", "memory", "copies transfer exactly the bytes of the range, at odd sizes and offsets"},
    {"WEIR-MEM-04", "memory", "memset fills exactly the bytes of the range"},
    {"WEIR-STREAM-00", "streams", "the plugin starts and its stream table is complete"},
    {"WEIR-STREAM-01", "streams", "a stream runs its work in order, before its event is reached"},
    {"WEIR-STREAM-02", "streams", "an event orders two streams, and may be recorded again"},
    {"WEIR-STREAM-03", "streams", "waiting for an event that was never recorded is an error"},
    {"WEIR-STREAM-04", "streams", "a poisoned stream fails later work; the first poison wins"},
    {"WEIR-STREAM-05", "streams", "a callback is called once, also if the event is already reached"},
    {"WEIR-STREAM-06", "streams", "stream-ordered memory lives until its last use"},
    {"WEIR-STREAM-07", "streams", "copies between devices transfer every byte"},
    {"WEIR-KERNEL-00", "kernels", "the plugin starts and there is a device for its kernels"},
    {"WEIR-KERNEL-01", "kernels", "the core accepts every kernel record"},
    {"WEIR-KERNEL-02", "kernels",
     "every output has its shape and is written completely, and no other memory is written"},
    {"WEIR-KERNEL-03", "kernels", "the same inputs give the same bits"},
    {"WEIR-KERNEL-04", "kernels", "declared aliases are correct: in-place calls give the same result"},
    {"WEIR-KERNEL-05", "kernels", "scratch memory has the requested size"},
    {"WEIR-KERNEL-06", "kernels", "fn does not call the host"},
    {"WEIR-KERNEL-07", "kernels", "inputs are not modified"},
    {"WEIR-KERNEL-08", "kernels", "prepared and dynamic form agree"},
    {"WEIR-KERNEL-09", "kernels", "empty tensors work"},
    {"WEIR-COMP-00", "compiler", "the plugin starts and its compiler's table is complete"},
    {"WEIR-COMP-01", "compiler", "claims name nodes of the region, are convex, and are the same when asked again"},
    {"WEIR-COMP-02", "compiler", "what it claims compiles, with the region's inputs and outputs"},
    {"WEIR-COMP-03", "compiler", "results are those of the ops, and no other memory is written"},
    {"WEIR-COMP-04", "compiler", "tiles in any number of calls, and outputs over inputs, give the same bits"},
    {"WEIR-COMP-05", "compiler", "a serialized executable comes back with the same bits"},
    {"WEIR-COMP-06", "compiler", "damaged bytes are refused and crash nothing"},
    {"WEIR-COMP-07", "compiler", "ops that it does not know, and cancelled compilations, are errors"},
};

constexpr std::string_view kStages[] = {"static", "load",    "abi",     "lifecycle", "options",
                                        "memory", "streams", "kernels", "compiler"};
constexpr std::vector<RuleResult> (*kStageFunctions[])(const Target&) = {StaticStage,    LoadStage,    AbiStage,
                                                                         LifecycleStage, OptionsStage, MemoryStage,
                                                                         StreamsStage,   KernelsStage, CompilerStage};
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
    case Verdict::kSkip:
      return "skip";
  }
  return "fail";
}

std::span<const Rule> Rules() { return kRules; }
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
  target.folders.push_back(path.parent_path().string());
  target.folders.insert(target.folders.end(), options.folders.begin(), options.folders.end());
  std::vector<StageResult> results;
  for (size_t i = 0; i < std::size(kStages); ++i) {
    const std::string stage(kStages[i]);
    const bool wanted = options.stages.empty() ||
                        std::find(options.stages.begin(), options.stages.end(), stage) != options.stages.end();
    if (wanted) results.push_back({stage, kStageFunctions[i](target)});
  }
  return results;
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
