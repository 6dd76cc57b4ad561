// How two processes get to know each other, frame by frame, without sockets.
#ifndef WEIR_PLUGINS_REMOTE_HANDSHAKE_H_
#define WEIR_PLUGINS_REMOTE_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/remote/frame.h"
#include "plugins/remote/wire_error.h"

namespace weir_remote {

/// Versions are major << 16 | minor. Peers of one major talk in the lower of their minors.
constexpr uint32_t ProtocolVersion(uint32_t major, uint32_t minor) { return major << 16 | minor; }
inline constexpr uint32_t kProtocol = ProtocolVersion(1, 1);
inline constexpr size_t kNonceBytes = 16;

/// What a process says of itself.
struct Identity {
  uint32_t least = kProtocol, most = kProtocol;
  std::string build;
  std::string job;  // empty: a client outside the cluster
  uint32_t task = 0;
  uint64_t incarnation = 0;  // random, never 0
  std::string cluster;
  uint32_t capabilities = 0;  // bits; those of both sides are used
  std::string host;           // equal on one machine, user and network namespace
};

/// What both sides know after the handshake.
struct Peer {
  Identity identity;
  uint32_t version = 0;
  uint32_t capabilities = 0;
  uint64_t session = 0;  // chosen by the server
};

/// HMAC-SHA256 of `data` under `key`.
using MacBytes = std::array<std::byte, 32>;
using Mac = MacBytes (*)(std::string_view key, std::string_view data);
/// Compares in a time that depends on the lengths alone.
bool SameSecret(std::string_view a, std::string_view b);

/// A frame to send: a type and its meta.
struct Outgoing {
  FrameType type;
  std::string meta;
};

/// One side of a handshake. HELLO, then with a token AUTH (a challenge) and AUTH (the proof), then HELLO_ACK, in which
/// the server proves that it knows the token, too. Proofs cover the whole HELLO and the server's nonce, so that neither
/// can be replayed or moved to another hello.
class Handshake {
 public:
  /// `nonce`: kNonceBytes random bytes of this connection. `token`: empty = none is asked for. `mac` may be null
  /// without a token.
  static Handshake Client(Identity own, std::string token, Mac mac, std::string nonce);
  /// `session` is told to the client.
  static Handshake Server(Identity own, std::string token, Mac mac, std::string nonce, uint64_t session);

  /// The client's first frame; nothing for a server.
  std::vector<Outgoing> Begin();
  /// Takes a frame and gives those to send. An error ends the connection: WEIR_FAILED_PRECONDITION for no common
  /// version, WEIR_UNAUTHENTICATED for a wrong or missing proof, WEIR_PERMISSION_DENIED for another cluster,
  /// WEIR_INVALID_ARGUMENT for a frame that is malformed or out of order. Before the peer is authenticated the text
  /// says nothing about this side but its versions.
  WireError Take(const FrameHeader& header, std::string_view meta, std::vector<Outgoing>& out);
  /// The peer, once it is known and proven.
  const std::optional<Peer>& peer() const { return done_; }

 private:
  enum class State : uint8_t { kBegin, kHello, kProof, kAnswer, kDone, kFailed };
  Handshake(bool server, Identity own, std::string token, Mac mac, std::string nonce)
      : server_(server), own_(std::move(own)), token_(std::move(token)), mac_(mac), nonce_(std::move(nonce)) {}
  WireError TakeHello(std::string_view meta, std::vector<Outgoing>& out);
  WireError TakeProof(std::string_view meta, std::vector<Outgoing>& out);
  WireError TakeChallenge(std::string_view meta, std::vector<Outgoing>& out);
  WireError TakeAnswer(std::string_view meta);
  WireError Welcome(std::vector<Outgoing>& out);
  std::string ProofOf(std::string_view side) const;

  bool server_;
  Identity own_;
  std::string token_;
  Mac mac_;
  std::string nonce_;
  uint64_t session_ = 0;
  State state_ = State::kBegin;
  std::string hello_, challenge_;
  Peer peer_;
  std::optional<Peer> done_;
};

/// The incarnations of tasks that have connected. A newer one of a task fences the older.
class Incarnations {
 public:
  struct Verdict {
    WireError error;
    uint64_t fenced = 0;   // the incarnation that this one replaced: its operations end with "was restarted"
    bool resumed = false;  // the same incarnation as before
  };
  /// WEIR_ABORTED for one that was fenced, WEIR_INVALID_ARGUMENT for 0, WEIR_RESOURCE_EXHAUSTED for too many tasks or
  /// restarts of one.
  Verdict Admit(const std::string& job, uint32_t task, uint64_t incarnation);

 private:
  static constexpr size_t kMostTasks = 65536, kMostRestarts = 4096;
  struct Task {
    uint64_t current = 0;
    std::set<uint64_t> fenced;
  };
  std::map<std::pair<std::string, uint32_t>, Task> tasks_;
};

std::string EncodeHello(const Identity& identity, std::string_view nonce);
WireError DecodeHello(std::string_view meta, Identity& identity);

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_HANDSHAKE_H_
