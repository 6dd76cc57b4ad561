// Settings by key; for each key the value from the source with the highest precedence.
#ifndef WEIR_CORE_CONFIG_SETTINGS_H_
#define WEIR_CORE_CONFIG_SETTINGS_H_

#include <map>
#include <string>
#include <utility>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/config/value.h"

namespace weir::config {

struct Setting {
  Given given;
  Origin origin;
};

/// Settings are checked as they are added.
class Settings {
 public:
  /// Stores the value unless a source of higher precedence has set the key; among equal sources the later wins.
  /// InvalidArgument for an unknown key (with the nearest ones), a wrong type, or a value out of range; Unimplemented
  /// for a value that this version does not support. Errors start with the origin. Keys of `plugin.NAME` are not
  /// checked here: the plugin's own schema is applied when it is loaded.
  Status Set(Path path, Given given, Origin origin);

  /// Records a variable that may set a plugin option; goes to Config::environment.
  void AddVariable(std::string name, std::string value) { environment_.emplace(std::move(name), std::move(value)); }

  const std::map<Path, Setting>& all() const { return all_; }

  /// Returns all settings as a Config with origins. InvalidArgument for contradicting keys.
  Result<Config> Build() const;

 private:
  std::map<Path, Setting> all_;
  std::map<std::string, std::string> environment_;
};

/// Adds the members of `config` that were set, as call-site settings.
Status AddCallSite(const Config& config, Settings& settings);

/// Completes `config` from weaker sources. Members that were set in it have call-site precedence.
Result<Config> Overlay(const Config& config, Settings settings);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_SETTINGS_H_
