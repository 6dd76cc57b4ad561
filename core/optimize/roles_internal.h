// The roles of a step's nodes in arithmetic.
#ifndef WEIR_CORE_OPTIMIZE_ROLES_INTERNAL_H_
#define WEIR_CORE_OPTIMIZE_ROLES_INTERNAL_H_

#include "core/base/indexed.h"
#include "core/graph/step_graph.h"
#include "core/ops/algebra.h"

namespace weir::optimize {

/// By node; kNone for nodes that are not computed. Looks each op up once.
IndexedVector<graph::NodeId, ops::Algebra> RolesOf(const graph::StepGraph& step);

}  // namespace weir::optimize

#endif  // WEIR_CORE_OPTIMIZE_ROLES_INTERNAL_H_
