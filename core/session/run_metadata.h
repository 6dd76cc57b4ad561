// TensorFlow's message about a single run.
#ifndef WEIR_CORE_SESSION_RUN_METADATA_H_
#define WEIR_CORE_SESSION_RUN_METADATA_H_

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/session/reports.h"
#include "core/session/run_options.h"

namespace weir::session {

/// The serialized RunMetadata of a run on `graph`: StepStats from the report's trace, one entry per device and span,
/// labelled "name = Op(in1, in2)", and its partition graphs.
Result<std::string> RunMetadata(const graph::Definition& graph, const RunReport& report);

/// Sets what such a message says of a run: its trace, nodes per device, and partition graphs.
Status ReadRunMetadata(std::string_view bytes, RunReport& report);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_RUN_METADATA_H_
