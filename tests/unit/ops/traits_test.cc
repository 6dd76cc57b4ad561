// The traits of each op of the catalogue, as a text in which reviewers see changes.
#include <gtest/gtest.h>

#include <limits>

#include "core/ops/declare_all.h"
#include "tests/support/expected_text.h"
#include "tests/unit/ops/sketch.h"

namespace weir::ops::test {
namespace {

TEST(Traits, AreThoseOfTheFile) {
  std::string text =
      "# Who runs each op and its traits (op::TraitsText), of ops that are more than a kernel; WEIR_UPDATE_EXPECTED=1\n"
      "# rewrites this file.\n";
  for (const op::OpDef* def : Ops().All()) {
    if (const std::string traits = op::TraitsText(*def); traits != "kernel") text += def->name + ": " + traits + "\n";
  }
  testing::ExpectFileText(WEIR_TEST_TABLES "/traits.txt", text);
}

Result<Tensor> Answer(std::string_view op, const PartialShape& shape, int index, DType type) {
  return Ops().Find(op)->traits.shape_query(shape, index, type);
}

TEST(ShapeQueries, SayExtentsCountsAndRanks) {
  const PartialShape shape = Shape::Of({2, 3, 4});
  EXPECT_TRUE(Answer("Shape", shape, 0, DType::kInt32)->SameBits(Tensor::Vector<int32_t>({2, 3, 4})));
  EXPECT_TRUE(Answer("ShapeN", shape, 1, DType::kInt64)->SameBits(Tensor::Vector<int64_t>({2, 3, 4})));
  EXPECT_TRUE(Answer("Size", shape, 0, DType::kInt32)->SameBits(Tensor::Scalar<int32_t>(24)));
  EXPECT_TRUE(Answer("Rank", shape, 0, DType::kInt32)->SameBits(Tensor::Scalar<int32_t>(3)));
  EXPECT_EQ(Answer("Shape", Shape(), 0, DType::kInt32)->shape(), Shape::Of({0}));
}

TEST(ShapeQueries, UseTheKnownPartsOfAShape) {
  const PartialShape shape = {-1, 3};
  EXPECT_TRUE(Answer("Rank", shape, 0, DType::kInt32)->SameBits(Tensor::Scalar<int32_t>(2)));
  for (const char* op : {"Shape", "ShapeN", "Size"}) EXPECT_FALSE(Answer(op, shape, 0, DType::kInt32)->valid()) << op;
  EXPECT_FALSE(Answer("Rank", PartialShape(), 0, DType::kInt32)->valid());
}

TEST(ShapeQueries, Int32HoldsLessThanItsLargest) {
  constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(
      Answer("Size", Shape::Of({kInt32Max - 1}), 0, DType::kInt32)->SameBits(Tensor::Scalar<int32_t>(2147483646)));
  for (const int64_t extent : {kInt32Max, kInt32Max + 1}) {
    const std::string said = std::to_string(extent);
    EXPECT_EQ(Answer("Size", Shape::Of({extent}), 0, DType::kInt32).status().ToString(),
              "INVALID_ARGUMENT: Number of elements was larger than representable by 32-bit output type");
    EXPECT_EQ(Answer("Shape", Shape::Of({1, extent}), 0, DType::kInt32).status().message(),
              "Shape output type is 32-bit  but dim 1 is " + said);
    EXPECT_EQ(Answer("ShapeN", Shape::Of({extent}), 2, DType::kInt32).status().message(),
              "ShapeN output type is 32-bit but shape 2 dim 0 is " + said);
  }
  EXPECT_TRUE(
      Answer("Size", Shape::Of({kInt32Max, 4}), 0, DType::kInt64)->SameBits(Tensor::Scalar<int64_t>(8589934588)));
}

}  // namespace
}  // namespace weir::ops::test
