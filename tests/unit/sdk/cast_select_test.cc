// Cast, Select, AddN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/sdk/plugin_harness.h"

namespace weir::sdk::test {
namespace {

constexpr float kNaNf = std::numeric_limits<float>::quiet_NaN();
constexpr float kInff = std::numeric_limits<float>::infinity();

Outcome Cast(const Value& x, uint32_t to, Attributes attributes = {}) {
  attributes["SrcT"] = Type(x.dtype);
  attributes["DstT"] = Type(to);
  return Kernels().Call("Cast", attributes, {x}, {Blank(to, x.dims)});
}

TEST(Cast, SmallNumbersSurviveBetweenAllTypes) {
  const uint32_t types[] = {WEIR_FLOAT32,    WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_COMPLEX64,
                            WEIR_COMPLEX128, WEIR_INT8,    WEIR_INT16,   WEIR_INT32,    WEIR_INT64,
                            WEIR_UINT8,      WEIR_UINT16,  WEIR_UINT32,  WEIR_UINT64,   WEIR_BOOL};
  const std::vector<double> numbers = {0, 1, 2, 3, 100, 127}, truths = {0, 1, 1, 1, 1, 1};
  int pairs = 0;
  for (const uint32_t from : types) {
    for (const uint32_t to : types) {
      const Outcome outcome = Cast(AsType(numbers, {6}, from), to);
      if (outcome.code == WEIR_NOT_FOUND) continue;  // short element type lists
      ASSERT_EQ(outcome.code, WEIR_OK) << from << " to " << to << ": " << outcome.message;
      EXPECT_EQ(Numbers(outcome.outputs[0]), from == WEIR_BOOL || to == WEIR_BOOL ? truths : numbers)
          << from << " to " << to;
      ++pairs;
    }
  }
  EXPECT_GE(pairs, 25);
}

/// The same for every float type whose numbers these are.
void ExpectCasts(const std::vector<double>& x, uint32_t to, const std::vector<uint64_t>& bits) {
  const std::vector<int64_t> dims = {static_cast<int64_t>(x.size())};
  for (const uint32_t from : {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16}) {
    const Outcome outcome = Cast(AsType(x, dims, from), to);
    if (outcome.code == WEIR_NOT_FOUND) continue;  // short element type lists
    ASSERT_EQ(outcome.code, WEIR_OK) << outcome.message;
    std::vector<uint64_t> got;
    for (size_t i = 0; i < x.size(); ++i) {
      const Value& y = outcome.outputs[0];
      got.push_back(to == WEIR_INT32    ? static_cast<uint64_t>(static_cast<int64_t>(Elements<int32_t>(y)[i]))
                    : to == WEIR_INT64  ? static_cast<uint64_t>(Elements<int64_t>(y)[i])
                    : to == WEIR_UINT32 ? Elements<uint32_t>(y)[i]
                    : to == WEIR_UINT16 ? Elements<uint16_t>(y)[i]
                    : to == WEIR_UINT8  ? Elements<uint8_t>(y)[i]
                                        : Elements<uint64_t>(y)[i]);
    }
    EXPECT_EQ(got, bits) << from << " to " << to;
  }
}

/// TensorFlow 2.17's answers on x86, as far as they do not depend on where in a tensor the element is.
TEST(Cast, FloatsThatIntegersCannotHoldAreAsInTensorFlow) {
  const std::vector<double> x = {1.5, -1.5, kInff, -kInff, kNaNf};
  const auto wide = [](int64_t v) { return static_cast<uint64_t>(v); };
  constexpr uint64_t kTop32 = uint64_t{1} << 31, kTop64 = uint64_t{1} << 63;
  constexpr int64_t kLeast32 = std::numeric_limits<int32_t>::min(), kLeast64 = std::numeric_limits<int64_t>::min();
  ExpectCasts(x, WEIR_INT32, {1, wide(-1), wide(kLeast32), wide(kLeast32), wide(kLeast32)});
  ExpectCasts(x, WEIR_INT64, {1, wide(-1), wide(kLeast64), wide(kLeast64), wide(kLeast64)});
  ExpectCasts(x, WEIR_UINT32, {1, 0xffffffff, kTop32, kTop32, kTop32});
  ExpectCasts(x, WEIR_UINT64, {1, wide(-1), kTop64, kTop64, kTop64});
  ExpectCasts({1.5, kInff, -kInff, kNaNf}, WEIR_UINT8, {1, 0, 0, 0});
  ExpectCasts({1.5, kInff, -kInff, kNaNf}, WEIR_UINT16, {1, 0, 0, 0});

  const Value large = Of<double>({8}, {3e9, -3e9, 5e9, 1.8e19, -1e19, 3.7e19, 2147483648.0, 9.3e18});
  EXPECT_EQ(Elements<int32_t>(Cast(large, WEIR_INT32).outputs[0]), std::vector<int32_t>(8, kLeast32));
  EXPECT_EQ(
      Elements<int64_t>(Cast(large, WEIR_INT64).outputs[0]),
      (std::vector<int64_t>{3000000000, -3000000000, 5000000000, kLeast64, kLeast64, kLeast64, 2147483648, kLeast64}));
  EXPECT_EQ(Elements<bool>(Cast(large, WEIR_BOOL).outputs[0]), std::vector<bool>(8, true));
  if (Kernels().Find("Cast", {{"SrcT", Type(WEIR_UINT64)}}) == nullptr) GTEST_SKIP() << "short element type lists";
  EXPECT_EQ(Elements<uint64_t>(Cast(large, WEIR_UINT64).outputs[0]),
            (std::vector<uint64_t>{3000000000, wide(-3000000000), 5000000000, 18000000000000000000u, kTop64, kTop64,
                                   2147483648, 9300000000000000000u}));
  EXPECT_EQ(Elements<uint16_t>(Cast(large, WEIR_UINT16).outputs[0]), std::vector<uint16_t>(8, 0));
  EXPECT_EQ(Elements<uint8_t>(Cast(large, WEIR_UINT8).outputs[0]), std::vector<uint8_t>(8, 0));
}

TEST(Cast, NarrowIntegersSaturate) {
  if (Kernels().Find("Cast", {{"DstT", Type(WEIR_INT8)}}) == nullptr) GTEST_SKIP() << "short element type lists";
  const Value x = Of<float>({4}, {300.7f, -200.0f, 40000.0f, -40000.0f});
  EXPECT_EQ(Elements<int8_t>(Cast(x, WEIR_INT8).outputs[0]), (std::vector<int8_t>{127, -128, 127, -128}));
  EXPECT_EQ(Elements<int16_t>(Cast(x, WEIR_INT16).outputs[0]), (std::vector<int16_t>{300, -200, 32767, -32768}));
  EXPECT_EQ(Elements<uint8_t>(Cast(x, WEIR_UINT8).outputs[0]), (std::vector<uint8_t>{255, 0, 255, 0}));
  EXPECT_EQ(Elements<uint16_t>(Cast(x, WEIR_UINT16).outputs[0]), (std::vector<uint16_t>{300, 0, 40000, 0}));
}

TEST(Cast, IntegersWrapAndLargeOnesKeepTheirBits) {
  const Value x = Of<int64_t>({3}, {(int64_t{1} << 32) + 5, -1, 9007199254740993});
  EXPECT_EQ(Elements<int32_t>(Cast(x, WEIR_INT32).outputs[0]), (std::vector<int32_t>{5, -1, 1}));
  if (Kernels().Find("Cast", {{"SrcT", Type(WEIR_UINT64)}}) == nullptr) GTEST_SKIP() << "short element type lists";
  const Value u = Of<uint64_t>({2}, {std::numeric_limits<uint64_t>::max(), 9007199254740993u});
  EXPECT_EQ(Elements<int64_t>(Cast(u, WEIR_INT64).outputs[0]), (std::vector<int64_t>{-1, 9007199254740993}));
  EXPECT_EQ(Elements<uint8_t>(Cast(x, WEIR_UINT8).outputs[0]), (std::vector<uint8_t>{5, 255, 1}));
  EXPECT_EQ(Elements<double>(Cast(u, WEIR_FLOAT64).outputs[0])[0], 18446744073709551616.0);
}

TEST(Cast, TruncateCutsTheMantissa) {
  if (Kernels().Find("Cast", {{"SrcT", Type(WEIR_BFLOAT16)}}) == nullptr) GTEST_SKIP() << "short element type lists";
  const Value x = Of<float>({1}, {1.0f + 0x1.8p-7f});
  EXPECT_EQ(static_cast<float>(Cast(x, WEIR_BFLOAT16).outputs[0].data<bfloat16>()[0]), 1.0f + 0x1p-6f);
  EXPECT_EQ(static_cast<float>(Cast(x, WEIR_BFLOAT16, {{"Truncate", Flag(true)}}).outputs[0].data<bfloat16>()[0]),
            1.0f + 0x1p-7f);
}

TEST(Cast, NarrowTypesAndWhatTheyRefuse) {
  if (Kernels().Find("Cast", {{"SrcT", Type(WEIR_INT4)}}) == nullptr) GTEST_SKIP() << "short element type lists";
  const Outcome to_int4 = Cast(Of<int32_t>({3}, {7, -8, 9}), WEIR_INT4);
  ASSERT_EQ(to_int4.code, WEIR_OK);
  EXPECT_EQ(Elements<int32_t>(Cast(to_int4.outputs[0], WEIR_INT32).outputs[0]), (std::vector<int32_t>{7, -8, -7}));
  EXPECT_EQ(Cast(Of<float>({1}, {1}), WEIR_INT4).code, WEIR_UNIMPLEMENTED);
  EXPECT_EQ(Cast(Of<complex64>({1}, {complex64(1, 0)}), WEIR_FLOAT8_E5M2).code, WEIR_UNIMPLEMENTED);
  EXPECT_EQ(static_cast<float>(Cast(Of<float>({1}, {3.0f}), WEIR_FLOAT8_E5M2).outputs[0].data<float8_e5m2>()[0]), 3.0f);
}

TEST(Cast, LongTensorsInTiles) {
  std::vector<int32_t> x(1500);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(i) - 700;
  const Outcome outcome = Cast(Of<int32_t>({1500}, x), WEIR_FLOAT64);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(outcome.outputs[0].data<double>()[i], x[i]);
}

Outcome Choose(const char* op, const Value& c, const Value& t, const Value& e, std::vector<int64_t> dims,
               bool in_place = false) {
  return Kernels().Call(op, {{"T", Type(t.dtype)}}, {c, t, e}, {Blank(t.dtype, std::move(dims))},
                        {.in_place = in_place});
}

TEST(Select, ByElementByRowAndAsAWhole) {
  const Value t = Of<float>({2, 2}, {1, 2, 3, 4}), e = Of<float>({2, 2}, {5, 6, 7, 8});
  for (const bool in_place : {false, true}) {
    EXPECT_EQ(Elements<float>(Choose("Select", Of<boolean>({2, 2}, {1, 0, 0, 1}), t, e, {2, 2}, in_place).outputs[0]),
              (std::vector<float>{1, 6, 7, 4}));
    EXPECT_EQ(Elements<float>(Choose("Select", Of<boolean>({2}, {0, 1}), t, e, {2, 2}, in_place).outputs[0]),
              (std::vector<float>{5, 6, 3, 4}));
    EXPECT_EQ(Elements<float>(Choose("Select", Scalar<boolean>(true), t, e, {2, 2}, in_place).outputs[0]),
              (std::vector<float>{1, 2, 3, 4}));
  }
  EXPECT_EQ(Choose("Select", Of<boolean>({3}, {0, 1, 1}), t, e, {2, 2}).code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(Choose("Select", Scalar<boolean>(true), t, Of<float>({2}, {1, 2}), {2, 2}).code, WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(Choose("Select", Of<boolean>({0}, {}), Of<float>({0, 2}, {}), Of<float>({0, 2}, {}), {0, 2}).code, WEIR_OK);
}

TEST(SelectV2, BroadcastsAllThree) {
  const Value c = Of<boolean>({2, 1}, {1, 0}), t = Of<int64_t>({3}, {1, 2, 3}), e = Scalar<int64_t>(9);
  EXPECT_EQ(Elements<int64_t>(Choose("SelectV2", c, t, e, {2, 3}).outputs[0]),
            (std::vector<int64_t>{1, 2, 3, 9, 9, 9}));
  EXPECT_EQ(Elements<int64_t>(Choose("SelectV2", Of<boolean>({3}, {1, 0, 1}), t, t, {3}, true).outputs[0]),
            (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(Choose("SelectV2", Of<boolean>({2}, {1, 0}), t, e, {3}).code, WEIR_INVALID_ARGUMENT);
}

TEST(AddN, SumsListsInPlaceToo) {
  for (const uint32_t dtype : {WEIR_FLOAT32, WEIR_INT32, WEIR_FLOAT16}) {
    std::vector<double> numbers(1500, 2);
    const Value x = AsType(numbers, {1500}, dtype);
    for (const bool in_place : {false, true}) {
      const Outcome outcome = Kernels().Call("AddN", {}, {x, x, x}, {Blank(dtype, {1500})}, {.in_place = in_place});
      if (outcome.code == WEIR_NOT_FOUND) continue;
      EXPECT_EQ(Numbers(outcome.outputs[0]), std::vector<double>(1500, 6)) << dtype;
    }
  }
  const Outcome bad =
      Kernels().Call("AddN", {}, {Of<float>({2}, {1, 2}), Of<float>({3}, {1, 2, 3})}, {Blank(WEIR_FLOAT32, {2})});
  EXPECT_EQ(bad.code, WEIR_INVALID_ARGUMENT);
  EXPECT_NE(bad.message.find("Input 0: [2] != input 1: [3]"), std::string::npos) << bad.message;
}

}  // namespace
}  // namespace weir::sdk::test
