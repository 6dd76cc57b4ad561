// Gradients and optimisers.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Grads = std::vector<Gradient>;

TEST(Autodiff, F180_gradients_are_nodes_made_by_the_chain_rule) {
  Fresh f;
  const Variable w(0.5f, {.name = "w"});
  const Output z = Tanh(Square(Exp(w)));
  const Result<Grads> first = Gradients({z}, {w.value()});
  ASSERT_TRUE(Succeeds(first));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("gradients/Tanh_grad/TanhGrad")));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("gradients/Shape")));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("gradients/grad_ys_0")));
  const Result<Grads> second = Gradients({z}, {w.value()});
  ASSERT_TRUE(Succeeds(second));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("gradients_1/Tanh_grad/TanhGrad")));
  Session session(f.graph);
  Initialize(session);
  const double e = std::exp(0.5), t = std::tanh(e * e);
  EXPECT_NEAR(Value(session, (*first)[0].values), (1 - t * t) * 2 * e * e, 1e-5);
}

TEST(Autodiff, F181_gradient_of_an_integer_product) {
  Fresh f;
  const Output a = Constant({{1, 2}}), b = Constant({{2}, {1}});
  const Result<Grads> grads = Gradients({MatMul(a, b)}, {a});
  ASSERT_TRUE(Succeeds(grads));
  ASSERT_TRUE((*grads)[0].exists());
  EXPECT_EQ((*grads)[0].values.dtype(), DType::kInt32);
  Session session(f.graph);
  EXPECT_EQ(Values(session, (*grads)[0].values), (std::vector<double>{2, 1}));
}

TEST(Autodiff, F182_no_influence_no_gradient) {
  Fresh f;
  const Variable w1(1.0f), w2(2.0f);
  const Output y = Square(w1);
  const Result<Grads> grads = Gradients({y}, {w1.value(), w2.value()});
  ASSERT_TRUE(Succeeds(grads));
  EXPECT_TRUE((*grads)[0].exists());
  EXPECT_FALSE((*grads)[1].exists());
  Session session(f.graph);
  Initialize(session);
  EXPECT_TRUE(Fails(session.Run((*grads)[1].values), Code::kInvalidArgument, "Fetch argument None has invalid type"));
  GradientsOptions zero;
  zero.unconnected = Unconnected::kZero;
  const Result<Grads> zeros = Gradients({y}, {w2.value()}, zero);
  ASSERT_TRUE(Succeeds(zeros));
  EXPECT_EQ(Value(session, (*zeros)[0].values), 0);
}

TEST(Autodiff, F326_none_says_where_the_path_breaks) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {3}, "x"), other = Placeholder(DType::kFloat, {3}, "other");
  const Output best = Cast(ArgMax(x * 2.0f, 0), DType::kFloat);
  const auto why = [&](const Output& y, const GradientsOptions& options = {}) {
    const Result<Grads> grads = Gradients({y}, {x}, options);
    EXPECT_TRUE(Succeeds(grads));
    EXPECT_FALSE((*grads)[0].exists());
    return (*grads)[0].why_none;
  };
  EXPECT_EQ(why(ReduceSum(other)), "'Sum:0' does not depend on 'x:0'");
  EXPECT_EQ(why(best), "at 'Cast' (Cast): it gives none for 'ArgMax:0'");
  EXPECT_EQ(why(ReduceSum(SelectV2(Greater(x, 0.0f), other, other))),
            "at 'SelectV2' (SelectV2): its input 'Greater:0' is boolean");
  const Output square = Square(x);
  EXPECT_EQ(why(ReduceSum(square), {.stop_gradients = {square}}),
            "at 'Sum_2' (Sum): its input 'Square:0' is among stop_gradients");
  const Result<Grads> zeros = Gradients({best}, {x}, {.unconnected = Unconnected::kZero});
  ASSERT_TRUE(Succeeds(zeros));
  Session session(f.graph);
  EXPECT_EQ(Values(session, (*zeros)[0].values, {{x, {1.0f, 2.0f, 3.0f}}}), (std::vector<double>{0, 0, 0}));
}

TEST(Autodiff, F326_no_xs_are_an_error) {
  Fresh f;
  EXPECT_TRUE(Fails(Gradients({Square(2.0f)}, {}), Code::kInvalidArgument, "Gradients by nothing: xs are empty"));
}

TEST(Autodiff, F327_ops_that_should_have_a_gradient_and_have_none) {
  Fresh f;
  const Output x = Real("x");
  OperationSpec spec;
  spec.op = "SymbolicGradient";
  spec.inputs = {x, x};
  spec.name = "NAME";
  spec.attrs = {{"Tout", std::vector<DType>{DType::kFloat}}, {"f", op::FuncRef{"f", nullptr}}};
  const Output y = f.graph.Add(spec).output(0);
  EXPECT_TRUE(Fails(Gradients({y}, {x}), Code::kNotFound,
                    "No gradient defined for operation 'NAME' (op type: SymbolicGradient)"));
}

TEST(Autodiff, F180_F182_by_a_resource) {
  Fresh f;
  const Variable r({1.0f, 2.0f}, {.name = "r", .use_resource = true});
  const Output y = ReduceSum(r * r) + ReduceSum(3.0f * r);
  const Result<Grads> grads = Gradients({y}, {r.handle()});
  ASSERT_TRUE(Succeeds(grads));
  const Output sum = (*grads)[0].values;
  EXPECT_EQ(sum.name(), "gradients/AddN:0");
  EXPECT_EQ(sum.op().inputs().size(), 3u);  // one for each read
  EXPECT_EQ(sum.shape(), PartialShape::Of({2}));
  GradientsOptions zero;
  zero.unconnected = Unconnected::kZero;
  const Result<Grads> zeros = Gradients({Constant(1.0f) * 2.0f}, {r.handle()}, zero);
  ASSERT_TRUE(Succeeds(zeros));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, sum), (std::vector<double>{5, 7}));
  EXPECT_EQ(Values(session, (*zeros)[0].values), (std::vector<double>{0, 0}));
}

TEST(Autodiff, F183_stop_gradient) {
  Fresh f;
  const Variable w1(2.0f), w2(2.0f);
  const Output a = w1 * 3.0f;
  const Output b = Multiply(StopGradient(a), w2);
  const Result<Grads> grads = Gradients({b}, {w1.value(), w2.value()});
  ASSERT_TRUE(Succeeds(grads));
  EXPECT_FALSE((*grads)[0].exists());
  ASSERT_TRUE((*grads)[1].exists());
  const std::string printed = (*grads)[1].values.DebugString();
  // A name of TensorFlow 0.x; 2.17 omits a Reshape that changes nothing.
  const std::string scope = "<tf.Tensor 'gradients/" + std::string(b.op().name()) + "_grad/";
  EXPECT_TRUE(printed == scope + "Reshape_1:0' shape=() dtype=float32>" ||
              printed == scope + "Mul_1:0' shape=() dtype=float32>")
      << printed;
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, (*grads)[1].values), 6);
}

TEST(Autodiff, F184_stopped_on_one_path_of_two) {
  Fresh f;
  const Variable w1(2.0f), w2(2.0f);
  const Output a = w1 * 3.0f, b = w2 * 3.0f;
  const Output c = StopGradient(a + b), d = a + b, e = c + d;
  const Result<Grads> grads = Gradients({e}, {a, b});
  ASSERT_TRUE(Succeeds(grads));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, (*grads)[0].values), 1);
  EXPECT_EQ(Value(session, (*grads)[1].values), 1);
}

TEST(Autodiff, F185_apply_gradients_skips_what_has_none) {
  Fresh f;
  const Variable w1(2.0f), w2(2.0f);
  const Output loss = StopGradient(w1 * 3.0f) * w2;
  GradientDescentOptimizer optimizer(0.1);
  const Result<std::vector<GradientAndVariable>> pairs = optimizer.ComputeGradients(loss, {w1, w2});
  ASSERT_TRUE(Succeeds(pairs));
  const Result<Operation> train = optimizer.ApplyGradients(*pairs);
  ASSERT_TRUE(Succeeds(train));
  EXPECT_EQ(train->ToString(), "<tf.Operation 'GradientDescent' type=NoOp>");
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("GradientDescent/update_Variable_1/ApplyGradientDescent")));
  EXPECT_FALSE(f.graph.OperationByName("GradientDescent/update_Variable/ApplyGradientDescent").ok());
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(*train)));
  EXPECT_EQ(Value(session, w1), 2);
  EXPECT_NEAR(Value(session, w2), 1.4, 1e-6);
  EXPECT_TRUE(Fails(optimizer.ApplyGradients({{Gradient(), w1}}), Code::kInvalidArgument,
                    "No gradients provided for any variable: [\"<tf.Variable "));
  EXPECT_TRUE(Fails(optimizer.ApplyGradients({}), Code::kInvalidArgument, "No variables provided."));
  EXPECT_FALSE(f.graph.TakeStatus().ok());
  EXPECT_FALSE(optimizer.Minimize(Constant(1.0f, DType::kInvalid, "loss"), {.variables = {w1}}).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                    "between variables [\"<tf.Variable 'Variable:0' shape=() dtype=float32_ref>\"] and loss "
                    "Tensor(\"loss:0\", shape=(), dtype=float32)."));
}

TEST(Autodiff, F186_a_missing_gradient_fails_where_it_is_used) {
  Fresh f;
  const Variable w1(2.0f), w2(2.0f);
  const Result<Grads> grads = Gradients({Square(w1)}, {w1.value(), w2.value()});
  ASSERT_TRUE(Succeeds(grads));
  EXPECT_EQ((*grads)[1].values.name(), "");
  const int line = __LINE__ + 1;
  EXPECT_FALSE(summary::Histogram("g", (*grads)[1].values).exists());
  const Status status = f.graph.TakeStatus();
  EXPECT_TRUE(Fails(status, Code::kInvalidArgument, "None values not supported."));
  EXPECT_TRUE(Fails(status, Code::kInvalidArgument, "autodiff_test.cc:" + std::to_string(line)));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, (*grads)[0].values), 4);
}

TEST(Autodiff, F187_compute_gradients_keeps_the_order_of_variables) {
  Fresh f;
  const Variable a(1.0f, {.name = "a"}), b(2.0f, {.name = "b"}), unused(3.0f, {.name = "unused"});
  GradientDescentOptimizer optimizer(1.0);
  Result<std::vector<GradientAndVariable>> pairs = optimizer.ComputeGradients(a * b);
  ASSERT_TRUE(Succeeds(pairs));
  ASSERT_EQ(pairs->size(), 3u);
  EXPECT_EQ((*pairs)[0].second.name(), "a:0");
  EXPECT_EQ((*pairs)[1].second.name(), "b:0");
  EXPECT_EQ((*pairs)[2].second.name(), "unused:0");
  EXPECT_FALSE((*pairs)[2].first.exists());
  for (auto& [gradient, variable] : *pairs) {
    if (gradient.exists()) gradient.values = gradient.values * 0.5f;
  }
  const Result<Operation> train = optimizer.ApplyGradients(*pairs);
  ASSERT_TRUE(Succeeds(train));
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(*train)));
  EXPECT_EQ(Value(session, a), 0);    // 1 - 2 / 2
  EXPECT_EQ(Value(session, b), 1.5);  // 2 - 1 / 2
  EXPECT_FALSE(optimizer.ComputeGradients(Constant(3)).ok());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Invalid type"));
}

TEST(Autodiff, F188_minimize_is_compute_and_apply) {
  Fresh f;
  const Variable a(2.0f), b(2.0f);
  const Operation one = GradientDescentOptimizer(0.1).Minimize(Square(a), {.variables = {a}});
  GradientDescentOptimizer optimizer(0.1);
  const Result<std::vector<GradientAndVariable>> pairs = optimizer.ComputeGradients(Square(b), {b});
  ASSERT_TRUE(Succeeds(pairs));
  const Result<Operation> two = optimizer.ApplyGradients(*pairs);
  ASSERT_TRUE(Succeeds(two));
  Session session(f.graph);
  Initialize(session);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Succeeds(session.Run(Fetch::List{one, *two})));
    EXPECT_EQ(Value(session, a), Value(session, b));
  }
}

/// Two steps on w = 2, loss w * w: w after each.
std::vector<double> TwoSteps(Session& session, const Operation& train, const Variable& w) {
  Initialize(session);
  std::vector<double> values;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Succeeds(session.Run(train)));
    values.push_back(Value(session, w));
  }
  return values;
}

TEST(Train, F191_gradient_descent) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  GradientDescentOptimizer optimizer(0.1);
  const Operation train = optimizer.Minimize(Square(w));
  EXPECT_TRUE(optimizer.variables().empty());
  Session session(f.graph);
  const std::vector<double> values = TwoSteps(session, train, w);
  EXPECT_NEAR(values[0], 1.6, 1e-6);
  EXPECT_NEAR(values[1], 1.28, 1e-6);
}

TEST(Train, F191_names_of_slots_of_two_optimisers) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  AdamOptimizer first(0.1), second(0.1);
  first.Minimize(Square(w));
  second.Minimize(Square(w));
  EXPECT_EQ(second.GetSlot(w, "m").name(), "w/Adam_2:0");
  EXPECT_EQ(second.GetSlot(w, "v").name(), "w/Adam_3:0");
  EXPECT_EQ(second.variables()[0].name(), "beta1_power_1:0");
}

TEST(Train, F191_slots_are_named_below_the_open_scopes) {
  Fresh f;
  const auto names = [](const Optimizer& optimizer) {
    std::vector<std::string> all;
    for (const Variable& v : optimizer.variables()) all.push_back(v.name());
    return all;
  };
  const VariableScope model("model", {.partitioner = FixedSizePartitioner(2)});
  const Variable z = GetVariable("z", {.shape = Shape()});
  {
    const NameScope train("train");
    AdamOptimizer adam;
    EXPECT_EQ(adam.Minimize(Square(z)).name(), "model/train/Adam");
    EXPECT_EQ(names(adam), (std::vector<std::string>{"model/model/z/Adam:0", "model/model/z/Adam_1:0",
                                                     "model/train/beta1_power:0", "model/train/beta2_power:0"}));
  }
  const Variable parted = GetVariable("p", Shape::Of({4, 2}));
  MomentumOptimizer momentum(0.1, 0.9);
  momentum.Minimize(ReduceSum(parted.value()), {.variables = parted.parts()});
  EXPECT_EQ(names(momentum),
            (std::vector<std::string>{"model/model/p/part_0/Momentum:0", "model/model/p/part_1/Momentum:0"}));
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

TEST(Train, F370_slots_of_parts_are_parts_of_one_slot) {
  Fresh f;
  const Variable p = GetVariable(
      "p", {.shape = Shape::Of({4, 2}), .initializer = OnesInitializer(), .partitioner = FixedSizePartitioner(2)});
  MomentumOptimizer momentum(0.1, 0.9);
  momentum.Minimize(ReduceSum(p.value()), {.variables = p.parts()});
  std::vector<std::string> slots;
  for (const Variable& slot : momentum.variables()) {
    ASSERT_TRUE(slot.slice()) << slot.name();
    slots.push_back(slot.slice()->full_name + " " + slot.slice()->spec());
  }
  EXPECT_EQ(slots, (std::vector<std::string>{"p/Momentum 4 2 0,2:0,2", "p/Momentum 4 2 2,2:0,2"}));
}

TEST(Train, F372_momentum_and_nesterov) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"}), n(2.0f, {.name = "n"});
  MomentumOptimizer momentum(0.1, 0.9), nesterov(0.1, 0.9, true);
  EXPECT_FALSE(momentum.GetSlot(w, "momentum").exists());
  const Operation train = momentum.Minimize(Square(w), {.variables = {w}});
  const Operation train_n = nesterov.Minimize(Square(n), {.variables = {n}});
  const Variable slot = momentum.GetSlot(w, "momentum"), slot_n = nesterov.GetSlot(n, "momentum");
  EXPECT_EQ(slot.name(), "w/Momentum:0");
  EXPECT_FALSE(momentum.GetSlot(w, "nope").exists());
  EXPECT_EQ(momentum.SlotNames(), std::vector<std::string>{"momentum"});
  EXPECT_FALSE(slot.trainable());
  Session session(f.graph);
  Initialize(session);
  const double wanted[3][4] = {{2, 0, 2, 0}, {1.6, 4, 1.24, 4}, {0.92, 6.8, 0.4448, 6.08}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(Value(session, w), wanted[i][0], 1e-6);
    EXPECT_NEAR(Value(session, slot), wanted[i][1], 1e-5);
    EXPECT_NEAR(Value(session, n), wanted[i][2], 1e-6);
    EXPECT_NEAR(Value(session, slot_n), wanted[i][3], 1e-5);
    ASSERT_TRUE(Succeeds(session.Run(Fetch::List{train, train_n})));
  }
}

TEST(Train, F372_adam) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  AdamOptimizer adam(0.1);
  const Operation train = adam.Minimize(Square(w));
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables()) names.push_back(v.op().name());
  EXPECT_EQ(names, (std::vector<std::string>{"w", "beta1_power", "beta2_power", "w/Adam", "w/Adam_1"}));
  ASSERT_EQ(adam.variables().size(), 4u);
  EXPECT_EQ(adam.variables()[0].name(), "beta1_power:0");
  EXPECT_EQ(adam.variables()[3].name(), "w/Adam_1:0");
  EXPECT_EQ(adam.SlotNames(), (std::vector<std::string>{"m", "v"}));
  EXPECT_EQ(TrainableVariables().size(), 1u);
  Session session(f.graph);
  const std::vector<double> values = TwoSteps(session, train, w);
  EXPECT_NEAR(values[0], 1.9, 1e-6);
  EXPECT_NEAR(values[1], 1.8001668, 1e-6);
  EXPECT_NEAR(Value(session, adam.GetSlot(w, "m")), 0.74, 1e-6);
  EXPECT_NEAR(Value(session, adam.GetSlot(w, "v")), 0.03042361, 1e-7);
  EXPECT_NEAR(Value(session, adam.variables()[0]), 0.729, 1e-6);
}

TEST(Train, F372_names_of_slots_with_a_name_of_the_optimiser) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  MomentumOptimizer named(0.1, 0.9, false, "Mom");
  EXPECT_EQ(named.Minimize(Square(w)).name(), "Mom");
  EXPECT_EQ(named.GetSlot(w, "momentum").name(), "w/Mom:0");
}

/// The values of a vector and the step counter after three steps on the sum of its squares.
std::vector<double> AfterThreeSteps(Optimizer& optimizer, bool resource) {
  Fresh f;
  const Variable v({1.0f, -2.0f}, {.name = "v", .use_resource = resource});
  const Variable step(Tensor::Scalar<int64_t>(0), {.name = "step", .trainable = false, .use_resource = resource});
  const Operation train = optimizer.Minimize(ReduceSum(v * v), {.global_step = step});
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Succeeds(session.Run(train)));
  std::vector<double> values = Values(session, v);
  values.push_back(Value(session, step));
  return values;
}

TEST(Train, F191_F372_resources_train_as_references_do) {
  const auto both = [](auto make) {
    auto a = make(), b = make();
    const std::vector<double> reference = AfterThreeSteps(a, false);
    EXPECT_EQ(AfterThreeSteps(b, true), reference);
    return reference;
  };
  const std::vector<double> plain = both([] { return GradientDescentOptimizer(0.1); });
  EXPECT_NEAR(plain[0], 0.512, 1e-6);
  EXPECT_NEAR(plain[1], -1.024, 1e-6);
  EXPECT_EQ(plain[2], 3);
  EXPECT_NEAR(both([] { return MomentumOptimizer(0.1, 0.9); })[0], 0.062, 1e-6);
  EXPECT_NEAR(both([] { return AdamOptimizer(0.1); })[0], 0.7006, 1e-3);
}

TEST(Train, rows_of_a_gathered_variable_are_updated_by_scatter) {
  Fresh f;
  const Variable table({{1.0f}, {2.0f}, {3.0f}}, {.name = "table"});
  const Output loss = ReduceSum(Gather(table, {2, 0, 2}));
  const Operation train = GradientDescentOptimizer(0.5).Minimize(loss);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_EQ(Values(session, table), (std::vector<double>{0.5, 2, 2}));
}

/// The first element of [[1,2],[3,4],[5,6]] after each of two steps on the sum of row 0 taken twice.
std::vector<double> AfterTwoSteps(Optimizer& optimizer, bool resource, std::vector<std::string>* ops) {
  Fresh f;
  const Variable v({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}, {.name = "v", .use_resource = resource});
  const Operation train = optimizer.Minimize(ReduceSum(Gather(v, {0, 0})));
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  for (const Operation& op : f.graph.Operations()) {
    const size_t at = op.name().find("/update_v/");
    if (at != std::string::npos && op.type() != "Const") ops->push_back(op.name().substr(at + 10));
  }
  Session session(f.graph);
  Initialize(session);
  std::vector<double> first;
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE(Succeeds(session.Run(train)));
    const std::vector<double> values = Values(session, v);
    EXPECT_EQ(std::vector<double>(values.begin() + 2, values.end()), (std::vector<double>{3, 4, 5, 6}));
    EXPECT_FLOAT_EQ(static_cast<float>(values[1] - values[0]), 1);
    first.push_back(values[0]);
  }
  return first;
}

TEST(Autodiff, F361_names_of_rows_are_tensorflows) {
  Fresh f;
  const Variable v({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}, {.name = "v"});
  const Output first = Gather(v, {0, 2, 0}, 0, "GatherV2"), second = Gather(v, {1}, 0, "GatherV2");
  const Result<List<Gradient>> one = Gradients({ReduceSum(first)}, {v.handle()});
  ASSERT_TRUE(Succeeds(one));
  EXPECT_EQ((*one)[0].values.name(), "gradients/GatherV2_grad/Reshape:0");
  EXPECT_EQ((*one)[0].indices.name(), "gradients/GatherV2_grad/Reshape_1:0");
  EXPECT_EQ((*one)[0].dense_shape.name(), "gradients/GatherV2_grad/Cast:0");
  const Result<List<Gradient>> both = Gradients({ReduceSum(first), ReduceSum(second)}, {v.handle()});
  ASSERT_TRUE(Succeeds(both));
  EXPECT_EQ((*both)[0].values.name(), "gradients_1/concat:0");
  EXPECT_EQ((*both)[0].indices.name(), "gradients_1/concat_1:0");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, (*both)[0].indices), (std::vector<double>{1, 0, 2, 0})) << "the later use first";
  EXPECT_EQ(Values(session, (*one)[0].dense_shape), (std::vector<double>{3, 2}));
}

TEST(Train, F361_rows_with_momentum_and_adam) {
  for (const bool resource : {false, true}) {
    std::vector<std::string> plain_ops, adam_ops, ignored;
    MomentumOptimizer plain(0.1, 0.9), ahead(0.1, 0.9, true);
    AdamOptimizer adam(0.1);
    const std::vector<double> a = AfterTwoSteps(plain, resource, &plain_ops);
    const std::vector<double> b = AfterTwoSteps(ahead, resource, &ignored);
    const std::vector<double> c = AfterTwoSteps(adam, resource, &adam_ops);
    EXPECT_NEAR(a[0], 0.8, 1e-6);
    EXPECT_NEAR(a[1], 0.42, 1e-6);
    EXPECT_NEAR(b[0], 0.62, 1e-6);
    EXPECT_NEAR(b[1], 0.078, 1e-6);
    EXPECT_NEAR(c[0], 0.9, 1e-6);
    EXPECT_NEAR(c[1], 0.8, 1e-6);
    EXPECT_EQ(plain_ops, (std::vector<std::string>{"Unique", "Shape", "strided_slice", "UnsortedSegmentSum",
                                                   resource ? "ResourceSparseApplyMomentum" : "SparseApplyMomentum"}));
    if (resource) continue;
    EXPECT_EQ(adam_ops, (std::vector<std::string>{"Unique",    "Shape",      "strided_slice", "UnsortedSegmentSum",
                                                  "sub",       "Sqrt",       "mul",           "sub_1",
                                                  "truediv",   "sub_2",      "mul_1",         "mul_2",
                                                  "Assign",    "ScatterAdd", "mul_3",         "sub_3",
                                                  "mul_4",     "mul_5",      "Assign_1",      "ScatterAdd_1",
                                                  "Sqrt_1",    "mul_6",      "add",           "truediv_1",
                                                  "AssignSub", "group_deps"}));
  }
}

TEST(Layers, dense_of_resources_trains) {
  Fresh f;
  const VariableScope scope("m", {.use_resource = true});
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 2}), "x");
  const Output y = Dense(x, 1, {}, "dense", {.kernel_initializer = OnesInitializer()});
  EXPECT_EQ(y.op().inputs()[0].op().inputs()[1].name(), "m/dense/MatMul/ReadVariableOp:0");
  const Operation train = GradientDescentOptimizer(0.5).Minimize(ReduceSum(y));
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(train, {{x, {{1.0f, 2.0f}}}})));
  EXPECT_EQ(Values(session, GlobalVariables()[0]), (std::vector<double>{0.5, 0}));
  EXPECT_EQ(Values(session, GlobalVariables()[1]), std::vector<double>{-0.5});
}

TEST(Layers, dense_names_are_tensorflows) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 3}), "x");
  const Output hidden = Dense(x, 2, Relu);
  const Output y = Dense(hidden, 1);
  EXPECT_EQ(hidden.name(), "dense/Relu:0");
  EXPECT_EQ(y.name(), "dense_1/BiasAdd:0");
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables()) names.push_back(v.name() + v.shape().ToTupleString());
  EXPECT_EQ(names, (std::vector<std::string>{"dense/kernel:0(3, 2)", "dense/bias:0(2,)", "dense_1/kernel:0(2, 1)",
                                             "dense_1/bias:0(1,)"}));
  EXPECT_EQ(hidden.op().inputs()[0].name(), "dense/BiasAdd:0");
  EXPECT_EQ(hidden.op().inputs()[0].op().inputs()[0].name(), "dense/MatMul:0");
  Dense(Placeholder(DType::kFloat), 2);
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "should be defined"));
}

TEST(Train, every_read_of_a_reference_counts) {
  Fresh f;
  const Variable v(2.0f, {.name = "v"});
  const Operation train =
      GradientDescentOptimizer(1.0).Minimize(v.ReadValue() + v * 2.0f + v.InitializedValue() * 4.0f);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_EQ(Value(session, v), -5) << "2 - (1 + 2 + 4)";
}

TEST(Train, rows_of_a_reference_stay_rows) {
  Fresh f;
  const Variable v(Operand({1.0f, 2.0f, 3.0f}), {.name = "v"});
  GradientDescentOptimizer(1.0).Minimize(ReduceSum(Gather(v, {0, 2})));
  EXPECT_TRUE(f.graph.OperationByName("GradientDescent/update_v/ScatterSub").ok()) << f.error();
}

TEST(Autodiff, F180_a_known_shape_is_a_constant) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({2, 2}), "x");
  ASSERT_TRUE(Succeeds(Gradients({Square(x)}, {x})));
  EXPECT_EQ(f.graph.OperationByName("gradients/Shape")->type(), "Const");
}

}  // namespace
}  // namespace weir::test
