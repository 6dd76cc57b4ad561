// Environments of launchers and the cluster that they mean.
#include "core/cluster/launch.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/cluster/nodelist.h"

namespace weir::cluster {
namespace {

struct Row {
  const char* name;
  Environment environment;
  const char* roles;
  const char* wanted;  // Launch::ToString, "none", or the error
};

const Environment kSlurm = {{"SLURM_PROCID", "3"},   {"SLURM_STEP_NUM_TASKS", "4"},      {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "2"},   {"SLURM_STEP_NODELIST", "n[01-02],m"}, {"SLURM_STEP_ID", "0"},
                            {"SLURM_JOB_ID", "100"}, {"SLURM_STEP_TASKS_PER_NODE", "2,1(x2)"}};

Environment With(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {"nothing", {{"PATH", "/bin"}}, "worker=*", "none"},
      {"TF_CONFIG",
       {{"TF_CONFIG", R"({"cluster":{"ps":["p:1"],"worker":["w:1","x:1"]},"task":{"type":"worker","index":1}})"}},
       "worker=*",
       "TF_CONFIG: /job:worker/replica:0/task:1 of ps: p:1; worker: w:1, x:1"},
      {"TF_CONFIG with Unix sockets",
       {{"TF_CONFIG", R"({"cluster":{"ps":["unix:/run/p"],"worker":["w:1"]},"task":{"type":"ps","index":0}})"}},
       "worker=*",
       "TF_CONFIG: /job:ps/replica:0/task:0 of ps: unix:/run/p; worker: w:1"},
      {"the evaluator is outside",
       {{"TF_CONFIG",
         R"({"cluster":{"chief":["c:1"],"evaluator":["e:1"]},"task":{"type":"evaluator","index":"0"}})"}},
       "worker=*",
       "TF_CONFIG: /job:evaluator/replica:0/task:0 of chief: c:1"},
      {"sparse",
       {{"TF_CONFIG",
         R"({"sparseCluster":{"worker":{"3":"w:1"},"ps":["p:1"]},"task":{"type":"worker","index":3}})"}},
       "worker=*",
       "TF_CONFIG: /job:worker/replica:0/task:3 of ps: p:1; worker: 3: w:1"},
      {"a task that the cluster lacks",
       {{"TF_CONFIG", R"({"cluster":{"ps":["p:1"]},"task":{"type":"ps","index":7}})"}},
       "worker=*",
       "TF_CONFIG: Task 7 was not defined in job \"ps\""},
      {"no JSON", {{"TF_CONFIG", "{"}}, "worker=*", "TF_CONFIG is no JSON object"},
      {"addresses that are no texts", {{"TF_CONFIG", R"({"cluster":{"ps":[1]}})"}}, "worker=*", "wanted \"host:port\""},
      {"Slurm", kSlurm, "ps=1,worker=*",
       "Slurm: /job:worker/replica:0/task:2 of ps: n01:61540; worker: n01:61541, n02:61540, m:61540"},
      {"a shell in an allocation",
       {{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_NODELIST", "n"}},
       "worker=*",
       "none"},
      {"Slurm with cyclic tasks", With(kSlurm, {{"SLURM_NODEID", "0"}}), "worker=*", "--distribution=block"},
      {"Slurm with too few counts", With(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "4"}}), "worker=*", "counts for 1"},
      {"Slurm with another number of tasks", With(kSlurm, {{"SLURM_STEP_NUM_TASKS", "9"}}), "worker=*",
       "gives 4 tasks, SLURM_STEP_NUM_TASKS says 9"},
      {"roles that do not fit", kSlurm, "ps=9", "the roles have 9 tasks, the job has 4"},
      {"Open MPI on one machine",
       {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       "ps=1,worker=*",
       "Open MPI: /job:worker/replica:0/task:0, rank 1 of 2, registry at 127.0.0.1:"},
      {"Open MPI within a step of Slurm",
       With(kSlurm, {{"OMPI_COMM_WORLD_RANK", "5"},
                     {"OMPI_COMM_WORLD_SIZE", "6"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                     {"OMPI_MCA_orte_hnp_uri", "99.0;tcp://10.1.0.7,192.168.0.7:4"}}),
       "worker=*",
       "Open MPI: /job:worker/replica:0/task:5, rank 5 of 6, registry at 10.1.0.7:"},
      {"PMI", {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, "worker=*", "PMI: /job:worker/replica:0/task:0, rank 0 of 1"},
      {"torchrun",
       {{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}},
       "ps=1,worker=2",
       "torchrun: /job:worker/replica:0/task:1, rank 2 of 3, registry at h:29500"},
      {"torchrun over IPv6",
       {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "5"}},
       "worker=*",
       "registry at [::1]:5"},
      {"a rank beyond the size",
       {{"RANK", "3"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "5"}},
       "worker=*",
       "RANK=3 and WORLD_SIZE=3 contradict each other"},
      {"a rank that is no number",
       {{"RANK", "x"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "5"}},
       "worker=*",
       "RANK='x' is no number"},
      {"Kubernetes Job", {{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "train-1"}}, "ps=1,worker=1",
       "Kubernetes: /job:worker/replica:0/task:0 of ps: train-0.train:2222; worker: train-1.train:2222"},
      {"Kubernetes JobSet",
       {{"JOB_COMPLETION_INDEX", "0"}, {"HOSTNAME", "set-w-0-0"}, {"JOBSET_NAME", "set"}},
       "worker=2",
       "Kubernetes: /job:worker/replica:0/task:0 of worker: set-w-0-0.set:2222, set-w-0-1.set:2222"},
      {"Kubernetes without a size", {{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "train-1"}}, "worker=*",
       "give every role a count"},
  };
  return rows;
}

TEST(Launch, EnvironmentsOfLaunchers) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name);
    const Result<Roles> roles = Roles::Parse(row.roles);
    ASSERT_TRUE(roles.ok()) << roles.status().ToString();
    const auto launch = FindLaunch(row.environment, *roles);
    std::string text = launch.status().message();
    if (launch.ok()) text = *launch ? (*launch)->ToString() : "none";
    EXPECT_NE(text.find(row.wanted), std::string::npos) << text;
  }
}

TEST(Launch, RolesGiveTasksInOrder) {
  const auto roles = Roles::Parse("ps=2,chief=1,worker=*");
  ASSERT_TRUE(roles.ok());
  EXPECT_FALSE(roles->size());
  const auto tasks = roles->TasksOf(5);
  ASSERT_TRUE(tasks.ok());
  EXPECT_EQ((*tasks)[1], (TaskName{"ps", 1}));
  EXPECT_EQ((*tasks)[2], (TaskName{"chief", 0}));
  EXPECT_EQ((*tasks)[4], (TaskName{"worker", 1}));
  EXPECT_FALSE(roles->TasksOf(2).ok());
  for (const char* const text : {"", "ps", "ps=0", "ps=x", "ps=1,ps=1", "a=*,b=*", "=1", "ps=99999999999"}) {
    EXPECT_EQ(Roles::Parse(text).status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(Launch, ListsOfSlurm) {
  struct List {
    const char* text;
    const char* wanted;  // names joined by blanks, or null for an error
  };
  for (const List& list : std::vector<List>{{"n[001-003,7],m2", "n001 n002 n003 n7 m2"},
                                            {"a", "a"},
                                            {"a[1-2]b[3,4]", "a1b3 a1b4 a2b3 a2b4"},
                                            {"a[9-11]", "a9 a10 a11"},
                                            {"a[08-10]", "a08 a09 a10"},
                                            {"", nullptr},
                                            {"a,", nullptr},
                                            {"a[", nullptr},
                                            {"a[1", nullptr},
                                            {"a[1-]", nullptr},
                                            {"a[2-1]", nullptr},
                                            {"a]", nullptr},
                                            {"a[0-999999999]", nullptr},
                                            {"a[0-60000]b[0-60000]", nullptr}}) {
    SCOPED_TRACE(list.text);
    const auto names = ExpandNodeList(list.text);
    ASSERT_EQ(names.ok(), list.wanted != nullptr) << names.status().ToString();
    if (!names.ok()) continue;
    std::string joined;
    for (const std::string& name : *names) joined += (joined.empty() ? "" : " ") + name;
    EXPECT_EQ(joined, list.wanted);
  }
  EXPECT_EQ(*ExpandCounts("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  for (const char* const text : {"", "x", "2(x0)", "2(x3", "0", "2(3)", "1,,1", "1(x999999999)"}) {
    EXPECT_FALSE(ExpandCounts(text).ok()) << text;
  }
}

}  // namespace
}  // namespace weir::cluster
