// A worker and a parameter server of this process that reach each other through proxies, and the steps that rows of the
// fault table run on them.
#ifndef WEIR_TESTS_E2E_FAULT_CLUSTER_H_
#define WEIR_TESTS_E2E_FAULT_CLUSTER_H_

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/cluster/wire_tensors.h"
#include "tests/e2e/fault_table.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/own_loopback.h"
#include "tests/support/text_graph.h"
#include "tests/support/wired_cluster.h"

namespace weir::testing {

inline const cluster::TaskName kFaultPs{"ps", 0}, kFaultWorker{"worker", 0};

/// Waits until `done` is true; false after the limit.
template <class Done>
bool Eventually(Done&& done) {
  const cluster::Clock::time_point end = cluster::Clock::now() + kFaultLimit;
  while (!done()) {
    if (cluster::Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// The ps has a counter, which `step` raises, a queue that nobody fills, and a large value; the worker is the master.
class FaultCluster {
 public:
  static constexpr int64_t kLarge = 1 << 20;  // floats

  explicit FaultCluster(std::chrono::milliseconds peer_timeout, uint64_t seed = 1)
      : cluster_({kFaultWorker, kFaultPs}, EndWith(peer_timeout), OwnLoopback() + ":0"),
        to_ps(AddressOf(kFaultPs), seed),
        from_ps(AddressOf(kFaultWorker), seed + 1) {
    Reconnect();
    Result<graph::Definition> made = MakeGraph(Nodes());
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (made.ok()) graph_ = std::make_unique<graph::Definition>(*std::move(made));
  }
  ~FaultCluster() { session_.reset(); }
  FaultCluster(const FaultCluster&) = delete;
  FaultCluster& operator=(const FaultCluster&) = delete;

  /// Opens a session; a peer that was lost may need several attempts.
  void Open(FaultRow& row) {
    Status last;
    if (!Eventually([&] { return (last = TryToOpen()).ok(); })) row.Hung("opening a session: " + last.ToString());
  }
  Status TryToOpen(std::chrono::milliseconds limit = kFaultLimit) {
    session_.reset();
    cluster::MasterOptions master;
    master.creation_limit = limit;
    auto opened = cluster_.Open(*graph_, master);
    if (opened.ok()) session_ = *std::move(opened);
    return opened.status();
  }
  /// Opens a session and sets the counter to 0.
  void Begin(FaultRow& row) {
    Open(row);
    ASSERT_NE(session_, nullptr);
    const auto init = [&] {
      if (session_ == nullptr && !TryToOpen().ok()) return false;
      if (Run({}, {"init"}).status().ok()) return true;
      session_.reset();
      return false;
    };
    ASSERT_TRUE(Eventually(init));
    Good(row);
  }
  /// The health of the cluster: a step succeeds soon, if need be in a new session.
  void Good(FaultRow& row) {
    Status last;
    const auto good = [&] {
      last = session_ == nullptr ? TryToOpen() : Status();
      if (last.ok()) last = Step();
      if (!last.ok()) session_.reset();
      return last.ok();
    };
    if (!Eventually(good)) row.Hung("a good step: " + last.ToString());
  }
  /// Raises the counter, and sends its value to the worker.
  Status Step() {
    ++asked_;
    const Status status = Run({"y:0"}, {}).status();
    succeeded_ += status.ok() ? 1 : 0;
    return status;
  }
  /// A step that waits in the ps, until it ends.
  std::future<Status> BeginWaiting() {
    auto step = std::async(std::launch::async, [this] { return Run({"z:0"}, {}).status(); });
    EXPECT_TRUE(Eventually([&] { return ps().counts().running > 0; }));
    return step;
  }
  Result<std::vector<Tensor>> Run(const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
                                  const std::vector<session::Feed>& feeds = {},
                                  std::chrono::milliseconds limit = kFaultLimit) {
    session::RunOptions options;
    options.timeout_in_ms = limit.count();
    return session_->Run(feeds, fetches, targets, options);
  }
  /// The status of a step that runs elsewhere; a hang is told.
  static Status EndOf(FaultRow& row, std::future<Status>& step) {
    if (step.wait_for(kFaultLimit + std::chrono::seconds(10)) == std::future_status::ready) return step.get();
    row.Hung("a step");
    return step.get();
  }

  /// Ends the row: the cluster is well, no step ran twice, and nothing is left.
  void End(FaultRow& row) {
    Good(row);
    const auto read = Run({"read:0"}, {});
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    row.Ran(asked_, succeeded_, static_cast<uint64_t>((*read)[0].as<float>()[0]));
    session_.reset();
    const auto idle = [&](const cluster::TaskName& task) {
      const cluster::LocalWorker::Counts counts = cluster_.worker(task).counts();
      return counts.steps == 0 && counts.running == 0;
    };
    EXPECT_TRUE(Eventually([&] { return idle(kFaultPs) && idle(kFaultWorker); })) << "steps are left";
    EXPECT_TRUE(Eventually([] { return cluster::ByteBudget::OfProcess()->used() == 0; })) << "bytes are left";
    EXPECT_TRUE(Eventually([&] { return to_ps.counts().open <= 1 && from_ps.counts().open <= 1; }))
        << "connections are left";
    // Without waiting calls, a drain ends.
    for (const cluster::TaskName& task : {kFaultPs, kFaultWorker}) {
      const Status drained = cluster_.task(task).listener->Drain(cluster::Clock::now() + kFaultLimit);
      EXPECT_TRUE(drained.ok()) << drained.ToString();
    }
  }

  cluster::LocalWorker& ps() { return cluster_.worker(kFaultPs); }
  /// Another incarnation of the ps at the same address, without its variables.
  void RestartPs() {
    const std::string address = AddressOf(kFaultPs);
    cluster_.Stop(kFaultPs);
    cluster_.Start(kFaultPs, address);
    Reconnect();
    asked_ = succeeded_ = 0;
  }
  /// The counter will be set to 0.
  void Forget() { asked_ = succeeded_ = 0; }

 private:
  static cluster::LocalEnd EndWith(std::chrono::milliseconds peer_timeout) {
    cluster::LocalEnd self;
    self.peer_timeout = peer_timeout;
    return self;
  }
  static std::vector<NodeLine> Nodes() {
    const std::string ps = "/job:ps/task:0", worker = "/job:worker/task:0";
    const op::AttrList scalar = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}};
    const op::AttrList queued = {{"component_types", std::vector<DType>{DType::kFloat}}};
    const auto on = [](NodeLine node, const std::string& device) {
      node.device = device;
      return node;
    };
    return {{"v", "VariableV2", {}, scalar, ps},
            on(Const("none", Tensor::Scalar<float>(0)), ps),
            on(Const("one", Tensor::Scalar<float>(1)), ps),
            {"init", "Assign", {"v", "none"}, kFloat, ps},
            {"add", "AssignAdd", {"v", "one"}, kFloat, ps},
            {"read", "Identity", {"v"}, kFloat, ps},
            {"y", "Neg", {"add"}, kFloat, worker},
            {"q", "FIFOQueueV2", {}, queued, ps},
            {"got", "QueueDequeueV2", {"q"}, queued, ps},
            {"z", "Neg", {"got"}, kFloat, worker},
            on(Placeholder("x", PartialShape::Of({-1})), ps),
            {"large", "Neg", {"x"}, kFloat, ps},
            {"large_here", "Neg", {"large"}, kFloat, worker},
            on(Placeholder("dims", PartialShape::Of({1}), DType::kInt32), ps),
            {"filled", "Fill", {"dims", "one"}, {{"T", DType::kFloat}, {"index_type", DType::kInt32}}, ps},
            {"filled_here", "Neg", {"filled"}, kFloat, worker}};
  }
  std::string AddressOf(const cluster::TaskName& task) { return cluster_.task(task).listener->address(); }
  /// The tasks reach each other through the proxies.
  void Reconnect() {
    const auto connect = [&](const cluster::TaskName& from, const cluster::TaskName& to, const FaultProxy& proxy) {
      WiredCluster::Task& task = cluster_.task(from);
      auto made = SocketTransport()->ConnectWorker(to, proxy.address(), task.self);
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      task.workers->Add(*made);
    };
    connect(kFaultWorker, kFaultPs, to_ps);
    connect(kFaultPs, kFaultWorker, from_ps);
  }

  WiredCluster cluster_;

 public:
  FaultProxy to_ps, from_ps;  // of the calls of the worker, and of those of the ps

 private:
  std::unique_ptr<graph::Definition> graph_;
  std::unique_ptr<session::Session> session_;
  uint64_t asked_ = 0, succeeded_ = 0;
};

}  // namespace weir::testing

#endif  // WEIR_TESTS_E2E_FAULT_CLUSTER_H_
