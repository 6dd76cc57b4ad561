// Descriptors: no binary message needs them, and text registers them all.
#include "core/proto/descriptors.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/proto/parse.h"
#include "weir/proto/graph.pb.h"

namespace weir::proto {
namespace {

TEST(Descriptors, TextRegistersWhatBinaryMessagesDoNotNeed) {
  const bool before = HasDescriptors();  // each test is a process of its own under ctest
  tf::GraphDef graph;
  graph.add_node()->set_name("n");
  const Result<std::string> bytes = Serialize(graph, "GraphDef");
  ASSERT_TRUE(bytes.ok());
  tf::GraphDef parsed;
  ASSERT_TRUE(ParseBinary(*bytes, "GraphDef", parsed).ok());
  EXPECT_EQ(HasDescriptors(), before);
  EXPECT_EQ(Print(parsed), "node {\n  name: \"n\"\n}\n");
  EXPECT_TRUE(HasDescriptors());
  // Also files that no message above comes from.
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  for (const char* type : {"weir.tf.NodeDef", "weir.tf.Event", "weir.tf.ConfigProto", "weir.tf.ClusterDef"}) {
    EXPECT_NE(pool->FindMessageTypeByName(type), nullptr) << type;
  }
}

TEST(Descriptors, ThreadsRegisterThemOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      tf::GraphDef graph;
      EXPECT_TRUE(ParseText("node { name: 'n' }", "GraphDef", graph).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(HasDescriptors());
}

}  // namespace
}  // namespace weir::proto
