// Penalties on the size of variables, under TensorFlow's names.
#ifndef WEIR_CORE_CLIENT_VARIABLES_REGULARIZERS_H_
#define WEIR_CORE_CLIENT_VARIABLES_REGULARIZERS_H_

#include "core/client/variables/variable_scope.h"

namespace weir {

/// scale · Σ|w|, nodes below `l1_regularizer`. A scale of 0 adds nothing; a negative one is an error of the graph.
Regularizer L1Regularizer(double scale);
/// scale · Σw² / 2, nodes below `l2_regularizer`.
Regularizer L2Regularizer(double scale);
/// The sum of both, `l1_l2_regularizer`.
Regularizer L1L2Regularizer(double scale_l1, double scale_l2);
/// None, where a scope would give one.
Regularizer NoRegularizer();

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_REGULARIZERS_H_
