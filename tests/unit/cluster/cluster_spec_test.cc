#include "core/cluster/cluster_spec.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace weir::cluster {
namespace {

using Jobs = std::map<std::string, std::vector<std::string>>;

ClusterSpec PsAndWorkers() {
  Result<ClusterSpec> spec = ClusterSpec::Make(Jobs{{"ps", {"p0:1", "p1:1"}}, {"worker", {"w0:1", "w1:1", "w2:1"}}});
  EXPECT_TRUE(spec.ok()) << spec.status().ToString();
  return *spec;
}

void ExpectError(const Status& status, Code code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_NE(status.message().find(text), std::string::npos) << status.ToString();
}

TEST(ClusterSpec, F245_JobsTasksAndAddresses) {
  const ClusterSpec spec = PsAndWorkers();
  EXPECT_EQ(*spec.NumTasks("worker"), 3);
  EXPECT_EQ(*spec.TaskAddress("ps", 1), "p1:1");
  EXPECT_EQ(*spec.TaskIndices("ps"), (std::vector<int>{0, 1}));
  EXPECT_EQ(*spec.JobTasks("ps"), (std::vector<std::string>{"p0:1", "p1:1"}));
  EXPECT_EQ(spec.tasks().front().ToString(), "/job:ps/replica:0/task:0");
  EXPECT_EQ(spec.ToString(), "ps: p0:1, p1:1; worker: w0:1, w1:1, w2:1");
}

TEST(ClusterSpec, F245_ErrorsHaveTensorFlowsTexts) {
  const ClusterSpec spec = PsAndWorkers();
  ExpectError(spec.NumTasks("x").status(), Code::kInvalidArgument, "No such job in cluster: 'x'");
  ExpectError(spec.TaskAddress("ps", 5).status(), Code::kInvalidArgument, "No task with index 5 in job 'ps'");
}

TEST(ClusterSpec, F245_ASparseJobKeepsItsIndices) {
  const auto spec = ClusterSpec::Make(std::map<std::string, ClusterSpec::Tasks>{{"worker", {{1, "a:1"}, {3, "b:1"}}}});
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(*spec->NumTasks("worker"), 2);
  EXPECT_EQ(*spec->JobTasks("worker"), (std::vector<std::string>{"", "a:1", "", "b:1"}));
  EXPECT_EQ(spec->ToString(), "worker: 1: a:1, 3: b:1");
  ExpectError(spec->TaskAddress("worker", 0).status(), Code::kInvalidArgument, "No task with index 0 in job 'worker'");
}

TEST(ClusterSpec, F245_ClusterDefAndFlagGiveTheSameCluster) {
  const ClusterSpec spec = PsAndWorkers();
  const Result<std::string> bytes = spec.ToClusterDef();
  ASSERT_TRUE(bytes.ok());
  const auto again = ClusterSpec::Parse(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(*again, spec);
  const auto text = ClusterSpec::Parse("job { name: 'ps' tasks { key: 0 value: 'p0:1' } }"
                                       " job { name: 'worker' tasks { key: 2 value: 'w2:1' } }");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(*text->TaskAddress("worker", 2), "w2:1");
  const auto flag = ClusterSpec::ParseFlag("ps=p0:1;p1:1,worker=w0:1;w1:1;w2:1");
  ASSERT_TRUE(flag.ok()) << flag.status().ToString();
  EXPECT_EQ(*flag, spec);
}

TEST(ClusterSpec, F245_FaultsAreNamed) {
  ExpectError(ClusterSpec::Make(Jobs{{"9x", {"a:1"}}}).status(), Code::kInvalidArgument, "'9x' is no name of a job");
  ExpectError(ClusterSpec::Make(Jobs{{"a", {"h"}}}).status(), Code::kInvalidArgument, "task 0 of the job 'a': 'h'");
  ExpectError(ClusterSpec::Make(Jobs{{"a", {"h:1"}}, {"b", {"h:1"}}}).status(), Code::kInvalidArgument,
              "/job:a/replica:0/task:0 and /job:b/replica:0/task:0 have the same address h:1");
  EXPECT_TRUE(ClusterSpec::Make(Jobs{{"a", {"h:0", "h:0"}}}).ok());
  ExpectError(ClusterSpec::Parse("job { name: 'a' } job { name: 'a' }").status(), Code::kInvalidArgument,
              "two jobs 'a'");
  ExpectError(ClusterSpec::ParseFlag("ps").status(), Code::kInvalidArgument, "'ps' describes no job");
  ExpectError(ClusterSpec::ParseFlag("").status(), Code::kInvalidArgument, "names no job");
}

TEST(ClusterSpec, F245_Addresses) {
  struct Row {
    const char* text;
    const char* host;  // null: malformed
    int port;
  };
  for (const Row& row : std::vector<Row>{{"h:1", "h", 1},
                                         {"127.0.0.1:65535", "127.0.0.1", 65535},
                                         {"[::1]:22", "::1", 22},
                                         {"h:0", "h", 0},
                                         {"h:65536", nullptr, 0},
                                         {"h:-1", nullptr, 0},
                                         {"h:", nullptr, 0},
                                         {":1", nullptr, 0},
                                         {"::1:22", nullptr, 0},
                                         {"h", nullptr, 0},
                                         {"h:1x", nullptr, 0},
                                         {"h i:1", nullptr, 0},
                                         {"grpc://h:1", nullptr, 0}}) {
    SCOPED_TRACE(row.text);
    const auto address = ParseAddress(row.text);
    ASSERT_EQ(address.ok(), row.host != nullptr) << address.status().ToString();
    if (!address.ok()) continue;
    EXPECT_EQ(address->host, row.host);
    EXPECT_EQ(address->port, row.port);
    EXPECT_EQ(address->ToString(), row.text);
  }
}

TEST(ClusterSpec, F245_TasksMayHaveUnixSockets) {
  const auto spec = ClusterSpec::ParseFlag("ps=unix:/run/p0;h:1,worker=unix:/run/w0:0");
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(*spec->TaskAddress("ps", 0), "unix:/run/p0");
  EXPECT_EQ(spec->ToString(), "ps: unix:/run/p0, h:1; worker: unix:/run/w0:0");
  const Result<std::string> bytes = spec->ToClusterDef();
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*ClusterSpec::Parse(*bytes), *spec);
  ExpectError(ClusterSpec::Make(Jobs{{"a", {"unix:/x:0"}}, {"b", {"unix:/x:0"}}}).status(), Code::kInvalidArgument,
              "/job:a/replica:0/task:0 and /job:b/replica:0/task:0 have the same address unix:/x:0");
  EXPECT_TRUE(CheckTaskAddress("unix:/" + std::string(106, 'p')).ok());
  for (const auto& [address, fault] :
       std::map<std::string, std::string>{{"unix:", "wanted an absolute path"},
                                          {"unix:run/p0", "wanted an absolute path"},
                                          {"unix:/" + std::string(107, 'p'), "has 108 bytes, at most 107"},
                                          {std::string("unix:/a\0b", 9), "control character"},
                                          {"unix:/a\nb", "control character"}}) {
    ExpectError(ClusterSpec::Make(Jobs{{"a", {address}}}).status(), Code::kInvalidArgument, fault);
  }
}

TEST(OwnTask, F247_AJobThatTheClusterLacks) {
  const ClusterSpec spec = PsAndWorkers();
  ExpectError(OwnTask(spec, "local", 0).status(), Code::kInternal,
              "Job \"local\" was not defined in cluster; the jobs of the cluster are 'ps', 'worker'");
  ExpectError(OwnTask(spec, "ps", 7).status(), Code::kInternal,
              "Task 7 was not defined in job \"ps\"; its tasks are 0, 1");
  ExpectError(OwnTask(spec, std::nullopt, 0).status(), Code::kInvalidArgument, "Must specify an explicit `job_name`.");
  ExpectError(OwnTask(spec, "ps", std::nullopt).status(), Code::kInvalidArgument,
              "Must specify an explicit `task_index`.");
}

TEST(OwnTask, F247_TheOnlyJobAndTaskNeedNoName) {
  const auto spec = ClusterSpec::Make(std::map<std::string, ClusterSpec::Tasks>{{"local", {{3, "h:1"}}}});
  const auto own = OwnTask(*spec, std::nullopt, std::nullopt);
  ASSERT_TRUE(own.ok()) << own.status().ToString();
  EXPECT_EQ(*own, (TaskName{"local", 3}));
}

TEST(TaskOfDevice, FullAndPartialNames) {
  EXPECT_EQ(*TaskOfDevice("/job:ps/replica:0/task:2/device:CPU:0"), (TaskName{"ps", 2}));
  EXPECT_EQ(*TaskOfDevice("/job:ps/task:2"), (TaskName{"ps", 2}));
  EXPECT_FALSE(TaskOfDevice("/device:CPU:0").ok());
  EXPECT_FALSE(TaskOfDevice("/job:ps/replica:1/task:2").ok());
}

}  // namespace
}  // namespace weir::cluster
