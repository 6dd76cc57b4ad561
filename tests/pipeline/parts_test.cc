// Steps cut into parts: one plan over all devices, a plan for each part, and parts converted to text and back give the
// same bits.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/graph/frames.h"
#include "core/graph/graph_def.h"
#include "core/runtime/rendezvous.h"
#include "core/session/compile.h"
#include "core/session/session.h"
#include "tests/pipeline/random_program.h"
#include "tests/pipeline/three_cpus.h"
#include "tests/support/text_graph.h"

namespace weir {
namespace {

/// A request for a graph, and the data for compiling it.
class Request {
 public:
  Request(const graph::Definition& graph, const std::vector<graph::Endpoint>& fetches) : graph_(graph) {
    request_.feeds = {{{graph.Find("x")->id(), 0}, DType::kFloat, PartialShape(Shape())}};
    request_.fetches = fetches;
    options_.placement_log = [](const std::string&) {};
  }

  session::CompileContext Context() { return {*ThreeCpus(), options_, resources_, node_resources_, 2}; }
  const graph::StepRequest& request() const { return request_; }

  /// Places every node at random.
  Result<session::PlacedStep> Scatter(std::mt19937& random) {
    WEIR_ASSIGN(session::PlacedStep placed, session::Prepare(Context(), graph_, request_));
    for (size_t i = 0; i < placed.step.nodes.size(); ++i) {
      if (placed.step.nodes[i].kind == graph::StepNode::Kind::kOp) {
        placed.placement.device_of[i] = static_cast<int>(random() % kDevices);
      }
    }
    return placed;
  }

  void ScheduleLate() { options_.late_scheduling = true; }

  static Result<std::vector<Tensor>> Run(const session::Program& program, float x) {
    std::vector<Tensor> fetched;
    const std::vector<Tensor> feeds = {Tensor::Scalar<float>(x)};
    runtime::Cancellation cancellation;
    cancellation.CancelAt(runtime::Cancellation::Clock::now() + std::chrono::seconds(60),
                          DeadlineExceeded("the parts wait for each other"));
    execute::StepArgs step;
    step.inter_op = 2;
    step.cancellation = &cancellation;
    WEIR_TRY(program.Run(feeds, &fetched, step));
    return fetched;
  }

 private:
  const graph::Definition& graph_;
  graph::StepRequest request_;
  session::SessionOptions options_;
  runtime::ResourceScope resources_;
  runtime::NodeResources node_resources_;
};

/// A part that was converted to text and back, in a separate session.
struct Foreign {
  std::unique_ptr<graph::Definition> graph;
  std::unique_ptr<session::Session> session;
  std::vector<std::string> feeds, fetches, targets;
  std::vector<int> positions;  // of fetches

  static Result<Foreign> Make(const graph::Part& part) {
    Foreign made;
    WEIR_ASSIGN(const std::string text, graph::ExportGraphDef(part.graph, graph::GraphFormat::kText));
    WEIR_ASSIGN(graph::Definition graph, graph::ParseGraph(text, part.graph.ops(), {.allow_internal_names = true}));
    made.graph = std::make_unique<graph::Definition>(std::move(graph));
    WEIR_ASSIGN(const graph::PartRequest request, graph::RequestOfPart(*made.graph));
    for (const auto& feed : request.request.feeds) {
      made.feeds.push_back(graph::FullEndpointName(*made.graph, feed.endpoint));
    }
    for (const auto& fetch : request.request.fetches) {
      made.fetches.push_back(graph::FullEndpointName(*made.graph, fetch));
    }
    for (const graph::NodeId target : request.request.targets) made.targets.push_back(made.graph->node(target).name());
    made.positions = request.fetches;
    session::SessionOptions options;
    options.placement_log = [](const std::string&) {};
    WEIR_ASSIGN(made.session, session::Session::Make(ThreeCpus(), *made.graph, options));
    return made;
  }
};

Result<std::vector<Tensor>> RunForeign(std::vector<graph::Part> parts, float x, size_t fetches) {
  std::vector<Foreign> foreign;
  for (const graph::Part& part : parts) {
    WEIR_ASSIGN(foreign.emplace_back(), Foreign::Make(part));
  }
  runtime::LocalRendezvous rendezvous;
  std::vector<Tensor> all(fetches);
  std::vector<Status> ends(foreign.size());
  std::vector<std::thread> threads;
  for (size_t p = 0; p < foreign.size(); ++p) {
    threads.emplace_back([&, p] {
      const Foreign& own = foreign[p];
      std::vector<session::Feed> feeds;
      for (const std::string& name : own.feeds) feeds.emplace_back(name, Tensor::Scalar<float>(x));
      session::RunOptions options;
      options.rendezvous = &rendezvous;
      options.timeout_in_ms = 60000;
      const auto fetched = own.session->Run(feeds, own.fetches, own.targets, options);
      ends[p] = fetched.status();
      if (!fetched.ok()) rendezvous.Abort(fetched.status());
      for (size_t i = 0; fetched.ok() && i < fetched->size(); ++i) {
        all[static_cast<size_t>(own.positions[i])] = (*fetched)[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& end : ends) WEIR_TRY(end);
  return all;
}

int Cuts() {
  const char* const given = std::getenv("WEIR_CUTS");
  return given == nullptr ? (WEIR_SANITIZER_KIND == 0 ? 300 : 60) : std::atoi(given);
}

std::vector<graph::Endpoint> FetchesOf(RandomProgram& program) {
  std::vector<graph::Endpoint> fetches;
  for (const Output& fetch : program.fetches()) {
    const std::string name = fetch.name();
    const Result<graph::InputName> parsed = graph::ParseInputName(name);
    fetches.push_back({program.graph().Find(parsed->node)->id(), parsed->index});
  }
  return fetches;
}

TEST(Parts, F018_RandomCutsOfControlFlowGiveTheBitsOfOnePlan) {
  ASSERT_NE(ThreeCpus(), nullptr);
  int several = 0, loops = 0;
  for (int seed = 0; seed < Cuts(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<uint32_t>(seed));
    RandomProgram program(static_cast<uint32_t>(seed));
    ASSERT_TRUE(program.status().ok()) << program.status().ToString();
    const std::vector<graph::Endpoint> fetches = FetchesOf(program);
    Request request(program.graph(), fetches);
    const auto placed = request.Scatter(random);
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
    const auto whole = session::PlanWhole(request.Context(), request.request(), *placed);
    ASSERT_TRUE(whole.ok()) << whole.status().ToString();
    auto parts = session::CutBetweenDevices(request.Context(), request.request(), *placed);
    ASSERT_TRUE(parts.ok()) << parts.status().ToString();
    several += parts->size() > 1 ? 1 : 0;
    loops += placed->step.frames.size() > 1 ? 1 : 0;
    const auto apart = session::PlanParts(request.Context(), request.request(), std::move(*parts));
    ASSERT_TRUE(apart.ok()) << apart.status().ToString();
    for (const float x : {-1.5f, 0.25f, 3.0f}) {
      const auto wanted = Request::Run(*whole, x), got = Request::Run(*apart, x);
      ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      ASSERT_TRUE(Same(*wanted, *got)) << x;
    }
    if (seed % 5 != 0) continue;
    auto copies = session::CutBetweenDevices(request.Context(), request.request(), *placed);
    ASSERT_TRUE(copies.ok());
    const auto wanted = Request::Run(*whole, 0.75f), foreign = RunForeign(std::move(*copies), 0.75f, fetches.size());
    ASSERT_TRUE(foreign.ok()) << foreign.status().ToString();
    ASSERT_TRUE(Same(*wanted, *foreign));
  }
  EXPECT_GT(several, Cuts() * 9 / 10);
  EXPECT_GT(loops, Cuts() / 4);
}

TEST(Parts, F016_LateOrdersOfControlFlowGiveTheSameBits) {
  ASSERT_NE(ThreeCpus(), nullptr);
  for (int seed = 0; seed < Cuts() / 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<uint32_t>(seed));
    RandomProgram program(static_cast<uint32_t>(seed));
    ASSERT_TRUE(program.status().ok()) << program.status().ToString();
    const std::vector<graph::Endpoint> fetches = FetchesOf(program);
    Request request(program.graph(), fetches);
    const auto placed = request.Scatter(random);
    ASSERT_TRUE(placed.ok()) << placed.status().ToString();
    const auto early = session::PlanWhole(request.Context(), request.request(), *placed);
    request.ScheduleLate();
    const auto late = session::PlanWhole(request.Context(), request.request(), *placed);
    auto parts = session::CutBetweenDevices(request.Context(), request.request(), *placed);
    ASSERT_TRUE(early.ok() && late.ok() && parts.ok()) << late.status().ToString() << parts.status().ToString();
    const auto apart = session::PlanParts(request.Context(), request.request(), std::move(*parts));
    ASSERT_TRUE(apart.ok()) << apart.status().ToString();
    for (const float x : {-1.5f, 3.0f}) {
      const auto wanted = Request::Run(*early, x), got = Request::Run(*late, x), cut = Request::Run(*apart, x);
      ASSERT_TRUE(wanted.ok() && got.ok() && cut.ok()) << got.status().ToString() << cut.status().ToString();
      ASSERT_TRUE(Same(*wanted, *got) && Same(*wanted, *cut)) << x;
    }
  }
}

const std::string kThere = "/job:worker/replica:0/task:1/device:CPU:0";
const std::string kHere = "/job:localhost/replica:0/task:0/device:CPU:0";

/// One hand-written part; the test acts as its peer.
class OnePart : public ::testing::Test {
 protected:
  static op::AttrList Ends(const std::string& from, const std::string& to, op::AttrList attrs) {
    attrs.emplace_back("tensor_name", "edge_3_v");
    attrs.emplace_back("send_device", from);
    attrs.emplace_back("send_device_incarnation", int64_t{1});
    attrs.emplace_back("recv_device", to);
    return attrs;
  }
  void Open(const std::vector<testing::NodeLine>& nodes) {
    Result<graph::Definition> graph = testing::MakeGraph(nodes);
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    graph_ = std::make_unique<graph::Definition>(std::move(*graph));
    session::SessionOptions options;
    options.placement_log = [](const std::string&) {};
    auto session = session::Session::Make(ThreeCpus(), *graph_, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(*session);
  }
  void OpenReceiver() {
    Open({{"v", "_Recv", {}, Ends(kThere, kHere, {{"tensor_type", DType::kFloat}})},
          {"y", "Neg", {"v"}, testing::kFloat}});
  }
  Result<std::vector<Tensor>> Run(const std::vector<std::string>& fetches, runtime::Rendezvous* rendezvous,
                                  int64_t timeout_in_ms = 60000) {
    session::RunOptions options;
    options.rendezvous = rendezvous;
    options.timeout_in_ms = timeout_in_ms;
    const std::vector<std::string> targets = {"y"};
    return session_->Run({}, fetches, fetches.empty() ? targets : std::vector<std::string>(), options);
  }

  const std::string key_ = kThere + ";0000000000000001;" + kHere + ";edge_3_v;0:0";
  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<session::Session> session_;
  runtime::LocalRendezvous rendezvous_;
};

TEST_F(OnePart, ReceivesUnderTensorFlowsKey) {
  OpenReceiver();
  ASSERT_TRUE(rendezvous_.Send(key_, {Tensor::Vector<float>({1, 2})}).ok());
  const auto got = Run({"y:0"}, &rendezvous_);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({-1, -2})));
}

TEST_F(OnePart, SendsUnderTensorFlowsKey) {
  Open({testing::Const("c", Tensor::Scalar<float>(7)),
        {"y", "_Send", {"c"}, Ends(kHere, kThere, {{"T", DType::kFloat}})}});
  ASSERT_TRUE(Run({}, &rendezvous_).ok());
  float came = 0;
  rendezvous_.RecvAsync(kHere + ";0000000000000001;" + kThere + ";edge_3_v;0:0",
                        runtime::Rendezvous::Received([&](const Result<runtime::Message>& message) {
                          if (message.ok()) came = message->value.as<float>()[0];
                        }));
  EXPECT_EQ(came, 7);
}

TEST_F(OnePart, DeadValuesOfThePeerAreDead) {
  OpenReceiver();
  ASSERT_TRUE(rendezvous_.Send(key_, {Tensor(), true}).ok());
  const auto got = Run({"y:0"}, &rendezvous_);
  EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(got.status().message().starts_with("Retval[0] does not have value")) << got.status().message();
}

TEST_F(OnePart, AloneIsAnError) {
  OpenReceiver();
  const auto got = Run({"y:0"}, nullptr);
  EXPECT_EQ(got.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(got.status().node(), "v");
  EXPECT_NE(got.status().message().find("RunOptions::rendezvous"), std::string::npos) << got.status().message();
}

/// A peer that never sends, and ends the step at the first receive.
class Silent : public runtime::Rendezvous {
 public:
  explicit Silent(runtime::Cancellation& step) : step_(step) {}
  Status Send(std::string_view, runtime::Message) override { return Status(); }
  void RecvAsync(std::string_view, Received received) override {
    waiting_ = std::move(received);
    thread_ = std::thread([this] { step_.Cancel(DeadlineExceeded("Timed out waiting for notification")); });
  }
  void Abort(const Status&) override {}
  void Join() { thread_.join(); }

 private:
  runtime::Cancellation& step_;
  Received waiting_;
  std::thread thread_;
};

TEST_F(OnePart, F318_APeerThatNeverComesEndsWithTheDeadlineAndIsNamed) {
  OpenReceiver();
  runtime::Cancellation cancellation;
  Silent peer(cancellation);
  session::RunOptions options;
  options.rendezvous = &peer;
  options.cancellation = &cancellation;
  const std::vector<std::string> fetches = {"y:0"};
  const auto got = session_->Run({}, fetches, {}, options);
  peer.Join();
  EXPECT_EQ(got.status().code(), Code::kDeadlineExceeded) << got.status().ToString();
  EXPECT_NE(got.status().message().find(key_), std::string::npos) << got.status().message();
}

TEST_F(OnePart, AnAbortEndsIt) {
  OpenReceiver();
  std::thread peer([&] { rendezvous_.Abort(Unavailable("the worker is gone")); });
  const auto got = Run({"y:0"}, &rendezvous_);
  peer.join();
  EXPECT_EQ(got.status().code(), Code::kUnavailable) << got.status().ToString();
}

TEST_F(OnePart, ReceivedValuesAreChecked) {
  OpenReceiver();
  ASSERT_TRUE(rendezvous_.Send(key_, {Tensor::Scalar<int32_t>(1)}).ok());
  const auto got = Run({"y:0"}, &rendezvous_);
  EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
  EXPECT_NE(got.status().message().find("brought a int32 of shape [], wanted a float"), std::string::npos)
      << got.status().message();
}

TEST(Parts, ReadsFollowWritesAcrossParts) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
  Result<graph::Definition> graph =
      testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({})),
                          {"v", "VariableV2", {}, variable, "/device:CPU:0"},
                          {"write", "Assign", {"v", "x"}, testing::kFloat, "/device:CPU:0"},
                          {"there", "Neg", {"write"}, testing::kFloat, "/device:CPU:1"},
                          {"read", "Identity", {"v", "^there"}, testing::kFloat, "/device:CPU:0"},
                          {"again", "AssignAdd", {"v", "read"}, testing::kFloat, "/device:CPU:0"},
                          {"y", "AddV2", {"again", "there"}, testing::kFloat, "/device:CPU:2"}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  for (const bool apart : {false, true}) {
    session::SessionOptions options;
    options.placement_log = [](const std::string&) {};
    options.cut_between_devices = apart;
    options.operation_timeout_in_ms = 60000;
    const auto session = session::Session::Make(ThreeCpus(), *graph, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    for (const float x : {3.0f, 5.0f, 7.0f}) {
      const std::vector<session::Feed> feeds = {{"x", Tensor::Scalar<float>(x)}};
      const std::vector<std::string> fetches = {"read:0", "y:0"};
      const auto got = (*session)->Run(feeds, fetches, {});
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      EXPECT_EQ((*got)[0].as<float>()[0], x);
      EXPECT_EQ((*got)[1].as<float>()[0], x);
    }
  }
}

TEST(Parts, AVariableThatGotAnotherShapeThanDeclaredCrosses) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}};
  Result<graph::Definition> graph = testing::MakeGraph(
      {testing::Const("three", Tensor::Vector<float>({1, 2, 3})),
       {"v", "VariableV2", {}, variable, "/device:CPU:0"},
       {"reshape", "Assign", {"v", "three"}, {{"T", DType::kFloat}, {"validate_shape", false}}, "/device:CPU:0"},
       {"read", "Identity", {"v"}, testing::kFloat, "/device:CPU:0"},
       {"y", "Neg", {"read"}, testing::kFloat, "/device:CPU:1"}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  session::SessionOptions options;
  options.placement_log = [](const std::string&) {};
  options.cut_between_devices = true;
  const auto session = session::Session::Make(ThreeCpus(), *graph, options);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<std::string> targets = {"reshape"}, fetches = {"y:0"};
  ASSERT_TRUE((*session)->Run({}, {}, targets).ok());
  const auto got = (*session)->Run({}, fetches, {});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({-1, -2, -3})));
}

TEST(Parts, F107_AReaderOfAReferenceKeepsTheDeviceThatItAsksFor) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
  Result<graph::Definition> graph = testing::MakeGraph({testing::Const("start", Tensor::Scalar<float>(2)),
                                                        {"v", "VariableV2", {}, variable, "/device:CPU:1"},
                                                        {"init", "Assign", {"v", "start"}, testing::kFloat},
                                                        {"y", "Neg", {"v"}, testing::kFloat, "/device:CPU:0"}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  for (const bool apart : {false, true}) {
    session::SessionOptions options;
    options.placement_log = [](const std::string&) {};
    options.allow_soft_placement = false;
    options.cut_between_devices = apart;
    const auto session = session::Session::Make(ThreeCpus(), *graph, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    const std::vector<std::string> targets = {"init"}, fetches = {"y:0"};
    ASSERT_TRUE((*session)->Run({}, {}, targets).ok());
    const auto got = (*session)->Run({}, fetches, {});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[0].as<float>()[0], -2);
    for (const session::PlacedNode& node : (*session)->ReportPlacement()) {
      if (node.node == "y") {
        EXPECT_TRUE(node.device.ends_with("CPU:0")) << node.device;
      }
    }
  }
}

TEST(Parts, TheErrorOfOneEndsTheOthers) {
  Result<graph::Definition> graph =
      testing::MakeGraph({testing::Placeholder("x", PartialShape::Of({})),
                          testing::Const("no", Tensor::Scalar(false)),
                          {"ok", "Assert", {"no", "x"}, {{"T", std::vector<DType>{DType::kFloat}}}, "/device:CPU:0"},
                          {"y", "Neg", {"x", "^ok"}, testing::kFloat, "/device:CPU:0"},
                          {"z", "Exp", {"y"}, testing::kFloat, "/device:CPU:1"}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  session::SessionOptions options;
  options.placement_log = [](const std::string&) {};
  options.cut_between_devices = true;
  const auto session = session::Session::Make(ThreeCpus(), *graph, options);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::vector<session::Feed> feeds = {{"x", Tensor::Scalar<float>(1)}};
  const std::vector<std::string> fetches = {"z:0"};
  const auto got = (*session)->Run(feeds, fetches, {});
  EXPECT_EQ(got.status().code(), Code::kInvalidArgument) << got.status().ToString();
  EXPECT_EQ(got.status().node(), "ok");
}

}  // namespace
}  // namespace weir
