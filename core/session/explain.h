// Results of the compilation stages as data and text; nothing runs.
#ifndef WEIR_CORE_SESSION_EXPLAIN_H_
#define WEIR_CORE_SESSION_EXPLAIN_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/session/compile.h"

namespace weir::session {

/// optimize -> place, with every candidate of every node; does not fix the placement of state.
Result<place::Explanation> ExplainPlacement(const CompileContext& context, const graph::Definition& graph,
                                            const graph::StepRequest& request);

/// optimize -> place -> fuse, and plan if requested, as text; kPasses: what each pass of these left. The plan of a step
/// that is cut between devices is the text of each part's plan after a line "part DEVICE".
Result<std::string> StageText(const CompileContext& context, const graph::Definition& graph,
                              const graph::StepRequest& request, Stage stage);

/// optimize -> place -> partition: the part of each device as a serialized GraphDef.
Result<std::vector<std::string>> PartitionGraphs(const CompileContext& context, const graph::Definition& graph,
                                                 const graph::StepRequest& request);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_EXPLAIN_H_
