// The order in which a step asks another task for tensors.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/cluster/local_worker.h"
#include "core/cluster/master.h"
#include "tests/support/local_cluster.h"
#include "tests/support/text_graph.h"
#include "tests/unit/cluster/forwarding_worker.h"

namespace weir::cluster {
namespace {

using testing::NodeLine;

const TaskName kPsTask{"ps", 0}, kWorkerTask{"worker", 0};
const char kPsDevice[] = "/job:ps/task:0";
const char kWorkerDevice[] = "/job:worker/task:0";

/// A task that answers a transfer of `held` when it is told to.
class SlowLink final : public ForwardingWorker {
 public:
  SlowLink(std::shared_ptr<Worker> task, std::string held)
      : ForwardingWorker(std::move(task)), held_name_(std::move(held)) {}

  void RecvTensor(const TransferRequest& request, runtime::Rendezvous::Received received) override {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request.key);
      changed_.notify_all();
      if (request.key.find(held_name_) != std::string::npos) {
        held_.emplace_back(request, std::move(received));
        return;
      }
    }
    ForwardingWorker::RecvTensor(request, std::move(received));
  }

  /// Waits until `count` transfers were asked for.
  bool Await(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return asked_.size() >= count; });
  }
  /// By transfer: which of `names` it is of.
  std::vector<std::string> Asked(const std::vector<std::string>& names) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> order;
    for (const std::string& key : asked_) {
      for (const std::string& name : names) {
        if (key.find(name) != std::string::npos) order.push_back(name);
      }
    }
    return order;
  }
  void Answer() {
    std::vector<std::pair<TransferRequest, runtime::Rendezvous::Received>> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (auto& [request, received] : held) ForwardingWorker::RecvTensor(request, std::move(received));
  }

 private:
  const std::string held_name_;
  std::mutex mutex_;  // protects all below
  std::condition_variable changed_;
  std::vector<std::string> asked_;
  std::vector<std::pair<TransferRequest, runtime::Rendezvous::Received>> held_;
};

/// Both tensors are there at once; "soon" begins a chain on the worker, "later" is needed by its last op.
std::vector<NodeLine> TwoTransfers() {
  const auto on = [](NodeLine node, const char* device) {
    node.device = device;
    return node;
  };
  return {on(testing::Placeholder("x", PartialShape::Of({})), kPsDevice),
          {"later", "Neg", {"x"}, testing::kFloat, kPsDevice},
          {"soon", "Square", {"x"}, testing::kFloat, kPsDevice},
          {"a", "Exp", {"soon"}, testing::kFloat, kWorkerDevice},
          {"b", "Neg", {"a"}, testing::kFloat, kWorkerDevice},
          {"c", "Exp", {"b"}, testing::kFloat, kWorkerDevice},
          {"y", "Add", {"c", "later"}, testing::kFloat, kWorkerDevice}};
}

class TransferOrder : public ::testing::TestWithParam<bool> {};

TEST_P(TransferOrder, F259_ATransferWithSlackDoesNotDelayTheCriticalOne) {
  const bool late = GetParam();
  testing::LocalCluster cluster({kWorkerTask, kPsTask});
  const auto link = std::make_shared<SlowLink>(*cluster.workers()->Find(kPsTask), "soon");
  cluster.workers()->Add(link);
  const Result<graph::Definition> graph = testing::MakeGraph(TwoTransfers());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  Result<ClusterSession> prepared = cluster.Prepare();
  ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
  prepared->options.late_scheduling = late;
  prepared->options.constant_folding = false;
  const auto session = session::Session::Make(std::move(prepared->runtime), *graph, std::move(prepared->options));
  ASSERT_TRUE(session.ok()) << session.status().ToString();

  Result<std::vector<Tensor>> fetched = std::vector<Tensor>();
  std::thread step([&] {
    session::RunOptions options;
    options.timeout_in_ms = 120000;
    const std::vector<session::Feed> feeds = {{"x:0", Tensor::Scalar<float>(0.5F)}};
    fetched = (*session)->Run(feeds, std::vector<std::string>{"y:0"}, {}, options);
  });
  const std::vector<std::string> names = {"soon", "later"};
  EXPECT_TRUE(link->Await(late ? 1 : 2));
  const std::vector<std::string> before = link->Asked(names);
  link->Answer();
  step.join();
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  // With the option the second transfer is asked for when the chain has reached its reader, so the link is free for the
  // first; without it the step asks for both at once.
  if (late) {
    EXPECT_EQ(before, std::vector<std::string>{"soon"});
    EXPECT_EQ(link->Asked(names), names);
  } else {
    EXPECT_EQ(before.size(), 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, TransferOrder, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Late" : "AtOnce"; });

}  // namespace
}  // namespace weir::cluster
