// Gradients of loops. Numbers are rows of the feature list.
#include <map>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

using Numbers = std::vector<double>;

/// Applies `body` to a value `trips` times.
Output Repeated(const Operand& trips, const Output& start, const std::function<Output(Output, Output)>& body,
                const WhileOptions& options = {}) {
  return WhileLoop([&](const LoopVars& v) { return Less(v[0], trips); },
                   [&](const LoopVars& v) {
                     return LoopVars{v[0] + 1, body(v[0], v[1])};
                   },
                   {0, start}, options)[1];
}

/// The finite differences of `y` over `x`, whose elements move by `step` one after the other.
Numbers Slopes(Session& session, const Output& y, const Output& x, const Tensor& at, double step = 1e-4) {
  Numbers slopes;
  for (int64_t i = 0; i < at.elements(); ++i) {
    const auto moved = [&](double by) {
      std::vector<double> elements;
      for (int64_t j = 0; j < at.elements(); ++j) elements.push_back(ElementAsDouble(at, j) + (i == j ? by : 0));
      Result<Tensor> tensor = Tensor::Make(DType::kDouble, at.shape());
      std::memcpy(tensor->mutable_raw(), elements.data(), elements.size() * sizeof(double));
      return Value(session, y, {{x, *tensor}});
    };
    slopes.push_back((moved(step) - moved(-step)) / (2 * step));
  }
  return slopes;
}

void ExpectNear(const Numbers& got, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << i;
}

/// Checks that the gradient of a scalar function of one tensor equals its finite differences.
void CheckGradient(const Tensor& at, const PartialShape& shape, const std::function<Output(Output)>& build) {
  Fresh f;
  const Output x = Placeholder(DType::kDouble, shape, "x");
  const Output y = build(x);
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  const Output dx = GradientOf(y, x);
  ASSERT_TRUE(dx.exists());
  Session session(f.graph);
  ExpectNear(Values(session, dx, {{x, at}}), Slopes(session, y, x, at), 1e-5);
}

Tensor Doubles(const std::vector<double>& values) { return Tensor::Vector<double>(values); }

TEST(LoopGradient, F393_F177_of_powers) {
  for (const WhileOptions& options : {WhileOptions{}, WhileOptions{.parallel_iterations = 1},
                                      WhileOptions{.swap_memory = true}, WhileOptions{.maximum_iterations = 7}}) {
    Fresh f;
    const Output x = Real("x"), n = Placeholder(DType::kInt32, PartialShape::Of({}), "n");
    const Output y = Repeated(
        n, x, [&](const Output&, const Output& a) { return a * x; }, options);
    const Output dx = GradientOf(y, x);
    Session session(f.graph);
    for (const auto& [trips, values] : std::map<int, Numbers>{{0, {2, 1}}, {1, {4, 4}}, {2, {8, 12}}, {5, {64, 192}}}) {
      EXPECT_EQ(Value(session, y, {{x, 2.0f}, {n, trips}}), values[0]);
      EXPECT_EQ(Value(session, dx, {{x, 2.0f}, {n, trips}}), values[1]);
    }
  }
}

TEST(LoopGradient, F393_of_variables_and_captured_values) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable w(3.0f, {.name = "w", .use_resource = resource});
    const Output x = Real("x");
    const Output y = Repeated(4, Constant(1.0f), [&](const Output&, const Output& a) { return a * w + x; });
    const Result<std::vector<Gradient>> gradients = Gradients({y}, {w, x});
    ASSERT_TRUE(Succeeds(gradients));
    Session session(f.graph);
    Initialize(session);
    EXPECT_EQ(Value(session, y, {{x, 2.0f}}), 161);
    EXPECT_EQ(Value(session, (*gradients)[0].values, {{x, 2.0f}}), 176);
    EXPECT_EQ(Value(session, (*gradients)[1].values, {{x, 2.0f}}), 40);
    const Operation train = GradientDescentOptimizer(0.01).Minimize(y);
    ASSERT_TRUE(train.exists()) << f.error();
    EXPECT_TRUE(Succeeds(session.Run(train, {{x, 2.0f}})));
    EXPECT_NEAR(Value(session, w), 3 - 1.76, 1e-5);
  }
}

TEST(LoopGradient, F393_nodes_are_those_of_TensorFlow) {
  Fresh f;
  const Output x = Real("x");
  const Output y = Repeated(3, x, [&](const Output&, const Output& a) { return a * x; });
  const Output dx = GradientOf(y, x);
  EXPECT_EQ(dx.op().type(), "AddN");  // through the initial value and through the captured one
  std::map<std::string, int> ops;
  for (const Operation& operation : f.graph.Operations()) {
    if (operation.name().starts_with("gradients/")) ++ops[operation.type()];
  }
  EXPECT_EQ(ops["StackV2"], 1);  // of the values of a; x is the same in all iterations
  EXPECT_EQ(ops["StackPushV2"], 1);
  EXPECT_EQ(ops["StackPopV2"], 1);
  EXPECT_EQ(ops["ControlTrigger"], 1);
  EXPECT_EQ(ops["LoopCond"], 1);
  const Result<Operation> enter = f.graph.OperationByName("gradients/while/Exit_1_grad/b_exit");
  ASSERT_TRUE(Succeeds(enter));
  EXPECT_EQ(*enter->node().attrs().String("frame_name"), "gradients/while/while_context");
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("gradients/f_count")));
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("gradients/b_count")));
  EXPECT_EQ(f.graph.GetCollection("while_context").size(), 1u);  // gradient loops have none, as in TensorFlow
}

TEST(LoopGradient, F393_none) {
  Fresh f;
  const Output x = Real("x");
  const auto cube = [&](const Output&, const Output& a) { return a * x; };
  const Output cut = Repeated(3, Constant(1.0f), cube, {.back_prop = false});
  EXPECT_FALSE(GradientOf(cut, x).exists());
  const Output around = GradientOf(cut * x, x);
  const Output stopped =
      Repeated(3, Constant(1.0f), [&](const Output&, const Output& a) { return StopGradient(a) * 2.0f + x; });
  Session session(f.graph);
  EXPECT_EQ(Value(session, around, {{x, 2.0f}}), 8);
  EXPECT_EQ(Value(session, GradientOf(stopped, x), {{x, 2.0f}}), 1);
  const LoopVars counted = WhileLoop(Below(3),
                                     [&](const LoopVars& v) {
                                       return LoopVars{v[0] + 1, v[1] * x};
                                     },
                                     {0, 1.0f});
  EXPECT_FALSE(GradientOf(Cast(counted[0], DType::kFloat), x).exists());
}

TEST(LoopGradient, F393_errors) {
  {
    Fresh f;
    const Output x = Real("x");
    const Output dx = GradientOf(Repeated(3, x, [&](const Output&, const Output& a) { return a * x; }), x);
    EXPECT_TRUE(
        Fails(Gradients({dx}, {x}), Code::kUnimplemented, "Second-order gradient for while loops not supported."));
  }
  Fresh f, g;
  const Output x = Real("x");
  Identity(Repeated(3, x, [&](const Output&, const Output& a) { return a * x; }), "y");
  const Result<std::string> nodes = g.graph.Export();
  ASSERT_TRUE(Succeeds(nodes));
  Fresh h;
  ASSERT_TRUE(Succeeds(h.graph.Import(*nodes, "")));
  const Result<Output> y = h.graph.TensorByName("y:0"), from = h.graph.TensorByName("x:0");
  ASSERT_TRUE(Succeeds(y) && Succeeds(from));
  EXPECT_TRUE(Fails(Gradients({*y}, {*from}), Code::kFailedPrecondition, "without properly serializing graph"));
}

TEST(LoopGradient, F393_several_variables_and_exits) {
  CheckGradient(Doubles({0.5, -1.25, 2}), PartialShape::Of({3}), [](const Output& x) {
    const LoopVars out = WhileLoop(Below(4),
                                   [&](const LoopVars& v) {
                                     return LoopVars{v[0] + 1, v[1] * v[2] + x, Tanh(v[1]), v[3] + v[1]};
                                   },
                                   {0, x * x, Sigmoid(x), ZerosLike(x)});
    return ReduceSum(out[1] * out[1]) + ReduceSum(out[3]);
  });
}

TEST(LoopGradient, F393_of_unknown_shapes) {
  for (const PartialShape& shape : {PartialShape(), PartialShape::Of({-1}), PartialShape::Of({3})}) {
    CheckGradient(Doubles({0.5, -1.25, 2}), shape, [](const Output& x) {
      const Output scalar = ReduceMean(x);
      const LoopVars out = WhileLoop(Below(3),
                                     [&](const LoopVars& v) {
                                       const Output bent = Sigmoid(v[1]) * scalar;  // summed back over the elements
                                       return LoopVars{v[0] + 1, bent + x, v[2] * ReduceSum(bent)};
                                     },
                                     {0, x, scalar});
      return ReduceSum(out[1]) * out[2];
    });
  }
}

TEST(LoopGradient, F393_of_a_variable_that_grows) {
  CheckGradient(Doubles({0.5, -1.25}), PartialShape::Of({-1}), [](const Output& x) {
    const LoopBodyFn grow = [](const LoopVars& v) { return LoopVars{v[0] + 1, Concat({v[1], Square(v[1])}, 0)}; };
    const std::vector<PartialShape> any = {PartialShape::Of({}), PartialShape::Of({-1})};
    return ReduceSum(Square(WhileLoop(Below(3), grow, {0, x}, {.shape_invariants = any})[1]));
  });
}

TEST(LoopGradient, F393_of_matrices) {
  CheckGradient(*Tensor::Make(DType::kDouble, Shape::Of({2, 2})), PartialShape::Of({2, 2}), [](const Output& x) {
    const Output w = Constant({{0.5, -1.0}, {0.25, 2.0}}, DType::kDouble);
    const Output b = x + Constant({{1.0, 0.5}, {-0.5, 1.5}}, DType::kDouble);
    return ReduceSum(Repeated(3, b, [&](const Output&, const Output& a) { return Tanh(MatMul(a, w) + b); }));
  });
}

TEST(LoopGradient, F393_nested) {
  for (const int inner : {0, 1, 2}) {
    Fresh f;
    const Output x = Real("x");
    const Output y = Repeated(2, Constant(1.0f), [&](const Output&, const Output& a) {
      return Repeated(inner, a, [&](const Output&, const Output& b) { return b * x; });
    });
    const Output dx = GradientOf(y, x);
    Session session(f.graph);
    EXPECT_EQ(Value(session, y, {{x, 2.0f}}), std::pow(2, 2 * inner));
    EXPECT_EQ(Value(session, dx, {{x, 2.0f}}), inner == 0 ? 0 : 2 * inner * std::pow(2, 2 * inner - 1));
  }
}

TEST(LoopGradient, F393_nested_by_a_changing_count) {
  CheckGradient(Doubles({0.75, -0.5}), PartialShape::Of({-1}), [](const Output& x) {
    return ReduceSum(Repeated(4, x, [&](const Output& i, const Output& a) {
      const Output scale = Square(a) + 0.5;
      return Repeated(i, a, [&](const Output& j, const Output& b) { return b * scale + Cast(j, DType::kDouble) * x; });
    }));
  });
}

TEST(LoopGradient, F393_conds_within) {
  CheckGradient(Doubles({0.75, -0.5}), PartialShape::Of({-1}), [](const Output& x) {
    return ReduceSum(Repeated(5, x, [&](const Output& i, const Output& a) {
      const Output even = Equal(FloorMod(i, 2), 0), late = Greater(i, 2);
      return Cond(
          even, [&] { return Square(a) * x; },
          [&] {
            return Cond(
                late, [&] { return Sigmoid(a) + x; }, [&] { return a; });
          });
    }));
  });
}

TEST(LoopGradient, F393_a_branch_that_does_not_use_it) {
  for (const PartialShape& shape : {PartialShape::Of({2}), PartialShape::Of({-1})}) {
    CheckGradient(Doubles({0.75, -0.5}), shape, [](const Output& x) {
      return ReduceSum(Repeated(4, x, [&](const Output& i, const Output& a) {
        const Output once = Equal(i, 1);
        return a + Cond(
                       once, [&] { return Square(a) * x; },
                       [&] {
                         return Constant({1.0, 2.0}, DType::kDouble);
                       });
      }));
    });
  }
}

TEST(LoopGradient, F393_loops_in_branches) {
  Fresh f;
  const Output p = Flag("p"), x = Real("x");
  const Output y = Cond(
      p, [&] { return Repeated(3, x, [&](const Output&, const Output& a) { return a * x; }); },
      [&] { return x * 5.0f; });
  const Output dx = GradientOf(y, x);
  Session session(f.graph);
  EXPECT_EQ(Value(session, dx, {{x, 2.0f}, {p, true}}), 32);
  EXPECT_EQ(Value(session, dx, {{x, 2.0f}, {p, false}}), 5);
  CheckGradient(Doubles({0.75, -0.5}), PartialShape::Of({-1}), [](const Output& v) {
    return ReduceSum(Repeated(4, v, [&](const Output& i, const Output& a) {
      const Output even = Equal(FloorMod(i, 2), 0);
      return Cond(
          even, [&] { return Repeated(i, a, [&](const Output&, const Output& b) { return Sigmoid(b) * a + v; }); },
          [&] { return a * v; });
    }));
  });
}

TEST(LoopGradient, F393_by_a_resource_used_in_a_branch) {
  Fresh f;
  const Variable r({1.0f, 2.0f}, {.name = "r", .use_resource = true});
  const Output y = Repeated(3, Constant({1.0f, 1.0f}), [&](const Output& i, const Output& a) {
    const Output once = Equal(i, 1);
    return Cond(
        once, [&] { return a * r; }, [&] { return a * 2.0f; });
  });
  const Result<std::vector<Gradient>> gradients = Gradients({y}, {r});
  ASSERT_TRUE(Succeeds(gradients));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, (*gradients)[0].values), (Numbers{4, 4}));
}

TEST(LoopGradient, F393_rows_gathered_in_each_iteration) {
  Fresh f;
  const Variable table({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}}, {.name = "table", .use_resource = true});
  const Output y = Repeated(3, Constant({0.0f, 0.0f}),
                            [&](const Output& i, const Output& a) { return a * 2.0f + Gather(table, FloorMod(i, 2)); });
  const Result<std::vector<Gradient>> gradients = Gradients({y}, {table});
  ASSERT_TRUE(Succeeds(gradients));
  EXPECT_TRUE((*gradients)[0].sparse());
  const Operation train = GradientDescentOptimizer(1).Minimize(y);
  ASSERT_TRUE(train.exists()) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_TRUE(Succeeds(session.Run(train)));
  EXPECT_EQ(Values(session, table), (Numbers{1 - 5, 2 - 5, 3 - 2, 4 - 2, 5, 6}));
}

TEST(LoopGradient, F393_two_gradients_of_one_loop) {
  Fresh f;
  const Output x = Real("x");
  const Output y = Repeated(3, x, [&](const Output&, const Output& a) { return a * x; });
  const Output first = GradientOf(y, x), second = GradientOf(Square(y), x);
  Session session(f.graph);
  const Result<Fetched> both = session.Run({first, second}, {{x, 2.0f}});
  ASSERT_TRUE(Succeeds(both));
  EXPECT_EQ(ElementAsDouble((*both)[0].tensor(), 0), 32);
  EXPECT_EQ(ElementAsDouble((*both)[1].tensor(), 0), 8 * 128);
}

TEST(LoopGradient, F393_of_an_imported_loop) {
  Fresh f;
  const Output x = Real("x");
  Identity(Repeated(3, x, [&](const Output&, const Output& a) { return a * x; }), "y");
  const Result<std::string> bytes = ExportMetaGraph(f.graph);
  ASSERT_TRUE(Succeeds(bytes));
  for (const std::string prefix : {"", "deep"}) {
    Fresh g;
    ASSERT_TRUE(Succeeds(ImportMetaGraph(*bytes, g.graph, {.import_scope = prefix})));
    const std::string at = prefix.empty() ? "" : prefix + "/";
    const Result<Output> y = g.graph.TensorByName(at + "y:0"), from = g.graph.TensorByName(at + "x:0");
    ASSERT_TRUE(Succeeds(y) && Succeeds(from));
    const Output dx = GradientOf(*y, *from);
    const Result<std::string> whole = ExportMetaGraph(g.graph);
    ASSERT_TRUE(Succeeds(whole));
    Fresh h;
    ASSERT_TRUE(Succeeds(ImportMetaGraph(*whole, h.graph)));
    const Result<Output> again = h.graph.TensorByName(dx.name()), x_again = h.graph.TensorByName(at + "x:0");
    ASSERT_TRUE(Succeeds(again) && Succeeds(x_again));
    Session session(h.graph);
    EXPECT_EQ(Value(session, *again, {{*x_again, 2.0f}}), 32);
  }
}

TEST(LoopGradient, F393_by_a_loop_variable_within_the_body) {
  Fresh f;
  const LoopVars exits = WhileLoop(Below(3),
                                   [&](const LoopVars& v) {
                                     const Output next = v[0] + 1;
                                     return LoopVars{next, v[1] + GradientOf(Square(v[1]), v[1])};
                                   },
                                   {0, 1.0f});
  ASSERT_EQ(exits.size(), 2u) << f.error();
  Session session(f.graph);
  EXPECT_EQ(Value(session, exits[1]), 27);  // times 3, three times
}

TEST(LoopGradient, F393_within_the_body) {
  Fresh f;
  const Output x = Real("x");
  const LoopVars exits =
      WhileLoop(Below(3),
                [&](const LoopVars& v) {
                  const Output inner = Repeated(2, v[1], [&](const Output&, const Output& a) { return a * x; });
                  return LoopVars{v[0] + 1, v[1] + GradientOf(inner, v[1]), v[2] + GradientOf(Square(v[1]) * x, x)};
                },
                {0, 1.0f, 0.0f});
  Session session(f.graph);
  EXPECT_EQ(Value(session, exits[1], {{x, 3.0f}}), 1 + 3 * 9);
  EXPECT_EQ(Value(session, exits[2], {{x, 3.0f}}), 1 + 10 * 10 + 19 * 19);
}

}  // namespace
}  // namespace weir::test
