// Where configuration comes from, and how the sources add up.
#ifndef WEIR_CORE_CONFIG_SOURCES_H_
#define WEIR_CORE_CONFIG_SOURCES_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/config/settings.h"

namespace weir::config {

/// All that may say something. Precedence, the strongest first: the call site's own Config (see Overlay), `sets`, files
/// (the later over the earlier), the environment, what plugins declare, weir's defaults.
struct Sources {
  /// Files that need not exist: the system's, then the user's. One that this process may not read is left out with a
  /// note.
  std::vector<std::string> usual_files = {};
  /// Files that must exist. One that ends in .pb, .pbtxt, .prototxt or .textproto is a ConfigProto, any other TOML.
  std::vector<std::string> files = {};
  /// "a.b=c": as TOML writes the value, or bare: words need no quotes, lists commas only.
  std::vector<std::string> sets = {};
  /// Variables whose names begin with WEIR_.
  std::map<std::string, std::string> environment = {};
  /// The process runs with rights that its user lacks: variables that name files or folders are not read.
  bool privileged = false;

  /// /etc/weir/weir.toml, $XDG_CONFIG_HOME/weir/weir.toml (~/.config without it), the file that WEIR_CONFIG names, and
  /// the variables of the process. With privileges only the first, and variables that name no place.
  static Sources OfProcess();
};

struct Loaded {
  Config config;
  Settings settings;               // to put a call site over
  std::vector<std::string> files = {};  // that were read, in order
  std::vector<std::string> notes;  // what is odd but no error, a line each
};

/// Reads everything. The first error is one of a file (NotFound or another when it cannot be read) or of a value, and
/// says where.
Result<Loaded> Load(const Sources& sources);

/// Adds one file.
Status ReadFile(const std::string& path, Settings& settings, std::vector<std::string>& notes);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_SOURCES_H_
