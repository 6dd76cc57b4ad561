#include "core/base/timed.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace weir {
namespace {

TEST(RunWithin, GivesTheResultOrGivesUp) {
  EXPECT_EQ(RunWithin<int>(std::chrono::seconds(20), [] { return 7; }), 7);
  const auto start = std::chrono::steady_clock::now();
  const auto late = RunWithin<int>(std::chrono::milliseconds(20), [] {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    return 1;
  });
  EXPECT_FALSE(late.has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

TEST(TimedCalls, UseOneThreadUntilOneIsLate) {
  TimedCalls calls;
  const auto id = [&calls] {
    return calls.Run<std::thread::id>(std::chrono::minutes(5), [] { return std::this_thread::get_id(); });
  };
  const auto first = id();
  ASSERT_TRUE(first.has_value());
  EXPECT_NE(*first, std::this_thread::get_id());
  EXPECT_EQ(id(), first);
  std::promise<void> release, released;
  EXPECT_FALSE(calls.Run<int>(std::chrono::milliseconds(1), [&] {
    release.get_future().wait();
    released.set_value();
    return 1;
  }));
  const auto second = id();
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(second, first) << "the first one is still in its call";
  release.set_value();
  released.get_future().wait();
}

}  // namespace
}  // namespace weir
