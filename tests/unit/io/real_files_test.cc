// Files written by TensorFlow, in the folder $WEIR_TEST_DATA; skipped without it.
#include <nlohmann/json.hpp>

#include "core/io/bundle.h"
#include "core/io/event_file.h"
#include "core/io/record_file.h"
#include "tests/unit/io/temp_dir.h"

namespace weir::io {
namespace {

class RealFiles : public TempDir {
 protected:
  void SetUp() override {
    TempDir::SetUp();
    const char* root = std::getenv("WEIR_TEST_DATA");
    if (root == nullptr || !std::filesystem::is_directory(root)) GTEST_SKIP() << "WEIR_TEST_DATA names no folder";
    root_ = root;
  }
  nlohmann::json Index(const std::string& folder) {
    return nlohmann::json::parse(Slurp((root_ / folder / "index.json").string()));
  }

  std::filesystem::path root_;
};

TEST_F(RealFiles, ListedCheckpointsMatchTheirIndex) {
  int checkpoints = 0;
  for (const auto& file : Index("ckpt")) {
    const std::string name = file["file"];
    if (!name.starts_with("v2/") || !file.contains("tensors")) continue;
    const std::string path = (root_ / "ckpt" / name).string();
    const Result<BundleReader> reader = BundleReader::Open(path.substr(0, path.size() - std::string(".index").size()));
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    EXPECT_EQ(reader->num_shards(), file["shards"]);
    ASSERT_EQ(reader->entries().size(), file["tensors"].size()) << name;
    for (const auto& tensor : file["tensors"]) {
      const BundleEntry* entry = reader->Find(tensor["name"].get<std::string>());
      ASSERT_NE(entry, nullptr) << tensor;
      EXPECT_EQ(NumpyName(entry->dtype), tensor["dtype"]);
      EXPECT_EQ(std::vector<int64_t>(entry->shape.dims().begin(), entry->shape.dims().end()),
                tensor["shape"].get<std::vector<int64_t>>());
      EXPECT_EQ(entry->offset, tensor["offset"].get<uint64_t>());
      EXPECT_EQ(entry->size, tensor["size"].get<uint64_t>());
    }
    WEIR_EXPECT_OK(reader->Verify());
    ++checkpoints;
  }
  EXPECT_EQ(checkpoints, 8);
}

TEST_F(RealFiles, EveryBundleOfTheFolderIsReadAndWrittenAgain) {
  int bundles = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(root_)) {
    if (file.path().extension() != ".index") continue;
    std::string prefix = file.path().string();
    prefix.resize(prefix.size() - 6);
    const Result<BundleReader> reader = BundleReader::Open(prefix);
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    WEIR_EXPECT_OK(reader->Verify());
    Result<BundleWriter> writer = BundleWriter::Create(Path("again"));
    ASSERT_TRUE(writer.ok());
    // Written in the order of the data file, so that the copy is equal byte by byte.
    std::vector<BundleEntry> entries = reader->entries();
    std::sort(entries.begin(), entries.end(), [](const BundleEntry& a, const BundleEntry& b) {
      return std::tie(a.offset, a.size) < std::tie(b.offset, b.size);
    });
    for (const BundleEntry& entry : entries) {
      const Result<Tensor> tensor = reader->Read(entry.name);
      ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
      WEIR_ASSERT_OK(writer->Add(entry.name, *tensor));
    }
    WEIR_ASSERT_OK(writer->Finish());
    const Result<BundleReader> again = BundleReader::Open(Path("again"));
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(again->entries().size(), entries.size());
    for (const BundleEntry& entry : entries) {
      EXPECT_EQ(again->Find(entry.name)->masked_crc, entry.masked_crc) << entry.name;
      EXPECT_TRUE(again->Read(entry.name)->SameBits(*reader->Read(entry.name))) << entry.name;
    }
    if (reader->num_shards() == 1) {
      EXPECT_EQ(Slurp(DataPath(Path("again"), 0, 1)), Slurp(DataPath(prefix, 0, 1))) << prefix;
    }
    ++bundles;
  }
  EXPECT_GE(bundles, 20);
}

TEST_F(RealFiles, EventFilesMatchTheirIndex) {
  for (const auto& file : Index("events")) {
    Result<EventReader> reader = EventReader::Open((root_ / "events" / file["file"].get<std::string>()).string());
    ASSERT_TRUE(reader.ok());
    int64_t records = 0, max_step = 0;
    std::map<std::string, int64_t> kinds, tags;
    for (;; ++records) {
      const Result<std::optional<Event>> next = reader->Next();
      ASSERT_TRUE(next.ok()) << next.status().ToString();
      if (!next->has_value()) break;
      const Event& event = **next;
      max_step = std::max(max_step, event.step);
      if (!event.file_version.empty()) {
        EXPECT_EQ(event.file_version, file["file_version"]);
        ++kinds["file_version"];
      }
      if (!event.graph_def.empty()) ++kinds["graph_def"];
      if (!event.meta_graph_def.empty()) ++kinds["meta_graph_def"];
      for (const SummaryValue& value : event.summary) {
        EXPECT_EQ(value.kind, SummaryKind::kScalar);
        ++kinds["simple_value"];
        ++tags[value.tag];
      }
    }
    EXPECT_EQ(reader->damaged(), 0);
    EXPECT_EQ(records, file["records"]);
    EXPECT_EQ(max_step, file["max_step"]);
    EXPECT_EQ(kinds, (file["kinds"].get<std::map<std::string, int64_t>>()));
    EXPECT_EQ(tags, (file["tags"].get<std::map<std::string, int64_t>>()));
  }
}

TEST_F(RealFiles, RecordFilesComeOutByteForByte) {
  for (const auto& file : Index("tfrecord")) {
    const std::string path = (root_ / "tfrecord" / file["file"].get<std::string>()).string();
    Result<RecordReader> reader = RecordReader::Open(path);
    Result<RecordWriter> writer = RecordWriter::Create(Path("again"));
    ASSERT_TRUE(reader.ok() && writer.ok());
    int64_t records = 0;
    for (;; ++records) {
      const Result<std::optional<std::string>> record = reader->Next();
      ASSERT_TRUE(record.ok()) << record.status().ToString();
      if (!record->has_value()) break;
      WEIR_ASSERT_OK(writer->Append(**record));
    }
    WEIR_ASSERT_OK(writer->Close());
    EXPECT_EQ(records, file["records"]);
    EXPECT_EQ(Slurp(Path("again")), Slurp(path)) << path;
  }
}

}  // namespace
}  // namespace weir::io
