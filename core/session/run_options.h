// Options of single runs.
#ifndef WEIR_CORE_SESSION_RUN_OPTIONS_H_
#define WEIR_CORE_SESSION_RUN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::runtime {
class Cancellation;
class Rendezvous;
}  // namespace weir::runtime

namespace weir::session {

struct RunOptions {
  bool collect_nodes = false;
  /// DeadlineExceeded if the step takes longer; 0 = the session's operation_timeout_in_ms.
  int64_t timeout_in_ms = 0;
  /// Records the times of all ops in RunReport::trace.
  bool trace = false;
  /// Writes the part of each device to RunReport::partition_graphs.
  bool output_partition_graphs = false;
  /// InvalidArgument at the first op with a NaN or infinity in its outputs, with its device, origin and statistics of
  /// its inputs. Disables folding (except in the plan of a callable).
  bool check_numerics = false;
  /// -1 runs ops serially; 0 uses the session's setting. InvalidArgument for other values.
  int inter_op_thread_pool = 0;
  /// Connects Send and Recv nodes with those of other steps or processes; must outlive the run. Null = none may run.
  runtime::Rendezvous* rendezvous = nullptr;
  /// Cancels the step with its status; must outlive the run. Null = only the session can cancel the step.
  runtime::Cancellation* cancellation = nullptr;
};

/// Parses a RunOptions message in wire or text format. Any trace level but NO_TRACE enables tracing. Unimplemented for
/// debug_options.
Result<RunOptions> ParseRunOptions(std::string_view bytes);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RUN_OPTIONS_H_
