// Graphs with inlined calls: names, edges, devices, errors. tests/pipeline/functions_test.cc tests the results of such
// graphs.
#include "core/lower/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/ops/declare_all.h"
#include "tests/support/text_graph.h"

namespace weir::lower {
namespace {

using graph::Definition;
using graph::Endpoint;
using graph::Node;
using graph::NodeId;
using testing::At;
using testing::Const;
using testing::Func;
using testing::FunctionLine;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;
using Names = std::vector<std::string>;

const std::vector<DType> kOne = {DType::kFloat};

NodeLine CallOf(const std::string& name, const std::string& function, const Names& inputs,
                const std::string& device = {}) {
  const Names data(inputs.begin(), std::ranges::find_if(inputs, [](const auto& i) { return i.starts_with('^'); }));
  return {name,
          "StatefulPartitionedCall",
          inputs,
          {{"Tin", std::vector<DType>(data.size(), DType::kFloat)}, {"Tout", kOne}, {"f", Func(function)}},
          device};
}

/// name(x) = the float `value` computed by `nodes`.
FunctionLine Unary(const std::string& name, std::vector<NodeLine> nodes, const std::string& value,
                   Names control_returns = {}) {
  return {.name = name,
          .arguments = {{"x", "type: DT_FLOAT"}},
          .results = {{"y", "type: DT_FLOAT"}},
          .nodes = std::move(nodes),
          .returns = {{"y", value}},
          .control_returns = std::move(control_returns)};
}

FunctionLine Negate() { return Unary("negate", {{"n", "Neg", {"x"}, kFloat}}, "n:y:0"); }
FunctionLine PrintAndNegate(Names control_returns = {}) {
  return Unary("print",
               {{"n", "Neg", {"x"}, kFloat},
                {"text", "Const", {}, {{"dtype", DType::kString}, {"value", Tensor::Scalar<std::string>("hi")}}},
                {"say", "PrintV2", {"text:output:0"}},
                {"draw", "RandomUniform", {"shape:output:0"}, {{"T", DType::kInt32}, {"dtype", DType::kFloat}}},
                {"shape", "Const", {}, {{"dtype", DType::kInt32}, {"value", Tensor::Vector<int32_t>({1})}}}},
               "n:y:0", std::move(control_returns));
}

/// A graph and its lowered form.
struct Lowered {
  Lowered(const std::vector<NodeLine>& nodes, const std::vector<FunctionLine>& functions, LowerLimits limits = {})
      : source(MakeGraph(nodes, functions)) {
    EXPECT_TRUE(source.ok()) << source.status().ToString();
    lowering = std::make_unique<Lowering>(*source, limits);
    lowering->Update();
  }
  const Definition& graph() const { return lowering->graph(); }
  const Node& node(const std::string& name) const {
    const Node* found = graph().Find(name);
    EXPECT_NE(found, nullptr) << name;
    return found == nullptr ? graph().node(0) : *found;
  }
  Names inputs(const std::string& name) const {
    Names names;
    for (const Endpoint& e : node(name).inputs()) names.push_back(graph::EndpointName(graph(), e));
    for (const NodeId id : node(name).control_inputs()) names.push_back("^" + graph().node(id).name());
    return names;
  }
  /// The error of a step that needs the node of the source graph.
  Status ErrorOf(const std::string& name) const {
    graph::StepGraph step;
    step.graph = &graph();
    step.nodes.emplace_back().source = &graph().node(lowering->Of(source->Find(name)->id()));
    return lowering->Check(step);
  }

  Result<Definition> source;
  std::unique_ptr<Lowering> lowering;
};

TEST(Lowering, GraphWithoutCallsIsUsedAsItIs) {
  const Lowered lowered({Placeholder("x", PartialShape()), {"y", "Neg", {"x"}, kFloat}}, {Negate()});
  EXPECT_EQ(&lowered.graph(), &*lowered.source);
  EXPECT_EQ(lowered.lowering->Of(Endpoint{1, 0}), (Endpoint{1, 0}));
  EXPECT_EQ(lowered.lowering->Of(NodeId{1}), 1);
}

TEST(Lowering, CallIsReplacedByItsBody) {
  const Lowered lowered({Placeholder("x", PartialShape::Of({2})),
                         {"w", "Exp", {"x"}, kFloat},
                         CallOf("call", "negate", {"w"}),
                         {"z", "Exp", {"call"}, kFloat, "/cpu:0"},
                         {"last", "NoOp", {"^call"}}},
                        {Negate()});
  EXPECT_EQ(lowered.node("w").id(), 1);
  EXPECT_EQ(lowered.inputs("call/n"), Names{"w"});
  EXPECT_EQ(lowered.inputs("call"), Names{"call/n"});
  EXPECT_EQ(lowered.inputs("z"), Names{"call"});
  EXPECT_EQ(lowered.inputs("last"), Names{"^call/_done"});
  EXPECT_EQ(lowered.inputs("call/_done"), (Names{"^w", "^call"}));
  EXPECT_EQ(lowered.node("z").output_shapes()[0], PartialShape::Of({2}));
  EXPECT_EQ(lowered.lowering->Of(At(*lowered.source, "call")), At(lowered.graph(), "call"));
  EXPECT_EQ(lowered.lowering->Of(lowered.source->Find("call")->id()), lowered.node("call/_done").id());
  EXPECT_EQ(lowered.node("call/n").origin(), "node 'n' of function 'negate'");
  for (NodeId id = 0; id < lowered.graph().num_nodes(); ++id) {
    EXPECT_NE(lowered.graph().node(id).op().name, "StatefulPartitionedCall");
  }
}

TEST(Lowering, EffectsComeAfterInputsAndBeforeResults) {
  const std::vector<NodeLine> nodes = {
      Placeholder("x", PartialShape()), {"first", "NoOp"}, CallOf("call", "print", {"x", "^first"})};
  const Lowered all(nodes, {PrintAndNegate()});
  EXPECT_EQ(all.inputs("call/_inputs"), (Names{"^x", "^first"}));
  EXPECT_EQ(all.inputs("call/say"), (Names{"call/text", "^call/_inputs"}));
  EXPECT_EQ(all.inputs("call/text"), Names{});  // a constant waits for nothing
  EXPECT_EQ(all.inputs("call/n"), Names{"x"});
  EXPECT_EQ(all.inputs("call/_effects"), (Names{"^call/say", "^call/draw"}));
  EXPECT_EQ(all.inputs("call"), (Names{"call/n", "^call/_effects"}));
  // If the function has control outputs, other nodes need not run.
  const Lowered some(nodes, {PrintAndNegate({"say"})});
  EXPECT_EQ(some.inputs("call"), (Names{"call/n", "^call/say"}));
}

TEST(Lowering, ResultsThatNoArgumentLeadsToWaitForTheInputs) {
  const Lowered lowered(
      {Placeholder("x", PartialShape()), CallOf("call", "seven", {"x"})},
      {Unary("seven", {{"c", "Const", {}, {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(7)}}}},
             "c:output:0")});
  EXPECT_EQ(lowered.inputs("call"), (Names{"call/c", "^x"}));
}

TEST(Lowering, DevicesAndColocation) {
  const FunctionLine f = Unary("f",
                               {{"a", "Neg", {"x"}, kFloat},
                                {"b", "Neg", {"a:y:0"}, kFloat, "/device:CPU:1"},
                                {"c", "Neg", {"b:y:0"}, {{"T", DType::kFloat}, {"_class", Names{"loc:@a", "loc:@x"}}}}},
                               "c:y:0");
  const NodeLine call = CallOf("call", "f", {"x"}, "/job:worker/device:CPU:0");
  const Lowered lowered({Placeholder("x", PartialShape()), call}, {f});
  EXPECT_EQ(lowered.node("call/a").device(), "/job:worker/device:CPU:0");
  EXPECT_EQ(lowered.node("call/b").device(), "/job:worker/device:CPU:1");
  EXPECT_EQ(lowered.node("call").device(), "/job:worker/device:CPU:0");
  EXPECT_EQ(*lowered.node("call/c").attrs().Strings("_class"), (Names{"loc:@call/a", "loc:@call/x"}));
}

TEST(Lowering, NamesThatAreTaken) {
  const Lowered lowered(
      {Placeholder("x", PartialShape()), CallOf("call", "negate", {"x"}), {"call/n", "Exp", {"call"}, kFloat}},
      {Negate()});
  EXPECT_EQ(lowered.inputs("call"), Names{"call/n_1"});
  EXPECT_EQ(lowered.inputs("call/n"), Names{"call"});
}

TEST(Lowering, GraphsThatGrow) {
  Lowered lowered({Placeholder("x", PartialShape()), {"y", "Neg", {"x"}, kFloat}}, {Negate()});
  const std::string text = "node { name: 'call' op: 'negate' input: 'y' }";
  ASSERT_TRUE(graph::ImportGraphDef(text, {}, *lowered.source).ok());
  lowered.lowering->Update();
  EXPECT_EQ(lowered.node("y").id(), lowered.source->Find("y")->id());
  EXPECT_EQ(lowered.inputs("call/n"), Names{"y"});
  ASSERT_TRUE(graph::ImportGraphDef("node { name: 'again' op: 'negate' input: 'call' }", {}, *lowered.source).ok());
  lowered.lowering->Update();
  EXPECT_EQ(lowered.inputs("again/n"), Names{"call"});
}

TEST(Lowering, ErrorsAreThoseOfStepsThatNeedTheCall) {
  const FunctionLine noise =
      Unary("noise",
            {{"shape", "Const", {}, {{"dtype", DType::kInt32}, {"value", Tensor::Vector<int32_t>({})}}},
             {"draw", "RandomUniform", {"shape:output:0"}, {{"T", DType::kInt32}, {"dtype", DType::kFloat}}},
             {"m", "Mul", {"x", "draw:output:0"}, kFloat}},
            "m:z:0");
  const auto gradient = [](const std::string& name, const Names& inputs, const char* function) {
    return NodeLine{name,
                    "SymbolicGradient",
                    inputs,
                    {{"Tin", std::vector<DType>(inputs.size(), DType::kFloat)}, {"Tout", kOne}, {"f", Func(function)}}};
  };
  const FunctionLine wrong = Unary("wrong", {{"n", "MatMul", {"x", "x"}, kFloat}}, "n:product:0");
  NodeLine two = CallOf("two", "negate", {"x"});
  two.attrs[1].second = std::vector<DType>{DType::kFloat, DType::kFloat};
  NodeLine other = CallOf("other", "negate", {"x"});
  other.attrs[1].second = std::vector<DType>{DType::kInt32};
  NodeLine ints = CallOf("ints", "negate", {"i"});
  ints.attrs[0].second = std::vector<DType>{DType::kInt32};
  const Lowered lowered(
      {Placeholder("x", PartialShape::Of({2})),
       Placeholder("i", PartialShape(), DType::kInt32),
       CallOf("good", "negate", {"x"}),
       CallOf("unknown", "nothing", {"x"}),
       two,
       other,
       ints,
       CallOf("many", "negate", {"x", "x"}),
       CallOf("shape", "wrong", {"x"}),
       {"remote", "RemoteCall", {"target", "x"}, {{"Tin", kOne}, {"Tout", kOne}, {"f", Func("negate")}}},
       Const("target", Tensor::Scalar<std::string>("/cpu:0")),
       gradient("gradient", {"x", "x"}, "negate"),
       gradient("of_noise", {"x", "x"}, "noise"),
       gradient("of_too_few", {"x"}, "negate"),
       {"after", "Neg", {"unknown"}, kFloat}},
      {Negate(), noise, wrong});
  EXPECT_TRUE(lowered.ErrorOf("good").ok());
  EXPECT_TRUE(lowered.ErrorOf("after").ok());  // only steps with the call itself get the error
  const std::pair<const char*, const char*> kErrors[] = {
      {"unknown", "NOT_FOUND: Function nothing is not defined.\n\t [[{{node unknown}}]]"},
      {"two",
       "INVALID_ARGUMENT: Node outputs do not match function returns: outputs=2 returns=1 of function 'negate'\n\t "
       "[[{{node two}}]]"},
      {"other",
       "INVALID_ARGUMENT: Output 0 of type float does not match declared output type int32; in a call of function "
       "'negate'\n\t [[{{node other}}]]"},
      {"ints",
       "INVALID_ARGUMENT: Expects arg[0] to be float but int32 is provided; in a call of function 'negate'\n\t "
       "[[{{node ints}}]]"},
      {"many",
       "INVALID_ARGUMENT: Node inputs do not match function arguments: inputs=2 arguments=1 of function 'negate'\n\t "
       "[[{{node many}}]]"},
      {"shape",
       "INVALID_ARGUMENT: Shape must be rank 2 but is rank 1 for 'shape/n' (op: 'MatMul') with input shapes: [2], "
       "[2].\n\t [[shape]]"},
  };
  for (const auto& [node, error] : kErrors) EXPECT_EQ(lowered.ErrorOf(node).ToString(), error);
  EXPECT_EQ(lowered.ErrorOf("remote").code(), Code::kUnimplemented);
  EXPECT_TRUE(lowered.ErrorOf("gradient").ok()) << lowered.ErrorOf("gradient").ToString();
  EXPECT_EQ(lowered.ErrorOf("of_noise").code(), Code::kUnimplemented);
  EXPECT_EQ(lowered.ErrorOf("of_too_few").code(), Code::kInvalidArgument);
}

TEST(Lowering, SymbolicGradientCallsTheGradientThatTheLibraryNames) {
  FunctionLine gradient = Negate();
  gradient.name = "gradient";
  gradient.arguments.emplace_back("dy", "type: DT_FLOAT");
  gradient.nodes[0].inputs = {"dy"};
  Lowered lowered({Placeholder("x", PartialShape())}, {Negate(), gradient});
  const std::string more =
      "node { name: 'dx' op: 'SymbolicGradient' input: 'x' input: 'x' attr { key: 'Tin' value { list { type: "
      "[DT_FLOAT, "
      "DT_FLOAT] } } } attr { key: 'Tout' value { list { type: DT_FLOAT } } } attr { key: 'f' value { func { name: "
      "'negate' } } } } library { gradient { function_name: 'negate' gradient_func: 'gradient' } }";
  ASSERT_TRUE(graph::ImportGraphDef(more, {}, *lowered.source).ok());
  lowered.lowering->Update();
  EXPECT_TRUE(lowered.ErrorOf("dx").ok()) << lowered.ErrorOf("dx").ToString();
  EXPECT_EQ(lowered.inputs("dx/n"), Names{"x"});
}

TEST(Lowering, SymbolicGradientFollowsFromTheBody) {
  const FunctionLine square = Unary("square",
                                    {{"s", "Square", {"x"}, kFloat},
                                     {"say", "PrintV2", {"text:output:0"}},
                                     Const("text", Tensor::Scalar<std::string>("hi"))},
                                    "s:y:0");
  const Lowered lowered({Placeholder("x", PartialShape()),
                         Placeholder("dy", PartialShape()),
                         {"dx",
                          "SymbolicGradient",
                          {"x", "dy"},
                          {{"Tin", std::vector<DType>(2, DType::kFloat)}, {"Tout", kOne}, {"f", Func("square")}}}},
                        {square});
  ASSERT_TRUE(lowered.ErrorOf("dx").ok()) << lowered.ErrorOf("dx").ToString();
  EXPECT_EQ(lowered.inputs("dx/s_grad/Mul"), (Names{"x", "dx/s_grad/Const"}));
  EXPECT_EQ(lowered.inputs("dx/s_grad/Mul_1"), (Names{"dy", "dx/s_grad/Mul"}));
  EXPECT_EQ(lowered.inputs("dx"), Names{"dx/s_grad/Mul_1"});
  EXPECT_EQ(lowered.graph().Find("dx/say"), nullptr);  // effects belong to the forward call
  EXPECT_EQ(lowered.graph().Find("dx/s"), nullptr);    // not needed
}

TEST(Lowering, CallsThatMakeTooMuch) {
  // f0 has one node; each other function calls the one before it twice.
  std::vector<FunctionLine> functions = {Negate()};
  for (int i = 1; i <= 40; ++i) {
    const std::string before = i == 1 ? "negate" : "f" + std::to_string(i - 1);
    functions.push_back(Unary("f" + std::to_string(i), {{"a", before, {"x"}}, {"b", before, {"a:y:0"}}}, "b:y:0"));
  }
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape()), CallOf("call", "f40", {"x"}),
                                       CallOf("good", "f2", {"x"})};
  const Lowered lowered(nodes, functions, {.added_nodes = 5000});
  EXPECT_EQ(lowered.ErrorOf("call").code(), Code::kResourceExhausted) << lowered.ErrorOf("call").ToString();
  EXPECT_TRUE(lowered.ErrorOf("good").ok());
  EXPECT_LT(lowered.graph().num_nodes(), 100);
  std::vector<FunctionLine> chain = {Negate()};
  for (int i = 1; i <= 1000; ++i) {
    const std::string before = i == 1 ? "negate" : "f" + std::to_string(i - 1);
    chain.push_back(Unary("f" + std::to_string(i), {{"a", before, {"x"}}}, "a:y:0"));
  }
  const Lowered deep({Placeholder("x", PartialShape()), CallOf("call", "f1000", {"x"})}, chain);
  EXPECT_NE(deep.ErrorOf("call").message().find("Calls are nested more than 64 deep"), std::string::npos);
}

/// The seed of the graph fuzzer: every kind of call, and a library with all its fields.
std::string Seed() {
  std::ifstream file(WEIR_GRAPH_SEEDS "/functions.pbtxt");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Lowering, DamagedLibrariesGiveAnErrorOrAGraph) {
  const op::OpRegistry& ops = **ops::Catalogue();
  const Result<Definition> seed = graph::ParseGraph(Seed(), ops);
  ASSERT_TRUE(seed.ok()) << seed.status().ToString();
  Lowering whole(*seed);
  whole.Update();
  for (const char* name : {"named", "call", "if", "while", "case", "gradient"}) {
    graph::StepGraph step;
    step.nodes.emplace_back().source = &whole.graph().node(whole.Of(seed->Find(name)->id()));
    EXPECT_TRUE(whole.Check(step).ok()) << whole.Check(step).ToString();
  }
  const std::string bytes = *graph::ExportGraphDef(*seed);
  int read = 0, lowered = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    const Result<Definition> graph = graph::ParseGraph(flipped, ops, {.max_expansion_bytes = 1 << 20});
    if (!graph.ok()) continue;
    ++read;
    Lowering lowering(*graph, {.added_nodes = 1000});
    lowering.Update();
    for (NodeId id = 0; id < graph->num_nodes(); ++id) {
      ASSERT_TRUE(lowering.graph().Has(lowering.Of(id)));
      for (int k = 0; k < graph->node(id).num_outputs(); ++k) {
        ASSERT_TRUE(lowering.graph().Has(lowering.Of(Endpoint{id, k})));
      }
    }
    lowered += lowering.graph().num_nodes() >= whole.graph().num_nodes() ? 1 : 0;
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(lowered, 10);
  EXPECT_LT(lowered, read);
}

}  // namespace
}  // namespace weir::lower
