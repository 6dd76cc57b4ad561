// Nodes that come with a file, and what the open scopes mean for them.
#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/graph/large_graph.h"
#include "core/graph/graph_def.h"
#include "core/graph/large_graph.h"

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

/// `import`: from options to a status.
template <class Import>
Status ImportBelow(std::string_view prefix, GraphInternals& internals, const Import& import) {
  if (internals.definition.finalized()) {
    return internals.Tell(FailedPrecondition("Graph is finalized and cannot be modified."));
  }
  graph::ImportOptions options;
  options.rename_taken = true;
  const Result<std::string> path = internals.PrefixFor(prefix);
  WEIR_TRY(internals.Tell(path.status()));
  options.prefix = *path;
  const int before = internals.definition.num_nodes();
  WEIR_TRY(internals.Tell(import(options)));
  internals.AdoptImported(before);
  return Status();
}

}  // namespace

Status Graph::Import(std::string_view graph_def, std::string_view prefix) {
  return ImportBelow(prefix, *internals_, [&](const graph::ImportOptions& options) {
    return graph::ImportGraphDef(graph_def, options, internals_->definition);
  });
}

Status WriteLargeGraph(const Graph& graph, const std::string& path) {
  WEIR_TRY(graph.status());
  return graph::WriteLargeGraph(Internals(graph).definition, path);
}

Status ReadLargeGraph(const std::string& path, Graph& graph, std::string_view prefix) {
  GraphInternals& internals = Internals(graph);
  return ImportBelow(prefix, internals, [&](const graph::ImportOptions& options) {
    return graph::ReadLargeGraph(path, options, internals.definition);
  });
}

Result<std::string> Graph::Export(graph::GraphFormat format, bool add_shapes) const {
  WEIR_TRY(status());
  return graph::ExportGraphDef(internals_->definition, format,
                               add_shapes ? graph::OutputShapes::kWrite : graph::OutputShapes::kOmit);
}

Result<std::string> GraphInternals::PrefixFor(std::string_view scope) {
  WEIR_ASSIGN(std::string path, names.Enter(scope));
  names.Leave();
  if (!path.empty()) path.pop_back();
  return path;
}

/// As for operations made here, except that neither a device of its own nor a device scope counts for a node beside
/// others, which asks for their device.
void GraphInternals::AdoptImported(graph::NodeId first) {
  op::AttrList together;
  JoinGroups(colocation_stack, together);
  for (graph::NodeId id = first; id < definition.num_nodes(); ++id) {
    names.MarkUsed(definition.node(id).name());
    NoteUnderControl(id);
    for (const auto& [name, value] : together) definition.SetAttr(id, name, value);
  }
  std::vector<std::pair<graph::NodeId, std::vector<std::string>>> placed_beside;
  for (graph::NodeId id = first; id < definition.num_nodes(); ++id) {
    std::vector<std::string> neighbours = Neighbours(definition.node(id));
    if (!neighbours.empty()) {
      definition.SetDevice(id, "");
      placed_beside.emplace_back(id, std::move(neighbours));
    } else if (!device_stack.empty()) {
      definition.SetDevice(id, DeviceFor(Operation(&owner, id), definition.node(id).device()));
    }
    if (control_stack.empty()) continue;
    std::vector<graph::NodeId> sources;
    for (const graph::Endpoint& input : definition.node(id).inputs()) sources.push_back(input.node);
    for (const graph::NodeId control : ControlInputsFor(sources)) {
      (void)owner.Fail(definition.AddControlInput(id, control));
    }
  }
  for (const auto& [id, neighbours] : placed_beside) {
    for (const std::string& name : neighbours) {
      const graph::Node* const neighbour = definition.Find(name);
      if (neighbour == nullptr || neighbour->device().empty()) continue;
      definition.SetDevice(id, neighbour->device());
      break;
    }
  }
}

}  // namespace weir
