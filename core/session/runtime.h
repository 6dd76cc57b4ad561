// State shared by sessions: the op registry, the plugins with their devices, and all kernels.
#ifndef WEIR_CORE_SESSION_RUNTIME_H_
#define WEIR_CORE_SESSION_RUNTIME_H_

#include <memory>

#include "core/base/status.h"
#include "core/compile/compilers.h"
#include "core/config/config.h"
#include "core/config/sources.h"
#include "core/kernel/calibration.h"
#include "core/kernel/measured.h"
#include "core/op/registry.h"
#include "core/plugin/catalogue.h"
#include "core/session/remote_devices.h"

namespace weir::session {

/// Immutable after loading; shared by sessions.
struct Runtime {
  const op::OpRegistry* ops = nullptr;  // lives as long as the process
  std::shared_ptr<const plugin::Catalogue> plugins;
  std::shared_ptr<const kernel::MeasuredCosts> measured;   // as calibration, by `weir profile record`; may be null
  config::Config config;                                   // used for loading
  std::shared_ptr<const kernel::Calibration> calibration;  // of `For` with placement.profile "auto"; may be null

  std::shared_ptr<compile::Compilers> compilers;  // of the plugins; null: none
  std::shared_ptr<RemoteDevices> remote;          // behind devices of other processes; null: there are none

  /// Loads plugins according to `options`. An error for a fault in the op registry, or for a configuration that
  /// contradicts the plugins and devices found.
  static Result<std::shared_ptr<Runtime>> Load(const plugin::LoadOptions& options);
  /// The runtime for `config`, completed from files and the environment (config::Overlay); loaded on first use.
  /// Programs with equal settings for devices, memory and plugins share one, including the devices' arenas. After a
  /// device was lost and its plugin asked for a reset, the next call without another user of the runtime loads it anew.
  /// With `cluster.remote_devices` also their processes are asked, again in every call.
  static Result<std::shared_ptr<Runtime>> For(const config::Config& config);
  /// As `For` with an empty configuration.
  static Result<std::shared_ptr<Runtime>> Default();
  /// From now on an op that no loaded plugin brings makes `Default` load, once, before it is reported as unknown.
  static void LoadOpsOnDemand();
  /// Replaces config::Sources::OfProcess() as the source of settings for `For` and `Default`. FailedPrecondition after
  /// a call of either.
  static Status SetSources(const config::Sources& sources);
  /// What `For` calls for a configuration with remote devices. Without one it ignores them.
  static void SetRemoteAttacher(RemoteAttacher attach);
};

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RUNTIME_H_
