// The functions that travel with a graph.
#ifndef WEIR_CORE_GRAPH_FUNCTION_LIBRARY_H_
#define WEIR_CORE_GRAPH_FUNCTION_LIBRARY_H_

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace weir::graph {

/// Both libraries as one, all serialized; `known` comes first. Adding an equal function again changes nothing.
/// InvalidArgument for malformed bytes, and for a function or gradient that differs from the known one of the same
/// name.
Result<std::string> MergeLibraries(std::string_view known, std::string_view added);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_FUNCTION_LIBRARY_H_
