#include <fmt/format.h>

#include "core/graph/definition.h"

#include <gtest/gtest.h>

#include "tests/unit/graph/test_ops.h"

namespace weir::graph {
namespace {

NodeSpec Spec(std::string name, std::string_view op, std::vector<Endpoint> inputs = {}, op::AttrList attrs = {}) {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.op = TestOps().Find(op);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  return spec;
}

const op::AttrList kFloatT = {{"T", DType::kFloat}};

TEST(GraphAdd, FillsTheNode) {
  Builder b;
  const Endpoint a = b.Placeholder("a", DType::kFloat, PartialShape::Of({-1, 3}));
  NodeSpec spec = Spec("scope/sum", "AddV2", {a, a}, kFloatT);
  spec.device = "/device:CPU:0";
  spec.origin = "model.cc:7";
  spec.control_inputs = {0, 0};
  const Result<Node*> node = b.graph.Add(std::move(spec));
  ASSERT_TRUE(node.ok()) << node.status().ToString();
  EXPECT_EQ((*node)->id(), 1);
  EXPECT_EQ((*node)->name(), "scope/sum");
  EXPECT_EQ((*node)->op().name, "AddV2");
  EXPECT_EQ((*node)->device(), "/device:CPU:0");
  EXPECT_EQ((*node)->origin(), "model.cc:7");
  EXPECT_EQ((*node)->control_inputs().size(), 1u);  // duplicates are merged
  EXPECT_EQ(b.graph.TypeOf({1, 0}), DType::kFloat);
  EXPECT_EQ(b.ShapeOf({1, 0}), "[?,3]");
  EXPECT_EQ(b.graph.Find("scope/sum"), *node);
  EXPECT_EQ(b.graph.Find("scope"), nullptr);
  EXPECT_EQ(b.graph.Summary(1), "{{node scope/sum}} = AddV2[T=DT_FLOAT, _device=\"/device:CPU:0\"](a, a, ^a)");
}

TEST(GraphAdd, LikeNodesShareTheirSignature) {
  Builder b;
  const Endpoint f = b.Placeholder("f", DType::kFloat);
  const Endpoint d = b.Placeholder("d", DType::kDouble);
  const Endpoint f1 = b.Op("Identity", "f1", {f}, kFloatT);
  const Endpoint f2 = b.Op("Identity", "f2", {f1}, kFloatT);
  const Endpoint d1 = b.Op("Identity", "d1", {d}, {{"T", DType::kDouble}});
  EXPECT_EQ(&b.graph.node(f1.node).signature(), &b.graph.node(f2.node).signature());
  EXPECT_EQ(b.graph.TypeOf(d1), DType::kDouble);
  const Endpoint two = b.Op("Pack", "two", {f, f}, {{"T", DType::kFloat}, {"N", 2}});
  const Endpoint three = b.Op("Pack", "three", {f, f, f}, {{"T", DType::kFloat}, {"N", 3}});
  EXPECT_EQ(b.graph.node(two.node).signature().inputs.size(), 2u);
  EXPECT_EQ(b.graph.node(three.node).signature().inputs.size(), 3u);
}

TEST(GraphAdd, AReferenceMayBeReadAsAValue) {
  Builder b;
  const Endpoint v = b.Op("VariableV2", "v", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}});
  EXPECT_EQ(b.graph.TypeOf(v), RefType(DType::kFloat));
  const Endpoint read = b.Op("Identity", "read", {v}, kFloatT);
  EXPECT_EQ(b.graph.TypeOf(read), DType::kFloat);
  const Status status = b.Refused(Spec("assign", "Assign", {read, read}, kFloatT));
  EXPECT_EQ(status.message(),
            "Input 0 of node assign was passed float from read:0 incompatible with expected float_ref.");
}

struct Refusal {
  const char* what;
  NodeSpec spec;
  std::string message;
};

TEST(GraphAdd, TextsOfRefusals) {
  Builder b;
  const Endpoint f = b.Placeholder("f", DType::kFloat, PartialShape::Of({2}));
  const Endpoint g = b.Placeholder("g", DType::kFloat, PartialShape::Of({3}));
  const Endpoint i = b.Placeholder("i", DType::kInt32);
  const std::string add_v2 = op::Summarize(*TestOps().Find("AddV2"));
  NodeSpec bad_control = Spec("n", "NoOp");
  bad_control.control_inputs = {17};
  const Refusal refusals[] = {
      {"second node of a name", Spec("f", "NoOp"), "Node 'f' is not unique"},
      {"blank in a name", Spec("a b", "NoOp"), "Node 'a b': Node name contains invalid characters"},
      {"no name", Spec("", "NoOp"), "Node '': Node name contains invalid characters"},
      {"no op", Spec("n", "NoSuchOp"), "Node 'n' has no op"},
      {"too few inputs", Spec("n", "AddV2", {f}, kFloatT),
       "NodeDef expected inputs 'float, float' do not match 1 inputs specified; " + add_v2 + "; NodeDef: {{node n}}"},
      {"too many inputs", Spec("n", "AddV2", {f, f, f}, kFloatT),
       "NodeDef expected inputs 'float, float' do not match 3 inputs specified; " + add_v2 + "; NodeDef: {{node n}}"},
      {"wrong type", Spec("n", "AddV2", {f, i}, kFloatT),
       "Input 1 of node n was passed int32 from i:0 incompatible with expected float."},
      {"output that is not there", Spec("n", "AddV2", {f, {0, 7}}, kFloatT),
       "Node 'n': Connecting to invalid output 7 of source node f which has 1 outputs"},
      {"negative output", Spec("n", "AddV2", {f, {0, -3}}, kFloatT),
       "Node 'n': Connecting to invalid output -3 of source node f which has 1 outputs"},
      {"node that is not there", Spec("n", "AddV2", {f, {99, 0}}, kFloatT),
       "Node 'n': input 1 comes from node 99, which the graph does not have"},
      {"control input that is not there", std::move(bad_control), "Node 'n': control input 17 is no node of the graph"},
      {"missing attribute", Spec("n", "AddV2", {f, f}),
       "NodeDef missing attr 'T' from " + add_v2 + "; NodeDef: {{node n}}"},
      {"constant of another type",
       Spec("n", "Const", {}, {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<int32_t>(1)}}),
       "Type mismatch between value (int32) and dtype (float)\n\t [[{{node n}}]]"},
      {"shapes that do not fit", Spec("n", "AddV2", {f, g}, kFloatT),
       "Dimensions must be equal, but are 2 and 3 for 'n' (op: 'AddV2') with input shapes: [2], [3]."},
  };
  for (const Refusal& refusal : refusals) {
    NodeSpec spec = refusal.spec;
    spec.origin = "model.cc:1";
    const std::string name = spec.name;
    const Status status = b.Refused(std::move(spec));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << refusal.what;
    EXPECT_EQ(status.message(), refusal.message) << refusal.what;
    EXPECT_EQ(status.node(), name) << refusal.what;
    EXPECT_EQ(status.where(), "model.cc:1") << refusal.what;
  }
}

TEST(GraphAdd, AttributesOutOfRange) {
  Builder b;
  const Endpoint f = b.Placeholder("f", DType::kFloat);
  const op::AttrList bad[] = {
      {{"T", DType::kString}},                     // not among the allowed types
      {{"T", "text"}},                             // wrong kind
      {{"T", std::vector<DType>{DType::kFloat}}},  // a list
  };
  for (const op::AttrList& attrs : bad) {
    const Status status = b.Refused(Spec("n", "AddV2", {f, f}, attrs));
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_TRUE(status.message().ends_with("; NodeDef: {{node n}}")) << status.message();
  }
  EXPECT_EQ(b.Refused(Spec("n", "Pack", {}, {{"T", DType::kFloat}, {"N", 0}})).code(), Code::kInvalidArgument);
  EXPECT_EQ(b.Refused(Spec("n", "Split2", {f}, {{"T", DType::kFloat}, {"mode", "z"}})).code(), Code::kInvalidArgument);
}

TEST(GraphAdd, UnknownAttributesAreKept) {
  Builder b;
  const Endpoint f = b.Placeholder("f", DType::kFloat);
  const Endpoint n = b.Op("Identity", "n", {f}, {{"T", DType::kFloat}, {"newer", 3}, {"_class", "x"}});
  EXPECT_EQ(*b.graph.node(n.node).attrs().Int("newer"), 3);
}

TEST(GraphAdd, RefusedOnceFinalized) {
  Builder b;
  b.graph.Finalize();
  const Status status = b.Refused(Spec("n", "NoOp"));
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.message(), "Graph is finalized and cannot be modified.");
}

TEST(GraphAdd, ARefusedNodeLeavesItsNameFree) {
  Builder b;
  EXPECT_FALSE(b.Refused(Spec("n", "AddV2")).ok());
  b.Op("NoOp", "n", {});
  EXPECT_EQ(b.graph.num_nodes(), 1);
}

TEST(GraphAdd, ManyNodesAreFoundAndSurviveAMove) {
  Builder b;
  for (int i = 0; i < 1000; ++i) b.Op("NoOp", "n" + std::to_string(i), {});
  Definition moved = std::move(b.graph);
  for (int i = 0; i < 1000; ++i) {
    const Node* node = moved.Find("n" + std::to_string(i));
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->id(), i);
  }
  EXPECT_EQ(moved.Names().size(), 1000u);
  moved.Truncate(10);
  EXPECT_NE(moved.Find("n9"), nullptr);
  EXPECT_EQ(moved.Find("n10"), nullptr);
  EXPECT_EQ(moved.num_nodes(), 10);
}

TEST(GraphSetInput, ClosesALoop) {
  Builder b;
  const Endpoint start = b.Placeholder("start", DType::kFloat);
  const Endpoint merge = b.Op("Merge", "merge", {start, Endpoint{}}, {{"T", DType::kFloat}, {"N", 2}});
  const Endpoint next = b.Op("NextIteration", "next", {merge}, kFloatT);
  ASSERT_TRUE(b.graph.SetInput(merge.node, 1, next).ok());
  EXPECT_EQ(b.graph.node(merge.node).inputs()[1], next);

  const Endpoint after = b.Op("Identity", "after", {next}, kFloatT);
  const Status cycle = b.graph.SetInput(merge.node, 0, after);
  EXPECT_EQ(cycle.message(), "Node 'merge': input 0 from 'after', which is younger, would close a cycle");
  EXPECT_EQ(b.graph.SetInput(merge.node, 2, start).message(), "Node 'merge' has no input 2");
  EXPECT_EQ(b.graph.SetInput(merge.node, 0, {77, 0}).code(), Code::kInvalidArgument);
  const Status type = b.graph.SetInput(next.node, 0, {merge.node, 1});
  EXPECT_EQ(type.message(), "Input 0 of node next was passed int32 from merge:1 incompatible with expected float.");
  EXPECT_EQ(b.graph.node(next.node).inputs()[0], merge);
}

TEST(GraphAddControlInput, OnlyFromOlderNodes) {
  Builder b;
  b.Op("NoOp", "a", {});
  b.Op("NoOp", "b", {});
  EXPECT_TRUE(b.graph.AddControlInput(1, 0).ok());
  EXPECT_TRUE(b.graph.AddControlInput(1, 0).ok());
  EXPECT_EQ(b.graph.node(1).control_inputs().size(), 1u);
  EXPECT_EQ(b.graph.AddControlInput(0, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(b.graph.AddControlInput(0, 0).code(), Code::kInvalidArgument);
}

TEST(GraphRefineShape, MergesOrRefuses) {
  Builder b;
  const Endpoint a = b.Placeholder("a", DType::kFloat, PartialShape::Of({-1, 3}));
  EXPECT_TRUE(b.graph.RefineShape(a, PartialShape::Of({2, -1})).ok());
  EXPECT_EQ(b.ShapeOf(a), "[2,3]");
  const Status status = b.graph.RefineShape(a, PartialShape::Of({4, 3}));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.node(), "a");
  EXPECT_EQ(b.ShapeOf(a), "[2,3]");
}

TEST(GraphSetAttr, AddsAndReplaces) {
  Builder b;
  b.Op("NoOp", "a", {});
  b.graph.SetAttr(0, "_class", std::vector<std::string>{"loc:@b"});
  b.graph.SetAttr(0, "_class", std::vector<std::string>{"loc:@c"});
  b.graph.SetDevice(0, "/cpu:0");
  EXPECT_EQ(*b.graph.node(0).attrs().Strings("_class"), (std::vector<std::string>{"loc:@c"}));
  EXPECT_EQ(b.graph.node(0).device(), "/cpu:0");
}

TEST(Names, Valid) {
  for (const char* name : {"a", "A1", ".a", "0", "a/b", "a_b-c.d/e", "a>b", "a/b>.c>d"}) EXPECT_TRUE(IsValidName(name));
  for (const char* name : {"", "_a", "/a", "-a", "a b", "a\\b", "a:0", "^a", "a>", ">a", "a>_b", "\xc3\xa9"}) {
    EXPECT_FALSE(IsValidName(name)) << name;
  }
  EXPECT_TRUE(IsValidInternalName("_a/b"));
  EXPECT_FALSE(IsValidInternalName("_a b"));
  EXPECT_FALSE(IsValidInternalName(""));
}

TEST(Names, Inputs) {
  const auto parse = [](std::string_view text) {
    const Result<InputName> name = ParseInputName(text);
    return name.ok() ? fmt::format("{}|{}|{}", name->node, name->index, name->control) : name.status().message();
  };
  EXPECT_EQ(parse("a"), "a|0|false");
  EXPECT_EQ(parse("a/b:12"), "a/b|12|false");
  EXPECT_EQ(parse("^a"), "a|0|true");
  EXPECT_EQ(parse("a1"), "a1|0|false");
  EXPECT_EQ(parse("12"), "12|0|false");
  EXPECT_EQ(parse("^a1"), "a1|0|true");
  EXPECT_EQ(parse("^a:0"), "Illegal op input name '^a:0'");
  EXPECT_EQ(parse(""), "Illegal op input name ''");
  EXPECT_EQ(parse("^"), "Illegal op input name '^'");
  EXPECT_EQ(parse(":1"), "Illegal op input name ':1'");
  EXPECT_EQ(parse("a:99999999999"), "Illegal op input name 'a:99999999999'");
  EXPECT_EQ(parse("a:"), "a:|0|false");  // without digits, all of it is a name
}

TEST(Names, Endpoints) {
  Builder b;
  b.Placeholder("x", DType::kFloat);
  EXPECT_EQ(EndpointName(b.graph, {0, 0}), "x");
  EXPECT_EQ(EndpointName(b.graph, {0, 2}), "x:2");
  EXPECT_EQ(FullEndpointName(b.graph, {0, 0}), "x:0");
}

TEST(ForeignOps, AreSharedByNameAndCount) {
  Definition graph(TestOps());
  const op::OpDef& one = graph.AddForeignOp("Custom", 1);
  EXPECT_EQ(&graph.AddForeignOp("Custom", 1), &one);
  EXPECT_NE(&graph.AddForeignOp("Custom", 2), &one);
  EXPECT_EQ(one.outputs.size(), 1u);
}

}  // namespace
}  // namespace weir::graph
