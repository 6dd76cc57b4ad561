// Ranks that meet at a registry.
#include "core/cluster/ranks.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <set>
#include <string>
#include <vector>

#include "tests/support/own_loopback.h"
#include "tests/unit/cluster/wire_pair.h"

namespace weir::cluster {
namespace {

using testing::In;
using testing::kSoon;
using testing::SocketTransport;

/// Where nobody listens but a registry of this process.
std::string FreeAddress() { return testing::OwnLoopback() + ":61999"; }

Launch RankOf(int rank, int size, const std::string& registry) {
  Launch launch;
  launch.source = "torchrun";
  launch.rank = rank;
  launch.size = size;
  launch.registry = registry;
  return launch;
}

LocalEnd EndOfRank(const std::string& token = {}) {
  LocalEnd self;
  self.security.token = token;
  return self;
}

TEST(Ranks, MeetWhateverTheirOrderAndGetOneCluster) {
  const std::string registry = FreeAddress();
  const Roles roles = *Roles::Parse("ps=1,worker=*");
  std::vector<std::future<Result<Ranks>>> met;
  // Rank 0, whose registry the others wait for, is the last.
  for (const int rank : {3, 1, 2, 0}) {
    met.push_back(std::async(std::launch::async, [&, rank] {
      return MeetRanks(*SocketTransport(), RankOf(rank, 4, registry), roles, EndOfRank("secret"), In(kSoon));
    }));
  }
  std::vector<Ranks> all;
  for (auto& each : met) {
    Result<Ranks> ranks = each.get();
    ASSERT_TRUE(ranks.ok()) << ranks.status().ToString();
    all.push_back(*std::move(ranks));
  }
  std::set<std::string> addresses;
  for (const Ranks& ranks : all) {
    EXPECT_EQ(ranks.cluster, all[0].cluster);
    EXPECT_EQ(*ranks.cluster.NumTasks("ps"), 1);
    EXPECT_EQ(*ranks.cluster.NumTasks("worker"), 3);
    sockaddr_in at{};
    socklen_t size = sizeof at;
    EXPECT_EQ(getsockname(ranks.socket, reinterpret_cast<sockaddr*>(&at), &size), 0);
    addresses.insert("127.0.0.1:" + std::to_string(ntohs(at.sin_port)));
    close(ranks.socket);
  }
  for (const TaskName& task : all[0].cluster.tasks()) {
    EXPECT_TRUE(addresses.contains(*all[0].cluster.TaskAddress(task.job, task.index))) << task.ToString();
  }
  EXPECT_NE(all[3].registry, nullptr);
}

TEST(Ranks, ThoseThatAreMissingAreNamed) {
  const std::string registry = FreeAddress();
  const auto fails = [&](int rank) {
    const auto deadline = In(std::chrono::milliseconds(WEIR_SANITIZER_KIND == 0 ? 300 : 2000));
    return MeetRanks(*SocketTransport(), RankOf(rank, 3, registry), {}, EndOfRank(), deadline).status();
  };
  const Status alone = fails(0);
  EXPECT_EQ(alone.code(), Code::kDeadlineExceeded);
  EXPECT_NE(alone.message().find("2 of 3 ranks have not registered: 1, 2"), std::string::npos) << alone;
  EXPECT_NE(alone.message().find(registry), std::string::npos) << alone;
  const Status early = fails(1);
  EXPECT_EQ(early.code(), Code::kDeadlineExceeded);
  EXPECT_NE(early.message().find("cannot be reached"), std::string::npos) << early;
}

TEST(Ranks, StrangersAndRestartedRanksAreRefused) {
  RankRegistry registry(2);
  const auto call = [&](const std::string& method, const std::string& request) {
    const auto status = std::make_shared<Status>(Code::kUnknown, "waits");
    registry.Call({method, request}, MasterDone([status](const Result<std::string>& r) { *status = r.status(); }));
    return status;
  };
  for (const char* bad : {"", "0", "2 h:1", "-1 h:1", "x h:1", "0 h", "0 ", "0 h:99999"}) {
    EXPECT_EQ(call("RegisterRank", bad)->code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(call("RegisterRank", "0 " + std::string(1000, 'h') + ":1")->code(), Code::kInvalidArgument);
  EXPECT_EQ(call("CreateSession", "")->code(), Code::kUnimplemented);
  const auto lost = call("RegisterRank", "1 h:1"), again = call("RegisterRank", "1 h:2");
  EXPECT_EQ(again->code(), Code::kUnknown);
  EXPECT_TRUE(call("RegisterRank", "0 g:1")->ok());
  EXPECT_TRUE(again->ok());
  EXPECT_EQ(*registry.Wait(In(kSoon)), (std::vector<std::string>{"g:1", "h:2"}));
  EXPECT_TRUE(call("RegisterRank", "1 h:2")->ok());  // a lost answer
  EXPECT_EQ(call("RegisterRank", "1 h:3")->code(), Code::kAborted);
  const Status token = MeetRanks(*SocketTransport(), RankOf(0, 1, "192.0.2.1:1"), {}, EndOfRank(), In(kSoon)).status();
  EXPECT_FALSE(token.ok());
}

}  // namespace
}  // namespace weir::cluster
