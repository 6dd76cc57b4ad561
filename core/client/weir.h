/// \file
/// weir's C++ API in one header: graphs, op builders, variables, gradients, optimisers, sessions and what they
/// report, checkpoints, summaries.
#ifndef WEIR_CORE_CLIENT_WEIR_H_
#define WEIR_CORE_CLIENT_WEIR_H_

#include "core/client/collections.h"            // IWYU pragma: export
#include "core/client/control_flow.h"           // IWYU pragma: export
#include "core/client/global_step.h"            // IWYU pragma: export
#include "core/client/gradients.h"              // IWYU pragma: export
#include "core/client/graph.h"                  // IWYU pragma: export
#include "core/client/index.h"                  // IWYU pragma: export
#include "core/client/initializers.h"           // IWYU pragma: export
#include "core/client/layers.h"                 // IWYU pragma: export
#include "core/client/losses.h"                 // IWYU pragma: export
#include "core/client/meta_graph.h"             // IWYU pragma: export
#include "core/client/operand.h"                // IWYU pragma: export
#include "core/client/ops.h"                    // IWYU pragma: export
#include "core/client/optimizer.h"              // IWYU pragma: export
#include "core/client/print_ops.h"              // IWYU pragma: export
#include "core/client/progress.h"               // IWYU pragma: export
#include "core/client/regularizers.h"           // IWYU pragma: export
#include "core/client/replica_device_setter.h"  // IWYU pragma: export
#include "core/client/saver.h"                  // IWYU pragma: export
#include "core/client/scopes.h"                 // IWYU pragma: export
#include "core/client/seed.h"                   // IWYU pragma: export
#include "core/client/session.h"                // IWYU pragma: export
#include "core/client/state_ops.h"              // IWYU pragma: export
#include "core/client/summary.h"                // IWYU pragma: export
#include "core/client/variable.h"               // IWYU pragma: export
#include "core/client/variable_scope.h"         // IWYU pragma: export
#include "core/session/run_metadata.h"          // IWYU pragma: export
#include "core/trace/chrome.h"                  // IWYU pragma: export

#endif  // WEIR_CORE_CLIENT_WEIR_H_
