// Checks of shapes shared by scatters into variables and into tensors.
#ifndef WEIR_CORE_OPS_SCATTER_SHAPES_H_
#define WEIR_CORE_OPS_SCATTER_SHAPES_H_

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace weir::ops {

/// Checks `updates` [outer…, extents of `target` from depth on] against `indices` [outer…, depth]. InvalidArgument with
/// TensorFlow's texts.
Status CheckScatteredSlices(const PartialShape& target, const PartialShape& indices, const PartialShape& updates);

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_SCATTER_SHAPES_H_
