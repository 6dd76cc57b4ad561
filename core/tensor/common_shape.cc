#include "core/tensor/common_shape.h"

namespace weir {

PartialShape CommonShape(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return PartialShape();
  PartialShape common = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) common.set_dim(i, -1);
  }
  return common;
}

}  // namespace weir
