// What sessions share: the op catalogue, the plugins with their devices and kernels, the builtin kernels.
#ifndef WEIR_CORE_SESSION_RUNTIME_H_
#define WEIR_CORE_SESSION_RUNTIME_H_

#include <memory>

#include "core/base/status.h"
#include "core/config/config.h"
#include "core/config/sources.h"
#include "core/kernel/builtin.h"
#include "core/op/registry.h"
#include "core/plugin/catalogue.h"

namespace weir::session {

/// Immutable once made; shared by sessions.
struct Runtime {
  const op::OpRegistry* ops = nullptr;  // lives as long as the process
  std::shared_ptr<const plugin::Catalogue> plugins;
  kernel::BuiltinRegistry builtins;
  config::Config config;  // what it was loaded with

  /// Loads plugins by `options`. An error for a fault in the op catalogue, and for a configuration that does not fit
  /// the plugins and devices that were found.
  static Result<std::shared_ptr<Runtime>> Load(const plugin::LoadOptions& options);
  /// The one for `config` over what files and the environment say (config::Overlay); loaded on first use. Programs that
  /// ask for devices, memory and plugins in the same way share one, and with it the devices' arenas.
  static Result<std::shared_ptr<Runtime>> For(const config::Config& config);
  /// `For` without a wish of the program's.
  static Result<std::shared_ptr<Runtime>> Default();
  /// From where `For` and `Default` take what the program does not say, instead of config::Sources::OfProcess().
  /// FailedPrecondition once one of them was called.
  static Status SetSources(const config::Sources& sources);
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RUNTIME_H_
