// The compilation pipeline: from a graph and a request to an executable program.
#ifndef WEIR_CORE_SESSION_COMPILE_H_
#define WEIR_CORE_SESSION_COMPILE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/passes.h"
#include "core/base/status.h"
#include "core/compile/compilers.h"
#include "core/graph/part.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/kernel/calibration.h"
#include "core/kernel/measured.h"
#include "core/lower/lowering.h"
#include "core/place/explanation.h"
#include "core/runtime/node_resources.h"
#include "core/session/program.h"
#include "core/session/runtime.h"
#include "core/session/session.h"

namespace weir::optimize {
class FoldedFilters;
}

namespace weir::session {

/// Devices of nodes with state that the session has already placed; these nodes do not move.
struct StatePlaces {
  std::mutex mutex;  // protects the others
  std::map<graph::NodeId, int> device_of;
  std::map<graph::NodeId, int> foreseen;  // by the placement of the steps that will use it
};

/// The session's resources used by the pipeline.
struct CompileContext {
  const Runtime& runtime;
  const SessionOptions& options;
  runtime::ResourceScope& resources;
  runtime::NodeResources& node_resources;
  int parallelism = 1;                               // ops that may run concurrently
  uint64_t max_tiles = 1;                            // limit on tiles of an op
  const kernel::Calibration* calibration = nullptr;  // from SessionOptions::profile_file
  StatePlaces* places = nullptr;
  const lower::Lowering* lowering = nullptr;                   // that produced the graph
  PassWatch watch = {};                                        // of the passes of all stages; may be empty
  std::shared_ptr<const kernel::MeasuredCosts> measured = {};  // for placement; may be null
  optimize::FoldedFilters* folded_filters = nullptr;           // shared by all steps of the session; may be null
};

/// The result of the master's half.
struct PlacedStep {
  graph::StepGraph step;
  graph::Placement placement;
  compile::Executables executables;  // of its compiled regions
  std::vector<std::string> regions;  // what became of each region, a line for each
};

/// Optimizes a step of a graph without calls (lower).
Result<graph::StepGraph> OptimizeStep(const CompileContext& context, const graph::Definition& graph,
                                      const graph::StepRequest& request);

/// The master's half for a graph without calls (lower): optimize -> place -> fuse. Errors come from the stages and name
/// the node. `explanation` (may be null) gets the summary and warnings of the placement.
Result<PlacedStep> Prepare(const CompileContext& context, const graph::Definition& graph,
                           const graph::StepRequest& request, place::Explanation* explanation = nullptr);

/// Partitions the step between devices.
Result<std::vector<graph::Part>> CutBetweenDevices(const CompileContext& context, const graph::StepRequest& request,
                                                   const PlacedStep& placed);

/// True if parts of the step must be registered with SessionOptions::tasks.
bool NeedsTasks(const SessionOptions& options, const graph::Placement& placement);

/// Cuts the step between tasks, for processes with these devices.
Result<std::vector<graph::Part>> CutBetweenTasks(const CompileContext& context, const graph::StepRequest& request,
                                                 const PlacedStep& placed);

/// The part's half for a single part that is the whole step: plan. `explanation` (may be null) gets the reasons of
/// kernels that declined.
Result<Program> PlanWhole(const CompileContext& context, const graph::StepRequest& request, const PlacedStep& placed,
                          place::Explanation* explanation = nullptr);
/// The part's half for each part: optimize (shapes only) -> plan.
Result<Program> PlanParts(const CompileContext& context, const graph::StepRequest& request,
                          std::vector<graph::Part> parts, place::Explanation* explanation = nullptr);

/// Both halves; for a step that needs SessionOptions::tasks the master's alone. The devices of this process form one
/// part, so nothing is cut unless SessionOptions::cut_between_devices is set.
Result<Program> Compile(const CompileContext& context, const graph::Definition& graph,
                        const graph::StepRequest& request, place::Explanation* explanation = nullptr);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_COMPILE_H_
