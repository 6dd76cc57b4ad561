#include "core/cluster/at_most_once.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::cluster {
namespace {

using Table = AtMostOnce<std::string>;
using Verdict = Table::Verdict;
using std::chrono::milliseconds;

const Table::Time kStart = Table::Time(milliseconds(1000));

TEST(AtMostOnce, ARequestRunsOnceAndGivesItsReplyAgain) {
  Table table;
  EXPECT_EQ(table.Begin(1, kStart), Verdict::kRun);
  EXPECT_EQ(table.Begin(1, kStart), Verdict::kRunning);
  table.End(1, "one", kStart);
  std::string reply;
  EXPECT_EQ(table.Begin(1, kStart + milliseconds(59000), &reply), Verdict::kReplied);
  EXPECT_EQ(reply, "one");
}

TEST(AtMostOnce, ARequestIsRefusedAfterItsReplyIsForgotten) {
  Table table;
  ASSERT_EQ(table.Begin(1, kStart), Verdict::kRun);
  table.End(1, "one", kStart);
  EXPECT_EQ(table.Begin(1, kStart + milliseconds(60001)), Verdict::kRefused);
  EXPECT_EQ(table.kept(), 0u);
  EXPECT_EQ(table.Begin(2, kStart + milliseconds(60001)), Verdict::kRun);
}

TEST(AtMostOnce, TheNumberOfRepliesIsBounded) {
  Table table({.replies = 10, .age = milliseconds(60000)});
  for (uint64_t id = 1; id <= 100; ++id) {
    ASSERT_EQ(table.Begin(id, kStart), Verdict::kRun);
    table.End(id, std::to_string(id), kStart);
    ASSERT_LE(table.kept(), 10u);
  }
  for (uint64_t id = 1; id <= 90; ++id) EXPECT_EQ(table.Begin(id, kStart), Verdict::kRefused) << id;
  std::string reply;
  EXPECT_EQ(table.Begin(91, kStart, &reply), Verdict::kReplied);
  EXPECT_EQ(reply, "91");
}

TEST(AtMostOnce, ALongRequestIsNotForgotten) {
  Table table({.replies = 2, .age = milliseconds(1000)});
  ASSERT_EQ(table.Begin(1, kStart), Verdict::kRun);
  for (uint64_t id = 2; id <= 20; ++id) {
    ASSERT_EQ(table.Begin(id, kStart), Verdict::kRun);
    table.End(id, "", kStart);
  }
  EXPECT_EQ(table.Begin(1, kStart + milliseconds(5000)), Verdict::kRunning);
  EXPECT_EQ(table.running(), 1u);
  table.End(1, "late", kStart + milliseconds(5000));
  std::string reply;
  EXPECT_EQ(table.Begin(1, kStart + milliseconds(5500), &reply), Verdict::kReplied);
  EXPECT_EQ(reply, "late");
}

TEST(AtMostOnce, AnEndWithoutABeginningChangesNothing) {
  Table table;
  table.End(7, "seven", kStart);
  EXPECT_EQ(table.Begin(7, kStart), Verdict::kRun);
}

}  // namespace
}  // namespace weir::cluster
