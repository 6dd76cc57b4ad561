// Rows of the fault table about remote devices: a process of `weir serve` behind a proxy, whose devices a session of
// this process uses.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/client/extra.h"
#include "tests/e2e/cli_process.h"
#include "tests/e2e/fault_table.h"
#include "tests/e2e/served.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/own_loopback.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using testing::AddressOf;
using testing::AllFaults;
using testing::FaultProxy;
using testing::FaultRow;
using testing::Faults;
using testing::Get;
using testing::Limited;
using testing::ScratchFolder;
using testing::Serve;
using testing::ServerProcess;
using testing::TargetOf;
using testing::Way;

using Words = std::vector<std::string>;

constexpr int kPatientMs = 120000;   // of rows in which a silent process must not count as lost
constexpr int kLargeSize = 1 << 20;  // floats
const char kThere[] = "/job:remote/task:0";
const char kNameThere[] = "/job:remote/replica:0/task:0";
/// A process of another user shares no memory with this one: all bytes cross the proxy.
const Words kOtherUser = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
const std::vector<Code> kLostCode = {Code::kUnavailable};

/// Waits until `done` is true; false after the limit.
bool Soon(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + testing::kFaultLimit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

/// There: a counter, a queue that nobody fills, and large values. Here: what reads them.
class FarProcess {
 public:
  explicit FarProcess(int peer_timeout_ms, const Words& before = {}, Words flags = {})
      : peer_timeout_("cluster.peer_timeout_ms=" + std::to_string(peer_timeout_ms)), flags_(std::move(flags)) {
    Start(testing::OwnLoopback() + ":0", before);
    proxy_ = std::make_unique<FaultProxy>(address_);
    config_ = Limited();
    config_.cluster.remote_devices = {proxy_->address()};
    config_.cluster.remote_limit_ms = 5000;
    config_.cluster.peer_timeout_ms = peer_timeout_ms;
    const AsDefault here(graph_);
    Output got, there;
    {
      const DeviceScope on(kThere);
      counter_ = Variable(0.0, {.name = "counter"});
      init_ = counter_.initializer();
      add_ = counter_.AssignAdd(1.0);
      const FIFOQueue queue(1, {DType::kFloat}, {.shapes = {PartialShape::Of({})}});
      got = queue.Dequeue()[0];
      fed_ = Placeholder(DType::kFloat, {-1});
      there = Square(fed_);  // of two negations none would be left
      large_ = Variable(Fill({kLargeSize}, 1.0f), {.name = "large"});
      init_large_ = large_.initializer();
    }
    const DeviceScope on("/job:localhost/task:0");
    step_ = Negative(add_);
    waits_ = Negative(got);
    crosses_ = Negative(there);  // the saver, too, reads and writes here
    saver_ = std::make_unique<Saver>(SaverOptions{.max_to_keep = 0});
  }

  void Start(const std::string& listen, const Words& before = {}) {
    Words all = {"--listen", listen, "--status", "127.0.0.1:0", "--set", peer_timeout_};
    all.insert(all.end(), flags_.begin(), flags_.end());
    server_ = Serve(all, {}, before);
    address_ = AddressOf(TargetOf(*server_));
    page_ = AddressOf(server_->ReadPast("status page at "));
  }
  void Kill() {
    server_->Signal(SIGKILL);
    EXPECT_EQ(server_->Wait(), 128 + SIGKILL);
  }

  /// Begins a session. Its state is new, and so are the counts of its steps.
  Status Begin() {
    End();
    session_ = std::make_unique<Session>(graph_, config_);
    Status status = session_->Run(init_).status();
    if (status.ok()) status = session_->Run(init_large_).status();
    if (!status.ok()) session_.reset();
    return status;
  }
  /// Health before the fault.
  void Begin(FaultRow& row) {
    const Status began = Begin();
    ASSERT_TRUE(began.ok()) << began.ToString();
    const Status good = Step();
    ASSERT_TRUE(good.ok()) << good.ToString();
    row_ = &row;
  }
  void End() {
    session_.reset();
    asked_ = succeeded_ = 0;
  }
  Session& session() { return *session_; }
  Status Step() {
    ++asked_;
    const Status status = session_->Run(step_).status();
    succeeded_ += status.ok() ? 1 : 0;
    return status;
  }
  /// A step that waits there.
  std::future<Status> BeginWaiting() {
    auto step = std::async(std::launch::async, [this] { return session_->Run(waits_).status(); });
    EXPECT_TRUE(Soon([&] { return Page().find(" 0 parts running") == std::string::npos; })) << Page();
    return step;
  }
  /// A value of some MiB goes there and comes back.
  Status Cross(const session::RunOptions& options = {}) {
    const Tensor value = Tensor::Vector<float>(std::vector<float>(kLargeSize, 3.0f));
    const auto got = session_->Run(crosses_, {{fed_, value}}, options, nullptr);
    if (!got.ok()) return got.status();
    for (const float each : got->tensor().as<float>()) {
      if (each != -9.0f) return Status(Code::kInternal, "a wrong value came back");
    }
    return Status();
  }
  Status Save(const std::string& folder, int step) {
    return saver_->Save(*session_, folder + "/m", {.global_step = step}).status();
  }
  Status Restore(const std::string& folder) { return saver_->RestoreLatest(*session_, folder).status(); }
  float Counter() {
    const auto read = session_->Run(counter_);
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    return read.ok() ? *read->scalar<float>() : -1;
  }
  /// What this session's steps did, where the session is well.
  void Count() { row_->Ran(asked_, succeeded_, static_cast<uint64_t>(Counter())); }
  /// Health after the fault: a new session works soon, and the process holds nothing of the old one.
  void Good() {
    Status last;
    const auto well = [&] {
      last = Begin();
      if (last.ok()) last = Step();
      return last.ok();
    };
    if (!Soon(well)) return row_->Hung("a good step: " + last.ToString());
    Count();
    EXPECT_TRUE(Soon([&] { return Page().find(": 1 sessions, ") != std::string::npos; })) << Page();
    session_.reset();
    const std::string none = ": 0 sessions, 0 parts of graphs, 0 steps, 0 parts running";
    EXPECT_TRUE(Soon([&] { return Page().find(none) != std::string::npos; })) << Page();
    EXPECT_TRUE(Soon([&] { return proxy_->counts().open <= 1; })) << "connections are left";
  }
  Status EndOf(std::future<Status>& step) {
    if (step.wait_for(testing::kFaultLimit + std::chrono::seconds(10)) != std::future_status::ready) {
      row_->Hung("a step");
    }
    return step.get();
  }
  /// What a step says of the devices that it lost: who, where, which step, and what to do.
  Words Lost() const {
    return {kNameThere,
            proxy_->address(),
            "step ",
            "their variables with them",
            "begin a new session",
            "restore the variables"};
  }

  std::string Page() const { return Get(page_, "/debug/steps"); }
  ServerProcess& server() { return *server_; }
  FaultProxy& proxy() { return *proxy_; }
  const std::string& address() const { return address_; }
  ConfigProto& config() { return config_; }
  const Operation& init() const { return init_; }
  Graph& graph() { return graph_; }

 private:
  const std::string peer_timeout_;
  const Words flags_;
  std::unique_ptr<ServerProcess> server_;
  std::string address_, page_;
  std::unique_ptr<FaultProxy> proxy_;
  ConfigProto config_;
  Graph graph_;
  Variable counter_, large_;
  Operation init_, init_large_;
  Output add_, fed_, step_, waits_, crosses_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Session> session_;
  uint64_t asked_ = 0, succeeded_ = 0;
  FaultRow* row_ = nullptr;
};

TEST(FaultMatrix, T1_T3_F331_AKilledRemoteDeviceIsNamedAndReplaced) {
  for (const bool waits : {true, false}) {
    FaultRow row(
        "T1", std::string("remote device ") + (waits ? "mid-step" : "idle") + ", SIGKILL, restarted on its port (T3)");
    FarProcess far(kPatientMs);
    far.Begin(row);
    if (::testing::Test::HasFatalFailure()) return;
    std::future<Status> step;
    if (waits) step = far.BeginWaiting();
    far.Kill();
    row.Told(waits ? far.EndOf(step) : far.Step(), kLostCode, far.Lost());
    // Without it, new sessions run what needs it not; with another process at its address, the old session stays lost.
    {
      const AsDefault here(far.graph());
      Session without(far.graph(), far.config());
      const Status sum = without.Run(Add(Constant(1.0), Constant(2.0))).status();
      EXPECT_TRUE(sum.ok()) << sum.ToString();
    }
    far.Start(far.address());
    row.Told(far.Step(), kLostCode, far.Lost());
    far.Good();
  }
}

TEST(FaultMatrix, T1_ARemoteDeviceThatIsNotThereAtTheStartIsWaitedForIfItIsRequired) {
  FaultRow row("T1", "remote device start-up, killed, then there (T16)");
  FarProcess far(kPatientMs);
  far.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  far.End();
  far.Kill();
  const Words optional = far.config().cluster.remote_devices;
  far.config().cluster.required_devices = optional;
  far.config().cluster.remote_devices.clear();
  row.Told(far.Begin(), kLostCode, {"cluster.required_devices", optional.front()});
  far.Start(far.address());
  far.Good();
}

TEST(FaultMatrix, T1_ARemoteDeviceKilledMidCheckpointLeavesTheOlderOne) {
  FaultRow row("T1", "remote device mid-checkpoint, SIGKILL");
  const ScratchFolder folder;
  FarProcess far(kPatientMs);
  far.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  const Status saved = far.Save(folder.path(), 1);
  ASSERT_TRUE(saved.ok()) << saved.ToString();
  ASSERT_TRUE(far.Step().ok());
  far.Count();
  Faults unanswered;
  unanswered.swallow = true;  // what the process has sent before it ends does not arrive later
  far.proxy().Set(Way::kToClient, unanswered);
  const uint64_t before = far.proxy().counts().to_server;
  auto save = std::async(std::launch::async, [&] { return far.Save(folder.path(), 2); });
  EXPECT_TRUE(Soon([&] { return far.proxy().counts().to_server > before; }));
  far.Kill();
  far.proxy().Heal();
  row.Told(far.EndOf(save), kLostCode, far.Lost());
  far.Start(far.address());
  ASSERT_TRUE(Soon([&] { return far.Begin().ok(); }));
  const Status restored = far.Restore(folder.path());
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_EQ(far.Counter(), 1) << "the value of the checkpoint that was committed";
  far.Good();
}

TEST(FaultMatrix, T2_AStoppedRemoteDeviceIsWaitedForOrTold) {
  for (const bool is_long : {true, false}) {
    for (const bool waits : {true, false}) {
      if (!AllFaults() && waits != is_long) continue;
      FaultRow row("T2", std::string("remote device ") + (waits ? "mid-step" : "idle") + ", SIGSTOP, " +
                             (is_long ? "longer than peer_timeout" : "shorter"));
      FarProcess far(is_long ? testing::kSoonMs : kPatientMs);
      far.Begin(row);
      if (::testing::Test::HasFatalFailure()) return;
      std::future<Status> step;
      if (waits && is_long) step = far.BeginWaiting();
      far.server().Signal(SIGSTOP);
      if (!is_long) {
        const auto begin = [&] { return std::async(std::launch::async, [&] { return far.Step(); }); };
        if (waits) step = begin();
        std::this_thread::sleep_for(milliseconds(200));  // part of the row, nothing waits for it
        far.server().Signal(SIGCONT);
        if (!waits) step = begin();
        row.Unnoticed(far.EndOf(step));
        far.Count();
      } else {
        Words parts = far.Lost();
        if (waits) parts.insert(parts.end(), {"counts as lost", "waiting: "});
        row.Told(waits ? far.EndOf(step) : far.Step(), kLostCode, parts);
        // The lost session ends while nobody answers, and what it had there ends with its connection.
        far.End();
        far.server().Signal(SIGCONT);
      }
      far.Good();
    }
  }
}

struct Cut {
  const char* name;
  bool to_server, to_client;
};
const std::vector<Cut>& Cuts() {
  static const std::vector<Cut> all = {{"both ways", true, true}, {"to it", true, false}, {"from it", false, true}};
  return all;
}
void HoldWays(FaultProxy& proxy, const Cut& cut) {
  Faults hold;
  hold.hold = true;
  if (cut.to_server) proxy.Set(Way::kToServer, hold);
  if (cut.to_client) proxy.Set(Way::kToClient, hold);
}

TEST(FaultMatrix, T4_PartitionsFromARemoteDevice) {
  for (const Cut& cut : Cuts()) {
    for (const bool is_long : {true, false}) {
      for (const bool waits : {true, false}) {
        if (!AllFaults() && (waits != is_long || cut.to_server != cut.to_client)) continue;
        FaultRow row("T4", std::string("remote device ") + (waits ? "mid-step" : "idle") +
                               (is_long ? ", partition " : ", a short partition ") + cut.name);
        FarProcess far(is_long ? testing::kSoonMs : kPatientMs);
        far.Begin(row);
        if (::testing::Test::HasFatalFailure()) return;
        std::future<Status> step;
        if (waits && is_long) step = far.BeginWaiting();
        if (!is_long) {
          HoldWays(far.proxy(), cut);
          if (waits) step = std::async(std::launch::async, [&] { return far.Step(); });
          std::this_thread::sleep_for(milliseconds(100));  // part of the row, nothing waits for it
          far.proxy().Heal();
          row.Unnoticed(waits ? far.EndOf(step) : far.Step());
          far.Count();
        } else {
          HoldWays(far.proxy(), cut);
          row.Told(waits ? far.EndOf(step) : far.Step(), kLostCode, far.Lost());
          far.End();
          far.proxy().Heal();
        }
        far.Good();
      }
    }
  }
}

TEST(FaultMatrix, T5_ALateRemoteDeviceIsWaitedFor) {
  FaultRow row("T5", "remote device mid-step, 5 to 25 ms a piece");
  FarProcess far(kPatientMs);
  far.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  Faults jittery;
  jittery.delay = milliseconds(5);
  jittery.jitter = milliseconds(20);
  far.proxy().SetAll(jittery);
  for (int i = 0; i < 3; ++i) row.Unnoticed(far.Step());
  far.proxy().Heal();
  row.Unnoticed(far.Cross());
  far.Count();
  far.Good();
}

TEST(FaultMatrix, T6_ConnectionsToARemoteDeviceThatEndOrAreHalfOpen) {
  struct Case {
    const char* name;
    void (FaultProxy::*act)();
  };
  for (const Case& one : std::vector<Case>{
           {"reset", &FaultProxy::Reset}, {"end", &FaultProxy::End}, {"half open", &FaultProxy::HalfOpen}}) {
    for (const bool waits : {true, false}) {
      if (!AllFaults() && !waits) continue;
      FaultRow row("T6", std::string("remote device ") + (waits ? "mid-step" : "idle") + ", " + one.name);
      FarProcess far(testing::kSoonMs);
      far.Begin(row);
      if (::testing::Test::HasFatalFailure()) return;
      std::future<Status> step;
      if (waits) step = far.BeginWaiting();
      (far.proxy().*one.act)();
      row.Told(waits ? far.EndOf(step) : far.Step(), kLostCode, far.Lost());
      far.Good();
    }
  }
}

TEST(FaultMatrix, T6_ATensorThatIsCutOnItsWayToOrFromARemoteDevice) {
  for (const Way way : {Way::kToServer, Way::kToClient}) {
    for (const bool reset : {true, false}) {
      for (const uint64_t after : {uint64_t{1}, uint64_t{1000}, uint64_t{300000}, uint64_t{3000000}}) {
        if (!AllFaults() && (after != 300000 || reset != (way == Way::kToClient))) continue;
        FaultRow row("T6", std::string("remote device mid-tensor, ") + (way == Way::kToServer ? "to" : "from") +
                               " it, " + (reset ? "reset" : "end") + " after " + std::to_string(after) + " bytes");
        if (getuid() != 0) return row.Skip("no process of another user can be started");
        FarProcess far(kPatientMs, kOtherUser);
        far.Begin(row);
        if (::testing::Test::HasFatalFailure()) return;
        row.Unnoticed(far.Cross());
        Faults cut;
        (reset ? cut.reset_after : cut.end_after) = after;
        far.proxy().Set(way, cut);
        row.Told(far.Cross(), kLostCode, far.Lost());
        far.proxy().Heal();
        far.Good();
      }
    }
  }
}

/// Bytes that are damaged end the session there, or change nothing; a wrong value never passes.
TEST(FaultMatrix, T6_DamagedBytesOfARemoteDeviceNeverBecomeAWrongValue) {
  for (const Way way : {Way::kToServer, Way::kToClient}) {
    if (!AllFaults() && way == Way::kToServer) continue;
    FaultRow row("T6",
                 std::string("remote device mid-tensor, bits flip ") + (way == Way::kToServer ? "to" : "from") + " it");
    if (getuid() != 0) return row.Skip("no process of another user can be started");
    FarProcess far(testing::kSoonMs, kOtherUser);
    far.Begin(row);
    if (::testing::Test::HasFatalFailure()) return;
    Faults damage;
    damage.corrupt = 300;
    far.proxy().Set(way, damage);
    row.Told(far.Cross(),
             {Code::kUnavailable, Code::kDataLoss, Code::kInvalidArgument, Code::kResourceExhausted,
              Code::kFailedPrecondition, Code::kUnimplemented},
             {kNameThere, "begin a new session"});
    far.proxy().Heal();
    far.Good();
  }
}

TEST(FaultMatrix, T7_ASlowLinkToARemoteDeviceEndsAtTheDeadline) {
  FaultRow row("T7", "remote device mid-tensor, from it at 1 KiB/s");
  if (getuid() != 0) return row.Skip("no process of another user can be started");
  FarProcess far(kPatientMs, kOtherUser);
  far.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  Faults slow;
  slow.bytes_per_second = 1024;
  far.proxy().Set(Way::kToClient, slow);
  session::RunOptions options;
  options.timeout_in_ms = WEIR_SANITIZER_KIND == 0 ? 500 : 3000;
  row.Told(far.Cross(options), {Code::kDeadlineExceeded}, {kNameThere});
  far.proxy().Reset();
  far.proxy().Heal();
  far.Good();
}

TEST(FaultMatrix, T8_ARemoteDeviceThatDrains) {
  FaultRow row("T8", "remote device mid-step, SIGTERM, a step that outlasts the drain");
  FarProcess far(kPatientMs, {}, {"--set", "cluster.drain_limit_ms=300"});
  far.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  auto step = far.BeginWaiting();
  far.server().Signal(SIGTERM);
  row.Told(far.EndOf(step), kLostCode, far.Lost());
  EXPECT_EQ(far.server().Wait(), 143) << far.server().ReadAll();
  far.Start(far.address());
  far.Good();
}

TEST(FaultMatrix, T10_ARemoteDeviceWithFewDescriptors) {
  FaultRow row("T10", "remote device with ulimit -n 64");
  FarProcess far(kPatientMs, {"/bin/sh", "-c", "ulimit -n 64; exec \"$0\" \"$@\""});
  far.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  // Many sessions, one after the other and at once.
  std::vector<std::unique_ptr<Session>> others;
  for (int i = 0; i < 80; ++i) {
    auto one = std::make_unique<Session>(far.graph(), far.config());
    row.Unnoticed(one->Run(far.init()).status());
    if (i % 2 == 0) others.push_back(std::move(one));
  }
  others.clear();
  row.Unnoticed(far.Step());
  far.Count();
  far.Good();
}

TEST(FaultMatrix, T13_OnlyMonotonicDifferencesMatterToARemoteDevice) {
  FaultRow row("T13", "remote device in a time namespace, 11 days ahead");
  ServerProcess can({"/usr/bin/unshare", "-T", "--monotonic", "1000000", "/bin/true"});
  const std::string why = can.ReadAll();
  if (can.Wait() != 0) return row.Skip("no time namespace: " + why);
  FarProcess far(kPatientMs, {"/usr/bin/unshare", "-T", "--monotonic", "1000000", "--boottime", "1000000"});
  far.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  row.Unnoticed(far.Step());
  far.Count();
  far.Good();
}

}  // namespace
}  // namespace weir
