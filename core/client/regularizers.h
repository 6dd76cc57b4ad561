// Penalties on the size of weights, for GetVariable and layers.
#ifndef WEIR_CORE_CLIENT_REGULARIZERS_H_
#define WEIR_CORE_CLIENT_REGULARIZERS_H_

#include <functional>

#include "core/client/operand.h"

namespace weir {

/// A scalar that grows with the weights, added to the collection `regularization_losses`; a value that does not exist
/// adds nothing. Called in the name scope `w/Regularizer/`, beside the variable.
using Regularizer = std::function<Output(const Operand& weights)>;

/// scale · Σ|w|, nodes below `l1_regularizer`. A scale of 0 adds nothing; a negative one is an error of the graph.
Regularizer L1Regularizer(double scale);
/// scale · Σw² / 2, nodes below `l2_regularizer`.
Regularizer L2Regularizer(double scale);
/// The sum of both, `l1_l2_regularizer`.
Regularizer L1L2Regularizer(double scale_l1, double scale_l2);
/// None, where a scope would give one.
Regularizer NoRegularizer();

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_REGULARIZERS_H_
