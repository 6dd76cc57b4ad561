// The parts of the benchmarks other than timing: limits compute correct results, reports list missed gates, the engine
// of tools/bench peers refuses workloads that give no meaningful figure.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bench/limit_loops.h"
#include "tests/bench/measure.h"
#include "tests/unit/io/temp_dir.h"

namespace weir::bench {
namespace {

TEST(BenchLimits, EveryIsaComputesTheSame) {
  constexpr size_t kCount = 1024;
  const std::string widest(LimitIsa());
  int isas = 0;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    if (!SetLimitIsa(isa)) continue;
    ++isas;
    EXPECT_EQ(LimitIsa(), isa);
    const Floats from = MakeFloats(kCount, 0), to = MakeFloats(kCount, 0);
    for (size_t i = 0; i < kCount; ++i) from.get()[i] = static_cast<float>(i);
    EXPECT_EQ(Sum(from.get(), kCount), kCount * (kCount - 1) / 2) << isa;
    Scale(from.get(), to.get(), kCount, 0.5f);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(to.get()[i], static_cast<float>(i) / 2) << isa;
    Scale(from.get(), from.get(), kCount, 2);
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(from.get()[i], static_cast<float>(2 * i)) << isa;
    MultiplyAdds(1000);
  }
  EXPECT_GE(isas, 1);
  EXPECT_EQ(LimitIsa(), widest) << "the widest is the last";
  EXPECT_FALSE(SetLimitIsa("avx3"));
}

TEST(BenchReport, GatesAndGoalsAreReported) {
  Row row{"B02", "empty kernel", "ns", 4.7, 4.5, "indirect call", 1.3, 3, {}, 2};
  EXPECT_TRUE(row.missed());
  EXPECT_NE(Markdown({row}).find("| 3 MISSED | 2 MISSED |"), std::string::npos) << Markdown({row});
  row.gate = 5;
  EXPECT_FALSE(row.missed());
  EXPECT_NE(Markdown({row}).find("| 5 met | 2 MISSED |"), std::string::npos) << Markdown({row});
  EXPECT_EQ(nlohmann::json::parse(JsonText({row}))["rows"][0]["goal"], 2);
  row.gate = 3;
  row.error = "no figure";
  EXPECT_FALSE(row.missed());
  EXPECT_TRUE(row.failed());
  EXPECT_EQ(TellMissed({}), 0);
  EXPECT_EQ(TellMissed({"B02"}), 1);
}

class BenchEngine : public TempDir {
 protected:
  /// The engine's answer to a workload, timed once.
  nlohmann::json Answer(const nlohmann::json& description) {
    Write(Path("w.json"), description.dump());
    FILE* const out = popen((std::string(WEIR_BENCH_ENGINE " ") + Path("w.json") + " 1").c_str(), "r");
    std::string text;
    for (int c = 0; out != nullptr && (c = std::fgetc(out)) != EOF;) text.push_back(static_cast<char>(c));
    EXPECT_TRUE(out != nullptr && pclose(out) == 0);
    return nlohmann::json::parse(text, nullptr, false);
  }
  /// Names of the chain's ops are a, b, c; each waits for the one before.
  nlohmann::json Chain() {
    Write(Path("w.pb"), FromHex("0a090a016112044e6f4f700a0d0a016212044e6f4f701a025e610a0d0a016312044e6f4f701a025e62"));
    return {{"graph", "w.pb"}, {"mode", "steady"}, {"feeds", nlohmann::json::array()}, {"targets", {"c"}}};
  }
};

TEST_F(BenchEngine, WritesEvents) {
  const nlohmann::json answer =
      Answer({{"graph", "w.pb"}, {"mode", "once"}, {"kind", "events"}, {"params", {{"n", 1000}}}});
  ASSERT_TRUE(answer.contains("ns")) << answer.dump();
  EXPECT_EQ(answer["check"].dump(), "[]");
  EXPECT_TRUE(std::filesystem::is_directory(Path("events_weir"))) << "the events are beside the workload";
}

TEST_F(BenchEngine, RefusesOpsThatArePruned) {
  nlohmann::json chain = Chain();
  EXPECT_TRUE(Answer(chain).contains("ns")) << "a run of it can be timed";
  chain["kind"] = "null";
  chain["items"] = 3;
  const nlohmann::json answer = Answer(chain);
  ASSERT_TRUE(answer.contains("skip")) << answer.dump();
  EXPECT_NE(answer["skip"].get<std::string>().find("of the 3 ops are pruned"), std::string::npos) << answer.dump();
}

TEST_F(BenchEngine, RefusesWorkloadsThatNeedSeveralTasks) {
  nlohmann::json remote = Chain();
  remote["kind"] = "remote";
  EXPECT_TRUE(Answer(remote).contains("skip"));
}

}  // namespace
}  // namespace weir::bench
