// Lookup tables from keys to values, and ops that fill them.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/references.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kLookup = "what a table holds is state, not a function of the inputs";

/// Input 0 names a table: a handle, or a reference of two strings.
Status TableHandle(ShapeContext& c) {
  return c.input_type(0) == DType::kResource ? c.WithRank(0, 0).status() : ReferenceShape(c);
}

Status TableFindShape(ShapeContext& c) {
  WEIR_TRY(TableHandle(c));
  return ToRankAtMost(c.input(2), 1).status();
}

Status TableInitializeShape(ShapeContext& c) {
  WEIR_TRY(TableHandle(c));
  WEIR_ASSIGN(const PartialShape keys, c.WithRank(1, 1));
  return keys.Merge(c.input(2)).status();
}

Status TextFileShape(ShapeContext& c) {
  WEIR_TRY(TableHandle(c));
  return c.WithRank(1, 0).status();
}

Status TableSizeShape(ShapeContext& c) {
  WEIR_TRY(TableHandle(c));
  c.set_output(0, PartialShape(Shape()));
  return Status();
}

Status TableExportShape(ShapeContext& c) {
  WEIR_TRY(TableHandle(c));
  c.set_output(0, VectorOf(-1));
  return Status();
}

/// The ops of tables behind handles are those of version 2. Ops on references have names without "V2", and TensorFlow
/// declares only those stateful that make a table.
class TableOps {
 public:
  TableOps(OpRegistry& ops, bool by_reference)
      : ops_(ops),
        by_reference_(by_reference),
        handle_(by_reference ? "table_handle: Ref(string)" : "table_handle: resource") {}

  void DeclareKinds() {
    Kind("HashTable").Doc("A handle of a table that is filled once, by an op that initialises it.");
    Kind("MutableHashTable").Doc("A handle of a table from keys to scalars that ops fill and change.");
    Kind("MutableHashTableOfTensors")
        .Attr("value_shape: shape = []")
        .Doc("A handle of a table from keys to tensors of one shape that ops fill and change.");
    if (by_reference_) return;  // TensorFlow's kernel of the dense one needs the input that only version 2 has
    Kind("MutableDenseHashTable")
        .In("empty_key: key_dtype")
        .In("deleted_key: key_dtype")
        .Attr("value_shape: shape = []")
        .Attr("initial_num_buckets: int = 131072")
        .Attr("max_load_factor: float = 0.8")
        .Doc("As MutableHashTableOfTensorsV2; two keys, which may be tensors, are reserved for the table's own use.");
  }

  void DeclareInitializers() {
    Use("InitializeTable")
        .In("keys: Tkey")
        .In("values: Tval")
        .Attr("Tkey: type")
        .Attr("Tval: type")
        .Shape(TableInitializeShape)
        .Doc("Fills a table of HashTable with vectors of keys and values; again with the same is no error.");
    Use("InitializeTableFromTextFile")
        .In("filename: string")
        .Attr("key_index: int >= -2")
        .Attr("value_index: int >= -2")
        .Attr("vocab_size: int >= -1 = -1")
        .Attr("delimiter: string = '\t'")
        .Attr("offset: int = 0")
        .Shape(TextFileShape)
        .Doc(
            "Fills a table of HashTable with the first vocab_size lines (-1: all) of a file: column n of each, the "
            "whole line (-2) or its number plus `offset` (-1) as key and as value.");
  }

  void DeclareUses() {
    Filler("LookupTableInsert").Doc("Puts the keys with their values into the table, over those it has.");
    Filler("LookupTableImport").Doc("Replaces all that the table holds.");
    Use("LookupTableFind")
        .In("keys: Tin")
        .In("default_value: Tout")
        .Out("values: Tout")
        .Attr("Tin: type")
        .Attr("Tout: type")
        .Shape(TableFindShape)
        .Doc("The value of each key, or the default where the table has none.");
    Use("LookupTableExport")
        .Out("keys: Tkeys")
        .Out("values: Tvalues")
        .Attr("Tkeys: type")
        .Attr("Tvalues: type")
        .Shape(TableExportShape)
        .Doc("All keys and their values, in no order.");
    Use("LookupTableSize").Out("size: int64").Shape(TableSizeShape).Doc("How many keys the table has.");
    if (by_reference_) return;
    Use("LookupTableRemove")
        .In("keys: Tin")
        .Attr("Tin: type")
        .Shape(TableHandle)
        .Doc("Takes the keys out of the table; those that it does not have are no error.");
  }

 private:
  OpBuilder Any(std::string_view name) {
    const std::string full = std::string(name) + (by_reference_ ? "" : "V2");
    return ops_.Declare(full).Is(Category::kState).NoGradient(kLookup);
  }
  OpBuilder Use(std::string_view name) {
    OpBuilder made = Any(name);
    made.In(handle_);
    return by_reference_ ? made : made.Stateful();
  }
  /// Keys of any shape with one value per key.
  OpBuilder Filler(std::string_view name) {
    return Use(name).In("keys: Tin").In("values: Tout").Attr("Tin: type").Attr("Tout: type").Shape(TableHandle);
  }
  OpBuilder Kind(std::string_view name) {
    const PartialShape shape = by_reference_ ? PartialShape::Of({2}) : PartialShape(Shape());
    return Any(name)
        .Stateful()
        .Out(handle_)
        .Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false")
        .Attr("key_dtype: type")
        .Attr("value_dtype: type")
        .Shape([shape](ShapeContext& c) {
          c.set_output(0, shape);
          return Status();
        });
  }

  OpRegistry& ops_;
  const bool by_reference_;
  const std::string_view handle_;
};

}  // namespace

void DeclareTable(OpRegistry& ops) {
  for (const bool by_reference : {false, true}) {
    TableOps tables(ops, by_reference);
    tables.DeclareKinds();
    tables.DeclareInitializers();
    tables.DeclareUses();
  }
}

}  // namespace weir::ops
