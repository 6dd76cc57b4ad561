// `weir ckpt ls` and `weir ckpt verify`.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/io/bundle.h"
#include "core/io/bundle_format.h"
#include "core/io/checkpoint_state.h"
#include "core/io/table_file.h"
#include "tests/e2e/cli_process.h"

namespace weir::testing {
namespace {

using Json = nlohmann::json;

/// A folder with checkpoints of a whole tensor "a" and a partitioned one "w".
class CliCkpt : public ::testing::Test {
 protected:
  void Save(const std::string& name) {
    Result<io::BundleWriter> writer = io::BundleWriter::Create(dir_ / name);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    const Shape full = Shape::Of({3, 2});
    ASSERT_TRUE(writer->Add("a", Tensor::Vector<int64_t>({1, 2, 3})).ok());
    ASSERT_TRUE(writer->AddSlice("w", full, {{0, 2}, {}}, Tensor::Of<float>(Shape::Of({2, 2}), {1, 2, 3, 4})).ok());
    ASSERT_TRUE(writer->AddSlice("w", full, {{2, 1}, {}}, Tensor::Of<float>(Shape::Of({1, 2}), {5, 6})).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  void SetUp() override {
    Save("m-1");
    Save("m-2");
    ASSERT_TRUE(io::WriteCheckpointState(dir_.path(), {dir_ / "m-2", {dir_ / "m-1", dir_ / "m-2"}, {}, 0}).ok());
  }
  void Flip(const std::string& name, std::streamoff at) {
    std::fstream file(dir_ / name, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file.put('\x7f');
  }

  ScratchFolder dir_;
};

TEST_F(CliCkpt, F329_ListsTheTensorsOfACheckpoint) {
  const Ended ended = Weir({"ckpt", "ls", dir_ / "m-2", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json answer = ended.json();
  EXPECT_EQ(answer["schema"], 1);
  ASSERT_EQ(answer["checkpoints"].size(), 1u);
  const Json checkpoint = answer["checkpoints"][0];
  EXPECT_EQ(checkpoint["prefix"], dir_ / "m-2");
  EXPECT_EQ(checkpoint["data_files"], 1);
  EXPECT_EQ(checkpoint["bytes"], 48);
  EXPECT_FALSE(checkpoint.contains("verdict"));
  EXPECT_EQ(checkpoint["tensors"], Json::parse(R"([{"name":"a","dtype":"int64","shape":[3],"bytes":24,
                             "parts":[{"slice":null,"shard":0,"offset":0,"bytes":24}]},
                            {"name":"w","dtype":"float","shape":[3,2],"bytes":24,
                             "parts":[{"slice":"0,2:-","shard":0,"offset":24,"bytes":16},
                                      {"slice":"2,1:-","shard":0,"offset":40,"bytes":8}]}])"));
  const Ended text = Weir({"ckpt", "ls", dir_ / "m-2.index"});
  EXPECT_EQ(text.status, 0);
  for (const char* part : {"a ", "int64", "[3,2]", "0,2:-", "40", "2 tensors, 48 B in 1 data file"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  }
}

TEST_F(CliCkpt, ListsTheCheckpointsOfAFolder) {
  Save("other");
  dir_.Write("m-3.index.tempstate-weir-0123456789abcdef", "");
  const Ended ended = Weir({"ckpt", "ls", dir_.path(), "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json answer = ended.json();
  ASSERT_EQ(answer["checkpoints"].size(), 3u);
  EXPECT_EQ(answer["checkpoints"][0]["prefix"], dir_ / "other");
  EXPECT_EQ(answer["checkpoints"][0]["kept"], false);
  EXPECT_EQ(answer["checkpoints"][1]["step"], 2);
  EXPECT_EQ(answer["checkpoints"][1]["newest"], true);
  EXPECT_EQ(answer["checkpoints"][2]["newest"], false);
  EXPECT_EQ(answer["checkpoints"][2]["kept"], true);
  EXPECT_EQ(answer["state"]["error"], "");
  EXPECT_EQ(answer["temporary_files"].size(), 1u);
  const Ended text = Weir({"ckpt", "ls", dir_.path()});
  EXPECT_NE(text.out.find("newest"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("temporary file of a saver"), std::string::npos) << text.out;
}

TEST_F(CliCkpt, VerifyFindsDamageAndSaysWhere) {
  const Ended good = Weir({"ckpt", "verify", dir_ / "m-1", "--json"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_EQ(good.json()["checkpoints"][0]["verdict"], "ok");
  Flip("m-2.data-00000-of-00001", 41);
  const Ended bad = Weir({"ckpt", "verify", dir_ / "m-2", "--json"});
  EXPECT_EQ(bad.status, 1);
  EXPECT_TRUE(bad.first_error_line().starts_with("weir: DATA_LOSS: " + (dir_ / "m-2.data-00000-of-00001") + ": "))
      << bad.err;
  EXPECT_NE(bad.err.find("at offset 40: Checksum does not match"), std::string::npos) << bad.err;
  const Json tensors = bad.json()["checkpoints"][0]["tensors"];
  EXPECT_EQ(tensors[0]["verdict"], "ok");
  EXPECT_EQ(tensors[1]["verdict"], "damaged");
  EXPECT_EQ(tensors[1]["code"], "DATA_LOSS");
  EXPECT_EQ(bad.json()["error"]["code"], "DATA_LOSS");
  const Ended folder = Weir({"ckpt", "verify", dir_.path()});
  EXPECT_EQ(folder.status, 1);
  EXPECT_NE(folder.first_error_line().find("1 of 2 checkpoints in '" + dir_.path() + "' cannot be restored whole"),
            std::string::npos)
      << folder.err;
  EXPECT_NE(folder.out.find("damaged"), std::string::npos) << folder.out;
  EXPECT_NE(folder.out.find("ok"), std::string::npos) << folder.out;
}

TEST_F(CliCkpt, VerifyFindsMissingFilesGapsAndOverlaps) {
  std::filesystem::remove(dir_ / "m-2.data-00000-of-00001");
  EXPECT_TRUE(Weir({"ckpt", "verify", dir_ / "m-2"}).first_error_line().starts_with("weir: NOT_FOUND: "));
  // The index of m-1 with "w" larger, and with one more part that lies in another.
  const auto recut = [&](const Shape& full, const io::TensorSlice& more) {
    const Result<io::BundleReader> reader = io::BundleReader::Open(dir_ / "m-1");
    ASSERT_TRUE(reader.ok());
    std::map<std::string, io::BundleEntry> entries;
    io::BundleEntry whole = *reader->Find("w");
    for (const io::BundleEntry& part : reader->StoredParts(whole)) {
      io::BundleEntry stored = part;
      stored.slices.clear();
      entries[io::SliceKey("w", part.slices[0])] = stored;
    }
    if (!more.empty()) {
      whole.slices.push_back(more);
      entries[io::SliceKey("w", more)] = entries[io::SliceKey("w", whole.slices[1])];
    }
    whole.shape = full;
    entries["w"] = whole;
    std::ofstream(dir_ / "cut.index", std::ios::binary) << *io::EncodeIndex({}, entries);
    std::filesystem::copy_file(dir_ / "m-1.data-00000-of-00001", dir_ / "cut.data-00000-of-00001",
                               std::filesystem::copy_options::overwrite_existing);
  };
  recut(Shape::Of({5, 2}), {});
  const Ended gap = Weir({"ckpt", "verify", dir_ / "cut", "--json"});
  EXPECT_EQ(gap.status, 1);
  EXPECT_EQ(gap.json()["checkpoints"][0]["tensors"][0]["gaps"], Json::parse(R"(["3,2:0,2"])")) << gap.out;
  recut(Shape::Of({3, 2}), {{1, 1}, {}});
  const Ended overlap = Weir({"ckpt", "verify", dir_ / "cut", "--json"});
  EXPECT_EQ(overlap.status, 1);
  EXPECT_NE(overlap.err.find("Overlapping slices: existing slice = 0,2:-, new slice = 1,1:-"), std::string::npos)
      << overlap.err;
  EXPECT_EQ(overlap.json()["checkpoints"][0]["tensors"][0]["overlaps"], Json::parse(R"([["0,2:0,2","1,1:0,2"]])"));
}

TEST_F(CliCkpt, WhatIsNoCheckpointIsAnError) {
  const Ended none = Weir({"ckpt", "ls", dir_ / "none"});
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(none.first_error_line().starts_with("weir: NOT_FOUND: ")) << none.err;
  std::filesystem::create_directory(dir_ / "empty");
  const Ended empty = Weir({"ckpt", "verify", dir_ / "empty"});
  EXPECT_EQ(empty.status, 1);
  EXPECT_NE(empty.err.find("no file there ends with .index"), std::string::npos) << empty.err;
  dir_.Write("bad.index", "no table");
  EXPECT_TRUE(Weir({"ckpt", "ls", dir_ / "bad"}).first_error_line().starts_with("weir: DATA_LOSS: "));
  EXPECT_EQ(Weir({"ckpt", "ls", dir_.path()}).status, 0);
  EXPECT_EQ(Weir({"ckpt"}).status, 2);
  EXPECT_EQ(Weir({"ckpt", "ls"}).status, 2);
}

}  // namespace
}  // namespace weir::testing
