// Recorded times of kernels on a device with streams that keeps no times of its own work: the emulated GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/kernel/measured.h"
#include "core/session/runtime.h"
#include "core/session/session.h"
#include "tests/support/gpu_plugins.h"
#include "tests/support/text_graph.h"

namespace weir {
namespace {

using testing::kFloat;

class RecordedTimes : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(folder_.path().empty()) << "the plugins are not built";
    const Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(folder_.Load({{"devices", "1"}}));
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = *runtime;
    Result<graph::Definition> graph = testing::MakeGraph({testing::Placeholder("x", PartialShape()),
                                                          {"n", "Neg", {"x"}, kFloat, "/device:GPU:0"},
                                                          {"m", "MatMul", {"n", "x"}, kFloat, "/device:GPU:0"}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
  }
  void TearDown() override { std::remove(profile_.c_str()); }

  Result<std::unique_ptr<session::Session>> Open(session::SessionOptions options = {}) {
    options.placement_log = [this](const std::string& lines) { log_ += lines; };
    return session::Session::Make(runtime_, *graph_, std::move(options));
  }
  static std::vector<session::Feed> Fed(int64_t rows) {
    const auto elements = static_cast<size_t>(rows * rows);
    return {{"x", Tensor::Of<float>(Shape::Of({rows, rows}), std::vector<float>(elements, 1.0f))}};
  }

  const testing::GpuFolder folder_;
  const std::string profile_ = ::testing::TempDir() + "weir_recorded_" + std::to_string(getpid()) + ".json";
  const std::vector<std::string> fetches_ = {"m"};
  std::shared_ptr<session::Runtime> runtime_;
  std::unique_ptr<graph::Definition> graph_;
  std::string log_;
};

TEST_F(RecordedTimes, F298_WorkOfStreamsIsRecordedUsedAndOutgrown) {
  constexpr int64_t kRows = 160;
  const auto session = Open();
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const auto measured = (*session)->MeasureStep(Fed(kRows), fetches_, {}, 5);
  ASSERT_TRUE(measured.ok()) << measured.status().ToString();
  const auto costs = kernel::MeasuredCosts::Parse(measured->profile, "the measurement");
  ASSERT_TRUE(costs.ok()) << costs.status().ToString();
  device::Device* const gpu = runtime_->plugins->devices().Find("/job:localhost/replica:0/task:0/device:GPU:0");
  ASSERT_NE(gpu, nullptr);
  const auto at = costs->devices().find(kernel::FingerprintOf(gpu->info()));
  ASSERT_NE(at, costs->devices().end()) << measured->profile;
  const auto of = [&](const std::string& op) {
    for (const auto& [key, time] : at->second.kernels) {
      if (key.starts_with(op)) return time;
    }
    return kernel::MeasuredTime();
  };
  EXPECT_EQ(of("Neg float[160,160]").n, 5) << measured->profile;
  EXPECT_EQ(of("MatMul float[160,160]").n, 5) << measured->profile;
  // Enqueueing the product takes as long as enqueueing the negation; its four million steps do not.
  EXPECT_GT(of("MatMul").min_ns, 100'000) << measured->profile;
  EXPECT_GT(of("MatMul").min_ns, 3 * of("Neg").min_ns) << measured->profile;
  EXPECT_GE(measured->node_ns.at("m"), 100'000);

  std::ofstream(profile_) << measured->profile;
  session::SessionOptions options;
  options.profile_file = profile_;
  const auto informed = Open(options);
  ASSERT_TRUE(informed.ok()) << informed.status().ToString();
  const auto explained = (*informed)->ExplainPlacement(Fed(kRows), fetches_, {});
  ASSERT_TRUE(explained.ok()) << explained.status().ToString();
  for (const place::NodeReport& node : explained->nodes) {
    for (const place::CandidateReport& candidate : node.candidates) {
      if (!candidate.chosen) continue;
      EXPECT_EQ(candidate.provenance, place::Provenance::kMeasured) << ToText(*explained);
    }
  }
  EXPECT_EQ(explained->warnings, std::vector<std::string>());
  const auto larger = (*informed)->ExplainPlacement(Fed(2 * kRows), fetches_, {});
  ASSERT_TRUE(larger.ok()) << larger.status().ToString();
  ASSERT_EQ(larger->warnings.size(), 1u) << ToText(*larger);
  EXPECT_TRUE(larger->warnings[0].starts_with(
      "2 nodes have larger operands than the recorded runs had [MatMul 1, Neg 1]: 'n' is Neg float[320,320], measured "
      "up to Neg float[160,160]; `weir profile record`"))
      << larger->warnings[0];
}

TEST_F(RecordedTimes, F298_OnlyMeasuredRunsAwaitEachWork) {
  const auto session = Open();
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const auto before = (*session)->Run(Fed(8), fetches_, {});
  ASSERT_TRUE(before.ok()) << before.status().ToString();
  ASSERT_TRUE((*session)->MeasureStep(Fed(8), fetches_, {}, 2).ok());
  session::RunReport report;
  const auto traced = (*session)->Run(Fed(8), fetches_, {}, {.trace = true}, &report);
  ASSERT_TRUE(traced.ok()) << traced.status().ToString();
  EXPECT_TRUE((*traced)[0].SameBits((*before)[0]));
  for (const trace::Span& span : report.trace.spans) EXPECT_FALSE(span.on_device) << span.node;
}

}  // namespace
}  // namespace weir
