#include "core/client/saver/meta_graph.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/legible.h"
#include "core/client/control_flow/control_flow_context.h"
#include "core/client/graph/graph_internal.h"
#include "core/client/training/queue_runner.h"
#include "core/client/variables/state_ops.h"
#include "core/client/variables/variable.h"
#include "core/graph/graph_def.h"
#include "core/graph/meta_graph.h"
#include "core/io/file_bytes.h"
#include "core/io/files.h"
#include "core/proto/parse.h"
#include "weir/proto/variable.pb.h"

namespace weir {
namespace {

using graph::CollectionItem;

/// Collections whose entries files keep as VariableDef.
bool HoldsVariables(std::string_view key) {
  return key == keys::kGlobalVariables || key == keys::kLocalVariables || key == keys::kTrainableVariables ||
         key == keys::kModelVariables || key == keys::kMovingAverageVariables || key == keys::kMetricVariables ||
         key == keys::kGlobalStep || key == keys::kTrainableResourceVariables;
}

Result<std::string> Describe(const Variable& variable) {
  tf::VariableDef def;
  def.set_variable_name(variable.handle().name());
  def.set_initializer_name(variable.initializer().name());
  def.set_snapshot_name(variable.snapshot().name());
  def.set_initial_value_name(variable.initial_value().name());
  def.set_is_resource(variable.is_resource());
  def.set_trainable(variable.trainable());
  if (const std::optional<SaveSlice>& slice = variable.slice()) {
    tf::SaveSliceInfoDef& part = *def.mutable_save_slice_info_def();
    part.set_full_name(slice->full_name);
    part.mutable_full_shape()->Assign(slice->full_shape.begin(), slice->full_shape.end());
    part.mutable_var_offset()->Assign(slice->offset.begin(), slice->offset.end());
    part.mutable_var_shape()->Assign(slice->shape.begin(), slice->shape.end());
  }
  return proto::Serialize(def, "VariableDef");
}

Result<CollectionItem> ToItem(const std::string& key, const CollectionEntry& entry) {
  using Kind = CollectionItem::Kind;
  if (entry.variable && HoldsVariables(key)) {
    if (!entry.variable->handle().exists()) return InvalidArgument("{} is no single variable", entry.name());
    WEIR_ASSIGN(std::string bytes, Describe(*entry.variable));
    return CollectionItem{Kind::kBytes, std::move(bytes)};
  }
  if (entry.context != nullptr) {
    WEIR_ASSIGN(std::string bytes, entry.context->Serialize());
    return CollectionItem{Kind::kBytes, std::move(bytes)};
  }
  if (!entry.name().empty()) return CollectionItem{Kind::kNode, entry.name()};
  if (const int64_t* number = std::get_if<int64_t>(&entry.number)) return CollectionItem{Kind::kInt, {}, *number};
  if (const double* real = std::get_if<double>(&entry.number)) {
    return CollectionItem{Kind::kFloat, {}, 0, static_cast<float>(*real)};
  }
  if (entry.list || entry.object.has_value()) return InvalidArgument("files carry neither lists nor objects");
  return CollectionItem{Kind::kBytes, entry.text};
}

Result<std::vector<CollectionItem>> ToItems(const std::string& key, const std::vector<CollectionEntry>& entries) {
  std::vector<CollectionItem> items;
  for (const CollectionEntry& entry : entries) {
    WEIR_ASSIGN(CollectionItem item, ToItem(key, entry));
    if (!items.empty() && item.kind != items[0].kind) return InvalidArgument("its entries are of several kinds");
    items.push_back(std::move(item));
  }
  return items;
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
  if (def.has_save_slice_info_def()) {
    const tf::SaveSliceInfoDef& part = def.save_slice_info_def();
    SaveSlice slice;
    slice.full_name = part.full_name();
    slice.full_shape.assign(part.full_shape().begin(), part.full_shape().end());
    slice.offset.assign(part.var_offset().begin(), part.var_offset().end());
    slice.shape.assign(part.var_shape().begin(), part.var_shape().end());
    const bool fits = slice.offset.size() == slice.full_shape.size() && slice.shape.size() == slice.offset.size();
    if (!fits || !Shape::Make(slice.full_shape).ok()) {
      return InvalidArgument("variable '{}': save_slice_info_def has no shape, offset and extent of one rank",
                             def.variable_name());
    }
    nodes.slice = std::move(slice);
  }
  return CollectionEntry(Variable::FromNodes(nodes));
}

/// Entries of the file, a variable that several collections describe in the same words being one.
using SharedVariables = std::map<std::string, CollectionEntry>;

Result<CollectionEntry> ToEntry(Graph& graph, const std::string& key, const CollectionItem& item,
                                const std::string& prefix, SharedVariables& shared) {
  CollectionEntry entry;
  switch (item.kind) {
    case CollectionItem::Kind::kBytes:
      if (HoldsVariables(key)) {
        if (const auto found = shared.find(item.text); found != shared.end()) return found->second;
        WEIR_ASSIGN(entry, VariableEntry(graph, item.text));
        shared.emplace(item.text, entry);
        return entry;
      }
      if (key == keys::kQueueRunners && !prefix.empty()) {
        WEIR_ASSIGN(const QueueRunner runner, QueueRunner::FromProto(item.text, graph, prefix));
        return CollectionEntry(runner.ToProto());
      }
      if (key == keys::kCondContext || key == keys::kWhileContext) {
        WEIR_ASSIGN(entry.context, Internals(graph).control_flow.Read(key, item.text, prefix));
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
      return CollectionEntry(item.number);
    case CollectionItem::Kind::kFloat:
      return CollectionEntry(item.real);
    case CollectionItem::Kind::kAny:
      break;
  }
  entry.text = item.text;
  return entry;
}

}  // namespace

Result<std::string> ExportMetaGraph(Graph& graph, std::optional<graph::SaverNodes> saver) {
  WEIR_TRY(graph.status());
  auto& collections = Internals(graph).definition.collections();
  collections.clear();
  for (const std::string& key : graph.CollectionKeys()) {
    if (key == keys::kSavers) continue;  // the file says which saver goes with it
    Result<std::vector<CollectionItem>> items = ToItems(key, graph.CollectionRef(key));
    if (items.ok()) {
      collections[key] = std::move(*items);
    } else {
      const std::string why = items.status().message();
      WarnOnStderr(fmt::format("weir: collection '{}' is not written: {}\n", key, why));
    }
  }
  graph::MetaInfo info;
  info.saver = std::move(saver);
  return graph::ExportMetaGraph(Internals(graph).definition, info);
}

Result<std::string> WriteGraph(const Graph& graph, const std::string& logdir, const std::string& name,
                               graph::GraphFormat format) {
  WEIR_ASSIGN(const std::string graph_def, graph.Export(format));
  std::error_code error;
  std::filesystem::create_directories(logdir, error);
  if (error) return Unavailable("folder '{}' cannot be made: {}", logdir, error.message());
  const std::string path = (std::filesystem::path(logdir) / name).string();
  WEIR_TRY(io::WriteFileAtomically(path, graph_def));
  return path;
}

namespace {

/// `owner`: keeps the bytes alive, or null.
Result<graph::MetaInfo> ImportBytes(std::string_view bytes, std::shared_ptr<const void> owner, Graph& graph,
                                    const MetaGraphOptions& options) {
  if (graph.finalized()) return FailedPrecondition("Graph is finalized and cannot be modified.");
  Internals(graph).definition.collections().clear();
  graph::ImportOptions import;
  import.rename_taken = true;
  import.owner = std::move(owner);
  if (options.import_scope.empty()) {
    import.prefix = graph.name_scope();
  } else {
    WEIR_ASSIGN(import.prefix, Internals(graph).PrefixFor(options.import_scope));
  }
  const int before = Internals(graph).definition.num_nodes();
  WEIR_ASSIGN(graph::MetaInfo info, graph::ImportMetaGraph(bytes, import, Internals(graph).definition));
  if (options.clear_devices) {
    for (graph::NodeId id = before; id < Internals(graph).definition.num_nodes(); ++id)
      Internals(graph).definition.SetDevice(id, "");
  }
  Internals(graph).AdoptImported(before);
  SharedVariables shared;
  for (const auto& [key, items] : Internals(graph).definition.collections()) {
    for (const CollectionItem& item : items) {
      Result<CollectionEntry> entry = ToEntry(graph, key, item, import.prefix, shared);
      if (!entry.ok()) return entry.status().Prepend("collection '" + key + "': ");
      graph.AddToCollection(key, std::move(*entry));
    }
  }
  return info;
}

}  // namespace

Result<graph::MetaInfo> ImportMetaGraph(std::string_view bytes, Graph& graph, const MetaGraphOptions& options) {
  return ImportBytes(bytes, nullptr, graph, options);
}

Result<graph::MetaInfo> ImportMetaGraphFile(const std::string& path, Graph& graph, const MetaGraphOptions& options) {
  WEIR_ASSIGN(const io::FileBytes file, io::FileBytes::Open(path, proto::kMaxMessageBytes));
  Result<graph::MetaInfo> info = ImportBytes(file.bytes(), file.owner(), graph, options);
  return info.ok() ? info : info.status().Prepend(path + ": ");
}

}  // namespace weir
