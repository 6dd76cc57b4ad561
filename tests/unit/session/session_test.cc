#include "core/session/session.h"
#include "core/base/errors.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/test_device.h"
#include "tests/support/text_graph.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::Placeholder;

std::shared_ptr<Runtime> Plugins() {
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
  return runtime.ok() ? *runtime : nullptr;
}

std::vector<float> Floats(const Tensor& tensor) { return {tensor.as<float>().begin(), tensor.as<float>().end()}; }

/// A graph with a session on it.
struct Fixture {
  explicit Fixture(Result<graph::Definition> made, SessionOptions options = {}) : graph(std::move(made)) {
    EXPECT_TRUE(graph.ok()) << graph.status().ToString();
    if (!graph.ok()) return;
    options.default_device = testing::TestDevice();
    Result<std::unique_ptr<Session>> opened = Session::Make(Plugins(), *graph, std::move(options));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    if (opened.ok()) session = std::move(*opened);
  }
  Result<std::vector<Tensor>> Run(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& targets = {}, RunReport* report = nullptr) {
    RunOptions options;
    options.collect_nodes = true;
    return session->Run(feeds, fetches, targets, options, report);
  }
  Result<graph::Definition> graph;
  std::unique_ptr<Session> session;
};

Result<graph::Definition> Counter() {
  return MakeGraph({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}}},
                    Const("zero", Tensor::Vector<float>({0, 0})),
                    Const("one", Tensor::Vector<float>({1, 1})),
                    {"init", "Assign", {"v", "zero"}, kFloat},
                    {"add", "AssignAdd", {"v", "one"}, kFloat},
                    {"read", "Identity", {"v"}, kFloat},
                    {"twice", "AddV2", {"read", "read"}, kFloat}});
}

TEST(Session, RunsAndKeepsOnePlanPerFedShape) {
  Fixture f(MakeGraph({Placeholder("x", PartialShape()), {"y", "Square", {"x"}, kFloat}}));
  for (int64_t n : {3, 1, 4, 3}) {
    std::vector<float> values(static_cast<size_t>(n));
    std::iota(values.begin(), values.end(), 1.0f);
    const auto y = f.Run({{"x:0", Tensor::Vector<float>(values)}}, {"y:0"});
    ASSERT_TRUE(y.ok()) << y.status().ToString();
    ASSERT_EQ((*y)[0].elements(), n);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ((*y)[0].as<float>()[static_cast<size_t>(i)],
                values[static_cast<size_t>(i)] * values[static_cast<size_t>(i)]);
  }
}

TEST(Session, VariablesOutliveRunsAndDieWithTheSession) {
  Fixture f(Counter());
  EXPECT_EQ(f.Run({}, {"read:0"}).status().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(f.Run({}, {}, {"init"}).ok());
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(f.Run({}, {}, {"add"}).ok());
  const auto read = f.Run({}, {"read:0"});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(Floats((*read)[0]), (std::vector<float>{3, 3}));
  Fixture other(Counter());
  EXPECT_EQ(other.Run({}, {"read:0"}).status().code(), Code::kFailedPrecondition);
}

TEST(Session, UsersOfAReadSeeTheOldValueAndFetchesNeverChangeLater) {
  Fixture f(Counter());
  ASSERT_TRUE(f.Run({}, {}, {"init"}).ok());
  const auto first = f.Run({}, {"twice:0", "read:0", "add:0"});
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(Floats((*first)[0]), (std::vector<float>{0, 0}));
  EXPECT_EQ(Floats((*first)[1]), (std::vector<float>{1, 1})) << "what is fetched is read at the end of the step";
  EXPECT_EQ(Floats((*first)[2]), (std::vector<float>{1, 1}));
  ASSERT_TRUE(f.Run({}, {}, {"add"}).ok());
  EXPECT_EQ(Floats((*first)[1]), (std::vector<float>{1, 1})) << "a fetched tensor aliased the variable";
  EXPECT_EQ(Floats((*first)[2]), (std::vector<float>{1, 1})) << "a fetched tensor aliased the variable";
}

TEST(Session, FedTensorsAreNeverWritten) {
  Fixture f(MakeGraph(
      {Placeholder("x", PartialShape::Of({2})), {"y", "Neg", {"x"}, kFloat}, {"same", "Identity", {"x"}, kFloat}}));
  Tensor x = Tensor::Vector<float>({1, 2});
  auto out = f.Run({{"x:0", x}}, {"y:0", "same:0"});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(Floats(x), (std::vector<float>{1, 2}));
  x.mutable_as<float>()[0] = 9;
  EXPECT_EQ(Floats((*out)[1]), (std::vector<float>{1, 2}));
  (*out)[1].mutable_as<float>()[1] = 8;
  EXPECT_EQ(Floats(x), (std::vector<float>{9, 2}));
}

TEST(Session, F324_ValuesCrossBetweenDevicesByThemselves) {
  const PartialShape two = PartialShape::Of({2});
  Fixture f(MakeGraph({Placeholder("x", two),
                       {"there", "Square", {"x"}, kFloat},
                       {"host", "Neg", {"there"}, kFloat, "/cpu:0"},
                       {"both", "AddV2", {"host", "there"}, kFloat},
                       {"last", "Mul", {"both", "host"}, kFloat, "/cpu:0"}}));
  RunReport report;
  const auto got = f.Run({{"x:0", Tensor::Vector<float>({1, -3})}}, {"host:0", "both:0", "last:0"}, {}, &report);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(Floats((*got)[0]), (std::vector<float>{-1, -9}));
  EXPECT_EQ(Floats((*got)[1]), (std::vector<float>{0, 0}));
  EXPECT_EQ(Floats((*got)[2]), (std::vector<float>{0, 0}));
  EXPECT_EQ(report.placement.size(), testing::TestDevice().empty() ? 1u : 2u) << "both devices ran a part";
}

TEST(Session, ConcurrentRunsUpdateAtomically) {
  Fixture f(Counter());
  ASSERT_TRUE(f.Run({}, {}, {"init"}).ok());
  constexpr int kThreads = 4, kRuns = 250;
  std::vector<std::thread> threads;
  std::vector<Status> failures(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        const auto out = f.Run({}, {"twice:0"}, {"add"});
        if (!out.ok()) failures[static_cast<size_t>(t)] = out.status();
        else if (Floats((*out)[0])[0] != Floats((*out)[0])[1])
          failures[static_cast<size_t>(t)] = Internal("a torn read");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& failure : failures) EXPECT_TRUE(failure.ok()) << failure.ToString();
  const auto read = f.Run({}, {"read:0"});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(Floats((*read)[0]), (std::vector<float>{kThreads * kRuns, kThreads * kRuns}));
}

TEST(Session, CallableSkipsNamesAndChecksItsFeeds) {
  Fixture f(MakeGraph({Placeholder("x", PartialShape::Of({-1})), {"y", "Neg", {"x"}, kFloat}}));
  const auto call = f.session->MakeCallable({{"x:0"}, {"y:0"}, {}});
  ASSERT_TRUE(call.ok()) << call.status().ToString();
  std::vector<Tensor> out;
  const std::vector<Tensor> feeds = {Tensor::Vector<float>({1, -2})};
  ASSERT_TRUE(f.session->RunCallable(*call, feeds, &out).ok());
  EXPECT_EQ(Floats(out[0]), (std::vector<float>{-1, 2}));
  const std::vector<Tensor> wrong = {Tensor::Vector<int32_t>({1})};
  EXPECT_EQ(f.session->RunCallable(*call, wrong, &out).code(), Code::kInvalidArgument);
  EXPECT_EQ(f.session->RunCallable(*call, {}, &out).code(), Code::kInvalidArgument);
  ASSERT_TRUE(f.session->ReleaseCallable(*call).ok());
  EXPECT_EQ(f.session->RunCallable(*call, feeds, &out).code(), Code::kInvalidArgument);
}

TEST(Session, F366_TextsOfTensorFlow) {
  Fixture f(MakeGraph({Placeholder("x", PartialShape()), {"y", "Neg", {"x"}, kFloat}, {"n", "NoOp", {}}}));
  const Tensor one = Tensor::Scalar<float>(1);
  const auto text = [&](const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                        const std::vector<std::string>& targets) {
    return f.Run(feeds, fetches, targets).status().ToString();
  };
  EXPECT_NE(
      text({{"x:0", one}, {"x:0", one}}, {"y:0"}, {}).find("INVALID_ARGUMENT: Endpoint \"x:0\" fed more than once."),
      std::string::npos);
  EXPECT_NE(text({{"x:0", one}}, {"x:0"}, {}).find("INVALID_ARGUMENT: x:0 is both fed and fetched."),
            std::string::npos);
  EXPECT_NE(text({}, {}, {}).find("INVALID_ARGUMENT: Must specify at least one target to fetch or execute."),
            std::string::npos);
  EXPECT_NE(text({}, {}, {"zz", "yy"}).find("NOT_FOUND: PruneForTargets: Some target nodes not found: zz yy"),
            std::string::npos);
  EXPECT_NE(text({}, {}, {"nn"}).find("Some target nodes not found: nn (nearest: 'n'"), std::string::npos);
  EXPECT_NE(text({}, {"nope:0"}, {}).find("NOT_FOUND: FetchOutputs node nope:0: not found"), std::string::npos);
  EXPECT_NE(text({}, {"n:0"}, {}).find("Tried to fetch data for 'n:0', which produces no output."), std::string::npos);
  EXPECT_NE(text({}, {"y:3"}, {}).find("FetchOutputs y:3: output index too large, must be < 1"), std::string::npos);
  EXPECT_NE(text({{"gone:0", one}}, {"y:0"}, {}).find("FeedInputs: unable to find feed output gone:0"),
            std::string::npos);
  const auto call = f.session->MakeCallable({{"nope:0"}, {"y:0"}, {}});
  EXPECT_NE(call.status().ToString().find(
                "Tensor nope:0, specified in either feed_devices or fetch_devices was not found in the Graph"),
            std::string::npos);
  const auto index = f.session->MakeCallable({{}, {"y:3"}, {}});
  EXPECT_NE(
      index.status().ToString().find("OUT_OF_RANGE: Node 'y' (type: 'Neg', num of outputs: 1) does not have output 3"),
      std::string::npos);
}

TEST(Session, ClosedSessionRefusesToRunAndClosesTwice) {
  Fixture f(Counter());
  ASSERT_TRUE(f.session->Close().ok());
  ASSERT_TRUE(f.session->Close().ok());
  const auto run = f.Run({}, {"read:0"});
  EXPECT_EQ(run.status().code(), Code::kCancelled);
  EXPECT_EQ(run.status().message(), "Session has been closed.");
}

TEST(Session, DataDependentShapesFlowThroughThePlan) {
  // The number of rows of Where is known only at run time, and so are the sizes behind it.
  Fixture f(MakeGraph({Placeholder("x", PartialShape::Of({4}), DType::kBool),
                       {"where", "Where", {"x"}, {{"T", DType::kBool}}},
                       {"shape", "Shape", {"where"}, {{"T", DType::kInt64}, {"out_type", DType::kInt32}}},
                       {"neg", "Neg", {"where"}, {{"T", DType::kInt64}}}}));
  const auto out = f.Run({{"x:0", Tensor::Of<bool>(Shape::Of({4}), {true, false, true, true})}}, {"neg:0", "shape:0"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].shape().ToString(), "[3,1]");
  EXPECT_EQ((*out)[0].as<int64_t>()[2], -3);
  EXPECT_EQ((*out)[1].as<int32_t>()[0], 3);
}

TEST(Session, StringsMoveThroughArithmeticFreeKernels) {
  Fixture f(MakeGraph({Const("a", Tensor::Vector<std::string>({"x", "", "y"})),
                       Const("i", Tensor::Vector<int32_t>({2, 0, 2})),
                       Const("axis", Tensor::Scalar<int32_t>(0)),
                       {"g",
                        "GatherV2",
                        {"a", "i", "axis"},
                        {{"Tparams", DType::kString}, {"Tindices", DType::kInt32}, {"Taxis", DType::kInt32}}}}));
  const auto out = f.Run({}, {"g:0"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  const auto texts = (*out)[0].as<std::string>();
  EXPECT_EQ(std::vector<std::string>(texts.begin(), texts.end()), (std::vector<std::string>{"y", "x", "y"}));
}

TEST(Session, KernelsForStringsRun) {
  const op::AttrList strings = {{"T", DType::kString}};
  Fixture f(MakeGraph({Placeholder("x", PartialShape(), DType::kString),
                       Const("b", Tensor::String("b")),
                       {"sum", "Add", {"x", "b"}, strings},
                       {"equal", "Equal", {"x", "b"}, strings}}));
  const auto out = f.Run({{"x:0", Tensor::Vector<std::string>({"a", "b"})}}, {"sum:0", "equal:0"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_TRUE((*out)[0].SameBits(Tensor::Vector<std::string>({"ab", "bb"})));
  EXPECT_TRUE((*out)[1].SameBits(Tensor::Of<bool>(Shape::Of({2}), {false, true})));
}

TEST(Session, RowsOfAVariableAreGatheredBatchByBatch) {
  const PartialShape any;
  for (const PartialShape& declared : {PartialShape(Shape::Of({2, 3})), any}) {
    Fixture f(MakeGraph({Const("x", Tensor::Of<float>(Shape::Of({2, 3}), {1, 2, 3, 4, 5, 6})),
                         Placeholder("i", any, DType::kInt32),
                         {"v", "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", declared}}},
                         {"set", "AssignVariableOp", {"v", "x"}, {{"dtype", DType::kFloat}}},
                         {"y",
                          "ResourceGather",
                          {"v", "i", "^set"},
                          {{"dtype", DType::kFloat}, {"Tindices", DType::kInt32}, {"batch_dims", int64_t{1}}}}}));
    const auto out = f.Run({{"i:0", Tensor::Of<int32_t>(Shape::Of({2, 2}), {2, 0, 1, 1})}}, {"y:0"});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    EXPECT_EQ((*out)[0].shape(), Shape::Of({2, 2}));
    EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{3, 1, 5, 5}));
  }
}

TEST(Session, EmptyOperandsWithHugeExtentsTakeNoTime) {
  const PartialShape any;
  const op::AttrList grad = {{"T", DType::kFloat}, {"data_format", std::string("NHWC")}};
  Fixture f(MakeGraph({Placeholder("x", any),
                       Const("axis", Tensor::Scalar<int32_t>(1)),
                       {"sums", "Cumsum", {"x", "axis"}, {{"T", DType::kFloat}, {"Tidx", DType::kInt32}}},
                       {"bias", "BiasAddGrad", {"x"}, grad}}));
  const Tensor x = *Tensor::Make(DType::kFloat, Shape::Of({int64_t{1} << 61, 0, 2}));
  const auto out = f.Run({{"x:0", x}}, {"sums:0", "bias:0"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].shape(), x.shape());
  EXPECT_EQ(Floats((*out)[1]), (std::vector<float>{0, 0}));
}

TEST(Session, AVariableMayBeDividedByItsOwnElements) {
  const op::AttrList attrs = {{"T", DType::kInt32}, {"Tindices", DType::kInt32}};
  Fixture f(MakeGraph({Const("x", Tensor::Vector<int32_t>({4, 1})),
                       Const("i", Tensor::Vector<int32_t>({1, 0})),
                       {"v", "VariableV2", {}, {{"dtype", DType::kInt32}, {"shape", PartialShape(Shape::Of({2}))}}},
                       {"set", "Assign", {"v", "x"}, {{"T", DType::kInt32}}},
                       {"y", "ScatterDiv", {"v", "i", "v", "^set"}, attrs}}));
  const auto out = f.Run({}, {"y:0"});  // 1 / 4, then 4 by what became of the 1
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].shape(), Shape::Of({2}));
}

TEST(Session, OperandsThatOnlyTensorFlowsKernelsTake) {
  const PartialShape any;
  Fixture f(MakeGraph(
      {Placeholder("x", any),
       Placeholder("axis", any, DType::kInt32),
       Const("b", Tensor::Vector<float>({1, 2, 3})),
       {"twice", "ConcatV2", {"x", "x", "axis"}, {{"T", DType::kFloat}, {"N", int64_t{2}}, {"Tidx", DType::kInt32}}},
       {"sum", "BiasAdd", {"x", "b"}, {{"T", DType::kFloat}, {"data_format", std::string("NCHW")}}},
       {"columns", "BiasAddGrad", {"x"}, {{"T", DType::kFloat}, {"data_format", std::string("NCHW")}}}}));
  const Tensor x = Tensor::Of<float>(Shape::Of({2, 3}), {1, 2, 3, 4, 5, 6});
  const auto out = f.Run({{"x:0", x}, {"axis:0", Tensor::Vector<int32_t>({1})}}, {"twice:0", "sum:0", "columns:0"});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(Floats((*out)[0]), (std::vector<float>{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(Floats((*out)[1]), (std::vector<float>{2, 4, 6, 5, 7, 9}));
  EXPECT_EQ(Floats((*out)[2]), (std::vector<float>{5, 7, 9}));
}

TEST(Session, ErrorsInAStepNameTheNodeAndLeaveTheSessionUsable) {
  Fixture f(MakeGraph({Placeholder("i", PartialShape::Of({2}), DType::kInt32),
                       Const("a", Tensor::Vector<float>({1, 2, 3})),
                       Const("axis", Tensor::Scalar<int32_t>(0)),
                       {"g",
                        "GatherV2",
                        {"a", "i", "axis"},
                        {{"Tparams", DType::kFloat}, {"Tindices", DType::kInt32}, {"Taxis", DType::kInt32}}}}));
  const auto bad = f.Run({{"i:0", Tensor::Vector<int32_t>({0, 7})}}, {"g:0"});
  EXPECT_EQ(bad.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(bad.status().node(), "g");
  EXPECT_NE(bad.status().message().find("\n\t [[{{node g}}]]"), std::string::npos);
  const auto good = f.Run({{"i:0", Tensor::Vector<int32_t>({0, 2})}}, {"g:0"});
  ASSERT_TRUE(good.ok()) << good.status().ToString();
  EXPECT_EQ(Floats((*good)[0]), (std::vector<float>{1, 3}));
}

TEST(Session, HandlesPassThroughIdentitiesAndAreFollowedWhenFed) {
  const op::AttrList variable = {
      {"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}, {"shared_name", std::string("v")}};
  const op::AttrList handle = {{"T", DType::kResource}}, dtype = {{"dtype", DType::kFloat}};
  Fixture f(MakeGraph({{"v", "VarHandleOp", {}, variable},
                       Const("one", Tensor::Vector<float>({1, 1})),
                       {"i", "Identity", {"v"}, handle},
                       {"n", "IdentityN", {"one", "i"}, {{"T", std::vector<DType>{DType::kFloat, DType::kResource}}}},
                       {"set", "AssignVariableOp", {"i", "one"}, dtype},
                       {"add", "AssignAddVariableOp", {"n:1", "one", "^set"}, dtype},
                       {"read", "ReadVariableOp", {"n:1", "^add"}, dtype},
                       Placeholder("p", PartialShape::Of({}), DType::kResource),
                       {"fed", "ReadVariableOp", {"p"}, dtype}}));
  const auto read = f.Run({}, {"read:0"});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(Floats((*read)[0]), (std::vector<float>{2, 2}));
  const auto fetched = f.Run({}, {"n:1"});
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  const auto fed = f.Run({{"p:0", (*fetched)[0]}}, {"fed:0"});
  ASSERT_TRUE(fed.ok()) << fed.status().ToString();
  EXPECT_EQ(Floats((*fed)[0]), (std::vector<float>{2, 2}));
}

TEST(Session, NodesAddedAfterARunCanRun) {
  Result<graph::Definition> graph = MakeGraph({Const("a", Tensor::Scalar<float>(2)), {"b", "Square", {"a"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  const auto session = Session::Make(Plugins(), *graph, {});
  ASSERT_TRUE(session.ok());
  const std::vector<std::string> b = {"b:0"}, c = {"c:0"};
  ASSERT_TRUE((*session)->Run({}, b, {}).ok());
  graph::NodeSpec spec;
  spec.name = "c";
  spec.op = graph->ops().Find("Square");
  spec.inputs = {testing::At(*graph, "b")};
  spec.attrs = kFloat;
  ASSERT_TRUE(graph->Add(std::move(spec)).ok());
  const auto out = (*session)->Run({}, c, {});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].scalar<float>(), 16);
}

TEST(Session, ReportListsNodesAndDevices) {
  Fixture f(MakeGraph({Placeholder("x", PartialShape()), {"a", "Neg", {"x"}, kFloat}, {"b", "Exp", {"x"}, kFloat}}));
  RunReport report;
  ASSERT_TRUE(f.Run({{"x:0", Tensor::Scalar<float>(1)}}, {"a:0"}, {}, &report).ok());
  EXPECT_EQ(report.executed_nodes, std::vector<std::string>{"a"});
  ASSERT_EQ(report.placement.size(), 1u);
  const std::string device = testing::TestDevice();
  EXPECT_EQ(report.placement.begin()->first,
            "/job:localhost/replica:0/task:0/device:" + (device.empty() ? "CPU:0" : device));
}

TEST(Session, AReportTellsOfTheLastRunOnly) {
  Fixture f(Counter());
  RunReport report;
  RunOptions all;
  all.collect_nodes = all.trace = all.output_partition_graphs = true;
  const std::vector<std::string> targets = {"init"};
  ASSERT_TRUE(f.session->Run({}, {}, targets, all, &report).ok());
  EXPECT_FALSE(report.executed_nodes.empty() || report.trace.spans.empty() || report.partition_graphs.empty());
  ASSERT_TRUE(f.session->Run({}, {}, targets, {}, &report).ok());
  EXPECT_TRUE(report.executed_nodes.empty() && report.trace.spans.empty() && report.partition_graphs.empty());
}

TEST(Session, NamesWithAnyCharactersAreDistinct) {
  Fixture f(MakeGraph({Const("c", Tensor::Scalar<float>(1)), {"d", "Neg", {"c"}, kFloat}}));
  ASSERT_TRUE(f.Run({}, {"c:0", "d:0"}).ok());
  EXPECT_EQ(f.Run({}, {"c:0\nd:0"}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace weir::session
