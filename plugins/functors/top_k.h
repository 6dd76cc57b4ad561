// The largest elements of each row: checks and order.
#ifndef WEIR_PLUGINS_FUNCTORS_TOP_K_H_
#define WEIR_PLUGINS_FUNCTORS_TOP_K_H_

#include <vector>

#include "plugins/functors/operands.h"
#include "plugins/functors/scalar.h"

namespace weir::functors {

struct TopKPlan {
  int64_t rows = 0, columns = 0, k = 0;

  int32_t Plan(sdk::Prep& prep, int64_t count) {
    const weir_shape& shape = prep.shape(0);
    if (shape.rank < 1) return prep.error().InvalidArgument("input must be >= 1-D, got shape ", shape);
    k = count;
    columns = shape.dims[shape.rank - 1];
    if (k < 0) return prep.error().InvalidArgument("Need k >= 0, got ", k);
    if (columns < k) {
      return prep.error().InvalidArgument("input must have at least k columns. Had ", columns, ", needed ", k);
    }
    rows = SizeOf(shape, 0, shape.rank - 1);
    std::vector<int64_t> out = DimsOf(shape);
    out.back() = k;
    const int32_t code = ExpectOutput(prep, 0, out);
    return code != WEIR_OK ? code : ExpectOutput(prep, 1, out);
  }
};

/// The order of elements x at index i and y at index j: larger ones first, NaN behind all, equal ones by their index.
template <class C>
WEIR_HD bool ComesFirst(C x, C y, int64_t i, int64_t j) {
  if (x > y || x < y) return x > y;
  const bool no_x = x != x, no_y = y != y;
  return no_x == no_y ? i < j : no_y;
}

}  // namespace weir::functors

#endif  // WEIR_PLUGINS_FUNCTORS_TOP_K_H_
