// Steps that optimize/simplify changed, against the same steps as they were written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/fuse/fusion_runs.h"

namespace weir::fuse {
namespace {

using testing::Const;
using testing::NodeLine;
using testing::Placeholder;

NodeLine Order(const char* name, std::vector<int32_t> axes) { return Const(name, Tensor::Vector(axes)); }
NodeLine CastTo(const char* name, const char* x, DType from, DType to) {
  return {name, "Cast", {x}, {{"SrcT", from}, {"DstT", to}}};
}

TEST(Simplified, WhatKeepsAllBitsGivesThem) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({3, 4, 5})),
                                       Order("cycle", {1, 2, 0}),
                                       Order("swap", {0, 2, 1}),
                                       Order("all", {-1}),
                                       Order("matrix", {5, 12}),
                                       Const("one", Tensor::Scalar<float>(1)),
                                       Const("minus", Tensor::Scalar<float>(-0.0f)),
                                       Op("t1", "Transpose", {"x", "cycle"}),
                                       Op("t2", "Transpose", {"t1", "swap"}),
                                       Op("t3", "Transpose", {"t2", "cycle"}),
                                       Op("r1", "Reshape", {"t3", "all"}),
                                       Op("r2", "Reshape", {"r1", "matrix"}),
                                       Op("p", "Mul", {"r2", "one"}),
                                       Op("s", "AddV2", {"minus", "p"}),
                                       Op("n1", "Neg", {"s"}),
                                       Op("n2", "Neg", {"n1"}),
                                       CastTo("wide", "n2", DType::kFloat, DType::kDouble),
                                       CastTo("back", "wide", DType::kDouble, DType::kFloat),
                                       Op("y", "Identity", {"back"})};
  const Feeds feeds = {{"x:0", Random(Shape::Of({3, 4, 5}), 1)}};
  const Ran simple = RunOf(nodes, feeds, false, true), written = RunOf(nodes, feeds, false, false);
  EXPECT_EQ(simple.values, written.values);
  for (const char* op : {"Mul", "AddV2", "Neg", "Cast"}) {
    EXPECT_FALSE(Has(simple, op)) << simple.ops;
    EXPECT_TRUE(Has(written, op)) << written.ops;
  }
  EXPECT_EQ(simple.ops.find("Transpose("), simple.ops.rfind("Transpose(")) << "one is left\n" << simple.ops;
  EXPECT_EQ(simple.ops.find("Reshape("), simple.ops.rfind("Reshape(")) << simple.ops;
}

TEST(Simplified, ChainsOfConstantsAreOneOp) {
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({7})), Const("c", Tensor::Scalar<float>(0.375f)),
                                 Const("d", Tensor::Scalar<float>(-0.5f))};
  std::string last = "x";
  for (int i = 0; i < 40; ++i) {
    const std::string name = "n" + std::to_string(i);
    nodes.push_back(i % 2 == 0 ? Op(name.c_str(), "AddV2", {last, "c"}) : Op(name.c_str(), "Sub", {last, "d"}));
    last = name;
  }
  for (int i = 0; i < 20; ++i) {
    const std::string name = i == 19 ? "y" : "p" + std::to_string(i);
    nodes.push_back(Op(name.c_str(), "Mul", {"c", last}));
    last = name;
  }
  const Feeds feeds = {{"x:0", Random(Shape::Of({7}), 1)}};
  const Ran simple = RunOf(nodes, feeds, false, true), written = RunOf(nodes, feeds, false, false);
  EXPECT_EQ(simple.ops.find("AddV2("), simple.ops.rfind("AddV2(")) << simple.ops;
  EXPECT_EQ(simple.ops.find("Mul("), simple.ops.rfind("Mul(")) << simple.ops;
  EXPECT_FALSE(Has(simple, "Sub")) << simple.ops;
  ASSERT_EQ(simple.values.size(), written.values.size());
  for (size_t i = 0; i < simple.values.size(); ++i) {
    EXPECT_NEAR(simple.values[i], written.values[i], 1e-6f * std::fabs(written.values[i]));
  }
}

}  // namespace
}  // namespace weir::fuse
