// Placement in a session: its options, and the fixed devices of existing state.
#ifndef WEIR_CORE_SESSION_PLACING_H_
#define WEIR_CORE_SESSION_PLACING_H_

#include "core/base/status.h"
#include "core/graph/placement.h"
#include "core/graph/step_graph.h"
#include "core/place/explanation.h"
#include "core/session/compile.h"

namespace weir::session {

/// Places a step and records the devices of its state. `explanation` may be null.
Result<graph::Placement> PlaceStep(const CompileContext& context, const graph::StepGraph& step,
                                   place::Explanation* explanation);

/// As PlaceStep with every candidate of every node; records nothing.
Result<place::Explanation> ExplainStep(const CompileContext& context, const graph::StepGraph& step);

/// The placement in the nodes' `device` fields, which are full names in a part of a step. NotFound for an unknown
/// device.
Result<graph::Placement> PlacedAsWritten(const device::DeviceSet& devices, const graph::StepGraph& step);

/// The first device that uses host memory. FailedPrecondition if there is none.
Result<int> HostDevice(const device::DeviceSet& devices);

}  // namespace weir::session

#endif  // WEIR_CORE_SESSION_PLACING_H_
