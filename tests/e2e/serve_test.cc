// Servers as processes of the command `weir`, with clients in this one.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "core/session/reports.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/served.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/own_loopback.h"

namespace weir {
namespace {

using testing::AddressOf;
using testing::Counter;
using testing::Ended;
using testing::Get;
using testing::Limited;
using testing::NumberAfter;
using testing::ScratchFolder;
using testing::Serve;
using testing::ServerProcess;
using testing::TargetOf;
using testing::Weir;

TEST(Serve, F246_F249_AClientOfAnotherProcessRunsSteps) {
  const auto server = Serve({"--listen", "127.0.0.1:0"});
  const std::string target = TargetOf(*server);
  ASSERT_TRUE(target.starts_with("weir://127.0.0.1:")) << target;
  Graph graph;
  const AsDefault here(graph);
  const Output a = Placeholder(DType::kFloat, {}, "a"), sum = Add(a, Constant(3.0));
  Session session(target, graph, Limited());
  const auto result = session.Run(sum, {{a, 2.0}});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(*result->scalar<float>(), 5);
  const Output wrong = Reshape(a, {2});
  const Status status = session.Run(wrong, {{a, 2.0}}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
  EXPECT_NE(status.where().find("serve_test.cc"), std::string::npos) << status.where();
  EXPECT_TRUE(session.Close().ok());
}

/// A file with a secret that only its owner reads.
std::string TokenIn(const ScratchFolder& folder) {
  const std::string token = folder.Write("token", "secret\n");
  EXPECT_EQ(chmod(token.c_str(), 0600), 0);
  return token;
}

TEST(Serve, ItsDevicesAreListedExplainedAndRunByCommandsOfAnotherProcess) {
  const ScratchFolder folder;
  const std::string token = TokenIn(folder);
  const auto server = Serve({"--listen", "127.0.0.1:0", "--token-file", token});
  const std::string address = AddressOf(TargetOf(*server));
  const std::string set = "cluster.remote_devices=[\"" + address + "\"]";
  const std::string patient = "cluster.remote_limit_ms=60000";
  const Ended devices =
      Weir({"devices", "--json", "--set", set, "--set", patient, "--set", "cluster.token_file=" + token});
  ASSERT_EQ(devices.status, 0) << devices.err;
  EXPECT_EQ(devices.json()["devices"].back()["name"], "/job:remote/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(devices.json()["devices"].back()["address"], address);
  const nlohmann::json remote = devices.json()["remote"];
  ASSERT_EQ(remote.size(), 1u) << devices.out;
  EXPECT_EQ(remote[0]["address"], address);
  EXPECT_TRUE(remote[0]["link"]["measured"]);
  EXPECT_GT(remote[0]["link"]["latency_us"], 0);
  const Ended refused = Weir({"devices", "--set", set, "--set", patient});
  EXPECT_EQ(refused.status, 0) << refused.err;
  EXPECT_NE(refused.out.find("asks for a token"), std::string::npos) << refused.out;
  const Ended missed = Weir({"devices", "--set", "cluster.required_devices=[\"" + address + "\"]", "--set", patient});
  EXPECT_NE(missed.status, 0);
  EXPECT_NE(missed.err.find("cluster.required_devices"), std::string::npos) << missed.err;

  const std::string model = folder.Write(
      "model.pbtxt",
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
      "shape {} } } }\n"
      "node { name: 'far' op: 'Neg' input: 'x' device: '/job:remote/task:0' attr { key: 'T' value { type: DT_FLOAT } } "
      "}\n"
      "node { name: 'y' op: 'Square' input: 'far' attr { key: 'T' value { type: DT_FLOAT } } }\n");
  const std::vector<std::string> settings = {"--set", set, "--set", patient, "--set", "cluster.token_file=" + token};
  std::vector<std::string> words = {"explain", model, "--feed", "x=3", "--fetch", "y", "--json"};
  words.insert(words.end(), settings.begin(), settings.end());
  const Ended explained = Weir(words);
  ASSERT_EQ(explained.status, 0) << explained.err;
  const nlohmann::json explanation = explained.json();
  for (const nlohmann::json& node : explanation["nodes"]) {
    EXPECT_EQ(node["device"], node["name"] == "far" ? "/job:remote/replica:0/task:0/device:CPU:0"
                                                    : "/job:localhost/replica:0/task:0/device:CPU:0");
  }
  words[0] = "run";
  const Ended ran = Weir(words);
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST(Serve, F249_F331_ItsDevicesAreThoseOfSessionsOfAnotherProcess) {
  const ScratchFolder folder;
  const std::string token = TokenIn(folder);
  auto server = Serve({"--listen", testing::OwnLoopback() + ":0", "--token-file", token});
  const std::string address = AddressOf(TargetOf(*server));
  ConfigProto config = Limited();
  config.cluster.remote_devices = {address};
  config.cluster.remote_limit_ms = 60000;
  config.cluster.token_file = token;
  Graph graph;
  const AsDefault here(graph);
  Variable counter;
  Output add;
  {
    const DeviceScope on("/job:remote/task:0");
    counter = Variable(0.0, {.name = "counter"});
    add = counter.AssignAdd(1.0);
  }
  const Output twice = Multiply(add, Constant(2.0));
  {
    Session session(graph, config);
    ASSERT_TRUE(session.Run(counter.initializer()).ok());
    const auto result = session.Run(twice);
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(*result->scalar<float>(), 2);
    server->Signal(SIGKILL);
    EXPECT_EQ(server->Wait(), 128 + SIGKILL);
    const Status lost = session.Run(twice).status();
    EXPECT_EQ(lost.code(), Code::kUnavailable) << lost.ToString();
    EXPECT_NE(lost.message().find("begin a new session"), std::string::npos) << lost.ToString();
    EXPECT_TRUE(session.Run(Add(Constant(1.0), Constant(2.0))).ok()) << "what is here goes on";
  }
  {
    Session session(graph, config);  // without it; soft placement keeps the job of a request
    EXPECT_EQ(session.Run(counter.initializer()).status().code(), Code::kInvalidArgument);
    EXPECT_TRUE(session.Run(Add(Constant(1.0), Constant(3.0))).ok());
  }
  server = Serve({"--listen", address, "--token-file", token});
  ASSERT_EQ(AddressOf(TargetOf(*server)), address);
  Session session(graph, config);
  EXPECT_EQ(session.Run(twice).status().code(), Code::kFailedPrecondition);  // a new life without values
  ASSERT_TRUE(session.Run(counter.initializer()).ok());
  EXPECT_TRUE(session.Run(twice).ok());
}

TEST(Serve, F253_F257_VariablesOutliveTheClientsThatShareThem) {
  const auto ps = Serve({"--cluster", "ps=127.0.0.1:0"});
  const std::string target = TargetOf(*ps);
  Graph first, second;
  const Counter mine(first), yours(second);
  {
    Session session(target, first, Limited());
    ASSERT_TRUE(session.Run(mine.init).ok());
    ASSERT_TRUE(session.Run(mine.add).ok());
  }
  Session session(target, second, Limited());
  const auto read = session.Run(yours.value);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read->scalar<float>(), 1);
}

TEST(Serve, F257_AKilledWorkerLeavesTheVariables_F331_ARestartedPsIsNoticed) {
  auto ps = Serve({"--cluster", "ps=127.0.0.1:0", "--listen", testing::OwnLoopback() + ":0"});
  const std::string of_ps = AddressOf(TargetOf(*ps));
  const std::string spec = "ps=" + of_ps + ",worker=127.0.0.1:0";
  const auto start_worker = [&] { return Serve({"--cluster", spec, "--job", "worker", "--task", "0"}); };
  Graph graph;
  const Counter counter(graph);
  auto worker = start_worker();
  {
    Session session(TargetOf(*worker), graph, Limited());
    ASSERT_TRUE(session.Run(counter.init).ok());
    ASSERT_TRUE(session.Run(counter.add).ok());
    worker->Signal(SIGKILL);
    EXPECT_EQ(worker->Wait(), 128 + SIGKILL);
    EXPECT_EQ(session.Run(counter.add).status().code(), Code::kUnavailable);
  }
  worker = start_worker();
  Session session(TargetOf(*worker), graph, Limited());
  const auto read = session.Run(counter.value);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read->scalar<float>(), 1);

  ps->Signal(SIGKILL);
  EXPECT_EQ(ps->Wait(), 128 + SIGKILL);
  const Status lost = session.Run(counter.value).status();
  EXPECT_EQ(lost.code(), Code::kUnavailable) << lost.ToString();
  ps = Serve({"--cluster", "ps=127.0.0.1:0", "--listen", of_ps});
  EXPECT_EQ(AddressOf(TargetOf(*ps)), of_ps);
  const Status restarted = session.Run(counter.value).status();
  EXPECT_TRUE(restarted.code() == Code::kAborted || restarted.code() == Code::kUnavailable) << restarted.ToString();
  Session again("weir://" + of_ps, graph, Limited());
  EXPECT_EQ(again.Run(counter.value).status().code(), Code::kFailedPrecondition);  // a new life without values
  ASSERT_TRUE(again.Run(counter.init).ok());
  EXPECT_TRUE(again.Run(counter.add).ok());
}

TEST(Serve, F318_ADeadlineNamesTheOpThatWaitsInAnotherProcess) {
  const auto ps = Serve({"--cluster", "ps=127.0.0.1:0"});
  const auto worker = Serve({"--cluster", "ps=" + AddressOf(TargetOf(*ps)) + ",worker=127.0.0.1:0", "--job", "worker",
                             "--task", "0"});
  Graph graph;
  const AsDefault here(graph);
  Output taken;
  {
    const DeviceScope on_ps("/job:ps/task:0");
    const FIFOQueue queue(1, {DType::kFloat}, {.shapes = {PartialShape::Of({})}, .shared_name = "q"});
    taken = queue.Dequeue("take")[0];
  }
  const Output y = Negative(taken);
  const Output one = Constant(1.0);
  Session session(TargetOf(*worker), graph, Limited());
  ASSERT_TRUE(session.Run(one).ok());
  const std::string waits = "in /job:ps/replica:0/task:0: running: 'take' on CPU:0";
  session::RunOptions options;
  Status late;
  // A short limit may end before the op runs.
  for (options.timeout_in_ms = 1000; options.timeout_in_ms < 60000; options.timeout_in_ms *= 2) {
    late = session.Run(y, {}, options, nullptr).status();
    if (late.message().find(waits) != std::string::npos) break;
  }
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded) << late.ToString();
  EXPECT_NE(late.message().find(waits), std::string::npos) << late.ToString();
}

TEST(Serve, F330_TermDrainsAndThePortIsFreeAtOnce) {
  std::string address = testing::OwnLoopback() + ":0";
  for (int i = 0; i < 3; ++i) {
    const auto server = Serve({"--listen", address});
    address = AddressOf(TargetOf(*server));
    server->Signal(SIGTERM);
    EXPECT_EQ(server->Wait(), 143) << server->ReadAll();
  }
}

TEST(Serve, F330_ASecondSignalEndsAServerWhoseStepDoesNotEnd) {
  const auto server = Serve({"--set", "cluster.drain_limit_ms=600000", "--status", "127.0.0.1:0"});
  const std::string target = TargetOf(*server);
  const std::string page = AddressOf(server->ReadPast("status page at "));
  Graph graph;
  const AsDefault here(graph);
  const FIFOQueue queue(1, {DType::kFloat}, {.shapes = {PartialShape::Of({})}, .shared_name = "q"});
  const Output taken = queue.Dequeue()[0];
  Session session(target, graph, Limited());
  Status ended;
  std::thread waits([&] { ended = session.Run(taken).status(); });
  while (Get(page, "/debug/steps").find(", 1 parts running") == std::string::npos) std::this_thread::yield();
  server->Signal(SIGTERM);
  server->ReadPast("drains for up to");
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(), 143);
  waits.join();
  EXPECT_FALSE(ended.ok());
}

TEST(Serve, F330_AServerAloneEndsWithItsLastSession) {
  const auto server = Serve({"--exit-when-done"});
  Graph graph;
  const AsDefault here(graph);
  const Output y = Constant(1.0) + 1.0;
  Session session(TargetOf(*server), graph, Limited());
  ASSERT_TRUE(session.Run(y).ok());
  ASSERT_TRUE(session.Close().ok());
  EXPECT_EQ(server->Wait(), 0) << server->ReadAll();
}

TEST(Serve, F246_APortThatIsTakenIsNamed) {
  const auto server = Serve({});
  const std::string address = AddressOf(TargetOf(*server));
  const Ended second = Weir({"serve", "--listen", address});
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.err.find(address), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("FAILED_PRECONDITION"), std::string::npos) << second.err;
}

TEST(Serve, F247_UnknownJobsAndTasksEndWithStatus1) {
  const Ended job = Weir({"serve", "--cluster", "worker=127.0.0.1:0", "--job", "local"});
  EXPECT_EQ(job.status, 1);
  EXPECT_NE(job.err.find("Job \"local\" was not defined in cluster"), std::string::npos) << job.err;
  const Ended flag = Weir({"serve", "--lisen", "x"});
  EXPECT_EQ(flag.status, 2);
}

TEST(Serve, AWrongTokenIsRefusedAndTheRightOneServes) {
  const ScratchFolder folder;
  const std::string right = folder.Write("right", "secret\n"), wrong = folder.Write("wrong", "guess\n");
  for (const std::string& file : {right, wrong}) chmod(file.c_str(), 0600);
  const auto server = Serve({"--token-file", right});
  const std::string target = TargetOf(*server);
  Graph graph;
  const AsDefault here(graph);
  const Output y = Constant(1.0) + 1.0;
  ConfigProto config = Limited();
  config.cluster.token_file = wrong;
  const Status refused = Session(target, graph, config).Run(y).status();
  EXPECT_TRUE(refused.code() == Code::kUnauthenticated || refused.code() == Code::kPermissionDenied)
      << refused.ToString();
  config.cluster.token_file = right;
  Session session(target, graph, config);
  const Status served = session.Run(y).status();
  EXPECT_TRUE(served.ok()) << served.ToString();
  chmod(right.c_str(), 0644);
  const Ended open = Weir({"serve", "--token-file", right});
  EXPECT_EQ(open.status, 1);
  EXPECT_NE(open.err.find("0600"), std::string::npos) << open.err;
}

TEST(Serve, LaunchConventionsAreReadAndPrinted) {
  const std::string config = R"({"cluster":{"worker":["127.0.0.1:0"]},"task":{"type":"worker","index":0}})";
  const auto server = Serve({}, {{"TF_CONFIG", config}});
  EXPECT_NE(server->ReadPast("launched by ").find("TF_CONFIG"), std::string::npos);
  EXPECT_EQ(server->ReadPast("serving ").substr(0, 28), "/job:worker/replica:0/task:0");
}

/// Variables as torchrun sets them.
ServerProcess::Variables RankVariables(int rank, int size, const std::string& port) {
  return {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}, {"MASTER_ADDR", testing::OwnLoopback()},
          {"MASTER_PORT", port}};
}

TEST(Serve, RanksWithoutAddressesMeetAtTheRegistry) {
  std::vector<std::unique_ptr<ServerProcess>> ranks;
  for (const int rank : {2, 1, 0}) {
    ranks.push_back(Serve({"--roles", "ps=1,worker=*"}, RankVariables(rank, 3, "61998")));
  }
  EXPECT_NE(ranks[0]->ReadPast("launched by ").find("torchrun: /job:worker/replica:0/task:1, rank 2 of 3"),
            std::string::npos);
  EXPECT_EQ(ranks[2]->ReadPast("serving ").substr(0, 24), "/job:ps/replica:0/task:0");
  const std::string target = TargetOf(*ranks[0]);
  Graph graph;
  const Counter counter(graph);
  Session session(target, graph, Limited());
  ASSERT_TRUE(session.Run(counter.init).ok()) << session.status().ToString();
  const auto added = session.Run(counter.add);
  ASSERT_TRUE(added.ok()) << added.status().ToString();
  EXPECT_EQ(*added->scalar<float>(), 1);
}

TEST(Serve, ExitCodesTellSchedulersWhatToDo) {
  const ScratchFolder folder;
  // 1: a fault that stays. 2: wrong use.
  EXPECT_EQ(Weir({"serve", "--config", folder / "missing.toml"}).status, 1);
  EXPECT_EQ(Weir({"serve", "--listen"}).status, 2);
  EXPECT_EQ(Weir({"serve", "--nonsense"}).status, 2);
  EXPECT_EQ(Weir({"launch", "--jobs", "ps=x"}).status, 1);
  // 75: a fault that a restart may cure, as a registry that does not answer yet.
  ServerProcess early({WEIR_COMMAND, "serve", "--set", "cluster.creation_limit_ms=200"}, RankVariables(1, 2, "1"));
  const std::string text = early.ReadAll();
  EXPECT_EQ(early.Wait(), 75) << text;
  EXPECT_NE(text.find(testing::OwnLoopback() + ":1"), std::string::npos) << text;
  // 128 + n: drained after a signal. 0: the job is done.
  for (const int number : {SIGINT, SIGTERM}) {
    const auto server = Serve({});
    TargetOf(*server);
    server->Signal(number);
    EXPECT_EQ(server->Wait(), 128 + number) << server->ReadAll();
  }
  const auto done = Serve({"--exit-when-done"});
  Graph graph;
  const AsDefault here(graph);
  const Output one = Constant(1.0);
  Session session(TargetOf(*done), graph, Limited());
  ASSERT_TRUE(session.Run(one).ok());
  ASSERT_TRUE(session.Close().ok());
  EXPECT_EQ(done->Wait(), 0) << done->ReadAll();
  // launch: that of the first task that failed, and of a signal to itself.
  EXPECT_EQ(Weir({"launch", "--jobs", "worker=1", "--", "/bin/sh", "-c", "exit 75"}).status, 75);
  EXPECT_EQ(Weir({"launch", "--jobs", "worker=1", "--", "/bin/true"}).status, 0);
  ServerProcess launch({WEIR_COMMAND, "launch", "--jobs", "worker=1"});
  launch.ReadPast("serving ");
  launch.Signal(SIGINT);
  EXPECT_EQ(launch.Wait(), 130) << launch.ReadAll();
}

TEST(Serve, TheStatusPageHasHealthAndMetrics) {
  const auto server = Serve({"--status", "127.0.0.1:0"});
  const std::string page = AddressOf(server->ReadPast("status page at "));
  EXPECT_NE(Get(page, "/healthz").find("200 OK"), std::string::npos);
  EXPECT_NE(Get(page, "/readyz").find("200 OK"), std::string::npos);
  EXPECT_NE(Get(page, "/metrics").find("weir_sessions{job=\"localhost\",task=\"0\"} 0"), std::string::npos);
  EXPECT_NE(Get(page, "/debug/steps").find("0 steps"), std::string::npos);
  EXPECT_NE(Get(page, "/").find("device:CPU:0"), std::string::npos);
  EXPECT_NE(Get(page, "/none").find("404"), std::string::npos);
  const Ended beyond = Weir({"serve", "--status", "192.0.2.1:80"});
  EXPECT_EQ(beyond.status, 1);
}

TEST(Serve, ReloadSaysWhatChanges) {
  const ScratchFolder folder;
  const std::string file = folder.Write("weir.toml", "[cluster]\ndrain_limit_ms = 1000\n");
  const auto server = Serve({"--config", file});
  TargetOf(*server);
  folder.Write("weir.toml", "[cluster]\ndrain_limit_ms = 2000\n");
  server->Signal(SIGHUP);
  EXPECT_EQ(server->ReadPast("cluster.drain_limit_ms = "), "2000 holds from now on");
  folder.Write("weir.toml", "[cluster]\ndrain_limit_ms = true\n");
  server->Signal(SIGHUP);
  EXPECT_NE(server->ReadPast("stays as it was").size(), 0u);
}

TEST(Serve, F249_TheTransportTakesItsOptions) {
  const ScratchFolder folder;
  const auto file = [&](const std::string& options) {
    return folder.Write("weir.toml", "[plugin.remote]\n" + options);
  };
  const auto server = Serve({"--config", file("poll_us = 200\nshared_memory = false\nbody_crc = false\n"), "--listen",
                             "127.0.0.1:0", "--job", "worker", "--task", "0"});
  const std::string address = AddressOf(TargetOf(*server));
  const Ended asked = Weir({"doctor", "--cluster", "worker=" + address, "--limit", "60000"});
  EXPECT_EQ(asked.status, 0) << asked.out << asked.err;
  const Ended bad = Weir({"serve", "--config", file("poll_us = -1\n"), "--listen", "127.0.0.1:0"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.err.find("poll_us"), std::string::npos) << bad.err;
}

TEST(Launch, F201_F254_F255_F286_TheTrainerOfTheGuideEndsByItself) {
  for (const char* sync : {"--sync=false", "--sync=true"}) {
    ServerProcess launch({WEIR_COMMAND, "launch", "--jobs", "ps=2,worker=2", "--", WEIR_TRAINER,
                          "--ps_hosts={hosts:ps}", "--worker_hosts={hosts:worker}", "--job_name={job}",
                          "--task_index={task}", "--steps=200", sync});
    const std::string text = launch.ReadAll();
    EXPECT_EQ(launch.Wait(), 0) << text;
    for (const char* task : {"[worker 0] worker 0: ", "[worker 1] worker 1: ", "[ps 0] /job:ps/replica:0/task:0",
                             "[ps 1] /job:ps/replica:0/task:1"}) {
      EXPECT_NE(text.find(task), std::string::npos) << task << " in\n" << text;
    }
    // One update for each step of a worker, or one for two steps, of whichever worker.
    int64_t own[2], global = -1;
    for (const int i : {0, 1}) {
      const std::string worker = "worker " + std::to_string(i) + ": ";
      own[i] = NumberAfter(text, worker);
      global = std::max(global, NumberAfter(text, "global step ", text.find(worker)));
    }
    const bool in_step = std::string(sync) == "--sync=true";
    EXPECT_EQ(global * (in_step ? 2 : 1), own[0] + own[1]) << text;
    EXPECT_GE(global, in_step ? 100 : 200) << text;
  }
}

/// The processes of one cluster of two servers and two workers, at an address that no other process of this machine
/// listens at.
class TrainerProcesses {
 public:
  TrainerProcesses() {
    const int number = 4 * getpid() + next_++ % 4;
    host_ = fmt::format("127.{}.{}.{}", 64 + (number >> 16) % 64, (number >> 8) % 256, number % 256);
  }
  std::unique_ptr<ServerProcess> Start(const std::string& job, int task) const {
    return std::make_unique<ServerProcess>(std::vector<std::string>{
        WEIR_TRAINER, fmt::format("--ps_hosts={0}:2222,{0}:2223", host_),
        fmt::format("--worker_hosts={0}:2224,{0}:2225", host_), "--job_name=" + job,
        "--task_index=" + std::to_string(task), "--steps=200"});
  }

 private:
  inline static int next_ = 0;
  std::string host_;
};

TEST(Launch, F255_AWorkerProcessThatIsLateJoinsAndContinues) {
  const TrainerProcesses trainers;
  const auto ps0 = trainers.Start("ps", 0), ps1 = trainers.Start("ps", 1), chief = trainers.Start("worker", 0);
  // The chief has trained alone; it waits for the other before it ends the job.
  EXPECT_EQ(std::atoll(chief->ReadPast("worker 0: ").c_str()), 200);
  const auto late = trainers.Start("worker", 1);
  const std::string line = late->ReadPast("worker 1: ");
  EXPECT_EQ(line.substr(0, line.find(", loss")), "1 steps, global step 201") << line;
  for (const auto& process : {&late, &chief, &ps0, &ps1}) EXPECT_EQ((*process)->Wait(), 0) << (*process)->ReadAll();
}

TEST(Launch, F255_WorkerProcessesWaitForTheChief) {
  const TrainerProcesses trainers;
  const auto ps0 = trainers.Start("ps", 0), ps1 = trainers.Start("ps", 1), early = trainers.Start("worker", 1);
  early->ReadPast("listens at ");
  const auto chief = trainers.Start("worker", 0);
  const std::string first = chief->ReadPast("worker 0: "), second = early->ReadPast("worker 1: ");
  // Nothing was trained before the chief initialised: all steps count.
  const int64_t all = std::atoll(first.c_str()) + std::atoll(second.c_str());
  EXPECT_EQ(std::max(NumberAfter(first, "global step "), NumberAfter(second, "global step ")), all);
  for (const auto& process : {&early, &chief, &ps0, &ps1}) EXPECT_EQ((*process)->Wait(), 0) << (*process)->ReadAll();
}

TEST(Launch, F338_OneTraceOfStepsInSeveralProcesses) {
  ServerProcess launch({WEIR_COMMAND, "launch", "--jobs", "ps=1,worker=2"});
  std::map<std::string, std::string> targets;
  for (int i = 0; i < 3; ++i) {
    const std::string line = launch.ReadPast("serving /job:");
    targets[line.substr(0, line.find(" at "))] = line.substr(line.find(" at ") + 4);
  }
  Graph graph;
  const AsDefault here(graph);
  const Output x = Placeholder(DType::kFloat, {2}, "x");
  std::vector<Operand> parts;
  for (const char* device : {"/job:worker/task:0", "/job:worker/task:1"}) {
    const DeviceScope on(device);
    parts.emplace_back(Square(x));
  }
  Output sum;
  {
    const DeviceScope on("/job:ps/task:0");
    sum = AddN(parts);
  }
  ASSERT_TRUE(targets.contains("worker/replica:0/task:0"));
  Session session(targets["worker/replica:0/task:0"], graph, Limited());
  std::vector<trace::StepTrace> steps;
  for (int i = 0; i < 3; ++i) {
    session::RunOptions options;
    options.trace = true;
    session::RunReport report;
    const Status ran = session.Run(sum, {{x, {1.0f, 2.0f}}}, options, &report).status();
    ASSERT_TRUE(ran.ok()) << ran.ToString();
    steps.push_back(std::move(report.trace));
  }
  const ScratchFolder folder;
  const Ended summary =
      Weir({"profile", "summary", folder.Write("trace.json", trace::ChromeTrace(steps)), "--by", "device"});
  EXPECT_EQ(summary.status, 0) << summary.err;
  for (const char* task : {"worker/replica:0/task:0", "worker/replica:0/task:1", "ps/replica:0/task:0"}) {
    const std::string device = "/job:" + std::string(task) + "/device:CPU:0";
    EXPECT_NE(summary.out.find(device), std::string::npos) << device << " in\n" << summary.out;
  }
  launch.Signal(SIGTERM);
  EXPECT_EQ(launch.Wait(), 143) << launch.ReadAll();
}

TEST(Launch, TheFirstFailureEndsAll) {
  ServerProcess launch({WEIR_COMMAND, "launch", "--jobs", "ps=1,worker=2", "--", "/bin/sh", "-c",
                        "case {job}{task} in worker1) exit 7;; *) exec sleep 1000;; esac"});
  const std::string text = launch.ReadAll();
  EXPECT_EQ(launch.Wait(), 7) << text;
  EXPECT_NE(text.find("/job:worker/replica:0/task:1 ended with status 7"), std::string::npos) << text;
}

TEST(Launch, PrintsWhatUsersOfLaunchersWrite) {
  for (const char* launcher : {"slurm", "mpirun", "torchrun", "kubernetes"}) {
    const Ended ended = Weir({"launch", "--jobs", "ps=1,worker=2", "--print", launcher});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_NE(ended.out.find("ps=1,worker=2"), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find("HOST"), std::string::npos) << "ranks find each other by rank 0: " << ended.out;
  }
  EXPECT_EQ(Weir({"launch", "--print", "cron"}).status, 2);
}

TEST(Doctor, F248_NamesTheTaskThatDoesNotAnswer) {
  ServerProcess launch({WEIR_COMMAND, "launch", "--jobs", "ps=1,worker=1"});
  std::map<std::string, std::string> addresses;
  for (int i = 0; i < 2; ++i) {
    const std::string line = launch.ReadPast("serving /job:");
    addresses[line.substr(0, line.find('/'))] = AddressOf(line.substr(line.find(" at ") + 4));
  }
  const std::string spec = "ps=" + addresses["ps"] + ",worker=" + addresses["worker"];
  const Ended well = Weir({"doctor", "--cluster", spec, "--limit", "60000"});
  EXPECT_EQ(well.status, 0) << well.out << well.err;
  EXPECT_NE(well.out.find("/job:ps/replica:0/task:0 -> /job:worker/replica:0/task:0"), std::string::npos) << well.out;
  const Ended swapped = Weir({"doctor", "--cluster", "ps=" + addresses["worker"], "--limit", "60000"});
  EXPECT_EQ(swapped.status, 1) << swapped.out;
  // A link that loses large messages alone, as one with a wrong MTU.
  testing::FaultProxy narrow(addresses["ps"]);
  testing::Faults slow;
  slow.bytes_per_second = 4096;
  narrow.SetAll(slow);
  const Ended small = Weir({"doctor", "--cluster", "ps=" + narrow.address(), "--limit", "4000"});
  EXPECT_EQ(small.status, 1) << small.out;
  EXPECT_NE(small.out.find("small messages cross, one of 64 KiB does not: check the MTU"), std::string::npos)
      << small.out;
  const ScratchFolder folder;
  const std::string secret = folder.Write("token", "secret\n");
  chmod(secret.c_str(), 0600);
  const Ended token = Weir({"doctor", "--cluster", spec, "--limit", "60000", "--token-file", secret});
  EXPECT_EQ(token.status, 1) << token.out;
  EXPECT_NE(token.out.find("wrong token"), std::string::npos) << token.out;
  launch.Signal(SIGTERM);
  EXPECT_EQ(launch.Wait(), 143) << launch.ReadAll();
  const Ended gone = Weir({"doctor", "--cluster", spec});
  EXPECT_EQ(gone.status, 1) << gone.out;
  EXPECT_NE(gone.out.find("refused or unreachable"), std::string::npos) << gone.out;
}

}  // namespace
}  // namespace weir
