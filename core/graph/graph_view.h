// A zero-copy view of a serialized GraphDef: its nodes, inputs and attributes without message objects.
#ifndef WEIR_CORE_GRAPH_GRAPH_VIEW_H_
#define WEIR_CORE_GRAPH_GRAPH_VIEW_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/definition.h"
#include "core/proto/wire_fields.h"

namespace weir::graph {

using proto::TakeVarint;
using proto::WireFields;

struct NodeView {
  struct Attr {
    std::string_view name;
    std::string_view value;  // a serialized AttrValue
  };
  std::string_view name;
  std::string_view op;
  std::string_view device;
  uint32_t first_input = 0;
  uint32_t first_attr = 0;
};

/// All string views point into the input bytes.
struct GraphView {
  std::vector<NodeView> nodes;
  std::vector<std::string_view> inputs;  // of all nodes, concatenated
  std::vector<NodeView::Attr> attrs;     // of all nodes; sorted by name within a node, the last of equal names kept
  std::string library;                   // a serialized FunctionDefLibrary
  std::string debug_info;                // a serialized GraphDebugInfo
  Versions versions{.producer = 0, .min_consumer = 0, .bad_consumers = {}};

  std::span<const std::string_view> InputsOf(size_t node) const {
    const size_t end = node + 1 < nodes.size() ? nodes[node + 1].first_input : inputs.size();
    return std::span(inputs).subspan(nodes[node].first_input, end - nodes[node].first_input);
  }
  std::span<const NodeView::Attr> AttrsOf(size_t node) const {
    const size_t end = node + 1 < nodes.size() ? nodes[node + 1].first_attr : attrs.size();
    return std::span(attrs).subspan(nodes[node].first_attr, end - nodes[node].first_attr);
  }
};

/// Parses the outline of a serialized GraphDef, which must outlive the result. Attribute values are not parsed.
/// InvalidArgument for malformed bytes, names that are not ASCII, more than 2 GiB, or 10 million nodes or more.
Result<GraphView> ViewGraph(std::string_view bytes);

}  // namespace weir::graph

#endif  // WEIR_CORE_GRAPH_GRAPH_VIEW_H_
