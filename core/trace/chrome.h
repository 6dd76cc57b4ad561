// Traces in the JSON format that chrome://tracing and Perfetto read.
#ifndef WEIR_CORE_TRACE_CHROME_H_
#define WEIR_CORE_TRACE_CHROME_H_

#include <span>
#include <string>

#include "core/trace/span.h"

namespace weir::trace {

/// One process per device, one row per thread, one complete event ("ph": "X") per span; times in microseconds.
/// Source: "Trace Event Format", the Chromium project.
std::string ChromeTrace(std::span<const StepTrace> steps);

}  // namespace weir::trace

#endif  // WEIR_CORE_TRACE_CHROME_H_
