#include "core/client/ops/sparse_tensor.h"

#include "core/base/errors.h"
#include "core/client/graph/scopes.h"
#include "core/client/ops/build_op.h"
#include "core/client/ops/nn_ops.h"

namespace weir {

SparseTensor SparseTensor::Of(const Operand& indices, const Operand& values, const Operand& dense_shape, Where where) {
  Graph& graph = GraphOf({indices, values, dense_shape});
  const AsDefault in(graph);
  const NameScope scope("SparseTensor", graph);
  const auto wide = [&](const Operand& x, std::string_view name) {
    return x.is_literal() ? x.In(graph, DType::kInt64, name) : Cast(x, DType::kInt64, "Cast", where);
  };
  SparseTensor sparse;
  sparse.indices = wide(indices, "indices");
  sparse.values = values.In(graph, DType::kInvalid, "values");
  sparse.dense_shape = wide(dense_shape, "dense_shape");
  return sparse;
}

Result<SparseTensorValue> SparseTensorValue::Of(const Fetched& fetched) {
  SparseTensorValue value{fetched[0].tensor(), fetched[1].tensor(), fetched[2].tensor()};
  const bool whole = fetched.size() == 3 && value.indices.valid() && value.values.valid() && value.dense_shape.valid();
  if (!whole || value.indices.dtype() != DType::kInt64 || value.dense_shape.dtype() != DType::kInt64) {
    return InvalidArgument("not a fetched sparse tensor: wanted indices (int64), values and a dense shape (int64)");
  }
  return value;
}

Feeds FeedsOf(const SparseTensor& sparse, const SparseTensorValue& value) {
  return {{sparse.indices, value.indices}, {sparse.values, value.values}, {sparse.dense_shape, value.dense_shape}};
}

Feeds FeedsOf(const SparseTensor& sparse, const Literal& indices, const Literal& values, const Literal& dense_shape) {
  return {{sparse.indices, indices}, {sparse.values, values}, {sparse.dense_shape, dense_shape}};
}

SparseTensor SparsePlaceholder(DType dtype, const PartialShape& shape, std::string_view name, Where where) {
  const NameScope scope(name.empty() ? "Placeholder" : name);
  const int64_t rank = shape.has_rank() ? shape.rank() : -1;
  SparseTensor sparse;
  sparse.values = Placeholder(dtype, {-1}, "values", where);
  sparse.indices = Placeholder(DType::kInt64, {-1, rank}, "indices", where);
  sparse.dense_shape = Placeholder(DType::kInt64, {rank}, "shape", where);
  return sparse;
}

Output SparseTensorToDense(const SparseTensor& sparse, const Operand& default_value, bool validate_indices,
                           std::string_view name, Where where) {
  return SparseToDense(sparse.indices, sparse.dense_shape, sparse.values, default_value, validate_indices, name, where);
}

Output SparseTensorDenseMatMul(const SparseTensor& a, const Operand& b, std::string_view name, Where where) {
  return BuildOp("SparseTensorDenseMatMul", {a.indices, a.values, a.dense_shape, b}, {}, name, where).output(0);
}

}  // namespace weir
