// Builds the explanation of a placement.
#ifndef WEIR_CORE_PLACE_EXPLAIN_H_
#define WEIR_CORE_PLACE_EXPLAIN_H_

#include "core/graph/placement.h"
#include "core/place/cost_table.h"

namespace weir::place {

/// The results of Place. Without a table no costs were computed: constraints left no choice, or rules decided.
struct Findings {
  const PlaceOptions& options;
  const graph::StepGraph& step;
  const Constraints& constraints;
  Support& support;
  const graph::Placement& placement;
  const CostTable* table = nullptr;
  const Choice* choice = nullptr;
  bool by_cost = false;
};

/// Fills `nodes` only with Explain::kAll.
Explanation Explain(const Findings& findings);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_EXPLAIN_H_
