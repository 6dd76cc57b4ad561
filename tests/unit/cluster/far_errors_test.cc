// What the errors of a step say of the tasks where it failed or waited. Numbers are rows of the feature list.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/client/extra.h"
#include "core/client/session/session_interface.h"
#include "core/config/config.h"
#include "tests/support/text_graph.h"
#include "tests/support/wired_cluster.h"

namespace weir::cluster::far_errors {
namespace {

using testing::NodeLine;

const TaskName kPs{"ps", 0}, kWorker{"worker", 0};
const char kOnPs[] = "/job:ps/task:0", kOnWorker[] = "/job:worker/task:0";
const op::AttrList kQueued = {{"component_types", std::vector<DType>{DType::kFloat}}};

void ExpectHas(const Status& status, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos) << "no '" << part << "' in " << status.ToString();
  }
}

Status RunFor(session::Session& session, const std::vector<std::string>& fetches, int64_t limit_ms,
              const std::vector<session::Feed>& feeds = {}) {
  session::RunOptions options;
  options.timeout_in_ms = limit_ms;
  return session.Run(feeds, fetches, {}, options).status();
}

/// The error of a step that waits until its deadline. A short limit may end before its parts run, which are compiled
/// first: the limit grows until the error has all parts of the text.
Status LateError(session::Session& session, const std::vector<std::string>& fetches,
                 const std::vector<std::string>& parts) {
  const auto lacks = [](const Status& status, const std::string& part) {
    return status.message().find(part) == std::string::npos;
  };
  Status late;
  for (int64_t limit_ms = 100; limit_ms < 60000; limit_ms *= 2) {
    late = RunFor(session, fetches, limit_ms);
    if (std::ranges::none_of(parts, [&](const std::string& part) { return lacks(late, part); })) break;
  }
  return late;
}

template <class Cluster>
class FarErrors : public ::testing::Test {
 protected:
  Cluster cluster_{std::vector<TaskName>{kWorker, kPs}};
};
struct Names {
  template <class Cluster>
  static std::string GetName(int i) {
    return i == 0 ? "InOneProcess" : "OverSockets";
  }
};
using Clusters = ::testing::Types<testing::LocalCluster, testing::WiredCluster>;
TYPED_TEST_SUITE(FarErrors, Clusters, Names);

TYPED_TEST(FarErrors, F318_ADeadlineNamesTheOpThatWaitsInAnotherTaskAndItsDevice) {
  const auto graph = testing::MakeGraph({{"q", "FIFOQueueV2", {}, kQueued, kOnPs},
                                         {"got", "QueueDequeueV2", {"q"}, kQueued, kOnPs},
                                         {"y", "Neg", {"got"}, testing::kFloat, kOnWorker}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = this->cluster_.Open(*graph);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const std::string in_ps = "in /job:ps/replica:0/task:0: running: 'got' on CPU:0";
  const std::vector<std::string> in_both = {"Timed out waiting for notification", in_ps,
                                            "in /job:worker/replica:0/task:0: "};
  const Status late = LateError(**session, {"y:0"}, in_both);
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  ExpectHas(late, in_both);
  // Alone in its task.
  const Status alone = LateError(**session, {"got:0"}, {in_ps});
  EXPECT_EQ(alone.code(), Code::kDeadlineExceeded);
  ExpectHas(alone, {in_ps});
}

TYPED_TEST(FarErrors, F321_ErrorsOfAnotherTaskHaveTheLineOfTheModel) {
  Graph graph;
  const AsDefault in(graph);
  Output x, bad, y;
  {
    const DeviceScope ps(kOnPs);
    x = Placeholder(DType::kInt32, {}, "x");
    bad = Gather(Constant({1.0, 2.0}), x, 0, "bad");
  }
  const int line = __LINE__ - 2;
  {
    const DeviceScope worker(kOnWorker);
    y = Negative(bad);
  }
  ClusterSession prepared = *this->cluster_.Prepare();
  Session session(graph, InProcess(graph, std::move(prepared.options), std::move(prepared.runtime)));
  for (int i = 0; i < 2; ++i) {
    const Status status = session.Run(y, {{x, 7}}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_EQ(status.node(), "bad") << status.ToString();
    EXPECT_TRUE(status.where().ends_with("far_errors_test.cc:" + std::to_string(line))) << status.where();
    ExpectHas(status, {"From /job:ps/replica:0/task:0:\n"});
  }
}

TEST(FarMemory, F316_MemoryThatRunsOutInAnotherTaskIsToldWithItsHolders) {
  config::Config config;
  config.plugins.isa = testing::TestIsa();
  config.device["CPU:0"].memory_limit_mb = 16;
  plugin::LoadOptions load = session::LoadOptionsFrom(config);
  load.job = kPs.job;
  const auto runtime = session::Runtime::Load(load);
  ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
  testing::LocalCluster cluster({kWorker});
  const auto ps = LocalWorker::Make({kPs, *runtime, cluster.workers()});
  ASSERT_TRUE(ps.ok()) << ps.status().ToString();
  cluster.workers()->Add(*ps);
  const op::AttrList filled = {{"T", DType::kFloat}, {"index_type", DType::kInt32}};
  const auto on_ps = [](NodeLine node) {
    node.device = kOnPs;
    return node;
  };
  const auto graph = testing::MakeGraph(
      {on_ps({"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({1 << 20})}}}),
       on_ps(testing::Placeholder("dims", PartialShape::Of({1}), DType::kInt32)),
       on_ps(testing::Const("one", Tensor::Scalar<float>(1))),
       on_ps({"made", "Fill", {"dims", "one"}, filled}),
       on_ps({"init", "Assign", {"v", "made"}, testing::kFloat}),
       on_ps({"more", "Fill", {"dims", "one"}, filled}),
       on_ps({"other", "Neg", {"more"}, testing::kFloat}),
       on_ps({"square", "Square", {"more"}, testing::kFloat}),
       on_ps({"sum", "AddV2", {"square", "more"}, testing::kFloat}),
       {"y", "Neg", {"sum"}, testing::kFloat, kOnWorker}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = cluster.Open(*graph);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const auto dims = [](int32_t elements) {
    return std::vector<session::Feed>{{"dims:0", Tensor::Vector<int32_t>({elements})}};
  };
  const std::vector<std::string> init = {"init"};
  ASSERT_TRUE((*session)->Run(dims(1 << 20), {}, init).ok());
  EXPECT_TRUE(RunFor(**session, {"other:0"}, 60000, dims(100)).ok());
  const Status full = RunFor(**session, {"y:0"}, 60000, dims(3 << 19));
  EXPECT_EQ(full.code(), Code::kResourceExhausted) << full.ToString();
  ExpectHas(full, {"From /job:ps/replica:0/task:0:\n", "OOM when allocating", "The step held",
                   "6291456 bytes  more (Fill) float [1572864]",
                   "4194304 bytes  variable v float [1048576]  on /job:ps/replica:0/task:0/device:CPU:0"});
  EXPECT_EQ(full.message().find("on /job:worker"), std::string::npos) << full.ToString();
  ASSERT_TRUE(RunFor(**session, {"y:0"}, 60000, dims(100)).ok());
}

}  // namespace
}  // namespace weir::cluster::far_errors
