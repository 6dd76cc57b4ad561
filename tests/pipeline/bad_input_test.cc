// Bad input gives a status with TensorFlow's code that names node and fault, quickly and without much memory, and the
// process continues. A GraphDef that is cut or has a flipped bit gives an error or another graph.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/ops/declare_all.h"
#include "core/session/session.h"
#include "tests/pipeline/bad_inputs.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

Result<std::vector<Tensor>> RunText(const std::string& text, const std::vector<session::Feed>& feeds,
                                    const std::vector<std::string>& fetches,
                                    const std::vector<std::string>& targets = {}) {
  WEIR_ASSIGN(const std::shared_ptr<session::Runtime> runtime, session::Runtime::Default());
  WEIR_ASSIGN(const graph::Definition graph, graph::ParseGraph(text, *runtime->ops));
  WEIR_ASSIGN(const std::unique_ptr<session::Session> session, session::Session::Make(runtime, graph));
  return session->Run(feeds, fetches, targets);
}

/// Memory limit for bad input. Sanitizers keep freed memory for a while, so their builds check only the order of
/// magnitude.
constexpr long kMayGrowKiB = (WEIR_SANITIZER_KIND == 0 ? 64 : 2048) * 1024;

/// Peak resident memory of the process, in KiB.
long PeakKiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Checks that the process can still run a step.
void ExpectGoodStep() {
  const std::string graph = ConstText("a", "DT_FLOAT", {2}, "float_val: 1 float_val: 2") +
                            PlaceholderText("x", "DT_FLOAT", {2}) + TypedText("y", "Add", {"x", "a"});
  const Result<std::vector<Tensor>> fetched = RunText(graph, {{"x", Tensor::Vector<float>({1, 1})}}, {"y"});
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  EXPECT_TRUE((*fetched)[0].SameBits(Tensor::Vector<float>({2, 3})));
}

class BadInputTest : public ::testing::TestWithParam<BadInput> {
 protected:
  static void SetUpTestSuite() { ExpectGoodStep(); }  // loads the plugins before measuring
};

TEST_P(BadInputTest, GetsItsStatusAndNothingElseHappens) {
  const BadInput& bad = GetParam();
  const long before = PeakKiB();
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::vector<Tensor>> fetched = RunText(bad.graph, bad.feeds, bad.fetches, bad.targets);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const Status& status = fetched.status();
  ASSERT_EQ(CodeName(status.code()), CodeName(bad.code)) << status.ToString();
  if (fetched.ok()) {
    EXPECT_EQ((*fetched)[0].elements(), 0);
  }
  EXPECT_EQ(status.node(), bad.node) << status.ToString();
  for (const std::string& part : bad.said)
    EXPECT_NE(status.message().find(part), std::string::npos) << status.ToString();
  EXPECT_LT(PeakKiB() - before, kMayGrowKiB);
  EXPECT_LT(seconds.count(), 5.0);  // 1 s on an idle machine
  ExpectGoodStep();
}

INSTANTIATE_TEST_SUITE_P(Graphs, BadInputTest, ::testing::ValuesIn(BadGraphs()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Numbered, BadInputTest, ::testing::ValuesIn(NumberedInputs()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Runs, BadInputTest, ::testing::ValuesIn(BadRuns()),
                         [](const auto& info) { return info.param.name; });

/// A small graph with many features, as bytes.
std::string SmallGraphDef() {
  const std::string text =
      ConstText("a", "DT_FLOAT", {2}, "float_val: 1 float_val: 2") + ConstText("i", "DT_INT32", {1}, "int_val: 0") +
      ConstText("s", "DT_STRING", {1}, "string_val: \"text\"") + PlaceholderText("x", "DT_FLOAT", {-1, 2}) +
      TypedText("sum", "Add", {"x", "a"}) + NodeText("y", "Identity", {"sum", "^s"}, {{"T", "type: DT_FLOAT"}}) +
      NodeText("v", "VarHandleOp", {},
               {{"dtype", "type: DT_FLOAT"}, {"shape", "shape {}"}, {"shared_name", "s: \"v\""}}) +
      "versions { producer: 134 }";
  const Result<graph::Definition> graph = graph::ParseGraph(text, **ops::Catalogue());
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  if (!graph.ok()) return {};
  const Result<std::string> bytes = graph::ExportGraphDef(*graph);
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : std::string();
}

/// Imports damaged bytes with a small budget; an imported graph must be usable. True if the import failed.
bool RefusedOrUsable(const std::string& bytes) {
  graph::ImportOptions options;
  options.max_expansion_bytes = 1 << 20;
  const Result<graph::Definition> graph = graph::ParseGraph(bytes, **ops::Catalogue(), options);
  if (!graph.ok()) {
    EXPECT_FALSE(graph.status().message().empty());
    return true;
  }
  for (graph::NodeId id = 0; id < graph->num_nodes(); ++id)
    EXPECT_EQ(graph->Find(graph->node(id).name()), &graph->node(id));
  const Result<std::string> again = graph::ExportGraphDef(*graph);
  EXPECT_TRUE(again.ok()) << again.status().ToString();
  return false;
}

TEST(DamagedGraphDef, EveryCutIsRefusedOrEndsAtANode) {
  const std::string bytes = SmallGraphDef();
  ASSERT_FALSE(bytes.empty());
  ASSERT_FALSE(RefusedOrUsable(bytes));
  int accepted = 0;
  for (size_t kept = 0; kept < bytes.size(); ++kept) accepted += RefusedOrUsable(bytes.substr(0, kept)) ? 0 : 1;
  // Accepted cuts are before each of the 7 nodes, if all inputs are present, and after the last one; every other cut is
  // inside a message.
  EXPECT_GE(accepted, 1);
  EXPECT_LE(accepted, 8);
}

TEST(DamagedGraphDef, OneMissingByteIsReported) {
  const std::string bytes = SmallGraphDef();
  ASSERT_FALSE(bytes.empty());
  const Result<graph::Definition> graph = graph::ParseGraph(bytes.substr(0, bytes.size() - 1), **ops::Catalogue());
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), Code::kInvalidArgument);
  EXPECT_NE(graph.status().message().find("cut short"), std::string::npos) << graph.status().ToString();
}

TEST(DamagedGraphDef, EveryFlippedBitIsRefusedOrAnotherGraph) {
  const std::string bytes = SmallGraphDef();
  ASSERT_FALSE(bytes.empty());
  const long before = PeakKiB();
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      refused += RefusedOrUsable(damaged) ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(PeakKiB() - before, kMayGrowKiB);
}

TEST(DamagedGraphDef, EveryByteReplacedByEveryExtreme) {
  const std::string bytes = SmallGraphDef();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char value : {'\0', '\x7f', '\x80', '\xff'}) {
      std::string damaged = bytes;
      damaged[i] = value;
      (void)RefusedOrUsable(damaged);
      damaged.insert(i, 1, value);
      (void)RefusedOrUsable(damaged);
    }
  }
  ExpectGoodStep();
}

}  // namespace
}  // namespace weir::testing
