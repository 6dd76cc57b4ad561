// References to nodes and their outputs, and the text and binary formats of graphs.
#ifndef WEIR_CORE_GRAPH_ENDPOINT_H_
#define WEIR_CORE_GRAPH_ENDPOINT_H_

#include <compare>
#include <cstdint>

namespace weir::graph {

class Node;

using NodeId = int32_t;

/// Output `index` of node `node`.
struct Endpoint {
  NodeId node = -1;
  int32_t index = 0;
  bool operator==(const Endpoint&) const = default;
  auto operator<=>(const Endpoint&) const = default;
};

/// The format of a GraphDef.
enum class GraphFormat { kBinary, kText };

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_ENDPOINT_H_
