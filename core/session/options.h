// Derives the options of each component from one configuration.
#ifndef WEIR_CORE_SESSION_OPTIONS_H_
#define WEIR_CORE_SESSION_OPTIONS_H_

#include "core/config/config.h"
#include "core/plugin/catalogue.h"
#include "core/session/session.h"

namespace weir::session {

/// Plugin loading: the folders in `config`, then the default ones.
plugin::LoadOptions LoadOptionsFrom(const config::Config& config);

/// Turns off what the tasks of a cluster do with their own parts: fusing, compiling and measuring.
void LeaveToTasks(SessionOptions& options);

/// Session options.
SessionOptions SessionOptionsFrom(const config::Config& config);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_OPTIONS_H_
