// Variable scopes: names, reuse, defaults. Numbers are rows of the feature list.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

const Shape kOne = Shape::Of({1});

Variable Get(std::string_view name) { return GetVariable(name, kOne); }

TEST(VariableScope, F029_prefixes_get_variable) {
  Fresh f;
  const VariableScope tet1("tet1");
  EXPECT_EQ(Get("var3").name(), "tet1/var3:0");
  const VariableScope tet2("tet2");
  EXPECT_EQ(Get("var4").name(), "tet1/tet2/var4:0");
}

std::string MadeInTe1() {
  const VariableScope te1("te1");
  return Get("var1").name();
}

TEST(VariableScope, F030_follows_the_call_made_inside) {
  Fresh f;
  const VariableScope te2("te2");
  EXPECT_EQ(Get("var2").name(), "te2/var2:0");
  EXPECT_EQ(MadeInTe1(), "te2/te1/var1:0");
}

TEST(VariableScope, F031_left_before_the_call) {
  Fresh f;
  {
    const VariableScope te2("te2");
    EXPECT_EQ(Get("var2").name(), "te2/var2:0");
  }
  EXPECT_EQ(MadeInTe1(), "te1/var1:0");
}

TEST(VariableScope, F032_a_scope_in_one_of_its_name_nests) {
  Fresh f;
  const VariableScope outer("scope");
  EXPECT_EQ(Get("w").name(), "scope/w:0");
  const VariableScope inner("scope");
  EXPECT_EQ(Get("w").name(), "scope/scope/w:0");
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

TEST(VariableScope, F033_an_object_enters_the_same_scope_again) {
  Fresh f;
  std::optional<VarScope> yin;
  {
    const VariableScope scope("yin");
    yin = scope.scope();
    Get("w");
    const VariableScope again(*yin);
    EXPECT_FALSE(Get("w").exists());
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kAlreadyExists, "Variable yin/w already exists, disallowed."));
    EXPECT_EQ(NoOp("o").name(), "yin/yin/o");
  }
  {
    const VariableScope other("other");
    const VariableScope back(*yin);
    EXPECT_EQ(Get("x").name(), "yin/x:0");
    EXPECT_EQ(NoOp("o").name(), "other/yin/o");
    EXPECT_EQ(back.original_name_scope(), "yin/");
  }
  const VariableScope text("yin");
  EXPECT_EQ(Get("y").name(), "yin/y:0");
  EXPECT_EQ(NoOp("o").name(), "yin_1/o");
}

TEST(VariableScope, F034_a_second_one_without_reuse) {
  Fresh f;
  const int line = __LINE__ + 1;
  Get("w_1");
  Get("w_1");
  const Status twice = f.graph.TakeStatus();
  EXPECT_TRUE(Fails(twice, Code::kAlreadyExists,
                    "Variable w_1 already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in "
                    "VarScope? Originally defined at: client/variable_scope_test.cc:"));
  EXPECT_GT(line, 0);
  const Variable plain(1.0f, {.name = "tv"});
  EXPECT_EQ(Get("tv").name(), "tv_1:0");
}

TEST(VariableScope, F035_reuse_wants_the_same_variable) {
  Fresh f;
  {
    const VariableScope foo("foo");
    Get("v");
  }
  {
    const VariableScope bar("bar", {.reuse = Reuse::kYes});
    EXPECT_FALSE(Get("v").exists());
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kNotFound,
                      "Variable bar/v does not exist, or was not created with tf.get_variable(). Did you mean to set "
                      "reuse=tf.AUTO_REUSE in VarScope?"));
  }
  const VariableScope foo("foo", {.reuse = Reuse::kYes});
  GetVariable("v", Shape::Of({2}));
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Trying to share variable foo/v, but specified shape (2,) and found shape (1,)."));
  GetVariable("v", kOne, DType::kInt32);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Trying to share variable foo/v, but specified dtype int32 and found dtype float32_ref."));
  EXPECT_EQ(GetVariable("v").name(), "foo/v:0");
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

/// Two layers with a weight and a bias each, as in the feature's example.
std::vector<Variable> ImageFilter(std::string_view op = "Conv2D") {
  std::vector<Variable> all;
  for (const char* layer : {"conv1", "conv2"}) {
    const VariableScope scope(layer);
    all.push_back(GetVariable("weights", kOne));
    all.push_back(GetVariable("biases", kOne, DType::kFloat, ZerosInitializer()));
    NoOp(op);
  }
  return all;
}

TEST(VariableScope, F036_reuse_variables_lasts_as_long_as_its_scope) {
  Fresh f;
  {
    const VariableScope scope("image_filters");
    const std::vector<Variable> first = ImageFilter();
    GetVariableScope().ReuseVariables();
    const std::vector<Variable> second = ImageFilter();
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].handle(), second[i].handle());
    const VariableScope inner("inner", {.reuse = Reuse::kNo});
    EXPECT_EQ(inner.scope().reuse(), Reuse::kYes);
  }
  EXPECT_EQ(GlobalVariables().size(), 4u);
  EXPECT_EQ(GetVariableScope().reuse(), Reuse::kNo);
  EXPECT_TRUE(Get("after").exists());
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

TEST(VariableScope, F037_an_object_with_reuse) {
  Fresh f;
  std::optional<VarScope> saved;
  {
    const VariableScope scope("image_filters1");
    saved = scope.scope();
    ImageFilter();
  }
  const VariableScope again(*saved, {.reuse = Reuse::kYes});
  EXPECT_EQ(ImageFilter()[2].name(), "image_filters1/conv2/weights:0");
  EXPECT_EQ(GlobalVariables().size(), 4u);
}

TEST(VariableScope, F038_reuse_over_nested_scopes) {
  Fresh f;
  {
    const VariableScope model("model");
    ImageFilter();
  }
  {
    const VariableScope model("model", {.reuse = Reuse::kYes});
    ImageFilter();
  }
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables()) names.push_back(v.op().name());
  EXPECT_EQ(names, (std::vector<std::string>{"model/conv1/weights", "model/conv1/biases", "model/conv2/weights",
                                             "model/conv2/biases"}));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("model_1/conv1/Conv2D")));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("model_1/conv2/Conv2D")));
}

TEST(VariableScope, F039_without_scopes) {
  Fresh f;
  for (int call = 0; call < 2; ++call) {
    const Variable weights(1.0f, {.name = "conv1_weights"}), biases(1.0f, {.name = "conv1_biases"});
  }
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables()) names.push_back(v.op().name());
  EXPECT_EQ(names, (std::vector<std::string>{"conv1_weights", "conv1_biases", "conv1_weights_1", "conv1_biases_1"}));
  Fresh g;
  Get("conv1_weights");
  Get("conv1_weights");
  EXPECT_TRUE(Fails(g.graph.TakeStatus(), Code::kAlreadyExists, "Variable conv1_weights already exists, disallowed."));
}

TEST(VariableScope, F040_name_scopes_do_not_count) {
  Fresh f;
  const NameScope hello("hello");
  const Variable arr1 = Get("arr1");
  EXPECT_EQ(hello.path(), "hello/");
  EXPECT_EQ(arr1.name(), "arr1:0");
  EXPECT_EQ(GetVariableScope().original_name_scope(), "");
  for (const std::string& name : NodeNames(f.graph)) EXPECT_TRUE(name.starts_with("arr1")) << name;
}

TEST(VariableScope, F041_the_object_knows_both_names) {
  Fresh f;
  {
    const VariableScope hello("hello");
    EXPECT_EQ(hello.name(), "hello");
    EXPECT_EQ(Get("arr1").name(), "hello/arr1:0");
    EXPECT_EQ(hello.original_name_scope(), "hello/");
    const VariableScope xixi("xixi");
    EXPECT_EQ(xixi.original_name_scope(), "hello/xixi/");
  }
  const VariableScope hello("hello");
  EXPECT_EQ(hello.name(), "hello");
  EXPECT_EQ(hello.original_name_scope(), "hello_1/");
}

TEST(VariableScope, F042_name_scope_around_variable_scope) {
  Fresh f;
  const NameScope name1("name1");
  const VariableScope var1("var1");
  const Variable w = Get("w");
  EXPECT_EQ(w.name(), "var1/w:0");
  EXPECT_EQ(BuildOp("AddV2", {w, Constant({3.0f})}, {}, "Add").output(0).name(), "name1/var1/Add:0");
  EXPECT_EQ((w + Constant({3.0f})).name(), "name1/var1/add_1:0");
}

TEST(VariableScope, F043_F044_nested_scopes_name_their_path) {
  Fresh f;
  {
    const NameScope one("scope1"), two("scope2");
    EXPECT_EQ(two.path(), "scope1/scope2/");
    EXPECT_EQ(f.graph.name_scope(), "scope1/scope2");
  }
  const VariableScope one("scope1"), two("scope2");
  EXPECT_EQ(two.name(), "scope1/scope2");
  EXPECT_EQ(GetVariableScope().name(), "scope1/scope2");
}

TEST(VariableScope, F045_plain_variables_take_both_prefixes) {
  Fresh f;
  {
    const NameScope hidden("hidden");
    EXPECT_EQ(Variable(1.0f, {.name = "weights"}).op().name(), "hidden/weights");
  }
  {
    const NameScope n("n");
    const VariableScope v("v");
    EXPECT_EQ(Variable(1.0f, {.name = "x"}).name(), "n/v/x:0");
    EXPECT_EQ(Get("y").name(), "v/y:0");
  }
  EXPECT_EQ(Variable(1.0f).name(), "Variable:0");
  EXPECT_EQ(Variable(1.0f).name(), "Variable_1:0");
}

TEST(VariableScope, F046_default_names_are_made_unique) {
  Fresh f;
  for (const char* wanted : {"scope/w:0", "scope_1/w:0"}) {
    const VariableScope scope(std::nullopt, "scope");
    EXPECT_EQ(Get("w").name(), wanted);
  }
  { const VariableScope given("given"); }
  {
    const VariableScope unlike(std::nullopt, "given");
    EXPECT_EQ(unlike.name(), "given_1");
  }
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  for (const Reuse reuse : {Reuse::kYes, Reuse::kAuto}) {
    { const VariableScope wrong(std::nullopt, "x", {.reuse = reuse}); }
    EXPECT_TRUE(
        Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "reuse=True cannot be used without a name_or_scope"));
  }
}

TEST(VariableScope, an_empty_name_is_a_level_of_its_own) {
  Fresh f;
  {
    const VariableScope a("a"), empty("");
    EXPECT_EQ(empty.name(), "a/");
    EXPECT_EQ(empty.original_name_scope(), "");
    EXPECT_EQ(Get("w").name(), "a//w:0");
    EXPECT_EQ(NoOp("n").name(), "a/n");
  }
  const VariableScope root("");
  EXPECT_EQ(Get("w").name(), "w:0");
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

TEST(VariableScope, F047_defaults_reach_inner_scopes) {
  Fresh f;
  const VariableScope scope("half", {.initializer = ConstantInitializer(3), .dtype = DType::kDouble});
  const VariableScope inner("inner");
  const Variable v = Get("v");
  EXPECT_EQ(v.dtype(), DType::kDouble);
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, v), 3);
}

TEST(VariableScope, F048_reuse_works_in_any_name_scope) {
  Fresh f;
  const VariableScope scope("s");
  const Variable v = Get("v");
  GetVariableScope().ReuseVariables();
  const NameScope anywhere("anywhere");
  EXPECT_EQ(GetVariableScope().name(), "s");
  EXPECT_EQ(Get("v").handle(), v.handle());
}

TEST(VariableScope, F049_towers) {
  Fresh f;
  for (int i = 0; i < 2; ++i) {
    const NameScope tower("tower_" + std::to_string(i));
    const VariableScope conv1("conv1", {.reuse = Reuse::kAuto});
    EXPECT_EQ(Get("weights").name(), "conv1/weights:0");
    EXPECT_EQ(NoOp("Conv2D").name(), "tower_" + std::to_string(i) + "/conv1/Conv2D");
  }
  EXPECT_EQ(GlobalVariables().size(), 1u);
}

TEST(VariableScope, F050_summaries_are_tagged_by_name_scope) {
  Fresh f;
  const NameScope scope("summary_gradients");
  const Output summary = summary::Histogram("name", Constant({1.0f, 2.0f}));
  EXPECT_EQ(summary.op().name(), "summary_gradients/name");
  Session session(f.graph);
  const Result<Fetched> tag = session.Run("summary_gradients/name/tag:0");
  ASSERT_TRUE(Succeeds(tag));
  EXPECT_EQ(tag->tensor().as<std::string>()[0], "summary_gradients/name");
}

TEST(VariableScope, F367_regularizers_are_inherited) {
  Fresh f;
  const Regularizer half = [](const Operand& w) { return ReduceSum(Square(w)) * 0.5f; };
  {
    const VariableScope l2("l2", {.initializer = OnesInitializer(), .regularizer = half});
    GetVariable("w", Shape::Of({2}));
    {
      const VariableScope in("in");
      Get("b");
      const VariableScope off("off", {.regularizer = NoRegularizer()});
      Get("free");
    }
    {
      const VariableScope other("other");
      Get("c");
    }
    const Variable plain(5.0f);
    GetVariableScope().ReuseVariables();
    GetVariable("w", Shape::Of({2}));
  }
  const std::vector<Output> each = losses::GetRegularizationLosses();
  ASSERT_EQ(each.size(), 3u) << f.error();
  EXPECT_EQ(each[0].name(), "l2/w/Regularizer/mul:0");
  const Output all = losses::GetRegularizationLoss(), in = losses::GetRegularizationLoss("l2/in");
  const Output none = losses::GetRegularizationLoss("elsewhere");
  EXPECT_EQ(all.name(), "total_regularization_loss:0");
  losses::AddLoss(Constant(2.0f));
  const Output total = losses::GetTotalLoss(), bare = losses::GetTotalLoss(losses::Regularization::kLeaveOut);
  EXPECT_EQ(total.name(), "total_loss:0");
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, all), 2);
  EXPECT_EQ(Value(session, in), 0.5);
  EXPECT_EQ(Value(session, none), 0);
  EXPECT_EQ(Value(session, total), 4);
  EXPECT_EQ(Value(session, bare), 2);
  Fresh g;
  losses::GetTotalLoss();
  EXPECT_TRUE(Fails(g.graph.TakeStatus(), Code::kInvalidArgument,
                    "inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape"));
}

TEST(VariableScope, regularizers_of_weights) {
  Fresh f;
  const Output w = Constant({3.0f, -4.0f});
  const Output l1 = L1Regularizer(0.5)(w), l2 = L2Regularizer(2)(w), both = L1L2Regularizer(0.5, 2)(w);
  EXPECT_EQ(l1.name(), "l1_regularizer:0");
  EXPECT_EQ(both.name(), "l1_l2_regularizer:0");
  EXPECT_FALSE(L1Regularizer(0)(w).exists());
  Session session(f.graph);
  EXPECT_EQ(Value(session, l1), 3.5);
  EXPECT_EQ(Value(session, l2), 25);
  EXPECT_EQ(Value(session, both), 28.5);
  EXPECT_FALSE(L2Regularizer(-1)(w).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Setting a scale less than 0 on a regularizer"));
}

TEST(VariableScope, F368_auto_reuse) {
  Fresh f;
  const auto in_scope = [&](const auto& make) {
    const VariableScope scope("s", {.reuse = Reuse::kAuto});
    return make();
  };
  const Variable first = in_scope([] { return Get("v"); });
  EXPECT_EQ(first.name(), "s/v:0");
  EXPECT_EQ(in_scope([] { return Get("v"); }).handle(), first.handle());
  in_scope([] {
    const VariableScope inner("inner", {.reuse = Reuse::kNo});
    EXPECT_EQ(inner.scope().reuse(), Reuse::kAuto);
    return 0;
  });
  in_scope([] { return GetVariable("v", Shape::Of({2})); });
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "but specified shape (2,) and found shape (1,)."));
  const auto three = [] { return GetVariable("i", {.initializer = 3}); };
  EXPECT_EQ(in_scope(three).dtype(), DType::kInt32);
  EXPECT_FALSE(in_scope(three).exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Trying to share variable s/i, but specified dtype float32 and found dtype int32_ref."));
  EXPECT_TRUE(in_scope([] { return GetVariable("i", {.dtype = DType::kInt32, .initializer = 3}); }).exists());
  in_scope([] { return GetVariable("noshape"); });
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Variable s/noshape did not get an initializer, so its `shape` argument must be specified."));
}

TEST(VariableScope, F369_custom_getters_run_from_the_inside_out) {
  Fresh f;
  std::vector<std::string> calls;
  const auto note = [&](const char* who) -> CustomGetter {
    return [&calls, who](const VariableGetter& getter, const std::string& name, const VariableArgs& args) {
      calls.push_back(std::string(who) + " " + name);
      return getter(name, args);
    };
  };
  const VariableScope a("a", {.custom_getter = note("outer")});
  {
    const VariableScope b("b", {.custom_getter = note("inner")});
    EXPECT_EQ(Get("v").name(), "a/b/v:0");
  }
  EXPECT_EQ(calls, (std::vector<std::string>{"inner a/b/v", "outer a/b/v"}));
  const VariableScope changed(GetVariableScope(),
                              {.custom_getter = [](const auto& getter, const auto& name, auto args) {
                                args.trainable = false;
                                return getter("pre_" + name.substr(2), args);
                              }});
  const Variable renamed = Get("k");
  EXPECT_EQ(renamed.name(), "pre_k:0");
  EXPECT_FALSE(renamed.trainable());
  VariableArgs twice;
  twice.shape = kOne;
  twice.initializer = OnesInitializer();
  twice.custom_getter = [](const auto& getter, const auto& name, const auto& args) {
    return Variable::FromValue(getter(name, args) * 2.0f);
  };
  const Variable value = GetVariable("t", twice);
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, value), 2);
}

TEST(VariableScope, wrong_nesting_is_an_error) {
  Fresh f;
  auto outer = std::make_unique<VariableScope>("x");
  auto inner = std::make_unique<VariableScope>("y");
  outer.reset();
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kFailedPrecondition, "Improper nesting of variable_scope."));
  inner.reset();
}

TEST(VariableScope, variables_of_a_scope) {
  Fresh f;
  Get("before");
  const VariableScope scope("s");
  Get("v");
  {
    const VariableScope inner("in");
    Get("w");
  }
  EXPECT_EQ(scope.scope().GlobalVariables().size(), 2u);
  EXPECT_EQ(scope.scope().TrainableVariables()[1].name(), "s/in/w:0");
  EXPECT_TRUE(scope.scope().LocalVariables().empty());
}

TEST(VariableScope, layers_are_named_in_it) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 4}), "x");
  {
    const VariableScope s("s");
    EXPECT_EQ(Dense(x, 3).op().name(), "s/dense/BiasAdd");
    EXPECT_EQ(Dense(x, 3, Relu).op().name(), "s/dense_1/Relu");
  }
  Dense(x, 3);
  Dense(x, 3, {}, "out");
  {
    const NameScope ns("ns");
    EXPECT_EQ(Dense(x, 3).op().name(), "ns/dense/BiasAdd");
  }
  Dense(x, 3, {}, "dense", {.reuse = Reuse::kYes});
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables()) names.push_back(v.op().name());
  EXPECT_EQ(names, (std::vector<std::string>{"s/dense/kernel", "s/dense/bias", "s/dense_1/kernel", "s/dense_1/bias",
                                             "dense/kernel", "dense/bias", "out/kernel", "out/bias", "dense_1/kernel",
                                             "dense_1/bias"}));
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

TEST(VariableScope, use_resource_counts_for_plain_variables) {
  Fresh f;
  const VariableScope scope("s", {.use_resource = true});
  EXPECT_EQ(Variable(1.0f, {.name = "a"}).op().type(), "VarHandleOp");
  EXPECT_EQ(Variable(1.0f, {.name = "b", .use_resource = false}).op().type(), "VariableV2");
  const VariableScope inner("i", {.use_resource = false});
  EXPECT_EQ(Variable(1.0f, {.name = "c"}).op().type(), "VariableV2");
}

TEST(VariableScope, the_empty_name_without_names_keeps_the_name_scope) {
  Fresh f;
  const VariableScope outer("b");
  EXPECT_EQ(VariableScope("", {.name_scope = NameScopeToo::kNo}).original_name_scope(), "b/");
  EXPECT_EQ(VariableScope("").original_name_scope(), "");
}

}  // namespace
}  // namespace weir::test
