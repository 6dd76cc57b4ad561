// `weir explain`: text, JSON, errors.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/cli_process.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;

std::string RowsPlusConst() {
  return PlaceholderText("x", "DT_FLOAT", {-1, 2}) + ConstText("a", "DT_FLOAT", {2}, "float_val: 10 float_val: 20") +
         TypedText("y", "Add", {"x", "a"});
}

/// A NumPy file of float32 zeros.
std::string NpyOfZeros(int rows, int columns) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(columns) + "), }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\0", 8) + std::string("\x76\0", 2) + header +
         std::string(static_cast<size_t>(rows * columns) * 4, '\0');
}

const std::string kCpu = "/job:localhost/replica:0/task:0/device:CPU:0";

TEST(CliExplain, F292_EveryCandidateWithCostProvenanceAndVerdict) {
  const ScratchFolder folder;
  const Ended ended =
      Weir({"explain", folder.Write("sum.pbtxt", RowsPlusConst()), "--feed", "x=[[1,2]]", "--fetch", "y", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json json = ended.json();
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["nodes"].size(), 1u) << ended.out;
  const Json& node = json["nodes"][0];
  EXPECT_EQ(node["name"], "y");
  EXPECT_EQ(node["op"], "Add");
  EXPECT_EQ(node["operands"], "float [1,2] x float [2] -> float [1,2]");
  EXPECT_EQ(node["device"], kCpu);
  ASSERT_GE(node["candidates"].size(), 1u);
  const Json& cpu = node["candidates"][0];
  EXPECT_EQ(cpu["device"], kCpu);
  EXPECT_TRUE(cpu["kernel"].is_string());
  EXPECT_GE(cpu["cost_us"].get<double>(), 0);
  EXPECT_EQ(cpu["provenance"], "analytic");
  EXPECT_TRUE(cpu["verdict"].get<std::string>().starts_with("chosen")) << cpu;
  EXPECT_TRUE(json["summary"].get<std::string>().starts_with("placed 1 node: CPU:0 1 (100.0 %)")) << json["summary"];
  EXPECT_EQ(json["transfers"], 0);
  EXPECT_EQ(json["transferred_bytes"], 0);
}

TEST(CliExplain, F292_TextHasALineForTheNodeAndOneForEachCandidate) {
  const ScratchFolder folder;
  const Ended ended = Weir({"explain", folder.Write("sum.pbtxt", RowsPlusConst()), "--feed", "x=[[1,2]]"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("placed 1 node: CPU:0 1 (100.0 %)")) << ended.out;
  EXPECT_NE(ended.out.find("\ny  Add float [1,2] x float [2] -> float [1,2]  group 0 (1 node)  -> " + kCpu + "\n"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("analytic"), std::string::npos) << ended.out;
  const Json json =
      Weir({"explain", folder.Write("sum.pbtxt", RowsPlusConst()), "--feed", "x=[[1,2]]", "--json"}).json();
  EXPECT_NE(
      ended.out.find("\nplan " + json["plan"].get<std::string>() + ", hash " + json["hash"].get<std::string>() + "\n"),
      std::string::npos)
      << ended.out;
}

TEST(CliExplain, F028_F347_APageShowsNodesByScopeAndLoadsNothing) {
  const ScratchFolder folder;
  const std::string graph = PlaceholderText("x", "DT_FLOAT", {-1, 2}) + TypedText("tower/deep/y", "Neg", {"x"}) +
                            TypedText("tower/z", "Exp", {"tower/deep/y"});
  const std::string file = folder.Write("<i>&graph.pbtxt", graph);
  const Ended ended = Weir({"explain", file, "--feed", "x=[[1,2]]", "--html", folder / "page.html"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("wrote " + (folder / "page.html")), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("exec"), std::string::npos) << "the page has the nodes\n" << ended.out;
  const std::string page = ReadWhole(folder / "page.html");
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>")) << page.substr(0, 100);
  EXPECT_EQ(page.find("<i>"), std::string::npos) << "names are no markup";
  EXPECT_NE(page.find("&lt;i&gt;&amp;graph.pbtxt</h1>"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  for (const char* loads : {"src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
  }
  const std::string begin = "type=\"application/json\">";
  const size_t from = page.find(begin) + begin.size();
  const Json data = Json::parse(page.substr(from, page.find("</script>", from) - from));
  ASSERT_EQ(data["nodes"].size(), 2u);
  EXPECT_EQ(data["nodes"][0]["n"], "tower/deep/y");
  EXPECT_EQ(data["nodes"][1]["i"][0], "tower/deep/y");
  EXPECT_EQ(data["nodes"][1]["d"], "CPU:0");
  ASSERT_GE(data["nodes"][1]["c"].size(), 1u) << "every candidate";
  EXPECT_TRUE(data["nodes"][1]["c"][0][5].get<std::string>().starts_with("chosen"));
  EXPECT_EQ(data["devices"][0]["n"], "CPU:0");
  EXPECT_GE(data["memory"].size(), 1u);
  EXPECT_GE(data["nodes"][1]["f"].get<int64_t>(), data["nodes"][0]["f"].get<int64_t>());
  EXPECT_EQ(Weir({"explain", file, "--feed", "x=[[1,2]]", "--html", "/no/such/folder/page.html"}).status, 1);
}

TEST(CliExplain, F298_MeasuredTimesStandBesideThePrediction) {
  const ScratchFolder folder;
  const std::string file = folder.Write("sum.pbtxt", RowsPlusConst());
  const Ended text = Weir({"explain", file, "--feed", "x=[[1,2]]", "--measure", "3"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("measured ")) << text.out;
  EXPECT_NE(text.out.find("median of 3 runs"), std::string::npos) << text.out;
  const Json json = Weir({"explain", file, "--feed", "x=[[1,2]]", "--measure", "3", "--json"}).json();
  EXPECT_EQ(json["measured"]["runs"], 3);
  EXPECT_GT(json["measured"]["step_us"].get<double>(), 0);
  ASSERT_EQ(json["measured"]["nodes"].size(), 1u) << json["measured"];
  EXPECT_EQ(json["measured"]["nodes"][0]["node"], "y");
  EXPECT_GT(json["measured"]["nodes"][0]["measured_us"].get<double>(), 0);
  EXPECT_EQ(Weir({"explain", file, "--measure", "0"}).status, 2);
}

TEST(CliExplain, F317_MemoryIsEstimatedFromShapesAlone) {
  const ScratchFolder folder;
  const std::string graph =
      PlaceholderText("x", "DT_FLOAT", {-1, 256}) +
      NodeText("w", "VariableV2", {},
               {{"dtype", "type: DT_FLOAT"}, {"shape", "shape { dim { size: 256 } dim { size: 128 } }"}}) +
      TypedText("r", "Identity", {"w"}) + TypedText("y", "MatMul", {"x", "r"}) + TypedText("z", "Neg", {"y"});
  const std::string file = folder.Write("big.pbtxt", graph);
  const std::string feed = "x=" + folder.Write("x.npy", NpyOfZeros(1000, 256));
  const Ended ended = Weir({"explain", "memory", file, "--feed", feed, "--fetch", "z", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json json = ended.json();
  ASSERT_EQ(json["memory"].size(), 1u) << ended.out;
  const Json& cpu = json["memory"][0];
  EXPECT_EQ(cpu["device"], kCpu);
  EXPECT_EQ(cpu["variable_bytes"], 256 * 128 * 4);
  EXPECT_GE(cpu["value_bytes"].get<int64_t>(), 2 * 1000 * 128 * 4);
  EXPECT_GT(cpu["capacity_bytes"].get<int64_t>(), 0);
  EXPECT_FALSE(json.contains("nodes"));
  EXPECT_EQ(json["largest"][0]["bytes"], 1000 * 128 * 4);
  EXPECT_EQ(json["largest"][0]["node"], "y");
  const Ended text = Weir({"explain", "memory", file, "--feed", feed, "--fetch", "z"});
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* part :
       {"variables", "capacity", "MatMul", "float [1000,256] x float [256,128] -> float [1000,128]"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  EXPECT_EQ(Weir({"explain", file, file}).status, 2);
}

TEST(CliExplain, StagesAreShownAsText) {
  const ScratchFolder folder;
  const std::string file = folder.Write("sum.pbtxt", RowsPlusConst());
  const Ended graph = Weir({"explain", "graph", file, "--feed", "x=[[1,2]]"});
  ASSERT_EQ(graph.status, 0) << graph.err;
  EXPECT_NE(graph.out.find("x = feed 0 -> float [1,2]\n"), std::string::npos) << graph.out;
  EXPECT_NE(graph.out.find("y = Add("), std::string::npos) << graph.out;
  EXPECT_TRUE(graph.out.ends_with("\nfetch y\n")) << graph.out;
  const Ended plan = Weir({"explain", "plan", file, "--feed", "x=[[1,2]]", "--json"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  const std::string text = plan.json()["plan"];
  EXPECT_TRUE(text.starts_with("tier T0, ")) << text;
  EXPECT_NE(text.find(" kernel         y "), std::string::npos) << text;
  const Ended passes = Weir({"explain", "passes", file, "--feed", "x=[[1,2]]"});
  ASSERT_EQ(passes.status, 0) << passes.err;
  size_t at = 0;
  for (const char* pass : {"optimize/prune\n", "optimize/infer_and_fold\n", "fuse/fuse_matches", "plan/emit_tape\n"}) {
    at = passes.out.find(std::string("after ") + pass, at);
    EXPECT_NE(at, std::string::npos) << pass << " in " << passes.out;
  }
}

TEST(CliExplain, RequestsThatCannotBeMet) {
  const ScratchFolder folder;
  const std::string graph =
      PlaceholderText("x", "DT_FLOAT", {2}) + NodeText("y", "Neg", {"x"}, {{"T", "type: DT_FLOAT"}});
  const std::string file = folder.Write("neg.pbtxt", graph);
  const Ended absent = Weir({"explain", file, "--feed", "x=[1,2]", "--device", "NPU:0"});
  EXPECT_EQ(absent.status, 1);
  EXPECT_NE(absent.err.find("the default device 'NPU:0' does not exist; available devices are [ "), std::string::npos)
      << absent.err;
  EXPECT_EQ(Weir({"explain", file, "--algorithm", "best"}).status, 2);
  EXPECT_EQ(Weir({"explain", file}).status, 1);  // x is not fed
}

}  // namespace
}  // namespace weir::testing
