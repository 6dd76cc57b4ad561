// Traces, their summaries, benchmarks and drawings of graphs, by the command `weir`.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "core/session/profile_summary.h"
#include "tests/e2e/cli_process.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;

const std::string kPlacedOn = "/job:localhost/replica:0/task:0/device:CPU:0";

/// y = Relu(x w + b), z = Neg(y) after a control edge.
std::string Layer() {
  return PlaceholderText("x", "DT_FLOAT", {2, 2}) +
         ConstText("w", "DT_FLOAT", {2, 2}, "float_val: 1 float_val: 2 float_val: 3 float_val: 4") +
         ConstText("b", "DT_FLOAT", {2}, "float_val: 1 float_val: -1") + TypedText("m", "MatMul", {"x", "w"}) +
         TypedText("s", "BiasAdd", {"m", "b"}) + TypedText("y", "Relu", {"s"}) + TypedText("z", "Neg", {"x", "^y"});
}

/// The words of a command on the graph, which is fed and whose `z` is fetched.
std::vector<std::string> On(const std::string& command, const std::string& graph, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {command, graph, "--feed", "x=[[1,2],[3,4]]", "--fetch", "y", "--fetch", "z"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

int WrittenRuns(const std::string& trace) {
  const Json json = Json::parse(ReadWhole(trace), nullptr, false);
  EXPECT_TRUE(json.is_object());
  return json.is_object() ? json["weir"]["written"].get<int>() : -1;
}

TEST(CliTrace, F339_ScheduleAndLimitAreOptions) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer()), trace = folder / "t.json";
  ASSERT_EQ(Weir(On("run", graph, {"--runs", "10", "--trace", trace})).status, 0);
  EXPECT_EQ(WrittenRuns(trace), 10);
  const Ended some =
      Weir(On("run", graph, {"--runs", "10", "--trace", trace, "--trace-schedule", "2,1,0,2,2", "--json"}));
  ASSERT_EQ(some.status, 0) << some.err;
  EXPECT_EQ(WrittenRuns(trace), 4);
  EXPECT_EQ(some.json()["traced_runs"], 4);
  const Ended limited = Weir(On("run", graph, {"--runs", "200", "--trace", trace, "--trace-limit", "0.02"}));
  ASSERT_EQ(limited.status, 0) << limited.err;
  EXPECT_LE(std::filesystem::file_size(trace), 20000u);
  EXPECT_GT(WrittenRuns(trace), 0);
  EXPECT_NE(limited.out.find("the trace reached its limit"), std::string::npos) << limited.out;
  const Ended wrong = Weir(On("run", graph, {"--trace", trace, "--trace-schedule", "0,0,0,0"}));
  EXPECT_NE(wrong.status, 0);
  EXPECT_NE(wrong.err.find("active of a trace is 0, wanted 1 or more"), std::string::npos) << wrong.err;
}

TEST(CliProfileSummary, F341_OpsAndDevicesByTime) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer()), trace = folder / "t.json";
  ASSERT_EQ(Weir(On("run", graph, {"--runs", "4", "--trace", trace})).status, 0);
  const Ended ended = Weir({"profile", "summary", trace, "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json json = ended.json();
  EXPECT_EQ(json["steps"], 4);
  double before = 1e300, share = 0, total = 0;
  std::set<std::string> ops;
  for (const Json& line : json["lines"]) {
    EXPECT_EQ(line["device"], kPlacedOn);
    EXPECT_EQ(line["calls"].get<int>() % 4, 0) << line;
    EXPECT_LE(line["total_us"].get<double>(), before) << "most time first";
    before = line["total_us"].get<double>();
    EXPECT_LE(line["mean_us"].get<double>(), line["max_us"].get<double>() + 1e-9);
    share += line["share"].get<double>();
    total += line["total_us"].get<double>();
    ops.insert(line["op"].get<std::string>());
  }
  EXPECT_TRUE(ops.contains("Neg")) << ended.out;
  EXPECT_NEAR(share, 1, 1e-6);
  EXPECT_NEAR(total, json["total_us"].get<double>(), 0.01);
  const Json devices = Weir({"profile", "summary", trace, "--by", "device", "--json"}).json();
  ASSERT_EQ(devices["lines"].size(), 1u);
  EXPECT_EQ(devices["lines"][0]["device"], kPlacedOn);
  const Ended text = Weir({"profile", "summary", trace});
  EXPECT_TRUE(text.out.starts_with("op,device")) << text.out;
  EXPECT_NE(text.out.find("Neg on " + kPlacedOn), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(" us in 4 steps"), std::string::npos) << text.out;
  const std::string help = Weir({"profile", "summary", "--help"}).out;
  for (const char* column : {"calls", "total", "mean", "max", "%", "output", "kernels", "layout", "fused from"}) {
    EXPECT_NE(help.find(column), std::string::npos) << column;
  }
}

TEST(CliProfileSummary, F341_WhatIsNoTraceIsRefused) {
  const ScratchFolder folder;
  for (const std::string& text : {std::string("{"), std::string("[]"), std::string("{\"traceEvents\": 3}")}) {
    const Ended ended = Weir({"profile", "summary", folder.Write("t.json", text)});
    EXPECT_EQ(ended.status, 1);
    EXPECT_NE(ended.err.find("is no trace"), std::string::npos) << ended.err;
  }
  const Ended empty = Weir({"profile", "summary", folder.Write("t.json", "{\"traceEvents\": [3, {\"ph\": \"X\"}]}")});
  EXPECT_EQ(empty.status, 1);
  EXPECT_NE(empty.err.find("has no spans of ops"), std::string::npos) << empty.err;
  EXPECT_EQ(Weir({"profile", "summary", folder / "missing.json"}).status, 1);
}

TEST(CliProfileSummary, F343_NodesNameKernelsTypesAndWhatTheyAreFusedFrom) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer()), trace = folder / "t.json";
  ASSERT_EQ(Weir(On("run", graph, {"--runs", "2", "--trace", trace})).status, 0);
  const Json json = Weir({"profile", "summary", trace, "--by", "node", "--json"}).json();
  bool fused = false, plain = false;
  for (const Json& line : json["lines"]) {
    if (line["node"] == "y" && line["op"] != "fetch") {
      fused = true;
      EXPECT_EQ(line["fused_from"], (Json{"m", "s", "y"})) << line;
      EXPECT_EQ(line["dtypes"], Json{"float"}) << line;
      ASSERT_EQ(line["kernels"].size(), 1u);
      EXPECT_TRUE(line["kernels"][0].get<std::string>().starts_with("kernels_")) << line;
      EXPECT_EQ(line["output_bytes"], 2 * 16);
    }
    if (line["node"] == "z" && line["op"] == "Neg") {
      plain = true;
      EXPECT_TRUE(line["fused_from"].empty());
    }
  }
  EXPECT_TRUE(fused && plain) << json;
  // The library's call gives the same object.
  const auto summary = session::SummarizeChromeTrace(ReadWhole(trace), session::SummaryBy::kNode, trace);
  ASSERT_TRUE(summary.ok()) << summary.status().ToString();
  Json of_library = Json::parse(session::ToJson(*summary));
  of_library["schema"] = 1;
  EXPECT_EQ(of_library, json);
}

TEST(CliProfileSummary, F345_TheMemoryOfEachOpIsInTheTable) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer()), trace = folder / "t.json";
  ASSERT_EQ(Weir(On("run", graph, {"--runs", "2", "--trace", trace})).status, 0);
  const Json json = Weir({"profile", "summary", trace, "--by", "op", "--json"}).json();
  bool seen = false;
  for (const Json& line : json["lines"]) {
    if (line["op"] != "Neg") continue;
    seen = true;
    EXPECT_EQ(line["output_bytes"], 2 * 16) << "two runs, four floats";
  }
  EXPECT_TRUE(seen) << json;
  EXPECT_NE(Weir({"profile", "summary", trace}).out.find("32 B"), std::string::npos);
}

TEST(CliBench, F342_PercentilesThroughputAndTheSplitOfARun) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer());
  const Ended ended = Weir(On("bench", graph, {"--runs", "30", "--warmup", "2", "--json"}));
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json json = ended.json();
  EXPECT_EQ(json["runs"], 30);
  double before = 0;
  for (const char* figure : {"min", "p50", "p90", "p95", "p99", "max"}) {
    const double us = json["us"][figure].get<double>();
    EXPECT_GE(us, before) << figure;
    before = us;
  }
  EXPECT_GE(json["us"]["mean"].get<double>(), json["us"]["min"].get<double>());
  EXPECT_LE(json["us"]["mean"].get<double>(), json["us"]["max"].get<double>());
  EXPECT_NEAR(json["runs_per_second"].get<double>() * json["us"]["mean"].get<double>(), 1e6, 1);
  const Json& split = json["split_us"];
  EXPECT_GT(split["compute"].get<double>(), 0);
  for (const char* none : {"to_device", "to_host", "enqueue"}) EXPECT_EQ(split[none].get<double>(), 0) << none;
  const Ended text = Weir(On("bench", graph, {"--runs", "10"}));
  for (const char* word : {"p95", "p99", "10 runs, ", "copies to devices", "enqueue", "copies from devices"}) {
    EXPECT_NE(text.out.find(word), std::string::npos) << word << "\n" << text.out;
  }
  EXPECT_EQ(Weir(On("bench", graph, {"--runs", "0"})).status, 2);
}

TEST(CliBench, F342_ADeviceWithStreamsHasCopiesAndEnqueuedWork) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer());
  const std::string plugins = WEIR_PLUGINS;
  const std::string async = std::filesystem::path(plugins).parent_path() / "async";
  const Ended ended = Weir(On("bench", graph, {"--runs", "5", "--device", "ASYNC:0", "--json"}),
                           {{"WEIR_PLUGIN_PATH", plugins + ":" + async}});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json split = ended.json()["split_us"];
  for (const char* part : {"to_device", "to_host", "enqueue"}) EXPECT_GT(split[part].get<double>(), 0) << split;
}

TEST(CliGraph, F349_AGraphForGraphviz) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer());
  const Ended ended = Weir({"graph", "dot", graph});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("digraph weir {\n")) << ended.out;
  EXPECT_TRUE(ended.out.ends_with("}\n"));
  for (const char* line : {"  \"m\" [label=\"m (MatMul)\"];\n", "  \"x\" -> \"m\";\n", "  \"w\" -> \"m\";\n",
                           "  \"y\" -> \"z\" [style=dashed];\n"}) {
    EXPECT_NE(ended.out.find(line), std::string::npos) << line << ended.out;
  }
  EXPECT_EQ(ended.out.find("fillcolor=\"#"), std::string::npos) << "no colours unless asked for";
}

TEST(CliGraph, F349_ColoursByDeviceOpOrRequestByOptionAndEnvironment) {
  const ScratchFolder folder;
  const std::string graph = folder.Write("layer.pbtxt", Layer());
  std::vector<std::string> words = {"graph", "dot", graph, "--feed", "x=[[1,2],[3,4]]", "--color", "device"};
  const Ended device = Weir(words);
  ASSERT_EQ(device.status, 0) << device.err;
  EXPECT_NE(device.out.find("tooltip=\"" + kPlacedOn + "\""), std::string::npos) << device.out;
  EXPECT_NE(device.out.find("// #a6cee3 " + kPlacedOn), std::string::npos) << "which colour means what";
  const Ended op = Weir({"graph", "dot", graph}, {{"WEIR_DOT_COLOR", "op"}});
  ASSERT_EQ(op.status, 0) << op.err;
  EXPECT_NE(op.out.find("tooltip=\"MatMul\""), std::string::npos) << op.out;
  EXPECT_EQ(Weir({"graph", "dot", graph, "--color", "none"}, {{"WEIR_DOT_COLOR", "op"}}).out.find("tooltip"),
            std::string::npos);
  const Ended wrong = Weir({"graph", "dot", graph}, {{"WEIR_DOT_COLOR", "mood"}});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("no colours by 'mood'"), std::string::npos) << wrong.err;
  const std::string file = folder / "g.dot";
  ASSERT_EQ(Weir({"graph", "dot", graph, "--out", file}).status, 0);
  EXPECT_TRUE(ReadWhole(file).starts_with("digraph weir {"));
}

}  // namespace
}  // namespace weir::testing
