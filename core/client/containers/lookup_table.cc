#include "core/client/containers/lookup_table.h"

#include <optional>
#include <utility>

#include "core/client/graph/attribute_scopes.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/ops.h"

namespace weir {

LookupTable::LookupTable(Kind kind, DType key_dtype, DType value_dtype, const Operand& default_value,
                         const LookupTableOptions& options, const Where& where)
    : kind_(kind), key_dtype_(BaseType(key_dtype)), value_dtype_(BaseType(value_dtype)) {
  const bool fixed = kind == Kind::kStatic;
  Graph& graph = GraphOf(default_value);
  const AsDefault in(graph);
  default_ = default_value.In(graph, default_value.is_literal() ? value_dtype_ : DType::kInvalid, "Const");
  const std::string_view own = fixed ? "hash_table" : "MutableHashTable";
  handle_ = BuildOp(fixed ? "HashTableV2" : "MutableHashTableV2", {},
                    {{"key_dtype", key_dtype_},
                     {"value_dtype", value_dtype_},
                     {"shared_name", options.shared_name},
                     {"use_node_name_sharing", true}},
                    options.name.empty() ? own : options.name, where)
                .output(0);
}

Operation LookupTable::Add(std::string_view op, const std::vector<Operand>& inputs, std::string_view suffix,
                           std::string_view name, const Where& where, op::AttrList attrs) const {
  Graph& graph = GraphOf(handle_);
  if (!handle_.exists()) return Operation::Absent(graph);
  const AsDefault in(graph);
  const std::string own = handle_.op().name() + std::string(suffix);
  const NameScope scope(name.empty() ? std::string_view(own) : name, graph);
  std::optional<ColocateWith> beside;
  if (kind_ == Kind::kMutable && op != "LookupTableRemoveV2") {
    beside.emplace(handle_.op(), OuterColocation::kKeep, graph);
  }
  return BuildOp(op, inputs, std::move(attrs), {}, where);
}

Output LookupTable::Lookup(const Operand& keys, std::string_view name, Where where) const {
  Graph& graph = GraphOf(handle_);
  const Output wanted = keys.In(graph, keys.is_literal() ? key_dtype_ : DType::kInvalid, "keys");
  const std::string_view suffix = kind_ == Kind::kStatic ? "_Lookup" : "_lookup_table_find";
  const Output values = Add("LookupTableFindV2", {handle_, wanted, default_}, suffix, name, where).output(0);
  if (values.exists() && default_.shape().rank() == 0) values.SetShape(wanted.shape());
  return values;
}

Output LookupTable::Size(std::string_view name, Where where) const {
  return Add("LookupTableSizeV2", {handle_}, "_Size", name, where).output(0);
}

StaticHashTable::StaticHashTable(const Operand& keys, const Operand& values, const Operand& default_value,
                                 const LookupTableOptions& options, Where where)
    : StaticHashTable(keys.In(GraphOf({keys, values, default_value}), DType::kInvalid, "keys"),
                      values.In(GraphOf({keys, values, default_value}), DType::kInvalid, "values"), default_value,
                      options, where) {}

StaticHashTable::StaticHashTable(const Output& keys, const Output& values, const Operand& default_value,
                                 const LookupTableOptions& options, const Where& where)
    : LookupTable(Kind::kStatic, keys.exists() ? keys.dtype() : DType::kString,
                  values.exists() ? values.dtype() : DType::kInt64, default_value, options, where) {
  Graph& graph = GraphOf(handle());
  initializer_ = Operation::Absent(graph);
  if (!handle().exists()) return;
  const AsDefault in(graph);
  const NameScope scope("key_value_init", graph);
  initializer_ = BuildOp("LookupTableImportV2", {handle(), keys, values}, {}, {}, where);
  if (initializer_.exists()) graph.AddToCollection(weir::keys::kTableInitializers, initializer_, where);
}

MutableHashTable::MutableHashTable(DType key_dtype, DType value_dtype, const Operand& default_value,
                                   const LookupTableOptions& options, Where where)
    : LookupTable(Kind::kMutable, key_dtype, value_dtype, default_value, options, where) {}

Operation MutableHashTable::Insert(const Operand& keys, const Operand& values, std::string_view name,
                                   Where where) const {
  Graph& graph = GraphOf(handle());
  const Output of = keys.In(graph, keys.is_literal() ? key_dtype() : DType::kInvalid, "keys");
  const Output to = values.In(graph, values.is_literal() ? value_dtype() : DType::kInvalid, "values");
  return Add("LookupTableInsertV2", {handle(), of, to}, "_lookup_table_insert", name, where);
}

Operation MutableHashTable::Remove(const Operand& keys, std::string_view name, Where where) const {
  const Output of = keys.In(GraphOf(handle()), keys.is_literal() ? key_dtype() : DType::kInvalid, "keys");
  return Add("LookupTableRemoveV2", {handle(), of}, "_lookup_table_remove", name, where);
}

MutableHashTable::Contents MutableHashTable::Export(std::string_view name, Where where) const {
  const Operation made = Add("LookupTableExportV2", {handle()}, "_lookup_table_export_values", name, where,
                             {{"Tkeys", key_dtype()}, {"Tvalues", value_dtype()}});
  const List<Output> outputs = OutputsOr(made, 2);
  return {outputs[0], outputs[1]};
}

Operation TablesInitializer(Graph& graph, std::string_view name, Where where) {
  const AsDefault in(graph);
  std::vector<Groupable> initializers;
  for (const CollectionEntry& entry : graph.GetCollection(keys::kTableInitializers)) {
    if (entry.operation.exists()) initializers.emplace_back(entry.operation);
  }
  return Group(initializers, name, where);
}

}  // namespace weir
