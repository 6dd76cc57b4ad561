// Memory that runs, plans and variables hold, and plans that go while they run.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/session/memory_report.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/flow.h"
#include "tests/unit/session/open.h"

namespace weir::session {
namespace {

using namespace std::chrono_literals;
using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

using Names = std::vector<std::string>;

TEST(Plans, ACallableThatRunsOutOfMemoryIsReleasedWhileItRuns) {
  const auto graph = MakeGraph({Placeholder("dims", PartialShape::Of({2}), DType::kInt32),
                                Const("one", Tensor::Scalar<float>(1)),
                                {"y", "Fill", {"dims", "one"}, {{"T", DType::kFloat}, {"index_type", DType::kInt32}}}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = Open(*graph);
  ASSERT_NE(session, nullptr);
  const std::vector<Tensor> huge = {Tensor::Vector<int32_t>({2000000, 2000000})};
  const CallableOptions options{{"dims:0"}, {"y:0"}, {}};
  std::atomic<CallableHandle> current = *session->MakeCallable(options);
  std::atomic<bool> stop = false;
  std::atomic<int> unexpected = 0;
  std::vector<std::thread> runners;
  for (int i = 0; i < 3; ++i) {
    runners.emplace_back([&] {
      while (!stop) {
        std::vector<Tensor> out;
        const Code code = session->RunCallable(current, huge, &out).code();
        if (code != Code::kResourceExhausted && code != Code::kInvalidArgument) ++unexpected;  // the latter: released
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    const CallableHandle old = current.exchange(*session->MakeCallable(options));
    std::this_thread::sleep_for(100us);
    EXPECT_TRUE(session->ReleaseCallable(old).ok());
    EXPECT_FALSE(session->ReleaseCallable(old).ok());
  }
  stop = true;
  for (std::thread& runner : runners) runner.join();
  EXPECT_EQ(unexpected, 0);
}

TEST(Plans, ARunWithNewShapesDoesNotWaitForTheRunsOfOthers) {
  std::vector<NodeLine> nodes = Loop("w", "n", "one", "i", {"v"}, {{"v_n", "Neg", {"v_b"}, kFloat}});
  Append(nodes, {Placeholder("x", PartialShape()),
                 Placeholder("n", PartialShape::Of({}), DType::kInt32),
                 Const("one", Tensor::Scalar<int32_t>(1)),
                 Const("i_0", Tensor::Scalar<int32_t>(0)),
                 {"v_0", "Identity", {"x"}, kFloat}});
  const auto graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = Open(*graph);
  ASSERT_NE(session, nullptr);
  const auto run = [&](int64_t length, int32_t times, const RunOptions& options) {
    const std::vector<Feed> feeds = {{"x:0", *Tensor::Make(DType::kFloat, Shape::Of({length}))},
                                     {"n:0", Tensor::Scalar<int32_t>(times)}};
    return session->Run(feeds, Names{"v_x:0"}, {}, options).status();
  };
  std::atomic<bool> cancelled = false, ended = false;
  std::thread slow([&] {
    RunOptions options;
    options.cancelled = &cancelled;
    options.timeout_in_ms = 20000;
    EXPECT_EQ(run(1000, INT32_MAX, options).code(), Code::kCancelled);
    ended = true;
  });
  while (session->ReportMemory().holders.empty() && !ended) std::this_thread::sleep_for(1ms);
  for (int64_t length = 1; length <= 40; ++length) EXPECT_TRUE(run(length, 1, {}).ok()) << length;
  EXPECT_FALSE(ended);
  cancelled = true;
  slow.join();
}

}  // namespace
}  // namespace weir::session
