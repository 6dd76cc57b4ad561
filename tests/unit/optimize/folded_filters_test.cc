// Filters that batch norms went into: one for all steps of a session, held by the steps alone.
#include "core/optimize/folded_filters.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::optimize {
namespace {

using testing::At;
using testing::Const;
using testing::Placeholder;

/// A convolution of `filter`, times `factor`.
Result<graph::Definition> ScaledConvolution(const Tensor& filter, const Tensor& factor) {
  op::AttrList attrs = {{"T", filter.dtype()}, {"padding", "SAME"}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}};
  return testing::MakeGraph({Placeholder("x", PartialShape(Shape::Of({1, 4, 4, 2})), filter.dtype()),
                             Const("w", filter),
                             Const("factor", factor),
                             {"conv", "Conv2D", {"x", "w"}, attrs},
                             {"y", "Mul", {"conv", "factor"}, {{"T", filter.dtype()}}}});
}

/// The step's constant of rank 4.
Tensor FilterOf(const graph::StepGraph& step) {
  for (const graph::StepNode& node : step.nodes) {
    if (node.kind == graph::StepNode::Kind::kConstant && node.values[0].shape().rank() == 4) return node.values[0];
  }
  return Tensor();
}

Result<graph::StepGraph> StepOf(const graph::Definition& graph, FoldedFilters* folded) {
  OptimizeOptions options;
  options.folded_filters = folded;
  graph::StepRequest request;
  request.feeds.push_back({At(graph, "x"), DType::kFloat, PartialShape(Shape::Of({1, 4, 4, 2}))});
  request.fetches = {At(graph, "y")};
  return Optimize(options, graph, request, nullptr);
}

TEST(FoldedFilters, StepsOfASessionShareAFilter) {
  const Tensor filter = Tensor::Of<float>(Shape::Of({1, 1, 2, 2}), {1, 2, 3, 4});
  const Result<graph::Definition> graph = ScaledConvolution(filter, Tensor::Vector<float>({2, 10}));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  FoldedFilters folded;
  {
    const Result<graph::StepGraph> first = StepOf(*graph, &folded), second = StepOf(*graph, &folded);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status().ToString();
    const Tensor made = FilterOf(*first);
    const auto values = made.as<float>();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{2, 20, 6, 40}));
    EXPECT_EQ(FilterOf(*second).raw(), made.raw());
    const Result<graph::StepGraph> apart = StepOf(*graph, nullptr);
    ASSERT_TRUE(apart.ok());
    EXPECT_NE(FilterOf(*apart).raw(), made.raw());
    EXPECT_EQ(folded.size(), 1u);
  }
  EXPECT_EQ(folded.size(), 0u);  // the filter went with the steps
  const Result<graph::StepGraph> again = StepOf(*graph, &folded);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(FilterOf(*again).as<float>()[3], 40);
}

TEST(FoldedFilters, AnotherFilterOrScaleIsAnotherResult) {
  FoldedFilters folded;
  const Tensor filter = Tensor::Of<float>(Shape::Of({1, 2}), {1, 2});
  const Tensor made = folded.Keep(filter, {3, 4}, Tensor::Of<float>(Shape::Of({1, 2}), {3, 8}));
  EXPECT_EQ(folded.Find(filter, {3, 4}).raw(), made.raw());
  EXPECT_FALSE(folded.Find(filter, {3, 5}).valid());
  EXPECT_FALSE(folded.Find(Tensor::Of<float>(Shape::Of({1, 2}), {1, 2}), {3, 4}).valid());
  const Result<Tensor> turned = Tensor::Over(DType::kFloat, Shape::Of({2, 1}), filter.buffer());
  ASSERT_TRUE(turned.ok());
  EXPECT_FALSE(folded.Find(*turned, {3, 4}).valid());
  EXPECT_EQ(folded.Keep(filter, {3, 4}, Tensor::Of<float>(Shape::Of({1, 2}), {0, 0})).raw(), made.raw());
}

TEST(FoldedFilters, ElementsThatOverflowStayUnfolded) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const Tensor filter = Tensor::Of<float>(Shape::Of({1, 1, 2, 2}), {1, kLargest, 3, 4});
  const Result<graph::Definition> graph = ScaledConvolution(filter, Tensor::Vector<float>({2, 10}));
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  FoldedFilters folded;
  const Result<graph::StepGraph> step = StepOf(*graph, &folded);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(FilterOf(*step).as<float>()[1], kLargest);
  EXPECT_EQ(folded.size(), 0u);
}

}  // namespace
}  // namespace weir::optimize
