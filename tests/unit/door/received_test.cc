// Ids and replies of requests that come again.
#include "core/door/received.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace weir::door {
namespace {

const KeptReplies::Time kNow{std::chrono::hours(1)};
constexpr std::chrono::milliseconds kAge{60000};

TEST(ReceivedIds, AnIdIsNewOnce) {
  ReceivedIds ids(2);
  EXPECT_TRUE(ids.Insert(0));
  EXPECT_TRUE(ids.Insert(0));
  EXPECT_TRUE(ids.Insert(-5));
  EXPECT_FALSE(ids.Insert(-5));
  EXPECT_TRUE(ids.Insert(7));
  EXPECT_TRUE(ids.Insert(8));
  EXPECT_TRUE(ids.Insert(-5)) << "it is older than the two latest";
  EXPECT_FALSE(ids.Insert(8));
}

TEST(KeptReplies, AReplyIsGivenOnceToTheSameRequestOfTheSameHost) {
  KeptReplies kept({.bytes = 1000, .replies = 10, .age = kAge});
  kept.Keep("h", "RunStep", "request", "reply", kNow);
  EXPECT_FALSE(kept.Take("other", "RunStep", "request", kNow));
  EXPECT_FALSE(kept.Take("h", "RunCallable", "request", kNow));
  EXPECT_FALSE(kept.Take("h", "RunStep", "requesu", kNow));
  EXPECT_EQ(kept.Take("h", "RunStep", "request", kNow + kAge).value_or(""), "reply");
  EXPECT_FALSE(kept.Take("h", "RunStep", "request", kNow));
  EXPECT_EQ(kept.size(), 0u);
}

TEST(KeptReplies, OldOnesAndTooManyAreDropped) {
  KeptReplies kept({.bytes = 60, .replies = 2, .age = kAge});
  for (const char* request : {"one", "two", "six"}) kept.Keep("h", "m", request, "reply", kNow);
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_FALSE(kept.Take("h", "m", "one", kNow));
  kept.Keep("h", "m", std::string(61, 'r'), "", kNow);
  EXPECT_EQ(kept.size(), 2u) << "a reply beyond the limit displaces nothing";
  kept.Keep("h", "m", std::string(50, 'r'), "", kNow);
  EXPECT_EQ(kept.size(), 1u);
  EXPECT_FALSE(kept.Take("h", "m", std::string(50, 'r'), kNow + kAge + kAge));
  EXPECT_EQ(kept.size(), 0u);
}

}  // namespace
}  // namespace weir::door
