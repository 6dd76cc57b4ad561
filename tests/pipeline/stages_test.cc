// Output of the stages as text: files of tests/pipeline/stages/<stage> hold a request, a graph (stage_case.h) and the
// expected text, which WEIR_UPDATE_EXPECTED=1 rewrites. The text of a step that cannot be compiled is its error.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/session/explain.h"
#include "core/session/session.h"
#include "tests/pipeline/stage_case.h"
#include "tests/support/async_plugins.h"
#include "tests/support/expected_text.h"

namespace weir::session {
namespace {

using testing::StageCase;

constexpr std::string_view kRule = "----\n";

Tensor ZerosOf(const StageCase::Feed& feed) {
  const Result<Shape> shape = feed.shape.ToShape();
  Result<Tensor> made = Tensor::Make(feed.dtype, shape.ok() ? *shape : Shape());
  EXPECT_TRUE(made.ok()) << feed.name;
  if (!made.ok() || !HasFixedSize(feed.dtype)) return made.ok() ? *made : Tensor();
  std::fill_n(made->mutable_raw(), made->bytes(), std::byte{});
  return *made;
}

/// The devices of a case, with the same kernel sets and declared speed on every CPU.
Result<std::shared_ptr<Runtime>> RuntimeFor(const StageCase& given) {
  plugin::LoadOptions options;
  options.config.device["CPU"].peak_gflops = {{"f32", 160}, {"f64", 80}, {"i32", 160}, {"i64", 80}};
  if (given.devices == "async") options.folders = {testing::AsyncPlugins::Get().folder()};
  if (given.devices == "streamed") options.folders = {WEIR_STREAMED_PLUGINS};
  for (const char* set : {"onednn", "openblas"}) {
    if (given.devices.empty() && given.kernels != set) options.deny.push_back(std::string("kernels_") + set);
  }
  return Runtime::Load(options);
}

/// A shape-generic plan, as the session makes it once the exact ones are used up.
Result<std::string> GenericText(const std::shared_ptr<Runtime>& runtime, const graph::Definition& graph,
                                const SessionOptions& options, Stage stage, const StageCase& given) {
  graph::StepRequest request;
  const auto endpoint = [&](const std::string& name) {
    const graph::Node* const node = graph.Find(name);
    EXPECT_NE(node, nullptr) << name;
    return graph::Endpoint{node == nullptr ? 0 : node->id(), 0};
  };
  for (const StageCase::Feed& feed : given.feeds) {
    request.feeds.push_back({endpoint(feed.name), feed.dtype, feed.shape});
  }
  for (const std::string& fetch : given.fetches) request.fetches.push_back(endpoint(fetch));
  for (const std::string& target : given.targets) request.targets.push_back(endpoint(target).node);
  runtime::ResourceScope resources;
  runtime::NodeResources node_resources;
  StatePlaces places;
  CompileContext context{*runtime, options, resources, node_resources, given.threads};
  context.places = &places;
  return StageText(context, graph, request, stage);
}

Result<std::string> TextOf(Stage stage, const StageCase& given) {
  WEIR_ASSIGN(const std::shared_ptr<Runtime> runtime, RuntimeFor(given));
  WEIR_ASSIGN(graph::Definition graph, graph::ParseGraph(given.graph, *runtime->ops));
  SessionOptions options;
  options.inter_op_parallelism_threads = given.threads;
  options.intra_op_parallelism_threads = 2;
  options.cut_between_devices = given.cut;
  options.deterministic = given.deterministic;
  if (!given.exact()) return GenericText(runtime, graph, options, stage, given);
  WEIR_ASSIGN(const std::unique_ptr<Session> session, Session::Make(runtime, graph, options));
  std::vector<Feed> feeds;
  for (const StageCase::Feed& feed : given.feeds) feeds.emplace_back(feed.name, ZerosOf(feed));
  return session->ExplainStage(stage, feeds, given.fetches, given.targets);
}

/// Scratch memory of products depends on the CPU, and with it the layout of the arena: neither is shown where a plan
/// has such memory.
std::string WithoutProductLayout(const std::string& text) {
  static const std::regex kScratch("uint8\\[[0-9]{4,}\\]"), kOffset("@[0-9]+"), kArena("arena (host|space)[^\n]*");
  if (!std::regex_search(text, kScratch)) return text;
  const std::string plain = std::regex_replace(std::regex_replace(text, kScratch, "uint8[*]"), kOffset, "@*");
  return std::regex_replace(plain, kArena, "arena *");
}

class Stages : public ::testing::TestWithParam<std::string> {};

TEST_P(Stages, GiveTheTextOfTheFile) {
  const std::string path = std::string(WEIR_STAGE_CASES "/") + GetParam();
  const std::string whole = testing::FileText(path);
  const size_t rule = whole.find(kRule);
  ASSERT_NE(rule, std::string::npos) << path << " has no " << kRule;
  const Stage stage = GetParam().starts_with("graph/")    ? Stage::kGraph
                      : GetParam().starts_with("passes/") ? Stage::kPasses
                                                          : Stage::kPlan;
  const Result<std::string> text = TextOf(stage, testing::ParseStageCase(whole.substr(0, rule)));
  const std::string shown = text.ok() ? WithoutProductLayout(*text) : text.status().ToString() + "\n";
  testing::ExpectFileText(path, whole.substr(0, rule + kRule.size()) + shown);
}

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const char* stage : {"graph", "passes", "plan"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(WEIR_STAGE_CASES "/") + stage)) {
      files.push_back(std::string(stage) + "/" + entry.path().filename().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& file) {
  std::string name = file.param.substr(0, file.param.rfind('.'));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Stages, ::testing::ValuesIn(Files()), NameOf);

}  // namespace
}  // namespace weir::session
