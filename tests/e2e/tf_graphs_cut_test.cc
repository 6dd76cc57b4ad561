// Runs the graphs of the test data cut into parts: at random between three devices of one process, and part by part,
// as GraphDefs, in three processes; at random between this process and a remote device, every ninth graph, or all with
// WEIR_TF_GRAPHS=all.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/cluster/remote_devices.h"
#include "core/session/session.h"
#include "core/tensor/tensor_proto.h"
#include "tests/e2e/part_wire.h"
#include "tests/e2e/tf_graphs.h"
#include "tests/support/local_cluster.h"
#include "tests/support/random_cut.h"
#include "tests/support/test_data.h"
#include "tests/support/wired_cluster.h"

namespace weir {
namespace {

using testing::Frame;
using testing::FrameKind;
using testing::TfGraph;

const std::vector<std::string> kDevices = {"/device:CPU:0", "/device:CPU:1", "/device:CPU:2"};

Result<std::shared_ptr<session::Runtime>> ThreeCpus() {
  config::Config config;
  config.device_count["CPU"] = static_cast<int>(kDevices.size());
  return session::Runtime::For(config);
}

/// Without folding, which leaves one constant of most graphs.
session::SessionOptions Unfolded() {
  session::SessionOptions options;
  options.constant_folding = false;
  options.placement_log = [](const std::string&) {};
  options.operation_timeout_in_ms = 60000;
  return options;
}

/// The graphs that weir runs; empty without test data.
Result<std::vector<TfGraph>> Graphs(const session::Runtime& runtime) {
  WEIR_ASSIGN(std::vector<TfGraph> graphs, testing::ListTfGraphs(testing::TestData()));
  std::erase_if(graphs, [&](const TfGraph& graph) { return !graph.Runs(*runtime.ops) || graph.Refused(); });
  return graphs;
}

class TfGraphsCut : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef WEIR_KERNEL_DTYPES_SHORT
    GTEST_SKIP() << "the kernels of this build take few element types";
#endif
    if (testing::TestData().empty()) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
    auto runtime = ThreeCpus();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
    auto graphs = Graphs(*runtime_);
    ASSERT_TRUE(graphs.ok()) << graphs.status().ToString();
    graphs_ = std::move(*graphs);
    ASSERT_GE(graphs_.size(), 340u);
  }

  std::shared_ptr<session::Runtime> runtime_;
  std::vector<TfGraph> graphs_;
};

Status RunCut(const TfGraph& tested, const std::shared_ptr<session::Runtime>& runtime, uint32_t seed) {
  WEIR_ASSIGN(graph::Definition graph, tested.Parse(*runtime->ops));
  std::mt19937 random(seed);
  testing::PlaceAtRandom(kDevices, random, graph);
  session::SessionOptions options = Unfolded();
  options.cut_between_devices = true;
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph, options));
  WEIR_ASSIGN(const std::vector<session::Feed> feeds, tested.Feeds());
  WEIR_ASSIGN(const std::vector<Tensor> results, session->Run(feeds, tested.Fetches(), {}));
  return tested.Compare(results);
}

TEST_F(TfGraphsCut, F018_AThousandRandomCutsMatch) {
  int cuts = 0;
  for (uint32_t round = 0; cuts < 1000; ++round) {
    for (const TfGraph& tested : graphs_) {
      const Status status = RunCut(tested, runtime_, round * 7919 + static_cast<uint32_t>(cuts));
      EXPECT_TRUE(status.ok()) << tested.name() << ", round " << round << ": " << status.ToString();
      ++cuts;
    }
  }
}

Status RunOverTasks(const TfGraph& tested, const testing::LocalCluster& cluster, const op::OpRegistry& ops,
                    uint32_t seed) {
  static const std::vector<std::string> kTasks = {"/job:worker/task:0", "/job:worker/task:1"};
  WEIR_ASSIGN(graph::Definition graph, tested.Parse(ops));
  std::mt19937 random(seed);
  testing::PlaceAtRandom(kTasks, random, graph);
  WEIR_ASSIGN(cluster::ClusterSession made, cluster.Prepare());
  made.options.constant_folding = false;
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session,
              session::Session::Make(made.runtime, graph, made.options));
  WEIR_ASSIGN(const std::vector<session::Feed> feeds, tested.Feeds());
  WEIR_ASSIGN(const std::vector<Tensor> results, session->Run(feeds, tested.Fetches(), {}));
  return tested.Compare(results);
}

TEST_F(TfGraphsCut, F244_RandomCutsOverTwoTasksOfAClusterMatch) {
  testing::LocalCluster cluster({{"worker", 0}, {"worker", 1}});
  uint32_t cuts = 0;
  int ran = 0;
  for (const TfGraph& tested : graphs_) {
    const Status status = RunOverTasks(tested, cluster, *runtime_->ops, cuts++);
    // Nodes of a loop and those of one array cannot be in two tasks, which soft placement does not change.
    const bool refused = status.message().find("Cannot colocate nodes") != std::string::npos;
    EXPECT_TRUE(status.ok() || refused) << tested.name() << ": " << status.ToString();
    ran += status.ok() ? 1 : 0;
  }
  EXPECT_GT(ran, 320);
  for (const int task : {0, 1}) {
    const cluster::LocalWorker::Counts counts = cluster.worker({"worker", task}).counts();
    EXPECT_EQ(counts.sessions + counts.parts + counts.steps + counts.running, 0u);
  }
}

TEST_F(TfGraphsCut, F244_RandomCutsWithARemoteDeviceMatch) {
  const std::vector<std::string> devices = {"/job:localhost/task:0", "/job:remote/task:0", "/job:remote/task:1"};
  testing::WiredCluster one({{"worker", 0}}), other({{"worker", 1}});
  const auto own = std::make_shared<session::Runtime>(*testing::RuntimeOf({"localhost", 0}));
  own->config.cluster.remote_devices = {one.task({"worker", 0}).listener->address(),
                                other.task({"worker", 1}).listener->address()};
  own->config.cluster.remote_limit_ms = 60000;
  const auto runtime = cluster::AttachRemoteDevices(own);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  ASSERT_EQ((*runtime)->plugins->devices().all().size(), devices.size());
  const char* const which = std::getenv("WEIR_TF_GRAPHS");
  const size_t step = which != nullptr && std::string(which) == "all" ? 1 : 9;
  int ran = 0, asked = 0;
  for (size_t g = 0; g < graphs_.size(); g += step, ++asked) {
    const auto run = [&]() -> Status {
      WEIR_ASSIGN(graph::Definition graph, graphs_[g].Parse(*runtime_->ops));
      std::mt19937 random(static_cast<uint32_t>(g));
      testing::PlaceAtRandom(devices, random, graph);
      WEIR_ASSIGN(const auto session, session::Session::Make(*runtime, graph, Unfolded()));
      WEIR_ASSIGN(const std::vector<session::Feed> feeds, graphs_[g].Feeds());
      for (int again = 0; again < 2; ++again) {
        WEIR_ASSIGN(const std::vector<Tensor> results, session->Run(feeds, graphs_[g].Fetches(), {}));
        WEIR_TRY(graphs_[g].Compare(results));
      }
      return Status();
    };
    const Status status = run();
    const bool refused = status.message().find("Cannot colocate nodes") != std::string::npos;
    EXPECT_TRUE(status.ok() || refused) << graphs_[g].name() << ": " << status.ToString();
    ran += status.ok() ? 1 : 0;
  }
  EXPECT_GT(ran, asked * 9 / 10);
  for (const cluster::LocalWorker* far : {&one.worker({"worker", 0}), &other.worker({"worker", 1})}) {
    const cluster::LocalWorker::Counts counts = far->counts();
    EXPECT_EQ(counts.sessions + counts.parts + counts.steps + counts.running, 0u);
  }
}

/// A process of part_worker. A thread hands on what it says.
class Worker {
 public:
  using Told = std::function<void(Frame)>;

  Status Start(Told told) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Unavailable("socketpair failed");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    std::string program = WEIR_PART_WORKER;
    char* words[] = {program.data(), nullptr};
    const int failed = posix_spawn(&process_, program.c_str(), &actions, nullptr, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    file_ = ends[0];
    if (failed != 0) return Unavailable("cannot start {}", program);
    thread_ = std::thread([this, told = std::move(told)] {
      for (Result<Frame> frame = testing::ReadFrame(file_); frame.ok(); frame = testing::ReadFrame(file_)) {
        told(std::move(*frame));
      }
      told({FrameKind::kEnd, "the process ended", {}});
    });
    return Status();
  }
  /// The exit status.
  int Stop() {
    shutdown(file_, SHUT_WR);
    int status = -1;
    waitpid(process_, &status, 0);
    thread_.join();
    close(file_);
    return status;
  }
  Status Tell(const Frame& frame) {
    const std::lock_guard lock(mutex_);
    return testing::WriteFrame(file_, frame);
  }

 private:
  pid_t process_ = -1;
  int file_ = -1;
  std::mutex mutex_;  // serializes writes
  std::thread thread_;
};

/// Three processes, each for one part of a step at a time.
class Workers {
 public:
  Workers() : workers_(kDevices.size()) {}
  Status Start() {
    for (size_t w = 0; w < workers_.size(); ++w) {
      WEIR_TRY(workers_[w].Start([this, w](Frame frame) { Told(w, std::move(frame)); }));
    }
    return Status();
  }
  void Stop() {
    for (Worker& worker : workers_) EXPECT_EQ(worker.Stop(), 0);
  }

  Result<std::vector<Tensor>> Run(const std::vector<std::string>& parts, const std::vector<session::Feed>& feeds,
                                  size_t fetches) {
    if (parts.size() > workers_.size()) return InvalidArgument("{} parts", parts.size());
    {
      const std::lock_guard lock(mutex_);
      fetched_.assign(fetches, Tensor());
      running_ = parts.size();
      error_ = Status();
    }
    for (size_t w = 0; w < parts.size(); ++w) {
      WEIR_TRY(workers_[w].Tell({FrameKind::kGraph, {}, parts[w]}));
      for (const session::Feed& feed : feeds) {
        WEIR_ASSIGN(std::string bytes, SerializeTensorProto(feed.second));
        WEIR_TRY(workers_[w].Tell({FrameKind::kFeed, {}, std::move(bytes)}));
      }
    }
    for (size_t w = 0; w < parts.size(); ++w) WEIR_TRY(workers_[w].Tell({FrameKind::kRun, {}, {}}));
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
    WEIR_TRY(error_);
    return fetched_;
  }

 private:
  void Told(size_t from, Frame frame) {
    if (frame.kind == FrameKind::kMessage || frame.kind == FrameKind::kAbort) {
      for (size_t w = 0; w < workers_.size(); ++w) {
        if (w != from) (void)workers_[w].Tell(frame);
      }
      return;
    }
    const std::lock_guard lock(mutex_);
    if (frame.kind == FrameKind::kFetch) {
      Result<Tensor> value = ParseTensorProto(frame.data);
      if (value.ok()) {
        fetched_.at(std::stoul(frame.name)) = std::move(*value);
      } else if (error_.ok()) {
        error_ = value.status();
      }
    } else if (frame.kind == FrameKind::kEnd && running_ > 0) {
      if (!frame.name.empty() && error_.ok()) error_ = Internal("part {}: {}", from, frame.name);
      if (--running_ == 0) ended_.notify_one();
    }
  }

  std::vector<Worker> workers_;
  std::mutex mutex_;  // protects all below
  std::condition_variable ended_;
  size_t running_ = 0;
  std::vector<Tensor> fetched_;
  Status error_;
};

TEST_F(TfGraphsCut, F018_PartsInProcessesOfTheirOwnMatch) {
  Workers workers;
  ASSERT_TRUE(workers.Start().ok());
  int several = 0;
  for (const TfGraph& tested : graphs_) {
    SCOPED_TRACE(tested.name());
    auto graph = tested.Parse(*runtime_->ops);
    const auto feeds = tested.Feeds();
    ASSERT_TRUE(graph.ok() && feeds.ok());
    std::mt19937 random(static_cast<uint32_t>(several));
    testing::PlaceAtRandom(kDevices, random, *graph);
    const auto session = session::Session::Make(runtime_, *graph, Unfolded());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session::RunOptions options;
    options.output_partition_graphs = true;
    session::RunReport report;
    const auto whole = (*session)->Run(*feeds, tested.Fetches(), {}, options, &report);
    ASSERT_TRUE(whole.ok()) << whole.status().ToString();
    several += report.partition_graphs.size() > 1 ? 1 : 0;
    const auto results = workers.Run(report.partition_graphs, *feeds, tested.Fetches().size());
    EXPECT_TRUE(results.ok()) << results.status().ToString();
    if (!results.ok()) continue;
    const Status same = tested.Compare(*results);
    EXPECT_TRUE(same.ok()) << same.ToString();
  }
  workers.Stop();
  EXPECT_GT(several, 240);  // the others have few nodes
}

}  // namespace
}  // namespace weir
