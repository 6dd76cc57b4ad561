// Operands of ops on sparse matrices: what they must be.
#ifndef WEIR_PLUGINS_FUNCTORS_SPARSE_CHECKS_H_
#define WEIR_PLUGINS_FUNCTORS_SPARSE_CHECKS_H_

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/functors/operands.h"
#include "sdk/cpp/context.h"

namespace weir::functors {

/// The coordinates as text: "[1,2]".
inline weir_shape AsShape(std::span<const int64_t> numbers) {
  return {static_cast<uint32_t>(numbers.size()), 0, numbers.data()};
}

/// InvalidArgument with TensorFlow's text unless the three parts of a sparse tensor fit each other.
inline int32_t CheckParts(const sdk::Error& error, const weir_shape& indices, const weir_shape& values,
                          const weir_shape& shape) {
  if (indices.rank != 2) return error.InvalidArgument("Sparse indices must be rank 2 but is rank ", indices.rank);
  if (values.rank != 1) return error.InvalidArgument("Sparse values must be rank 1 but is rank ", values.rank);
  if (shape.rank != 1) return error.InvalidArgument("Sparse shape must be rank 1 but is rank ", shape.rank);
  if (indices.dims[0] != values.dims[0]) {
    return error.InvalidArgument("Number of elements in indices (", indices.dims[0], ") and values (", values.dims[0],
                                 ") do not match");
  }
  if (indices.dims[1] != shape.dims[0]) {
    return error.InvalidArgument("Index rank (", indices.dims[1], ") and shape rank (", shape.dims[0],
                                 ") do not match");
  }
  return WEIR_OK;
}

/// The product of `dims`; no value after an error.
inline std::optional<int64_t> DenseSize(const sdk::Error& error, std::span<const int64_t> dims, int32_t* code) {
  int64_t size = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      *code = error.InvalidArgument("Expected shape dimensions to be non-negative, got ", dim);
      return std::nullopt;
    }
    int64_t next = 0;
    if (__builtin_mul_overflow(size, dim, &next)) {
      *code = error.InvalidArgument("Encountered overflow when multiplying ", size, " with ", dim, ", result: -1");
      return std::nullopt;
    }
    size = next;
  }
  return size;
}

/// SparseReshape: the extents of the result, and the steps of both shapes.
struct SparseReshapePlan {
  std::vector<int64_t> dims, steps, to_steps;

  int32_t Plan(const sdk::Error& error, const weir_shape& indices, const sdk::View<const int64_t>& shape,
               const sdk::View<const int64_t>& target) {
    if (indices.rank != 2) return error.InvalidArgument("Input must be a matrix.");
    if (shape.rank() != 1) return error.InvalidArgument("Input shape must be a vector.");
    if (target.rank() != 1) {
      return error.InvalidArgument("Target shape should be a vector but received shape ", target.shape());
    }
    if (shape.size() != indices.dims[1]) {
      return error.InvalidArgument("Input tensor rank must match input shape length.");
    }
    dims.assign(target.data(), target.data() + target.size());
    const std::vector<int64_t> from(shape.data(), shape.data() + shape.size());
    if (const int32_t code = Resolve(error, from, &dims); code != WEIR_OK) return code;
    steps = StepsOf(from);
    to_steps = StepsOf(dims);
    const bool empty = std::find(from.begin(), from.end(), 0) != from.end();
    if (indices.dims[0] == 0 || !empty) return WEIR_OK;
    return error.InvalidArgument("Input tensor has ", indices.dims[0],
                                 " non zero elements but input shape and/or output shape has zero elements");
  }

 private:
  /// Replaces a -1 in `dims`, and compares the sizes of both shapes.
  static int32_t Resolve(const sdk::Error& error, std::span<const int64_t> from, std::vector<int64_t>* dims) {
    int32_t code = WEIR_OK;
    const std::optional<int64_t> size = DenseSize(error, from, &code);
    if (!size) return code;
    int64_t unknown = -1;
    std::vector<int64_t> known;
    for (size_t d = 0; d < dims->size(); ++d) {
      const int64_t dim = (*dims)[d];
      if (dim == -1 && unknown >= 0) {
        return error.InvalidArgument("only one output dimension may be -1, not both ", unknown, " and ", d);
      }
      if (dim < -1) return error.InvalidArgument("size ", d, " must be non-negative, not ", dim);
      if (dim == -1) unknown = static_cast<int64_t>(d);
      if (dim >= 0) known.push_back(dim);
    }
    const std::optional<int64_t> product = DenseSize(error, known, &code);
    if (!product) return code;
    if (unknown < 0 && *product == *size) return WEIR_OK;
    if (unknown < 0) {
      return error.InvalidArgument("Input to reshape is a tensor with ", *size, " dense values, but the requested ",
                                   "shape has ", *product, ". input_shape=", AsShape(from),
                                   " output_shape=", ShapeOf(*dims));
    }
    if (*product == 0) {
      return error.InvalidArgument("reshape cannot infer the missing input size for an empty tensor unless all ",
                                   "specified input sizes are non-zero");
    }
    (*dims)[static_cast<size_t>(unknown)] = *size / *product;
    if (*size % *product == 0) return WEIR_OK;
    return error.InvalidArgument("Input to reshape is a SparseTensor with ", *size, " dense values, but the requested ",
                                 "shape requires a multiple of ", *product, ". input_shape=", AsShape(from),
                                 " output_shape=", ShapeOf(*dims));
  }
};

/// An axis counted from the end if it is negative.
inline int32_t SparseAxis(const sdk::Error& error, int64_t given, int64_t rank, int64_t* axis) {
  *axis = given < 0 ? given + rank : given;
  if (*axis >= 0 && *axis < rank) return WEIR_OK;
  return error.InvalidArgument("Concat dimension must be in range [", -rank, ", ", rank, "), got ", given);
}

/// Part `at` of a concatenation, beside the first one.
inline int32_t CheckConcatPart(const sdk::Error& error, const weir_shape& indices, const weir_shape& values,
                               const sdk::View<const int64_t>& shape, const sdk::View<const int64_t>& first,
                               uint32_t at) {
  if (indices.rank != 2) {
    return error.InvalidArgument("Input indices should be a matrix but received shape ", indices, " at position ", at);
  }
  if (values.rank != 1) {
    return error.InvalidArgument("Input values should be a vector but received shape ", values, " at position ", at);
  }
  if (shape.rank() != 1) {
    return error.InvalidArgument("Input shapes should be a vector but received shape ", shape.shape(), " at position ",
                                 at);
  }
  if (shape.size() != first.size()) {
    return error.InvalidArgument("Ranks of all input tensors must match: expected ", first.size(), " but got ",
                                 shape.size(), " at position ", at);
  }
  if (indices.dims[0] != values.dims[0]) {
    return error.InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                                 indices.dims[0], ", values = ", values.dims[0], ")");
  }
  return CheckParts(error, indices, values, shape.shape());
}
inline int32_t CheckConcatExtents(const sdk::Error& error, const sdk::View<const int64_t>& shape,
                                  const sdk::View<const int64_t>& first, int64_t axis, uint32_t at) {
  for (int64_t d = 0; d < shape.size(); ++d) {
    if (d == axis || shape[d] == first[d]) continue;
    return error.InvalidArgument("Input shapes must match: expected ", first[d], " for dimension ", d, " but got ",
                                 shape[d], " at position ", at);
  }
  return WEIR_OK;
}

/// The extents of the slice [start, start + size).
inline int32_t SparseSliceDims(const sdk::Error& error, const sdk::View<const int64_t>& shape,
                               const sdk::View<const int64_t>& start, const sdk::View<const int64_t>& size,
                               std::vector<int64_t>* dims) {
  const std::pair<std::string_view, const sdk::View<const int64_t>&> vectors[] = {{"start", start}, {"size", size}};
  for (const auto& [name, vector] : vectors) {
    if (vector.rank() != 1) {
      return error.InvalidArgument("Input ", name, " should be a vector but received shape ", vector.shape());
    }
    if (vector.size() == shape.size()) continue;
    return error.InvalidArgument("Expected ", name, " to be a vector of length ", shape.size(), " but got length ",
                                 vector.size());
  }
  for (int64_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) return error.InvalidArgument("Expected shape dimensions to be non-negative, got ", shape[d]);
    if (size[d] < 0) return error.InvalidArgument("Expected a non-negative size, got ", size[d]);
    int64_t left = 0;
    const bool huge = __builtin_sub_overflow(shape[d], start[d], &left);
    dims->push_back(start[d] >= shape[d] ? 0 : huge ? size[d] : std::min(left, size[d]));
  }
  return WEIR_OK;
}

/// The operands of SparseSplit, but for the values of indices; the axis counted from the first one.
inline int32_t CheckSparseSplit(const sdk::Error& error, const sdk::View<const int64_t>& split_axis,
                                const weir_shape& indices, const weir_shape& values,
                                const sdk::View<const int64_t>& shape, int64_t parts, int64_t* axis) {
  if (split_axis.rank() != 0) {
    return error.InvalidArgument("Input axis should be a scalar but received shape ", split_axis.shape());
  }
  if (indices.rank != 2) {
    return error.InvalidArgument("Input indices should be a matrix but received shape ", indices);
  }
  if (values.rank != 1) return error.InvalidArgument("Input values should be a vector but received shape ", values);
  if (shape.rank() != 1) {
    return error.InvalidArgument("Input shape should be a vector but received shape ", shape.shape());
  }
  const int64_t rank = shape.size(), given = split_axis[0];
  *axis = given < 0 ? given + rank : given;
  if (*axis < 0 || *axis >= rank) {
    return error.InvalidArgument("Input axis should be in range [", -rank, ", ", rank, "), got ", given);
  }
  if (parts < 1 || parts > shape[*axis]) {
    return error.InvalidArgument("Input num_split should be between 1 and the splitting dimension size (", shape[*axis],
                                 "), got ", parts);
  }
  return CheckParts(error, indices, values, shape.shape());
}
inline int32_t EntryOutOfBounds(const sdk::Error& error, int64_t i, std::span<const int64_t> entry) {
  std::string coordinates;
  for (const int64_t coordinate : entry) {
    if (!coordinates.empty()) coordinates += ", ";
    coordinates += std::to_string(coordinate);
  }
  return error.InvalidArgument("Sparse index tuple indices[", i, ", :] = [", coordinates, "] is out of bounds");
}

/// The operands of SparseFillEmptyRows, but for the values of indices.
inline int32_t CheckFillEmptyRows(const sdk::Error& error, const weir_shape& indices, const weir_shape& values,
                                  const sdk::View<const int64_t>& shape, const weir_shape& otherwise) {
  if (shape.rank() != 1) return error.InvalidArgument("dense_shape must be a vector, saw: ", shape.shape());
  if (indices.rank != 2) return error.InvalidArgument("indices must be a matrix, saw: ", indices);
  if (values.rank != 1) return error.InvalidArgument("values must be a vector, saw: ", values);
  if (indices.dims[0] != values.dims[0]) {
    return error.InvalidArgument("The length of `values` (", values.dims[0],
                                 ") must match the first dimension of `indices` (", indices.dims[0], ").");
  }
  if (indices.dims[1] != shape.size()) {
    return error.InvalidArgument("The length of `dense_shape` (", shape.size(),
                                 ") must match the second dimension of `indices` (", indices.dims[1], ").");
  }
  if (otherwise.rank != 0) return error.InvalidArgument("default_value must be a scalar, saw: ", otherwise);
  if (shape.size() == 0) return error.InvalidArgument("Dense shape cannot be empty.");
  const int64_t rows = shape[0], count = indices.dims[0];
  if (rows < 0) return error.InvalidArgument("Expected shape dimensions to be non-negative, got ", rows);
  if (rows > std::numeric_limits<int64_t>::max() - count) {
    return error.InvalidArgument("dense_shape[0] = ", rows, " is too large");
  }
  if (rows == 0 && count != 0) {
    return error.InvalidArgument("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = ", count);
  }
  return WEIR_OK;
}
inline int32_t CheckFilledRow(const sdk::Error& error, int64_t i, int64_t row, int64_t rows) {
  if (row >= 0 && row < rows) return WEIR_OK;
  return error.InvalidArgument("indices(", i, ", 0) is invalid: ", row, " >= ", rows);
}
/// Those of its gradient.
inline int32_t CheckFillEmptyRowsGrad(const sdk::Error& error, const weir_shape& places, const weir_shape& grad) {
  if (places.rank != 1) return error.InvalidArgument("reverse_index_map must be a vector, saw: ", places);
  return grad.rank == 1 ? WEIR_OK : error.InvalidArgument("grad_values must be a vector, saw: ", grad);
}
inline int32_t CheckFilledPlace(const sdk::Error& error, int64_t at, int64_t all) {
  if (at >= 0 && at < all) return WEIR_OK;
  return error.InvalidArgument("Elements in reverse index must be in [0, ", all, ") but got ", at);
}

/// The operands of SparseToDense, but for the values of indices.
inline int32_t CheckSparseToDense(const sdk::Error& error, const weir_shape& indices, const sdk::Integers& shape,
                                  const weir_shape& values, uint32_t default_rank) {
  if (indices.rank > 2) {
    return error.InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ", indices);
  }
  const int64_t count = indices.rank > 0 ? indices.dims[0] : 1, rank = indices.rank > 1 ? indices.dims[1] : 1;
  if (shape.rank() != 1) return error.InvalidArgument("output_shape must be rank 1, got shape ", shape.shape());
  if (shape.size() != rank) {
    return error.InvalidArgument("output_shape has incorrect number of elements: ", shape.size(), " should be: ", rank);
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
