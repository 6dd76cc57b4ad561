// Steps over several devices and device types: the values that cross between them, and where nodes run. Numbers are
// feature rows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/config/pins.h"
#include "core/place/place.h"
#include "core/session/memory_report.h"
#include "core/session/session.h"
#include "tests/support/async_plugins.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;
using Names = std::vector<std::string>;
namespace fs = std::filesystem;

const std::string kPrefix = "/job:localhost/replica:0/task:0/device:";

/// A CPU and two asynchronous devices, with the same kernels for both kinds.
class DevicesTest : public testing::AsyncTest {
 protected:
  void SetUp() override {
    testing::AsyncTest::SetUp();
    Load();
  }

  void Load(const config::Config& config = {}, const std::string& folder = {}) {
    plugin::LoadOptions options;
    options.folders = {folder.empty() ? plugins_.folder() : folder};
    options.config = config;
    Result<std::shared_ptr<Runtime>> runtime = Runtime::Load(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
  }

  void Open(const std::vector<NodeLine>& nodes, SessionOptions options = {}) {
    session_.reset();
    Result<graph::Definition> graph = MakeGraph(nodes);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    if (!options.placement_log) options.placement_log = [](const std::string&) {};
    Result<std::unique_ptr<Session>> session = Session::Make(runtime_, *graph_, std::move(options));
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(*session);
  }

  /// Runs with a trace.
  Result<std::vector<Tensor>> Run(const std::vector<Feed>& feeds, const Names& fetches, const Names& targets = {}) {
    RunOptions options;
    options.trace = true;
    return session_->Run(feeds, fetches, targets, options, &report_);
  }

  /// Copies of the last run, by the node whose value was copied.
  std::map<std::string, int> Copies() const {
    std::map<std::string, int> copies;
    for (const trace::Span& span : report_.trace.spans) {
      if (span.op == "copy") ++copies[span.node];
    }
    return copies;
  }

  device::Device* DeviceNamed(const std::string& name) const {
    return runtime_->plugins->devices().Find(kPrefix + name);
  }

  std::shared_ptr<Runtime> runtime_;
  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<Session> session_;
  RunReport report_;
};

Tensor Ramp(int64_t rows, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  return Tensor::Of(Shape::Of({rows, columns}), values);
}

TEST_F(DevicesTest, F019_AValueForTwoConsumersCrossesOnce) {
  Open({Placeholder("x", PartialShape()),
        {"nu", "Square", {"x"}, kFloat, "/cpu:0"},
        {"alpha", "Neg", {"nu"}, kFloat, "/device:ASYNC:0"},
        {"beta", "Square", {"nu"}, kFloat, "/device:ASYNC:0"},
        {"gamma", "AddV2", {"alpha", "beta"}, kFloat, "/device:ASYNC:0"},
        {"back", "Neg", {"gamma"}, kFloat, "/cpu:0"}});
  ASSERT_TRUE(Run({{"x", Ramp(4, 8)}}, {"back"}).ok());
  uint64_t bytes = 0;
  for (const trace::Span& span : report_.trace.spans) bytes += span.op == "copy" ? span.bytes : 0;
  EXPECT_EQ(Copies(), (std::map<std::string, int>{{"nu", 1}, {"gamma", 1}}));
  EXPECT_EQ(bytes, 2u * 4 * 8 * sizeof(float));
  const Names fetches = {"back"};
  const auto told = session_->ExplainPlacement(std::vector<Feed>{{"x", Ramp(4, 8)}}, fetches, {});
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->transfers, 2);
  EXPECT_EQ(told->transferred_bytes, 2 * 4 * 8 * 4);
}

TEST_F(DevicesTest, F121_WeightsOnTheCpuAreCopiedOncePerStepAndDevice) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({8, 8})}};
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape()),
                                 Const("start", Ramp(8, 8)),
                                 Const("delta", Ramp(8, 8)),
                                 {"w", "VariableV2", {}, variable, "/cpu:0"},
                                 {"init", "Assign", {"w", "start"}, kFloat},
                                 {"read", "Identity", {"w"}, kFloat, "/cpu:0"},
                                 {"update", "AssignSub", {"w", "delta"}, kFloat}};
  for (const std::string tower : {"0", "1"}) {
    const std::string device = "/device:ASYNC:" + tower;
    nodes.push_back({"a" + tower, "MatMul", {"x", "read"}, kFloat, device});
    nodes.push_back({"b" + tower, "MatMul", {"a" + tower, "read"}, kFloat, device});
    nodes.push_back({"c" + tower, "MatMul", {"b" + tower, "read"}, kFloat, device});
  }
  nodes.push_back({"sum", "AddV2", {"c0", "c1"}, kFloat, "/cpu:0"});
  Open(nodes);
  ASSERT_TRUE(Run({}, {}, {"init"}).ok());
  for (int step = 0; step < 3; ++step) {
    const auto sum = Run({{"x", Ramp(8, 8)}}, {"sum"}, {"update"});
    ASSERT_TRUE(sum.ok()) << sum.status().ToString();
    EXPECT_EQ(Copies()["read"], 2) << "one for each device that uses them, though each uses them three times";
  }
}

/// Nodes with random device requests, and some without.
std::vector<NodeLine> RandomGraph(std::mt19937& random) {
  const Names devices = {"", "/cpu:0", "/device:ASYNC:0", "/device:ASYNC:1", "/device:ASYNC:*"};
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape())};
  Names made = {"x"};
  for (int i = 0; i < 30; ++i) {
    const std::string name = "n" + std::to_string(i);
    const auto pick = [&] { return made[random() % made.size()]; };
    const std::string device = devices[random() % devices.size()];
    switch (random() % 3) {
      case 0:
        nodes.push_back({name, "MatMul", {pick(), pick()}, kFloat, device});
        break;
      case 1:
        nodes.push_back({name, "AddV2", {pick(), pick()}, kFloat, device});
        break;
      default:
        nodes.push_back({name, "Neg", {pick()}, kFloat, device});
    }
    made.push_back(name);
  }
  return nodes;
}

TEST_F(DevicesTest, F305_WhatRunsWhereIsWhatWasChosen) {
  int elsewhere = 0;
  for (uint32_t seed = 0; seed < 25; ++seed) {
    std::mt19937 random(seed);
    Open(RandomGraph(random));
    const std::vector<Feed> feeds = {{"x", Ramp(4, 4)}};
    const Names fetches = {"n29", "n28", "n27"};
    const auto chosen = session_->ExplainPlacement(feeds, fetches, {});
    ASSERT_TRUE(chosen.ok()) << "seed " << seed << ": " << chosen.status().ToString();
    std::map<std::string, std::string> wanted;
    for (const place::NodeReport& node : chosen->nodes) wanted[node.name] = node.device;
    ASSERT_TRUE(Run(feeds, fetches).ok()) << "seed " << seed;
    std::set<std::string> ran;
    for (const trace::Span& span : report_.trace.spans) {
      if (span.op == "copy" || span.op == "fetch") continue;
      EXPECT_EQ(span.device, wanted[span.node]) << "seed " << seed << ": " << span.node;
      ran.insert(span.node);
      elsewhere += span.device.find("ASYNC") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(ran.size(), wanted.size()) << "seed " << seed;
  }
  EXPECT_GT(elsewhere, 100);
}

TEST_F(DevicesTest, F307_SumsOfTwoDevicesAreSubtracted) {
  for (const char* last : {"/cpu:0", "/device:ASYNC:0", "/device:ASYNC:1"}) {
    Open({Placeholder("a", PartialShape()),
          Placeholder("half", PartialShape()),
          Placeholder("c", PartialShape()),
          {"b", "AddV2", {"half", "half"}, kFloat, "/device:ASYNC:0"},
          {"ab", "AddV2", {"a", "b"}, kFloat, "/cpu:0"},
          {"bc", "AddV2", {"b", "c"}, kFloat, "/device:ASYNC:0"},
          {"y", "Sub", {"ab", "bc"}, kFloat, last}});
    const auto y = Run({{"a", Tensor::Vector<float>({5, 7})},
                        {"half", Tensor::Vector<float>({1, 2})},
                        {"c", Tensor::Vector<float>({2, 9})}},
                       {"y"});
    ASSERT_TRUE(y.ok()) << y.status().ToString();
    EXPECT_TRUE((*y)[0].SameBits(Tensor::Vector<float>({3, -2}))) << last;
    EXPECT_GT(Copies()["b"] + Copies()["ab"], 0) << "by copies that nobody asked for";
  }
}

TEST_F(DevicesTest, F308_DevicesOfAModelFileAreKeptOrIgnored) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape()),
                                       {"a", "Neg", {"x"}, kFloat, "/device:ASYNC:1"},
                                       {"b", "Neg", {"a"}, kFloat, "/device:NOSUCH:3"}};
  const auto device_of = [&](bool keep, const std::string& node, const std::string& pin) {
    auto placement = std::make_shared<place::PlaceOptions>();
    placement->keep_graph_devices = keep;
    if (!pin.empty()) placement->pins = std::make_shared<config::Pins>(config::Pins::List{{"^b$", pin}});
    SessionOptions options;
    options.placement = placement;
    Open(nodes, options);
    const Names fetches = {"b"};
    const auto told = session_->ExplainPlacement(std::vector<Feed>{{"x", Ramp(2, 2)}}, fetches, {});
    EXPECT_TRUE(told.ok()) << told.status().ToString();
    for (const place::NodeReport& report : told->nodes) {
      if (report.name == node) return report.device.substr(kPrefix.size()) + " " + report.requested;
    }
    return std::string("?");
  };
  EXPECT_EQ(device_of(true, "a", ""), "ASYNC:1 /device:ASYNC:1");
  EXPECT_EQ(device_of(false, "a", ""), "CPU:0 ");
  EXPECT_EQ(device_of(false, "b", ""), "CPU:0 ");
  EXPECT_EQ(device_of(false, "b", "/device:ASYNC:0"), "ASYNC:0 /device:ASYNC:0") << "pins count all the same";
}

TEST_F(DevicesTest, F110_KernelsOfEveryKindOfDeviceAreListed) {
  for (const char* op : {"MatMul", "Square", "ApplyAdam"}) {
    std::set<std::string> platforms;
    for (const kernel::KernelEntry* entry : runtime_->plugins->kernels().ForOp(op)) {
      platforms.emplace(entry->record->platform.data, entry->record->platform.size);
    }
    EXPECT_EQ(platforms, (std::set<std::string>{"async/1", "cpu"})) << op;
  }
}

TEST_F(DevicesTest, F302_KernelsForDevicesThatAreNotHereAreNoAdvice) {
  plugin::LoadOptions without;
  without.folders = {plugins_.folder()};
  without.deny = {"async_device"};
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Load(without);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  runtime_ = *runtime;
  SessionOptions hard;
  hard.allow_soft_placement = false;
  Open({Placeholder("x", PartialShape()), {"y", "Neg", {"x"}, kFloat, "/device:ASYNC:0"}}, hard);
  const std::string text(Run({{"x", Ramp(2, 2)}}, {"y"}).status().message());
  EXPECT_NE(text.find("; not loaded: async_device: "), std::string::npos) << text;
  EXPECT_EQ(text.find("kernels_async"), std::string::npos) << text;
}

TEST_F(DevicesTest, F115_ADeviceTypeThatTheCoreDoesNotKnowRunsAStep) {
  const std::vector<DeviceAttributes> devices = ListDevices(*runtime_);
  EXPECT_EQ(std::count_if(devices.begin(), devices.end(), [](const auto& d) { return d.device_type == "ASYNC"; }), 2);
  Open({Placeholder("x", PartialShape()), {"y", "Square", {"x"}, kFloat, "/device:ASYNC:1"}});
  const auto y = Run({{"x", Ramp(2, 2)}}, {"y"});
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  EXPECT_EQ((*y)[0].SummarizeValues(-1), "[[9 4][1 0]]");
  EXPECT_EQ(report_.placement, (std::map<std::string, int>{{kPrefix + "ASYNC:1", 1}}));
}

TEST_F(DevicesTest, F311_ListingDevicesTouchesNoneAlsoWhenTheyAreFull) {
  plugins_.Configure("", {{"fail_alloc", 1}});
  Open({Placeholder("x", PartialShape())});
  EXPECT_EQ(session_->ListDevices().size(), 3u);
  EXPECT_EQ(session_->ReportDevices().visible.size(), 3u);
  for (const auto& device : runtime_->plugins->devices().all()) {
    EXPECT_FALSE(device->opened()) << device->name();
    EXPECT_EQ(device->memory_use().reserved, 0u);
  }
  EXPECT_EQ(plugins_.Counts().operations, 0u);
}

TEST_F(DevicesTest, F316_F317_WhoHoldsMemoryIsToldByDevice) {
  config::Config config;
  config.device["ASYNC:0"].memory_limit_mb = 1;
  Load(config);
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape())};
  for (int i = 0; i < 25; ++i) {
    const std::string n = std::to_string(i);
    const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({16 + i, 16})}};
    nodes.push_back(Const("start" + n, Ramp(16 + i, 16)));
    nodes.push_back({"w" + n, "VariableV2", {}, variable, "/device:ASYNC:0"});
    nodes.push_back({"init" + n, "Assign", {"w" + n, "start" + n}, kFloat});
  }
  nodes.push_back({"square", "Square", {"x"}, kFloat, "/device:ASYNC:0"});
  nodes.push_back({"y", "Neg", {"square"}, kFloat, "/device:ASYNC:0"});
  Open(nodes);
  Names init;
  uint64_t wanted = 0;
  for (int i = 0; i < 25; ++i) {
    init.push_back("init" + std::to_string(i));
    wanted += static_cast<uint64_t>(16 + i) * 16 * sizeof(float);
  }
  ASSERT_TRUE(Run({}, {}, init).ok());
  ASSERT_TRUE(Run({{"x", Ramp(8, 8)}}, {"y"}).ok());
  const auto on = [](const MemoryReport& report, const std::string& device) {
    for (const MemoryReport::OnDevice& entry : report.devices) {
      if (entry.device == kPrefix + device) return entry;
    }
    return MemoryReport::OnDevice();
  };
  const MemoryReport report = session_->ReportMemory();
  EXPECT_EQ(on(report, "ASYNC:0").variables, wanted);
  EXPECT_GT(on(report, "ASYNC:0").steps, 0u);
  EXPECT_GE(on(report, "ASYNC:0").all.in_use, wanted);
  EXPECT_EQ(on(report, "ASYNC:1").all.reserved, 0u);
  ASSERT_GE(report.holders.size(), 25u);
  EXPECT_EQ(report.holders[0].what, "variable w24 float [40,16]");
  {
    const auto other = Session::Make(runtime_, *graph_, {});
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(on((*other)->ReportMemory(), "ASYNC:0").variables, 0u) << "counters are of one session";
  }

  const Status full = Run({{"x", Ramp(600, 600)}}, {"y"}).status();
  ASSERT_EQ(full.code(), Code::kResourceExhausted) << full.ToString();
  const std::string text = full.message();
  for (const std::string& part :
       Names{"OOM when allocating", "The step needs", "square (Square) float [600,600]",
             "The session's largest holders:", "2560 bytes  variable w24 float [40,16]  on " + kPrefix + "ASYNC:0",
             "smaller ones\nHint: ", "fragmentation"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << text;
  EXPECT_NE(text.find("variable w10 "), std::string::npos) << text;
  EXPECT_EQ(text.find("variable w0 "), std::string::npos) << "only the largest\n" << text;
  EXPECT_TRUE(Run({{"x", Ramp(8, 8)}}, {"y"}).ok());
}

TEST_F(DevicesTest, F317_TheEstimateFromShapesIsWhatTheStepTakes) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({64, 64})}};
  Open({Placeholder("x", PartialShape()),
        Const("start", Ramp(64, 64)),
        Const("c", Ramp(64, 64)),
        {"w", "VariableV2", {}, variable, "/device:ASYNC:0"},
        {"init", "Assign", {"w", "start"}, kFloat},
        {"a", "MatMul", {"x", "w"}, kFloat, "/device:ASYNC:0"},
        {"b", "AddV2", {"a", "c"}, kFloat, "/device:ASYNC:0"},
        {"y", "MatMul", {"b", "a"}, kFloat, "/device:ASYNC:0"}});
  const Names fetches = {"y"};
  const std::vector<Feed> feeds = {{"x", Ramp(64, 64)}};
  const auto told = session_->ExplainPlacement(feeds, fetches, {});
  ASSERT_TRUE(told.ok()) << told.status().ToString();
  ASSERT_EQ(told->memory.size(), 3u);
  const auto there = std::find_if(told->memory.begin(), told->memory.end(),
                                  [](const auto& memory) { return memory.device == kPrefix + "ASYNC:0"; });
  ASSERT_NE(there, told->memory.end());
  constexpr int64_t kMatrix = 64 * 64 * 4;
  EXPECT_EQ(there->state_bytes, kMatrix);
  EXPECT_EQ(there->constant_bytes, kMatrix);
  EXPECT_GE(there->value_bytes, 3 * kMatrix);
  EXPECT_EQ(DeviceNamed("ASYNC:0")->memory_use().in_use, 0u) << "an estimate takes nothing";
  ASSERT_TRUE(Run({}, {}, {"init"}).ok());
  ASSERT_TRUE(Run(feeds, fetches).ok());
  const auto peak = static_cast<int64_t>(DeviceNamed("ASYNC:0")->memory_use().peak);
  const int64_t estimate = there->state_bytes + there->constant_bytes + there->value_bytes;
  EXPECT_GE(estimate, peak / 2);
  EXPECT_LE(estimate, peak * 2);
}

TEST_F(DevicesTest, VariablesTakeOverTheMemoryOfInitialValues) {
  constexpr int64_t kRows = 256;
  constexpr uint64_t kBytes = kRows * kRows * sizeof(float);
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({kRows, kRows})}};
  Open({Placeholder("x", PartialShape()),
        {"v", "VariableV2", {}, variable, "/device:ASYNC:0"},
        {"w", "VariableV2", {}, variable, "/device:ASYNC:0"},
        {"twice", "AddV2", {"x", "x"}, kFloat, "/device:ASYNC:0"},
        {"square", "Square", {"twice"}, kFloat, "/device:ASYNC:0"},
        {"on_cpu", "Neg", {"x"}, kFloat, "/cpu:0"},
        {"set_v", "Assign", {"v", "square"}, kFloat},
        {"set_w", "Assign", {"w", "on_cpu"}, kFloat},
        {"more", "AssignAdd", {"v", "x"}, kFloat}});
  const Tensor ones = Tensor::Of(Shape::Of({kRows, kRows}), std::vector<float>(kRows * kRows, 1));
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(Run({{"x", ones}}, {}, {"set_v", "set_w"}).ok());
    if (run == 0) {
      EXPECT_EQ(DeviceNamed("ASYNC:0")->memory_use().peak, 2 * kBytes) << "in the place of what was fed";
    }
    EXPECT_LE(DeviceNamed("ASYNC:0")->memory_use().in_use, 3 * kBytes + (64 << 10));
    ASSERT_TRUE(Run({{"x", ones}}, {}, {"more"}).ok());
    const auto now = Run({}, {"v", "w"});
    ASSERT_TRUE(now.ok()) << now.status().ToString();
    EXPECT_TRUE((*now)[0].SameBits(Tensor::Of(ones.shape(), std::vector<float>(kRows * kRows, 5))));
    EXPECT_TRUE((*now)[1].SameBits(Tensor::Of(ones.shape(), std::vector<float>(kRows * kRows, -1))));
  }
}

TEST_F(DevicesTest, FetchesOfOneRunAreWholeWhileAnotherWrites) {
  constexpr int64_t kRows = 256;
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({kRows, kRows})}};
  Open({Placeholder("x", PartialShape()),
        {"v", "VariableV2", {}, variable, "/device:ASYNC:0"},
        {"set", "Assign", {"v", "x"}, kFloat},
        {"more", "AssignAdd", {"v", "x"}, kFloat},
        {"y", "Neg", {"v"}, kFloat, "/device:ASYNC:0"}});
  const Tensor ones = Tensor::Of(Shape::Of({kRows, kRows}), std::vector<float>(kRows * kRows, 1));
  ASSERT_TRUE(Run({{"x", ones}}, {}, {"set"}).ok());
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(session_->Run(std::vector<Feed>{{"x", ones}}, Names{}, Names{"more"}).ok());
    }
  });
  for (int i = 0; i < 50; ++i) {
    const auto out = session_->Run(std::vector<Feed>{}, Names{"v", "y"}, Names{});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    for (const Tensor& tensor : *out) {
      const auto values = tensor.as<float>();
      EXPECT_EQ(std::count(values.begin(), values.end(), values[0]), kRows * kRows) << i;
    }
  }
  writer.join();
}

TEST_F(DevicesTest, F300_PlacementsGoToAFileACallbackOrStandardErrorAtOnce) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape()), {"y", "Neg", {"x"}, kFloat, "/cpu:0"}};
  const std::string lines = "x: (Placeholder): " + kPrefix + "CPU:0\ny: (Neg): " + kPrefix + "CPU:0\n";
  const std::string path = ::testing::TempDir() + "weir_placement_" + std::to_string(getpid()) + ".log";
  const auto contents = [&] {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  std::remove(path.c_str());
  std::string told;
  SessionOptions options;
  options.log_device_placement = true;
  options.placement_log_file = path;
  options.placement_log = [&told](const std::string& lines) { told += lines; };
  Open(nodes, options);
  ASSERT_TRUE(Run({{"x", Ramp(2, 2)}}, {"y"}).ok());
  EXPECT_EQ(told, lines + "placed 1 node: CPU:0 1 (100.0 %)\n");
  EXPECT_EQ(contents(), told) << "while the session is open";
  Open(nodes, options);  // another session writes the same variable
  ASSERT_TRUE(Run({{"x", Ramp(2, 2)}}, {"y"}).ok());
  EXPECT_EQ(contents(), told);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 6);
  std::remove(path.c_str());

  Result<graph::Definition> graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok());
  options.placement_log_file = "/no/such/folder/log";
  const auto refused = Session::Make(runtime_, *graph, options);
  EXPECT_EQ(refused.status().code(), Code::kUnavailable);
  EXPECT_NE(refused.status().message().find("/no/such/folder/log"), std::string::npos);

  options.placement_log = nullptr;
  options.placement_log_file.clear();
  ::testing::internal::CaptureStderr();
  const auto plain = Session::Make(runtime_, *graph, options);
  ASSERT_TRUE(plain.ok());
  const Names fetches = {"y"};
  const bool ran = (*plain)->Run(std::vector<Feed>{{"x", Ramp(2, 2)}}, fetches, {}).ok();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), lines + "weir: placed 1 node: CPU:0 1 (100.0 %)\n");
  EXPECT_TRUE(ran);
}

/// The same devices, with the kernels of tests/plugin/waiting.cc for the CPU: Square and Neg wait for each other and
/// return their input, AddV2 takes long enough to be worth threads. Uses a separate plugin folder.
class OtherPluginsTest : public DevicesTest {
 protected:
  /// Links `files` of the usual folder into it, and copies `plugin`.
  void LoadWith(const std::vector<std::string>& files, const char* plugin) {
    testing::AsyncTest::SetUp();
    std::string pattern = (fs::temp_directory_path() / "weir_waiting_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::permissions(folder_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec);
    for (const std::string& file : files) fs::create_hard_link(fs::path(plugins_.folder()) / file, folder_ / file);
    fs::copy_file(plugin, folder_ / fs::path(plugin).filename());
    Load({}, folder_);
  }
  void TearDown() override {
    DevicesTest::TearDown();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path folder_;
};

class WaitingDevicesTest : public OtherPluginsTest {
 protected:
  void SetUp() override { LoadWith({"cpu.so", "async_device.so", "kernels_async.so"}, WEIR_WAITING_PLUGIN); }
};

class ChoosyDevicesTest : public OtherPluginsTest {
 protected:
  void SetUp() override { LoadWith({"cpu.so", "async_device.so", "kernels_eigen.so"}, WEIR_CHOOSY_PLUGIN); }
};

TEST_F(ChoosyDevicesTest, ADeviceBringsItsOwnCheckNumericsAndTheHostServesTheOthers) {
  const op::AttrList attrs = {{"T", DType::kFloat}, {"message", std::string("on the host")}};
  const auto checked = [&](const char* device, float value) {
    Open({Placeholder("x", PartialShape()), {"c", "CheckNumerics", {"x"}, attrs, device}});
    const auto got = Run({{"x", Tensor::Vector<float>({1, value})}}, {"c"});
    EXPECT_TRUE(!got.ok() || (*got)[0].SameBits(Tensor::Vector<float>({1, value})));
    return got.ok() ? std::string("ok") : std::string(got.status().message());
  };
  const float nan = std::stof("nan");
  EXPECT_EQ(checked("/device:ASYNC:0", 2), "ok");
  EXPECT_NE(checked("/device:ASYNC:0", -2).find("checked where the tensor lies"), std::string::npos);
  EXPECT_NE(checked("/device:ASYNC:0", nan).find("checked where the tensor lies"), std::string::npos);
  EXPECT_EQ(checked("/cpu:0", -2), "ok");
  EXPECT_NE(checked("/cpu:0", nan).find("on the host : Tensor had NaN"), std::string::npos);
}

TEST_F(ChoosyDevicesTest, SoftPlacedNodesThatPrepareDeclinesRunOnAnotherDevice) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape()),
                                       {"n", "Neg", {"x"}, kFloat, "/device:ASYNC:0"}};
  const Tensor matrix = Ramp(2, 3), cube = *Ramp(2, 3).Reshaped(Shape::Of({1, 2, 3}));
  std::string log;
  SessionOptions options;
  options.log_device_placement = true;
  options.placement_log = [&log](const std::string& text) { log += text; };
  for (const bool soft : {true, false}) {
    options.allow_soft_placement = soft;
    Open(nodes, options);
    const auto flat = Run({{"x", matrix}}, {"n"});
    ASSERT_TRUE(flat.ok()) << flat.status().ToString();
    const auto deep = Run({{"x", cube}}, {"n"});
    EXPECT_EQ(deep.ok(), soft) << deep.status().ToString();
    if (soft) {
      EXPECT_EQ((*deep)[0].as<float>()[1], -cube.as<float>()[1]);
      EXPECT_NE(log.find("'n' runs on " + kPrefix + "CPU:0 instead of " + kPrefix + "ASYNC:0"), std::string::npos)
          << log;
    } else {
      EXPECT_EQ(deep.status().code(), Code::kUnimplemented);
      EXPECT_NE(deep.status().message().find("kernel Neg of choosy: more than 2 dimensions"), std::string::npos)
          << deep.status().message();
    }
    log.clear();
  }
}

TEST_F(WaitingDevicesTest, F020_HostOpsMeetBesideTheWorkOfAStream) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({3, 4})}};
  SessionOptions options;
  options.inter_op_parallelism_threads = 4;
  Open({Placeholder("x", PartialShape()),
        Const("zeros", Tensor::Of<float>(Shape::Of({3, 4}), std::vector<float>(12, 0))),
        {"v", "VariableV2", {}, variable, "/device:ASYNC:0"},
        {"init", "Assign", {"v", "zeros"}, kFloat},
        {"there", "Abs", {"x"}, kFloat, "/device:ASYNC:0"},
        {"p", "Square", {"there"}, kFloat, "/cpu:0"},
        {"q", "Neg", {"there"}, kFloat, "/cpu:0"},
        {"sum", "Sub", {"p", "q"}, kFloat, "/device:ASYNC:1"},
        {"again", "Mul", {"p", "there"}, kFloat, "/device:ASYNC:0"},
        {"total", "AssignAdd", {"v", "again"}, kFloat}},
       options);
  ASSERT_TRUE(Run({}, {}, {"init"}).ok());
  for (int run = 1; run <= 10; ++run) {
    const auto got = Run({{"x", Ramp(3, 4)}}, {"p", "q", "sum", "total"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    for (size_t i = 0; i < 12; ++i) {
      const float size = std::abs(Ramp(3, 4).as<float>()[i]);
      EXPECT_EQ((*got)[0].as<float>()[i], size);
      EXPECT_EQ((*got)[1].as<float>()[i], size);
      EXPECT_EQ((*got)[2].as<float>()[i], 0);
      EXPECT_EQ((*got)[3].as<float>()[i], static_cast<float>(run) * size * size);
    }
  }
}

TEST_F(WaitingDevicesTest, TasksAtRandomCutsGiveTheResultOfOneDevice) {
  const std::string devices[] = {"/cpu:0", "/device:ASYNC:0", "/device:ASYNC:1"};
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    std::vector<NodeLine> nodes = {Placeholder("n0", PartialShape()), {"n1", "AddV2", {"n0", "n0"}, kFloat, "/cpu:0"}};
    std::vector<NodeLine> on_cpu = nodes;
    for (size_t i = 2; i < 24; ++i) {
      const auto earlier = [&] { return nodes[i - 1 - random() % std::min<size_t>(i, 6)].name; };
      const NodeLine node{"n" + std::to_string(i), "AddV2", {earlier(), earlier()}, kFloat, "/cpu:0"};
      on_cpu.push_back(node);
      nodes.push_back(node);
      nodes.back().device = devices[random() % 3];
    }
    const Names fetches = {"n9", "n17", "n23"};
    SessionOptions options;
    options.inter_op_parallelism_threads = 4;
    Open(on_cpu, options);
    const auto wanted = Run({{"n0", Ramp(5, 3)}}, fetches);
    Open(nodes, options);
    const auto got = Run({{"n0", Ramp(5, 3)}}, fetches);
    ASSERT_TRUE(wanted.ok() && got.ok()) << wanted.status().ToString() << got.status().ToString();
    for (size_t f = 0; f < fetches.size(); ++f) EXPECT_TRUE((*got)[f].SameBits((*wanted)[f])) << seed << fetches[f];
  }
}

}  // namespace
}  // namespace weir::session
