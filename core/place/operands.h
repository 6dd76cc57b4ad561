// Operand descriptions of a node for cost queries before placement.
#ifndef WEIR_CORE_PLACE_OPERANDS_H_
#define WEIR_CORE_PLACE_OPERANDS_H_

#include <cstdint>
#include <vector>

#include "core/graph/step_graph.h"
#include "core/kernel/prepared.h"

namespace weir::place {

struct Operands {
  std::vector<kernel::OperandSpec> inputs, outputs;  // flattened
  bool known = true;                                 // all shapes are known; otherwise some extents are assumed
};

/// The operands of a step node, with `unknown_dim` for each unknown extent. Values of constants are borrowed.
Operands OperandsOf(const graph::StepGraph& step, const graph::StepNode& node, int64_t unknown_dim);

}  // namespace weir::place

#endif  // WEIR_CORE_PLACE_OPERANDS_H_
