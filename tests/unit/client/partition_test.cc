// Partitioners, and the parts of a variable.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "core/client/variables/partitioners.h"

namespace weir {
namespace {

std::vector<int64_t> Asked(const Partitioner& partitioner, const PartialShape& shape) {
  const Result<std::vector<int64_t>> parts = CallPartitioner(partitioner, shape, DType::kFloat);
  return parts.ok() ? *parts : std::vector<int64_t>();
}

std::string Refused(const Partitioner& partitioner, const PartialShape& shape) {
  return CallPartitioner(partitioner, shape, DType::kFloat).status().message();
}

Partitioner Says(std::vector<int64_t> answer) {
  return [answer](const Shape&, DType) { return answer; };
}

TEST(Partition, F370_partitioners_count_parts) {
  const PartialShape matrix = PartialShape::Of({4, 2});
  EXPECT_EQ(Asked(FixedSizePartitioner(3), matrix), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(Asked(FixedSizePartitioner(3, 1), matrix), (std::vector<int64_t>{1, 2}));  // at most the number of rows
  const PartialShape row = PartialShape::Of({8});
  EXPECT_EQ(Asked(VariableAxisSizePartitioner(16), row), std::vector<int64_t>{2});
  EXPECT_EQ(Asked(VariableAxisSizePartitioner(1), row), std::vector<int64_t>{8});
  EXPECT_EQ(Asked(VariableAxisSizePartitioner(4, 0, 16, 3), row), std::vector<int64_t>{3});
  EXPECT_EQ(Asked(MinMaxVariablePartitioner(4, 0, 64), PartialShape::Of({64})), std::vector<int64_t>{4});
  EXPECT_EQ(Asked(MinMaxVariablePartitioner(9, 0, 64), PartialShape::Of({64})), std::vector<int64_t>{4});
  EXPECT_EQ(Asked(MinMaxVariablePartitioner(9, 0, 1 << 20), PartialShape::Of({64})), std::vector<int64_t>{1});
  EXPECT_EQ(Asked(MinMaxVariablePartitioner(9, 0, 64), PartialShape::Of({int64_t{1} << 62})), std::vector<int64_t>{9});
}

TEST(Partition, F370_bad_answers_are_refused) {
  const PartialShape square = PartialShape::Of({4, 4});
  EXPECT_EQ(Refused(Says({2, 2}), square),
            "Can only slice a variable along one dimension: shape: (4, 4), partitioning: [2, 2]");
  EXPECT_EQ(Refused(Says({1, 1}), PartialShape::Of({2})),
            "Partitioner returned a partition list that does not match the Variable's rank: [1, 1] vs. (2,)");
  EXPECT_EQ(Refused(Says({0, 1}), square), "Partitioner returned zero partitions for some axes: [0, 1]");
  EXPECT_EQ(Refused(Says({}), PartialShape::Of({})), "A partitioned Variable must have rank at least 1, shape: ()");
  EXPECT_EQ(Refused(Says({1}), PartialShape::Of({-1})),
            "Shape of a new partitioned variable must be fully defined, but instead was (?,).");
  EXPECT_NE(Refused(Says({int64_t{1} << 40, 1}), square), "");
  EXPECT_NE(Refused(FixedSizePartitioner(2, 5), square), "");
}

TEST(Partition, F370_the_first_parts_take_the_rest) {
  const std::vector<int64_t> three = {3, 1};
  EXPECT_EQ(CutInto(Shape::Of({4, 2}), three),
            (std::vector<Part>{{{0, 0}, {2, 2}}, {{2, 0}, {1, 2}}, {{3, 0}, {1, 2}}}));
  const std::vector<int64_t> two = {2};
  EXPECT_EQ(CutInto(Shape::Of({5}), two), (std::vector<Part>{{{0}, {3}}, {{3}, {2}}}));
  const std::vector<int64_t> whole = {1, 1};
  EXPECT_EQ(CutInto(Shape::Of({4, 2}), whole), (std::vector<Part>{{{0, 0}, {4, 2}}}));
}

}  // namespace
}  // namespace weir
