// The variable that counts the steps of training.
#ifndef WEIR_CORE_CLIENT_GLOBAL_STEP_H_
#define WEIR_CORE_CLIENT_GLOBAL_STEP_H_

#include <source_location>

#include "core/client/variable.h"

namespace weir {

/// The variable of the collection `global_step`, else the one named "global_step"; one that does not exist when there
/// is none. InvalidArgument when it is no integer scalar.
Variable GetGlobalStep(Graph& graph = Graph::Default(), std::source_location where = std::source_location::current());
/// `global_step`: an int64 scalar 0, not trainable. AlreadyExists `"global_step" already exists.`
Variable CreateGlobalStep(Graph& graph = Graph::Default(),
                          std::source_location where = std::source_location::current());
/// The one that is there, else a new one.
Variable GetOrCreateGlobalStep(Graph& graph = Graph::Default(),
                               std::source_location where = std::source_location::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_GLOBAL_STEP_H_
