// The most specific generalisation of several shapes.
#ifndef WEIR_CORE_TENSOR_COMMON_SHAPE_H_
#define WEIR_CORE_TENSOR_COMMON_SHAPE_H_

#include "core/tensor/shape.h"

namespace weir {

/// The most specific shape compatible with both: extents that differ become unknown, as does a rank that differs.
PartialShape CommonShape(const PartialShape& a, const PartialShape& b);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_COMMON_SHAPE_H_
