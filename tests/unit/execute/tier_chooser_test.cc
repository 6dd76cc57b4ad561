// Tests with made-up times: the measurements of a check, its choice, and the frequency of checks.
#include "core/execute/tier_chooser.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace weir::execute {
namespace {

constexpr size_t kTasks = 0, kAlone = 1;

/// Runs until a check is over. Returns the number of measured runs of each way.
std::vector<size_t> Check(TierChooser& chooser, const std::function<int64_t(size_t way)>& ns, size_t ways = 2) {
  std::vector<size_t> measured(ways, 0);
  for (int64_t run = 0; run < 10'000'000; ++run) {
    const TierChooser::Turn turn = chooser.Next();
    if (!turn.measured) continue;
    ++measured[turn.way];
    if (chooser.Took(turn, ns(turn.way))) return measured;
  }
  ADD_FAILURE() << "no check ends";
  return measured;
}

/// Runs until the next check begins, and leaves it unfinished.
int64_t RunsUntilCheck(TierChooser& chooser) {
  for (int64_t run = 0;; ++run) {
    const TierChooser::Turn turn = chooser.Next();
    if (!turn.measured) continue;
    chooser.Took(turn, 1);
    return run;
  }
}

TEST(TierChooser, FirstRunsGoByTheDeclaredWay) {
  TierChooser chooser(2, kAlone);
  for (int64_t run = 0; run < TierChooser::kFirstCheck; ++run) {
    const TierChooser::Turn turn = chooser.Next();
    EXPECT_EQ(turn.way, 0u);
    EXPECT_FALSE(turn.measured);
  }
  EXPECT_TRUE(chooser.Next().measured);
}

TEST(TierChooser, EachWayIsMeasuredAsOftenAndTheFastestTaken) {
  TierChooser chooser(3, 2);
  const std::vector<size_t> measured = Check(
      chooser, [](size_t way) { return way == 1 ? 500 : 1000; }, 3);
  EXPECT_EQ(measured, std::vector<size_t>(3, TierChooser::kPasses * TierChooser::kInRow));
  EXPECT_EQ(chooser.way(), 1u);
}

TEST(TierChooser, ThreadsHaveToGainSomething) {
  TierChooser gains(2, kAlone), equals(2, kAlone);
  Check(gains, [](size_t way) { return way == kTasks ? 900 : 1000; });
  EXPECT_EQ(gains.way(), kTasks);
  Check(equals, [](size_t) { return 1000; });
  EXPECT_EQ(equals.way(), kAlone) << "two threads for nothing";
}

TEST(TierChooser, AnAlternativeOfSimilarSpeedIsNotChosen) {
  TierChooser chooser(2, kAlone);
  Check(chooser, [](size_t way) { return way == kTasks ? 2000 : 1000; });
  ASSERT_EQ(chooser.way(), kAlone);
  Check(chooser, [](size_t way) { return way == kTasks ? 960 : 1000; });
  EXPECT_EQ(chooser.way(), kAlone) << "four in a hundred are noise";
  Check(chooser, [](size_t way) { return way == kTasks ? 700 : 1000; });
  EXPECT_EQ(chooser.way(), kTasks);
}

TEST(TierChooser, OneSlowRunCountsForNothing) {
  TierChooser chooser(2, kAlone);
  int runs = 0;
  Check(chooser, [&runs](size_t way) { return way == kTasks ? (++runs == 3 ? 1'000'000 : 500) : 1000; });
  EXPECT_EQ(chooser.way(), kTasks);
}

TEST(TierChooser, TheFirstRunAfterAChangeIsLeftOut) {
  TierChooser chooser(2, kAlone);
  size_t last = kAlone;
  Check(chooser, [&last](size_t way) {
    const bool cold = way != last;
    last = way;
    return way == kTasks ? (cold ? 1'000'000 : 500) : 1000;
  });
  EXPECT_EQ(chooser.way(), kTasks);
}

TEST(TierChooser, ChecksTakeTheirShareOfTheTimeOnly) {
  for (const int64_t slower : {1, 2, 8, 100}) {
    TierChooser chooser(2, kAlone);
    Check(chooser, [slower](size_t way) { return way == kTasks ? 1000 * slower : 1000; });
    const double lost = static_cast<double>(slower - 1) * TierChooser::kPasses * TierChooser::kInRow;
    const int64_t runs = RunsUntilCheck(chooser);
    EXPECT_GE(runs, TierChooser::kLeastInterval);
    EXPECT_LE(lost / static_cast<double>(runs), TierChooser::kCheckShare * 1.001) << slower;
  }
}

TEST(TierChooser, ChecksThatChangeNothingBecomeRarer) {
  TierChooser chooser(2, kAlone);
  const auto same = [](size_t) { return int64_t{1000}; };
  Check(chooser, same);
  const int64_t first = RunsUntilCheck(chooser);
  Check(chooser, same);
  EXPECT_GT(RunsUntilCheck(chooser), first);
}

TEST(TierChooser, AFailedRunEndsTheCheck) {
  TierChooser chooser(2, kAlone);
  TierChooser::Turn turn = chooser.Next();
  while (!turn.measured) turn = chooser.Next();
  EXPECT_TRUE(chooser.Took(turn, -1));
  EXPECT_EQ(chooser.way(), 0u);
  EXPECT_GE(RunsUntilCheck(chooser), TierChooser::kLeastInterval - 1);
}

TEST(TierChooser, OneRunAtATimeIsMeasured) {
  TierChooser chooser(2, kAlone);
  TierChooser::Turn turn = chooser.Next();
  while (!turn.measured) turn = chooser.Next();
  for (int beside = 0; beside < 10; ++beside) EXPECT_FALSE(chooser.Next().measured);
  chooser.Took(turn, 1000);
  EXPECT_TRUE(chooser.Next().measured);
}

}  // namespace
}  // namespace weir::execute
