// Runs of a step whose parts are in this process: threads, errors, deadlines, traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/runtime/cancellation.h"
#include "core/session/session.h"
#include "tests/pipeline/three_cpus.h"
#include "tests/support/text_graph.h"

namespace weir {
namespace {

/// A session over three CPUs of this process whose parts are cut from each other, or not.
Result<std::unique_ptr<session::Session>> OpenOverThree(const graph::Definition& graph, bool apart) {
  session::SessionOptions options;
  options.placement_log = [](const std::string&) {};
  options.cut_between_devices = apart;
  options.inter_op_parallelism_threads = 4;
  options.constant_folding = false;
  return session::Session::Make(ThreeCpus(), graph, options);
}

/// Chains of long ops that change the device at every op, and exchange values between chains.
std::vector<testing::NodeLine> LongChains(int chains, int ops) {
  std::vector<testing::NodeLine> nodes = {testing::Placeholder("x", PartialShape::Of({30000}))};
  for (int op = 0; op < ops; ++op) {
    for (int chain = 0; chain < chains; ++chain) {
      const auto name = [&](int at, int of) {
        return at < 0 ? std::string("x") : "n" + std::to_string(at) + "_" + std::to_string(of % chains);
      };
      const std::string device = "/device:CPU:" + std::to_string((op + chain) % kDevices);
      nodes.push_back({name(op, chain), "Tanh", {name(op - 1, chain)}, testing::kFloat, device});
      nodes.back().op = op % 3 == 2 ? "AddV2" : "Tanh";
      if (op % 3 == 2) nodes.back().inputs.push_back(name(op - 1, chain + 1));
    }
  }
  return nodes;
}

TEST(PartsTogether, LongPartsRunOnSeveralThreadsWithTheBitsOfOnePlan) {
  constexpr int kChains = 5, kOps = 9;
  Result<graph::Definition> graph = testing::MakeGraph(LongChains(kChains, kOps));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto whole = OpenOverThree(*graph, false), apart = OpenOverThree(*graph, true);
  ASSERT_TRUE(whole.ok() && apart.ok());
  std::vector<std::string> fetches;
  for (int chain = 0; chain < kChains; ++chain) {
    fetches.push_back("n" + std::to_string(kOps - 1) + "_" + std::to_string(chain) + ":0");
  }
  for (int run = 0; run < 30; ++run) {
    std::vector<float> values(30000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + static_cast<size_t>(run)) * 1e-4f;
    const std::vector<session::Feed> feeds = {{"x", Tensor::Vector<float>(values)}};
    const auto wanted = (*whole)->Run(feeds, fetches, {}), got = (*apart)->Run(feeds, fetches, {});
    ASSERT_TRUE(wanted.ok() && got.ok()) << got.status().ToString();
    ASSERT_TRUE(Same(*wanted, *got)) << run;
  }
}

TEST(PartsTogether, RunsOfOneSessionMayBeConcurrent) {
  Result<graph::Definition> graph = testing::MakeGraph(LongChains(3, 6));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto apart = OpenOverThree(*graph, true);
  ASSERT_TRUE(apart.ok());
  const std::vector<std::string> fetches = {"n5_0:0"};
  const std::vector<session::Feed> feeds = {{"x", Tensor::Vector<float>(std::vector<float>(30000, 0.5f))}};
  const auto wanted = (*apart)->Run(feeds, fetches, {});
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  std::vector<std::thread> threads;
  std::atomic<int> same{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int run = 0; run < 10; ++run) {
        const auto got = (*apart)->Run(feeds, fetches, {});
        if (got.ok() && Same(*wanted, *got)) ++same;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 30);
}

TEST(PartsTogether, F318_AStepWhosePartsWaitEndsAtItsDeadlineAndNamesWhatDidNotCome) {
  const op::AttrList types = {{"component_types", std::vector<DType>{DType::kFloat}}};
  Result<graph::Definition> graph = testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({})),
                                                        {"q", "FIFOQueueV2", {}, types, "/device:CPU:0"},
                                                        {"get", "QueueDequeueV2", {"q"}, types, "/device:CPU:0"},
                                                        {"y", "Neg", {"get"}, testing::kFloat, "/device:CPU:1"},
                                                        {"z", "Neg", {"x"}, testing::kFloat, "/device:CPU:1"}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto apart = OpenOverThree(*graph, true);
  ASSERT_TRUE(apart.ok());
  const std::vector<std::string> waits = {"y:0"}, works = {"z:0"};
  session::RunOptions options;
  options.timeout_in_ms = 50;
  const auto got = (*apart)->Run({}, waits, {}, options);
  EXPECT_EQ(got.status().code(), Code::kDeadlineExceeded) << got.status().ToString();
  EXPECT_NE(got.status().message().find("not received: '"), std::string::npos) << got.status().message();
  EXPECT_NE(got.status().message().find("_get;'"), std::string::npos) << got.status().message();
  EXPECT_NE(got.status().message().find("running: 'get'"), std::string::npos) << got.status().message();
  const std::vector<session::Feed> feeds = {{"x", Tensor::Scalar<float>(2)}};
  const auto next = (*apart)->Run(feeds, works, {});
  ASSERT_TRUE(next.ok()) << next.status().ToString();
  EXPECT_EQ((*next)[0].as<float>()[0], -2);
}

TEST(PartsTogether, ACancelledStepEndsAndTheNextOneIsWell) {
  Result<graph::Definition> graph = testing::MakeGraph(LongChains(3, 6));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto apart = OpenOverThree(*graph, true);
  ASSERT_TRUE(apart.ok());
  const std::vector<std::string> fetches = {"n5_0:0"};
  const std::vector<session::Feed> feeds = {{"x", Tensor::Vector<float>(std::vector<float>(30000, 0.5f))}};
  const auto wanted = (*apart)->Run(feeds, fetches, {});
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  for (int run = 0; run < 20; ++run) {
    runtime::Cancellation cancellation;
    session::RunOptions options;
    options.cancellation = &cancellation;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(run * 20));
      cancellation.Cancel(Cancelled("enough"));
    });
    const auto ended = (*apart)->Run(feeds, fetches, {}, options);
    other.join();
    EXPECT_TRUE(ended.ok() || ended.status().code() == Code::kCancelled) << ended.status().ToString();
    const auto got = (*apart)->Run(feeds, fetches, {});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    ASSERT_TRUE(Same(*wanted, *got));
  }
}

TEST(PartsTogether, ATraceHasTheOpsOfAllPartsOnOneClock) {
  Result<graph::Definition> graph = testing::MakeGraph(LongChains(1, 6));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto apart = OpenOverThree(*graph, true);
  ASSERT_TRUE(apart.ok());
  const std::vector<std::string> fetches = {"n5_0:0"};
  const std::vector<session::Feed> feeds = {{"x", Tensor::Vector<float>(std::vector<float>(30000, 0.5f))}};
  session::RunOptions options;
  options.trace = true;
  session::RunReport report;
  ASSERT_TRUE((*apart)->Run(feeds, fetches, {}, options, &report).ok());
  int64_t last = 0;
  for (int op = 0; op < 6; ++op) {
    const std::string name = "n" + std::to_string(op) + "_0";
    const auto span = std::ranges::find_if(
        report.trace.spans, [&](const trace::Span& each) { return each.node == name && each.op != "fetch"; });
    ASSERT_NE(span, report.trace.spans.end()) << name;
    EXPECT_GE(span->start_ns, last) << name;
    EXPECT_TRUE(span->device.ends_with("CPU:" + std::to_string(op % kDevices))) << span->device;
    last = span->end_ns;
  }
}

}  // namespace
}  // namespace weir
