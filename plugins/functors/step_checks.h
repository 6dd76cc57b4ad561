// Checks of the operands of optimiser steps, with TensorFlow's texts.
#ifndef WEIR_PLUGINS_FUNCTORS_STEP_CHECKS_H_
#define WEIR_PLUGINS_FUNCTORS_STEP_CHECKS_H_

#include "plugins/functors/places.h"
#include "sdk/cpp/kernel.h"

namespace weir::functors {

/// Ok if `other` has the variable's shape.
inline int32_t CheckShape(const sdk::Error& error, const weir_shape& variable, const weir_shape& other,
                          const char* name) {
  if (sdk::SameShape(variable, other)) return WEIR_OK;
  return error.InvalidArgument("var and ", name, " do not have the same shape", variable, " ", other);
}
inline int32_t CheckScalar(const sdk::Error& error, const weir_shape& shape, const char* name) {
  if (shape.rank == 0) return WEIR_OK;
  return error.InvalidArgument(name, " is not a scalar: ", shape);
}

/// Finds the rows of the variable, which is operand 0. Ok if operand `grad_at` has a row for each of the indices behind
/// it.
inline int32_t FindRows(const sdk::Prep& prep, uint32_t grad_at, Places* places) {
  const weir_shape &var = prep.shape(0), &grad = prep.shape(grad_at), &indices = prep.shape(grad_at + 1);
  const sdk::Error& error = prep.error();
  if (var.rank < 1) return error.InvalidArgument("var must be at least 1 dimensional");
  if (indices.rank != 1) return error.InvalidArgument("indices must be one-dimensional");
  if (grad.rank < 1 || grad.dims[0] != indices.dims[0]) {
    return error.InvalidArgument("grad must be the same size as indices in the first dimension.");
  }
  for (uint32_t i = 1; i < var.rank; ++i) {
    if (i >= grad.rank || grad.dims[i] != var.dims[i]) {
      return error.InvalidArgument("var and grad must match in dimension ", i);
    }
  }
  if (grad.rank != var.rank) return error.InvalidArgument("var and grad must match in dimension ", var.rank);
  *places = Places::OfRows(var, indices);
  return WEIR_OK;
}

/// Ok if all rows exist.
inline int32_t CheckRows(const sdk::Error& error, const Places& places, const sdk::Integers& indices) {
  for (int64_t i = 0; i < places.count; ++i) {
    if (places.At(indices, i) >= 0) continue;
    return error.InvalidArgument("Index ", indices[i], " at offset ", i, " in indices is out of range");
  }
  return WEIR_OK;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_STEP_CHECKS_H_
