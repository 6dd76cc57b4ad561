// Readers of files. Keys, values, counts and texts are those of TensorFlow 2.17.1.
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/io/crc32c.h"
#include "core/io/record_file.h"
#include "tests/unit/builtin/calls.h"

namespace weir::builtin {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string Compressed(const std::string& bytes, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
constexpr int kZlib = 15, kGzip = 31;

class Readers : public Calls {
 protected:
  void SetUp() override {
    Calls::SetUp();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("readers-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string File(const std::string& name, const std::string& bytes) {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string RecordFile(const std::string& name, int window_bits = 0) {
    std::string bytes;
    for (const char* record : {"r0", "record1", ""}) bytes += io::FrameRecord(record);
    return File(name, window_bits == 0 ? bytes : Compressed(bytes, window_bits));
  }

  Tensor Queue(const std::vector<std::string>& names, bool close = true) {
    const Tensor queue = One("FIFOQueueV2", {},
                             {{"component_types", std::vector<DType>{DType::kString}},
                              {"shapes", std::vector<PartialShape>{PartialShape(Shape())}},
                              {"shared_name", "q" + std::to_string(queues_++)}});
    if (!names.empty()) Put(queue, names);
    if (close) {
      EXPECT_TRUE(Call("QueueCloseV2", {queue}).ok());
    }
    return queue;
  }
  void Put(const Tensor& queue, const std::vector<std::string>& names) {
    EXPECT_TRUE(Call("QueueEnqueueManyV2", {queue, Tensor::Vector(names)},
                     {{"Tcomponents", std::vector<DType>{DType::kString}}})
                    .ok());
  }
  Tensor Make(const std::string& op, op::AttrList attrs = {}) {
    attrs.emplace_back("shared_name", "r" + std::to_string(readers_++));
    return One(op, {}, std::move(attrs));
  }
  Tensor Fixed(int64_t record, int64_t header, int64_t footer, int64_t hop = 0, const std::string& encoding = {}) {
    return Make("FixedLengthRecordReaderV2", {{"record_bytes", record},
                                              {"header_bytes", header},
                                              {"footer_bytes", footer},
                                              {"hop_bytes", hop},
                                              {"encoding", encoding}});
  }

  /// All records; the file names of keys without the folder. `last` is the error that follows.
  Pairs All(const Tensor& reader, const Tensor& queue, Status* last = nullptr) {
    Pairs records;
    for (;;) {
      const Result<std::vector<Tensor>> read = Call("ReaderReadV2", {reader, queue});
      if (!read.ok()) {
        if (last != nullptr) *last = read.status();
        EXPECT_TRUE(last != nullptr || read.status().code() == Code::kOutOfRange) << read.status().ToString();
        return records;
      }
      records.emplace_back(Short((*read)[0].as<std::string>()[0]), (*read)[1].as<std::string>()[0]);
    }
  }
  std::vector<std::string> UpTo(const Tensor& reader, const Tensor& queue, int64_t count) {
    const Result<std::vector<Tensor>> read =
        Call("ReaderReadUpToV2", {reader, queue, Tensor::Scalar(count)});
    if (!read.ok()) return {read.status().ToString()};
    std::vector<std::string> keys;
    for (const std::string& key : (*read)[0].as<std::string>()) keys.push_back(Short(key));
    EXPECT_EQ((*read)[1].elements(), (*read)[0].elements());
    return keys;
  }
  std::string Short(const std::string& key) const {
    const std::string folder = folder_.string() + "/";
    return key.starts_with(folder) ? key.substr(folder.size()) : key;
  }
  /// Records produced, units completed.
  std::pair<int64_t, int64_t> Counts(const Tensor& reader) {
    return {One("ReaderNumRecordsProducedV2", {reader}).as<int64_t>()[0],
            One("ReaderNumWorkUnitsCompletedV2", {reader}).as<int64_t>()[0]};
  }

  std::filesystem::path folder_;
  int queues_ = 0, readers_ = 0;
};

TEST_F(Readers, LinesOfTextFiles) {
  const std::string a = File("a.txt", "one\ntwo\r\n\nfour"), e = File("e.txt", ""), b = File("b.txt", "h1\nx\n");
  EXPECT_EQ(All(Make("TextLineReaderV2"), Queue({a, e, b})), (Pairs{{"a.txt:1", "one"},
                                                                     {"a.txt:2", "two"},
                                                                     {"a.txt:3", ""},
                                                                     {"a.txt:4", "four"},
                                                                     {"b.txt:1", "h1"},
                                                                     {"b.txt:2", "x"}}));
  const auto skip = [&](int64_t lines) { return Make("TextLineReaderV2", {{"skip_header_lines", lines}}); };
  EXPECT_EQ(All(skip(1), Queue({a, b, e})),
            (Pairs{{"a.txt:2", "two"}, {"a.txt:3", ""}, {"a.txt:4", "four"}, {"b.txt:2", "x"}}));
  EXPECT_EQ(All(skip(5), Queue({a})), Pairs());
  Refused(Call("TextLineReaderV2", {}, {{"skip_header_lines", int64_t{-1}}}), Code::kInvalidArgument,
          "skip_header_lines must be >= 0 not -1");
  const std::string odd = File("odd.txt", std::string("a\rb\r\r\nc\0d\n\n", 11));
  EXPECT_EQ(All(Make("TextLineReaderV2"), Queue({odd})),
            (Pairs{{"odd.txt:1", "a\rb\r"}, {"odd.txt:2", std::string("c\0d", 3)}, {"odd.txt:3", ""}}));
}

TEST_F(Readers, CountsFollowTheFiles) {
  const std::string a = File("a.txt", "1\n2\n"), e = File("e.txt", "");
  const Tensor lines = Make("TextLineReaderV2"), queue = Queue({a, e, a});
  const auto read = [&] { return Call("ReaderReadV2", {lines, queue}).ok(); };
  EXPECT_TRUE(read() && read());
  EXPECT_EQ(Counts(lines), std::make_pair(int64_t{2}, int64_t{0}));
  EXPECT_TRUE(read());
  EXPECT_EQ(Counts(lines), std::make_pair(int64_t{3}, int64_t{2}));
  const Tensor whole = Make("WholeFileReaderV2"), files = Queue({a});
  EXPECT_EQ(All(whole, files), (Pairs{{"a.txt", "1\n2\n"}}));
  EXPECT_EQ(Counts(whole), std::make_pair(int64_t{1}, int64_t{1}));
}

TEST_F(Readers, RecordsOfOneSize) {
  const std::string f = File("f", "HHaabbccFF"), odd = File("odd", "HHaabbcF");
  EXPECT_EQ(All(Fixed(2, 2, 2), Queue({f})), (Pairs{{"f:0", "aa"}, {"f:1", "bb"}, {"f:2", "cc"}}));
  EXPECT_EQ(All(Fixed(2, 2, 2, 1), Queue({f})),
            (Pairs{{"f:0", "aa"}, {"f:1", "ab"}, {"f:2", "bb"}, {"f:3", "bc"}, {"f:4", "cc"}}));
  EXPECT_EQ(All(Fixed(2, 2, 2, 3), Queue({f})), (Pairs{{"f:0", "aa"}, {"f:1", "bc"}}));
  EXPECT_EQ(All(Fixed(2, 2, 1), Queue({odd})), (Pairs{{"odd:0", "aa"}, {"odd:1", "bb"}}));
  EXPECT_EQ(All(Fixed(20, 2, 1), Queue({odd})), Pairs());
  // Sizes that no file has read nothing and allocate nothing.
  EXPECT_EQ(All(Fixed(int64_t{1} << 62, 0, 0), Queue({odd})), Pairs());
  const std::string z = File("z", Compressed("HHaabbccFF", kZlib));
  EXPECT_EQ(All(Fixed(2, 2, 2, 0, "ZLIB"), Queue({z})), (Pairs{{"z:0", "aa"}, {"z:1", "bb"}, {"z:2", "cc"}}));
  EXPECT_EQ(All(Fixed(2, 2, 2, 1, "ZLIB"), Queue({z})).size(), 5u);
  EXPECT_EQ(All(Fixed(int64_t{1} << 62, 0, 0, 0, "ZLIB"), Queue({z})), Pairs());
  Status last;
  All(Fixed(2, 2, 2, 0, "ZLIB"), Queue({f}), &last);
  EXPECT_EQ(last.code(), Code::kDataLoss);
  EXPECT_TRUE(last.message().starts_with("inflate() failed with error -3: incorrect header check")) << last.ToString();
  for (const auto& [name, text] : {std::pair("header_bytes", "header_bytes must be >= 0 not -1"),
                                   std::pair("footer_bytes", "footer_bytes must be >= 0 not -1"),
                                   std::pair("hop_bytes", "hop_bytes must be >= 0 not -1"),
                                   std::pair("record_bytes", "record_bytes must be > 0 not -1")}) {
    op::AttrList attrs = {{name, int64_t{-1}}};
    if (std::string(name) != "record_bytes") attrs.emplace_back("record_bytes", int64_t{2});
    Refused(Call("FixedLengthRecordReaderV2", {}, std::move(attrs)), Code::kInvalidArgument, text);
  }
}

TEST_F(Readers, RecordFiles) {
  const Pairs wanted = {{":0", "r0"}, {":18", "record1"}, {":41", ""}};
  const std::string kinds[] = {"", "ZLIB", "GZIP"};
  const int bits[] = {0, kZlib, kGzip};
  for (int i = 0; i < 3; ++i) {
    const Tensor reader = Make("TFRecordReaderV2", {{"compression_type", kinds[i]}});
    Pairs got = All(reader, Queue({RecordFile("r" + kinds[i], bits[i])}));
    for (auto& [key, value] : got) key = key.substr(key.rfind(':'));
    EXPECT_EQ(got, wanted) << kinds[i];
  }
  Refused(Call("TFRecordReaderV2", {}, {{"compression_type", "BZIP"}}), Code::kInvalidArgument,
          "compression 'BZIP' is unknown; wanted '', 'ZLIB' or 'GZIP'");
}

TEST_F(Readers, DamagedRecordFiles) {
  Status last;
  EXPECT_TRUE(All(Make("TFRecordReaderV2"), Queue({File("a", "one two three four")}), &last).empty());
  EXPECT_EQ(last.code(), Code::kDataLoss);
  EXPECT_NE(last.message().find("corrupted record at 0 (Is this even a TFRecord file?)"), std::string::npos);
  const std::string whole = io::FrameRecord("r0") + io::FrameRecord("record1");
  EXPECT_EQ(All(Make("TFRecordReaderV2"), Queue({File("cut", whole.substr(0, 30))}), &last).size(), 1u);
  EXPECT_NE(last.message().find("truncated record at 18"), std::string::npos) << last.ToString();
  const std::string packed = Compressed(std::string(100000, 'x') + whole, kZlib);
  for (const std::string& bytes : {packed.substr(0, packed.size() - 6), packed.substr(0, 1)}) {
    All(Fixed(7, 0, 0, 0, "ZLIB"), Queue({File("z", bytes)}), &last);
    EXPECT_EQ(last.code(), Code::kDataLoss);
    EXPECT_NE(last.message().find("ends in the middle of its compressed bytes"), std::string::npos);
  }
  // A length that no memory has, behind a right checksum.
  std::string huge;
  const uint64_t length = uint64_t{1} << 62;
  huge.append(reinterpret_cast<const char*>(&length), sizeof(length));
  const uint32_t crc = io::MaskCrc(io::Crc32c(huge));
  huge.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  huge += "abc";
  All(Make("TFRecordReaderV2"), Queue({File("huge", huge)}), &last);
  EXPECT_EQ(last.code(), Code::kDataLoss);
  All(Make("TFRecordReaderV2", {{"compression_type", "GZIP"}}), Queue({File("hugez", Compressed(huge, kGzip))}), &last);
  EXPECT_EQ(last.code(), Code::kResourceExhausted) << last.ToString();
}

TEST_F(Readers, SeveralRecordsAreOfOneFile) {
  const std::string a = File("a", "1\n2\n3\n4"), e = File("e", ""), b = File("b", "5\n6\n");
  const Tensor reader = Make("TextLineReaderV2"), queue = Queue({a, e, b});
  EXPECT_EQ(UpTo(reader, queue, 3), (std::vector<std::string>{"a:1", "a:2", "a:3"}));
  EXPECT_EQ(UpTo(reader, queue, 3), (std::vector<std::string>{"a:4"}));
  EXPECT_EQ(UpTo(reader, queue, 0), std::vector<std::string>());
  EXPECT_EQ(UpTo(reader, queue, 3), (std::vector<std::string>{"b:1", "b:2"}));
  EXPECT_EQ(Counts(reader), std::make_pair(int64_t{6}, int64_t{3}));
  Refused(Call("ReaderReadUpToV2", {reader, queue, Tensor::Scalar(int64_t{3})}), Code::kOutOfRange,
          "is closed and has insufficient elements (requested 1, current size 0)");
  Refused(Call("ReaderReadUpToV2", {reader, queue, Tensor::Scalar(int64_t{-1})}), Code::kInvalidArgument,
          "num_records must be >= 0 not -1");
  const Tensor whole = Make("WholeFileReaderV2"), files = Queue({a, b});
  EXPECT_EQ(UpTo(whole, files, 2), std::vector<std::string>{"a"});
}

TEST_F(Readers, FilesThatCannotBeRead) {
  Status last;
  for (const char* op : {"TextLineReaderV2", "WholeFileReaderV2", "TFRecordReaderV2"}) {
    All(Make(op), Queue({Path("none")}), &last);
    EXPECT_EQ(last.code(), Code::kNotFound) << op;
    EXPECT_NE(last.message().find("none; No such file or directory"), std::string::npos) << last.ToString();
    All(Make(op), Queue({folder_.string()}), &last);
    EXPECT_NE(last.code(), Code::kOutOfRange) << op;
  }
  // The next name follows.
  const Tensor reader = Make("TextLineReaderV2"), queue = Queue({Path("none"), File("a", "1")});
  All(reader, queue, &last);
  EXPECT_EQ(All(reader, queue), (Pairs{{"a:1", "1"}}));
}

TEST_F(Readers, QueuesOfOtherThings) {
  const Tensor reader = Make("IdentityReaderV2");
  const auto queue = [&](const std::vector<DType>& types) {
    return One("FIFOQueueV2", {}, {{"component_types", types}, {"shared_name", "x" + std::to_string(queues_++)}});
  };
  Refused(Call("ReaderReadV2", {reader, queue({DType::kString, DType::kString})}), Code::kInvalidArgument,
          "Expected single component queue");
  Refused(Call("ReaderReadV2", {reader, queue({DType::kInt32})}), Code::kInvalidArgument,
          "Expected queue with single string component");
  const Tensor strings = queue({DType::kString});
  EXPECT_TRUE(Call("QueueEnqueueV2", {strings, Tensor::Vector(std::vector<std::string>{"a", "b"})},
                   {{"Tcomponents", std::vector<DType>{DType::kString}}})
                  .ok());
  Refused(Call("ReaderReadV2", {reader, strings}), Code::kInvalidArgument,
          "Expected to dequeue a one-element string tensor");
  EXPECT_FALSE(Call("ReaderReadV2", {strings, strings}).ok());
  EXPECT_FALSE(Call("ReaderReadV2", {reader, reader}).ok());
}

TEST_F(Readers, StateIsSavedBetweenFiles) {
  const Tensor reader = Make("IdentityReaderV2"), queue = Queue({"a.txt", "b"});
  const auto state = [&] { return One("ReaderSerializeStateV2", {reader}).as<std::string>()[0]; };
  const auto restore = [&](const std::string& bytes) {
    return Call("ReaderRestoreStateV2", {reader, Tensor::Scalar(bytes)});
  };
  EXPECT_EQ(state(), "");
  EXPECT_TRUE(Call("ReaderReadV2", {reader, queue}).ok());
  EXPECT_EQ(state(), "\x08\x01\x10\x01\x18\x01\"\x05" "a.txt");
  const std::string later = "\x08\x03\x10\x03\x18\x07\"\x01k";
  EXPECT_TRUE(restore(later).ok());
  EXPECT_EQ(state(), later);
  EXPECT_EQ(Counts(reader), std::make_pair(int64_t{7}, int64_t{3}));
  Refused(restore("\xff\xfe"), Code::kInvalidArgument, "Could not parse state for IdentityReader 'node': \\377\\376");
  Refused(restore("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Code::kInvalidArgument,
          "Unexpected negative value when restoring in IdentityReader 'node': work_started: -1");
  Refused(restore("\x08\x05\x10\x02"), Code::kInvalidArgument,
          "Inconsistent work started vs. finished when restoring in IdentityReader 'node': work_started: 5");
  EXPECT_EQ(Counts(reader), std::make_pair(int64_t{0}, int64_t{0}));  // an error resets
  Refused(Call("ReaderRestoreStateV2", {reader, Tensor::Vector(std::vector<std::string>{"a"})}),
          Code::kInvalidArgument, "Reader state must be scalar, but had shape: [1]");
  EXPECT_TRUE(restore(later).ok());
  EXPECT_TRUE(Call("ReaderResetV2", {reader}).ok());
  EXPECT_EQ(state(), "");
  const Tensor lines = Make("TextLineReaderV2");
  Refused(Call("ReaderSerializeStateV2", {lines}), Code::kUnimplemented, "Reader SerializeState");
  Refused(Call("ReaderRestoreStateV2", {lines, Tensor::Scalar(std::string())}), Code::kUnimplemented,
          "Reader RestoreState");
}

TEST_F(Readers, RequestsWaitForNamesInTurn) {
  const std::string a = File("a", "1\n2\n");
  const Tensor reader = Make("TextLineReaderV2"), queue = Queue({}, /*close=*/false);
  Answer first, second, third;
  for (Answer* answer : {&first, &second, &third}) Start("ReaderReadV2", {reader, queue}, {}, answer);
  EXPECT_FALSE(first || second || third);
  Put(queue, {a});
  ASSERT_TRUE(first && first->ok() && second && second->ok());
  EXPECT_EQ((**second)[1].as<std::string>()[0], "2");
  EXPECT_FALSE(third);
  cancellation_.Cancel(Cancelled("the step ended"));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->status().code(), Code::kCancelled);
}

TEST_F(Readers, ACancelledStepEndsAllItsRequests) {
  const Tensor reader = Make("TextLineReaderV2"), queue = Queue({}, /*close=*/false);
  Answer answers[3];
  for (Answer& answer : answers) Start("ReaderReadV2", {reader, queue}, {}, &answer);
  cancellation_.Cancel(Cancelled("the step ended"));
  for (const Answer& answer : answers) {
    ASSERT_TRUE(answer);
    EXPECT_NE(answer->status().message().find("the step ended"), std::string::npos) << answer->status().ToString();
  }
}

TEST_F(Readers, ManyEmptyFilesTakeNoStack) {
  const std::string e = File("e", ""), a = File("a", "x");
  std::vector<std::string> names(20000, e);
  names.push_back(a);
  EXPECT_EQ(All(Make("TextLineReaderV2"), Queue(names)), (Pairs{{"a:1", "x"}}));
  // The same when the names come after the request.
  const Tensor reader = Make("TextLineReaderV2"), queue = Queue({}, /*close=*/false);
  Answer answer;
  Start("ReaderReadV2", {reader, queue}, {}, &answer);
  Put(queue, names);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((**answer)[1].as<std::string>()[0], "x");
}

TEST_F(Readers, ASharedNameIsOneReader) {
  const Tensor first = One("IdentityReaderV2", {}, {{"shared_name", "s"}}), queue = Queue({"a", "b"});
  EXPECT_TRUE(Call("ReaderReadV2", {first, queue}).ok());
  EXPECT_EQ(Counts(One("IdentityReaderV2", {}, {{"shared_name", "s"}})).first, 1);
  Refused(Call("WholeFileReaderV2", {}, {{"shared_name", "s"}}), Code::kInvalidArgument,
          "IdentityReader 'node' has the name of this WholeFileReader");
}

}  // namespace
}  // namespace weir::builtin
