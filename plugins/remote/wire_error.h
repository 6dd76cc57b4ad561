// Errors of the wire's parts, which know neither the core nor sockets.
#ifndef WEIR_PLUGINS_REMOTE_WIRE_ERROR_H_
#define WEIR_PLUGINS_REMOTE_WIRE_ERROR_H_

#include <cstdint>
#include <string>
#include <utility>

#include "sdk/abi/status.h"

namespace weir_remote {

/// A code of sdk/abi/status.h with a text; WEIR_OK is no error.
struct [[nodiscard]] WireError {
  int32_t code = WEIR_OK;
  std::string text = {};
  bool ok() const { return code == WEIR_OK; }
};

inline WireError Malformed(std::string text) { return {WEIR_INVALID_ARGUMENT, std::move(text)}; }

}  // namespace weir_remote

#endif  // WEIR_PLUGINS_REMOTE_WIRE_ERROR_H_
