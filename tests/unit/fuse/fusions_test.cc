// Expressions that become one op, and regions of elementwise ops: which there are, and that results agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/text_graph.h"
#include "tests/unit/fuse/fusion_runs.h"

namespace weir::fuse {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

NodeLine Axis(const char* name, int32_t axis) { return Const(name, Tensor::Scalar<int32_t>(axis)); }
NodeLine Mean(const char* name, const char* x, const char* axis) {
  return {name, "Mean", {x, axis}, {{"T", DType::kFloat}, {"Tidx", DType::kInt32}, {"keep_dims", true}}};
}

std::vector<NodeLine> LayerNormOfDifferences(int64_t rows = 4, int64_t columns = 37) {
  return {Placeholder("x", PartialShape::Of({rows, columns})),
          Placeholder("gamma", PartialShape::Of({columns})),
          Placeholder("beta", PartialShape::Of({columns})),
          Axis("last", -1),
          Const("epsilon", Tensor::Scalar<float>(1e-3f)),
          Mean("mean", "x", "last"),
          Op("d", "Sub", {"x", "mean"}),
          Op("square", "Square", {"d"}),
          Mean("variance", "square", "last"),
          Op("spread", "AddV2", {"variance", "epsilon"}),
          Op("inverse", "Rsqrt", {"spread"}),
          Op("normal", "Mul", {"d", "inverse"}),
          Op("scaled", "Mul", {"normal", "gamma"}),
          Op("y", "AddV2", {"scaled", "beta"})};
}

Feeds LayerNormFeeds() {
  return {{"x:0", Random(Shape::Of({4, 37}), 1)},
          {"gamma:0", Random(Shape::Of({37}), 2)},
          {"beta:0", Random(Shape::Of({37}), 3)}};
}

TEST(Fusions, F021_LayerNormOfDifferencesIsOneOp) {
  const Ran one = RunOf(LayerNormOfDifferences(), LayerNormFeeds(), true);
  const Ran many = RunOf(LayerNormOfDifferences(), LayerNormFeeds(), false);
  EXPECT_TRUE(Has(one, "_LayerNorm")) << one.ops;
  EXPECT_FALSE(Has(one, "Mean")) << one.ops;
  EXPECT_TRUE(Has(many, "Mean") && !Has(many, "_LayerNorm")) << many.ops;
  ExpectNear(one.values, many.values, 2e-6f);
}

TEST(Fusions, F021_LayerNormOfALongRowCombinesTheMomentsOfItsParts) {
  constexpr int64_t kColumns = 10001;
  Tensor x = *Tensor::Make(DType::kFloat, Shape::Of({1, kColumns}));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < kColumns; ++i) {  // parts have means of their own
    const auto value = static_cast<double>(100 + 50 * (i / 3000) + i % 7);
    x.mutable_as<float>()[static_cast<size_t>(i)] = static_cast<float>(value);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kColumns, spread = std::sqrt(squares / kColumns - mean * mean + 1e-3);
  const auto all = [](float value) {
    Tensor tensor = *Tensor::Make(DType::kFloat, Shape::Of({kColumns}));
    std::ranges::fill(tensor.mutable_as<float>(), value);
    return tensor;
  };
  const Ran one =
      RunOf(LayerNormOfDifferences(1, kColumns), {{"x:0", x}, {"gamma:0", all(2)}, {"beta:0", all(1)}}, true);
  EXPECT_TRUE(Has(one, "_LayerNorm")) << one.ops;
  std::vector<float> expected;
  for (const float value : x.as<float>()) expected.push_back(static_cast<float>((value - mean) / spread * 2 + 1));
  ExpectNear(one.values, expected, 1e-5f);
}

TEST(Fusions, F021_LayerNormOfMomentsIsOneOp) {
  // tf.nn.moments and tf.nn.batch_normalization over the last axis.
  std::vector<NodeLine> nodes = LayerNormOfDifferences();
  nodes.resize(6);
  for (const NodeLine& node : {Op("stopped", "StopGradient", {"mean"}), Op("d", "SquaredDifference", {"x", "stopped"}),
                               Mean("variance", "d", "last"), Op("spread", "AddV2", {"variance", "epsilon"}),
                               Op("rsqrt", "Rsqrt", {"spread"}), Op("inverse", "Mul", {"rsqrt", "gamma"}),
                               Op("scaled", "Mul", {"x", "inverse"}), Op("shift", "Mul", {"mean", "inverse"}),
                               Op("rest", "Sub", {"beta", "shift"}), Op("y", "AddV2", {"scaled", "rest"})}) {
    nodes.push_back(node);
  }
  const Ran one = RunOf(nodes, LayerNormFeeds(), true), many = RunOf(nodes, LayerNormFeeds(), false);
  EXPECT_TRUE(Has(one, "_LayerNorm")) << one.ops;
  ExpectNear(one.values, many.values, 5e-6f);
}

TEST(Fusions, F021_WhatIsNoLayerNormStays) {
  // The first axis; a mean that another op reads; a gamma for each row.
  std::vector<NodeLine> first = LayerNormOfDifferences();
  first[3] = Axis("last", 0);
  EXPECT_FALSE(Has(RunOf(first, LayerNormFeeds(), true), "_LayerNorm"));
  std::vector<NodeLine> read = LayerNormOfDifferences();
  read.back().name = "norm";
  read.push_back(Op("y", "AddV2", {"norm", "mean"}));
  EXPECT_FALSE(Has(RunOf(read, LayerNormFeeds(), true), "_LayerNorm"));
  std::vector<NodeLine> rows = LayerNormOfDifferences();
  rows[1] = Placeholder("gamma", PartialShape::Of({4, 1}));
  Feeds feeds = LayerNormFeeds();
  feeds[1].second = Random(Shape::Of({4, 1}), 2);
  const Ran kept = RunOf(rows, feeds, true);
  EXPECT_FALSE(Has(kept, "_LayerNorm"));
  EXPECT_EQ(kept.values, RunOf(rows, feeds, false).values);
}

TEST(Fusions, F021_BiasAndActivationJoinTheProduct) {
  for (const char* add : {"BiasAdd", "AddV2"}) {
    for (const char* activation : {"Relu", "Relu6", "Tanh", "Sigmoid", "Elu", ""}) {
      for (const bool constant : {false, true}) {
        const Tensor weights = Random(Shape::Of({40, 50}), 5, -0.3f, 0.3f);
        std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({7, 40})),
                                       constant ? Const("w", weights) : Placeholder("w", PartialShape::Of({40, 50})),
                                       Placeholder("bias", PartialShape::Of({50})), Op("product", "MatMul", {"x", "w"}),
                                       Op("biased", add, {"product", "bias"})};
        if (*activation != '\0') {
          nodes.push_back(Op("y", activation, {"biased"}));
        } else {
          nodes.back().name = "y";
        }
        Feeds feeds = {{"x:0", Random(Shape::Of({7, 40}), 6)}, {"bias:0", Random(Shape::Of({50}), 7)}};
        if (!constant) feeds.emplace_back("w:0", weights);
        const Ran one = RunOf(nodes, feeds, true), many = RunOf(nodes, feeds, false);
        EXPECT_TRUE(Has(one, "_BiasedMatMul") && !Has(one, "MatMul")) << one.ops;
        EXPECT_TRUE(Has(many, "MatMul")) << many.ops;
        ExpectNear(one.values, many.values, 3e-6f);
      }
    }
  }
}

TEST(Fusions, F021_ASumOfMatricesIsNoBias) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({8, 8})),
                                       Placeholder("w", PartialShape::Of({8, 8})), Op("product", "MatMul", {"x", "w"}),
                                       Op("y", "AddV2", {"product", "x"})};
  const Feeds feeds = {{"x:0", Random(Shape::Of({8, 8}), 6)}, {"w:0", Random(Shape::Of({8, 8}), 7)}};
  const Ran ran = RunOf(nodes, feeds, true);
  EXPECT_TRUE(Has(ran, "MatMul") && !Has(ran, "_BiasedMatMul")) << ran.ops;
  EXPECT_EQ(ran.values, RunOf(nodes, feeds, false).values);
}

/// The product of random matrices in double, and by a graph in which the right one is a constant.
void ExpectProduct(int64_t m, int64_t k, int64_t n, bool transpose_a, bool transpose_b) {
  const Tensor a = Random(transpose_a ? Shape::Of({k, m}) : Shape::Of({m, k}), 8);
  const Tensor b = Random(transpose_b ? Shape::Of({n, k}) : Shape::Of({k, n}), 9);
  const std::vector<NodeLine> nodes = {
      Placeholder("a", PartialShape(a.shape())),
      Const("b", b),
      {"y", "MatMul", {"a", "b"}, {{"T", DType::kFloat}, {"transpose_a", transpose_a}, {"transpose_b", transpose_b}}}};
  const std::vector<float> got = RunOf(nodes, {{"a:0", a}}, true).values;
  ASSERT_EQ(got.size(), static_cast<size_t>(m * n));
  const auto left = a.as<float>(), right = b.as<float>();
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double term = static_cast<double>(left[static_cast<size_t>(transpose_a ? p * m + i : i * k + p)]) *
                            static_cast<double>(right[static_cast<size_t>(transpose_b ? j * k + p : p * n + j)]);
        sum += term;
        size += std::fabs(term);
      }
      ASSERT_NEAR(got[static_cast<size_t>(i * n + j)], sum, 1e-6 * size + 1e-6)
          << m << "x" << k << "x" << n << " " << transpose_a << transpose_b << " at " << i << "," << j;
    }
  }
}

TEST(Fusions, F021_ProductsOfConstantsAreExactInEveryBlock) {
  for (const int64_t m : {2, 5, 6, 7, 12, 13, 25}) {
    for (const int64_t k : {33, 256, 300}) {
      for (const int64_t n : {15, 16, 33, 70}) ExpectProduct(m, k, n, m % 2 == 0, n % 2 == 0);
    }
  }
  ExpectProduct(300, 70, 40, false, false);  // more rows than are packed at once
}

/// A random expression of elementwise ops over two values and a scalar. Every op but the last has one user.
std::vector<NodeLine> RandomRegion(std::mt19937& dice, const PartialShape& shape, int ops) {
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(dice); };
  const char* const kUnary[] = {"Neg", "Square", "Tanh", "Relu", "Sigmoid", "Abs", "Exp"};
  const char* const kBinary[] = {"AddV2", "Sub", "Mul", "Maximum", "Minimum"};
  std::vector<NodeLine> nodes = {Placeholder("a", shape), Placeholder("b", shape),
                                 Placeholder("s", PartialShape::Of({}))};
  Names open;  // results without a user
  const auto operand = [&]() -> std::string {
    if (open.empty() || pick(3) == 0) return pick(2) == 0 ? "a" : "b";
    const size_t at = pick(open.size());
    std::string name = open[at];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    return name;
  };
  const auto add = [&](const std::string& name, const char* op, Names inputs) {
    nodes.push_back({name, op, std::move(inputs), kFloat});
    open.push_back(name);
  };
  int made = 0;
  for (; made < ops; ++made) {
    const std::string name = "n" + std::to_string(made);
    if (pick(2) == 0) {
      const std::string x = operand();
      add(name, kUnary[pick(std::size(kUnary))], {x});
    } else {
      const std::string x = operand();
      add(name, kBinary[pick(std::size(kBinary))], {x, pick(4) == 0 ? "s" : operand()});
    }
  }
  for (; open.size() > 1; ++made) {
    const std::string name = "n" + std::to_string(made);
    const Names both = {open[open.size() - 2], open.back()};
    open.resize(open.size() - 2);
    add(name, "AddV2", both);
  }
  nodes.push_back(Op("y", "Neg", {open[0]}));
  return nodes;
}

TEST(Fusions, F021_RegionsHaveTheBitsOfTheirOps) {
  std::mt19937 dice(20261124);
  const Shape shapes[] = {Shape::Of({8192}), Shape::Of({97, 131}), Shape::Of({3, 5, 7, 100}), Shape::Of({65536 + 7})};
  for (int i = 0; i < 60; ++i) {
    const Shape& shape = shapes[i % 4];
    const std::vector<NodeLine> nodes = RandomRegion(dice, PartialShape(shape), 2 + i % 9);
    const Feeds feeds = {{"a:0", Random(shape, 10 + static_cast<uint32_t>(i))},
                         {"b:0", Random(shape, 100 + static_cast<uint32_t>(i))},
                         {"s:0", Tensor::Scalar<float>(0.75f)}};
    Feeds used;
    for (const session::Feed& feed : feeds) {
      const std::string name = feed.first.substr(0, 1);
      const auto reads = [&](const NodeLine& node) {
        return std::ranges::find(node.inputs, name) != node.inputs.end();
      };
      if (std::ranges::any_of(nodes, reads)) used.push_back(feed);
    }
    const Ran one = RunOf(nodes, used, true), many = RunOf(nodes, used, false);
    EXPECT_TRUE(Has(one, "_Region")) << one.ops;
    EXPECT_FALSE(Has(many, "_Region")) << many.ops;
    ASSERT_EQ(one.values.size(), many.values.size());
    for (size_t j = 0; j < one.values.size(); ++j) {
      ASSERT_EQ(std::bit_cast<uint32_t>(one.values[j]), std::bit_cast<uint32_t>(many.values[j])) << j << "\n"
                                                                                                 << one.ops;
    }
  }
}

TEST(Fusions, F021_SmallValuesAndOtherUsersMakeNoRegion) {
  const auto chain = [](const PartialShape& shape) {
    return std::vector<NodeLine>{Placeholder("a", shape), Op("n", "Neg", {"a"}), Op("y", "Square", {"n"})};
  };
  const Feeds small = {{"a:0", Random(Shape::Of({8191}), 1)}}, large = {{"a:0", Random(Shape::Of({8192}), 1)}};
  EXPECT_FALSE(Has(RunOf(chain(PartialShape::Of({8191})), small, true), "_Region"));
  EXPECT_TRUE(Has(RunOf(chain(PartialShape::Of({8192})), large, true), "_Region"));
  std::vector<NodeLine> read = chain(PartialShape::Of({8192}));
  read.back() = {"sum", "Sum", {"n", "axis"}, {{"T", DType::kFloat}, {"Tidx", DType::kInt32}}};
  read.insert(read.end() - 1, Const("axis", Tensor::Scalar<int32_t>(0)));
  read.push_back(Op("y", "Sub", {"n", "sum"}));
  EXPECT_FALSE(Has(RunOf(read, large, true), "_Region"));
}

}  // namespace
}  // namespace weir::fuse
