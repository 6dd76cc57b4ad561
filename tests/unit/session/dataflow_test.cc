// Steps whose ops run in parallel, complete later, fail, or are cancelled.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/runtime/compute_pool.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/flow.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::NodeLine;
using testing::Placeholder;

TEST(Dataflow, F020IndependentOpsRunBesideEachOther) {
  Flow f({kX, {"a", "Square", {"x"}, kFloat}, {"b", "Neg", {"x"}, kFloat}});
  for (int i = 0; i < 20; ++i) {
    f.OpenForRun(i);
    const auto got = f.Run({"a:0", "b:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({1, 2})));
  }
}

TEST(Dataflow, F020OpsInALoopRunBesideEachOther) {
  std::vector<NodeLine> nodes = Around({"a", "b", "c"}, {"i"});
  Append(nodes, Loop("w", "n", "one", "i", {"a", "b", "c"},
                     {{"p", "Square", {"a_b"}, kFloat},  // these two wait for each other and return their inputs
                      {"q", "Neg", {"b_b"}, kFloat},
                      {"later", "Abs", {"c_b"}, kFloat},
                      {"a_n", "AddV2", {"p", "q"}, kFloat},
                      {"b_n", "AddV2", {"q", "later"}, kFloat},
                      {"c_n", "AddV2", {"p", "later"}, kFloat}}));
  float a = 1, b = 1, c = 1;
  for (int i = 0; i < 3; ++i) {
    const float p = a, q = b, later = c;
    a = p + q;
    b = q + later;
    c = p + later;
  }
  Flow f(nodes);
  for (int run = 0; run < 10; ++run) {
    f.OpenForRun(run);
    const auto got = f.Run({"a_x:0", "b_x:0", "c_x:0", "i_x:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({a, 2 * a})));
    EXPECT_TRUE((*got)[1].SameBits(Tensor::Vector<float>({b, 2 * b})));
    EXPECT_TRUE((*got)[2].SameBits(Tensor::Vector<float>({c, 2 * c})));
    EXPECT_TRUE((*got)[3].SameBits(Tensor::Scalar<int32_t>(3)));
  }
}

TEST(Dataflow, NestedLoopsRunInParallelWithOtherOps) {
  // while i < 3: a, d = (while j < 3: a, d = a + d, a), in parallel with b = b + c; the two operands of each sum wait
  // for each other.
  std::vector<NodeLine> nodes = Around({"b", "c", "a", "d"}, {"i", "zero"});
  std::vector<NodeLine> body = {{"zero_e", "Enter", {"zero_0"}, In("w", DType::kInt32, true)},
                                {"j_0", "Identity", {"zero_e"}, {{"T", DType::kInt32}}},
                                {"u_0", "Identity", {"a_b"}, kFloat},
                                {"v_0", "Identity", {"d_b"}, kFloat},
                                {"p", "Square", {"b_b"}, kFloat},
                                {"q", "Neg", {"c_b"}, kFloat},
                                {"b_n", "AddV2", {"p", "q"}, kFloat},
                                {"c_n", "Identity", {"q"}, kFloat}};
  Append(body, Loop("inner", "w_n", "w_one", "j", {"u", "v"},
                    {{"r", "Square", {"u_b"}, kFloat},
                     {"s", "Neg", {"v_b"}, kFloat},
                     {"u_n", "AddV2", {"r", "s"}, kFloat},
                     {"v_n", "Identity", {"r"}, kFloat}}));
  body.push_back({"a_n", "Identity", {"u_x"}, kFloat});
  body.push_back({"d_n", "Identity", {"v_x"}, kFloat});
  Append(nodes, Loop("w", "n", "one", "i", {"a", "b", "c", "d"}, body));
  float a = 1, b = 1, c = 1, d = 1;
  for (int i = 0; i < 3; ++i) {
    b += c;
    for (int j = 0; j < 3; ++j) {
      const float u = a;
      a += d;
      d = u;
    }
  }
  Flow f(nodes);
  for (int run = 0; run < 10; ++run) {
    f.OpenForRun(run);
    const auto got = f.Run({"a_x:0", "b_x:0", "c_x:0", "d_x:0"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    const float wanted[] = {a, b, c, d};
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_TRUE((*got)[k].SameBits(Tensor::Vector<float>({wanted[k], 2 * wanted[k]}))) << k;
    }
  }
}

TEST(Dataflow, ALoopThatIsCutIsSkippedAsAWhole) {
  const op::AttrList kBool = {{"T", DType::kBool}}, kInt = {{"T", DType::kInt32}};
  std::vector<NodeLine> nodes = Around({}, {"zero"});
  Append(nodes, {Placeholder("p", PartialShape::Of({}), DType::kBool),
                 {"p_s", "Switch", {"p", "p"}, kBool},
                 {"taken", "Identity", {"p_s:1"}, kBool},
                 {"x_s", "Switch", {"x", "p"}, kFloat},
                 {"a_0", "Identity", {"x_s:1"}, kFloat},
                 {"b_0", "Identity", {"x_s:1"}, kFloat},
                 {"i_0", "Identity", {"zero_0", "^taken"}, kInt},
                 {"n_in", "Identity", {"n", "^taken"}, kInt},
                 {"one_in", "Identity", {"one", "^taken"}, kInt}});
  Append(nodes, Loop("w", "n_in", "one_in", "i", {"a", "b"},
                     {{"p_m", "Square", {"a_b"}, kFloat},
                      {"q_m", "Neg", {"b_b"}, kFloat},
                      {"a_n", "AddV2", {"p_m", "q_m"}, kFloat},
                      {"b_n", "Identity", {"q_m"}, kFloat}}));
  nodes.push_back({"y", "Merge", {"x_s", "a_x"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}});
  Flow f(nodes);
  const std::vector<std::string> fetches = {"y:0"}, none;
  int run = 0;
  for (const bool p : {true, false, true, false, false, true}) {
    f.OpenForRun(run++);
    const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({1, 2})}, {"p:0", Tensor::Scalar<bool>(p)}};
    const auto got = f.session->Run(feeds, fetches, none);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_TRUE((*got)[0].SameBits(Tensor::Vector<float>({p ? 4.0f : 1.0f, p ? 8.0f : 2.0f}))) << p;
  }
}

TEST(Dataflow, ALoopThatIsCutEndsWithTheStep) {
  std::vector<NodeLine> nodes = Around({"a", "b"}, {"i"});
  Append(nodes,
         Loop("w", "n", "one", "i", {"a", "b"}, {{"a_n", "Exp", {"a_b"}, kFloat}, {"b_n", "Log", {"b_b"}, kFloat}}));
  Flow f(nodes);
  const auto failed = f.Run({"a_x:0", "b_x:0"});
  EXPECT_EQ(failed.status().code(), Code::kOutOfRange) << failed.status().ToString();
  EXPECT_EQ(failed.status().node(), "b_n");
}

TEST(Dataflow, OpsThatCompleteLaterHoldNoThreadOfThePool) {
  std::vector<NodeLine> nodes = {kX};
  std::vector<std::string> fetches;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "later" + std::to_string(i);
    nodes.push_back({name, "Abs", {"x"}, kFloat, {}});
    fetches.push_back(name + ":0");
  }
  SessionOptions options;
  options.common_subexpressions = false;
  Flow f(nodes, options);
  const auto got = f.Run(fetches);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  for (const Tensor& tensor : *got) EXPECT_TRUE(tensor.SameBits(Tensor::Vector<float>({1, 2})));
}

TEST(Dataflow, LargeOpsRunInTiles) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor x = Tensor::Vector<float>(values);
  values[40] = -1;
  const Tensor negative = Tensor::Vector<float>(values);
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({64})), {"y", "Sqrt", {"x"}, kFloat}};
  const std::vector<std::string> fetches = {"y:0"}, none;
  for (const int threads : {1, 2, 4}) {
    SessionOptions options;
    options.intra_op_parallelism_threads = threads;
    Flow f(nodes, options, 1);
    for (int run = 0; run < 5; ++run) {
      const auto got = f.session->Run(std::vector<Feed>{{"x:0", x}}, fetches, none);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      EXPECT_TRUE((*got)[0].SameBits(x)) << threads;
      const auto failed = f.session->Run(std::vector<Feed>{{"x:0", negative}}, fetches, none);
      EXPECT_EQ(failed.status().code(), Code::kOutOfRange) << failed.status().ToString();
      EXPECT_EQ(failed.status().node(), "y");
    }
  }
}

TEST(Dataflow, F279_TilesGoToSeveralThreadsWhereThereAreSome) {
  const std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({64})), {"y", "Rsqrt", {"x"}, kFloat}};
  const std::vector<std::string> fetches = {"y:0"}, none;
  const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>(std::vector<float>(64, 1))}};
  for (const int threads : {1, 4}) {
    SessionOptions options;
    options.intra_op_parallelism_threads = threads;
    Flow f(nodes, options, 1);
    const auto got = f.session->Run(feeds, fetches, none);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    const std::span<const float> begins = (*got)[0].as<float>();
    const size_t tiles = std::set<float>(begins.begin(), begins.end()).size();
    if (std::min(threads, runtime::ComputePool::Get().parallelism()) == 1) {
      EXPECT_EQ(tiles, 1u);
    } else {
      EXPECT_GT(tiles, 1u);
    }
  }
}

TEST(Dataflow, AsyncFailureNamesItsNode) {
  Flow f({kX, {"a", "Sign", {"x"}, kFloat}, {"b", "Abs", {"a"}, kFloat}});
  const auto got = f.Run({"b:0"});
  EXPECT_EQ(got.status().code(), Code::kDataLoss);
  EXPECT_NE(got.status().message().find("the far end is gone"), std::string::npos);
  EXPECT_EQ(got.status().node(), "a");
}

TEST(Dataflow, FirstErrorEndsTheStepAndNothingKeepsRunning) {
  Flow f({kX,
          {"slow", "Exp", {"x"}, kFloat},
          {"later", "Abs", {"x"}, kFloat},
          {"bad", "Log", {"later"}, kFloat},
          {"y", "Square", {"slow"}, kFloat}});
  for (int i = 0; i < 5; ++i) {
    const auto got = f.Run({"y:0", "bad:0"});
    EXPECT_EQ(got.status().code(), Code::kOutOfRange) << got.status().ToString();
    EXPECT_EQ(got.status().node(), "bad");
  }
}

TEST(Dataflow, LargeFeedsAndFetchesAreWhereTheKernelWorks) {
  constexpr int64_t kElements = (1 << 20) / sizeof(int64_t);
  const op::AttrList type = {{"T", DType::kInt64}};
  const Result<graph::Definition> graph =
      MakeGraph({Placeholder("x", PartialShape::Of({kElements}), DType::kInt64), {"y", "Round", {"x"}, type}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = Session::Make(Waiting(), *graph, {});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const Tensor x = Tensor::Vector<int64_t>(std::vector<int64_t>(kElements, 7));
  const auto address = [](const Tensor& tensor) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.raw()));
  };
  const Result<CallableHandle> call = (*session)->MakeCallable({{"x:0"}, {"y:0"}, {}});
  ASSERT_TRUE(call.ok()) << call.status().ToString();
  std::vector<std::vector<Tensor>> kept(3);
  for (std::vector<Tensor>& fetched : kept) {
    ASSERT_TRUE((*session)->RunCallable(*call, {{x}}, &fetched).ok());
    EXPECT_EQ(fetched[0].as<int64_t>()[0], address(x)) << "the kernel reads what the caller fed";
    EXPECT_EQ(fetched[0].as<int64_t>()[1], address(fetched[0])) << "and writes what the caller gets";
  }
  EXPECT_NE(kept[0][0].raw(), kept[1][0].raw()) << "what the caller keeps is not written again";
#if !defined(_GLIBCXX_TSAN)  // thread sanitizer would report the reuse as a race
  const int64_t last = address(kept[2][0]);
  ASSERT_TRUE((*session)->RunCallable(*call, {{x}}, &kept[2]).ok());
  EXPECT_EQ(address(kept[2][0]), last) << "what the caller gives back serves the next run";
#endif
}

TEST(Dataflow, F362DeadlineEndsAStepTheRunsOwnBeforeTheSessions) {
  Flow f({kX, {"slow", "Exp", {"x"}, kFloat}, {"y", "Exp", {"slow"}, kFloat}});
  RunOptions options;
  options.timeout_in_ms = 20;
  const auto got = f.Run({"y:0"}, options);
  EXPECT_EQ(got.status().code(), Code::kDeadlineExceeded) << got.status().ToString();
  EXPECT_TRUE(got.status().message().starts_with("Timed out waiting for notification"));
  SessionOptions limited;
  limited.operation_timeout_in_ms = 20;
  Flow g({kX, {"slow", "Exp", {"x"}, kFloat}, {"y", "Exp", {"slow"}, kFloat}}, limited);
  EXPECT_EQ(g.Run({"y:0"}).status().code(), Code::kDeadlineExceeded);
}

TEST(Dataflow, F318DeadlineNamesTheOpsThatRunAndWait) {
  Flow f({kX,
          {"stuck", "Exp", {"x"}, kFloat},
          {"later", "Abs", {"x"}, kFloat},
          {"blocked", "Square", {"stuck", "^later"}, kFloat}});
  RunOptions options;
  options.timeout_in_ms = 50;
  const auto got = f.Run({"blocked:0"}, options);
  ASSERT_EQ(got.status().code(), Code::kDeadlineExceeded) << got.status().ToString();
  EXPECT_NE(got.status().message().find("running: 'stuck'"), std::string::npos) << got.status().message();
  EXPECT_NE(got.status().message().find("waiting: 'blocked'"), std::string::npos) << got.status().message();
}

TEST(Dataflow, F318DeadlineNamesThemOnOneThreadToo) {
  SessionOptions options;
  options.inter_op_parallelism_threads = -1;
  Flow f({kX, {"slow", "Exp", {"x"}, kFloat}, {"next", "Square", {"slow"}, kFloat}, {"last", "Neg", {"next"}, kFloat}},
         options);
  RunOptions limited;
  limited.timeout_in_ms = 20;
  const auto got = f.Run({"last:0"}, limited);
  ASSERT_EQ(got.status().code(), Code::kDeadlineExceeded) << got.status().ToString();
  const std::string message = got.status().message();
  EXPECT_NE(message.find("waiting: "), std::string::npos) << message;
  EXPECT_NE(message.find("'next'"), std::string::npos) << message;
  EXPECT_NE(message.find("'last'"), std::string::npos) << message;
}

TEST(Dataflow, F319OpsThatBlockNeedNoThreadOfThePool) {
  SessionOptions options;
  Flow f({kX, {"a", "Abs", {"x"}, kFloat}, {"b", "Abs", {"a"}, kFloat}, {"c", "Abs", {"x"}, kFloat}}, options, 1);
  const auto got = f.Run({"b:0", "c:0"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
}

TEST(Dataflow, CallerAndCloseEndAStep) {
  Flow f({kX, {"slow", "Exp", {"x"}, kFloat}, {"y", "Exp", {"slow"}, kFloat}});
  runtime::Cancellation cancellation;
  RunOptions options;
  options.cancellation = &cancellation;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    cancellation.Cancel(Cancelled("Step was cancelled by its caller."));
  });
  EXPECT_EQ(f.Run({"y:0"}, options).status().code(), Code::kCancelled);
  later.join();
  std::thread closing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::thread other([&] { EXPECT_TRUE(f.session->Close().ok()); });
    EXPECT_TRUE(f.session->Close().ok());
    other.join();
  });
  const auto ended = f.Run({"y:0"});
  EXPECT_EQ(ended.status().code(), Code::kCancelled);
  EXPECT_NE(ended.status().message().find("Session::Close()"), std::string::npos) << ended.status().ToString();
  closing.join();
  EXPECT_EQ(f.Run({"y:0"}).status().message(), "Session has been closed.");
}

TEST(Dataflow, TraceTellsWhenEachOpRan) {
  Flow f({kX, {"a", "Square", {"x"}, kFloat}, {"b", "Neg", {"x"}, kFloat}, {"y", "Abs", {"a"}, kFloat}});
  const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({1, 2})}};
  const std::vector<std::string> fetches = {"y:0", "b:0"}, none;
  RunOptions options;
  options.trace = true;
  RunReport report;
  ASSERT_TRUE(f.session->Run(feeds, fetches, none, options, &report).ok());
  std::map<std::string, trace::Span> spans;
  for (const trace::Span& span : report.trace.spans) {
    if (span.op != "fetch") spans[span.node] = span;
  }
  ASSERT_EQ(spans.size(), 3u);
  for (const auto& [name, span] : spans) {
    EXPECT_LE(span.start_ns, span.end_ns) << name;
    EXPECT_LE(span.end_ns, report.trace.total_ns) << name;
    EXPECT_NE(span.device.find("CPU:0"), std::string::npos) << name;
  }
  EXPECT_NE(spans["a"].thread, spans["b"].thread) << "they met";
  EXPECT_LE(spans["a"].end_ns, spans["y"].start_ns);
}

TEST(Session, DenormalsCountAsZeroInAStepAndOnlyThere) {
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
  ASSERT_TRUE(runtime.ok());
  const Result<graph::Definition> graph = MakeGraph({kX, {"y", "AddV2", {"x", "x"}, kFloat}});
  ASSERT_TRUE(graph.ok());
  const auto session = Session::Make(*runtime, *graph, {});
  ASSERT_TRUE(session.ok());
  const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({1e-40f, 1})}};
  const std::vector<std::string> fetches = {"y:0"}, none;
  const auto got = (*session)->Run(feeds, fetches, none);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*got)[0].as<float>()[1], 2.0f);
#if defined(__x86_64__)
  EXPECT_EQ((*got)[0].as<float>()[0], 0.0f);
#endif
  volatile float denormal = 1e-40f;
  EXPECT_GT(denormal * 2, 0.0f);
}

/// x -> a network of 60 ops, on the real kernels: both tiers give the same result, and the step may be cancelled
/// anywhere.
TEST(Dataflow, EndingAStepAtAnyPointLeavesTheSessionUsable) {
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({2}))};
  for (int i = 0; i < 60; ++i) {
    const std::string a = i == 0 ? "x" : "n" + std::to_string(i - 1);
    const std::string b = i < 7 ? "x" : "n" + std::to_string(i - 7);
    nodes.push_back({"n" + std::to_string(i), i % 3 == 0 ? "Maximum" : "AddV2", {a, b}, kFloat, {}});
  }
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Default();
  ASSERT_TRUE(runtime.ok());
  const Result<graph::Definition> graph = MakeGraph(nodes);
  ASSERT_TRUE(graph.ok());
  const auto session = Session::Make(*runtime, *graph, {});
  ASSERT_TRUE(session.ok());
  const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>({1, 2})}};
  const std::vector<std::string> fetches = {"n59:0"}, none;
  const auto whole = (*session)->Run(feeds, fetches, none);
  ASSERT_TRUE(whole.ok());
  int ended = 0;
  for (int point = 0; point < 200; ++point) {
    runtime::Cancellation cancellation;
    if (point % 50 == 0) cancellation.Cancel(Cancelled("Step was cancelled by its caller."));
    RunOptions options;
    options.cancellation = &cancellation;
    std::thread other([&] {
      for (int spin = 0; spin < point * 20; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      cancellation.Cancel(Cancelled("Step was cancelled by its caller."));
    });
    const auto got = (*session)->Run(feeds, fetches, none, options);
    other.join();
    if (got.ok()) {
      EXPECT_TRUE((*got)[0].SameBits((*whole)[0]));
    } else {
      EXPECT_EQ(got.status().code(), Code::kCancelled);
      ++ended;
    }
  }
  EXPECT_GE(ended, 4);
  const auto after = (*session)->Run(feeds, fetches, none);
  ASSERT_TRUE(after.ok());
  EXPECT_TRUE((*after)[0].SameBits((*whole)[0]));
}

TEST(Dataflow, EndingAStepNeverHalvesATiledUpdate) {
  const Tensor zeros = Tensor::Vector<float>(std::vector<float>(64, 0));
  const Tensor ones = Tensor::Vector<float>(std::vector<float>(64, 1));
  Flow f({{"v", "VariableV2", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({64})}}},
          Const("zeros", zeros),
          Const("ones", ones),
          {"init", "Assign", {"v", "zeros"}, kFloat},
          {"add", "AssignAdd", {"v", "ones"}, kFloat}});
  const std::vector<std::string> none, init = {"init"}, add = {"add"}, read = {"v:0"};
  ASSERT_TRUE(f.session->Run({}, none, init).ok());
  float before = 0;
  int ended = 0;
  for (int point = 0; point < 40; ++point) {
    runtime::Cancellation cancellation;
    RunOptions options;
    options.cancellation = &cancellation;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * point));
      cancellation.Cancel(Cancelled("Step was cancelled by its caller."));
    });
    const Status status = f.session->Run({}, none, add, options).status();
    other.join();
    ended += status.code() == Code::kCancelled ? 1 : 0;
    const auto value = f.session->Run({}, read, none);
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    const float now = (*value)[0].as<float>()[0];
    EXPECT_TRUE((*value)[0].SameBits(Tensor::Vector<float>(std::vector<float>(64, now)))) << "at point " << point;
    EXPECT_TRUE(status.ok() ? now == before + 1 : now == before || now == before + 1) << now << " after " << before;
    before = now;
  }
  EXPECT_GE(ended, 1);
}

}  // namespace
}  // namespace weir::session
