// Runs of a plan as the tape and as tasks: cancellation, deadlines, dead values, checks of numbers, traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/execute/dataflow_internal.h"
#include "core/execute/tape_trace.h"
#include "tests/support/text_graph.h"
#include "tests/unit/execute/compiled.h"

namespace weir::execute {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

constexpr int64_t kSide = 192;

Tensor Matrix(float value) {
  Result<Tensor> made = Tensor::Make(DType::kFloat, Shape::Of({kSide, kSide}));
  EXPECT_TRUE(made.ok());
  std::ranges::fill(made->mutable_as<float>(), value);
  return *made;
}

/// `width` chains of `length` products of matrices, and their sum "y".
std::vector<NodeLine> Chains(int width, int length) {
  std::vector<NodeLine> nodes = {Placeholder("x", PartialShape::Of({kSide, kSide}))};
  NodeLine sum{"y", "AddN", {}, {{"T", DType::kFloat}, {"N", int64_t{width}}}};
  for (int w = 0; w < width; ++w) {
    std::string last = "x";
    for (int i = 0; i < length; ++i) {
      const std::string name = "p" + std::to_string(w) + "_" + std::to_string(i);
      nodes.push_back({name, "MatMul", {last, "x"}, {{"T", DType::kFloat}, {"transpose_b", w % 2 == 1}}});
      last = name;
    }
    sum.inputs.push_back(last);
  }
  nodes.push_back(sum);
  return nodes;
}

const std::vector<std::pair<std::string, Shape>> kFed = {{"x", Shape::Of({kSide, kSide})}};

TEST(Steps, TasksGiveTheBitsOfTheTape) {
  Compiled serial(MakeGraph(Chains(6, 3)), kFed, {"y"});
  Compiled tasks(MakeGraph(Chains(6, 3)), kFed, {"y"}, 4);
  ASSERT_EQ(serial.runner().plan().tier, plan::Tier::kT0);
  ASSERT_EQ(tasks.runner().plan().tier, plan::Tier::kT2);
  StepArgs four;
  four.inter_op = 4;
  for (int run = 0; run < 20; ++run) {
    std::vector<Tensor> one, other;
    const Tensor x = Matrix(0.01f * static_cast<float>(run + 1));
    ASSERT_TRUE(serial.Run({x}, &one).ok());
    ASSERT_TRUE(tasks.Run({x}, &other, four).ok());
    EXPECT_TRUE(one[0].SameBits(other[0])) << run;
  }
}

TEST(Steps, ACancelledStepRunsNothing) {
  for (const int parallelism : {1, 4}) {
    Compiled step(MakeGraph(Chains(4, 2)), kFed, {"y"}, parallelism);
    runtime::Cancellation cancellation;
    cancellation.Cancel(Cancelled("enough"));
    StepArgs args;
    args.cancellation = &cancellation;
    args.inter_op = parallelism;
    std::vector<Tensor> fetches;
    const Status status = step.Run({Matrix(1)}, &fetches, args);
    EXPECT_EQ(status.code(), Code::kCancelled) << parallelism;
    EXPECT_NE(status.message().find("enough"), std::string::npos) << status.ToString();
    EXPECT_TRUE(fetches.empty());
    EXPECT_TRUE(step.Run({Matrix(1)}, &fetches).ok()) << "the next run is well";
  }
}

TEST(Steps, ADeadlineNamesWhatIsReadyAndWhatWaits) {
  for (const int parallelism : {1, 4}) {
    Compiled step(MakeGraph(Chains(4, 5)), kFed, {"y"}, parallelism);
    runtime::Cancellation cancellation;
    cancellation.Cancel(DeadlineExceeded("too late"));
    StepArgs args;
    args.cancellation = &cancellation;
    args.inter_op = parallelism;
    std::vector<Tensor> fetches;
    const Status status = step.Run({Matrix(1)}, &fetches, args);
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_NE(status.message().find("too late"), std::string::npos);
    EXPECT_NE(status.message().find("'p0_0'"), std::string::npos) << status.ToString();
    EXPECT_NE(status.message().find("waiting: '"), std::string::npos) << status.ToString();
  }
}

/// y = p ? -x : exp(x), each branch followed by a product, beside a chain of products.
std::vector<NodeLine> CondBesideAChain() {
  std::vector<NodeLine> nodes = Chains(2, 3);
  nodes.push_back(Placeholder("p", PartialShape::Of({}), DType::kBool));
  nodes.push_back({"s", "Switch", {"x", "p"}, kFloat});
  nodes.push_back({"no", "Exp", {"s"}, kFloat});
  nodes.push_back({"no2", "MatMul", {"no", "no"}, kFloat});
  nodes.push_back({"yes", "Neg", {"s:1"}, kFloat});
  nodes.push_back({"yes2", "MatMul", {"yes", "yes"}, kFloat});
  nodes.push_back({"m", "Merge", {"no2", "yes2"}, {{"T", DType::kFloat}, {"N", int64_t{2}}}});
  nodes.push_back({"z", "AddV2", {"m", "y"}, kFloat});
  return nodes;
}

TEST(Steps, DeadBranchesRunNeitherOnTheTapeNorAsTasks) {
  const std::vector<std::pair<std::string, Shape>> fed = {{"x", Shape::Of({kSide, kSide})}, {"p", Shape()}};
  Compiled serial(MakeGraph(CondBesideAChain()), fed, {"z", "m:1"});
  Compiled tasks(MakeGraph(CondBesideAChain()), fed, {"z", "m:1"}, 4);
  ASSERT_EQ(tasks.runner().plan().tier, plan::Tier::kT2);
  for (int run = 0; run < 10; ++run) {
    const Tensor p = Tensor::Scalar(run % 3 == 0);
    for (Compiled* const step : {&serial, &tasks}) {
      StepArgs args;
      args.inter_op = step == &tasks ? 4 : 1;
      TapeTrace trace;
      args.trace = &trace;
      std::vector<Tensor> fetches;
      ASSERT_TRUE(step->Run({Matrix(0.1f), p}, &fetches, args).ok());
      EXPECT_EQ(fetches[1].as<int32_t>()[0], run % 3 == 0 ? 1 : 0);
      std::set<std::string> ran;
      for (const trace::Span& span : trace.Finish(step->runner().plan(), 7).spans) ran.insert(span.node);
      EXPECT_EQ(ran.contains("yes2"), run % 3 == 0);
      EXPECT_EQ(ran.contains("no2"), run % 3 != 0);
      EXPECT_TRUE(ran.contains("p0_0"));
    }
    std::vector<Tensor> one, other;
    ASSERT_TRUE(serial.Run({Matrix(0.1f), p}, &one).ok());
    ASSERT_TRUE(tasks.Run({Matrix(0.1f), p}, &other).ok());
    EXPECT_TRUE(one[0].SameBits(other[0]));
  }
}

TEST(Steps, AFetchOfADeadBranchIsAnError) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2})),
                           Placeholder("p", PartialShape::Of({}), DType::kBool),
                           {"s", "Switch", {"x", "p"}, kFloat},
                           {"yes", "Neg", {"s:1"}, kFloat},
                           {"any", "Exp", {"x"}, kFloat}}),
                {{"x", Shape::Of({2})}, {"p", Shape()}}, {"any", "yes"});
  std::vector<Tensor> fetches;
  const Tensor x = Tensor::Vector<float>({1, 2});
  const Status status = step.Run({x, Tensor::Scalar(false)}, &fetches);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("Retval[1] does not have value"), std::string::npos) << status.ToString();
  EXPECT_TRUE(fetches.empty());
  ASSERT_TRUE(step.Run({x, Tensor::Scalar(true)}, &fetches).ok());
  EXPECT_TRUE(fetches[1].SameBits(Tensor::Vector<float>({-1, -2})));
}

TEST(Steps, ChecksOfNumbersNameTheFirstOpThatGaveNone) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2})),
                           {"fine", "Neg", {"x"}, kFloat},
                           {"root", "Sqrt", {"fine"}, kFloat},
                           {"after", "Neg", {"root"}, kFloat}}),
                {{"x", Shape::Of({2})}}, {"after"});
  StepArgs checked;
  checked.check_numerics = true;
  std::vector<Tensor> fetches;
  ASSERT_TRUE(step.Run({Tensor::Vector<float>({-1, -4})}, &fetches, checked).ok());
  const Status status = step.Run({Tensor::Vector<float>({-1, 4})}, &fetches, checked);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.node(), "root");
  EXPECT_NE(status.message().find("Tensor had NaN values"), std::string::npos) << status.ToString();
  EXPECT_NE(status.message().find("input 0: "), std::string::npos) << status.ToString();
  EXPECT_TRUE(step.Run({Tensor::Vector<float>({-1, 4})}, &fetches).ok()) << "nobody asked";
}

TEST(Steps, FeedsThatAreNotAlignedAreCopied) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({3})), {"y", "Neg", {"x"}, kFloat}}),
                {{"x", Shape::Of({3})}}, {"y"});
  const Tensor whole = Tensor::Vector<float>({9, 1, 2, 3});
  const Result<Tensor> x = Tensor::Over(DType::kFloat, Shape::Of({3}), whole.buffer(), whole.offset() + sizeof(float));
  ASSERT_TRUE(x.ok());
  ASSERT_NE(reinterpret_cast<uintptr_t>(x->raw()) % kBufferAlignment, 0u);
  std::vector<Tensor> fetches;
  ASSERT_TRUE(step.Run({*x}, &fetches).ok());
  EXPECT_TRUE(fetches[0].SameBits(Tensor::Vector<float>({-1, -2, -3})));
  EXPECT_TRUE(whole.SameBits(Tensor::Vector<float>({9, 1, 2, 3})));
}

TEST(Steps, FetchesMayTakeThePlaceOfFeeds) {
  Compiled step(MakeGraph({Placeholder("x", PartialShape::Of({2})), {"y", "Neg", {"x"}, kFloat}}),
                {{"x", Shape::Of({2})}}, {"y"});
  std::vector<Tensor> values = {Tensor::Vector<float>({1, 2})};
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(step.runner().Run(values, &values, {}).ok());
    const float sign = run % 2 == 1 ? -1.0f : 1.0f;
    EXPECT_TRUE(values[0].SameBits(Tensor::Vector<float>({sign, 2 * sign})));
  }
}

TEST(ReadyQueue, GivesTheFirstTaskOfTheTapeAndLendsTheFarEnd) {
  ReadyQueue queue;
  queue.Reserve(8);
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(queue.PopFirst(), ReadyQueue::kNone);
  EXPECT_EQ(queue.TakeLast(), ReadyQueue::kNone);
  for (const uint32_t task : {5u, 2u, 9u, 1u, 7u}) queue.Push(task);
  EXPECT_EQ(queue.first(), 1u);
  EXPECT_EQ(queue.PopFirst(), 1u);
  EXPECT_EQ(queue.PopFirst(), 2u);
  const uint32_t taken = queue.TakeLast();
  EXPECT_TRUE(taken == 7u || taken == 9u) << "one that is not next: " << taken;
  EXPECT_EQ(queue.PopFirst(), 5u);
  EXPECT_EQ(queue.PopFirst(), taken == 9u ? 7u : 9u);
  EXPECT_TRUE(queue.Empty());
  EXPECT_EQ(queue.first(), ReadyQueue::kNone);
  queue.Push(3);
  queue.Clear();
  EXPECT_TRUE(queue.Empty());
}

}  // namespace
}  // namespace weir::execute
