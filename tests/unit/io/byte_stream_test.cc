// Files from front to back, in pieces and lines.
#include "core/io/byte_stream.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/base/errors.h"

namespace weir::io {
namespace {

class ByteStreams : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  ByteStream Open(const std::string& bytes, Compression compression = Compression::kNone) {
    std::ofstream(path_, std::ios::binary) << bytes;
    Result<ByteStream> stream = ByteStream::Open(path_, compression);
    EXPECT_TRUE(stream.ok()) << stream.status().ToString();
    return std::move(*stream);
  }
  static std::string Packed(const std::string& bytes) {
    uLongf size = compressBound(bytes.size());
    std::string out(size, '\0');
    EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                       bytes.size()),
              Z_OK);
    out.resize(size);
    return out;
  }
  std::string path_ = ::testing::TempDir() + "/byte_stream_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ByteStreams, PeekedBytesStay) {
  ByteStream stream = Open("abcdef");
  EXPECT_EQ(stream.left(), 6u);
  EXPECT_EQ(*stream.Peek(3), "abc");
  EXPECT_EQ(*stream.Peek(2), "ab");
  stream.Take(2);
  EXPECT_EQ(stream.offset(), 2u);
  EXPECT_EQ(stream.left(), 4u);
  EXPECT_EQ(*stream.Peek(100), "cdef");
  EXPECT_TRUE(*stream.Skip(4));
  EXPECT_FALSE(*stream.Skip(1));
  EXPECT_EQ(*stream.Peek(1), "");
}

TEST_F(ByteStreams, LongFilesComeInPieces) {
  std::string bytes;
  for (int i = 0; i < 200000; ++i) bytes += std::to_string(i) + "\n";
  for (const bool packed : {false, true}) {
    ByteStream stream = packed ? Open(Packed(bytes), Compression::kZlib) : Open(bytes);
    EXPECT_EQ(stream.left().has_value(), !packed);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(**stream.TakeLine(), std::to_string(i));
    const uint64_t at = stream.offset();
    EXPECT_EQ(*stream.Peek(700000), std::string_view(bytes).substr(at, 700000));
    EXPECT_TRUE(*stream.Skip(bytes.size() - at - 7));
    EXPECT_EQ(**stream.TakeLine(), "199999");
    EXPECT_FALSE((*stream.TakeLine()).has_value());
  }
}

TEST_F(ByteStreams, CompressedStreamsFollowOneAnother) {
  ByteStream stream = Open(Packed("one\n") + Packed("two"), Compression::kZlib);
  EXPECT_EQ(**stream.TakeLine(), "one");
  EXPECT_EQ(**stream.TakeLine(), "two");
  EXPECT_FALSE((*stream.TakeLine()).has_value());
}

TEST_F(ByteStreams, DamageIsDataLoss) {
  std::string packed = Packed(std::string(1000, 'x') + "the end");
  for (size_t cut = 1; cut < packed.size(); ++cut) {
    ByteStream stream = Open(packed.substr(0, cut), Compression::kZlib);
    EXPECT_EQ(stream.Skip(2000).status().code(), Code::kDataLoss) << cut;
  }
  packed.back() ^= 1;  // of the checksum
  ByteStream stream = Open(packed, Compression::kZlib);
  EXPECT_EQ(stream.Skip(2000).status().code(), Code::kDataLoss);
  EXPECT_FALSE(*Open("", Compression::kGzip).Skip(1));
}

TEST_F(ByteStreams, NamesOfCompression) {
  EXPECT_EQ(*ParseCompression(""), Compression::kNone);
  EXPECT_EQ(*ParseCompression("GZIP"), Compression::kGzip);
  EXPECT_EQ(ParseCompression("gzip").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace weir::io
