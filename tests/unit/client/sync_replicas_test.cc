// Replicas in one session, running means, and accumulators. Values and names are TensorFlow 2.17.1's.
#include <atomic>
#include <barrier>
#include <thread>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Numbers = std::vector<double>;

TEST(AccumulatorTest, F199_gradients_are_averaged_summed_and_dropped_when_stale) {
  Fresh f;
  const ConditionalAccumulator mean(DType::kFloat, {.shape = PartialShape::Of({2}), .name = "Q"});
  const ConditionalAccumulator sum(DType::kFloat, {.reduction_type = "SUM"});
  const Operation add = mean.ApplyGrad({1.0f, 2.0f}), more = mean.ApplyGrad({3.0f, 4.0f});
  const Operation add_sum = sum.ApplyGrad({1.0f, 2.0f}), later = sum.ApplyGrad({5.0f, 5.0f}, 1);
  const Output two = mean.TakeGrad(2), count = mean.NumAccumulated(), one = sum.TakeGrad(1);
  const Operation forward = sum.SetGlobalStep(5);
  EXPECT_EQ(mean.name(), "Q");
  EXPECT_EQ(two.shape(), PartialShape::Of({2}));
  EXPECT_EQ(count.op().name(), "Q_NumAccumulated");
  EXPECT_EQ(two.op().type(), "ResourceAccumulatorTakeGradient");
  Session session(f.graph);
  for (const Operation& op : {add, more, add_sum, add_sum}) ASSERT_TRUE(Succeeds(session.Run(op)));
  EXPECT_EQ(Value(session, count), 2);
  EXPECT_EQ(Values(session, two), (Numbers{2, 3}));
  EXPECT_EQ(Values(session, one), (Numbers{2, 4}));
  ASSERT_TRUE(Succeeds(session.Run(add_sum)));  // local step 0 is behind step 1
  ASSERT_TRUE(Succeeds(session.Run(later)));
  EXPECT_EQ(Values(session, one), (Numbers{5, 5}));
  ASSERT_TRUE(Succeeds(session.Run(forward)));
  ASSERT_TRUE(Succeeds(session.Run(later)));
  session::RunOptions limited;
  limited.timeout_in_ms = 20;
  EXPECT_TRUE(Fails(session.Run(one, {}, limited, nullptr), Code::kDeadlineExceeded, ""));
}

TEST(AccumulatorTest, F199_rows_of_gradients) {
  Fresh f;
  const SparseConditionalAccumulator rows(DType::kFloat);
  const auto gradient = [](const std::vector<int32_t>& indices, const Literal& values) {
    Gradient made;
    made.indices = Constant(Tensor::Vector(indices));
    made.values = Constant(values);
    return made;
  };
  const Operation a = rows.ApplyIndexedSlicesGrad(gradient({0, 2}, {{3.0f}, {4.0f}}));
  const Operation b = rows.ApplyIndexedSlicesGrad(gradient({0, 1}, {{3.0f}, {4.0f}}));
  const Gradient taken = rows.TakeIndexedSlicesGrad(1);
  EXPECT_EQ(rows.name(), "sparse_conditional_accumulator");
  ASSERT_TRUE(Succeeds(f.graph.status()));
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(a)));
  ASSERT_TRUE(Succeeds(session.Run(b)));
  const Result<Fetched> fetched = session.Run({taken.indices, taken.values, taken.dense_shape});
  ASSERT_TRUE(Succeeds(fetched));
  std::ostringstream text;
  text << *fetched;
  EXPECT_EQ(text.str(), "[[0 1 2], [[3]\n [4]\n [4]], [-1 1]]");
}

TEST(AccumulatorTest, F199_bad_arguments) {
  Fresh f;
  const ConditionalAccumulator none(DType::kFloat, {.reduction_type = "MAX"});
  EXPECT_FALSE(none.TakeGrad(1).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Invalid reduction type MAX."));
  const ConditionalAccumulator pairs(DType::kFloat, {.shape = PartialShape::Of({2})});
  (void)pairs.ApplyGrad({1.0f, 2.0f, 3.0f});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Shapes (3,) and (2,) are not compatible"));
}

/// A model whose gradient of w is what x is fed.
struct Replica {
  Variable step = GetOrCreateGlobalStep();
  Variable w = GetVariable("w", {.shape = Shape(), .initializer = ConstantInitializer(1.0)});
  Output x = Placeholder(DType::kFloat, PartialShape(Shape()), "x");
  GradientDescentOptimizer descent{0.1};
};

TEST(SyncReplicas, F199_one_update_per_pair_of_gradients_by_their_mean) {
  Fresh f;
  Replica r;
  SyncReplicasOptimizer optimizer(r.descent, {.replicas_to_aggregate = 2});
  const Operation train = optimizer.Minimize(r.w * r.x, {.global_step = r.step});
  ASSERT_TRUE(Succeeds(f.graph.status()));
  const Result<QueueRunner> chief = optimizer.GetChiefQueueRunner();
  const Result<Operation> tokens = optimizer.GetInitTokensOp(0);
  ASSERT_TRUE(Succeeds(chief));
  ASSERT_TRUE(Succeeds(tokens));
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(optimizer.chief_init_op())));
  const Coordinator coordinator;
  (void)chief->CreateThreads(session, &coordinator);
  ASSERT_TRUE(Succeeds(session.Run(*tokens)));
  std::atomic<int> failed{0};
  std::barrier<> round(2);
  std::vector<std::thread> replicas;
  for (const float gradient : {1.0f, 3.0f}) {
    replicas.emplace_back([&, gradient] {
      for (int i = 0; i < 3; ++i) {
        failed += session.Run(train, {{r.x, gradient}}).ok() ? 0 : 1;
        round.arrive_and_wait();  // one that runs ahead may take the other's token
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Value(session, r.step), 3);
  EXPECT_NEAR(Value(session, r.w), 1 - 3 * 0.1 * 2, 1e-6);
  coordinator.RequestStop();
  EXPECT_TRUE(Succeeds(coordinator.Join()));
}

TEST(SyncReplicas, F199_names_are_those_of_TensorFlow) {
  Fresh f;
  Replica r;
  SyncReplicasOptimizer optimizer(r.descent, {.replicas_to_aggregate = 2});
  const Operation train = optimizer.Minimize(r.w * r.x, {.global_step = r.step});
  const Result<Operation> tokens = optimizer.GetInitTokensOp();
  ASSERT_TRUE(Succeeds(tokens));
  EXPECT_EQ(train.name(), "Assign_1");
  EXPECT_EQ(tokens->name(), "sync_token_q_EnqueueMany_1");
  EXPECT_EQ(optimizer.chief_init_op().name(), "sync_replicas/group_deps");
  EXPECT_EQ(optimizer.local_step_init_op().name(), "Assign");
  const Result<QueueRunner> chief = optimizer.GetChiefQueueRunner();
  ASSERT_TRUE(Succeeds(chief));
  EXPECT_EQ(chief->name(), "sync_token_q");
  EXPECT_EQ(chief->enqueue_ops()[0].name(), "sync_token_q_EnqueueMany");
  EXPECT_EQ(chief->close_op().name(), "sync_token_q_Close");
  EXPECT_EQ(chief->cancel_op().name(), "sync_token_q_Close_1");
  ASSERT_EQ(LocalVariables().size(), 1u);
  EXPECT_EQ(LocalVariables()[0].name(), "sync_rep_local_step:0");
  for (const char* name :
       {"sync_replicas/conditional_accumulator", "sync_replicas/ResourceAccumulatorApplyGradient",
        "sync_replicas/ResourceAccumulatorTakeGradient", "sync_replicas/ResourceAccumulatorTakeGradient/num_required",
        "sync_replicas/SetGlobalStep", "GradientDescent/update_w/ApplyGradientDescent", "sync_token_q",
        "sync_token_q_Dequeue", "Fill/dims", "Fill_1"}) {
    EXPECT_TRUE(f.graph.OperationByName(name).ok()) << name;
  }
}

TEST(SyncReplicas, F199_F200_what_must_come_first_and_what_must_be_there) {
  Fresh f;
  Replica r;
  SyncReplicasOptimizer optimizer(r.descent, {.replicas_to_aggregate = 5, .total_num_replicas = 2});
  EXPECT_TRUE(Fails(optimizer.GetInitTokensOp(), Code::kFailedPrecondition,
                    "get_init_tokens_op() should be called after apply_gradients()."));
  EXPECT_TRUE(
      Fails(optimizer.GetChiefQueueRunner(), Code::kFailedPrecondition, "Should be called after apply_gradients()."));
  EXPECT_FALSE(optimizer.Minimize(r.w * r.x).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Global step is required to check staleness"));
  EXPECT_TRUE(Fails(optimizer.ApplyGradients({}), Code::kInvalidArgument, "Must supply at least one variable"));
  EXPECT_TRUE(Fails(optimizer.MakeSessionRunHook(true)->Begin(f.graph), Code::kFailedPrecondition,
                    "SyncReplicasOptimizer.apply_gradient should be called before using the hook."));
  ASSERT_TRUE(optimizer.Minimize(r.w * r.x, {.global_step = r.step}).exists());
  EXPECT_TRUE(Fails(optimizer.GetInitTokensOp(1), Code::kInvalidArgument,
                    "Too few tokens to finish the first step: 1 (given) vs 3 (needed)"));
}

TEST(SyncReplicas, F199_gradients_that_are_rows) {
  Fresh f;
  const Variable step = GetOrCreateGlobalStep();
  const Variable w = GetVariable("w", {.shape = Shape::Of({3, 2}), .initializer = OnesInitializer()});
  const Output x = Placeholder(DType::kInt32, PartialShape::Of({-1}), "x");
  GradientDescentOptimizer descent(0.5);
  SyncReplicasOptimizer optimizer(descent, {.replicas_to_aggregate = 1});
  const Operation train = optimizer.Minimize(ReduceSum(EmbeddingLookup(w, x)), {.global_step = step});
  ASSERT_TRUE(Succeeds(f.graph.status()));
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(optimizer.chief_init_op())));
  const Coordinator coordinator;
  (void)optimizer.GetChiefQueueRunner()->CreateThreads(session, &coordinator);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Succeeds(session.Run(train, {{x, Tensor::Vector<int32_t>({0, 2})}})));
  }
  EXPECT_EQ(Values(session, w), (Numbers{0, 0, 1, 1, 0, 0}));
  coordinator.RequestStop();
  EXPECT_TRUE(Succeeds(coordinator.Join()));
}

TEST(MovingAverages, F227_follow_their_variables) {
  Fresh f;
  const Variable v = GetVariable("v", {.shape = Shape(), .initializer = ConstantInitializer(1.0)});
  const Variable n = GetVariable("n", {.shape = Shape(), .initializer = ConstantInitializer(3.0), .trainable = false});
  ExponentialMovingAverage averages(0.9, {.num_updates = Operand(n)});
  const Operation apply = averages.Apply({v});
  EXPECT_EQ(apply.name(), "ExponentialMovingAverage");
  EXPECT_EQ(averages.Average(v).name(), "v/ExponentialMovingAverage:0");
  const Output change = v.Assign(2.0);
  (void)averages.Apply({v});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Moving average already computed for: v:0"));
  const std::map<std::string, Variable> restored = averages.VariablesToRestore();
  ASSERT_EQ(restored.size(), 2u);
  EXPECT_EQ(restored.at("v/ExponentialMovingAverage").name(), "v:0");
  EXPECT_TRUE(restored.contains("n"));
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(change)));
  ASSERT_TRUE(Succeeds(session.Run(apply)));
  EXPECT_NEAR(Value(session, averages.Average(v)), 1.6923077, 1e-6);
  ASSERT_TRUE(Succeeds(session.Run(apply)));
  EXPECT_NEAR(Value(session, averages.Average(v)), 1.9053254, 1e-6);
}

TEST(MovingAverages, F227_means_of_values) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}), "x");
  const metrics::Metric mean = metrics::Mean(x), weighted = metrics::Mean(x, Operand({1.0, 0.0, 3.0}));
  EXPECT_EQ(mean.value.name(), "mean/value:0");
  EXPECT_EQ(mean.update_op.name(), "mean/update_op:0");
  ASSERT_EQ(LocalVariables().size(), 4u);
  EXPECT_EQ(LocalVariables()[0].name(), "mean/total:0");
  EXPECT_EQ(LocalVariables()[1].name(), "mean/count:0");
  const Operation reset = LocalVariablesInitializer();
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(reset)));
  EXPECT_EQ(Value(session, mean.value), 0);
  const Feeds feeds = {{x, Tensor::Vector<float>({1, 2, 3})}};
  EXPECT_EQ(Value(session, mean.update_op, feeds), 2);
  EXPECT_EQ(Value(session, weighted.update_op, feeds), 2.5);
  EXPECT_EQ(Value(session, mean.update_op, {{x, Tensor::Vector<float>({6})}}), 3);
  EXPECT_EQ(Value(session, mean.value), 3);
  ASSERT_TRUE(Succeeds(session.Run(reset)));
  EXPECT_EQ(Value(session, mean.value), 0);
}

/// Values of Keras 3.
TEST(MovingAverages, F227_a_mean_as_an_object) {
  Fresh f;
  const metrics::RunningMean mean;
  EXPECT_EQ(mean.total().name(), "mean/total:0");
  EXPECT_EQ(mean.count().name(), "mean/count:0");
  const Operation plain = mean.UpdateState({1.0f, 2.0f, 3.0f}), weighted = mean.UpdateState({6.0f}, Operand({3.0f}));
  const Operation by_rows = mean.UpdateState({{1.0f, 2.0f}, {3.0f, 4.0f}}, Operand({1.0f, 0.0f}));
  const Output result = mean.Result();
  const Operation reset = mean.ResetStates();
  EXPECT_EQ(metrics::RunningMean().total().name(), "mean_1/total:0");
  const Operation init = LocalVariablesInitializer();
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(init)));
  EXPECT_EQ(Value(session, result), 0);
  ASSERT_TRUE(Succeeds(session.Run(plain)));
  EXPECT_EQ(Value(session, result), 2);
  ASSERT_TRUE(Succeeds(session.Run(weighted)));
  EXPECT_EQ(Value(session, result), 4);
  ASSERT_TRUE(Succeeds(session.Run(by_rows)));
  EXPECT_NEAR(Value(session, result), 3.642857, 1e-6);
  ASSERT_TRUE(Succeeds(session.Run(reset)));
  EXPECT_EQ(Value(session, result), 0);
  (void)mean.UpdateState(Placeholder(DType::kFloat, PartialShape()), Operand({1.0f}));
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "must have known ranks"));
}

}  // namespace
}  // namespace weir::test
