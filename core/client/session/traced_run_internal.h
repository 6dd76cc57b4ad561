// Runs under a tracer, for implementations of SessionInterface.
#ifndef WEIR_CORE_CLIENT_SESSION_TRACED_RUN_INTERNAL_H_
#define WEIR_CORE_CLIENT_SESSION_TRACED_RUN_INTERNAL_H_

#include <type_traits>

#include "core/session/reports.h"
#include "core/session/run_options.h"
#include "core/session/tracer.h"

namespace weir {

/// Calls `run` with the options and the report, and writes its trace where `tracer` (null: none) asks for it.
template <class F>
std::invoke_result_t<const F&, const session::RunOptions&, session::RunReport*> RunTraced(
    session::Tracer* tracer, const session::RunOptions& options, session::RunReport* report, const F& run) {
  if (tracer == nullptr) return run(options, report);
  const session::Tracer::Run traced = tracer->Begin();
  if (!traced.traced()) return run(options, report);
  session::RunOptions with_times = options;
  with_times.trace = true;
  session::RunReport own;
  session::RunReport* const written = report != nullptr ? report : &own;
  written->trace = trace::StepTrace();  // a run that does not begin leaves it as it is
  auto result = run(with_times, written);
  tracer->End(traced, written->trace);
  return result;
}

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_SESSION_TRACED_RUN_INTERNAL_H_
