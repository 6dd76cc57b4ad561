// Runs in parts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::Placeholder;

using Names = std::vector<std::string>;
Feed Scalar(const std::string& name, float value) { return {name, Tensor::Scalar<float>(value)}; }

/// A graph with a session on it.
struct Parts {
  explicit Parts(Result<graph::Definition> made) : graph(std::move(made)) {
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
    if (!graph.ok() || !runtime.ok()) return;
    Result<std::unique_ptr<Session>> opened = Session::Make(*runtime, *graph);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    if (opened.ok()) session = std::move(*opened);
  }
  std::string SetUp(const Names& feeds, const Names& fetches, const Names& targets = {}) {
    const Result<std::string> handle = session->PRunSetup(feeds, fetches, targets);
    EXPECT_TRUE(handle.ok()) << handle.status().ToString();
    return handle.ok() ? *handle : std::string();
  }
  /// Values of a part, or the error's message.
  std::string Part(const std::string& handle, const std::vector<Feed>& feeds, const Names& fetches) {
    const Result<std::vector<Tensor>> got = session->PRun(handle, feeds, fetches);
    if (!got.ok()) return got.status().message();
    std::string text;
    for (const Tensor& tensor : *got) text += (text.empty() ? "" : " ") + std::to_string(tensor.as<float>()[0]);
    return text;
  }
  float Value(const std::string& name) {
    const Result<std::vector<Tensor>> got = session->Run({}, Names{name}, {});
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    return got.ok() ? (*got)[0].as<float>()[0] : -1;
  }
  Result<graph::Definition> graph;
  std::unique_ptr<Session> session;
};

Result<graph::Definition> SumAndProduct() {
  const PartialShape scalar = PartialShape::Of({});
  return MakeGraph({Placeholder("a", scalar),
                    Placeholder("b", scalar),
                    Placeholder("c", scalar),
                    {"add", "AddV2", {"a", "b"}, kFloat},
                    {"mul", "Mul", {"add", "c"}, kFloat},
                    {"nop", "NoOp"}});
}

const Names kFeeds = {"a:0", "b:0", "c:0"}, kFetches = {"add:0", "mul:0"};

TEST(PartialRun, F365_FetchesComeAsFeedsAllowThem) {
  Parts f(SumAndProduct());
  const std::string handle = f.SetUp(kFeeds, kFetches);
  EXPECT_EQ(handle, "a:0,b:0,c:0->add:0,mul:0//1/;0");
  EXPECT_EQ(f.SetUp({"c:0", "a:0", "b:0"}, {"mul:0", "add:0"}, {"nop"}), "a:0,b:0,c:0->add:0,mul:0/nop/1/;1");
  EXPECT_EQ(f.Part(handle, {Scalar("a:0", 1), Scalar("b", 2)}, {"add:0"}), "3.000000");
  EXPECT_EQ(f.Part(handle, {Scalar("c:0", 30)}, {"mul:0"}), "90.000000");
  EXPECT_EQ(f.Part(handle, {}, {"mul:0"}), "Must run 'setup' before performing partial runs!");
  const std::vector<Feed> all = {Scalar("a:0", 1), Scalar("b:0", 2), Scalar("c:0", 5)};
  EXPECT_EQ(f.Part(f.SetUp(kFeeds, kFetches), all, kFetches), "3.000000 15.000000");
  const std::string third = f.SetUp(kFeeds, kFetches);
  EXPECT_EQ(f.Part(third, all, {}), "") << "a part may only feed";
  EXPECT_EQ(f.Part(third, {}, {"mul:0"}), "15.000000");
  EXPECT_EQ(f.Part(third, {}, {"add:0"}), "3.000000");
}

TEST(PartialRun, F365_TextsOfTensorFlow) {
  Parts f(SumAndProduct());
  const std::string handle = f.SetUp(kFeeds, kFetches);
  EXPECT_EQ(f.Part(handle, {Scalar("a:0", 1), Scalar("b:0", 2)}, {"mul:0"}),
            "Fetch c:0 can't be computed from the feeds that have been fed so far.");
  EXPECT_EQ(f.Part(handle, {Scalar("a:0", 1), Scalar("b:0", 2)}, {"add:0"}), "3.000000") << "nothing had changed";
  EXPECT_EQ(f.Part(handle, {}, {"add:0"}), "The fetch add:0 has already been fetched.");
  EXPECT_EQ(f.Part(handle, {Scalar("a:0", 1)}, {"mul:0"}), "The feed a:0 has already been fed.");
  EXPECT_EQ(f.Part("a:0->add:0//1/;7", {}, {"add:0"}), "Must run 'setup' before performing partial runs!");
  const std::string other = f.SetUp({"a:0", "b:0"}, {"add:0"});
  EXPECT_EQ(f.Part(other, {Scalar("c:0", 1)}, {"add:0"}), "The feed c:0 was not specified in partial_run_setup.");
  EXPECT_EQ(f.Part(other, {}, {"mul:0"}), "The fetch mul:0 was not specified in partial_run_setup.");
  const auto set_up = [&](const Names& feeds, const Names& fetches) {
    return f.session->PRunSetup(feeds, fetches, {}).status().message();
  };
  EXPECT_EQ(set_up({"a:0"}, {}), "Must specify at least one target to fetch or execute.");
  EXPECT_EQ(set_up({"a:0"}, {"a:0"}), "a:0 is both fed and fetched.");
  EXPECT_EQ(set_up({"a:0", "a:0"}, {"add:0"}), "Endpoint \"a:0\" fed more than once.");
  const std::string lacking = f.SetUp({"a:0"}, {"add:0"});
  EXPECT_NE(f.Part(lacking, {Scalar("a:0", 1)}, {"add:0"}).find("You must feed a value for placeholder tensor 'b'"),
            std::string::npos);
  EXPECT_EQ(f.Part(lacking, {}, {"add:0"}), "Must run 'setup' before performing partial runs!") << "an error ends it";
}

TEST(PartialRun, F365_WhatCannotBeFedChangesNothing) {
  const PartialShape two = PartialShape::Of({2});
  Parts f(MakeGraph({Placeholder("a", two), Placeholder("b", two), {"add", "AddV2", {"a", "b"}, kFloat}}));
  const std::string handle = f.SetUp({"a:0", "b:0"}, {"add:0"});
  const Feed a = {"a:0", Tensor::Vector<float>({1, 1})};
  EXPECT_EQ(f.Part(handle, {a, Scalar("b:0", 2)}, {"add:0"}),
            "Cannot feed value of shape () for Tensor 'b:0', which has shape '(2,)'");
  EXPECT_EQ(f.Part(handle, {a, {"b:0", Tensor::Vector<int32_t>({2, 2})}}, {"add:0"}),
            "Cannot feed value of type int32 for Tensor 'b:0', which has type float");
  EXPECT_EQ(f.Part(handle, {a, {"b:0", Tensor::Vector<float>({2, 2})}}, {"add:0"}), "3.000000");
}

TEST(PartialRun, F365_AFetchMayBeNamedTwice) {
  Parts f(SumAndProduct());
  const std::string handle = f.SetUp({"a:0", "b:0"}, {"add:0", "add:0"});
  EXPECT_EQ(handle, "a:0,b:0->add:0//1/;0");
  const std::vector<Feed> feeds = {Scalar("a:0", 1), Scalar("b:0", 2)};
  const Result<std::vector<Tensor>> got = f.session->PRun(handle, feeds, Names{"add:0", "add:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  ASSERT_EQ(got->size(), 2u);
  EXPECT_TRUE((*got)[0].SameBits(Tensor::Scalar<float>(3)) && (*got)[1].SameBits((*got)[0]));
  EXPECT_NE((*got)[0].raw(), (*got)[1].raw());
}

TEST(PartialRun, F365_EveryOpRunsAtMostOnce) {
  Parts f(MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}}},
                     Const("zero", Tensor::Scalar<float>(0)),
                     Const("one", Tensor::Scalar<float>(1)),
                     {"init", "Assign", {"v", "zero"}, kFloat},
                     {"count", "AssignAdd", {"v", "one"}, kFloat},
                     Placeholder("x", PartialShape::Of({})),
                     Placeholder("y", PartialShape::Of({})),
                     {"first", "AddV2", {"count", "x"}, kFloat},
                     {"second", "AddV2", {"first", "y", "^count"}, kFloat},
                     {"read", "Identity", {"v"}, kFloat}}));
  ASSERT_TRUE(f.session->Run({}, {}, Names{"init"}).ok());
  for (float n = 1; n <= 3; ++n) {
    const std::string handle = f.SetUp({"x:0", "y:0"}, {"first:0", "second:0"});
    EXPECT_EQ(f.Part(handle, {Scalar("x:0", 10)}, {"first:0"}), std::to_string(n + 10));
    EXPECT_EQ(f.Part(handle, {Scalar("y:0", 100)}, {"second:0"}), std::to_string(n + 110));
    EXPECT_EQ(f.Value("read:0"), n);
  }
}

TEST(PartialRun, F365_TargetsRunAsSoonAsTheyCan) {
  Parts f(MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({})}}},
                     Placeholder("x", PartialShape::Of({})),
                     Placeholder("y", PartialShape::Of({})),
                     {"set", "Assign", {"v", "x"}, kFloat},
                     {"sum", "AddV2", {"x", "y"}, kFloat},
                     {"read", "Identity", {"v"}, kFloat}}));
  const std::string handle = f.SetUp({"x:0", "y:0"}, {"sum:0"}, {"set"});
  EXPECT_EQ(f.Part(handle, {Scalar("x:0", 4)}, {}), "");
  EXPECT_EQ(f.Value("read:0"), 4);
  ASSERT_TRUE(f.session->Run(std::vector<Feed>{Scalar("x:0", 9)}, {}, Names{"set"}).ok());
  EXPECT_EQ(f.Part(handle, {Scalar("y:0", 1)}, {"sum:0"}), "5.000000");
  EXPECT_EQ(f.Value("read:0"), 9) << "the target ran twice";
}

TEST(PartialRun, F365_FetchesAndFeedsAreTheirOwners) {
  Parts f(SumAndProduct());
  const std::string handle = f.SetUp(kFeeds, kFetches);
  Tensor a = Tensor::Scalar<float>(1), c = Tensor::Scalar<float>(30);
  const std::span<float> held = c.mutable_as<float>();
  ASSERT_TRUE(f.session->PRun(handle, std::vector<Feed>{{"c:0", c}}, {}).ok());
  held[0] = 7;
  Result<std::vector<Tensor>> sum =
      f.session->PRun(handle, std::vector<Feed>{{"a:0", a}, Scalar("b:0", 2)}, Names{"add:0"});
  ASSERT_TRUE(sum.ok()) << sum.status().ToString();
  (*sum)[0].mutable_as<float>()[0] = 1000;
  EXPECT_EQ(f.Part(handle, {}, {"mul:0"}), "90.000000");
}

/// Two values of one cond: one needs x, the other y; p selects both.
Result<graph::Definition> CondGraph() {
  const PartialShape scalar = PartialShape::Of({});
  return MakeGraph({Placeholder("p", scalar, DType::kBool),
                    Placeholder("x", scalar),
                    Placeholder("y", scalar),
                    Const("k", Tensor::Scalar<float>(3)),
                    {"sk", "Switch", {"k", "p"}, kFloat},
                    {"sx", "Switch", {"x", "p"}, kFloat},
                    {"sy", "Switch", {"y", "p"}, kFloat},
                    {"tx", "AddV2", {"sx:1", "sk:1"}, kFloat},
                    {"ty", "Mul", {"sy:1", "sk:1"}, kFloat},
                    {"mx", "Merge", {"sx", "tx"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}},
                    {"my", "Merge", {"sy", "ty"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}}});
}

TEST(PartialRun, F365_CondsAreCutAtTheirSwitches) {
  Parts f(CondGraph());
  for (const bool p : {true, false}) {
    const std::string handle = f.SetUp({"p:0", "x:0", "y:0"}, {"mx:0", "my:0"});
    EXPECT_EQ(f.Part(handle, {{"p:0", Tensor::Scalar<bool>(p)}, Scalar("x:0", 10)}, {"mx:0"}),
              p ? "13.000000" : "10.000000");
    EXPECT_EQ(f.Part(handle, {Scalar("y:0", 5)}, {"my:0"}), p ? "15.000000" : "5.000000");
  }
}

TEST(PartialRun, F365_ALoopWaitsForAllItsFeeds) {
  const auto enter = [](const char* name, const char* input) {
    return testing::NodeLine{name, "Enter", {input}, {{"T", DType::kFloat}, {"frame_name", std::string("w")}}};
  };
  const op::AttrList merge = {{"T", DType::kFloat}, {"N", int64_t{2}}};
  const PartialShape scalar = PartialShape::Of({});
  // while (i < 10) { i += i; j += step; }
  Parts f(MakeGraph(
      {Placeholder("x", scalar),
       Placeholder("step", scalar),
       Const("zero", Tensor::Scalar<float>(0)),
       Const("ten", Tensor::Scalar<float>(10)),
       {"twice", "AddV2", {"x", "x"}, kFloat},
       enter("ei", "twice"),
       enter("ej", "zero"),
       {"eten", "Enter", {"ten"}, {{"T", DType::kFloat}, {"frame_name", std::string("w")}, {"is_constant", true}}},
       {"estep", "Enter", {"step"}, {{"T", DType::kFloat}, {"frame_name", std::string("w")}, {"is_constant", true}}},
       {"mi", "Merge", {"ei", "ni"}, merge},
       {"mj", "Merge", {"ej", "nj"}, merge},
       {"less", "Less", {"mi", "eten"}, kFloat},
       {"cond", "LoopCond", {"less"}},
       {"si", "Switch", {"mi", "cond"}, kFloat},
       {"sj", "Switch", {"mj", "cond"}, kFloat},
       {"bi", "AddV2", {"si:1", "si:1"}, kFloat},
       {"bj", "AddV2", {"sj:1", "estep"}, kFloat},
       {"ni", "NextIteration", {"bi"}, kFloat},
       {"nj", "NextIteration", {"bj"}, kFloat},
       {"i", "Exit", {"si"}, kFloat},
       {"j", "Exit", {"sj"}, kFloat}}));
  const std::string handle = f.SetUp({"x:0", "step:0"}, {"twice:0", "i:0", "j:0"});
  EXPECT_EQ(f.Part(handle, {Scalar("x:0", 1)}, {"twice:0"}), "2.000000");
  EXPECT_NE(f.Part(handle, {}, {"i:0"}).find("i:0 is computed in one go with values that wait for feeds"),
            std::string::npos);
  EXPECT_EQ(f.Part(handle, {Scalar("step:0", 5)}, {"i:0"}), "16.000000");
  EXPECT_EQ(f.Part(handle, {}, {"j:0"}), "15.000000");
}

TEST(PartialRun, F365_OpenRunsAreBoundedAndEndWithTheSession) {
  Parts f(SumAndProduct());
  std::string first;
  for (int i = 0; i < 1024; ++i) {
    const std::string handle = f.SetUp(kFeeds, kFetches);
    if (i == 0) first = handle;
  }
  EXPECT_EQ(f.session->PRunSetup(kFeeds, kFetches, {}).status().code(), Code::kResourceExhausted);
  ASSERT_EQ(f.Part(first, {Scalar("a:0", 1), Scalar("b:0", 2), Scalar("c:0", 3)}, kFetches), "3.000000 9.000000");
  const std::string last = f.SetUp(kFeeds, kFetches);
  ASSERT_TRUE(f.session->Close().ok());
  EXPECT_EQ(f.Part(last, {}, {"add:0"}), "Session has been closed.");
}

}  // namespace
}  // namespace weir::session
