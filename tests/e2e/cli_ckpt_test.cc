// `weir ckpt`: ls, show, stats, diff and verify.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

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
  // The index of m-1 with a larger "w", and with one more slice that lies inside another.
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

TEST_F(CliCkpt, PathsWithoutACheckpointAreErrors) {
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

TEST_F(CliCkpt, F329_ShowsValues) {
  for (const std::string& path : {dir_ / "m-2", dir_.path()}) {
    const Ended all = Weir({"ckpt", "show", path, "--json"});
    ASSERT_EQ(all.status, 0) << all.err;
    const Json answer = all.json();
    EXPECT_EQ(answer["prefix"], dir_ / "m-2") << "of a folder the newest";
    ASSERT_EQ(answer["tensors"].size(), 2u);
    EXPECT_EQ(answer["tensors"][0]["value"], "[1 2 3]");
    EXPECT_EQ(answer["tensors"][1]["dtype"], "float");
    EXPECT_EQ(answer["tensors"][1]["shape"], Json({3, 2}));
  }
  const Ended one = Weir({"ckpt", "show", dir_ / "m-2", "--tensor", "w"});
  EXPECT_EQ(one.out, "w (float) [3,2]\n[[1. 2.]\n [3. 4.]\n [5. 6.]]\n");
  const Ended none = Weir({"ckpt", "show", dir_ / "m-2", "--tensor", "x"});
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(none.first_error_line().starts_with("weir: NOT_FOUND: Key x not found in checkpoint")) << none.err;
}

TEST_F(CliCkpt, F329_CountsParametersAndMeasuresThem) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Result<io::BundleWriter> writer = io::BundleWriter::Create(dir_ / "odd");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Add("n", Tensor::Vector<double>({0, 2, 4, inf, nan})).ok());
  ASSERT_TRUE(writer->Add("t", Tensor::String("text")).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const Ended ended = Weir({"ckpt", "stats", dir_ / "odd", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json answer = ended.json();
  EXPECT_EQ(answer["elements"], 6);
  const Json n = answer["tensors"][0], t = answer["tensors"][1];
  EXPECT_EQ(n["min"], 0.0);
  EXPECT_EQ(n["max"], 4.0);
  EXPECT_EQ(n["mean"], 2.0);
  EXPECT_NEAR(n["deviation"].get<double>(), std::sqrt(8.0 / 3), 1e-12);
  EXPECT_EQ(n["nan"], 1);
  EXPECT_EQ(n["infinite"], 1);
  EXPECT_EQ(n["zero"], 1);
  EXPECT_TRUE(t["min"].is_null() && t["nan"].is_null()) << t;
  EXPECT_EQ(t["elements"], 1);
  const Ended text = Weir({"ckpt", "stats", dir_ / "m-2"});
  EXPECT_NE(text.out.find("9 elements in 2 tensors, 48 B"), std::string::npos) << text.out;
}

TEST_F(CliCkpt, F329_ComparesCheckpoints) {
  const Ended same = Weir({"ckpt", "diff", dir_ / "m-1", dir_ / "m-2", "--json"});
  ASSERT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.json()["equal"], true);
  Result<io::BundleWriter> writer = io::BundleWriter::Create(dir_ / "other");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Add("b", Tensor::Scalar<float>(1)).ok());
  ASSERT_TRUE(writer->Add("a", Tensor::Vector<int32_t>({1, 2, 3})).ok());
  ASSERT_TRUE(writer->Add("w", Tensor::Of<float>(Shape::Of({3, 2}), {1, 2, 3, 4.5, 5, 7})).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const Ended ended = Weir({"ckpt", "diff", dir_ / "m-1", dir_ / "other", "--json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(ended.first_error_line().starts_with("weir: FAILED_PRECONDITION: 3 of 3 tensors of ")) << ended.err;
  const Json tensors = ended.json()["tensors"];
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0]["reason"], "int64 [3] and int32 [3]");
  EXPECT_EQ(tensors[1]["state"], "only-second");
  EXPECT_EQ(tensors[2]["state"], "differs");
  EXPECT_EQ(tensors[2]["different_elements"], 2);
  EXPECT_EQ(tensors[2]["largest_difference"], 1.0);
  const Ended swapped = Weir({"ckpt", "diff", dir_ / "other", dir_ / "m-1", "--exclude", "^[aw]$"});
  EXPECT_NE(swapped.out.find("only-first"), std::string::npos) << swapped.out;
  EXPECT_EQ(Weir({"ckpt", "diff", dir_ / "m-1"}).status, 2) << "two are wanted";
}

TEST_F(CliCkpt, F329_LeavesOutExcludedTensors) {
  for (const char* command : {"ls", "show", "stats", "verify"}) {
    const Ended ended = Weir({"ckpt", command, dir_ / "m-2", "--exclude", "^a", "--json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    const Json answer = ended.json();
    const Json tensors = answer.contains("checkpoints") ? answer["checkpoints"][0]["tensors"] : answer["tensors"];
    ASSERT_EQ(tensors.size(), 1u) << command;
    EXPECT_EQ(tensors[0]["name"], "w");
  }
  Flip("m-2.data-00000-of-00001", 0);  // in "a"
  EXPECT_EQ(Weir({"ckpt", "verify", dir_ / "m-2"}).status, 1);
  EXPECT_EQ(Weir({"ckpt", "verify", dir_ / "m-2", "--exclude", "a"}).status, 0);
  const Ended wrong = Weir({"ckpt", "ls", dir_ / "m-2", "--exclude", "("});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("--exclude wants a regular expression, got '('"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace weir::testing
