// Embeddings and sampled losses. Values are TensorFlow's.
#include "core/client/ops/embedding_ops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/client/fresh.h"

namespace weir {
namespace {

using namespace test;

std::vector<double> Evaluated(const Output& value) {
  EXPECT_TRUE(value.exists()) << Graph::Default().status();
  Session session(*value.graph());
  return Values(session, value);
}

TEST(Embeddings, F147_rows_of_one_table) {
  Fresh f;
  const Output table = Constant({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  const Output rows = EmbeddingLookup(table, {{1, 2}, {0, 1}});
  EXPECT_EQ(rows.op().name(), "embedding_lookup/Identity");
  EXPECT_EQ(rows.shape().ToTupleString(), "(2, 2, 3)");
  EXPECT_EQ(Evaluated(rows), (std::vector<double>{4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6}));
}

TEST(Embeddings, F147_rows_of_shards) {
  Fresh f;
  const std::vector<Operand> shards = {Constant({{0, 0}, {2, 2}, {4, 4}}), Constant({{1, 1}, {3, 3}})};
  EXPECT_EQ(Evaluated(EmbeddingLookup(shards, {3, 0, 4})), (std::vector<double>{3, 3, 0, 0, 4, 4}));
  const std::vector<Operand> blocks = {Constant({{0, 0}, {1, 1}, {2, 2}}), Constant({{3, 3}, {4, 4}})};
  EmbeddingOptions div;
  div.partition_strategy = PartitionStrategy::kDiv;
  EXPECT_EQ(Evaluated(EmbeddingLookup(blocks, {{3, 0}, {4, 2}}, div)), (std::vector<double>{3, 3, 0, 0, 4, 4, 2, 2}));
}

TEST(Embeddings, F147_rows_of_unknown_tables_are_found_while_running) {
  Fresh f;
  const Output first = Placeholder(DType::kFloat, {-1, 1}, "first"),
               second = Placeholder(DType::kFloat, {-1, 1}, "second");
  const Output ids = Placeholder(DType::kInt64, PartialShape(), "ids");
  EmbeddingOptions div;
  div.partition_strategy = PartitionStrategy::kDiv;
  const Output rows = EmbeddingLookup({first, second}, ids, div);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  EXPECT_EQ(Values(session, rows, {{first, {{0.0}, {1.0}, {2.0}}}, {second, {{3.0}, {4.0}}}, {ids, {4, 2, 3}}}),
            (std::vector<double>{4, 2, 3}));
}

TEST(Embeddings, F370_parts_of_a_variable_are_looked_up_and_trained) {
  Fresh f;
  const Variable table = GetVariable(
      "table", {.shape = Shape::Of({5, 2}), .initializer = OnesInitializer(), .partitioner = FixedSizePartitioner(2)});
  EmbeddingOptions div;
  div.partition_strategy = PartitionStrategy::kDiv;
  const Output rows = EmbeddingLookup(table, {4, 0, 4}, div);
  const Operation train = GradientDescentOptimizer(0.5).Minimize(ReduceSum(rows), {.variables = table.parts()});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, rows), std::vector<double>(6, 1));
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_EQ(Values(session, table.value()), (std::vector<double>{0.5, 0.5, 1, 1, 1, 1, 1, 1, 0, 0}));
}

TEST(Embeddings, F361_gradients_are_rows) {
  Fresh f;
  const Variable table({{1.0f, 2.0f}, {3.0f, 4.0f}}, {.name = "table"});
  const Result<std::vector<Gradient>> gradients = Gradients({ReduceSum(EmbeddingLookup(table, {1, 1}))}, {table});
  ASSERT_TRUE(Succeeds(gradients));
  EXPECT_TRUE((*gradients)[0].sparse());
}

TEST(Embeddings, F147_long_rows_are_scaled_to_the_greatest_norm) {
  Fresh f;
  EmbeddingOptions options;
  options.max_norm = 1.0;
  const std::vector<double> rows = Evaluated(EmbeddingLookup(Constant({{3.0, 4.0}, {0.3, 0.4}}), {0, 1}, options));
  const std::vector<double> wanted = {0.6, 0.8, 0.3, 0.4};
  ASSERT_EQ(rows.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(rows[i], wanted[i], 1e-6);
}

TEST(SampledLosses, F170_nce_loss_of_given_samples) {
  Fresh f;
  const Output weights = Constant({{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.6}, {0.7, 0.8}});
  const Output biases = Constant({0.0, 0.1, 0.2, 0.3});
  SampledLossOptions options;
  options.sampled_values =
      SampledCandidates{Constant(Tensor::Vector<int64_t>({3, 0})), Constant({{0.5}, {0.25}}), Constant({0.5, 0.75})};
  const Output loss = NceLoss({weights}, biases, Constant(Tensor::Vector<int64_t>({1, 2}))[{kEllipsis, kNewAxis}],
                              Constant({{1.0, 2.0}, {-1.0, 1.0}}), 2, 4, options);
  EXPECT_EQ(loss.shape().rank(), 1);
  const std::vector<double> values = Evaluated(loss), wanted = {4.632509708404541, 2.457772731781006};
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 1e-5);
  const Output softmax =
      SampledSoftmaxLoss({weights}, biases, Constant(Tensor::Vector<int64_t>({1, 2}))[{kEllipsis, kNewAxis}],
                         Constant({{1.0, 2.0}, {-1.0, 1.0}}), 2, 4, options);
  const std::vector<double> entropy = Evaluated(softmax), wanted_entropy = {1.683850646018982, 0.6018516421318054};
  ASSERT_EQ(entropy.size(), wanted_entropy.size());
  for (size_t i = 0; i < wanted_entropy.size(); ++i) EXPECT_NEAR(entropy[i], wanted_entropy[i], 1e-5);
}

TEST(SampledLosses, F170_accidental_hits_do_not_count) {
  Fresh f;
  const Output weights = Constant({{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.6}, {0.7, 0.8}});
  const Output biases = Constant({0.0, 0.1, 0.2, 0.3});
  SampledLossOptions options;
  options.remove_accidental_hits = true;
  options.sampled_values =
      SampledCandidates{Constant(Tensor::Vector<int64_t>({1, 0})), Constant({{0.5}, {0.25}}), Constant({0.5, 0.75})};
  const Output loss =
      SampledSoftmaxLoss({weights}, biases, Constant(Tensor::Vector<int64_t>({1, 2}))[{kEllipsis, kNewAxis}],
                         Constant({{1.0, 2.0}, {-1.0, 1.0}}), 2, 4, options);
  const std::vector<double> values = Evaluated(loss), wanted = {0.2859732508659363, 0.5454177260398865};
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 1e-5);
}

TEST(SampledLosses, F170_skip_grams_learn) {
  Fresh f;
  SetRandomSeed(1, f.graph);
  const Variable embeddings(RandomUniform({8, 4}, -1, 1), {.name = "embeddings"});
  const Variable weights(TruncatedNormal({8, 4}, 0, 0.5), {.name = "weights"}),
      biases(Zeros(Shape::Of({8})), {.name = "biases"});
  const Output words = Constant(Tensor::Vector<int64_t>({0, 1, 2, 3, 4, 5, 6, 7}));
  const Output labels = Constant(Tensor::Vector<int64_t>({1, 0, 3, 2, 5, 4, 7, 6}))[{kEllipsis, kNewAxis}];
  const Output loss = ReduceMean(NceLoss({weights}, biases, labels, EmbeddingLookup(embeddings, words), 4, 8));
  const Operation train = GradientDescentOptimizer(0.5).Minimize(loss);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  const std::vector<std::string> names = NodeNames(f.graph);
  EXPECT_NE(std::ranges::find(names, "nce_loss/LogUniformCandidateSampler"), names.end());
  Session session(f.graph);
  Initialize(session);
  const auto mean = [&] {
    double sum = 0;
    for (int i = 0; i < 20; ++i) sum += Value(session, loss);
    return sum / 20;
  };
  const double before = mean();
  for (int step = 0; step < 200; ++step) ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_LT(mean(), 0.7 * before);
}

TEST(SequenceLoss, F171_by_example) {
  Fresh f;
  const std::vector<Operand> logits = {Constant({{1.0, 2.0, 3.0}, {3.0, 2.0, 1.0}}),
                                       Constant({{1.0, 1.0, 1.0}, {0.0, 5.0, 0.0}})};
  const std::vector<Operand> targets = {Constant({2, 0}), Constant({1, 1})};
  const std::vector<Operand> weights = {Constant({1.0, 1.0}), Constant({1.0, 0.0})};
  const std::vector<double> mean = Evaluated(SequenceLossByExample(logits, targets, weights));
  EXPECT_NEAR(mean[0], 0.7531091, 1e-6);
  EXPECT_NEAR(mean[1], 0.4076059, 1e-6);
  SequenceLossOptions sum;
  sum.average_across_timesteps = false;
  const std::vector<double> sums = Evaluated(SequenceLossByExample(logits, targets, weights, sum));
  EXPECT_NEAR(sums[0], 1.5062182, 1e-6);
  EXPECT_NEAR(sums[1], 0.4076059, 1e-6);
  const std::vector<Operand> none = {Constant({0.0, 0.0}), Constant({0.0, 0.0})};
  EXPECT_EQ(Evaluated(SequenceLossByExample(logits, targets, none)), (std::vector<double>{0, 0}));
  SequenceLossOptions own;
  own.softmax_loss_function = [](const Output& labels, const Output& scores) {
    return SparseSoftmaxCrossEntropyWithLogits(labels, scores) * 2.0;
  };
  EXPECT_NEAR(Evaluated(SequenceLossByExample(logits, targets, weights, own))[1], 2 * 0.4076059, 1e-6);
  EXPECT_FALSE(SequenceLossByExample(logits, targets, {}).exists());
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument,
                    "Lengths of logits, weights, and targets must be the same 2, 0, 2."));
}

}  // namespace
}  // namespace weir
