// Steps cut between two tasks of a cluster: parts go to their task as GraphDefs, values through its rendezvous.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/runtime/cancellation.h"
#include "core/session/compile.h"
#include "core/session/session.h"
#include "core/session/tasks.h"
#include "tests/pipeline/random_program.h"
#include "tests/pipeline/three_cpus.h"
#include "tests/support/local_cluster.h"
#include "tests/support/wired_cluster.h"
#if defined(WEIR_COMMAND)
#include "tests/e2e/served_cluster.h"
#endif

namespace weir {
namespace {

/// Two tasks with a session in each, and what the master's half needs.
template <class Cluster>
class TwoTasks {
 public:
  TwoTasks() : cluster_({{"worker", 0}, {"worker", 1}}), prepared_(cluster_.Prepare()) {
    if (prepared_.ok()) prepared_->options.fusion = false;
  }
  const Status& status() const { return prepared_.status(); }

  session::CompileContext Context() {
    return {*prepared_->runtime, prepared_->options, resources_, node_resources_, 2};
  }
  /// Places every op at random and registers the parts of both tasks.
  Result<std::unique_ptr<session::TaskProgram>> Scatter(const graph::Definition& graph,
                                                        const graph::StepRequest& request, std::mt19937& random) {
    WEIR_ASSIGN(session::PlacedStep placed, session::Prepare(Context(), graph, request));
    for (size_t i = 0; i < placed.step.nodes.size(); ++i) {
      if (placed.step.nodes[i].kind == graph::StepNode::Kind::kOp) {
        placed.placement.device_of[i] = static_cast<int>(random() % placed.placement.devices.size());
      }
    }
    WEIR_ASSIGN(auto parts, session::CutBetweenTasks(Context(), request, placed));
    several_ += parts.size() > 1 ? 1 : 0;
    return prepared_->options.tasks->Register(std::move(parts), request.fetches.size());
  }
  /// Steps whose parts were in both tasks.
  int several() const { return several_; }
  /// What is left when it no longer changes, or after two minutes: a far task forgets a step after its master goes on.
  size_t Left() {
    size_t left = 0;
    for (const auto end = cluster::Clock::now() + std::chrono::minutes(2); cluster::Clock::now() < end;) {
      left = 0;
      for (const int task : {0, 1}) {
        const cluster::LocalWorker::Counts counts = cluster_.CountsOf({"worker", task});
        left += counts.parts + counts.steps + counts.running;
      }
      if (left == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return left;
  }

 private:
  Cluster cluster_;
  Result<cluster::ClusterSession> prepared_;
  runtime::ResourceScope resources_;
  runtime::NodeResources node_resources_;
  int several_ = 0;
};

template <class Cluster>
void CheckCuts(int cuts) {
  if (const char* const given = std::getenv("WEIR_CUTS"); given != nullptr) cuts = std::atoi(given);
  TwoTasks<Cluster> tasks;
  ASSERT_TRUE(tasks.status().ok()) << tasks.status().ToString();
  for (int seed = 0; seed < cuts; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<uint32_t>(seed));
    RandomProgram program(static_cast<uint32_t>(seed));
    ASSERT_TRUE(program.status().ok()) << program.status().ToString();
    std::vector<std::string> fetches;
    graph::StepRequest request;
    request.feeds = {{{program.graph().Find("x")->id(), 0}, DType::kFloat, PartialShape(Shape())}};
    for (const Output& fetch : program.fetches()) {
      fetches.push_back(fetch.name());
      const Result<graph::InputName> parsed = graph::ParseInputName(fetches.back());
      request.fetches.push_back({program.graph().Find(parsed->node)->id(), parsed->index});
    }
    session::SessionOptions options;
    options.placement_log = [](const std::string&) {};
    options.fusion = false;
    const auto whole = session::Session::Make(ThreeCpus(), program.graph(), options);
    ASSERT_TRUE(whole.ok()) << whole.status().ToString();
    const auto apart = tasks.Scatter(program.graph(), request, random);
    ASSERT_TRUE(apart.ok()) << apart.status().ToString();
    for (const float x : {-1.5f, 0.25f, 3.0f}) {
      const std::vector<Tensor> feeds = {Tensor::Scalar<float>(x)};
      const auto wanted = (*whole)->Run(std::vector<session::Feed>{{"x:0", feeds[0]}}, fetches, {});
      ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
      runtime::Cancellation cancellation;
      cancellation.CancelAt(runtime::Cancellation::Clock::now() + std::chrono::seconds(60),
                            DeadlineExceeded("the tasks wait for each other"));
      std::vector<Tensor> got;
      const Status status = (*apart)->Run(feeds, &got, &cancellation, nullptr);
      ASSERT_TRUE(status.ok()) << status.ToString();
      ASSERT_TRUE(Same(*wanted, got)) << x;
    }
  }
  EXPECT_GE(tasks.several(), cuts * 9 / 10);
  EXPECT_EQ(tasks.Left(), 0u);
}

TEST(ClusterParts, F244_RandomCutsOverTwoTasksGiveTheBitsOfOneProcess) {
  CheckCuts<testing::LocalCluster>(WEIR_SANITIZER_KIND == 0 ? 200 : 30);
}

TEST(ClusterParts, F244_F249_RandomCutsOverSocketsGiveTheBitsOfOneProcess) {
  CheckCuts<testing::WiredCluster>(WEIR_SANITIZER_KIND == 0 ? 40 : 10);
}

#if defined(WEIR_COMMAND)
TEST(ClusterParts, F244_F249_RandomCutsOverProcessesGiveTheBitsOfOneProcess) {
  CheckCuts<testing::ServedCluster>(WEIR_SANITIZER_KIND == 0 ? 40 : 5);
}
#endif

}  // namespace
}  // namespace weir
