// Placement in a session: state by the cost of its use, plans from files, placing again, 16-bit transfers. The devices
// are the CPU and the toy device of sdk/examples, which is synchronous and has a Relu.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "core/config/toml.h"
#include "core/session/options.h"
#include "core/session/plan_file.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;
using Fetches = std::vector<std::string>;

/// Declared figures that make the toy device seem much faster than the CPU, or much slower.
const std::string kToyFigures =
    "[device.\"CPU:0\"]\nlaunch_us = 0.001\nmem_gbps = 1000000\npeak_gflops.f32 = 1000000\n"
    "[device.\"TOY:0\"]\nlaunch_us = 0.000001\nmem_gbps = 1000000000\npeak_gflops.f32 = 1000000000000\n";
const std::string kToyFast = kToyFigures +
                             "[link.\"CPU:0->TOY:0\"]\nlatency_us = 0.000001\ngbps = 1000000000\n"
                             "[link.\"TOY:0->CPU:0\"]\nlatency_us = 0.000001\ngbps = 1000000000\n";
/// As kToyFigures, but variables are a little better off where their users are.
const std::string kToyFar =
    "[device.\"CPU:0\"]\nlaunch_us = 0.01\nmem_gbps = 1000000\npeak_gflops.f32 = 1000000\n"
    "[device.\"TOY:0\"]\nlaunch_us = 0.000001\nmem_gbps = 1000000000\npeak_gflops.f32 = 1000000000000\n"
    "[link.\"CPU:0->TOY:0\"]\nlatency_us = 0.001\ngbps = 1000000000\n"
    "[link.\"TOY:0->CPU:0\"]\nlatency_us = 0.001\ngbps = 1000000000\n";
const std::string kToySlow = "[device.TOY]\nlaunch_us = 1000000000\n";

class ReplaceTest : public ::testing::Test {
 protected:
  void Open(const std::string& toml, const std::vector<NodeLine>& nodes) {
    session_.reset();
    log_.clear();
    config::Settings settings;
    const Status read = config::ReadToml(toml, "weir.toml", settings);
    ASSERT_TRUE(read.ok()) << read.ToString();
    Result<config::Config> config = settings.Build();
    ASSERT_TRUE(config.ok()) << config.status().ToString();
    config->plugins.folders = {std::string(std::getenv("WEIR_BUILD_DIR")) + "/lib/weir/examples"};
    Result<std::shared_ptr<Runtime>> runtime = Runtime::Load(LoadOptionsFrom(*config));
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    Result<graph::Definition> graph = testing::MakeGraph(nodes);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    SessionOptions options = SessionOptionsFrom((*runtime)->config);
    options.profile_file.clear();
    options.placement_log = [this](const std::string& lines) { log_ += lines; };
    Result<std::unique_ptr<Session>> session = Session::Make(*runtime, *graph_, std::move(options));
    made_ = session.status();
    if (session.ok()) session_ = std::move(*session);
  }

  Result<std::vector<Tensor>> Run(const Fetches& fetches, const Fetches& targets = {}) {
    const std::vector<Feed> feeds = {{"x", Tensor::Vector<float>({-1, 2, -3, 4})}};
    return session_->Run(feeds, fetches, targets);
  }

  std::string DeviceOf(const std::string& node) const {
    for (const PlacedNode& placed : session_->ReportPlacement()) {
      if (placed.node == node) return placed.device.substr(placed.device.rfind("device:") + 7);
    }
    return "?";
  }

  Status made_;
  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<Session> session_;
  std::string log_;
};

const NodeLine kFed = Placeholder("x", PartialShape());

std::vector<NodeLine> Model() {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({4})}};
  return {kFed,
          testing::Const("start", Tensor::Vector<float>({-1, 2, -3, 4})),
          {"v", "VariableV2", {}, variable},
          {"init", "Assign", {"v", "start"}, kFloat},
          {"read", "Identity", {"v"}, kFloat},
          {"a", "Relu", {"read"}, kFloat},
          {"b", "Relu", {"a"}, kFloat},
          {"up", "Assign", {"v", "b"}, kFloat}};
}

TEST_F(ReplaceTest, F292_StateGoesWhereTheStepsThatUseItAreFast) {
  Open(kToyFast, Model());
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  ASSERT_TRUE(Run({}, {"init"}).ok());
  EXPECT_EQ(DeviceOf("v"), "TOY:0") << "though setting it costs nothing anywhere\n" << log_;
  ASSERT_TRUE(Run({}, {"up"}).ok());
  for (const char* node : {"a", "b", "up"}) EXPECT_EQ(DeviceOf(node), "TOY:0") << log_;
}

TEST_F(ReplaceTest, F292_AnIdleSlowDeviceInTheFolderChangesNoModel) {
  Open(kToySlow, Model());
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  ASSERT_TRUE(Run({}, {"init"}).ok());
  ASSERT_TRUE(Run({}, {"up"}).ok());
  for (const PlacedNode& node : session_->ReportPlacement())
    EXPECT_EQ(node.device.substr(node.device.size() - 5), "CPU:0");
  const auto told = session_->ExplainPlacement({}, {}, Fetches{"up"});
  ASSERT_TRUE(told.ok()) << told.status().ToString();
  EXPECT_LE(static_cast<double>(told->makespan_ns), 1.03 * static_cast<double>(told->best_single_ns));
  EXPECT_LT(told->makespan_ns, 1'000'000'000);
}

const std::vector<NodeLine> kChain = {
    kFed, {"a", "Relu", {"x"}, kFloat}, {"b", "Relu", {"a"}, kFloat}, {"c", "Relu", {"b"}, kFloat}};

TEST_F(ReplaceTest, F100_ALoopRunsInTwoPlacesWhereOneOpLacksAKernel) {
  const auto enter = [](bool constant) {
    return op::AttrList{{"T", DType::kFloat}, {"frame_name", std::string("loop")}, {"is_constant", constant}};
  };
  std::vector<NodeLine> nodes = {kFed,
                                 testing::Const("one", Tensor::Vector<float>({1})),
                                 testing::Const("limit", Tensor::Scalar(5.0f)),
                                 {"e", "Enter", {"one"}, enter(false), "/device:TOY:0"},
                                 {"e_one", "Enter", {"one"}, enter(true)},
                                 {"e_limit", "Enter", {"limit"}, enter(true)},
                                 {"m", "Merge", {"e", "next"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}},
                                 {"sum", "Sum", {"m", "zero"}, {{"T", DType::kFloat}, {"Tidx", DType::kInt32}}},
                                 {"less", "Less", {"sum", "e_limit"}, kFloat},
                                 {"go", "LoopCond", {"less"}, {}},
                                 {"s", "Switch", {"m", "go"}, kFloat}};
  nodes.insert(nodes.begin(), testing::Const("zero_out", Tensor::Vector<int32_t>({0})));
  nodes.insert(nodes.begin() + 7, {"zero",
                                   "Enter",
                                   {"zero_out"},
                                   {{"T", DType::kInt32}, {"frame_name", std::string("loop")}, {"is_constant", true}}});
  std::string last = "s:1";
  for (int k = 0; k < 12; ++k) {
    nodes.push_back({"r" + std::to_string(k), "Relu", {last}, kFloat});
    last = "r" + std::to_string(k);
  }
  nodes.push_back({"add", "AddV2", {last, "e_one"}, kFloat});
  nodes.push_back({"next", "NextIteration", {"add"}, kFloat});
  nodes.push_back({"out", "Exit", {"s"}, kFloat});
  Open("", nodes);
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  const auto out = Run({"out"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE((*out)[0].SameBits(Tensor::Vector<float>({5})));
  EXPECT_EQ(DeviceOf("add") + " " + DeviceOf("less") + " " + DeviceOf("sum"), "TOY:0 CPU:0 CPU:0") << log_;
  EXPECT_NE(
      log_.find("the loop 'loop' runs on TOY:0, but its Less 'less' on CPU:0: there is no kernel for it on TOY:0"),
      std::string::npos)
      << log_;
}

TEST_F(ReplaceTest, F298_AStepIsPlacedAgainByMeasuredTimes) {
  Open(kToyFast + "[placement]\nreplace_period = 4\n", kChain);
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  ASSERT_TRUE(Run({"c"}).ok());
  ASSERT_EQ(DeviceOf("b"), "TOY:0") << log_;
  for (int run = 2; run <= 4; ++run) ASSERT_TRUE(Run({"c"}).ok());
  // A kernel of the toy device takes more than the thousandth of a nanosecond that was declared.
  EXPECT_NE(log_.find("run 4: placed again, predicted "), std::string::npos) << log_;
  EXPECT_EQ(DeviceOf("b"), "CPU:0") << log_;
  const auto c = Run({"c"});
  ASSERT_TRUE(c.ok());
  EXPECT_TRUE((*c)[0].SameBits(Tensor::Vector<float>({0, 2, 0, 4})));
}

TEST_F(ReplaceTest, F298_ASmallGainIsNotWorthIt) {
  Open(kToyFast + "[placement]\nreplace_period = 4\nmin_gain = 1\n", kChain);
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  for (int run = 1; run <= 5; ++run) ASSERT_TRUE(Run({"c"}).ok());
  EXPECT_NE(log_.find("run 4: placed as before"), std::string::npos) << log_;
  EXPECT_EQ(DeviceOf("b"), "TOY:0") << log_;
}

TEST_F(ReplaceTest, F298_StateMovesOnlyIfItMay) {
  for (const bool moves : {false, true}) {
    Open(kToyFar + "[placement]\nreplace_period = 4\nreplace_moves_state = " + (moves ? "true" : "false") + "\n",
         Model());
    ASSERT_TRUE(made_.ok()) << made_.ToString();
    ASSERT_TRUE(Run({}, {"init"}).ok());
    for (int run = 1; run <= 6; ++run) {
      const auto up = Run({}, {"up"});
      ASSERT_TRUE(up.ok()) << up.status().ToString();
    }
    const auto v = Run({"read"});
    ASSERT_TRUE(v.ok()) << v.status().ToString();
    EXPECT_TRUE((*v)[0].SameBits(Tensor::Vector<float>({0, 2, 0, 4}))) << (*v)[0].SummarizeValues(-1);
    EXPECT_EQ(DeviceOf("v"), moves ? "CPU:0" : "TOY:0") << log_;
  }
}

TEST_F(ReplaceTest, F306_APlanOfAFileDecides) {
  const std::string path = ::testing::TempDir() + "weir_plan_" + std::to_string(getpid()) + ".json";
  const std::string placement = "[placement]\nalgorithm = \"file\"\nfile = \"" + path + "\"\n";
  std::ofstream(path) << R"({"nodes": {"a": "/device:TOY:0", "c": "/device:TOY:0", "not_here": "/cpu:0"}})";
  Open(kToySlow + placement, kChain);
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  ASSERT_TRUE(Run({"c"}).ok());
  EXPECT_EQ(DeviceOf("a") + " " + DeviceOf("b") + " " + DeviceOf("c"), "TOY:0 CPU:0 TOY:0") << log_;
  // What a session reports is a plan, too.
  std::ofstream(path) << ToJson(session_->ReportPlacement());
  Open(kToySlow + placement, kChain);
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  ASSERT_TRUE(Run({"c"}).ok());
  EXPECT_EQ(DeviceOf("a") + " " + DeviceOf("b") + " " + DeviceOf("c"), "TOY:0 CPU:0 TOY:0") << log_;
  // As a candidate it loses against the CPU alone.
  Open(kToySlow + "[placement]\nfile = \"" + path + "\"\n", kChain);
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  ASSERT_TRUE(Run({"c"}).ok());
  EXPECT_EQ(DeviceOf("a"), "CPU:0") << log_;
  std::remove(path.c_str());
  Open(kToySlow + placement, kChain);
  EXPECT_EQ(made_.code(), Code::kNotFound) << made_.ToString();
}

TEST(PlanFile, F306_FaultsAreNamed) {
  const std::pair<const char*, const char*> faults[] = {
      {"{", "plan: not JSON"},
      {"{}", "plan: wanted a field \"nodes\""},
      {R"({"nodes": 3})", "wanted nodes as an object or a list"},
      {R"({"nodes": {"a": 1}})", "the device of 'a' is number"},
      {R"({"nodes": {"a": "/device:GPU:x"}})", "node 'a'"},
      {R"([{"name": "a"}])", "wanted nodes with the fields"},
      {R"([{"name": "a", "device": "/cpu:0"}, {"name": "a", "device": "/cpu:1"}])", "'a' has two devices"},
  };
  for (const auto& [text, fault] : faults) {
    const auto plan = ParsePlan(text, "plan");
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument) << text;
    EXPECT_NE(plan.status().message().find(fault), std::string::npos) << plan.status().ToString();
  }
  EXPECT_EQ(ParsePlan(R"([{"name": "a", "device": "/cpu:0", "op": "Neg"}])", "plan")->at("a"), "/cpu:0");
}

TEST_F(ReplaceTest, F294_OneDeviceHasASummaryTooUnlessNoneIsWanted) {
  const std::vector<NodeLine> one = {kFed, {"y", "Neg", {"x"}, kFloat}};
  Open("[plugins]\ndeny = [\"toy\"]\n", one);
  ASSERT_TRUE(made_.ok()) << made_.ToString();
  ASSERT_TRUE(Run({"y"}).ok());
  EXPECT_EQ(log_, "placed 1 node: CPU:0 1 (100.0 %)\n");
  Open("[plugins]\ndeny = [\"toy\"]\n[placement]\nexplain = \"none\"\n", one);
  ASSERT_TRUE(Run({"y"}).ok());
  EXPECT_EQ(log_, "");
  Open("[plugins]\ndeny = [\"toy\"]\n[placement]\nexplain = \"all\"\n", one);
  ASSERT_TRUE(Run({"y"}).ok());
  EXPECT_NE(log_.find("\ny  Neg float [4] -> float [4]  group 0 (1 node)"), std::string::npos) << log_;
}

TEST_F(ReplaceTest, F017_FloatsCrossAsTheirUpperBitsIfAskedFor) {
#ifdef WEIR_KERNEL_DTYPES_SHORT
  GTEST_SKIP() << "the kernels of this build take no bfloat16";
#endif
  const std::vector<NodeLine> nodes = {
      kFed,
      {"a", "Neg", {"x"}, kFloat, "/cpu:0"},
      {"b", "Neg", {"a"}, kFloat, "/cpu:1"},
      {"i", "Cast", {"a"}, {{"SrcT", DType::kFloat}, {"DstT", DType::kInt32}}, "/cpu:0"},
      {"j", "Neg", {"i"}, {{"T", DType::kInt32}}, "/cpu:1"}};
  const std::vector<Feed> feeds = {{"x", Tensor::Vector<float>({3.14159265f, 0.1f, 65537.0f})}};
  const std::string two = "device_count.CPU = 2\n";
  for (const bool lossy : {false, true}) {
    Open(two + (lossy ? "graph_options.enable_bfloat16_sendrecv = true\n" : ""), nodes);
    ASSERT_TRUE(made_.ok()) << made_.ToString();
    const auto crossed = session_->Run(feeds, Fetches{"b", "j", "a"}, {});
    ASSERT_TRUE(crossed.ok()) << crossed.status().ToString();
    const Tensor whole = feeds[0].second;
    // 0x40490fdb and 0x3dcccccd without their lower 16 bits.
    const Tensor upper = Tensor::Vector<float>({3.140625f, 0.099609375f, 65536.0f});
    EXPECT_TRUE((*crossed)[0].SameBits(lossy ? upper : whole)) << (*crossed)[0].SummarizeValues(-1);
    EXPECT_TRUE((*crossed)[1].SameBits(Tensor::Vector<int32_t>({3, 0, 65537}))) << "integers cross whole";
    EXPECT_TRUE((*crossed)[2].SameBits(Tensor::Vector<float>({-3.14159265f, -0.1f, -65537.0f})));
  }
}

}  // namespace
}  // namespace weir::session
