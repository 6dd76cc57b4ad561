#include "core/base/nearest.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using Names = std::vector<std::string>;

TEST(NearestTest, NearestFirstThenByName) {
  EXPECT_EQ(NearestNames("MatMull", {"MatMul", "BatchMatMul", "Add", "MatMulX"}), (Names{"MatMul", "MatMulX"}));
  EXPECT_EQ(NearestNames("ab", {"ad", "ac", "zzzzz"}), (Names{"ac", "ad"}));
}

TEST(NearestTest, LimitAndDuplicates) {
  EXPECT_EQ(NearestNames("a", {"b", "b", "c", "d", "e"}, 2), (Names{"b", "c"}));
  EXPECT_EQ(NearestNames("a", {}), Names{});
}

TEST(NearestTest, FarNamesAreLeftOut) { EXPECT_EQ(NearestNames("Relu", {"Convolution", "Placeholder"}), Names{}); }

TEST(NearestTest, Hint) {
  EXPECT_EQ(NearestHint("Relu7", {"Relu", "Relu6"}), " (nearest: 'Relu', 'Relu6')");
  EXPECT_EQ(NearestHint("Relu", {"Convolution"}), "");
}

}  // namespace
}  // namespace weir
