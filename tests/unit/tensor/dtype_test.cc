#include "core/tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace weir {
namespace {

constexpr uint32_t kLast = static_cast<uint32_t>(DType::kUint2);

TEST(DTypeTest, NamesAndSizes) {
  const struct {
    DType type;
    const char* name;
    const char* numpy;
    const char* proto;
    size_t size;
  } kCases[] = {
      {DType::kFloat, "float", "float32", "DT_FLOAT", 4},
      {DType::kDouble, "double", "float64", "DT_DOUBLE", 8},
      {DType::kHalf, "half", "float16", "DT_HALF", 2},
      {DType::kBfloat16, "bfloat16", "bfloat16", "DT_BFLOAT16", 2},
      {DType::kInt32, "int32", "int32", "DT_INT32", 4},
      {DType::kUint64, "uint64", "uint64", "DT_UINT64", 8},
      {DType::kBool, "bool", "bool", "DT_BOOL", 1},
      {DType::kString, "string", "string", "DT_STRING", 0},
      {DType::kResource, "resource", "resource", "DT_RESOURCE", 0},
      {DType::kVariant, "variant", "variant", "DT_VARIANT", 0},
      {DType::kComplex64, "complex64", "complex64", "DT_COMPLEX64", 8},
      {DType::kComplex128, "complex128", "complex128", "DT_COMPLEX128", 16},
      {DType::kQint8, "qint8", "qint8", "DT_QINT8", 1},
      {DType::kQuint16, "quint16", "quint16", "DT_QUINT16", 2},
      {DType::kQint32, "qint32", "qint32", "DT_QINT32", 4},
      {DType::kFloat8E4m3b11fnuz, "float8_e4m3b11fnuz", "float8_e4m3b11fnuz", "DT_FLOAT8_E4M3B11FNUZ", 1},
      {DType::kInt4, "int4", "int4", "DT_INT4", 1},
      {RefType(DType::kFloat), "float_ref", "float32_ref", "DT_FLOAT_REF", 4},
      {RefType(DType::kInt32), "int32_ref", "int32_ref", "DT_INT32_REF", 4},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Name(c.type), c.name);
    EXPECT_EQ(NumpyName(c.type), c.numpy);
    EXPECT_EQ(EnumName(c.type), c.proto);
    EXPECT_EQ(SizeOf(c.type), c.size) << c.name;
    EXPECT_TRUE(IsKnown(c.type)) << c.name;
  }
}

TEST(DTypeTest, EverySpellingParsesBack) {
  for (uint32_t i = 1; i <= kLast; ++i) {
    for (const DType t : {static_cast<DType>(i), static_cast<DType>(i + 100)}) {
      EXPECT_EQ(ParseDType(Name(t)), t) << Name(t);
      EXPECT_EQ(ParseDType(NumpyName(t)), t) << NumpyName(t);
      EXPECT_EQ(ParseDType(EnumName(t)), t) << EnumName(t);
    }
  }
}

TEST(DTypeTest, BadSpellings) {
  for (const char* text : {"", "floaty", "FLOAT", "DT_", "DT_float", "DT_INVALID", "INVALID", "invalid", "_ref",
                           "float_ref_ref", "float ", "DT_99", "int", "type"}) {
    EXPECT_EQ(ParseDType(text), std::nullopt) << text;
  }
}

TEST(DTypeTest, UnknownNumbers) {
  for (const uint32_t number : {33u, 99u, 100u, 133u, 201u, 4000000000u}) {
    const auto t = static_cast<DType>(number);
    EXPECT_FALSE(IsKnown(t)) << number;
    EXPECT_EQ(SizeOf(t), 0u);
    EXPECT_FALSE(IsFloating(t) || IsComplex(t) || IsInteger(t) || IsQuantized(t));
    EXPECT_EQ(Name(t), "DT_" + std::to_string(number));
  }
  EXPECT_FALSE(IsKnown(DType::kInvalid));
  EXPECT_EQ(EnumName(DType::kInvalid), "DT_INVALID");
}

TEST(DTypeTest, KindsAreDisjoint) {
  for (uint32_t i = 1; i <= kLast; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_LE(IsFloating(t) + IsComplex(t) + IsInteger(t) + IsQuantized(t), 1) << Name(t);
  }
  EXPECT_TRUE(IsTrainable(DType::kHalf) && IsTrainable(DType::kComplex64) && IsTrainable(DType::kFloat));
  EXPECT_FALSE(IsTrainable(DType::kInt32) || IsTrainable(DType::kBool) || IsTrainable(DType::kResource));
}

TEST(DTypeTest, SetsAndReferences) {
  constexpr DTypeSet set = Bit(DType::kFloat) | Bit(DType::kInt64);
  EXPECT_TRUE(Contains(set, DType::kInt64));
  EXPECT_FALSE(Contains(set, DType::kInt32));
  EXPECT_FALSE(Contains(kAnyType, RefType(DType::kFloat)));
  EXPECT_EQ(BaseType(RefType(DType::kInt8)), DType::kInt8);
  EXPECT_EQ(RefType(RefType(DType::kInt8)), RefType(DType::kInt8));
}

}  // namespace
}  // namespace weir
