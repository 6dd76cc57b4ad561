// TensorFlow's messages about single runs: RunOptions in, RunMetadata out.
#ifndef WEIR_CORE_SESSION_RUN_METADATA_H_
#define WEIR_CORE_SESSION_RUN_METADATA_H_

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/session/session.h"

namespace weir::session {

/// A RunOptions message, in wire or text format: any trace level but NO_TRACE traces; the largest values of a step that
/// does not fit are told without being asked for. Unimplemented for what debug_options watch.
Result<RunOptions> ParseRunOptions(std::string_view bytes);

/// The serialized RunMetadata of a run on `graph`: StepStats from the report's trace, one entry per device and span,
/// labelled "name = Op(in1, in2)", and its partition graphs.
Result<std::string> RunMetadata(const graph::Graph& graph, const RunReport& report);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RUN_METADATA_H_
