#include "core/tensor/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(NumberTest, HalfBits) {
  const struct {
    float value;
    uint16_t bits;
  } kCases[] = {{0.0f, 0x0000},     {-0.0f, 0x8000},    {1.0f, 0x3c00},           {-2.0f, 0xc000},
                {65504.0f, 0x7bff}, {65519.9f, 0x7bff}, {65520.0f, 0x7c00},       {1e9f, 0x7c00},
                {kInf, 0x7c00},     {-kInf, 0xfc00},    {6.1035156e-5f, 0x0400},  {5.9604645e-8f, 0x0001},
                {2.9802322e-8f, 0}, {3.1e-8f, 0x0001},  {1.00048828125f, 0x3c00}, {1.00146484375f, 0x3c02}};
  for (const auto& c : kCases) EXPECT_EQ(FloatToHalf(c.value), c.bits) << c.value;
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(std::nanf("")))));
}

TEST(NumberTest, EveryHalfComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToHalf(value), bits);
  }
}

TEST(NumberTest, EveryBfloat16ComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = Bfloat16ToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToBfloat16(value), bits);
  }
  EXPECT_EQ(FloatToBfloat16(1.00390625f), 0x3f80);  // a tie goes to even
  EXPECT_EQ(FloatToBfloat16(1.01171875f), 0x3f82);
  EXPECT_TRUE(std::isnan(Bfloat16ToFloat(FloatToBfloat16(std::nanf("")))));
}

TEST(NumberTest, Float8) {
  const struct {
    DType type;
    uint8_t bits;
    float value;
  } kCases[] = {{DType::kFloat8E5m2, 0x3c, 1.0f},         {DType::kFloat8E5m2, 0x7b, 57344.0f},
                {DType::kFloat8E5m2, 0x7c, kInf},         {DType::kFloat8E5m2, 0x01, 1.52587890625e-5f},
                {DType::kFloat8E4m3fn, 0x38, 1.0f},       {DType::kFloat8E4m3fn, 0x7e, 448.0f},
                {DType::kFloat8E4m3fn, 0xb8, -1.0f},      {DType::kFloat8E4m3fnuz, 0x40, 1.0f},
                {DType::kFloat8E4m3fnuz, 0x7f, 240.0f},   {DType::kFloat8E4m3b11fnuz, 0x58, 1.0f},
                {DType::kFloat8E4m3b11fnuz, 0x7f, 30.0f}, {DType::kFloat8E5m2fnuz, 0x40, 1.0f},
                {DType::kFloat8E5m2fnuz, 0x7f, 57344.0f}};
  for (const auto& c : kCases) EXPECT_EQ(Float8ToFloat(c.type, c.bits), c.value) << Name(c.type) << " " << int{c.bits};
  EXPECT_TRUE(std::isnan(Float8ToFloat(DType::kFloat8E5m2, 0x7f)));
  EXPECT_TRUE(std::isnan(Float8ToFloat(DType::kFloat8E4m3fn, 0x7f)));
  EXPECT_TRUE(std::isnan(Float8ToFloat(DType::kFloat8E4m3fn, 0xff)));
  EXPECT_TRUE(std::isnan(Float8ToFloat(DType::kFloat8E4m3fnuz, 0x80)));
  EXPECT_TRUE(std::isnan(Float8ToFloat(DType::kFloat, 0)));
}

TEST(NumberTest, ScalarOfEveryNumericTypeReadsBack) {
  for (uint32_t i = 1; i <= static_cast<uint32_t>(DType::kUint2); ++i) {
    const auto type = static_cast<DType>(i);
    const Result<Tensor> one = ScalarFrom(type, 1.0);
    const bool float8 = IsFloating(type) && SizeOf(type) == 1;
    const bool numeric = SizeOf(type) > 0 && !float8;
    ASSERT_EQ(one.ok(), numeric) << Name(type);
    if (!numeric) {
      EXPECT_EQ(one.status().code(), float8 ? Code::kUnimplemented : Code::kInvalidArgument);
      continue;
    }
    EXPECT_EQ(one->dtype(), type);
    EXPECT_EQ(one->shape().rank(), 0);
    EXPECT_EQ(ElementAsDouble(*one, 0), 1.0) << Name(type);
    EXPECT_EQ(ElementAsComplex(*one, 0), std::complex<double>(1.0, 0.0)) << Name(type);
  }
}

TEST(NumberTest, IntegersAreClampedAndTruncated) {
  const struct {
    DType type;
    double value;
    int64_t stored;
  } kCases[] = {{DType::kInt8, 200, 127},
                {DType::kInt8, -200, -128},
                {DType::kUint8, -1, 0},
                {DType::kInt32, 2.9, 2},
                {DType::kInt32, -2.9, -2},
                {DType::kInt64, 1e30, INT64_MAX},
                {DType::kInt64, -1e30, INT64_MIN},
                {DType::kInt16, std::nan(""), 0},
                {DType::kBool, 0.5, 1},
                {DType::kInt4, 100, 7},
                {DType::kUint4, -3, 0},
                {DType::kInt2, -9, -2},
                {DType::kUint2, 9, 3}};
  for (const auto& c : kCases) EXPECT_EQ(ElementAsInt(*ScalarFrom(c.type, c.value), 0), c.stored) << Name(c.type);
}

TEST(NumberTest, NonNumericTypes) {
  EXPECT_TRUE(std::isnan(ElementAsDouble(Tensor::String("1"), 0)));
  EXPECT_EQ(ElementAsInt(Tensor::Scalar(2.0f), 0), 0);
  EXPECT_EQ(ElementAsDouble(Tensor::Scalar<uint64_t>(UINT64_MAX), 0), 18446744073709551615.0);
}

}  // namespace
}  // namespace weir
