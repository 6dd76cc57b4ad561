// Objects that runs leave for later runs.
#include "core/execute/run_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "core/base/errors.h"

namespace weir::execute {
namespace {

/// Counts those that live.
struct Counted {
  explicit Counted(std::atomic<int>* count) : living(count) { ++*living; }
  ~Counted() { --*living; }
  std::atomic<int>* living;
};

class RunPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<Counted> Take(RunPool<Counted>& pool) {
    Result<std::unique_ptr<Counted>> taken =
        pool.Acquire([this]() -> Result<std::unique_ptr<Counted>> { return std::make_unique<Counted>(&living_); });
    EXPECT_TRUE(taken.ok());
    return taken.ok() ? std::move(*taken) : nullptr;
  }
  std::atomic<int> living_{0};
};

TEST_F(RunPoolTest, ALaterRunTakesWhatAnEarlierOneLeft) {
  RunPool<Counted> pool;
  std::unique_ptr<Counted> first = Take(pool);
  const Counted* const address = first.get();
  pool.Release(std::move(first));
  EXPECT_EQ(pool.count(), 1) << "idle ones count";
  EXPECT_EQ(Take(pool).get(), address);
  EXPECT_EQ(living_, 0) << "the caller owns what it takes";
}

TEST_F(RunPoolTest, AtMostSixteenStayIdle) {
  RunPool<Counted> pool;
  std::vector<std::unique_ptr<Counted>> taken;
  for (int i = 0; i < 20; ++i) taken.push_back(Take(pool));
  EXPECT_EQ(pool.count(), 20);
  for (std::unique_ptr<Counted>& one : taken) pool.Release(std::move(one));
  EXPECT_EQ(pool.count(), 16);
  EXPECT_EQ(living_, 16) << "the others are freed";
}

TEST_F(RunPoolTest, IdleOnesAreDroppedOnDemand) {
  RunPool<Counted> pool;
  EXPECT_FALSE(pool.DropIdle()) << "there is none";
  std::unique_ptr<Counted> used = Take(pool), idle = Take(pool);
  pool.Release(std::move(idle));
  EXPECT_TRUE(pool.DropIdle());
  EXPECT_EQ(living_, 1) << "one that is in use stays";
  EXPECT_EQ(pool.count(), 1);
  pool.Forget();
  EXPECT_EQ(pool.count(), 0) << "an abandoned run does not give it back";
}

TEST_F(RunPoolTest, AFailureToMakeOneCountsNothing) {
  RunPool<Counted> pool;
  const auto failed =
      pool.Acquire([]() -> Result<std::unique_ptr<Counted>> { return ResourceExhausted("no memory for it"); });
  EXPECT_EQ(failed.status().message(), "no memory for it");
  EXPECT_EQ(pool.count(), 0);
}

TEST_F(RunPoolTest, RunsBesideEachOtherNeverShareOne) {
  RunPool<Counted> pool;
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  std::array<std::atomic<const Counted*>, 4> in_use{};
  for (size_t t = 0; t < in_use.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        std::unique_ptr<Counted> mine = Take(pool);
        in_use[t] = mine.get();
        for (size_t other = 0; other < in_use.size(); ++other) clashes += other != t && in_use[other] == mine.get();
        in_use[t] = nullptr;
        pool.Release(std::move(mine));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  EXPECT_LE(pool.count(), 4);
  EXPECT_EQ(living_, pool.count());
}

}  // namespace
}  // namespace weir::execute
