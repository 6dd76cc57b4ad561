// Training of models with several towers. Numbers are rows of the feature list.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// The mean of each variable's gradients over the towers, as in the guide behind the feature rows.
std::vector<GradientAndVariable> AverageGradients(const std::vector<std::vector<GradientAndVariable>>& towers) {
  std::vector<GradientAndVariable> mean;
  for (size_t v = 0; v < towers[0].size(); ++v) {
    std::vector<Operand> each;
    for (const std::vector<GradientAndVariable>& tower : towers)
      each.emplace_back(ExpandDims(tower[v].first.values, 0));
    mean.push_back(towers[0][v]);
    mean.back().first.values = ReduceMean(Concat(each, 0), 0);
  }
  return mean;
}

/// Squares of w . x + b - y, averaged.
Output LossOf(const Output& x, const Output& y) {
  const Variable w = GetVariable("w", {.shape = Shape::Of({2, 1}), .initializer = OnesInitializer()});
  const Variable b = GetVariable("b", {.shape = Shape::Of({1}), .initializer = ZerosInitializer()});
  return ReduceMean(Square(MatMul(x, w) + b - y));
}

/// w and b after ten steps, with two towers that take half of the batch each or one tower that takes all of it; the
/// loss of each step.
struct TowersTrained {
  std::vector<double> values, losses;
};
TowersTrained Train(int towers) {
  Fresh f;
  const std::vector<float> xs = {1, 2, 3, -1, 0.5f, 4, -2, 1}, ys = {1, 0, 2, -1};
  std::vector<std::vector<GradientAndVariable>> all;
  GradientDescentOptimizer optimizer(0.05);
  Feeds feeds;
  const size_t rows = 4 / static_cast<size_t>(towers);
  for (int t = 0; t < towers; ++t) {
    const NameScope scope("tower_" + std::to_string(t));
    const VariableScope shared("model", {.reuse = Reuse::kAuto});
    const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 2})),
                 y = Placeholder(DType::kFloat, PartialShape::Of({-1, 1}));
    const Output loss = LossOf(x, y);
    f.graph.AddToCollection("loss", loss);
    Result<std::vector<GradientAndVariable>> pairs = optimizer.ComputeGradients(loss);
    EXPECT_TRUE(Succeeds(pairs));
    all.push_back(*pairs);
    const auto cut = [&](const std::vector<float>& from, size_t columns) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(t) * rows * columns);
      return Tensor::Of<float>(Shape::Of({static_cast<int64_t>(rows), static_cast<int64_t>(columns)}),
                               {begin, begin + static_cast<std::ptrdiff_t>(rows * columns)});
    };
    feeds.emplace_back(x, cut(xs, 2));
    feeds.emplace_back(y, cut(ys, 1));
  }
  const Result<Operation> train = optimizer.ApplyGradients(AverageGradients(all));
  EXPECT_TRUE(Succeeds(train));
  std::vector<Operand> losses;
  for (const CollectionEntry& entry : f.graph.GetCollection("loss")) losses.emplace_back(entry.output);
  const Output mean = ReduceMean(Stack(losses));
  EXPECT_EQ(GlobalVariables().size(), 2u);
  Session session(f.graph);
  Initialize(session);
  TowersTrained trained;
  for (int step = 0; step < 10; ++step) {
    trained.losses.push_back(Value(session, mean, feeds));
    EXPECT_TRUE(Succeeds(session.Run(*train, feeds)));
  }
  for (const Variable& v : GlobalVariables()) {
    for (const double value : Values(session, v)) trained.values.push_back(value);
  }
  return trained;
}

TEST(Towers, F194_F196_F197_two_of_them_train_as_one_with_twice_the_batch) {
  const TowersTrained one = Train(1), two = Train(2);
  ASSERT_EQ(one.values.size(), 3u);
  ASSERT_EQ(two.values.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(one.values[i], two.values[i], 1e-6);
  for (size_t step = 1; step < 10; ++step) EXPECT_LT(two.losses[step], two.losses[step - 1]) << step;
}

TEST(Towers, F198_an_epoch_takes_the_losses_of_its_scope) {
  Fresh f;
  for (const char* name : {"train", "test", "test_2"}) {
    const NameScope scope(name);
    f.graph.AddToCollection("loss", Constant(1.0f, DType::kInvalid, "loss"));
  }
  EXPECT_EQ(f.graph.GetCollection("loss").size(), 3u);
  EXPECT_EQ(f.graph.GetCollection("loss", "test").size(), 2u) << "test_2 begins like it";
  const std::vector<CollectionEntry> own = f.graph.GetCollection("loss", "test/");
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].name(), "test/loss:0");
}

TEST(Towers, F208_all_trainable_variables_with_a_gradient_are_updated) {
  Fresh f;
  const Variable a(2.0f, {.name = "a"}), b(3.0f, {.name = "b"}), apart(4.0f, {.name = "apart"});
  const Variable frozen(5.0f, {.name = "frozen", .trainable = false});
  const Operation train = GradientDescentOptimizer(0.1).Minimize(a * b * frozen);
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_NEAR(Value(session, a), 0.5, 1e-6);  // 2 - 0.1 * 3 * 5
  EXPECT_NEAR(Value(session, b), 2, 1e-6);    // 3 - 0.1 * 2 * 5
  EXPECT_EQ(Value(session, apart), 4);
  EXPECT_EQ(Value(session, frozen), 5);
}

TEST(Towers, F213_batches_of_a_generator_are_fed) {
  struct Batches {
    int made = 0;
    Tensor Next() {
      ++made;
      return Tensor::Vector<float>(std::vector<float>(static_cast<size_t>(made), static_cast<float>(made)));
    }
  };
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}), "x");
  const Variable total(0.0f, {.name = "total", .trainable = false});
  const Output add = total.AssignAdd(ReduceSum(x));
  Session session(f.graph);
  Initialize(session);
  Batches batches;
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(Succeeds(session.Run(add, {{x, batches.Next()}})));
  EXPECT_EQ(Value(session, total), 1 + 4 + 9 + 16 + 25) << "of any size";
}

}  // namespace
}  // namespace weir::test
