// The checker finds the fault of each broken plugin, and passes good ones.
#include "tools/weir/check/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "core/ops/declare_all.h"
#include "tests/plugin/mutants.h"

namespace weir::check {
namespace {

std::string PathOf(int mutant, std::string_view stage = {}) {
  const char* const kind = stage == "compiler" ? "/broken_compiler_" : "/broken_";
  return std::string(WEIR_MUTANTS) + kind + std::to_string(mutant) + "/broken.so";
}
std::string Flawed() { return std::string(WEIR_MUTANTS) + "/flawed/flawed.so"; }

std::string BuiltPlugins() {
  const char* const build = std::getenv("WEIR_BUILD_DIR");
  EXPECT_NE(build, nullptr);
  return std::string(build == nullptr ? "" : build) + "/lib/weir/plugins";
}

CheckOptions OptionsFor(const std::string& plugin, std::vector<std::string> stages, int time_limit_ms = 30000) {
  CheckOptions options;
  options.plugin = plugin;
  options.stages = std::move(stages);
  options.time_limit_ms = time_limit_ms;
  options.folders = {BuiltPlugins()};
  options.cases = WEIR_FEW_CASES;
  return options;
}

void Set(CheckOptions& options, const std::string& key, config::Value value) {
  options.config.plugin["flawed"][key] = {{std::move(value), false}, {config::Source::kSet, {}, 0}};
}

std::vector<StageResult> RunCheck(const CheckOptions& options) {
  Result<std::vector<StageResult>> results = Check(**ops::Catalogue(), options);
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  return results.ok() ? std::move(*results) : std::vector<StageResult>();
}

std::vector<StageResult> CheckFile(const std::string& plugin, std::vector<std::string> stages,
                                   int time_limit_ms = 30000) {
  return RunCheck(OptionsFor(plugin, std::move(stages), time_limit_ms));
}

std::vector<StageResult> CheckFlaw(int64_t fault, std::vector<std::string> stages) {
  CheckOptions options = OptionsFor(Flawed(), std::move(stages));
  Set(options, "fault", fault);
  return RunCheck(options);
}

const RuleResult* Find(const std::vector<StageResult>& stages, std::string_view rule) {
  for (const StageResult& stage : stages) {
    for (const RuleResult& result : stage.rules) {
      if (result.id == rule) return &result;
    }
  }
  return nullptr;
}

std::string Print(const std::vector<StageResult>& stages) {
  std::string text;
  for (const StageResult& stage : stages) {
    for (const RuleResult& rule : stage.rules) {
      text += stage.name + " " + rule.id + " " + std::string(Name(rule.verdict)) + " " + rule.message + "\n";
    }
  }
  return text;
}

void ExpectCaught(const Mutant& mutant, const std::vector<StageResult>& stages) {
  EXPECT_FALSE(Passed(stages));
  bool caught = false;
  for (const RuleResult& rule : stages.at(0).rules) {
    if (rule.verdict != Verdict::kFail || rule.id != mutant.rule) continue;
    caught = caught || rule.message.find(mutant.text) != std::string::npos;
  }
  EXPECT_TRUE(caught) << "wanted " << mutant.rule << " with '" << mutant.text << "', got\n" << Print(stages);
}

// Measured times mean nothing where WEIR-COST-04 and 05 are skipped.
bool Measures(const Mutant& mutant) {
  const std::string_view rule = mutant.rule;
  return rule == "WEIR-COST-04" || rule == "WEIR-COST-05";
}

class MutantTest : public ::testing::TestWithParam<Mutant> {};
class FlawTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsCaughtByItsRule) {
  const Mutant& mutant = GetParam();
#if defined(_GLIBCXX_TSAN)
  if (mutant.races) GTEST_SKIP() << "the thread sanitizer ends the checker's child at the race";
#endif
  const bool hangs = std::string_view(mutant.text) == "did not end";
  const std::vector<StageResult> stages =
      CheckFile(PathOf(mutant.number, mutant.stage), {mutant.stage}, hangs ? 1500 : 30000);
  ExpectCaught(mutant, stages);
}

TEST_P(FlawTest, IsCaughtByItsRule) {
  const Mutant& mutant = GetParam();
#if defined(_GLIBCXX_TSAN)
  if (mutant.races) GTEST_SKIP() << "the thread sanitizer ends the checker's child at the race";
#endif
  const std::vector<StageResult> stages = CheckFlaw(mutant.number, {mutant.stage});
  const RuleResult* const rule = Find(stages, mutant.rule);
  if (Measures(mutant) && rule != nullptr && rule->verdict == Verdict::kSkip) GTEST_SKIP() << rule->message;
  ExpectCaught(mutant, stages);
}

INSTANTIATE_TEST_SUITE_P(All, MutantTest, ::testing::ValuesIn(kMutants),
                         [](const auto& info) { return "Break" + std::to_string(info.param.number); });

INSTANTIATE_TEST_SUITE_P(All, FlawTest, ::testing::ValuesIn(kFlaws), [](const auto& info) {
  return "Fault" + std::to_string(info.param.number) + info.param.stage;
});

INSTANTIATE_TEST_SUITE_P(Compilers, MutantTest, ::testing::ValuesIn(kCompilerMutants),
                         [](const auto& info) { return "Break" + std::to_string(info.param.number); });

TEST(Check, HealthyStreamsPass) {
  const char* build = std::getenv("WEIR_BUILD_DIR");
  ASSERT_NE(build, nullptr);
  for (const std::string& path : {Flawed(), std::string(build) + "/lib/weir/async/async_device.so"}) {
    const std::vector<StageResult> stages = CheckFile(path, {}, 120000);
    EXPECT_TRUE(Passed(stages)) << path << "\n" << Print(stages);
    for (const StageResult& stage : stages) {
      if (stage.name != "streams") continue;
      EXPECT_GE(stage.rules.size(), 15u) << "eight rules on two devices";
      for (const RuleResult& rule : stage.rules) EXPECT_EQ(rule.verdict, Verdict::kPass) << rule.id << rule.message;
    }
  }
}

TEST(Check, HealthyPluginPassesEverything) {
  for (const int number : {0, 62}) {  // 62 has memory that is accessible only through copies
    const std::vector<StageResult> stages = CheckFile(PathOf(number), {});
    EXPECT_TRUE(Passed(stages)) << Print(stages);
    ASSERT_EQ(stages.size(), StageNames().size());
    for (const StageResult& stage : stages) {
      // It has no streams, no costs, no compiler, and no options are set.
      if (stage.name == "streams" || stage.name == "order" || stage.name == "costs" || stage.name == "compiler")
        continue;
      for (const RuleResult& rule : stage.rules) {
        if (rule.id == "WEIR-OPT-03" || rule.id.starts_with("WEIR-VALUE-0")) continue;
        EXPECT_EQ(rule.verdict, Verdict::kPass) << stage.name << " " << rule.id << " " << rule.message;
      }
    }
    EXPECT_EQ(Find(stages, "WEIR-VALUE-01")->verdict, Verdict::kPass) << Print(stages);
  }
}

TEST(Check, ACompilerPassesEverything) {
  const char* build = std::getenv("WEIR_BUILD_DIR");
  ASSERT_NE(build, nullptr);
  for (const std::string& path : {PathOf(0, "compiler"), std::string(build) + "/lib/weir/examples/toy_compiler.so",
                                  std::string(build) + "/lib/weir/plugins/compiler_llvm.so"}) {
    if (!std::filesystem::exists(path)) continue;
    const std::vector<StageResult> stages = CheckFile(path, {}, 300000);
    EXPECT_TRUE(Passed(stages)) << path << "\n" << Print(stages);
    for (const RuleResult& rule : stages.back().rules) {
      const bool without_loops = rule.id == "WEIR-COMP-08" && path.find("compiler_llvm") == std::string::npos;
      EXPECT_EQ(rule.verdict, without_loops ? Verdict::kSkip : Verdict::kPass) << rule.id << rule.message;
    }
    EXPECT_EQ(stages.back().name, "compiler");
    EXPECT_EQ(stages.back().rules.size(), 9u);
  }
}

TEST(Check, UntriedRulesAreSkipped) {
  const std::vector<StageResult> stages = CheckFile(PathOf(63), {"kernels"});  // its kernels refuse all inputs
  for (const RuleResult& rule : stages.at(0).rules) {
    if (rule.id == "WEIR-KERNEL-00" || rule.id == "WEIR-KERNEL-01") continue;
    EXPECT_EQ(rule.verdict, Verdict::kSkip) << rule.id << " " << rule.message;
  }
}

TEST(Check, KernelsForAnotherPluginsStreamsPass) {
#if defined(_GLIBCXX_TSAN)
  GTEST_SKIP() << "minutes of kernels, which the other builds check";
#endif
  const char* build = std::getenv("WEIR_BUILD_DIR");
  ASSERT_NE(build, nullptr);
  const std::string path = std::string(build) + "/lib/weir/async/kernels_async.so";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "it is not built";
  const std::vector<StageResult> stages = CheckFile(path, {"kernels"}, 300000);
  EXPECT_TRUE(Passed(stages)) << Print(stages);
  const auto& rules = stages.at(0).rules;
  const auto tried =
      std::count_if(rules.begin(), rules.end(), [](const auto& r) { return r.verdict == Verdict::kPass; });
  EXPECT_GE(tried, 10) << Print(stages);
}

TEST(Check, DynamicKernelsAreCalledAsStepsCallThem) {
  const std::string path = std::string(WEIR_MUTANTS) + "/streamed/streamed.so";  // one of its kernels requires a stream
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "it is not built";
  const std::vector<StageResult> stages = CheckFile(path, {"kernels"});
  EXPECT_TRUE(Passed(stages)) << Print(stages);
  for (const RuleResult& rule : stages.at(0).rules) {
    EXPECT_EQ(rule.message.find("no inputs found"), std::string::npos) << rule.message;
  }
}

TEST(Check, MissingDevicesAreNotAFault) {
  const std::vector<StageResult> stages = CheckFile(PathOf(30), {});
  EXPECT_TRUE(Passed(stages)) << Print(stages);
}

TEST(Check, EveryRuleIsTriedOnAHealthyPlugin) {
  std::set<std::string> tried;
  for (const std::string& path : {PathOf(0), Flawed(), PathOf(0, "compiler")}) {
    for (const StageResult& stage : CheckFile(path, {})) {
      for (const RuleResult& rule : stage.rules) tried.insert(rule.id);
    }
  }
  for (const Rule& rule : Rules()) EXPECT_TRUE(tried.contains(std::string(rule.id))) << rule.id;
}

TEST(Check, EveryRuleHasAMutant) {
  std::set<std::string_view> caught;
  for (const Mutant& mutant : kMutants) caught.insert(mutant.rule);
  for (const Mutant& mutant : kFlaws) caught.insert(mutant.rule);
  for (const Mutant& mutant : kCompilerMutants) caught.insert(mutant.rule);
  // The first rule of a stage is that the plugin starts; the stages before have mutants for that. The others have tests
  // below.
  const std::set<std::string_view> elsewhere = {"WEIR-STREAM-00", "WEIR-VALUE-00", "WEIR-ORDER-00", "WEIR-GRAD-00",
                                                "WEIR-COST-00",   "WEIR-OPT-03",   "WEIR-VALUE-02", "WEIR-VALUE-03"};
  for (const Rule& rule : Rules()) EXPECT_NE(caught.contains(rule.id), elsewhere.contains(rule.id)) << rule.id;
}

TEST(Check, ThereAreEnoughBrokenPlugins) {
  EXPECT_GE(std::size(kMutants) + std::size(kFlaws) + std::size(kCompilerMutants), 90u);
}

TEST(Check, KernelsWithoutACaseAreComparedWithTheCpu) {
  if (!std::filesystem::exists(BuiltPlugins() + "/kernels_eigen.so")) GTEST_SKIP() << "it is not built";
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "weir_no_cases";
  std::filesystem::create_directories(folder);
  for (const int64_t fault : {0, 10}) {
    CheckOptions options = OptionsFor(Flawed(), {"values"});
    options.cases = folder.string();
    Set(options, "fault", fault);
    const std::vector<StageResult> stages = RunCheck(options);
    const RuleResult* const rule = Find(stages, "WEIR-VALUE-02");
    ASSERT_NE(rule, nullptr) << Print(stages);
    EXPECT_EQ(rule->verdict, fault == 0 ? Verdict::kPass : Verdict::kFail) << Print(stages);
    const bool told = rule->message.find("as the CPU's kernel gives") != std::string::npos;
    EXPECT_EQ(told, fault != 0) << rule->message;
  }
  std::filesystem::remove(folder);
}

TEST(Check, KernelsThatTakeWhatOthersRefuseAreAWarning) {
  const std::vector<StageResult> healthy = CheckFlaw(0, {"values"}), broken = CheckFlaw(16, {"values"});
  EXPECT_EQ(Find(healthy, "WEIR-VALUE-03")->verdict, Verdict::kPass) << Print(healthy);
  EXPECT_EQ(Find(broken, "WEIR-VALUE-03")->verdict, Verdict::kWarn) << Print(broken);
  EXPECT_TRUE(Passed(broken)) << Print(broken);
}

TEST(Check, ThreadsOfLibrariesAreAWarning) {
  const std::vector<StageResult> stages = CheckFlaw(55, {"lifecycle"});
  EXPECT_EQ(Find(stages, "WEIR-LIFE-06")->verdict, Verdict::kWarn) << Print(stages);
  EXPECT_TRUE(Passed(stages));
}

TEST(Check, DevicesThatOpenOncePass) {
  const std::vector<StageResult> stages = CheckFlaw(52, {"lifecycle"});
  EXPECT_EQ(Find(stages, "WEIR-LIFE-05")->verdict, Verdict::kPass) << Print(stages);
}

TEST(Check, OptionsThatAreSetReachThePlugin) {
  EXPECT_EQ(Find(CheckFlaw(0, {"options"}), "WEIR-OPT-03")->verdict, Verdict::kPass);
  EXPECT_EQ(Find(CheckFile(Flawed(), {"options"}), "WEIR-OPT-03")->verdict, Verdict::kSkip);
  for (const auto& [key, value] : {std::pair("fualt", config::Value(int64_t{1})),
                                   {"fault", config::Value(int64_t{100})},
                                   {"fault", config::Value(std::string("yes"))}}) {
    CheckOptions options = OptionsFor(Flawed(), {"options"});
    Set(options, key, value);
    const std::vector<StageResult> stages = RunCheck(options);
    EXPECT_EQ(Find(stages, "WEIR-OPT-03")->verdict, Verdict::kFail) << Print(stages);
    EXPECT_NE(Find(stages, "WEIR-OPT-03")->message.find("fault"), std::string::npos) << Print(stages);
  }
}

TEST(Check, WithoutOpCasesTheReasonIsTold) {
  CheckOptions options = OptionsFor(Flawed(), {"values"});
  options.cases = "/nowhere/at/all";
  const std::vector<StageResult> stages = RunCheck(options);
  const RuleResult* const rule = Find(stages, "WEIR-VALUE-00");
  EXPECT_EQ(rule->verdict, Verdict::kSkip);
  EXPECT_NE(rule->message.find("--cases DIR"), std::string::npos) << rule->message;
}

TEST(Check, PluginsOfOtherMinorVersionsPass) {
  for (const char* minor : {"older", "newer"}) {  // the newer one's note says so too
    const std::vector<StageResult> stages = CheckFile(std::string(WEIR_MUTANTS) + "/" + minor + "/broken.so", {});
    EXPECT_TRUE(Passed(stages)) << minor << "\n" << Print(stages);
    EXPECT_EQ(Find(stages, "WEIR-VALUE-01")->verdict, Verdict::kPass) << minor << "\n" << Print(stages);
  }
}

TEST(Check, PluginsOfOtherLanguagesAndCompilersPass) {
  for (const char* path : {"/plain/plain.so", "/clang/plain.so", "/clang_cc/broken.so"}) {
    const std::string file = WEIR_MUTANTS + std::string(path);
    if (!std::filesystem::exists(file)) continue;
    const std::vector<StageResult> stages = CheckFile(file, {});
    EXPECT_TRUE(Passed(stages)) << file << "\n" << Print(stages);
    EXPECT_EQ(Find(stages, "WEIR-VALUE-01")->verdict, Verdict::kPass) << file << "\n" << Print(stages);
  }
}

TEST(Check, ExamplesPass) {
  const char* build = std::getenv("WEIR_BUILD_DIR");
  ASSERT_NE(build, nullptr);
  for (const char* name : {"toy_device", "toy_mul", "my_device"}) {
    const std::string path = std::string(build) + "/lib/weir/examples/" + name + ".so";
    if (!std::filesystem::exists(path)) continue;
    const std::vector<StageResult> stages = CheckFile(path, {}, 120000);
    EXPECT_TRUE(Passed(stages)) << path << "\n" << Print(stages);
  }
}

TEST(Check, ShippedPluginsPass) {
#if defined(_GLIBCXX_TSAN)
  GTEST_SKIP() << "minutes of kernels in one thread, which the other builds check";
#endif
  const char* build = std::getenv("WEIR_BUILD_DIR");
  ASSERT_NE(build, nullptr);
  int checked = 0;
  for (const char* name : {"cpu", "kernels_eigen", "kernels_image", "kernels_onednn", "kernels_openblas"}) {
    const std::string path = std::string(build) + "/lib/weir/plugins/" + name + ".so";
    if (!std::filesystem::exists(path)) continue;
    CheckOptions options = OptionsFor(path, {}, 300000);
    // op_cases_test runs all cases on these plugins in every build.
    if (WEIR_SANITIZER_KIND == 0) options.cases = WEIR_OP_CASES;
    const std::vector<StageResult> stages = RunCheck(options);
    EXPECT_TRUE(Passed(stages)) << Print(stages);
    ++checked;
  }
  if (checked == 0) GTEST_SKIP() << "no plugin is built";
}

TEST(Check, WrongUse) {
  CheckOptions options;
  options.plugin = "/nowhere/at/all.so";
  EXPECT_EQ(Check(**ops::Catalogue(), options).status().code(), Code::kNotFound);
  options.plugin = PathOf(0);
  options.stages = {"memori"};
  const Status status = Check(**ops::Catalogue(), options).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("'memory'"), std::string::npos) << status.message();
}

TEST(Check, ReportsAsJUnit) {
  const std::vector<StageResult> stages = {
      {"load",
       {{"A-1", Verdict::kPass, ""}, {"A-2", Verdict::kFail, "x < \"y\" & z"}, {"A-3", Verdict::kSkip, "why"}}}};
  EXPECT_EQ(JUnit("toy.so", stages),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites name=\"toy.so\" tests=\"3\" failures=\"1\" skipped=\"1\">\n"
            "  <testsuite name=\"load\" tests=\"3\" failures=\"1\" skipped=\"1\">\n"
            "    <testcase classname=\"load\" name=\"A-1\"/>\n"
            "    <testcase classname=\"load\" name=\"A-2\">\n"
            "      <failure message=\"x &lt; &quot;y&quot; &amp; z\"/>\n    </testcase>\n"
            "    <testcase classname=\"load\" name=\"A-3\">\n"
            "      <skipped message=\"why\"/>\n    </testcase>\n"
            "  </testsuite>\n</testsuites>\n");
}

}  // namespace
}  // namespace weir::check
