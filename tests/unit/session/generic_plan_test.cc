// Plans that serve feeds with many shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/session/memory_report.h"
#include "core/session/session.h"
#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

constexpr int kExactOnly = 1 << 20;

/// Distinct numbers, the same in every run.
Tensor Numbers(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<float>(i * 7919 % 1009) / 1009.0f - 0.5f);
  }
  return Tensor::Of<float>(shape, values);
}

/// A session that counts the plans that it makes.
struct Counting {
  explicit Counting(const std::vector<NodeLine>& nodes, SessionOptions options = {})
      : graph(testing::MakeGraph(nodes)) {
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    options.default_device = testing::TestDevice();
    options.placement_log = [this](const std::string&) { ++plans; };
    const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
    Result<std::unique_ptr<Session>> made = Session::Make(*runtime, *graph, options);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    session = std::move(*made);
  }
  Result<std::vector<Tensor>> Run(const Tensor& x, const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& targets = {}) {
    return session->Run(std::vector<Feed>{{"x:0", x}}, fetches, targets);
  }
  Status Init(const std::string& target) {
    return session->Run(std::vector<Feed>{}, std::vector<std::string>{}, std::vector<std::string>{target}).status();
  }
  int plans = 0;
  Result<graph::Definition> graph;
  std::unique_ptr<Session> session;
};

/// Runs the same feeds in a session with a plan for every shape and in one with the usual number; expects equal bits.
void ExpectEqual(Counting& exact, Counting& usual, const Tensor& x, const std::vector<std::string>& fetches) {
  const auto wanted = exact.Run(x, fetches), got = usual.Run(x, fetches);
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  ASSERT_TRUE(got.ok()) << x.shape().ToString() << ": " << got.status().ToString();
  for (size_t i = 0; i < fetches.size(); ++i) {
    EXPECT_TRUE((*got)[i].SameBits((*wanted)[i])) << fetches[i] << " of " << x.shape().ToString();
  }
}

SessionOptions ExactOnly() {
  SessionOptions options;
  options.exact_plans = kExactOnly;
  return options;
}

/// A layer over [batch, 3], its softmax, the batch size as a number, and a reshape by it.
std::vector<NodeLine> Layer(const PartialShape& x) {
  return {Placeholder("x", x),
          Const("w", Numbers(Shape::Of({3, 4}))),
          Const("b", Tensor::Vector<float>({1, -1, 0.5f, 2})),
          {"product", "MatMul", {"x", "w"}, kFloat},
          {"sum", "BiasAdd", {"product", "b"}, kFloat},
          {"y", "Softmax", {"sum"}, kFloat},
          {"shape", "Shape", {"x"}, kFloat},
          {"flat_shape", "Const", {}, {{"dtype", DType::kInt32}, {"value", Tensor::Vector<int32_t>({-1})}}},
          {"flat", "Reshape", {"y", "flat_shape"}, kFloat},
          {"twice", "AddV2", {"flat", "flat"}, kFloat}};
}

TEST(GenericPlans, TwoHundredRaggedBatchesMakeFivePlans) {
  Counting exact(Layer({-1, 3}), ExactOnly()), usual(Layer({-1, 3}));
  for (int64_t i = 0; i < 200; ++i) {
    ExpectEqual(exact, usual, Numbers(Shape::Of({i * 37 % 200, 3})), {"y:0", "shape:0", "twice:0"});
  }
  EXPECT_EQ(exact.plans, 200);
  EXPECT_EQ(usual.plans, 5);
}

TEST(GenericPlans, OptionSaysHowManyExactPlansComeFirst) {
  for (const int exact_plans : {0, 1, 7}) {
    SessionOptions options;
    options.exact_plans = exact_plans;
    Counting f(Layer({-1, 3}), options);
    for (int64_t n = 1; n <= 12; ++n) ASSERT_TRUE(f.Run(Numbers(Shape::Of({n, 3})), {"y:0"}).ok());
    // Without exact plans, the first generic plan knows one shape, and the second one leaves the batch open.
    EXPECT_EQ(f.plans, exact_plans == 0 ? 2 : exact_plans + 1);
  }
}

TEST(GenericPlans, ExactOnesStayAndFurtherExtentsWidenTheGenericOne) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape()), {"y", "Square", {"x"}, kFloat}};
  Counting exact(nodes, ExactOnly()), usual(nodes);
  const auto run = [&](const Shape& shape) { ExpectEqual(exact, usual, Numbers(shape), {"y:0"}); };
  for (int64_t n = 1; n <= 5; ++n) run(Shape::Of({n, 3, 2}));
  EXPECT_EQ(usual.plans, 5);
  run(Shape::Of({9, 3, 2}));
  run(Shape::Of({1, 3, 2}));
  EXPECT_EQ(usual.plans, 5) << "both are served";
  run(Shape::Of({9, 3, 5}));
  run(Shape::Of({9, 3, 2}));
  EXPECT_EQ(usual.plans, 6) << "[?,3,?]";
  run(Shape::Of({7}));
  run(Shape());
  run(Shape::Of({9, 8, 2}));
  EXPECT_EQ(usual.plans, 7) << "any rank";
}

TEST(GenericPlans, ShapesThatComeOftenGetAnExactPlanWhileThereIsRoom) {
  Counting f(Layer({-1, 3}));
  const auto run = [&](int64_t n) { ASSERT_TRUE(f.Run(Numbers(Shape::Of({n, 3})), {"y:0"}).ok()); };
  for (int64_t n = 1; n <= 5; ++n) run(n);
  EXPECT_EQ(f.plans, 5);
  for (int i = 0; i < 31; ++i) run(5);
  EXPECT_EQ(f.plans, 5);
  for (int i = 0; i < 10; ++i) run(5);
  EXPECT_EQ(f.plans, 6);
  for (int round = 0; round < 50; ++round) {
    for (int64_t n = 1; n <= 60; ++n) run(n);
  }
  EXPECT_EQ(f.plans, 17) << "16 exact ones and the generic one";
}

TEST(GenericPlans, LoopOverOpenShapesGivesTheSameBits) {
  std::vector<NodeLine> nodes = {Placeholder("x", {-1}),
                                 Const("n", Tensor::Scalar<int32_t>(5)),
                                 Const("one", Tensor::Scalar<int32_t>(1)),
                                 Const("i_0", Tensor::Scalar<int32_t>(0)),
                                 {"a_0", "Identity", {"x"}, kFloat},
                                 {"b_0", "Neg", {"x"}, kFloat}};
  Append(nodes, Loop("f", "n", "one", "i", {"a", "b"},
                     {{"square", "Square", {"a_b"}, kFloat},
                      {"a_n", "AddV2", {"square", "b_b"}, kFloat},
                      {"b_n", "Identity", {"a_b"}, kFloat}}));
  Counting exact(nodes, ExactOnly()), usual(nodes);
  for (int64_t n = 0; n < 200; n += 3) ExpectEqual(exact, usual, Numbers(Shape::Of({n})), {"a_x:0", "b_x:0", "i_x:0"});
  EXPECT_EQ(usual.plans, 5);
}

/// One step of descent on w for the squared error of x w, for any batch.
std::vector<NodeLine> Training() {
  return {Placeholder("x", {-1, 3}),
          {"w", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({3, 2})}}},
          Const("start", Numbers(Shape::Of({3, 2}))),
          {"init", "Assign", {"w", "start"}, kFloat},
          {"y", "MatMul", {"x", "w"}, kFloat},
          {"gradient", "MatMul", {"x", "y"}, {{"T", DType::kFloat}, {"transpose_a", true}}},
          Const("rate", Tensor::Scalar<float>(0.01f)),
          {"train", "ApplyGradientDescent", {"w", "rate", "gradient"}, kFloat},
          {"now", "Identity", {"w"}, kFloat}};
}

TEST(GenericPlans, TrainingWithThirtyBatchSizesEndsAtTheSameWeights) {
  SessionOptions one_by_one, exact_only = ExactOnly();
  one_by_one.fusion = exact_only.fusion = false;  // with known shapes, product and update would be fused
  Counting exact(Training(), exact_only), usual(Training(), one_by_one);
  ASSERT_TRUE(exact.Init("init").ok());
  ASSERT_TRUE(usual.Init("init").ok());
  const int before = usual.plans;
  for (int round = 0; round < 3; ++round) {
    for (int64_t n = 1; n <= 30; ++n) ExpectEqual(exact, usual, Numbers(Shape::Of({n, 3})), {"train:0"});
  }
  EXPECT_EQ(usual.plans - before, 5);
  ExpectEqual(exact, usual, Numbers(Shape::Of({1, 3})), {"now:0"});
}

TEST(GenericPlans, MemoryOfRaggedBatchesIsThatOfAFewPlans) {
  const auto held = [](Counting& f) {
    uint64_t bytes = 0;
    for (const MemoryReport::OnDevice& device : f.session->ReportMemory().devices) bytes += device.steps;
    return bytes;
  };
  std::vector<NodeLine> nodes = {Placeholder("x", {-1})};
  for (int i = 0; i < 20; ++i) {
    nodes.push_back({"y" + std::to_string(i), "Square", {i == 0 ? "x" : "y" + std::to_string(i - 1)}, kFloat});
  }
  Counting f(nodes);
  uint64_t first = 0;
  for (int64_t n = 1000; n < 1200; ++n) {
    ASSERT_TRUE(f.Run(Numbers(Shape::Of({n})), {"y19:0"}).ok());
    if (n == 1004) first = held(f);
  }
  EXPECT_LE(held(f), first) << "five plans were there by then";
}

TEST(GenericPlans, KernelsWorkInPlaceOnUnsharedInputs) {
  std::vector<NodeLine> nodes = {Placeholder("x", {-1}),           {"a", "Exp", {"x"}, kFloat},
                                 {"b", "Neg", {"a"}, kFloat},      {"c", "AddV2", {"b", "b"}, kFloat},
                                 {"d", "Mul", {"c", "a"}, kFloat}, {"e", "Sub", {"d", "x"}, kFloat},
                                 {"y", "Square", {"e"}, kFloat}};
  Counting exact(nodes, ExactOnly()), usual(nodes);
  for (int64_t n = 1; n < 40; ++n) {
    const Tensor x = Numbers(Shape::Of({n})), same = Numbers(Shape::Of({n}));
    ExpectEqual(exact, usual, x, {"y:0"});
    ExpectEqual(exact, usual, x, {"a:0", "b:0", "c:0", "d:0", "e:0", "y:0"});
    EXPECT_TRUE(x.SameBits(same)) << "a feed was written";
  }
}

TEST(GenericPlans, ErrorsNameTheNodeAsThoseOfExactPlans) {
  const std::vector<NodeLine> nodes = {Placeholder("x", {-1}),
                                       Const("five", Tensor::Vector<float>({1, 2, 3, 4, 5})),
                                       {"y", "AddV2", {"x", "five"}, kFloat}};
  Counting exact(nodes, ExactOnly()), usual(nodes);
  for (const int64_t n : {5, 1, 2, 3, 4, 6, 7, 5, 1}) {
    const auto wanted = exact.Run(Numbers(Shape::Of({n})), {"y:0"}), got = usual.Run(Numbers(Shape::Of({n})), {"y:0"});
    EXPECT_EQ(got.status().ToString(), wanted.status().ToString());
    EXPECT_EQ(got.ok(), n == 5 || n == 1);
  }
}

}  // namespace
}  // namespace weir::session
