// Integers that follow from the graph alone: constants, known shapes, and the small arithmetic that models do on them.
#ifndef WEIR_CORE_GRAPH_KNOWN_INTS_H_
#define WEIR_CORE_GRAPH_KNOWN_INTS_H_

#include <optional>

#include "core/graph/graph.h"

namespace weir::graph {

/// The tensor of a Const, seen through Identity nodes; else null. Any type; borrowed from the graph.
const Tensor* ConstantOf(const Graph& graph, Endpoint e);

/// The value of an integer scalar or vector (at most kMaxRank elements) when every element is known.
std::optional<Tensor> KnownTensor(const Graph& graph, Endpoint e);

/// The shape that an integer vector describes, with -1 for elements that are unknown or negative; unknown rank when the
/// length is unknown or the elements cannot be extents.
PartialShape KnownShapeValue(const Graph& graph, Endpoint e);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_KNOWN_INTS_H_
