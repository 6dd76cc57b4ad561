// Conds, cases and loops: values by a session, and errors. Numbers are rows of the feature list.
#include <functional>

#include "core/client/session/session_interface.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

Output IntInput(std::string_view name) { return Placeholder(DType::kInt32, PartialShape::Of({}), name); }

TEST(Cond, F173_one_branch_runs) {
  Fresh f;
  const Output x = Real("x"), y = Real("y"), a = Real("a"), b = Real("b");
  const Output product = a * b;
  const Output z = Cond(
      Less(x, y), [&] { return x + product; }, [&] { return Square(y); });
  ASSERT_TRUE(z.exists()) << f.error();
  EXPECT_EQ(z.name(), "cond/Merge:0");
  EXPECT_EQ(z.shape().ToTupleString(), "()");
  Session session(f.graph);
  EXPECT_EQ(Value(session, z, {{x, 1.0f}, {y, 5.0f}, {a, 2.0f}, {b, 3.0f}}), 7);
  EXPECT_EQ(Value(session, z, {{x, 5.0f}, {y, 1.0f}, {a, 2.0f}, {b, 3.0f}}), 1);
}

TEST(Cond, F173_side_effects_of_the_branch_taken_only) {
  Fresh f;
  const Output p = Flag("p");
  const Variable inside(0.0f, {.name = "inside"}), before(0.0f, {.name = "before"});
  const Output always = before.AssignAdd(1.0f);
  const Output z = Cond(
      p, [&] { return inside.AssignAdd(1.0f) + always; }, Returns(-1));
  ASSERT_TRUE(z.exists()) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, z, {{p, false}}), -1);
  EXPECT_EQ(Value(session, inside), 0);
  EXPECT_EQ(Value(session, before), 1);
  EXPECT_EQ(Value(session, z, {{p, true}}), 3);
  EXPECT_EQ(Value(session, inside), 1);
  EXPECT_EQ(Value(session, before), 2);
}

TEST(Cond, F173_branches_that_assign_different_variables) {
  Fresh f;
  const Output p = Flag("p");
  const Variable a(1.0f, {.name = "a"}), b(2.0f, {.name = "b"});
  const Output z = Cond(
      p, [&] { return a.Assign(5.0f); }, [&] { return b.Assign(7.0f); });
  ASSERT_TRUE(z.exists()) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, z, {{p, false}}), 7);
  EXPECT_EQ(Value(session, a), 1);
  EXPECT_EQ(Value(session, z, {{p, true}}), 5);
  EXPECT_EQ(Value(session, a), 5);
  EXPECT_EQ(Value(session, b), 7);
}

TEST(Cond, F173_operations_lists_and_nesting) {
  Fresh f;
  const Output p = Flag("p"), q = Flag("q"), x = Real("x");
  const Variable v(1.0f, {.name = "v"});
  const Output ran = Cond(
      p, [&] { return Group({v.AssignAdd(1.0f)}); }, [] { return NoOp(); });
  const std::vector<Output> two = Cond(
      p,
      [&] {
        return std::vector<Output>{x, x * 2.0f};
      },
      [&] {
        return std::vector<Output>{x * 3.0f, x};
      });
  const Output nested = Cond(
      p,
      [&] {
        return Cond(
            q, [&] { return x * 2.0f; }, [&] { return x; });
      },
      [&] { return x - 1.0f; });
  ASSERT_TRUE(nested.exists() && two.size() == 2) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, ran, {{p, false}}), 0);
  EXPECT_EQ(Value(session, v), 1);
  EXPECT_EQ(Value(session, ran, {{p, true}}), 1);
  EXPECT_EQ(Value(session, v), 2);
  EXPECT_EQ(Value(session, two[0], {{p, true}, {x, 5.0f}}), 5);
  EXPECT_EQ(Value(session, two[1], {{p, true}, {x, 5.0f}}), 10);
  EXPECT_EQ(Value(session, two[0], {{p, false}, {x, 5.0f}}), 15);
  EXPECT_EQ(Value(session, nested, {{p, true}, {q, true}, {x, 5.0f}}), 10);
  EXPECT_EQ(Value(session, nested, {{p, true}, {q, false}, {x, 5.0f}}), 5);
  EXPECT_EQ(Value(session, nested, {{p, false}, {q, false}, {x, 5.0f}}), 4);
}

/// The error of building something in a graph with placeholders.
Status ErrorOf(const std::function<void()>& build) {
  Fresh f;
  build();
  return f.graph.status();
}

TEST(Cond, F173_errors) {
  EXPECT_TRUE(Fails(ErrorOf([] { Cond(true, Returns(1), Returns(2)); }), Code::kInvalidArgument,
                    "pred must not be a Python bool"));
  EXPECT_TRUE(Fails(ErrorOf([] {
                      const Output pair = Placeholder(DType::kBool, PartialShape::Of({2}), "pair");
                      Cond(pair, Returns(1), Returns(2));
                    }),
                    Code::kInvalidArgument, "Shape must be rank 0 but is rank 1"));
  EXPECT_TRUE(Fails(ErrorOf([] { Cond(Real("x"), Returns(1), Returns(2)); }), Code::kInvalidArgument, "float32"));
  EXPECT_TRUE(Fails(ErrorOf([] {
                      Cond(
                          Flag("p"), [] { return Constant(1); }, Returns(2));
                    }),
                    Code::kInvalidArgument,
                    "must have the same type(s). Received int32 from 'true_fn' and float32 from 'false_fn'"));
  EXPECT_TRUE(Fails(ErrorOf([] {
                      Cond(
                          Flag("p"), [] { return std::vector<Output>{Constant(1)}; },
                          [] { return std::vector<Output>{}; });
                    }),
                    Code::kInvalidArgument, "'true_fn' returns 1 values, 'false_fn' 0"));
  EXPECT_TRUE(Fails(ErrorOf([] {
                      Cond(
                          Flag("p"), [] { return Output(); }, Returns(2));
                    }),
                    Code::kInvalidArgument, "'true_fn' must have a return value."));
}

TEST(Cond, F173_inner_values_cannot_be_fetched) {
  Fresh f;
  const Output p = Flag("p"), x = Real("x");
  Output inner;
  const Output z = Cond(
      p,
      [&] {
        inner = x * 2.0f;
        return inner;
      },
      [&] { return x; });
  ASSERT_TRUE(z.exists()) << f.error();
  Session session(f.graph);
  const Feeds feeds = {{p, true}, {x, 1.0f}};
  const char* text = "Operation 'cond/mul' has been marked as not fetchable";
  EXPECT_TRUE(Fails(session.Run(inner, feeds), Code::kInvalidArgument, text));
  EXPECT_TRUE(Fails(session.Run(inner.op(), feeds), Code::kInvalidArgument, text));
  EXPECT_TRUE(Fails(session.Run("cond/mul:0", feeds), Code::kInvalidArgument, text));
}

TEST(Case, F174_first_that_holds) {
  Fresh f;
  const Output x = Real("x");
  const std::vector<std::pair<Output, BranchFn>> branches = {{Less(x, 1.0f), Returns(10)},
                                                             {Less(x, 2.0f), Returns(20)}};
  const Output with = Case(branches, Returns(30));
  const Output exclusive = Case(branches, Returns(30), {.exclusive = true});
  const Output without = Case(branches);
  ASSERT_TRUE(without.exists()) << f.error();
  Session session(f.graph);
  EXPECT_EQ(Value(session, with, {{x, 0.0f}}), 10);
  EXPECT_EQ(Value(session, with, {{x, 1.5f}}), 20);
  EXPECT_EQ(Value(session, with, {{x, 5.0f}}), 30);
  EXPECT_EQ(Value(session, exclusive, {{x, 1.5f}}), 20);
  EXPECT_EQ(Value(session, exclusive, {{x, 5.0f}}), 30);
  EXPECT_TRUE(Fails(session.Run(exclusive, {{x, 0.0f}}), Code::kInvalidArgument,
                    "exclusive=True: more than 1 conditions (Less:0, Less_1:0) evaluated as True:"));
  EXPECT_EQ(Value(session, without, {{x, 0.0f}}), 10);
  EXPECT_EQ(Value(session, without, {{x, 1.5f}}), 20);
  EXPECT_TRUE(
      Fails(session.Run(without, {{x, 5.0f}}), Code::kInvalidArgument, "None of conditions evaluated as True:"));
}

TEST(Case, F174_errors) {
  EXPECT_TRUE(Fails(ErrorOf([] {
                      Case(std::vector<std::pair<Output, BranchFn>>{{Real("x"), Returns(1)}});
                    }),
                    Code::kInvalidArgument, "pred must be Tensor of type bool: x:0"));
  EXPECT_TRUE(Fails(ErrorOf([] {
                      Case(std::vector<std::pair<Output, BranchFn>>{{Output(), Returns(1)}});
                    }),
                    Code::kInvalidArgument, "pred must be a Tensor, got: None"));
  EXPECT_TRUE(Fails(ErrorOf([] {
                      Case(std::vector<std::pair<Output, BranchFn>>{{Flag("p"), nullptr}});
                    }),
                    Code::kInvalidArgument, "fn for pred p:0 must be callable."));
}

TEST(Group, F175_runs_its_operations) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"});
  const Operation both = Group({v.AssignAdd(1.0f), Constant(2.0f)});
  EXPECT_EQ(both.name(), "group_deps");
  EXPECT_EQ(Group({}).name(), "group_deps_1");
  EXPECT_EQ(both.type(), "NoOp");
  Session session(f.graph);
  Initialize(session);
  EXPECT_TRUE(Succeeds(session.Run(both)));
  EXPECT_EQ(Value(session, v), 2);
}

TEST(Tuple, F176_all_or_nothing) {
  Fresh f;
  const Variable w(1.0f, {.name = "w"});
  const Variable seen(0.0f, {.name = "seen"});
  const std::vector<Output> both = Tuple({w * 2.0f, Output(), w + 2.0f}, {seen.AssignAdd(1.0f)});
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(both[0].name(), "tuple/control_dependency:0");
  EXPECT_FALSE(both[1].exists());
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, both[0]), 2);
  EXPECT_EQ(Value(session, both[2]), 3);
  EXPECT_EQ(Value(session, seen), 2);
  EXPECT_TRUE(Fails(ErrorOf([] { Tuple({}); }), Code::kInvalidArgument, "Must have at least one Tensor"));
}

TEST(Assert, F390_data_of_the_error) {
  Fresh f;
  const Output p = Flag("p");
  const Operation check = Assert(p, {-1, "txt", Operand({1.5f, 2.0f})});
  ASSERT_TRUE(check.exists()) << f.error();
  EXPECT_EQ(check.name(), "Assert/AssertGuard/Merge");
  Session session(f.graph);
  EXPECT_TRUE(Succeeds(session.Run(check, {{p, true}})));
  EXPECT_TRUE(Fails(session.Run(check, {{p, false}}), Code::kInvalidArgument, "assertion failed: [-1] [txt] [1.5 2]"));
  EXPECT_TRUE(Fails(ErrorOf([] { Assert(Flag("p"), {}); }), Code::kInvalidArgument,
                    "Attr 'T' of 'Assert' Op passed list of length 0 less than minimum 1."));
}

LoopVars Summing(const LoopVars& v) {
  const Output next = v[0] + 1;
  const Output twice = 2.0f * v[1];
  return {next, twice + Cast(v[0], DType::kFloat)};
}
TEST(WhileLoop, F177_sums_and_leaves) {
  Fresh f;
  const Output n = IntInput("n");
  const LoopVars sum = WhileLoop([&](const LoopVars& v) { return Less(v[0], n); },
                                 [](const LoopVars& v) {
                                   const Output next = v[0] + 1;
                                   return LoopVars{next, v[1] + v[0]};
                                 },
                                 {0, 0});
  ASSERT_EQ(sum.size(), 2u) << f.error();
  EXPECT_EQ(sum[0].name(), "while/Exit:0");
  EXPECT_EQ(sum[1].name(), "while/Exit_1:0");
  Session session(f.graph);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Value(session, sum[1], {{n, 10}}), 45);
    EXPECT_EQ(Value(session, sum[1], {{n, 0}}), 0);
    EXPECT_EQ(Value(session, sum[1], {{n, 1000}}), 499500);
  }
}

TEST(WhileLoop, F392_arguments_that_do_not_change_values) {
  for (const int64_t parallel : {1, 10}) {
    for (const bool flag : {false, true}) {
      Fresh f;
      const LoopVars exits = WhileLoop(Below(10), Summing, {0, 1.0f},
                                       {.parallel_iterations = parallel, .back_prop = flag, .swap_memory = !flag});
      ASSERT_EQ(exits.size(), 2u) << f.error();
      Session session(f.graph);
      EXPECT_EQ(Value(session, exits[0]), 10);
      EXPECT_EQ(Value(session, exits[1]), 2037);
    }
  }
}

TEST(WhileLoop, F392_random_numbers_and_updates_keep_their_order) {
  std::vector<Tensor> wanted;
  for (const auto& [parallel, inter_op] : {std::pair(1, 1), std::pair(10, 4), std::pair(3, 4)}) {
    Fresh f;
    const Variable v(1.0f, {.name = "v"});
    const LoopVars exits =
        WhileLoop(Below(7),
                  [&](const LoopVars& x) {
                    const Output noise = RandomUniform({200, 200}, 0, 1, {.seed = 7});
                    const Output mean = ReduceMean(MatMul(noise, noise) + MatMul(noise, noise, {.transpose_b = true}));
                    return LoopVars{x[0] + 1, x[1] * 0.5f + v.Assign(v.value() * 0.5f + mean)};
                  },
                  {0, 1.0f}, {.parallel_iterations = parallel});
    ASSERT_EQ(exits.size(), 2u) << f.error();
    session::SessionOptions options;
    options.inter_op_parallelism_threads = inter_op;
    Session session(f.graph, InProcess(f.graph, options));
    Initialize(session);
    std::vector<Tensor> got;
    for (int run = 0; run < 3; ++run)
      got.push_back(Tensor::Scalar<float>(static_cast<float>(Value(session, exits[1]))));
    if (wanted.empty()) wanted = got;
    for (size_t run = 0; run < got.size(); ++run)
      EXPECT_TRUE(got[run].SameBits(wanted[run])) << parallel << ", " << run;
  }
}

TEST(WhileLoop, F392_a_variable_keeps_what_another_one_was) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({3}), "x");
  const Output length = Placeholder(DType::kInt32, PartialShape::Of({1}), "length");
  const LoopVars exits = WhileLoop([](const LoopVars& v) { return Less(ReduceMax(v[0]), 50.0f); },
                                   [&](const LoopVars& v) {
                                     return LoopVars{v[0] * 2.0f, Reshape(v[0], length)};  // of unknown shape
                                   },
                                   {x, x}, {.shape_invariants = {PartialShape::Of({3}), PartialShape::Of({-1})}});
  ASSERT_EQ(exits.size(), 2u) << f.error();
  Session session(f.graph);
  const Result<Fetched> got = session.Run(Fetch::List{exits[0], exits[1]}, {{x, {1.0f, 2.0f, 3.0f}}, {length, {-1}}});
  ASSERT_TRUE(Succeeds(got));
  EXPECT_TRUE((*got)[0].tensor().SameBits(Tensor::Vector<float>({32, 64, 96})));
  EXPECT_TRUE((*got)[1].tensor().SameBits(Tensor::Vector<float>({16, 32, 48})));
}

TEST(WhileLoop, F392_strings) {
  Fresh f;
  const Output word = Placeholder(DType::kString, PartialShape::Of({}), "word");
  const LoopVars exits = WhileLoop(Below(4),
                                   [&](const LoopVars& v) {
                                     const Output even = Equal(FloorMod(v[0], 2), 0);
                                     return LoopVars{v[0] + 1,
                                                     Cond(
                                                         even, [&] { return word; }, [&] { return v[1]; }),
                                                     v[1]};
                                   },
                                   {0, "first", "second"});
  const LoopVars none = WhileLoop(Below(0), [](const LoopVars& v) { return LoopVars{v[0] + 1, v[1]}; }, {0, "kept"});
  ASSERT_EQ(none.size(), 2u) << f.error();
  Session session(f.graph);
  const Result<Fetched> got =
      session.Run(Fetch::List{exits[1], exits[2], none[1]}, {{word, Tensor::Scalar<std::string>("fed")}});
  ASSERT_TRUE(Succeeds(got));
  EXPECT_TRUE((*got)[0].tensor().SameBits(Tensor::Scalar<std::string>("fed")));
  EXPECT_TRUE((*got)[1].tensor().SameBits(Tensor::Scalar<std::string>("fed")));
  EXPECT_TRUE((*got)[2].tensor().SameBits(Tensor::Scalar<std::string>("kept")));
}

TEST(WhileLoop, F392_maximum_iterations) {
  Fresh f;
  const Output limit = IntInput("limit");
  const LoopVars fixed = WhileLoop(Below(10), Summing, {0, 1.0f}, {.maximum_iterations = 3});
  const LoopVars fed = WhileLoop(Below(10), Summing, {0, 1.0f}, {.maximum_iterations = limit});
  ASSERT_EQ(fed.size(), 2u) << f.error();
  Session session(f.graph);
  EXPECT_EQ(Value(session, fixed[0]), 3);
  EXPECT_EQ(Value(session, fixed[1]), 12);
  EXPECT_EQ(Value(session, fed[1], {{limit, 3}}), 12);
  EXPECT_EQ(Value(session, fed[1], {{limit, 0}}), 1);
  EXPECT_EQ(Value(session, fed[1], {{limit, 100}}), 2037);
  EXPECT_TRUE(Fails(ErrorOf([] {
                      const Output pair = Placeholder(DType::kInt32, PartialShape::Of({2}), "pair");
                      WhileLoop(Below(1), Summing, {0, 1.0f}, {.maximum_iterations = pair});
                    }),
                    Code::kInvalidArgument, "maximum_iterations must be a scalar, saw shape: (2,)"));
}

/// A loop whose second variable doubles in length.
LoopVars Doubling(const Output& x, const WhileOptions& options) {
  return WhileLoop(
      Below(3),
      [](const LoopVars& v) {
        const Output next = v[0] + 1;
        return LoopVars{next, Concat({v[1], v[1]}, 0)};
      },
      {0, x}, options);
}

TEST(WhileLoop, F392_shape_invariants) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({1}), "x");
  const WhileOptions options = {.shape_invariants = {PartialShape::Of({}), PartialShape::Of({-1})}};
  const LoopVars exits = Doubling(x, options);
  ASSERT_EQ(exits.size(), 2u) << f.error();
  EXPECT_EQ(exits[1].shape().ToTupleString(), "(?,)");
  Session session(f.graph);
  EXPECT_EQ(Values(session, exits[1], {{x, {1.0f}}}), std::vector<double>(8, 1.0));
}

TEST(WhileLoop, F392_errors_of_shapes) {
  const auto x = [] { return Placeholder(DType::kFloat, PartialShape::Of({1}), "x"); };
  EXPECT_TRUE(Fails(ErrorOf([&] { Doubling(x(), {}); }), Code::kInvalidArgument,
                    "Input tensor 'x:0' enters the loop with shape (1,), but has shape (2,) after one iteration. To "
                    "allow the shape to vary across iterations, use the `shape_invariants` argument of tf.while_loop "
                    "to specify a less-specific shape."));
  EXPECT_TRUE(Fails(ErrorOf([&] {
                      Doubling(x(), {.shape_invariants = {PartialShape::Of({}), PartialShape::Of({2})}});
                    }),
                    Code::kInvalidArgument,
                    "The shape invariant specified for x:0 is not compatible with the initial shape of the loop "
                    "variable. It enters the loop with shape (1,), but the specified shape invariant is (2,)."));
  EXPECT_TRUE(Fails(ErrorOf([&] { Doubling(x(), {.shape_invariants = {PartialShape::Of({})}}); }),
                    Code::kInvalidArgument, "The two structures don't have the same nested structure."));
}

Status LoopError(const LoopCondFn& cond, const LoopBodyFn& body, const std::vector<Operand>& vars,
                 const WhileOptions& options = {}) {
  return ErrorOf([&] { WhileLoop(cond, body, vars, options); });
}

TEST(WhileLoop, F392_errors_of_arguments) {
  const LoopBodyFn same = [](const LoopVars& v) { return v; };
  const auto fails = [](const Status& status, std::string_view text) {
    return Fails(status, Code::kInvalidArgument, text);
  };
  EXPECT_TRUE(fails(LoopError(Below(1), [](const LoopVars& v) { return LoopVars{v[0]}; }, {0, 1}),
                    "The two structures don't have the same nested structure."));
  EXPECT_TRUE(fails(LoopError(
                        [](const LoopVars&) {
                          return Constant({true, true});
                        },
                        same, {0}),
                    "Shape must be rank 0 but is rank 1"));
  EXPECT_TRUE(fails(LoopError([](const LoopVars& v) { return v[0]; }, same, {0}),
                    "Input 'input' of 'LoopCond' Op has type int32 that does not match expected type of bool."));
  EXPECT_TRUE(fails(LoopError(Below(1), same, {0}, {.parallel_iterations = 0}),
                    "parallel_iterations must be a positive integer."));
  EXPECT_TRUE(fails(LoopError(nullptr, same, {0}), "cond must be callable."));
  EXPECT_TRUE(fails(LoopError(Below(1), nullptr, {0}), "body must be callable."));
  EXPECT_TRUE(fails(LoopError(Below(1), same, {}), "No loop variables provided"));
  EXPECT_TRUE(fails(LoopError(Below(1), [](const LoopVars& v) { return LoopVars{Cast(v[0], DType::kFloat)}; }, {0}),
                    "Input 1 of node while/Merge was passed float from while/NextIteration:0 incompatible with "
                    "expected int32."));
  EXPECT_TRUE(fails(LoopError(Below(1), [](const LoopVars&) { return LoopVars{Output()}; }, {0}),
                    "body must return a value for each loop variable"));
}

TEST(WhileLoop, F177_inner_values_stay_inside) {
  Output inner;
  EXPECT_TRUE(Fails(ErrorOf([&] {
                      WhileLoop([](Output i) { return Less(i, 3); },
                                [&](Output i) {
                                  inner = i * 2;
                                  return i + 1;
                                },
                                0);
                      inner + 1;
                    }),
                    Code::kInvalidArgument,
                    "Cannot use 'while/mul' as input to 'add' because 'while/mul' is in a while loop."));
  Fresh f;
  const Output last = WhileLoop([](Output i) { return Less(i, 3); },
                                [&](Output i) {
                                  inner = i * 2;
                                  return i + 1;
                                },
                                0);
  ASSERT_TRUE(last.exists()) << f.error();
  Session session(f.graph);
  EXPECT_TRUE(Fails(session.Run(inner), Code::kInvalidArgument, "has been marked as not fetchable"));
  EXPECT_TRUE(Fails(session.Run(last, {{inner, 1}}), Code::kInvalidArgument, "may not be fed."));
  EXPECT_EQ(Value(session, last), 3);
}

TEST(WhileLoop, F177_nested_loops_and_conds) {
  Fresh f;
  const Output x = Real("x"), p = Flag("p");
  const auto inner = [&](const Output& outer, const Output& start) {
    const LoopVars exits = WhileLoop(Below(2),
                                     [&](const LoopVars& v) {
                                       const Output next = v[0] + 1;
                                       const Output product = v[1] * x;
                                       return LoopVars{next, product + Cast(outer, DType::kFloat)};
                                     },
                                     {0, start});
    return exits.size() == 2 ? exits[1] : Output();
  };
  const LoopVars loops = WhileLoop(Below(2),
                                   [&](const LoopVars& v) {
                                     const Output next = v[0] + 1;
                                     return LoopVars{next, inner(v[0], v[1])};
                                   },
                                   {0, x});
  const LoopVars conds =
      WhileLoop(Below(4),
                [&](const LoopVars& v) {
                  const Output even = Equal(FloorMod(v[0], 2), 0);
                  const Output next = v[0] + 1;
                  return LoopVars{next, Cond(
                                            even, [&] { return v[1] + x; }, [&] { return v[1] * 2.0f; })};
                },
                {0, x});
  const Output maybe = Cond(
      p, [&] { return inner(Constant(1), x); }, [&] { return x; });
  ASSERT_TRUE(maybe.exists()) << f.error();
  Session session(f.graph);
  EXPECT_EQ(Value(session, loops[1], {{x, 2.0f}}), 8 * 4 + 2 + 1);  // 2 -> 4 -> 8, then (8 * 2 + 1) * 2 + 1
  EXPECT_EQ(Value(session, conds[1], {{x, 1.0f}}), 10);             // 2, 4, 5, 10
  EXPECT_EQ(Value(session, maybe, {{x, 3.0f}, {p, true}}), 31);     // 3 -> 10 -> 31
  EXPECT_EQ(Value(session, maybe, {{x, 3.0f}, {p, false}}), 3);
}

TEST(WhileLoop, F177_variables_made_inside_are_outside) {
  Fresh f;
  const LoopVars exits =
      WhileLoop([](const LoopVars& v) { return Less(v[0], 3); },
                [](const LoopVars& v) {
                  const Output next = v[0] + 1;
                  return LoopVars{next, v[1] + GetVariable("w", Shape(), DType::kFloat, OnesInitializer())};
                },
                {0, 1.0f});
  ASSERT_EQ(exits.size(), 2u) << f.error();
  const Result<Operation> assign = f.graph.OperationByName("w/Assign");
  ASSERT_TRUE(Succeeds(assign));
  EXPECT_TRUE(assign->control_inputs().empty());
  EXPECT_TRUE(Succeeds(f.graph.OperationByName("while/add_1/Enter")));
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, exits[1]), 4);
}

TEST(WhileLoop, F177_state_and_control_dependencies) {
  Fresh f;
  const Variable v(0.0f, {.name = "v"}), before(0.0f, {.name = "before"});
  const Output start = before.AssignAdd(1.0f);
  const Output last = [&] {
    const ControlDependencies after({start.op()});
    return WhileLoop([](Output i) { return Less(i, 5); },
                     [&](Output i) {
                       const ControlDependencies inner({v.AssignAdd(2.0f).op()});
                       return i + 1;
                     },
                     0);
  }();
  ASSERT_TRUE(last.exists()) << f.error();
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Value(session, last), 5);
  EXPECT_EQ(Value(session, v), 10);
  EXPECT_EQ(Value(session, before), 1);
}

}  // namespace
}  // namespace weir::test
