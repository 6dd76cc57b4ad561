// Nodes that come with a file, and what the open scopes mean for them.
#include <algorithm>
#include <utility>

#include "core/client/control_flow_context.h"
#include "core/client/graph.h"
#include "core/graph/graph_def.h"

namespace weir {
namespace {

/// The other nodes that `_class` puts a node beside.
std::vector<std::string> Neighbours(const graph::Node& node) {
  if (node.attrs().Find("_class") == nullptr) return {};
  std::vector<std::string> names = ColocationGroups(node);
  for (std::string& name : names) name.erase(0, std::string_view("loc:@").size());
  std::erase(names, node.name());
  return names;
}

}  // namespace

Status Graph::Import(std::string_view graph_def, std::string_view prefix) {
  if (finalized()) return Fail(FailedPrecondition("Graph is finalized and cannot be modified."));
  graph::ImportOptions options;
  options.rename_taken = true;
  const Result<std::string> path = PrefixFor(prefix);
  WEIR_TRY(Fail(path.status()));
  options.prefix = *path;
  const int before = definition_.num_nodes();
  WEIR_TRY(Fail(graph::ImportGraphDef(graph_def, options, definition_)));
  AdoptImported(before);
  return Status();
}

Result<std::string> Graph::Export(graph::GraphFormat format) const {
  WEIR_TRY(status_);
  return graph::ExportGraphDef(definition_, format);
}

Result<std::string> Graph::PrefixFor(std::string_view scope) {
  WEIR_ASSIGN(std::string path, names_.Enter(scope));
  names_.Leave();
  if (!path.empty()) path.pop_back();
  return path;
}

/// As for operations made here, except that neither a device of its own nor a device scope counts for a node beside
/// others, which asks for their device.
void Graph::AdoptImported(graph::NodeId first) {
  op::AttrList together;
  JoinGroups(colocation_stack_, together);
  for (graph::NodeId id = first; id < definition_.num_nodes(); ++id) {
    names_.MarkUsed(definition_.node(id).name());
    NoteUnderControl(id);
    for (const auto& [name, value] : together) definition_.SetAttr(id, name, value);
  }
  std::vector<std::pair<graph::NodeId, std::vector<std::string>>> placed_beside;
  for (graph::NodeId id = first; id < definition_.num_nodes(); ++id) {
    std::vector<std::string> neighbours = Neighbours(definition_.node(id));
    if (!neighbours.empty()) {
      definition_.SetDevice(id, "");
      placed_beside.emplace_back(id, std::move(neighbours));
    } else if (!device_stack_.empty()) {
      definition_.SetDevice(id, DeviceFor(Operation(this, id), definition_.node(id).device()));
    }
    if (control_stack_.empty()) continue;
    std::vector<graph::NodeId> sources;
    for (const graph::Endpoint& input : definition_.node(id).inputs()) sources.push_back(input.node);
    for (const graph::NodeId control : ControlInputsFor(sources)) {
      (void)Fail(definition_.AddControlInput(id, control));
    }
  }
  for (const auto& [id, neighbours] : placed_beside) {
    for (const std::string& name : neighbours) {
      const graph::Node* const neighbour = definition_.Find(name);
      if (neighbour == nullptr || neighbour->device().empty()) continue;
      definition_.SetDevice(id, neighbour->device());
      break;
    }
  }
}

}  // namespace weir
