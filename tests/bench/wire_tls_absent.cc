// Without OpenSSL there is no row under TLS.
#include "tests/bench/wire_tls.h"

namespace weir::bench {

OwnCertificate::OwnCertificate() = default;
OwnCertificate::~OwnCertificate() = default;
cluster::Security OwnCertificate::security() const { return {}; }
std::unique_ptr<TlsLoop> TlsLoop::Begin(int, bool, const OwnCertificate&) { return nullptr; }

}  // namespace weir::bench
