// The page of `weir explain --html`.
#ifndef WEIR_TOOLS_WEIR_EXPLAIN_PAGE_H_
#define WEIR_TOOLS_WEIR_EXPLAIN_PAGE_H_

#include <string>

#include "core/place/explanation.h"
#include "core/session/measurement.h"

namespace weir::cli {

/// One self-contained page that loads nothing: the simulated timeline of each device and link, memory over time, the
/// graph by scopes and devices with zoom and search, and every node with the cost and verdict of each device.
/// `measured` (may be null) adds measured times. Names in the graph are data, never markup.
std::string ExplainPage(const std::string& title, const place::Explanation& explanation,
                        const session::StepMeasurement* measured);

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_EXPLAIN_PAGE_H_
