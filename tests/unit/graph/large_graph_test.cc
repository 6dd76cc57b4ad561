// Constants beside the GraphDef.
#include "core/graph/large_graph.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/io/bundle.h"
#include "core/io/files.h"
#include "tests/unit/graph/test_ops.h"

namespace weir::graph {
namespace {

namespace fs = std::filesystem;

class LargeGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("large_graph_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "graph.pb").string();
    const Endpoint big = builder_.Const("big", Tensor::Vector<float>({1, 2, 3, 4, 5, 6, 7, 8}));
    builder_.Const("small", Tensor::Scalar<float>(2));
    builder_.Const("names", Tensor::Vector<std::string>({"a long enough text", "another long enough text"}));
    builder_.Op("AddV2", "sum", {big, builder_.Const("also", Tensor::Vector<float>({8, 7, 6, 5, 4, 3, 2, 1}))},
                {{"T", DType::kFloat}});
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<Definition> Read() const {
    Definition graph(TestOps());
    WEIR_TRY(ReadLargeGraph(path_, {}, graph));
    return graph;
  }
  void Write() const {
    const Status written = WriteLargeGraph(builder_.graph, path_, 32);
    ASSERT_TRUE(written.ok()) << written.ToString();
  }

  fs::path folder_;
  std::string path_;
  Builder builder_;
};

TEST_F(LargeGraphTest, F325_large_constants_lie_beside_the_graph) {
  Write();
  const Result<io::BundleReader> beside = io::BundleReader::Open(path_ + ".constants");
  ASSERT_TRUE(beside.ok()) << beside.status().ToString();
  ASSERT_EQ(beside->entries().size(), 2u) << "the scalar and the texts stay";
  EXPECT_EQ(beside->entries()[0].name, "also");
  EXPECT_TRUE(beside->Read("big")->SameBits(Tensor::Vector<float>({1, 2, 3, 4, 5, 6, 7, 8})));
  const Result<Definition> read = Read();
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*ExportGraphDef(*read), *ExportGraphDef(builder_.graph)) << "the graph is the same as from one file";
}

TEST_F(LargeGraphTest, F325_a_graph_of_small_constants_is_one_file) {
  ASSERT_TRUE(WriteLargeGraph(builder_.graph, path_).ok());
  EXPECT_FALSE(fs::exists(path_ + ".constants.index"));
  EXPECT_EQ(*io::ReadFile(path_, 1 << 20), *ExportGraphDef(builder_.graph));
  EXPECT_TRUE(Read().ok());
}

TEST_F(LargeGraphTest, F325_a_graph_without_its_constants_is_refused_by_name) {
  Write();
  Definition graph(TestOps());
  const Status alone = ImportGraphDef(*io::ReadFile(path_, 1 << 20), {}, graph);
  EXPECT_EQ(alone.code(), Code::kInvalidArgument);
  EXPECT_NE(alone.message().find("its value 'big' lies beside the graph"), std::string::npos) << alone.ToString();
  EXPECT_EQ(graph.num_nodes(), 0);
  fs::remove(path_ + ".constants.index");
  const Status missing = Read().status();
  EXPECT_EQ(missing.code(), Code::kNotFound) << missing.ToString();
  EXPECT_NE(missing.message().find("graph.pb.constants"), std::string::npos) << missing.ToString();
}

TEST_F(LargeGraphTest, F325_damage_beside_the_graph_is_found) {
  Write();
  {
    std::fstream data(io::DataPath(path_ + ".constants", 0, 1), std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(5);
    data.put('\x7f');
  }
  EXPECT_EQ(Read().status().code(), Code::kDataLoss) << Read().status().ToString();
  fs::resize_file(io::DataPath(path_ + ".constants", 0, 1), 3);
  EXPECT_EQ(Read().status().code(), Code::kDataLoss) << Read().status().ToString();
}

TEST_F(LargeGraphTest, F325_a_constant_of_another_type_is_refused) {
  Write();
  Result<io::BundleWriter> other = io::BundleWriter::Create(path_ + ".constants");
  ASSERT_TRUE(other.ok() && other->Add("big", Tensor::Vector<int32_t>({1})).ok());
  ASSERT_TRUE(other->Add("also", Tensor::Vector<float>({1})).ok() && other->Finish().ok());
  const Status mixed = Read().status();
  EXPECT_EQ(mixed.code(), Code::kInvalidArgument);
  EXPECT_NE(mixed.message().find("Type mismatch between value (int32) and dtype (float)"), std::string::npos)
      << mixed.ToString();
}

TEST_F(LargeGraphTest, F325_nodes_that_name_one_constant_share_its_memory) {
  Write();
  std::string text = "versions { producer: 134 }\n";
  for (const char* name : {"a", "b"}) {
    text +=
        std::string("node { name: '") + name +
        "' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: '_weir_beside' value { s: 'big' } "
        "} }\n";
  }
  ImportOptions options;
  options.constants = ConstantsBeside(path_);
  Definition graph(TestOps());
  const Status read = ImportGraphDef(text, options, graph);
  ASSERT_TRUE(read.ok()) << read.ToString();
  const Tensor* const a = graph.node(0).attrs().Find("value")->get<Tensor>();
  const Tensor* const b = graph.node(1).attrs().Find("value")->get<Tensor>();
  EXPECT_EQ(a->raw(), b->raw()) << "many nodes do not take more memory than the file";
  for (const char* extra : {"attr { key: 'value' value { i: 1 } }", "attr { key: '_weir_beside' value { i: 1 } }"}) {
    const std::string bad =
        std::string("node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } ") +
        "attr { key: '_weir_beside' value { s: 'big' } } " + extra + " }";
    EXPECT_FALSE(ImportGraphDef(bad, options, graph).ok()) << extra;
  }
  const std::string neg =
      "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: "
      "'_weir_beside' value { s: 'big' } } }";
  EXPECT_EQ(ImportGraphDef(neg, options, graph).code(), Code::kInvalidArgument) << "only constants have a value";
}

}  // namespace
}  // namespace weir::graph
