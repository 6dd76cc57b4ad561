// Rows of the fault table about networks: a worker and a parameter server with proxies between them.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/fault_cluster.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using testing::AllFaults;
using testing::FaultCluster;
using testing::FaultProxy;
using testing::FaultRow;
using testing::Faults;
using testing::Way;

constexpr milliseconds kQuick{testing::kSoonMs};  // of rows in which a silent peer counts as lost
constexpr milliseconds kLong{120000};             // of rows in which it must not
const std::vector<Code> kLost = {Code::kUnavailable};

/// Where a fault meets the cluster.
struct Link {
  const char* name;
  FaultProxy FaultCluster::* proxy;
};
const Link kCalls{"the worker's calls", &FaultCluster::to_ps}, kTransfers{"the ps's calls", &FaultCluster::from_ps};

struct Partition {
  const char* name;
  bool to_server, to_client;
};
const std::vector<Partition>& Partitions() {
  static const std::vector<Partition> all = {
      {"both ways", true, true}, {"to the ps", true, false}, {"to the worker", false, true}};
  return all;
}
void Hold(FaultProxy& proxy, const Partition& partition) {
  Faults hold;
  hold.hold = true;
  if (partition.to_server) proxy.Set(Way::kToServer, hold);
  if (partition.to_client) proxy.Set(Way::kToClient, hold);
}

/// What a step says of the ps that it lost.
const std::vector<std::string> kNamesStep = {"/job:ps/", " of step ", "waiting: "};

TEST(FaultMatrix, T4_PartitionsThatLastEndStepsAndHeal) {
  for (const Partition& partition : Partitions()) {
    for (const bool waits : {true, false}) {
      if (!AllFaults() && (!waits || (!partition.to_client && partition.to_server))) continue;
      FaultRow row("T4", std::string("ps ") + (waits ? "mid-step" : "idle") + ", partition " + partition.name);
      FaultCluster cluster(kQuick);
      cluster.Begin(row);
      if (::testing::Test::HasFatalFailure()) return;
      if (waits) {
        auto step = cluster.BeginWaiting();
        Hold(cluster.to_ps, partition);
        row.Told(FaultCluster::EndOf(row, step), kLost, kNamesStep);
      } else {
        Hold(cluster.to_ps, partition);
        row.Told(cluster.Step(), kLost, {"/job:ps/"});
      }
      cluster.to_ps.Heal();
      cluster.End(row);
    }
  }
}

TEST(FaultMatrix, T4_PartitionsThatHealInTimeAreSurvived) {
  for (const Partition& partition : Partitions()) {
    for (const Link& link : {kCalls, kTransfers}) {
      if (!AllFaults() && !(partition.to_server && partition.to_client)) continue;
      FaultRow row("T4", std::string("mid-step, a short partition ") + partition.name + ", " + link.name);
      FaultCluster cluster(kLong);
      cluster.Begin(row);
      if (::testing::Test::HasFatalFailure()) return;
      Hold(cluster.*link.proxy, partition);
      auto step = std::async(std::launch::async, [&] { return cluster.Step(); });
      std::this_thread::sleep_for(milliseconds(100));  // part of the row, nothing waits for it
      (cluster.*link.proxy).Heal();
      row.Unnoticed(FaultCluster::EndOf(row, step));
      cluster.End(row);
    }
  }
}

TEST(FaultMatrix, T4_APartitionAtTheStartIsToldAndHeals) {
  FaultRow row("T4", "start-up, partition both ways");
  FaultCluster cluster(kLong);
  Hold(cluster.to_ps, Partitions()[0]);
  row.Told(cluster.TryToOpen(milliseconds(300)), {Code::kDeadlineExceeded}, {"/job:ps/replica:0/task:0"});
  cluster.to_ps.Heal();
  cluster.Begin(row);
  cluster.End(row);
}

TEST(FaultMatrix, T4_ADeadlineBeforeTheEndOfThePatienceNamesWhoIsSilent) {
  FaultRow row("T4", "ps mid-step, partition both ways, the deadline first");
  FaultCluster cluster(kLong);
  cluster.Begin(row);
  if (::testing::Test::HasFatalFailure()) return;
  Hold(cluster.to_ps, Partitions()[0]);
  const milliseconds limit(WEIR_SANITIZER_KIND == 0 ? 500 : 3000);  // both parts run by then
  row.Told(cluster.Run({"y:0"}, {}, {}, limit).status(), {Code::kDeadlineExceeded},
           {"in /job:ps/replica:0/task:0: no answer", "in /job:worker/replica:0/task:0: "});
  cluster.to_ps.Heal();
  cluster.Forget();  // the step may run once its request arrives
  cluster.Begin(row);
  cluster.End(row);
}

TEST(FaultMatrix, T5_DelayAndNarrowLinksAreSurvived) {
  struct Case {
    const char* name;
    Faults faults;
  };
  Faults late, jittery, narrow, lossy;
  late.delay = milliseconds(100);
  jittery.delay = milliseconds(5);
  jittery.jitter = milliseconds(20);
  narrow.bytes_per_second = 10000000 / 8;
  lossy.lose = 50;
  const std::vector<Case> cases = {
      {"100 ms", late}, {"5 to 25 ms a piece", jittery}, {"10 Mbit/s", narrow}, {"5 % loss", lossy}};
  for (const Case& one : cases) {
    if (!AllFaults() && one.faults.jitter.count() == 0 && one.faults.lose == 0) continue;
    FaultRow row("T5", std::string("mid-step, ") + one.name);
    FaultCluster cluster(kLong);
    cluster.Begin(row);
    if (::testing::Test::HasFatalFailure()) return;
    cluster.to_ps.SetAll(one.faults);
    cluster.from_ps.SetAll(one.faults);
    for (int i = 0; i < 3; ++i) row.Unnoticed(cluster.Step());
    const Tensor x = Tensor::Vector<float>(std::vector<float>(20000, 2.0f));
    const auto large = cluster.Run({"large_here:0"}, {}, {{"x:0", x}});
    row.Unnoticed(large.status());
    if (large.ok()) {
      EXPECT_EQ((*large)[0].as<float>()[19999], 2.0f);
    }
    cluster.to_ps.Heal();
    cluster.from_ps.Heal();
    cluster.End(row);
  }
}

/// Every step and transfer with a value of some MiB, so that a fault meets it in its middle.
struct Crossing {
  const char* name;
  const char* fetch;
  Link link;
  Way way;
};
const std::vector<Crossing>& Crossings() {
  static const std::vector<Crossing> all = {{"a feed", "large_here:0", kCalls, Way::kToServer},
                                            {"a fetch", "large:0", kCalls, Way::kToClient},
                                            {"a transfer", "large_here:0", kCalls, Way::kToClient}};
  return all;
}
std::vector<session::Feed> LargeFeed() {
  return {{"x:0", Tensor::Vector<float>(std::vector<float>(FaultCluster::kLarge, 1.0f))}};
}

TEST(FaultMatrix, T6_ATensorThatIsCutEndsItsStep) {
  for (const Crossing& crossing : Crossings()) {
    for (const bool reset : {true, false}) {
      for (const uint64_t after : {uint64_t{1}, uint64_t{1000}, uint64_t{300000}, uint64_t{3000000}}) {
        if (!AllFaults() && (after != 300000 || reset != (crossing.way == Way::kToClient))) continue;
        FaultRow row("T6", std::string("mid-tensor, ") + crossing.name + ", " + (reset ? "reset" : "end") + " after " +
                               std::to_string(after) + " bytes");
        FaultCluster cluster(kLong);
        cluster.Begin(row);
        if (::testing::Test::HasFatalFailure()) return;
        Faults cut;
        (reset ? cut.reset_after : cut.end_after) = after;
        (cluster.*crossing.link.proxy).Set(crossing.way, cut);
        row.Told(cluster.Run({crossing.fetch}, {}, LargeFeed()).status(), kLost, {"/job:ps/", "waiting: "});
        cluster.to_ps.Heal();
        cluster.End(row);
      }
    }
  }
}

TEST(FaultMatrix, T6_ConnectionsThatEndOrAreHalfOpen) {
  struct Case {
    const char* name;
    void (FaultProxy::*act)();
  };
  for (const Case& one : std::vector<Case>{{"reset", &FaultProxy::Reset}, {"end", &FaultProxy::End},
                                           {"half open", &FaultProxy::HalfOpen}}) {
    for (const bool waits : {true, false}) {
      if (!AllFaults() && !waits) continue;
      FaultRow row("T6", std::string("ps ") + (waits ? "mid-step" : "idle") + ", " + one.name);
      FaultCluster cluster(kQuick);
      cluster.Begin(row);
      if (::testing::Test::HasFatalFailure()) return;
      if (waits) {
        auto step = cluster.BeginWaiting();
        (cluster.to_ps.*one.act)();
        row.Told(FaultCluster::EndOf(row, step), kLost, kNamesStep);
      } else {
        (cluster.to_ps.*one.act)();
      }
      cluster.End(row);
    }
  }
}

/// Bytes that are damaged end the step with an error, or change nothing; a wrong value never passes.
TEST(FaultMatrix, T6_DamagedBytesNeverBecomeAWrongValue) {
  struct Case {
    const char* name;
    int Faults::* chance;
  };
  const std::vector<Case> cases = {{"bits flip", &Faults::corrupt},
                                   {"bytes are lost", &Faults::drop},
                                   {"bytes come twice", &Faults::repeat},
                                   {"bytes change places", &Faults::swap}};
  const uint64_t seeds = AllFaults() ? 12 : 2;
  for (const Case& one : cases) {
    for (const Way way : {Way::kToServer, Way::kToClient}) {
      if (!AllFaults() && (way == Way::kToServer) != (one.chance == &Faults::corrupt)) continue;
      const std::string where = way == Way::kToServer ? " to the ps" : " from the ps";
      FaultRow row("T6", std::string("mid-tensor, ") + one.name + where);
      int wrong = 0, refused = 0;
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        FaultCluster cluster(kQuick, seed);
        cluster.Begin(row);
        if (::testing::Test::HasFatalFailure()) return;
        Faults damage;
        damage.*one.chance = seed % 2 == 0 ? 300 : 5;
        cluster.to_ps.Set(way, damage);
        const auto got = cluster.Run({"large:0"}, {}, LargeFeed());
        if (!got.ok()) {
          ++refused;
          row.Told(got.status(),
                   {Code::kUnavailable, Code::kDataLoss, Code::kInvalidArgument, Code::kResourceExhausted,
                    Code::kFailedPrecondition, Code::kUnimplemented},
                   {"/job:ps/"});
        } else {
          for (const float value : (*got)[0].as<float>()) wrong += value == -1.0f ? 0 : 1;
        }
        cluster.to_ps.Heal();
        cluster.End(row);
      }
      EXPECT_EQ(wrong, 0);
      EXPECT_GT(refused, 0) << "the fault has not met the step";
    }
  }
}

/// KiB of this process in memory.
int64_t ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return 0;
}

TEST(FaultMatrix, T7_ASlowReaderBoundsWhatItsPeerHolds) {
  for (const Crossing& crossing : Crossings()) {
    if (!AllFaults() && crossing.fetch != std::string("large:0")) continue;
    FaultRow row("T7", std::string("mid-tensor, ") + crossing.name + " at 1 KiB/s");
    FaultCluster cluster(kLong);
    cluster.Begin(row);
    if (::testing::Test::HasFatalFailure()) return;
    const std::vector<session::Feed> feeds = LargeFeed();
    ASSERT_TRUE(cluster.Run({crossing.fetch}, {}, feeds).ok());  // memory that steps keep
    const int64_t before = ResidentKib();
    Faults slow;
    slow.bytes_per_second = 1024;
    (cluster.*crossing.link.proxy).Set(crossing.way, slow);
    row.Told(cluster.Run({crossing.fetch}, {}, feeds, milliseconds(500)).status(), {Code::kDeadlineExceeded}, {});
    // Two values of 4 MiB and the buffers of the sockets.
    if (WEIR_SANITIZER_KIND == 0) {
      EXPECT_LT(ResidentKib() - before, 64 << 10);
    }
    cluster.to_ps.Reset();
    cluster.to_ps.Heal();
    cluster.End(row);
  }
}

TEST(FaultMatrix, T3_ARestartedPsIsAnotherOne) {
  for (const bool waits : {true, false}) {
    FaultRow row("T3", std::string("ps ") + (waits ? "mid-step" : "idle") + ", restarted on its port");
    FaultCluster cluster(kLong);
    cluster.Begin(row);
    if (::testing::Test::HasFatalFailure()) return;
    std::future<Status> step;
    if (waits) step = cluster.BeginWaiting();
    cluster.RestartPs();
    const std::vector<Code> gone = {Code::kAborted, Code::kUnavailable};
    row.Told(waits ? FaultCluster::EndOf(row, step) : cluster.Step(), gone, {"/job:ps/"});
    cluster.Begin(row);
    cluster.End(row);
  }
}

}  // namespace
}  // namespace weir
