// The one table of keys: what each is called, means, may be, and whether it has an effect.
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

/// The member of a Config that a key stands for; its type is the key's type, its value in a fresh Config the default.
using Field = std::variant<Member<bool>*, Member<int32_t>*, Member<int64_t>*, Member<double>*, Member<std::string>*,
                           bool*, std::optional<bool>*, int32_t*, double*, std::string*, std::vector<std::string>*,
                           std::vector<double>*>;

enum class Effect {
  kHonoured,
  kHint,    // taken as a wish that changes no result and may have no effect
  kNotYet,  // anything but the default is Unimplemented
};

/// What the name in place of a path's first star may be.
enum class Star { kName, kIndex, kDevice, kLink };

struct Key {
  std::string_view path;  // dotted; a star stands for a name that users choose
  std::string_view doc;
  /// The member for a path of this key; makes the entry of a map or vector that the path names.
  Field (*field)(Config& config, const Path& path);
  // Both inclusive, of numbers and of each number in a list.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices = {};  // of strings; empty = any
  Effect effect = Effect::kHonoured;
  Star star = Star::kName;
  bool names_place = false;  // a file or folder: no privileged process takes it from the environment
};

/// All keys in the order in which they are documented. The keys of `[plugin.NAME]` are the plugin's own.
std::span<const Key> Schema();

/// The key that a path means, or null.
const Key* FindKey(const Path& path);
/// True when keys lie below this path: it names a table.
bool IsTable(const Path& path);
/// "unknown key 'gpu_options.alow_growth' (nearest: 'gpu_options.allow_growth')".
Status UnknownKey(const Path& path);

/// `path` with the name that stands for the key's star as weir writes it ("gpu:0" -> "GPU:0"); InvalidArgument saying
/// what a name may be.
Result<Path> CheckedPath(const Key& key, Path path);

/// Reads `given` as the key's type and stores it. InvalidArgument for a wrong type, a number out of range, a text that
/// is none of the choices; Unimplemented for a value that has no effect in this version. Texts name the key.
Status Store(const Key& key, const Path& path, const Given& given, Config& config);
/// `given` as a value of the same type as `like`, or nothing when it is of another.
std::optional<Value> ReadLike(const Given& given, const Value& like);
/// What the member holds now.
Value Load(Field field);
/// "true or false", "an integer from 0 to 4096", "one of \"a\", \"b\"".
std::string Wanted(const Key& key);

/// Calls `visit` with every key and path that `config` has a member for: keys without star once, keys with stars once
/// for each entry.
void ForEachField(Config& config, const std::function<void(const Key&, const Path&, Field)>& visit);

/// The variable that sets this key: "WEIR_GPU_OPTIONS_ALLOW_GROWTH"; empty for keys with a star.
std::string EnvironmentName(const Key& key);

/// A dotted path as TOML writes keys, quotes allowed: `device."GPU:0".allow_growth`. Names between dots may hold any
/// characters but quotes.
Result<Path> ParsePath(std::string_view text);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_SCHEMA_H_
