#include "core/io/bundle.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <complex>
#include <csignal>
#include <thread>

#include "core/io/bundle_format.h"
#include "core/io/coding.h"
#include "core/io/sweep.h"
#include "core/io/table_file.h"
#include "tests/unit/io/temp_dir.h"

namespace weir::io {
namespace {

class Bundle : public TempDir {
 protected:
  void Save(const std::string& prefix, const std::map<std::string, Tensor>& tensors) {
    Result<BundleWriter> writer = BundleWriter::Create(prefix);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    for (const auto& [name, tensor] : tensors) WEIR_ASSERT_OK(writer->Add(name, tensor));
    WEIR_ASSERT_OK(writer->Finish());
  }
  BundleReader Open(const std::string& prefix) {
    Result<BundleReader> reader = BundleReader::Open(prefix);
    EXPECT_TRUE(reader.ok()) << reader.status().ToString();
    return reader.ok() ? *reader : BundleReader();
  }
  /// Opens a checkpoint and reads every tensor; returns the first error.
  Status ReadAll(const std::string& prefix) {
    WEIR_ASSIGN(const BundleReader reader, BundleReader::Open(prefix));
    for (const BundleEntry& entry : reader.entries()) WEIR_TRY(reader.Read(entry.name).status());
    return reader.Verify();
  }
};

Tensor Floats(std::vector<float> values) { return Tensor::Vector(values); }

/// A tensor of the shape with elements 0, 1, 2, … in row-major order.
Tensor Iota(std::initializer_list<int64_t> dims) {
  const Shape shape = Shape::Of(dims);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::Of(shape, values);
}

TEST_F(Bundle, F240_GoldenFiles) {
  Save(Path("golden"), {{"w", Floats({1, 2})}});
  EXPECT_EQ(ToHex(Slurp(Path("golden.data-00000-of-00001"))), "0000803f00000040");
  EXPECT_EQ(ToHex(Slurp(Path("golden.index"))),
            "00000608011a02080100010f770801120412020802280835593ce5350000000001000000000921adc3000000000100000000"
            "c0f2a1b0000102780024000000000100000000ab30707f2908360e00000000000000000000000000000000000000000000000000"
            "000000000000000000000057fb808b247547db");
  EXPECT_EQ(Names(), (std::vector<std::string>{"golden.data-00000-of-00001", "golden.index"}));
}

TEST_F(Bundle, StringTensorGolden) {
  Save(Path("s"), {{"s", Tensor::Vector<std::string>({"ab", "c"})}});
  EXPECT_EQ(ToHex(Slurp(Path("s.data-00000-of-00001"))), "020103717c67616263");
  const BundleReader reader = Open(Path("s"));
  ASSERT_NE(reader.Find("s"), nullptr);
  EXPECT_EQ(reader.Find("s")->masked_crc, 0x5fd830d5u);
  EXPECT_TRUE(reader.Read("s")->SameBits(Tensor::Vector<std::string>({"ab", "c"})));
}

TEST_F(Bundle, EveryTypeAndOddShapesRoundTrip) {
  std::map<std::string, Tensor> tensors;
  const Shape shape = Shape::Of({2, 3});
  for (uint32_t number = 1; number <= 32; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (SizeOf(dtype) == 0) continue;
    Result<Tensor> tensor = Tensor::Make(dtype, shape);
    ASSERT_TRUE(tensor.ok()) << Name(dtype);
    for (size_t i = 0; i < tensor->bytes(); ++i) {
      tensor->mutable_raw()[i] = dtype == DType::kBool ? std::byte(i % 2) : std::byte(i * 29 + number);
    }
    tensors["type/" + Name(dtype)] = *tensor;
  }
  ASSERT_GE(tensors.size(), 20u);
  tensors["scalar"] = Tensor::Scalar(3.5);
  tensors["empty"] = *Tensor::Make(DType::kFloat, Shape::Of({0, 4}));
  tensors["no strings"] = *Tensor::Make(DType::kString, Shape::Of({0}));
  tensors["strings"] =
      Tensor::Of<std::string>(Shape::Of({2, 2}), {"", std::string(100000, 'x'), std::string("\0", 1), "é"});
  Save(Path("all"), tensors);
  const BundleReader reader = Open(Path("all"));
  EXPECT_EQ(reader.entries().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const Result<Tensor> read = reader.Read(name);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(read->SameBits(tensor)) << name;
  }
  WEIR_EXPECT_OK(reader.Verify());
}

TEST_F(Bundle, ReaderErrorsAreTensorFlowsTexts) {
  WEIR_EXPECT_ERROR(
      BundleReader::Open(Path("none")).status(), Code::kNotFound,
      "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + Path("none"));
  Save(Path("m"), {{"weights", Floats({1})}, {"bias", Floats({2})}});
  const BundleReader reader = Open(Path("m"));
  WEIR_EXPECT_ERROR(reader.Read("weight").status(), Code::kNotFound, "Key weight not found in checkpoint");
  WEIR_EXPECT_ERROR(reader.Read("weight").status(), Code::kNotFound, "'weights'");
  WEIR_EXPECT_ERROR(BundleReader::Open(Path("m.index")).status(), Code::kNotFound, "m.index.index");
}

TEST_F(Bundle, WriterRefusesBadNamesAndValues) {
  Result<BundleWriter> writer = BundleWriter::Create(Path("m"));
  ASSERT_TRUE(writer.ok());
  WEIR_EXPECT_ERROR(writer->Add("", Floats({1})), Code::kInvalidArgument, "empty");
  WEIR_EXPECT_ERROR(writer->Add(std::string_view("\0x", 2), Floats({1})), Code::kInvalidArgument, "NUL");
  WEIR_EXPECT_OK(writer->Add("w", Floats({1})));
  WEIR_EXPECT_ERROR(writer->Add("w", Floats({1})), Code::kInvalidArgument, "Adding duplicate key: w");
  WEIR_EXPECT_ERROR(writer->Add("u", Tensor()), Code::kInvalidArgument, "'u'");
  WEIR_EXPECT_ERROR(writer->Add("r", *Tensor::Make(DType::kResource, Shape())), Code::kUnimplemented, "resource");
}

TEST_F(Bundle, F238_OneMissingFolderIsMadeTwoAreNot) {
  Save(Path("test-ckpt/model-2"), {{"w", Floats({1})}});
  WEIR_EXPECT_OK(ReadAll(Path("test-ckpt/model-2")));
  WEIR_EXPECT_ERROR(BundleWriter::Create(Path("a/b/model")).status(), Code::kNotFound, Path("a/b"));
}

TEST_F(Bundle, AnUnfinishedWriterLeavesNothing) {
  {
    Result<BundleWriter> writer = BundleWriter::Create(Path("m"));
    ASSERT_TRUE(writer.ok());
    WEIR_EXPECT_OK(writer->Add("w", Floats({1})));
    BundleWriter moved = std::move(*writer);
    EXPECT_EQ(Names().size(), 1u);
  }
  EXPECT_TRUE(Names().empty());
}

TEST_F(Bundle, WhenTheDiskIsFullTheOldCheckpointStays) {
  Save(Path("m"), {{"w", Floats({1, 2, 3})}});
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status;
  {
    Result<BundleWriter> writer = BundleWriter::Create(Path("m"));
    ASSERT_TRUE(writer.ok());
    status = writer->Add("w", Iota({100000}));
    if (status.ok()) status = writer->Finish();
  }
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  WEIR_EXPECT_ERROR(status, Code::kResourceExhausted, Path("m.data-00000-of-00001"));
  EXPECT_EQ(Names(), (std::vector<std::string>{"m.data-00000-of-00001", "m.index"}));
  EXPECT_TRUE(Open(Path("m")).Read("w")->SameBits(Floats({1, 2, 3})));
}

TEST_F(Bundle, F370_SlicesOfPartitionedTensorsJoin) {
  const Shape full = Shape::Of({4, 2});
  Result<BundleWriter> writer = BundleWriter::Create(Path("p"));
  ASSERT_TRUE(writer.ok());
  WEIR_ASSERT_OK(writer->AddSlice("s/w", full, {{0, 2}, {0, 2}}, Tensor::Of<float>(Shape::Of({2, 2}), {0, 1, 2, 3})));
  WEIR_ASSERT_OK(writer->AddSlice("s/w", full, {{2, 1}, {0, 2}}, Tensor::Of<float>(Shape::Of({1, 2}), {4, 5})));
  WEIR_ASSERT_OK(writer->AddSlice("s/w", full, {{3, 1}, {}}, Tensor::Of<float>(Shape::Of({1, 2}), {6, 7})));
  WEIR_ASSERT_OK(writer->AddSlice("whole", full, {{0, 4}, {}}, Iota({4, 2})));
  WEIR_EXPECT_ERROR(writer->AddSlice("s/w", full, {{3, 1}, {}}, Iota({1, 2})), Code::kInvalidArgument, "duplicate");
  WEIR_EXPECT_ERROR(writer->AddSlice("s/w", Shape::Of({5, 2}), {{4, 1}, {}}, Iota({1, 2})), Code::kInvalidArgument,
                    "disagree");
  WEIR_EXPECT_ERROR(writer->AddSlice("x", full, {{3, 2}, {}}, Iota({2, 2})), Code::kInvalidArgument, "does not fit");
  WEIR_EXPECT_ERROR(writer->AddSlice("x", full, {{3, 1}, {}}, Iota({2, 2})), Code::kInvalidArgument, "has shape [1,2]");
  WEIR_ASSERT_OK(writer->Finish());
  const BundleReader reader = Open(Path("p"));
  ASSERT_EQ(reader.entries().size(), 2u);
  EXPECT_EQ(reader.entries()[0].name, "s/w");
  EXPECT_EQ(reader.entries()[0].shape, full);
  EXPECT_EQ(reader.entries()[0].slices.size(), 3u);
  EXPECT_TRUE(reader.entries()[1].slices.empty());
  EXPECT_TRUE(reader.Read("s/w")->SameBits(Iota({4, 2})));
  const Result<Tensor> column = reader.ReadSlice("s/w", {{1, 3}, {1, 1}});
  ASSERT_TRUE(column.ok()) << column.status().ToString();
  EXPECT_TRUE(column->SameBits(Tensor::Of<float>(Shape::Of({3, 1}), {3, 5, 7})));
  EXPECT_TRUE(reader.ReadSlice("whole", {{1, 2}, {}})->SameBits(Tensor::Of<float>(Shape::Of({2, 2}), {2, 3, 4, 5})));
  WEIR_EXPECT_ERROR(reader.ReadSlice("whole", {{1, 4}, {}}).status(), Code::kInvalidArgument, "tensor_name = whole");
  WEIR_EXPECT_OK(reader.Verify());
}

TEST_F(Bundle, MissingSlicesAreNamed) {
  Result<BundleWriter> writer = BundleWriter::Create(Path("p"));
  ASSERT_TRUE(writer.ok());
  WEIR_ASSERT_OK(writer->AddSlice("w", Shape::Of({4}), {{1, 2}}, Floats({1, 2})));
  WEIR_ASSERT_OK(writer->AddSlice("far", Shape::Of({int64_t{1} << 40}), {{1, 2}}, Floats({1, 2})));
  WEIR_ASSERT_OK(writer->Finish());
  const BundleReader reader = Open(Path("p"));
  WEIR_EXPECT_ERROR(reader.Read("w").status(), Code::kInvalidArgument,
                    "Does not have sufficient slices for partitioned tensor w to restore in slice_spec: -");
  WEIR_EXPECT_ERROR(reader.Read("far").status(), Code::kInvalidArgument, "sufficient slices");
  WEIR_EXPECT_ERROR(reader.ReadSlice("w", {{0, 2}}).status(), Code::kInvalidArgument, "slice_spec: 0,2");
  EXPECT_TRUE(reader.ReadSlice("w", {{2, 1}})->SameBits(Floats({2})));
}

/// Writes the index of a checkpoint with a single tensor "w" of that shape, in one data file, sliced as given.
class CutBundle : public Bundle {
 protected:
  void Cut(const Shape& full, const std::vector<TensorSlice>& slices) {
    std::map<std::string, BundleEntry> entries;
    BundleEntry whole{.name = "w", .dtype = DType::kFloat, .shape = full, .slices = slices};
    std::map<std::string, Tensor> tensors;
    for (const TensorSlice& slice : slices) {
      const Shape shape = *ShapeOf(*Resolve(slice, full));
      tensors[SliceKey("w", slice).substr(1)] = Iota(shape.dims());
    }
    Save(Path("m"), tensors);
    const BundleReader reader = Open(Path("m"));
    for (const BundleEntry& entry : reader.entries()) entries['\0' + entry.name] = entry;
    entries["w"] = whole;
    Write(Path("m.index"), *EncodeIndex({}, entries));
  }
  Tensor Iota(std::span<const int64_t> dims) {
    const Shape shape = Shape::Of(dims);
    return Tensor::Of(shape, std::vector<float>(static_cast<size_t>(shape.elements()), 1.0f));
  }
};

TEST_F(CutBundle, OverlappingSlicesAreRefusedInTensorFlowsWords) {
  const std::string said = "Overlapping slices: existing slice = 0,4, new slice = 1,2";
  Cut(Shape::Of({4}), {{{0, 4}}, {{1, 2}}});
  const BundleReader reader = Open(Path("m"));
  WEIR_EXPECT_ERROR(reader.Read("w").status(), Code::kDataLoss, said);
  WEIR_EXPECT_ERROR(reader.ReadSlice("w", {{0, 1}}).status(), Code::kDataLoss, said);
  WEIR_EXPECT_ERROR(reader.Verify(), Code::kDataLoss, said);
  WEIR_EXPECT_ERROR(reader.Verify(), Code::kDataLoss, Path("m.index") + ": tensor 'w'");
  Cut(Shape::Of({4, 4}), {{{0, 2}, {0, 2}}, {{2, 2}, {}}, {{0, 2}, {2, 2}}, {{1, 1}, {3, 1}}});
  WEIR_EXPECT_ERROR(Open(Path("m")).Verify(), Code::kDataLoss, "existing slice = 0,2:2,2, new slice = 1,1:3,1");

  Result<BundleWriter> writer = BundleWriter::Create(Path("n"));
  ASSERT_TRUE(writer.ok());
  WEIR_ASSERT_OK(writer->AddSlice("w", Shape::Of({4}), {{0, 4}}, Floats({1, 2, 3, 4})));
  WEIR_ASSERT_OK(writer->AddSlice("v", Shape::Of({4}), {{0, 3}}, Floats({1, 2, 3})));
  WEIR_ASSERT_OK(writer->AddSlice("v", Shape::Of({4}), {{2, 2}}, Floats({1, 2})));
  WEIR_EXPECT_ERROR(writer->Finish(), Code::kInvalidArgument, "existing slice = 0,3, new slice = 2,2");
  EXPECT_FALSE(FileExists(Path("n.index")));
}

TEST_F(CutBundle, VerifyFindsGaps) {
  Cut(Shape::Of({4}), {{{0, 1}}, {{2, 2}}});
  WEIR_EXPECT_ERROR(Open(Path("m")).Verify(), Code::kDataLoss, "its slices leave out 1 of 4 elements: 1,1");
  Cut(Shape::Of({4, 4}), {{{0, 2}, {}}, {{2, 2}, {1, 2}}});
  WEIR_EXPECT_ERROR(Open(Path("m")).Verify(), Code::kDataLoss, "4 of 16 elements: 2,2:0,1, 2,2:3,1");
  Cut(Shape::Of({4, 4}), {{{0, 2}, {}}, {{2, 2}, {0, 3}}, {{2, 2}, {3, 1}}});
  WEIR_EXPECT_OK(Open(Path("m")).Verify());
}

TEST_F(Bundle, AReaderKeepsItsFilesDuringAnOverwrite) {
  Save(Path("m"), {{"w", Floats({1, 2})}});
  const BundleReader reader = Open(Path("m"));
  Save(Path("m"), {{"w", Floats({3, 4, 5})}});
  EXPECT_TRUE(reader.Read("w")->SameBits(Floats({1, 2})));
  EXPECT_TRUE(Open(Path("m")).Read("w")->SameBits(Floats({3, 4, 5})));
  WEIR_ASSERT_OK(RemoveCheckpoint(Path("m")));
  WEIR_EXPECT_OK(reader.Verify());
}

TEST_F(Bundle, ReadersAndSweepersDoNotDisturbSaves) {
  std::atomic<bool> done = false;
  std::string wrong;
  Save(Path("m"), {{"w", Floats({0})}});
  std::thread other([&] {
    for (float last = 0; !done;) {
      SweepFolder(dir_);
      const Result<BundleReader> reader = BundleReader::Open(Path("m"));
      const Result<Tensor> value = reader.ok() ? reader->Read("w") : reader.status();
      if (!value.ok()) wrong = value.status().ToString();
      if (value.ok() && value->as<float>()[0] < last) wrong = "an older checkpoint came back";
      if (value.ok()) last = value->as<float>()[0];
    }
  });
  for (int i = 1; i <= 100; ++i) Save(Path("m"), {{"w", Floats({static_cast<float>(i)})}});
  done = true;
  other.join();
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(Names(), (std::vector<std::string>{"m.data-00000-of-00001", "m.index"}));
}

TEST_F(Bundle, SweepingRemovesOnlyUnlockedFiles) {
  namespace fs = std::filesystem;
  using List = std::vector<std::string>;
  const std::string digits(32, 'a'), mark = std::string(kTemporaryMark) + "0123456789abcdef";
  for (const std::string& name : List{"old.tempstate123", "young.tempstate123", "mine" + mark, "mine.index" + mark,
                                      "mine.data-00000-of-00001", "m.tempstate", "m.tempstate-weir-x", "notes"}) {
    Write(Path(name), "x");
  }
  const List folders = {"old_temp_" + digits, "young_temp_" + digits, "user_temp_" + digits, "run_temp_2"};
  for (const std::string& name : folders) fs::create_directory(Path(name));
  const List parts = {folders[0] + "/part-00000-of-00001.index", folders[1] + "/part-0", folders[2] + "/thesis.tex",
                      folders[3] + "/part-0"};
  for (const std::string& name : parts) Write(Path(name), "x");
  for (const List& list :
       {List{"old.tempstate123", "m.tempstate", "notes"}, parts, List{folders[0], folders[2], folders[3]}}) {
    for (const std::string& name : list) {
      fs::last_write_time(Path(name), fs::file_time_type::clock::now() - std::chrono::hours(2));
    }
  }
  Result<OutputFile> live = OutputFile::Create(TemporaryName(Path("live")), IfExists::kFailAndLock);
  ASSERT_TRUE(live.ok());
  EXPECT_EQ(SweepFolder(dir_).size(), 6u);
  List left = {BaseName(live->path()), "m.tempstate", "m.tempstate-weir-x", "notes",
               "young.tempstate123",   folders[1],    folders[2],           folders[3]};
  std::ranges::sort(left);
  EXPECT_EQ(Names(), left);
  EXPECT_TRUE(SweepFolder(Path("none")).empty());
}

TEST_F(Bundle, RankThreeSlicesOfStrings) {
  std::vector<std::string> texts;
  for (int i = 0; i < 24; ++i) texts.push_back(std::to_string(i));
  Save(Path("s"), {{"t", Tensor::Of(Shape::Of({2, 3, 4}), texts)}});
  const Result<Tensor> part = Open(Path("s")).ReadSlice("t", {{1, 1}, {0, 2}, {1, 2}});
  ASSERT_TRUE(part.ok()) << part.status().ToString();
  EXPECT_TRUE(part->SameBits(Tensor::Of<std::string>(Shape::Of({1, 2, 2}), {"13", "14", "17", "18"})));
}

TEST_F(Bundle, MergeMakesOneCheckpointOfShards) {
  Save(Path("m_temp_1/part-00000-of-00002"), {{"a", Floats({1})}, {"c", Floats({3})}});
  Result<BundleWriter> writer = BundleWriter::Create(Path("m_temp_1/part-00001-of-00002"));
  ASSERT_TRUE(writer.ok());
  WEIR_ASSERT_OK(writer->Add("b", Floats({2})));
  WEIR_ASSERT_OK(writer->AddSlice("p", Shape::Of({2}), {{0, 1}}, Floats({5})));
  WEIR_ASSERT_OK(writer->Finish());
  Result<BundleWriter> third = BundleWriter::Create(Path("m_temp_2/part-00002"));
  ASSERT_TRUE(third.ok());
  WEIR_ASSERT_OK(third->AddSlice("p", Shape::Of({2}), {{1, 1}}, Floats({6})));
  WEIR_ASSERT_OK(third->Finish());
  WEIR_ASSERT_OK(MergeBundles(
      {Path("m_temp_1/part-00000-of-00002"), Path("m_temp_1/part-00001-of-00002"), Path("m_temp_2/part-00002")},
      Path("m")));
  EXPECT_EQ(Names(), (std::vector<std::string>{"m.data-00000-of-00003", "m.data-00001-of-00003",
                                               "m.data-00002-of-00003", "m.index"}));
  const BundleReader reader = Open(Path("m"));
  EXPECT_EQ(reader.num_shards(), 3);
  EXPECT_TRUE(reader.Read("a")->SameBits(Floats({1})));
  EXPECT_TRUE(reader.Read("b")->SameBits(Floats({2})));
  EXPECT_TRUE(reader.Read("c")->SameBits(Floats({3})));
  EXPECT_TRUE(reader.Read("p")->SameBits(Floats({5, 6})));
}

TEST_F(Bundle, MergeErrorsChangeNothing) {
  Save(Path("t/one"), {{"a", Floats({1})}});
  Save(Path("t/two"), {{"a", Floats({2})}});
  WEIR_EXPECT_ERROR(MergeBundles({Path("t/one"), Path("t/two")}, Path("m")), Code::kInvalidArgument,
                    "Duplicate tensor keyed by a encountered, when merging prefix: " + Path("t/two"));
  WEIR_EXPECT_ERROR(MergeBundles({Path("t/one"), Path("t/none")}, Path("m")), Code::kNotFound, Path("t/none"));
  WEIR_EXPECT_ERROR(MergeBundles({Path("t/one")}, Path("t/one")), Code::kInvalidArgument, "into itself");
  WEIR_EXPECT_ERROR(MergeBundles({}, Path("m")), Code::kInvalidArgument, "no checkpoint");
  WEIR_EXPECT_OK(ReadAll(Path("t/one")));
  WEIR_EXPECT_OK(ReadAll(Path("t/two")));
  WEIR_EXPECT_OK(MergeBundles({Path("t/one"), Path("t/none")}, Path("m"), {.allow_missing_files = true}));
  WEIR_EXPECT_OK(ReadAll(Path("m")));
  EXPECT_TRUE(FileExists(Path("t/two.index")));
}

TEST_F(Bundle, RemoveTakesExactlyTheFilesOfThePrefix) {
  Save(Path("m-1"), {{"w", Floats({1})}});
  Save(Path("m-10"), {{"w", Floats({1})}});
  Write(Path("m-1.meta"), "");
  Write(Path("m-1.data-note"), "");
  WEIR_EXPECT_OK(RemoveCheckpoint(Path("m-1")));
  WEIR_EXPECT_OK(RemoveCheckpoint(Path("m-1")));
  EXPECT_EQ(Names(), (std::vector<std::string>{"m-1.data-note", "m-10.data-00000-of-00001", "m-10.index"}));
}

TEST_F(Bundle, BigEndianIsSwapped) {
  std::map<std::string, BundleEntry> entries;
  Save(Path("b"), {{"i", Tensor::Vector<int32_t>({1, 258})}, {"z", *Tensor::Make(DType::kComplex64, Shape())}});
  const BundleReader reader = Open(Path("b"));
  for (const BundleEntry& entry : reader.entries()) entries[entry.name] = entry;
  Write(Path("b.index"), *EncodeIndex({1, true}, entries));
  EXPECT_TRUE(Open(Path("b")).Read("i")->SameBits(Tensor::Vector<int32_t>({1 << 24, 0x02010000})));
  EXPECT_TRUE(Open(Path("b")).Read("z").ok());
}

// --- damage ----------------------------------------------------------------------------------------------------------

TEST_F(Bundle, B33_EveryDamagedIndexIsRefused) {
  Save(Path("m"), {{"w", Floats({1, 2})}, {"s", Tensor::Vector<std::string>({"ab", "c"})}});
  const std::string good = Slurp(Path("m.index"));
  const auto expect_refused = [&](std::string_view bytes, size_t where) {
    Write(Path("m.index"), bytes);
    EXPECT_EQ(ReadAll(Path("m")).code(), Code::kDataLoss) << where;
  };
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    expect_refused(bad, at);
    expect_refused(good.substr(0, at), at);
  }
}

TEST_F(Bundle, B33_EveryDamagedDataFileIsRefused) {
  Save(Path("m"), {{"w", Floats({1, 2})}, {"s", Tensor::Vector<std::string>({"ab", "c"})}});
  const std::string path = Path("m.data-00000-of-00001");
  const std::string good = Slurp(path);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    Write(path, bad);
    WEIR_EXPECT_ERROR(ReadAll(Path("m")), Code::kDataLoss, path);
  }
  for (size_t length = 0; length < good.size(); ++length) {
    Write(path, good.substr(0, length));
    WEIR_EXPECT_ERROR(ReadAll(Path("m")), Code::kDataLoss, path);
  }
  WEIR_ASSERT_OK(RemoveFile(path));
  WEIR_EXPECT_ERROR(ReadAll(Path("m")), Code::kNotFound, path);
}

uint64_t PeakKilobytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss);
}

TEST_F(Bundle, B33_LyingEntriesWithRightChecksumsAreRefusedBeforeAllocating) {
  struct Case {
    const char* what;
    std::function<void(BundleEntry&)> lie;
  };
  const Case cases[] = {
      {"extent 2^40", [](BundleEntry& e) { e.shape = Shape::Of({int64_t{1} << 40}); }},
      {"extent and size 2^42",
       [](BundleEntry& e) {
         e.shape = Shape::Of({int64_t{1} << 40});
         e.size = uint64_t{1} << 42;
       }},
      {"shard 10^9", [](BundleEntry& e) { e.shard = 1000000000; }},
      {"negative shard", [](BundleEntry& e) { e.shard = -1; }},
      {"offset past the end", [](BundleEntry& e) { e.offset = 1000; }},
      {"offset near 2^63", [](BundleEntry& e) { e.offset = INT64_MAX; }},
      {"offset negative", [](BundleEntry& e) { e.offset = uint64_t{1} << 63; }},
      {"size one less", [](BundleEntry& e) { e.size -= 1; }},
      {"size one more", [](BundleEntry& e) { e.size += 1; }},
      {"another checksum", [](BundleEntry& e) { e.masked_crc += 1; }},
      {"type string", [](BundleEntry& e) { e.dtype = DType::kString; }},
      {"2^40 strings",
       [](BundleEntry& e) {
         e.dtype = DType::kString;
         e.shape = Shape::Of({int64_t{1} << 40});
       }},
      {"a reference type", [](BundleEntry& e) { e.dtype = RefType(DType::kFloat); }},
      {"no type", [](BundleEntry& e) { e.dtype = DType::kInvalid; }},
      {"a slice that does not fit",
       [](BundleEntry& e) {
         e.slices = {{{1, 5}}};
       }},
      {"a slice without entry",
       [](BundleEntry& e) {
         e.slices = {{{0, 1}}};
       }},
  };
  Save(Path("m"), {{"w", Floats({1, 2})}});
  const BundleEntry honest = *Open(Path("m")).Find("w");
  const uint64_t before = PeakKilobytes();
  for (const Case& each : cases) {
    BundleEntry entry = honest;
    each.lie(entry);
    Write(Path("m.index"), *EncodeIndex({}, {{"w", entry}}));
    const Status status = ReadAll(Path("m"));
    EXPECT_EQ(status.code(), Code::kDataLoss) << each.what << ": " << status.ToString();
    EXPECT_FALSE(status.message().empty()) << each.what;
  }
  EXPECT_LT(PeakKilobytes() - before, 64u << 10);
}

TEST_F(Bundle, OverlappingSlicesCannotInflateATensor) {
  // Two slices that claim the same bytes of the data file.
  Save(Path("m"), {{"w", Iota({4})}});
  BundleEntry part = *Open(Path("m")).Find("w");
  std::map<std::string, BundleEntry> entries;
  BundleEntry whole = part;
  whole.shape = Shape::Of({int64_t{1} << 30, 4});
  for (int64_t i = 0; i < 2000; ++i) {
    const TensorSlice slice = {{i, 1}, {}};
    whole.slices.push_back(slice);
    part.shape = Shape::Of({1, 4});
    entries[SliceKey("w", slice)] = part;
  }
  entries["w"] = whole;
  Write(Path("m.index"), *EncodeIndex({}, entries));
  const uint64_t before = PeakKilobytes();
  WEIR_EXPECT_ERROR(ReadAll(Path("m")), Code::kInvalidArgument, "sufficient slices");
  EXPECT_LT(PeakKilobytes() - before, 64u << 10);
}

TEST_F(Bundle, BadHeadersAreRefused) {
  Save(Path("m"), {{"w", Floats({1})}});
  const auto with_header = [&](std::string_view header) {
    TableBuilder table;
    WEIR_EXPECT_OK(table.Add("", header));
    Write(Path("m.index"), table.Finish());
    return ReadAll(Path("m"));
  };
  WEIR_EXPECT_ERROR(with_header(""), Code::kDataLoss, "0 shards");
  WEIR_EXPECT_ERROR(with_header("\xff"), Code::kDataLoss, "BundleHeaderProto");
  WEIR_EXPECT_ERROR(with_header(FromHex("08011a0408011002")), Code::kFailedPrecondition, "version 2");
  Write(Path("m.index"), TableBuilder().Finish());
  WEIR_EXPECT_ERROR(ReadAll(Path("m")), Code::kDataLoss, "no header");
}

TEST(TensorSlices, KeysAreTensorFlows) {
  EXPECT_EQ(ToHex(SliceKey("w", {{0, 5}, {}})), "0077000101028085807f");
  EXPECT_EQ(ToHex(SliceKey("w", {{100, 300}, {}})), "007700010102c064c12c807f");
  const auto signed_bytes = [](int64_t value) {
    const std::string key = SliceKey("", {{value, 0}});
    return ToHex(std::string_view(key).substr(5, key.size() - 6));
  };
  const std::pair<int64_t, const char*> values[] = {
      {0, "80"},   {1, "81"},     {-1, "7f"},     {63, "bf"},       {64, "c040"},
      {-64, "40"}, {-65, "3fbf"}, {8191, "dfff"}, {8192, "e02000"}, {1048576, "f0100000"}};
  for (const auto& [value, hex] : values) EXPECT_EQ(signed_bytes(value), hex) << value;
  EXPECT_EQ(ToHex(SliceKey(std::string_view("a\0\xff", 3), {})), "006100ffff00000100");
}

TEST(TensorSlices, TextsAreParsed) {
  const Result<ShapeAndSlice> parsed = ParseShapeAndSlice("10 20 0,5:-");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->full, Shape::Of({10, 20}));
  EXPECT_EQ(ToString(parsed->slice), "0,5:-");
  for (const char* bad :
       {"10", "x -", "10 20 -", "10 -:-", "10 0,11", "10 5,-1", "10 ,", "10 0,5,", "-1 -", "10  -",
        "9223372036854775807 9223372036854775807 -:-", "10 9223372036854775807,9223372036854775807"}) {
    WEIR_EXPECT_ERROR(ParseShapeAndSlice(bad).status(), Code::kInvalidArgument, bad);
  }
}

}  // namespace
}  // namespace weir::io
