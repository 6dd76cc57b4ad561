// Typical first programs: shapes, lists and numbers in braces, operators, indices, printing. Warnings are errors here,
// so compiling is part of each test.
#include <sstream>

#include "core/base/errors.h"
#include "tests/unit/client/fresh.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"  // a part of -Wextra that weir's own build does not enable

namespace weir::test {
namespace {

using Names = std::vector<std::string>;

std::string Shown(const auto& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string ShapeOfResult(Session& session, const Output& value) {
  const Result<Fetched> fetched = session.Run(value);
  return fetched.ok() ? Shown(fetched->tensor().shape()) : fetched.status().ToString();
}

TEST(FirstPrograms, ShapesAreLists) {
  Fresh f;
  EXPECT_EQ(Shown(Placeholder(DType::kFloat, {-1, 4}, "x").shape()), "(?, 4)");
  EXPECT_EQ(Shown(Placeholder(DType::kFloat, {}, "scalar").shape()), "()");
  EXPECT_EQ(Shown(Placeholder(DType::kFloat).shape()), "<unknown>");
  EXPECT_EQ(Shown(PlaceholderWithDefault(Zeros({2, 3}), {-1, 3}).shape()), "(?, 3)");
  EXPECT_EQ(Shown(GetVariable("w", {3, 2}).shape()), "(3, 2)");
  EXPECT_EQ(Shown(GetVariable("s", {}).shape()), "()");
  EXPECT_EQ(Shown(GetVariable("n", {2}, DType::kInt64, ZerosInitializer()).shape()), "(2,)");
  EXPECT_EQ(Shown(GetVariable("o", {.shape = {2, 2}, .trainable = false}).shape()), "(2, 2)");
  EXPECT_EQ(Shown(Ones({2, 3}).shape()), "(2, 3)");
  EXPECT_EQ((Shape{2, 3}), Shape::Of({2, 3}));
  EXPECT_EQ((PartialShape{-1, 4}), PartialShape::Of({-1, 4}));
  EXPECT_EQ(Tensor::Make(DType::kFloat, {2, 3})->elements(), 6);
  EXPECT_EQ(Shown(Constant({}).shape()), "(0,)");
  EXPECT_TRUE(Succeeds(f.graph.status()));
}

TEST(FirstPrograms, NestedListsAreOneVariable) {
  Fresh f;
  EXPECT_EQ(Shown(Variable({{1.0, 2.0}}).shape()), "(1, 2)");
  EXPECT_EQ(Shown(Variable({{1.0, 2.0}}, {.name = "named"}).shape()), "(1, 2)");
  EXPECT_EQ(Shown(Variable({{{1, 2, 3}}}).shape()), "(1, 1, 3)");
  EXPECT_EQ(Shown(Variable({1.0, 2.0}).shape()), "(2,)");
  EXPECT_EQ(Shown(Variable{1.0}.shape()), "()");
  const Variable v(2.0);
  EXPECT_EQ(Variable(v).name(), v.name());
  EXPECT_EQ(Variable{v}.name(), v.name());
}

TEST(FirstPrograms, RunTakesListsOfAnything) {
  Fresh f;
  const Variable v(3.0, {.name = "v"});
  const Output x = Placeholder(DType::kFloat, {}, "x"), y = x + v;
  const Operation nothing = NoOp();
  Session session({.device_count = {{"CPU", 1}}});
  Initialize(session);
  const Result<Fetched> two = session.Run({x, y}, {{x, 1}});
  ASSERT_TRUE(Succeeds(two));
  EXPECT_EQ(Shown(*two), "[1, 4]");
  const Result<Fetched> mixed = session.Run({y, nothing, v, "v:0", {y, y}}, {{x, 2}});
  ASSERT_TRUE(Succeeds(mixed));
  EXPECT_EQ(Shown(*mixed), "[5, None, 3, 3, [5, 5]]");
  EXPECT_EQ(session.Run({v})->size(), 1u);
  EXPECT_EQ(Shown(*session.Run({})), "[]");
  EXPECT_EQ(Shown(*session.Run(GlobalVariables())), "[3]");
  EXPECT_EQ(Shown(*session.Run(Fetch::Map{{"y", y}, {"v", v}}, {{x, 1}})), "{'v': 3, 'y': 4}");
  const ConfigProto config = {.device_count = {{"CPU", 1}}};
  EXPECT_TRUE(Succeeds(Session(config).status()));
  const Result<Callable> callable = session.MakeCallable({y, v}, {x});
  ASSERT_TRUE(Succeeds(callable));
  EXPECT_EQ(Shown(*(*callable)({7})), "[10, 3]");
}

TEST(FirstPrograms, SaversTakeOptionsListsAndKeys) {
  Fresh f;
  const Variable v(1.0, {.name = "v"}), w(2.0, {.name = "w"});
  const TemporaryFolder folder;
  Session session;
  Initialize(session);
  Saver all({.max_to_keep = 2});
  ASSERT_TRUE(Succeeds(all.Save(session, folder / "all")));
  Saver both({v, w}), one({v});
  EXPECT_TRUE(Succeeds(both.Restore(session, folder / "all")));
  EXPECT_TRUE(Succeeds(one.Restore(session, folder / "all")));
  Saver keyed({{"a", v}, {"b", w}}), single({{"a", w}});
  ASSERT_TRUE(Succeeds(keyed.Save(session, folder / "keyed", {.global_step = 1})));
  EXPECT_TRUE(Succeeds(single.Restore(session, folder / "keyed-1")));
  EXPECT_EQ(Value(session, w), 1);
}

TEST(FirstPrograms, GradientsTakeVariablesAndValues) {
  Fresh f;
  for (const bool resource : {false, true}) {
    const Variable v(3.0, {.use_resource = resource}), w(2.0, {.use_resource = resource});
    const Output x = Constant(5.0), y = v * v * x;
    Session session;
    Initialize(session);
    const auto by_both = Gradients({y, w * w}, {v, x, w});
    ASSERT_TRUE(Succeeds(by_both));
    EXPECT_EQ(Value(session, (*by_both)[0].values), 30);
    EXPECT_EQ(Value(session, (*by_both)[1].values), 9);
    EXPECT_EQ(Value(session, (*by_both)[2].values), 4);
    const auto by_one = Gradients(y, v);
    ASSERT_TRUE(Succeeds(by_one));
    EXPECT_EQ(Value(session, (*by_one)[0].values), 30);
    const auto by_all = Gradients(y, std::vector<Variable>{v, w});
    ASSERT_TRUE(Succeeds(by_all));
    EXPECT_FALSE((*by_all)[1].exists());
  }
}

TEST(FirstPrograms, BranchesReturnVariables) {
  Fresh f;
  const Variable v(3.0), w(4.0, {.use_resource = true});
  const Output p = Flag("p");
  const Output either = Cond(
      p, [&] { return v; }, [&] { return w; });
  const Output value = Cond(
      p, [&] { return v + 1; }, [&] { return w; });
  const LoopVars loop = WhileLoop([](const LoopVars& at) { return at[0] < 3; },
                                  [&](const LoopVars& at) -> LoopVars {
                                    return {at[0] + 1, w};
                                  },
                                  {0, 0.0});
  Session session;
  Initialize(session);
  EXPECT_EQ(Value(session, either, {{p, true}}), 3);
  EXPECT_EQ(Value(session, either, {{p, false}}), 4);
  EXPECT_EQ(Value(session, value, {{p, true}}), 4);
  EXPECT_EQ(Value(session, loop[1]), 4);
}

TEST(FirstPrograms, ComparisonsAreOps) {
  Fresh f;
  const Variable v(3.0, {.name = "v"});
  const Output x = Placeholder(DType::kFloat, {}, "x");
  EXPECT_EQ((x < v).name(), "Less:0");
  EXPECT_EQ((v >= 3).name(), "GreaterEqual:0");
  const Output mirrored = 1.0 < x;
  EXPECT_EQ(mirrored.name(), "Greater:0");
  EXPECT_EQ(NodeNames(f.graph).at(NodeNames(f.graph).size() - 2), "Greater/y");
  Session session;
  Initialize(session);
  const Result<Fetched> all = session.Run({x<v, x <= 3, v> x, x >= 2.0, mirrored, 7 % x, FloorDiv(7, x)}, {{x, 2}});
  ASSERT_TRUE(Succeeds(all));
  EXPECT_EQ(Shown(*all), "[1, 1, 1, 1, 1, 1, 3]");
  EXPECT_TRUE(x == x);
  EXPECT_FALSE(x == Identity(x));
}

TEST(FirstPrograms, CompoundAssignmentNamesANewValue) {
  Fresh f;
  const Output x = Constant(7.0);
  Output y = x;
  y += 1;
  EXPECT_EQ(y.name(), "add:0");
  y *= x;
  y -= 2.0;
  y /= 2;
  y %= 10;
  EXPECT_EQ(y.name(), "mod:0");
  EXPECT_EQ(x.name(), "Const:0");
  Session session;
  EXPECT_EQ(Value(session, y), 7);
}

TEST(FirstPrograms, F154_IndicesAreStridedSlices) {
  Fresh f;
  const Output x = Constant({{1, 2, 3}, {4, 5, 6}}, DType::kInvalid, "x");
  EXPECT_EQ(x[0].name(), "strided_slice:0");
  EXPECT_EQ(NodeNames(f.graph),
            (Names{"x", "strided_slice/stack", "strided_slice/stack_1", "strided_slice/stack_2", "strided_slice"}));
  const Variable v({{1.0, 2.0}, {3.0, 4.0}});
  const Output i = Placeholder(DType::kInt32, {}, "i");
  const Output picked = x[{i, 0}];
  EXPECT_TRUE(f.graph.OperationByName("strided_slice_1/stack/1").ok());
  EXPECT_TRUE(f.graph.OperationByName("add").ok());
  EXPECT_EQ(f.graph.OperationByName("strided_slice_1/stack")->type(), "Pack");
  Session session;
  Initialize(session);
  const Result<Fetched> all =
      session.Run({x[0], x[-1], x[{1, 2}], x[Span{1}], x[{Span{}, Span{0, 2}}], x[{kEllipsis, Span{.stride = -1}}],
                   x[{0, kNewAxis, Span{.begin = 1}}], v[1], picked, x[{i, Span{.end = i + 1}}]},
                  {{i, 1}});
  ASSERT_TRUE(Succeeds(all));
  EXPECT_EQ(Shown(*all),
            "[[1 2 3], [4 5 6], 6, [[4 5 6]], [[1 2]\n [4 5]], [[3 2 1]\n [6 5 4]], [[2 3]], [3 4], 4, [4 5]]");
  EXPECT_EQ(ShapeOfResult(session, x[{}]), "(2, 3)");
  EXPECT_FALSE(x[2].exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "slice index 2 of dimension 0 out of bounds"));
}

TEST(FirstPrograms, F154_IndicesOutOfRangeAreFoundByTheRun) {
  Fresh f;
  const Output v = Constant({1.0f, 2.0f, 3.0f}), i = Placeholder(DType::kInt32, {}, "i");
  const Output any = Placeholder(DType::kFloat, PartialShape(), "any");
  const Output element = v[i], corner = any[{0, i}];
  const LoopVars sum = WhileLoop([](const LoopVars& now) { return now[0] < 3; },
                                 [&](const LoopVars& now) {
                                   return LoopVars{now[0] + 1, now[1] + v[now[0]]};
                                 },
                                 {0, 0.0f});
  const LoopVars beyond = WhileLoop([](const LoopVars& now) { return now[0] < 5; },
                                    [&](const LoopVars& now) {
                                      return LoopVars{now[0] + 1, now[1] + v[now[0]]};
                                    },
                                    {0, 0.0f});
  Session session;
  const Literal matrix({{1.0f, 2.0f}, {3.0f, 4.0f}});
  for (int round = 0; round < 3; ++round) {  // compiled for the shapes, then without them
    EXPECT_EQ(Value(session, element, {{i, -3}}), 1);
    EXPECT_EQ(Value(session, sum[1]), 6);
    EXPECT_TRUE(
        Fails(session.Run(element, {{i, 5}}), Code::kInvalidArgument, "slice index 5 of dimension 0 out of bounds."));
    EXPECT_TRUE(
        Fails(session.Run(element, {{i, -4}}), Code::kInvalidArgument, "slice index -1 of dimension 0 out of bounds."));
    EXPECT_TRUE(Fails(session.Run(corner, {{any, matrix}, {i, 7}}), Code::kInvalidArgument,
                      "slice index 7 of dimension 1 out of bounds."));
    EXPECT_TRUE(Fails(session.Run(beyond[1]), Code::kInvalidArgument, "slice index 3 of dimension 0 out of bounds."));
  }
  EXPECT_FALSE(v[-4].exists());
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "slice index -1 of dimension 0 out of bounds"));
}

TEST(FirstPrograms, F009_F024_EverythingPrints) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {-1, 784}, "x");
  EXPECT_EQ(Shown(x), "Tensor(\"x:0\", shape=(?, 784), dtype=float32)");
  EXPECT_EQ(Shown(x.op()), "<tf.Operation 'x' type=Placeholder>");
  EXPECT_EQ(Shown(Variable(1.0f, {.name = "w"})), "<tf.Variable 'w:0' shape=() dtype=float32_ref>");
  EXPECT_EQ(Shown(x.shape()), "(?, 784)");
  EXPECT_EQ(Shown(Shape{3}), "(3,)");
  EXPECT_EQ(Shown(PartialShape()), "<unknown>");
  EXPECT_EQ(Shown(x.dtype()), "<dtype: 'float32'>");
  EXPECT_EQ(Shown(Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4})), "[[1 2]\n [3 4]]");
  EXPECT_EQ(Shown(Tensor()), "None");
  EXPECT_EQ(Shown(Output()), "None");
  EXPECT_EQ(Shown(InvalidArgument("no")), "INVALID_ARGUMENT: no");
}

/// Trains a variable from 1.0 with the gradient 1 for two steps, under the rates 0.5 and 0.25.
template <class Make>
std::vector<double> Trained(Make make, bool resource, DType rate_type = DType::kFloat) {
  Fresh f;
  const Output rate = Placeholder(rate_type, {}, "rate");
  const Variable v(1.0, {.name = "v", .use_resource = resource});
  const Operation train = make(rate)->Minimize(v * 1.0f);
  EXPECT_TRUE(Succeeds(f.graph.status()));
  EXPECT_FALSE(f.graph.OperationByName("Optimizer/learning_rate").ok());
  Session session;
  Initialize(session);
  std::vector<double> values;
  for (const double now : {0.5, 0.25}) {
    EXPECT_TRUE(Succeeds(session.Run(train, {{rate, now}})));
    values.push_back(Value(session, v));
  }
  return values;
}

TEST(FirstPrograms, LearningRatesAreValues) {
  const auto descent = [](Output rate) { return std::make_unique<GradientDescentOptimizer>(rate, "Optimizer"); };
  const auto momentum = [](Output rate) { return std::make_unique<MomentumOptimizer>(rate, rate, false, "Optimizer"); };
  const auto adam = [](Output rate) { return std::make_unique<AdamOptimizer>(rate, 0.9, 0.999, 1e-8, "Optimizer"); };
  for (const bool resource : {false, true}) {
    EXPECT_EQ(Trained(descent, resource), (std::vector<double>{0.5, 0.25}));
    EXPECT_EQ(Trained(descent, resource, DType::kDouble), (std::vector<double>{0.5, 0.25}));
    EXPECT_EQ(Trained(momentum, resource), (std::vector<double>{0.5, 0.1875}));
    const std::vector<double> moved = Trained(adam, resource, DType::kDouble);
    EXPECT_NEAR(moved[0], 0.5, 1e-5);
    EXPECT_NEAR(moved[1], 0.25, 1e-5);
  }
}

TEST(FirstPrograms, ARateOfAnotherTypeIsCastUnderTensorFlowsName) {
  Fresh f;
  const Variable v(1.0, {.name = "v"});
  AdamOptimizer(Placeholder(DType::kDouble, {})).Minimize(v * 1.0f);
  EXPECT_TRUE(f.graph.OperationByName("Adam/update_v/Cast_2").ok());
  EXPECT_FALSE(f.graph.OperationByName("Adam/update_v/Cast").ok());
  EXPECT_TRUE(f.graph.OperationByName("Adam/beta1").ok());
  EXPECT_FALSE(f.graph.OperationByName("Adam/learning_rate").ok());
}

TEST(FirstPrograms, ALearningRateMayBeAVariableThatDecays) {
  Fresh f;
  const Variable step = GetOrCreateGlobalStep(), v(4.0, {.name = "v"});
  const Variable rate(1.0, {.name = "rate", .trainable = false});
  const Operation train = GradientDescentOptimizer(rate).Minimize(v * 1.0f, {.global_step = step});
  const Operation halve = rate.Assign(rate / 2).op();
  Session session;
  Initialize(session);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Succeeds(session.Run({train}))) << Shown(session.Run(halve).status());
  EXPECT_EQ(Shown(*session.Run({v, rate, step})), "[1, 1, 3]");
  ASSERT_TRUE(Succeeds(session.Run(halve)));
  ASSERT_TRUE(Succeeds(session.Run(train)));
  EXPECT_EQ(Value(session, v), 0.5);
}

TEST(FirstPrograms, TransposesAreNamed) {
  Fresh f;
  const Output x = Constant({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(Transpose(x, "t").name(), "t:0");
  EXPECT_EQ(Shown(Transpose(x, {0, 1}).shape()), "(2, 3)");
  EXPECT_EQ(Shown(Transpose(x, {1, 0}, "u")), "Tensor(\"u:0\", shape=(3, 2), dtype=int32)");
  EXPECT_EQ(Shown(Transpose(Constant({1, 2}), {0}).shape()), "(2,)");
  EXPECT_EQ(Transpose(x).name(), "transpose_2:0");
}

/// Designated initializers of one member of each options struct give no warning about the others.
TEST(FirstPrograms, OptionsAreNamedOneByOne) {
  Fresh f;
  const Variable v(1.0, {.name = "v"});
  const Output x = Constant({{1.0, 2.0}});
  EXPECT_TRUE(ReduceSum(x, 0, {.keepdims = true}).exists());
  EXPECT_TRUE(Cumsum(x, 0, {.reverse = true}).exists());
  EXPECT_TRUE(MatMul(x, x, {.transpose_b = true}).exists());
  EXPECT_TRUE(RandomUniform({2}, 0, 1, {.seed = 1}).exists());
  EXPECT_TRUE(StridedSlice(x, {0}, {1}, {1}, {.begin_mask = 1}).exists());
  EXPECT_TRUE(Dense(x, 2, Relu, "dense", {.use_bias = false}).exists());
  EXPECT_TRUE(Print(x, {x}, {.message = "x"}).exists());
  EXPECT_TRUE(PrintV2({x}, {.sep = ","}).exists());
  EXPECT_TRUE(Assign(v, 2.0, {.validate_shape = true}).exists());
  EXPECT_TRUE(OneHot({0, 1}, 2, {.axis = 0}).exists());
  EXPECT_TRUE(GetVariable("g", {.shape = {2}}).exists());
  EXPECT_TRUE(WhileLoop([](const Output& i) { return i < 3; }, [](const Output& i) { return i + 1; }, 0,
                        {.parallel_iterations = 2})
                  .exists());
  EXPECT_TRUE(Succeeds(Gradients({x * v}, {v}, {.unconnected = Unconnected::kZero})));
  const VariableScope scope("scope", {.reuse = Reuse::kAuto});
  const AdamOptimizer adam(0.1);
  EXPECT_TRUE(AdamOptimizer(0.1).Minimize(ReduceSum(x * v), {.name = "train"}).exists());
  EXPECT_TRUE(Succeeds(f.graph.status()));
}

}  // namespace
}  // namespace weir::test

#pragma GCC diagnostic pop
