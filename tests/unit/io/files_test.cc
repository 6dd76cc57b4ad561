#include <fmt/format.h>

#include "core/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <thread>

#include "core/io/crc32c.h"
#include "core/io/file_bytes.h"
#include "core/io/record_file.h"
#include "tests/unit/io/temp_dir.h"

namespace weir::io {
namespace {

class Files : public TempDir {};
class Records : public TempDir {};

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(MaskCrc(Crc32c("123456789")), 0xc78ab0e5u);
  EXPECT_EQ(MaskCrc(Crc32c("")), 0xa282ead8u);
  EXPECT_EQ(UnmaskCrc(0xc78ab0e5u), 0xe3069283u);
}

TEST(Crc32c, TablesAndInstructionAgreeAtEveryLengthAndAlignment) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; start + length <= bytes.size(); ++length) {
      const std::string_view part = std::string_view(bytes).substr(start, length);
      ASSERT_EQ(ExtendCrc32c(0x12345678, part), ExtendCrc32cPortable(0x12345678, part)) << start << " " << length;
    }
  }
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), 0xe3069283u);
}

// Around the lengths from which ranges are summed side by side, and in pieces.
TEST(Crc32c, TablesAndInstructionAgreeOnLongRanges) {
  std::string bytes(3 * 4096 * 2 + 3 * 256 * 2 + 64, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (const size_t step : {size_t{3 * 256}, size_t{3 * 4096}}) {
    for (size_t length = step; length + 16 <= bytes.size(); length += step) {
      for (size_t more = 0; more < 18; ++more) {
        const std::string_view part = std::string_view(bytes).substr(more % 3, length + more - 9);
        ASSERT_EQ(ExtendCrc32c(0x12345678, part), ExtendCrc32cPortable(0x12345678, part)) << length << " " << more;
      }
    }
  }
  const uint32_t whole = Crc32c(bytes);
  for (size_t cut = 0; cut < bytes.size(); cut += 1021) {
    const std::string_view all = bytes;
    ASSERT_EQ(ExtendCrc32c(Crc32c(all.substr(0, cut)), all.substr(cut)), whole) << cut;
  }
}

// A small file is copied, a large one mapped; the bytes live as long as their owner.
TEST_F(Files, FileBytesAreThoseOfTheFile) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{64 << 10}, size_t{200001}}) {
    std::string contents(size, '\0');
    for (size_t i = 0; i < size; ++i) contents[i] = static_cast<char>(i * 31 + i / 256);
    Write(Path("file"), contents);
    std::shared_ptr<const void> owner;
    std::string_view bytes;
    {
      const Result<FileBytes> file = FileBytes::Open(Path("file"), 1 << 20);
      ASSERT_TRUE(file.ok()) << file.status().ToString();
      owner = file->owner();
      bytes = file->bytes();
    }
    // A file that takes the name is another one.
    WEIR_EXPECT_OK(WriteFileAtomically(Path("file"), "new"));
    EXPECT_TRUE(bytes == contents) << size;
  }
  WEIR_EXPECT_ERROR(FileBytes::Open(Path("none"), 10).status(), Code::kNotFound, Path("none"));
  Write(Path("large"), std::string(100000, 'x'));
  WEIR_EXPECT_ERROR(FileBytes::Open(Path("large"), 99999).status(), Code::kResourceExhausted, "99999");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(Path("pipe")) << std::string(100000, 'y'); });
  const Result<FileBytes> pipe = FileBytes::Open(Path("pipe"), 1 << 20);
  writer.join();
  ASSERT_TRUE(pipe.ok()) << pipe.status().ToString();
  EXPECT_TRUE(pipe->bytes() == std::string(100000, 'y'));
}

TEST(Paths, JoinAndSplit) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(DirName("a/b/c"), "a/b");
  EXPECT_EQ(DirName("/c"), "/");
  EXPECT_EQ(DirName("c"), "");
  EXPECT_EQ(BaseName("a/b/c"), "c");
  EXPECT_EQ(BaseName("c"), "c");
}

TEST_F(Files, ErrorsNameThePathAndTheCause) {
  WEIR_EXPECT_ERROR(ReadFile(Path("none"), 10).status(), Code::kNotFound, Path("none") + "; No such file or directory");
  WEIR_EXPECT_ERROR(ReadFile(dir_, 10).status(), Code::kFailedPrecondition, dir_);
  WEIR_EXPECT_ERROR(InputFile::Open(dir_).status(), Code::kFailedPrecondition, dir_);
  WEIR_EXPECT_ERROR(OutputFile::Create(Path("none/file")).status(), Code::kNotFound, Path("none/file"));
  WEIR_EXPECT_ERROR(MakeDirectory(Path("a/b")), Code::kNotFound, Path("a/b"));
  Write(Path("file"), "x");
  WEIR_EXPECT_ERROR(MakeDirectory(Path("file")), Code::kFailedPrecondition, "Not a directory");
  WEIR_EXPECT_ERROR(OutputFile::Create(Path("file"), IfExists::kFail).status(), Code::kAlreadyExists, Path("file"));
}

TEST_F(Files, ReadsNoMoreThanTheLimit) {
  Write(Path("file"), "0123456789");
  const Result<std::string> all = ReadFile(Path("file"), 10);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, "0123456789");
  WEIR_EXPECT_ERROR(ReadFile(Path("file"), 9).status(), Code::kResourceExhausted, "limit of 9 bytes");
  WEIR_EXPECT_ERROR(ReadFile("/dev/zero", 1 << 20).status(), Code::kResourceExhausted, "/dev/zero");
}

TEST_F(Files, InputFileChecksRangesAgainstItsSize) {
  Write(Path("file"), "0123456789");
  const Result<InputFile> file = InputFile::Open(Path("file"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->ReadAt(3, 4), "3456");
  EXPECT_EQ(*file->ReadAt(10, 0), "");
  WEIR_EXPECT_ERROR(file->ReadAt(3, 8).status(), Code::kDataLoss, "offset 3");
  WEIR_EXPECT_ERROR(file->ReadAt(UINT64_MAX, 2).status(), Code::kDataLoss, "has 10");
  WEIR_EXPECT_ERROR(file->ReadAt(1, UINT64_MAX).status(), Code::kDataLoss, "has 10");
}

TEST_F(Files, AtomicWriteReplacesAndLeavesNoTemporary) {
  WEIR_ASSERT_OK(WriteFileAtomically(Path("file"), "old"));
  WEIR_ASSERT_OK(WriteFileAtomically(Path("file"), "new"));
  EXPECT_EQ(Slurp(Path("file")), "new");
  EXPECT_EQ(Names(), std::vector<std::string>{"file"});
}

TEST_F(Files, AtomicWriteKeepsLinksAndSpecialFiles) {
  namespace fs = std::filesystem;
  fs::create_directory(Path("dir"));
  Write(Path("dir/real"), "old");
  fs::create_symlink("dir/real", Path("link"));
  fs::create_symlink(Path("link"), Path("link to link"));
  WEIR_ASSERT_OK(WriteFileAtomically(Path("link to link"), "new"));
  EXPECT_TRUE(fs::is_symlink(Path("link")) && fs::is_symlink(Path("link to link")));
  EXPECT_EQ(Slurp(Path("dir/real")), "new");
  fs::create_symlink("dir/later", Path("dangling"));
  WEIR_ASSERT_OK(WriteFileAtomically(Path("dangling"), "there"));
  EXPECT_EQ(Slurp(Path("dir/later")), "there");

  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  WEIR_EXPECT_OK(WriteFileAtomically(Path("pipe"), "through"));
  char got[16] = {};
  EXPECT_EQ(read(reader, got, sizeof(got)), 7);
  EXPECT_STREQ(got, "through");
  WEIR_EXPECT_OK(WriteFileAtomically(fmt::format("/proc/self/fd/{}", reader), "again"));
  EXPECT_EQ(read(reader, got, sizeof(got)), 5);
  close(reader);
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
}

TEST_F(Files, AtomicWriteNamesThePathThatItWasGiven) {
  const auto fault = [](const std::string& path) { return WriteFileAtomically(path, "x").message(); };
  EXPECT_EQ(fault(Path("no/file")), Path("no/file") + "; No such file or directory");
  EXPECT_EQ(fault(Path("")), Path("") + "; Is a directory");
  std::filesystem::create_symlink("loop", Path("loop"));
  EXPECT_EQ(fault(Path("loop")), Path("loop") + "; Too many levels of symbolic links");
}

TEST_F(Files, AFullDeviceIsAnErrorThatStays) {
  Result<OutputFile> file = OutputFile::Create("/dev/full");
  ASSERT_TRUE(file.ok());
  WEIR_EXPECT_OK(file->Append("buffered"));
  WEIR_EXPECT_ERROR(file->Flush(), Code::kResourceExhausted, "/dev/full; No space left on device");
  WEIR_EXPECT_ERROR(file->Append("more"), Code::kResourceExhausted, "/dev/full");
  WEIR_EXPECT_ERROR(file->Close(), Code::kResourceExhausted, "/dev/full");
}

TEST_F(Files, DirectoriesAreMadeListedAndRemoved) {
  WEIR_ASSERT_OK(MakeDirectories(Path("a/b/c")));
  WEIR_ASSERT_OK(MakeDirectories(Path("a/b/c")));
  Write(Path("a/b/2"), "");
  Write(Path("a/b/1"), "");
  EXPECT_EQ(*ListDirectory(Path("a/b")), (std::vector<std::string>{"1", "2", "c"}));
  WEIR_EXPECT_ERROR(RemoveEmptyDirectory(Path("a/b")), Code::kFailedPrecondition, Path("a/b"));
  WEIR_EXPECT_OK(RemoveEmptyDirectory(Path("a/b/c")));
  WEIR_EXPECT_OK(RemoveEmptyDirectory(Path("a/b/c")));
  WEIR_EXPECT_OK(RemoveFile(Path("a/b/1")));
  WEIR_EXPECT_OK(RemoveFile(Path("a/b/1")));
}

TEST(RecordFrame, Golden) { EXPECT_EQ(ToHex(FrameRecord("hello")), "0500000000000000eab2043e68656c6c6fbb1f1c19"); }

TEST_F(Records, RoundTripOfAllSizes) {
  std::vector<std::string> payloads = {"", "a", std::string(300000, 'x'), std::string("\0\1\2", 3), "end"};
  for (size_t i = 0; i < 5000; ++i) payloads.push_back(std::string(i % 97, static_cast<char>(i)));
  Result<RecordWriter> writer = RecordWriter::Create(Path("records"));
  ASSERT_TRUE(writer.ok());
  for (const std::string& payload : payloads) WEIR_ASSERT_OK(writer->Append(payload));
  const uint64_t size = writer->size();
  WEIR_ASSERT_OK(writer->Close());
  EXPECT_EQ(std::filesystem::file_size(Path("records")), size);
  Result<RecordReader> reader = RecordReader::Open(Path("records"));
  ASSERT_TRUE(reader.ok());
  for (const std::string& payload : payloads) {
    const auto record = reader->Next();
    ASSERT_TRUE(record.ok()) << record.status().ToString();
    ASSERT_TRUE(record->has_value());
    ASSERT_EQ(**record, payload);
  }
  EXPECT_FALSE(reader->Next()->has_value());
}

// The result of reading a damaged file: the payloads before the first error or the end, and that error.
struct Outcome {
  size_t payloads = 0;
  Status status;
};

Outcome ReadAll(const std::string& path) {
  Outcome outcome;
  Result<RecordReader> reader = RecordReader::Open(path);
  EXPECT_TRUE(reader.ok());
  for (;;) {
    const auto record = reader->Next();
    outcome.status = record.status();
    if (!record.ok() || !record->has_value()) return outcome;
    ++outcome.payloads;
  }
}

TEST_F(Records, EveryTruncationIsAnEndOrDataLoss) {
  const std::string file = FrameRecord("hello") + FrameRecord("world");
  for (size_t length = 0; length < file.size(); ++length) {
    Write(Path("cut"), std::string_view(file).substr(0, length));
    const Outcome outcome = ReadAll(Path("cut"));
    EXPECT_EQ(outcome.payloads, length < 21 ? 0u : 1u) << length;
    const size_t behind = length % 21;
    if (behind < kRecordHeaderBytes) {
      WEIR_EXPECT_OK(outcome.status);
    } else {
      WEIR_EXPECT_ERROR(outcome.status, Code::kDataLoss, fmt::format("truncated record at {}", length < 21 ? 0 : 21));
    }
  }
}

TEST_F(Records, EveryFlippedBitIsNoticed) {
  const std::string file = FrameRecord("hello") + FrameRecord("world");
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string bad = file;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    Write(Path("bad"), bad);
    const Outcome outcome = ReadAll(Path("bad"));
    EXPECT_EQ(outcome.payloads, bit / 8 < 21 ? 0u : 1u) << bit;
    WEIR_EXPECT_ERROR(outcome.status, Code::kDataLoss, "corrupted record at");
  }
}

TEST_F(Records, AHugeLengthWithARightChecksumAllocatesNothing) {
  std::string length(8, '\0');
  length[7] = '\x80';
  const uint32_t crc = MaskCrc(Crc32c(length));
  Write(Path("huge"), length + std::string(reinterpret_cast<const char*>(&crc), 4) + "data");
  WEIR_EXPECT_ERROR(ReadAll(Path("huge")).status, Code::kDataLoss, "truncated record at 0");
}

TEST_F(Records, ReadingGoesOnBehindADamagedPayload) {
  std::string file = FrameRecord("hello") + FrameRecord("world");
  file[13] ^= 1;
  Write(Path("bad"), file);
  Result<RecordReader> reader = RecordReader::Open(Path("bad"));
  ASSERT_TRUE(reader.ok());
  WEIR_EXPECT_ERROR(reader->Next().status(), Code::kDataLoss, "corrupted record at 12");
  const auto second = reader->Next();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->value(), "world");
}

}  // namespace
}  // namespace weir::io
