// The functions that travel with a graph.
#ifndef WEIR_CORE_GRAPH_FUNCTION_LIBRARY_H_
#define WEIR_CORE_GRAPH_FUNCTION_LIBRARY_H_

#include <string>

#include "core/base/status.h"

namespace weir::tf {
class FunctionDefLibrary;
}

namespace weir::graph {

/// Both libraries as one, serialized; `known` is serialized, and comes first. Adding an equal function again changes
/// nothing; InvalidArgument for a function or gradient that differs from the known one of the same name.
Result<std::string> MergeLibraries(const std::string& known, const tf::FunctionDefLibrary& added);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_FUNCTION_LIBRARY_H_
