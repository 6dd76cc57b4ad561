// Gradients that are clipped between ComputeGradients and ApplyGradients; the count of updates of an optimiser.
#include <cmath>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Figures = std::vector<double>;

void ExpectNear(const Figures& got, const Figures& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
}

TEST(Clipping, F189_TheNormOfAllGradientsIsBounded) {
  Fresh f;
  const Output a = Placeholder(DType::kFloat, {1}, "a"), b = Placeholder(DType::kFloat, {1}, "b");
  const auto [clipped, norm] = ClipByGlobalNorm({{a}, {}, {b}}, 1.0);
  ASSERT_EQ(clipped.size(), 3u);
  EXPECT_FALSE(clipped[1].exists());
  const ClippedGradients by_another = ClipByGlobalNorm({{a}, {b}}, Constant(1.0f), Constant(10.0f));
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  const Feeds above = {{a, {3.0f}}, {b, {4.0f}}}, below = {{a, {0.3f}}, {b, {0.4f}}};
  const Feeds zeros = {{a, {0.0f}}, {b, {0.0f}}};
  ExpectNear(Values(session, clipped[0].values, above), {0.6});
  ExpectNear(Values(session, clipped[2].values, above), {0.8});
  EXPECT_EQ(Value(session, norm, above), 5);
  ExpectNear(Values(session, clipped[0].values, below), {0.3});
  ExpectNear(Values(session, clipped[2].values, zeros), {0});
  ExpectNear(Values(session, by_another.gradients[1].values, above), {0.4});
  for (const double broken : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    const Feeds feeds = {{a, {broken}}, {b, {1.0f}}};
    EXPECT_TRUE(std::isnan(Value(session, clipped[0].values, feeds)));
    EXPECT_TRUE(std::isnan(Value(session, clipped[2].values, feeds)));
  }
}

TEST(Clipping, F130_ListsOfGradientsAreClippedByTheNormOfAll) {
  Fresh f;
  const auto [one, five] = ClipByGlobalNorm({{Constant({3.0, 4.0})}}, 1.0);
  const auto [kept, thirteen] = ClipByGlobalNorm({{Constant({3.0, 4.0})}, {}, {Constant({12.0})}}, 26.0);
  const auto [broken, infinite] = ClipByGlobalNorm({{Constant({3.0})}, {Constant({HUGE_VAL})}}, 1.0);
  const auto [zeros, none] = ClipByGlobalNorm({{Constant({0.0, 0.0})}}, 1.0);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  ExpectNear(Values(session, one[0].values), {0.6, 0.8});
  EXPECT_EQ(Value(session, five), 5);
  EXPECT_EQ(Value(session, thirteen), 13);
  ExpectNear(Values(session, kept[0].values), {3, 4});
  EXPECT_FALSE(kept[1].exists());
  ExpectNear(Values(session, kept[2].values), {12});
  EXPECT_TRUE(std::isinf(Value(session, infinite)));
  EXPECT_TRUE(std::isnan(Value(session, broken[0].values)));
  ExpectNear(Values(session, zeros[0].values), {0, 0});
  EXPECT_EQ(Value(session, none), 0);
}

TEST(Clipping, F189_NodesAreTensorFlows) {
  Fresh f;
  const Output a = Placeholder(DType::kFloat, {1}, "a"), rows = Placeholder(DType::kFloat, {3, 2}, "rows");
  const Output indices = Placeholder(DType::kInt32, {3}, "i");
  const ClippedGradients clipped = ClipByGlobalNorm({{a}, {}, {rows, indices}}, 1.0);
  EXPECT_EQ(NodeNames(f.graph), (std::vector<std::string>{"a",
                                                          "rows",
                                                          "i",
                                                          "global_norm/L2Loss",
                                                          "global_norm/L2Loss_1",
                                                          "global_norm/stack",
                                                          "global_norm/Const",
                                                          "global_norm/Sum",
                                                          "global_norm/Const_1",
                                                          "global_norm/mul",
                                                          "global_norm/global_norm",
                                                          "clip_by_global_norm/truediv/x",
                                                          "clip_by_global_norm/truediv",
                                                          "clip_by_global_norm/Const",
                                                          "clip_by_global_norm/truediv_1/y",
                                                          "clip_by_global_norm/truediv_1",
                                                          "clip_by_global_norm/Minimum",
                                                          "clip_by_global_norm/mul/x",
                                                          "clip_by_global_norm/mul",
                                                          "clip_by_global_norm/sub",
                                                          "clip_by_global_norm/add",
                                                          "clip_by_global_norm/mul_1",
                                                          "clip_by_global_norm/clip_by_global_norm/_0",
                                                          "clip_by_global_norm/mul_2",
                                                          "clip_by_global_norm/clip_by_global_norm/_2"}));
  EXPECT_EQ(clipped.gradients[2].indices, indices);
  EXPECT_EQ(clipped.norm.name(), "global_norm/global_norm:0");
  EXPECT_EQ(ClipByGlobalNorm({{a}}, Constant(1.0f), {}, "z").gradients[0].values.name(), "z_1/z_1/_0:0");
  EXPECT_EQ(GlobalNorm({{}, {}}).name(), "global_norm_1/global_norm:0");
  Session session(f.graph);
  EXPECT_EQ(Value(session, "global_norm_1/global_norm:0"), 0);
}

// Rows of an embedding are used twice, so that their gradients add up: 2 for row 1, 1 for row 0.
TEST(Clipping, F189_F361_ClippedGradientsUpdateVariablesAndRows) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable table({{1.0f, 1.0f}, {1.0f, 1.0f}, {1.0f, 1.0f}}, {.name = "table", .use_resource = resource});
    const Variable w(3.0f, {.name = "w", .use_resource = resource}), unused(1.0f, {.name = "unused"});
    const Output loss = ReduceSum(Gather(table, {1, 0, 1})) + w * 4.0f;
    GradientDescentOptimizer descent(1.0);
    auto pairs = descent.ComputeGradients(loss);
    ASSERT_TRUE(Succeeds(pairs));
    std::vector<Gradient> gradients;
    for (const auto& [gradient, variable] : *pairs) gradients.push_back(gradient);
    ASSERT_TRUE(gradients[0].sparse());
    const auto [clipped, norm] = ClipByGlobalNorm(gradients, 1.0);
    for (size_t i = 0; i < clipped.size(); ++i) (*pairs)[i].first = clipped[i];
    const Result<Operation> train = descent.ApplyGradients(*pairs);
    ASSERT_TRUE(Succeeds(train));
    Session session(f.graph);
    Initialize(session);
    const double size = std::sqrt(6 + 16.0);  // of six ones and a four
    EXPECT_NEAR(Value(session, norm), size, 1e-5);
    ASSERT_TRUE(Succeeds(session.Run(*train)));
    ExpectNear(Values(session, table), {1 - 1 / size, 1 - 1 / size, 1 - 2 / size, 1 - 2 / size, 1, 1});
    ExpectNear(Values(session, w), {3 - 4 / size});
    ExpectNear(Values(session, unused), {1});
  }
}

TEST(Clipping, F189_EachGradientMayBeCappedByTheModel) {
  Fresh f;
  const Variable a(1.0f, {.name = "a"}), b(1.0f, {.name = "b"});
  GradientDescentOptimizer descent(1.0);
  auto pairs = descent.ComputeGradients(a * 10.0f + b * 0.25f);
  ASSERT_TRUE(Succeeds(pairs));
  for (auto& [gradient, variable] : *pairs) gradient.values = Minimum(gradient.values, 0.5f);
  const Result<Operation> train = descent.ApplyGradients(*pairs);
  ASSERT_TRUE(Succeeds(train));
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(*train)));
  EXPECT_EQ(Value(session, a), 0.5);
  EXPECT_EQ(Value(session, b), 0.75);
}

TEST(Train, F195_AnOptimiserCountsItsUpdatesWhenAsked) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const VariableScope scope("", {.use_resource = resource});
    const Variable w(1.0f, {.name = "w"});
    const Variable step = CreateGlobalStep();
    EXPECT_EQ(step.name(), "global_step:0");
    EXPECT_EQ(step.dtype(), DType::kInt64);
    EXPECT_FALSE(step.trainable());
    AdamOptimizer adam(0.1);
    const Variable count = adam.Iterations();
    EXPECT_EQ(count.name(), "Adam/iter:0");
    EXPECT_EQ(count.dtype(), DType::kInt64);
    EXPECT_FALSE(count.trainable());
    EXPECT_EQ(adam.Iterations().name(), count.name()) << "the same one again";
    const Operation plain = adam.Minimize(Square(w)), counted = adam.Minimize(Square(w), {.global_step = step});
    const std::vector<Variable> all = adam.variables();
    EXPECT_EQ(std::ranges::count(all, "Adam/iter:0", &Variable::name), 1);
    ASSERT_TRUE(f.graph.status().ok()) << f.error();
    Session session(f.graph);
    Initialize(session);
    EXPECT_EQ(Value(session, count), 0);
    for (const Operation& train : {plain, plain, counted}) ASSERT_TRUE(Succeeds(session.Run(train)));
    EXPECT_EQ(Value(session, count), 3);
    EXPECT_EQ(Value(session, step), 1);
  }
  Fresh f;
  const Variable w(1.0f, {.name = "w"});
  GradientDescentOptimizer(0.1).Minimize(Square(w));
  EXPECT_EQ(GlobalVariables().size(), 1u) << "no counter where none is asked for";
}

}  // namespace
}  // namespace weir::test
