#include "core/client/meta_graph.h"

#include <utility>
#include <vector>

#include "core/client/control_flow_context.h"
#include "core/client/variable.h"
#include "core/io/files.h"
#include "core/proto/parse.h"
#include "weir/proto/variable.pb.h"

namespace weir {
namespace {

using graph::CollectionItem;

bool HoldsVariables(std::string_view key) {
  return key == keys::kGlobalVariables || key == keys::kLocalVariables || key == keys::kTrainableVariables ||
         key == "model_variables" || key == "moving_average_variables" || key == "trainable_resource_variables";
}

Result<CollectionItem> ToItem(const CollectionEntry& entry) {
  CollectionItem item;
  if (entry.variable) {
    tf::VariableDef def;
    def.set_variable_name(entry.variable->handle().name());
    def.set_initializer_name(entry.variable->initializer().name());
    def.set_snapshot_name(entry.variable->value().name());
    def.set_initial_value_name(entry.variable->initial_value().name());
    def.set_is_resource(entry.variable->is_resource());
    def.set_trainable(entry.variable->trainable());
    item.kind = CollectionItem::Kind::kBytes;
    WEIR_ASSIGN(item.text, proto::Serialize(def, "VariableDef"));
  } else if (entry.context != nullptr) {
    item.kind = CollectionItem::Kind::kBytes;
    WEIR_ASSIGN(item.text, entry.context->Serialize());
  } else if (entry.output.exists()) {
    item.text = entry.output.name();
  } else if (entry.operation.exists()) {
    item.text = entry.operation.name();
  } else {
    item.kind = CollectionItem::Kind::kBytes;
    item.text = entry.text;
  }
  return item;
}

Result<CollectionEntry> VariableEntry(Graph& graph, const std::string& bytes) {
  tf::VariableDef def;
  WEIR_TRY(proto::ParseBinary(bytes, "VariableDef", def));
  VariableNodes nodes;
  WEIR_ASSIGN(nodes.handle, graph.TensorByName(def.variable_name()));
  WEIR_ASSIGN(nodes.initializer, graph.OperationByName(def.initializer_name()));
  WEIR_ASSIGN(nodes.value, graph.TensorByName(def.snapshot_name()));
  if (!def.initial_value_name().empty()) {
    WEIR_ASSIGN(nodes.initial_value, graph.TensorByName(def.initial_value_name()));
  }
  // Files older than the field are taken at their collection's word.
  nodes.trainable = def.trainable();
  CollectionEntry entry;
  entry.output = nodes.handle;
  entry.variable = std::make_shared<Variable>(Variable::FromNodes(nodes));
  return entry;
}

Result<CollectionEntry> ToEntry(Graph& graph, const std::string& key, const CollectionItem& item,
                                const std::string& prefix) {
  CollectionEntry entry;
  switch (item.kind) {
    case CollectionItem::Kind::kBytes:
      if (HoldsVariables(key)) return VariableEntry(graph, item.text);
      if (key == "cond_context" || key == "while_context") {
        WEIR_ASSIGN(entry.context, graph.control_flow().Read(key, item.text, prefix));
        return entry;
      }
      break;
    case CollectionItem::Kind::kNode:
      if (item.text.find(':') != std::string::npos) {
        WEIR_ASSIGN(entry.output, graph.TensorByName(item.text));
      } else {
        WEIR_ASSIGN(entry.operation, graph.OperationByName(item.text));
      }
      return entry;
    case CollectionItem::Kind::kInt:
      entry.text = std::to_string(item.number);
      return entry;
    case CollectionItem::Kind::kFloat:
      entry.text = std::to_string(item.real);
      return entry;
    case CollectionItem::Kind::kAny:
      break;
  }
  entry.text = item.text;
  return entry;
}

}  // namespace

Result<std::string> ExportMetaGraph(Graph& graph, std::optional<graph::SaverNodes> saver) {
  WEIR_TRY(graph.status());
  auto& collections = graph.definition().collections();
  collections.clear();
  for (const std::string& key : graph.CollectionKeys()) {
    for (const CollectionEntry& entry : graph.GetCollection(key)) {
      WEIR_ASSIGN(CollectionItem item, ToItem(entry));
      collections[key].push_back(std::move(item));
    }
  }
  graph::MetaInfo info;
  info.saver = std::move(saver);
  return graph::ExportMetaGraph(graph.definition(), info);
}

Result<graph::MetaInfo> ImportMetaGraph(std::string_view bytes, Graph& graph, std::string_view prefix) {
  if (graph.finalized()) return FailedPrecondition("Graph is finalized and cannot be modified.");
  graph.definition().collections().clear();
  graph::ImportOptions options;
  if (!prefix.empty()) options.prefix = graph.names().Unique(graph.names().current() + std::string(prefix));
  const int before = graph.definition().num_nodes();
  WEIR_ASSIGN(graph::MetaInfo info, graph::ImportMetaGraph(bytes, options, graph.definition()));
  for (graph::NodeId id = before; id < graph.definition().num_nodes(); ++id) {
    graph.names().MarkUsed(graph.definition().node(id).name());
  }
  for (const auto& [key, items] : graph.definition().collections()) {
    for (const CollectionItem& item : items) {
      Result<CollectionEntry> entry = ToEntry(graph, key, item, options.prefix);
      if (!entry.ok()) return entry.status().Prepend("collection '" + key + "': ");
      graph.AddToCollection(key, std::move(*entry));
    }
  }
  return info;
}

Result<graph::MetaInfo> ImportMetaGraphFile(const std::string& path, Graph& graph, std::string_view prefix) {
  WEIR_ASSIGN(const std::string bytes, io::ReadFile(path, proto::kMaxMessageBytes));
  Result<graph::MetaInfo> info = ImportMetaGraph(bytes, graph, prefix);
  return info.ok() ? info : info.status().Prepend(path + ": ");
}

}  // namespace weir
