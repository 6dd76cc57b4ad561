// The options that a plugin declares, with the values that the configuration gives them.
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

/// The variable that sets a plugin's option: "WEIR_TOY_MEMORY_BYTES".
std::string VariableOf(std::string_view plugin, std::string_view key);

/// The values for one plugin. Immutable.
class PluginOptions {
 public:
  /// For each option of `plugin`: `[plugin.NAME]` of the configuration, else the variable WEIR_<NAME>_<KEY>, else what
  /// the plugin declares, but for a string option `isa` what `plugins.isa` says. InvalidArgument saying where (file and
  /// line, variable) for a key that it does not declare, with the nearest ones, a wrong type, a value out of its range.
  static Result<std::shared_ptr<const PluginOptions>> Resolve(const weir_plugin& plugin, const config::Config& config);

  const std::vector<PluginOption>& all() const { return all_; }
  /// As the plugin's functions take them; borrowed from this and from the plugin.
  std::vector<weir_opt> View() const;
  /// InvalidArgument naming the first option whose value is another in `other`, which was resolved for the same plugin.
  Status CheckSame(const PluginOptions& other) const;

 private:
  std::vector<PluginOption> all_;
  std::vector<const weir_option_spec*> specs_;  // of all_, by index
};

}  // namespace weir::plugin

#endif  // WEIR_CORE_PLUGIN_OPTIONS_H_
