// The pipeline: from a graph and a request to something that runs.
#ifndef WEIR_CORE_SESSION_COMPILE_H_
#define WEIR_CORE_SESSION_COMPILE_H_

#include <memory>

#include "core/base/status.h"
#include "core/execute/plan_runner.h"
#include "core/graph/step_graph.h"
#include "core/kernel/node_resources.h"
#include "core/session/runtime.h"
#include "core/session/session.h"

namespace weir::session {

/// What a session lends to the pipeline.
struct CompileContext {
  const Runtime& runtime;
  const SessionOptions& options;
  kernel::ResourceScope& resources;
  kernel::NodeResources& node_resources;
  int parallelism = 1;  // ops that may run at once
};

/// optimize -> place -> partition -> plan. Errors are those of the stages and name the node.
Result<std::unique_ptr<execute::PlanRunner>> Compile(const CompileContext& context, const graph::Graph& graph,
                                                     const graph::StepRequest& request);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_COMPILE_H_
