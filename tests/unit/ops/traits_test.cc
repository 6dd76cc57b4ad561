// The traits of each op of the catalogue, as a text in which reviewers see changes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/op/same_bits.h"
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

TEST(Traits, F323_what_each_op_promises_is_that_of_the_file) {
  std::string text =
      "# When two runs of an op give equal bits (op::SameBits), of ops for which equal inputs are not enough;\n"
      "# WEIR_UPDATE_EXPECTED=1 rewrites this file.\n";
  for (const op::OpDef* def : Ops().All()) {
    const op::SameBits promise = op::SameBitsOf(*def);
    if (promise != op::SameBits::kAlways) text += fmt::format("{}: {}\n", def->name, op::Name(promise));
  }
  testing::ExpectFileText(WEIR_TEST_TABLES "/same_bits.txt", text);
}

TEST(Traits, F323_the_promise_follows_from_the_record) {
  const auto of = [](std::string_view op) { return op::SameBitsOf(*Ops().Find(op)); };
  for (const char* op : {"AddV2", "MatMul", "Sum", "StatelessRandomUniform", "CheckNumerics"}) {
    EXPECT_EQ(of(op), op::SameBits::kAlways) << op;
  }
  for (const char* op : {"RandomUniform", "RandomShuffle", "Multinomial", "RandomShuffleQueueV2"}) {
    EXPECT_EQ(of(op), op::SameBits::kSeeds) << op;
  }
  for (const char* op : {"ReadVariableOp", "ScatterAdd", "QueueDequeueV2", "ResourceApplyAdam", "RngReadAndSkip"}) {
    EXPECT_EQ(of(op), Ops().Find(op)->MayDiffer() ? op::SameBits::kState : op::SameBits::kAlways) << op;
  }
  for (const char* op : {"If", "While", "PartitionedCall"}) EXPECT_EQ(of(op), op::SameBits::kFunctions) << op;
  for (const char* op : {"ReadFile", "RestoreV2", "Timestamp"}) EXPECT_EQ(of(op), op::SameBits::kNever) << op;
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
