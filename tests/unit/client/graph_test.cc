// Graphs: building, names, printing, looking up, static shapes. Numbers are rows of the feature list.
#include <map>

#include "core/client/graph/graph_internal.h"
#include "core/graph/graph_def.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

TEST(Graph, F001_operations_edges_and_control_edges_are_listed) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, {}, "x");
  const Output y = Placeholder(DType::kFloat, {}, "y");
  const Output z = x + y;
  const Output c = Constant(2.0f);
  EXPECT_EQ(z.op().inputs(), (std::vector<Output>{x, y}));
  EXPECT_TRUE(c.op().inputs().empty());
  EXPECT_EQ(c.op().num_outputs(), 1);
  const Operation after = [&] {
    const ControlDependencies deps({z.op()});
    return NoOp("after");
  }();
  EXPECT_EQ(after.control_inputs(), std::vector<Operation>{z.op()});
  EXPECT_EQ(NodeNames(f.graph), (std::vector<std::string>{"x", "y", "add", "Const", "after"}));

  const Output w = Placeholder(DType::kFloat, PartialShape::Of({3, 1}));
  const Output b = Placeholder(DType::kFloat, PartialShape::Of({1}));
  const Output column = Placeholder(DType::kFloat, PartialShape::Of({3, 1}));
  const Output y_hat = Sigmoid(MatMul(column, w, {.transpose_a = true}) + b);
  Session session(f.graph);
  EXPECT_NEAR(Value(session, y_hat, {{column, {{1.f}, {2.f}, {3.f}}}, {w, {{1.f}, {0.f}, {-1.f}}}, {b, {2.0f}}}), 0.5,
              1e-6);
}

TEST(Graph, F002_nothing_runs_while_building) {
  Fresh f;
  Session session(f.graph);
  const Variable v(1.0f, {.name = "v"});
  Initialize(session);
  ::testing::internal::CaptureStderr();
  const Output add = v.AssignAdd(1.0f), shown = Print(add, {add});
  ASSERT_TRUE(shown.exists());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(Value(session, v), 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Value(session, shown), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[2]\n");
}

TEST(Graph, F003_most_functions_return_values_some_operations) {
  Fresh f;
  const Variable v(2.0f, {.name = "v"});
  const Operation init = GlobalVariablesInitializer();
  const Operation one = v.initializer();
  const Output assigned = v.AssignAdd(1.0f);
  EXPECT_EQ(assigned.dtype(), RefType(DType::kFloat));
  EXPECT_EQ(NumpyName(assigned.dtype()), "float32_ref");
  EXPECT_EQ(assigned.op().type(), "AssignAdd");
  EXPECT_EQ(init.type(), "NoOp");
  EXPECT_EQ(one.type(), "Assign");
  EXPECT_EQ(Group({init, assigned}).type(), "NoOp");
  Session session(f.graph);
  const AsDefaultSession in(session);
  EXPECT_TRUE(Succeeds(RunOperation(init)));
  EXPECT_EQ(Value(session, assigned), 3);
  EXPECT_TRUE(Succeeds(RunOperation(assigned.op())));
  EXPECT_EQ(Value(session, v), 4);
}

TEST(Graph, F004_a_value_owns_no_storage_before_a_run) {
  Fresh f;
  const Output huge = Placeholder(DType::kFloat, PartialShape::Of({100000, 100000}));
  const Output product = MatMul(huge, huge) + huge * 2.0f;
  EXPECT_EQ(product.shape().ToTupleString(), "(100000, 100000)");
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
}

TEST(Graph, F005_default_graph_and_finalize) {
  Fresh f;
  { Constant(1.0f, DType::kInvalid, "kept"); }
  EXPECT_TRUE(Succeeds(f.graph.TensorByName("kept:0")));
  f.graph.Finalize();
  f.graph.AddToCollection("k", 1);
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kFailedPrecondition,
                    "Graph is finalized and cannot be modified. (client/graph_test.cc:"));
  f.graph.ClearCollection("k");
  EXPECT_FALSE(f.graph.TakeStatus().ok());
  EXPECT_TRUE(f.graph.GetCollection("k").empty());
  GetVariable("v", Shape::Of({2}));
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kFailedPrecondition, "cannot be modified. (client/graph_test.cc:"));
  EXPECT_FALSE(Constant(1.0f).exists());
  EXPECT_TRUE(Fails(f.graph.status(), Code::kFailedPrecondition, "Graph is finalized and cannot be modified."));
}

TEST(Graph, nodes_come_from_lines_of_the_model) {
  Fresh f;
  const Variable w = GetVariable("w", Shape::Of({2}));
  const Variable big = GetVariable("big", Shape::Of({2000}), DType::kFloat, ZerosInitializer());
  AdamOptimizer().Minimize(ReduceSum(w * 2.0f));
  GlobalVariablesInitializer();
  ReportUninitializedVariables();
  const Saver saver;
  ASSERT_TRUE(f.graph.status().ok()) << f.error();
  for (const Operation& operation : f.graph.Operations()) {
    EXPECT_TRUE(operation.node().origin().starts_with("client/graph_test.cc:"))
        << operation.name() << ": " << operation.node().origin();
  }
}

TEST(Graph, F006_reset_default_graph) {
  ASSERT_TRUE(GetVariable("v1", Shape::Of({3})).exists());
  EXPECT_FALSE(GetVariable("v1", Shape::Of({3})).exists());
  EXPECT_TRUE(Fails(Graph::Default().TakeStatus(), Code::kAlreadyExists, "Variable v1 already exists, disallowed."));
  ASSERT_TRUE(Succeeds(Graph::ResetDefault()));
  EXPECT_TRUE(GetVariable("v1", Shape::Of({3})).exists());
  EXPECT_TRUE(Graph::Default().status().ok());
  const Fresh f;
  EXPECT_TRUE(Fails(Graph::ResetDefault(), Code::kFailedPrecondition,
                    "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit the "
                    "nesting and create a new graph."));
}

TEST(Graph, F007_nodes_of_two_graphs_do_not_mix) {
  Graph one, two;
  Output a, b;
  {
    const AsDefault in(one);
    a = Constant(1.0f, DType::kInvalid, "a");
  }
  {
    const AsDefault in(two);
    b = Constant(1.0f, DType::kInvalid, "b");
  }
  EXPECT_EQ(a.graph(), &one);
  EXPECT_EQ(b.graph(), &two);
  EXPECT_FALSE((a + b).exists());
  EXPECT_TRUE(Fails(one.TakeStatus(), Code::kInvalidArgument,
                    "Tensor(\"b:0\", shape=(), dtype=float32) must be from the same graph as Tensor(\"a:0\", shape=(), "
                    "dtype=float32)."));
  Session session(two);
  EXPECT_TRUE(
      Fails(session.Run(a), Code::kInvalidArgument,
            "cannot be interpreted as a Tensor. (Tensor Tensor(\"a:0\", shape=(), dtype=float32) is not an element "
            "of this graph.)"));
  EXPECT_TRUE(
      Fails(session.Run(b, {{a, 1.0f}}), Code::kInvalidArgument,
            "Cannot interpret feed_dict key as Tensor: Tensor Tensor(\"a:0\", shape=(), dtype=float32) is not an "
            "element of this graph."));
}

TEST(Graph, F008_names_follow_the_type_and_count_up) {
  Fresh f;
  const Output a = Constant(3.0f);
  const Output b = Constant(4.0f);
  const Output total = a + b;
  EXPECT_EQ(a.name(), "Const:0");
  EXPECT_EQ(b.name(), "Const_1:0");
  EXPECT_EQ(total.name(), "add:0");
  for (int i = 0; i < 6; ++i) EXPECT_TRUE((a + b).exists());
  for (int i = 0; i < 6; ++i) Constant(1.0f);
  EXPECT_EQ(Constant(1.0f).name(), "Const_8:0");
  EXPECT_EQ((a + b).name(), "add_7:0");
  EXPECT_EQ((a * b).name(), "mul:0");
  EXPECT_EQ((a - b).name(), "sub:0");
  EXPECT_EQ((a / b).name(), "truediv:0");
  EXPECT_EQ((-a).name(), "Neg:0");
  const Output plus = a + 1.0f;
  EXPECT_EQ(plus.op().inputs()[1].name(), plus.op().name() + "/y:0");
  const Output times = 2.0f * a;
  EXPECT_EQ(times.op().inputs()[0].name(), times.op().name() + "/x:0");
}

TEST(Graph, F008_errors_name_file_and_line) {
  Fresh f;
  const Output a = Constant({1.0f, 2.0f});
  const Output b = Constant({1.0f, 2.0f, 3.0f});
  const int line = __LINE__ + 1;
  EXPECT_FALSE((a * b).exists());
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument, "client/graph_test.cc:" + std::to_string(line)));
  EXPECT_EQ(f.graph.status().node(), "mul");
}

TEST(Graph, F009_printing) {
  Fresh f;
  EXPECT_EQ(Constant(3.0f, DType::kInvalid, "Const_8").ToString(), "Tensor(\"Const_8:0\", shape=(), dtype=float32)");
  EXPECT_EQ(Placeholder(DType::kFloat, PartialShape::Of({-1, 784}), "p").ToString(),
            "Tensor(\"p:0\", shape=(?, 784), dtype=float32)");
  EXPECT_EQ(Placeholder(DType::kFloat, PartialShape::Of({3}), "r").ToString(),
            "Tensor(\"r:0\", shape=(3,), dtype=float32)");
  const Output q = Placeholder(DType::kFloat, PartialShape(), "q");
  EXPECT_EQ(q.ToString(), "Tensor(\"q:0\", dtype=float32)");
  {
    const DeviceScope cpu("/cpu:0");
    EXPECT_EQ(Constant(1, DType::kInvalid, "d").ToString(),
              "Tensor(\"d:0\", shape=(), dtype=int32, device=/device:CPU:0)");
  }
  const Output c = Constant(3.0f, DType::kInvalid, "c");
  EXPECT_EQ(c.DebugString(), "<tf.Tensor 'c:0' shape=() dtype=float32>");
  EXPECT_EQ(q.DebugString(), "<tf.Tensor 'q:0' shape=<unknown> dtype=float32>");
  EXPECT_EQ(c.op().ToString(), "<tf.Operation 'c' type=Const>");
  EXPECT_EQ(Variable(1.0f, {.name = "w"}).ToString(), "<tf.Variable 'w:0' shape=() dtype=float32_ref>");
  EXPECT_EQ(Variable(1.0f, {.name = "r_w", .use_resource = true}).ToString(),
            "<tf.Variable 'r_w:0' shape=() dtype=float32>");
}

TEST(Graph, F010_explicit_names) {
  Fresh f;
  const NameScope hidden("hidden");
  const Output alpha = Constant(5, DType::kInvalid, "alpha");
  EXPECT_EQ(alpha.op().name(), "hidden/alpha");
  EXPECT_EQ(alpha.name(), "hidden/alpha:0");
}

TEST(Graph, F011_taken_names_get_the_first_free_number) {
  Fresh f;
  EXPECT_EQ(Variable(3, {.name = "w_1"}).name(), "w_1:0");
  EXPECT_EQ(Variable(1, {.name = "w_1"}).name(), "w_1_1:0");
  const auto named = [](std::string_view name) { return NoOp(name).name(); };
  EXPECT_EQ(named("Foo"), "Foo");
  EXPECT_EQ(named("foo"), "foo_1");
  EXPECT_EQ(named("a"), "a");
  EXPECT_EQ(named("a_1"), "a_1");
  EXPECT_EQ(named("a"), "a_2");
  EXPECT_EQ(named("a"), "a_3");
  EXPECT_EQ(named("a_1"), "a_1_1");
  { EXPECT_EQ(NameScope("s").path(), "s/"); }
  { EXPECT_EQ(NameScope("s").path(), "s_1/"); }
  {
    const NameScope again("s/");
    EXPECT_EQ(again.path(), "s/");
    const NameScope root("");
    EXPECT_EQ(named("at_root"), "at_root");
  }
  EXPECT_TRUE(f.graph.status().ok()) << f.error();
  NoOp("a b");
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "'a b' is not a valid scope name"));
  { const NameScope bad("a b"); }
  EXPECT_TRUE(Fails(f.graph.TakeStatus(), Code::kInvalidArgument, "'a b' is not a valid scope name"));
}

TEST(Graph, F012_ops_that_the_texts_name) {
  Fresh f;
  const op::OpRegistry& ops = Internals(f.graph).definition.ops();
  for (const char* name : {"Add", "AddV2", "Mul", "MatMul", "MatrixInverse", "Const", "Variable", "VariableV2",
                           "VarHandleOp", "Softmax", "Relu", "Conv2D", "SaveV2", "RestoreV2", "Save", "Restore"}) {
    EXPECT_NE(ops.Find(name), nullptr) << name;
  }
  for (const char* name : {"Constant", "SoftMax", "ReLU"}) EXPECT_EQ(ops.Find(name), nullptr) << name;
  const Output image = Constant(Tensor::Of(Shape::Of({1, 1, 1, 1}), std::vector<float>{3}));
  EXPECT_EQ(Conv2D(image, image, {1, 1, 1, 1}, "SAME").op().type(), "Conv2D");
  EXPECT_EQ(MatrixInverse(Constant({{2.0f}})).op().type(), "MatrixInverse");
}

TEST(Graph, F013_every_op_has_a_category) {
  Fresh f;
  const op::OpRegistry& ops = Internals(f.graph).definition.ops();
  const auto category = [&](const char* name) { return ops.Find(name)->category; };
  EXPECT_EQ(category("MatMul"), op::Category::kMath);
  EXPECT_EQ(category("VariableV2"), op::Category::kState);
  EXPECT_EQ(category("SaveV2"), op::Category::kFiles);
  EXPECT_EQ(category("ScalarSummary"), op::Category::kSummary);
  EXPECT_EQ(category("Reshape"), op::Category::kArray);
  EXPECT_EQ(category("RandomUniform"), op::Category::kRandom);
  EXPECT_EQ(category("Softmax"), op::Category::kNeural);
  EXPECT_EQ(category("ApplyAdam"), op::Category::kTraining);
  EXPECT_EQ(category("Assert"), op::Category::kCheck);
  EXPECT_EQ(category("Switch"), op::Category::kControlFlow);
  EXPECT_EQ(category("_Send"), op::Category::kNetwork);
  EXPECT_EQ(category("_Recv"), op::Category::kNetwork);
  std::map<op::Category, int> seen;
  for (const op::OpDef* op : ops.All()) {
    EXPECT_FALSE(op::Name(op->category).empty()) << op->name;
    ++seen[op->category];
  }
  using enum op::Category;
  for (const op::Category each :
       {kMath, kArray, kState, kNeural, kRandom, kControlFlow, kFiles, kSummary, kTraining, kCheck, kNetwork}) {
    EXPECT_GT(seen[each], 0) << op::Name(each);
  }
  EXPECT_LT(seen[kMath], static_cast<int>(ops.All().size()) / 2) << "ops that state no category count as math";
}

template <class T>
concept HasShape = requires(const T& t) {
  t.shape();
};
static_assert(HasShape<Output> && HasShape<Variable> && !HasShape<Operation>);

TEST(Graph, F024_static_shapes) {
  Fresh f;
  const PartialShape shape = Placeholder(DType::kFloat, PartialShape::Of({-1, 784})).shape();
  EXPECT_EQ(shape.rank(), 2);
  EXPECT_EQ(std::vector<int64_t>(shape.dims().begin(), shape.dims().end()), (std::vector<int64_t>{-1, 784}));
  EXPECT_EQ(shape.ToTupleString(), "(?, 784)");
  const PartialShape unknown = Placeholder(DType::kFloat).shape();
  EXPECT_FALSE(unknown.has_rank());
  EXPECT_EQ(unknown.ToTupleString(), "<unknown>");
  EXPECT_FALSE(unknown.ToShape().ok());
  const Result<std::vector<int64_t>> listed = AsList(shape);
  ASSERT_TRUE(Succeeds(listed));
  EXPECT_EQ(*listed, (std::vector<int64_t>{-1, 784}));
  EXPECT_TRUE(Fails(AsList(unknown), Code::kInvalidArgument, "as_list() is not defined on an unknown TensorShape."));
  EXPECT_EQ(Variable(Constant({{1, 2}})).shape().ToTupleString(), "(1, 2)");
}

TEST(Graph, F025_partial_shapes_take_any_batch) {
  Fresh f;
  const Output p = Placeholder(DType::kFloat, PartialShape::Of({-1, 784}), "p");
  const Output doubled = p * 2.0f;
  Session session(f.graph);
  for (const int64_t batch : {1, 5}) {
    const Tensor ones =
        Tensor::Of<float>(Shape::Of({batch, 784}), std::vector<float>(static_cast<size_t>(batch) * 784, 1));
    const Result<Fetched> got = session.Run(doubled, {{p, ones}});
    ASSERT_TRUE(Succeeds(got));
    EXPECT_EQ(got->tensor().shape(), Shape::Of({batch, 784}));
  }
  const Tensor wrong = Tensor::Of<float>(Shape::Of({5, 783}), std::vector<float>(5 * 783));
  EXPECT_TRUE(Fails(session.Run(doubled, {{p, wrong}}), Code::kInvalidArgument,
                    "Cannot feed value of shape (5, 783) for Tensor 'p:0', which has shape '(?, 784)'"));
}

TEST(Graph, F025_fed_literals_are_converted_tensors_checked) {
  Fresh f;
  const Output i = Placeholder(DType::kInt32, PartialShape::Of({}), "i");
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  const Output i_out = Identity(i), x_out = Identity(x);
  Session session(f.graph);
  EXPECT_EQ(Value(session, i_out, {{i, 1.5}}), 1);
  EXPECT_EQ(Value(session, x_out, {{x, 3}}), 3);
  EXPECT_TRUE(Fails(session.Run(x_out, {{x, "a"}}), Code::kInvalidArgument, "could not convert string to float: 'a'"));
  const Result<Fetched> big = session.Run(i_out, {{i, int64_t{1099511627776}}});
  EXPECT_TRUE(
      Fails(big, Code::kInvalidArgument,
            "Type of feed value 1099511627776 with type <class 'int'> is not compatible with Tensor type <class "
            "'numpy.int32'>."));
  EXPECT_TRUE(Fails(session.Run(i_out, {{i, Tensor::Scalar<double>(1)}}), Code::kInvalidArgument, "'i:0'"));
}

TEST(Graph, F025_feeds_that_numpy_converts) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;  // not representable as double
  struct Row {
    DType dtype;
    Literal fed;
    std::string is, error;
  };
  const std::vector<Row> rows = {
      {DType::kFloat, true, "[1]", ""},
      {DType::kInt8, true, "[1]", ""},
      {DType::kFloat, {true, false}, "[1 0]", ""},
      {DType::kFloat, "3.5", "[3.5]", ""},
      {DType::kFloat, " +3.5e1\n", "[35]", ""},
      {DType::kDouble, {"1", "-inf"}, "[1 -inf]", ""},
      {DType::kInt8, "-3", "[-3]", ""},
      {DType::kUint64, kMost, "[18446744073709551615]", ""},
      {DType::kUint64, {1, kMost}, "[1 18446744073709551615]", ""},
      {DType::kUint64, kOdd, "[9007199254740993]", ""},
      {DType::kInt64, uint64_t{kOdd}, "[9007199254740993]", ""},
      {DType::kFloat, kMost, "[1.84467441e+19]", ""},
      {DType::kInt64, kMost, "",
       "value 18446744073709551615 with type <class 'int'> is not compatible with Tensor type <class 'numpy.int64'>."},
      {DType::kUint64, -1, "",
       "value -1 with type <class 'int'> is not compatible with Tensor type <class 'numpy.uint64'>."},
      {DType::kUint64,
       {-1, kMost},
       "",
       "with type <class 'list'> is not compatible with Tensor type <class 'numpy.uint64'>."},
      {DType::kUint8, 256.5, "",
       "256.5 with type <class 'float'> is not compatible with Tensor type <class 'numpy.uint8'>."},
      {DType::kInt8, "300", "", "300 with type <class 'str'> is not compatible with Tensor type <class 'numpy.int8'>."},
      {DType::kInt32, "3.5", "", "invalid literal for int() with base 10: '3.5'"},
      {DType::kFloat, "", "", "could not convert string to float: ''"},
      {DType::kBool, "true", "",
       "true with type <class 'str'> is not compatible with Tensor type <class 'numpy.bool_'>."},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(Name(row.dtype)) + " of " + row.fed.tensor.SummarizeValues(3));
    Fresh f;
    const Output x = Placeholder(row.dtype);
    Session session(f.graph);
    const Result<Fetched> got = session.Run(Identity(x), {{x, row.fed}});
    if (row.error.empty()) {
      ASSERT_TRUE(Succeeds(got));
      EXPECT_EQ(got->tensor().SummarizeValues(3), row.is);
    } else {
      EXPECT_TRUE(Fails(got, Code::kInvalidArgument, row.error));
    }
  }
}

TEST(Graph, F025_constants_of_the_largest_integers) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  Fresh f;
  EXPECT_EQ(Constant(uint64_t{1} << 63).dtype(), DType::kUint64);
  EXPECT_EQ(Constant(uint64_t{7}).dtype(), DType::kInt32);
  EXPECT_EQ(Constant({-1, kMost}).dtype(), DType::kFloat) << "no integer type holds both";
  const Output most = Constant({uint64_t{1}, kMost}, DType::kUint64);
  Session session(f.graph);
  const Result<Fetched> got = session.Run(most);
  ASSERT_TRUE(Succeeds(got));
  EXPECT_EQ(got->tensor().SummarizeValues(2), "[1 18446744073709551615]");
  Constant(kMost, DType::kInt64);
  EXPECT_NE(f.error().find("Expected int64, got 18446744073709551615 of type 'int' instead."), std::string::npos)
      << f.error();
  Fresh other;
  Constant({true, false}, DType::kFloat);
  EXPECT_NE(other.error().find("Expected float32, got True of type 'bool' instead."), std::string::npos)
      << other.error();
}

TEST(Graph, F026_unknown_rank_takes_scalars_and_vectors) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat), y = Placeholder(DType::kFloat);
  const Output z = x + y;
  Session session(f.graph);
  EXPECT_EQ(Value(session, z, {{x, 3.0f}, {y, 4.5f}}), 7.5);
  EXPECT_EQ(Values(session, z, {{x, {1.f, 3.f}}, {y, {2.f, 4.f}}}), (std::vector<double>{3, 7}));
}

TEST(Graph, F027_group_runs_all_of_its_inputs) {
  Fresh f;
  const Variable v(1.0f, {.name = "v"}), w(1.0f, {.name = "w"});
  const Output mul = Multiply(v.AssignAdd(1.0f), 1.0f), add = Add(w.AssignAdd(2.0f), 1.0f);
  const Operation group = Group({mul, add});
  EXPECT_EQ(group.ToString(), "<tf.Operation 'group_deps' type=NoOp>");
  EXPECT_EQ(group.control_inputs(), (std::vector<Operation>{mul.op(), add.op()}));
  EXPECT_NE(Internals(f.graph).definition.Summary(group.id()).find("^Mul, ^Add"), std::string::npos);
  Session session(f.graph);
  Initialize(session);
  ASSERT_TRUE(Succeeds(session.Run(group)));
  EXPECT_EQ(Value(session, v), 2);
  EXPECT_EQ(Value(session, w), 3);
}

TEST(Graph, F027_group_over_devices_has_a_node_for_each) {
  Fresh f;
  Operation one, two;
  {
    const DeviceScope on("/device:CPU:0");
    one = NoOp("one");
  }
  {
    const DeviceScope on("/device:CPU:1");
    two = NoOp("two");
  }
  const Operation group = Group({one, two}, "gg");
  EXPECT_EQ(group.name(), "gg");
  ASSERT_EQ(group.control_inputs().size(), 2u);
  EXPECT_EQ(group.control_inputs()[0].name(), "gg/NoOp");
  EXPECT_EQ(group.control_inputs()[0].device(), "/device:CPU:0");
  EXPECT_EQ(group.control_inputs()[1].name(), "gg/NoOp_1");
  EXPECT_EQ(group.control_inputs()[1].control_inputs(), std::vector<Operation>{two});
}

TEST(Graph, F354_looking_up_by_name) {
  Fresh f;
  const Output a = Constant(1.0f), sum = a + a;
  EXPECT_EQ(*f.graph.TensorByName("add:0"), sum);
  EXPECT_EQ(*f.graph.OperationByName("add"), sum.op());
  EXPECT_EQ(std::get<Output>(*f.graph.ElementByName("add:0")), sum);
  EXPECT_EQ(std::get<Operation>(*f.graph.ElementByName("add")), sum.op());
  const auto tensor = [&](const char* name) { return f.graph.TensorByName(name); };
  EXPECT_TRUE(
      Fails(tensor("nope:0"), Code::kNotFound,
            "The name 'nope:0' refers to a Tensor which does not exist. The operation, 'nope', does not exist in "
            "the graph."));
  EXPECT_TRUE(
      Fails(tensor("add:3"), Code::kNotFound,
            "The name 'add:3' refers to a Tensor which does not exist. The operation, 'add', exists but only has 1 "
            "outputs."));
  EXPECT_TRUE(Fails(f.graph.OperationByName("nope"), Code::kNotFound,
                    "The name 'nope' refers to an Operation not in the graph."));
  EXPECT_TRUE(Fails(tensor("add"), Code::kInvalidArgument,
                    "The name 'add' refers to an Operation, not a Tensor. Tensor names must be of the form "
                    "\"<op_name>:<output_index>\"."));
  EXPECT_TRUE(Fails(tensor("add:x"), Code::kInvalidArgument,
                    "The name 'add:x' looks a like a Tensor name, but is not a valid one."));
  EXPECT_TRUE(Fails(tensor("a:b:c"), Code::kInvalidArgument, "looks a like a Tensor name, but is not a valid one."));
  EXPECT_TRUE(Fails(tensor("^add"), Code::kInvalidArgument,
                    "The name '^add' looks like an (invalid) Operation name, not a Tensor."));
  EXPECT_TRUE(Fails(f.graph.OperationByName("add:0"), Code::kInvalidArgument,
                    "Name 'add:0' appears to refer to a Tensor, not a Operation."));
}

TEST(Graph, F356_placeholder_with_default) {
  Fresh f;
  const Output d = PlaceholderWithDefault(3.0f, PartialShape::Of({}), "d");
  EXPECT_EQ(d.op().type(), "PlaceholderWithDefault");
  EXPECT_EQ(d.op().inputs()[0].name(), "d/input:0");
  const Output u = PlaceholderWithDefault({1.0f, 2.0f}, PartialShape::Of({-1}), "u");
  const Output any = PlaceholderWithDefault({1.0f, 2.0f}, PartialShape());
  const Output d2 = Identity(d), u2 = Identity(u), any2 = Identity(any);
  Session session(f.graph);
  EXPECT_EQ(Value(session, d2), 3);
  EXPECT_EQ(Value(session, d2, {{d, 5.0f}}), 5);
  EXPECT_EQ(Values(session, u2), (std::vector<double>{1, 2}));
  EXPECT_EQ(Values(session, u2, {{u, {1.f, 2.f, 3.f}}}).size(), 3u);
  EXPECT_EQ(Values(session, any2, {{any, {{1.f}, {2.f}}}}).size(), 2u);
  EXPECT_TRUE(Fails(session.Run(u2, {{u, {{1.f}}}}), Code::kInvalidArgument,
                    "Cannot feed value of shape (1, 1) for Tensor 'u:0', which has shape '(?,)'"));
  const Variable w(2.0f);
  const Output through = PlaceholderWithDefault(w, PartialShape::Of({}));
  const Result<std::vector<Gradient>> grads = Gradients({through * 3.0f}, {w.value()});
  ASSERT_TRUE(Succeeds(grads));
  EXPECT_TRUE((*grads)[0].exists());
  PlaceholderWithDefault({1.0f, 2.0f}, PartialShape::Of({3}));
  EXPECT_TRUE(Fails(f.graph.status(), Code::kInvalidArgument,
                    "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]."));
}

TEST(Scope, F042_functions_and_operators_have_their_own_names) {
  Fresh f;
  const NameScope scope("name1");
  const NameScope inner("var1");
  const Output w = Placeholder(DType::kInt32, PartialShape::Of({1}), "w");
  const Operand three = {3};
  EXPECT_EQ(Add(w, three).name(), "name1/var1/Add:0");
  EXPECT_EQ((w + three).name(), "name1/var1/add_1:0");
  EXPECT_EQ(Multiply(w, w).name(), "name1/var1/Mul:0");
}

TEST(Graph, F027_group_of_one_device_is_there) {
  Fresh f;
  std::optional<DeviceScope> on(std::in_place, "/device:CPU:1");
  const Operation one = NoOp("one"), two = NoOp("two");
  on.reset();
  const Operation group = Group({one, two});
  EXPECT_EQ(group.device(), "/device:CPU:1");
  EXPECT_EQ(group.control_inputs(), (std::vector<Operation>{one, two}));
}

TEST(Graph, F291_a_file_of_tensorflow_runs_in_a_program_without_python) {
  const TemporaryFolder dir;
  std::ofstream(dir / "graph.pbtxt") << R"(
node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 } } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "sum" op: "AddV2" input: "a" input: "x" attr { key: "T" value { type: DT_FLOAT } } device: "/cpu:0" }
versions { producer: 1882 })";
  Fresh f;
  ASSERT_TRUE(Succeeds(f.graph.Import(ReadText(dir / "graph.pbtxt"), "")));
  Session session(f.graph);
  EXPECT_EQ(Values(session, "sum:0", {{"x:0", {2.0f, 3.0f}}}), (std::vector<double>{3, 4}));
  const Result<std::string> binary = graph::ExportGraphDef(Internals(f.graph).definition);
  ASSERT_TRUE(Succeeds(binary));
  Fresh again;
  ASSERT_TRUE(Succeeds(again.graph.Import(*binary, "")));
  Session other(again.graph);
  EXPECT_EQ(Values(other, "sum:0", {{"x:0", {2.0f, 3.0f}}}), (std::vector<double>{3, 4}));
}

TEST(Graph, operands_of_several_types_are_told) {
  Fresh f;
  const Output real = Constant(1.0f), wide = Constant(1.0, DType::kDouble), whole = Constant(int64_t{1}, DType::kInt64);
  const auto fails = [&](const Output& made, const char* text) {
    EXPECT_FALSE(made.exists());
    return Fails(f.graph.TakeStatus(), Code::kInvalidArgument, text);
  };
  EXPECT_TRUE(fails(AddN({wide, wide, real}),
                    "Tensors in list passed to 'inputs' of 'AddN' Op have types [float64, float64, float32] that don't "
                    "all match."));
  EXPECT_TRUE(fails(summary::Merge({real}),
                    "Tensors in list passed to 'inputs' of 'MergeSummary' Op have types [float32] that do not match "
                    "expected type string."));
  EXPECT_TRUE(fails(whole * 2.0,
                    "Expected int64 passed to parameter 'y' of op 'Mul', got 2.0 of type 'float' instead. Error: "
                    "Expected int64, got 2.0 of type 'float' instead. (client/graph_test.cc:"));
  Identity(real, "q");
  EXPECT_TRUE(fails(Identity(real, "q/"), "Duplicate node name in graph: 'q'"));
}

}  // namespace
}  // namespace weir::test
