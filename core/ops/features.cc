// Features of models: crosses of columns, buckets of numbers, n-grams of words.
#include <string>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

/// A sparse matrix with an unknown number of entries.
Status SparseCrossShape(ShapeContext& c) {
  c.set_output(0, PartialShape{-1, 2});
  c.set_output(1, VectorOf(-1));
  c.set_output(2, VectorOf(2));
  return Status();
}

/// Inputs: values and row splits of ragged columns, indices, values and shapes of sparse ones, and dense ones.
Status RaggedCrossShape(ShapeContext& c) {
  WEIR_ASSIGN(const std::vector<DType> values, c.attrs().Types("ragged_values_types"));
  WEIR_ASSIGN(const std::vector<DType> splits, c.attrs().Types("ragged_splits_types"));
  WEIR_ASSIGN(const std::vector<DType> dense, c.attrs().Types("dense_types"));
  if (values.size() != splits.size()) {
    return InvalidArgument("ragged values and splits must have the same length.");
  }
  const int ragged = static_cast<int>(values.size()), first_dense = c.num_inputs() - static_cast<int>(dense.size());
  PartialShape all = VectorOf(-1);
  const auto merge = [&all](const PartialShape& found) -> Status {
    Result<PartialShape> merged = all.Merge(found);
    if (!merged.ok()) return InvalidArgument("inputs must all have the same batch dimension size.");
    all = *std::move(merged);
    return Status();
  };
  for (int i = 0; i < ragged; ++i) WEIR_TRY(merge(c.input(ragged + i)));
  for (int i = first_dense; i < c.num_inputs(); ++i) {
    const PartialShape& matrix = c.input(i);
    if (!matrix.has_rank() || matrix.rank() == 0 || matrix.dim(0) < 0) continue;
    WEIR_ASSIGN(const int64_t count, AddDims(matrix.dim(0), 1));
    WEIR_TRY(merge(VectorOf(count)));
  }
  c.set_output(0, VectorOf(-1));
  c.set_output(1, std::move(all));
  return Status();
}

/// num_features vectors of numbers, then as many of boundaries.
Status BucketizeShape(ShapeContext& c) {
  int64_t rows = -1;
  const int features = c.num_outputs();
  for (int i = 0; i < features; ++i) {
    WEIR_ASSIGN(const PartialShape values, c.WithRank(i, 1));
    WEIR_ASSIGN(rows, op::MergeDim(rows, values.dim(0)));
    WEIR_TRY(c.WithRank(features + i, 1).status());
  }
  for (int i = 0; i < features; ++i) c.set_output(i, VectorOf(rows));
  return Status();
}

Status NgramsShape(ShapeContext& c) {
  WEIR_TRY(c.WithRank(0, 1).status());
  WEIR_ASSIGN(PartialShape splits, c.WithRank(1, 1));
  c.set_output(0, VectorOf(-1));
  c.set_output(1, std::move(splits));
  return Status();
}

/// The inputs of a cross: sparse columns, then dense ones.
OpBuilder Cross(OpRegistry& ops, std::string_view name) {
  OpBuilder op = ops.Declare(name);
  op.In("indices: N*int64").In("values: [sparse_types]").In("shapes: N*int64").In("dense_inputs: [dense_types]");
  op.Attr("N: int >= 0").Attr("sparse_types: list({int64, string}) >= 0");
  op.Attr("dense_types: list({int64, string}) >= 0").Shape(SparseCrossShape).NoGradient(op::kUndefinedGradient);
  return op.Is(Category::kArray);
}

}  // namespace

void DeclareFeatures(OpRegistry& ops) {
  Cross(ops, "SparseCross")
      .Out("output_indices: int64")
      .Out("output_values: out_type")
      .Out("output_shape: int64")
      .Attr("hashed_output: bool")
      .Attr("num_buckets: int >= 0")
      .Attr("hash_key: int")
      .Attr("out_type: {int64, string}")
      .Attr("internal_type: {int64, string}")
      .Doc(
          "All combinations of one value of each column, row by row, as texts joined by _X_, or as numbers of buckets "
          "by the hash of all values.");
  Cross(ops, "SparseCrossV2")
      .In("sep: string")
      .Out("output_indices: int64")
      .Out("output_values: string")
      .Out("output_shape: int64")
      .Doc("All combinations of one value of each column, row by row, as texts joined by `sep`.");
  ops.Declare("RaggedCross")
      .Is(Category::kArray)
      .In("ragged_values: [ragged_values_types]")
      .In("ragged_row_splits: [ragged_splits_types]")
      .In("sparse_indices: Nsparse*int64")
      .In("sparse_values: [sparse_values_types]")
      .In("sparse_shape: Nsparse*int64")
      .In("dense_inputs: [dense_types]")
      .Out("output_values: out_values_type")
      .Out("output_row_splits: out_row_splits_type")
      .Attr("Nsparse: int >= 0")
      .Attr("input_order: string")
      .Attr("hashed_output: bool")
      .Attr("num_buckets: int >= 0")
      .Attr("hash_key: int")
      .Attr("ragged_values_types: list({int64, string}) >= 0")
      .Attr("ragged_splits_types: list({int32, int64}) >= 0")
      .Attr("sparse_values_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Attr("out_values_type: {int64, string}")
      .Attr("out_row_splits_type: {int32, int64}")
      .Shape(RaggedCrossShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc(
          "As SparseCross, of ragged, sparse and dense columns in the order of the letters R, S and D; the "
          "combinations of each row are a row of a ragged tensor.");
  ops.Declare("BoostedTreesBucketize")
      .Is(Category::kArray)
      .In("float_values: num_features*float")
      .In("bucket_boundaries: num_features*float")
      .Out("buckets: num_features*int32")
      .Attr("num_features: int >= 0")
      .Shape(BucketizeShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The place of each number among the sorted boundaries of its feature: of the first that is not smaller.");
  ops.Declare("StringNGrams")
      .Is(Category::kArray)
      .In("data: string")
      .In("data_splits: Tsplits")
      .Out("ngrams: string")
      .Out("ngrams_splits: Tsplits")
      .Attr("separator: string")
      .Attr("ngram_widths: list(int) >= 0")
      .Attr("left_pad: string")
      .Attr("right_pad: string")
      .Attr("pad_width: int")
      .Attr("preserve_short_sequences: bool")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape(NgramsShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("Neighbouring words of each row, as many as each width says, joined by `separator`.");
}

}  // namespace weir::ops
