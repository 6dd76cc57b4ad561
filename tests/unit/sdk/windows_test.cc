// The geometry of one axis of a sliding window, compared with counting.
#include <gtest/gtest.h>

#include <initializer_list>

#include "sdk/cpp/windows.h"

namespace weir::sdk::test {
namespace {

bool Reads(const WindowAxis& axis, int64_t place, int64_t tap) {
  const int64_t at = place * axis.stride - axis.before + tap * axis.dilation;
  return at >= 0 && at < axis.input;
}

/// Taps and Outputs name the reading taps and places, no more and no fewer.
void ExpectCounted(const WindowAxis& axis) {
  bool inside = true;
  for (int64_t place = 0; place < axis.output; ++place) {
    const Places taps = axis.Taps(place);
    for (int64_t tap = 0; tap < axis.window; ++tap) {
      const Places outputs = axis.Outputs(tap);
      const bool reads = Reads(axis, place, tap);
      EXPECT_EQ(reads, tap >= taps.first && tap < taps.end) << "tap " << tap << " of place " << place;
      EXPECT_EQ(reads, place >= outputs.first && place < outputs.end) << "place " << place << " of tap " << tap;
      inside = inside && reads;
    }
  }
  EXPECT_EQ(axis.Inside(), inside);
}

TEST(WindowAxis, TapsAndPlacesAreThoseThatReadTheInput) {
  int planned = 0;
  for (const int64_t input : {1, 2, 5, 8}) {
    for (const int64_t window : {1, 2, 3, 6}) {
      for (const int64_t stride : {1, 2, 3, 7}) {
        for (const int64_t dilation : {1, 2, 3}) {
          WindowAxis axis{.input = input, .window = window, .stride = stride, .dilation = dilation};
          ASSERT_EQ(axis.Plan(Error(nullptr), true, 0, 0), WEIR_OK);
          EXPECT_EQ(axis.output, (input + stride - 1) / stride);
          EXPECT_TRUE(axis.after - axis.before == 0 || axis.after - axis.before == 1);
          ExpectCounted(axis);
          for (const int64_t before : {0, 1, 4}) {
            const int64_t reach = (window - 1) * dilation + 1, padded = input + before + 2;
            const int32_t code = axis.Plan(Error(nullptr), false, before, 2);
            ASSERT_EQ(code, padded < reach ? WEIR_INVALID_ARGUMENT : WEIR_OK);
            if (code != WEIR_OK) continue;
            EXPECT_EQ(axis.output, (padded - reach) / stride + 1);
            ExpectCounted(axis);
            ++planned;
          }
        }
      }
    }
  }
  EXPECT_GT(planned, 300);
}

TEST(WindowAxis, ExtremeNumbersAreRefusedOrExact) {
  constexpr int64_t kMost = INT64_MAX;
  const auto plan = [](WindowAxis axis, bool same, int64_t before, int64_t after) {
    const int32_t code = axis.Plan(Error(nullptr), same, before, after);
    return code == WEIR_OK ? axis.output : -code;
  };
  EXPECT_EQ(plan({.input = 3, .window = 3, .stride = 0}, true, 0, 0), -WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(plan({.input = 3, .window = 3, .stride = -1}, false, 0, 0), -WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(plan({.input = 3, .window = 3, .dilation = 0}, true, 0, 0), -WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(plan({.input = 3, .window = 3, .dilation = kMost}, true, 0, 0), -WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(plan({.input = 3, .window = kMost}, true, 0, 0), -WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(plan({.input = 3, .window = 2}, false, kMost, 1), -WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(plan({.input = kMost, .window = 1, .stride = kMost}, true, 0, 0), 1);
  EXPECT_EQ(plan({.input = kMost, .window = kMost}, false, 0, 0), 1);
  EXPECT_EQ(plan({.input = 0, .window = 3}, true, 0, 0), 0);
  EXPECT_EQ(plan({.input = 0, .window = 0, .stride = 2}, false, 0, 0), 1);
  WindowAxis wide{.input = 3, .window = kMost / 4};
  ASSERT_EQ(wide.Plan(Error(nullptr), true, 0, 0), WEIR_OK);
  const Places taps = wide.Taps(1);
  EXPECT_EQ(taps.end - taps.first, 3);
}

}  // namespace
}  // namespace weir::sdk::test
