// Deduction of a node's attributes from the types of its inputs.
#ifndef WEIR_CORE_OP_DEDUCE_H_
#define WEIR_CORE_OP_DEDUCE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace weir::op {

/// The number of inputs of each argument of `def`, for a node with `inputs` inputs and the attributes `attrs`; empty if
/// they do not determine it.
std::vector<size_t> InputCounts(const OpDef& def, size_t inputs, const AttrList& attrs);

/// Completes `attrs` by types and list lengths that follow from the inputs; keeps those that are set.
AttrList Deduce(const OpDef& def, std::span<const DType> input_types, AttrList attrs);

/// Sets an attribute unless it is set.
void SetDefault(AttrList& attrs, const std::string& name, AttrValue value);

}  // namespace weir::op

#endif  // WEIR_CORE_OP_DEDUCE_H_
