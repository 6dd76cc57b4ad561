// Types and numbers that a builder cannot accept give errors, and never abort the program.
#include <functional>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

void Touch(const Output& x) {
  (void)x.ToString();
  (void)x.op().outputs()[3].shape();
}
void Touch(const Operation& operation) { Touch(operation.output(0)); }
void Touch(const List<Output>& list) {
  for (const Output& x : list) Touch(x);
  Touch(list[list.size()]);
}

TEST(OddArguments, InvalidTypes) {
  for (const int number : {0, 7, 20, 21, 47, 63, 64, 99, 101, 120, 1000, -1, std::numeric_limits<int>::max()}) {
    SCOPED_TRACE(number);
    const auto type = static_cast<DType>(number);
    const std::function<Output()> kBuilders[] = {
        [=] { return Placeholder(type); },
        [=] { return Constant(1, type); },
        [=] { return Constant({"a"}, type); },
        [=] { return Zeros(Shape::Of({2}), type); },
        [=] { return Ones(Shape::Of({2}), type); },
        [=] { return Cast(Constant(1.0f), type); },
        [=] { return Bitcast(Constant(1.0f), type); },
        [=] { return ShapeOf(Placeholder(DType::kFloat), type); },
        [=] { return SizeOf(Constant(1.0f), type); },
        [=] { return ArgMax(Constant({1.0f}), 0, type); },
        [=] { return RandomUniform({2}, 0, 1, {.dtype = type}); },
        [=] { return GetVariable("v", Shape::Of({2}), type).value(); },
        [=] { return GetVariable("z", Shape::Of({2}), type, ZerosInitializer()).value(); },
        [=] { return Variable(1.0f, {.dtype = type}).value(); },
    };
    for (const auto& build : kBuilders) {
      Fresh f;
      const Output made = build();
      EXPECT_EQ(made.exists(), f.graph.status().ok()) << f.error();
      Touch(made);
      Session session;
      (void)session.Run(made);
    }
  }
}

TEST(OddArguments, NumbersThatCannotBe) {
  constexpr int kLeast = std::numeric_limits<int>::min(), kMost = std::numeric_limits<int>::max();
  for (const int n : {kLeast, -100, -3, -1, 100, kMost}) {
    SCOPED_TRACE(n);
    const std::function<void()> kBuilders[] = {
        [=] {
          Touch(Concat({Constant({1.0f}), Constant({1.0f})}, n));
        },
        [=] {
          Touch(Stack({1.0f, 2.0f}, n));
        },
        [=] {
          Touch(Split(Constant({1.0f, 2.0f}), 2, n));
        },
        [=] {
          Touch(Split(Constant({1.0f, 2.0f}), n));
        },
        [=] {
          Touch(SplitV(Constant({1.0f, 2.0f}), {n, n}));
        },
        [=] {
          Touch(Unstack(Constant({1.0f, 2.0f}), n));
        },
        [=] { Touch(Unstack(Placeholder(DType::kFloat), n, n)); },
        [=] { Touch(Squeeze(Constant({1.0f}), {n})); },
        [=] { Touch(ExpandDims(Constant({1.0f}), n)); },
        [=] { Touch(ReduceSum(Constant({1.0f}), n)); },
        [=] { Touch(ArgMax(Constant({1.0f}), n)); },
        [=] { Touch(Cumsum(Constant({1.0f}), n)); },
        [=] { Touch(Gather(Constant({1.0f}), {n}, n)); },
        [=] { Touch(OneHot({0}, n, {.axis = n})); },
        [=] { Touch(Tile(Constant({1.0f}), {n})); },
        [=] {
          Touch(Reshape(Constant({1.0f}), {n, n}));
        },
        [=] { Touch(Slice(Constant({1.0f}), {n}, {n})); },
        [=] { Touch(StridedSlice(Constant({1.0f}), {n}, {n}, {n}, {.shrink_axis_mask = n, .name = "s"})); },
        [=] { Touch(Dense(Constant({{1.0f}}), n)); },
        [=] { Touch(CountUpTo(Variable(1), n)); },
        [=] {
          Touch(RandomUniform({n, 2}, 0, 1, {.seed = n}));
        },
        [=] { SetRandomSeed(n); },
        [=] { (void)GetVariable("v", {.shape = Shape::Of({3}), .partitioner = FixedSizePartitioner(n, n)}); },
        [=] { Touch(WhileLoop(Below(1), [](const LoopVars& v) { return v; }, {0}, {.parallel_iterations = n})); },
        [=] { Touch(Assert(Flag("p"), {1.0f}, {.summarize = n})); },
        [=] { Saver({Variable(1.0f, {.name = "kept"})}, {.max_to_keep = n}); },
        [=] { ProgressBar("p", n).Update(n); },
    };
    for (const auto& build : kBuilders) {
      Fresh f;
      build();
      Touch(Constant(1.0f));  // does not run the values: some are only large
    }
  }
}

TEST(OddArguments, AVariableOfHandlesIsReadAsHandlesOnly) {
  const auto node = [](Graph& graph, const char* op, const std::vector<Output>& inputs, op::AttrList attrs) {
    OperationSpec spec;
    spec.op = op;
    spec.inputs = inputs;
    spec.attrs = std::move(attrs);
    return graph.Add(spec);
  };
  const op::AttrList held = {{"dtype", DType::kResource}, {"shape", PartialShape(Shape())}};
  for (const bool fed : {false, true}) {
    Fresh f;
    const Output handles = node(f.graph, "VarHandleOp", {}, held).output(0);
    const Output other = node(f.graph, "VarHandleOp", {},
                              {{"dtype", DType::kInt8}, {"shape", PartialShape(Shape())}, {"shared_name", "o"}})
                             .output(0);
    const Operation assign = node(f.graph, "AssignVariableOp", {handles, other}, {{"dtype", DType::kResource}});
    const Output given = fed ? Placeholder(DType::kResource, {}, "handle") : handles;
    const Output wrong = node(f.graph, "ReadVariableOp", {given}, {{"dtype", DType::kInt8}}).output(0);
    const Output right = node(f.graph, "ReadVariableOp", {given}, {{"dtype", DType::kResource}}).output(0);
    Session session(f.graph);
    ASSERT_TRUE(Succeeds(session.Run(assign)));
    Feeds feeds;
    if (fed) {
      const Result<Fetched> handle = session.Run(handles);
      ASSERT_TRUE(Succeeds(handle));
      feeds.emplace_back(given, Literal(handle->tensor()));
    }
    EXPECT_TRUE(Fails(session.Run(wrong, feeds), Code::kInvalidArgument,
                      "Trying to read variable with wrong dtype. Expected resource got int8"))
        << fed;
    const Result<Fetched> read = session.Run(right, feeds);
    ASSERT_TRUE(Succeeds(read)) << fed;
    EXPECT_EQ(read->tensor().dtype(), DType::kResource);
  }
}

}  // namespace
}  // namespace weir::test
