#include "plugins/remote/frame.h"

#include <algorithm>
#include <cstring>

namespace weir_remote {
namespace {

template <class Number>
void Put(std::byte* to, Number value) {
  for (size_t i = 0; i < sizeof(Number); ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

template <class Number>
Number Take(const std::byte* from) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) value |= static_cast<uint64_t>(from[i]) << (8 * i);
  return static_cast<Number>(value);
}

/// Eight tables: table[k][b] is the checksum of the byte b followed by k zero bytes.
using CrcTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr CrcTables MakeCrcTables() {
  CrcTables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      const uint32_t shorter = tables[k - 1][b];
      tables[k][b] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr CrcTables kCrcTables = MakeCrcTables();

#if defined(__x86_64__)
/// The processor begins a step of a checksum in each cycle and needs three for it: three runs of bytes go side by side.
constexpr size_t kCrcRun = 1024;

/// tables[k][b] is what becomes of the byte k of a checksum, if it is b, with kCrcRun zero bytes.
using CrcRunTables = std::array<std::array<uint32_t, 256>, 4>;

constexpr CrcRunTables MakeCrcRunTables() {
  CrcRunTables tables{};
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < kCrcRun; ++i) crc = (crc >> 8) ^ kCrcTables[0][crc & 0xff];
    for (size_t b = 0; b < 256; ++b) tables[bit / 8][b] ^= (b >> bit % 8 & 1) != 0 ? crc : 0;
  }
  return tables;
}

uint32_t PastCrcRun(uint64_t crc) {
  static constexpr CrcRunTables kTables = MakeCrcRunTables();
  return kTables[0][crc & 0xff] ^ kTables[1][crc >> 8 & 0xff] ^ kTables[2][crc >> 16 & 0xff] ^
         kTables[3][crc >> 24 & 0xff];
}

uint64_t WordAt(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);  // the machine is little-endian
  return word;
}

__attribute__((target("sse4.2"))) uint32_t ExtendCrcByCpu(uint32_t crc, const std::byte* at, size_t count) {
  uint64_t wide = crc;
  for (; count >= 3 * kCrcRun; at += 3 * kCrcRun, count -= 3 * kCrcRun) {
    uint64_t second = 0, third = 0;
    for (const std::byte* word = at; word < at + kCrcRun; word += 8) {
      wide = __builtin_ia32_crc32di(wide, WordAt(word));
      second = __builtin_ia32_crc32di(second, WordAt(word + kCrcRun));
      third = __builtin_ia32_crc32di(third, WordAt(word + 2 * kCrcRun));
    }
    wide = PastCrcRun(PastCrcRun(wide) ^ second) ^ third;
  }
  for (; count >= 8; at += 8, count -= 8) {
    wide = __builtin_ia32_crc32di(wide, WordAt(at));
  }
  auto narrow = static_cast<uint32_t>(wide);
  for (; count > 0; ++at, --count) narrow = __builtin_ia32_crc32qi(narrow, static_cast<uint8_t>(*at));
  return narrow;
}
#endif

uint32_t ExtendCrcByTables(uint32_t crc, const std::byte* at, size_t count) {
  for (; count >= 8; at += 8, count -= 8) {
    const uint64_t word = Take<uint64_t>(at) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kCrcTables[7 - i][word >> (8 * i) & 0xff];
  }
  for (; count > 0; ++at, --count) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ static_cast<uint8_t>(*at)) & 0xff];
  return crc;
}

bool MayHaveBody(const FrameHeader& header) {
  return header.is(FrameType::kRequest) || header.is(FrameType::kResponse) || header.is(FrameType::kData) ||
         header.is(FrameType::kTell) || header.type > kLastFrameType;
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string Number(uint64_t value) { return std::to_string(value); }

}  // namespace

uint32_t ExtendCrc(uint32_t crc, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~ExtendCrcByCpu(~crc, bytes.data(), bytes.size());
#endif
  return ~ExtendCrcByTables(~crc, bytes.data(), bytes.size());
}

HeaderBytes EncodeHeader(const FrameHeader& header) {
  HeaderBytes bytes{};
  std::byte* const at = bytes.data();
  Put(at, kFrameMagic);
  Put(at + 4, kFrameVersion);
  Put(at + 5, header.type);
  Put(at + 6, header.flags);
  Put(at + 8, header.stream);
  Put(at + 12, header.meta_bytes);
  Put(at + 16, header.body_bytes);
  Put(at + 24, header.number);
  Put(at + 28, ExtendCrc(0, {at, 28}));
  return bytes;
}

WireError DecodeHeader(const HeaderBytes& bytes, FrameHeader& header) {
  const std::byte* const at = bytes.data();
  if (Take<uint32_t>(at) != kFrameMagic) return {WEIR_DATA_LOSS, "the bytes are no frame of weir"};
  if (Take<uint32_t>(at + 28) != ExtendCrc(0, {at, 28})) return {WEIR_DATA_LOSS, "the checksum of a header is wrong"};
  const auto version = Take<uint8_t>(at + 4);
  if (version != kFrameVersion) {
    return {WEIR_UNIMPLEMENTED, "a frame of version " + Number(version) + " came, this side knows " +
                                    Number(kFrameVersion)};
  }
  header.type = Take<uint8_t>(at + 5);
  header.flags = Take<uint16_t>(at + 6);
  header.stream = Take<uint32_t>(at + 8);
  header.meta_bytes = Take<uint32_t>(at + 12);
  header.body_bytes = Take<uint64_t>(at + 16);
  header.number = Take<uint32_t>(at + 24);
  const bool known = header.type >= 1 && header.type <= kLastFrameType;
  if (!known && (header.flags & kFrameOptional) == 0) {
    return {WEIR_UNIMPLEMENTED, "a frame has the unknown type " + Number(header.type)};
  }
  if (known && (header.flags & ~kFrameFlags) != 0) {
    return {WEIR_UNIMPLEMENTED, "a frame has unknown flags: " + Number(header.flags)};
  }
  if (header.meta_bytes > kMostMetaBytes) {
    return Malformed("a frame has " + Number(header.meta_bytes) + " bytes of meta, at most " + Number(kMostMetaBytes) +
                     " are allowed");
  }
  if (header.body_bytes > 0 && !MayHaveBody(header)) {
    return Malformed("a frame of type " + Number(header.type) + " has a body");
  }
  if (!known && header.body_bytes > kMostMetaBytes) return Malformed("an unknown frame has too large a body");
  return {};
}

std::string EncodeFrame(FrameHeader header, std::string_view meta, std::span<const std::byte> body) {
  header.meta_bytes = static_cast<uint32_t>(meta.size());
  header.body_bytes = body.size();
  const HeaderBytes head = EncodeHeader(header);
  std::string bytes(reinterpret_cast<const char*>(head.data()), head.size());
  bytes += meta;
  return bytes;
}

std::string EncodeTail(const FrameHeader& header, std::string_view meta, std::span<const std::byte> body) {
  if ((header.flags & kFrameBodyCrc) == 0) return {};
  std::array<std::byte, 4> tail;
  Put(tail.data(), ExtendCrc(ExtendCrc(0, BytesOf(meta)), body));
  return {reinterpret_cast<const char*>(tail.data()), tail.size()};
}

std::span<std::byte> FrameReader::Wanted() {
  switch (stage_) {
    case Stage::kHeader:
      return std::span(head_).subspan(have_);
    case Stage::kMeta:
      return std::span(meta_).subspan(have_);
    case Stage::kBody:
      return body_.subspan(have_);
    case Stage::kSkip:
      return std::span(skipped_).subspan(have_);
    case Stage::kTail:
      return std::span(tail_).subspan(have_);
    case Stage::kFailed:
      break;
  }
  return {};
}

WireError FrameReader::Received(size_t count) {
  if (stage_ == Stage::kFailed) return error_;
  const std::span<std::byte> wanted = Wanted();
  if (count > wanted.size()) {
    error_ = {WEIR_INTERNAL, "more bytes were received than wanted"};
  } else {
    have_ += count;
    if (count == wanted.size()) error_ = Next();
  }
  if (!error_.ok()) stage_ = Stage::kFailed;
  return error_;
}

WireError FrameReader::Feed(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> wanted = Wanted();
    const size_t count = std::min(wanted.size(), bytes.size());
    if (count > 0) std::memcpy(wanted.data(), bytes.data(), count);
    if (WireError error = Received(count); !error.ok()) return error;
    bytes = bytes.subspan(count);
  }
  return error_;
}

/// The stage has all its bytes. Stages without any are passed over, so that bytes are wanted afterwards.
WireError FrameReader::Next() {
  have_ = 0;
  switch (stage_) {
    case Stage::kHeader:
      return BeginFrame();
    case Stage::kMeta:
      return BeginBody();
    case Stage::kBody:
    case Stage::kSkip:
      if ((header_.flags & kFrameBodyCrc) == 0) return EndFrame();
      crc_ = ExtendCrc(ExtendCrc(0, meta_), stage_ == Stage::kBody ? body_ : std::span<std::byte>(skipped_));
      stage_ = Stage::kTail;
      return {};
    case Stage::kTail:
      if (Take<uint32_t>(tail_.data()) == crc_) return EndFrame();
      return {WEIR_DATA_LOSS, "the checksum of frame " + Number(header_.number) + " is wrong"};
    case Stage::kFailed:
      break;
  }
  return error_;
}

WireError FrameReader::BeginFrame() {
  if (WireError error = DecodeHeader(head_, header_); !error.ok()) return error;
  if (header_.number != next_number_) {
    return {WEIR_DATA_LOSS, "frame " + Number(header_.number) + " came, " + Number(next_number_) + " was expected"};
  }
  if (header_.meta_bytes > most_meta_) {
    return Malformed("a frame has " + Number(header_.meta_bytes) + " bytes of meta, at most " + Number(most_meta_) +
                     " are allowed now");
  }
  ++next_number_;
  meta_.resize(header_.meta_bytes);
  stage_ = Stage::kMeta;
  return meta_.empty() ? BeginBody() : WireError();
}

WireError FrameReader::BeginBody() {
  body_ = {};
  skipped_.clear();
  if (header_.type > kLastFrameType || header_.type == 0) {
    // Its meta's limit holds for what it carries, too.
    if (header_.body_bytes > most_meta_) return Malformed("an unknown frame has too large a body");
    skipped_.resize(header_.body_bytes);
    stage_ = Stage::kSkip;
  } else {
    stage_ = Stage::kBody;
    if (header_.body_bytes > 0) {
      if (WireError error = sink_.Body(header_, meta(), body_); !error.ok()) return error;
      if (body_.size() != header_.body_bytes) return {WEIR_INTERNAL, "memory of another size was posted for a body"};
    }
  }
  return header_.body_bytes == 0 ? Next() : WireError();
}

WireError FrameReader::EndFrame() {
  const bool known = stage_ != Stage::kSkip && header_.type >= 1 && header_.type <= kLastFrameType;
  stage_ = Stage::kHeader;
  have_ = 0;
  return known ? sink_.Frame(header_, meta()) : WireError();
}

}  // namespace weir_remote
