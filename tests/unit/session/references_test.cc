// References selected at run time: RefSelect, Merge of several variables, and loops whose variables refer to different
// variables in turn. Expected values are TensorFlow 2.17's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/tensor/resource.h"
#include "tests/support/test_device.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

using Lines = std::vector<NodeLine>;
using Rows = std::vector<std::vector<float>>;

const op::AttrList kHandle = {{"T", DType::kResource}};
const op::AttrList kOfFloat = {{"dtype", DType::kFloat}};
const op::AttrList kTwoFloats = {{"T", DType::kFloat}, {"N", int64_t{2}}};
const op::AttrList kTwoHandles = {{"T", DType::kResource}, {"N", int64_t{2}}};

/// A session with variables a and b, by reference or by handle, which "init" sets to `a` and `b`.
struct TwoVariables {
  enum class Kind { kReference, kHandle };

  TwoVariables(Kind kind, const Lines& more, std::vector<float> a = {1, 2}, std::vector<float> b = {10, 20},
               const std::shared_ptr<Runtime>& runtime = Default()) {
    const bool refs = kind == Kind::kReference;
    Lines nodes;
    for (const auto& [name, value] : {std::pair("a", &a), std::pair("b", &b)}) {
      const PartialShape shape = PartialShape::Of({static_cast<int64_t>(value->size())});
      op::AttrList attrs = {{"dtype", DType::kFloat}, {"shape", shape}};
      if (!refs) attrs.emplace_back("shared_name", std::string(name));
      const std::string to = name, from = to + "_0";
      nodes.push_back({to, refs ? "VariableV2" : "VarHandleOp", {}, attrs});
      nodes.push_back(Const(from, Tensor::Vector<float>(*value)));
      nodes.push_back({to + "_set", refs ? "Assign" : "AssignVariableOp", {to, from}, refs ? kFloat : kOfFloat});
    }
    nodes.push_back({"init", "NoOp", {"^a_set", "^b_set"}});
    nodes.push_back(Const("half", Tensor::Vector<float>({0.5, 0.5})));
    nodes.push_back(Const("zero", Tensor::Scalar<int32_t>(0)));
    nodes.push_back(Const("one", Tensor::Scalar<int32_t>(1)));
    nodes.push_back(Placeholder("p", PartialShape::Of({}), DType::kBool));
    nodes.push_back(Placeholder("i", PartialShape(), DType::kInt32));
    Append(nodes, more);
    graph = testing::MakeGraph(nodes);
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    SessionOptions options;
    options.inter_op_parallelism_threads = 4;
    if (runtime == Default()) options.default_device = testing::TestDevice();
    Result<std::unique_ptr<Session>> made = Session::Make(runtime, *graph, options);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    session = std::move(*made);
    const std::vector<std::string> none, init = {"init"};
    const auto set = session->Run({}, none, init);
    EXPECT_TRUE(set.ok()) << set.status().ToString();
  }

  static std::shared_ptr<Runtime> Default() {
    const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
    return runtime.ok() ? *runtime : nullptr;
  }

  Result<std::vector<Tensor>> Run(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches) {
    const std::vector<std::string> none;
    return session->Run(feeds, fetches, none);
  }

  /// All fetches as float vectors.
  Rows Get(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches) {
    const auto got = Run(feeds, fetches);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    Rows rows;
    for (const Tensor& tensor : got.ok() ? *got : std::vector<Tensor>()) {
      const auto values = tensor.as<float>();
      rows.emplace_back(values.begin(), values.end());
    }
    return rows;
  }

  Result<graph::Definition> graph = Internal("not made");
  std::unique_ptr<Session> session;
};

using Kind = TwoVariables::Kind;

std::vector<Feed> Predicate(bool p) { return {{"p:0", Tensor::Scalar<bool>(p)}}; }
std::vector<Feed> Index(int32_t i) { return {{"i:0", Tensor::Scalar<int32_t>(i)}}; }

/// Adds a half through `reference`, then reads both variables.
Lines AddThrough(const std::string& reference) {
  return {{"add", "AssignAdd", {reference, "half"}, kFloat},
          {"a_read", "Identity", {"a", "^add"}, kFloat},
          {"b_read", "Identity", {"b", "^add"}, kFloat}};
}
Lines AddThroughHandle(const std::string& handle) {
  return {{"add", "AssignAddVariableOp", {handle, "half"}, kOfFloat},
          {"read", "ReadVariableOp", {handle, "^add"}, kOfFloat},
          {"a_read", "ReadVariableOp", {"a", "^add"}, kOfFloat},
          {"b_read", "ReadVariableOp", {"b", "^add"}, kOfFloat}};
}

Lines operator+(Lines first, const Lines& more) {
  Append(first, more);
  return first;
}

TEST(References, RefSelectHandsOnTheOneOfItsIndex) {
  TwoVariables f(Kind::kReference, Lines{{"one_of", "RefSelect", {"i", "a", "b"}, kTwoFloats}} + AddThrough("one_of"));
  const std::vector<std::string> fetches = {"add:0", "a_read:0", "b_read:0"};
  EXPECT_EQ(f.Get(Index(0), fetches), (Rows{{1.5, 2.5}, {1.5, 2.5}, {10, 20}}));
  EXPECT_EQ(f.Get(Index(1), fetches), (Rows{{10.5, 20.5}, {1.5, 2.5}, {10.5, 20.5}}));
  EXPECT_EQ(f.Get(Index(0), {"one_of:0"}), (Rows{{1.5, 2.5}}));
  for (const int32_t i : {2, -1}) {
    const auto outside = f.Run(Index(i), fetches);
    EXPECT_EQ(outside.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(outside.status().node(), "one_of");
    EXPECT_TRUE(
        outside.status().message().starts_with("Index must be in the range [0, 2) but got " + std::to_string(i)))
        << outside.status().ToString();
  }
  const auto vector = f.Run({{"i:0", Tensor::Vector<int32_t>({0})}}, fetches);
  EXPECT_TRUE(vector.status().message().starts_with("Index must be a scalar")) << vector.status().ToString();
}

TEST(References, RefSelectWantsAllOfThemInitialized) {
  const op::AttrList variable = {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}};
  TwoVariables f(Kind::kReference, {{"c", "VariableV2", {}, variable},
                                    {"one_of", "RefSelect", {"i", "a", "c"}, kTwoFloats},
                                    {"read", "Identity", {"one_of"}, kFloat}});
  const auto got = f.Run(Index(0), {"read:0"});
  EXPECT_EQ(got.status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(got.status().message().starts_with("Attempting to use uninitialized value c")) << got.status().ToString();
}

TEST(References, RefSelectBetweenShapes) {
  TwoVariables f(Kind::kReference,
                 {{"one_of", "RefSelect", {"i", "a", "b"}, kTwoFloats},
                  {"value", "Identity", {"one_of"}, kFloat},
                  {"add", "AssignAdd", {"one_of", "value"}, kFloat},
                  {"shape", "Shape", {"add"}, {{"T", DType::kFloat}, {"out_type", DType::kInt32}}}},
                 {1, 2}, {10, 20, 30});
  EXPECT_EQ(f.Get(Index(0), {"add:0"}), (Rows{{2, 4}}));
  EXPECT_EQ(f.Get(Index(1), {"add:0"}), (Rows{{20, 40, 60}}));
  const auto shape = f.Run(Index(1), {"shape:0"});
  ASSERT_TRUE(shape.ok()) << shape.status().ToString();
  EXPECT_TRUE((*shape)[0].SameBits(Tensor::Vector<int32_t>({3})));
}

TEST(References, RefSelectIsDeadWithOneOfItsInputs) {
  TwoVariables f(Kind::kReference, {{"s", "RefSwitch", {"a", "p"}, kFloat},
                                    {"one_of", "RefSelect", {"one", "s:0", "b"}, kTwoFloats},
                                    {"read", "Identity", {"one_of"}, kFloat}});
  EXPECT_EQ(f.Get(Predicate(false), {"read:0"}), (Rows{{10, 20}}));
  const auto dead = f.Run(Predicate(true), {"read:0"});
  EXPECT_TRUE(dead.status().message().starts_with("Retval[0] does not have value")) << dead.status().ToString();
}

TEST(References, AnIndexAndAPredicateMayBeVariables) {
  const auto of = [](DType type) { return op::AttrList{{"dtype", type}, {"shape", PartialShape::Of({})}}; };
  const auto t = [](DType type) { return op::AttrList{{"T", type}}; };
  TwoVariables f(Kind::kReference, {{"n", "VariableV2", {}, of(DType::kInt32)},
                                    {"n_set", "Assign", {"n", "one"}, t(DType::kInt32)},
                                    {"q", "VariableV2", {}, of(DType::kBool)},
                                    {"q_set", "Assign", {"q", "p"}, t(DType::kBool)},
                                    {"one_of", "RefSelect", {"n_set", "a", "b"}, kTwoFloats},
                                    {"read", "Identity", {"one_of"}, kFloat},
                                    {"s", "Switch", {"half", "q_set"}, kFloat},
                                    {"yes", "Neg", {"s:1"}, kFloat},
                                    {"y", "Merge", {"s:0", "yes"}, kTwoFloats}});
  EXPECT_EQ(f.Get(Predicate(true), {"read:0", "y:0"}), (Rows{{10, 20}, {-0.5, -0.5}}));
  EXPECT_EQ(f.Get(Predicate(false), {"read:0", "y:0"}), (Rows{{10, 20}, {0.5, 0.5}}));
}

TEST(References, AVariableThatChangesBetweenTwoCondsIsReadAgain) {
  const op::AttrList boolean = {{"T", DType::kBool}};
  TwoVariables f(Kind::kReference, {{"q", "VariableV2", {}, {{"dtype", DType::kBool}, {"shape", PartialShape::Of({})}}},
                                    {"q_set", "Assign", {"q", "p"}, boolean},
                                    {"before", "Identity", {"q_set"}, boolean},
                                    {"s", "Switch", {"half", "before"}, kFloat},
                                    {"s_yes", "Neg", {"s:1"}, kFloat},
                                    {"y", "Merge", {"s:0", "s_yes"}, kTwoFloats},
                                    {"not", "LogicalNot", {"before", "^y"}},
                                    {"q_turn", "Assign", {"q", "not"}, boolean},
                                    {"after", "Identity", {"q_turn"}, boolean},
                                    {"t", "Switch", {"y", "after"}, kFloat},
                                    {"t_yes", "Square", {"t:1"}, kFloat},
                                    {"z", "Merge", {"t:0", "t_yes"}, kTwoFloats}});
  EXPECT_EQ(f.Get(Predicate(true), {"z:0"}), (Rows{{-0.5, -0.5}}));
  EXPECT_EQ(f.Get(Predicate(false), {"z:0"}), (Rows{{0.25, 0.25}}));
}

/// m = p ? b : a, with references or handles.
Lines Either(Kind kind) {
  const bool refs = kind == Kind::kReference;
  return {{"a_s", refs ? "RefSwitch" : "Switch", {"a", "p"}, refs ? kFloat : kHandle},
          {"b_s", refs ? "RefSwitch" : "Switch", {"b", "p"}, refs ? kFloat : kHandle},
          {"m", refs ? "RefMerge" : "Merge", {"a_s:0", "b_s:1"}, refs ? kTwoFloats : kTwoHandles}};
}

TEST(References, RefMergeWritesTheLiveOne) {
  TwoVariables f(Kind::kReference, Either(Kind::kReference) + AddThrough("m"));
  const std::vector<std::string> fetches = {"add:0", "a_read:0", "b_read:0"};
  EXPECT_EQ(f.Get(Predicate(false), fetches), (Rows{{1.5, 2.5}, {1.5, 2.5}, {10, 20}}));
  EXPECT_EQ(f.Get(Predicate(true), fetches), (Rows{{10.5, 20.5}, {1.5, 2.5}, {10.5, 20.5}}));
  for (const bool p : {false, true}) {
    const auto index = f.Run(Predicate(p), {"m:1"});
    ASSERT_TRUE(index.ok()) << index.status().ToString();
    EXPECT_TRUE((*index)[0].SameBits(Tensor::Scalar<int32_t>(p ? 1 : 0)));
  }
}

TEST(References, MergeOfHandlesWritesTheLiveOne) {
  TwoVariables f(Kind::kHandle,
                 Either(Kind::kHandle) + Lines{{"same", "Identity", {"m"}, kHandle}} + AddThroughHandle("same"));
  const std::vector<std::string> fetches = {"read:0", "a_read:0", "b_read:0"};
  EXPECT_EQ(f.Get(Predicate(false), fetches), (Rows{{1.5, 2.5}, {1.5, 2.5}, {10, 20}}));
  EXPECT_EQ(f.Get(Predicate(true), fetches), (Rows{{10.5, 20.5}, {1.5, 2.5}, {10.5, 20.5}}));
  const auto handle = f.Run(Predicate(true), {"same:0"});
  ASSERT_TRUE(handle.ok()) << handle.status().ToString();
  EXPECT_EQ((*handle)[0].as<ResourceHandle>()[0].name, "b");
}

TEST(References, QueriesAndAssignmentsUseTheLiveOne) {
  TwoVariables f(Kind::kHandle, Either(Kind::kHandle) + Lines{{"set", "AssignVariableOp", {"m", "half"}, kOfFloat},
                                                              {"there", "VarIsInitializedOp", {"m", "^set"}},
                                                              {"shape", "VariableShape", {"m", "^set"}},
                                                              {"a_read", "ReadVariableOp", {"a", "^set"}, kOfFloat},
                                                              {"b_read", "ReadVariableOp", {"b", "^set"}, kOfFloat}});
  EXPECT_EQ(f.Get(Predicate(true), {"a_read:0", "b_read:0"}), (Rows{{1, 2}, {0.5, 0.5}}));
  const auto asked = f.Run(Predicate(false), {"there:0", "shape:0"});
  ASSERT_TRUE(asked.ok()) << asked.status().ToString();
  EXPECT_TRUE((*asked)[0].SameBits(Tensor::Scalar<bool>(true)));
  EXPECT_TRUE((*asked)[1].SameBits(Tensor::Vector<int32_t>({2})));
  EXPECT_EQ(f.Get(Predicate(true), {"a_read:0", "b_read:0"}), (Rows{{0.5, 0.5}, {0.5, 0.5}}));
}

TEST(References, MergeOfHandlesOfTwoTypesIsAHandle) {
  TwoVariables f(Kind::kHandle, {{"c", "VarHandleOp", {}, {{"dtype", DType::kInt32}, {"shape", PartialShape::Of({2})}}},
                                 {"a_s", "Switch", {"a", "p"}, kHandle},
                                 {"c_s", "Switch", {"c", "p"}, kHandle},
                                 {"m", "Merge", {"a_s:0", "c_s:1"}, kTwoHandles},
                                 {"read", "ReadVariableOp", {"m"}, kOfFloat}});
  EXPECT_EQ(f.Get(Predicate(false), {"read:0"}), (Rows{{1, 2}}));
  const auto other = f.Run(Predicate(true), {"read:0"});
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(other.status().node(), "read");
}

/// for (; n < i; ++n) { h += k; sum += h; swap(h, k); } with h = a and k = b. If n has two back edges, for its first
/// and its later values, the exits of the other variables are unknown.
Lines TakingTurns(bool two_ways) {
  const op::AttrList integer = {{"T", DType::kInt32}};
  Lines nodes = {Const("sum_0", Tensor::Vector<float>({0, 0})),
                 {"i_e", "Enter", {"i"}, In("w", DType::kInt32, true)},
                 {"one_e", "Enter", {"one"}, In("w", DType::kInt32, true)},
                 {"n_e", "Enter", {"zero"}, In("w", DType::kInt32)},
                 {"sum_e", "Enter", {"sum_0"}, In("w", DType::kFloat)},
                 {"h_e", "Enter", {"a"}, In("w", DType::kResource)},
                 {"k_e", "Enter", {"b"}, In("w", DType::kResource)},
                 {"sum", "Merge", {"sum_e", "sum_r"}, kTwoFloats},
                 {"h", "Merge", {"h_e", "h_r"}, kTwoHandles},
                 {"k", "Merge", {"k_e", "k_r"}, kTwoHandles},
                 {"less", "Less", {"n", "i_e"}, integer},
                 {"on", "LoopCond", {"less"}},
                 {"n_s", "Switch", {"n", "on"}, integer},
                 {"sum_s", "Switch", {"sum", "on"}, kFloat},
                 {"h_s", "Switch", {"h", "on"}, kHandle},
                 {"k_s", "Switch", {"k", "on"}, kHandle},
                 {"k_read", "ReadVariableOp", {"k_s:1"}, kOfFloat},
                 {"h_was", "ReadVariableOp", {"h_s:1"}, kOfFloat},
                 {"h_new", "AddV2", {"h_was", "k_read"}, kFloat},
                 {"h_set", "AssignVariableOp", {"h_s:1", "h_new"}, kOfFloat},
                 {"h_read", "ReadVariableOp", {"h_s:1", "^h_set"}, kOfFloat},
                 {"more", "AddV2", {"sum_s:1", "h_read"}, kFloat},
                 {"next", "AddV2", {"n_s:1", "one_e"}, integer},
                 {"h_next", "Identity", {"k_s:1", "^h_read"}, kHandle},
                 {"k_next", "Identity", {"h_s:1", "^h_read"}, kHandle},
                 {"sum_r", "NextIteration", {"more"}, kFloat},
                 {"h_r", "NextIteration", {"h_next"}, kHandle},
                 {"k_r", "NextIteration", {"k_next"}, kHandle},
                 {"sum_x", "Exit", {"sum_s:0"}, kFloat},
                 {"h_x", "Exit", {"h_s:0"}, kHandle},
                 {"last", "ReadVariableOp", {"h_x", "^sum_x"}, kOfFloat}};
  if (two_ways) {
    nodes.push_back({"n", "Merge", {"n_e", "n_r", "n_later"}, {{"T", DType::kInt32}, {"N", int64_t{3}}}});
    nodes.push_back({"later", "Less", {"one_e", "next"}, integer});
    nodes.push_back({"way", "Switch", {"next", "later"}, integer});
    nodes.push_back({"n_r", "NextIteration", {"way:0"}, integer});
    nodes.push_back({"n_later", "NextIteration", {"way:1"}, integer});
  } else {
    nodes.push_back({"n", "Merge", {"n_e", "n_r"}, {{"T", DType::kInt32}, {"N", int64_t{2}}}});
    nodes.push_back({"n_r", "NextIteration", {"next"}, integer});
  }
  return nodes;
}

/// With one thread, and with ops that are worth several.
class TakingTurnsTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(TakingTurnsTest, LoopVariablesReferToOneVariableAfterTheOther) {
  const auto [two_ways, long_ops] = GetParam();
  const std::vector<std::string> fetches = {"sum_x:0", "last:0"};
  TwoVariables f(Kind::kHandle, TakingTurns(two_ways), {1, 1}, {10, 10},
                 long_ops ? Waiting() : TwoVariables::Default());
  EXPECT_EQ(f.Get(Index(0), fetches), (Rows{{0, 0}, {1, 1}}));
  EXPECT_EQ(f.Get(Index(1), fetches), (Rows{{11, 11}, {10, 10}}));
  EXPECT_EQ(f.Get(Index(2), fetches), (Rows{{52, 52}, {21, 21}}));
  EXPECT_EQ(f.Get(Index(3), fetches), (Rows{{270, 270}, {83, 83}}));
}

INSTANTIATE_TEST_SUITE_P(References, TakingTurnsTest, ::testing::Combine(::testing::Bool(), ::testing::Bool()));

/// while (h[0] < 100) { h *= 2; h = p ? h : k; } with h = a and k = b, by reference.
Lines UntilLarge() {
  const op::AttrList wanted = {{"T", DType::kFloat}, {"Index", DType::kInt32}};
  return {Const("at", Tensor::Vector<int32_t>({0})),
          Const("size", Tensor::Vector<int32_t>({1})),
          Const("hundred", Tensor::Vector<float>({100})),
          Const("none", Tensor::Vector<int32_t>({})),
          {"at_e", "Enter", {"at"}, In("u", DType::kInt32, true)},
          {"size_e", "Enter", {"size"}, In("u", DType::kInt32, true)},
          {"hundred_e", "Enter", {"hundred"}, In("u", DType::kFloat, true)},
          {"none_e", "Enter", {"none"}, In("u", DType::kInt32, true)},
          {"p_e", "Enter", {"p"}, In("u", DType::kBool, true)},
          {"h_e", "RefEnter", {"a"}, In("u", DType::kFloat)},
          {"k_e", "RefEnter", {"b"}, In("u", DType::kFloat)},
          {"h", "RefMerge", {"h_e", "h_r"}, kTwoFloats},
          {"k", "RefMerge", {"k_e", "k_r"}, kTwoFloats},
          {"h_read", "Identity", {"h"}, kFloat},
          {"first", "Slice", {"h_read", "at_e", "size_e"}, wanted},
          {"small", "Less", {"first", "hundred_e"}, kFloat},
          {"go", "Reshape", {"small", "none_e"}, {{"T", DType::kBool}, {"Tshape", DType::kInt32}}},
          {"on", "LoopCond", {"go"}},
          {"h_s", "RefSwitch", {"h", "on"}, kFloat},
          {"k_s", "RefSwitch", {"k", "on"}, kFloat},
          {"value", "Identity", {"h_s:1"}, kFloat},
          {"twice", "AssignAdd", {"h_s:1", "value"}, kFloat},
          {"stay", "RefSwitch", {"twice", "p_e"}, kFloat},
          {"turn", "RefSwitch", {"k_s:1", "p_e", "^twice"}, kFloat},
          {"h_next", "RefMerge", {"stay:1", "turn:0"}, kTwoFloats},
          {"h_r", "RefNextIteration", {"h_next"}, kFloat},
          {"k_r", "RefNextIteration", {"k_s:1"}, kFloat},
          {"h_x", "RefExit", {"h_s:0"}, kFloat},
          {"last", "Identity", {"h_x"}, kFloat},
          {"add", "AssignAdd", {"h_x", "half"}, kFloat},
          {"a_read", "Identity", {"a", "^add"}, kFloat},
          {"b_read", "Identity", {"b", "^add"}, kFloat}};
}

TEST(References, ALoopLeavesWithTheReferenceItHasLast) {
  const std::vector<std::string> fetches = {"add:0", "a_read:0", "b_read:0"};
  TwoVariables stays(Kind::kReference, UntilLarge(), {30, 2}, {60, 20});
  EXPECT_EQ(stays.Get(Predicate(true), fetches), (Rows{{120.5, 8.5}, {120.5, 8.5}, {60, 20}}));
  TwoVariables turns(Kind::kReference, UntilLarge(), {30, 2}, {60, 20});
  EXPECT_EQ(turns.Get(Predicate(false), fetches), (Rows{{120.5, 40.5}, {60, 4}, {120.5, 40.5}}));
  TwoVariables never(Kind::kReference, UntilLarge(), {300, 2}, {60, 20});
  EXPECT_EQ(never.Get(Predicate(false), fetches), (Rows{{300.5, 2.5}, {300.5, 2.5}, {60, 20}}));
}

}  // namespace
}  // namespace weir::session
