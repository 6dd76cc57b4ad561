// TLS 1.3 of a connection without its socket: encrypted bytes on one side, plain bytes on the other.
#ifndef WEIR_PLUGINS_REMOTE_TLS_H_
#define WEIR_PLUGINS_REMOTE_TLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "plugins/remote/wire_error.h"

namespace weir_remote {

/// Paths of PEM files: the own certificate with its chain, its key, and the certificates that sign those of peers.
struct TlsFiles {
  std::string certificate, key, authorities;
  bool any() const { return !certificate.empty() || !key.empty() || !authorities.empty(); }
};

/// What the connections of an end share. Immutable; from any thread.
class TlsContext;

/// Reads the files. WEIR_INVALID_ARGUMENT names a file that is missing, unreadable or no PEM, and a key of another
/// certificate; WEIR_UNIMPLEMENTED in a build without OpenSSL.
WireError LoadTls(const TlsFiles& files, std::shared_ptr<const TlsContext>& to);

/// True if bytes that begin with `first` may be TLS: a handshake or an alert.
inline bool BeginsTls(std::byte first) { return first == std::byte{0x16} || first == std::byte{0x15}; }

/// One connection. Both sides show a certificate. Not thread-safe.
class TlsSession {
 public:
  /// `host`: of a client, the name or address that was dialled; empty for a Unix socket.
  static std::unique_ptr<TlsSession> Make(const std::shared_ptr<const TlsContext>& context, bool server,
                                          std::string host);
  virtual ~TlsSession() = default;

  /// Bytes of the peer, for Read. They stay valid until it gives none.
  virtual void Came(std::span<const std::byte> bytes) = 0;
  /// Plain bytes of the peer; `count` = 0: more must come first. Also leads the handshake. WEIR_UNAUTHENTICATED says
  /// whose certificate is not accepted and why, WEIR_DATA_LOSS that the bytes are no TLS. An alert for the peer is then
  /// in `out`.
  virtual WireError Read(std::span<std::byte> to, size_t& count) = 0;
  /// Encrypts bytes into `out`, once the session is open.
  virtual WireError Write(std::span<const std::byte> plain) = 0;
  /// Bytes for the peer. The caller takes them.
  virtual std::string& out() = 0;
  /// True after the handshake: the peer has shown an accepted certificate.
  virtual bool open() const = 0;
  /// A certificate may name tasks by URIs "weir:/job:ps/task:0" or "weir:/job:ps". WEIR_PERMISSION_DENIED if it names
  /// others than the one that its owner says to be.
  virtual WireError CheckTask(std::string_view job, uint32_t task) const = 0;
};

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_TLS_H_
