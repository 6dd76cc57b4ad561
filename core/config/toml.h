// Reads settings from TOML.
#ifndef WEIR_CORE_CONFIG_TOML_H_
#define WEIR_CORE_CONFIG_TOML_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/config/settings.h"
#include "core/config/value.h"

namespace weir::config {

/// A file of settings has at most this many bytes.
inline constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;

/// Adds what `text` says; `file` names it in errors and origins. The first error in the order of the text:
/// InvalidArgument with file, line and column for a syntax error, file and line for keys that `Settings::Set` refuses.
Status ReadToml(std::string_view text, const std::string& file, Settings& settings);

/// One value as TOML writes it (`true`, `"text"`, `[1, 2]`), or nothing when `text` is none of a key's types.
std::optional<Value> ReadTomlValue(std::string_view text);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_TOML_H_
