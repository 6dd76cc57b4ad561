// The memory of whole steps: the size of a plan's memory, and that parallel ops do not share it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/client/gradients/gradients.h"
#include "core/client/graph/graph.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/ops/ops.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using Feeds = std::vector<std::pair<std::string, Shape>>;

Output Fed(Feeds* feeds, const std::string& name, const Shape& shape) {
  feeds->emplace_back(name, shape);
  return weir::Placeholder(DType::kFloat, PartialShape(shape), name);
}

std::vector<Tensor> ValuesOf(const Feeds& feeds) {
  std::mt19937 random(7);
  std::vector<Tensor> values;
  for (const auto& [name, shape] : feeds) {
    std::vector<float> numbers(static_cast<size_t>(shape.elements()));
    for (float& number : numbers) number = std::uniform_real_distribution<float>(-0.5f, 0.5f)(random);
    values.push_back(Tensor::Of<float>(shape, numbers));
  }
  return values;
}

/// The squared length of every gradient of a network with these layers.
struct Backward {
  Backward(const std::vector<int64_t>& layers, int64_t batch) {
    const AsDefault in(client);
    Output h = Fed(&feeds, "images", Shape::Of({batch, layers[0]}));
    std::vector<Output> weights;
    for (size_t i = 0; i + 1 < layers.size(); ++i) {
      weights.push_back(Fed(&feeds, "w" + std::to_string(i), Shape::Of({layers[i], layers[i + 1]})));
      weights.push_back(Fed(&feeds, "b" + std::to_string(i), Shape::Of({layers[i + 1]})));
      h = Tanh(MatMul(h, weights[2 * i]) + weights[2 * i + 1]);
    }
    const Result<std::vector<Gradient>> gradients = Gradients({ReduceMean(h * h)}, weights);
    EXPECT_TRUE(gradients.ok()) << gradients.status().ToString();
    for (size_t i = 0; gradients.ok() && i < weights.size(); ++i) {
      const Output gradient = (*gradients)[i].values;
      fetches.push_back(ReduceSum(gradient * gradient).name());
    }
    EXPECT_TRUE(client.status().ok()) << client.status().ToString();
  }
  weir::Graph client;
  Feeds feeds;
  std::vector<std::string> fetches;
};

/// Elementwise ops on earlier values, in parallel and in sequence.
struct RandomOps {
  explicit RandomOps(uint32_t seed) {
    std::mt19937 random(seed);
    const AsDefault in(client);
    const Shape shape = Shape::Of({32 * 1024});
    std::vector<Output> values = {Fed(&feeds, "x", shape), Fed(&feeds, "y", shape)};
    for (int i = 0; i < 120; ++i) {
      const auto pick = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 8)]; };
      const uint32_t kind = random() % 4;
      const Output a = pick(), b = pick();
      values.push_back(kind == 0 ? Tanh(a) : kind == 1 ? a * 0.5f : kind == 2 ? a - b : a * b);
    }
    for (size_t i = 0; i < 4; ++i) fetches.push_back(ReduceSum(values[values.size() - 1 - i]).name());
    EXPECT_TRUE(client.status().ok()) << client.status().ToString();
  }
  weir::Graph client;
  Feeds feeds;
  std::vector<std::string> fetches;
};

/// Runs two equal steps many times, one on one thread and the other as tasks.
template <class Step>
void CompareTiers(Step* first, Step* second) {
  Compiled one(std::move(Internals(first->client).definition), first->feeds, first->fetches, 1, false);
  Compiled many(std::move(Internals(second->client).definition), second->feeds, second->fetches, 4, false);
  const plan::ExecutionPlan& plan = many.runner().plan();
  ASSERT_EQ(one.runner().plan().tier, plan::Tier::kT0);
  ASSERT_EQ(plan.tier, plan::Tier::kT2);
  uint64_t all = 0;
  for (const plan::Storage& storage : plan.storages)
    all += storage.home == plan::Storage::Home::kArena ? storage.bytes : 0;
  EXPECT_LT(plan.arena_bytes[plan::kHostSpace], all / 2) << "memory is used again";
  const std::vector<Tensor> values = ValuesOf(first->feeds);
  std::vector<Tensor> expected, fetched;
  StepArgs side_by_side;
  side_by_side.inter_op = 4;
  ASSERT_TRUE(one.Run(values, &expected).ok());
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(many.Run(values, &fetched, side_by_side).ok());
    for (size_t f = 0; f < fetched.size(); ++f) ASSERT_TRUE(fetched[f].SameBits(expected[f])) << i << " " << f;
  }
  const std::vector<PlanRunner::Held> held = many.runner().held();
  ASSERT_EQ(held.size(), 2u) << "both tiers have been measured by now";
  EXPECT_EQ(held[0].instances + held[1].instances, 1) << "the slower one keeps no memory";
}

TEST(PlanMemory, ArenaIsCloseToThePeakOfLiveBytes) {
  for (const int64_t batch : {1, 32, 100}) {
    Backward step({784, 512, 300, 10}, batch);
    Compiled compiled(std::move(Internals(step.client).definition), step.feeds, step.fetches);
    const plan::ExecutionPlan& plan = compiled.runner().plan();
    ASSERT_EQ(plan.tier, plan::Tier::kT0);
    const uint64_t live = plan.live_bytes[plan::kHostSpace];
    EXPECT_GT(live, uint64_t{784} * 512 * 4);
    EXPECT_LE(live, plan.arena_bytes[plan::kHostSpace]);
    EXPECT_LE(static_cast<double>(plan.arena_bytes[plan::kHostSpace]), 1.15 * static_cast<double>(live)) << batch;
  }
}

TEST(PlanMemory, TasksGiveTheResultsOfOneThread) {
  Backward first({512, 512, 512, 512, 64}, 128), second({512, 512, 512, 512, 64}, 128);
  CompareTiers(&first, &second);
}

TEST(PlanMemory, RandomTasksGiveTheResultsOfOneThread) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    RandomOps first(seed), second(seed);
    CompareTiers(&first, &second);
  }
}

}  // namespace
}  // namespace weir::execute
