// Operands of ops on sparse matrices: what they must be.
#ifndef WEIR_PLUGINS_FUNCTORS_SPARSE_CHECKS_H_
#define WEIR_PLUGINS_FUNCTORS_SPARSE_CHECKS_H_

#include "sdk/cpp/context.h"

namespace weir::functors {

/// The operands of SparseToDense, but for the values of indices.
inline int32_t CheckSparseToDense(const sdk::Error& error, const weir_shape& indices, const sdk::Integers& shape,
                                  const weir_shape& values, uint32_t default_rank) {
  if (indices.rank > 2) {
    return error.InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ",
                                 indices);
  }
  const int64_t count = indices.rank > 0 ? indices.dims[0] : 1, rank = indices.rank > 1 ? indices.dims[1] : 1;
  if (shape.rank() != 1) return error.InvalidArgument("output_shape must be rank 1, got shape ", shape.shape());
  if (shape.size() != rank) {
    return error.InvalidArgument("output_shape has incorrect number of elements: ", shape.size(),
                                 " should be: ", rank);
  }
  if (values.rank != 0 && (values.rank != 1 || values.dims[0] != count)) {
    return error.InvalidArgument("sparse_values has incorrect shape ", values, ", should be [] or [", count, "]");
  }
  if (default_rank != 0) return error.InvalidArgument("default_value should be a scalar.");
  for (int64_t d = 0; d < rank; ++d) {
    if (shape[d] < 0) return error.InvalidArgument("Dimension ", shape[d], " must be >= 0");
  }
  return WEIR_OK;
}

/// The operands of SparseTensorDenseMatMul, but for the values of indices.
inline int32_t CheckSparseProduct(const sdk::Error& error, const weir_shape& indices, const weir_shape& values,
                                  const sdk::View<const int64_t>& shape, const weir_shape& b, bool adjoint_a,
                                  bool adjoint_b) {
  if (b.rank != 2) return error.InvalidArgument("Tensor 'b' is not a matrix");
  if (shape.rank() != 1) return error.InvalidArgument("Tensor 'a_shape' is not a vector");
  if (shape.size() != 2) return error.InvalidArgument("Tensor 'a_shape' must have 2 elements");
  if (values.rank != 1) return error.InvalidArgument("Tensor 'a_values' is not a vector");
  if (indices.rank != 2) return error.InvalidArgument("Tensor 'a_indices' is not a matrix");
  if (indices.dims[0] != values.dims[0]) {
    return error.InvalidArgument("Number of rows of a_indices does not match number of entries in a_values");
  }
  if (indices.dims[1] != shape.size()) {
    return error.InvalidArgument("Number of columns of a_indices does not match number of entries in a_shape");
  }
  for (int64_t d = 0; d < 2; ++d) {
    if (shape[d] < 0) {
      return error.InvalidArgument("Expected shape dimensions to be non-negative, got ", shape[d]);
    }
  }
  const int64_t inner = shape[adjoint_a ? 0 : 1], other = b.dims[adjoint_b ? 1 : 0];
  if (inner == other) return WEIR_OK;
  return error.InvalidArgument("Cannot multiply A and B because inner dimension does not match: ", inner, " vs. ",
                               other, ".  Did you forget a transpose?  Dimensions of A: [", shape[0], ", ", shape[1],
                               ").  Dimensions of B: ", b);
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_SPARSE_CHECKS_H_
