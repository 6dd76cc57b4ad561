// Updates of parts of variables, counters, assignments of another shape.
#include <fmt/format.h>

#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

struct Change {
  const ScatterOp* op;
  std::vector<double> apart;  // [1,2,3] after rows [0,2] and [9,8]
  std::vector<double> twice;  // after rows [0,0] and [9,8]
};

const Change kChanges[] = {
    {&ScatterUpdate, {9, 2, 8}, {8, 2, 3}},
    {&ScatterAdd, {10, 2, 11}, {18, 2, 3}},
    {&ScatterSub, {-8, 2, -5}, {-16, 2, 3}},
    {&ScatterMul, {9, 2, 24}, {72, 2, 3}},
    {&ScatterDiv, {1.0f / 9, 2, 3.0f / 8}, {1.0f / 9 / 8, 2, 3}},
    {&ScatterMin, {1, 2, 3}, {1, 2, 3}},
    {&ScatterMax, {9, 2, 8}, {9, 2, 3}},
    {&ScatterNdUpdate, {9, 2, 8}, {8, 2, 3}},
    {&ScatterNdAdd, {10, 2, 11}, {18, 2, 3}},
    {&ScatterNdSub, {-8, 2, -5}, {-16, 2, 3}},
};

bool Slices(const ScatterOp& op) { return std::string_view(op.op).find("Nd") != std::string_view::npos; }
Literal Indices(const ScatterOp& op, int a, int b) {
  return Slices(op) ? Literal({Literal({a}), Literal({b})}) : Literal({a, b});
}

TEST(StateOps, F360_scatters_change_rows_in_order) {
  for (const bool resource : {false, true}) {
    for (const Change& change : kChanges) {
      Fresh f;
      const Variable v({1.0f, 2.0f, 3.0f}, {.name = "v", .use_resource = resource});
      const Output apart = (*change.op)(v, Indices(*change.op, 0, 2), {9.0f, 8.0f});
      const Output twice = (*change.op)(v, Indices(*change.op, 0, 0), {9.0f, 8.0f});
      Session session(f.graph);
      Initialize(session);
      EXPECT_EQ(Values(session, apart), change.apart) << change.op->op;
      EXPECT_EQ(Values(session, v), change.apart) << change.op->op;
      Initialize(session);
      EXPECT_EQ(Values(session, twice), change.twice) << change.op->op;
    }
  }
}

TEST(StateOps, F360_names_types_and_attributes) {
  Fresh f;
  const Variable v({1.0f, 2.0f, 3.0f}, {.name = "v"});
  for (const Change& change : kChanges) {
    const Output out = (*change.op)(v, Indices(*change.op, 0, 2), {9.0f, 8.0f});
    ASSERT_TRUE(out.exists()) << f.error();
    EXPECT_EQ(out.ToString(), fmt::format("Tensor(\"{}:0\", shape=(3,), dtype=float32_ref)", change.op->op));
    const Result<bool> locks = out.op().node().attrs().Bool("use_locking");
    ASSERT_TRUE(locks.ok());
    EXPECT_EQ(*locks, change.op->op == std::string_view("ScatterUpdate") ||
                          change.op->op == std::string_view("ScatterNdUpdate"));
  }
  const std::vector<std::string> names = NodeNames(f.graph);
  EXPECT_EQ(std::vector<std::string>(names.begin() + 4, names.begin() + 7),
            (std::vector<std::string>{"ScatterUpdate/indices", "ScatterUpdate/updates", "ScatterUpdate"}));
}

TEST(StateOps, F360_nodes_of_the_forms_on_handles) {
  Fresh f;
  const Variable v({1.0f, 2.0f, 3.0f}, {.name = "v", .use_resource = true});
  const size_t before = NodeNames(f.graph).size();
  const Output out = ScatterNdAdd(v, {{0}, {2}}, {9.0f, 8.0f});
  const std::vector<std::string> names = NodeNames(f.graph);
  EXPECT_EQ(
      std::vector<std::string>(names.begin() + static_cast<ptrdiff_t>(before), names.end()),
      (std::vector<std::string>{"Const", "ResourceScatterNdAdd/indices", "ResourceScatterNdAdd", "ReadVariableOp"}));
  EXPECT_EQ(out.op().control_inputs().size(), 1u);
}

TEST(StateOps, GeneratorsInVariablesOfOtherTypesAreRefused) {
  for (const bool reads : {false, true}) {
    Fresh f;
    const Variable narrow(Tensor::Vector<int32_t>({1, 2, 3}), {.name = "v", .use_resource = true});
    Session session(f.graph);
    Initialize(session);
    Status status;
    if (reads) {
      const Output delta = Constant(Tensor::Scalar<uint64_t>(1));
      status = session.Run(BuildOp("RngReadAndSkip", {narrow.handle(), Constant(1), delta}).output(0)).status();
    } else {
      const Output one = Constant(Tensor::Scalar<int64_t>(1));
      status = session.Run(BuildOp("RngSkip", {narrow.handle(), one, one})).status();
    }
    EXPECT_TRUE(Fails(status, Code::kInvalidArgument, "dtype of RNG state variable must be int64, not int32"));
  }
}

TEST(StateOps, F360_rows_scalar_indices_and_scalar_updates) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable v({{1.0f, 2.0f}, {3.0f, 4.0f}}, {.name = "v", .use_resource = resource});
    const Output both = ScatterUpdate(v, {0, 1}, 5.0f), one = ScatterUpdate(v, 1, {7.0f, 8.0f});
    const Output element = ScatterNdAdd(v, {{0, 1}, {0, 1}}, {1.0f, 2.0f});
    Session session(f.graph);
    Initialize(session);
    EXPECT_EQ(Values(session, both), (std::vector<double>{5, 5, 5, 5}));
    EXPECT_EQ(Values(session, one), (std::vector<double>{5, 5, 7, 8}));
    EXPECT_EQ(Values(session, element), (std::vector<double>{5, 8, 7, 8}));
  }
}

TEST(StateOps, F360_indices_that_are_outside) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable v({1.0f, 2.0f, 3.0f}, {.name = "v", .use_resource = resource});
    const Output rows = Placeholder(DType::kInt32), by = Placeholder(DType::kFloat);
    const Output update = ScatterUpdate(v, rows, by), slices = ScatterNdUpdate(v, rows, by);
    Session session(f.graph);
    Initialize(session);
    const auto text = [&](const Output& op, Literal at, Literal values, std::string_view wanted) {
      EXPECT_TRUE(Fails(session.Run(op, {{rows, at}, {by, values}}), Code::kInvalidArgument, wanted));
    };
    text(update, {0, 3}, {1.0f, 1.0f}, "indices[1] = 3 is not in [0, 3)");
    text(update, {-1}, {1.0f}, "indices[0] = -1 is not in [0, 3)");
    text(update, 5, 1.0f, "indices = 5 is not in [0, 3)");
    text(update, {{0, 1}, {2, 5}}, {{1.0f, 1.0f}, {1.0f, 1.0f}}, "indices[1,1] = 5 is not in [0, 3)");
    text(slices, Tensor::Of<int32_t>(Shape::Of({1, 1}), {5}), {1.0f}, "indices[0] = [5] does not index into shape [3]");
    text(slices, {Literal({0}), Literal({-1})}, {1.0f, 1.0f}, "indices[1] = [-1] does not index into shape [3]");
    text(slices, Tensor::Of<int32_t>(Shape::Of({1, 2, 1}), {0, 4}), {{1.0f, 1.0f}},
         "indices[0,1] = [4] does not index into shape [3]");
    text(slices, Tensor::Of<int32_t>(Shape::Of({1, 2}), {0, 1}), {1.0f},
         "Dimensions [2,1) of input[shape=[3]] must match dimensions");
    EXPECT_EQ(Values(session, v), (std::vector<double>{1, 2, 3}));
  }
}

TEST(StateOps, F360_what_the_graph_refuses) {
  Fresh f;
  const Variable v({1.0f, 2.0f, 3.0f}, {.name = "v"});
  ScatterUpdate(v, {0, 1}, {1.0f, 1.0f, 1.0f});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Dimension 0 in both shapes must be equal, but are 3 and 2. Shapes are [3] and [2]."));
  ScatterUpdate(v, {1.0f}, {1.0f});
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "Value passed to parameter 'indices' has DataType float32 not in list of allowed values: int32, "
                    "int64"));
  const Variable n({4, 5}, {.name = "n"});
  const Output none = ScatterDiv(n, {0}, {0});
  Session session(f.graph);
  Initialize(session);
  EXPECT_TRUE(Fails(session.Run(none), Code::kInvalidArgument, "updates must not contain 0"));
  EXPECT_EQ(Values(session, n), (std::vector<double>{4, 5}));
  Session fresh(f.graph);
  EXPECT_TRUE(Fails(fresh.Run(none), Code::kFailedPrecondition, "Attempting to use uninitialized value n"));
}

TEST(StateOps, F360_strings_are_replaced_too) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable v(std::vector<std::string>{"a", "b"}, {.name = "v", .use_resource = resource});
    const Output row = ScatterUpdate(v, {1}, std::vector<std::string>{"c"});
    const Output slice = ScatterNdUpdate(v, {{0}}, std::vector<std::string>{"d"});
    Session session(f.graph);
    Initialize(session);
    const auto texts = [&](const Fetch& fetch) {
      const Result<Fetched> fetched = session.Run(fetch);
      EXPECT_TRUE(Succeeds(fetched));
      return fetched.ok() ? std::vector<std::string>(fetched->tensor().as<std::string>().begin(),
                                                     fetched->tensor().as<std::string>().end())
                          : std::vector<std::string>();
    };
    const std::vector<std::string> before = texts(v);
    EXPECT_EQ(texts(row), (std::vector<std::string>{"a", "c"}));
    EXPECT_EQ(texts(slice), (std::vector<std::string>{"d", "c"}));
    EXPECT_EQ(texts(v), (std::vector<std::string>{"d", "c"}));
    EXPECT_EQ(before, (std::vector<std::string>{"a", "b"}));
  }
}

TEST(StateOps, F358_count_up_to) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable v(0, {.name = "v", .use_resource = resource});
    const Output two = CountUpTo(v, 2), five = CountUpTo(v, 5);
    ASSERT_TRUE(two.exists()) << f.error();
    EXPECT_EQ(two.op().name(), resource ? "ResourceCountUpTo" : "CountUpTo");
    EXPECT_EQ(two.shape().ToTupleString(), "()");
    Session session(f.graph);
    Initialize(session);
    EXPECT_EQ(Value(session, two), 0);
    EXPECT_EQ(Value(session, two), 1);
    EXPECT_TRUE(Fails(session.Run(two), Code::kOutOfRange, "Reached limit of 2"));
    EXPECT_EQ(Value(session, v), 2);
    EXPECT_EQ(Value(session, five), 2);
    EXPECT_EQ(Value(session, v), 3);
  }
}

TEST(StateOps, F358_what_cannot_count) {
  for (const bool resource : {false, true}) {
    Fresh f;
    const Variable real(0.0f, {.name = "real", .use_resource = resource});
    CountUpTo(real, 2);
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                      resource ? "has DataType float32 not in list of allowed values: int32, int64"
                               : "Value passed to parameter 'ref' has DataType float32 not in list of allowed values: "
                                 "int32, int64"));
    const Variable vector({0, 1}, {.name = "vector", .use_resource = resource});
    CountUpTo(vector, 2);
    EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "Shape must be rank 0 but is rank 1"));
    const Variable v(0, {.name = "v", .use_resource = resource});
    const Output count = CountUpTo(v, 2);
    Session session(f.graph);
    EXPECT_EQ(session.Run(count).status().code(), resource ? Code::kNotFound : Code::kFailedPrecondition);
  }
}

/// z = [1, 2], which becomes [1, 2, 3] when `session` runs this.
struct Reshaped {
  Fresh f;
  Variable z{{1.0f, 2.0f}, {.name = "z"}};
  Output longer = Assign(z, {1.0f, 2.0f, 3.0f}, {.validate_shape = false});
};

TEST(StateOps, F359_an_assigned_value_of_another_shape_is_read) {
  Reshaped m;
  const Output shape = BuildOp("Shape", {m.z}).output(0), again = m.z.ReadValue(), negative = -m.z;
  const Output sum = ReduceSum(m.z), flat = Reshape(m.z, {-1}), row = ScatterUpdate(m.z, {2}, {9.0f});
  ASSERT_TRUE(m.f.graph.status().ok()) << m.f.error();
  EXPECT_EQ(m.longer.shape().ToTupleString(), "(3,)");
  EXPECT_EQ(m.z.shape().ToTupleString(), "(2,)");
  Session session(m.f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, m.z), (std::vector<double>{1, 2}));
  EXPECT_EQ(Values(session, negative), (std::vector<double>{-1, -2}));
  EXPECT_EQ(Values(session, m.longer), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Values(session, m.z), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Values(session, again), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Values(session, m.z.handle()), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Values(session, shape), std::vector<double>{2});
  EXPECT_EQ(Values(session, negative), (std::vector<double>{-1, -2, -3}));
  EXPECT_EQ(Values(session, sum), std::vector<double>{6});
  EXPECT_EQ(Values(session, flat), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Values(session, row), (std::vector<double>{1, 2, 9}));
}

TEST(StateOps, F359_what_no_longer_fits_is_said_by_the_run) {
  Reshaped m;
  const Output added = m.z + Constant({1.0f, 2.0f}), back = m.z.Assign({1.0f, 2.0f});
  const Output more = m.z.AssignAdd({1.0f, 2.0f}), less = m.z.AssignSub({1.0f, 2.0f});
  Session session(m.f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, added), (std::vector<double>{2, 4}));
  ASSERT_TRUE(Succeeds(session.Run(m.longer)));
  EXPECT_TRUE(Fails(session.Run(added), Code::kInvalidArgument, "Incompatible shapes: [2] vs. [3]"))
      << "Const comes before z in the alphabet";
  const std::string_view assign = "Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]";
  EXPECT_TRUE(Fails(session.Run(m.z.initializer()), Code::kInvalidArgument, assign));
  EXPECT_TRUE(Fails(session.Run(back), Code::kInvalidArgument, assign));
  EXPECT_TRUE(Fails(session.Run(more), Code::kInvalidArgument, "Parameters and update must be the same size"));
  EXPECT_TRUE(Fails(session.Run(less), Code::kInvalidArgument, "Parameters and update must be the same size"));
  EXPECT_EQ(Values(session, m.z), (std::vector<double>{1, 2, 3}));
}

TEST(StateOps, F359_a_step_compiled_before_takes_the_new_shape) {
  Fresh f;
  const Variable z({1.0f, 2.0f}, {.name = "z"});
  const Output before = z + z;
  Session session(f.graph);
  Initialize(session);
  EXPECT_EQ(Values(session, before), (std::vector<double>{2, 4}));
  ASSERT_TRUE(Succeeds(session.Run(Assign(z, {{5.0f}}, {.validate_shape = false}))));
  EXPECT_EQ(Values(session, before), std::vector<double>{10});
  EXPECT_EQ(Values(session, z + z), std::vector<double>{10});
}

TEST(StateOps, F359_shapes_that_are_known_at_the_run_only) {
  Fresh f;
  const Output p = Placeholder(DType::kFloat, PartialShape(), "p");
  const Variable z({1.0f, 2.0f}, {.name = "z"});
  const Output set = z.Assign(p), more = z.AssignAdd(p), less = z.AssignSub(p);
  Session session(f.graph);
  Initialize(session);
  const Feeds one = {{p, {7.0f}}};
  EXPECT_TRUE(Fails(session.Run(set, one), Code::kInvalidArgument,
                    "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [1]"));
  EXPECT_TRUE(Fails(session.Run(more, one), Code::kInvalidArgument, "Parameters and update must be the same size"));
  EXPECT_TRUE(Fails(session.Run(less, one), Code::kInvalidArgument, "Parameters and update must be the same size"));
  const Output any = Assign(z, p, {.validate_shape = false});
  EXPECT_EQ(Values(session, any, {{p, {{1.0f}, {2.0f}}}}), (std::vector<double>{1, 2}));
  EXPECT_TRUE(Fails(session.Run(set, one), Code::kInvalidArgument, "lhs shape= [2,1] rhs shape= [1]"));
}

TEST(StateOps, F359_variables_without_a_static_shape) {
  Fresh f;
  const Output p = Placeholder(DType::kFloat, PartialShape(), "p");
  const Variable refused(p);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument,
                    "initial_value must have a shape specified: Tensor(\"p:0\", dtype=float32)"));
  const Variable q(p, {.name = "q", .validate_shape = false});
  EXPECT_EQ(q.ToString(), "<tf.Variable 'q:0' shape=<unknown> dtype=float32_ref>");
  const Output shape = BuildOp("Shape", {q}).output(0), set = q.Assign({5.0f, 6.0f});
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(q.initializer(), {{p, {1.0f, 2.0f}}})));
  EXPECT_EQ(Values(session, q), (std::vector<double>{1, 2}));
  ASSERT_TRUE(Succeeds(session.Run(q.initializer(), {{p, {{1.0f, 2.0f, 3.0f}}}})));
  EXPECT_EQ(Values(session, q), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Values(session, shape), (std::vector<double>{1, 3}));
  EXPECT_TRUE(Fails(session.Run(set), Code::kInvalidArgument,
                    "Assign requires shapes of both tensors to match. lhs shape= [1,3] rhs shape= [2]"));
}

/// Doubles a number three times, through a temporary variable of each iteration.
Output DoubledInALoop(bool destroys) {
  const auto go_on = [](const LoopVars& v) { return v[0] < 3; };
  const auto body = [&](const LoopVars& v) -> LoopVars {
    const Output temporary = BuildOp("TemporaryVariable", {},
                                     {{"shape", PartialShape(Shape())}, {"dtype", DType::kFloat}, {"var_name", "t"}})
                                 .output(0);
    const Output set = BuildOp("Assign", {temporary, v[1] * 2.0f}).output(0);
    const Output last =
        destroys ? BuildOp("DestroyTemporaryVariable", {set}, {{"var_name", "t"}}).output(0) : Identity(set);
    return {v[0] + 1, last};
  };
  return WhileLoop(go_on, body, {0, 1.0f})[1];
}

TEST(StateOps, temporary_variables_in_a_loop) {
  for (const bool destroys : {true, false}) {
    Fresh f;
    const Output doubled = DoubledInALoop(destroys);
    Session session(f.graph);
    for (int run = 0; run < 2; ++run) EXPECT_EQ(Values(session, doubled), std::vector<double>{8});
  }
}

}  // namespace
}  // namespace weir::test
