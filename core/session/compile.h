// The pipeline: from a graph and a request to something that runs.
#ifndef WEIR_CORE_SESSION_COMPILE_H_
#define WEIR_CORE_SESSION_COMPILE_H_

#include <map>
#include <memory>
#include <mutex>

#include "core/base/status.h"
#include "core/execute/plan_runner.h"
#include "core/graph/step_graph.h"
#include "core/kernel/calibration.h"
#include "core/kernel/node_resources.h"
#include "core/place/explanation.h"
#include "core/session/runtime.h"
#include "core/session/session.h"

namespace weir::session {

/// Devices of the nodes whose state a session has placed already; such nodes stay where they are.
struct StatePlaces {
  std::mutex mutex;  // protects device_of
  std::map<graph::NodeId, int> device_of;
};

/// What a session lends to the pipeline.
struct CompileContext {
  const Runtime& runtime;
  const SessionOptions& options;
  kernel::ResourceScope& resources;
  kernel::NodeResources& node_resources;
  int parallelism = 1;                               // ops that may run at once
  uint64_t max_tiles = 1;                            // into which an op may be cut
  const kernel::Calibration* calibration = nullptr;  // of SessionOptions::profile_file
  StatePlaces* places = nullptr;
};

/// optimize -> place -> fuse -> partition -> plan; again without fuse where no kernel takes a fused op as it is used.
/// Errors are those of the stages and name the node.
/// `explanation` (may be null) gets the placement's summary and warnings.
Result<std::unique_ptr<execute::PlanRunner>> Compile(const CompileContext& context, const graph::Graph& graph,
                                                     const graph::StepRequest& request,
                                                     place::Explanation* explanation = nullptr);

/// optimize -> place, with every candidate of every node; runs nothing and places no state.
Result<place::Explanation> ExplainPlacement(const CompileContext& context, const graph::Graph& graph,
                                            const graph::StepRequest& request);

/// optimize -> place -> partition: what each device would get of the step, as serialized GraphDefs.
Result<std::vector<std::string>> PartitionGraphs(const CompileContext& context, const graph::Graph& graph,
                                                 const graph::StepRequest& request);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_COMPILE_H_
