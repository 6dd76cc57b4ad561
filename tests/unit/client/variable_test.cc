// Variables: their nodes, initialisation, assignment, lifetime.
#include "core/client/session/session_interface.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

TEST(Variable, F051_outlives_a_run_but_not_its_session) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  const Output set = v.Assign(5.0f);
  Session one(f.graph), two(f.graph);
  ASSERT_TRUE(Succeeds(one.Run(set)));
  EXPECT_EQ(Value(one, v), 5);
  EXPECT_TRUE(Fails(two.Run(v), Code::kFailedPrecondition, "Attempting to use uninitialized value v"));
}

TEST(Variable, F051_sessions_with_one_scope_share_variables) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  session::SessionOptions options;
  options.resources = std::make_shared<runtime::ResourceScope>();
  Session one(f.graph, InProcess(f.graph, options)), two(f.graph, InProcess(f.graph, options));
  Initialize(one);
  EXPECT_EQ(Value(two, v), 1);
}

TEST(Variable, F057_type_and_shape_follow_the_value) {
  Fresh f;
  const auto seen = [](const Operand& value) {
    const Variable v(value);
    return NumpyName(v.dtype()) + " " + v.shape().ToTupleString();
  };
  EXPECT_EQ(seen(3), "int32 ()");
  EXPECT_EQ(seen(3.0), "float32 ()");
  EXPECT_EQ(seen(3.0f), "float32 ()");
  EXPECT_EQ(seen(true), "bool ()");
  EXPECT_EQ(seen("a"), "string ()");
  EXPECT_EQ(seen(std::vector<double>{1, 2}), "float64 (2,)");
  EXPECT_EQ(seen({{1, 2}}), "int32 (1, 2)");
}

TEST(Variable, F058_nodes_of_a_variable) {
  {
    Fresh f;
    const Variable v(0.0f, {.name = "v"});
    EXPECT_EQ(NodeNames(f.graph), (std::vector<std::string>{"v/initial_value", "v", "v/Assign", "v/read"}));
    EXPECT_EQ(v.op().type(), "VariableV2");
    EXPECT_EQ(v.value().op().type(), "Identity");
  }
  {
    Fresh f;
    const Variable v = GetVariable("v", Shape::Of({2}), DType::kFloat, ZerosInitializer());
    EXPECT_EQ(NodeNames(f.graph), (std::vector<std::string>{"v/Initializer/zeros", "v", "v/Assign", "v/read"}));
  }
  {
    Fresh f;
    GetVariable("v", Shape::Of({2, 2}));
    const std::vector<std::string> names = NodeNames(f.graph);
    const std::string root = "v/Initializer/random_uniform";
    EXPECT_EQ(names, (std::vector<std::string>{root + "/shape", root + "/min", root + "/max", root + "/RandomUniform",
                                               root + "/sub", root + "/mul", root, "v", "v/Assign", "v/read"}));
  }
  {
    Fresh f;
    const Variable r(0.0f, {.name = "r", .use_resource = true});
    const std::vector<std::string> wanted = {"r", "r/IsInitialized/VarIsInitializedOp", "r/Assign",
                                             "r/Read/ReadVariableOp"};
    const std::vector<std::string> names = NodeNames(f.graph);
    EXPECT_EQ(std::vector<std::string>(names.begin() + 1, names.end()), wanted);
    EXPECT_EQ(names[0], "r/Initializer/initial_value");
  }
}

TEST(Variable, F059_reading_before_initialisation) {
  Fresh f;
  const Variable v(0.0f, {.name = "v"});
  const Variable r(0.0f, {.name = "r", .use_resource = true});
  Session session(f.graph);
  const Result<Fetched> read = session.Run(v.value());
  EXPECT_TRUE(Fails(read, Code::kFailedPrecondition, "Attempting to use uninitialized value v"));
  EXPECT_TRUE(Fails(read, Code::kFailedPrecondition, "[[{{node v/read}}]]"));
  const Status resource = session.Run(r).status();
  EXPECT_EQ(resource.code(), Code::kFailedPrecondition);
  const bool old_text = resource.message().find(
                            "Error while reading resource variable r from Container: localhost. This could "
                            "mean that the variable was uninitialized.") != std::string::npos;
  const bool new_text = resource.message().find(
                            "Could not find variable r. This could mean that the variable has been "
                            "deleted.") != std::string::npos;
  EXPECT_TRUE(old_text || new_text) << resource.ToString();
}

TEST(Variable, F060_global_variables_initializer) {
  Fresh f;
  EXPECT_TRUE(GlobalVariablesInitializer().control_inputs().empty());
  const Variable v(1.0f, {.name = "v"});
  const Variable local(1.0f, {.name = "local", .trainable = false, .collections = {keys::kLocalVariables}});
  const Operation init = GlobalVariablesInitializer();
  EXPECT_EQ(init.ToString(), "<tf.Operation 'init_1' type=NoOp>");
  EXPECT_EQ(init.control_inputs(), std::vector<Operation>{v.initializer()});
  Session session(f.graph);
  EXPECT_TRUE(Succeeds(RunOperation(init, {}, &session)));
  EXPECT_EQ(Value(session, v), 1);
  EXPECT_FALSE(session.Run(local).ok());
}

TEST(Variable, F061_initializer_of_one_variable) {
  Fresh f;
  const Variable v1(1.0f, {.name = "v1"}), v2(2.0f, {.name = "v2"});
  EXPECT_EQ(v1.initializer().name(), "v1/Assign");
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(v1.initializer())));
  EXPECT_EQ(Value(session, v1), 1);
  EXPECT_FALSE(session.Run(v2).ok());
}

TEST(Variable, F063_report_uninitialized_variables) {
  Fresh f;
  const Variable local(1.0f, {.name = "local", .trainable = false, .collections = {keys::kLocalVariables}});
  const Variable v1(1.0f, {.name = "v1"}), v2(2.0f, {.name = "v2"});
  const Output report = ReportUninitializedVariables();
  const Operation init_local = LocalVariablesInitializer();
  Session session(f.graph);
  const auto names = [&] {
    const Result<Fetched> fetched = session.Run(report);
    EXPECT_TRUE(Succeeds(fetched));
    std::vector<std::string> all;
    if (fetched.ok())
      all.assign(fetched->tensor().as<std::string>().begin(), fetched->tensor().as<std::string>().end());
    return all;
  };
  EXPECT_EQ(names(), (std::vector<std::string>{"v1", "v2", "local"}));
  ASSERT_TRUE(Succeeds(session.Run(v1.initializer())));
  EXPECT_EQ(names(), (std::vector<std::string>{"v2", "local"}));
  Initialize(session);
  EXPECT_EQ(names(), std::vector<std::string>{"local"});
  ASSERT_TRUE(Succeeds(session.Run(init_local)));
  EXPECT_TRUE(names().empty());
}

TEST(Variable, F064_used_as_a_value) {
  Fresh f;
  const Variable v(2.0f, {.name = "v"});
  const Output w = v + 1;
  const Output both = 2.0f * v - v / 4.0f;
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, w), 3);
  EXPECT_EQ(Value(session, both), 3.5);
}

TEST(Variable, F064_resources_are_read_after_what_their_use_waits_for) {
  Fresh f;
  const Variable r(1.0f, {.name = "r", .use_resource = true});
  const Operation more = r.AssignAdd(1.0f).op();
  const Output p = Flag("p");
  Output now, looped;
  {
    const ControlDependencies after({more});
    now = r * 10.0f;
  }
  const auto added = [&] {
    const ControlDependencies after({r.AssignAdd(1.0f)});
    return r * 10.0f;
  };
  const Output chosen = Cond(p, added, [&] { return r + 0.0f; });
  looped = WhileLoop([](const Output& i) { return Less(i, 10.0f); },
                     [&](const Output& i) {
                       const ControlDependencies after({r.AssignAdd(1.0f)});
                       return i + r;
                     },
                     0.0f);
  Session session(f.graph);
  Initialize(session);
  for (const double wanted : {20, 30}) EXPECT_EQ(Value(session, now), wanted);
  Initialize(session);
  EXPECT_EQ(Value(session, chosen, {{p, true}}), 20);
  EXPECT_EQ(Value(session, chosen, {{p, false}}), 2);
  EXPECT_EQ(Value(session, chosen, {{p, true}}), 30);
  Initialize(session);
  EXPECT_EQ(Value(session, looped), 14);  // 2 + 3 + 4 + 5
  EXPECT_EQ(Value(session, r), 5);
}

TEST(Variable, F065_assign_assign_add_assign_sub) {
  Fresh f;
  const Variable v1 = GetVariable("v1", Shape::Of({3}), DType::kFloat, ZerosInitializer());
  const Variable v2 = GetVariable("v2", Shape::Of({5}), DType::kFloat, ZerosInitializer());
  const Variable step(0, {.name = "step", .trainable = false});
  const Output inc = v1.Assign(v1 + 1), dec = v2.Assign(v2 - 1);
  const Output add = step.AssignAdd(1), sub = step.AssignSub(3);
  EXPECT_EQ(inc.op().name(), "Assign");
  EXPECT_EQ(dec.op().name(), "Assign_1");
  EXPECT_EQ(add.op().name(), "AssignAdd");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, inc), (std::vector<double>(3, 1)));
  EXPECT_EQ(Values(session, dec), (std::vector<double>(5, -1)));
  EXPECT_EQ(Value(session, add), 1);
  EXPECT_EQ(Value(session, add), 2);
  EXPECT_EQ(Value(session, sub), -1);
  EXPECT_EQ(Values(session, v1), (std::vector<double>(3, 1)));
  v1.Assign(v2);
  EXPECT_TRUE(
      Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
            "Dimension 0 in both shapes must be equal, but are 3 and 5. Shapes are [3] and [5]. for 'Assign_2' (op: "
            "'Assign') with input shapes: [3], [5]."));
  v1.Assign(Constant({1, 2, 3}));
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Input 'value' of 'Assign' Op has type int32 that does not match type float32 of argument 'ref'."));
}

TEST(Variable, F065_resource_variables_are_assigned_too) {
  Fresh f;
  const Variable r({1.0f, 2.0f}, {.name = "r", .use_resource = true});
  const Output set = r.Assign({3.0f, 4.0f}), add = r.AssignAdd({1.0f, 1.0f}), sub = r.AssignSub({2.0f, 0.0f});
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, set), (std::vector<double>{3, 4}));
  EXPECT_EQ(Values(session, add), (std::vector<double>{4, 5}));
  EXPECT_EQ(Values(session, sub), (std::vector<double>{2, 5}));
  EXPECT_EQ(Values(session, r), (std::vector<double>{2, 5}));
}

TEST(Variable, F065_literals_take_the_type_of_the_variable) {
  for (const bool resource : {false, true}) {
    for (const DType dtype : {DType::kInt64, DType::kFloat, DType::kDouble}) {
      Fresh f;
      const Variable v(5, {.name = "v", .dtype = dtype, .use_resource = resource});
      const Output set = v.Assign(2), add = v.AssignAdd(3), sub = v.AssignSub(IsFloating(dtype) ? Literal(1.5) : 1);
      ASSERT_TRUE(f.graph.status().ok()) << f.error();
      Session session(f.graph);
      Initialize(session);
      EXPECT_EQ(Value(session, set), 2);
      EXPECT_EQ(Value(session, add), 5);
      EXPECT_EQ(Value(session, sub), IsFloating(dtype) ? 3.5 : 4);
    }
  }
}

TEST(Variable, F065_an_assignment_that_fails_leaves_no_read) {
  Fresh f;
  const Variable r({1.0f, 2.0f}, {.name = "r", .use_resource = true});
  EXPECT_FALSE(r.Assign({1.0f, 2.0f, 3.0f}).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Dimension 0 in both shapes must be equal"));
  EXPECT_FALSE(f.graph.OperationByName("ReadVariableOp").ok());
}

TEST(Variable, without_a_legal_name_there_is_none) {
  Fresh f;
  const NameScope scope("s");
  EXPECT_FALSE(Variable(1.0f, {.name = "x y"}).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "'x y' is not a valid"));
  EXPECT_FALSE(GetVariable("a b", Shape::Of({2})).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "'a b' is not a valid"));
  EXPECT_TRUE(NodeNames(f.graph).empty());
  EXPECT_TRUE(GlobalVariables().empty());
}

TEST(Variable, F066_names_and_eval) {
  Fresh f;
  const Variable v1(7.0f, {.name = "v1"});
  EXPECT_EQ(v1.op().name(), "v1");
  EXPECT_EQ(v1.name(), "v1:0");
  Session session(f.graph);
  const AsDefaultSession in(session);
  ASSERT_TRUE(Succeeds(RunOperation(v1.initializer())));
  const Result<Tensor> value = Eval(v1);
  ASSERT_TRUE(Succeeds(value));
  EXPECT_EQ(value->scalar<float>(), 7);
}

TEST(Variable, F067_not_trainable) {
  Fresh f;
  const Variable frozen(2.0f, {.name = "frozen", .trainable = false});
  EXPECT_EQ(GlobalVariables().size(), 1u);
  EXPECT_TRUE(TrainableVariables().empty());
  GradientDescentOptimizer(0.1).Minimize(Square(frozen));
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "No variables to optimize."));
  const Variable w(3.0f, {.name = "w"});
  const Operation train = GradientDescentOptimizer(0.1).Minimize(frozen * w);
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_EQ(Value(session, frozen), 2);
  EXPECT_NEAR(Value(session, w), 2.8, 1e-6);
}

TEST(Variable, initialisers_fill_and_draw) {
  Fresh f;
  const Variable ones = GetVariable("ones", Shape::Of({2}), DType::kInt32, OnesInitializer());
  const Variable fives = GetVariable("fives", Shape::Of({2}), DType::kDouble, ConstantInitializer(5.5));
  const Variable uniform = GetVariable("u", Shape::Of({1000}), DType::kFloat, RandomUniformInitializer(2, 3, 1));
  const Variable truncated = GetVariable("t", Shape::Of({1000}), DType::kFloat, TruncatedNormalInitializer(0, 1, 1));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, ones), (std::vector<double>{1, 1}));
  EXPECT_EQ(Values(session, fives), (std::vector<double>{5.5, 5.5}));
  for (const double value : Values(session, uniform)) EXPECT_TRUE(value >= 2 && value < 3) << value;
  for (const double value : Values(session, truncated)) EXPECT_LE(std::abs(value), 2);
}

TEST(Variable, F060_initializers_of_several_devices_are_grouped) {
  Fresh f;
  const Variable here(1.0f, {.name = "here"});
  const DeviceScope other("/cpu:1");
  const Variable there(1.0f, {.name = "there"});
  const Operation init = VariablesInitializer({here, there}, "ini");
  ASSERT_EQ(init.control_inputs().size(), 2u);
  EXPECT_EQ(init.control_inputs()[1].name(), "ini/NoOp_1");
  EXPECT_EQ(init.control_inputs()[1].device(), "/device:CPU:1");
  EXPECT_EQ(init.control_inputs()[1].control_inputs(), std::vector<Operation>{there.initializer()});
}

TEST(Variable, F063_names_are_reported_by_the_host) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  const DeviceScope away("/gpu:0");
  EXPECT_EQ(ReportUninitializedVariables().op().device(), "/device:CPU:0");
}

TEST(Variable, F065_a_handle_has_the_shape_of_the_value) {
  Fresh f;
  const Operand value({1.0f, 2.0f});
  const Variable v(value, {.name = "v", .validate_shape = false, .use_resource = true});
  EXPECT_EQ(v.shape().ToTupleString(), "(2,)");
  EXPECT_EQ(v.value().shape().ToTupleString(), "(2,)");
  const Variable reference(value, {.name = "r", .validate_shape = false, .use_resource = false});
  EXPECT_FALSE(reference.shape().has_rank());
}

TEST(Variable, F065_changes_wait_for_what_a_cache_has) {
  Fresh f;
  const Variable v(1.0f, {.name = "v", .use_resource = true, .caching_device = "/cpu:0"});
  const Operation cached = v.snapshot().op();
  EXPECT_EQ(cached.name(), "v/Read/Identity");
  const Output one = Constant(1.0f), after = v.AssignAdd(one);
  EXPECT_EQ(after.op().control_inputs().size(), 1u);
  EXPECT_EQ(after.op().control_inputs()[0].type(), "AssignAddVariableOp");
  EXPECT_EQ(after.op().control_inputs()[0].control_inputs(), std::vector<Operation>{cached});
  EXPECT_TRUE(v.Assign(one).op().control_inputs()[0].control_inputs().empty());
}

TEST(Variable, initial_values_from_inside_of_branches_are_refused) {
  Fresh f;
  const Output flag = Flag("flag"), x = Real("x");
  for (const bool resource : {false, true}) {
    Cond(
        flag, [&] { return Variable(x + 1.0f, {.name = "v", .use_resource = resource}).value(); }, Returns(0));
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                      "/v/ is from inside a control-flow construct, such as a loop or conditional. When creating a "
                      "variable inside a loop or conditional, use a lambda as the initializer."));
  }
  const Output sum = WhileLoop([](const Output& v) { return Less(v, 3.0f); }, [](const Output& v) { return v + 1.0f; },
                               Constant(0.0f));
  const Variable outside(sum, {.name = "outside"});
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

}  // namespace
}  // namespace weir::test
