// Large ops in tiles: the bits of one call, limits, cancellation, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

constexpr int64_t kRows = 640, kColumns = 640;  // of a product that is long on any processor

Tensor Numbers(float scale) {
  Result<Tensor> made = Tensor::Make(DType::kFloat, Shape::Of({kRows, kColumns}));
  EXPECT_TRUE(made.ok());
  const auto values = made->mutable_as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * static_cast<float>(static_cast<int>(i % 97) - 48);
  return *made;
}

/// y = x x, in at most `max_tiles` tiles.
Compiled Product(uint64_t max_tiles) {
  return Compiled(
      MakeGraph({Placeholder("x", PartialShape::Of({kRows, kColumns})), {"y", "MatMul", {"x", "x"}, kFloat}}),
      {{"x", Shape::Of({kRows, kColumns})}}, {"y"}, 1, true, max_tiles);
}

size_t TiledIn(const plan::ExecutionPlan& plan) {
  return static_cast<size_t>(
      std::ranges::count(plan.instructions, plan::Opcode::kTiledKernel, &plan::Instruction::opcode));
}

TEST(Tiles, ALongOpRunsInTilesWithTheBitsOfOneCall) {
  Compiled whole = Product(1), tiled = Product(8);
  EXPECT_EQ(TiledIn(whole.runner().plan()), 0u);
  ASSERT_EQ(TiledIn(tiled.runner().plan()), 1u);
  const std::vector<Tensor> feeds = {Numbers(0.01f)};
  std::vector<Tensor> wanted;
  ASSERT_TRUE(whole.runner().Run(feeds, &wanted).ok());
  for (const int threads : {0, 1, 2, 3, 8}) {
    StepArgs args;
    args.intra_op = threads;
    std::vector<Tensor> got;
    ASSERT_TRUE(tiled.runner().Run(feeds, &got, args).ok());
    EXPECT_TRUE(got[0].SameBits(wanted[0])) << threads << " threads";
  }
}

TEST(Tiles, F249_AnUpdateOfALargeVariableRunsInTiles) {
  const op::AttrList of_float = {{"dtype", DType::kFloat}};
  const Shape shape = Shape::Of({1 << 23});
  const std::vector<NodeLine> nodes = {
      Placeholder("x", PartialShape(shape)),
      Placeholder("d", PartialShape(shape)),
      {"v", "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape(shape)}, {"shared_name", "v"}}},
      {"set", "AssignVariableOp", {"v", "x"}, of_float},
      {"sub", "AssignSubVariableOp", {"v", "d", "^set"}, of_float},
      {"y", "ReadVariableOp", {"v", "^sub"}, of_float}};
  const auto numbers = [&](float scale) {
    Result<Tensor> made = Tensor::Make(DType::kFloat, shape);
    EXPECT_TRUE(made.ok());
    const auto values = made->mutable_as<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = scale * static_cast<float>(i % 97);
    return *made;
  };
  const std::vector<Tensor> feeds = {numbers(0.5f), numbers(0.25f)};
  std::vector<Tensor> wanted;
  for (const uint64_t tiles : {1, 4}) {
    Compiled step(MakeGraph(nodes), {{"x", shape}, {"d", shape}}, {"y"}, 1, true, tiles);
    const plan::ExecutionPlan& plan = step.runner().plan();
    EXPECT_EQ(std::ranges::any_of(plan.kernels, [](const auto& kernel) { return kernel->tiles() > 1; }), tiles > 1);
    std::vector<Tensor> got;
    ASSERT_TRUE(step.runner().Run(feeds, &got).ok());
    if (tiles == 1) wanted = got;
    EXPECT_TRUE(got[0].SameBits(wanted[0]));
  }
  EXPECT_TRUE(wanted[0].SameBits(numbers(0.25f)));
}

TEST(Tiles, AShortOpHasNone) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({8, 8})), {"y", "MatMul", {"x", "x"}, kFloat}}),
                {{"x", Shape::Of({8, 8})}}, {"y"}, 1, true, 8);
  EXPECT_EQ(TiledIn(step.runner().plan()), 0u);
}

TEST(Tiles, ThereAreAtMostAsManyAsAllowed) {
  for (const uint64_t most : {2u, 3u, 16u}) {
    Compiled step = Product(most);
    const plan::ExecutionPlan& plan = step.runner().plan();
    const auto tiled = std::ranges::find(plan.instructions, plan::Opcode::kTiledKernel, &plan::Instruction::opcode);
    ASSERT_NE(tiled, plan.instructions.end());
    EXPECT_LE(plan.kernels[tiled->detail]->tiles(), most);
    EXPECT_GE(plan.kernels[tiled->detail]->tiles(), 2u);
  }
}

TEST(Tiles, ACancelledStepStopsBetweenTiles) {
  Compiled step = Product(8);
  runtime::Cancellation cancellation;
  cancellation.Cancel(Cancelled("enough"));
  StepArgs args;
  args.cancellation = &cancellation;
  const std::vector<Tensor> feeds = {Numbers(0.01f)};
  std::vector<Tensor> fetches;
  EXPECT_EQ(step.runner().Run(feeds, &fetches, args).code(), Code::kCancelled);
  EXPECT_TRUE(fetches.empty());
  EXPECT_TRUE(step.runner().Run(feeds, &fetches).ok()) << "the next run is whole";
}

TEST(Tiles, RunsBesideEachOtherHaveScratchMemoryOfTheirOwn) {
  Compiled step = Product(8);
  const std::vector<Tensor> one = {Numbers(0.01f)}, other = {Numbers(0.03f)};
  std::vector<Tensor> first, second;
  ASSERT_TRUE(step.runner().Run(one, &first).ok());
  ASSERT_TRUE(step.runner().Run(other, &second).ok());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        std::vector<Tensor> got;
        const bool ok = step.runner().Run(t % 2 == 0 ? one : other, &got).ok();
        wrong += !ok || !got[0].SameBits(t % 2 == 0 ? first[0] : second[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace weir::execute
