// Training programs that lose a task and go on from their last checkpoint.
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <thread>

#include "core/client/extra.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/served.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/own_loopback.h"

namespace weir {
namespace {

using testing::AddressOf;
using testing::Limited;
using testing::ScratchFolder;
using testing::Serve;
using testing::TargetOf;

/// A program in the style of MonitoredTrainingSession, whose variables are on a ps and whose sessions at a worker.
class Recovery : public ::testing::Test {
 protected:
  Recovery() {
    StartPs(testing::OwnLoopback() + ":0");
    worker_ = Serve({"--cluster", "ps=" + ps_address_ + ",worker=127.0.0.1:0", "--job", "worker", "--task", "0"});
    target_ = TargetOf(*worker_);
    to_worker_.Serve(AddressOf(target_));
    const AsDefault here(graph_);
    const DeviceScope ps("/job:ps/task:0");
    step_ = GetOrCreateGlobalStep();
    w_ = Variable(0.0, {.name = "w"});
    const Output raised = step_.AssignAdd(int64_t{1});
    const ControlDependencies then({raised.op()});
    train_ = w_.AssignAdd(2.0);
  }

  void StartPs(const std::string& listen) {
    ps_ = Serve({"--cluster", "ps=127.0.0.1:0,worker=" + to_worker_.address(), "--job", "ps", "--task", "0", "--listen",
                 listen});
    ps_address_ = AddressOf(TargetOf(*ps_));
  }
  void ReplacePs() {
    ps_->Signal(SIGKILL);
    EXPECT_EQ(ps_->Wait(), 128 + SIGKILL);
    StartPs(ps_address_);
  }
  std::unique_ptr<MonitoredSession> Open() {
    TrainingSessionOptions options;
    options.make = [this](Graph& graph) { return std::make_unique<Session>(target_, graph, Limited()); };
    options.checkpoint_dir = folder_.path();
    options.save_checkpoint_steps = 5;
    options.save_summaries_steps = 0;
    options.log_step_count_steps = 0;
    options.recovery_wait_secs = 0.1;
    options.graph = &graph_;
    return MonitoredTrainingSession(options);
  }
  /// Trains one step; the global step afterwards, or -1. w is twice the number of steps that count.
  int64_t Train(MonitoredSession& session) {
    const auto trained = session.Run(train_);
    EXPECT_TRUE(trained.ok()) << trained.status().ToString();
    const auto now = session.Run({step_, w_});
    EXPECT_TRUE(now.ok()) << now.status().ToString();
    if (!now.ok()) return -1;
    const int64_t step = *(*now)[0].scalar<int64_t>();
    EXPECT_EQ(*(*now)[1].scalar<float>(), 2 * static_cast<float>(step));
    return step;
  }

  const ScratchFolder folder_;
  testing::FaultProxy to_worker_{"localhost:1"};  // an address for the worker before it has one
  std::string ps_address_, target_;
  std::unique_ptr<testing::ServerProcess> ps_, worker_;
  Graph graph_;
  Variable step_, w_;
  Output train_;
};

TEST_F(Recovery, F331_TrainingGoesOnFromTheLastCheckpointAfterAPsWasReplaced) {
  const auto session = Open();
  ASSERT_TRUE(session->status().ok()) << session->status().ToString();
  for (int64_t step = 1; step <= 12; ++step) ASSERT_EQ(Train(*session), step);
  EXPECT_EQ(session->sessions(), 1);
  ReplacePs();
  const int64_t after = Train(*session);
  // The ps has forgotten everything: what counts are the steps of a checkpoint, and this one.
  EXPECT_GE(after, 6);
  EXPECT_LE(after, 12);
  EXPECT_GE(session->sessions(), 2);
  for (int64_t step = after + 1; step <= 20; ++step) ASSERT_EQ(Train(*session), step);
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(Recovery, F331_APsIsReplacedWhileStepsRun) {
  const auto session = Open();
  ASSERT_TRUE(session->status().ok()) << session->status().ToString();
  ASSERT_EQ(Train(*session), 1);
  for (int round = 0; round < 2; ++round) {
    std::thread breaks([this] { ReplacePs(); });
    int64_t last = 0;
    for (int i = 0; i < 30; ++i) {
      const auto trained = session->Run(train_);
      EXPECT_TRUE(trained.ok()) << trained.status().ToString();
    }
    breaks.join();
    last = Train(*session);
    EXPECT_GT(last, 1);
  }
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace
}  // namespace weir
