// `weir explain`: text, JSON, errors.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/cli_process.h"
#include "tests/support/text_graph.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;

std::string SumGraph() {
  return PlaceholderText("x", "DT_FLOAT", {-1, 2}) + ConstText("a", "DT_FLOAT", {2}, "float_val: 10 float_val: 20") +
         TypedText("y", "Add", {"x", "a"});
}

const std::string kCpu = "/job:localhost/replica:0/task:0/device:CPU:0";

TEST(CliExplain, F292_EveryCandidateWithCostProvenanceAndVerdict) {
  const ScratchFolder folder;
  const Ended ended =
      Weir({"explain", folder.Write("sum.pbtxt", SumGraph()), "--feed", "x=[[1,2]]", "--fetch", "y", "--json"});
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
}

TEST(CliExplain, F292_TextHasALineForTheNodeAndOneForEachCandidate) {
  const ScratchFolder folder;
  const Ended ended = Weir({"explain", folder.Write("sum.pbtxt", SumGraph()), "--feed", "x=[[1,2]]"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(ended.out.starts_with("placed 1 node: CPU:0 1 (100.0 %)")) << ended.out;
  EXPECT_NE(ended.out.find("\ny  Add float [1,2] x float [2] -> float [1,2]  group 0 (1 node)  -> " + kCpu + "\n"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(ended.out.find("analytic"), std::string::npos) << ended.out;
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
