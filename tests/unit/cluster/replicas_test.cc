// Programs of several replicas, each a client with a graph of its own, whose variables are on a parameter server. All
// tasks are in this process. Numbers are rows of the feature list.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/client/extra.h"
#include "core/client/session/session_interface.h"
#include "core/tensor/number.h"
#include "tests/support/local_cluster.h"

namespace weir::cluster::replicas {
namespace {

const TaskName kPs{"ps", 0}, kSecondPs{"ps", 1};
TaskName WorkerAt(int index) { return {"worker", index}; }

double NumberIn(const Result<Fetched>& fetched) {
  EXPECT_TRUE(fetched.ok()) << fetched.status().ToString();
  return fetched.ok() ? ElementAsDouble(fetched->tensor(), 0) : -1e9;
}

class Replicas : public ::testing::Test {
 protected:
  Replicas() : cluster_({kPs, kSecondPs, WorkerAt(0), WorkerAt(1)}) {}

  /// Makes sessions whose master is that task.
  SessionMaker At(const TaskName& task) {
    return [this, task](Graph& graph) {
      MasterOptions master;
      master.task = task;
      const auto made = [&]() -> Result<std::unique_ptr<SessionInterface>> {
        WEIR_ASSIGN(ClusterSession prepared, cluster_.Prepare(master));
        return InProcess(graph, std::move(prepared.options), std::move(prepared.runtime));
      };
      return std::make_unique<Session>(graph, made());
    };
  }

  testing::LocalCluster cluster_;
};

/// The graph of one replica: the gradient of w is what x is fed.
struct Model {
  explicit Model(int worker, int ps_tasks = 1)
      : in(graph),
        device(
            *ReplicaDeviceSetter({.ps_tasks = ps_tasks, .worker_device = "/job:worker/task:" + std::to_string(worker)}),
            graph),
        step(GetOrCreateGlobalStep()),
        w(GetVariable("w", {.shape = Shape(), .initializer = ConstantInitializer(1.0)})),
        x(Placeholder(DType::kFloat, PartialShape(Shape()), "x")),
        descent(0.1) {}
  Graph graph;
  AsDefault in;
  DeviceScope device;
  Variable step, w;
  Output x;
  GradientDescentOptimizer descent;
};

TEST_F(Replicas, F201_each_worker_updates_at_once) {
  Model chief(0);
  const Operation train = chief.descent.Minimize(chief.w * chief.x, {.global_step = chief.step});
  const Operation init = GlobalVariablesInitializer();
  const auto session = At(WorkerAt(0))(chief.graph);
  ASSERT_TRUE(session->Run(init).ok());
  std::atomic<int> failed{0};
  std::thread other([&] {
    Model model(1);
    const Operation step = model.descent.Minimize(model.w * model.x, {.global_step = model.step});
    const auto own = At(WorkerAt(1))(model.graph);
    for (int i = 0; i < 5; ++i) failed += own->Run(step, {{model.x, 2.0f}}).ok() ? 0 : 1;
  });
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(session->Run(train, {{chief.x, 1.0f}}).ok());
  other.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(NumberIn(session->Run(chief.step)), 12);
  EXPECT_NEAR(NumberIn(session->Run(chief.w)), 1 - 0.1 * (7 * 1 + 5 * 2), 1e-5);
}

TEST_F(Replicas, F199_F255_synchronous_replicas_under_monitored_sessions) {
  constexpr int kSteps = 4;
  std::vector<double> steps(2), values(2);
  std::barrier<> round(2);
  const auto run = [&](int index) {
    Model model(index);
    SyncReplicasOptimizer optimizer(model.descent, {.replicas_to_aggregate = 2, .total_num_replicas = 2});
    const Operation train = optimizer.Minimize(model.w * model.x, {.global_step = model.step});
    TrainingSessionOptions options;
    options.is_chief = index == 0;
    options.make = At(WorkerAt(index));
    options.recovery_wait_secs = 0.01;
    options.graph = &model.graph;
    options.hooks = {optimizer.MakeSessionRunHook(index == 0, 0)};
    const auto session = MonitoredTrainingSession(options);
    EXPECT_TRUE(session->status().ok()) << session->status().ToString();
    for (int i = 0; i < kSteps && session->status().ok(); ++i) {
      const Status stepped = session->Run(train, {{model.x, index == 0 ? 1.0f : 3.0f}}).status();
      EXPECT_TRUE(stepped.ok()) << stepped.ToString();
      if (!stepped.ok()) break;
      round.arrive_and_wait();  // one that runs ahead may take the other's token
    }
    round.arrive_and_drop();
    if (session->session() != nullptr) {
      steps[static_cast<size_t>(index)] = NumberIn(session->session()->Run(model.step));
      values[static_cast<size_t>(index)] = NumberIn(session->session()->Run(model.w));
    }
    const Status closed = session->Close();
    EXPECT_TRUE(closed.ok()) << closed.ToString();
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(steps, (std::vector<double>{kSteps, kSteps}));
  for (const double value : values) EXPECT_NEAR(value, 1 - kSteps * 0.1 * 2, 1e-5);
}

TEST_F(Replicas, F199_a_backup_worker_s_late_gradient_is_dropped) {
  Model fast(0);
  SyncReplicasOptimizer fast_optimizer(fast.descent, {.replicas_to_aggregate = 1, .total_num_replicas = 2});
  const Operation fast_train = fast_optimizer.Minimize(fast.w * fast.x, {.global_step = fast.step});
  const Operation init = GlobalVariablesInitializer();
  const auto chief = At(WorkerAt(0))(fast.graph);
  ASSERT_TRUE(chief->Run(init).ok());
  ASSERT_TRUE(chief->Run(fast_optimizer.chief_init_op()).ok());
  const Coordinator coordinator;
  (void)fast_optimizer.GetChiefQueueRunner()->CreateThreads(*chief, &coordinator);
  std::thread([&] {
    Model slow(1);
    SyncReplicasOptimizer optimizer(slow.descent, {.replicas_to_aggregate = 1, .total_num_replicas = 2});
    const Operation train = optimizer.Minimize(slow.w * slow.x, {.global_step = slow.step});
    const auto session = At(WorkerAt(1))(slow.graph);
    ASSERT_TRUE(session->Run(optimizer.local_step_init_op()).ok());  // step 0
    ASSERT_TRUE(chief->Run(fast_train, {{fast.x, 1.0f}}).ok());      // an update, and a token for each
    ASSERT_TRUE(session->Run(train, {{slow.x, 100.0f}}).ok());       // stale
    EXPECT_EQ(NumberIn(session->Run(slow.step)), 1);
    EXPECT_NEAR(NumberIn(session->Run(slow.w)), 0.9, 1e-6);
    ASSERT_TRUE(session->Run(train, {{slow.x, 2.0f}}).ok());  // of step 1
    EXPECT_NEAR(NumberIn(session->Run(slow.w)), 0.7, 1e-6);
    EXPECT_EQ(NumberIn(session->Run(slow.step)), 2);
  }).join();
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok());
}

TEST_F(Replicas, F255_F206_a_late_worker_waits_for_the_chief_and_continues) {
  std::promise<void> waits;
  std::thread late([&] {
    Model model(1);
    Supervisor supervisor({.is_chief = false, .recovery_wait_secs = 0.01});
    EXPECT_TRUE(supervisor.status().ok()) << supervisor.status().ToString();
    std::atomic<int> made{0};
    WaitOptions wait;
    wait.make = [&, inner = At(WorkerAt(1))](Graph& graph) {
      if (++made == 2) waits.set_value();
      return inner(graph);
    };
    const Status done = supervisor.ManagedSession(
        [&](Session& session) {
          EXPECT_EQ(NumberIn(session.Run(model.w)), 1);
          return Status();
        },
        wait);
    EXPECT_TRUE(done.ok()) << done.ToString();
    EXPECT_GE(made, 2);
  });
  waits.get_future().wait();  // it found nothing to use once
  Model model(0);
  Supervisor supervisor(SupervisorOptions{.is_chief = true});
  WaitOptions own;
  own.make = At(WorkerAt(0));
  const Status done = supervisor.ManagedSession([&](Session&) { return Status(); }, own);
  EXPECT_TRUE(done.ok()) << done.ToString();
  late.join();
}

TEST_F(Replicas, F241_F242_the_chief_saves_a_shard_for_each_server) {
  const std::string folder = ::testing::TempDir() + "weir-shards-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  {
    Model model(0, 2);  // the step on one server, w on the other
    Saver saver({.sharded = true});
    const Operation init = GlobalVariablesInitializer();
    const auto session = At(WorkerAt(0))(model.graph);
    ASSERT_TRUE(session->Run(init).ok());
    const Result<std::string> saved = saver.Save(*session, folder + "/m");
    ASSERT_TRUE(saved.ok()) << saved.status().ToString();
    for (const char* name : {"m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"}) {
      EXPECT_TRUE(std::filesystem::exists(folder + "/" + name)) << name;
    }
    ASSERT_TRUE(session->Run(model.w.Assign(7.0)).ok());
    ASSERT_TRUE(saver.Restore(*session, folder + "/m").ok());
    EXPECT_EQ(NumberIn(session->Run(model.w)), 1);
  }
  {
    Graph graph;  // in one process
    const AsDefault in(graph);
    const Variable step = GetOrCreateGlobalStep();
    const Variable w = GetVariable("w", {.shape = Shape(), .initializer = ConstantInitializer(0.0)});
    Saver saver;
    Session session(graph);
    const Status restored = saver.Restore(session, folder + "/m");
    ASSERT_TRUE(restored.ok()) << restored.ToString();
    EXPECT_EQ(NumberIn(session.Run(w)), 1);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(Replicas, F252_one_client_drives_all_workers) {
  Graph graph;
  const AsDefault in(graph);
  Variable w;
  {
    const DeviceScope server("/job:ps/task:0");
    w = GetVariable("w", {.shape = Shape(), .initializer = ConstantInitializer(1.0)});
  }
  std::vector<Output> inputs;
  std::vector<Operand> gradients;
  for (int i = 0; i < 2; ++i) {
    const DeviceScope worker("/job:worker/task:" + std::to_string(i));
    inputs.push_back(Placeholder(DType::kFloat, PartialShape(Shape())));
    const Result<std::vector<Gradient>> gradient = Gradients(w * inputs.back(), w);
    ASSERT_TRUE(gradient.ok());
    gradients.emplace_back((*gradient)[0].values);
  }
  Operation train;
  {
    const DeviceScope server("/job:ps/task:0");
    train = w.AssignSub(AddN(gradients) * 0.05).op();
  }
  const Operation init = GlobalVariablesInitializer();
  const auto session = At(WorkerAt(0))(graph);
  ASSERT_TRUE(session->Run(init).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->Run(train, {{inputs[0], 1.0f}, {inputs[1], 3.0f}}).ok());
  EXPECT_NEAR(NumberIn(session->Run(w)), 1 - 3 * 0.1 * 2, 1e-5);
}

}  // namespace
}  // namespace weir::cluster::replicas
