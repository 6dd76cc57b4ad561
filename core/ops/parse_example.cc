// Serialized Example messages as tensors.
#include <vector>

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

/// Shapes of the outputs from `sparse` sparse features, then the dense and ragged ones. `batch`: the shape of the
/// messages, [examples] or [].
Status ExampleShapes(ShapeContext& c, const PartialShape& batch, int sparse, int ragged) {
  WEIR_ASSIGN(const std::vector<PartialShape> shapes, c.attrs().Shapes("dense_shapes"));
  const int dense = static_cast<int>(shapes.size());
  if (c.num_outputs() != 3 * sparse + dense + 2 * ragged) {
    return InvalidArgument("{} sparse, {} dense and {} ragged features do not give {} outputs", sparse, dense, ragged,
                           c.num_outputs());
  }
  const int64_t rank = batch.has_rank() ? batch.rank() + 1 : -1;
  for (int i = 0; i < sparse; ++i) {
    c.set_output(i, PartialShape{-1, rank});
    c.set_output(sparse + i, VectorOf(-1));
    c.set_output(2 * sparse + i, VectorOf(rank));
  }
  for (int i = 0; i < dense; ++i) {
    WEIR_ASSIGN(PartialShape shape, Join(batch, shapes[static_cast<size_t>(i)]));
    c.set_output(3 * sparse + i, std::move(shape));
  }
  int64_t splits = -1;
  if (batch.has_rank() && batch.rank() == 0) splits = 0;
  if (batch.has_rank() && batch.rank() == 1 && batch.dim(0) >= 0) {
    WEIR_ASSIGN(splits, AddDims(batch.dim(0), 1));
  }
  for (int i = 0; i < ragged; ++i) {
    c.set_output(3 * sparse + dense + i, VectorOf(-1));
    c.set_output(3 * sparse + dense + ragged + i, VectorOf(splits));
  }
  return Status();
}

Status ParseExampleShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape batch, c.WithRank(0, 1));
  WEIR_TRY(c.WithRank(1, 1).status());
  WEIR_ASSIGN(const int64_t sparse, c.attrs().Int("Nsparse"));
  return ExampleShapes(c, batch, static_cast<int>(sparse), 0);
}

Status ParseExampleV2Shape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape batch, ToRankAtMost(c.input(0), 1));
  for (int i = 2; i < 5; ++i) WEIR_TRY(c.WithRank(i, 1).status());
  WEIR_ASSIGN(const int64_t sparse, c.attrs().Int("num_sparse"));
  WEIR_ASSIGN(const std::vector<DType> ragged, c.attrs().Types("ragged_value_types"));
  return ExampleShapes(c, batch, static_cast<int>(sparse), static_cast<int>(ragged.size()));
}

Status ParseSingleExampleShape(ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape batch, c.WithRank(0, 0));
  WEIR_ASSIGN(const int64_t sparse, c.attrs().Int("num_sparse"));
  return ExampleShapes(c, batch, static_cast<int>(sparse), 0);
}

/// What the ops have in common after their inputs.
OpBuilder& SparseAndDense(OpBuilder& op, std::string_view count) {
  const std::string number(count);
  op.Out("sparse_indices: " + number + "*int64").Out("sparse_values: [sparse_types]");
  op.Out("sparse_shapes: " + number + "*int64").Out("dense_values: [Tdense]");
  op.Attr(number + ": int >= 0").Attr("sparse_types: list({float, int64, string}) >= 0");
  op.Attr("Tdense: list({float, int64, string}) >= 0").Attr("dense_shapes: list(shape) >= 0");
  return op.Is(Category::kArray).NoGradient("its input is text");
}

}  // namespace

void DeclareParseExample(OpRegistry& ops) {
  OpBuilder batch = ops.Declare("ParseExample");
  batch.In("serialized: string").In("names: string").In("sparse_keys: Nsparse*string").In("dense_keys: Ndense*string");
  batch.In("dense_defaults: [Tdense]").Attr("Ndense: int >= 0");
  SparseAndDense(batch, "Nsparse")
      .Shape(ParseExampleShape)
      .Doc(
          "The features of serialized Example messages. A dense feature has dense_shapes, whose first extent may be "
          "unknown: it is then padded with its default; one without default has to be in each message.");
  OpBuilder second = ops.Declare("ParseExampleV2");
  second.In("serialized: string").In("names: string").In("sparse_keys: string").In("dense_keys: string");
  second.In("ragged_keys: string").In("dense_defaults: [Tdense]");
  SparseAndDense(second, "num_sparse").Out("ragged_values: [ragged_value_types]");
  second.Out("ragged_row_splits: [ragged_split_types]");
  second.Attr("ragged_value_types: list({float, int64, string}) >= 0");
  second.Attr("ragged_split_types: list({int32, int64}) >= 0");
  second.Shape(ParseExampleV2Shape).Doc("As ParseExample, with ragged features, of a vector or one message.");
  OpBuilder single = ops.Declare("ParseSingleExample");
  single.In("serialized: string").In("dense_defaults: [Tdense]");
  SparseAndDense(single, "num_sparse").Attr("sparse_keys: list(string) >= 0").Attr("dense_keys: list(string) >= 0");
  single.Shape(ParseSingleExampleShape).Doc("The features of one serialized Example message.");
}

}  // namespace weir::ops
