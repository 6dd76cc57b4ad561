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

/// Size limit of a settings file in bytes.
inline constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;

/// Adds the settings in `text`; `file` names it in errors and origins. Returns the first error in text order:
/// InvalidArgument with file, line and column for a syntax error, with file and line for keys that `Settings::Set`
/// rejects.
Status ReadToml(std::string_view text, const std::string& file, Settings& settings);

/// Parses one value in TOML syntax (`true`, `"text"`, `[1, 2]`); nullopt if it has no type that a key can have.
std::optional<Value> ReadTomlValue(std::string_view text);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_TOML_H_
