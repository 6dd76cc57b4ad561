// Servers and sessions at them, over a transport within the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <future>
#include <sstream>
#include <thread>

#include "core/base/errors.h"
#include "core/client/distributed/remote_session.h"
#include "core/client/distributed/server.h"
#include "core/client/session/session_interface.h"
#include "core/client/extra.h"
#include "core/cluster/server.h"
#include "core/door/transports.h"
#include "core/session/reports.h"
#include "core/session/run_metadata.h"
#include "tests/support/in_process_transport.h"

namespace weir {
namespace {

using cluster::MasterCall;
using cluster::MasterDone;

/// Servers of this test reach one another without sockets.
class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { door::AddTransport(transport_); }
  ~ServerTest() override { door::RemoveTransport("weir"); }

  static ClusterSpec Cluster(int ps, int workers) {
    std::map<std::string, std::vector<std::string>> jobs;
    for (int i = 0; i < ps; ++i) jobs["ps"].push_back("ps" + std::to_string(i) + ":2222");
    for (int i = 0; i < workers; ++i) jobs["worker"].push_back("worker" + std::to_string(i) + ":2222");
    return *ClusterSpec::Make(jobs);
  }
  static std::unique_ptr<Server> Start(const ClusterSpec& cluster, const std::string& job, int task,
                                       const ConfigProto& config = {}) {
    auto server = Server::Make(cluster, {.job_name = job, .task_index = task, .config = config});
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    return server.ok() ? std::move(*server) : nullptr;
  }
  static std::unique_ptr<Server> Local() {
    auto server = Server::CreateLocalServer();
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    return server.ok() ? std::move(*server) : nullptr;
  }

  const std::shared_ptr<testing::InProcessTransport> transport_ =
      std::make_shared<testing::InProcessTransport>("weir");
};

TEST_F(ServerTest, F092_ASessionAtAServerGivesTheResultsOfThisProcess) {
  const auto server = Local();
  EXPECT_TRUE(server->target().starts_with("weir://localhost:")) << server->target();
  Graph graph;
  const AsDefault here(graph);
  const Output x = Placeholder(DType::kFloat, {-1}, "x");
  const Output y = Square(x) + 1.0f;
  Session remote(server->target(), graph), local("", graph);
  ASSERT_TRUE(remote.status().ok()) << remote.status().ToString();
  for (Session* session : {&remote, &local}) {
    const auto result = session->Run({y, "x:0"}, {{x, {1.0, 2.0}}});
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    std::ostringstream text;
    text << *result;
    EXPECT_EQ(text.str(), "[[2 5], [1 2]]");
  }
  // Nodes that come later reach the server before the next run.
  const Output z = ReduceSum(y);
  const auto later = remote.Run(z, {{x, {1.0, 2.0}}});
  ASSERT_TRUE(later.ok()) << later.status().ToString();
  EXPECT_EQ(*later->scalar<float>(), 7);
  EXPECT_TRUE(remote.Close().ok());
  EXPECT_EQ(remote.Run(z, {{x, {1.0}}}).status().code(), Code::kCancelled);
}

TEST_F(ServerTest, F092_ErrorsKeepCodeTextAndTheLineOfTheModel) {
  const auto server = Local();
  Graph graph;
  const AsDefault here(graph);
  const Output x = Placeholder(DType::kFloat, {-1}, "x");
  const Output y = Reshape(x, {2, 2});
  Session remote(server->target(), graph), local("", graph);
  const Status far = remote.Run(y, {{x, {1.0, 2.0, 3.0}}}).status();
  const Status near = local.Run(y, {{x, {1.0, 2.0, 3.0}}}).status();
  EXPECT_EQ(far.code(), near.code());
  EXPECT_NE(far.message().find("Input to reshape is a tensor with 3 values"), std::string::npos) << far.message();
  EXPECT_EQ(far.node(), "Reshape");
  EXPECT_NE(far.where().find("server_test.cc"), std::string::npos) << far.where();
  const Status missing = remote.Run(y).status();
  EXPECT_EQ(missing.code(), Code::kInvalidArgument);
  EXPECT_NE(missing.message().find("You must feed a value for placeholder tensor 'x'"), std::string::npos)
      << missing.message();
}

TEST_F(ServerTest, F092_CallablesPartialRunsDevicesAndParts) {
  const auto server = Local();
  Graph graph;
  const AsDefault here(graph);
  const Output a = Placeholder(DType::kFloat, {}, "a"), b = Placeholder(DType::kFloat, {}, "b");
  const Output sum = Add(a, b), product = Multiply(sum, b);
  Session session(server->target(), graph);
  const auto callable = session.MakeCallable({sum, product}, {a, b});
  ASSERT_TRUE(callable.ok()) << callable.status().ToString();
  const auto called = (*callable)({2.0, 3.0});
  ASSERT_TRUE(called.ok()) << called.status().ToString();
  EXPECT_EQ(*(*called)[1].scalar<float>(), 15);

  const auto handle = session.PartialRunSetup({sum, product}, {a, b});
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  const auto first = session.PartialRun(*handle, sum, {{a, 1.0}, {b, 2.0}});
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(*first->scalar<float>(), 3);
  const auto second = session.PartialRun(*handle, product);
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(*second->scalar<float>(), 6);

  const auto devices = session.ListDevices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "/job:local/replica:0/task:0/device:CPU:0");
  session::RunReport report;
  ASSERT_TRUE(session.Run(product, {{a, 1.0}, {b, 2.0}}, {.output_partition_graphs = true}, &report).ok());
  ASSERT_EQ(report.partition_graphs.size(), 1u);
  EXPECT_NE(report.partition_graphs[0].find("/job:local/replica:0/task:0/device:CPU:0"), std::string::npos);
  EXPECT_EQ(session.Run(product, {{a, 1.0}, {b, 2.0}}, {.check_numerics = true}, nullptr).status().code(),
            Code::kUnimplemented);
}

TEST_F(ServerTest, F092_WrongTargetsAreRefused) {
  Graph graph;
  const AsDefault here(graph);
  Constant(1.0);
  EXPECT_EQ(Session("nowhere", graph).status().code(), Code::kNotFound);
  EXPECT_EQ(Session("weir://host", graph).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Session("pigeon://host:1", graph).status().code(), Code::kNotFound);
  EXPECT_FALSE(Session::Reset("pigeon://host:1").ok());
}

TEST_F(ServerTest, F247_AJobThatTheClusterLacks) {
  const ClusterSpec cluster = Cluster(0, 2);
  const Status local = Server::Make(cluster, {.job_name = "local", .task_index = 0}).status();
  EXPECT_EQ(local.code(), Code::kInternal);
  EXPECT_NE(local.message().find("Job \"local\" was not defined in cluster"), std::string::npos) << local.message();
  EXPECT_NE(local.message().find("worker"), std::string::npos) << local.message();
  const Status task = Server::Make(cluster, {.job_name = "worker", .task_index = 7}).status();
  EXPECT_NE(task.message().find("Task 7 was not defined in job \"worker\""), std::string::npos) << task.message();
  const Status unnamed = Server::Make(Cluster(1, 1)).status();
  EXPECT_EQ(unnamed.code(), Code::kInvalidArgument);
  EXPECT_NE(unnamed.message().find("Must specify an explicit `job_name`"), std::string::npos) << unnamed.message();
  EXPECT_EQ(transport_->listening(), 0u);
}

TEST_F(ServerTest, F248_JoinBlocksUntilTheServerIsStopped) {
  const auto server = Local();
  std::future<Status> joined = std::async(std::launch::async, [&] { return server->Join(); });
  Graph graph;
  const AsDefault here(graph);
  const Output y = Constant(2.0) * 3.0;
  Session session(server->target(), graph);
  ASSERT_TRUE(session.Run(y).ok());  // served while Join waits
  EXPECT_NE(joined.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_TRUE(server->Stop().ok());
  EXPECT_TRUE(joined.get().ok());
  EXPECT_FALSE(session.Run(y).ok());
}

TEST_F(ServerTest, F330_AStoppedServerFreesItsAddress) {
  const ClusterSpec cluster = Cluster(1, 0);
  for (int i = 0; i < 3; ++i) {
    const auto server = Start(cluster, "ps", 0);
    ASSERT_NE(server, nullptr);
    const Status taken = Server::Make(cluster, {.job_name = "ps", .task_index = 0}).status();
    EXPECT_EQ(taken.code(), Code::kFailedPrecondition);
    EXPECT_NE(taken.message().find("Could not start the weir server"), std::string::npos) << taken.message();
    EXPECT_TRUE(server->Stop().ok());
    EXPECT_TRUE(server->Stop().ok());
    EXPECT_EQ(server->Start().code(), Code::kFailedPrecondition);
    EXPECT_EQ(transport_->listening(), 0u);
  }
}

TEST_F(ServerTest, F330_TheEndOfTheJobEndsServersThatWaitForIt) {
  const ClusterSpec cluster = Cluster(2, 1);
  const ConfigProto ends{.cluster = {.exit_when_done = true}};
  const auto leaves = Start(cluster, "ps", 0, ends), stays = Start(cluster, "ps", 1);
  const auto worker = Start(cluster, "worker", 0);
  std::future<Status> joined = std::async(std::launch::async, [&] { return leaves->Join(); });
  EXPECT_TRUE(worker->EndJob().ok());
  EXPECT_TRUE(joined.get().ok());
  std::future<Status> other = std::async(std::launch::async, [&] { return stays->Join(); });
  EXPECT_NE(other.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_TRUE(stays->Stop().ok());
  EXPECT_TRUE(other.get().ok());
}

TEST_F(ServerTest, F251_WeightsOnParameterServersLayersOnWorkers) {
  const ClusterSpec cluster = Cluster(2, 2);
  const auto ps0 = Start(cluster, "ps", 0), ps1 = Start(cluster, "ps", 1);
  const auto worker0 = Start(cluster, "worker", 0), worker1 = Start(cluster, "worker", 1);
  Graph graph;
  const AsDefault here(graph);
  std::vector<Variable> weights;
  for (const char* device : {"/job:ps/task:0", "/job:ps/task:1"}) {
    const DeviceScope on(device);
    weights.emplace_back(Literal({{0.5, 0.25}, {0.125, 1.0}}), VariableOptions{});
  }
  Output loss;
  {
    const DeviceScope on("/job:worker/task:0");
    const Output hidden = Relu(MatMul(Constant({{1.0, 2.0}}, DType::kFloat), weights[0]));
    const DeviceScope then("/job:worker/task:1");
    loss = ReduceSum(Square(MatMul(hidden, weights[1])));
  }
  const Operation train = GradientDescentOptimizer(0.01).Minimize(loss);
  Session session(worker1->target(), graph);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer()).ok());
  const auto before = session.Run(loss);
  ASSERT_TRUE(before.ok()) << before.status().ToString();
  const char* const runs = std::getenv("WEIR_TEST_RUNS");  // the loop of the guide has 10000
  for (int i = 0; i < (runs == nullptr ? 100 : std::atoi(runs)); ++i) ASSERT_TRUE(session.Run(train).ok()) << i;
  const auto after = session.Run(loss);
  ASSERT_TRUE(after.ok());
  EXPECT_LT(*after->scalar<float>(), *before->scalar<float>() / 10);
}

/// Two machines, each with a replica of two clones on devices of its own; the variables are on a server. A clone's
/// tower has a quarter of the batch.
TEST_F(ServerTest, F256_ReplicasOfClonesTrainAsOneTowerWithTheWholeBatch) {
  constexpr int kReplicas = 2, kClones = 2, kSteps = 3;
  const std::vector<float> xs = {1, 2, -1, 0.5f}, ys = {1, 0, 2, -1};
  const ClusterSpec cluster = Cluster(1, kReplicas);
  const auto ps = Start(cluster, "ps", 0);
  std::vector<std::unique_ptr<Server>> workers;
  for (int replica = 0; replica < kReplicas; ++replica) {
    workers.push_back(Start(cluster, "worker", replica, {.device_count = {{"CPU", kClones}}}));
    ASSERT_NE(workers.back(), nullptr);
  }
  std::barrier<> round(kReplicas);
  std::vector<float> trained(kReplicas);
  const auto train = [&](int replica) {
    Graph graph;
    const AsDefault here(graph);
    const std::string machine = "/job:worker/task:" + std::to_string(replica);
    GradientDescentOptimizer descent(0.1);
    SyncReplicasOptimizer optimizer(descent, {.replicas_to_aggregate = kReplicas, .total_num_replicas = kReplicas});
    const DeviceScope variables(*ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = machine}));
    const Variable step = GetOrCreateGlobalStep();
    std::vector<Operand> gradients;
    Variable w;
    for (int clone = 0; clone < kClones; ++clone) {
      const NameScope tower("tower_" + std::to_string(clone));
      const VariableScope shared("model", {.reuse = Reuse::kAuto});
      w = GetVariable("w", {.shape = Shape(), .initializer = ConstantInitializer(1.0)});
      const auto at = static_cast<size_t>(replica * kClones + clone);
      const DeviceScope device(machine + "/device:CPU:" + std::to_string(clone));
      const Output loss = Square(w * xs[at] - ys[at]);
      EXPECT_EQ(loss.op().device(), machine + "/device:CPU:" + std::to_string(clone));
      const auto pairs = optimizer.ComputeGradients(loss, {w});
      ASSERT_TRUE(pairs.ok()) << pairs.status().ToString();
      gradients.emplace_back((*pairs)[0].first.values);
    }
    Gradient mean;
    mean.values = ReduceMean(Stack(gradients), 0);
    const Result<Operation> applied = optimizer.ApplyGradients({{mean, w}}, {.global_step = step});
    ASSERT_TRUE(applied.ok()) << applied.status().ToString();
    TrainingSessionOptions options;
    options.make = [target = workers[static_cast<size_t>(replica)]->target()](Graph& of) {
      return std::make_unique<Session>(target, of);
    };
    options.is_chief = replica == 0;
    options.recovery_wait_secs = 0.01;
    options.graph = &graph;
    options.hooks = {optimizer.MakeSessionRunHook(options.is_chief, 0)};
    const auto session = MonitoredTrainingSession(options);
    EXPECT_TRUE(session->status().ok()) << session->status().ToString();
    for (int i = 0; i < kSteps && session->status().ok(); ++i) {
      EXPECT_TRUE(session->Run(*applied).ok());
      round.arrive_and_wait();  // one that runs ahead may take the other's token
    }
    const auto value = session->session()->Run(w);
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    trained[static_cast<size_t>(replica)] = *value->scalar<float>();
    round.arrive_and_wait();  // the chief's end closes the queue of tokens
    EXPECT_TRUE(session->Close().ok());
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  float w = 1;
  for (int i = 0; i < kSteps; ++i) {
    float gradient = 0;
    for (size_t at = 0; at < xs.size(); ++at) gradient += 2 * (w * xs[at] - ys[at]) * xs[at] / 4;
    w -= 0.1f * gradient;
  }
  for (const float value : trained) EXPECT_NEAR(value, w, 1e-5);
}

TEST_F(ServerTest, F253_VariablesAreSharedBetweenClientsAndCleared) {
  const ClusterSpec cluster = Cluster(1, 2);
  const auto ps = Start(cluster, "ps", 0);
  const auto worker0 = Start(cluster, "worker", 0), worker1 = Start(cluster, "worker", 1);
  const auto build = [](Graph& graph) {
    const AsDefault here(graph);
    const DeviceScope on("/job:ps/task:0");
    return Variable(3.0, {.name = "v"});
  };
  Graph first, second;
  const Variable mine = build(first), yours = build(second);
  Session one(worker0->target(), first), two(worker1->target(), second);
  ASSERT_TRUE(one.Run(mine.initializer()).ok());
  const auto read = two.Run(yours);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read->scalar<float>(), 3);
  EXPECT_TRUE(one.Close().ok());
  EXPECT_TRUE(two.Run(yours).ok());  // F257: they outlive the session of the worker that made them
  ASSERT_TRUE(Session::Reset(worker0->target()).ok());
  Session three(worker1->target(), second);
  EXPECT_EQ(three.Run(yours).status().code(), Code::kFailedPrecondition);
}

TEST_F(ServerTest, F253_AnIsolatedSessionHasVariablesOfItsOwn) {
  const auto server = Local();
  Graph graph;
  const AsDefault here(graph);
  const Variable v(3.0, {.name = "v"});
  Session shared(server->target(), graph), isolated(server->target(), graph, {.isolate_session_state = true});
  ASSERT_TRUE(shared.Run(v.initializer()).ok());
  EXPECT_EQ(isolated.Run(v).status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(Session(server->target(), graph).Run(v).ok());
}

TEST_F(ServerTest, F388_DeviceFiltersHideTasksThatAreDown) {
  const ClusterSpec cluster = Cluster(1, 2);  // worker 1 never starts
  const auto ps = Start(cluster, "ps", 0), worker0 = Start(cluster, "worker", 0);
  Graph graph;
  const AsDefault here(graph);
  Output y, outside;
  {
    const DeviceScope on("/job:ps/task:0");
    y = Constant(2.0) + Constant(3.0);
  }
  {
    const DeviceScope on("/job:worker/task:1");
    outside = Constant(2.0) * Constant(3.0);
  }
  Session session(worker0->target(), graph,
                  {.device_filters = {"/job:ps"}, .allow_soft_placement = false, .operation_timeout_in_ms = 120000});
  const auto result = session.Run(y);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  std::vector<std::string> names;
  for (const auto& device : session.ListDevices()) names.push_back(device.name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"/job:ps/replica:0/task:0/device:CPU:0",
                                             "/job:worker/replica:0/task:0/device:CPU:0"}));
  const Status pinned = session.Run(outside).status();
  EXPECT_EQ(pinned.code(), Code::kInvalidArgument);
  EXPECT_NE(pinned.message().find("assigned to /job:worker/task:1"), std::string::npos) << pinned.message();
}

TEST_F(ServerTest, AServerReportsItselfAndItsPeers) {
  const ClusterSpec cluster = Cluster(1, 2);
  const auto ps = Start(cluster, "ps", 0), worker0 = Start(cluster, "worker", 0);
  const auto master = cluster::MasterHere(ps->target());
  ASSERT_NE(master, nullptr);
  const auto deadline = cluster::Clock::now() + std::chrono::minutes(2);
  const auto view = cluster::AskServer(*master, std::chrono::milliseconds(60000), deadline);
  ASSERT_TRUE(view.ok()) << view.status().ToString();
  EXPECT_EQ(view->task.ToString(), "/job:ps/replica:0/task:0");
  EXPECT_EQ(view->devices, std::vector<std::string>{"/job:ps/replica:0/task:0/device:CPU:0"});
  ASSERT_EQ(view->peers.size(), 2u);
  EXPECT_TRUE(view->peers[0].status.ok());
  EXPECT_NE(view->peers[0].incarnation, 0u);
  EXPECT_EQ(view->peers[1].status.code(), Code::kUnavailable);
}

TEST(RunMetadataRead, TheTraceOfARunComesBack) {
  Graph graph;
  const AsDefault here(graph);
  const Output x = Placeholder(DType::kFloat, {2, 2}, "x"), y = MatMul(x, x);
  Session session(graph);
  session::RunReport ran, read;
  ASSERT_TRUE(session.Run(y, {{x, {{1.0, 2.0}, {3.0, 4.0}}}}, {.trace = true}, &ran).ok());
  const auto bytes = session.RunMetadata(ran);
  ASSERT_TRUE(bytes.ok());
  const Status status = session::ReadRunMetadata(*bytes, read);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_EQ(read.trace.spans.size(), ran.trace.spans.size());
  const auto product = std::ranges::find(read.trace.spans, "MatMul", &trace::Span::node);
  ASSERT_NE(product, read.trace.spans.end());
  EXPECT_EQ(product->op, "MatMul");
  ASSERT_EQ(product->outputs.size(), 1u);
  EXPECT_EQ(product->outputs[0].dims, (std::vector<int64_t>{2, 2}));
  EXPECT_GE(product->end_ns, product->start_ns);
  EXPECT_FALSE(session::ReadRunMetadata("\xff", read).ok());
}

/// A master that is not there yet.
class AbsentMaster final : public cluster::MasterService {
 public:
  explicit AbsentMaster(Status status) : status_(std::move(status)) {}
  void Call(MasterCall, MasterDone done) override {
    ++calls;
    done(status_);
  }
  std::atomic<int> calls{0};

 private:
  const Status status_;
};

TEST(RemoteSession, F318_TheTimeoutCoversTheCreationAndNamesTheReason) {
  Graph graph;
  const AsDefault here(graph);
  const Output y = Constant(1.0) + 1.0;
  const auto master = std::make_shared<AbsentMaster>(Unavailable("ps 1 refused the connection"));
  constexpr int64_t kLimitMs = WEIR_SANITIZER_KIND == 0 ? 1000 : 5000;  // time for several calls
  Session session(graph, Result<std::unique_ptr<SessionInterface>>(MakeRemoteSession(
                             graph, master, {.target = "weir://h:1", .operation_timeout_in_ms = kLimitMs})));
  const Status status = session.Run(y).status();
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_NE(status.message().find("ps 1 refused the connection"), std::string::npos) << status.message();
  EXPECT_GT(master->calls, 1);
}

TEST(RemoteSession, FaultsThatWaitingDoesNotCureEndTheCreation) {
  Graph graph;
  const AsDefault here(graph);
  const Output y = Constant(1.0) + 1.0;
  const auto master = std::make_shared<AbsentMaster>(PermissionDenied("wrong token"));
  auto behind = MakeRemoteSession(graph, master, {.target = "weir://h:1"});
  Session session(graph, Result<std::unique_ptr<SessionInterface>>(std::move(behind)));
  EXPECT_EQ(session.Run(y).status().code(), Code::kPermissionDenied);
  EXPECT_EQ(master->calls, 1);
}

}  // namespace
}  // namespace weir
