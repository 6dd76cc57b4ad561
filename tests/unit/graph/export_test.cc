#include <gtest/gtest.h>

#include "core/graph/graph_def.h"
#include "core/proto/parse.h"
#include "core/tensor/buffer.h"
#include "tests/unit/graph/test_ops.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

/// A graph with several features: several outputs, control inputs, devices, constants.
Builder SplitAndSum() {
  Builder b;
  const Endpoint x = b.Placeholder("x", DType::kFloat, PartialShape::Of({-1, 2}));
  const Endpoint c = b.Const("c", Tensor::Of<float>(Shape::Of({2}), {1, 2}));
  const Endpoint split = b.Op("Split2", "split", {x}, {{"T", DType::kFloat}});
  NodeSpec sum;
  sum.name = "sum";
  sum.op = TestOps().Find("AddV2");
  sum.inputs = {{split.node, 1}, c};
  sum.control_inputs = {c.node, x.node};
  sum.device = "/device:CPU:0";
  sum.attrs = {{"T", DType::kFloat}};
  EXPECT_TRUE(b.graph.Add(std::move(sum)).ok());
  return b;
}

tf::GraphDef Message(const Definition& graph, OutputShapes shapes = OutputShapes::kOmit) {
  tf::GraphDef def;
  const Result<std::string> bytes = ExportGraphDef(graph, GraphFormat::kBinary, shapes);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_TRUE(proto::ParseBinary(*bytes, "GraphDef", def).ok());
  return def;
}

TEST(Export, CanonicalInputsDefaultsAndVersions) {
  const Builder b = SplitAndSum();
  const tf::GraphDef def = Message(b.graph);
  ASSERT_EQ(def.node_size(), 4);
  const tf::NodeDef& sum = def.node(3);
  EXPECT_EQ(std::vector<std::string>(sum.input().begin(), sum.input().end()),
            (std::vector<std::string>{"split:1", "c", "^c", "^x"}));
  EXPECT_EQ(sum.device(), "/device:CPU:0");
  EXPECT_EQ(def.node(2).attr().at("mode").s(), "x");      // a default, written out
  EXPECT_TRUE(def.node(2).attr().at("list").has_list());  // an empty list
  EXPECT_EQ(def.versions().producer(), kGraphDefVersion);
  EXPECT_EQ(def.node(0).attr().count("_output_shapes"), 0u);
}

TEST(Export, OutputShapesWhenWanted) {
  const Builder b = SplitAndSum();
  const tf::GraphDef def = Message(b.graph, OutputShapes::kWrite);
  const tf::AttrValue& shapes = def.node(0).attr().at("_output_shapes");
  ASSERT_EQ(shapes.list().shape_size(), 1);
  EXPECT_EQ(shapes.list().shape(0).dim(0).size(), -1);
  EXPECT_EQ(shapes.list().shape(0).dim(1).size(), 2);
}

TEST(Export, SameGraphSameBytesInBothFormats) {
  const Builder a = SplitAndSum();
  const Builder b = SplitAndSum();
  for (const GraphFormat format : {GraphFormat::kBinary, GraphFormat::kText}) {
    const std::string bytes = *ExportGraphDef(a.graph, format);
    EXPECT_EQ(*ExportGraphDef(b.graph, format), bytes);
    const Result<Definition> read = ParseGraph(bytes, TestOps());
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*ExportGraphDef(*read, format), bytes);
  }
}

TEST(Export, TextReadsAsTensorFlowPrints) {
  Builder b;
  b.Op("NoOp", "a", {});
  NodeSpec spec;
  spec.name = "b";
  spec.op = TestOps().Find("NoOp");
  spec.control_inputs = {0};
  ASSERT_TRUE(b.graph.Add(std::move(spec)).ok());
  EXPECT_EQ(*ExportGraphDef(b.graph, GraphFormat::kText),
            "node {\n  name: \"a\"\n  op: \"NoOp\"\n}\nnode {\n  name: \"b\"\n  op: \"NoOp\"\n  input: \"^a\"\n}\n"
            "versions {\n  producer: 134\n}\n");
}

TEST(Export, AnInputThatWasNeverSet) {
  Builder b;
  const Endpoint x = b.Placeholder("x", DType::kFloat);
  b.Op("Merge", "merge", {x, Endpoint{}}, {{"T", DType::kFloat}, {"N", 2}});
  const Status status = ExportGraphDef(b.graph).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.message(), "Node 'merge' has an input that was never set");
}

TEST(Export, LoopsComeBack) {
  Builder b;
  const Endpoint x = b.Placeholder("x", DType::kFloat);
  const Endpoint merge = b.Op("Merge", "merge", {x, Endpoint{}}, {{"T", DType::kFloat}, {"N", 2}});
  const Endpoint next = b.Op("NextIteration", "next", {merge}, {{"T", DType::kFloat}});
  ASSERT_TRUE(b.graph.SetInput(merge.node, 1, next).ok());
  const std::string bytes = *ExportGraphDef(b.graph);
  const Result<Definition> read = ParseGraph(bytes, TestOps());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*ExportGraphDef(*read), bytes);
}

/// Memory that is reserved but never touched.
class HollowBuffer final : public Buffer {
 public:
  explicit HollowBuffer(uint64_t bytes) : Buffer(Describe(bytes)) {}

 private:
  static weir_buf Describe(uint64_t bytes) {
    weir_buf memory = {};
    memory.struct_size = sizeof(memory);
    memory.bytes = bytes;
    return memory;
  }
};

// F325: the error for a graph too large for protobuf names the largest nodes.
TEST(Export, BeyondTwoGigabytesNamesTheLargestNodes) {
  Builder b;
  for (int i = 1; i <= 6; ++i) {
    const int64_t elements = (int64_t{1} << 26) * i;
    const auto buffer = std::make_shared<HollowBuffer>(static_cast<uint64_t>(elements) * 4);
    b.Const("c" + std::to_string(i), *Tensor::Over(DType::kFloat, Shape::Of({elements}), buffer));
  }
  const Status status = ExportGraphDef(b.graph).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("'c6' (1610612736 bytes), 'c5'"), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find("'c1'"), std::string::npos) << status.message();
}

TEST(Export, ConstantOnAnotherDevice) {
  Builder b;
  b.Const("c", *Tensor::Over(DType::kFloat, Shape::Of({4}), std::make_shared<HollowBuffer>(16)));
  const Status status = ExportGraphDef(b.graph).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.node(), "c");
}

}  // namespace
}  // namespace weir::graph
