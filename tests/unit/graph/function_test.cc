// Functions: the library that travels with a graph, and bodies with their attributes bound.
#include "core/graph/function.h"

#include <gtest/gtest.h>

#include "core/graph/function_body.h"
#include "core/graph/graph_def.h"
#include "core/ops/declare_all.h"
#include "core/proto/parse.h"
#include "tests/support/text_graph.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

using testing::AttrTexts;
using testing::Const;
using testing::Func;
using testing::FunctionLine;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

const op::OpRegistry& Ops() { return **ops::Catalogue(); }

std::string Bytes(const std::string& library) {
  tf::FunctionDefLibrary message;
  EXPECT_TRUE(proto::ParseText(library, "FunctionDefLibrary", message).ok()) << library;
  return *proto::Serialize(message, "FunctionDefLibrary");
}

std::string Written(const FunctionLibrary& library) {
  tf::FunctionDefLibrary message;
  EXPECT_TRUE(library.WriteTo(message).ok());
  return *proto::Serialize(message, "FunctionDefLibrary");
}

/// f(x) = Neg(x) for any type T.
FunctionLine Negate() {
  return {.name = "f",
          .arguments = {{"x", "type_attr: 'T'"}},
          .results = {{"y", "type_attr: 'T'"}},
          .nodes = {{"n", "Neg", {"x"}, {{"T", op::AttrPlaceholder{"T"}}}}},
          .returns = {{"y", "n:y:0"}},
          .attrs = {{"T", "type: 'type'"}}};
}

constexpr const char* kF = "function { signature { name: 'f' } node_def { name: 'n' op: 'NoOp' } } ";
constexpr const char* kG = "function { signature { name: 'g' } } gradient { function_name: 'f' gradient_func: 'g' } ";

TEST(FunctionLibrary, MergesAndTravels) {
  FunctionLibrary library;
  ASSERT_TRUE(library.Merge(Bytes(kF), Ops()).ok());
  ASSERT_TRUE(library.Merge(Bytes(std::string(kF) + kG), Ops()).ok());
  EXPECT_EQ(Written(library), Bytes(std::string(kF) + kG));
  EXPECT_EQ(library.GradientOf("f"), "g");
  EXPECT_EQ(library.GradientOf("g"), "");
  EXPECT_EQ(library.Find("h"), nullptr);
  EXPECT_EQ(library.Find("f")->callees, std::vector<std::string>{"NoOp"});
  Definition graph(Ops());
  ASSERT_TRUE(ImportGraphDef("library { " + std::string(kF) + kG + "}", {}, graph).ok());
  tf::GraphDef def;
  ASSERT_TRUE(proto::ParseBinary(*ExportGraphDef(graph), "GraphDef", def).ok());
  EXPECT_EQ(*proto::Serialize(def.library(), "library"), Written(library));
}

TEST(FunctionLibrary, ErrorsLeaveItAsItWas) {
  FunctionLibrary library;
  ASSERT_TRUE(library.Merge(Bytes(std::string(kF) + kG), Ops()).ok());
  const std::string before = Written(library);
  const std::pair<const char*, const char*> kBad[] = {
      {"function { signature { name: 'h' } } function { signature { name: 'f' description: 'other' } }",
       "Cannot add function 'f' because a different function with the same name already exists."},
      {"function { signature { name: 'Neg' } }",
       "Cannot add function 'Neg' because an op with the same name already exists."},
      {"gradient { function_name: 'f' gradient_func: 'h' }",
       "Cannot assign gradient function 'h' to 'f' because it already has gradient function 'g'"},
      {"function { signature { } }", "FunctionDefLibrary: a function has no name"},
      {"function { signature { name: 'h' input_arg { name: 'x' } } }",
       "argument 'x' must have one of type, type_attr and type_list_attr; in the signature of function 'h'"},
      {"function { signature { name: 'h' input_arg { name: 'x' type_attr: 'T' } } }",
       "argument 'x' refers to attr 'T', which is not declared; in the signature of function 'h'"},
      {"function { signature { name: 'h' output_arg { name: 'x' type: DT_INT32 } output_arg { name: 'x' type: DT_INT32 "
       "} } }",
       "two arguments are named 'x'; in the signature of function 'h'"},
      {"function { signature { name: 'h' input_arg { name: 'x' type: DT_FLOAT_REF } } }",
       "argument 'x' has type 101, which no tensor has; in the signature of function 'h'"}};
  for (const auto& [text, message] : kBad) {
    const Status status = library.Merge(Bytes(text), Ops());
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), message);
  }
  EXPECT_EQ(library.Merge("\xff", Ops()).code(), Code::kInvalidArgument);
  EXPECT_EQ(Written(library), before);
}

TEST(FunctionLibrary, RecursionIsRefusedWithItsChain) {
  const auto calling = [](const std::string& name, const std::string& callee) {
    return "function { signature { name: '" + name + "' } node_def { name: 'c' op: 'PartitionedCall' attr { key: 'f' " +
           "value { func { name: '" + callee + "' } } } } } ";
  };
  FunctionLibrary library;
  ASSERT_TRUE(library.Merge(Bytes(calling("a", "b") + calling("b", "c")), Ops()).ok());
  const Status status = library.Merge(Bytes(calling("c", "b")), Ops());
  EXPECT_EQ(status.message(),
            "Function 'b' calls itself, which is not supported: 'b' -> 'c' -> 'b'. Write it as a loop");
  EXPECT_EQ(library.size(), 2u);
  const std::string by_name = "function { signature { name: 'h' } node_def { name: 'c' op: 'h' } }";
  EXPECT_EQ(library.Merge(Bytes(by_name), Ops()).message(),
            "Function 'h' calls itself, which is not supported: 'h' -> 'h'. Write it as a loop");
  const std::string in_list =
      "function { signature { name: 'h' } node_def { name: 'c' op: 'Case' attr { key: 'branches' value { list { func { "
      "name: 'a' attr { key: 'g' value { func { name: 'h' } } } } } } } } }";
  EXPECT_EQ(library.Merge(Bytes(in_list), Ops()).code(), Code::kInvalidArgument);
  std::string chain;
  for (int i = 0; i < 3000; ++i) chain += calling("f" + std::to_string(i), "f" + std::to_string(i + 1));
  EXPECT_TRUE(library.Merge(Bytes(chain), Ops()).ok());
}

TEST(FunctionLibrary, OpsMayBeNamedAfterAFunction) {
  const Result<Definition> graph =
      MakeGraph({Placeholder("x", PartialShape::Of({2})), {"y", "f", {"x"}, kFloat}}, {Negate()});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(&graph->Find("y")->op(), &graph->functions().Find("f")->signature);
  EXPECT_EQ(graph->TypeOf({graph->Find("y")->id(), 0}), DType::kFloat);
  EXPECT_EQ(MakeGraph({Placeholder("x", PartialShape()), {"y", "f", {"x"}}}, {Negate()}).status().message(),
            "NodeDef missing attr 'T' from Op<name=f; signature=x:T -> y:T; attr=T:type>; NodeDef: {{node y}}");
}

TEST(FunctionLibrary, FailedImportTakesItsFunctionsBack) {
  Definition graph(Ops());
  const std::string f = *testing::FunctionText(Negate());
  const std::string int_f =
      *testing::FunctionText({.name = "f", .arguments = {}, .results = {}, .nodes = {}, .returns = {}});
  const std::string call = testing::NodeText("y", "f", {"x"}, {{"T", "type: DT_FLOAT"}});
  const std::string x = testing::PlaceholderText("x", "DT_FLOAT", {2});
  EXPECT_FALSE(ImportGraphDef(x + call + testing::NodeText("z", "Nothing") + "library { " + f + " }", {}, graph).ok());
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_TRUE(graph.functions().empty());
  ASSERT_TRUE(ImportGraphDef("library { " + int_f + " }", {}, graph).ok());
  const Status status = ImportGraphDef(x + call, {}, graph);
  EXPECT_NE(status.message().find("do not match 1 inputs specified"), std::string::npos) << status.message();
}

op::FuncRef Ref(const std::string& name, op::AttrList attrs = {}) {
  return *Func(name, std::move(attrs)).get<op::FuncRef>();
}

TEST(FunctionBodies, BindAttributesOnceForEachChoice) {
  const Result<Definition> graph = MakeGraph({}, {Negate()});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  FunctionBodies bodies(*graph);
  const Result<const FunctionBody*> floats = bodies.Get(Ref("f", kFloat));
  ASSERT_TRUE(floats.ok()) << floats.status().ToString();
  EXPECT_EQ((*floats)->signature.inputs, std::vector<DType>{DType::kFloat});
  EXPECT_EQ((*floats)->graph.Find("n")->output_types()[0], DType::kFloat);
  EXPECT_EQ((*floats)->results, (std::vector<Endpoint>{{(*floats)->graph.Find("n")->id(), 0}}));
  EXPECT_EQ((*floats)->result_of_arguments, std::vector<bool>{true});
  EXPECT_EQ(*bodies.Get(Ref("f", {{"other", int64_t{1}}, {"T", DType::kFloat}})), *floats);
  const Result<const FunctionBody*> ints = bodies.Get(Ref("f", {{"T", DType::kInt32}}));
  ASSERT_TRUE(ints.ok());
  EXPECT_NE(*ints, *floats);
  EXPECT_EQ((*ints)->graph.Find("n")->output_types()[0], DType::kInt32);
}

TEST(FunctionBodies, ColocationsWithNodesOfOtherFunctionsAreDropped) {
  const op::AttrValue classes(std::vector<std::string>{"loc:@elsewhere", "loc:@n", "loc:@x", "tag"});
  FunctionLine f = Negate();
  f.nodes.push_back({"m", "Neg", {"x"}, {{"T", op::AttrPlaceholder{"T"}}, {"_class", classes}}});
  const Result<Definition> graph = MakeGraph({}, {f});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  FunctionBodies bodies(*graph);
  const Result<const FunctionBody*> body = bodies.Get(Ref("f", kFloat));
  ASSERT_TRUE(body.ok()) << body.status().ToString();
  const op::AttrValue* const left = (*body)->graph.Find("m")->attrs().Find("_class");
  ASSERT_NE(left, nullptr);
  EXPECT_EQ(*left->get<std::vector<std::string>>(), (std::vector<std::string>{"loc:@n", "loc:@x", "tag"}));
}

TEST(FunctionBodies, ListsOfArgumentsAndResults) {
  // Two results of one node under one name, one of them alone, a nested function's attribute, nodes out of order.
  const FunctionLine f = {
      .name = "f",
      .arguments = {{"xs", "type_attr: 'T' number_attr: 'N'"}, {"a", "type: DT_INT32"}},
      .results = {{"both", "type_attr: 'T' number_attr: 'N'"}, {"second", "type_attr: 'T'"}},
      .nodes = {{"last", "Identity", {"split:output:1", "^a"}, {{"T", op::AttrPlaceholder{"T"}}}},
                {"split", "Split", {"a", "sum:sum:0"}, {{"num_split", int64_t{2}}, {"T", op::AttrPlaceholder{"T"}}}},
                {"sum", "AddN", {"xs", "^noop"}, {{"N", op::AttrPlaceholder{"N"}}, {"T", op::AttrPlaceholder{"T"}}}},
                {"noop", "NoOp", {"^xs"}},
                {"call",
                 "PartitionedCall",
                 {"xs:1"},
                 {{"Tin", std::vector<DType>{DType::kFloat}},
                  {"Tout", std::vector<DType>{DType::kFloat}},
                  {"f", Func("g", {{"T", op::AttrPlaceholder{"T"}}})}}}},
      .returns = {{"both", "split:output"}, {"second", "last:output:0"}},
      .control_returns = {"noop", "call"},
      .attrs = {{"T", "type: 'type'"}, {"N", "type: 'int'"}}};
  const Result<Definition> graph = MakeGraph({}, {f});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  FunctionBodies bodies(*graph);
  const auto body = bodies.Get(Ref("f", {{"T", DType::kFloat}, {"N", int64_t{2}}}));
  ASSERT_TRUE(body.ok()) << body.status().ToString();
  const Definition& made = (*body)->graph;
  EXPECT_EQ((*body)->signature.inputs, (std::vector<DType>{DType::kFloat, DType::kFloat, DType::kInt32}));
  const NodeId split = made.Find("split")->id();
  EXPECT_EQ((*body)->results, (std::vector<Endpoint>{{split, 0}, {split, 1}, {made.Find("last")->id(), 0}}));
  EXPECT_EQ(made.Find("sum")->inputs()[1], (Endpoint{1, 0}));
  EXPECT_EQ(made.Find("call")->inputs()[0], (Endpoint{1, 0}));
  EXPECT_EQ(made.Find("last")->control_inputs()[0], 2);
  EXPECT_EQ(made.Find("noop")->control_inputs()[0], 0);
  const op::FuncRef& inner = *made.Find("call")->attrs().Find("f")->get<op::FuncRef>();
  EXPECT_EQ(*inner.attrs->at(0).second.get<DType>(), DType::kFloat);
  EXPECT_EQ((*body)->control_results.size(), 2u);
}

TEST(FunctionBodies, Errors) {
  const auto error = [](const FunctionLine& f, op::AttrList attrs = {{"T", DType::kFloat}}) {
    const Result<Definition> graph = MakeGraph({}, {f});
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    FunctionBodies bodies(*graph);
    return std::string(bodies.Get(Ref("f", std::move(attrs))).status().message());
  };
  const auto with = [](const auto& change) {
    FunctionLine f = Negate();
    change(f);
    return f;
  };
  const std::string tail = "\n\t In function 'f'";
  EXPECT_EQ(error(Negate(), {}), "Attr T is not found from Op<name=f; signature=x:T -> y:T; attr=T:type>" + tail);
  EXPECT_EQ(error(with([](auto& f) { f.returns.clear(); })), "Return y missing." + tail);
  EXPECT_EQ(error(with([](auto& f) { f.returns = {{"y", "m:y:0"}}; })), "Return y -> m:y:0 is not found." + tail);
  EXPECT_EQ(error(with([](auto& f) { f.returns = {{"y", "n:y:1"}}; })), "Return y -> n:y:1 is not found." + tail);
  EXPECT_EQ(error(with([](auto& f) { f.nodes[0].inputs = {"q"}; })), "input q is not found\n\t [[{{node n}}]]" + tail);
  EXPECT_EQ(error(with([](auto& f) {
              f.nodes[0].inputs = {"x", "^q"};
            })),
            "input ^q is not found\n\t [[{{node n}}]]" + tail);
  EXPECT_EQ(error(with([](auto& f) {
              f.nodes[0].attrs = {{"T", op::AttrPlaceholder{"U"}}};
            })),
            "Failed to bind all placeholders: the call gives no attr 'U'\n\t [[{{node n}}]]" + tail);
  EXPECT_EQ(error(with([](auto& f) {
              f.results = {{"y", "type: DT_INT32"}};
            })),
            "Invalid ret types y : int32 vs. float" + tail);
  EXPECT_EQ(error(with([](auto& f) { f.control_returns = {"m"}; })),
            "Control return 'm' names node 'm', which is not found" + tail);
  EXPECT_NE(error(with([](auto& f) { f.nodes[0].inputs.clear(); })).find("do not match 0 inputs specified"),
            std::string::npos);
  EXPECT_NE(error(with([](auto& f) { f.nodes[0].op = "Nog"; })).find("Op type not registered 'Nog'"),
            std::string::npos);
  EXPECT_NE(error(with([](auto& f) { f.nodes.push_back(f.nodes[0]); })).find("Node 'n' is not unique"),
            std::string::npos);
  EXPECT_NE(error(with([](auto& f) {
              f.nodes[0].inputs = {"m:y:0"};
              f.nodes.push_back({"m", "Neg", {"n:y:0"}, kFloat});
            })).find("nodes in a cycle"),
            std::string::npos);
  const Result<Definition> graph = MakeGraph({});
  FunctionBodies bodies(*graph);
  EXPECT_EQ(bodies.Get(Ref("h")).status().ToString(), "NOT_FOUND: Function h is not defined.");
}

}  // namespace
}  // namespace weir::graph
