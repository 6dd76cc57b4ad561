// No use of the client API aborts the process: every builder, method and run accepts values, operations and variables
// that do not exist, and null functions.
#include <functional>
#include <utility>

#include "core/base/errors.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// All uses of a builder's result.
void Use(const Output& x) {
  (void)x.name();
  (void)x.dtype();
  (void)x.shape();
  (void)x.ToString();
  (void)x.DebugString();
  x.SetShape(PartialShape::Of({2}));
  (void)x.op().node().name();
  (void)x.op().ToString();
  (void)x.op().output(1);
  (void)x.op().outputs()[7];
  (void)x.op().inputs()[0].op().control_inputs()[3].name();
}
void Use(const Operation& op) { Use(op.output(0)); }
void Use(const List<Output>& list) {
  for (const Output& x : list) Use(x);
  Use(list[list.size()]);
  Use(list.back());
}

struct Builder {
  std::string name;
  std::function<void(const Output& x)> build;
};

std::vector<Builder> Families() {
  std::vector<Builder> all;
  for (const UnaryOp op : {Abs,     Negative, Sign,       Reciprocal, Square,   Sqrt,     Rsqrt,        Exp,
                           Expm1,   Log,      Log1p,      Floor,      Ceil,     Round,    Relu,         Tanh,
                           Sigmoid, Softmax,  LogSoftmax, ZerosLike,  OnesLike, Identity, StopGradient, LogicalNot}) {
    all.push_back({op.op, [op](const Output& x) { Use(op(x)); }});
  }
  for (const BinaryOp op : {Subtract, Multiply, DivNoNan, FloorDiv, FloorMod, Pow, Maximum, Minimum, SquaredDifference,
                            Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, LogicalAnd, LogicalOr}) {
    all.push_back({op.op, [op](const Output& x) { Use(op(x, 1.0f)); }});
    all.push_back({op.op, [op](const Output& x) { Use(op(1.0f, x)); }});
    all.push_back({op.op, [op](const Output& x) { Use(op(Constant(1.0f), x)); }});
  }
  for (const ReduceOp op : {ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceAll, ReduceAny}) {
    all.push_back({op.op, [op](const Output& x) { Use(op(x)); }});
    all.push_back({op.op, [op](const Output& x) { Use(op(Constant({1.0f}), x)); }});
  }
  return all;
}

std::vector<Builder> Arrays() {
  return {
      {"PlaceholderWithDefault", [](const Output& x) { Use(PlaceholderWithDefault(x, PartialShape())); }},
      {"CheckNumerics", [](const Output& x) { Use(CheckNumerics(x, "m")); }},
      {"Group", [](const Output& x) { Use(Group({x})); }},
      {"ShapeOf", [](const Output& x) { Use(ShapeOf(x)); }},
      {"RankOf", [](const Output& x) { Use(RankOf(x)); }},
      {"SizeOf", [](const Output& x) { Use(SizeOf(x)); }},
      {"Fill", [](const Output& x) { Use(Fill(x, 1)); }},
      {"Fill value", [](const Output& x) { Use(Fill({2}, x)); }},
      {"Range", [](const Output& x) { Use(Range(0, x)); }},
      {"Reshape", [](const Output& x) { Use(Reshape(x, {2})); }},
      {"Reshape shape", [](const Output& x) { Use(Reshape({2}, x)); }},
      {"ExpandDims", [](const Output& x) { Use(ExpandDims(x, 0)); }},
      {"Squeeze", [](const Output& x) { Use(Squeeze(x)); }},
      {"Transpose", [](const Output& x) { Use(Transpose(x)); }},
      {"Transpose perm", [](const Output& x) { Use(Transpose(Constant({1.0f}), x)); }},
      {"BroadcastTo", [](const Output& x) { Use(BroadcastTo(x, {2})); }},
      {"Tile", [](const Output& x) { Use(Tile(x, {2})); }},
      {"Pad",
       [](const Output& x) {
         Use(Pad(x, {{1, 1}}));
       }},
      {"Reverse", [](const Output& x) { Use(Reverse(x, {0})); }},
      {"Bitcast", [](const Output& x) { Use(Bitcast(x, DType::kInt32)); }},
      {"Concat",
       [](const Output& x) {
         Use(Concat({x, x}, 0));
       }},
      {"Concat one", [](const Output& x) { Use(Concat({x}, 0)); }},
      {"Stack",
       [](const Output& x) {
         Use(Stack({x, 1.0f}));
       }},
      {"Split", [](const Output& x) { Use(Split(x, 2)); }},
      {"SplitV",
       [](const Output& x) {
         Use(SplitV(x, {1, 2}));
       }},
      {"Unstack", [](const Output& x) { Use(Unstack(x)); }},
      {"Unstack num", [](const Output& x) { Use(Unstack(x, 0, 3)); }},
      {"Slice", [](const Output& x) { Use(Slice(x, {0}, {1})); }},
      {"StridedSlice", [](const Output& x) { Use(StridedSlice(x, {0}, {1}, {1})); }},
      {"Gather", [](const Output& x) { Use(Gather(x, {0})); }},
      {"OneHot", [](const Output& x) { Use(OneHot(x, 3)); }},
      {"WhereTrue", [](const Output& x) { Use(WhereTrue(x)); }},
      {"Select", [](const Output& x) { Use(Select(x, 1.0f, 2.0f)); }},
      {"SelectV2", [](const Output& x) { Use(SelectV2(true, x, 2.0f)); }},
      {"Unique",
       [](const Output& x) {
         Use(Unique(x).values);
         Use(Unique(x).indices);
       }},
      {"BuildOp",
       [](const Output& x) {
         Use(BuildOp("AddV2", {x, x}));
       }},
  };
}

std::vector<Builder> Mathematics() {
  return {
      {"Add", [](const Output& x) { Use(Add(x, 1)); }},
      {"+", [](const Output& x) { Use(x + 1.0f); }},
      {"-", [](const Output& x) { Use(1.0f - x); }},
      {"*", [](const Output& x) { Use(x * x); }},
      {"/", [](const Output& x) { Use(x / 2); }},
      {"neg", [](const Output& x) { Use(-x); }},
      {"AddN",
       [](const Output& x) {
         Use(AddN({x, x}));
       }},
      {"Cast", [](const Output& x) { Use(Cast(x, DType::kInt32)); }},
      {"MatMul", [](const Output& x) { Use(MatMul(x, x)); }},
      {"ArgMax", [](const Output& x) { Use(ArgMax(x)); }},
      {"ArgMin", [](const Output& x) { Use(ArgMin(x)); }},
      {"Cumsum", [](const Output& x) { Use(Cumsum(x)); }},
      {"Cumprod", [](const Output& x) { Use(Cumprod(x)); }},
      {"BiasAdd", [](const Output& x) { Use(BiasAdd(x, x)); }},
      {"SoftmaxCrossEntropy", [](const Output& x) { Use(SoftmaxCrossEntropyWithLogits(x, x)); }},
      {"SparseSoftmaxCrossEntropy", [](const Output& x) { Use(SparseSoftmaxCrossEntropyWithLogits(x, x)); }},
      {"RandomUniform", [](const Output& x) { Use(RandomUniform(x)); }},
      {"RandomNormal", [](const Output& x) { Use(RandomNormal(x)); }},
      {"TruncatedNormal", [](const Output& x) { Use(TruncatedNormal(x)); }},
      {"Dense", [](const Output& x) { Use(Dense(x, 3)); }},
      {"L1", [](const Output& x) { Use(L1Regularizer(1)(x)); }},
      {"L1L2", [](const Output& x) { Use(L1L2Regularizer(1, 1)(x)); }},
      {"Scalar", [](const Output& x) { Use(summary::Scalar("s", x)); }},
      {"Histogram", [](const Output& x) { Use(summary::Histogram("h", x)); }},
      {"Merge", [](const Output& x) { Use(summary::Merge({x})); }},
      {"Print", [](const Output& x) { Use(Print(x, {x})); }},
      {"Print data", [](const Output& x) { Use(Print(1.0f, {x})); }},
      {"Variable", [](const Output& x) { Use(Variable(x).value()); }},
      {"Resource", [](const Output& x) { Use(Variable(x, {.use_resource = true}).ReadValue()); }},
      {"GetVariable", [](const Output& x) { Use(GetVariable("v", {.initializer = x}).value()); }},
      {"Assign",
       [](const Output& x) {
         for (const bool resource : {false, true}) {
           const Variable v({1.0f, 2.0f}, {.name = "w", .use_resource = resource});
           Use(v.Assign(x));
           Use(ScatterAdd(v, x, x));
           Use(Assign(v, x));
         }
       }},
      {"Gradients", [](const Output& x) { EXPECT_FALSE((*Gradients({x}, {x}))[1].exists()); }},
      {"Gradients x", [](const Output& x) { EXPECT_FALSE((*Gradients({Constant(1.0f)}, {x}))[0].exists()); }},
      {"Minimize", [](const Output& x) { Use(AdamOptimizer().Minimize(x)); }},
  };
}

std::vector<Builder> Flow() {
  const LoopCondFn below = Below(3);
  const LoopBodyFn same = [](const LoopVars& v) { return LoopVars{v[0] + 1, v[1]}; };
  return {
      {"Cond", [](const Output& x) { Use(Cond(x, Returns(1), Returns(2))); }},
      {"Cond result",
       [](const Output& x) {
         Use(Cond(
             Flag("p"), [&] { return x; }, Returns(2)));
       }},
      {"Cond list",
       [](const Output& x) {
         Use(Cond(
             Flag("p"),
             [&] {
               return List<Output>{x, x};
             },
             [&] {
               return List<Output>{x, x};
             }));
       }},
      {"Case",
       [](const Output& x) {
         Use(Case({{x, Returns(1)}}, Returns(2)));
       }},
      {"Case default",
       [](const Output& x) {
         Use(Case({{Flag("p"), [&] { return x; }}}));
       }},
      {"Case exclusive",
       [](const Output& x) {
         Use(Case({{x, Returns(1)}}, Returns(2), {.exclusive = true}));
       }},
      {"WhileLoop",
       [=](const Output& x) {
         Use(WhileLoop(below, same, {0, x}));
       }},
      {"WhileLoop limit",
       [=](const Output& x) {
         Use(WhileLoop(below, same, {0, 1.0f}, {.maximum_iterations = x}));
       }},
      {"WhileLoop cond",
       [=](const Output& x) {
         Use(WhileLoop([&](const LoopVars&) { return x; }, same, {0, 1.0f}));
       }},
      {"WhileLoop body",
       [=](const Output& x) {
         Use(WhileLoop(below, [&](const LoopVars& v) { return LoopVars{v[0] + 1, x}; }, {0, 1.0f}));
       }},
      {"WhileLoop few",
       [=](const Output&) {
         Use(WhileLoop(below, [](const LoopVars& v) { return LoopVars{v[7]}; }, {0, 1}));
       }},
      {"Tuple",
       [](const Output& x) {
         Use(Tuple({x, x}));
       }},
      {"Tuple control", [](const Output& x) { Use(Tuple({Constant(1.0f)}, {x})); }},
      {"WithDependencies", [](const Output& x) { Use(WithDependencies({x}, Constant(1.0f))); }},
      {"Assert", [](const Output& x) { Use(Assert(x, {x})); }},
      {"Assert data", [](const Output& x) { Use(Assert(Flag("p"), {x})); }},
      {"ControlDependencies",
       [](const Output& x) {
         const ControlDependencies after({x});
         Use(NoOp());
       }},
      {"ColocateWith",
       [](const Output& x) {
         const ColocateWith beside(x);
         Use(Constant(1.0f));
       }},
      {"PrintV2", [](const Output& x) { Use(BuildOp("PrintV2", {x})); }},
  };
}

/// An absent value in each possible form.
std::vector<std::pair<const char*, Output>> Absentees(Graph& graph) {
  const Output there = Constant({1.0f, 2.0f});
  return {{"default", Output()},
          {"absent", Output::Absent(graph)},
          {"node beyond", Output(&graph, {999, 0})},
          {"output beyond", Output(&graph, {there.op().id(), 1})},
          {"output before", Output(&graph, {there.op().id(), -1})}};
}

TEST(Absent, EveryBuilderTakesValuesThatDoNotExist) {
  int calls = 0;
  for (const auto& family : {Families(), Arrays(), Mathematics(), Flow()}) {
    for (const Builder& builder : family) {
      for (size_t kind = 0; kind < 5; ++kind) {
        for (const bool failed : {false, true}) {
          Fresh f;
          const auto [text, absent] = Absentees(f.graph)[kind];
          SCOPED_TRACE(builder.name + " of " + text + (failed ? " after an error" : ""));
          if (failed) (void)f.graph.Fail(InvalidArgument("earlier"));
          builder.build(absent);
          EXPECT_FALSE(f.graph.status().ok());
          if (failed) {
            EXPECT_EQ(f.graph.status().message(), "earlier") << "the first error stays";
          }
          ++calls;
        }
      }
    }
  }
  EXPECT_GT(calls, 1000);
}

TEST(Absent, AnOutputThatAnOperationHasNotIsAnError) {
  for (const int index : {1, 7, -1, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    Fresh f;
    const Output beyond = Constant(1.0, DType::kInvalid, "c").op().output(index);
    EXPECT_FALSE(beyond.exists());
    EXPECT_TRUE(
        Fails(f.graph.status(), Code::kOutOfRange, "Operation 'c' (Const) has no output " + std::to_string(index)));
    EXPECT_TRUE(Fails(f.graph.status(), Code::kOutOfRange, "absent_test.cc:")) << "says where";
    Use(beyond + 1.0);
  }
}

TEST(Absent, ListsHaveTheRequestedLength) {
  const auto sizes = [](const auto& build) {
    Fresh f;
    const List<Output> list = build();
    EXPECT_FALSE(f.graph.status().ok());
    Use(list);
    return list.size();
  };
  EXPECT_EQ(sizes([] { return Split(Constant({1.0, 2.0, 3.0}), 2); }), 2u);
  EXPECT_EQ(sizes([] { return Split(Constant({1.0, 2.0}), 0); }), 0u);
  EXPECT_EQ(sizes([] { return Split(Constant({1.0, 2.0}), -1); }), 0u);
  EXPECT_EQ(sizes([] { return Split(Constant({1.0, 2.0}), std::numeric_limits<int>::max()); }), 0u);
  EXPECT_EQ(sizes([] { return SplitV(Constant({1.0, 2.0, 3.0}), {1, 1}); }), 2u);
  EXPECT_EQ(sizes([] { return SplitV(Constant({1.0, 2.0, 3.0}), {}); }), 0u);
  EXPECT_EQ(sizes([] { return Unstack(Constant({1.0, 2.0}), 0, 3); }), 3u);
  EXPECT_EQ(sizes([] { return Unstack(Constant({1.0, 2.0}), 0, std::numeric_limits<int>::max()); }), 0u);
  EXPECT_EQ(sizes([] { return Unstack(Placeholder(DType::kFloat)); }), 0u) << "nobody knows";
  EXPECT_EQ(sizes([] {
              return WhileLoop(Below(3), [](const LoopVars& v) { return LoopVars{v[0] + 1, Constant(1.5)}; }, {0, 1});
            }),
            2u);
  EXPECT_EQ(sizes([] {
              return WhileLoop(Below(3), [](const LoopVars& v) { return LoopVars{v[0] + 1}; }, {0, 1, 2});
            }),
            3u);
  EXPECT_EQ(sizes([] {
              return Cond(
                  Flag("p"),
                  [] {
                    return List<Output>{Constant(1), Constant(2)};
                  },
                  [] {
                    return List<Output>{Constant(1), Constant(2.5)};
                  });
            }),
            2u);
}

TEST(Absent, F392_ALoopAfterAMistakeGivesValuesToPointAt) {
  Fresh f;
  const Output bad = MatMul(Constant({{1.0}}), Constant({{1.0, 2.0}, {3.0, 4.0}}));
  const std::string first = f.error();
  const Output y = WhileLoop(Below(3), [](const LoopVars& v) { return LoopVars{v[0] + 1, v[1]}; }, {0, bad})[1];
  EXPECT_FALSE(y.exists());
  Session session;
  EXPECT_EQ(session.Run(y).status().ToString(), first);
  (void)f.graph.TakeStatus();
  EXPECT_EQ(session.Run(y).status().ToString(), first);
  EXPECT_EQ(session.Run(y + 1.0f).status().ToString(), first);
}

TEST(Absent, NullFunctionsAreErrors) {
  const struct {
    std::function<void()> build;
    const char* text;
  } kCases[] = {
      {[] { Use(Cond(Flag("p"), BranchFn(), BranchFn())); }, "true_fn must be callable."},
      {[] { Use(Cond(Flag("p"), Returns(1), BranchFn())); }, "false_fn must be callable."},
      {[] { Use(Cond(Flag("p"), BranchListFn(), BranchListFn())); }, "true_fn must be callable."},
      {[] { Use(Cond(Flag("p"), BranchOperationFn(), BranchOperationFn())); }, "true_fn must be callable."},
      {[] {
         Use(Case({{Flag("p"), BranchFn()}}, Returns(1)));
       },
       "fn for pred p:0 must be callable."},
      {[] { Use(WhileLoop(LoopCondFn(), LoopBodyFn(), {0})); }, "cond must be callable."},
      {[] { Use(WhileLoop(Below(1), LoopBodyFn(), {0})); }, "body must be callable."},
      {[] {
         const std::function<Output(Output)> none;
         Use(WhileLoop(none, none, 0));
       },
       "cond must be callable."},
      {[] { (void)GetVariable("v", {.initializer = std::function<Output()>()}); }, "did not get an initializer"},
  };
  for (const auto& c : kCases) {
    Fresh f;
    c.build();
    EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, c.text));
  }
}

TEST(Absent, OptionalNullFunctionsAreIgnored) {
  Fresh f;
  {
    const DeviceScope anywhere(DeviceRequest{DeviceFunction()});
    VariableArgs args;
    args.shape = Shape::Of({2});
    args.initializer = Initializer(std::function<Output(Graph&, DType, const Shape&)>());
    args.regularizer = Regularizer();
    args.partitioner = Partitioner();
    args.custom_getter = CustomGetter();
    EXPECT_TRUE(GetVariable("v", args).exists());
    EXPECT_TRUE(Dense(Constant({{1.0f}}), 2, Activation()).exists());
  }
  EXPECT_EQ(f.error(), "OK");
  ProgressBar bar("steps", 2, ProgressOutput());
  bar.Update(2);
}

void UseVariable(const Variable& v) {
  (void)v.name();
  (void)v.ToString();
  (void)v.constraint();
  (void)v.slice();
  (void)v.parts();
  Use(v.handle());
  Use(v.snapshot());
  Use(v.initial_value());
  Use(v.initializer());
  Use(v.value());
  Use(v.ReadValue());
  Use(v.InitializedValue());
  Use(v.IsInitialized());
  Use(v.Assign(1.0f));
  Use(v.AssignAdd(1.0f));
  Use(v.AssignSub(1.0f));
  Use(v.ReadAfter(NoOp()));
  Use(v + 1.0f);
  Use(VariablesInitializer({v}));
  Use(ReportUninitializedVariables({v}));
  for (const ScatterOp op : {ScatterUpdate, ScatterAdd, ScatterNdAdd}) Use(op(v, {0}, {1.0f}));
  Use(CountUpTo(v, 3));
  Use(Assign(v, 1.0f));
  const Variable there(1.0f);
  const Output loss = Square(there);
  Use(GradientDescentOptimizer(0.1).Minimize(loss, {.variables = {v}}));
  Use(AdamOptimizer().Minimize(loss, {.global_step = v, .variables = {there, v}}));
  const Gradient gradient{Constant(1.0f), {}, {}};
  EXPECT_FALSE(MomentumOptimizer(0.1, 0.9).ApplyGradients({{gradient, v}}).ok());
  EXPECT_FALSE(AdamOptimizer().ApplyGradients({{Gradient(), v}}).ok());
  EXPECT_FALSE(Gradients({loss}, {v.handle()}).ok());
  Saver saver(std::vector<Variable>{v});
  Session session;
  EXPECT_FALSE(saver.Save(session, "/nowhere/x").ok());
  EXPECT_FALSE(saver.Restore(session, "/nowhere/x").ok());
  EXPECT_FALSE(saver.RestorePartial(session, "/nowhere/x").ok());
  EXPECT_FALSE(session.Run(v).ok());
  EXPECT_FALSE(session.Run(loss, {{v, 1.0f}}).ok());
  EXPECT_FALSE(Load(v, 1.0f, &session).ok());
  const ColocateWith beside(v);
  const ControlDependencies after({v});
  Use(Constant(1.0f));
}

TEST(Absent, VariablesThatCouldNotBeMade) {
  const std::pair<const char*, std::function<Variable()>> kKinds[] = {
      {"default", [] { return Variable(); }},
      {"failed", [] { return (void)GetVariable("w", Shape::Of({3})), GetVariable("w", Shape::Of({3})); }},
      {"of nothing", [] { return Variable(Output()); }},
      {"of a value that is not there", [] { return Variable::FromValue(Output::Absent(Graph::Default())); }},
      {"of parts that are not there", [] { return Variable::FromParts("w", Shape::Of({2}), {Variable()}, {1}); }},
      {"no such slot", [] { return AdamOptimizer().GetSlot(Variable(), "m"); }},
      {"no such step", [] { return GetGlobalStep(); }},
      {"moved from",
       [] {
         Variable v;
         const Variable other = std::move(v);
         return v;  // NOLINT(bugprone-use-after-move)
       }},
      {"of a finished graph",
       [] {
         Graph::Default().Finalize();
         return GetVariable("f", Shape::Of({2}));
       }},
  };
  for (const auto& [text, make] : kKinds) {
    for (const bool cleared : {false, true}) {
      SCOPED_TRACE(text);
      Fresh f;
      const Variable v = make();
      EXPECT_FALSE(v.exists() && !v.is_partitioned());
      if (cleared) (void)f.graph.TakeStatus();
      UseVariable(v);
      EXPECT_FALSE(f.graph.status().ok());
    }
  }
}

TEST(Absent, ShapesThatCannotBeAreErrorsThatSaySo) {
  const std::function<void()> kBuilders[] = {
      [] {
        (void)GetVariable("v", Shape::Of({-3, 2}));
      },
      [] {
        Placeholder(DType::kFloat, PartialShape::Of({-3, 2}));
      },
      [] {
        PlaceholderWithDefault(1.0f, PartialShape::Of({-3, 2}));
      },
      [] {
        Zeros(Shape::Of({-3, 2}));
      },
      [] {
        Ones(Shape::Of({-3, 2}));
      },
      [] {
        Placeholder(DType::kFloat).SetShape(PartialShape::Of({-3, 2}));
      },
      [] {
        (void)Variable(ZerosInitializer(), Shape::Of({-3, 2}), DType::kFloat, {});
      },
  };
  for (const auto& build : kBuilders) {
    Fresh f;
    build();
    EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "Shape [-3,2] has "));
  }
}

TEST(Absent, SessionsAndResultsAcceptAbsentValues) {
  Fresh f;
  const Output x = Real("x"), y = x * 2.0f;
  Callable none;
  EXPECT_TRUE(Fails(none({1.0f}), Code::kFailedPrecondition, "belongs to no session"));
  {
    Session session;
    for (const Fetch& fetch :
         {Fetch(Output()), Fetch(Operation()), Fetch(Variable()), Fetch(""), Fetch(static_cast<const char*>(nullptr)),
          Fetch(Output(&f.graph, {99, 0})), Fetch(Operation(&f.graph, 99)), Fetch(Fetch::List{Output()})}) {
      EXPECT_FALSE(session.Run(fetch).ok());
      EXPECT_FALSE(session.MakeCallable(fetch).ok());
      EXPECT_FALSE(session.PartialRunSetup(fetch).ok());
    }
    EXPECT_FALSE(session.Run(y, {{Output(), 1.0f}}).ok());
    EXPECT_FALSE(session.Run(y, {{Variable(), 1.0f}}).ok());
    EXPECT_FALSE(session.Run(y, {{static_cast<const char*>(nullptr), 1.0f}}).ok());
    EXPECT_FALSE(session.Run(y, {{x, Tensor()}}).ok());
    Result<Callable> made = session.MakeCallable(y, {x});
    ASSERT_TRUE(Succeeds(made));
    none = std::move(*made);
    EXPECT_EQ(none({2.0f})->scalar<float>(), 4.0f);
    EXPECT_TRUE(Fails((*made)({2.0f}), Code::kFailedPrecondition, "was moved from"));  // NOLINT
    const Result<Fetched> pair = session.Run(Fetch::List{y, x}, {{x, 1.0f}});
    EXPECT_FALSE((*pair)[2].scalar<float>().ok()) << "beyond the end";
    EXPECT_FALSE(pair->scalar<float>().ok()) << "a list";
    EXPECT_FALSE(pair->at("no such key").tensor().valid());
    EXPECT_EQ((*pair)[0].scalar<double>(), 2.0);
    EXPECT_TRUE(Fails((*pair)[0].scalar<std::string>(), Code::kInvalidArgument,
                      "elements of type string were asked for, and the tensor has type float32"));
    EXPECT_TRUE(Fails((*pair)[0].values<int64_t>(), Code::kInvalidArgument, "int64"));
    EXPECT_FALSE(session.Run(y)->scalar<float>().ok()) << "what an error gives is empty";
  }
  EXPECT_TRUE(Fails(none({1.0f}), Code::kFailedPrecondition, "its session is gone"));
}

}  // namespace
}  // namespace weir::test
