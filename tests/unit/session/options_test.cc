// Options of a session that change how it runs: defaults, threads, determinism; and source lines of nodes in errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/runtime/compute_pool.h"
#include "core/session/options.h"
#include "core/session/session.h"
#include "tests/support/text_graph.h"
#include "tests/unit/session/open.h"

namespace weir::session {
namespace {

using testing::Const;
using testing::kFloat;
using testing::MakeGraph;
using testing::NodeLine;
using testing::Placeholder;

using Names = std::vector<std::string>;
/// Members but three: the placer's options, where null is the default; and the profile and the compilation of regions,
/// which change bits and which only a configuration turns on.
TEST(SessionOptions, DefaultsAreThoseOfAnEmptyConfiguration) {
  const SessionOptions own, from = SessionOptionsFrom(config::Config());
  const auto members = [](const SessionOptions& o) {
    return std::tuple(o.allow_soft_placement, o.log_device_placement, o.placement_log_file, o.plan_file, o.plan_decides,
                      o.explain, o.explain_file, o.replace_period, o.min_gain, o.replace_moves_state,
                      o.bfloat16_transfers, o.verify_placement, o.cut_between_devices, o.late_scheduling,
                      o.default_device, o.constant_folding, o.common_subexpressions, o.fusion, o.compile_limit_ms,
                      o.keep_compiled_regions, o.inter_op_parallelism_threads,
                      o.intra_op_parallelism_threads, o.deterministic, o.operation_timeout_in_ms, o.cancel_limit_ms,
                      o.max_folded_bytes, o.exact_plans);
  };
  EXPECT_EQ(members(own), members(from));
  EXPECT_EQ(own.compile_regions, CompileRegions::kOff);
  EXPECT_EQ(from.compile_regions, CompileRegions::kAuto);
  EXPECT_TRUE(own.profile_file.empty());
  EXPECT_EQ(from.profile_file, "auto");
}

TEST(SessionOptions, F020_F279_ThreadsAreAsManyAsAskedAndResultsTheSame) {
  constexpr int64_t kSize = 256;
  constexpr int kBranches = 8;
  std::vector<float> values;
  for (int64_t i = 0; i < kSize * kSize; ++i) values.push_back(static_cast<float>(i * 7919 % 1009) / 1009.0f - 0.5f);
  const std::vector<Feed> feeds = {{"x:0", Tensor::Of<float>(Shape::Of({kSize, kSize}), values)}};
  std::vector<NodeLine> lines = {Placeholder("x", PartialShape::Of({kSize, kSize}))};
  Names fetches;
  for (int b = 0; b < kBranches; ++b) {
    const std::string name = "b" + std::to_string(b), square = "s" + std::to_string(b);
    lines.push_back(Const("k" + std::to_string(b), Tensor::Scalar<float>(static_cast<float>(b))));
    lines.push_back({name, "AddV2", {"x", "k" + std::to_string(b)}, kFloat});
    lines.push_back({square, "MatMul", {name, name}, kFloat});
    fetches.push_back(square + ":0");
  }
  const Result<graph::Definition> graph = MakeGraph(lines);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  std::vector<Tensor> first;
  struct Case {
    int inter, intra;
  };
  for (const Case c : {Case{1, 1}, Case{2, 1}, Case{1, 2}, Case{3, 0}, Case{0, 0}, Case{-5, -1}}) {
    config::Config config;
    config.inter_op_parallelism_threads = c.inter;
    config.intra_op_parallelism_threads = c.intra;
    const auto session = Open(*graph, config);
    ASSERT_NE(session, nullptr);
    RunOptions options;
    options.trace = true;
    RunReport report;
    for (int run = 0; run < 3; ++run) {
      Result<std::vector<Tensor>> got = session->Run(feeds, fetches, {}, options, &report);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      if (first.empty()) first = *got;
      for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(first[i].SameBits((*got)[i])) << c.inter << " " << c.intra;
    }
    // Never more ops run than threads are allowed.
    const int allowed = c.inter == 0 ? runtime::ComputePool::Get().parallelism() : std::max(c.inter, 1);
    for (const trace::Span& span : report.trace.spans) {
      const auto running = std::count_if(
          report.trace.spans.begin(), report.trace.spans.end(),
          [&](const trace::Span& other) { return other.start_ns <= span.start_ns && span.start_ns < other.end_ns; });
      EXPECT_LE(running, allowed) << span.node << " with " << c.inter << " threads";
    }
  }
}

TEST(SessionOptions, F016_ReceiveSchedulingTakesLessMemoryAndGivesTheSameBits) {
  constexpr int kBranches = 6;
  constexpr int64_t kElements = 1 << 16;
  std::vector<NodeLine> lines = {Placeholder("x", PartialShape::Of({kElements}))};
  for (int b = 0; b < kBranches; ++b) {
    const std::string at = std::to_string(b);
    lines.push_back(Const("k" + at, Tensor::Scalar<float>(static_cast<float>(b) - 2.5f)));
    lines.push_back({"y" + at, "Mul", {"x", "k" + at}, kFloat});
  }
  std::string last = "y0";
  for (int b = 1; b < kBranches; ++b) {
    const std::string next = "z" + std::to_string(b);
    lines.push_back({next, "Maximum", {"y" + std::to_string(b), last}, kFloat});
    last = next;
  }
  lines.push_back({"y", "Neg", {last}, kFloat});
  const Result<graph::Definition> graph = MakeGraph(lines);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  std::vector<float> values;
  for (int64_t i = 0; i < kElements; ++i) values.push_back(static_cast<float>(i % 1009) / 1009.0f - 0.5f);
  const std::vector<Feed> feeds = {{"x:0", Tensor::Vector<float>(values)}};
  std::vector<Tensor> results;
  std::vector<uint64_t> bytes;
  for (const bool late : {false, true}) {
    config::Config config;
    config.graph_options.enable_recv_scheduling = late;
    config.graph_options.rewrite_options.remapping = "OFF";  // no region of all ops
    config.inter_op_parallelism_threads = config.intra_op_parallelism_threads = 1;
    const auto session = Open(*graph, config);
    ASSERT_NE(session, nullptr);
    RunReport report;
    const Result<std::vector<Tensor>> got = session->Run(feeds, Names{"y:0"}, {}, {}, &report);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    results.push_back((*got)[0]);
    bytes.push_back(report.live_bytes);
  }
  EXPECT_TRUE(results[0].SameBits(results[1]));
  EXPECT_GE(bytes[0], (kBranches - 1) * kElements * sizeof(float));
  EXPECT_LE(bytes[1], 3 * kElements * sizeof(float));
}

NodeLine Uniform(const char* name, int64_t seed) {
  return {name,
          "RandomUniform",
          {"shape"},
          {{"dtype", DType::kFloat}, {"T", DType::kInt32}, {"seed", seed}, {"seed2", seed}}};
}

TEST(SessionOptions, F323_DeterministicGivesTheSameBitsOrNamesTheOp) {
  const Result<graph::Definition> graph = MakeGraph({Const("shape", Tensor::Vector<int32_t>({64, 64})),
                                                     Uniform("seeded", 7),
                                                     Uniform("unseeded", 0),
                                                     {"product", "MatMul", {"seeded", "seeded"}, kFloat},
                                                     Const("all", Tensor::Vector<int32_t>({0, 1})),
                                                     {"mean", "Mean", {"product", "all"}, kFloat},
                                                     {"bad", "Neg", {"unseeded"}, kFloat}});
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  config::Config config;
  config.deterministic = true;
  std::vector<Tensor> first;
  for (int i = 0; i < 10; ++i) {
    const auto session = Open(*graph, config);
    ASSERT_NE(session, nullptr);
    Result<std::vector<Tensor>> got = session->Run({}, Names{"product:0", "mean:0"}, {});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    if (first.empty()) first = *got;
    EXPECT_TRUE(first[0].SameBits((*got)[0]) && first[1].SameBits((*got)[1]));
    const Status bad = session->Run({}, Names{"bad:0"}, {}).status();
    EXPECT_EQ(bad.code(), Code::kInvalidArgument);
    EXPECT_NE(bad.message().find("Random ops require a seed to be set when determinism is enabled: 'unseeded'"),
              std::string::npos)
        << bad.ToString();
  }
  EXPECT_TRUE(Open(*graph, {})->Run({}, Names{"bad:0"}, {}).ok()) << "only where it is asked for";
}

TEST(SessionOptions, F323_AShuffleOfAQueueNeedsASeedToo) {
  const auto queue = [](int64_t seed) {
    return NodeLine{"q",
                    "RandomShuffleQueueV2",
                    {},
                    {{"component_types", std::vector<DType>{DType::kFloat}}, {"seed", seed}, {"seed2", int64_t{0}}}};
  };
  config::Config config;
  config.deterministic = true;
  for (const int64_t seed : {0, 7}) {
    const Result<graph::Definition> graph = MakeGraph({queue(seed), {"size", "QueueSizeV2", {"q"}}});
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    const Status run = Open(*graph, config)->Run({}, Names{"size:0"}, {}).status();
    EXPECT_EQ(run.ok(), seed != 0) << run.ToString();
    const bool named = run.message().find("'q' (RandomShuffleQueueV2) has none") != std::string::npos;
    EXPECT_EQ(named, seed == 0) << run.ToString();
  }
}

TEST(Origins, F321_ErrorsSayWhereANodeWasMadeAfterAFile) {
  Result<graph::Definition> graph = MakeGraph({Placeholder("x", PartialShape())});
  ASSERT_TRUE(graph.ok());
  graph::NodeSpec spec;
  spec.name = "squares";
  spec.op = graph->ops().Find("MatMul");
  spec.inputs = {testing::At(*graph, "x"), testing::At(*graph, "x")};
  spec.attrs = kFloat;
  spec.origin = "src/model.cc:41";
  ASSERT_TRUE(graph->Add(std::move(spec)).ok());
  for (const graph::GraphFormat format : {graph::GraphFormat::kBinary, graph::GraphFormat::kText}) {
    const Result<std::string> bytes = graph::ExportGraphDef(*graph, format);
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    graph::ImportOptions prefixed;
    prefixed.prefix = "net";
    const Result<graph::Definition> read = graph::ParseGraph(*bytes, graph->ops(), prefixed);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(read->Find("net/squares")->origin(), "src/model.cc:41");
    EXPECT_EQ(read->Find("net/x")->origin(), "");
    const auto session = Open(*read, {});
    ASSERT_NE(session, nullptr);
    const std::vector<Feed> feeds = {{"net/x:0", *Tensor::Make(DType::kFloat, Shape::Of({2, 3}))}};
    const Status status = session->Run(feeds, Names{"net/squares:0"}, {}).status();
    EXPECT_NE(status.message().find("{{node net/squares}}]] (defined at src/model.cc:41)"), std::string::npos)
        << status.ToString();
    EXPECT_EQ(status.where(), "src/model.cc:41");
  }
}

}  // namespace
}  // namespace weir::session
