#include "core/graph/meta_graph.h"

#include <gtest/gtest.h>

#include "core/proto/parse.h"
#include "tests/unit/graph/test_ops.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/variable.pb.h"

namespace weir::graph {
namespace {

using Kind = CollectionItem::Kind;

std::string VariableBytes() {
  tf::VariableDef def;
  def.set_variable_name("v:0");
  def.set_initializer_name("v/Assign");
  return *proto::Serialize(def, "VariableDef");
}

/// A variable with collections of every kind.
Definition WithCollections() {
  Builder b;
  b.Op("VariableV2", "v", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Of({2})}});
  b.graph.collections()["train_op"] = {{Kind::kNode, "v"}, {Kind::kNode, "^v"}};
  b.graph.collections()["variables"] = {{Kind::kBytes, VariableBytes()}};
  b.graph.collections()["raw"] = {{Kind::kBytes, "\xff\x00"}};
  b.graph.collections()["steps"] = {{Kind::kInt, {}, 3}, {Kind::kInt, {}, -4}};
  b.graph.collections()["rates"] = {{Kind::kFloat, {}, 0, 0.5f}};
  b.graph.collections()["assets"] = {{Kind::kAny, ""}};
  b.graph.collections()["none"] = {};
  return std::move(b.graph);
}

MetaInfo Info() {
  MetaInfo info;
  info.version = "7";
  info.tags = {"serve"};
  info.saver = SaverNodes{"save/Const:0", "save/control_dependency:0", "save/restore_all", 3, true, 2};
  return info;
}

TEST(MetaGraph, EverythingComesBack) {
  for (const GraphFormat format : {GraphFormat::kBinary, GraphFormat::kText}) {
    const Result<std::string> bytes = ExportMetaGraph(WithCollections(), Info(), format);
    ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
    Definition graph(TestOps());
    const Result<MetaInfo> info = ImportMetaGraph(*bytes, {}, graph);
    ASSERT_TRUE(info.ok()) << info.status().ToString();
    EXPECT_EQ(info->version, "7");
    EXPECT_EQ(info->tags, std::vector<std::string>{"serve"});
    ASSERT_TRUE(info->saver.has_value());
    EXPECT_EQ(info->saver->save_tensor, "save/control_dependency:0");
    EXPECT_EQ(info->saver->max_to_keep, 3);
    EXPECT_TRUE(info->saver->sharded);
    EXPECT_EQ(*ExportMetaGraph(graph, *info), *ExportMetaGraph(WithCollections(), Info()));
    EXPECT_EQ(graph.collections().count("none"), 0u);
    EXPECT_EQ(graph.collections().at("steps")[1].number, -4);
    EXPECT_EQ(graph.collections().at("rates")[0].real, 0.5f);
  }
}

TEST(MetaGraph, CarriesTheOpsInUse) {
  tf::MetaGraphDef meta;
  ASSERT_TRUE(proto::ParseBinary(*ExportMetaGraph(WithCollections(), {}), "MetaGraphDef", meta).ok());
  ASSERT_EQ(meta.meta_info_def().stripped_op_list().op_size(), 1);
  const tf::OpDef& op = meta.meta_info_def().stripped_op_list().op(0);
  EXPECT_EQ(op.name(), "VariableV2");
  EXPECT_TRUE(op.is_stateful());
  EXPECT_TRUE(op.output_arg(0).is_ref());
  EXPECT_EQ(op.output_arg(0).type_attr(), "dtype");
  EXPECT_FALSE(meta.has_saver_def());
}

TEST(MetaGraph, PrefixReachesNames) {
  Definition graph(TestOps());
  const Result<MetaInfo> info = ImportMetaGraph(*ExportMetaGraph(WithCollections(), Info()), {.prefix = "p"}, graph);
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(graph.collections().at("train_op")[0].text, "p/v");
  EXPECT_EQ(graph.collections().at("train_op")[1].text, "^p/v");
  tf::VariableDef def;
  ASSERT_TRUE(proto::ParseBinary(graph.collections().at("variables")[0].text, "VariableDef", def).ok());
  EXPECT_EQ(def.variable_name(), "p/v:0");
  EXPECT_EQ(def.snapshot_name(), "");
  EXPECT_EQ(graph.collections().at("raw")[0].text, "\xff");
  EXPECT_EQ(info->saver->restore_op, "p/save/restore_all");
}

TEST(MetaGraph, ItemsGoAfterThoseThatAreThere) {
  Definition graph(TestOps());
  graph.collections()["steps"] = {{Kind::kInt, {}, 1}};
  ASSERT_TRUE(ImportMetaGraph(*ExportMetaGraph(WithCollections(), {}), {}, graph).ok());
  EXPECT_EQ(graph.collections().at("steps").size(), 3u);
}

TEST(MetaGraph, BadInput) {
  Definition mixed = WithCollections();
  mixed.collections()["steps"].push_back({Kind::kNode, "v"});
  EXPECT_EQ(ExportMetaGraph(mixed, {}).status().message(), "collection 'steps' has items of several kinds");

  Definition graph(TestOps());
  const std::string bytes = *ExportMetaGraph(WithCollections(), Info());
  EXPECT_EQ(ImportMetaGraph(bytes.substr(0, bytes.size() - 1), {}, graph).status().code(), Code::kInvalidArgument);
  tf::MetaGraphDef unknown;
  unknown.mutable_graph_def()->add_node()->set_name("n");
  unknown.mutable_graph_def()->mutable_node(0)->set_op("NoSuchOp");
  (*unknown.mutable_collection_def())["steps"].mutable_int64_list()->add_value(1);
  EXPECT_EQ(ImportMetaGraph(*proto::Serialize(unknown, "MetaGraphDef"), {}, graph).status().code(), Code::kNotFound);
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_TRUE(graph.collections().empty());
}

}  // namespace
}  // namespace weir::graph
