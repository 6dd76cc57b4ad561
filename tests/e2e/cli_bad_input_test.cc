// Bad input of `weir run`: exit status 1, one line that names code and fault, and the same as JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/graph/graph_def.h"
#include "core/io/npy.h"
#include "core/ops/declare_all.h"
#include "tests/e2e/cli_process.h"
#include "tests/pipeline/bad_inputs.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), std::istream_iterator<std::string>()};
}

class CliBadInput : public ::testing::TestWithParam<BadInput> {};

TEST_P(CliBadInput, EndsWithOneAndSaysWhere) {
  const BadInput& bad = GetParam();
  const ScratchFolder folder;
  std::vector<std::string> words = {"run", folder.Write("g.pbtxt", bad.graph), "--json", "--out-dir", folder / "out"};
  for (const std::string& fetch : bad.fetches) words.insert(words.end(), {"--fetch", fetch});
  for (size_t i = 0; i < bad.feeds.size(); ++i) {
    const std::string file = folder / (std::to_string(i) + ".npy");
    ASSERT_TRUE(io::WriteNpy(file, bad.feeds[i].second).ok());
    words.insert(words.end(), {"--feed", bad.feeds[i].first + "=" + file});
  }
  const Ended ended = Weir(words);
  EXPECT_EQ(ended.status, 1) << ended.err;
  Json answer = ended.json();
  ASSERT_TRUE(answer.is_object()) << ended.out << ended.err;
  EXPECT_EQ(answer["schema"], 1);
  EXPECT_FALSE(answer.contains("fetches"));
  Json error = answer["error"];
  EXPECT_EQ(error["code"], CodeName(bad.code));
  EXPECT_EQ(error["node"], bad.node.empty() ? Json(nullptr) : Json(bad.node));
  const std::string message = error["message"];
  for (const std::string& part : bad.said) EXPECT_NE(message.find(part), std::string::npos) << message;
  // The same on standard error, on one line.
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  EXPECT_EQ(WordsOf(ended.err), WordsOf("weir: " + CodeName(bad.code) + ": " + message));
}

INSTANTIATE_TEST_SUITE_P(Graphs, CliBadInput, ::testing::ValuesIn(BadGraphs()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Runs, CliBadInput, ::testing::ValuesIn(BadRuns()),
                         [](const auto& info) { return info.param.name; });

std::string Echo() { return PlaceholderText("x", "DT_FLOAT", {-1}) + TypedText("y", "Identity", {"x"}); }

/// Runs a graph file with x fed; the first line of the error, after checking that the command failed well.
std::string FailureOf(const std::string& graph, const std::string& feed = "x=[1]") {
  const Ended ended = Weir({"run", graph, "--feed", feed, "--fetch", "y"});
  EXPECT_EQ(ended.status, 1) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_TRUE(ended.err.starts_with("weir: ")) << ended.err;
  return ended.first_error_line();
}

TEST(CliBadFile, MissingGraph) {
  const ScratchFolder folder;
  const std::string line = FailureOf(folder / "missing.pb");
  EXPECT_TRUE(line.starts_with("weir: NOT_FOUND: ")) << line;
  EXPECT_NE(line.find(folder / "missing.pb"), std::string::npos) << line;
}

TEST(CliBadFile, GraphThatIsAFolder) {
  const ScratchFolder folder;
  EXPECT_NE(FailureOf(folder.path()).find(folder.path()), std::string::npos);
}

TEST(CliBadFile, GraphsCutAndSpoiled) {
  const ScratchFolder folder;
  const Result<graph::Definition> graph = graph::ParseGraph(Echo(), **ops::Catalogue());
  ASSERT_TRUE(graph.ok());
  const std::string bytes = *graph::ExportGraphDef(*graph);
  ASSERT_EQ(Weir({"run", folder.Write("good.pb", bytes), "--feed", "x=[1]", "--fetch", "y"}).status, 0);
  const std::string cut = folder.Write("cut.pb", bytes.substr(0, bytes.size() - 1));
  const std::string line = FailureOf(cut);
  EXPECT_NE(line.find(cut + ": "), std::string::npos) << line;
  EXPECT_NE(line.find("cut short"), std::string::npos) << line;
  std::string spoiled = bytes;
  spoiled[0] = static_cast<char>(spoiled[0] ^ 0x04);
  EXPECT_TRUE(FailureOf(folder.Write("spoiled.pb", spoiled)).starts_with("weir: "));
  EXPECT_NE(FailureOf(folder.Write("empty.pb", "")).find("unable to find feed output x"), std::string::npos);
  EXPECT_NE(FailureOf(folder.Write("typo.pbtxt", "node { nam: \"x\" }\n")).find("line 1"), std::string::npos);
}

TEST(CliBadFile, InvalidFeedFiles) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", Echo());
  const std::string text = folder.Write("text.npy", "no array");
  EXPECT_NE(FailureOf(graph, "x=" + text).find(text), std::string::npos);
  const std::string whole = *io::EncodeNpy(Tensor::Vector<float>({1, 2, 3}));
  const std::string cut = folder.Write("cut.npy", whole.substr(0, whole.size() - 1));
  const std::string line = FailureOf(graph, "x=" + cut);
  EXPECT_TRUE(line.starts_with("weir: DATA_LOSS: feed 'x': ")) << line;
  EXPECT_NE(line.find(cut), std::string::npos) << line;
}

TEST(CliBadFile, UnknownTargetNamesTheNearest) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("g.pbtxt", Echo() + NodeText("train", "NoOp"));
  for (const char* flag : {"--target", "--init"}) {
    const Ended ended = Weir({"run", graph, flag, "trian", "--fetch", "y", "--feed", "x=[1]"});
    EXPECT_EQ(ended.status, 1);
    EXPECT_TRUE(ended.err.starts_with("weir: NOT_FOUND: ")) << ended.err;
    EXPECT_NE(ended.err.find("trian"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("'train'"), std::string::npos) << ended.err;
  }
}

// A graph must not write control sequences to its user's terminal.
TEST(CliTerminal, ControlBytesOfGraphsAndFilesReachNoTerminal) {
  const std::string red = "\\033[31mEVIL\\033[0m\\177\\302\\233";  // escapes of the text format
  const std::string constant = ConstText("c", "DT_FLOAT", {}, "float_val: -1");
  const std::string rows[] = {
      NodeText("n", red),
      constant + NodeText(red, "Abs", {"c"}, {{"T", "type: DT_FLOAT"}}),
      NodeText("n", "Abs", {red}, {{"T", "type: DT_FLOAT"}}),
      constant + NodeText("n", "Abs", {"c"}, {{"T", "type: DT_FLOAT"}}, red),
      constant + TypedText("l", "Log", {"c"}) +
          NodeText("n", "CheckNumerics", {"l"}, {{"T", "type: DT_FLOAT"}, {"message", "s: \"" + red + "\\377\""}}),
      constant + NodeText("n", "Print", {"c"},
                          {{"T", "type: DT_FLOAT"}, {"U", "list { }"}, {"message", "s: \"" + red + "\""}}),
  };
  const ScratchFolder folder;
  const std::string named = folder.Write("\x1b[31mred.pbtxt", "node {");
  const auto clean = [](const std::string& text) {
    return std::none_of(text.begin(), text.end(),
                        [](char c) {
                          return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') ||
                                 c == 0x7f;
                        }) &&
           text.find("\xc2\x9b") == std::string::npos && text.find('\xff') == std::string::npos;
  };
  const std::map<std::string, std::string> plain = {{"NO_COLOR", "1"}};
  for (const std::string& row : rows) {
    const std::string graph = folder.Write("g.pbtxt", row);
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"run", graph}, {"run", graph, "--json"}, {"explain", graph}}) {
      const Ended ended = WeirOnTerminal(words, plain);
      EXPECT_TRUE(clean(ended.out)) << row << "\n" << ended.out;
      EXPECT_FALSE(ended.out.empty());
    }
  }
  EXPECT_TRUE(clean(WeirOnTerminal({"run", named}, plain).out));
  EXPECT_TRUE(clean(WeirOnTerminal({"\x1b[31m"}, plain).out));
}

}  // namespace
}  // namespace weir::testing
