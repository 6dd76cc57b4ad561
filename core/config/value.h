// Values of configuration keys, and where each came from.
#ifndef WEIR_CORE_CONFIG_VALUE_H_
#define WEIR_CORE_CONFIG_VALUE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::config {

using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

/// As TOML writes it: `true`, `0.5`, `"text"`, `["a", "b"]`.
std::string ToToml(const Value& value);
/// "the string \"yes\"", "the integer 3", "an array": for errors about a value of the wrong type.
std::string Describe(const Value& value);

/// A value as somebody gave it. Text from the environment or the command line has no type of its own yet: it is
/// read as the type that the key wants, from TOML (`["a", "b"]`) or bare (`a,b`).
struct Given {
  Value value;
  bool text = false;
};

/// Who may say what a key is, the weakest first.
enum class Source { kDefault, kPlugin, kEnvironment, kFile, kSet, kCallSite };

struct Origin {
  Source source = Source::kDefault;
  std::string name = {};  // of the file or the variable
  int line = 0;           // in the file, from 1; 0 = no line

  /// "default", "plugin default", "environment WEIR_X", "weir.toml:12", "--set", "call site".
  std::string ToString() const;
};

/// The names from the outermost table inward: {"device", "GPU:0", "allow_growth"}.
using Path = std::vector<std::string>;
/// Joined by dots; a name that TOML could not write bare is quoted: `device."GPU:0".allow_growth`.
std::string ToString(const Path& path);
/// One name of a path as TOML writes it.
std::string QuotedName(std::string_view name);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_VALUE_H_
