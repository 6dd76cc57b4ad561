// TLS from the part of the plugin that needs OpenSSL.
#include <utility>

#include "plugins/remote/tls_part.h"
#include "sdk/cpp/late_part.h"

namespace weir_remote {
namespace {

const weir::sdk::LatePart& LoadedTls() {
  static const weir::sdk::LatePart part = weir::sdk::LoadLatePart(reinterpret_cast<const void*>(&LoadTls),
                                                                  "remote/tls.so", WEIR_REMOTE_TLS_SYMBOL);
  return part;
}

const TlsPart& TlsFunctions() { return *reinterpret_cast<TlsPartFn>(LoadedTls().symbol)(); }

}  // namespace

WireError LoadTls(const TlsFiles& files, std::shared_ptr<const TlsContext>& to) {
  if (LoadedTls().symbol == nullptr) return {WEIR_FAILED_PRECONDITION, "TLS cannot be used: " + LoadedTls().why};
  return TlsFunctions().load(files, to);
}

// There is a context, so that the part is loaded.
std::unique_ptr<TlsSession> TlsSession::Make(const std::shared_ptr<const TlsContext>& context, bool server,
                                             std::string host) {
  return TlsFunctions().make(context, server, std::move(host));
}

}  // namespace weir_remote
