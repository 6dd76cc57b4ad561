// A connection between two processes: frames over a socket, streams of calls, liveness and credit.
#ifndef WEIR_PLUGINS_REMOTE_CONNECTION_H_
#define WEIR_PLUGINS_REMOTE_CONNECTION_H_

#include <boost/asio/steady_timer.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/remote/flow.h"
#include "plugins/remote/frame.h"
#include "plugins/remote/handshake.h"
#include "plugins/remote/io.h"
#include "plugins/remote/protection.h"
#include "plugins/remote/shared_memory.h"
#include "sdk/abi/transport.h"

namespace weir_remote {

/// A message without its bodies, as its first frame's meta has it.
struct MessageHead {
  uint32_t method = 0;
  uint64_t time_left_ms = UINT64_MAX;
  std::string_view meta;  // of the frame
  std::vector<uint64_t> sizes;
  uint64_t total = 0;  // of the sizes
};
std::string EncodeHead(uint32_t method, uint64_t time_left_ms, std::string_view meta,
                       std::span<const weir_bytes> bodies);
/// WEIR_INVALID_ARGUMENT for bytes that are no head, too many bodies, and sizes whose sum overflows.
WireError DecodeHead(std::string_view bytes, MessageHead& head);

/// A message as the core sees it; refers to `head`.
weir_arrival ArrivalOf(const MessageHead& head);
/// Asks a function of the core, which says an error in a record: `ask(error)` gives its code.
template <class Ask>
WireError AskCore(const Ask& ask) {
  char text[512];
  weir_error error{};
  error.struct_size = sizeof error;
  error.message = text;
  error.capacity = sizeof text;
  const int32_t code = ask(&error);
  if (code == WEIR_OK) return {};
  return {code, std::string(text, std::min<uint64_t>(error.length, sizeof text))};
}

/// Text and code of an error as the meta of a frame.
std::string EncodeError(const WireError& error);
WireError DecodeError(std::string_view meta);

/// One call on a connection, on either side. What the last reference drops is told to the core: only then nothing uses
/// the memory of its messages. All inside Io.
class Stream {
 public:
  virtual ~Stream() = default;
  /// A message arrives: sets `to` to the memory of its bodies. An error ends the stream.
  virtual WireError Begin(const MessageHead& head, void** to) = 0;
  /// All bodies are there.
  virtual void Complete() = 0;
  /// The peer or the connection ended it.
  virtual void End(const WireError& why) = 0;
  /// A message beside request and reply; `body` is valid for the call. An error ends the stream.
  virtual WireError Told(const MessageHead& head, std::span<const std::byte> body) = 0;
  /// All bodies that were given to Send are written.
  virtual void Sent() {}

 private:
  friend class Connection;
  uint32_t id_ = 0;
  std::vector<weir_bytes> out_;  // to send, from `out_at_` on
  size_t out_at_ = 0;
  uint64_t out_done_ = 0;  // bytes of the first of these
  bool sending_ = false;
  std::vector<std::span<std::byte>> in_;  // to receive, likewise
  size_t in_at_ = 0;
  uint64_t in_done_ = 0, unacknowledged_ = 0;
  bool receiving_ = false;
};

/// A small message beside request and reply, as it is sent.
struct Told {
  /// None if its bodies are too large.
  static std::optional<Told> Of(const weir_message& message);
  std::string head, body;
};

class Connection;
/// The listener or the channel of a connection.
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  /// The peer is known and proven. An error ends the connection.
  virtual WireError Opened(Connection& connection) = 0;
  /// The stream of a request that begins; null if this side serves none.
  virtual std::shared_ptr<Stream> Requested(Connection& connection) = 0;
  /// The last call; its streams have ended.
  virtual void Closed(Connection& connection, const WireError& why) = 0;
};

struct ConnectionOptions {
  Identity self;
  std::shared_ptr<Keyring> keys;
  std::chrono::milliseconds peer_timeout{10000};
  bool body_crc = true;
};

class Connection final : public FrameSink, public Source, public std::enable_shared_from_this<Connection> {
 public:
  static constexpr std::chrono::milliseconds kHelloLimit{5000};
  static constexpr size_t kMostStreams = 65536;

  Connection(Socket socket, std::string where, bool server, const ConnectionOptions& options,
             std::shared_ptr<ConnectionUser> user);
  void Start();

  /// "10.0.0.7": the host of the peer, or the address that was dialled.
  const std::string& where() const { return where_; }
  /// "/job:ps/task:0 (incarnation 00f3…) at host:port" as far as it is known.
  std::string PeerText() const;
  const std::optional<Peer>& peer() const { return handshake_.peer(); }
  bool open() const { return open_ && !failed_; }
  bool draining() const { return draining_; }
  Clock::time_point since() const { return since_; }

  /// Begins a call of this side. WEIR_INVALID_ARGUMENT for a head above the limit.
  WireError Request(const std::shared_ptr<Stream>& stream, uint32_t method, uint64_t time_left_ms,
                    std::string_view meta, std::vector<weir_bytes> bodies);
  /// The reply to a stream of the peer; Sent or End follows.
  void Reply(const std::shared_ptr<Stream>& stream, std::string_view meta, std::vector<weir_bytes> bodies);
  void ReplyError(const std::shared_ptr<Stream>& stream, const WireError& error);
  /// A message of a stream that has ended is dropped.
  void Tell(const std::shared_ptr<Stream>& stream, Told message);
  /// Forgets a call of this side and tells the peer.
  void Cancel(const std::shared_ptr<Stream>& stream);
  /// Tells the peer that this side will stop.
  void GoAway();
  /// Ends the connection, once. `tell`: the peer gets the reason if it can still be sent.
  void Fail(const WireError& why, bool tell);
  /// As Fail with a farewell.
  void Leave(const WireError& why);

  bool Look() override;
  WireError Body(const FrameHeader& header, std::string_view meta, std::span<std::byte>& into) override;
  WireError Frame(const FrameHeader& header, std::string_view meta) override;

 private:
  static constexpr uint64_t kInline = WEIR_TRANSPORT_TOLD_BYTES;  // bodies of at most this size travel with the head
  static constexpr uint64_t kChunk = 256u << 10;
  static constexpr uint64_t kMostChunk = 1u << 20;  // of a peer
  static constexpr size_t kStaging = 64u << 10;
  static constexpr size_t kDirectAt = 16u << 10, kBehindBody = 256;
  static constexpr size_t kCipherBytes = 256u << 10;  // read at once under TLS
  static constexpr int kReadsAtOnce = 16;             // before others have their turn
  static constexpr uint64_t kGrantAt = 1u << 20;
  static constexpr uint32_t kGrantedBytes = 1, kGrantedSlots = 2;  // fields of CREDIT

  struct Outgo {
    FrameType type;
    uint32_t stream = 0;
    std::string meta, body;
  };

  void Read();
  void TakeReady();
  bool ReadPlain();
  bool ReadSecured();
  void TakeSecured();
  std::optional<size_t> Receive(std::span<std::byte> first, std::span<std::byte> second);
  bool Begins(std::byte first);
  std::span<std::byte> Direct();
  void Ended(const std::string& reason);
  void Queue(Outgo frame);
  void Pump();
  bool Gather();
  void Batch();
  bool AddChunk();
  void Advance(const std::shared_ptr<Stream>& stream, uint64_t bytes);
  bool MayShare() const;
  void OfferShared();
  bool AddShared(const std::shared_ptr<Stream>& stream, std::span<const std::byte> rest);
  size_t SendNow();
  void SendLater(size_t sent);
  void Written();
  std::string HeadOf(FrameType type, uint32_t stream, std::string_view meta, std::span<const std::byte> body,
                     std::string& tail);
  void Tick();
  void Linger();
  void Close();

  void SendBodies(const std::shared_ptr<Stream>& stream, Outgo frame, std::vector<weir_bytes> bodies);
  void StopSending(Stream& stream);
  void Drop(const std::shared_ptr<Stream>& stream);
  WireError TakeHandshake(const FrameHeader& header, std::string_view meta);
  WireError TakeHead(const FrameHeader& header, std::string_view meta);
  WireError PlaceChunk(uint32_t id, uint64_t bytes, std::span<std::byte>& into, std::shared_ptr<Stream>& stream);
  WireError TakeChunk(const std::shared_ptr<Stream>& stream, uint64_t bytes);
  WireError TakeOpen(const FrameHeader& header, std::string_view meta);
  WireError TakeShared(const FrameHeader& header, std::string_view meta);
  void Unblock();
  WireError TakeCredit(const FrameHeader& header, std::string_view meta);
  WireError TakeError(const FrameHeader& header, std::string_view meta);
  WireError TakeTold(const FrameHeader& header, std::string_view meta);
  void EndStream(const std::shared_ptr<Stream>& stream, const WireError& error);
  WireError BeginIn(const std::shared_ptr<Stream>& stream, const MessageHead& head);
  void SkipEmpty(const std::shared_ptr<Stream>& stream);
  bool IsNew(uint32_t id) const { return static_cast<int32_t>(id - last_stream_) > 0; }

  Socket socket_;
  const std::string where_;
  const bool server_;
  const ConnectionOptions options_;
  const Protection protection_;
  std::shared_ptr<ConnectionUser> user_;
  const Clock::time_point since_ = Clock::now();
  std::unique_ptr<TlsSession> tls_;  // null: plain bytes
  Handshake handshake_;
  FrameReader reader_;
  Liveness liveness_;
  asio::steady_timer timer_;
  SendCredit send_credit_;
  ReceiveCredit receive_credit_;

  bool open_ = false, failed_ = false, draining_ = false;
  bool reading_ = false, writing_ = false, pumping_ = false, closed_ = false, lingering_ = false;
  bool begun_ = false;      // bytes have come
  uint64_t receives_ = 0;   // how often
  std::map<uint32_t, std::shared_ptr<Stream>> streams_;
  uint32_t last_stream_ = 0;

  std::vector<std::byte> staging_ = std::vector<std::byte>(kStaging);
  std::vector<std::byte> inline_, discard_;
  std::vector<std::byte> cipher_in_;  // under TLS
  std::string cipher_out_;            // in flight
  std::shared_ptr<Stream> reading_into_;

  std::deque<Outgo> control_;
  std::deque<std::shared_ptr<Stream>> senders_, blocked_;
  uint32_t next_number_ = 0;
  std::string small_;
  std::deque<std::string> pieces_;  // heads and tails of chunks in flight
  std::vector<asio::const_buffer> buffers_;
  std::vector<std::shared_ptr<Stream>> in_flight_, finished_;

  enum class Sharing : uint8_t { kUnknown, kOffered, kReady, kRefused };
  Sharing sharing_ = Sharing::kUnknown;   // of `source_`
  std::unique_ptr<SharedSource> source_;  // what this side sends through
  std::unique_ptr<SharedView> view_;      // what the peer sends through
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_CONNECTION_H_
