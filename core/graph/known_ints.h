// Integers determined by the graph alone: constants, known shapes, and small arithmetic on them.
#ifndef WEIR_CORE_GRAPH_KNOWN_INTS_H_
#define WEIR_CORE_GRAPH_KNOWN_INTS_H_

#include <optional>

#include "core/graph/definition.h"

namespace weir::graph {

/// The tensor of a constant, possibly behind forwarding ops; else null. Any type; borrowed from the graph.
const Tensor* ConstantOf(const Definition& graph, Endpoint e);

/// The value of an integer scalar or vector (at most kMaxRank elements) if every element is known.
std::optional<Tensor> KnownTensor(const Definition& graph, Endpoint e);

/// The shape described by an integer vector, with -1 for elements that are unknown or negative. Unknown rank if the
/// length is unknown or the elements are not valid extents.
PartialShape KnownShapeValue(const Definition& graph, Endpoint e);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_KNOWN_INTS_H_
