#include "plugins/remote/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weir_remote {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Grants bodies up to a size and keeps frames.
class Keeper final : public FrameSink {
 public:
  explicit Keeper(uint64_t granted) : granted_(granted) {}
  WireError Body(const FrameHeader& header, std::string_view, std::span<std::byte>& into) override {
    if (header.body_bytes > granted_) return {WEIR_RESOURCE_EXHAUSTED, "no grant"};
    body_.resize(header.body_bytes);
    into = std::span(reinterpret_cast<std::byte*>(body_.data()), body_.size());
    return {};
  }
  WireError Frame(const FrameHeader& header, std::string_view meta) override {
    frames.push_back({header, std::string(meta), header.body_bytes > 0 ? body_ : std::string()});
    return {};
  }
  struct Kept {
    FrameHeader header;
    std::string meta, body;
  };
  std::vector<Kept> frames;

 private:
  const uint64_t granted_;
  std::string body_;
};

std::string Whole(FrameType type, uint32_t number, std::string_view meta, std::string_view body, uint16_t flags = 0) {
  FrameHeader header;
  header.type = static_cast<uint8_t>(type);
  header.number = number;
  header.flags = flags;
  header.stream = 7;
  return EncodeFrame(header, meta, Bytes(body)) + std::string(body) + EncodeTail(header, meta, Bytes(body));
}

/// A header with a right checksum.
HeaderBytes HeadOf(uint8_t type, uint16_t flags, uint32_t meta, uint64_t body) {
  FrameHeader header;
  header.type = type;
  header.flags = flags;
  header.meta_bytes = meta;
  header.body_bytes = body;
  return EncodeHeader(header);
}

TEST(Frame, TheChecksumIsCrc32c) {
  EXPECT_EQ(ExtendCrc(0, Bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(ExtendCrc(0, Bytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(ExtendCrc(ExtendCrc(0, Bytes("12345")), Bytes("6789")), 0xe3069283u);
}

TEST(Frame, TheChecksumOfManyBytesIsThatOfTheirParts) {
  std::string all;
  for (uint32_t i = 0, random = 1; i < 40000; ++i, random = random * 1664525u + 1013904223u) {
    all += static_cast<char>(random >> 24);
  }
  for (const size_t bytes : {size_t{3071}, size_t{3072}, size_t{3073}, size_t{6144}, size_t{32768}, all.size()}) {
    const std::string_view some = std::string_view(all).substr(0, bytes);
    uint32_t by_parts = 0;
    for (size_t at = 0; at < bytes; at += 100) by_parts = ExtendCrc(by_parts, Bytes(some.substr(at, 100)));
    EXPECT_EQ(ExtendCrc(0, Bytes(some)), by_parts) << bytes;
  }
}

TEST(Frame, AHeaderHasOneForm) {
  FrameHeader header;
  header.type = static_cast<uint8_t>(FrameType::kData);
  header.flags = kFrameBodyCrc | kFrameLast;
  header.stream = 0x01020304;
  header.meta_bytes = 5;
  header.body_bytes = 0x1122334455667788;
  header.number = 9;
  const HeaderBytes bytes = EncodeHeader(header);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text.substr(0, 28), std::string("WEIR\x01\x08\x06\x00\x04\x03\x02\x01\x05\x00\x00\x00"
                                            "\x88\x77\x66\x55\x44\x33\x22\x11\x09\x00\x00\x00",
                                            28));
  FrameHeader read;
  ASSERT_TRUE(DecodeHeader(bytes, read).ok());
  EXPECT_EQ(read, header);
}

TEST(Frame, EveryFlippedBitOfAHeaderIsSeen) {
  const HeaderBytes good = HeadOf(static_cast<uint8_t>(FrameType::kPing), 0, 0, 0);
  for (size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    HeaderBytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    FrameHeader header;
    EXPECT_EQ(DecodeHeader(bad, header).code, WEIR_DATA_LOSS) << bit;
  }
}

TEST(Frame, HeadersThatNoFrameHas) {
  struct Row {
    const char* name;
    uint8_t type;
    uint16_t flags;
    uint32_t meta;
    uint64_t body;
    int32_t code;
  };
  const auto ping = static_cast<uint8_t>(FrameType::kPing), data = static_cast<uint8_t>(FrameType::kData);
  for (const Row& row : std::vector<Row>{
           {"ping", ping, 0, 0, 0, WEIR_OK},
           {"data", data, kFrameLast, 10, uint64_t{1} << 40, WEIR_OK},
           {"type 0", 0, 0, 0, 0, WEIR_UNIMPLEMENTED},
           {"unknown type", 200, 0, 0, 0, WEIR_UNIMPLEMENTED},
           {"unknown and optional", 200, kFrameOptional, 0, 10, WEIR_OK},
           {"unknown with a large body", 200, kFrameOptional, 0, uint64_t{1} << 40, WEIR_INVALID_ARGUMENT},
           {"unknown flag", ping, 0x8000, 0, 0, WEIR_UNIMPLEMENTED},
           {"meta too large", data, 0, kMostMetaBytes + 1, 0, WEIR_INVALID_ARGUMENT},
           {"a ping with a body", ping, 0, 0, 1, WEIR_INVALID_ARGUMENT}}) {
    FrameHeader header;
    EXPECT_EQ(DecodeHeader(HeadOf(row.type, row.flags, row.meta, row.body), header).code, row.code) << row.name;
  }
  HeaderBytes later = HeadOf(ping, 0, 0, 0);
  later[4] = std::byte{2};
  const uint32_t crc = ExtendCrc(0, std::span(later).first(28));
  std::memcpy(later.data() + 28, &crc, 4);
  FrameHeader header;
  const WireError error = DecodeHeader(later, header);
  EXPECT_EQ(error.code, WEIR_UNIMPLEMENTED);
  EXPECT_NE(error.text.find("version 2 came, this side knows 1"), std::string::npos) << error.text;
}

TEST(FrameReader, FramesInPiecesOfAnySize) {
  std::string stream;
  for (uint32_t i = 0; i < 20; ++i) {
    stream += Whole(i % 3 == 0 ? FrameType::kData : FrameType::kRequest, i, std::string(i % 5, 'm'),
                    std::string(i * 7 % 40, static_cast<char>('a' + i)), i % 2 == 0 ? kFrameBodyCrc : 0);
  }
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Keeper keeper(100);
    FrameReader reader(keeper);
    for (size_t at = 0; at < stream.size();) {
      const size_t count = std::min<size_t>(1 + random() % (round + 1), stream.size() - at);
      ASSERT_TRUE(reader.Feed(Bytes(std::string_view(stream).substr(at, count))).ok());
      at += count;
    }
    ASSERT_EQ(keeper.frames.size(), 20u);
    EXPECT_TRUE(reader.at_boundary());
    for (uint32_t i = 0; i < 20; ++i) {
      EXPECT_EQ(keeper.frames[i].meta, std::string(i % 5, 'm'));
      EXPECT_EQ(keeper.frames[i].body, std::string(i * 7 % 40, static_cast<char>('a' + i)));
      EXPECT_EQ(keeper.frames[i].header.stream, 7u);
    }
  }
}

TEST(FrameReader, AnUnknownOptionalFrameIsSkipped) {
  FrameHeader unknown;
  unknown.type = 99;
  unknown.flags = kFrameOptional | kFrameBodyCrc;
  const std::string body(50, 'x');
  Keeper keeper(0);
  FrameReader reader(keeper);
  ASSERT_TRUE(reader.Feed(Bytes(EncodeFrame(unknown, "meta", Bytes(body)) + body +
                                EncodeTail(unknown, "meta", Bytes(body)) + Whole(FrameType::kPing, 1, "", "")))
                  .ok());
  ASSERT_EQ(keeper.frames.size(), 1u);
  EXPECT_TRUE(keeper.frames[0].header.is(FrameType::kPing));
}

TEST(FrameReader, FaultsEndTheConnection) {
  struct Row {
    const char* name;
    std::string stream;
    int32_t code;
    const char* text;
  };
  std::string flipped = Whole(FrameType::kData, 0, "m", "body", kFrameBodyCrc);
  flipped[kHeaderBytes + 2] ^= 1;
  for (const Row& row : std::vector<Row>{
           {"garbage", std::string(64, 'g'), WEIR_DATA_LOSS, "no frame of weir"},
           {"a flipped bit of a body", flipped, WEIR_DATA_LOSS, "checksum of frame 0"},
           {"a frame that is missing", Whole(FrameType::kPing, 1, "", ""), WEIR_DATA_LOSS, "0 was expected"},
           {"a frame twice", Whole(FrameType::kPing, 0, "", "") + Whole(FrameType::kPing, 0, "", ""), WEIR_DATA_LOSS,
            "frame 0 came, 1 was expected"},
           {"more meta than a stranger may send", Whole(FrameType::kHello, 0, std::string(5000, 'm'), ""),
            WEIR_INVALID_ARGUMENT, "at most 4096"},
           {"a body without a grant", Whole(FrameType::kData, 0, "", std::string(101, 'b')), WEIR_RESOURCE_EXHAUSTED,
            "no grant"}}) {
    SCOPED_TRACE(row.name);
    Keeper keeper(100);
    FrameReader reader(keeper);
    const WireError error = reader.Feed(Bytes(row.stream));
    EXPECT_EQ(error.code, row.code);
    EXPECT_NE(error.text.find(row.text), std::string::npos) << error.text;
    EXPECT_TRUE(reader.Wanted().empty());
    EXPECT_EQ(reader.Received(0).code, row.code);
    EXPECT_FALSE(reader.at_boundary());
  }
}

TEST(FrameReader, ALongMetaIsReadOnceAllowed) {
  Keeper keeper(0);
  FrameReader reader(keeper);
  reader.AllowMeta(kMostMetaBytes);
  ASSERT_TRUE(reader.Feed(Bytes(Whole(FrameType::kRequest, 0, std::string(kMostMetaBytes, 'm'), ""))).ok());
  ASSERT_EQ(keeper.frames.size(), 1u);
  EXPECT_EQ(keeper.frames[0].meta.size(), kMostMetaBytes);
}

TEST(FrameReader, ACutStreamIsSeen) {
  const std::string whole = Whole(FrameType::kData, 0, "meta", "body", kFrameBodyCrc);
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    Keeper keeper(100);
    FrameReader reader(keeper);
    ASSERT_TRUE(reader.Feed(Bytes(std::string_view(whole).substr(0, cut))).ok());
    EXPECT_FALSE(reader.at_boundary()) << cut;
    EXPECT_TRUE(keeper.frames.empty());
  }
}

}  // namespace
}  // namespace weir_remote
