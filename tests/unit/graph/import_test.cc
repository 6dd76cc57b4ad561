#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/graph/graph_view.h"
#include "core/proto/parse.h"
#include "tests/unit/graph/test_ops.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

/// Converts a graph from text to the wire format.
std::string Binary(const std::string& text) {
  tf::GraphDef def;
  const Status status = proto::ParseText(text, "GraphDef", def);
  EXPECT_TRUE(status.ok()) << status.ToString() << text;
  return *proto::Serialize(def, "GraphDef");
}

std::string NodeString(const std::string& name, const std::string& op, const std::vector<std::string>& inputs = {},
                       const std::string& rest = "") {
  std::string text = "node { name: '" + name + "' op: '" + op + "' ";
  for (const std::string& input : inputs) text += "input: '" + input + "' ";
  return text + rest + " }\n";
}

std::string Float(const std::string& name, const std::string& op, const std::vector<std::string>& inputs) {
  return NodeString(name, op, inputs, "attr { key: 'T' value { type: DT_FLOAT } }");
}

std::string Placeholder(const std::string& name, const std::string& shape = "dim { size: 2 }") {
  return NodeString(
      name, "Placeholder", {},
      "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { " + shape + " } } }");
}

constexpr const char* kNow = "versions { producer: 134 }";

std::string Names(const Definition& graph) {
  std::string names;
  for (const std::string_view name : graph.Names()) names += (names.empty() ? "" : " ") + std::string(name);
  return names;
}

Status ErrorOf(const std::string& text, const ImportOptions& options = {}) {
  Definition graph(TestOps());
  const Status from_binary = ImportGraphDef(Binary(text), options, graph);
  EXPECT_EQ(graph.num_nodes(), 0);
  const Status from_text = ImportGraphDef(text, options, graph);
  EXPECT_EQ(from_text.message(), from_binary.message());
  return from_binary;
}

TEST(Import, BinaryAndTextGiveTheSameGraph) {
  const std::string text =
      Placeholder("x") + Float("y", "AddV2", {"x", "x:0"}) + NodeString("done", "NoOp", {"^y"}) + kNow;
  for (const std::string& bytes : {text, Binary(text), "# a comment\n" + text}) {
    const Result<Definition> graph = ParseGraph(bytes, TestOps());
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    EXPECT_EQ(Names(*graph), "x y done");
    EXPECT_EQ(graph->ShapeOf({1, 0}).ToString(), "[2]");
    EXPECT_EQ(graph->node(2).control_inputs()[0], 1);
    EXPECT_EQ(graph->versions().producer, 134);
  }
}

TEST(Import, NothingIsAGraphToo) {
  const Result<Definition> graph = ParseGraph("", TestOps());
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->num_nodes(), 0);
  EXPECT_EQ(graph->versions().producer, 0);
}

TEST(Import, AnyOrderOfNodes) {
  const std::string text = Float("c", "AddV2", {"b", "a"}) + NodeString("d", "NoOp", {"^c"}) +
                           Float("b", "Identity", {"a"}) + Placeholder("a") + kNow;
  const Result<Definition> graph = ParseGraph(Binary(text), TestOps());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(Names(*graph), "a b c d");
}

TEST(Import, AFileInOrderKeepsItsOrder) {
  const Result<Definition> graph = ParseGraph(
      Binary(Placeholder("b") + Placeholder("a") + Float("z", "Identity", {"a"}) + Float("y", "Identity", {"b"})),
      TestOps());
  EXPECT_EQ(Names(*graph), "b a z y");
}

TEST(Import, LongChainsBackwards) {
  std::string text;
  for (int i = 20'000; i > 0; --i) text += NodeString("n" + std::to_string(i), "NoOp", {"^n" + std::to_string(i - 1)});
  const Result<Definition> graph = ParseGraph(Binary(text + NodeString("n0", "NoOp")), TestOps());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(graph->node(20'000).name(), "n20000");
}

TEST(Import, LoopsCloseThroughNextIteration) {
  const std::string text = Placeholder("x") +
                           NodeString("m", "Merge", {"x", "next"},
                                      "attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'N' value { i: 2 } }") +
                           Float("next", "NextIteration", {"m"});
  const Result<Definition> graph = ParseGraph(Binary(text), TestOps());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const graph::Node& merge = *graph->Find("m");
  EXPECT_EQ(merge.inputs()[1].node, graph->Find("next")->id());
  EXPECT_EQ(ErrorOf(Placeholder("x") +
                    NodeString("m", "Merge", {"x", "next"},
                               "attr { key: 'T' value { type: DT_DOUBLE } } attr { key: 'N' value { i: 2 } }") +
                    Float("next", "NextIteration", {"m"}))
                .code(),
            Code::kInvalidArgument);
}

TEST(Import, TextsOfRefusals) {
  const struct {
    std::string text;
    std::string message;
    std::string node;
  } refusals[] = {
      {NodeString("a", "NoOp") + NodeString("a", "NoOp"), "Node 'a' is not unique", "a"},
      {NodeString("a", "NoOp", {"^b"}), "Node 'a': Unknown input node 'b'", "a"},
      {Float("y", "Identity", {"x:1"}), "Node 'y': Unknown input node 'x'", "y"},
      {NodeString("_a", "NoOp"), "Node '_a': Node name contains invalid characters", "_a"},
      {NodeString("a b", "NoOp"), "Node 'a b': Node name contains invalid characters", "a b"},
      {NodeString("", "NoOp"), "Node '': Node name contains invalid characters", ""},
      {NodeString("a", "NoOp") + Placeholder("x") + Float("y", "Identity", {"^a", "x"}),
       "Node 'y': Control dependencies must come after regular dependencies", "y"},
      {NodeString("a", "NoOp") + NodeString("b", "NoOp", {"^a:0"}), "Illegal op input name '^a:0'\n\t [[{{node b}}]]",
       "b"},
      {Placeholder("x") + Float("y", "Identity", {"x:7"}),
       "Node 'y': Connecting to invalid output 7 of source node x which has 1 outputs", "y"},
      {NodeString("a", "NoOp", {"^c"}) + NodeString("b", "NoOp", {"^a"}) + NodeString("c", "NoOp", {"^b"}),
       "3 nodes in a cycle: 'a' -> 'b' -> 'c' -> 'a'", "a"},
      {NodeString("a", "NoOp", {"^a"}), "1 nodes in a cycle: 'a' -> 'a'", "a"},
      {NodeString(
           "c", "Const", {},
           "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_INT32 } } }"),
       "Type mismatch between value (int32) and dtype (float)\n\t [[{{node c}}]]", "c"},
      {NodeString("c", "Const", {},
                  "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT "
                  "tensor_content: 'abc' } } }"),
       "Cannot parse tensor from proto: dtype: DT_FLOAT\ntensor_content: \"abc\"\n\n\t for attr 'value'\n\t [[{{node "
       "c}}]]",
       "c"},
      {NodeString("n", "NoOp", {}, "attr { key: 'a' value { } }"),
       "AttrValue missing value\n\t for attr 'a'\n\t [[{{node n}}]]", "n"},
      {NodeString("n", "NoOp", {}, "attr { key: 'a' value { list { i: 1 f: 2 } } }"),
       "AttrValue had a list with values of 2 kinds\n\t for attr 'a'\n\t [[{{node n}}]]", "n"},
      {"versions { producer: 1900 min_consumer: 1883 }",
       "GraphDef min consumer version 1883 above current version 1882 for weir.  Please upgrade weir.", ""},
      {"versions { bad_consumers: [3, 1882] }",
       "GraphDef disallows consumer version 1882.  Please upgrade weir: this version is likely buggy.", ""},
      {"versions { producer: -1 }",
       "GraphDef producer version -1 below min producer 0 supported by weir.  Please regenerate your graph.", ""},
  };
  for (const auto& refusal : refusals) {
    const Status status = ErrorOf(refusal.text + "\n");
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << refusal.text;
    EXPECT_EQ(status.message(), refusal.message);
    EXPECT_EQ(status.node(), refusal.node) << refusal.text;
  }
}

TEST(Import, LongCyclesAreCut) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += NodeString("n" + std::to_string(i), "NoOp", {"^n" + std::to_string((i + 1) % 100)});
  }
  const Status status = ErrorOf(text);
  EXPECT_TRUE(status.message().starts_with("100 nodes in a cycle: ")) << status.message();
  EXPECT_TRUE(status.message().ends_with(" -> ...")) << status.message();
}

TEST(Import, UnknownOp) {
  const std::string text = Placeholder("x") + NodeString("y", "Identiti", {"x"}) +
                           NodeString("z", "NoOp", {"^y", "^x"}) + Float("w", "Identity", {"y:2"});
  const Status status = ErrorOf(text);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_TRUE(status.message().starts_with("Op type not registered 'Identiti' in binary running on "))
      << status.message();
  EXPECT_NE(status.message().find("'Identity'"), std::string::npos) << status.message();
  EXPECT_EQ(status.node(), "y");

  const Result<Definition> graph = ParseGraph(Binary(text), TestOps(), {.allow_unknown_ops = true});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const graph::Node& y = *graph->Find("y");
  EXPECT_TRUE(graph->IsForeign(y));
  EXPECT_FALSE(graph->IsForeign(*graph->Find("w")));
  EXPECT_EQ(y.op().name, "Identiti");
  EXPECT_EQ(y.num_outputs(), 3);
  EXPECT_EQ(y.inputs().size(), 1u);
  EXPECT_FALSE(y.output_shapes()[2].has_rank());
}

TEST(Import, RemovedOp) {
  op::OpRegistry ops;
  DeclareTestOps(ops);
  ops.Declare("Old").NoGradient("gone").Shape(op::NoOutputs());
  ASSERT_TRUE(ops.Freeze().ok());
  const_cast<op::OpDef*>(ops.Find("Old"))->deprecated_since = 16;
  const std::string text = NodeString("a", "Old");
  EXPECT_TRUE(ParseGraph(Binary(text + "versions { producer: 15 }"), ops).ok());
  const Status status = ParseGraph(Binary(text + "versions { producer: 16 }"), ops).status();
  EXPECT_EQ(status.code(), Code::kUnimplemented);
  EXPECT_EQ(status.message(), "Op Old is not available in GraphDef version 16. It has been removed in version 16.");
}

TEST(Import, DefaultsAreFilledInAndStrangersKept) {
  const Result<Definition> graph =
      ParseGraph(Binary(Placeholder("x") + NodeString("s", "Shape", {"x"},
                                                      "attr { key: 'T' value { type: DT_FLOAT } } "
                                                      "attr { key: 'newer' value { b: true } } "
                                                      "attr { key: '_class' value { list { s: 'loc:@x' } } }")),
                 TestOps());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const op::AttrView attrs = graph->Find("s")->attrs();
  EXPECT_EQ(*attrs.Type("out_type"), DType::kInt32);
  EXPECT_TRUE(*attrs.Bool("newer"));
  EXPECT_EQ((*attrs.Strings("_class"))[0], "loc:@x");
}

TEST(Import, EmptyShapeOfOldPlaceholdersIsUnknown) {
  for (const auto& [versions, shape] : std::map<std::string, std::string>{
           {"", "<unknown>"}, {"versions { producer: 21 }", "<unknown>"}, {"versions { producer: 22 }", "[]"}}) {
    const Result<Definition> graph = ParseGraph(Binary(Placeholder("x", "") + versions), TestOps());
    EXPECT_EQ(graph->ShapeOf({0, 0}).ToString(), shape) << versions;
  }
}

TEST(Import, EveryKindOfAttribute) {
  const std::string attrs = R"(
    attr { key: 's' value { s: "\000x" } } attr { key: 'i' value { i: -5 } } attr { key: 'f' value { f: 1.5 } }
    attr { key: 'b' value { b: true } } attr { key: 't' value { type: DT_HALF } }
    attr { key: 'sh' value { shape { dim { size: -1 } dim { size: 3 } } } }
    attr { key: 'un' value { shape { unknown_rank: true } } }
    attr { key: 'te' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 4 } } }
    attr { key: 'fu' value { func { name: 'g' attr { key: 'T' value { type: DT_INT8 } } } } }
    attr { key: 'p' value { placeholder: 'T' } } attr { key: 'e' value { list { } } }
    attr { key: 'ls' value { list { s: 'a' s: 'b' } } } attr { key: 'li' value { list { i: [1, -2] } } }
    attr { key: 'lf' value { list { f: [0.5] } } } attr { key: 'lb' value { list { b: [true, false] } } }
    attr { key: 'lt' value { list { type: [DT_FLOAT, DT_BOOL] } } }
    attr { key: 'lsh' value { list { shape { } shape { dim { size: 1 } } } } }
    attr { key: 'lte' value { list { tensor { dtype: DT_BOOL tensor_shape { } bool_val: true } } } }
    attr { key: 'lfu' value { list { func { name: 'h' } } } })";
  const std::string bytes = Binary(NodeString("n", "NoOp", {}, attrs) + kNow);
  const Result<Definition> graph = ParseGraph(bytes, TestOps());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  std::map<std::string, std::string> printed;
  for (const auto& [name, value] : graph->node(0).attrs().explicit_values()) printed[name] = value.TypeName();
  const std::map<std::string, std::string> wanted = {
      {"s", "string"},      {"i", "int"},           {"f", "float"},
      {"b", "bool"},        {"t", "type"},          {"sh", "shape"},
      {"un", "shape"},      {"te", "tensor"},       {"fu", "func"},
      {"p", "placeholder"}, {"e", "list"},          {"ls", "list(string)"},
      {"li", "list(int)"},  {"lf", "list(float)"},  {"lb", "list(bool)"},
      {"lt", "list(type)"}, {"lsh", "list(shape)"}, {"lte", "list(tensor)"},
      {"lfu", "list(func)"}};
  EXPECT_EQ(printed, wanted);
  EXPECT_EQ(*graph->node(0).attrs().String("s"), std::string("\0x", 2));
  EXPECT_EQ(*graph->node(0).attrs().Int("i"), -5);
  EXPECT_EQ(*ExportGraphDef(*graph), bytes);
}

TEST(Import, PrefixRenames) {
  Definition graph(TestOps());
  const std::string bytes =
      Binary(Placeholder("x") + NodeString("y", "Identity", {"x", "^x"},
                                           "attr { key: 'T' value { type: DT_FLOAT } } "
                                           "attr { key: '_class' value { list { s: 'loc:@x' } } }"));
  ASSERT_TRUE(ImportGraphDef(bytes, {}, graph).ok());
  ASSERT_TRUE(ImportGraphDef(bytes, {.prefix = "copy"}, graph).ok());
  EXPECT_EQ(Names(graph), "x y copy/x copy/y");
  EXPECT_EQ(graph.node(3).inputs()[0].node, 2);
  EXPECT_EQ((*graph.node(3).attrs().Strings("_class"))[0], "loc:@copy/x");
  const Status status = ImportGraphDef(bytes, {}, graph);
  EXPECT_EQ(status.message(), "Node name 'x' already exists in the Graph");
  EXPECT_EQ(graph.num_nodes(), 4);
}

TEST(Import, GraphsOfTensorFlow217AndLaterAreRead) {
  for (const char* versions : {"versions { producer: 1882 min_consumer: 1882 }", "versions { producer: 9999 }",
                               "versions { producer: 1882 min_consumer: 12 bad_consumers: [134, 1054] }"}) {
    Definition graph(TestOps());
    EXPECT_TRUE(ImportGraphDef(Binary(Placeholder("x") + versions), {}, graph).ok()) << versions;
  }
}

TEST(Import, TakenNamesGetTheFirstFreeNumber) {
  Definition graph(TestOps());
  const std::string y = NodeString("y", "Identity", {"x"},
                                   "attr { key: 'T' value { type: DT_FLOAT } } "
                                   "attr { key: '_class' value { list { s: 'loc:@x' } } }");
  ASSERT_TRUE(ImportGraphDef(Binary(Placeholder("x") + Placeholder("y/in")), {}, graph).ok());
  ASSERT_TRUE(ImportGraphDef(Binary(Placeholder("x_1") + Placeholder("x") + y), {.rename_taken = true}, graph).ok());
  EXPECT_EQ(Names(graph), "x y/in x_1 x_2 y_1");
  EXPECT_EQ(graph.node(4).inputs()[0].node, 3);
  EXPECT_EQ((*graph.node(4).attrs().Strings("_class"))[0], "loc:@x_2");
}

TEST(Import, MayReferToNodesThatWereThere) {
  Definition graph(TestOps());
  ASSERT_TRUE(ImportGraphDef(Binary(Placeholder("x") + "versions { producer: 100 }"), {}, graph).ok());
  ASSERT_TRUE(ImportGraphDef(Binary(Float("y", "Identity", {"x"}) + "versions { producer: 50 min_consumer: 3 "
                                                                    "bad_consumers: 7 }"),
                             {}, graph)
                  .ok());
  EXPECT_EQ(graph.node(1).inputs()[0].node, 0);
  EXPECT_EQ(graph.versions().producer, 50);
  EXPECT_EQ(graph.versions().min_consumer, 3);
  EXPECT_EQ(graph.versions().bad_consumers, std::vector<int32_t>{7});
}

TEST(Import, AFailureInTheMiddleTakesEverythingBack) {
  Definition graph(TestOps());
  ASSERT_TRUE(ImportGraphDef(Binary(Placeholder("x")), {}, graph).ok());
  const std::string bad = Placeholder("a") + Float("b", "Identity", {"a"}) + Float("c", "AddV2", {"a"});
  EXPECT_FALSE(ImportGraphDef(Binary(bad), {}, graph).ok());
  EXPECT_EQ(Names(graph), "x");
  EXPECT_EQ(graph.Find("a"), nullptr);
  EXPECT_TRUE(ImportGraphDef(Binary(Placeholder("a")), {}, graph).ok());
}

TEST(Import, InternalNamesWhenAllowed) {
  EXPECT_TRUE(ParseGraph(Binary(NodeString("_send", "NoOp")), TestOps(), {.allow_internal_names = true}).ok());
}

TEST(Import, ConstantsShareOneBudget) {
  const auto big = [](const std::string& name) {
    return NodeString(
        name, "Const", {},
        "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: DT_FLOAT "
        "tensor_shape { dim { size: 1000 } } float_val: 1 } } }");
  };
  EXPECT_TRUE(ParseGraph(Binary(big("a")), TestOps(), {.max_expansion_bytes = 5000}).ok());
  const Status status = ParseGraph(Binary(big("a") + big("b")), TestOps(), {.max_expansion_bytes = 5000}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.node(), "b");
}

TEST(Import, B31_TenMillionNodesAreRefusedBeforeTheyAreRead) {
  std::string nodes(20'000'002, '\0');
  for (size_t i = 0; i < nodes.size(); i += 2) nodes[i] = '\n';
  const Status status = ParseGraph(nodes, TestOps()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "GraphDef has 10000001 nodes; fewer than 10000000 are allowed");
}

TEST(Import, OutputsAreChargedToo) {
  const std::string text = NodeString("n", "ManyOutputs", {}, "attr { key: 'N' value { i: 1000000 } }");
  op::OpRegistry ops;
  DeclareTestOps(ops);
  ops.Declare("ManyOutputs").Out("all: N*float").Attr("N: int >= 0").NoGradient("of a test").Shape(op::Unknown());
  ASSERT_TRUE(ops.Freeze().ok());
  EXPECT_TRUE(ParseGraph(Binary(text), ops).ok());
  const Status status = ParseGraph(Binary(text), ops, {.max_expansion_bytes = 1 << 20}).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.node(), "n");
}

TEST(Import, FinalizedGraph) {
  Definition graph(TestOps());
  graph.Finalize();
  EXPECT_EQ(ImportGraphDef("", {}, graph).code(), Code::kFailedPrecondition);
}

std::string SampleBytes() {
  return Binary(Placeholder("x") +
                NodeString("c", "Const", {},
                           "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { dtype: "
                           "DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [1, 2] } } }") +
                Float("y", "AddV2", {"x", "c"}) + NodeString("n", "NoOp", {"^y"}) +
                "library { function { signature { name: 'f' } } } " + kNow);
}

TEST(Import, CutAndFlippedFilesGiveAStatus) {
  const std::string bytes = SampleBytes();
  ASSERT_TRUE(ParseGraph(bytes, TestOps()).ok());
  EXPECT_EQ(ParseGraph(bytes.substr(0, bytes.size() - 1), TestOps()).status().code(), Code::kInvalidArgument);
  int refused = 0;
  testing::internal::CaptureStderr();
  for (size_t i = 0; i < bytes.size(); ++i) {
    refused += ParseGraph(bytes.substr(0, i), TestOps()).ok() ? 0 : 1;
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const Result<Definition> graph = ParseGraph(flipped, TestOps(), {.max_expansion_bytes = 1 << 20});
      EXPECT_TRUE(graph.ok() || !graph.status().message().empty());
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(refused, static_cast<int>(bytes.size()) - 10);
}

TEST(Import, RandomBytesGiveAStatus) {
  std::mt19937 random(7);
  const std::string sample = SampleBytes();
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = sample;
    for (int k = 0; k < 4; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<Definition> graph =
        ParseGraph(bytes, TestOps(), {.allow_unknown_ops = true, .max_expansion_bytes = 1 << 20});
    EXPECT_TRUE(!graph.ok() || ExportGraphDef(*graph).ok());
  }
}

TEST(Import, DeepAttributesAreRefused) {
  tf::AttrValue deep;
  tf::AttrValue* inner = &deep;
  for (int i = 0; i < 200; ++i) inner = &(*inner->mutable_func()->mutable_attr())["a"];
  inner->set_i(1);
  tf::GraphDef def;
  def.add_node()->set_name("n");
  def.mutable_node(0)->set_op("NoOp");
  (*def.mutable_node(0)->mutable_attr())["a"] = deep;
  const Status status = ParseGraph(*proto::Serialize(def, "GraphDef"), TestOps()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("nested deeper than 100"), std::string::npos) << status.message();
}

TEST(Import, TextErrorsSayWhere) {
  const Status status = ParseGraph("node {\n  name: 'a'\n  opp: 'NoOp'\n}", TestOps()).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("line 3"), std::string::npos) << status.message();
}

TEST(ViewGraph, LastOfEqualFieldsCounts) {
  const std::string once =
      Binary(NodeString("n", "NoOp", {}, "attr { key: 'b' value { i: 1 } } attr { key: 'a' value { i: 2 } }"));
  // The node's bytes with a second name and a second value of "b" after them.
  std::string node = once.substr(2);
  node += std::string("\x0a\x01m", 3) + std::string("\x2a\x07\x0a\x01") + std::string("b\x12\x02\x18\x05");
  const std::string bytes = "\x0a" + std::string(1, static_cast<char>(node.size())) + node;
  tf::GraphDef def;
  ASSERT_TRUE(proto::ParseBinary(bytes, "GraphDef", def).ok());
  ASSERT_EQ(def.node(0).name(), "m");
  ASSERT_EQ(def.node(0).attr().at("b").i(), 5);
  const Result<Definition> graph = ParseGraph(bytes, TestOps());
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(graph->node(0).name(), "m");
  EXPECT_EQ(*graph->node(0).attrs().Int("b"), 5);
  EXPECT_EQ(graph->node(0).attrs().explicit_values().size(), 2u);
}

TEST(ViewGraph, UnknownFieldsAreSkipped) {
  std::string bytes = SampleBytes();
  bytes += std::string(
      "\xfa\x01\x03"
      "abc",
      6);                                   // field 31, bytes
  bytes += std::string("\xf8\x01\x05", 3);  // field 31, varint
  bytes += std::string(
      "\xfd\x01"
      "1234",
      6);  // field 31, fixed32
  EXPECT_TRUE(ParseGraph(bytes, TestOps()).ok());
}

TEST(ViewGraph, GroupsAndFieldZeroAreMalformed) {
  EXPECT_FALSE(ViewGraph(std::string("\x0b\x0c", 2)).ok());
  EXPECT_FALSE(ViewGraph(std::string("\x00\x00", 2)).ok());
  EXPECT_FALSE(ViewGraph(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11)).ok());
}

TEST(ViewGraph, TenMillionNodesAreRefused) {
  std::string bytes;
  for (int i = 0; i < 10'000'000; ++i) bytes.append("\x0a\x00", 2);
  const Status status = ViewGraph(bytes).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("10000000 nodes"), std::string::npos) << status.message();
}

/// A constant of type `dtype` whose payload is `content`.
std::string Constant(const std::string& dtype, const std::string& shape, const std::string& content) {
  return NodeString("c", "Const", {},
                    "attr { key: 'dtype' value { type: " + dtype + " } } attr { key: 'value' value { tensor { dtype: " +
                        dtype + " tensor_shape { " + shape + " } tensor_content: '" + content + "' } } }");
}

const Tensor& ValueOf(const Definition& graph) { return *graph.Find("c")->attrs().Find("value")->get<Tensor>(); }

// Constants share the imported bytes where these have an owner and the alignment of buffers; else they are copies.
TEST(Import, LargeConstantsBorrowAlignedBytes) {
  std::string content;
  for (int i = 0; i < 8192; ++i) content.push_back(static_cast<char>('A' + i * 7 % 57 + i % 3));
  std::replace(content.begin(), content.end(), '\\', '_');
  const std::string binary = Binary(Constant("DT_FLOAT", "dim { size: 64 } dim { size: 32 }", content));
  const size_t at = binary.find(content);
  ASSERT_NE(at, std::string::npos);
  for (const bool owned : {true, false}) {
    for (const size_t shift : {size_t{0}, size_t{1}, size_t{4}, size_t{16}, size_t{32}}) {
      const auto memory = std::make_shared<std::vector<char>>(binary.size() + 128);
      char* const begin = memory->data() + (64 - reinterpret_cast<uintptr_t>(memory->data() + at) % 64) % 64 + shift;
      std::ranges::copy(binary, begin);
      ImportOptions options;
      if (owned) options.owner = memory;
      Definition graph(TestOps());
      const Status status = ImportGraphDef({begin, binary.size()}, options, graph);
      ASSERT_TRUE(status.ok()) << status.ToString();
      const Tensor& value = ValueOf(graph);
      EXPECT_EQ(value.dtype(), DType::kFloat);
      EXPECT_TRUE(value.shape() == Shape::Of({64, 32}));
      EXPECT_EQ(std::memcmp(value.raw(), content.data(), content.size()), 0);
      const bool borrows = owned && shift == 0;
      EXPECT_EQ(reinterpret_cast<const char*>(value.raw()) == begin + at, borrows) << shift;
      // Nothing may write the bytes of others.
      EXPECT_EQ(value.buffer()->lent(), borrows);
      options.owner = nullptr;
      EXPECT_EQ(memory.use_count() > 1, borrows);
    }
  }
}

// What the short way does not read, the message's parser reads or refuses.
TEST(Import, ConstantsWithUnusualPayloads) {
  const auto import = [](const std::string& text) {
    Definition graph(TestOps());
    ImportOptions options;
    options.owner = std::make_shared<int>();
    return ImportGraphDef(Binary(text), options, graph);
  };
  EXPECT_TRUE(import(Constant("DT_INT32", "dim { size: 1 }", "abcd")).ok());
  EXPECT_TRUE(import(Constant("DT_STRING", "dim { size: 1 }", "\\003abc")).ok());
  const std::string fault = "Cannot parse tensor from proto";
  for (const std::string& text : {
           Constant("DT_INT32", "dim { size: 2 }", "abcd"), Constant("DT_INT32", "dim { size: -1 }", "abcd"),
           Constant("DT_INT32", "unknown_rank: true", "abcd"), Constant("DT_INT32_REF", "dim { size: 1 }", "abcd"),
           Constant("DT_INT32", "dim { size: 4611686018427387904 } dim { size: 4 }", "abcd"),
           Constant("DT_INT32", "dim { size: 1 }", "abcde")}) {
    const Status status = import(text);
    EXPECT_NE(status.message().find(fault), std::string::npos) << text << status.ToString();
  }
  const Status cut = [&] {
    Definition graph(TestOps());
    std::string binary = Binary(Constant("DT_FLOAT", "dim { size: 2 }", "abcdefgh"));
    binary.resize(binary.size() - 3);
    return ImportGraphDef(binary, {}, graph);
  }();
  EXPECT_EQ(cut.code(), Code::kInvalidArgument) << cut.ToString();
  Definition bools(TestOps());
  ASSERT_TRUE(ImportGraphDef(Binary(Constant("DT_BOOL", "dim { size: 3 }", "\\001\\002\\000")), {}, bools).ok());
  EXPECT_TRUE(ValueOf(bools).SameBits(Tensor::Of<bool>(Shape::Of({3}), {true, true, false})));
}

}  // namespace
}  // namespace weir::graph
