// Rows of the fault table about processes: a parameter server and a worker of `weir serve`, with the client here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/client/extra.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/fault_table.h"
#include "tests/e2e/served.h"
#include "tests/support/own_loopback.h"

namespace weir {
namespace {

using testing::AddressOf;
using testing::AllFaults;
using testing::Ended;
using testing::FaultRow;
using testing::Get;
using testing::Limited;
using testing::NumberAfter;
using testing::ScratchFolder;
using testing::Serve;
using testing::ServerProcess;
using testing::TargetOf;
using testing::Weir;

using Flags = std::vector<std::string>;

const Flags kSoonLost = {"--set", "cluster.peer_timeout_ms=" + std::to_string(testing::kSoonMs)};
const Flags kNeverLost = {"--set", "cluster.peer_timeout_ms=120000"};
const std::vector<Code> kGone = {Code::kUnavailable, Code::kAborted};

/// Waits until `done` is true; false after the limit.
template <class Done>
bool InTime(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + testing::kFaultLimit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// A counter and a queue that nobody fills on the ps; the worker, where sessions are opened, reads both.
class Processes {
 public:
  explicit Processes(Flags flags = kNeverLost, const ServerProcess::Variables& variables = {}, Flags before = {})
      : flags_(std::move(flags)) {
    StartPs(testing::OwnLoopback() + ":0", variables, before);
    StartWorker();
    const AsDefault here(graph_);
    Output got;
    {
      const DeviceScope ps("/job:ps/task:0");
      counter_ = Variable(0.0, {.name = "counter"});
      init_ = counter_.initializer();
      add_ = counter_.AssignAdd(1.0);
      const FIFOQueue queue(1, {DType::kFloat}, {.shapes = {PartialShape::Of({})}, .shared_name = "q"});
      got = queue.Dequeue()[0];
    }
    const DeviceScope worker("/job:worker/task:0");
    step_ = Negative(add_);
    waits_ = Negative(got);
  }

  void StartPs(const std::string& listen, const ServerProcess::Variables& variables = {}, const Flags& before = {}) {
    Flags all = {"--cluster", "ps=127.0.0.1:0", "--listen", listen, "--status", "127.0.0.1:0"};
    all.insert(all.end(), flags_.begin(), flags_.end());
    ps_ = Serve(all, variables, before);
    // The page is told first or last, as the server likes.
    address_ = AddressOf(TargetOf(*ps_));
    page_ = AddressOf(ps_->ReadPast("status page at "));
  }
  void StartWorker() {
    Flags all = {"--cluster", "ps=" + address_ + ",worker=127.0.0.1:0", "--job", "worker", "--task", "0"};
    all.insert(all.end(), flags_.begin(), flags_.end());
    worker_ = Serve(all);
    target_ = TargetOf(*worker_);
  }
  Session& session() {
    if (!session_) session_ = std::make_unique<Session>(target_, graph_, Limited());
    return *session_;
  }
  void Begin(FaultRow& row) {
    const auto init = [&] {
      const Status status = session().Run(init_).status();
      if (!status.ok()) session_.reset();
      return status.ok();
    };
    if (!InTime(init)) row.Hung("the initialization");
    Good(row);
  }
  Status Step() {
    ++asked_;
    const Status status = session().Run(step_).status();
    succeeded_ += status.ok() ? 1 : 0;
    return status;
  }
  void Good(FaultRow& row) {
    Status last;
    const auto good = [&] {
      last = Step();
      if (!last.ok()) session_.reset();
      return last.ok();
    };
    if (!InTime(good)) row.Hung("a good step: " + last.ToString());
  }
  std::future<Status> BeginWaiting() {
    Session& session = this->session();
    auto step = std::async(std::launch::async, [this, &session] { return session.Run(waits_).status(); });
    EXPECT_TRUE(InTime([&] { return Get(page_, "/debug/steps").find(" 0 parts running") == std::string::npos; }));
    return step;
  }
  void End(FaultRow& row) {
    Good(row);
    const auto read = session().Run(counter_);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    row.Ran(asked_, succeeded_, static_cast<uint64_t>(*read->scalar<float>()));
    session_.reset();
    const auto idle = [&] {
      const std::string none = ": 0 sessions, 0 parts of graphs, 0 steps, 0 parts running";
      return Get(page_, "/debug/steps").find(none) != std::string::npos;
    };
    EXPECT_TRUE(InTime(idle)) << Get(page_, "/debug/steps");
  }
  /// The counter has begun anew.
  void Forget() { asked_ = succeeded_ = 0; }
  void ForgetSession() { session_.reset(); }

  Graph& graph() { return graph_; }
  ServerProcess& ps() { return *ps_; }
  ServerProcess& worker() { return *worker_; }
  const std::string& address() const { return address_; }
  const std::string& target() const { return target_; }
  const std::string& page() const { return page_; }

 private:
  const Flags flags_;
  std::unique_ptr<ServerProcess> ps_, worker_;
  std::string address_, page_, target_;
  Graph graph_;
  Variable counter_;
  Operation init_;
  Output add_, step_, waits_;
  std::unique_ptr<Session> session_;
  uint64_t asked_ = 0, succeeded_ = 0;
};

Status EndOf(FaultRow& row, std::future<Status>& step) {
  if (step.wait_for(testing::kFaultLimit + std::chrono::seconds(60)) != std::future_status::ready) row.Hung("a step");
  return step.get();
}

TEST(FaultMatrix, T1_T3_AKilledPsIsNamedAndReplaced) {
  for (const bool waits : {true, false}) {
    if (!AllFaults() && !waits) continue;
    FaultRow row("T1", std::string("ps ") + (waits ? "mid-step" : "idle") + ", SIGKILL, restarted on its port (T3)");
    Processes all;
    all.Begin(row);
    std::future<Status> step;
    if (waits) step = all.BeginWaiting();
    all.ps().Signal(SIGKILL);
    EXPECT_EQ(all.ps().Wait(), 128 + SIGKILL);
    row.Told(waits ? EndOf(row, step) : all.Step(), kGone, {"/job:ps/"});
    all.StartPs(all.address());
    all.ForgetSession();
    all.Forget();
    all.Begin(row);
    all.End(row);
  }
}

TEST(FaultMatrix, T1_AKilledWorkerLeavesThePsWell) {
  for (const bool waits : {true, false}) {
    if (!AllFaults() && !waits) continue;
    FaultRow row("T1", std::string("worker ") + (waits ? "mid-step" : "idle") + ", SIGKILL");
    Processes all(kSoonLost);
    all.Begin(row);
    std::future<Status> step;
    if (waits) step = all.BeginWaiting();
    all.worker().Signal(SIGKILL);
    EXPECT_EQ(all.worker().Wait(), 128 + SIGKILL);
    row.Told(waits ? EndOf(row, step) : all.Step(), {Code::kUnavailable}, {AddressOf(all.target())});
    all.StartWorker();
    all.ForgetSession();
    all.End(row);
  }
}

TEST(FaultMatrix, T2_AShortStopIsSurvivedAndALongOneIsTold) {
  for (const bool is_long : {true, false}) {
    FaultRow row("T2", std::string("ps mid-step, SIGSTOP, ") + (is_long ? "longer than peer_timeout" : "shorter"));
    Processes all(is_long ? kSoonLost : kNeverLost);
    all.Begin(row);
    auto step = is_long ? all.BeginWaiting() : std::future<Status>();
    all.ps().Signal(SIGSTOP);
    if (!is_long) {
      step = std::async(std::launch::async, [&] { return all.Step(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // part of the row, nothing waits for it
      all.ps().Signal(SIGCONT);
      row.Unnoticed(EndOf(row, step));
    } else {
      row.Told(EndOf(row, step), {Code::kUnavailable}, {"/job:ps/", "counts as lost", "waiting: "});
      all.ps().Signal(SIGCONT);
    }
    all.End(row);
  }
}

/// A network namespace with a link from this one, and a ps in it.
class NamespaceOfPs {
 public:
  NamespaceOfPs()
      : name_("weir" + std::to_string(getpid())), net_("10." + std::to_string(100 + getpid() % 100) + ".7.") {
    const std::string up = name_ + "a", down = name_ + "b";
    for (const std::string& command :
         {"netns add " + name_, "link add " + up + " type veth peer name " + down,
          "link set " + down + " netns " + name_, "addr add " + net_ + "1/24 dev " + up, "link set " + up + " up",
          "-n " + name_ + " addr add " + net_ + "2/24 dev " + down, "-n " + name_ + " link set " + down + " up",
          "-n " + name_ + " link set lo up"}) {
      if (why_.empty() && !Ip(command)) why_ = "ip " + command + " fails";
    }
  }
  ~NamespaceOfPs() {
    Ip("link del " + name_ + "a");
    Ip("netns del " + name_);
  }
  NamespaceOfPs(const NamespaceOfPs&) = delete;
  NamespaceOfPs& operator=(const NamespaceOfPs&) = delete;

  /// Why there is none; empty if there is.
  const std::string& why() const { return why_; }
  std::string host() const { return net_ + "2"; }
  Flags before() const { return {"/usr/sbin/ip", "netns", "exec", name_}; }
  bool SetLink(bool up) const { return Ip("link set " + name_ + "a " + (up ? "up" : "down")); }
  /// Packets to the ps are lost without a word; those from it arrive.
  bool SetBlackhole(bool on) const { return Ip(std::string("route ") + (on ? "add" : "del") + " blackhole " + host()); }

 private:
  static bool Ip(const std::string& command) {
    return std::system(("/usr/sbin/ip " + command + " >/dev/null 2>&1").c_str()) == 0;
  }
  const std::string name_, net_;
  std::string why_;
};

TEST(FaultMatrix, T4_PartitionsBetweenNetworkNamespaces) {
  for (const bool link : {true, false}) {
    FaultRow row("T4", std::string("ps idle, in a namespace, ") + (link ? "its link is down" : "a route of no return"));
    const NamespaceOfPs space;
    if (!space.why().empty()) {
      row.Skip(space.why());
      continue;
    }
    const ScratchFolder folder;
    const std::string token = folder.Write("token", "secret\n");
    chmod(token.c_str(), 0600);
    Flags flags = kSoonLost;
    flags.insert(flags.end(), {"--token-file", token});
    Flags of_ps = {"--cluster", "ps=127.0.0.1:0", "--listen", space.host() + ":0"};
    of_ps.insert(of_ps.end(), flags.begin(), flags.end());
    const auto ps = Serve(of_ps, {}, space.before());
    Flags of_worker = {"--cluster", "ps=" + AddressOf(TargetOf(*ps)) + ",worker=127.0.0.1:0", "--job", "worker",
                       "--task", "0"};
    of_worker.insert(of_worker.end(), flags.begin(), flags.end());
    const auto worker = Serve(of_worker);
    Graph graph;
    const testing::Counter counter(graph);
    ConfigProto config = Limited();
    config.cluster.token_file = token;
    const std::string target = TargetOf(*worker);
    auto session = std::make_unique<Session>(target, graph, config);
    ASSERT_TRUE(session->Run(counter.init).ok()) << session->status().ToString();
    ASSERT_TRUE(session->Run(counter.add).ok());
    ASSERT_TRUE(link ? space.SetLink(false) : space.SetBlackhole(true));
    row.Told(session->Run(counter.add).status(), {Code::kUnavailable}, {"/job:ps/"});
    ASSERT_TRUE(link ? space.SetLink(true) : space.SetBlackhole(false));
    const auto well = [&] {
      session = std::make_unique<Session>(target, graph, config);
      return session->Run(counter.add).ok();
    };
    if (!InTime(well)) row.Hung("a step after the partition");
  }
}

TEST(FaultMatrix, T8_ADrainEndsWhatRunsAndTheServer) {
  FaultRow row("T8", "ps mid-step, SIGTERM, a step that outlasts the drain");
  Flags flags = kNeverLost;
  flags.insert(flags.end(), {"--set", "cluster.drain_limit_ms=300"});
  Processes all(flags);
  all.Begin(row);
  auto step = all.BeginWaiting();
  all.ps().Signal(SIGTERM);
  row.Told(EndOf(row, step), kGone, {"/job:ps/"});
  EXPECT_EQ(all.ps().Wait(), 143) << all.ps().ReadAll();
  all.StartPs(all.address());
  all.ForgetSession();
  all.Forget();
  all.Begin(row);
  all.End(row);
}

constexpr char kMemoryGroups[] = "/sys/fs/cgroup/memory";

TEST(FaultMatrix, T9_MemoryThatRunsOutInItsGroup) {
  FaultRow row("T9", "ps mid-step, out of the memory of its cgroup");
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path group = fs::path(kMemoryGroups) / ("weir-faults-" + std::to_string(getpid()));
  if (!AllFaults()) return row.Skip("in the whole table only");
  if (WEIR_SANITIZER_KIND != 0) return row.Skip("sanitizers reserve memory");
  if (!fs::create_directory(group, error)) return row.Skip("no memory cgroup can be made: " + error.message());
  {
    Processes all;
    all.Begin(row);
    std::ofstream(group / "cgroup.procs") << all.ps().pid();
    // The limit of a group counts what its processes take from now on.
    std::ofstream(group / "memory.limit_in_bytes") << (64 << 20);
    Output filled;
    {
      const AsDefault here(all.graph());
      const DeviceScope ps("/job:ps/task:0");
      filled = ReduceSum(Fill({1 << 27}, 1.0f));
    }
    row.Told(all.session().Run(filled).status(), kGone, {"/job:ps/"});
    EXPECT_EQ(all.ps().Wait(), 128 + SIGKILL);
    all.StartPs(all.address());
    all.ForgetSession();
    all.Forget();
    all.Begin(row);
    all.End(row);
  }
  fs::remove(group, error);
}

TEST(FaultMatrix, T10_FewDescriptorsAreSurvived) {
  FaultRow row("T10", "ps with ulimit -n 64, 300 idle connections");
  Processes all(kNeverLost, {}, {"/bin/sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\""});
  all.Begin(row);
  {
    std::vector<int> idle;
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = inet_addr(testing::OwnLoopback().c_str());
    at.sin_port = htons(static_cast<uint16_t>(std::stoi(all.address().substr(all.address().rfind(':') + 1))));
    for (int i = 0; i < 300; ++i) {
      idle.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      static_cast<void>(connect(idle.back(), reinterpret_cast<sockaddr*>(&at), sizeof(at)));
    }
    row.Unnoticed(all.Step());
    for (const int file : idle) close(file);
  }
  all.ForgetSession();
  all.End(row);
}

TEST(FaultMatrix, T11_PluginsThatFailAreReportedAndTheRestServes) {
  struct Case {
    const char* name;
    int mutant;
  };
  for (const Case& one : std::vector<Case>{{"fails", 17}, {"hangs", 65}, {"throws", 64}, {"crashes in a probe", 8}}) {
    if (!AllFaults() && one.mutant == 65) continue;
    FaultRow row("T11", std::string("ps start-up, a plugin that ") + one.name);
    const std::string path =
        std::string(WEIR_PLUGINS) + ":" + WEIR_MUTANTS + "/broken_" + std::to_string(one.mutant);
    Flags flags = kNeverLost;
    // Only the one that hangs uses up its limit; probes may take long on a busy machine.
    const std::string limit_ms = one.mutant == 65 ? "3000" : "60000";
    flags.insert(flags.end(), {"--set", "plugins.time_limit_ms=" + limit_ms});
    if (one.mutant == 8) flags.insert(flags.end(), {"--set", "plugins.probe=true"});
    Processes all(flags, {{"WEIR_PLUGIN_PATH", path}});
    all.Begin(row);
    row.Unnoticed(all.Step());
    all.End(row);
  }
}

TEST(FaultMatrix, T12_StrangersAreRefusedWithTheReason) {
  const ScratchFolder folder;
  const std::string right = folder.Write("right", "secret\n"), wrong = folder.Write("wrong", "guess\n");
  for (const std::string& file : {right, wrong}) chmod(file.c_str(), 0600);
  struct Case {
    const char* name;
    Flags ps, worker;
    const char* job;  // of the task at the address
    Code code;
    const char* text;
  };
  const std::vector<Case> cases = {
      {"another token", {"--token-file", right}, {"--token-file", wrong}, "ps", Code::kUnauthenticated, "token"},
      {"no token", {"--token-file", right}, {}, "ps", Code::kUnauthenticated, "asks for a token"},
      {"another cluster", {"--name", "a"}, {"--name", "b"}, "ps", Code::kPermissionDenied, "belongs to the cluster"},
      {"another task", {}, {}, "other", Code::kFailedPrecondition, "it is /job:other/task:0, wanted /job:ps/task:0"},
  };
  for (const Case& one : cases) {
    FaultRow row("T12", std::string("start-up, ") + one.name);
    Flags of_ps = {"--cluster", std::string(one.job) + "=127.0.0.1:0"};
    of_ps.insert(of_ps.end(), one.ps.begin(), one.ps.end());
    const auto ps = Serve(of_ps);
    Flags of_worker = {"--cluster", "ps=" + AddressOf(TargetOf(*ps)) + ",worker=127.0.0.1:0", "--job", "worker",
                       "--task", "0"};
    of_worker.insert(of_worker.end(), one.worker.begin(), one.worker.end());
    const auto worker = Serve(of_worker);
    const std::string target = TargetOf(*worker);
    Graph graph;
    const testing::Counter counter(graph);
    ConfigProto config = Limited();
    if (!one.worker.empty() && one.worker[0] == "--token-file") config.cluster.token_file = one.worker[1];
    if (!one.worker.empty() && one.worker[0] == "--name") config.cluster.name = one.worker[1];
    Session session(target, graph, config);
    row.Told(session.Run(counter.init).status(), {one.code}, {"/job:ps/", one.text});
  }
}

TEST(FaultMatrix, T13_OnlyDifferencesOfMonotonicClocksMatter) {
  FaultRow row("T13", "ps in a time namespace, monotonic clock 11 days ahead");
  ServerProcess can({"/usr/bin/unshare", "-T", "--monotonic", "1000000", "/bin/true"});
  const std::string why = can.ReadAll();
  if (can.Wait() != 0) return row.Skip("no time namespace: " + why);
  Processes all(kNeverLost, {}, {"/usr/bin/unshare", "-T", "--monotonic", "1000000", "--boottime", "1000000"});
  all.Begin(row);
  row.Unnoticed(all.Step());
  all.End(row);
}

TEST(FaultMatrix, T14_AddressesThatCannotBeUsedAreNamed) {
  {
    FaultRow row("T14", "start-up, the port is taken");
    const auto first = Serve({});
    const std::string address = AddressOf(TargetOf(*first));
    const Ended second = Weir({"serve", "--listen", address});
    EXPECT_EQ(second.status, 1);
    row.Told(Status(Code::kFailedPrecondition, second.err), {Code::kFailedPrecondition},
             {"FAILED_PRECONDITION", address, "Address already in use"});
  }
  FaultRow row("T14", "start-up, an address of another machine");
  const Ended ended = Weir({"serve", "--listen", "192.0.2.1:2222", "--insecure-listen"});
  EXPECT_EQ(ended.status, 1);
  row.Told(Status(Code::kFailedPrecondition, ended.err), {Code::kFailedPrecondition},
           {"192.0.2.1:2222", "Cannot assign requested address"});
}

TEST(FaultMatrix, T14_ANameThatIsKnownLaterIsWaitedFor) {
  FaultRow row("T14", "start-up, the name of the ps is known late");
  ServerProcess can({"/usr/bin/unshare", "-m", "/bin/true"});
  const std::string why = can.ReadAll();
  if (can.Wait() != 0) return row.Skip("no mount namespace: " + why);
  const ScratchFolder folder;
  const std::string hosts = folder.Write("hosts", "127.0.0.1 localhost\n");
  const auto ps = Serve({"--cluster", "ps=127.0.0.1:0"});
  const std::string address = AddressOf(TargetOf(*ps));
  const std::string late = "late.weir.test" + address.substr(address.rfind(':'));
  // A worker with names of its own, and no name service.
  const Flags before = {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
                        "mount --bind " + hosts + " /etc/hosts; mount --bind /dev/null /etc/resolv.conf; exec \"$0\" "
                        "\"$@\""};
  const std::string spec = "ps=" + late + ",worker=127.0.0.1:0";
  const auto worker = Serve({"--cluster", spec, "--job", "worker", "--task", "0"}, {}, before);
  const std::string target = TargetOf(*worker);
  Graph graph;
  const testing::Counter counter(graph);
  {
    Session session(target, graph, {.operation_timeout_in_ms = 1000});
    row.Told(session.Run(counter.init).status(), {Code::kDeadlineExceeded}, {});
  }
  auto step = std::async(std::launch::async, [&] {
    Session session(target, graph, Limited());
    return session.Run(counter.init).status();
  });
  std::ofstream(hosts, std::ios::app) << "127.0.0.1 late.weir.test\n";
  row.Unnoticed(EndOf(row, step));
}

TEST(FaultMatrix, T15_OfTwoWorkersOfOneIndexTheLaterIsTheOne) {
  FaultRow row("T15", "two workers of one index, each a chief");
  Processes all;
  all.Begin(row);
  // Another process that claims the same task.
  auto other = Serve({"--cluster", "ps=" + all.address() + ",worker=127.0.0.1:0", "--job", "worker", "--task", "0"});
  const std::string target = TargetOf(*other);
  Graph graph;
  const AsDefault here(graph);
  Output five;
  {
    const DeviceScope ps("/job:ps/task:0");
    five = Constant(2.0) + 3.0;
  }
  Session second(target, graph, Limited());
  const auto works = second.Run(five);
  ASSERT_TRUE(works.ok()) << works.status().ToString();
  Status first;
  EXPECT_TRUE(InTime([&] { return !(first = all.Step()).ok(); }));
  row.Told(first, kGone, {"was restarted"});
  EXPECT_TRUE(second.Run(five).ok());
}

TEST(FaultMatrix, T16_TasksStartInAnyOrder) {
  FaultRow row("T16", "start-up, the worker before the ps");
  std::string address;
  {
    const auto early = Serve({"--cluster", "ps=" + testing::OwnLoopback() + ":0"});
    address = AddressOf(TargetOf(*early));
    early->Signal(SIGTERM);
    EXPECT_EQ(early->Wait(), 143);
  }
  const auto worker = Serve({"--cluster", "ps=" + address + ",worker=127.0.0.1:0", "--job", "worker", "--task", "0"});
  const std::string target = TargetOf(*worker);
  Graph graph;
  const testing::Counter counter(graph);
  auto step = std::async(std::launch::async, [&] {
    Session session(target, graph, Limited());
    return session.Run(counter.init).status();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // part of the row, nothing waits for it
  const auto ps = Serve({"--cluster", "ps=127.0.0.1:0", "--listen", address});
  row.Unnoticed(EndOf(row, step));
}

}  // namespace
}  // namespace weir
