// Texts of configuration values, and paths of keys.
#ifndef WEIR_CORE_CONFIG_VALUE_H_
#define WEIR_CORE_CONFIG_VALUE_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"

namespace weir::config {

/// The value in TOML syntax: `true`, `0.5`, `"text"`, `["a", "b"]`.
std::string ToToml(const Value& value);
/// "the string \"yes\"", "the integer 3", "an array"; for errors about a wrong type.
std::string Describe(const Value& value);

/// Names from the outermost table inward: {"device", "GPU:0", "allow_growth"}.
using Path = std::vector<std::string>;
/// The names joined by dots, quoted where TOML requires it: `device."GPU:0".allow_growth`.
std::string ToString(const Path& path);
/// One name of a path in TOML syntax.
std::string QuotedName(std::string_view name);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_VALUE_H_
