// A build without OpenSSL.
#include "plugins/remote/tls.h"

namespace weir_remote {

WireError LoadTls(const TlsFiles&, std::shared_ptr<const TlsContext>&) {
  return {WEIR_UNIMPLEMENTED,
          "this build of the plugin 'remote' has no TLS: OpenSSL (libssl-dev) was missing when it was built; build it "
          "again with OpenSSL, or use a token, or a tunnel"};
}

std::unique_ptr<TlsSession> TlsSession::Make(const std::shared_ptr<const TlsContext>&, bool, std::string) {
  return nullptr;
}

}  // namespace weir_remote
