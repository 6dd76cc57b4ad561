// Sessions over several tasks of one process.
#include "core/cluster/master.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/local_worker.h"
#include "core/cluster/step_rendezvous.h"
#include "core/device/stand_in.h"
#include "core/graph/graph_def.h"
#include "core/runtime/cancellation.h"
#include "tests/support/local_cluster.h"
#include "tests/support/text_graph.h"

namespace weir::cluster {
namespace {

using testing::NodeLine;

const TaskName kPs{"ps", 0}, kWorker{"worker", 0};
const char kOnPs[] = "/job:ps/task:0";
const char kOnWorker[] = "/job:worker/task:0";
const op::AttrList kScalar = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
const op::AttrList kQueued = {{"component_types", std::vector<DType>{DType::kFloat}}};
const op::AttrList kElements = {{"Tcomponents", std::vector<DType>{DType::kFloat}}};

NodeLine On(NodeLine node, const char* device) {
  node.device = device;
  return node;
}

class Master : public ::testing::Test {
 protected:
  void SetUp() override { cluster_ = std::make_unique<testing::LocalCluster>(std::vector<TaskName>{kWorker, kPs}); }

  /// A session on a graph of these nodes.
  std::unique_ptr<session::Session> Open(const std::vector<NodeLine>& nodes, const MasterOptions& options = {}) {
    Result<graph::Definition> made = testing::MakeGraph(nodes);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) return nullptr;
    graphs_.push_back(std::make_unique<graph::Definition>(std::move(*made)));
    auto session = cluster_->Open(*graphs_.back(), options);
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return session.ok() ? std::move(*session) : nullptr;
  }
  static Result<std::vector<Tensor>> Run(session::Session& session, const std::vector<std::string>& fetches,
                                         const std::vector<std::string>& targets = {},
                                         const std::vector<session::Feed>& feeds = {}, int64_t timeout_in_ms = 60000) {
    session::RunOptions options;
    options.timeout_in_ms = timeout_in_ms;
    return session.Run(feeds, fetches, targets, options);
  }
  static float Value(const Result<std::vector<Tensor>>& fetched) {
    EXPECT_TRUE(fetched.ok()) << fetched.status().ToString();
    return fetched.ok() && (*fetched)[0].elements() == 1 ? (*fetched)[0].as<float>()[0] : -1e9f;
  }
  void ExpectIdle() {
    for (const TaskName& task : {kPs, kWorker}) {
      const LocalWorker::Counts counts = cluster_->worker(task).counts();
      EXPECT_EQ(counts.steps, 0u) << task.ToString();
      EXPECT_EQ(counts.running, 0u) << task.ToString();
    }
  }
  /// A variable on the ps, its initialization to 3, and 2 * v on the worker.
  static std::vector<NodeLine> VariableOnPs() {
    return {{"v", "VariableV2", {}, kScalar, kOnPs},
            On(testing::Const("c", Tensor::Scalar<float>(3)), kOnPs),
            {"init", "Assign", {"v", "c"}, testing::kFloat, kOnPs},
            {"more", "AssignAdd", {"v", "c"}, testing::kFloat, kOnPs},
            {"read", "Identity", {"v"}, testing::kFloat, kOnPs},
            On(testing::Const("two", Tensor::Scalar<float>(2)), kOnWorker),
            {"y", "Mul", {"read", "two"}, testing::kFloat, kOnWorker}};
  }

  std::vector<std::unique_ptr<graph::Definition>> graphs_;
  std::unique_ptr<testing::LocalCluster> cluster_;
};

TEST_F(Master, F244_TheOpsOfAStepRunInTheirTasks) {
  const auto session = Open({On(testing::Placeholder("x", PartialShape::Of({2})), kOnWorker),
                             {"a", "Neg", {"x"}, testing::kFloat, kOnPs},
                             {"b", "Square", {"a"}, testing::kFloat, kOnWorker},
                             {"c", "Add", {"b", "a"}, testing::kFloat, kOnPs}});
  ASSERT_NE(session, nullptr);
  const auto got = Run(*session, {"c:0", "b:0"}, {}, {{"x:0", Tensor::Vector<float>({2, 3})}});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({2, 6})));
  EXPECT_TRUE((*got)[1].SameBits(Tensor::Vector<float>({4, 9})));
  std::map<std::string, std::string> devices;
  for (const auto& node : session->ReportPlacement()) devices[node.node] = node.device;
  EXPECT_EQ(devices["a"], "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(devices["b"], "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(cluster_->worker(kPs).counts().parts, 1u);
  EXPECT_EQ(cluster_->worker(kWorker).counts().parts, 1u);
  ExpectIdle();
}

TEST_F(Master, F105_RequestsNameJobsAndTasksInEverySpelling) {
  std::vector<NodeLine> nodes = {testing::Placeholder("x", PartialShape::Of({}))};
  std::vector<std::string> fetches;
  const char* const spellings[] = {"/job:ps", "/job:ps/task:0/cpu:0", "/job:ps/replica:0/task:0/device:CPU:0",
                                   "/job:ps/device:CPU:*"};
  for (const char* device : spellings) {
    const std::string name = "n" + std::to_string(fetches.size());
    nodes.push_back({name, "Neg", {"x"}, testing::kFloat, device});
    fetches.push_back(name + ":0");
  }
  const auto session = Open(nodes);
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(Value(Run(*session, fetches, {}, {{"x:0", Tensor::Scalar<float>(4)}})), -4);
  int on_ps = 0;
  for (const auto& node : session->ReportPlacement()) {
    on_ps += node.device == "/job:ps/replica:0/task:0/device:CPU:0" && node.node != "x" ? 1 : 0;
  }
  EXPECT_EQ(on_ps, 4);
  ExpectIdle();
}

TEST_F(Master, F105_AJobOrTaskThatTheClusterLacksIsNamedWithThoseItHas) {
  for (const std::string asked : {"/job:ps/task:7", "/job:nobody"}) {
    const auto session =
        Open({testing::Placeholder("x", PartialShape::Of({})), {"y", "Neg", {"x"}, testing::kFloat, asked}});
    ASSERT_NE(session, nullptr);
    const Status status = Run(*session, {"y:0"}, {}, {{"x:0", Tensor::Scalar<float>(4)}}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    const std::string text = "was explicitly assigned to " + asked +
                             " but available devices are [ /job:ps/replica:0/task:0/device:CPU:0, "
                             "/job:worker/replica:0/task:0/device:CPU:0 ]";
    EXPECT_NE(status.message().find(text), std::string::npos) << status.ToString();
    ExpectIdle();
  }
}

TEST_F(Master, F251_NodesWithoutARequestRunInTheTaskOfTheMaster) {
  const auto session = Open({testing::Placeholder("x", PartialShape::Of({})), {"y", "Neg", {"x"}, testing::kFloat}});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(Value(Run(*session, {"y:0"}, {}, {{"x:0", Tensor::Scalar<float>(4)}})), -4);
  EXPECT_EQ(cluster_->worker(kWorker).counts().parts, 1u);
  EXPECT_EQ(cluster_->worker(kPs).counts().parts, 0u);
  ExpectIdle();
}

TEST_F(Master, F253_VariablesOfATaskAreSharedBetweenSessionsAndOutliveThem) {
  {
    const auto first = Open(VariableOnPs());
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(Run(*first, {"y:0"}).status().code(), Code::kFailedPrecondition);
    ASSERT_TRUE(Run(*first, {}, {"init"}).ok());
    EXPECT_EQ(Value(Run(*first, {"y:0"})), 6);
    const auto second = Open(VariableOnPs());
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(Value(Run(*second, {"more"})), 6);
    EXPECT_EQ(Value(Run(*first, {"y:0"})), 12);
  }
  EXPECT_EQ(cluster_->worker(kPs).counts().sessions, 0u);
  const auto third = Open(VariableOnPs());
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(Value(Run(*third, {"y:0"})), 12);
}

TEST_F(Master, F253_AnIsolatedSessionHasItsOwnVariables) {
  const auto shared = Open(VariableOnPs());
  ASSERT_TRUE(Run(*shared, {}, {"init"}).ok());
  const auto isolated = Open(VariableOnPs(), {.isolate_session_state = true});
  EXPECT_EQ(Run(*isolated, {"y:0"}).status().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(Run(*isolated, {}, {"init"}).ok());
  ASSERT_TRUE(Run(*isolated, {}, {"more"}).ok());
  EXPECT_EQ(Value(Run(*isolated, {"y:0"})), 12);
  EXPECT_EQ(Value(Run(*shared, {"y:0"})), 6);
}

TEST_F(Master, F253_ContainersAreReset) {
  std::vector<NodeLine> nodes = VariableOnPs();
  nodes.push_back({"w", "VariableV2", {}, {kScalar[0], kScalar[1], {"container", "kept"}}, kOnPs});
  nodes.push_back({"set", "Assign", {"w", "c"}, testing::kFloat, kOnPs});
  const auto session = Open(nodes);
  ASSERT_TRUE(Run(*session, {}, {"init", "set"}).ok());
  ASSERT_TRUE(ResetContainers(*cluster_->workers(), {"ps"}).ok());  // the default container of /job:ps
  const auto next = Open(nodes);
  EXPECT_EQ(Run(*next, {"y:0"}).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Value(Run(*next, {"w:0"})), 3);
  ASSERT_TRUE(ResetContainers(*cluster_->workers(), {"kept"}).ok());
  const auto last = Open(nodes);
  EXPECT_EQ(Run(*last, {"w:0"}).status().code(), Code::kFailedPrecondition);
}

TEST_F(Master, QueuesWithoutASharedNameBelongToTheSession) {
  op::AttrList shared = kQueued;
  shared.emplace_back("shared_name", "both");
  const std::vector<NodeLine> nodes = {{"own", "FIFOQueueV2", {}, kQueued, kOnPs},
                                       {"both", "FIFOQueueV2", {}, shared, kOnPs},
                                       On(testing::Const("c", Tensor::Scalar<float>(3)), kOnPs),
                                       {"put_own", "QueueEnqueueV2", {"own", "c"}, kElements, kOnPs},
                                       {"put_both", "QueueEnqueueV2", {"both", "c"}, kElements, kOnPs},
                                       {"n_own", "QueueSizeV2", {"own"}, {}, kOnPs},
                                       {"n_both", "QueueSizeV2", {"both"}, {}, kOnPs}};
  const auto first = Open(nodes), second = Open(nodes);
  ASSERT_TRUE(Run(*first, {}, {"put_own", "put_both"}).ok());
  const auto of_first = Run(*first, {"n_own:0", "n_both:0"}), of_second = Run(*second, {"n_own:0", "n_both:0"});
  ASSERT_TRUE(of_first.ok() && of_second.ok()) << of_second.status().ToString();
  EXPECT_EQ((*of_first)[0].as<int32_t>()[0], 1);
  EXPECT_EQ((*of_first)[1].as<int32_t>()[0], 1);
  EXPECT_EQ((*of_second)[0].as<int32_t>()[0], 0);
  EXPECT_EQ((*of_second)[1].as<int32_t>()[0], 1);
}

TEST_F(Master, AnErrorNamesItsTaskAndNodeAndWinsOverThoseItCaused) {
  const auto session = Open({On(testing::Const("m", Tensor::Of<float>(*Shape::Make({2, 2}), {0, 0, 0, 0})), kOnPs),
                             {"bad", "MatrixInverse", {"m"}, testing::kFloat, kOnPs},
                             {"y", "Neg", {"bad"}, testing::kFloat, kOnWorker},
                             {"z", "Square", {"y"}, testing::kFloat, kOnPs}});
  for (int i = 0; i < 20; ++i) {
    const Status status = Run(*session, {"z:0"}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_TRUE(status.message().starts_with("From /job:ps/replica:0/task:0:\n")) << status.ToString();
    EXPECT_EQ(status.node(), "bad");
    ExpectIdle();
  }
}

/// A step that waits in the ps for a queue that nobody fills.
std::vector<NodeLine> Waiting() {
  return {{"q", "FIFOQueueV2", {}, kQueued, kOnPs},
          {"got", "QueueDequeueV2", {"q"}, kQueued, kOnPs},
          {"y", "Neg", {"got"}, testing::kFloat, kOnWorker}};
}

TEST_F(Master, F318_AStepThatWaitsEndsWithItsDeadline) {
  const auto session = Open(Waiting());
  const Status status = Run(*session, {"y:0"}, {}, {}, 50).status();
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.ToString();
  ExpectIdle();
}

/// Waits until a part runs in every task.
void AwaitRunning(testing::LocalCluster& cluster) {
  while (cluster.worker(kPs).counts().running == 0 || cluster.worker(kWorker).counts().running == 0) {
    std::this_thread::yield();
  }
}

TEST_F(Master, CloseEndsStepsInAllTasks) {
  const auto session = Open(Waiting());
  auto run = std::async(std::launch::async, [&] { return Run(*session, {"y:0"}).status(); });
  AwaitRunning(*cluster_);
  ASSERT_TRUE(session->Close().ok());
  EXPECT_EQ(run.get().code(), Code::kCancelled);
  ExpectIdle();
  EXPECT_EQ(Run(*session, {"y:0"}).status().message(), "Session has been closed.");
}

TEST_F(Master, ACallerCancelsAStep) {
  const auto session = Open(Waiting());
  runtime::Cancellation cancellation;
  auto run = std::async(std::launch::async, [&] {
    session::RunOptions options;
    options.cancellation = &cancellation;
    const std::vector<std::string> fetches = {"y:0"};
    return session->Run({}, fetches, {}, options).status();
  });
  AwaitRunning(*cluster_);
  cancellation.Cancel(Cancelled("the user left"));
  const Status status = run.get();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(status.message(), "the user left");
  ExpectIdle();
}

TEST_F(Master, F331_ARestartedTaskEndsTheSessionsThatKnewItWithAborted) {
  const auto session = Open(VariableOnPs());
  ASSERT_TRUE(Run(*session, {}, {"init"}).ok());
  cluster_->Start(kPs);
  // The session holds the task that is gone, its part that of the worker, which finds the new one.
  const Status status = Run(*session, {"y:0"}).status();
  EXPECT_TRUE(status.code() == Code::kAborted || status.code() == Code::kUnavailable) << status.ToString();
  ExpectIdle();
  const auto next = Open(VariableOnPs());
  EXPECT_EQ(Run(*next, {"y:0"}).status().code(), Code::kFailedPrecondition);  // its variables went with it
  ASSERT_TRUE(Run(*next, {}, {"init"}).ok());
  EXPECT_EQ(Value(Run(*next, {"y:0"})), 6);
}

TEST_F(Master, F318_CreationNamesEveryTaskThatDoesNotAnswer) {
  cluster_->worker(kPs).Close();
  const auto prepared = cluster_->Prepare();
  EXPECT_EQ(prepared.status().code(), Code::kUnavailable);
  EXPECT_NE(prepared.status().message().find("/job:ps/replica:0/task:0: UNAVAILABLE"), std::string::npos)
      << prepared.status().ToString();
  EXPECT_EQ(cluster_->worker(kWorker).counts().sessions, 0u);
}

TEST_F(Master, ATaskThatIsNotHereIsNoMaster) {
  MasterOptions master;
  master.task = {"worker", 5};
  const auto prepared = OpenClusterSession(testing::RuntimeOf(kWorker), cluster_->workers(), master, {});
  EXPECT_EQ(prepared.status().code(), Code::kNotFound);
}

TEST_F(Master, FiltersHideTheDevicesOfTasks) {
  const auto session = Open(VariableOnPs(), {.device_filters = {"/job:worker"}});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->ListDevices().size(), 1u);
  EXPECT_EQ(cluster_->worker(kPs).counts().sessions, 0u);
  EXPECT_EQ(Run(*session, {"y:0"}).status().code(), Code::kInvalidArgument);
  const auto prepared = cluster_->Prepare({.device_filters = {"/job:"}});
  EXPECT_EQ(prepared.status().code(), Code::kInvalidArgument);
}

TEST_F(Master, F388_ATaskThatFiltersHideNeedNotRun) {
  cluster_->worker(kPs).Close();
  const auto session = Open(VariableOnPs(), {.device_filters = {"/job:worker"}});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->ListDevices().size(), 1u);
  const Status outside = Run(*session, {"y:0"}).status();
  EXPECT_EQ(outside.code(), Code::kInvalidArgument);
  for (const char* text : {"explicitly assigned to /job:ps", "available devices are [ /job:worker/replica:0/task:0/"}) {
    EXPECT_NE(outside.message().find(text), std::string::npos) << outside.ToString();
  }
  EXPECT_EQ(cluster_->Prepare({.device_filters = {"/job:ps/task:0"}}).status().code(), Code::kUnavailable);
}

TEST_F(Master, F388_FiltersWithoutTheOwnTaskKeepIt) {
  const auto session = Open(VariableOnPs(), {.device_filters = {"/job:ps/task:0"}});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->ListDevices().size(), 2u);
  const auto alone = Open(VariableOnPs(), {.device_filters = {"/job:ps/task:7"}});
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->ListDevices().size(), 1u);
}

TEST_F(Master, CallablesAndPartialRunsGoOverTasks) {
  const auto session = Open({On(testing::Placeholder("x", PartialShape::Of({})), kOnWorker),
                             On(testing::Placeholder("k", PartialShape::Of({})), kOnWorker),
                             {"a", "Neg", {"x"}, testing::kFloat, kOnPs},
                             {"b", "Mul", {"a", "k"}, testing::kFloat, kOnWorker}});
  const auto callable = session->MakeCallable({{"x:0", "k:0"}, {"b:0"}, {}});
  ASSERT_TRUE(callable.ok()) << callable.status().ToString();
  for (const float x : {1.0f, 2.0f, 5.0f}) {
    const std::vector<Tensor> feeds = {Tensor::Scalar<float>(x), Tensor::Scalar<float>(10)};
    std::vector<Tensor> fetched;
    ASSERT_TRUE(session->RunCallable(*callable, feeds, &fetched).ok());
    EXPECT_EQ(fetched[0].as<float>()[0], -10 * x);
  }
  const std::vector<std::string> feeds = {"x:0", "k:0"}, fetches = {"a:0", "b:0"};
  const auto handle = session->PRunSetup(feeds, fetches, {});
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  const std::vector<session::Feed> first = {{"x:0", Tensor::Scalar<float>(7)}};
  const std::vector<session::Feed> second = {{"k:0", Tensor::Scalar<float>(2)}};
  EXPECT_EQ(Value(session->PRun(*handle, first, std::vector<std::string>{"a:0"})), -7);
  EXPECT_EQ(Value(session->PRun(*handle, second, std::vector<std::string>{"b:0"})), -14);
  ExpectIdle();
}

TEST_F(Master, SeededRandomOpsGoOnAcrossTheStepsOfASession) {
  const std::vector<NodeLine> nodes = {On(testing::Const("shape", Tensor::Vector<int32_t>({4})), kOnPs),
                                       {"r",
                                        "RandomUniform",
                                        {"shape"},
                                        {{"dtype", DType::kFloat}, {"T", DType::kInt32}, {"seed", 7}, {"seed2", 9}},
                                        kOnPs},
                                       {"y", "Neg", {"r"}, testing::kFloat, kOnWorker}};
  const auto first = Open(nodes), second = Open(nodes);
  const auto a = Run(*first, {"r:0"}), b = Run(*first, {"y:0", "r:0"});  // two parts with one node
  const auto c = Run(*second, {"r:0"}), d = Run(*second, {"r:0"});
  ASSERT_TRUE(a.ok() && b.ok() && c.ok() && d.ok());
  EXPECT_TRUE((*a)[0].SameBits((*c)[0]));
  EXPECT_TRUE((*b)[1].SameBits((*d)[0]));
  EXPECT_FALSE((*a)[0].SameBits((*b)[1]));
}

/// A part of one op in the ps, driven as a master does.
class OneWorker : public Master {
 protected:
  void SetUp() override {
    Master::SetUp();
    worker_ = *cluster_->workers()->Find(kPs);
    spec_.handle = 77;
    spec_.incarnation = cluster_->worker(kPs).incarnation();
    ASSERT_TRUE(worker_->CreateSession(spec_, Clock::time_point::max()).ok());
    const char* const device = "/job:ps/replica:0/task:0/device:CPU:0";
    const auto graph = testing::MakeGraph({{"x", "_Arg", {}, {{"T", DType::kFloat}, {"index", 0}}, device},
                                           {"y", "Neg", {"x"}, testing::kFloat, device},
                                           {"r", "_Retval", {"y"}, {{"T", DType::kFloat}, {"index", 0}}, device}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    const auto bytes = graph::ExportGraphDef(*graph);
    ASSERT_TRUE(bytes.ok());
    const auto part = worker_->RegisterPart(77, *bytes, Clock::time_point::max());
    ASSERT_TRUE(part.ok()) << part.status().ToString();
    part_ = *part;
  }
  Result<std::vector<Tensor>> Step(uint64_t number, uint64_t step, uint64_t part = 0, uint64_t session = 77) {
    StepRequest request;
    request.session = session;
    request.part = part != 0 ? part : part_.id;
    request.step = step;
    request.request = number;
    request.alone = true;
    request.feeds = {Tensor::Scalar<float>(2)};
    std::promise<Result<std::vector<Tensor>>> reply;
    worker_->RunStep(std::move(request), StepDone([&](Result<std::vector<Tensor>> got) { reply.set_value(got); }));
    return reply.get_future().get();
  }
  Status Receive(const std::string& key, uint64_t step) {
    std::promise<Status> reply;
    worker_->RecvTensor({77, step, key}, runtime::Rendezvous::Received([&](const Result<runtime::Message>& got) {
                          reply.set_value(got.status());
                        }));
    return reply.get_future().get();
  }
  static std::string Key(const std::string& sender, uint64_t incarnation) {
    return runtime::TransferKey(sender, incarnation, "/job:worker/replica:0/task:0/device:CPU:0", "edge_1_y") + "0:0";
  }

  std::shared_ptr<Worker> worker_;
  WorkerSessionSpec spec_;
  PartHandle part_;
};

TEST_F(OneWorker, ARequestRunsAtMostOnce) {
  EXPECT_EQ(Value(Step(1, 11)), -2);
  const Status again = Step(1, 11).status();
  EXPECT_EQ(again.code(), Code::kAborted);
  EXPECT_TRUE(again.message().starts_with("The same RunStep request was received twice")) << again.message();
  EXPECT_EQ(Step(2, 11).status().code(), Code::kAborted);  // another request of a step that has ended
  EXPECT_EQ(Value(Step(3, 12)), -2);
}

TEST_F(OneWorker, UnknownHandlesAreAborted) {
  EXPECT_EQ(Step(1, 11, 99).status().message(), "Graph handle 99 is not found in /job:ps/replica:0/task:0");
  const Status session = Step(1, 11, 0, 78).status();
  EXPECT_EQ(session.code(), Code::kAborted);
  EXPECT_NE(session.message().find("is not found in /job:ps/replica:0/task:0. Possibly, this worker has restarted."),
            std::string::npos);
  spec_.handle = 79;
  spec_.incarnation ^= 1;
  EXPECT_EQ(worker_->CreateSession(spec_, Clock::time_point::max()).code(), Code::kAborted);
  ASSERT_TRUE(worker_->DeregisterPart(77, part_.id).ok());
  EXPECT_EQ(Step(5, 15).status().code(), Code::kAborted);
  EXPECT_EQ(worker_->DeleteSession(78).code(), Code::kAborted);
}

TEST_F(OneWorker, AKeyOfAnotherIncarnationIsAborted) {
  const std::string ps = "/job:ps/replica:0/task:0/device:CPU:0";
  const Status other = Receive(Key(ps, cluster_->worker(kPs).incarnation() + 1), 5);
  EXPECT_EQ(other.code(), Code::kAborted);
  EXPECT_TRUE(other.message().starts_with("RecvTensor expects a different device incarnation: ")) << other.message();
  EXPECT_EQ(Receive("no key", 5).code(), Code::kInvalidArgument);
  EXPECT_EQ(Receive(Key("/job:ps", 1), 5).code(), Code::kInvalidArgument);
}

TEST_F(OneWorker, ACancelledStepRunsNoPartAndReceivesNothing) {
  ASSERT_TRUE(worker_->CancelStep(77, 21, Cancelled("before it began")).ok());
  EXPECT_TRUE(Step(1, 21).status().message().starts_with("before it began"));
  ASSERT_TRUE(worker_->CancelStep(77, 22, Cancelled("before it sent")).ok());
  const std::string ps = "/job:ps/replica:0/task:0/device:CPU:0";
  EXPECT_EQ(Receive(Key(ps, cluster_->worker(kPs).incarnation()), 22).message(), "before it sent");
  ASSERT_TRUE(worker_->CleanupStep(77, 22).ok());
  EXPECT_EQ(Receive(Key(ps, cluster_->worker(kPs).incarnation()), 22).code(), Code::kAborted);
  EXPECT_EQ(cluster_->worker(kPs).counts().steps, 0u);
}

TEST_F(OneWorker, AStepIsForgottenWithItsPartUnlessAValueIsLeft) {
  const std::string ps = "/job:ps/replica:0/task:0/device:CPU:0";
  const std::string worker = "/job:worker/replica:0/task:0/device:CPU:0";
  const uint64_t incarnation = cluster_->worker(kPs).incarnation();
  const auto sends = testing::MakeGraph({{"x", "_Arg", {}, {{"T", DType::kFloat}, {"index", 0}}, ps},
                                         {"s",
                                          "_Send",
                                          {"x"},
                                          {{"T", DType::kFloat},
                                           {"tensor_name", "edge_1_y"},
                                           {"send_device", ps},
                                           {"send_device_incarnation", static_cast<int64_t>(incarnation)},
                                           {"recv_device", worker},
                                           {"client_terminated", false}},
                                          ps},
                                         {"r", "_Retval", {"x"}, {{"T", DType::kFloat}, {"index", 0}}, ps}});
  ASSERT_TRUE(sends.ok()) << sends.status().ToString();
  const auto sender = worker_->RegisterPart(77, *graph::ExportGraphDef(*sends), Clock::time_point::max());
  ASSERT_TRUE(sender.ok()) << sender.status().ToString();
  const auto run = [&](uint64_t step, uint64_t part) {
    StepRequest request;
    request.session = 77;
    request.part = part;
    request.step = request.request = step;
    request.forgotten = std::make_shared<std::atomic<bool>>(false);
    request.feeds = {Tensor::Scalar<float>(2)};
    const auto forgotten = request.forgotten;
    std::promise<Status> reply;
    worker_->RunStep(std::move(request),
                     StepDone([&](const Result<std::vector<Tensor>>& got) { reply.set_value(got.status()); }));
    const Status status = reply.get_future().get();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return forgotten->load();
  };
  EXPECT_TRUE(run(41, part_.id));
  EXPECT_EQ(cluster_->worker(kPs).counts().steps, 0u);
  EXPECT_EQ(Receive(Key(ps, incarnation), 41).code(), Code::kAborted);
  EXPECT_FALSE(run(42, sender->id)) << "a value waits for another task";
  EXPECT_EQ(cluster_->worker(kPs).counts().steps, 1u);
  EXPECT_TRUE(Receive(Key(ps, incarnation), 42).ok());
  ASSERT_TRUE(worker_->CleanupStep(77, 42).ok());
  EXPECT_EQ(cluster_->worker(kPs).counts().steps, 0u);
}

TEST_F(OneWorker, ADrainingTaskEndsItsStepsAndTakesNoOthers) {
  LocalWorker& own = cluster_->worker(kPs);
  EXPECT_EQ(Value(Step(1, 31)), -2);
  ASSERT_TRUE(own.Drain(Clock::now() + std::chrono::seconds(60)).ok());
  const Status status = Step(2, 32).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_NE(status.message().find("draining"), std::string::npos);
  EXPECT_TRUE(worker_->GetStatus(Clock::time_point::max())->draining);
}

TEST_F(OneWorker, APartOfForeignBytesIsAnError) {
  EXPECT_EQ(worker_->RegisterPart(77, "\x01garbage", Clock::time_point::max()).status().code(), Code::kInvalidArgument);
  const auto two = testing::MakeGraph({{"x", "_Arg", {}, {{"T", DType::kFloat}, {"index", 0}}},
                                       {"z", "_Arg", {}, {{"T", DType::kFloat}, {"index", 0}}}});
  ASSERT_TRUE(two.ok()) << two.status().ToString();
  EXPECT_FALSE(worker_->RegisterPart(77, *graph::ExportGraphDef(*two), Clock::time_point::max()).ok());
}

TEST(StandIn, PlacesButHasNoMemory) {
  const auto& devices = testing::RuntimeOf(kPs)->plugins->devices().all();
  ASSERT_FALSE(devices.empty());
  const device::DeviceDescription real = device::Describe(*devices[0]);
  const auto far = device::MakeStandIn(real, {1000, 4});
  EXPECT_EQ(far->name(), devices[0]->name());
  EXPECT_EQ(far->info().platform, devices[0]->info().platform);
  EXPECT_FALSE(far->host_memory());
  ASSERT_NE(far->profile(), nullptr);
  EXPECT_EQ(far->profile()->bandwidth_bytes_per_ns, real.profile->bandwidth_bytes_per_ns);
  const auto link = far->Link(WEIR_SPACE_DEVICE, nullptr, WEIR_SPACE_HOST);
  ASSERT_TRUE(link.ok()) << link.status().ToString();
  EXPECT_EQ(link->latency_ns, 1000);
  const Status memory = Tensor::Make(DType::kFloat, *Shape::Make({4}), far->allocator()).status();
  EXPECT_NE(memory.message().find("belongs to another process"), std::string::npos) << memory.ToString();
}

}  // namespace
}  // namespace weir::cluster
