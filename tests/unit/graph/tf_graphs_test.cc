// Graphs that TensorFlow made ($WEIR_TEST_DATA/tf_graphs): every graph with known ops survives import and export
// unchanged.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "core/graph/graph_def.h"
#include "core/ops/declare_all.h"
#include "core/proto/parse.h"
#include "core/tensor/tensor_proto.h"
#include "tests/support/test_data.h"
#include "weir/proto/graph.pb.h"

namespace weir::graph {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Canonical(const std::string& input) {
  return input.ends_with(":0") ? input.substr(0, input.size() - 2) : input;
}

/// True if equal except for the encoding of tensors and the shape of old placeholders.
bool SameAttr(const tf::AttrValue& a, const tf::AttrValue& b) {
  if (a.has_tensor() && b.has_tensor()) {
    const Result<Tensor> x = TensorFromProto(a.tensor());
    const Result<Tensor> y = TensorFromProto(b.tensor());
    return x.ok() && y.ok() && x->SameBits(*y);
  }
  if (a.has_shape() && a.shape().dim_size() == 0 && b.has_shape() && b.shape().unknown_rank()) return true;
  return *proto::Serialize(a, "AttrValue") == *proto::Serialize(b, "AttrValue");
}

void ExpectSameNode(const tf::NodeDef& original, const tf::NodeDef& ours) {
  EXPECT_EQ(ours.op(), original.op());
  EXPECT_EQ(ours.device(), original.device());
  ASSERT_EQ(ours.input_size(), original.input_size()) << original.name();
  for (int i = 0; i < ours.input_size(); ++i) EXPECT_EQ(ours.input(i), Canonical(original.input(i)));
  for (const auto& [name, value] : original.attr()) {
    ASSERT_EQ(ours.attr().count(name), 1u) << original.name() << " " << name;
    EXPECT_TRUE(SameAttr(value, ours.attr().at(name))) << original.name() << " " << name;
  }
}

void ExpectSameGraph(const std::string& original_bytes, const std::string& bytes) {
  tf::GraphDef original;
  tf::GraphDef ours;
  ASSERT_TRUE(proto::ParseBinary(original_bytes, "GraphDef", original).ok());
  ASSERT_TRUE(proto::ParseBinary(bytes, "GraphDef", ours).ok());
  EXPECT_EQ(*proto::Serialize(ours.versions(), "VersionDef"), *proto::Serialize(original.versions(), "VersionDef"));
  EXPECT_EQ(*proto::Serialize(ours.library(), "library"), *proto::Serialize(original.library(), "library"));
  ASSERT_EQ(ours.node_size(), original.node_size());
  std::map<std::string, const tf::NodeDef*> by_name;
  for (const tf::NodeDef& node : ours.node()) by_name[node.name()] = &node;
  for (const tf::NodeDef& node : original.node()) {
    ASSERT_EQ(by_name.count(node.name()), 1u) << node.name();
    ExpectSameNode(node, *by_name[node.name()]);
  }
}

/// True for the error of a reference input that freezing turned into a constant, see the README of the graphs.
bool RefusedByTensorFlow(const Status& status) {
  return status.message().find(" incompatible with expected ") != std::string::npos &&
         status.message().ends_with("_ref.");
}

TEST(TfGraphs, ComeInAndGoOutUnchanged) {
  const std::filesystem::path data = weir::testing::TestData();
  if (data.empty()) GTEST_SKIP() << "WEIR_TEST_DATA is not set";
  const Result<const op::OpRegistry*> ops = ops::Catalogue();
  ASSERT_TRUE(ops.ok()) << ops.status().ToString();
  int imported = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data / "tf_graphs")) {
    if (entry.path().filename() != "frozen_model.pb") continue;
    SCOPED_TRACE(entry.path().string());
    const std::string bytes = ReadFile(entry.path());
    Result<Definition> graph = ParseGraph(bytes, **ops);
    if (!graph.ok() && graph.status().code() == Code::kNotFound) {
      graph = ParseGraph(bytes, **ops, {.allow_unknown_ops = true});
    } else {
      ++imported;
    }
    if (!graph.ok() && RefusedByTensorFlow(graph.status())) continue;
    ASSERT_TRUE(graph.ok()) << graph.status().ToString();
    const Result<std::string> written = ExportGraphDef(*graph);
    ASSERT_TRUE(written.ok()) << written.status().ToString();
    ExpectSameGraph(bytes, *written);
    const Result<Definition> again = ParseGraph(*written, **ops, {.allow_unknown_ops = true});
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(*ExportGraphDef(*again), *written);
    const std::string text = *ExportGraphDef(*graph, GraphFormat::kText);
    const Result<Definition> from_text = ParseGraph(text, **ops, {.allow_unknown_ops = true});
    ASSERT_TRUE(from_text.ok()) << from_text.status().ToString();
    EXPECT_EQ(*ExportGraphDef(*from_text), *written);
  }
  EXPECT_GE(imported, 560);  // graphs that use only ops of the catalogue
}

}  // namespace
}  // namespace weir::graph
