#include "core/graph/shape_values.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::graph {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

TEST(ShapeValue, SaysExtentsCountsAndRanks) {
  const Shape shape = Shape::Of({2, 3, 4});
  EXPECT_TRUE(ShapeValue("Shape", 0, shape, DType::kInt32)->SameBits(Tensor::Vector<int32_t>({2, 3, 4})));
  EXPECT_TRUE(ShapeValue("ShapeN", 1, shape, DType::kInt64)->SameBits(Tensor::Vector<int64_t>({2, 3, 4})));
  EXPECT_TRUE(ShapeValue("Size", 0, shape, DType::kInt32)->SameBits(Tensor::Scalar<int32_t>(24)));
  EXPECT_TRUE(ShapeValue("Rank", 0, shape, DType::kInt32)->SameBits(Tensor::Scalar<int32_t>(3)));
  EXPECT_EQ(ShapeValue("Shape", 0, Shape(), DType::kInt32)->shape(), Shape::Of({0}));
}

TEST(ShapeValue, Int32HoldsLessThanItsLargest) {
  EXPECT_TRUE(
      ShapeValue("Size", 0, Shape::Of({kInt32Max - 1}), DType::kInt32)->SameBits(Tensor::Scalar<int32_t>(2147483646)));
  for (const int64_t extent : {kInt32Max, kInt32Max + 1}) {
    const Result<Tensor> size = ShapeValue("Size", 0, Shape::Of({extent}), DType::kInt32);
    ASSERT_FALSE(size.ok());
    EXPECT_EQ(size.status().ToString(),
              "INVALID_ARGUMENT: Number of elements was larger than representable by 32-bit output type");
    const Result<Tensor> dims = ShapeValue("Shape", 0, Shape::Of({1, extent}), DType::kInt32);
    ASSERT_FALSE(dims.ok());
    EXPECT_EQ(dims.status().message(), "Shape output type is 32-bit  but dim 1 is " + std::to_string(extent));
    const Result<Tensor> many = ShapeValue("ShapeN", 2, Shape::Of({extent}), DType::kInt32);
    ASSERT_FALSE(many.ok());
    EXPECT_EQ(many.status().message(), "ShapeN output type is 32-bit but shape 2 dim 0 is " + std::to_string(extent));
  }
  EXPECT_TRUE(
      ShapeValue("Size", 0, Shape::Of({kInt32Max, 4}), DType::kInt64)->SameBits(Tensor::Scalar<int64_t>(8589934588)));
}

}  // namespace
}  // namespace weir::graph
