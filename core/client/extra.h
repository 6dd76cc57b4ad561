/// \file
/// The API beyond <weir/weir.h>, which it includes: networks, embeddings, recurrent cells, optimisers, learning rates,
/// sparse tensors, layers, clipping, summaries, traces, tensor arrays, queues, lookup tables, loops over slices,
/// checks, prints, more array ops, scatter updates, partitioners, regularizers, losses, attribute scopes, parameter
/// servers, MetaGraphs, graphs beyond 2 GiB, readers of checkpoints, reports of runs and sessions, a progress bar,
/// parts of custom builders, training programs with threads, replicas and hooks.
#ifndef WEIR_CORE_CLIENT_EXTRA_H_
#define WEIR_CORE_CLIENT_EXTRA_H_

#include "core/client/containers/accumulator.h"          // IWYU pragma: export
#include "core/client/containers/barrier.h"              // IWYU pragma: export
#include "core/client/containers/lookup_table.h"         // IWYU pragma: export
#include "core/client/containers/queue.h"                // IWYU pragma: export
#include "core/client/containers/reader.h"               // IWYU pragma: export
#include "core/client/containers/staging_area.h"         // IWYU pragma: export
#include "core/client/containers/tensor_array.h"         // IWYU pragma: export
#include "core/client/control_flow/elementwise_loops.h"  // IWYU pragma: export
#include "core/client/distributed/server.h"              // IWYU pragma: export
#include "core/client/graph/attribute_scopes.h"          // IWYU pragma: export
#include "core/client/graph/large_graph.h"               // IWYU pragma: export
#include "core/client/graph/replica_device_setter.h"     // IWYU pragma: export
#include "core/client/ops/array_extra_ops.h"             // IWYU pragma: export
#include "core/client/ops/build_op.h"                    // IWYU pragma: export
#include "core/client/ops/check_ops.h"                   // IWYU pragma: export
#include "core/client/ops/embedding_ops.h"               // IWYU pragma: export
#include "core/client/ops/linalg_ops.h"                  // IWYU pragma: export
#include "core/client/ops/math_names.h"                  // IWYU pragma: export
#include "core/client/ops/nn_ops.h"                      // IWYU pragma: export
#include "core/client/ops/print_ops.h"                   // IWYU pragma: export
#include "core/client/ops/sparse_tensor.h"               // IWYU pragma: export
#include "core/client/rnn/rnn.h"                         // IWYU pragma: export
#include "core/client/rnn/rnn_cell.h"                    // IWYU pragma: export
#include "core/client/saver/checkpoint_reader.h"         // IWYU pragma: export
#include "core/client/saver/init_from_checkpoint.h"      // IWYU pragma: export
#include "core/client/saver/meta_graph.h"                // IWYU pragma: export
#include "core/client/session/tracing.h"                 // IWYU pragma: export
#include "core/client/training/adaptive_optimizers.h"    // IWYU pragma: export
#include "core/client/training/clipping.h"               // IWYU pragma: export
#include "core/client/training/coordinator.h"            // IWYU pragma: export
#include "core/client/training/input.h"                  // IWYU pragma: export
#include "core/client/training/layers.h"                 // IWYU pragma: export
#include "core/client/training/learning_rate_decay.h"    // IWYU pragma: export
#include "core/client/training/losses.h"                 // IWYU pragma: export
#include "core/client/training/monitored_session.h"      // IWYU pragma: export
#include "core/client/training/moving_averages.h"        // IWYU pragma: export
#include "core/client/training/progress.h"               // IWYU pragma: export
#include "core/client/training/queue_runner.h"           // IWYU pragma: export
#include "core/client/training/ready_session.h"          // IWYU pragma: export
#include "core/client/training/running_mean.h"           // IWYU pragma: export
#include "core/client/training/session_run_hooks.h"      // IWYU pragma: export
#include "core/client/training/summary.h"                // IWYU pragma: export
#include "core/client/training/supervisor.h"             // IWYU pragma: export
#include "core/client/training/sync_replicas.h"          // IWYU pragma: export
#include "core/client/variables/initializers.h"          // IWYU pragma: export
#include "core/client/variables/partitioners.h"          // IWYU pragma: export
#include "core/client/variables/regularizers.h"          // IWYU pragma: export
#include "core/client/variables/state_ops.h"             // IWYU pragma: export
#include "core/client/weir.h"                            // IWYU pragma: export
#include "core/session/reports.h"                        // IWYU pragma: export

#endif  // WEIR_CORE_CLIENT_EXTRA_H_
