// The sources of configuration and their precedence.
#ifndef WEIR_CORE_CONFIG_SOURCES_H_
#define WEIR_CORE_CONFIG_SOURCES_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/config/settings.h"

namespace weir::config {

/// All sources. Precedence, highest first: the call site's own Config (see Overlay), `sets`, files (later over
/// earlier), the environment, plugin defaults, weir's defaults.
struct Sources {
  /// Optional files: the system's, then the user's. An unreadable one is skipped with a note.
  std::vector<std::string> usual_files = {};
  /// Required files. Those ending in .pb, .pbtxt, .prototxt or .textproto are ConfigProtos, all others TOML.
  std::vector<std::string> files = {};
  /// "a.b=c": the value in TOML syntax, or with strings unquoted and lists without brackets.
  std::vector<std::string> sets = {};
  /// Variables with the prefix WEIR_.
  std::map<std::string, std::string> environment = {};
  /// The process has more privileges than its user: variables that name files or folders are ignored.
  bool privileged = false;

  /// The sources of this process: /etc/weir/weir.toml, $XDG_CONFIG_HOME/weir/weir.toml (default ~/.config), the file
  /// named by WEIR_CONFIG, and environment variables. A privileged process uses only the first file and variables that
  /// do not name files or folders.
  static Sources OfProcess();
};

struct Loaded {
  Config config;
  Settings settings;                    // to be combined with call-site settings
  std::vector<std::string> files = {};  // files read, in order
  std::vector<std::string> notes;       // warnings, one line each
};

/// Reads all sources. Returns the first error of a file (for example NotFound) or of a value, with its location.
Result<Loaded> Load(const Sources& sources);

/// Adds the settings of one file.
Status ReadFile(const std::string& path, Settings& settings, std::vector<std::string>& notes);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_SOURCES_H_
