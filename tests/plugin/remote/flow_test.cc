#include "plugins/remote/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weir_remote {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr CreditLimits kSmall{.stream_bytes = 100, .connection_bytes = 250};
const Liveness::Time kStart = Liveness::Time(milliseconds(1000));

TEST(SendCredit, AStalledStreamStopsAndLeavesRoomForOthers) {
  SendCredit credit(kSmall);
  EXPECT_EQ(credit.Take(1, 60), 60u);
  EXPECT_EQ(credit.Take(1, 60), 40u);
  EXPECT_EQ(credit.Take(1, 60), 0u);
  EXPECT_EQ(credit.Take(2, 60), 60u);
  EXPECT_EQ(credit.Take(3, 200), 90u);  // what the connection has left
  EXPECT_EQ(credit.connection_left(), 0u);
  ASSERT_TRUE(credit.Grant(1, 70).ok());
  EXPECT_EQ(credit.Take(2, 60), 40u);
  EXPECT_EQ(credit.Take(1, 60), 30u);
}

TEST(SendCredit, ACreditBeyondWhatWasSentIsAFault) {
  SendCredit credit(kSmall);
  EXPECT_EQ(credit.Grant(1, 1).code, WEIR_INVALID_ARGUMENT);
  ASSERT_EQ(credit.Take(1, 10), 10u);
  EXPECT_EQ(credit.Grant(1, 11).code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(credit.Grant(1, UINT64_MAX).code, WEIR_INVALID_ARGUMENT);
  EXPECT_TRUE(credit.Grant(1, 10).ok());
}

TEST(SendCredit, AnEndedStreamGivesItsBytesBack) {
  SendCredit credit(kSmall);
  ASSERT_EQ(credit.Take(1, 80), 80u);
  credit.End(1);
  credit.End(1);
  EXPECT_EQ(credit.connection_left(), kSmall.connection_bytes);
  EXPECT_EQ(credit.streams(), 0u);
}

TEST(ReceiveCredit, MoreThanTheCreditIsAFault) {
  ReceiveCredit credit(kSmall);
  ASSERT_TRUE(credit.Arrived(1, 100).ok());
  EXPECT_EQ(credit.Arrived(1, 1).code, WEIR_RESOURCE_EXHAUSTED);
  ASSERT_TRUE(credit.Arrived(2, 100).ok());
  EXPECT_EQ(credit.Arrived(3, 51).code, WEIR_RESOURCE_EXHAUSTED);
  EXPECT_EQ(credit.Arrived(3, UINT64_MAX).code, WEIR_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(credit.Arrived(3, 50).ok());
  EXPECT_EQ(credit.held(), 250u);
  credit.End(2);
  EXPECT_EQ(credit.held(), 150u);
}

TEST(ReceiveCredit, GrantsComeInHalvesOfAWindow) {
  ReceiveCredit credit(kSmall);
  ASSERT_TRUE(credit.Arrived(1, 90).ok());
  EXPECT_EQ(credit.Consumed(1, 30), 0u);
  EXPECT_EQ(credit.Consumed(1, 30), 60u);
  EXPECT_EQ(credit.Consumed(1, 30), 30u);  // the rest of what arrived
  EXPECT_EQ(credit.held(), 0u);
  EXPECT_EQ(credit.Consumed(9, 30), 0u);
}

TEST(Credit, BothSidesAgreeForAnyOrder) {
  std::mt19937 random(3);
  SendCredit sender(kSmall);
  ReceiveCredit receiver(kSmall);
  uint64_t sent = 0;
  std::vector<uint64_t> unread(4, 0);
  for (int i = 0; i < 20000; ++i) {
    const auto stream = static_cast<uint32_t>(random() % 4);
    if (random() % 2 == 0) {
      const uint64_t taken = sender.Take(stream, 1 + random() % 40);
      if (taken == 0) continue;
      ASSERT_TRUE(receiver.Arrived(stream, taken).ok());
      unread[stream] += taken;
      sent += taken;
    } else if (unread[stream] > 0) {
      const uint64_t read = 1 + random() % unread[stream];
      unread[stream] -= read;
      if (const uint64_t grant = receiver.Consumed(stream, read); grant > 0) {
        ASSERT_TRUE(sender.Grant(stream, grant).ok());
      }
    }
    ASSERT_EQ(sender.connection_left() + receiver.held(), kSmall.connection_bytes);
  }
  EXPECT_GT(sent, 50000u);
}

TEST(Liveness, SilenceIsSuspectAndThenDeath) {
  Liveness peer(kStart);
  EXPECT_EQ(peer.At(kStart + milliseconds(2999)), Liveness::State::kAlive);
  EXPECT_EQ(peer.At(kStart + milliseconds(3000)), Liveness::State::kSuspect);
  EXPECT_EQ(peer.At(kStart + milliseconds(10000)), Liveness::State::kDead);
  peer.Heard(kStart + milliseconds(9000));
  EXPECT_EQ(peer.At(kStart + milliseconds(10000)), Liveness::State::kAlive);
  peer.Heard(kStart);  // an older time changes nothing
  EXPECT_EQ(peer.At(kStart + milliseconds(19000)), Liveness::State::kDead);
}

TEST(Liveness, OnePingASecond) {
  Liveness peer(kStart);
  int pings = 0;
  Liveness::Time now = kStart;
  while (peer.At(now) != Liveness::State::kDead) {
    pings += peer.TakePing(now) ? 1 : 0;
    ASSERT_FALSE(peer.TakePing(now));
    const Liveness::Time next = peer.Next();
    ASSERT_GT(next, now);
    now = next;
  }
  EXPECT_EQ(pings, 9);
  EXPECT_EQ(now - kStart, milliseconds(10000));
}

constexpr std::chrono::microseconds kMostLook{200};

TEST(Patience, LooksOnceMessagesHaveComeSoon) {
  Patience patience;
  EXPECT_FALSE(patience.looks());
  patience.Came(microseconds(200), kMostLook);
  EXPECT_FALSE(patience.looks());
  patience.Came(microseconds(1), kMostLook);
  EXPECT_TRUE(patience.looks());
  patience.Came(microseconds(201), kMostLook);
  EXPECT_FALSE(patience.looks());
}

TEST(Patience, OneLateMessageAmongManyChangesNothing) {
  Patience patience;
  for (int i = 0; i < 100; ++i) {
    patience.Came(microseconds(i % 5 == 4 ? 5000 : 50), kMostLook);
    EXPECT_EQ(patience.looks(), i > 0) << i;
  }
}

TEST(Patience, LateMessagesAmongFewSoonOnesCostNoLook) {
  Patience patience;
  for (int i = 0; i < 100; ++i) {
    patience.Came(microseconds(i % 2 == 1 ? 5000 : 50), kMostLook);
    EXPECT_FALSE(patience.looks()) << i;
  }
}

TEST(Backoff, WaitsDoubleUpToTwoSeconds) {
  Backoff backoff(42);
  int64_t most = 50;
  for (int i = 0; i < 12; ++i) {
    const int64_t wait = backoff.Next().count();
    EXPECT_LE(wait, most);
    EXPECT_GE(wait, most / 2);
    most = std::min<int64_t>(most * 2, 2000);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next().count(), 50);
}

}  // namespace
}  // namespace weir_remote
