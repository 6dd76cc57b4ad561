// TLS for tools/bench wire: a certificate for both ends, and OpenSSL's own loop over a socket as the limit.
#ifndef WEIR_TESTS_BENCH_WIRE_TLS_H_
#define WEIR_TESTS_BENCH_WIRE_TLS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "core/cluster/transport.h"

namespace weir::bench {

/// How much longer than OpenSSL's loop a transfer under TLS may take: nine tenths of its rate.
inline constexpr double kMostOverTlsLoop = 1 / 0.9;

/// A certificate that signs itself, with its key, in a folder that ends with this object.
class OwnCertificate {
 public:
  OwnCertificate();
  ~OwnCertificate();
  OwnCertificate(const OwnCertificate&) = delete;
  OwnCertificate& operator=(const OwnCertificate&) = delete;

  /// Empty if there is none, as without OpenSSL.
  const std::string& folder() const { return folder_; }
  cluster::Security security() const;

 private:
  std::string folder_;
};

/// One end of a connection under TLS 1.3, with the first cipher of plugins/remote. Calls block.
class TlsLoop {
 public:
  /// Owns `connection`. Null if the handshake fails.
  static std::unique_ptr<TlsLoop> Begin(int connection, bool server, const OwnCertificate& certificate);
  virtual ~TlsLoop() = default;
  /// False if the connection ended.
  virtual bool Send(const void* data, size_t bytes) = 0;
  virtual bool Receive(void* data, size_t bytes) = 0;
};

}  // namespace weir::bench

#endif  // WEIR_TESTS_BENCH_WIRE_TLS_H_
