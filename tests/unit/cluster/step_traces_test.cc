// Traces of steps over several tasks: one clock, a lane for each task and device.
#include "core/cluster/step_traces.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/support/text_graph.h"
#include "tests/support/wired_cluster.h"
#include "tests/unit/cluster/fake_worker.h"

namespace weir::cluster::traces {
namespace {

using testing::NodeLine;

const TaskName kPs{"ps", 0}, kWorker{"worker", 0};
const std::string kPsCpu = "/job:ps/replica:0/task:0/device:CPU:0";
const std::string kWorkerCpu = "/job:worker/replica:0/task:0/device:CPU:0";
constexpr int64_t kHourUs = int64_t{3600} * 1000 * 1000;

trace::Span SpanOf(const std::string& node, int64_t start_ns, int64_t end_ns, const std::string& device = {}) {
  return {node, "Neg", device, start_ns, end_ns, 0, 8, {}};
}

TEST(StepTraces, F338_PartsAreOnTheClockOfTheMaster) {
  trace::StepTrace ps{0, 5000 + kHourUs, 9000, {SpanOf("a", 1000, 2000, kPsCpu), SpanOf("b", 2000, 9000)}};
  trace::StepTrace worker{0, 4990, 30000, {SpanOf("c", 25000, 30000, kWorkerCpu)}};
  const trace::StepTrace both = MergeTraces({{kPs, kHourUs, ps}, {kWorker, 0, worker}}, 7);
  EXPECT_EQ(both.step_id, 7);
  EXPECT_EQ(both.start_us, 4990);
  EXPECT_EQ(both.total_ns, 30000);
  ASSERT_EQ(both.spans.size(), 3u);
  EXPECT_EQ(both.spans[0].node, "a");
  EXPECT_EQ(both.spans[0].start_ns, 11000) << "10 us after the worker began, and 1 us into its part";
  EXPECT_EQ(both.spans[1].node, "b");
  EXPECT_EQ(both.spans[1].device, kPsCpu) << "what has no device ran on the task's host";
  EXPECT_EQ(both.spans[2].start_ns, 25000);
}

TEST(StepTraces, F338_WhatIsMissingSaysWhy) {
  const trace::StepTrace ps{0, 5000, 9000, {SpanOf("a", 1000, 2000, kPsCpu)}};
  const trace::StepTrace some = MergeTraces({{kPs, 0, ps}, {kWorker, 0, Unavailable("the peer is gone")}}, 1);
  ASSERT_EQ(some.spans.size(), 2u);
  EXPECT_EQ(some.spans[0].op, "MissingTrace");
  EXPECT_EQ(some.spans[0].device, kWorkerCpu);
  EXPECT_NE(some.spans[0].node.find("the peer is gone"), std::string::npos) << some.spans[0].node;
  EXPECT_EQ(some.start_us, 5000);
  EXPECT_TRUE(MergeTraces({{kPs, 0, trace::StepTrace()}}, 1).spans.empty());
}

TEST(StepTraces, F338_BytesKeepEverythingAndBadOnesAreRefused) {
  trace::StepTrace step{0, 5000, 9000, {SpanOf("a", 1000, 2000, kPsCpu)}};
  trace::Span& span = step.spans[0];
  span.thread = 3;
  span.outputs = {{1, 1, {2, 3}, 24, "GPU:0"}};
  span.inputs = {"x", "y"};
  span.kernel = "eigen";
  span.layout = "NCHW";
  span.fused_from = {"m", "n"};
  const Result<std::string> bytes = EncodeTrace(step);
  ASSERT_TRUE(bytes.ok());
  const Result<trace::StepTrace> read = DecodeTrace(*bytes);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->start_us, 5000);
  EXPECT_EQ(read->total_ns, 9000);
  ASSERT_EQ(read->spans.size(), 1u);
  const trace::Span& got = read->spans[0];
  EXPECT_EQ(got.node + got.op + got.device + got.kernel, span.node + span.op + span.device + span.kernel);
  EXPECT_EQ(got.inputs, span.inputs);
  EXPECT_EQ(got.layout, span.layout);
  EXPECT_EQ(got.fused_from, span.fused_from);
  EXPECT_EQ(got.thread, 3);
  EXPECT_EQ(got.bytes, 8u);
  ASSERT_EQ(got.outputs.size(), 1u);
  EXPECT_EQ(got.outputs[0].dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(got.outputs[0].memory, "GPU:0");
  EXPECT_FALSE(DecodeTrace("no trace").ok());
  span.end_ns = 500;
  EXPECT_EQ(DecodeTrace(*EncodeTrace(step)).status().code(), Code::kInvalidArgument);
  span.start_ns = -1;
  EXPECT_EQ(DecodeTrace(*EncodeTrace(step)).status().code(), Code::kInvalidArgument);
  step.spans.clear();
  step.start_us = 5000;
  step.total_ns = INT64_MAX;
  EXPECT_EQ(DecodeTrace(*EncodeTrace(step)).status().code(), Code::kInvalidArgument);
  step.total_ns = 9000;
  step.start_us = INT64_MAX;
  EXPECT_EQ(DecodeTrace(*EncodeTrace(step)).status().code(), Code::kInvalidArgument);
}

TEST(StepTraces, F338_TheOffsetOfAClockIsMeasuredAndKept) {
  testing::FakeWorker fake(kPs);
  TaskClocks clocks;
  fake.status.clock_us = WallClockMicros() + kHourUs;
  const Clock::time_point later = Clock::now() + std::chrono::minutes(1);
  const Result<int64_t> ahead = clocks.Ahead(fake, later);
  ASSERT_TRUE(ahead.ok()) << ahead.status().ToString();
  EXPECT_NEAR(static_cast<double>(*ahead), static_cast<double>(kHourUs), kHourUs / 4.0);
  testing::FakeWorker mad(kWorker);
  mad.status.clock_us = INT64_MIN;
  EXPECT_EQ(clocks.Ahead(mad, later).status().code(), Code::kInvalidArgument);
  fake.status.clock_us = 0;
  const Clock::time_point asked_again = Clock::now();
  const Result<int64_t> kept = clocks.Ahead(fake, later);
  ASSERT_TRUE(kept.ok());
  if (Clock::now() - asked_again < std::chrono::seconds(5)) {
    EXPECT_EQ(*kept, *ahead);
  }
}

class TracedSteps : public ::testing::Test {
 protected:
  /// x on the worker, a on the ps, b on the worker.
  static Result<graph::Definition> Graph() {
    NodeLine x = testing::Placeholder("x", PartialShape::Of({2}));
    x.device = "/job:worker/task:0";
    return testing::MakeGraph({x,
                               {"a", "Neg", {"x"}, testing::kFloat, "/job:ps/task:0"},
                               {"b", "Square", {"a"}, testing::kFloat, "/job:worker/task:0"},
                               {"c", "Add", {"b", "a"}, testing::kFloat, "/job:ps/task:0"}});
  }
  template <class Cluster>
  static void ExpectOneTrace(const Cluster& cluster, session::RunReport* report) {
    const Result<graph::Definition> graph = Graph();
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    const auto session = cluster.Open(*graph);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session::RunOptions options;
    options.trace = true;
    options.timeout_in_ms = 120000;
    const std::vector<session::Feed> feeds = {{"x:0", Tensor::Vector<float>({2, 3})}};
    const std::vector<std::string> fetches = {"c:0"};
    for (int i = 0; i < 2; ++i) {
      const auto got = (*session)->Run(feeds, fetches, {}, options, report);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
    }
    std::map<std::string, const trace::Span*> by_node;
    for (const trace::Span& span : report->trace.spans) by_node[span.node] = &span;
    for (const auto& [node, device] : {std::pair("a", kPsCpu), {"b", kWorkerCpu}, {"c", kPsCpu}}) {
      ASSERT_TRUE(by_node.contains(node)) << node;
      EXPECT_EQ(by_node[node]->device, device);
    }
    // One clock, in tasks of one process: a value is not read before it is made.
    EXPECT_LE(by_node["a"]->end_ns, by_node["b"]->start_ns + kSlackNs);
    EXPECT_LE(by_node["b"]->end_ns, by_node["c"]->start_ns + kSlackNs);
    const std::string chrome = trace::ChromeTrace({&report->trace, 1});
    for (const std::string& device : {kPsCpu, kWorkerCpu}) {
      EXPECT_NE(chrome.find("\"" + device + " Compute\""), std::string::npos) << chrome;
    }
    EXPECT_EQ(chrome.find("\"host Compute\""), std::string::npos) << "every lane has its task";
  }
  /// Half of the time of a round trip, on a machine under load; offsets of clocks are an hour.
  static constexpr int64_t kSlackNs = int64_t{60} * 1000 * 1000 * 1000;
};

TEST_F(TracedSteps, F338_TasksOfOneProcess) {
  const testing::LocalCluster cluster({kWorker, kPs});
  session::RunReport report;
  ExpectOneTrace(cluster, &report);
}

TEST_F(TracedSteps, F338_TasksBehindSockets) {
  testing::WiredCluster cluster({kWorker, kPs});
  session::RunReport report;
  ExpectOneTrace(cluster, &report);
  const auto far = cluster.task(kWorker).workers->Find(kPs);
  ASSERT_TRUE(far.ok());
  const Result<WorkerStatus> status = (*far)->GetStatus(Clock::now() + std::chrono::minutes(1));
  ASSERT_TRUE(status.ok());
  EXPECT_GT(status->clock_us, 0);
}

/// A step of one part alone also keeps its trace until the master has it, and then nothing is left.
TEST_F(TracedSteps, F338_AStepOfOneFarTaskIsTracedAndForgotten) {
  testing::LocalCluster cluster({kWorker, kPs});
  NodeLine shape = testing::Const("shape", Tensor::Vector<int32_t>({2}));
  shape.device = "/job:ps/task:0";
  const op::AttrList attrs = {{"T", DType::kInt32}, {"dtype", DType::kFloat}};
  const Result<graph::Definition> graph =
      testing::MakeGraph({shape, {"v", "RandomUniform", {"shape"}, attrs, "/job:ps/task:0"}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = cluster.Open(*graph);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  session::RunOptions options;
  options.trace = true;
  session::RunReport report;
  const std::vector<std::string> fetches = {"v:0"};
  const auto got = (*session)->Run({}, fetches, {}, options, &report);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  ASSERT_FALSE(report.trace.spans.empty());
  EXPECT_EQ(report.trace.spans.front().device, kPsCpu);
  for (const TaskName& task : {kPs, kWorker}) EXPECT_EQ(cluster.worker(task).counts().steps, 0u);
}

TEST_F(TracedSteps, F338_AStepThatFailsIsTracedToo) {
  testing::LocalCluster cluster({kWorker, kPs});
  NodeLine x = testing::Placeholder("x", PartialShape::Of({2}));
  x.device = "/job:worker/task:0";
  const Result<graph::Definition> graph = testing::MakeGraph(
      {x,
       {"a", "Neg", {"x"}, testing::kFloat, "/job:worker/task:0"},
       {"bad", "CheckNumerics", {"a"}, {{"T", DType::kFloat}, {"message", std::string("no")}}, "/job:ps/task:0"}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = cluster.Open(*graph);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  session::RunOptions options;
  options.trace = true;
  session::RunReport report;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<session::Feed> feeds = {{"x:0", Tensor::Vector<float>({1, nan})}};
  const std::vector<std::string> fetches = {"bad:0"};
  const auto got = (*session)->Run(feeds, fetches, {}, options, &report);
  EXPECT_FALSE(got.ok());
  bool seen = false;
  for (const trace::Span& span : report.trace.spans) seen = seen || span.node == "a";
  EXPECT_TRUE(seen);
  for (const TaskName& task : {kPs, kWorker}) EXPECT_EQ(cluster.worker(task).counts().steps, 0u);
}

}  // namespace
}  // namespace weir::cluster::traces
