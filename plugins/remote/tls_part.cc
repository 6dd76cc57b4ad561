#include "plugins/remote/tls_part.h"

extern "C" __attribute__((visibility("default"))) const weir_remote::TlsPart* weir_remote_tls_1() {
  static constexpr weir_remote::TlsPart kPart = {&weir_remote::LoadTls, &weir_remote::TlsSession::Make};
  return &kPart;
}
