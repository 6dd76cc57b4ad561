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
  const char* const kind = stage == "streams"    ? "/broken_streams_"
                           : stage == "compiler" ? "/broken_compiler_"
                                                 : "/broken_";
  return std::string(WEIR_MUTANTS) + kind + std::to_string(mutant) + "/broken.so";
}

std::vector<StageResult> CheckFile(const std::string& plugin, std::vector<std::string> stages,
                                   int time_limit_ms = 30000) {
  CheckOptions options;
  options.plugin = plugin;
  options.stages = std::move(stages);
  options.time_limit_ms = time_limit_ms;
  Result<std::vector<StageResult>> results = Check(**ops::Catalogue(), options);
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  return results.ok() ? std::move(*results) : std::vector<StageResult>();
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

class MutantTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsCaughtByItsRule) {
  const Mutant& mutant = GetParam();
#if defined(_GLIBCXX_TSAN)
  if (mutant.races) GTEST_SKIP() << "the thread sanitizer ends the checker's child at the race";
#endif
  const bool hangs = std::string_view(mutant.text) == "did not end";
  const std::vector<StageResult> stages =
      CheckFile(PathOf(mutant.number, mutant.stage), {mutant.stage}, hangs ? 1500 : 30000);
  EXPECT_FALSE(Passed(stages));
  bool caught = false;
  for (const RuleResult& rule : stages.at(0).rules) {
    if (rule.verdict != Verdict::kFail || rule.id != mutant.rule) continue;
    caught = caught || rule.message.find(mutant.text) != std::string::npos;
  }
  EXPECT_TRUE(caught) << "wanted " << mutant.rule << " with '" << mutant.text << "', got\n" << Print(stages);
}

INSTANTIATE_TEST_SUITE_P(All, MutantTest, ::testing::ValuesIn(kMutants),
                         [](const auto& info) { return "Break" + std::to_string(info.param.number); });

INSTANTIATE_TEST_SUITE_P(Streams, MutantTest, ::testing::ValuesIn(kStreamMutants),
                         [](const auto& info) { return "Break" + std::to_string(info.param.number); });

INSTANTIATE_TEST_SUITE_P(Compilers, MutantTest, ::testing::ValuesIn(kCompilerMutants),
                         [](const auto& info) { return "Break" + std::to_string(info.param.number); });

TEST(Check, HealthyStreamsPass) {
  const char* build = std::getenv("WEIR_BUILD_DIR");
  ASSERT_NE(build, nullptr);
  for (const std::string& path : {PathOf(0, "streams"), std::string(build) + "/lib/weir/async/async_device.so"}) {
    const std::vector<StageResult> stages = CheckFile(path, {});
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
      if (stage.name == "streams" || stage.name == "compiler") continue;  // it has neither
      for (const RuleResult& rule : stage.rules)
        EXPECT_EQ(rule.verdict, Verdict::kPass) << stage.name << " " << rule.id << " " << rule.message;
    }
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
    for (const RuleResult& rule : stages.back().rules)
      EXPECT_EQ(rule.verdict, Verdict::kPass) << rule.id << rule.message;
    EXPECT_EQ(stages.back().name, "compiler");
    EXPECT_EQ(stages.back().rules.size(), 8u);
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
  for (const char* kind : {"", "streams", "compiler"}) {
    for (const StageResult& stage : CheckFile(PathOf(0, kind), {})) {
      for (const RuleResult& rule : stage.rules) tried.insert(rule.id);
    }
  }
  for (const Rule& rule : Rules()) EXPECT_TRUE(tried.contains(std::string(rule.id))) << rule.id;
}

TEST(Check, EveryRuleHasAMutant) {
  std::set<std::string_view> caught;
  for (const Mutant& mutant : kMutants) caught.insert(mutant.rule);
  for (const Mutant& mutant : kStreamMutants) caught.insert(mutant.rule);
  for (const Mutant& mutant : kCompilerMutants) caught.insert(mutant.rule);
  for (const Rule& rule : Rules()) {
    // The first rule of a stage is that its process ends; the stages before have mutants for that.
    EXPECT_TRUE(caught.contains(rule.id) || rule.id == "WEIR-STREAM-00") << rule.id;
  }
}

TEST(Check, ShippedPluginsPass) {
  const char* build = std::getenv("WEIR_BUILD_DIR");
  ASSERT_NE(build, nullptr);
  int checked = 0;
  for (const char* name : {"cpu", "kernels_eigen", "kernels_image", "kernels_onednn", "kernels_openblas"}) {
    const std::string path = std::string(build) + "/lib/weir/plugins/" + name + ".so";
    if (!std::filesystem::exists(path)) continue;
    const std::vector<StageResult> stages = CheckFile(path, {}, 300000);
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
