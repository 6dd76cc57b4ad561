// Narrow floating-point types compared with their definitions.
#include "sdk/cpp/types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace weir::sdk {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Half, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    half value;
    value.bits = static_cast<uint16_t>(bits);
    const float wide = value;
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(half(wide)))) << bits;
    } else {
      ASSERT_EQ(half(wide).bits, bits);
    }
  }
}

TEST(Half, RoundsToNearestEvenAndOverflowsToInfinity) {
  EXPECT_EQ(half(1.0f + 0x1p-11f).bits, half(1.0f).bits);          // tie, down to even
  EXPECT_EQ(half(1.0f + 3 * 0x1p-11f).bits, half(1.0f).bits + 2);  // tie, up to even
  EXPECT_EQ(half(1.0f + 0x1.1p-11f).bits, half(1.0f).bits + 1);    // above the tie
  EXPECT_EQ(static_cast<float>(half(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(half(65519.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(half(65520.0f)), kInf);
  EXPECT_EQ(static_cast<float>(half(-1e30f)), -kInf);
  EXPECT_EQ(static_cast<float>(half(0x1p-24f)), 0x1p-24f);  // smallest subnormal
  EXPECT_EQ(static_cast<float>(half(0x1p-25f)), 0.0f);      // tie, down to zero
  EXPECT_EQ(half(-0.0f).bits, 0x8000);
}

TEST(Half, TilesConvertAsSingleElementsDo) {
  std::vector<half> narrow(77);
  std::vector<float> wide(narrow.size()), back(narrow.size());
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] = std::ldexp(1.2345f + static_cast<float>(i), static_cast<int>(i % 40) - 25);
  Narrow(wide.data(), narrow.data(), static_cast<int64_t>(wide.size()));
  Widen(narrow.data(), back.data(), static_cast<int64_t>(wide.size()));
  for (size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(narrow[i].bits, half(wide[i]).bits) << wide[i];
    EXPECT_EQ(back[i], static_cast<float>(narrow[i]));
  }
}

TEST(Bfloat16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(bfloat16(1.0f + 0x1p-8f).bits, bfloat16(1.0f).bits);
  EXPECT_EQ(bfloat16(1.0f + 3 * 0x1p-8f).bits, bfloat16(1.0f).bits + 2);
  EXPECT_EQ(static_cast<float>(bfloat16(std::numeric_limits<float>::max())), kInf);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_EQ(static_cast<float>(bfloat16(-kInf)), -kInf);
}

template <class F>
void EveryCodeSurvives() {
  for (int bits = 0; bits < 256; ++bits) {
    F value;
    value.bits = static_cast<uint8_t>(bits);
    const float wide = value;
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(F(wide))));
    } else {
      EXPECT_EQ(F(wide).bits, bits);
    }
  }
}

TEST(Float8, EveryCodeSurvivesTheWayThroughFloat) {
  EveryCodeSurvives<float8_e5m2>();
  EveryCodeSurvives<float8_e4m3fn>();
}

TEST(Float8, LimitsAreThoseOfTheFormats) {
  EXPECT_EQ(static_cast<float>(float8_e5m2(57344.0f)), 57344.0f);
  EXPECT_EQ(static_cast<float>(float8_e5m2(1e9f)), kInf);
  EXPECT_EQ(static_cast<float>(float8_e4m3fn(448.0f)), 448.0f);
  EXPECT_TRUE(std::isnan(static_cast<float>(float8_e4m3fn(1e9f))));  // it has no infinity
  EXPECT_EQ(static_cast<float>(float8_e4m3fn(0x1p-9f)), 0x1p-9f);
}

TEST(DTypes, SizesOfElements) {
  EXPECT_EQ(SizeOf(WEIR_COMPLEX128), 16u);
  EXPECT_EQ(SizeOf(WEIR_BFLOAT16), 2u);
  EXPECT_EQ(SizeOf(WEIR_QUINT8), 1u);
  EXPECT_EQ(SizeOf(WEIR_STRING), 0u);
  EXPECT_EQ(SizeOf(1000), 0u);
}

}  // namespace
}  // namespace weir::sdk
