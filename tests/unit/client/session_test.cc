// Sessions: fetches, feeds, targets, the default session, errors.
#include "core/client/session/session_interface.h"
#include "core/kernel/host.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

/// Names of the nodes executed by a run.
std::vector<std::string> Executed(Session& session, const Fetch& fetch, const Feeds& feeds = {}) {
  session::RunOptions options;
  options.collect_nodes = true;
  session::RunReport report;
  EXPECT_TRUE(Succeeds(session.Run(fetch, feeds, options, &report)));
  return report.executed_nodes;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

session::SessionOptions Plain() {
  session::SessionOptions options;
  options.constant_folding = false;
  options.common_subexpressions = false;
  return options;
}

TEST(Session, F014_only_ancestors_of_the_fetches_run) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  const Output wanted = Exp(x, "wanted"), other = Log(x, "other");
  const Output last = Square(wanted, "last");
  Session session(f.graph, InProcess(f.graph, Plain()));
  const std::vector<std::string> nodes = Executed(session, last, {{x, 1.0f}});
  EXPECT_TRUE(Contains(nodes, "wanted"));
  EXPECT_FALSE(Contains(nodes, "other"));
  EXPECT_FALSE(Contains(Executed(session, last, {{wanted, 1.0f}}), "wanted"));
  EXPECT_TRUE(other.exists());
}

TEST(Session, F015_common_subexpressions_run_once) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  const Output a = Exp(x, "a"), b = Exp(x, "b");
  Session session(f.graph);
  const Fetch::List both = {a, b};
  const std::vector<std::string> nodes = Executed(session, both, {{x, 1.0f}});
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](const auto& n) { return n == "a" || n == "b"; }), 1);
  const Result<Fetched> values = session.Run(both, {{x, 1.0f}});
  ASSERT_TRUE(Succeeds(values));
  EXPECT_TRUE((*values)[0].tensor().SameBits((*values)[1].tensor()));
}

TEST(Session, F015_random_ops_are_never_merged) {
  Fresh f;
  const Output a = RandomUniform({4}), b = RandomUniform({4});
  const Output c = RandomUniform({4}, 0, 1, {.seed = 7}), d = RandomUniform({4}, 0, 1, {.seed = 7});
  Session session(f.graph);
  const Fetch::List all = {a, b, c, d};
  const Result<Fetched> values = session.Run(all);
  ASSERT_TRUE(Succeeds(values));
  EXPECT_FALSE((*values)[0].tensor().SameBits((*values)[1].tensor()));
  EXPECT_TRUE((*values)[2].tensor().SameBits((*values)[3].tensor()));
}

TEST(Session, F083_running_a_value) {
  Fresh f;
  const Output total = Constant(3.0f) + Constant(4.0f);
  Session session(f.graph);
  EXPECT_EQ(Value(session, total), 7);
}

TEST(Session, F084_results_have_the_shape_of_the_fetches) {
  Fresh f;
  const Output a = Constant(3.0f), b = Constant(4.0f), total = a + b;
  Session session(f.graph);
  const Fetch nested = Fetch::Map{{"ab", Fetch::List{a, b, a}}, {"total", total}};
  const Result<Fetched> got = session.Run(nested);
  ASSERT_TRUE(Succeeds(got));
  EXPECT_EQ(got->at("ab").size(), 3u);
  EXPECT_EQ(got->at("ab")[0].scalar<float>(), 3);
  EXPECT_EQ(got->at("ab")[1].scalar<float>(), 4);
  EXPECT_EQ(got->at("ab")[2].scalar<float>(), 3);
  EXPECT_EQ(got->at("total").scalar<float>(), 7);
  const Result<Fetched> empty = session.Run(Fetch::List{});
  ASSERT_TRUE(Succeeds(empty));
  EXPECT_EQ(empty->size(), 0u);
  EXPECT_EQ(Value(session, "add:0"), 7);
  const Result<Fetched> operation = session.Run("add");
  ASSERT_TRUE(Succeeds(operation));
  EXPECT_FALSE(operation->tensor().valid());
}

TEST(Session, F084_fetches_that_do_not_exist) {
  Fresh f;
  const Output sum = Constant(3.0f) + Constant(4.0f);
  ASSERT_TRUE(sum.exists());
  Session session(f.graph);
  EXPECT_TRUE(
      Fails(session.Run("nope:0"), Code::kInvalidArgument,
            "Fetch argument 'nope:0' cannot be interpreted as a Tensor. (\"The name 'nope:0' refers to a Tensor which "
            "does not exist. The operation, 'nope', does not exist in the graph."));
  EXPECT_TRUE(
      Fails(session.Run("nope"), Code::kInvalidArgument, "The name 'nope' refers to an Operation not in the graph."));
  EXPECT_TRUE(
      Fails(session.Run("add:3"), Code::kInvalidArgument,
            "The name 'add:3' refers to a Tensor which does not exist. The operation, 'add', exists but only has 1 "
            "outputs."));
  EXPECT_TRUE(Fails(session.Run("ad:0"), Code::kInvalidArgument, "add"));  // near names
  const std::vector<std::string> targets = {"nope"};
  EXPECT_TRUE(Fails(session.behind()->in_process()->Run({}, {}, targets), Code::kNotFound,
                    "PruneForTargets: Some target nodes not found: nope"));
}

TEST(Session, F085_running_an_operation_gives_nothing) {
  Fresh f;
  const Variable w(2.0f, {.name = "w"});
  const Variable step(0, {.name = "step", .trainable = false});
  const Operation plain = GradientDescentOptimizer(0.1).Minimize(Square(w));
  const Operation counting = GradientDescentOptimizer(0.1).Minimize(Square(w), {.global_step = step});
  const Operation init = GlobalVariablesInitializer();
  EXPECT_EQ(plain.type(), "NoOp");
  EXPECT_EQ(counting.type(), "AssignAdd");
  Session session(f.graph);
  for (const Operation& operation : {init, plain, counting}) {
    const Result<Fetched> got = session.Run(operation);
    ASSERT_TRUE(Succeeds(got));
    EXPECT_FALSE(got->tensor().valid());
  }
  EXPECT_EQ(Value(session, step), 1);
}

TEST(Session, F086_feeding) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat), y = Placeholder(DType::kFloat);
  const Output z = x + y;
  Session session(f.graph);
  EXPECT_EQ(Value(session, z, {{x, 3}, {y, 4.5}}), 7.5);
  EXPECT_EQ(Values(session, z, {{x, {1, 3}}, {y, {2, 4}}}), (std::vector<double>{3, 7}));
}

TEST(Session, F087_feed_keys) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x"),
               unused = Placeholder(DType::kFloat, {}, "unused");
  const Output z = Square(x);
  Session session(f.graph);
  EXPECT_EQ(Value(session, z, {{x.name(), 3.0f}}), 9);
  EXPECT_EQ(Value(session, z, {{x, 3.0f}, {unused, 1.0f}}), 9);
  EXPECT_TRUE(
      Fails(session.Run(z, {{"x", 3.0f}}), Code::kInvalidArgument,
            "Cannot interpret feed_dict key as Tensor: The name 'x' refers to an Operation, not a Tensor. Tensor names "
            "must be of the form \"<op_name>:<output_index>\"."));
  EXPECT_TRUE(
      Fails(session.Run(z, {{"nope:0", 3.0f}}), Code::kInvalidArgument,
            "Cannot interpret feed_dict key as Tensor: The name 'nope:0' refers to a Tensor which does not exist. The "
            "operation, 'nope', does not exist in the graph."));
  EXPECT_EQ(Value(session, x, {{x, 3.0f}}), 3);
  const std::string wrong = "Cannot feed value of shape (1,) for Tensor 'x:0', which has shape '()'";
  EXPECT_TRUE(Fails(session.Run(x, {{x, {3.0f}}}), Code::kInvalidArgument, wrong)) << "though nothing runs";
  const Result<Callable> echo = session.MakeCallable(x, {x});
  ASSERT_TRUE(Succeeds(echo));
  EXPECT_TRUE(Fails((*echo)({{3.0f}}), Code::kInvalidArgument, wrong));
  EXPECT_TRUE(Fails((*echo)({Tensor::Scalar<int32_t>(3)}), Code::kInvalidArgument,
                    "Cannot feed value of type int32 for Tensor 'x:0', which has type float"));
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Scalar<float>(1)}};
  const std::vector<std::string> fetches = {"x:0"};
  EXPECT_TRUE(Fails(session.behind()->in_process()->Run(feeds, fetches, {}), Code::kInvalidArgument,
                    "x:0 is both fed and fetched."));
}

TEST(Session, F088_any_value_can_be_fed) {
  Fresh f;
  const Output a = Constant(3.0f), total = a + Constant(4.0f);
  const Output twice = total * 2.0f;
  const Variable v(1.0f, {.name = "v"});
  const Output w = v + 1.0f;
  Session session(f.graph);
  EXPECT_EQ(Value(session, twice, {{total, 10.0f}}), 20);
  EXPECT_EQ(Value(session, w, {{v, 5.0f}}), 6);
  f.graph.PreventFeeding(a);
  EXPECT_TRUE(Fails(session.Run(total, {{a, 1.0f}}), Code::kInvalidArgument,
                    "Tensor Tensor(\"Const:0\", shape=(), dtype=float32) may not be fed."));
}

TEST(Session, F088_what_changes_a_variable_takes_no_feed_for_it) {
  Fresh f;
  const Variable w({1.0f, 2.0f}, {.name = "w"});
  const Output more = w.AssignAdd({1.0f, 1.0f}), part = ScatterAdd(w, {0}, {5.0f});
  const Operation train = GradientDescentOptimizer(0.1).Minimize(ReduceSum(Square(w.value())));
  Session session(f.graph);
  Initialize(session);
  const Tensor fed = Tensor::Vector<float>({10, 20});
  const std::string text = "was passed float from _arg_w_0_0:0 incompatible with expected float_ref.";
  EXPECT_TRUE(Fails(session.Run(more, {{w.handle(), fed}}), Code::kInvalidArgument,
                    "Input 0 of node " + more.op().name() + " " + text));
  for (const Operation& writer : {part.op(), train, w.Assign({3.0f, 4.0f}).op()}) {
    EXPECT_TRUE(Fails(session.Run(writer, {{w.handle(), fed}}), Code::kInvalidArgument, text));
  }
  const Result<Callable> callable = session.MakeCallable(more, {w.handle()});
  ASSERT_TRUE(Succeeds(callable));
  EXPECT_TRUE(Fails((*callable)({fed}), Code::kInvalidArgument, text));
  EXPECT_EQ(fed.as<float>()[0], 10);
  EXPECT_EQ(fed.as<float>()[1], 20);
  EXPECT_EQ(Values(session, w), (std::vector<double>{1, 2}));
  EXPECT_EQ(Values(session, w, {{w.handle(), fed}}), (std::vector<double>{10, 20}));
}

TEST(Session, F089_default_session) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({})), y = Square(x);
  const Variable v(1.0f);
  Session outer(f.graph), inner(f.graph);
  EXPECT_TRUE(
      Fails(Eval(y), Code::kFailedPrecondition,
            "Cannot evaluate tensor using `eval()`: No default session is registered. Use `with sess.as_default()` or "
            "pass an explicit session to `eval(session=sess)`"));
  EXPECT_TRUE(Fails(RunOperation(v.initializer()), Code::kFailedPrecondition,
                    "Cannot execute operation using `run()`: No default session is registered."));
  {
    const AsDefaultSession as_outer(outer);
    const AsDefaultSession as_inner(inner);
    EXPECT_EQ(Session::Default(), &inner);
    EXPECT_TRUE(Succeeds(RunOperation(v.initializer())));
    const Result<Tensor> value = Eval(y, {{x, 3.0f}});
    ASSERT_TRUE(Succeeds(value));
    EXPECT_EQ(value->scalar<float>(), 9);
  }
  EXPECT_EQ(Session::Default(), nullptr);
  EXPECT_EQ(Value(inner, v), 1);  // still open
  std::shared_ptr<runtime::ResourceScope> variables;
  {
    Session block(f.graph);
    const AsDefaultSession as_block(block);
    ASSERT_TRUE(Succeeds(RunOperation(v.initializer())));
    variables = block.behind()->in_process()->resources();
  }
  EXPECT_EQ(Session::Default(), nullptr);
  EXPECT_EQ(variables.use_count(), 1) << "leaving the block of a session ends it";
  EXPECT_FALSE(outer.Run(v).ok());
}

TEST(Session, F090_session_on_a_graph) {
  Graph other;
  Fresh f;
  Session session(other);
  EXPECT_TRUE(Fails(session.Run(Fetch::List{}), Code::kFailedPrecondition, "The Session graph is empty."));
  Output c;
  {
    const AsDefaultSession in(session);
    EXPECT_EQ(&Graph::Default(), &other);
    c = Constant(2.0f);
  }
  EXPECT_EQ(Value(session, c), 2);
  Output later;
  {
    const AsDefault in(other);
    later = c * 4.0f;
  }
  EXPECT_EQ(Value(session, later), 8);
}

TEST(Session, F093_walks_back_from_the_fetches) {
  Fresh f;
  const Variable counter(0, {.name = "counter", .trainable = false});
  const Output bump = counter.AssignAdd(1);
  const Output other = Constant(1.0f) + Constant(2.0f);
  Session session(f.graph);
  Initialize(session);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Value(session, other), 3);
  EXPECT_EQ(Value(session, counter), 0);
  EXPECT_EQ(Value(session, bump), 1);
}

TEST(Session, F094_close) {
  Fresh f;
  const Output c = Constant(1.0f);
  Session session(f.graph);
  EXPECT_EQ(Value(session, c), 1);
  EXPECT_TRUE(Succeeds(session.Close()));
  EXPECT_TRUE(Succeeds(session.Close()));
  EXPECT_TRUE(Fails(session.Run(c), Code::kCancelled, "Attempted to use a closed Session."));
  const std::vector<std::string> fetches = {"Const:0"};
  EXPECT_TRUE(
      Fails(session.behind()->in_process()->Run({}, fetches, {}), Code::kCancelled, "Session has been closed."));
}

TEST(Session, F095_missing_feed) {
  Fresh f;
  const NameScope train("train"), var1("var1");
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1, 1})), y = Square(x);
  const Output scalar = Placeholder(DType::kFloat, PartialShape::Of({}), "scalar"), z = Square(scalar);
  Session session(f.graph);
  const Result<Fetched> got = session.Run(y);
  EXPECT_TRUE(
      Fails(got, Code::kInvalidArgument,
            "You must feed a value for placeholder tensor 'train/var1/Placeholder' with dtype float and shape [?,1]"));
  EXPECT_TRUE(Fails(got, Code::kInvalidArgument, "[[{{node train/var1/Placeholder}}]]"));
  EXPECT_EQ(session.Run(z).status().message().find("and shape"), std::string::npos);
}

TEST(Session, F320_missing_feed_tells_what_needs_it) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  const Output loss = Identity(Negative(Square(x, "square"), "neg"), "loss");
  Session session(f.graph);
  EXPECT_TRUE(Fails(session.Run(loss), Code::kInvalidArgument, "needed by fetch 'loss' via 'neg', 'square'"));
}

TEST(Session, F320_a_summary_that_lacks_a_feed_tells_of_merge_all) {
  Fresh f;
  const Output p = Real("p"), q = Real("q");
  summary::Scalar("a", p);
  summary::Scalar("b", q);
  const Output merged = summary::MergeAll();
  Session session(f.graph);
  const Status status = session.Run(merged, {{p, 1.0f}}).status();
  EXPECT_TRUE(Fails(status, Code::kInvalidArgument, "You must feed a value for placeholder tensor 'q'"));
  EXPECT_TRUE(Fails(status, Code::kInvalidArgument, "needed by fetch 'Merge/MergeSummary' via 'b'"));
  EXPECT_TRUE(Fails(status, Code::kInvalidArgument, "merge_all takes every summary of the graph"));
  const Status plain = session.Run(Group({q * 2.0f}, "g")).status();
  EXPECT_TRUE(Fails(plain, Code::kInvalidArgument, "needed by target 'g' via 'mul'"));
  EXPECT_EQ(plain.message().find("merge_all"), std::string::npos);
}

TEST(Session, F295_the_placement_of_what_ran_can_be_asked_for) {
  Fresh f;
  const Output x = Real("x");
  const Output y = Square(x, "y");
  Square(y, "unused");
  Output z;
  {
    const DeviceScope host("/cpu:0");
    z = Negative(y, "z");
  }
  Session session(f.graph);
  EXPECT_TRUE(session.Placement().empty()) << "nothing ran";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Succeeds(session.Run(z, {{x, 1.0f}})));
  const session::Placement placement = session.Placement();
  ASSERT_EQ(placement.size(), 2u);
  EXPECT_EQ(placement[0].node, "y");
  EXPECT_EQ(placement[0].op, "Square");
  EXPECT_EQ(placement[0].device, "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(placement[1].reason, "requested");
  EXPECT_NE(session::ToText(placement).find("z (Neg): /job:localhost/replica:0/task:0/device:CPU:0  requested\n"),
            std::string::npos)
      << session::ToText(placement);
  EXPECT_EQ(session::ToJson({{"a\"b", "Neg", "d", "cost"}}),
            "[\n{\"name\": \"a\\\"b\", \"op\": \"Neg\", \"device\": \"d\", \"reason\": \"cost\"}\n]\n");
}

TEST(Session, F294_a_summary_of_several_devices_is_told_once_for_each_text) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape(), "x");
  const Output y = Square(x);
  testing::internal::CaptureStderr();
  {
    Session alone(f.graph, ConfigProto{.device_count = {{"CPU", 1}}});
    ASSERT_TRUE(Succeeds(alone.Run(y, {{x, 1.0f}})));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "there is no choice";
  testing::internal::CaptureStderr();
  kernel::SetLogLevel(WEIR_LOG_INFO);
  {
    Session alone(f.graph, ConfigProto{.device_count = {{"CPU", 1}}});
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(Succeeds(alone.Run(y, {{x, 1.0f}})));
  }
  kernel::SetLogLevel(WEIR_LOG_WARNING);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "weir: placed 1 node: CPU:0 1 (100.0 %)\n");
  testing::internal::CaptureStderr();
  Session session(f.graph, ConfigProto{.device_count = {{"CPU", 2}}});
  for (const Literal& fed : {Literal(1.0f), Literal(2.0f), Literal(Tensor::Vector<float>({1, 2}))}) {
    ASSERT_TRUE(Succeeds(session.Run(y, {{x, fed}})));
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(told.starts_with("weir: placed 1 node: CPU:")) << told;
  EXPECT_EQ(told.find("placed", told.find("placed") + 1), std::string::npos) << told;
}

TEST(Session, F357_load_sets_a_variable_by_its_initial_value) {
  Fresh f;
  for (const bool resource : {false, true}) {
    const Variable c(1.0f, {.name = "c", .use_resource = resource});
    Session session(f.graph);
    ASSERT_TRUE(Succeeds(Load(c, 9.0f, &session)));
    EXPECT_EQ(Value(session, c), 9);
    EXPECT_TRUE(Fails(Load(c, {1.0f, 2.0f}, &session), Code::kInvalidArgument, "Cannot feed value of shape (2,)"));
    EXPECT_TRUE(Fails(Load(c, 1.0f), Code::kFailedPrecondition, "No default session"));
  }
}

TEST(Session, F096_fetching_none) {
  Fresh f;
  Constant(1.0f);
  Session session(f.graph);
  EXPECT_TRUE(
      Fails(session.Run(Output()), Code::kInvalidArgument, "Fetch argument None has invalid type <class 'NoneType'>"));
}

TEST(Session, F097_runs_do_not_interfere) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat), y = x * 2.0f;
  Session session(f.graph);
  const Result<Fetched> one = session.Run(y, {{x, 1.0f}}), two = session.Run(y, {{x, 5.0f}});
  ASSERT_TRUE(Succeeds(one));
  ASSERT_TRUE(Succeeds(two));
  EXPECT_EQ(one->scalar<float>(), 2);
  EXPECT_EQ(two->scalar<float>(), 10);
}

TEST(Session, F366_texts_of_the_session_below) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({}), "x");
  Identity(x, "i");
  NoOp("n");
  Session client(f.graph);
  session::Session& session = *client.behind()->in_process();
  using Names = std::vector<std::string>;
  const Tensor one = Tensor::Scalar<float>(1);
  const auto run = [&](const std::vector<session::Feed>& feeds, const Names& fetches, const Names& targets) {
    return session.Run(feeds, fetches, targets);
  };
  EXPECT_TRUE(Fails(run({{"x:0", one}, {"x:0", one}}, {"i:0"}, {}), Code::kInvalidArgument,
                    "Endpoint \"x:0\" fed more than once."));
  EXPECT_TRUE(Fails(run({{"x:0", one}}, {"x:0"}, {}), Code::kInvalidArgument, "x:0 is both fed and fetched."));
  EXPECT_TRUE(Fails(run({}, {}, {}), Code::kInvalidArgument, "Must specify at least one target to fetch or execute."));
  EXPECT_TRUE(Fails(run({}, {}, {"zz", "yy"}), Code::kNotFound, "PruneForTargets: Some target nodes not found: zz yy"));
  EXPECT_TRUE(Fails(run({}, {"nope:0"}, {}), Code::kNotFound, "FetchOutputs node nope:0: not found"));
  EXPECT_TRUE(
      Fails(run({{"nope:0", one}}, {"i:0"}, {}), Code::kNotFound, "FeedInputs: unable to find feed output nope:0"));
  EXPECT_TRUE(
      Fails(run({}, {"n:0"}, {}), Code::kInvalidArgument, "Tried to fetch data for 'n:0', which produces no output."));
  EXPECT_TRUE(
      Fails(run({}, {"i:3"}, {}), Code::kInvalidArgument, "FetchOutputs i:3: output index too large, must be < 1"));
  EXPECT_TRUE(
      Fails(run({{"x:3", one}}, {"i:0"}, {}), Code::kInvalidArgument, "FeedInputs: x:3 should have output index < 1"));
  const auto callable = [&](const Names& feeds, const Names& fetches) {
    return session.MakeCallable({feeds, fetches, {}});
  };
  EXPECT_TRUE(Fails(callable({"nope:0"}, {"i:0"}), Code::kInvalidArgument,
                    "Tensor nope:0, specified in either feed_devices or fetch_devices was not found in the Graph"));
  EXPECT_TRUE(Fails(callable({}, {"n:0"}), Code::kOutOfRange,
                    "Node 'n' (type: 'NoOp', num of outputs: 0) does not have output 0"));
  EXPECT_TRUE(Fails(callable({}, {"i:3"}), Code::kOutOfRange,
                    "Node 'i' (type: 'Identity', num of outputs: 1) does not have output 3"));
  const Result<session::CallableHandle> handle = callable({"x"}, {"i"});  // without ":0"
  ASSERT_TRUE(Succeeds(handle));
  std::vector<Tensor> fetched;
  ASSERT_TRUE(Succeeds(session.RunCallable(*handle, std::span(&one, 1), &fetched)));
  ASSERT_EQ(fetched.size(), 1u);
  EXPECT_EQ(fetched[0].scalar<float>(), 1);
  EXPECT_TRUE(Succeeds(session.ReleaseCallable(*handle)));
  EXPECT_FALSE(session.RunCallable(*handle, std::span(&one, 1), &fetched).ok());
}

Output Mismatched() { return MatMul(Constant({{1.0f}}), Constant({{1.0f, 2.0f}, {3.0f, 4.0f}})); }

TEST(Session, AnErrorOfBuildingSpoilsWhatDependsOnIt) {
  Fresh f;
  const Output good = Constant(1.0f), bad = Mismatched();
  EXPECT_FALSE(bad.exists());
  const Output used = Relu(bad) + 1.0f;
  const Operation group = Group({good.op(), used.op()});
  const Output chosen = Cond(
      Less(ReduceSum(used), 0), [&] { return good; }, [&] { return good; });
  const Output looped = WhileLoop([](const Output& i) { return i < 3; }, [](const Output& i) { return i + 1; }, bad);
  const Output taken = Cond(
      Constant(true), [&] { return used; }, [&] { return good; });
  Operation later;
  {
    const ControlDependencies after({used});
    later = Constant(2.0f).op();
  }
  const Output fine = Cond(
      Constant(true), [&] { return good * 3.0f; }, [&] { return good; });
  Session session(f.graph);
  EXPECT_EQ(session.Run(good)->scalar<float>(), 1);
  EXPECT_EQ(session.Run(fine)->scalar<float>(), 3);
  for (const Fetch& fetch : std::vector<Fetch>{bad, used, group, chosen, looped, taken, later, Fetch{good, used}}) {
    EXPECT_TRUE(Fails(session.Run(fetch), Code::kInvalidArgument, "session_test.cc:"));
    EXPECT_TRUE(Fails(session.Run(fetch), Code::kInvalidArgument, "Dimensions must be equal"));
  }
  EXPECT_TRUE(Fails(session.Run("MatMul:0"), Code::kInvalidArgument, "Dimensions must be equal"));
  EXPECT_TRUE(Fails(session.MakeCallable(used), Code::kInvalidArgument, "Dimensions must be equal"));
  EXPECT_TRUE(Fails(Gradients({used}, {good}), Code::kInvalidArgument, "Dimensions must be equal"));
  EXPECT_EQ(session.Run(good)->scalar<float>(), 1);
}

TEST(Session, AnErrorOfBuildingSpoilsAVariableAndItsInitializerAlone) {
  Fresh f;
  const Variable good(1.0f, {.name = "good"}), bad(Mismatched(), {.name = "bad"});
  const Operation both = VariablesInitializer({good, bad});
  Session session(f.graph);
  ASSERT_TRUE(Succeeds(session.Run(GlobalVariablesInitializer())));
  EXPECT_EQ(session.Run(good)->scalar<float>(), 1);
  EXPECT_TRUE(Fails(session.Run(both), Code::kInvalidArgument, "Dimensions must be equal"));
  EXPECT_TRUE(Fails(session.Run(bad.Assign(2.0f)), Code::kInvalidArgument, "Dimensions must be equal"));
}

TEST(Session, AnErrorThatBelongsToNoValueComesBackFromEveryRun) {
  Fresh f;
  const Output good = Constant(1.0f);
  { const DeviceScope nowhere("no device"); }
  Session session(f.graph);
  EXPECT_TRUE(Fails(session.Run(good), Code::kInvalidArgument, "no device"));
  (void)f.graph.TakeStatus();
  EXPECT_EQ(session.Run(good)->scalar<float>(), 1);
}

}  // namespace
}  // namespace weir::test
