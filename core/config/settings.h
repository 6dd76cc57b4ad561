// Keys that somebody set, each with the value of the strongest who did.
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

/// Checked key by key as they come in.
class Settings {
 public:
  /// Takes the value unless a stronger source has set the key; of two equal ones the later wins. InvalidArgument for an
  /// unknown key (with the nearest ones), a wrong type, a value out of range; Unimplemented for a value that has no
  /// effect in this version. Errors begin with the origin. Keys of `plugin.NAME` are taken as they are: the plugin's
  /// own schema decides when it is loaded.
  Status Set(Path path, Given given, Origin origin);

  /// A variable that may be a plugin's; goes into Config::environment.
  void AddVariable(std::string name, std::string value) { environment_.emplace(std::move(name), std::move(value)); }

  const std::map<Path, Setting>& all() const { return all_; }

  /// All of them as a Config with origins. InvalidArgument for keys that contradict each other.
  Result<Config> Build() const;

 private:
  std::map<Path, Setting> all_;
  std::map<std::string, std::string> environment_;
};

/// Adds the members of `config` that somebody set, as the call site's.
Status AddCallSite(const Config& config, Settings& settings);

/// `config` completed by what weaker sources say: a member that somebody set is the call site's.
Result<Config> Overlay(const Config& config, Settings settings);

}  // namespace weir::config

#endif  // WEIR_CORE_CONFIG_SETTINGS_H_
