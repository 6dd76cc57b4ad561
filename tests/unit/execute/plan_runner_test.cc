// The plan runner alone: concurrent runs, errors, memory kept and shared by runs.
#include "core/execute/plan_runner.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/text_graph.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

/// y = (-x)^2 + (-x), whose parts lie in the arena.
std::vector<NodeLine> Polynomial() {
  return {Placeholder("x", PartialShape::Of({-1})),
          {"n", "Neg", {"x"}, kFloat},
          {"s", "Square", {"n"}, kFloat},
          {"sum", "AddV2", {"s", "n"}, kFloat},
          {"y", "Abs", {"sum"}, kFloat}};
}

TEST(PlanRunner, ConcurrentRunsHaveMemoryOfTheirOwn) {
  static constexpr int64_t kElements = 4096;
  Compiled step(MakeGraph(Polynomial()), {{"x", Shape::Of({kElements})}}, {"y"});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&step, t] {
      for (int i = 0; i < 100; ++i) {
        const float x = static_cast<float>(2 + t * 100 + i);
        const std::vector<Tensor> feeds = {Tensor::Vector<float>(std::vector<float>(kElements, x))};
        std::vector<Tensor> fetches;
        const Status status = step.Run(feeds, &fetches);
        ASSERT_TRUE(status.ok()) << status.ToString();
        const auto y = fetches[0].as<float>();
        ASSERT_EQ(static_cast<int64_t>(y.size()), kElements);
        for (const float value : y) ASSERT_EQ(value, x * x - x);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PlanRunner, FetchesShareNothingWithLaterRuns) {
  Compiled step(MakeGraph(Polynomial()), {{"x", Shape::Of({2})}}, {"y", "x"});
  std::vector<Tensor> first, second;
  const std::vector<Tensor> feeds = {Tensor::Vector<float>({3, 4})};
  ASSERT_TRUE(step.Run(feeds, &first).ok());
  ASSERT_TRUE(step.Run({Tensor::Vector<float>({5, 6})}, &second).ok());
  EXPECT_TRUE(first[0].SameBits(Tensor::Vector<float>({6, 12})));
  EXPECT_TRUE(second[0].SameBits(Tensor::Vector<float>({20, 30})));
  EXPECT_EQ(first[1].raw(), feeds[0].raw()) << "a fetched feed shares the memory";
  first[1].mutable_as<float>()[0] = 7;
  EXPECT_TRUE(feeds[0].SameBits(Tensor::Vector<float>({3, 4})));
}

TEST(PlanRunner, RunsKeepTheirMemoryForTheNextOne) {
  Compiled step(MakeGraph(Polynomial()), {{"x", Shape::Of({1 << 16})}}, {"y"});
  const std::vector<Tensor> feeds = {Tensor::Vector<float>(std::vector<float>(1 << 16, 2.0f))};
  std::vector<Tensor> fetches;
  const uint64_t before = step.host_bytes();
  ASSERT_TRUE(step.Run(feeds, &fetches).ok());
  fetches.clear();
  const uint64_t kept = step.host_bytes();
  EXPECT_GT(kept, before) << "the arena of the first run";
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(step.Run(feeds, &fetches).ok());
    fetches.clear();
    EXPECT_EQ(step.host_bytes(), kept);
  }
}

TEST(PlanRunner, AnErrorEndsTheStepAndTheNextRunIsWell) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
  Compiled step(MakeGraph({Placeholder("ok", PartialShape::Of({}), DType::kBool),
                           Placeholder("x", PartialShape::Of({})),
                           {"v", "VariableV2", {}, variable},
                           {"check", "Assert", {"ok", "x"}, {{"T", std::vector<DType>{DType::kFloat}}}},
                           {"set", "Assign", {"v", "x", "^check"}, kFloat},
                           {"y", "Neg", {"set"}, kFloat}}),
                {{"ok", Shape()}, {"x", Shape()}}, {"y"});
  const Tensor yes = Tensor::Scalar(true), no = Tensor::Scalar(false);
  std::vector<Tensor> fetches;
  ASSERT_TRUE(step.Run({yes, Tensor::Scalar(1.0f)}, &fetches).ok());
  const uint64_t kept = step.host_bytes();
  for (int i = 0; i < 3; ++i) {
    const Status status = step.Run({no, Tensor::Scalar(7.0f)}, &fetches);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.node(), "check");
    EXPECT_TRUE(fetches.empty());
    const plan::VariableUse& use = step.runner().plan().variables[plan::VariableId(0)];
    EXPECT_EQ(use.variable->value.as<float>()[0], 1.0f) << "what comes after the error did not run";
  }
  EXPECT_EQ(step.host_bytes(), kept) << "a failed run leaves nothing behind";
  ASSERT_TRUE(step.Run({yes, Tensor::Scalar(2.0f)}, &fetches).ok());
  EXPECT_EQ(fetches[0].as<float>()[0], -2.0f);
}

TEST(PlanRunner, EverythingPlannedLiesInsideItsArena) {
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({-1}))};
  std::string last = "x";
  for (int i = 0; i < 30; ++i) {
    const std::string name = "n" + std::to_string(i);
    nodes.push_back(i % 3 == 2 ? NodeLine{name, "AddV2", {last, "n" + std::to_string(i - 2)}, kFloat}
                               : NodeLine{name, i % 3 == 0 ? "Neg" : "Square", {last}, kFloat});
    last = name;
  }
  for (const int64_t elements : {1, 15, 16, 17, 1000}) {
    Compiled step(MakeGraph(nodes), {{"x", Shape::Of({elements})}}, {last});
    const plan::ExecutionPlan& plan = step.runner().plan();
    int planned = 0;
    for (const plan::Storage& storage : plan.storages) {
      if (storage.home != plan::Storage::Home::kArena) continue;
      ++planned;
      EXPECT_EQ(storage.offset % 64, 0u);
      EXPECT_LE(storage.offset + storage.bytes, plan.arena_bytes[storage.space]);
    }
    EXPECT_GT(planned, 0);
    std::vector<Tensor> fetches;
    EXPECT_TRUE(
        step.Run({Tensor::Vector<float>(std::vector<float>(static_cast<size_t>(elements), 0.5f))}, &fetches).ok());
  }
}

}  // namespace
}  // namespace weir::execute
