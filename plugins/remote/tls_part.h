// The part of the plugin that needs OpenSSL, lib/weir/remote/tls.so: processes without TLS do not load it.
#ifndef WEIR_PLUGINS_REMOTE_TLS_PART_H_
#define WEIR_PLUGINS_REMOTE_TLS_PART_H_

#include <memory>
#include <string>

#include "plugins/remote/tls.h"

namespace weir_remote {

/// The functions of tls.h.
struct TlsPart {
  decltype(&LoadTls) load;
  decltype(&TlsSession::Make) make;
};
using TlsPartFn = const TlsPart* (*)();

}  // namespace weir_remote

// To be raised with each change of TlsPart or of tls.h.
#define WEIR_REMOTE_TLS_SYMBOL "weir_remote_tls_1"

#endif  // WEIR_PLUGINS_REMOTE_TLS_PART_H_
