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
struct Held {
  explicit Held(std::atomic<int>* count) : living(count) { ++*living; }
  ~Held() { --*living; }
  std::atomic<int>* living;
};

class RunPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<Held> Take(RunPool<Held>& pool) {
    Result<std::unique_ptr<Held>> taken =
        pool.Acquire([this]() -> Result<std::unique_ptr<Held>> { return std::make_unique<Held>(&living_); });
    EXPECT_TRUE(taken.ok());
    return taken.ok() ? std::move(*taken) : nullptr;
  }
  std::atomic<int> living_{0};
};

TEST_F(RunPoolTest, ALaterRunTakesWhatAnEarlierOneLeft) {
  RunPool<Held> pool;
  std::unique_ptr<Held> first = Take(pool);
  const Held* const address = first.get();
  pool.Release(std::move(first));
  EXPECT_EQ(pool.count(), 1) << "idle ones count";
  EXPECT_EQ(Take(pool).get(), address);
  EXPECT_EQ(living_, 0) << "the caller owns what it takes";
}

TEST_F(RunPoolTest, AtMostSixteenStayIdle) {
  RunPool<Held> pool;
  std::vector<std::unique_ptr<Held>> taken;
  for (int i = 0; i < 20; ++i) taken.push_back(Take(pool));
  EXPECT_EQ(pool.count(), 20);
  for (std::unique_ptr<Held>& one : taken) pool.Release(std::move(one));
  EXPECT_EQ(pool.count(), 16);
  EXPECT_EQ(living_, 16) << "the others are freed";
}

TEST_F(RunPoolTest, IdleOnesAreDroppedOnDemand) {
  RunPool<Held> pool;
  EXPECT_FALSE(pool.DropIdle()) << "there is none";
  std::unique_ptr<Held> used = Take(pool), idle = Take(pool);
  pool.Release(std::move(idle));
  EXPECT_TRUE(pool.DropIdle());
  EXPECT_EQ(living_, 1) << "one that is in use stays";
  EXPECT_EQ(pool.count(), 1);
  pool.Forget();
  EXPECT_EQ(pool.count(), 0) << "an abandoned run does not give it back";
}

TEST_F(RunPoolTest, AFailureToMakeOneCountsNothing) {
  RunPool<Held> pool;
  const auto failed =
      pool.Acquire([]() -> Result<std::unique_ptr<Held>> { return ResourceExhausted("no memory for it"); });
  EXPECT_EQ(failed.status().message(), "no memory for it");
  EXPECT_EQ(pool.count(), 0);
}

TEST_F(RunPoolTest, RunsBesideEachOtherNeverShareOne) {
  RunPool<Held> pool;
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  std::array<std::atomic<const Held*>, 4> in_use{};
  for (size_t t = 0; t < in_use.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        std::unique_ptr<Held> mine = Take(pool);
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
