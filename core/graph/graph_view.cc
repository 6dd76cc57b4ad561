#include "core/graph/graph_view.h"

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "core/proto/parse.h"

namespace weir::graph {
namespace {

constexpr uint32_t kVarint = 0;
constexpr uint32_t kBytes = 2;

Status Malformed(std::string_view what) {
  return InvalidArgument("{} cannot be parsed: it is cut short or malformed", what);
}

bool IsAscii(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

Status ReadAttr(std::string_view entry, NodeView::Attr& attr) {
  WireFields fields(entry);
  while (fields.Next()) {
    if (fields.Is(1, kBytes)) attr.name = fields.bytes();
    if (fields.Is(2, kBytes)) attr.value = fields.bytes();
  }
  if (!fields.ok()) return Malformed("GraphDef: an attribute");
  return IsAscii(attr.name) ? Status() : InvalidArgument("GraphDef: the name of an attribute has bytes beyond ASCII");
}

/// Sorts the attributes from `first` on. Of equal names the last in the file is kept, as in protobuf maps.
void SortAttrs(size_t first, std::vector<NodeView::Attr>& attrs) {
  const auto begin = attrs.begin() + static_cast<ptrdiff_t>(first);
  // Stable insertion sort: attributes are few and usually sorted already.
  for (auto it = begin; it != attrs.end(); ++it) {
    const NodeView::Attr attr = *it;
    auto to = it;
    for (; to != begin && attr.name < (to - 1)->name; --to) *to = *(to - 1);
    *to = attr;
  }
  auto kept = begin;
  for (auto it = begin; it != attrs.end(); ++it) {
    if (it + 1 == attrs.end() || (it + 1)->name != it->name) *kept++ = *it;
  }
  attrs.erase(kept, attrs.end());
}

constexpr size_t kMaxAttrs = 4096;  // bounds the sorting time

Status ReadNode(std::string_view bytes, GraphView& view) {
  NodeView& node = view.nodes.emplace_back();
  node.first_input = static_cast<uint32_t>(view.inputs.size());
  node.first_attr = static_cast<uint32_t>(view.attrs.size());
  WireFields fields(bytes);
  while (fields.Next()) {
    if (fields.type() != kBytes) continue;
    switch (fields.number()) {
      case 1:
        node.name = fields.bytes();
        break;
      case 2:
        node.op = fields.bytes();
        break;
      case 3:
        view.inputs.push_back(fields.bytes());
        break;
      case 4:
        node.device = fields.bytes();
        break;
      case 5:
        WEIR_TRY(ReadAttr(fields.bytes(), view.attrs.emplace_back()));
        break;
      default:
        break;
    }
  }
  if (!fields.ok()) return Malformed("GraphDef: a node");
  if (!IsAscii(node.name)) {
    return InvalidArgument("GraphDef: the name of node number {} has bytes beyond ASCII", view.nodes.size() - 1);
  }
  if (!IsAscii(node.op) || !IsAscii(node.device)) {
    return InvalidArgument("GraphDef: the {} of node '{}' has bytes beyond ASCII", IsAscii(node.op) ? "device" : "op",
                           node.name);
  }
  if (view.attrs.size() - node.first_attr > kMaxAttrs) {
    return InvalidArgument("Node '{}' has {} attributes, more than the limit of {}", node.name,
                           view.attrs.size() - node.first_attr, kMaxAttrs);
  }
  SortAttrs(node.first_attr, view.attrs);
  return {};
}

Status ReadVersions(std::string_view bytes, Versions& versions) {
  WireFields fields(bytes);
  while (fields.Next()) {
    const auto value = static_cast<int32_t>(fields.value());
    if (fields.Is(1, kVarint)) versions.producer = value;
    if (fields.Is(2, kVarint)) versions.min_consumer = value;
    if (fields.Is(3, kVarint)) versions.bad_consumers.push_back(value);
    if (!fields.Is(3, kBytes)) continue;
    std::string_view packed = fields.bytes();
    for (uint64_t number = 0; !packed.empty();) {
      if (!TakeVarint(packed, number)) return Malformed("GraphDef: its versions");
      versions.bad_consumers.push_back(static_cast<int32_t>(number));
    }
  }
  return fields.ok() ? Status() : Malformed("GraphDef: its versions");
}

}  // namespace

Result<GraphView> ViewGraph(std::string_view bytes) {
  constexpr size_t kMaxNodes = 10'000'000;
  if (bytes.size() > proto::kMaxMessageBytes) {
    return InvalidArgument("GraphDef of {} bytes: at most {} are allowed", bytes.size(), proto::kMaxMessageBytes);
  }
  size_t nodes = 0;
  WireFields counted(bytes);
  while (counted.Next()) nodes += counted.Is(1, kBytes) ? 1 : 0;
  if (!counted.ok()) return Malformed(fmt::format("GraphDef of {} bytes", bytes.size()));
  if (nodes >= kMaxNodes) return InvalidArgument("GraphDef has {} nodes; fewer than {} are allowed", nodes, kMaxNodes);

  GraphView view;
  view.nodes.reserve(nodes);
  WireFields fields(bytes);
  while (fields.Next()) {
    if (fields.Is(1, kBytes)) WEIR_TRY(ReadNode(fields.bytes(), view));
    if (fields.Is(2, kBytes)) view.library += fields.bytes();  // concatenated messages merge
    if (fields.Is(4, kBytes)) WEIR_TRY(ReadVersions(fields.bytes(), view.versions));
    if (fields.Is(5, kBytes)) view.debug_info += fields.bytes();
  }
  return view;
}

}  // namespace weir::graph
