#include "core/tensor/shape.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/tensor/common_shape.h"
#include "core/tensor/tensor.h"

namespace weir {
namespace {

constexpr int64_t kBig = int64_t{1} << 62;
using List = std::vector<int64_t>;

TEST(DimsTest, CopiesAndMovesShortAndLong) {
  for (const List& list : {List{}, List{1, 2}, List{1, 2, 3, 4}, List{1, 2, 3, 4, 5}, List(254, 7)}) {
    Dims a{std::span<const int64_t>(list)};
    const Dims copy = a;
    Dims moved = std::move(a);
    EXPECT_EQ(List(copy.span().begin(), copy.span().end()), list);
    EXPECT_EQ(List(moved.span().begin(), moved.span().end()), list);
    EXPECT_EQ(a.size(), 0);  // NOLINT(bugprone-use-after-move): a moved-from list is empty
    a = moved;
    Dims& self = a;
    a = std::move(self);
    EXPECT_EQ(List(a.span().begin(), a.span().end()), list);
  }
}

TEST(ShapeTest, ScalarByDefault) {
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().ToString(), "[]");
}

TEST(ShapeTest, Good) {
  const struct {
    List dims;
    int64_t elements;
    const char* text;
  } kCases[] = {{{}, 1, "[]"},
                {{3}, 3, "[3]"},
                {{2, 3}, 6, "[2,3]"},
                {{2, 0, 3}, 0, "[2,0,3]"},
                {{1, 1, 1, 1, 5}, 5, "[1,1,1,1,5]"},
                {{0, kBig}, 0, "[0,4611686018427387904]"},
                {{INT64_MAX}, INT64_MAX, "[9223372036854775807]"}};
  for (const auto& c : kCases) {
    const Result<Shape> shape = Shape::Make(c.dims);
    ASSERT_TRUE(shape.ok()) << c.text;
    EXPECT_EQ(shape->elements(), c.elements);
    EXPECT_EQ(shape->ToString(), c.text);
    EXPECT_EQ(List(shape->dims().begin(), shape->dims().end()), c.dims);
    EXPECT_TRUE(PartialShape(*shape).fully_defined());
    EXPECT_EQ(PartialShape(*shape).elements(), c.elements);
  }
}

TEST(ShapeTest, Bad) {
  const struct {
    List dims;
    const char* text;
  } kCases[] = {{{-1}, "Shape [-1] has negative dimensions"},
                {{2, -5}, "Shape [2,-5] has negative dimensions"},
                {{INT64_MIN}, "has negative dimensions"},
                {{kBig, 2}, "Shape [4611686018427387904,2] is too large (more than 2**63 - 1 entries)"},
                {{INT64_MAX, INT64_MAX}, "too large"},
                {{kBig, kBig, 0}, "too large"},
                {List(255, 1), "has too many dimensions: 255, at most 254 are possible"}};
  for (const auto& c : kCases) {
    const Result<Shape> shape = Shape::Make(c.dims);
    ASSERT_FALSE(shape.ok()) << c.text;
    EXPECT_EQ(shape.status().code(), Code::kInvalidArgument);
    EXPECT_NE(shape.status().message().find(c.text), std::string::npos) << shape.status().message();
    const Shape written = Shape::Of(std::span<const int64_t>(c.dims));
    EXPECT_FALSE(written.valid());
    EXPECT_EQ(written.Check().message(), shape.status().message());
    EXPECT_EQ(written.elements(), -1);
    EXPECT_FALSE(PartialShape(written).valid());
    EXPECT_EQ(Tensor::Make(DType::kString, written).status().message(), shape.status().message());
    EXPECT_EQ(Tensor::Make(DType::kInt8, written).status().message(), shape.status().message());
    EXPECT_FALSE(Tensor::Of<int8_t>(written, {}).valid());
  }
  EXPECT_TRUE(Shape::Make(List(254, 1)).ok());
}

TEST(ShapeTest, Equality) {
  EXPECT_EQ(Shape::Of({2, 3}), Shape::Of({2, 3}));
  EXPECT_NE(Shape::Of({2, 3}), Shape::Of({3, 2}));
  EXPECT_NE(Shape::Of({6}), Shape::Of({2, 3}));
}

TEST(PartialShapeTest, Text) {
  const struct {
    PartialShape shape;
    const char* brackets;
    const char* tuple;
  } kCases[] = {{PartialShape(), "<unknown>", "<unknown>"},
                {PartialShape::Of({}), "[]", "()"},
                {PartialShape::Of({3}), "[3]", "(3,)"},
                {PartialShape::Of({-1}), "[?]", "(?,)"},
                {PartialShape::Of({-1, 784}), "[?,784]", "(?, 784)"},
                {PartialShape::OfRank(2), "[?,?]", "(?, ?)"},
                {PartialShape(Shape::Of({1, 2, 3})), "[1,2,3]", "(1, 2, 3)"}};
  for (const auto& c : kCases) {
    EXPECT_EQ(c.shape.ToString(), c.brackets);
    EXPECT_EQ(c.shape.ToTupleString(), c.tuple);
  }
}

TEST(PartialShapeTest, Bad) {
  for (const List& list : {List{-2}, List{INT64_MIN, 3}, List{kBig, -1, 2}, List(255, -1)}) {
    EXPECT_EQ(PartialShape::Make(list).status().code(), Code::kInvalidArgument);
    const PartialShape written = PartialShape::Of(std::span<const int64_t>(list));
    EXPECT_FALSE(written.has_rank());
    EXPECT_FALSE(written.valid());
    EXPECT_TRUE(written.dims().empty());
    EXPECT_EQ(written.Check().message(), PartialShape::Make(list).status().message());
  }
  EXPECT_NE(PartialShape::Make(List{-2}).status().message().find("values below -1"), std::string::npos);
  EXPECT_FALSE(PartialShape::OfRank(-1).has_rank());
  EXPECT_FALSE(PartialShape::OfRank(255).has_rank());
  EXPECT_EQ(PartialShape::OfRank(254).rank(), 254);
}

TEST(PartialShapeTest, DefinedOrNot) {
  EXPECT_FALSE(PartialShape().fully_defined());
  EXPECT_EQ(PartialShape().rank(), -1);
  EXPECT_EQ(PartialShape::Of({2, -1}).elements(), -1);
  EXPECT_EQ(PartialShape::Of({2, 3}).elements(), 6);
  EXPECT_EQ(PartialShape::Of({2, 0}).elements(), 0);
  EXPECT_EQ(*PartialShape::Of({2, 3}).ToShape(), Shape::Of({2, 3}));
  EXPECT_EQ(PartialShape::Of({-1}).ToShape().status().message(), "Shape [?] is not fully defined");
  EXPECT_EQ(PartialShape().ToShape().status().message(), "Shape <unknown> is not fully defined");
  PartialShape grown = PartialShape::OfRank(2);
  grown.set_dim(0, kBig);
  grown.set_dim(1, 4);
  EXPECT_EQ(grown.elements(), -1);
  EXPECT_FALSE(grown.ToShape().ok());
}

TEST(PartialShapeTest, MergeAndCompatible) {
  const PartialShape unknown;
  const struct {
    PartialShape a, b;
    const char* merged;  // or the error
    bool good;
  } kCases[] = {
      {unknown, unknown, "<unknown>", true},
      {unknown, PartialShape::Of({2}), "[2]", true},
      {PartialShape::Of({-1, 3}), PartialShape::Of({2, -1}), "[2,3]", true},
      {PartialShape::Of({}), PartialShape::Of({}), "[]", true},
      {PartialShape::Of({2}), PartialShape::Of({3}),
       "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3].", false},
      {PartialShape::Of({-1, 2}), PartialShape::Of({5, 4}),
       "Dimension 1 in both shapes must be equal, but are 2 and 4. Shapes are [?,2] and [5,4].", false},
      {PartialShape::Of({2}), PartialShape::Of({2, 2}), "Shapes must be equal rank, but are 1 and 2", false},
  };
  for (const auto& c : kCases) {
    const Result<PartialShape> merged = c.a.Merge(c.b);
    EXPECT_EQ(merged.ok(), c.good);
    EXPECT_EQ(merged.ok() ? merged->ToString() : merged.status().message(), c.merged);
    EXPECT_EQ(c.a.CompatibleWith(c.b), c.good);
    EXPECT_EQ(c.b.CompatibleWith(c.a), c.good);
  }
}

TEST(PartialShapeTest, CommonShapeKeepsTheExtentsThatAgree) {
  EXPECT_EQ(CommonShape({2, 3}, {2, 3}), (PartialShape{2, 3}));
  EXPECT_EQ(CommonShape({2, 3}, {4, 3}), (PartialShape{-1, 3}));
  EXPECT_EQ(CommonShape({-1, 3}, {4, 3}), (PartialShape{-1, 3}));
  EXPECT_EQ(CommonShape({2, 3}, {2}), PartialShape());
  EXPECT_EQ(CommonShape(PartialShape(), {2}), PartialShape());
  EXPECT_EQ(CommonShape(Shape(), Shape()), PartialShape(Shape()));
}

TEST(PartialShapeTest, CompatibleWithConcrete) {
  EXPECT_TRUE(PartialShape().CompatibleWith(Shape::Of({5})));
  EXPECT_TRUE(PartialShape::Of({-1, 784}).CompatibleWith(Shape::Of({0, 784})));
  EXPECT_FALSE(PartialShape::Of({-1, 784}).CompatibleWith(Shape::Of({784})));
  EXPECT_FALSE(PartialShape::Of({-1, 784}).CompatibleWith(Shape::Of({5, 783})));
}

TEST(PartialShapeTest, Equality) {
  EXPECT_EQ(PartialShape(), PartialShape());
  EXPECT_NE(PartialShape(), PartialShape::Of({}));
  EXPECT_NE(PartialShape::Of({-1}), PartialShape::Of({1}));
}

}  // namespace
}  // namespace weir
