// From one configuration to the options of each part.
#ifndef WEIR_CORE_SESSION_OPTIONS_H_
#define WEIR_CORE_SESSION_OPTIONS_H_

#include "core/config/config.h"
#include "core/plugin/catalogue.h"
#include "core/session/session.h"

namespace weir::session {

/// How plugins are loaded: the folders of `config`, then the usual ones.
plugin::LoadOptions LoadOptionsFrom(const config::Config& config);

/// How a session runs.
SessionOptions SessionOptionsFrom(const config::Config& config);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_OPTIONS_H_
