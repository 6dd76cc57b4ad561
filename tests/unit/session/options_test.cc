// Options of a session that change how it runs: threads, determinism; and the source lines of nodes in errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
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
