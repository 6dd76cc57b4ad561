// Gradients of calls and of functional control flow, compared with finite differences of the forward graph.
#include "core/graph/graph_def.h"
#include "tests/support/text_graph.h"
#include "tests/unit/client/fresh.h"

namespace weir::test::functions {
namespace {

using ::weir::testing::Func;
using ::weir::testing::FunctionLine;
using ::weir::testing::NodeLine;
using Names = std::vector<std::string>;
using Types = std::vector<DType>;

const op::AttrList kT = {{"T", DType::kDouble}};
const ::weir::testing::AttrTexts kX = {{"x", "type: DT_DOUBLE"}};
const ::weir::testing::AttrTexts kXw = {{"x", "type: DT_DOUBLE"}, {"w", "type: DT_DOUBLE"}};
const ::weir::testing::AttrTexts kY = {{"y", "type: DT_DOUBLE"}};

NodeLine Number(const std::string& name, double value) {
  return ::weir::testing::Const(name, Tensor::Scalar<double>(value));
}
NodeLine Call(const std::string& name, const std::string& op, Names inputs, Types in, Types out, op::AttrList attrs) {
  attrs.emplace_back("Tin", std::move(in));
  attrs.emplace_back("Tout", std::move(out));
  return {name, op, std::move(inputs), std::move(attrs)};
}
NodeLine CallOf(const std::string& name, const std::string& function, Names inputs) {
  Types in(inputs.size(), DType::kDouble);
  return Call(name, "PartitionedCall", std::move(inputs), std::move(in), {DType::kDouble}, {{"f", Func(function)}});
}
/// y of (x, w).
FunctionLine OfXw(const std::string& name, std::vector<NodeLine> nodes, const std::string& value) {
  return {.name = name, .arguments = kXw, .results = kY, .nodes = std::move(nodes), .returns = {{"y", value}}};
}
/// exp(x) * w + x.
FunctionLine Mixed() {
  return OfXw("mixed",
              {{"e", "Exp", {"x"}, kT},
               {"m", "Mul", {"e:y:0", "w"}, kT},
               {"s", "AddV2", {"m:z:0", "x"}, kT},
               {"say", "PrintV2", {"text:output:0"}, {{"output_stream", "file:///dev/null"}}},
               ::weir::testing::Const("text", Tensor::Scalar<std::string>("once"))},
              "s:z:0");
}
FunctionLine Product() { return OfXw("product", {{"m", "Mul", {"x", "w"}, kT}}, "m:z:0"); }

class FunctionGradient : public ::testing::Test {
 protected:
  /// Adds placeholders x and w, and the nodes.
  void Add(std::vector<NodeLine> nodes, const std::vector<FunctionLine>& functions) {
    for (const char* name : {"w", "x"}) {
      nodes.insert(nodes.begin(), ::weir::testing::Placeholder(name, PartialShape(Shape()), DType::kDouble));
    }
    const Result<graph::Definition> graph = ::weir::testing::MakeGraph(nodes, functions);
    ASSERT_TRUE(Succeeds(graph));
    const Result<std::string> bytes = graph::ExportGraphDef(*graph);
    ASSERT_TRUE(Succeeds(bytes));
    ASSERT_TRUE(Succeeds(f_.graph.Import(*bytes, "")));
  }
  Output At(const std::string& name) {
    const Result<Output> found = f_.graph.TensorByName(name + ":0");
    EXPECT_TRUE(Succeeds(found));
    return found.ok() ? *found : Output();
  }
  /// Compares the gradients of `y` by x and w with finite differences, at some points.
  void Check(const std::string& y, const std::vector<std::pair<double, double>>& points = {{0.7, 1.3}, {-0.4, 0.9}}) {
    const Output x = At("x"), w = At("w"), value = At(y);
    const Result<std::vector<Gradient>> gradients = Gradients({value}, {x, w});
    ASSERT_TRUE(Succeeds(gradients));
    Session session(f_.graph);
    constexpr double kStep = 1e-5;
    for (const auto& [a, b] : points) {
      const auto at = [&](double p, double q) { return Value(session, value, {{x, p}, {w, q}}); };
      const Feeds feeds = {{x, a}, {w, b}};
      const double by_x = (at(a + kStep, b) - at(a - kStep, b)) / (2 * kStep);
      const double by_w = (at(a, b + kStep) - at(a, b - kStep)) / (2 * kStep);
      EXPECT_NEAR(Value(session, (*gradients)[0].values, feeds), by_x, 1e-6 * (1 + std::abs(by_x))) << y;
      EXPECT_NEAR(Value(session, (*gradients)[1].values, feeds), by_w, 1e-6 * (1 + std::abs(by_w))) << y;
    }
  }

  Fresh f_;
};

TEST_F(FunctionGradient, F327_OfCallsAndCallsWithinThem) {
  Add({CallOf("call", "outer", {"x", "w"}), {"named", "mixed", {"call", "w"}}, {"z", "Mul", {"named", "call"}, kT}},
      {Mixed(),
       OfXw("outer", {CallOf("a", "mixed", {"x", "w"}), CallOf("b", "mixed", {"a:output:0", "x"})}, "b:output:0")});
  Check("call");
  Check("z", {{0.2, 0.3}});
  EXPECT_EQ(GradientOf(At("call"), At("x")).op().type(), "SymbolicGradient");
}

TEST_F(FunctionGradient, F327_OfBranches) {
  const op::AttrList branches = {
      {"Tcond", DType::kBool}, {"then_branch", Func("mixed")}, {"else_branch", Func("product")}};
  Add({Number("zero", 0),
       {"p", "Greater", {"x", "zero"}, kT},
       Call("if", "StatelessIf", {"p", "x", "w"}, Types(2, DType::kDouble), {DType::kDouble}, branches),
       {"k", "Cast", {"p"}, {{"SrcT", DType::kBool}, {"DstT", DType::kInt32}}},
       Call("case", "Case", {"k", "x", "w"}, Types(2, DType::kDouble), {DType::kDouble},
            {{"branches", std::vector<op::FuncRef>{{"product", nullptr}, {"mixed", nullptr}}}}),
       CallOf("within", "chooses", {"x", "w"})},
      {Mixed(), Product(),
       OfXw("chooses",
            {Number("zero", 0),
             {"p", "Greater", {"w", "zero:output:0"}, kT},
             Call("if", "If", {"p:z:0", "x", "w"}, Types(2, DType::kDouble), {DType::kDouble}, branches)},
            "if:output:0")});
  Check("if");
  Check("case");
  Check("within", {{0.7, 1.3}, {0.7, -1.3}});
}

/// while i < 4: i, x, w = i + 1, step(x, w), w.
std::vector<FunctionLine> LoopOf(const std::string& step) {
  const ::weir::testing::AttrTexts arguments = {
      {"i", "type: DT_INT32"}, {"x", "type: DT_DOUBLE"}, {"w", "type: DT_DOUBLE"}};
  const op::AttrList ints = {{"T", DType::kInt32}};
  return {{.name = "goes_on",
           .arguments = arguments,
           .results = {{"y", "type: DT_BOOL"}},
           .nodes = {::weir::testing::Const("limit", Tensor::Scalar<int32_t>(4)),
                     {"less", "Less", {"i", "limit:output:0"}, ints}},
           .returns = {{"y", "less:z:0"}}},
          {.name = "round",
           .arguments = arguments,
           .results = {{"a", "type: DT_INT32"}, {"b", "type: DT_DOUBLE"}, {"c", "type: DT_DOUBLE"}},
           .nodes = {::weir::testing::Const("one", Tensor::Scalar<int32_t>(1)),
                     {"more", "AddV2", {"i", "one:output:0"}, ints},
                     CallOf("next", step, {"x", "w"})},
           .returns = {{"a", "more:z:0"}, {"b", "next:output:0"}, {"c", "w"}}}};
}
NodeLine Loop(const std::string& name, const std::string& op, Names inputs) {
  return {name,
          op,
          std::move(inputs),
          {{"T", Types{DType::kInt32, DType::kDouble, DType::kDouble}},
           {"cond", Func("goes_on")},
           {"body", Func("round")}}};
}

TEST_F(FunctionGradient, F393_F327_OfLoops) {
  std::vector<FunctionLine> functions = LoopOf("step");
  functions.push_back(OfXw("step", {{"m", "Mul", {"x", "w"}, kT}, {"s", "Tanh", {"m:z:0"}, kT}}, "s:y:0"));
  functions.push_back(OfXw("inside",
                           {::weir::testing::Const("zero", Tensor::Scalar<int32_t>(0)),
                            Loop("while", "StatelessWhile", {"zero:output:0", "x", "w"})},
                           "while:output:1"));
  Add({::weir::testing::Const("zero", Tensor::Scalar<int32_t>(0)),
       ::weir::testing::Const("nine", Tensor::Scalar<int32_t>(9)),
       Loop("loop", "While", {"zero", "x", "w"}),
       {"last", "Identity", {"loop:1"}, kT},
       Loop("none", "While", {"nine", "x", "w"}),
       {"first", "Mul", {"none:1", "none:2"}, kT},
       CallOf("call", "inside", {"x", "w"})},
      functions);
  Check("last");
  Check("first");  // no iteration
  Check("call");
}

TEST_F(FunctionGradient, F393_OfLoopsWithLoopsAndBranchesWithin) {
  std::vector<FunctionLine> functions = LoopOf("step");
  functions.push_back(Mixed());
  functions.push_back(Product());
  functions.push_back(
      OfXw("step",
           {Number("border", 0.5),
            {"p", "Greater", {"x", "border:output:0"}, kT},
            Call("if", "StatelessIf", {"p:z:0", "x", "w"}, Types(2, DType::kDouble), {DType::kDouble},
                 {{"Tcond", DType::kBool}, {"then_branch", Func("product")}, {"else_branch", Func("mixed")}})},
           "if:output:0"));
  FunctionLine outer = LoopOf("nested")[1];
  outer.name = "outer_round";
  functions.push_back(outer);
  functions.push_back(OfXw("nested",
                           {::weir::testing::Const("two", Tensor::Scalar<int32_t>(2)),
                            Loop("while", "StatelessWhile", {"two:output:0", "x", "w"})},
                           "while:output:1"));
  NodeLine loop = Loop("loop", "StatelessWhile", {"two", "x", "w"});
  loop.attrs[2].second = Func("outer_round");
  Add({::weir::testing::Const("two", Tensor::Scalar<int32_t>(2)), loop, {"last", "Identity", {"loop:1"}, kT}},
      functions);
  Check("last", {{0.4, 0.6}, {0.9, 0.3}});
}

TEST_F(FunctionGradient, F327_OfVariablesThatAreReadInBodies) {
  const ::weir::testing::AttrTexts arguments = {{"h", "type: DT_RESOURCE"}, {"x", "type: DT_DOUBLE"}};
  Add({}, {{.name = "scaled",
            .arguments = arguments,
            .results = kY,
            .nodes = {{"v", "ReadVariableOp", {"h"}, {{"dtype", DType::kDouble}}},
                      {"m", "Mul", {"v:value:0", "x"}, kT},
                      {"sq", "Square", {"m:z:0"}, kT}},
            .returns = {{"y", "sq:y:0"}}}});
  const Variable v(Literal(Tensor::Scalar<double>(3)), {.name = "v", .use_resource = true});
  const Output x = At("x");
  OperationSpec spec;
  spec.op = "StatefulPartitionedCall";
  spec.inputs = {v.handle(), x};
  spec.attrs = {{"Tout", Types{DType::kDouble}}, {"f", Func("scaled")}};
  const Output y = f_.graph.Add(spec).output(0);
  const auto gradients = Gradients({y}, {v, x});
  ASSERT_TRUE(Succeeds(gradients));
  Session session(f_.graph);
  Initialize(session);
  const Feeds feeds = {{x, 2.0}};
  EXPECT_EQ(Value(session, y, feeds), 36);
  EXPECT_EQ(Value(session, (*gradients)[0].values, feeds), 2 * 3 * 2 * 2);
  EXPECT_EQ(Value(session, (*gradients)[1].values, feeds), 2 * 3 * 3 * 2);
}

TEST_F(FunctionGradient, F327_WhatIsAnotherValueEachTimeIsRefused) {
  Add({CallOf("call", "noisy", {"x", "w"})},
      {OfXw("noisy",
            {::weir::testing::Const("shape", Tensor::Vector<int32_t>({})),
             {"draw", "RandomUniform", {"shape:output:0"}, {{"T", DType::kInt32}, {"dtype", DType::kDouble}}},
             {"m", "Mul", {"x", "draw:output:0"}, kT}},
            "m:z:0")});
  const Output x = At("x"), w = At("w"), dx = GradientOf(At("call"), x);
  Session session(f_.graph);
  EXPECT_TRUE(
      Fails(session.Run(dx, {{x, 1.0}, {w, 1.0}}), Code::kUnimplemented,
            "The gradient of function 'noisy' needs the value of its node 'draw' a second time, and RandomUniform "
            "gives another one"));
}

}  // namespace
}  // namespace weir::test::functions
