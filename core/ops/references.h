// Shapes of references to resources, as ops from before resource handles have them.
#ifndef WEIR_CORE_OPS_REFERENCES_H_
#define WEIR_CORE_OPS_REFERENCES_H_

#include "core/base/status.h"
#include "core/ops/shape_algebra.h"

namespace weir::ops {

/// Checks that input 0 may be a reference: a vector of two strings.
inline Status ReferenceShape(op::ShapeContext& c) {
  WEIR_ASSIGN(const PartialShape reference, c.WithRank(0, 1));
  return ExpectDim(reference.dim(0), 2);
}

}  // namespace weir::ops

#endif  // WEIR_CORE_OPS_REFERENCES_H_
