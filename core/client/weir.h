/// \file
/// weir's C++ API in one header: graphs, op builders, variables, gradients, optimisers, sessions and their reports,
/// checkpoints. <weir/extra.h> has more: summaries, containers, loops over slices, checks, prints, losses.
#ifndef WEIR_CORE_CLIENT_WEIR_H_
#define WEIR_CORE_CLIENT_WEIR_H_

#include "core/client/control_flow/control_flow.h"  // IWYU pragma: export
#include "core/client/gradients/gradients.h"        // IWYU pragma: export
#include "core/client/graph/graph.h"                // IWYU pragma: export
#include "core/client/graph/scopes.h"               // IWYU pragma: export
#include "core/client/ops/array_ops.h"              // IWYU pragma: export
#include "core/client/ops/operand.h"                // IWYU pragma: export
#include "core/client/ops/ops.h"                    // IWYU pragma: export
#include "core/client/saver/saver.h"                // IWYU pragma: export
#include "core/client/session/session.h"            // IWYU pragma: export
#include "core/client/training/optimizer.h"         // IWYU pragma: export
#include "core/client/variables/variable.h"         // IWYU pragma: export
#include "core/client/variables/variable_scope.h"   // IWYU pragma: export

#endif  // WEIR_CORE_CLIENT_WEIR_H_
