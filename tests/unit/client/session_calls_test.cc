// Other ways to run: sessions with a configuration, callables, runs in parts, interactive sessions.
#include "core/client/session/session_interface.h"
#include "tests/unit/client/fresh.h"

namespace weir::test {
namespace {

Output Scalar(const char* name) { return Placeholder(DType::kFloat, PartialShape::Of({}), name); }

TEST(Session, F091_session_with_a_configuration) {
  Fresh f;
  const Output x = Scalar("x");
  Output there;
  {
    const DeviceScope gpu("/device:GPU:7");
    there = x + 2.0f;
  }
  ConfigProto config;
  config.device_count["CPU"] = 2;
  config.inter_op_parallelism_threads = 1;
  Session soft(f.graph, config);
  std::vector<std::string> names;
  for (const session::DeviceAttributes& device : soft.ListDevices()) names.push_back(device.name);
  EXPECT_EQ(names, (std::vector<std::string>{"/job:localhost/replica:0/task:0/device:CPU:0",
                                             "/job:localhost/replica:0/task:0/device:CPU:1"}));
  EXPECT_EQ(Value(soft, there, {{x, 1.0f}}), 3);
  config.allow_soft_placement = false;
  Session hard(f.graph, config);
  EXPECT_TRUE(Fails(hard.Run(there, {{x, 1.0f}}), Code::kInvalidArgument, "Cannot assign a device for operation"));
  config.gpu_options.per_process_gpu_memory_fraction = -1;
  EXPECT_FALSE(Session(f.graph, config).status().ok());
}

TEST(Session, F098_feeds_from_a_collection_of_towers) {
  struct Tower {
    Output x, y, loss;
  };
  struct Batches {
    int made = 0;
    std::pair<Tensor, Tensor> Next() {
      const float base = static_cast<float>(++made);
      return {Tensor::Vector<float>({base, base + 1}), Tensor::Vector<float>({0, base})};
    }
  };
  Fresh f;
  std::vector<Output> losses;
  for (int i = 0; i < 3; ++i) {
    const NameScope scope("tower_" + std::to_string(i));
    Tower tower;
    tower.x = Placeholder(DType::kFloat, PartialShape::Of({-1}), "x");
    tower.y = Placeholder(DType::kFloat, PartialShape::Of({-1}), "y");
    tower.loss = ReduceSum(Square(tower.x - tower.y), {}, {.name = "loss"});
    CollectionEntry entry;
    entry.object = tower;
    f.graph.AddToCollection("train_model", entry);
    f.graph.AddToCollection("loss", tower.loss);
  }
  Batches batches;
  Feeds feeds;
  for (const CollectionEntry& entry : f.graph.GetCollection("train_model")) {
    const Tower* tower = std::any_cast<Tower>(&entry.object);
    ASSERT_NE(tower, nullptr);
    const auto [x, y] = batches.Next();
    feeds.emplace_back(tower->x, x);
    feeds.emplace_back(tower->y, y);
  }
  Fetch::List fetches;
  for (const CollectionEntry& entry : f.graph.GetCollection("loss", "tower_[01]")) fetches.emplace_back(entry.output);
  ASSERT_EQ(fetches.size(), 2u);
  Session session(f.graph);
  const Result<Fetched> got = session.Run(fetches, feeds);
  ASSERT_TRUE(Succeeds(got));
  EXPECT_EQ((*got)[0].scalar<float>(), 1 + 1);
  EXPECT_EQ((*got)[1].scalar<float>(), 4 + 1);
}

TEST(Session, F363_interactive_session) {
  Fresh f;
  Graph other;
  Output c;
  {
    const AsDefault in(other);
    c = Constant(2.0f);
  }
  InteractiveSession session(other);
  EXPECT_EQ(Session::Default(), &session);
  EXPECT_EQ(&Graph::Default(), &other);
  const Result<Tensor> value = Eval(c);
  ASSERT_TRUE(Succeeds(value));
  EXPECT_EQ(value->scalar<float>(), 2);
  EXPECT_TRUE(Succeeds(RunOperation(c.op())));
  ::testing::internal::CaptureStderr();
  InteractiveSession second(f.graph);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("An interactive session is already active."),
            std::string::npos);
  EXPECT_TRUE(Succeeds(session.Close()));  // not the innermost session
  EXPECT_EQ(Session::Default(), &second);
  EXPECT_TRUE(Succeeds(session.Close()));
  EXPECT_TRUE(Succeeds(second.Close()));
  EXPECT_EQ(Session::Default(), nullptr);
  EXPECT_EQ(&Graph::Default(), &f.graph);
  EXPECT_TRUE(Fails(session.Run(c), Code::kCancelled, "Attempted to use a closed Session."));
  EXPECT_TRUE(Succeeds(f.graph.status())) << "out of order is allowed";
  ::testing::internal::CaptureStderr();
  const InteractiveSession third(f.graph);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "the others are closed";
}

TEST(Session, F364_make_callable) {
  Fresh f;
  const Output x = Placeholder(DType::kFloat, PartialShape::Of({-1}), "x"), y = Add(x, 1.0f, "y");
  const Operation nothing = NoOp("n");
  Session session(f.graph);
  const Result<Callable> call = session.MakeCallable(y, {x});
  ASSERT_TRUE(Succeeds(call));
  const auto floats = [](const Result<Fetched>& got) {
    const auto values = got.ok() ? got->tensor().as<float>() : std::span<const float>();
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_EQ(floats((*call)({{1, 2}})), (std::vector<float>{2, 3}));
  EXPECT_EQ(floats((*call)({{4}, {7, 8}})), (std::vector<float>{5})) << "values too many are ignored";
  EXPECT_TRUE(Fails((*call)(), Code::kInvalidArgument,
                    "You must feed a value for placeholder tensor 'x' with dtype float and shape [?]"));
  EXPECT_TRUE(Fails((*call)({{{1.0f}}}), Code::kInvalidArgument,
                    "Cannot feed value of shape (1, 1) for Tensor 'x:0', which has"));

  const Fetch nested = Fetch::Map{{"list", Fetch::List{x, y, "n"}}, {"y", y}};
  const Result<Callable> structured = session.MakeCallable(nested, {y, x});
  ASSERT_TRUE(Succeeds(structured));
  const Result<Fetched> got = (*structured)({{9}, {1}});
  ASSERT_TRUE(Succeeds(got));
  EXPECT_EQ(got->at("list")[0].scalar<float>(), 1);
  EXPECT_EQ(got->at("list")[1].scalar<float>(), 9) << "any value may be fed, and fetched though it is fed";
  EXPECT_FALSE(got->at("list")[2].tensor().valid()) << "an operation gives nothing";
  EXPECT_EQ(got->at("y").scalar<float>(), 9);

  session::RunOptions options;
  options.collect_nodes = true;
  session::RunReport report;
  ASSERT_TRUE(Succeeds((*call)({{1, 2}}, options, &report)));
  EXPECT_NE(std::find(report.executed_nodes.begin(), report.executed_nodes.end(), "y"), report.executed_nodes.end());

  const Output later = y * 2.0f;
  const Result<Callable> added = session.MakeCallable(later, {"x:0"});
  ASSERT_TRUE(Succeeds(added));
  EXPECT_EQ(floats((*added)({{1, 2}})), (std::vector<float>{4, 6}));
  EXPECT_EQ(floats((*call)({{1}})), (std::vector<float>{2})) << "after nodes were added";

  EXPECT_TRUE(Fails(session.MakeCallable("nope:0"), Code::kInvalidArgument,
                    "Fetch argument 'nope:0' cannot be interpreted as a Tensor. (\"The name 'nope:0' refers to a "
                    "Tensor which does not exist."));
  ASSERT_TRUE(Succeeds(session.Close()));
  EXPECT_TRUE(Fails((*call)({{1}}), Code::kCancelled, "Attempted to use a closed Session."));
  EXPECT_TRUE(Fails(session.MakeCallable(nothing), Code::kCancelled, "Attempted to use a closed Session."));
}

TEST(Session, F365_partial_run) {
  Fresh f;
  const Output a = Scalar("a"), b = Scalar("b"), c = Scalar("c");
  const Output r1 = Add(a, b, "add"), r2 = Multiply(r1, c, "mul");
  const Operation nothing = NoOp("n");
  Session session(f.graph);
  const Result<std::string> handle = session.PartialRunSetup(Fetch::List{r1, r2}, {a, b, c});
  ASSERT_TRUE(Succeeds(handle));
  EXPECT_EQ(*handle, "a:0,b:0,c:0->add:0,mul:0//1/;0");
  const Result<Fetched> first = session.PartialRun(*handle, r1, {{a, 1}, {b, 2}});
  ASSERT_TRUE(Succeeds(first));
  EXPECT_EQ(first->scalar<float>(), 3);
  EXPECT_TRUE(
      Fails(session.PartialRun(*handle, nothing), Code::kInvalidArgument, "partial_run() requires empty target_list."));
  EXPECT_TRUE(
      Fails(session.PartialRun(*handle, r1), Code::kInvalidArgument, "The fetch add:0 has already been fetched."));
  const Result<Fetched> second = session.PartialRun(*handle, Fetch::Map{{"r2", r2}}, {{c, 30}});
  ASSERT_TRUE(Succeeds(second));
  EXPECT_EQ(second->at("r2").scalar<float>(), 90);
  EXPECT_TRUE(Fails(session.PartialRun(*handle, r2), Code::kInvalidArgument,
                    "Must run 'setup' before performing partial runs!"));
  EXPECT_TRUE(Fails(session.PartialRunSetup(Fetch::List{}, {a}), Code::kInvalidArgument,
                    "Must specify at least one target to fetch or execute."));
}

TEST(Session, ResetForgetsContainersAndClosesSessions) {
  Fresh f;
  const Variable plain(1.0f, {.name = "plain"});
  const auto kept_in = [](const char* name) {
    const ContainerScope scope(name);
    return Variable(2.0f, {.name = name});
  };
  const Variable first = kept_in("first"), second = kept_in("second");
  const auto variables = std::make_shared<runtime::ResourceScope>();
  const auto open = [&] {
    session::SessionOptions options;
    options.resources = variables;  // shared as by the sessions of a server
    return std::make_unique<Session>(f.graph, InProcess(f.graph, options));
  };
  auto session = open();
  Initialize(*session);
  ASSERT_TRUE(Succeeds(Session::Reset("", {"first", "nobody's"})));
  EXPECT_TRUE(Fails(session->behind()->in_process()->Run({}, std::vector<std::string>{"plain:0"}, {}), Code::kCancelled,
                    "Session has been closed."));
  session = open();
  EXPECT_EQ(Value(*session, plain), 1);
  EXPECT_EQ(Value(*session, second), 2);
  EXPECT_TRUE(Fails(session->Run(first), Code::kFailedPrecondition, "Attempting to use uninitialized value first"));
  Initialize(*session);
  ASSERT_TRUE(Succeeds(Session::Reset()));  // the default container
  session = open();
  EXPECT_EQ(Value(*session, first), 2);
  EXPECT_TRUE(Fails(session->Run(plain), Code::kFailedPrecondition, "Attempting to use uninitialized value plain"));
  EXPECT_TRUE(Fails(Session::Reset("far://localhost:1"), Code::kNotFound, "far"));
}

}  // namespace
}  // namespace weir::test
