// Frames: the units of a connection. Pure functions on bytes.
#ifndef WEIR_PLUGINS_REMOTE_FRAME_H_
#define WEIR_PLUGINS_REMOTE_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/remote/wire_error.h"

namespace weir_remote {

enum class FrameType : uint8_t {
  kHello = 1,
  kHelloAck,
  kAuth,
  kOpen,
  kRequest,
  kResponse,
  kError,
  kData,
  kCredit,
  kCancel,
  kPing,
  kPong,
  kGoAway,
  kBye,
  kTell,
};
inline constexpr uint8_t kLastFrameType = static_cast<uint8_t>(FrameType::kTell);

/// A frame of an unknown type is skipped if it is optional; otherwise it ends the connection.
inline constexpr uint16_t kFrameOptional = 1;
/// Four bytes with the CRC-32C of meta and body follow the body.
inline constexpr uint16_t kFrameBodyCrc = 2;
/// The last chunk of a value.
inline constexpr uint16_t kFrameLast = 4;
/// The body lies in shared memory, at the place that the meta has.
inline constexpr uint16_t kFrameShared = 8;
inline constexpr uint16_t kFrameFlags = kFrameOptional | kFrameBodyCrc | kFrameLast | kFrameShared;

inline constexpr uint32_t kFrameMagic = 0x52494557;  // "WEIR"
inline constexpr uint8_t kFrameVersion = 1;
inline constexpr size_t kHeaderBytes = 32;
inline constexpr uint32_t kMostMetaBytes = 1u << 20;
/// Before a peer is authenticated.
inline constexpr uint32_t kMostHelloBytes = 4096;

/// Little-endian on the wire, in this order: magic u32, version u8, type u8, flags u16, stream u32, meta length u32,
/// body length u64, number u32, CRC-32C of the 28 bytes before u32.
struct FrameHeader {
  uint8_t type = 0;
  uint16_t flags = 0;
  uint32_t stream = 0;
  uint32_t meta_bytes = 0;
  uint64_t body_bytes = 0;
  uint32_t number = 0;  // of the frames of a connection, from 0; wraps
  bool is(FrameType wanted) const { return type == static_cast<uint8_t>(wanted); }
  bool operator==(const FrameHeader&) const = default;
};
using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes EncodeHeader(const FrameHeader& header);
/// WEIR_DATA_LOSS for a wrong magic or checksum, WEIR_UNIMPLEMENTED for another version, a flag or a type that is
/// unknown and not optional, WEIR_INVALID_ARGUMENT for lengths that no frame of the type has.
WireError DecodeHeader(const HeaderBytes& bytes, FrameHeader& header);

/// CRC-32C, continued from `crc`; 0 begins.
uint32_t ExtendCrc(uint32_t crc, std::span<const std::byte> bytes);

/// A frame with everything but its body: header and meta. `body` is read for the checksum only.
std::string EncodeFrame(FrameHeader header, std::string_view meta, std::span<const std::byte> body);
/// What follows the body: nothing, or its checksum.
std::string EncodeTail(const FrameHeader& header, std::string_view meta, std::span<const std::byte> body);

/// Takes the frames of a connection.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// Sets `into` to `header.body_bytes` bytes of memory that this side posted or granted for the frame. An error closes
  /// the connection: a header alone never makes this side allocate. Called for bodies of at least a byte.
  virtual WireError Body(const FrameHeader& header, std::string_view meta, std::span<std::byte>& into) = 0;
  /// A whole frame, whose body lies in the memory that Body gave.
  virtual WireError Frame(const FrameHeader& header, std::string_view meta) = 0;
};

/// Reads frames from a stream of bytes. Its memory is bounded by the largest meta. After an error it takes nothing.
class FrameReader {
 public:
  explicit FrameReader(FrameSink& sink, uint32_t most_meta = kMostHelloBytes) : sink_(sink), most_meta_(most_meta) {}

  /// Once the peer is authenticated.
  void AllowMeta(uint32_t bytes) { most_meta_ = bytes; }
  /// Memory for the next bytes of the stream; empty after an error.
  std::span<std::byte> Wanted();
  /// The first `count` bytes of Wanted are there. The error, also of an earlier call, ends the connection.
  WireError Received(size_t count);
  /// Copies bytes to where they are wanted.
  WireError Feed(std::span<const std::byte> bytes);
  /// True between two frames: a stream that ends elsewhere was cut.
  bool at_boundary() const { return stage_ == Stage::kHeader && have_ == 0; }

 private:
  enum class Stage : uint8_t { kHeader, kMeta, kBody, kSkip, kTail, kFailed };
  WireError Next();
  WireError BeginFrame();
  WireError BeginBody();
  WireError EndFrame();
  std::string_view meta() const { return {reinterpret_cast<const char*>(meta_.data()), meta_.size()}; }

  FrameSink& sink_;
  uint32_t most_meta_;
  Stage stage_ = Stage::kHeader;
  HeaderBytes head_{};
  FrameHeader header_;
  std::vector<std::byte> meta_;
  std::span<std::byte> body_;
  std::array<std::byte, 4> tail_{};
  std::vector<std::byte> skipped_;
  size_t have_ = 0;  // bytes of the stage
  uint32_t next_number_ = 0;
  uint32_t crc_ = 0;
  WireError error_;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_FRAME_H_
