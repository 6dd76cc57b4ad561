// Sets in the last axis of tensors, and distances between sequences and between points.
#include <algorithm>

#include "core/base/errors.h"
#include "core/op/grad_context.h"
#include "core/op/shape_context.h"
#include "core/ops/families.h"
#include "core/ops/shape_algebra.h"
#include "core/ops/type_lists.h"

namespace weir::ops {
namespace {

using op::Category;
using op::OpBuilder;
using op::OpRegistry;
using op::ShapeContext;

constexpr std::string_view kSetT = "T: {int8, int16, int32, int64, uint8, uint16, string}";

/// The parts of a sparse tensor of `rank` axes, -1 if unknown.
void SetSparseOutputs(ShapeContext& c, int64_t rank) {
  c.set_output(0, PartialShape{-1, rank});
  c.set_output(1, VectorOf(-1));
  c.set_output(2, VectorOf(rank));
}

/// The rank of the sparse tensor whose coordinates, values and shape are inputs `first`, first + 1 and first + 2; -1 if
/// it is not known. An error if it is below 2 or the parts do not fit each other.
Result<int64_t> SparseRank(const ShapeContext& c, int first) {
  WEIR_ASSIGN(const PartialShape indices, c.WithRank(first, 2));
  WEIR_ASSIGN(const PartialShape values, c.WithRank(first + 1, 1));
  WEIR_ASSIGN(const PartialShape shape, c.WithRank(first + 2, 1));
  WEIR_TRY(op::MergeDim(indices.dim(0), values.dim(0)).status());
  WEIR_ASSIGN(const int64_t rank, op::MergeDim(indices.dim(1), shape.dim(0)));
  if (rank >= 0 && rank < 2) return InvalidArgument("Input {} has rank {} < 2", first, rank);
  return rank;
}

Status DenseSetsShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape a, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN(const PartialShape b, c.WithRankAtLeast(1, 2));
  if (a.has_rank() && b.has_rank()) WEIR_TRY(Span(a, 0, a.rank() - 1).Merge(Span(b, 0, b.rank() - 1)).status());
  SetSparseOutputs(c, a.has_rank() ? a.rank() : b.rank());
  return Status();
}

Status DenseAndSparseSetsShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape a, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN(const int64_t rank, SparseRank(c, 1));
  WEIR_ASSIGN(const int64_t merged, op::MergeDim(a.rank(), rank));
  SetSparseOutputs(c, merged);
  return Status();
}

Status SparseSetsShape(ShapeContext& c) {
  WEIR_ASSIGN(const int64_t a, SparseRank(c, 0));
  WEIR_ASSIGN(const int64_t b, SparseRank(c, 3));
  WEIR_ASSIGN(const int64_t merged, op::MergeDim(a, b));
  SetSparseOutputs(c, merged);
  return Status();
}

Status SetSizeShape(ShapeContext& c) {
  WEIR_TRY(SparseRank(c, 0).status());
  return Status();
}

/// The outer extents are the larger ones of both shapes, whose values are inputs 2 and 5.
Status EditDistanceShape(ShapeContext& c) {
  for (const int first : {0, 3}) {
    WEIR_TRY(c.WithRank(first, 2).status());
    WEIR_TRY(c.WithRank(first + 1, 1).status());
    WEIR_TRY(c.WithRank(first + 2, 1).status());
  }
  const std::optional<std::vector<int64_t>> hypothesis = c.ints(2), truth = c.ints(5);
  if (!hypothesis || !truth) return Status();
  if (hypothesis->size() != truth->size()) {
    return InvalidArgument("Num elements of hypothesis_shape does not match truth_shape: {} vs. {}",
                           hypothesis->size(), truth->size());
  }
  std::vector<int64_t> dims;
  for (size_t d = 0; d + 1 < truth->size(); ++d) {
    dims.push_back(std::max((*hypothesis)[d], (*truth)[d]));
    if (dims.back() < 0) return InvalidArgument("Dimension {} must be >= 0", dims.back());
  }
  WEIR_ASSIGN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return Status();
}

Status NearestNeighborsShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape points, c.WithRank(0, 2));
  WEIR_TRY(c.WithRank(1, 2).status());
  WEIR_TRY(c.WithRank(2, 0).status());
  for (int i = 0; i < 2; ++i) c.set_output(i, PartialShape{points.dim(0), -1});
  return Status();
}

/// What all three set operations have in common behind their operands.
void SetOperation(OpBuilder op, std::string_view doc) {
  op.Out("result_indices: int64")
      .Out("result_values: T")
      .Out("result_shape: int64")
      .Attr("set_operation: string")
      .Attr("validate_indices: bool = true")
      .Attr(kSetT)
      .NoGradient(kDiscrete)
      .Doc(doc);
}

OpBuilder OnSets(OpRegistry& ops, std::string_view name) { return ops.Declare(name).Is(Category::kArray); }

void DeclareSetOperations(OpRegistry& ops) {
  SetOperation(OnSets(ops, "DenseToDenseSetOperation").In("set1: T").In("set2: T").Shape(DenseSetsShape),
               "Union, intersection or difference of the sets in the last axis of two dense tensors, sparse.");
  SetOperation(OnSets(ops, "DenseToSparseSetOperation")
                   .In("set1: T")
                   .In("set2_indices: int64")
                   .In("set2_values: T")
                   .In("set2_shape: int64")
                   .Shape(DenseAndSparseSetsShape),
               "Union, intersection or difference of the sets in the last axis of a dense and a sparse tensor.");
  SetOperation(OnSets(ops, "SparseToSparseSetOperation")
                   .In("set1_indices: int64")
                   .In("set1_values: T")
                   .In("set1_shape: int64")
                   .In("set2_indices: int64")
                   .In("set2_values: T")
                   .In("set2_shape: int64")
                   .Shape(SparseSetsShape),
               "Union, intersection or difference of the sets in the last axis of two sparse tensors, sparse.");
  OnSets(ops, "SetSize")
      .In("set_indices: int64")
      .In("set_values: T")
      .In("set_shape: int64")
      .Out("size: int32")
      .Attr("validate_indices: bool = true")
      .Attr(kSetT)
      .Shape(SetSizeShape)
      .NoGradient(kDiscrete)
      .Doc("The number of distinct elements of each set in the last axis of a sparse tensor.");
}

}  // namespace

void DeclareSets(OpRegistry& ops) {
  DeclareSetOperations(ops);
  OnSets(ops, "EditDistance")
      .In("hypothesis_indices: int64")
      .In("hypothesis_values: T")
      .In("hypothesis_shape: int64")
      .In("truth_indices: int64")
      .In("truth_values: T")
      .In("truth_shape: int64")
      .Out("output: float")
      .Attr("normalize: bool = true")
      .Attr(kAnyT)
      .MovesElements()
      .Shape(EditDistanceShape)
      .NoGradient(kDiscrete)
      .Doc("The edits between the sequences in the last axis of two sparse tensors, over the truth's length.");
  ops.Declare("NearestNeighbors")
      .Is(Category::kMath)
      .In("points: float")
      .In("centers: float")
      .In("k: int64")
      .Out("nearest_center_indices: int64")
      .Out("nearest_center_distances: float")
      .Shape(NearestNeighborsShape)
      .NoGradient(op::kUndefinedGradient)
      .Doc("The k centers nearest to each point, and their squared distances.");
}

}  // namespace weir::ops
