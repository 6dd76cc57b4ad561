#include "core/partition/partition.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "core/graph/graph_def.h"
#include "core/optimize/optimize.h"
#include "tests/support/text_graph.h"

namespace weir::partition {
namespace {

using testing::At;
using testing::kFloat;
using testing::NodeLine;

/// A step with a fed vector x of two elements, on the devices named by its nodes: d0, d1, d2.
struct Placed {
  Placed(const std::vector<NodeLine>& nodes, const std::vector<std::string>& fetches, size_t devices = 2)
      : graph(testing::MakeGraph(nodes)) {
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    if (!graph.ok()) return;
    request.feeds = {{At(*graph, "x"), DType::kFloat, PartialShape::Of({2})}};
    for (const std::string& name : fetches) request.fetches.push_back(At(*graph, name));
    auto made = optimize::Optimize({}, *graph, request, nullptr);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) return;
    step = std::move(*made);
    for (size_t d = 0; d < devices; ++d) placement.devices.push_back("d" + std::to_string(d));
    for (const graph::StepNode& node : step.nodes) {
      const std::string& device = node.source->device();
      placement.device_of.push_back(device.empty() ? -1 : device.back() - '0');
    }
  }
  Result<std::vector<graph::Part>> Cut(bool late = false, bool through_home = false) const {
    Borders borders = BetweenDevices(placement.devices.size(), 0);
    borders.late = late;
    borders.through_home = through_home;
    return Partition(request, step, placement, borders);
  }

  Result<graph::Definition> graph;
  graph::StepRequest request;
  graph::StepGraph step;
  graph::Placement placement;
};

NodeLine On(int device, NodeLine line) {
  line.device = "/device:CPU:" + std::to_string(device);
  return line;
}

/// "name = Op(inputs)" with the attributes that identify transfers, loops and positions.
std::string LineOf(const graph::Definition& graph, const graph::Node& node) {
  std::string inputs;
  const auto add = [&](const std::string& name) { inputs += (inputs.empty() ? "" : ", ") + name; };
  for (const graph::Endpoint& input : node.inputs()) add(graph::EndpointName(graph, input));
  for (const graph::NodeId control : node.control_inputs()) add("^" + graph.node(control).name());
  std::string more;
  for (const char* name : {"tensor_name", "send_device", "recv_device", "frame_name", "index"}) {
    if (const op::AttrValue* value = node.attrs().Find(name)) more += std::string(" ") + name + "=" + value->ToString();
  }
  return "  " + node.name() + " = " + node.op().name + "(" + inputs + ")" + more + "\n";
}

std::string TextOf(const Result<std::vector<graph::Part>>& parts) {
  if (!parts.ok()) return parts.status().message();
  std::string text;
  for (const graph::Part& part : *parts) {
    text += part.device + "\n";
    for (graph::NodeId id = 0; id < part.graph.num_nodes(); ++id) text += LineOf(part.graph, part.graph.node(id));
  }
  return text;
}

TEST(Partition, F019_OneRecvPerTensorAndReceiver) {
  const Placed placed({testing::Placeholder("x", PartialShape()), On(0, {"a", "Neg", {"x"}, kFloat}),
                       On(1, {"b", "Exp", {"a"}, kFloat}), On(1, {"c", "AddV2", {"a", "b"}, kFloat})},
                      {"c"});
  const auto parts = placed.Cut();
  EXPECT_EQ(TextOf(parts), R"(d0
  _arg_x_0_0 = _Arg() index=0
  a = Neg(_arg_x_0_0)
  a/_0 = _Send(a) tensor_name="edge_0_a" send_device="d0" recv_device="d1"
d1
  a/_1 = _Recv() tensor_name="edge_0_a" send_device="d0" recv_device="d1"
  b = Exp(a/_1)
  c = AddV2(a/_1, b)
  _retval_c_0_0 = _Retval(c) index=0
)");
  EXPECT_TRUE(Verify(placed.step, placed.placement, *parts).ok());
}

TEST(Partition, ValuesBetweenOtherPartsMayGoThroughHome) {
  const Placed placed({testing::Placeholder("x", PartialShape()), On(1, {"a", "Neg", {"x"}, kFloat}),
                       On(2, {"b", "AddV2", {"a", "x", "^a"}, kFloat})},
                      {"b"}, 3);
  const auto parts = placed.Cut(false, true);
  EXPECT_EQ(TextOf(parts), R"(d0
  a/_1 = _Recv() tensor_name="edge_0_a" send_device="d1" recv_device="d0"
  a/_2 = _Send(a/_1) tensor_name="edge_2_a" send_device="d0" recv_device="d2"
  a/_6 = _Recv() tensor_name="edge_5_a" send_device="d1" recv_device="d0"
  a/_7 = Identity(a/_6)
  a/_8 = _Send(a/_7) tensor_name="edge_8_a" send_device="d0" recv_device="d2"
d1
  _arg_x_0_0 = _Arg() index=0
  a = Neg(_arg_x_0_0)
  a/_0 = _Send(a) tensor_name="edge_0_a" send_device="d1" recv_device="d0"
  a/ctrl/_4 = Const(^a)
  a/_5 = _Send(a/ctrl/_4) tensor_name="edge_5_a" send_device="d1" recv_device="d0"
d2
  a/_3 = _Recv() tensor_name="edge_2_a" send_device="d0" recv_device="d2"
  a/_9 = _Recv() tensor_name="edge_8_a" send_device="d0" recv_device="d2"
  a/_10 = Identity(a/_9)
  _arg_x_0_0 = _Arg() index=0
  b = AddV2(a/_3, _arg_x_0_0, ^a/_10)
  _retval_b_0_0 = _Retval(b) index=0
)");
  EXPECT_TRUE(Verify(placed.step, placed.placement, *parts).ok());
}

TEST(Partition, F016_LateReceivesComeBeforeTheirFirstUsers) {
  const Placed placed(
      {testing::Placeholder("x", PartialShape()), On(0, {"a", "Neg", {"x"}, kFloat}),
       On(1, {"b", "Exp", {"x"}, kFloat}), On(1, {"c", "Neg", {"b"}, kFloat}),
       On(1, {"d", "AddV2", {"c", "a"}, kFloat}), On(1, {"e", "Mul", {"d", "a", "^a"}, kFloat})},
      {"e"});
  const auto parts = placed.Cut(true);
  EXPECT_EQ(TextOf(parts), R"(d0
  _arg_x_0_0 = _Arg() index=0
  a = Neg(_arg_x_0_0)
  a/_0 = _Send(a) tensor_name="edge_0_a" send_device="d0" recv_device="d1"
  a/ctrl/_2 = Const(^a)
  a/_3 = _Send(a/ctrl/_2) tensor_name="edge_3_a" send_device="d0" recv_device="d1"
d1
  _arg_x_0_0 = _Arg() index=0
  b = Exp(_arg_x_0_0)
  c = Neg(b)
  a/_1 = _Recv(^b) tensor_name="edge_0_a" send_device="d0" recv_device="d1"
  d = AddV2(c, a/_1)
  a/_4 = _Recv(^c) tensor_name="edge_3_a" send_device="d0" recv_device="d1"
  a/_5 = Identity(a/_4)
  e = Mul(d, a/_1, ^a/_5)
  _retval_e_0_0 = _Retval(e) index=0
)");
  EXPECT_TRUE(Verify(placed.step, placed.placement, *parts).ok());
  EXPECT_EQ(TextOf(placed.Cut()).find("_Recv(^"), std::string::npos) << "by default they wait for nothing";
}

TEST(Partition, ControlEdgesCrossAsEmptyTensors) {
  const Placed placed({testing::Placeholder("x", PartialShape()),
                       On(0, {"a", "Assert", {"yes", "x"}, {{"T", std::vector<DType>{DType::kFloat}}}}),
                       testing::Const("yes", Tensor::Scalar(true)), On(1, {"b", "Exp", {"x", "^a"}, kFloat}),
                       On(1, {"c", "Neg", {"b", "^a"}, kFloat})},
                      {"c"});
  EXPECT_EQ(TextOf(placed.Cut()), R"(d0
  yes = Const()
  _arg_x_0_0 = _Arg() index=0
  a = Assert(yes, _arg_x_0_0)
  a/ctrl/_0 = Const(^a)
  a/_1 = _Send(a/ctrl/_0) tensor_name="edge_1_a" send_device="d0" recv_device="d1"
d1
  a/_2 = _Recv() tensor_name="edge_1_a" send_device="d0" recv_device="d1"
  a/_3 = Identity(a/_2)
  _arg_x_0_0 = _Arg() index=0
  b = Exp(_arg_x_0_0, ^a/_3)
  c = Neg(b, ^a/_3)
  _retval_c_0_0 = _Retval(c) index=0
)");
}

/// while (v < 10) v += step, with the sum on device 1 and all other nodes on device 0.
std::vector<NodeLine> Loop(const char* condition = "LoopCond") {
  const op::AttrList enter = {{"T", DType::kFloat}, {"frame_name", "loop"}};
  op::AttrList constant = enter;
  constant.emplace_back("is_constant", true);
  const op::AttrList none;
  return {testing::Placeholder("x", PartialShape()),
          testing::Const("limit", Tensor::Scalar<float>(10)),
          testing::Const("zero", Tensor::Scalar<float>(0)),
          On(0, {"enter", "Enter", {"zero"}, enter}),
          On(0, {"bound", "Enter", {"limit"}, constant}),
          On(0, {"step", "Enter", {"x"}, constant}),
          On(0, {"v", "Merge", {"enter", "next"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}}),
          On(0, {"less", "Less", {"v", "bound"}, kFloat}),
          On(0, {"goes_on",
                 condition,
                 {"less"},
                 condition == std::string("LoopCond") ? none : op::AttrList{{"T", DType::kBool}}}),
          On(0, {"switch", "Switch", {"v", "goes_on"}, kFloat}),
          On(1, {"sum", "AddV2", {"switch:1", "step"}, kFloat}),
          On(1, {"next", "NextIteration", {"sum"}, kFloat}),
          On(1, {"exit", "Exit", {"switch"}, kFloat})};
}

TEST(Partition, ALoopInTwoPartsGetsALoopInEach) {
  const Placed placed(Loop(), {"exit"});
  const auto parts = placed.Cut();
  EXPECT_EQ(TextOf(parts), R"(d0
  _cloop_0 = Const()
  _cloop_1 = Enter(_cloop_0) frame_name="loop"
  _cloop_2 = Merge(_cloop_1, _cloop_11)
  zero = Const()
  enter = Enter(zero) frame_name="loop"
  limit = Const()
  bound = Enter(limit) frame_name="loop"
  _arg_x_0_0 = _Arg() index=0
  step = Enter(_arg_x_0_0) frame_name="loop"
  step/_6 = _Send(step, ^_cloop_2) tensor_name="edge_6_step" send_device="d0" recv_device="d1"
  v = Merge(enter, next)
  less = Less(v, bound)
  goes_on = LoopCond(less)
  goes_on/_8 = _Send(goes_on, ^_cloop_2) tensor_name="edge_8_goes_on" send_device="d0" recv_device="d1"
  _cloop_10 = Switch(_cloop_2, goes_on)
  _cloop_11 = NextIteration(_cloop_10:1)
  switch = Switch(v, goes_on)
  switch/_14 = _Send(switch:1, ^_cloop_2) tensor_name="edge_14_switch" send_device="d0" recv_device="d1"
  exit = Exit(switch)
  sum/_17 = _Recv(^_cloop_2) tensor_name="edge_16_sum" send_device="d1" recv_device="d0"
  next = NextIteration(sum/_17)
  _retval_exit_0_0 = _Retval(exit) index=0
d1
  _cloop_3 = Const()
  _cloop_4 = Enter(_cloop_3) frame_name="loop"
  _cloop_5 = Merge(_cloop_4, _cloop_13)
  step/_7 = _Recv(^_cloop_5) tensor_name="edge_6_step" send_device="d0" recv_device="d1"
  goes_on/_9 = _Recv(^_cloop_5) tensor_name="edge_8_goes_on" send_device="d0" recv_device="d1"
  _cloop_12 = Switch(_cloop_5, goes_on/_9)
  _cloop_13 = NextIteration(_cloop_12:1)
  switch/_15 = _Recv(^_cloop_5) tensor_name="edge_14_switch" send_device="d0" recv_device="d1"
  sum = AddV2(step/_7, switch/_15)
  sum/_16 = _Send(sum, ^_cloop_5) tensor_name="edge_16_sum" send_device="d1" recv_device="d0"
)");
  EXPECT_TRUE(Verify(placed.step, placed.placement, *parts).ok());
}

TEST(Partition, ALoopInTwoPartsNeedsOneCondition) {
  EXPECT_EQ(TextOf(Placed(Loop("Identity"), {"exit"}).Cut()),
            "A cross-device loop must have a pivot predicate: loop (it has 0 LoopCond nodes)");
}

TEST(Partition, F305_APartThatIsNotThePlacementIsFound) {
  const Placed placed({testing::Placeholder("x", PartialShape()), On(0, {"a", "Neg", {"x"}, kFloat}),
                       On(1, {"b", "Exp", {"a"}, kFloat})},
                      {"b"});
  const auto fault = [&](const std::function<void(std::vector<graph::Part>&)>& spoil) {
    Result<std::vector<graph::Part>> parts = placed.Cut();
    EXPECT_TRUE(Verify(placed.step, placed.placement, *parts).ok());
    spoil(*parts);
    const Status status = Verify(placed.step, placed.placement, *parts);
    EXPECT_EQ(status.code(), Code::kInternal) << status.ToString();
    return status.message();
  };
  const auto node = [](graph::Part& part, const char* name) { return part.graph.Find(name)->id(); };
  const graph::Definition empty(placed.graph->ops());
  EXPECT_EQ(fault([&](auto& parts) { parts[1].graph.SetDevice(node(parts[1], "b"), "d0"); }),
            "'b' was placed on d1 and is on d0 in the part of d1");
  EXPECT_EQ(fault([](auto& parts) { parts.pop_back(); }), "'b' was placed and is in no part");
  EXPECT_EQ(fault([](auto& parts) { parts[0].graph.Truncate(2); }), "'a/_1' waits for 'edge_0_a', which nobody sends");
  EXPECT_EQ(fault([&](auto& parts) { parts[1].graph.SetAttr(node(parts[1], "a/_1"), "send_device", "d7"); }),
            "'edge_0_a' is sent with send_device d0 and received with d7");
  EXPECT_EQ(fault([](auto& parts) {
              parts.push_back({"d1", graph::Definition(parts[0].graph.ops())});
              std::swap(parts[1], parts[2]);
              (void)parts[1].graph.Add({.name = "a", .op = parts[0].graph.ops().Find("NoOp")});
            }),
            "'a' is in two parts, that of d1 and one before");
}

/// A part is a GraphDef: conversion to text and back gives the same part.
TEST(Partition, PartsGoThroughText) {
  const Placed placed(Loop(), {"exit"});
  const auto parts = placed.Cut();
  ASSERT_TRUE(parts.ok()) << parts.status().ToString();
  for (const graph::Part& part : *parts) {
    const Result<std::string> text = graph::ExportGraphDef(part.graph, graph::GraphFormat::kText);
    ASSERT_TRUE(text.ok()) << text.status().ToString();
    const auto again = graph::ParseGraph(*text, part.graph.ops(), {.allow_internal_names = true});
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(*graph::ExportGraphDef(*again, graph::GraphFormat::kText), *text);
    const auto request = graph::RequestOfPart(*again);
    ASSERT_TRUE(request.ok()) << request.status().ToString();
    EXPECT_EQ(request->fetches.size(), part.device == "d0" ? 1u : 0u);
  }
}

}  // namespace
}  // namespace weir::partition
