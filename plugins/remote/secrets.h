// Random bytes and the MAC of the handshake.
#ifndef WEIR_PLUGINS_REMOTE_SECRETS_H_
#define WEIR_PLUGINS_REMOTE_SECRETS_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "plugins/remote/handshake.h"

namespace weir_remote {

/// Of the system's generator; shorter if it fails.
std::string RandomBytes(size_t count);

/// HMAC-SHA256 (RFC 2104).
MacBytes HmacSha256(std::string_view key, std::string_view data);

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_SECRETS_H_
