#include <fmt/format.h>

#include "core/proto/parse.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/proto/checkpoint.pb.h"
#include "weir/proto/graph.pb.h"

namespace weir::proto {
namespace {

tf::GraphDef SmallGraph() {
  tf::GraphDef def;
  for (const char* name : {"a", "b"}) {
    tf::NodeDef& node = *def.add_node();
    node.set_name(name);
    node.set_op("Const");
    (*node.mutable_attr())["dtype"].set_type(tf::DT_FLOAT);
    (*node.mutable_attr())["value"].mutable_tensor()->set_tensor_content("12345678");
  }
  def.mutable_versions()->set_producer(24);
  return def;
}

TEST(ParseBinary, ReadsSerializedMessages) {
  const tf::GraphDef def = SmallGraph();
  const Result<std::string> bytes = Serialize(def, "GraphDef");
  ASSERT_TRUE(bytes.ok());
  tf::GraphDef read;
  ASSERT_TRUE(ParseBinary(*bytes, "GraphDef", read).ok());
  EXPECT_EQ(read.node_size(), 2);
  EXPECT_EQ(*Serialize(read, "GraphDef"), *bytes);
}

TEST(ParseBinary, EveryCutGivesAStatusOrAShorterMessage) {
  const std::string bytes = *Serialize(SmallGraph(), "GraphDef");
  int errors = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    tf::GraphDef read;
    const Status status = ParseBinary(std::string_view(bytes).substr(0, length), "GraphDef", read);
    if (status.ok()) continue;
    ++errors;
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
  }
  // Only a cut between top-level fields leaves a valid message: at the start and after each node.
  EXPECT_EQ(errors, static_cast<int>(bytes.size()) - 3);
}

TEST(Serialize, StringsThatAreNotUtf8AreWrittenWithoutAWarning) {
  tf::GraphDef def;
  def.add_node()->set_op("a\xff");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Serialize(def, "GraphDef").ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ParseBinary, EndGroupTagAtTopLevelIsAnError) {
  tf::GraphDef read;
  EXPECT_EQ(ParseBinary(std::string("\x0c", 1), "GraphDef", read).code(), Code::kInvalidArgument);
}

/// A FullTypeDef nested `depth` times.
std::string NestedTypes(int depth) {
  std::string types;
  for (int i = 0; i < depth; ++i) {
    std::string outer = "\x12";  // field 2, a message
    size_t length = types.size();
    for (; length >= 0x80; length >>= 7) outer.push_back(static_cast<char>(length | 0x80));
    outer.push_back(static_cast<char>(length));
    types.insert(0, outer);
  }
  return types;
}

TEST(ParseBinary, NestingIsBounded) {
  tf::FullTypeDef type;
  EXPECT_TRUE(ParseBinary(NestedTypes(90), "FullTypeDef", type).ok());
  const Status status = ParseBinary(NestedTypes(3000), "FullTypeDef", type);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("nested deeper than 100"), std::string::npos) << status.message();
}

TEST(ParseBinary, WritesNothingToStderr) {
  tf::NodeDef node;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(ParseBinary("\x0a\x02\xff\xfe", "NodeDef", node).ok());  // not UTF-8
  EXPECT_FALSE(ParseText("name: 7", "NodeDef", node).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ParseText, ErrorsSayWhere) {
  tf::GraphDef def;
  const Status status = ParseText("node {\n  name: \"a\"\n  colour: 3\n}\n", "GraphDef", def);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("GraphDef text cannot be parsed: line 3, column "), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("colour"), std::string::npos) << status.message();
}

TEST(ParseText, NestingIsBounded) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "args {";
  text += std::string(3000, '}');
  tf::FullTypeDef type;
  EXPECT_EQ(ParseText(text, "FullTypeDef", type).code(), Code::kInvalidArgument);
}

TEST(LooksLikeText, TellsFormatsApart) {
  EXPECT_TRUE(LooksLikeText("node { name: 'a' }"));
  EXPECT_TRUE(LooksLikeText("\n\n  # a comment\nversions { producer: 1 }"));
  EXPECT_TRUE(LooksLikeText("model_checkpoint_path: \"m\u00e9\""));
  EXPECT_FALSE(LooksLikeText(""));
  EXPECT_FALSE(LooksLikeText(" \n "));
  EXPECT_FALSE(LooksLikeText("{ }"));
  EXPECT_FALSE(LooksLikeText(*Serialize(SmallGraph(), "GraphDef")));
  tf::GraphDef versions_only;
  versions_only.mutable_versions()->set_producer(134);
  EXPECT_FALSE(LooksLikeText(*Serialize(versions_only, "GraphDef")));
}

TEST(ParseEither, ReadsPrintedMessages) {
  const tf::GraphDef def = SmallGraph();
  tf::GraphDef from_text;
  ASSERT_TRUE(ParseEither(Print(def), "GraphDef", from_text).ok());
  EXPECT_EQ(*Serialize(from_text, "GraphDef"), *Serialize(def, "GraphDef"));
  tf::GraphDef from_binary;
  ASSERT_TRUE(ParseEither(*Serialize(def, "GraphDef"), "GraphDef", from_binary).ok());
  EXPECT_EQ(Print(from_binary), Print(def));
}

TEST(Serialize, MapsAreSorted) {
  tf::NodeDef forwards;
  tf::NodeDef backwards;
  for (int i = 0; i < 50; ++i) {
    (*forwards.mutable_attr())[std::to_string(i)].set_i(i);
    (*backwards.mutable_attr())[std::to_string(49 - i)].set_i(49 - i);
  }
  EXPECT_EQ(*Serialize(forwards, "NodeDef"), *Serialize(backwards, "NodeDef"));
}

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

TEST(Messages, KnownBytes) {
  tf::BundleHeaderProto header;
  header.set_num_shards(1);
  header.mutable_version()->set_producer(1);
  EXPECT_EQ(Hex(*Serialize(header, "header")), "08011a020801");
  tf::BundleEntryProto entry;
  entry.set_dtype(tf::DT_FLOAT);
  entry.mutable_shape()->add_dim()->set_size(2);
  entry.set_size(8);
  entry.set_crc32c(0x35e53c59);
  EXPECT_EQ(Hex(*Serialize(entry, "entry")), "0801120412020802280835593ce535");
}

}  // namespace
}  // namespace weir::proto
