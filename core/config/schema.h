// The schema of the configuration: name, meaning, range and effect of every key.
#ifndef WEIR_CORE_CONFIG_SCHEMA_H_
#define WEIR_CORE_CONFIG_SCHEMA_H_

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/config/value.h"

namespace weir::config {

/// The Config member of a key. Its type is the key's type; its value in a new Config is the default.
using Field = std::variant<Member<bool>*, Member<int32_t>*, Member<int64_t>*, Member<double>*, Member<std::string>*,
                           bool*, std::optional<bool>*, int32_t*, double*, std::string*, std::vector<std::string>*,
                           std::vector<double>*>;

enum class Effect {
  kHonoured,
  kHint,    // accepted, but changes no result and may have no effect
  kNotYet,  // only the default is accepted, else Unimplemented
};

/// Names allowed for the first star of a path.
enum class Star { kName, kIndex, kDevice, kLink };

struct Key {
  std::string_view path;  // dotted; a star means a user-chosen name
  std::string_view doc;
  /// The member for a path of this key; creates the map or vector entry named in the path.
  Field (*field)(Config& config, const Path& path);
  // Inclusive bounds of a number, or of each number in a list.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices = {};  // for strings; empty = any
  Effect effect = Effect::kHonoured;
  Star star = Star::kName;
  bool names_place = false;  // names a file or folder: privileged processes do not read it from the environment
};

/// All keys in documentation order. The keys of `[plugin.NAME]` are defined by the plugin.
std::span<const Key> Schema();

/// The key of a path, or null.
const Key* FindKey(const Path& path);
/// True if `path` names a table, that is, has keys below it.
bool IsTable(const Path& path);
/// "unknown key 'gpu_options.alow_growth' (nearest: 'gpu_options.allow_growth')".
Status UnknownKey(const Path& path);

/// `path` with the name at the star in canonical form ("gpu:0" -> "GPU:0"). InvalidArgument describes the allowed
/// names.
Result<Path> CheckedPath(const Key& key, Path path);

/// Converts `given` to the key's type and stores it. InvalidArgument for a wrong type, a number out of range, or a text
/// that is not among the choices; Unimplemented for a value that this version does not support. Errors name the key.
Status Store(const Key& key, const Path& path, const Given& given, Config& config);
/// Converts `given` to the type of `like`; nullopt if it has another type.
std::optional<Value> ReadLike(const Given& given, const Value& like);
/// The current value of the member.
Value Load(Field field);
/// "true or false", "an integer from 0 to 4096", "one of \"a\", \"b\"".
std::string Wanted(const Key& key);

/// Calls `visit` for every key and path with a member in `config`: once for keys without a star, once per entry for
/// keys with a star.
void ForEachField(Config& config, const std::function<void(const Key&, const Path&, Field)>& visit);

/// The environment variable of a key: "WEIR_GPU_OPTIONS_ALLOW_GROWTH"; empty for keys with a star.
std::string EnvironmentName(const Key& key);

/// Parses a dotted path with optional quotes, as in TOML: `device."GPU:0".allow_growth`. Quoted names may contain any
/// characters except quotes.
Result<Path> ParsePath(std::string_view text);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_SCHEMA_H_
