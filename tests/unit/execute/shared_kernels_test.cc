// Nodes of a plan that share a prepared kernel, and those that must not.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/text_graph.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

const Shape kTwo = Shape::Of({2});

size_t KernelsOf(const Compiled& step) { return step.runner().plan().kernels.size(); }

TEST(SharedKernels, EqualNodesOfAChainHaveOneAndTheirOwnResults) {
  constexpr int kNodes = 100;
  std::vector<NodeLine> nodes = {Placeholder("x", {-1})};
  std::vector<std::string> fetches;
  for (int i = 0; i < kNodes; ++i) {
    const std::string before = i == 0 ? "x" : "a" + std::to_string(i - 1);
    nodes.push_back({"a" + std::to_string(i), "AddV2", {before, "x"}, kFloat});
    fetches.push_back("a" + std::to_string(i));
  }
  for (const int parallelism : {1, 4}) {
    Compiled step(MakeGraph(nodes), {{"x", kTwo}}, fetches, parallelism);
    EXPECT_EQ(KernelsOf(step), 1u);
    std::vector<Tensor> fetched;
    ASSERT_TRUE(step.Run({Tensor::Vector<float>({1, -2})}, &fetched).ok());
    for (int i = 0; i < kNodes; ++i) {
      const float times = static_cast<float>(i + 2);
      EXPECT_TRUE(fetched[static_cast<size_t>(i)].SameBits(Tensor::Vector<float>({times, -2 * times}))) << i;
    }
  }
}

TEST(SharedKernels, ShapesAttributesAndConstantsTellNodesApart) {
  const op::AttrList transposed = {{"T", DType::kFloat}, {"transpose_a", true}};
  const auto axis = [](const char* name, int32_t value) { return Const(name, Tensor::Vector<int32_t>({value})); };
  const op::AttrList sum = {{"T", DType::kFloat}, {"Tidx", DType::kInt32}};
  Compiled step(MakeGraph({Placeholder("x", {2, 2}),
                           Placeholder("v", {2}),
                           axis("rows", 0),
                           axis("columns", 1),
                           {"plain", "MatMul", {"x", "x"}, kFloat},
                           {"again", "MatMul", {"plain", "x"}, kFloat},
                           {"turned", "MatMul", {"x", "x"}, transposed},
                           {"down", "Sum", {"x", "rows"}, sum},
                           {"along", "Sum", {"x", "columns"}, sum},
                           {"down_again", "Sum", {"plain", "rows"}, sum},
                           {"both", "AddV2", {"x", "x"}, kFloat},
                           {"one", "AddV2", {"x", "v"}, kFloat}}),
                {{"x", Shape::Of({2, 2})}, {"v", kTwo}},
                {"plain", "again", "turned", "down", "along", "down_again", "both", "one"});
  EXPECT_EQ(KernelsOf(step), 6u) << "of plain and again, turned, down and down_again, along, both, one";
  std::vector<Tensor> got;
  const Tensor x = Tensor::Of<float>(Shape::Of({2, 2}), std::vector<float>{1, 2, 3, 4});
  ASSERT_TRUE(step.Run({x, Tensor::Vector<float>({10, 20})}, &got).ok());
  const auto square = [](const std::vector<float>& values) { return Tensor::Of<float>(Shape::Of({2, 2}), values); };
  EXPECT_TRUE(got[0].SameBits(square({7, 10, 15, 22})));
  EXPECT_TRUE(got[1].SameBits(square({37, 54, 81, 118})));
  EXPECT_TRUE(got[2].SameBits(square({10, 14, 14, 20})));
  EXPECT_TRUE(got[3].SameBits(Tensor::Vector<float>({4, 6})));
  EXPECT_TRUE(got[4].SameBits(Tensor::Vector<float>({3, 7})));
  EXPECT_TRUE(got[5].SameBits(Tensor::Vector<float>({22, 32})));
  EXPECT_TRUE(got[6].SameBits(square({2, 4, 6, 8})));
  EXPECT_TRUE(got[7].SameBits(square({11, 22, 13, 24})));
}

TEST(SharedKernels, OpsWithStateHaveOneEach) {
  const op::AttrList uniform = {
      {"T", DType::kInt32}, {"dtype", DType::kFloat}, {"seed", int64_t{3}}, {"seed2", int64_t{5}}};
  Compiled step(MakeGraph({Const("shape", Tensor::Vector<int32_t>({8})),
                           {"a", "RandomUniform", {"shape"}, uniform},
                           {"b", "RandomUniform", {"shape"}, uniform}}),
                {}, {"a", "b"});
  std::vector<Tensor> first, second;
  ASSERT_TRUE(step.Run({}, &first).ok());
  ASSERT_TRUE(step.Run({}, &second).ok());
  EXPECT_TRUE(first[0].SameBits(first[1])) << "equal seeds begin equal sequences, one for each node";
  EXPECT_TRUE(second[0].SameBits(second[1]));
  EXPECT_FALSE(first[0].SameBits(second[0]));
}

}  // namespace
}  // namespace weir::execute
