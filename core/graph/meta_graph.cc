#include "core/graph/meta_graph.h"

#include <set>
#include <utility>

#include "core/base/errors.h"
#include "core/graph/graph_message.h"
#include "core/graph/graph_view.h"
#include "core/graph/op_proto.h"
#include "core/proto/parse.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/variable.pb.h"

namespace weir::graph {
namespace {

using Kind = CollectionItem::Kind;

Status WriteItem(const CollectionItem& item, tf::CollectionDef& def) {
  switch (item.kind) {
    case Kind::kNode:
      def.mutable_node_list()->add_value(item.text);
      break;
    case Kind::kBytes:
      def.mutable_bytes_list()->add_value(item.text);
      break;
    case Kind::kInt:
      def.mutable_int64_list()->add_value(item.number);
      break;
    case Kind::kFloat:
      def.mutable_float_list()->add_value(item.real);
      break;
    case Kind::kAny:
      return proto::ParseBinary(item.text, "Any", *def.mutable_any_list()->add_value());
  }
  return {};
}

Status WriteCollections(const Definition& graph, tf::MetaGraphDef& meta) {
  for (const auto& [key, items] : graph.collections()) {
    if (items.empty()) continue;
    tf::CollectionDef& def = (*meta.mutable_collection_def())[key];
    for (const CollectionItem& item : items) {
      if (item.kind != items[0].kind) return InvalidArgument("collection '{}' has items of several kinds", key);
      WEIR_TRY(WriteItem(item, def));
    }
  }
  return {};
}

Status WriteOps(const Definition& graph, tf::OpList& list) {
  std::set<std::string_view> names;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.IsForeign(graph.node(id))) names.insert(graph.node(id).op().name);
  }
  for (const std::string_view name : names) WEIR_TRY(OpDefToProto(*graph.ops().Find(name), *list.add_op()));
  return {};
}

void WriteSaver(const SaverNodes& saver, tf::SaverDef& def) {
  def.set_filename_tensor_name(saver.filename_tensor);
  def.set_save_tensor_name(saver.save_tensor);
  def.set_restore_op_name(saver.restore_op);
  def.set_max_to_keep(saver.max_to_keep);
  def.set_sharded(saver.sharded);
  def.set_keep_checkpoint_every_n_hours(saver.keep_checkpoint_every_n_hours);
  def.set_version(tf::SaverDef::V2);
}

/// Prepends an import's prefix to names.
class Renamer {
 public:
  explicit Renamer(const std::string& prefix) : prefix_(prefix) {}

  std::string Name(const std::string& name) const {
    if (prefix_.empty() || name.empty()) return name;
    return name.starts_with('^') ? "^" + prefix_ + "/" + name.substr(1) : prefix_ + "/" + name;
  }

  /// Renames in a serialized VariableDef, recognised by the collection's key; returns other bytes unchanged.
  Result<std::string> Bytes(const std::string& key, const std::string& bytes) const {
    static const std::set<std::string_view> kOfVariables = {"variables",
                                                            "trainable_variables",
                                                            "local_variables",
                                                            "model_variables",
                                                            "moving_average_variables",
                                                            "trainable_resource_variables",
                                                            "metric_variables",
                                                            "global_step"};
    if (prefix_.empty() || !kOfVariables.contains(key)) return bytes;
    tf::VariableDef def;
    WEIR_TRY(proto::ParseBinary(bytes, "VariableDef", def));
    for (std::string* name : {def.mutable_variable_name(), def.mutable_initializer_name(), def.mutable_snapshot_name(),
                              def.mutable_initial_value_name()}) {
      *name = Name(*name);
    }
    if (def.has_save_slice_info_def()) {
      tf::SaveSliceInfoDef& slice = *def.mutable_save_slice_info_def();
      slice.set_full_name(Name(slice.full_name()));
    }
    return proto::Serialize(def, "VariableDef");
  }

 private:
  const std::string& prefix_;
};

Result<std::vector<CollectionItem>> ReadCollection(const std::string& key, const tf::CollectionDef& def,
                                                   const Renamer& renamer) {
  std::vector<CollectionItem> items;
  for (const std::string& name : def.node_list().value()) items.push_back({Kind::kNode, renamer.Name(name)});
  for (const std::string& bytes : def.bytes_list().value()) {
    WEIR_ASSIGN(std::string renamed, renamer.Bytes(key, bytes));
    items.push_back({Kind::kBytes, std::move(renamed)});
  }
  for (const int64_t number : def.int64_list().value()) items.push_back({Kind::kInt, {}, number});
  for (const float real : def.float_list().value()) items.push_back({Kind::kFloat, {}, 0, real});
  for (const auto& any : def.any_list().value()) {
    WEIR_ASSIGN(std::string bytes, proto::Serialize(any, "Any"));
    items.push_back({Kind::kAny, std::move(bytes)});
  }
  return items;
}

/// A serialized MetaGraphDef, cut into its graph, which is read where it lies, and the message of the other fields.
struct MetaParts {
  explicit MetaParts(std::string_view bytes) {
    if (proto::LooksLikeText(bytes)) return;
    WireFields fields(bytes);
    while (fields.Next()) {
      if (fields.type() != 2) return;  // the message has no such field
      if (fields.number() == tf::MetaGraphDef::kGraphDefFieldNumber) {
        if (!graph_def.empty()) return;  // messages that have to be merged
        graph_def = fields.bytes();
        continue;
      }
      for (uint64_t number : {uint64_t{fields.number()} << 3 | 2, uint64_t{fields.bytes().size()}}) {
        for (; number >= 128; number >>= 7) others.push_back(static_cast<char>(number | 128));
        others.push_back(static_cast<char>(number));
      }
      others += fields.bytes();
    }
    apart = fields.ok();
  }

  bool apart = false;  // else the message's parser reads the bytes, or refuses them
  std::string_view graph_def;
  std::string others;
};

SaverNodes ReadSaver(const tf::SaverDef& def, const Renamer& renamer) {
  SaverNodes saver;
  saver.filename_tensor = renamer.Name(def.filename_tensor_name());
  saver.save_tensor = renamer.Name(def.save_tensor_name());
  saver.restore_op = renamer.Name(def.restore_op_name());
  saver.max_to_keep = def.max_to_keep();
  saver.sharded = def.sharded();
  saver.keep_checkpoint_every_n_hours = def.keep_checkpoint_every_n_hours();
  return saver;
}

}  // namespace

Result<std::string> ExportMetaGraph(const Definition& graph, const MetaInfo& info, GraphFormat format) {
  tf::MetaGraphDef meta;
  tf::MetaGraphDef::MetaInfoDef& about = *meta.mutable_meta_info_def();
  about.set_meta_graph_version(info.version);
  for (const std::string& tag : info.tags) about.add_tags(tag);
  WEIR_TRY(WriteOps(graph, *about.mutable_stripped_op_list()));
  WEIR_TRY(GraphToMessage(graph, OutputShapes::kOmit, *meta.mutable_graph_def()));
  if (info.saver) WriteSaver(*info.saver, *meta.mutable_saver_def());
  WEIR_TRY(WriteCollections(graph, meta));
  if (format == GraphFormat::kText) return proto::Print(meta);
  return proto::Serialize(meta, "MetaGraphDef");
}

Result<MetaInfo> ImportMetaGraph(std::string_view bytes, const ImportOptions& options, Definition& graph) {
  tf::MetaGraphDef meta;
  const MetaParts parts(bytes);
  WEIR_TRY(parts.apart ? proto::ParseBinary(parts.others, "MetaGraphDef", meta)
                       : proto::ParseEither(bytes, "MetaGraphDef", meta));
  const Renamer renamer(options.prefix);
  std::map<std::string, std::vector<CollectionItem>> collections;
  for (const auto& [key, def] : meta.collection_def()) {
    WEIR_ASSIGN(collections[key], ReadCollection(key, def, renamer));
  }
  MetaInfo info;
  info.version = meta.meta_info_def().meta_graph_version();
  info.tags.assign(meta.meta_info_def().tags().begin(), meta.meta_info_def().tags().end());
  if (meta.has_saver_def()) info.saver = ReadSaver(meta.saver_def(), renamer);

  if (parts.apart) {
    WEIR_TRY(ImportGraphDef(parts.graph_def, options, graph));
  } else {
    WEIR_ASSIGN(const std::string graph_def, proto::Serialize(meta.graph_def(), "GraphDef"));
    ImportOptions copying = options;
    copying.owner = nullptr;
    WEIR_TRY(ImportGraphDef(graph_def, copying, graph));
  }
  for (auto& [key, items] : collections) {
    std::vector<CollectionItem>& all = graph.collections()[key];
    all.insert(all.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  }
  return info;
}

}  // namespace weir::graph
