// Handles as values: fed, fetched, selected, carried by loops, stored; and errors of missing resources.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/tensor/resource.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

const op::AttrList kDtypeFloat = {{"dtype", DType::kFloat}};
const op::AttrList kHandleT = {{"T", DType::kResource}};
const op::AttrList kTwoHandleT = {{"T", DType::kResource}, {"N", int64_t{2}}};

NodeLine VariableNode(const std::string& name, DType dtype = DType::kFloat,
                      const PartialShape& shape = PartialShape{2}) {
  return {name, "VarHandleOp", {}, {{"dtype", dtype}, {"shape", shape}, {"shared_name", name}}};
}

/// Variables a = [1, 2] and b = [10, 20], placeholders h of a handle and p of a bool, and ops on the handle.
std::vector<NodeLine> HandleNodes() {
  return {VariableNode("a"),
          VariableNode("b"),
          Const("a_0", Tensor::Vector<float>({1, 2})),
          Const("b_0", Tensor::Vector<float>({10, 20})),
          {"a_set", "AssignVariableOp", {"a", "a_0"}, kDtypeFloat},
          {"b_set", "AssignVariableOp", {"b", "b_0"}, kDtypeFloat},
          {"init", "NoOp", {"^a_set", "^b_set"}},
          Placeholder("h", PartialShape(), DType::kResource),
          Placeholder("p", PartialShape(Shape()), DType::kBool),
          Const("half", Tensor::Vector<float>({0.5, 0.5})),
          Const("rate", Tensor::Scalar<float>(0.1f)),
          {"read", "ReadVariableOp", {"h"}, kDtypeFloat},
          {"set", "AssignVariableOp", {"h", "half"}, kDtypeFloat},
          {"add", "AssignAddVariableOp", {"h", "half"}, kDtypeFloat},
          {"sub", "AssignSubVariableOp", {"h", "half"}, kDtypeFloat},
          {"descend", "ResourceApplyGradientDescent", {"h", "rate", "b_0"}, kFloat},
          {"there", "VarIsInitializedOp", {"h"}},
          {"extents", "VariableShape", {"h"}},
          {"a_read", "ReadVariableOp", {"a"}, kDtypeFloat}};
}

class Handles : public ::testing::Test {
 protected:
  void Open(std::vector<NodeLine> nodes, int inter_op = 1) {
    session_.reset();
    graph_ = testing::MakeGraph(nodes);
    ASSERT_TRUE(graph_.ok()) << graph_.status().ToString();
    const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    SessionOptions options;
    options.inter_op_parallelism_threads = inter_op;
    options.default_device = testing::TestDevice();
    Result<std::unique_ptr<Session>> session = Session::Make(*runtime, *graph_, options);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(*session);
  }
  void OpenVariables(const std::vector<NodeLine>& more = {}, int inter_op = 1) {
    std::vector<NodeLine> nodes = HandleNodes();
    nodes.insert(nodes.end(), more.begin(), more.end());
    Open(std::move(nodes), inter_op);
    Target({}, "init");
  }
  void Target(const std::vector<Feed>& feeds, const std::string& target) {
    const auto done = session_->Run(feeds, std::vector<std::string>(), std::vector<std::string>{target});
    ASSERT_TRUE(done.ok()) << target << ": " << done.status().ToString();
  }
  Tensor Get(const std::string& fetch, const std::vector<Feed>& feeds = {}) {
    const auto got = session_->Run(feeds, std::vector<std::string>{fetch}, std::vector<std::string>());
    EXPECT_TRUE(got.ok()) << fetch << ": " << got.status().ToString();
    return got.ok() ? (*got)[0] : Tensor();
  }
  std::vector<float> Floats(const std::string& fetch, const std::vector<Feed>& feeds = {}) {
    const Tensor tensor = Get(fetch, feeds);
    const auto values = tensor.as<float>();
    return {values.begin(), values.end()};
  }
  void Refused(const std::string& fetch, const std::vector<Feed>& feeds, Code code, const std::string& text) {
    const auto got = session_->Run(feeds, std::vector<std::string>{fetch}, std::vector<std::string>());
    EXPECT_EQ(got.status().code(), code) << got.status().ToString();
    EXPECT_NE(got.status().message().find(text), std::string::npos) << got.status().ToString();
    EXPECT_EQ(got.status().node(), fetch.substr(0, fetch.find(':')));
  }

  Result<graph::Definition> graph_ = NotFound("no graph yet");
  std::unique_ptr<Session> session_;
};

TEST_F(Handles, FedOnesWorkAsThoseOfTheGraph) {
  OpenVariables();
  const std::vector<Feed> a = {{"h:0", Get("a:0")}}, b = {{"h:0", Get("b:0")}};
  EXPECT_EQ(Floats("read:0", a), (std::vector<float>{1, 2}));
  EXPECT_EQ(Floats("read:0", b), (std::vector<float>{10, 20}));
  Target(a, "add");
  EXPECT_EQ(Floats("a_read:0"), (std::vector<float>{1.5, 2.5}));
  Target(a, "sub");
  Target(a, "sub");
  EXPECT_EQ(Floats("read:0", a), (std::vector<float>{0.5, 1.5}));
  Target(a, "descend");
  EXPECT_EQ(Floats("read:0", a), (std::vector<float>{-0.5, -0.5}));
  Target(a, "set");
  EXPECT_EQ(Floats("a_read:0"), (std::vector<float>{0.5, 0.5}));
  EXPECT_TRUE(Get("there:0", a).as<bool>()[0]);
  EXPECT_EQ(Get("extents:0", a).as<int32_t>()[0], 2);
}

TEST_F(Handles, NamesAloneFindTheResource) {
  OpenVariables();
  ResourceHandle handle = Get("a:0").as<ResourceHandle>()[0];
  EXPECT_EQ(handle.name, "a");
  EXPECT_EQ(handle.container, "localhost");
  EXPECT_EQ(handle.type_name, "tensorflow::Var");
  EXPECT_NE(handle.hash_code, 0u);
  handle.resource.reset();
  EXPECT_EQ(Floats("read:0", {{"h:0", Tensor::Scalar(handle)}}), (std::vector<float>{1, 2}));
  handle.hash_code = 0;
  EXPECT_EQ(Floats("read:0", {{"h:0", Tensor::Scalar(handle)}}), (std::vector<float>{1, 2}));
  handle.name = "new";
  const std::vector<Feed> named = {{"h:0", Tensor::Scalar(handle)}};
  EXPECT_FALSE(Get("there:0", named).as<bool>()[0]);
  Target(named, "set");
  EXPECT_EQ(Floats("read:0", named), (std::vector<float>{0.5, 0.5}));
}

TEST_F(Handles, AreChosenByMergesAlsoBetweenAVariableAndAnother) {
  OpenVariables({{"s", "Switch", {"a", "p"}, kHandleT},
                 {"t", "Switch", {"h", "p"}, kHandleT},
                 {"m", "Merge", {"s:1", "t"}, kTwoHandleT},
                 {"m_read", "ReadVariableOp", {"m"}, kDtypeFloat}});
  const Tensor b = Get("b:0");
  EXPECT_EQ(Floats("m_read:0", {{"h:0", b}, {"p:0", Tensor::Scalar(true)}}), (std::vector<float>{1, 2}));
  EXPECT_EQ(Floats("m_read:0", {{"h:0", b}, {"p:0", Tensor::Scalar(false)}}), (std::vector<float>{10, 20}));
  const Tensor chosen = Get("m:0", {{"h:0", b}, {"p:0", Tensor::Scalar(true)}});
  EXPECT_EQ(chosen.as<ResourceHandle>()[0].name, "a");
}

TEST_F(Handles, VariablesOfDifferentTypesAreChosenAsValues) {
  OpenVariables({VariableNode("i", DType::kInt32),
                 {"s", "Switch", {"a", "p"}, kHandleT},
                 {"t", "Switch", {"i", "p"}, kHandleT},
                 {"m", "Merge", {"s:1", "t"}, kTwoHandleT},
                 {"m_read", "ReadVariableOp", {"m"}, kDtypeFloat}});
  EXPECT_EQ(Floats("m_read:0", {{"p:0", Tensor::Scalar(true)}}), (std::vector<float>{1, 2}));
  Refused("m_read:0", {{"p:0", Tensor::Scalar(false)}}, Code::kInvalidArgument,
          "Trying to read variable with wrong dtype. Expected int32 got float");
}

TEST_F(Handles, AreKeptByVariables) {
  OpenVariables({VariableNode("kept", DType::kResource, PartialShape(Shape())),
                 {"keep", "AssignVariableOp", {"kept", "a"}, {{"dtype", DType::kResource}}},
                 {"take", "ReadVariableOp", {"kept"}, {{"dtype", DType::kResource}}},
                 {"take_read", "ReadVariableOp", {"take"}, kDtypeFloat}});
  Target({}, "keep");
  EXPECT_EQ(Floats("take_read:0"), (std::vector<float>{1, 2}));
}

/// Adds 0.5 to the variable behind "g" in three iterations that carry the handle.
std::vector<NodeLine> AddInLoopOverHandle() {
  const op::AttrList integer = {{"T", DType::kInt32}};
  return {Const("i_0", Tensor::Scalar<int32_t>(0)),
          Const("three_0", Tensor::Scalar<int32_t>(3)),
          Const("one_0", Tensor::Scalar<int32_t>(1)),
          {"three", "Enter", {"three_0"}, In("f", DType::kInt32, true)},
          {"one", "Enter", {"one_0"}, In("f", DType::kInt32, true)},
          {"step", "Enter", {"half"}, In("f", DType::kFloat, true)},
          {"i_e", "Enter", {"i_0"}, In("f", DType::kInt32)},
          {"h_e", "Enter", {"h"}, In("f", DType::kResource)},
          {"i_m", "Merge", {"i_e", "i_r"}, {{"T", DType::kInt32}, {"N", int64_t{2}}}},
          {"h_m", "Merge", {"h_e", "h_r"}, kTwoHandleT},
          {"less", "Less", {"i_m", "three"}, integer},
          {"c", "LoopCond", {"less"}},
          {"i_s", "Switch", {"i_m", "c"}, integer},
          {"h_s", "Switch", {"h_m", "c"}, kHandleT},
          {"h_b", "Identity", {"h_s:1"}, kHandleT},
          {"h_add", "AssignAddVariableOp", {"h_b", "step"}, kDtypeFloat},
          {"i_n", "AddV2", {"i_s:1", "one", "^h_add"}, integer},
          {"i_r", "NextIteration", {"i_n"}, integer},
          {"h_r", "NextIteration", {"h_b"}, kHandleT},
          {"h_x", "Exit", {"h_s"}, kHandleT},
          {"h_read", "ReadVariableOp", {"h_x"}, kDtypeFloat}};
}

TEST_F(Handles, AreCarriedByLoops) {
  for (const int inter_op : {1, 4}) {
    OpenVariables(AddInLoopOverHandle(), inter_op);
    EXPECT_EQ(Floats("h_read:0", {{"h:0", Get("a:0")}}), (std::vector<float>{2.5, 3.5}));
    EXPECT_EQ(Floats("h_read:0", {{"h:0", Get("b:0")}}), (std::vector<float>{11.5, 21.5}));
  }
}

TEST_F(Handles, OfAnotherSessionFindNothing) {
  OpenVariables();
  const Tensor foreign = Get("a:0");
  OpenVariables();
  EXPECT_EQ(Floats("a_read:0"), (std::vector<float>{1, 2}));
  Refused("read:0", {{"h:0", foreign}}, Code::kFailedPrecondition,
          "Could not find variable a. This could mean that the variable has been deleted.");
  EXPECT_FALSE(Get("there:0", {{"h:0", foreign}}).as<bool>()[0]);
}

TEST_F(Handles, OfTheWrongTypeAreRefused) {
  OpenVariables({Const("n", Tensor::Scalar<int32_t>(2)),
                 {"array", "TensorArrayV3", {"n"}, kDtypeFloat},
                 {"array_read", "ReadVariableOp", {"array"}, kDtypeFloat},
                 Const("zero", Tensor::Scalar<int32_t>(0)),
                 Const("flow", Tensor::Scalar<float>(0)),
                 {"element", "TensorArrayReadV3", {"a", "zero", "flow"}, kDtypeFloat},
                 {"pop", "StackPopV2", {"array"}, {{"elem_type", DType::kFloat}}},
                 {"ints", "ReadVariableOp", {"h"}, {{"dtype", DType::kInt32}}}});
  Refused("array_read:0", {}, Code::kInvalidArgument,
          "of type 'tensorflow::TensorArray' but you are trying to access the resource as type 'tensorflow::Var'");
  Refused(
      "element:0", {}, Code::kInvalidArgument,
      "Trying to access a handle's resource using the wrong type. The handle points to a resource (name 'a') of type "
      "'tensorflow::Var' but you are trying to access the resource as type 'tensorflow::TensorArray'");
  Refused("pop:0", {}, Code::kInvalidArgument, "as type 'tensorflow::Stack'");
  Refused("ints:0", {{"h:0", Get("a:0")}}, Code::kInvalidArgument,
          "Trying to read variable with wrong dtype. Expected float got int32");
  Refused("read:0", {{"h:0", *Tensor::Make(DType::kResource, Shape{2})}}, Code::kInvalidArgument,
          "a resource handle must be a scalar, got shape [2]");
}

TEST_F(Handles, ResourcesOfAStepEndWithIt) {
  OpenVariables({Const("n", Tensor::Scalar<int32_t>(2)),
                 {"array", "TensorArrayV3", {"n"}, kDtypeFloat},
                 {"size", "TensorArraySizeV3", {"h", "array:1"}},
                 {"own", "TensorArraySizeV3", {"array", "array:1"}}});
  EXPECT_EQ(Get("own:0").as<int32_t>()[0], 2);
  const Tensor dead = Get("array:0");
  Refused("size:0", {{"h:0", dead}}, Code::kNotFound, "/N10tensorflow11TensorArrayE does not exist.");
}

TEST_F(Handles, DestroyedOnesFindNothing) {
  OpenVariables({{"destroy", "DestroyResourceOp", {"h"}, {{"ignore_lookup_error", false}}},
                 {"destroy_a", "DestroyResourceOp", {"a"}},
                 {"t", "MutableHashTableV2", {}, {{"key_dtype", DType::kInt64}, {"value_dtype", DType::kFloat}}},
                 {"t_size", "LookupTableSizeV2", {"h"}}});
  const Tensor a = Get("a:0"), t = Get("t:0");
  Target({}, "destroy_a");
  Refused("a_read:0", {}, Code::kFailedPrecondition, "Could not find variable a.");
  EXPECT_FALSE(Get("there:0", {{"h:0", a}}).as<bool>()[0]);
  Target({}, "destroy_a");
  Target({{"h:0", a}}, "set");
  EXPECT_EQ(Floats("a_read:0"), (std::vector<float>{0.5, 0.5})) << "it can be assigned again";
  EXPECT_EQ(Get("t_size:0", {{"h:0", t}}).as<int64_t>()[0], 0);
  Target({{"h:0", t}}, "destroy");
  Refused("t_size:0", {{"h:0", t}}, Code::kNotFound, " does not exist.");
  const std::vector<std::string> none, destroy = {"destroy"};
  EXPECT_EQ(session_->Run(std::vector<Feed>{{"h:0", t}}, none, destroy).status().code(), Code::kNotFound);
}

// Stacks and arrays in steps.

TEST_F(Handles, LoopsPushAndPopStacks) {
  for (const int inter_op : {1, 4}) {
    std::vector<NodeLine> nodes = {Const("x_0", Tensor::Vector<float>({1, 2})),
                                   Const("i_0", Tensor::Scalar<int32_t>(0)),
                                   Const("j_0", Tensor::Scalar<int32_t>(0)),
                                   Const("n", Tensor::Scalar<int32_t>(4)),
                                   Const("one", Tensor::Scalar<int32_t>(1)),
                                   Const("none", Tensor::Scalar<int32_t>(-1)),
                                   {"stack", "StackV2", {"none"}, {{"elem_type", DType::kFloat}}},
                                   {"sum_0", "Identity", {"x_x"}, kFloat}};
    const auto append = [&](const std::vector<NodeLine>& more) { nodes.insert(nodes.end(), more.begin(), more.end()); };
    // Doubles x, and pushes each value.
    append(Loop("f", "n", "one", "i", {"x"},
                {{"f_stack", "Enter", {"stack"}, In("f", DType::kResource, true)},
                 {"push", "StackPushV2", {"f_stack", "x_b"}, kFloat},
                 {"x_n", "AddV2", {"push", "push"}, kFloat}}));
    // sum = 10 sum + the popped value.
    append({Const("ten_0", Tensor::Scalar<float>(10))});
    append(Loop("g", "n", "one", "j", {"sum"},
                {{"g_stack", "Enter", {"stack"}, In("g", DType::kResource, true)},
                 {"ten", "Enter", {"ten_0"}, In("g", DType::kFloat, true)},
                 {"pop", "StackPopV2", {"g_stack", "^sum_b"}, {{"elem_type", DType::kFloat}}},
                 {"more", "Mul", {"sum_b", "ten"}, kFloat},
                 {"sum_n", "AddV2", {"more", "pop"}, kFloat}}));
    Open(nodes, inter_op);
    // 16 x, then 8, 4, 2 and 1 times x.
    EXPECT_EQ(Floats("sum_x:0"), (std::vector<float>{168421, 336842}));
    EXPECT_EQ(Floats("sum_x:0"), (std::vector<float>{168421, 336842}));
  }
}

TEST_F(Handles, F178_F394_LoopsWriteArraysThatGatherStacks) {
  for (const int inter_op : {1, 4}) {
    std::vector<NodeLine> nodes = {
        Const("x_0", Tensor::Vector<float>({1, 2})),      Const("i_0", Tensor::Scalar<int32_t>(0)),
        Const("n", Tensor::Scalar<int32_t>(3)),           Const("one", Tensor::Scalar<int32_t>(1)),
        Const("all", Tensor::Vector<int32_t>({2, 1, 0})), {"array", "TensorArrayV3", {"n"}, kDtypeFloat},
        {"flow_0", "Identity", {"array:1"}, kFloat}};
    const std::vector<NodeLine> loop =
        Loop("f", "n", "one", "i", {"x", "flow"},
             {{"f_array", "Enter", {"array"}, In("f", DType::kResource, true)},
              {"x_n", "AddV2", {"x_b", "x_b"}, kFloat},
              {"flow_n", "TensorArrayWriteV3", {"f_array", "i_b", "x_n", "flow_b"}, kFloat}});
    nodes.insert(nodes.end(), loop.begin(), loop.end());
    nodes.push_back({"y", "TensorArrayGatherV3", {"array", "all", "flow_x"}, kDtypeFloat});
    Open(nodes, inter_op);
    EXPECT_EQ(Floats("y:0"), (std::vector<float>{8, 16, 4, 8, 2, 4}));
    EXPECT_EQ(Get("y:0").shape(), (Shape{3, 2}));
  }
}

TEST_F(Handles, LoopsCarryLists) {
  std::vector<NodeLine> nodes = {
      Const("shape", Tensor::Vector<int32_t>({2})),
      Const("x_0", Tensor::Vector<float>({1, 2})),
      Const("i_0", Tensor::Scalar<int32_t>(0)),
      Const("n", Tensor::Scalar<int32_t>(3)),
      Const("one", Tensor::Scalar<int32_t>(1)),
      {"list", "TensorListReserve", {"shape", "n"}, {{"element_dtype", DType::kFloat}, {"shape_type", DType::kInt32}}}};
  const op::AttrList variant = {{"T", DType::kVariant}};
  Append(nodes, Loop("f", "n", "one", "i", {"x"},
                     {{"x_n", "AddV2", {"x_b", "x_b"}, kFloat},
                      {"l_e", "Enter", {"list"}, In("f", DType::kVariant)},
                      {"l_m", "Merge", {"l_e", "l_r"}, {{"T", DType::kVariant}, {"N", int64_t{2}}}},
                      {"l_s", "Switch", {"l_m", "f_on"}, variant},
                      {"l_n", "TensorListSetItem", {"l_s:1", "i_b", "x_n"}, {{"element_dtype", DType::kFloat}}},
                      {"l_r", "NextIteration", {"l_n"}, variant},
                      {"l_x", "Exit", {"l_s"}, variant}}));
  nodes.push_back({"y", "TensorListStack", {"l_x", "shape"}, {{"element_dtype", DType::kFloat}}});
  nodes.push_back({"twice", "AddN", {"l_x", "l_x"}, {{"T", DType::kVariant}, {"N", int64_t{2}}}});
  nodes.push_back({"z", "TensorListStack", {"twice", "shape"}, {{"element_dtype", DType::kFloat}}});
  for (const int inter_op : {1, 4}) {
    Open(nodes, inter_op);
    EXPECT_EQ(Floats("y:0"), (std::vector<float>{2, 4, 4, 8, 8, 16}));
    EXPECT_EQ(Floats("z:0"), (std::vector<float>{4, 8, 8, 16, 16, 32}));
  }
}

/// A queue of two floats at most, and a table.
std::vector<NodeLine> QueueAndTable() {
  const op::AttrList components = {{"component_types", std::vector<DType>{DType::kFloat}}};
  return {{"q",
           "FIFOQueueV2",
           {},
           {{"component_types", std::vector<DType>{DType::kFloat}},
            {"shapes", std::vector<PartialShape>{PartialShape(Shape())}},
            {"capacity", int64_t{2}}}},
          Placeholder("x", PartialShape(Shape())),
          {"in", "QueueEnqueueV2", {"q", "x"}, {{"Tcomponents", std::vector<DType>{DType::kFloat}}}},
          {"out", "QueueDequeueV2", {"q"}, components},
          {"size", "QueueSizeV2", {"q"}},
          {"close", "QueueCloseV2", {"q"}},
          {"t", "MutableHashTableV2", {}, {{"key_dtype", DType::kInt64}, {"value_dtype", DType::kFloat}}},
          Const("key", Tensor::Vector<int64_t>({7})),
          Const("value", Tensor::Vector<float>({0.5})),
          Const("none", Tensor::Scalar<float>(-1)),
          {"put", "LookupTableInsertV2", {"t", "key", "value"}, {{"Tin", DType::kInt64}, {"Tout", DType::kFloat}}},
          {"find", "LookupTableFindV2", {"t", "key", "none"}, {{"Tin", DType::kInt64}, {"Tout", DType::kFloat}}}};
}

TEST_F(Handles, F379_QueuesAndTablesOutliveRuns) {
  Open(QueueAndTable());
  for (const float x : {1.f, 2.f}) Target({{"x:0", Tensor::Scalar(x)}}, "in");
  EXPECT_EQ(Get("size:0").as<int32_t>()[0], 2);
  EXPECT_EQ(Floats("out:0"), (std::vector<float>{1}));
  EXPECT_EQ(Floats("find:0"), (std::vector<float>{-1}));
  Target({}, "put");
  EXPECT_EQ(Floats("find:0"), (std::vector<float>{0.5}));
  EXPECT_EQ(Floats("out:0"), (std::vector<float>{2}));
  Target({}, "close");
  Refused("out:0", {}, Code::kOutOfRange, "is closed and has insufficient elements (requested 1, current size 0)");
}

TEST_F(Handles, F319_F379_ADequeueWaitsForAnotherRun) {
  Open(QueueAndTable());
  std::vector<float> got;
  std::thread waiting([&] { got = Floats("out:0"); });
  Target({{"x:0", Tensor::Scalar(3.f)}}, "in");
  waiting.join();
  EXPECT_EQ(got, (std::vector<float>{3}));
}

TEST_F(Handles, F362_ADequeueEndsWithItsDeadlineOrItsSession) {
  Open(QueueAndTable());
  RunOptions options;
  options.timeout_in_ms = 20;
  const std::vector<std::string> none, out = {"out:0"};
  const auto late = session_->Run({}, out, none, options);
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded) << late.status().ToString();
  Status closed;
  std::thread waiting([&] { closed = session_->Run({}, out, none).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(session_->Close().ok());
  waiting.join();
  EXPECT_EQ(closed.code(), Code::kCancelled) << closed.ToString();
}

}  // namespace
}  // namespace weir::session
