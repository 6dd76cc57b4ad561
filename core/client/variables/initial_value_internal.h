// Initial values that read other variables.
#ifndef WEIR_CORE_CLIENT_VARIABLES_INITIAL_VALUE_INTERNAL_H_
#define WEIR_CORE_CLIENT_VARIABLES_INITIAL_VALUE_INTERNAL_H_

#include <source_location>
#include <string>

#include "core/client/graph/graph.h"

namespace weir {

/// `initial`, or a copy of it that begins with the initialised values of the reference variables that it reads, so that
/// their initialisers and this one may run in any order. Conds are made in the current name scope, copies are named
/// "add_v" for the variable `name` ("v"). One level: initial values of those variables are taken as they are. What
/// depends on a loop, on the reference itself, on variables of other collections than the global and local one, or on
/// handles stays. Source: TensorFlow's variables.py.
Output InAnyOrder(const Output& initial, const std::string& name, std::source_location where);

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_VARIABLES_INITIAL_VALUE_INTERNAL_H_
