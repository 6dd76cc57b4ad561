// GetVariable: arguments, initial values, partitions. Numbers are rows of the feature list.
#include <cmath>

#include "core/io/inspect.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Names = std::vector<std::string>;

TEST(GetVariable, F052_makes_or_finds_by_name) {
  Fresh f;
  const Variable v = GetVariable("my_variable", Shape::Of({1, 2, 3}));
  EXPECT_EQ(v.shape().ToTupleString(), "(1, 2, 3)");
  EXPECT_EQ(GetVariable("my_variable", {.reuse = Reuse::kYes}).handle(), v.handle());
  EXPECT_EQ(v.ToString(), "<tf.Variable 'my_variable:0' shape=(1, 2, 3) dtype=float32_ref>");
}

TEST(GetVariable, F053_default_type_and_initial_values) {
  Fresh f;
  GetVariable("a", Shape::Of({1, 2, 3}));
  GetVariable("b", Shape::Of({3, 3, 40, 50}));
  GetVariable("c", Shape::Of({8}));
  GetVariable("d", Shape());
  const Variable i = GetVariable("i", Shape::Of({2}), DType::kInt32),
                 b = GetVariable("t", Shape::Of({2}), DType::kBool);
  Session session(f.graph);
  const auto limit = [&](const std::string& name) {
    return Value(session, name + "/Initializer/random_uniform/max:0");
  };
  EXPECT_NEAR(limit("a"), 1.0954451, 1e-6);
  EXPECT_NEAR(limit("b"), std::sqrt(6.0 / (360 + 450)), 1e-6);
  EXPECT_NEAR(limit("c"), std::sqrt(6.0 / 16), 1e-6);
  EXPECT_NEAR(limit("d"), std::sqrt(3.0), 1e-6);
  Initialize(session);
  EXPECT_EQ(Values(session, i), (std::vector<double>{0, 0}));
  EXPECT_EQ(Values(session, b), (std::vector<double>{0, 0}));
  GetVariable("z", Shape::Of({2}), DType::kComplex64);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "An initializer for variable z of <dtype: 'complex64'> is required"));
}

TEST(GetVariable, F054_zeros_as_a_call_or_by_name) {
  Fresh f;
  const Variable a = GetVariable("a", Shape::Of({1, 2, 3}), DType::kInt32, ZerosInitializer());
  const Variable b = GetVariable("b", Shape::Of({1, 2, 3}), DType::kInt32, ZerosInitializer);
  const Variable big = GetVariable("big", Shape::Of({2000}), DType::kFloat, OnesInitializer);
  EXPECT_EQ(big.initial_value().op().type(), "Fill");
  EXPECT_EQ(big.initial_value().op().name(), "big/Initializer/ones");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, a), std::vector<double>(6, 0));
  EXPECT_EQ(Values(session, b), std::vector<double>(6, 0));
  EXPECT_EQ(Values(session, big), std::vector<double>(2000, 1));
}

TEST(GetVariable, F055_a_value_says_shape_and_type) {
  Fresh f;
  const Variable v = GetVariable("other_variable", {.initializer = Constant({23, 42})});
  EXPECT_EQ(v.shape().ToTupleString(), "(2,)");
  EXPECT_EQ(v.dtype(), DType::kInt32);
  EXPECT_EQ(v.initial_value().name(), "Const:0");
  GetVariable("x", {.shape = Shape::Of({2}), .initializer = Constant({23, 42})});
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "If initializer is a constant, do not specify shape."));
  for (const Initializer& ints : std::vector<Initializer>{Constant({23, 42}), std::vector<int>{23, 42}, 23}) {
    GetVariable("x", {.dtype = DType::kFloat, .initializer = ints});
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                      "Initializer type '<dtype: 'int32'>' and explicit dtype '<dtype: 'float32'>' don't match."));
  }
  const Variable made = GetVariable("made", {.initializer = [] { return Constant({1.0f, 2.0f, 3.0f}); }});
  EXPECT_EQ(made.shape().ToTupleString(), "(3,)");
  GetVariable("p", {.initializer = Placeholder(DType::kFloat)});
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "initial_value must have a shape specified: Tensor("));
}

TEST(GetVariable, what_an_initializer_gives_is_checked) {
  Fresh f;
  const auto gives = [](const std::function<Output()>& make) {
    return Initializer([make](Graph&, DType, const Shape&) { return make(); });
  };
  const std::vector<std::pair<VariableArgs, std::string>> rows = {
      {{.shape = Shape::Of({2}), .initializer = gives([] { return Ones(Shape::Of({3})); })},
       "Dimension 0 in both shapes must be equal, but are 2 and 3"},
      {{.shape = Shape::Of({3}), .initializer = [] { return Ones(Shape::Of({2})); }},
       "Dimension 0 in both shapes must be equal, but are 3 and 2"},
      {{.shape = Shape::Of({2}), .initializer = gives([] { return Constant(3, DType::kInvalid, "three"); })},
       "initial_value: Tensor conversion requested dtype float32 for Tensor with dtype int32: <tf.Tensor "},
      {{.shape = Shape::Of({2}), .initializer = gives([] { return Output(); })}, "None values not supported."},
      {{.shape = Shape::Of({3}), .initializer = ConstantInitializer({1, 2, 3, 4})},
       "Too many elements provided. Takes at most 3, but got 4."},
      {{.shape = Shape::Of({3}), .dtype = DType::kInt32, .initializer = ConstantInitializer(1.5)},
       "Expected int32, got 1.5 of type 'float' instead. (client/get_variable_test.cc:"},
      {{.shape = Shape::Of({2}), .dtype = DType::kInt32, .initializer = RandomUniformInitializer(0, 1.5)},
       "Expected int32, got 1.5 of type 'float' instead. (client/get_variable_test.cc:"},
      {{.shape = Shape::Of({2}), .dtype = DType::kBool, .initializer = ConstantInitializer(0.5)},
       "Expected bool, got 0.5 of type 'float' instead."},
      {{.shape = Shape::Of({2}), .dtype = DType::kString, .initializer = OnesInitializer()},
       "Expected string, got 1 of type 'int' instead."},
      {{.shape = PartialShape::Of({-1, 2})}, "The initializer passed is not valid. It should be a callable with no"},
      {{.initializer = ZerosInitializer()}, "The initializer passed is not valid. It should be a callable with no"},
      {{}, "Variable v did not get an initializer, so its `shape` argument must be specified."},
  };
  for (const auto& [args, text] : rows) {
    EXPECT_FALSE(GetVariable("v", args).exists()) << text;
    const Status status = f.graph.TakeStatus();
    EXPECT_TRUE(Fails(status, Code::kInvalidArgument, text));
    EXPECT_NE(status.message().find("(client/get_variable_test.cc:"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(GlobalVariables().empty());
}

TEST(GetVariable, a_short_list_of_constants_ends_in_its_last_one) {
  Fresh f;
  GetVariable("a", Shape::Of({2, 2}), DType::kDouble, ConstantInitializer({1, 2}));
  GetVariable("b", Shape::Of({2}), DType::kInt32, ConstantInitializer(7));
  GetVariable("c", Shape::Of({2}), DType::kFloat, ConstantInitializer(std::vector<float>{}));
  const Variable text = GetVariable("d", Shape::Of({2}), DType::kString, ConstantInitializer("x"));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, "a:0"), (std::vector<double>{1, 2, 2, 2}));
  EXPECT_EQ(Values(session, "b:0"), (std::vector<double>{7, 7}));
  EXPECT_EQ(Values(session, "c:0"), (std::vector<double>{0, 0}));
  const Result<Fetched> texts = session.Run(text);
  ASSERT_TRUE(Succeeds(texts));
  EXPECT_EQ(texts->tensor().as<std::string>()[1], "x");
}

TEST(GetVariable, a_shape_that_is_given_stays_when_it_is_not_validated) {
  Fresh f;
  const Variable v = GetVariable("v", {.shape = Shape::Of({2}), .validate_shape = false});
  EXPECT_EQ(v.shape().ToTupleString(), "(2,)");
  EXPECT_EQ(v.handle().shape().ToTupleString(), "(2,)");
  AdamOptimizer().Minimize(ReduceSum(v));
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  const Variable like_value = GetVariable("w", {.initializer = Ones(Shape::Of({2})), .validate_shape = false});
  EXPECT_EQ(like_value.shape().ToTupleString(), "<unknown>");
}

TEST(GetVariable, F056_seeded_initializers_give_tensorflows_values) {
  const auto drawn = [](const Initializer& initializer) {
    const Variable v =
        GetVariable("v" + std::to_string(GlobalVariables().size()), Shape::Of({3}), DType::kFloat, initializer);
    Session session(Graph::Default());
    Initialize(session);
    return Values(session, v);
  };
  const auto expect_near = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6);
  };
  {
    Fresh f;
    expect_near(drawn(RandomUniformInitializer(0, 1, 1)), {0.2390374, 0.92039955, 0.05051243});
    expect_near(drawn(RandomNormalInitializer(0, 1, 1)), {-0.8113182, 1.4845988, 0.06532937});
    expect_near(drawn(ConstantInitializer(0.0)), {0, 0, 0});
  }
  Fresh f;
  SetRandomSeed(1);
  expect_near(drawn(RandomUniformInitializer(0, 1, 1)), {0.05554414, 0.01869845, 0.07080972});
}

TEST(GetVariable, variance_scaling) {
  Fresh f;
  GetVariable("he", Shape::Of({4, 6}), DType::kFloat, HeNormalInitializer(1));
  GetVariable("uniform", Shape::Of({4, 6}), DType::kFloat, HeUniformInitializer(1));
  GetVariable("glorot", Shape::Of({4, 6}), DType::kFloat, GlorotNormalInitializer(1));
  GetVariable("normal", Shape::Of({4, 6}), DType::kFloat,
              VarianceScalingInitializer({.mode = Fan::kOut, .distribution = Spread::kNormal}));
  Session session(f.graph);
  const auto part = [&](const std::string& name) { return Value(session, name + ":0"); };
  EXPECT_NEAR(part("he/Initializer/truncated_normal/stddev"), std::sqrt(0.5) / 0.87962566, 1e-6);
  EXPECT_NEAR(part("uniform/Initializer/random_uniform/max"), std::sqrt(6.0 / 4), 1e-6);
  EXPECT_NEAR(part("glorot/Initializer/truncated_normal/stddev"), std::sqrt(0.2) / 0.87962566, 1e-6);
  EXPECT_NEAR(part("normal/Initializer/random_normal/stddev"), std::sqrt(1.0 / 6), 1e-6);
}

TEST(GetVariable, F068_clashes_rename_one_kind_and_refuse_the_other) {
  Fresh f;
  const Variable first(1.0f, {.name = "w"}), second(1.0f, {.name = "w"});
  EXPECT_EQ(second.name(), "w_1:0");
  GetVariable("g", Shape());
  EXPECT_FALSE(GetVariable("g", Shape()).exists());
  EXPECT_EQ(f.graph.TakeStatus().code(), Code::kAlreadyExists);
}

TEST(GetVariable, F069_towers_share_one_variable) {
  Fresh f;
  std::vector<Output> towers;
  for (int i = 0; i < 2; ++i) {
    const NameScope tower("tower_" + std::to_string(i));
    towers.push_back(GetVariable("w", {.shape = Shape(), .initializer = OnesInitializer(), .reuse = Reuse::kAuto}) *
                     2.0f);
  }
  const Output update = GetVariable("w", {.reuse = Reuse::kYes}).AssignAdd(1.0f);
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(update)));
  for (const Output& tower : towers) EXPECT_EQ(Value(session, tower), 4);
}

TEST(GetVariable, F072_global_step) {
  Fresh f;
  EXPECT_FALSE(GetGlobalStep().exists());
  const Variable step = CreateGlobalStep();
  EXPECT_EQ(step.name(), "global_step:0");
  EXPECT_EQ(step.dtype(), DType::kInt64);
  EXPECT_EQ(VariablesIn(keys::kGlobalStep).size(), 1u);
  EXPECT_EQ(GlobalVariables().size(), 1u);
  EXPECT_TRUE(TrainableVariables().empty());
  EXPECT_EQ(GetGlobalStep().handle(), step.handle());
  EXPECT_EQ(GetOrCreateGlobalStep().handle(), step.handle());
  EXPECT_FALSE(CreateGlobalStep().exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kAlreadyExists, "\"global_step\" already exists."));
  Fresh g;
  const Variable plain(0.5f, {.name = "global_step"});
  for (const auto& get : {GetGlobalStep, GetOrCreateGlobalStep}) {
    EXPECT_FALSE(get(Graph::Default(), std::source_location::current()).exists());
    EXPECT_TRUE(Fails(g.graph.TakeStatus(), Code::kInvalidArgument,
                      "Existing \"global_step\" does not have integer type: <dtype: 'float32_ref'> (client/get_v"));
  }
}

TEST(GetVariable, resource_variables_and_constraints) {
  Fresh f;
  const VariableScope scope("s", {.use_resource = true, .constraint = [](const Output& v) { return Relu(v); }});
  const Variable r = GetVariable("r", Shape::Of({2}));
  EXPECT_TRUE(r.is_resource());
  ASSERT_TRUE(r.constraint());
  EXPECT_EQ(r.constraint()(r.value()).op().type(), "Relu");
  EXPECT_FALSE(GetVariable("plain", {.shape = Shape(), .use_resource = false}).is_resource());
  const Names names = NodeNames(f.graph);
  EXPECT_NE(std::find(names.begin(), names.end(), "s/r/IsInitialized/VarIsInitializedOp"), names.end());
  GetVariableScope().ReuseVariables();
  GetVariable("r", Shape::Of({2}), DType::kInt32);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Trying to share variable s/r, but specified dtype int32 and found dtype float32."));
}

TEST(PartitionedVariable, F370_parts_are_named_and_joined) {
  Fresh f;
  const NameScope n("n");
  const VariableScope s("s", {.initializer = OnesInitializer(), .partitioner = FixedSizePartitioner(3)});
  const Variable w = GetVariable("w", Shape::Of({4, 2}));
  EXPECT_EQ(w.name(), "s/w");
  EXPECT_EQ(w.shape().ToTupleString(), "(4, 2)");
  ASSERT_EQ(w.parts().size(), 3u);
  EXPECT_EQ(w.parts()[0].ToString(), "<tf.Variable 's/w/part_0:0' shape=(2, 2) dtype=float32_ref>");
  EXPECT_EQ(w.parts()[2].ToString(), "<tf.Variable 's/w/part_2:0' shape=(1, 2) dtype=float32_ref>");
  Names specs;
  for (const Variable& part : w.parts()) specs.push_back(part.slice()->spec());
  EXPECT_EQ(specs, (Names{"4 2 0,2:0,2", "4 2 2,1:0,2", "4 2 3,1:0,2"}));
  EXPECT_EQ(GetVariable("sc", Shape()).name(), "s/sc:0");  // a scalar is not partitioned
  EXPECT_EQ(GlobalVariables().size(), 4u);
  const Output twice = w * 2.0f;
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("s/w/ConcatPartitions/concat")));
  EXPECT_EQ(twice.op().inputs()[0].name(), "s/w:0");
  EXPECT_EQ(w.value().name(), "s/w_1:0");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, twice), std::vector<double>(8, 2));
  EXPECT_TRUE(Fails(session.Run(w), Code::kInvalidArgument,
                    "Can not convert a PartitionedVariable into a Tensor or Operation."));
}

TEST(PartitionedVariable, F370_parts_are_assigned_and_initialized) {
  Fresh f;
  const Variable w = GetVariable(
      "w", {.shape = Shape::Of({3, 2}), .initializer = OnesInitializer(), .partitioner = FixedSizePartitioner(2)});
  const Output set = w.Assign({{1, 2}, {3, 4}, {5, 6}}), add = w.AssignAdd(Ones(Shape::Of({3, 2})));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("Assign_1")));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("AssignAdd_1")));
  const Operation init = VariablesInitializer({w});
  EXPECT_EQ(init.control_inputs().size(), 2u);
  const Output missing = ReportUninitializedVariables({w});
  const Operation train = GradientDescentOptimizer(1).Minimize(ReduceSum(w.value()), {.variables = {w}});
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  Session session(f.graph);
  const Result<Fetched> names = session.Run(missing);
  ASSERT_TRUE(Succeeds(names));
  EXPECT_EQ(names->tensor().as<std::string>()[1], "w/part_1");
  ASSERT_TRUE(Succeeds(session.Run(init)));
  EXPECT_EQ(Values(session, w.value()), std::vector<double>(6, 1));
  EXPECT_EQ(Values(session, set), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Values(session, add), (std::vector<double>{2, 3, 4, 5, 6, 7}));
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_EQ(Values(session, w.value()), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(PartitionedVariable, F370_reuse) {
  Fresh f;
  const auto get = [](Partitioner partitioner, std::optional<Reuse> reuse, std::string_view name = "w") {
    const VariableScope s("s");
    return GetVariable(name, {.shape = Shape::Of({4, 2}), .reuse = reuse, .partitioner = std::move(partitioner)});
  };
  const Variable w = get(FixedSizePartitioner(3), {});
  EXPECT_EQ(get(FixedSizePartitioner(3), Reuse::kAuto).parts()[1].handle(), w.parts()[1].handle());
  EXPECT_EQ(get(nullptr, Reuse::kYes).name(), "s/w");
  get(FixedSizePartitioner(2), Reuse::kYes);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Trying to reuse partitioned variable s/w, but specified partitions [2, 1] and found partitions "
                    "[3, 1]."));
  get(FixedSizePartitioner(3), {});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kAlreadyExists, "Partitioned variable with name s/w already exists."));
  get(nullptr, {});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "No partitioner was provided, but a partitioned"));
  get(FixedSizePartitioner(3), Reuse::kYes, "none");
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kNotFound, "PartitionedVariable s/none does not exist"));
  get(nullptr, {}, "whole");
  get(FixedSizePartitioner(3), {}, "whole");
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "A partitioner was provided, but an unpartitioned"));
}

TEST(PartitionedVariable, F370_checkpoints_know_one_key) {
  TemporaryFolder dir;
  const Literal rows({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}, {7.0f, 8.0f}});
  const std::vector<double> wanted = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto make = [&](int parts, const Initializer& initializer) {
    const VariableScope s("s");
    VariableArgs args;
    args.initializer = initializer;
    if (!initializer.value()) args.shape = Shape::Of({4, 2});
    if (parts > 1) args.partitioner = FixedSizePartitioner(parts);
    return GetVariable("w", args);
  };
  {
    Fresh f;
    make(3, rows);
    Saver saver;
    Session session(f.graph);
    Initialize(session);
    ASSERT_TRUE(Succeeds(saver.Save(session, dir / "p"))) << f.error();
    const Result<std::string> listed = InspectCheckpoint(dir / "p");
    ASSERT_TRUE(Succeeds(listed));
    EXPECT_NE(listed->find("s/w"), std::string::npos);
    EXPECT_EQ(listed->find("part_"), std::string::npos);
  }
  for (const int parts : {1, 2}) {
    Fresh f;
    const Variable w = make(parts, ZerosInitializer());
    const Output whole = Identity(w);
    Saver saver({w});
    Session session(f.graph);
    ASSERT_TRUE(Succeeds(saver.Restore(session, dir / "p"))) << f.error();
    EXPECT_EQ(Values(session, whole), wanted);
    Initialize(session);
    const Result<io::RestoreReport> partial = saver.RestorePartial(session, dir / "p");
    ASSERT_TRUE(Succeeds(partial));
    EXPECT_EQ(Values(session, whole), wanted);
  }
}

TEST(PartitionedVariable, parts_are_drawn_as_the_whole_would_be) {
  Fresh f;
  GetVariable("g", {.shape = Shape::Of({6, 2}), .partitioner = FixedSizePartitioner(3)});
  Session session(f.graph);
  EXPECT_NEAR(Value(session, "g/part_1/Initializer/random_uniform/max:0"), std::sqrt(6.0 / 8), 1e-6);
}

TEST(Variable, F062_F155_initialized_value_makes_the_order_free) {
  Fresh f;
  const Variable v(0.0f, {.name = "v"});
  const Variable w(v.InitializedValue() + 1.0f, {.name = "w"});
  EXPECT_EQ(v.shape().ToTupleString(), "()");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, v), 0);
  EXPECT_EQ(Value(session, w), 1);
  ASSERT_TRUE(Succeeds(session.Run(v.Assign(5.0f))));
  ASSERT_TRUE(Succeeds(session.Run(w.initializer())));
  EXPECT_EQ(Value(session, w), 6);
}

TEST(Variable, F062_F155_initial_values_may_read_variables) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable v(1.0f, {.name = "v"});
    const Output next = v + 1.0f;
    const Variable x(next, {.name = "x", .use_resource = resource}), same(v, {.name = "same"});
    const Variable w = GetVariable("w", {.initializer = Multiply(next, next), .use_resource = resource});
    EXPECT_EQ(x.initial_value(), next);
    EXPECT_TRUE(Succeeds(f.graph.OperationByName("Mul_w")));
    Session session(f.graph);
    const Operation init = GlobalVariablesInitializer();
    for (int run = 0; run < 20; ++run) {
      Session fresh(f.graph);
      ASSERT_TRUE(Succeeds(fresh.Run(init)));
      EXPECT_EQ(Value(fresh, x), 2);
      EXPECT_EQ(Value(fresh, w), 4);
      EXPECT_EQ(Value(fresh, same), 1);
    }
    ASSERT_TRUE(Succeeds(session.Run(x.initializer())));  // v stays uninitialised
    EXPECT_EQ(Value(session, x), 2);
    EXPECT_FALSE(session.Run(v).ok());
    ASSERT_TRUE(Succeeds(session.Run(v.Assign(5.0f))));
    ASSERT_TRUE(Succeeds(session.Run(x.initializer())));
    EXPECT_EQ(Value(session, x), 6);
  }
}

TEST(Variable, F062_initial_values_may_read_variables_of_other_devices) {
  Fresh f;
  Output next;
  {
    const DeviceScope one("/cpu:1");
    next = Variable(1.0f, {.name = "v"}) + 1.0f;
  }
  const DeviceScope zero("/cpu:0");
  const Variable x(next, {.name = "x"});
  EXPECT_EQ((*f.graph.OperationByName("v/read_x")).device(), "/device:CPU:1");
  EXPECT_EQ((*f.graph.OperationByName("add_x")).device(), "/device:CPU:0");
  ConfigProto config;
  config.device_count["CPU"] = 2;
  config.allow_soft_placement = false;
  Session session(f.graph, config);
  Initialize(session);
  EXPECT_EQ(Value(session, x), 2);
}

TEST(Variable, F062_initial_values_that_stay_as_they_are) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"}), r(1.0f, {.name = "r", .use_resource = true});
  const Output counted = v.AssignAdd(1.0f);
  const Output looped =
      WhileLoop([](const Output& i) { return Less(i, 3.0f); }, [&](const Output& i) { return i + v; }, 0.0f);
  for (const Output& initial : {counted, looped, r + 1.0f}) {
    const Variable x(initial, {.name = "x"});
    ASSERT_TRUE(f.graph.status().ok()) << f.error();
    EXPECT_EQ(x.initializer().inputs()[1], initial);
  }
}

TEST(Variable, F357_initializers_of_some_and_being_initialized) {
  Fresh f;
  const Variable a(1.0f, {.name = "a"}), b(2.0f, {.name = "b"}), c(3.0f, {.name = "c"});
  const Operation init = VariablesInitializer({a, b});
  EXPECT_EQ(init.name(), "init");
  EXPECT_EQ(init.control_inputs(), (std::vector<Operation>{a.initializer(), b.initializer()}));
  EXPECT_TRUE(VariablesInitializer({}).control_inputs().empty());
  const Output is = a.IsInitialized();
  EXPECT_EQ(is.op().type(), "IsVariableInitialized");
  const Output report = ReportUninitializedVariables({a, c});
  const Output set = a.Assign(7.0f);
  Session session(f.graph);
  EXPECT_EQ(Value(session, is), 0);
  ASSERT_TRUE(Succeeds(session.Run(init)));
  EXPECT_EQ(Value(session, is), 1);
  const Result<Fetched> missing = session.Run(report);
  ASSERT_TRUE(Succeeds(missing));
  ASSERT_EQ(missing->tensor().elements(), 1);
  EXPECT_EQ(missing->tensor().as<std::string>()[0], "c");
  ASSERT_TRUE(Succeeds(session.Run(set)));
  ASSERT_TRUE(Succeeds(session.Run(init)));
  EXPECT_EQ(Value(session, a), 1);
  EXPECT_TRUE(Fails(session.Run(c), Code::kFailedPrecondition,
                    "Attempting to use uninitialized value c\n\t [[{{node _retval_c_0_0}}]]"));
  EXPECT_TRUE(Fails(session.Run(Fetch::List{a, c.handle()}), Code::kFailedPrecondition,
                    "Attempting to use uninitialized value c\n\t [[{{node _retval_c_0_1}}]]"));
  ASSERT_TRUE(Succeeds(session.Run(c.initializer(), {{c.initial_value(), 9.0}})));
  EXPECT_EQ(Value(session, c), 9);
}

TEST(Variable, shapes_that_are_not_validated) {
  Fresh f;
  const Variable z({1.0f, 2.0f}, {.name = "z"});
  const Output three = Constant({1.0f, 2.0f, 3.0f});
  const Output set = BuildOp("Assign", {z.handle(), three}, {{"validate_shape", false}}).output(0);
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, set), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(z.shape().ToTupleString(), "(2,)");
  EXPECT_TRUE(Fails(session.Run(z.initializer()), Code::kInvalidArgument,
                    "Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]"));
  const Variable unknown(Placeholder(DType::kFloat), {.name = "u"});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "initial_value must have a shape specified: Tensor(\"Placeholder:0\", dtype=float32)"));
  EXPECT_EQ(Variable(Placeholder(DType::kFloat), {.name = "q", .validate_shape = false}).ToString(),
            "<tf.Variable 'q:0' shape=<unknown> dtype=float32_ref>");
}

TEST(PartitionedVariable, F370_a_value_reads_each_part_once) {
  Fresh f;
  VariableArgs args;
  args.shape = Shape::Of({4});
  args.use_resource = true;
  for (const int parts : {1, 2}) {
    args.partitioner = FixedSizePartitioner(parts);
    const Variable v = GetVariable("v" + std::to_string(parts), args);
    const size_t before = f.graph.Operations().size();
    Identity(v, "value");
    const std::vector<Operation> all = f.graph.Operations();
    const auto is_read = [](const Operation& operation) { return operation.type() == "ReadVariableOp"; };
    EXPECT_EQ(std::count_if(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(), is_read), parts);
  }
  EXPECT_TRUE(f.graph.OperationByName("v1/ReadVariableOp").ok());
  EXPECT_TRUE(f.graph.OperationByName("v2/ConcatPartitions/concat/ReadVariableOp").ok());
}

}  // namespace
}  // namespace weir::test
