// Runs the graphs of the test data on devices whose memory the host cannot read: on an emulated GPU, on the example
// with handles, and placed by cost over the CPU and two emulated GPUs of different speed. Every tenth graph, or all
// with WEIR_TF_GRAPHS=all.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/session/session.h"
#include "tests/e2e/tf_graphs.h"
#include "tests/support/gpu_plugins.h"
#include "tests/support/test_data.h"

namespace weir {
namespace {

using testing::GpuFolder;
using testing::GpuOptions;
using testing::TfGraph;

/// Nodes by kind and number of their device: "GPU:0".
using NodesOn = std::map<std::string, int>;

class TfGraphsOn : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef WEIR_KERNEL_DTYPES_SHORT
    GTEST_SKIP() << "the kernels of this build take few element types";
#endif
    if (testing::TestData().empty()) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
    auto graphs = testing::ListTfGraphs(testing::TestData());
    ASSERT_TRUE(graphs.ok()) << graphs.status().ToString();
    const char* const which = std::getenv("WEIR_TF_GRAPHS");
    const size_t step = which != nullptr && std::string(which) == "all" ? 1 : 10;
    for (size_t i = 0; i < graphs->size(); i += step) graphs_.push_back((*graphs)[i]);
    ASSERT_FALSE(folder_.path().empty()) << "the build lacks gpu_emulated";
    options_.constant_folding = false;
    options_.placement_log = [](const std::string&) {};
    options_.operation_timeout_in_ms = 120000;
  }

  void Load(const plugin::LoadOptions& load) {
    Result<std::shared_ptr<session::Runtime>> runtime = session::Runtime::Load(load);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
  }

  Status RunOne(const TfGraph& tested, NodesOn& nodes) const {
    WEIR_ASSIGN(const graph::Definition graph, tested.Parse(*runtime_->ops));
    WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime_, graph, options_));
    WEIR_ASSIGN(const std::vector<session::Feed> feeds, tested.Feeds());
    // The later runs use memory, streams and captured work again.
    for (int run = 0; run < 4; ++run) {
      session::RunReport report;
      WEIR_ASSIGN(const std::vector<Tensor> results, session->Run(feeds, tested.Fetches(), {}, {}, &report));
      WEIR_TRY(tested.Compare(results).Prepend("run " + std::to_string(run) + ": "));
      if (run > 0) continue;
      for (const auto& [device, count] : report.placement) nodes[device.substr(device.find("device:") + 7)] += count;
    }
    return Status();
  }

  /// The nodes by device, of all graphs together.
  NodesOn RunAll() const {
    NodesOn nodes;
    int matched = 0;
    for (const TfGraph& tested : graphs_) {
      if (!tested.Runs(*runtime_->ops) || tested.Refused()) continue;
      const Status status = RunOne(tested, nodes);
      EXPECT_TRUE(status.ok()) << tested.name() << ": " << status.ToString();
      matched += status.ok() ? 1 : 0;
    }
    std::cout << "tf_graphs: " << matched << " match;";
    for (const auto& [device, count] : nodes) std::cout << " " << device << " " << count;
    std::cout << "\n";
    EXPECT_GE(matched, 50);
    return nodes;
  }

  GpuFolder folder_;
  std::vector<TfGraph> graphs_;
  session::SessionOptions options_;
  std::shared_ptr<session::Runtime> runtime_;
};

TEST_F(TfGraphsOn, AnEmulatedGpuMatch) {
  ASSERT_NO_FATAL_FAILURE(Load(folder_.Load({{"devices", "1"}})));
  options_.default_device = "GPU:0";
  NodesOn nodes = RunAll();
  EXPECT_GT(nodes["GPU:0"], nodes["CPU:0"]);
}

TEST_F(TfGraphsOn, ADeviceWithHandlesMatch) {
  namespace fs = std::filesystem;
  const fs::path handle = fs::path(std::getenv("WEIR_BUILD_DIR")) / "lib/weir/handle";
  for (const auto& entry : fs::directory_iterator(handle)) {
    const fs::path to = fs::path(folder_.path()) / entry.path().filename();
    fs::copy_file(entry.path(), to);
    chmod(to.c_str(), 0755);
  }
  ASSERT_NO_FATAL_FAILURE(Load(folder_.Load({{"devices", "0"}})));
  options_.default_device = "HANDLE:0";
  EXPECT_GT(RunAll()["HANDLE:0"], 0);
}

/// The CPU is declared so slow, and its links so fast, that work on a GPU pays.
TEST_F(TfGraphsOn, ThreeDevicesOfDifferentSpeedMatch) {
  config::Config config;
  config.device["CPU:0"].launch_us = 500;
  config.device["CPU:0"].mem_gbps = 0.001;
  config.device["CPU:0"].peak_gflops["f32"] = 0.001;
  for (const char* gpu : {"GPU:0", "GPU:1"}) {
    config.device[gpu].enabled = true;
    config.device[gpu].launch_us = 50;
    for (const std::string& link : {std::string("CPU:0->") + gpu, std::string(gpu) + "->CPU:0"}) {
      config.link[link].latency_us = 0.1;
      config.link[link].gbps = 1000;
    }
  }
  config.link["GPU:0->GPU:1"] = config.link["GPU:1->GPU:0"] = config.link["CPU:0->GPU:0"];
  ASSERT_NO_FATAL_FAILURE(Load(folder_.Load({{"devices", "2"}, {"speed", "1,0.5"}}, config)));
  NodesOn nodes = RunAll();
  EXPECT_GT(nodes["CPU:0"], 0);
  EXPECT_GT(nodes["GPU:0"], nodes["GPU:1"]);
  EXPECT_GT(nodes["GPU:1"], 0);
}

}  // namespace
}  // namespace weir
