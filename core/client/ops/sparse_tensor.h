// Sparse tensors as three values: where, what, and of what extents. As TensorFlow 1.x's tf.SparseTensor.
#ifndef WEIR_CORE_CLIENT_OPS_SPARSE_TENSOR_H_
#define WEIR_CORE_CLIENT_OPS_SPARSE_TENSOR_H_

#include <string_view>

#include "core/client/ops/ops.h"
#include "core/client/session/session.h"

namespace weir {

/// A sparse tensor of the graph.
struct SparseTensor {
  Output indices;      // int64 [n, rank]
  Output values;       // [n]
  Output dense_shape;  // int64 [rank]

  /// Literals become constants; indices and dense_shape are converted to int64.
  static SparseTensor Of(const Operand& indices, const Operand& values, const Operand& dense_shape,
                         Where where = Where::current());
  /// Fetched as the list of the three: SparseTensorValue::Of(*session.Run(sparse)).
  operator Fetch() const { return Fetch({indices, values, dense_shape}); }  // NOLINT(google-explicit-constructor)
};

/// A sparse tensor of the host, fetched or to be fed.
struct SparseTensorValue {
  Tensor indices;      // int64 [n, rank]
  Tensor values;       // [n]
  Tensor dense_shape;  // int64 [rank]

  /// What a SparseTensor was fetched as. InvalidArgument for anything else.
  static Result<SparseTensorValue> Of(const Fetched& fetched);
};

/// Feeds for the three values of `sparse`: `session.Run(y, FeedsOf(x, {{{0, 1}}, {2.0}, {3, 4}}))`.
Feeds FeedsOf(const SparseTensor& sparse, const SparseTensorValue& value);
Feeds FeedsOf(const SparseTensor& sparse, const Literal& indices, const Literal& values, const Literal& dense_shape);

/// Placeholders `name/indices`, `name/values`, `name/shape`. `shape`: extents known beforehand, whose number is the
/// rank.
SparseTensor SparsePlaceholder(DType dtype, const PartialShape& shape = {}, std::string_view name = "Placeholder",
                               Where where = Where::current());

/// The dense tensor, with `default_value` where nothing is.
Output SparseTensorToDense(const SparseTensor& sparse, const Operand& default_value = 0, bool validate_indices = true,
                           std::string_view name = "SparseToDense", Where where = Where::current());
/// The product of a sparse matrix and a dense one.
Output SparseTensorDenseMatMul(const SparseTensor& a, const Operand& b,
                               std::string_view name = "SparseTensorDenseMatMul", Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_OPS_SPARSE_TENSOR_H_
