// The options declared by a plugin, with their configured values.
#ifndef WEIR_CORE_PLUGIN_OPTIONS_H_
#define WEIR_CORE_PLUGIN_OPTIONS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/config/config.h"
#include "sdk/abi/plugin.h"

namespace weir::plugin {

struct PluginOption {
  std::string key;
  std::string doc;
  config::Value value;
  config::Origin origin;
};

/// The environment variable of a plugin's option: "WEIR_TOY_MEMORY_BYTES".
std::string VariableOf(std::string_view plugin, std::string_view key);

/// The option values of one plugin. Immutable.
class PluginOptions {
 public:
  /// Resolves each option of `plugin`: `[plugin.NAME]` in the configuration, else the variable WEIR_<NAME>_<KEY>, else
  /// the declared default; for a string option `isa`, `plugins.isa` replaces the default. InvalidArgument, with file
  /// and line or variable, for an undeclared key (with the nearest ones), a wrong type, or a value out of range.
  static Result<std::shared_ptr<const PluginOptions>> Resolve(const weir_plugin& plugin, const config::Config& config);

  const std::vector<PluginOption>& all() const { return all_; }
  /// The form passed to the plugin's functions; borrowed from this object and the plugin.
  std::vector<weir_opt> View() const;
  /// InvalidArgument names the first option with a different value in `other`, which must belong to the same plugin.
  Status CheckSame(const PluginOptions& other) const;

 private:
  std::vector<PluginOption> all_;
  std::vector<const weir_option_spec*> specs_;  // of all_, by index
};

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_OPTIONS_H_
