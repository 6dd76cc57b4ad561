#include "core/base/timed.h"

#include <gtest/gtest.h>

#include <chrono>
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

}  // namespace
}  // namespace weir
