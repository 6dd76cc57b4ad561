// Gradients of conds, and conds and loops in model files. Numbers are rows of the feature list.
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

TEST(CondGradient, F180_names_are_TensorFlows) {
  Fresh f;
  const Output p = Flag("p"), x = Real("x");
  const Output z = Cond(
      p, [&] { return x; }, [] { return Constant(2.0f); });
  const Output dx = GradientOf(z, x);
  EXPECT_EQ(dx.name(), "gradients/cond/Switch_1_grad/cond_grad:0");
  EXPECT_EQ(dx.op().type(), "Merge");
  EXPECT_EQ(dx.op().inputs()[0].name(), "gradients/zeros:0");
  EXPECT_EQ(dx.op().inputs()[1].name(), "gradients/cond/Merge_grad/cond_grad:1");
  const Output zeros = dx.op().inputs()[0];
  EXPECT_EQ(zeros.op().inputs()[1].op().control_inputs()[0].name(), "gradients/Identity");
  EXPECT_EQ(zeros.op().inputs()[0].op().inputs()[0].name(), "gradients/Switch:0");
  Session session(f.graph);
  EXPECT_EQ(Value(session, dx, {{p, true}, {x, 5.0f}}), 1);
  EXPECT_EQ(Value(session, dx, {{p, false}, {x, 5.0f}}), 0);
}

TEST(CondGradient, F180_of_both_branches) {
  Fresh f;
  const Output p = Flag("p"), x = Real("x"), y = Real("y");
  const Output z = Cond(
      p, [&] { return x * y; }, [&] { return Square(x); });
  const Output dx = GradientOf(z * 3.0f, x), dy = GradientOf(z, y);
  Session session(f.graph);
  const Feeds yes = {{p, true}, {x, 5.0f}, {y, 7.0f}}, no = {{p, false}, {x, 5.0f}, {y, 7.0f}};
  EXPECT_EQ(Value(session, dx, yes), 21);
  EXPECT_EQ(Value(session, dx, no), 30);
  EXPECT_EQ(Value(session, dy, yes), 5);
  EXPECT_EQ(Value(session, dy, no), 0);
}

TEST(CondGradient, F180_of_nested_conds) {
  Fresh f;
  const Output p = Flag("p"), q = Flag("q"), x = Placeholder(DType::kFloat, PartialShape::Of({2}), "x");
  const Output z = Cond(
      p,
      [&] {
        return Cond(
            q, [&] { return x * x; }, [&] { return x * 3.0f; });
      },
      [&] { return x; });
  const Output dx = GradientOf(z, x);
  Session session(f.graph);
  using Pair = std::vector<double>;
  EXPECT_EQ(Values(session, dx, {{p, true}, {q, true}, {x, {5.0f, 6.0f}}}), (Pair{10, 12}));
  EXPECT_EQ(Values(session, dx, {{p, true}, {q, false}, {x, {5.0f, 6.0f}}}), (Pair{3, 3}));
  EXPECT_EQ(Values(session, dx, {{p, false}, {q, true}, {x, {5.0f, 6.0f}}}), (Pair{1, 1}));
}

TEST(CondGradient, F180_through_a_variable_trains_what_ran) {
  Fresh f;
  const Output p = Flag("p");
  const Variable v(2.0f, {.name = "v"}), w(3.0f, {.name = "w"});
  const Output loss = Cond(
      p, [&] { return Square(v.value()); }, [&] { return v * w; });
  const Operation train = GradientDescentOptimizer(0.5).Minimize(loss);
  ASSERT_TRUE(train.exists()) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_TRUE(Succeeds(session.Run(train, {{p, true}})));
  EXPECT_EQ(Value(session, v), 0);  // 2 - 0.5 * 4
  EXPECT_EQ(Value(session, w), 3);
  EXPECT_TRUE(Succeeds(session.Run(train, {{p, false}})));
  EXPECT_EQ(Value(session, v), -1.5);  // 0 - 0.5 * 3
  EXPECT_EQ(Value(session, w), 3);     // 3 - 0.5 * 0
}

TEST(CondGradient, F180_by_a_resource) {
  Fresh f;
  const Output p = Flag("p");
  const Variable r({1.0f, 2.0f}, {.name = "r", .use_resource = true});
  const Output y = Cond(
      p, [&] { return r * r; },
      [] {
        return Constant({1.0f, 1.0f});
      });
  const Output once = GradientOf(y, r.handle()), twice = GradientOf(y + r, r.handle());
  EXPECT_EQ(once.name(), "gradients/cond/ReadVariableOp/Switch_grad/cond_grad:0");
  const Output zeros = once.op().inputs()[0];
  EXPECT_EQ(zeros.name(), "gradients/zeros:0");
  EXPECT_EQ(zeros.op().inputs()[0].name(), "gradients/VariableShape:0");
  EXPECT_EQ(zeros.op().inputs()[0].op().control_inputs()[0].name(), "gradients/Identity");
  const Operation train = GradientDescentOptimizer(0.5).Minimize(ReduceSum(y));
  ASSERT_TRUE(train.exists()) << f.error();
  Session session(f.graph);
  Initialize(session);
  using Pair = std::vector<double>;
  EXPECT_EQ(Values(session, once, {{p, true}}), (Pair{2, 4}));
  EXPECT_EQ(Values(session, once, {{p, false}}), (Pair{0, 0}));
  EXPECT_EQ(Values(session, twice, {{p, true}}), (Pair{3, 5}));
  EXPECT_EQ(Values(session, twice, {{p, false}}), (Pair{1, 1}));
  EXPECT_TRUE(Succeeds(session.Run(train, {{p, true}})));
  EXPECT_EQ(Values(session, r), (Pair{0, 0}));  // r - 0.5 * 2 r
}

TEST(CondGradient, F180_of_rows_gathered_in_a_branch) {
  Fresh f;
  const Output p = Flag("p");
  const Output table = Placeholder(DType::kFloat, PartialShape::Of({3}), "table");
  const Output z = Cond(
      p,
      [&] {
        return ReduceSum(Gather(table, {2, 0, 2}));
      },
      Returns(0));
  const Output dx = GradientOf(z, table);
  Session session(f.graph);
  EXPECT_EQ(Values(session, dx, {{p, true}, {table, {1.f, 2.f, 3.f}}}), (std::vector<double>{1, 0, 2}));
  EXPECT_EQ(Values(session, dx, {{p, false}, {table, {1.f, 2.f, 3.f}}}), (std::vector<double>{0, 0, 0}));
}

/// A graph with a cond and a loop, as a MetaGraph.
std::string ModelFile() {
  Fresh f;
  const Output p = Flag("p"), x = Real("x");
  const LoopVars loop = WhileLoop(Below(3),
                                  [&](const LoopVars& v) {
                                    const Output next = v[0] + 1;
                                    return LoopVars{next, v[1] * x};
                                  },
                                  {0, 1.0f});
  const Output z = Cond(
      p, [&] { return x * x; }, [&] { return x; }, "choice");
  Identity(loop[1], "cube");
  Identity(z, "z");
  const Result<std::string> bytes = ExportMetaGraph(f.graph);
  EXPECT_TRUE(Succeeds(bytes));
  return bytes.ok() ? *bytes : "";
}

TEST(ControlFlowFile, F173_F177_contexts_come_back) {
  const std::string bytes = ModelFile();
  for (const std::string prefix : {"", "deep"}) {
    Fresh f;
    ASSERT_TRUE(Succeeds(ImportMetaGraph(bytes, f.graph, {.import_scope = prefix})));
    const std::string at = prefix.empty() ? "" : prefix + "/";
    EXPECT_EQ(f.graph.GetCollection("cond_context").size(), 2u);
    EXPECT_EQ(f.graph.GetCollection("while_context").size(), 1u);
    const Result<Output> x = f.graph.TensorByName(at + "x:0"), p = f.graph.TensorByName(at + "p:0"),
                         z = f.graph.TensorByName(at + "z:0"), cube = f.graph.TensorByName(at + "cube:0");
    ASSERT_TRUE(Succeeds(z) && Succeeds(cube));
    const Result<Operation> enter = f.graph.OperationByName(at + "while/Enter");
    ASSERT_TRUE(Succeeds(enter));
    EXPECT_EQ(*enter->node().attrs().String("frame_name"), at + "while/while_context");
    const Output dx = GradientOf(*z, *x);
    Session session(f.graph);
    EXPECT_EQ(Value(session, *cube, {{*x, 2.0f}}), 8);
    EXPECT_EQ(Value(session, dx, {{*x, 2.0f}, {*p, true}}), 4);
    EXPECT_EQ(Value(session, dx, {{*x, 2.0f}, {*p, false}}), 1);
    EXPECT_EQ(Value(session, GradientOf(*cube, *x), {{*x, 2.0f}}), 12);
  }
}

TEST(ControlFlowFile, F173_contexts_with_nodes_that_are_missing) {
  std::string bytes = ModelFile();
  const size_t at = bytes.rfind("choice/pred_id:0");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 16, "choice/pred_no:0");
  Fresh f;
  EXPECT_TRUE(Fails(ImportMetaGraph(bytes, f.graph), Code::kNotFound, "choice/pred_no"));
}

}  // namespace
}  // namespace weir::test
