// Sums of the spans of traced runs.
#include "core/session/profile_summary.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/session/reports.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/open.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::Placeholder;

using Texts = std::set<std::string>;

trace::Span SpanOf(const std::string& node, const std::string& op, int64_t start_ns, int64_t end_ns) {
  return {node, op, "/job:localhost/replica:0/task:0/device:CPU:0", start_ns, end_ns, 0, 8, {{0, 1, {2}, 8}}};
}

std::vector<trace::StepTrace> TwoSteps() {
  std::vector<trace::StepTrace> steps(2);
  for (int64_t i = 0; i < 2; ++i) {
    steps[i].step_id = i + 1;
    steps[i].start_us = 1000 * i;
    steps[i].spans = {SpanOf("a", "Conv2D", 0, 3000), SpanOf("b", "Neg", 3000, 4000 + 2000 * i),
                      SpanOf("c", "Neg", 7000, 8000)};
    steps[i].spans[0].layout = "NCHW";
    steps[i].spans[0].kernel = "kernels_a";
    steps[i].spans[0].fused_from = {"a0", "a"};
  }
  return steps;
}

TEST(ProfileSummary, F343_SpansOfOneKeyAreOneLineMostTimeFirst) {
  const ProfileSummary summary = Summarize(TwoSteps(), SummaryBy::kOp);
  EXPECT_EQ(summary.steps, 2);
  EXPECT_DOUBLE_EQ(summary.total_us, 12);
  ASSERT_EQ(summary.lines.size(), 2u);
  EXPECT_EQ(summary.lines[0].op, "Conv2D");
  EXPECT_EQ(summary.lines[0].calls, 2);
  EXPECT_DOUBLE_EQ(summary.lines[0].share, 0.5);
  EXPECT_EQ(summary.lines[0].layouts, Texts{"NCHW"});
  EXPECT_EQ(summary.lines[0].dtypes, Texts{"float"});
  EXPECT_EQ(summary.lines[1].calls, 4);
  EXPECT_DOUBLE_EQ(summary.lines[1].max_us, 3);
  EXPECT_EQ(summary.lines[1].output_bytes, 32u);
  EXPECT_EQ(Summarize(TwoSteps(), SummaryBy::kNode).lines.size(), 3u);
}

TEST(ProfileSummary, F343_AFileGivesTheSameAsTheStepsThatWereWritten) {
  const std::vector<trace::StepTrace> steps = TwoSteps();
  const std::string file = trace::ChromeTrace(steps);
  for (const char* by : {"op", "device", "op,device", "kernel", "node"}) {
    const Result<SummaryBy> key = SummaryByFrom(by);
    ASSERT_TRUE(key.ok()) << key.status().ToString();
    EXPECT_EQ(Name(*key), by);
    const Result<ProfileSummary> read = SummarizeChromeTrace(file, *key, "the trace");
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(ToJson(*read), ToJson(Summarize(steps, *key))) << by;
  }
  EXPECT_EQ(SummaryByFrom("colour").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(SummarizeChromeTrace("[]", SummaryBy::kOp, "it").status().code(), Code::kInvalidArgument);
}

TEST(ProfileSummary, F343_ARunTellsTheLayoutOfItsOps) {
  const auto graph = MakeGraph({Placeholder("x", PartialShape::Of({1, 2, 2, 1})),
                                {"pool",
                                 "MaxPool",
                                 {"x"},
                                 {{"T", DType::kFloat},
                                  {"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                                  {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                                  {"padding", std::string("VALID")}}},
                                {"y", "Neg", {"pool"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  const auto session = Open(*graph);
  ASSERT_NE(session, nullptr);
  RunOptions options;
  options.trace = true;
  RunReport report;
  const std::vector<Feed> feeds = {{"x:0", Tensor::Of<float>({1, 2, 2, 1}, {1, 2, 3, 4})}};
  const std::vector<std::string> fetches = {"y:0"};
  const auto got = session->Run(feeds, fetches, {}, options, &report);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  bool seen = false;
  for (const SummaryLine& line : Summarize({&report.trace, 1}, SummaryBy::kNode).lines) {
    EXPECT_EQ(line.layouts, line.op == "MaxPool" ? Texts{"NHWC"} : Texts()) << line.op;
    seen |= line.op == "MaxPool";
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace weir::session
