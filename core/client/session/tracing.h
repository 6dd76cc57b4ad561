// Traces of many runs of a session.
#ifndef WEIR_CORE_CLIENT_SESSION_TRACING_H_
#define WEIR_CORE_CLIENT_SESSION_TRACING_H_

#include <memory>

#include "core/client/session/session.h"
#include "core/session/profile_summary.h"
#include "core/session/tracer.h"

namespace weir {

/// From now on the runs and calls of `session` that `tracer` asks for go to its file, except for parts of partial runs;
/// null ends this. No run may be under way. Several sessions may share a tracer.
/// ```cpp
/// const auto tracer = session::Tracer::Open({.path = "trace.json", .skip = 10, .active = 5, .repeat = 1});
/// if (tracer.ok()) Trace(session, *tracer);
/// ```
/// `session::Summarize` and `session::SummarizeChromeTrace` sum the times of a run's trace (session::RunReport) or of a
/// written file.
void Trace(Session& session, std::shared_ptr<session::Tracer> tracer);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SESSION_TRACING_H_
