// A peer that sends any frames: the other end of a connection, byte by byte.
#ifndef WEIR_TESTS_UNIT_CLUSTER_RAW_PEER_H_
#define WEIR_TESTS_UNIT_CLUSTER_RAW_PEER_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/remote/fields.h"
#include "plugins/remote/frame.h"
#include "plugins/remote/handshake.h"

namespace weir::testing {

namespace wr = weir_remote;

inline sockaddr_in Loopback(uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}
inline uint16_t PortIn(const std::string& address) {
  return static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

/// A frame that came.
struct Came {
  wr::FrameHeader header;
  std::string meta, body;
};

class RawPeer final : private wr::FrameSink {
 public:
  /// Owns the descriptor. Reads wait for two minutes.
  explicit RawPeer(int descriptor) : descriptor_(descriptor), reader_(*this, wr::kMostMetaBytes) {
    const timeval limit{120, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  static std::unique_ptr<RawPeer> Dial(const std::string& address) {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = Loopback(PortIn(address));
    EXPECT_EQ(::connect(made, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << std::strerror(errno);
    return std::make_unique<RawPeer>(made);
  }
  ~RawPeer() override { Close(); }

  void Close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  /// The other side gets a reset instead of an end.
  void Reset() {
    const linger now{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    Close();
  }

  void SendBytes(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void Send(wr::FrameType type, uint32_t stream = 0, std::string_view meta = {}, std::string_view body = {},
            uint16_t flags = 0) {
    wr::FrameHeader header;
    header.type = static_cast<uint8_t>(type);
    header.flags = flags;
    header.stream = stream;
    header.number = number_++;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(body));
    SendBytes(wr::EncodeFrame(header, meta, bytes) + std::string(body));
  }
  void SkipNumber() { ++number_; }

  /// The next frame but pings, answered and not; false at the end of the connection.
  bool Read(Came& came) {
    for (;;) {
      while (!frames_.empty()) {
        came = std::move(frames_.front());
        frames_.pop_front();
        if (!came.header.is(wr::FrameType::kPing) && !came.header.is(wr::FrameType::kPong)) return true;
      }
      char bytes[4096];
      const ssize_t got = ::recv(descriptor_, bytes, sizeof bytes, 0);
      if (got <= 0) return false;
      const std::span<const char> there(bytes, static_cast<size_t>(got));
      if (const wr::WireError error = reader_.Feed(std::as_bytes(there)); !error.ok()) {
        ADD_FAILURE() << error.text;
        return false;
      }
    }
  }
  /// Reads up to the end; the code and text of the error frame of the connection, if one came.
  std::pair<int, std::string> ReadToEnd() {
    std::pair<int, std::string> error{0, ""};
    Came came;
    while (Read(came)) {
      if (came.header.is(wr::FrameType::kError) && came.header.stream == 0) error = ErrorOf(came);
    }
    return error;
  }
  static std::pair<int, std::string> ErrorOf(const Came& came) {
    std::pair<int, std::string> error{0, ""};
    wr::FieldReader fields(came.meta);
    while (fields.Next()) {
      if (fields.field() == 1) error.first = static_cast<int>(fields.number());
      if (fields.field() == 2) error.second = fields.text();
    }
    return error;
  }

  static wr::Identity Stranger() {
    wr::Identity own;
    own.incarnation = 77;
    return own;
  }
  /// As a client without a token.
  bool ShakeHands(const wr::Identity& own = Stranger()) {
    wr::Handshake handshake = wr::Handshake::Client(own, "", nullptr, std::string(wr::kNonceBytes, 'n'));
    for (const wr::Outgoing& frame : handshake.Begin()) Send(frame.type, 0, frame.meta);
    return Finish(handshake);
  }
  /// As a server without a token.
  bool Welcome(const wr::Identity& own) {
    wr::Handshake handshake = wr::Handshake::Server(own, "", nullptr, std::string(wr::kNonceBytes, 'n'), 1);
    return Finish(handshake);
  }

 private:
  bool Finish(wr::Handshake& handshake) {
    Came came;
    while (!handshake.peer()) {
      if (!Read(came)) return false;
      std::vector<wr::Outgoing> out;
      if (!handshake.Take(came.header, came.meta, out).ok()) return false;
      for (const wr::Outgoing& frame : out) Send(frame.type, 0, frame.meta);
    }
    return true;
  }
  wr::WireError Body(const wr::FrameHeader& header, std::string_view, std::span<std::byte>& into) override {
    body_.resize(header.body_bytes);
    into = std::as_writable_bytes(std::span(body_));
    return {};
  }
  wr::WireError Frame(const wr::FrameHeader& header, std::string_view meta) override {
    frames_.push_back({header, std::string(meta), header.body_bytes > 0 ? body_ : std::string()});
    return {};
  }

  int descriptor_;
  wr::FrameReader reader_;
  uint32_t number_ = 0;
  std::string body_;
  std::deque<Came> frames_;
};

/// Listens on a port of loopback, for tests that play a server.
class RawServer {
 public:
  RawServer() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = Loopback(0);
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(descriptor_, 16), 0);
    socklen_t size = sizeof at;
    EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    address_ = "localhost:" + std::to_string(ntohs(at.sin_port));
  }
  ~RawServer() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  const std::string& address() const { return address_; }
  int Release() { return std::exchange(descriptor_, -1); }
  std::unique_ptr<RawPeer> Accept() { return std::make_unique<RawPeer>(::accept(descriptor_, nullptr, nullptr)); }

 private:
  int descriptor_;
  std::string address_;
};

/// The head of a message: method, time left, meta, sizes of bodies.
inline std::string MessageHeadOf(uint32_t method, std::string_view meta, const std::vector<uint64_t>& sizes) {
  wr::FieldWriter writer;
  if (method != 0) writer.Number(1, method);
  if (!meta.empty()) writer.Text(3, meta);
  for (const uint64_t size : sizes) writer.Number(4, size);
  return writer.bytes();
}

}  // namespace weir::testing

#endif  // WEIR_TESTS_UNIT_CLUSTER_RAW_PEER_H_
