// Servers of a cluster at Unix sockets, as processes of the command `weir`.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/cli_process.h"
#include "tests/e2e/served.h"

namespace weir {
namespace {

using testing::Limited;
using testing::ScratchFolder;
using testing::Serve;
using testing::TargetOf;

TEST(Serve, F245_F247_TasksOfAClusterMeetAtUnixSockets) {
  const ScratchFolder folder;
  const std::string ps = "unix:" + folder.path() + "/ps", worker = "unix:" + folder.path() + "/worker";
  const std::string cluster = R"("cluster": {"ps": [")" + ps + R"("], "worker": [")" + worker + R"("]})";
  const auto ps_server = Serve({"--cluster", "ps=" + ps + ",worker=" + worker, "--job", "ps", "--task", "0"});
  ASSERT_EQ(TargetOf(*ps_server), "weir://" + ps);
  const auto worker_server = Serve({}, {{"TF_CONFIG", "{" + cluster + R"(, "task": {"type": "worker", "index": 0}})"}});
  const std::string target = TargetOf(*worker_server);
  ASSERT_EQ(target, "weir://" + worker);
  Graph graph;
  const AsDefault here(graph);
  const Output a = Placeholder(DType::kFloat, {}, "a");
  Output far;
  {
    const DeviceScope on("/job:ps/task:0");
    far = Square(a, "far");
  }
  Output sum;
  {
    const DeviceScope on("/job:worker/task:0");
    sum = Add(far, Constant(1.0f), "sum");
  }
  Session session(target, graph, Limited());
  session::RunReport report;
  const auto result = session.Run(sum, {{a, 3.0f}}, {}, &report);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(*result->scalar<float>(), 10);
  EXPECT_TRUE(session.Close().ok());
  const Status relative = Session("weir://unix:ps", graph, Limited()).Run(sum, {{a, 3.0f}}).status();
  EXPECT_EQ(relative.code(), Code::kInvalidArgument) << relative.ToString();
  EXPECT_NE(relative.message().find("wanted an absolute path"), std::string::npos) << relative.ToString();
}

}  // namespace
}  // namespace weir
