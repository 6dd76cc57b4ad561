// Index arithmetic in gradients: shapes, sizes and index constants in a given integer type.
#ifndef WEIR_CORE_OPS_GRAD_SHAPES_H_
#define WEIR_CORE_OPS_GRAD_SHAPES_H_

#include <cstdint>
#include <vector>

#include "core/op/grad_context.h"

namespace weir::ops {

/// A constant of type int32 or int64 (`type`; others count as int32): a scalar or a vector.
op::Value IndexScalar(op::GradContext& g, DType type, int64_t value);
op::Value IndexVector(op::GradContext& g, DType type, const std::vector<int64_t>& values);

/// The shape of `v` as a vector of `type`.
op::Value ShapeAs(op::GradContext& g, op::Value v, DType type);
/// `v` as int32.
op::Value AsInt32(op::GradContext& g, op::Value v);
/// [element count of v], int32.
op::Value SizeVector(op::GradContext& g, op::Value v);
/// Elements [begin, end) of a vector; `begin` and `end` are scalars of the type int32.
op::Value Elements(op::GradContext& g, op::Value vector, op::Value begin, op::Value end);
/// Elements from `begin` on.
op::Value ElementsFrom(op::GradContext& g, op::Value vector, op::Value begin);
/// Concatenates vectors of one type.
op::Value JoinVectors(op::GradContext& g, const std::vector<op::Value>& vectors);
/// Reshapes `dy` to the shape of `x`.
op::Value ReshapedLike(op::GradContext& g, op::Value dy, op::Value x);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_GRAD_SHAPES_H_
