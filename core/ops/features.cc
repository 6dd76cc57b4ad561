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
