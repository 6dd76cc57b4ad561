// Convolutions that take what follows them, and batch norms that go into filters: which do, and that results agree.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/session/options.h"
#include "tests/unit/fuse/fusion_runs.h"

namespace weir::fuse {
namespace {

using testing::Const;
using testing::NodeLine;
using testing::Placeholder;
using Ints = std::vector<int64_t>;

struct Images {
  bool first = false;  // channels
  bool fixed = true;   // the filter is a constant
  int64_t stride = 1;
  const char* padding = "SAME";

  Shape ShapeOf(int64_t channels) const {
    return first ? Shape::Of({2, channels, 9, 8}) : Shape::Of({2, 9, 8, channels});
  }
  op::AttrList Attrs() const {
    op::AttrList attrs = {{"T", DType::kFloat}, {"padding", padding}, {"data_format", first ? "NCHW" : "NHWC"}};
    attrs.emplace_back("strides", first ? Ints{1, 1, stride, stride} : Ints{1, stride, stride, 1});
    return attrs;
  }
};

constexpr int64_t kIn = 5, kOut = 20;

/// "conv", of "x" with a filter that is a constant or fed; its channels are 20.
std::vector<NodeLine> Convolution(const Images& images, bool depthwise = false) {
  const Shape filter = depthwise ? Shape::Of({3, 2, kIn, kOut / kIn}) : Shape::Of({3, 2, kIn, kOut});
  return {Placeholder("x", PartialShape(images.ShapeOf(kIn))),
          images.fixed ? Const("w", Random(filter, 5)) : Placeholder("w", PartialShape(filter)),
          {"conv", depthwise ? "DepthwiseConv2dNative" : "Conv2D", {"x", "w"}, images.Attrs()}};
}
Feeds FeedsOf(const Images& images) {
  Feeds feeds = {{"x:0", Random(images.ShapeOf(kIn), 6)}};
  if (!images.fixed) feeds.emplace_back("w:0", Random(Shape::Of({3, 2, kIn, kOut}), 5));
  return feeds;
}
NodeLine Vector(const char* name, uint32_t seed, float low = -2) {
  return Const(name, Random(Shape::Of({kOut}), seed, low));
}
NodeLine BiasAdd(const char* name, const char* x, bool first) {
  return {name, "BiasAdd", {x, "bias"}, {{"T", DType::kFloat}, {"data_format", first ? "NCHW" : "NHWC"}}};
}

TEST(Fusions, F021_BiasAndActivationJoinTheConvolution) {
  int checked = 0;
  for (const char* activation : {"Relu", "Relu6", "Tanh", "Sigmoid", "Elu", "LeakyRelu", ""}) {
    for (const bool depthwise : {false, true}) {
      for (const Images& images : {Images{}, Images{false, depthwise, 2, "VALID"}, Images{true, true, 2}}) {
        std::vector<NodeLine> nodes = Convolution(images, depthwise);
        nodes.push_back(Vector("bias", 7));
        const bool sum = checked++ % 2 == 0 && !images.first;
        nodes.push_back(sum ? Op("biased", "AddV2", {"conv", "bias"}) : BiasAdd("biased", "conv", images.first));
        if (*activation == '\0') nodes.back().name = "y";
        if (*activation != '\0') nodes.push_back(Op("y", activation, {"biased"}));
        const Ran one = RunOf(nodes, FeedsOf(images), true), many = RunOf(nodes, FeedsOf(images), false);
        EXPECT_TRUE(Has(one, depthwise ? "_BiasedDepthwiseConv2D" : "_BiasedConv2D")) << one.ops;
        EXPECT_FALSE(Has(one, "Conv2D")) << one.ops;
        EXPECT_EQ(many.ops.find(" = _"), std::string::npos) << many.ops;
        ExpectNear(one.values, many.values, 1e-5f);
      }
    }
  }
}

TEST(Fusions, F021_TheAddendOfAResidualBlockJoinsTheConvolution) {
  for (const Images& images : {Images{}, Images{true}}) {
    std::vector<NodeLine> nodes = Convolution(images);
    nodes.push_back(Vector("bias", 7));
    nodes.push_back(Placeholder("r", PartialShape(images.ShapeOf(kOut))));
    nodes.push_back(BiasAdd("biased", "conv", images.first));
    nodes.push_back(Op("sum", "AddV2", {"r", "biased"}));
    nodes.push_back(Op("y", "Relu", {"sum"}));
    Feeds feeds = FeedsOf(images);
    feeds.emplace_back("r:0", Random(images.ShapeOf(kOut), 8));
    const Ran one = RunOf(nodes, feeds, true), many = RunOf(nodes, feeds, false);
    EXPECT_TRUE(Has(one, "_ResidualConv2D") && !Has(one, "AddV2")) << one.ops;
    ExpectNear(one.values, many.values, 1e-5f);
  }
}

TEST(Fusions, F021_WhatIsNoBiasOfAConvolutionStays) {
  // A value that another op reads; a bias for each row, and a sum along the width, where channels come first.
  std::vector<NodeLine> read = Convolution({});
  for (const NodeLine& node : {Vector("bias", 7), BiasAdd("biased", "conv", false), Op("relu", "Relu", {"biased"}),
                               Op("y", "AddV2", {"relu", "conv"})}) {
    read.push_back(node);
  }
  EXPECT_TRUE(Has(RunOf(read, FeedsOf({}), true), "Conv2D"));
  std::vector<NodeLine> rows = Convolution({});
  rows.push_back(Const("bias", Random(Shape::Of({9, 1, 1}), 7)));
  rows.push_back(Op("y", "AddV2", {"conv", "bias"}));
  EXPECT_TRUE(Has(RunOf(rows, FeedsOf({}), true), "Conv2D"));
  const Images first{true};
  std::vector<NodeLine> width = Convolution(first);
  width.push_back(Const("bias", Random(Shape::Of({8}), 7)));
  width.push_back(Op("y", "AddV2", {"conv", "bias"}));
  const Ran kept = RunOf(width, FeedsOf(first), true, true);
  EXPECT_TRUE(Has(kept, "Conv2D")) << kept.ops;
  ExpectNear(kept.values, RunOf(width, FeedsOf(first), false).values, 1e-6f);
}

/// A batch norm in inference behind "value".
void AddNorm(const char* op, const char* value, bool first, std::vector<NodeLine>& nodes) {
  const NodeLine parts[] = {Vector("scale", 11), Vector("offset", 12), Vector("mean", 13), Vector("var", 14, 0.5f)};
  nodes.insert(nodes.end(), std::begin(parts), std::end(parts));
  op::AttrList attrs = {{"T", DType::kFloat}, {"is_training", false}, {"epsilon", 1e-3f}};
  attrs.emplace_back("data_format", first ? "NCHW" : "NHWC");
  if (std::string(op) != "FusedBatchNorm") attrs.emplace_back("U", DType::kFloat);
  nodes.push_back({"norm", op, {value, "scale", "offset", "mean", "var"}, attrs});
}

TEST(Fusions, F021_BatchNormGoesIntoTheFilter) {
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    for (const bool depthwise : {false, true}) {
      for (const bool first : {false, true}) {
        for (const bool biased : {false, true}) {
          const Images images{first};
          std::vector<NodeLine> nodes = Convolution(images, depthwise);
          if (biased) nodes.push_back(Vector("bias", 7));
          if (biased) nodes.push_back(BiasAdd("biased", "conv", first));
          AddNorm(op, biased ? "biased" : "conv", first, nodes);
          nodes.push_back(Op("y", "Relu", {"norm"}));
          const Ran one = RunOf(nodes, FeedsOf(images), true, true), many = RunOf(nodes, FeedsOf(images), false, true);
          EXPECT_FALSE(Has(one, op)) << one.ops;
          EXPECT_TRUE(Has(one, depthwise ? "_BiasedDepthwiseConv2D" : "_BiasedConv2D")) << one.ops;
          EXPECT_NE(one.ops.find("norm, y"), std::string::npos) << one.ops;
          EXPECT_TRUE(Has(many, op)) << many.ops;
          ExpectNear(one.values, many.values, 2e-5f);
        }
      }
    }
  }
}

TEST(Fusions, F021_FactorsAndSummandsGoIntoTheFilter) {
  std::vector<NodeLine> nodes = Convolution({});
  nodes.push_back(Vector("factor", 7));
  nodes.push_back(Vector("shift", 8));
  nodes.push_back(Const("half", Tensor::Scalar<float>(0.5f)));
  nodes.push_back({"same", "Identity", {"conv"}, testing::kFloat});
  nodes.push_back(Op("scaled", "Mul", {"factor", "same"}));
  nodes.push_back(Op("shifted", "Sub", {"shift", "scaled"}));
  nodes.push_back(Op("y", "RealDiv", {"shifted", "half"}));
  const Ran one = RunOf(nodes, FeedsOf({}), true, true), many = RunOf(nodes, FeedsOf({}), false, true);
  EXPECT_FALSE(Has(one, "Mul") || Has(one, "Sub") || Has(one, "RealDiv")) << one.ops;
  EXPECT_TRUE(Has(many, "Mul") && Has(many, "Sub") && Has(many, "RealDiv")) << many.ops;
  ExpectNear(one.values, many.values, 2e-5f);
}

TEST(Fusions, F021_NormsInTrainingAndOfFedFiltersStay) {
  std::vector<NodeLine> fed = Convolution({false, false});
  AddNorm("FusedBatchNormV3", "conv", false, fed);
  fed.push_back(Op("y", "Relu", {"norm"}));
  EXPECT_TRUE(Has(RunOf(fed, FeedsOf({false, false}), true, true), "FusedBatchNormV3"));
  std::vector<NodeLine> training = Convolution({});
  AddNorm("FusedBatchNormV3", "conv", false, training);
  for (auto& [name, value] : training.back().attrs) {
    if (name == "is_training") value = true;
  }
  training.push_back(Op("y", "Relu", {"norm"}));
  EXPECT_TRUE(Has(RunOf(training, FeedsOf({}), true, true), "FusedBatchNormV3"));
  std::vector<NodeLine> infinite = Convolution({});
  AddNorm("FusedBatchNormV3", "conv", false, infinite);
  infinite[infinite.size() - 2] = Const("var", Tensor::Of<float>(Shape::Of({kOut}), std::vector<float>(kOut, -1)));
  infinite.push_back(Op("y", "Relu", {"norm"}));
  EXPECT_TRUE(Has(RunOf(infinite, FeedsOf({}), true, true), "FusedBatchNormV3"));
}

TEST(Fusions, F021_TheSwitchTurnsAllOfThemOff) {
  config::Config config;
  EXPECT_TRUE(session::SessionOptionsFrom(config).fusion);
  config.graph_options.rewrite_options.remapping = "OFF";
  EXPECT_FALSE(session::SessionOptionsFrom(config).fusion);
  // A product with its bias, a convolution with a norm, an update by a product, a region.
  std::vector<NodeLine> nodes = Convolution({});
  AddNorm("FusedBatchNormV3", "conv", false, nodes);
  for (const NodeLine& node :
       {Const("all", Tensor::Vector(std::vector<int32_t>{-1, 20})),
        NodeLine{"flat", "Reshape", {"norm", "all"}, {{"T", DType::kFloat}}},
        Const("m", Random(Shape::Of({20, 600}), 3)), Op("product", "MatMul", {"flat", "m"}),
        Const("b", Random(Shape::Of({600}), 4)), Op("sum", "BiasAdd", {"product", "b"}), Op("relu", "Relu", {"sum"}),
        Op("square", "Square", {"relu"}), Op("y", "Tanh", {"square"})}) {
    nodes.push_back(node);
  }
  const Ran on = RunOf(nodes, FeedsOf({}), true, true), off = RunOf(nodes, FeedsOf({}), false, true);
  for (const char* op : {"_BiasedConv2D", "_BiasedMatMul", "_Region"}) EXPECT_TRUE(Has(on, op)) << op << "\n" << on.ops;
  EXPECT_NE(on.ops.find(" for conv, norm -> "), std::string::npos) << on.ops;
  EXPECT_NE(on.ops.find(" for product, sum, relu -> "), std::string::npos) << on.ops;
  EXPECT_EQ(off.ops.find(" = _"), std::string::npos) << off.ops;
  EXPECT_EQ(off.ops.find(" for "), std::string::npos) << off.ops;
  EXPECT_TRUE(Has(off, "FusedBatchNormV3")) << off.ops;
  ExpectNear(on.values, off.values, 1e-4f);
}

}  // namespace
}  // namespace weir::fuse
