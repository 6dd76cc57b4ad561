// What sessions share: the op catalogue, the plugins with their devices and kernels, the builtin kernels.
#ifndef WEIR_CORE_SESSION_RUNTIME_H_
#define WEIR_CORE_SESSION_RUNTIME_H_

#include <memory>

#include "core/base/status.h"
#include "core/kernel/builtin.h"
#include "core/op/registry.h"
#include "core/plugin/catalogue.h"

namespace weir::session {

/// Immutable once made; shared by sessions.
struct Runtime {
  const op::OpRegistry* ops = nullptr;  // lives as long as the process
  std::unique_ptr<plugin::Catalogue> plugins;
  kernel::BuiltinRegistry builtins;

  /// Loads plugins by `options`. An error only for a fault in the op catalogue.
  static Result<std::shared_ptr<Runtime>> Load(const plugin::LoadOptions& options);
  /// One for the process, loaded from the default folders on first use.
  static Result<std::shared_ptr<Runtime>> Default();
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RUNTIME_H_
