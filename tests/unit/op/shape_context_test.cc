#include "core/op/shape_context.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <map>

namespace weir::op {
namespace {

const PartialShape kUnknown;

/// A context over given input shapes and values.
class ContextTest : public testing::Test {
 protected:
  ShapeContext Context(std::vector<PartialShape> shapes, std::map<int, Tensor> values = {}, int outputs = 1) {
    shapes_ = std::move(shapes);
    values_ = std::move(values);
    types_.assign(shapes_.size(), DType::kInt32);
    return ShapeContext(AttrView(def_, attrs_), types_, shapes_, outputs, [this](int i) {
      const auto it = values_.find(i);
      return it == values_.end() ? nullptr : &it->second;
    });
  }

  OpDef def_;
  AttrList attrs_;
  std::vector<DType> types_;
  std::vector<PartialShape> shapes_;
  std::map<int, Tensor> values_;
};

TEST_F(ContextTest, WithRank) {
  const ShapeContext c = Context({PartialShape::Of({1, 2, 3}), kUnknown});
  EXPECT_EQ(c.WithRank(0, 3)->ToString(), "[1,2,3]");
  EXPECT_EQ(c.WithRank(1, 2)->ToString(), "[?,?]");
  EXPECT_EQ(c.WithRank(0, 2).status().message(), "Shape must be rank 2 but is rank 3");
  EXPECT_EQ(c.WithRankAtLeast(0, 4).status().message(), "Shape must be at least rank 4 but is rank 3");
  EXPECT_EQ(c.WithRankAtLeast(0, 1)->ToString(), "[1,2,3]");
  EXPECT_EQ(c.WithRankAtLeast(1, 1)->ToString(), "<unknown>");
  EXPECT_EQ(c.WithRank(2, 1).status().code(), Code::kInternal);
  EXPECT_EQ(c.WithRank(-1, 1).status().code(), Code::kInternal);
}

TEST_F(ContextTest, IntegerValues) {
  const ShapeContext c =
      Context(std::vector<PartialShape>(5, kUnknown), {{0, Tensor::Vector<int32_t>({1, -1})},
                                                       {1, Tensor::Vector<int64_t>({int64_t{1} << 40})},
                                                       {2, Tensor::Scalar(2.0f)},
                                                       {3, Tensor::Of<int32_t>(Shape::Of({1, 2}), {7, 8})}});
  EXPECT_EQ(c.ints(0), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(c.ints(1), (std::vector<int64_t>{int64_t{1} << 40}));
  EXPECT_EQ(c.ints(2), std::nullopt);
  EXPECT_EQ(c.ints(3), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(c.ints(4), std::nullopt);
  EXPECT_EQ(c.scalar_int(1), int64_t{1} << 40);
  EXPECT_EQ(c.scalar_int(0), std::nullopt);
  EXPECT_EQ(c.value(9), nullptr);
}

TEST_F(ContextTest, ShapeFrom) {
  const struct {
    PartialShape input;
    std::optional<Tensor> value;
    const char* result;  // or the error
  } kCases[] = {
      {PartialShape::Of({2}), Tensor::Vector<int32_t>({2, -1}), "[2,?]"},
      {PartialShape::Of({0}), Tensor::Vector<int64_t>({}), "[]"},
      {PartialShape::Of({}), Tensor::Scalar<int32_t>(-1), "<unknown>"},
      {PartialShape::Of({}), Tensor::Scalar<int32_t>(3), "Shape must be rank 1 but is rank 0"},
      {PartialShape::Of({1}), Tensor::Vector<int32_t>({-2}),
       "Shape [-2] has dimensions with values below -1 (where -1 means unknown)"},
      {PartialShape::Of({2}), Tensor::Vector<int64_t>({INT64_MAX, 2}),
       "Shape [9223372036854775807,2] is too large (more than 2**63 - 1 entries)"},
      {PartialShape::Of({3}), std::nullopt, "[?,?,?]"},
      {PartialShape::Of({-1}), std::nullopt, "<unknown>"},
      {kUnknown, std::nullopt, "<unknown>"},
      {PartialShape::Of({2, 2}), std::nullopt, "Shape must be rank 1 but is rank 2"},
      {PartialShape::Of({300}), std::nullopt, "A shape of 300 dimensions is beyond the limit of 254"},
  };
  for (const auto& c : kCases) {
    std::map<int, Tensor> values;
    if (c.value) values[0] = *c.value;
    const ShapeContext context = Context({c.input}, values);
    const Result<PartialShape> shape = context.shape_from(0);
    EXPECT_EQ(shape.ok() ? shape->ToString() : shape.status().message(), c.result);
  }
  EXPECT_FALSE(Context({kUnknown}).shape_from(1).ok());
}

TEST_F(ContextTest, ShapeFromPartialKnowledge) {
  const std::vector<DType> types = {DType::kInt32};
  const std::vector<PartialShape> shapes = {PartialShape::Of({2})};
  const ShapeContext c(AttrView(def_, attrs_), types, shapes, 1, {}, [](int) { return PartialShape::Of({-1, 5}); });
  EXPECT_EQ(c.shape_from(0)->ToString(), "[?,5]");
  const ShapeContext contradiction(AttrView(def_, attrs_), types, shapes, 1, {},
                                   [](int) { return PartialShape::Of({5}); });
  EXPECT_FALSE(contradiction.shape_from(0).ok());
}

TEST(BroadcastShapesTest, Rules) {
  constexpr int64_t kBig = int64_t{1} << 40;
  const struct {
    PartialShape a, b;
    const char* result;  // or the error
  } kCases[] = {
      {PartialShape::Of({2, 3}), PartialShape::Of({3}), "[2,3]"},
      {PartialShape::Of({3}), PartialShape::Of({2, 1}), "[2,3]"},
      {PartialShape::Of({}), PartialShape::Of({2, 3}), "[2,3]"},
      {PartialShape::Of({-1}), PartialShape::Of({1}), "[?]"},
      {PartialShape::Of({1}), PartialShape::Of({-1}), "[?]"},
      {PartialShape::Of({-1}), PartialShape::Of({5}), "[5]"},
      {PartialShape::Of({-1}), PartialShape::Of({0}), "[0]"},
      {PartialShape::Of({0}), PartialShape::Of({1}), "[0]"},
      {PartialShape::Of({-1, -1}), PartialShape::Of({-1}), "[?,?]"},
      {kUnknown, PartialShape::Of({2}), "<unknown>"},
      {PartialShape::Of({2, 3}), PartialShape::Of({2}), "Dimensions must be equal, but are 3 and 2"},
      {PartialShape::Of({2}), PartialShape::Of({4, 3}), "Dimensions must be equal, but are 2 and 3"},
      {PartialShape::Of({0}), PartialShape::Of({3}), "Dimensions must be equal, but are 0 and 3"},
      {PartialShape::Of({kBig, 1}), PartialShape::Of({1, kBig}),
       "Shape [1099511627776,1099511627776] is too large (more than 2**63 - 1 entries)"},
  };
  for (const auto& c : kCases) {
    const Result<PartialShape> shape = BroadcastShapes(c.a, c.b);
    EXPECT_EQ(shape.ok() ? shape->ToString() : shape.status().message(), c.result);
  }
}

TEST(MergeDimTest, Rules) {
  EXPECT_EQ(*MergeDim(-1, 3), 3);
  EXPECT_EQ(*MergeDim(3, -1), 3);
  EXPECT_EQ(*MergeDim(-1, -1), -1);
  EXPECT_EQ(*MergeDim(4, 4), 4);
  EXPECT_EQ(MergeDim(2, 3).status().message(), "Dimensions must be equal, but are 2 and 3");
}

TEST_F(ContextTest, NamedFunctions) {
  const std::vector<PartialShape> inputs = {PartialShape::Of({2, 1}), PartialShape::Of({3})};
  const struct {
    ShapeFn fn;
    const char* result;
  } kCases[] = {{Scalar(), "[]"}, {SameAs(1), "[3]"}, {Broadcast(0, 1), "[2,3]"}, {Unknown(), "<unknown>"}};
  for (const auto& c : kCases) {
    ShapeContext context = Context(inputs, {}, 2);
    ASSERT_TRUE(c.fn(context).ok());
    EXPECT_EQ(context.outputs()[0].ToString(), c.result);
    EXPECT_EQ(context.outputs()[1].ToString(), c.result);
  }
  ShapeContext none = Context(inputs, {}, 0);
  EXPECT_TRUE(NoOutputs()(none).ok());
  ShapeContext one = Context(inputs, {}, 1);
  EXPECT_EQ(NoOutputs()(one).code(), Code::kInternal);
  EXPECT_EQ(SameAs(2)(one).code(), Code::kInternal);
  EXPECT_EQ(Broadcast(0, 2)(one).code(), Code::kInternal);
}

}  // namespace
}  // namespace weir::op
