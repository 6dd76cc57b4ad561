// Lookup tables from keys to values, and ops that fill them.
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::Scalar;
using op::ShapeContext;

constexpr std::string_view kLookup = "what a table holds is state, not a function of the inputs";

Status TableHandle(ShapeContext& c) { return c.WithRank(0, 0).status(); }

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

OpBuilder TableOp(OpRegistry& ops, std::string_view name) {
  return ops.Declare(name).Is(Category::kState).Stateful().NoGradient(kLookup);
}

OpBuilder Table(OpRegistry& ops, std::string_view name) {
  return TableOp(ops, name)
      .Out("table_handle: resource")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("use_node_name_sharing: bool = false")
      .Attr("key_dtype: type")
      .Attr("value_dtype: type")
      .Shape(Scalar());
}

void DeclareTables(OpRegistry& ops) {
  Table(ops, "HashTableV2").Doc("A handle of a table that is filled once, by an op that initialises it.");
  Table(ops, "MutableHashTableV2").Doc("A handle of a table from keys to scalars that ops fill and change.");
  Table(ops, "MutableHashTableOfTensorsV2")
      .Attr("value_shape: shape = []")
      .Doc("A handle of a table from keys to tensors of one shape that ops fill and change.");
  Table(ops, "MutableDenseHashTableV2")
      .In("empty_key: key_dtype")
      .In("deleted_key: key_dtype")
      .Attr("value_shape: shape = []")
      .Attr("initial_num_buckets: int = 131072")
      .Attr("max_load_factor: float = 0.8")
      .Doc("As MutableHashTableOfTensorsV2; two keys, which may be tensors, are reserved for the table's own use.");
}

/// Keys of any shape with one value per key.
OpBuilder Filler(OpRegistry& ops, std::string_view name) {
  return TableOp(ops, name)
      .In("table_handle: resource")
      .In("keys: Tin")
      .In("values: Tout")
      .Attr("Tin: type")
      .Attr("Tout: type")
      .Shape(TableHandle);
}

void DeclareTableInitializers(OpRegistry& ops) {
  TableOp(ops, "InitializeTableV2")
      .In("table_handle: resource")
      .In("keys: Tkey")
      .In("values: Tval")
      .Attr("Tkey: type")
      .Attr("Tval: type")
      .Shape(TableInitializeShape)
      .Doc("Fills a table of HashTableV2 with vectors of keys and values; again with the same is no error.");
  TableOp(ops, "InitializeTableFromTextFileV2")
      .In("table_handle: resource")
      .In("filename: string")
      .Attr("key_index: int >= -2")
      .Attr("value_index: int >= -2")
      .Attr("vocab_size: int >= -1 = -1")
      .Attr("delimiter: string = '\t'")
      .Attr("offset: int = 0")
      .Shape(TextFileShape)
      .Doc(
          "Fills a table of HashTableV2 with the first vocab_size lines (-1: all) of a file: column n of each, the "
          "whole "
          "line (-2) or its number plus `offset` (-1) as key and as value.");
}

}  // namespace

void DeclareTable(OpRegistry& ops) {
  DeclareTables(ops);
  DeclareTableInitializers(ops);
  Filler(ops, "LookupTableInsertV2").Doc("Puts the keys with their values into the table, over those it has.");
  Filler(ops, "LookupTableImportV2").Doc("Replaces all that the table holds.");
  TableOp(ops, "LookupTableFindV2")
      .In("table_handle: resource")
      .In("keys: Tin")
      .In("default_value: Tout")
      .Out("values: Tout")
      .Attr("Tin: type")
      .Attr("Tout: type")
      .Shape(TableFindShape)
      .Doc("The value of each key, or the default where the table has none.");
  TableOp(ops, "LookupTableRemoveV2")
      .In("table_handle: resource")
      .In("keys: Tin")
      .Attr("Tin: type")
      .Shape(TableHandle)
      .Doc("Takes the keys out of the table; those that it does not have are no error.");
  TableOp(ops, "LookupTableExportV2")
      .In("table_handle: resource")
      .Out("keys: Tkeys")
      .Out("values: Tvalues")
      .Attr("Tkeys: type")
      .Attr("Tvalues: type")
      .Shape(TableExportShape)
      .Doc("All keys and their values, in no order.");
  TableOp(ops, "LookupTableSizeV2")
      .In("table_handle: resource")
      .Out("size: int64")
      .Shape(TableSizeShape)
      .Doc("How many keys the table has.");
}

}  // namespace weir::ops
